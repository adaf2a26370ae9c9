"""What each tool does: arguments in, a record out. Blocking; knows neither the protocol nor its library."""

from __future__ import annotations

import hashlib
import secrets
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any

from almanaq.accounts import Account
from almanaq.agent.history import Turn
from almanaq.agent.response import Finished, Progress, Response
from almanaq.bounded_dict import BoundedDict
from almanaq.connection import Connection
from almanaq.encode import expected_record, plain
from almanaq.errors import BudgetExceeded, UnknownNameError, UsageError, suggest
from almanaq.jobs import Emit, emit_progress
from almanaq.mcp import caps
from almanaq.mcp.declared import NOTICE
from almanaq.options import Options
from almanaq.suql.catalog.relations import Catalog, Column, Relation
from almanaq.suql.execution.guards import call_budget
from almanaq.suql.result import Result, Trace
from almanaq.text.sql_literals import quote

_MOST_CONVERSATIONS, _MOST_TURNS = 200, 50


class Conversations:
    """The turns of each conversation; the least recently used are forgotten."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._turns: BoundedDict[str, tuple[Turn, ...]] = BoundedDict(_MOST_CONVERSATIONS)

    def turns(self, handle: str | None) -> tuple[Turn, ...]:
        """Return the turns so far, the oldest first; none for a conversation that begins."""
        if handle is None:
            return ()
        with self._lock:
            if handle not in self._turns:
                raise UsageError("no such conversation (any more): leave out `conversation` to start a new one")
            self._turns[handle] = self._turns.pop(handle)  # to the end of the line
            return self._turns[handle]

    def keep(self, handle: str | None, turns: Sequence[Turn]) -> str:
        handle = handle or secrets.token_urlsafe(12)
        with self._lock:
            self._turns.pop(handle, None)
            self._turns[handle] = tuple(turns)[-_MOST_TURNS:]
        return handle


MOST_RANKED = 50
"""Tables that are ranked for a question; how many a tool lists is said in `declared.py`."""
_DESCRIPTION, _NAMES, _VALUES, _SAMPLES, _VALUE = 300, 1_500, 50, 3, 80

Record = dict[str, Any]


def find_tables(catalog: Catalog, given: Mapping[str, Any], choose: Callable[..., tuple[str, ...]]) -> Record:
    """Return some of the tables: all in their order, or those that fit a question, the best first."""
    catalog.check_readable()
    question = given.get("question", "").strip()
    mark = hashlib.sha256(question.encode()).hexdigest()[:8]
    start, _, of = given.get("cursor", f"0:{mark}").partition(":")
    if of != mark or not start.isdecimal() or len(start) > 9:
        raise UsageError("the cursor is from another search: pass `next` of a result with the same question")
    ranked = choose(question, catalog) if question else tuple(relation.name for relation in catalog.relations)
    relations = [catalog.relation(name) for name in ranked[int(start) : int(start) + given.get("limit", 10)]]
    listed = [
        {
            "table": relation.name,
            "description": caps.clip(relation.description, _DESCRIPTION),
            "rows": relation.rows,
            "columns": caps.CAP.lead([column.name for column in relation.columns], _NAMES),
        }
        for relation in relations
    ]
    shown = caps.CAP.lead(listed, caps.RESULT - 500)
    end = int(start) + len(shown)
    following = f"{end}:{mark}" if shown and end < len(ranked) else None
    return {"tables": shown, "total": len(ranked), "next": following, "notice": NOTICE}


def describe_table(catalog: Catalog, given: Mapping[str, Any]) -> Record:
    """Return a table with its columns; samples of their values only where they are asked for."""
    relation = catalog.relation(given["table"])
    columns = [_describe_column(column, samples=given.get("samples", False)) for column in relation.columns]
    shown = caps.CAP.lead(columns, caps.RESULT - 6_000)
    references = [f"{', '.join(own)} -> {other}({', '.join(theirs)})" for own, other, theirs in relation.foreign_keys]
    return {
        "table": relation.name,
        "description": caps.clip(relation.description, 1_000),
        "rows": relation.rows,
        "key": caps.CAP.lead(list(relation.key), 1_000),
        "references": caps.CAP.lead(references, 2_000),
        "columns": shown,
        "truncated": len(shown) < len(columns),
        "notice": NOTICE,
    }


def _describe_column(column: Column, *, samples: bool) -> Record:
    record: Record = {
        "name": column.name,
        "type": column.type + ("[]" if column.array else ""),
        "kind": column.kind.value,
    }
    if column.description:
        record["description"] = caps.clip(column.description, _DESCRIPTION)
    if column.values:
        record["values"] = [caps.clip(value, _VALUE) for value in column.values[:_VALUES]]
    if samples and column.samples:
        record["samples"] = [caps.clip(value, _VALUE) for value in column.samples[:_SAMPLES]]
    return record


_MOST_TEXT = caps.RESULT - 1_000


def read_text(connection: Connection, given: Mapping[str, Any]) -> Record:
    """Return a part of a passage of a cell, and how long the whole is."""
    relation, key = connection.catalog.relation(given["table"]), given["key"]
    column = _find_column(relation, given["column"])
    find = _cell_of_row if isinstance(key, str) and not relation.key else _cell_of_key
    cell = find(connection, relation, column, key)
    passages = cell if isinstance(cell, list) else [cell]
    number, start = given.get("passage", 1), given.get("start", 0)
    if number > len(passages):
        raise UsageError(f"there is no passage {number}: the cell has {len(passages)}")
    text = "" if passages[number - 1] is None else str(passages[number - 1])
    part = text[start : start + given.get("length", 4000)]
    while caps.CAP.size_of(part) > _MOST_TEXT:  # of characters that JSON escapes
        part = part[: len(part) // 2]
    end = start + len(part)
    return {
        "text": part,
        "passage": number,
        "passages": len(passages),
        "start": start,
        "total": len(text),
        "next": end if end < len(text) else None,
        "notice": NOTICE,
    }


def _find_column(relation: Relation, name: str) -> Column:
    column = relation.column(name)
    if column is None:
        raise UnknownNameError(f"no column named {name!r}{suggest(name, [each.name for each in relation.columns])}")
    return column


def _cell_of_row(connection: Connection, relation: Relation, column: Column, row: str) -> Any:
    """Return the cell of a row that evidence names by its number or address, as the relation has no key."""
    if relation.row_id is None:
        raise UsageError(f'{relation.name} has no key: name the row by columns with unique values, such as {{"id": 7}}')
    engine = connection.engine
    cells = engine.cells_at(relation.name, column.name, row, deadline=engine.options.for_agent().deadline)
    if not cells:
        raise UsageError(f"no row of {relation.name} has that number")
    return cells[0]


def _cell_of_key(connection: Connection, relation: Relation, column: Column, key: Any) -> Any:
    """Return the cell of a row that is named by values of columns, or by its key as evidence writes it."""
    if isinstance(key, Mapping):
        for name in key:
            _find_column(relation, name)
        if not key:
            raise UsageError('the key is empty: name the row by columns, such as {"id": 7}')
        condition = " AND ".join(f"{quote(name)}::text = ?" for name in key)
        values = [str(value) for value in key.values()]
    else:
        condition = " || ', ' || ".join(f"{quote(name)}::text" for name in relation.key) + " = ?"
        values = [key]
    shown = quote(column.name) if column.array else f"{quote(column.name)}::text"
    suql = f"SELECT {shown} AS cell FROM {quote(*relation.name.split('.'))} WHERE {condition} LIMIT 2"
    engine = connection.engine
    rows = connection.sql(suql, values, options=engine.options.for_agent(), dialect=engine.dialect).rows
    if len(rows) != 1:
        raise UsageError(f"{'no row' if not rows else 'more than one row'} of {relation.name} has that key")
    return rows[0][0]


_MEETS = "The row meets every condition: it is in the result, or LIMIT, grouping or a join left it out."

Arguments = Mapping[str, Any]


class Tools:
    """The tools over one connection without its private columns; what a client asks for only lowers its bounds."""

    def __init__(self, connection: Connection, account: Account | None = None) -> None:
        self._whole, self.account = connection, account or Account()
        self.conversations = Conversations()
        self._by_name: Mapping[str, Callable[[Arguments, Emit], Record]] = {
            "find_tables": lambda given, _: find_tables(self.connection.catalog, given, self._choose),
            "describe_table": lambda given, _: describe_table(self.connection.catalog, given),
            "explain_query": lambda given, _: self._explain(given),
            "confirm": lambda given, _: self._confirm(given),
            "run_query": lambda given, _: self._run(given),
            "ask": self._ask,
            "why_not": lambda given, _: self._why_not(given),
            "read_text": lambda given, _: read_text(self.connection, given),
        }

    def call(self, name: str, given: Arguments, emit: Emit = lambda *_: None) -> Record:
        with emit_progress(emit):
            return self._by_name[name](given, emit)

    @cached_property
    def connection(self) -> Connection:
        return self._whole.public()

    @cached_property
    def remote(self) -> bool:
        """Whether a tool may send texts to a model on another machine."""
        return self._whole.models.reader.remote

    @cached_property
    def _choose(self) -> Callable[..., tuple[str, ...]]:
        from almanaq.agent.table_chooser import TableChooser

        return TableChooser(k=MOST_RANKED)

    def _options(self, given: Arguments, *, rows: int | None = None) -> Options:
        """Return the options of a call: the connection's, where a client may only lower the budget."""
        options, models = self.connection.engine.options.for_agent(), self._whole.models
        allowed = replace(options, max_calls=call_budget(options, models))
        return allowed.within(max_calls=given.get("max_calls"), max_rows=rows)

    def _explain(self, given: Arguments) -> Record:
        dialect = self.connection.engine.dialect
        explanation = self.connection.explain(given["suql"], given.get("params", []), dialect=dialect)
        expected = expected_record(explanation)
        return {
            "plan": caps.clip(str(explanation), caps.RESULT // 2),
            "predicted": expected["predicted"],
            "columns_sent": caps.CAP.lead(expected["columns_sent"], 2_000),
            "notice": NOTICE,
        }

    def _confirm(self, given: Arguments) -> Record:
        self.connection.confirm(given["question"], given["suql"], by="a client of MCP")
        return {"notice": NOTICE}

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
        trace, count = result.trace, len(result)
        more = " and more" if trace.partial and not stopped else ""
        return self._fit_record(
            result,
            trace,
            most,
            status="partial" if stopped else "answered" if count else "no_result",
            answer=f"{count:,} row{'' if count == 1 else 's'}{more}",
            suql=caps.clip(given["suql"]),
            searched="",
            relaxed=None,
            warnings=caps.clip_warnings([*([stopped] if stopped else []), *trace.warnings]),
        )

    def _ask(self, given: Arguments, emit: Emit) -> Record:
        handle = given.get("conversation")
        turns = self.conversations.turns(handle)
        response = self._reply(given, turns, emit)
        if response.error is not None:
            raise response.error
        most = given.get("max_rows", 20)
        trace = response.trace or Trace()
        return self._fit_record(
            response,
            trace,
            most,
            status=response.status,
            answer=caps.clip(response.answer),
            suql=None if response.suql is None else caps.clip(response.suql),
            searched=caps.clip(response.searched, 1_000),
            relaxed=None if response.relaxed is None else caps.clip(response.relaxed, 1_000),
            warnings=caps.clip_warnings(trace.warnings),
            conversation=self.conversations.keep(handle, (*turns, response.turn())),
        )

    def _fit_record(self, found: Result | Response, trace: Trace, most: int, **record: Any) -> Record:
        """Return the record of a result or a reply with what it took, and with as many of its `most` rows as fit."""
        named = ("cached_calls", "unknown_calls", "unknown_answers", "input_tokens", "output_tokens", "exact")
        cost = {"calls": trace.text_calls, **{name: getattr(trace, name) for name in named}}
        cost |= {"money": plain(trace.money), "seconds": round(trace.seconds, 3)}
        record |= {"columns": list(found.columns), "truncated": len(found.rows) > most or trace.partial}
        record |= {"unknown": caps.unknown_records(found.unknown), "next": None}
        record |= {"cost": self.account.with_budgets_left(cost), "notice": NOTICE}
        fitted = caps.fit_record(record, found.rows[:most], found.evidence)
        if fitted["truncated"]:
            fitted["next"] = (
                f"Only {len(fitted['rows'])} rows are shown: select fewer columns, narrow the conditions, or page with "
                "ORDER BY a key, LIMIT and OFFSET."
            )
        return fitted

    def _reply(self, given: Arguments, turns: Any, emit: Emit) -> Response:
        for event in self.connection.ask_stream(given["question"], turns, options=self._options(given)):
            if isinstance(event, Progress):
                emit("progress", {"message": caps.clip(event.message, 200)})
            elif isinstance(event, Finished):
                return event.response
        raise AssertionError("events end with the response")

    def _why_not(self, given: Arguments) -> Record:
        found = self.connection.engine.why_not(given["suql"], given["key"], options=self._options(given))
        conditions = [
            {
                "condition": caps.clip(each.text, 1_000),
                "truth": each.truth,
                "reason": each.reason,
                "quotes": caps.quote_records(each.evidence),
            }
            for each in found.conditions
        ]
        message = "No row has that key."
        if found.conditions:
            failing = len(found.rejected)
            message = f"{failing} of {len(found.conditions)} conditions keep it out." if failing else _MEETS
        return {
            "status": "found" if found.conditions else "no_such_row",
            "answer": message,
            "conditions": caps.CAP.lead(conditions, caps.RESULT - 1_000),
            "notice": NOTICE,
        }
