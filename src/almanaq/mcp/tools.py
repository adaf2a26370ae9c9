"""What each tool does: arguments in, a record out. Blocking; knows neither the protocol nor its library."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

from almanaq.agent.events import Finished, Progress
from almanaq.encode import plain
from almanaq.errors import BudgetExceeded
from almanaq.mcp import caps, tables
from almanaq.mcp.conversations import Conversations
from almanaq.mcp.declared import NOTICE
from almanaq.mcp.texts import text_of
from almanaq.mcp.work import Say
from almanaq.suql.execution.guards import call_budget
from almanaq.suql.result import Result, Trace

if TYPE_CHECKING:
    from almanaq.agent.response import Response
    from almanaq.connection import Connection
    from almanaq.options import Options

_MEETS = "The row meets every condition: it is in the result, or LIMIT, grouping or a join left it out."

Record = dict[str, Any]
Arguments = Mapping[str, Any]


class Tools:
    """The tools over one connection, which sees nothing of its private columns.

    Args:
        connection: its options bound every call; what a client asks for only lowers them.
    """

    def __init__(self, connection: Connection) -> None:
        self._whole = connection
        self.conversations = Conversations()
        self.by_name: Mapping[str, Callable[[Arguments, Say], Record]] = {
            "find_tables": lambda given, _: tables.found(self.connection.catalog, given, self._choose),
            "describe_table": lambda given, _: tables.described(self.connection.catalog, given),
            "explain_query": lambda given, _: self._explain(given),
            "run_query": lambda given, _: self._run(given),
            "ask": self._ask,
            "why_not": lambda given, _: self._why_not(given),
            "read_text": lambda given, _: text_of(self.connection, given),
        }

    @cached_property
    def connection(self) -> Connection:
        """The source without its private columns."""
        return self._whole.public()

    @cached_property
    def remote(self) -> bool:
        """Whether a tool may send texts to a model on another machine."""
        return self._whole.models.reader.remote

    @cached_property
    def _choose(self) -> Callable[..., tuple[str, ...]]:
        from almanaq.retrieval.choose import TableChooser

        return TableChooser(k=tables.MOST_RANKED)

    def _options(self, given: Arguments, *, rows: int | None = None) -> Options:
        """Return the options of a call: the connection's, where a client may only lower the budget."""
        options, models = self.connection.engine.options.for_agent(), self._whole.models
        allowed = replace(options, max_calls=call_budget(options, models))
        return allowed.within(max_calls=given.get("max_calls"), max_rows=rows)

    def _explain(self, given: Arguments) -> Record:
        suql, params = given["suql"], given.get("params", [])
        explanation = self.connection.explain(suql, params, dialect=self.connection.engine.dialect)
        stages = [line.predicted for line in explanation.stages]
        money = [stage["money"] for stage in stages if "money" in stage]
        return {
            "plan": caps.clip(str(explanation), caps.RESULT // 2),
            "predicted": {
                "rows": next((stage["rows"] for stage in reversed(stages) if "rows" in stage), None),
                "calls": sum(stage.get("calls") or 0 for stage in stages),
                "tokens": sum(stage.get("tokens") or 0 for stage in stages),
                "money": None if None in money else sum(money),
            },
            "columns_sent": self._columns_sent(suql, params),
            "warnings": caps.warnings(explanation.notes),
            "notice": NOTICE,
        }

    def _columns_sent(self, suql: str, params: list[Any]) -> list[str]:
        """Return the columns whose texts a model on another machine would see."""
        from almanaq.suql.plan.estimate import columns_read

        if not self._whole.models.reader.remote:
            return []
        return caps.listed(list(columns_read(self.connection.engine.plan(suql, params))), 2_000)

    def _run(self, given: Arguments) -> Record:
        most, stopped = given.get("max_rows", 50), ""
        try:
            result = self.connection.sql(
                given["suql"],
                given.get("params", []),
                options=self._options(given, rows=most),
                dialect=self.connection.engine.dialect,
            )
        except BudgetExceeded as error:
            if not (isinstance(error.partial, Result) and len(error.partial)):
                raise
            result, stopped = error.partial, str(error)
        status = "partial" if stopped else "answered" if len(result) else "no_result"
        more = result.trace.partial and not stopped
        notes = [stopped, *result.trace.warnings] if stopped else result.trace.warnings
        record = {
            "status": status,
            "answer": f"{len(result):,} row{'' if len(result) == 1 else 's'}{' and more' if more else ''}",
            "suql": caps.clip(given["suql"]),
            "columns": list(result.columns),
            "truncated": result.trace.partial,
            "next": None,
            "searched": "",
            "relaxed": None,
            "cost": _cost(result.trace),
            "warnings": caps.warnings(notes),
            "notice": NOTICE,
        }
        return _said(caps.fit(record, result.rows[:most], result.evidence))

    def _ask(self, given: Arguments, say: Say) -> Record:
        handle = given.get("conversation")
        turns = self.conversations.turns(handle)
        response = self._reply(given, turns, say)
        if response.error is not None:
            raise response.error
        most = given.get("max_rows", 20)
        trace = response.trace or Trace()
        record = {
            "status": response.status,
            "answer": caps.clip(response.answer),
            "suql": None if response.suql is None else caps.clip(response.suql),
            "columns": list(response.columns),
            "truncated": len(response.rows) > most or trace.partial,
            "next": None,
            "searched": caps.clip(response.searched, 1_000),
            "relaxed": None if response.relaxed is None else caps.clip(response.relaxed, 1_000),
            "cost": _cost(trace),
            "warnings": caps.warnings(trace.warnings),
            "notice": NOTICE,
            "conversation": self.conversations.keep(handle, (*turns, response.turn())),
        }
        return _said(caps.fit(record, response.rows[:most], response.evidence))

    def _reply(self, given: Arguments, turns: Any, say: Say) -> Response:
        for event in self.connection.ask_stream(given["question"], turns, options=self._options(given)):
            if isinstance(event, Progress):
                say(caps.clip(event.message, 200))
            elif isinstance(event, Finished):
                return event.response
        raise AssertionError("events end with the response")

    def _why_not(self, given: Arguments) -> Record:
        found = self.connection.engine.why_not(given["suql"], given["key"], options=self._options(given))
        conditions = [
            {"condition": caps.clip(each.text, 1_000), "truth": each.truth, "quotes": caps.quotes(each.evidence)}
            for each in found.conditions
        ]
        message = "No row has that key."
        if found.conditions:
            failing = len(found.rejected)
            message = f"{failing} of {len(found.conditions)} conditions keep it out." if failing else _MEETS
        return {
            "status": "found" if found.conditions else "no_such_row",
            "answer": message,
            "conditions": caps.listed(conditions, caps.RESULT - 1_000),
            "notice": NOTICE,
        }


def _cost(trace: Trace) -> Record:
    return {
        "calls": trace.text_calls,
        "cached_calls": trace.cached_calls,
        "unknown_calls": trace.unknown_calls,
        "input_tokens": trace.input_tokens,
        "output_tokens": trace.output_tokens,
        "money": plain(trace.money),
        "seconds": round(trace.seconds, 3),
        "exact": trace.exact,
    }


def _said(record: Record) -> Record:
    """Say what to do where rows were left out."""
    if record["truncated"]:
        record["next"] = (
            f"Only {len(record['rows'])} rows are shown: select fewer columns, narrow the conditions, or page with "
            "ORDER BY a key, LIMIT and OFFSET."
        )
    return record
