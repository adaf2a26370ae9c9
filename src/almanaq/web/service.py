"""Service: what the API does, over one connection: questions, queries, plans, and why a row is not there.

Each method gives a Job, which the runner does in a thread; all that a job answers goes through `response_record`,
`result_record` and `why_not_record`, which the command line prints as well.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, cast

import pyarrow as pa
from sqlglot import exp
from sqlglot.errors import SqlglotError

from almanaq.accounts import Account, AuditLog, LastingBudget, Ledger
from almanaq.agent.checked import source_id
from almanaq.agent.describe import describe, name_counted
from almanaq.agent.queries import query_tree
from almanaq.agent.response import Finished, QueryWritten, Response, RowsFound
from almanaq.bounded_dict import BoundedDict
from almanaq.connection import Connection
from almanaq.encode import (
    exact_numbers,
    expected_record,
    plain,
    response_record,
    result_record,
    why_not_record,
)
from almanaq.engines.restricted import hash_rights
from almanaq.errors import AlmanaqError, BudgetExceeded, SourceError
from almanaq.event_loops import CancelToken
from almanaq.jobs import Emit, Job, Work, emit_progress
from almanaq.models.budget import Budget
from almanaq.models.private_files import default_cache_folder
from almanaq.options import AGENT_DEADLINE, Options
from almanaq.suql.execution.evidence import CitedTexts, citing
from almanaq.suql.execution.forecast import Watch, current_watch
from almanaq.suql.execution.guards import call_budget
from almanaq.suql.execution.report import Interrupted
from almanaq.suql.result import Evidence, Result
from almanaq.suql.text_functions import may_read_texts
from almanaq.users import User
from almanaq.web import records
from almanaq.web.problems import Failed, NotFound, PlanChanged, Refused, problem_of
from almanaq.web.store import Answer, AnswerStore, Columns, new_id, pack_rows
from almanaq.web.supervisor import Worker

_NO_CONVERSATION = "no such conversation (any more): leave out `conversation` to start a new one"
_BUDGETS_KEPT = 100_000
"""Conversations whose calls are counted; beyond, the oldest starts again at zero. `--server-calls` bounds them all."""


@dataclass(frozen=True, slots=True)
class Limits:
    """What clients may take.

    Attributes:
        deadline: seconds of one request.
        conversation_calls, server_calls: calls of a language model in one conversation, and in all, since the start.
        ask_above: calls above which the page asks before it spends; None: it never does.
        at_once, waiting: requests that are worked on at once, and that may wait.
    """

    deadline: float = AGENT_DEADLINE
    conversation_calls: int | None = None
    server_calls: int | None = None
    ask_above: int | None = 100
    at_once: int = 32
    waiting: int = 200


@dataclass(frozen=True, slots=True)
class Origin:
    """Which answer's query was edited, what the edited one is called, and the conversation that shows it again."""

    answer: str
    title: str
    conversation: str = ""


@dataclass
class _ProgressEmitter:
    """Hands events on, and remembers how far the query is."""

    emit: Emit
    suql: str = ""
    read: dict[str, Any] = field(default_factory=dict)

    def __call__(self, name: str, data: dict[str, Any]) -> None:
        if name == "query":
            self.suql, self.read = data["suql"], {}
        elif "done" in data:
            self.read = data
        self.emit(name, data)

    def describe(self, dialect: str) -> str:
        """Return what is known of a query that was stopped before any row was sure."""
        again = "nothing is kept. Run it again to go on"
        if not self.suql:
            return f"stopped before a query was written: {again}"
        if not self.read:
            first = "text call was answered" if may_read_texts(self.suql) else "row was sure"
            return f"stopped before any {first}: {describe(self.suql, dialect=dialect)}; {again}"
        of = f" of {self.read['total']:,}" if self.read["total"] else ""
        found = f"{self.read['passed']:,}"
        found = f"the count is at least {found}" if _counts_rows(self.suql, dialect) else f"{found} passed"
        return f"stopped after {self.read['done']:,}{of} rows were read: {found}; {again}"


@dataclass
class Service:
    """Gives the jobs of the API.

    Attributes:
        source: what the source is called, for people.

    `_under_way` holds the conversations in which a question is worked on; False for one that was deleted meanwhile.
    """

    source: str
    connection: Connection
    store: AnswerStore
    limits: Limits = Limits()
    worker: Worker = field(default_factory=Worker)
    account: Account = field(default_factory=Account)
    _server: Budget | None = None
    _connections: dict[str, Connection] = field(default_factory=dict)
    _conversations: dict[str, Budget] = field(default_factory=lambda: BoundedDict(_BUDGETS_KEPT))
    _under_way: dict[str, bool] = field(default_factory=dict)
    _running: dict[str, tuple[Watch, CancelToken]] = field(default_factory=dict)
    _keeping: threading.Lock = field(default_factory=threading.Lock)

    def __post_init__(self) -> None:
        if self.limits.server_calls is not None and self._server is None:
            self._server = LastingBudget(self.limits.server_calls, self.worker.calls)

    def for_user(self, user: User, ledger: Ledger | None = None) -> Service:
        """Return the service of one user over what they may see.

        Its connection, and its answers, are those of all users who may see the same.
        """
        connection = self.connection.for_user(user)
        rights = "" if connection is self.connection else f"-{hash_rights(connection.catalog)}"
        connection = self._connections.setdefault(rights, connection)
        store = self.store.of_source(self.store.source + rights, partial(records.may_see, connection))
        account = Account(user, ledger, self.account.log)
        return Service(self.source, connection, store, self.limits, self.worker, account, self._server)

    @property
    def calls_allowed(self) -> int | None:
        """The most model calls that one query may make; None: any number, as they cost nothing."""
        return call_budget(self.connection.engine.options, self.connection.models)

    def ask(self, question: str, conversation: str | None, asked: Options) -> Job:
        """Answer a question, in a conversation or as the first of a new one; raises NotFound for one that is gone."""
        if conversation is not None and not self.store.has_conversation(conversation):
            raise NotFound(_NO_CONVERSATION)
        own = conversation or new_id()

        def work(emit: Emit) -> dict[str, Any]:
            id, emit = new_id(), _ProgressEmitter(emit)
            emit("start", {"id": id, "conversation": own, "link": link(id)})
            # Read the turns now: the one before may have been running when this job was queued.
            earlier = self.store.conversation(own)
            if conversation is not None and not earlier:
                raise NotFound(_NO_CONVERSATION)
            turns = [answer.turn for answer in earlier if answer.turn is not None]
            with self._track_conversation(own), citing() as cited:
                with emit_progress(emit), self._stoppable(id, emit):
                    for event in self.connection.ask_stream(question, turns, options=self._options(asked)):
                        if isinstance(event, Finished):
                            response = event.response
                        elif isinstance(event, RowsFound):
                            emit("rows", _rows_event(event, cited))
                        else:
                            emit(event.kind, plain(event))
                            if isinstance(event, QueryWritten):
                                self._emit_estimate(self.connection.agent.as_run(event.suql), emit)
                return self._keep_reply(id, own, response, cited, earlier)

        return self.job(self._log("ask", work, question=question), asked, own)

    def sql(
        self,
        suql: str,
        params: Sequence[Any],
        max_rows: int,
        plan: str | None,
        asked: Options,
        origin: Origin | None = None,
    ) -> Job:
        """Run a query; raises PlanChanged, as the job's end, where it would not go as `plan` says.

        Args:
            origin: of a query that somebody edited; raises NotFound where its answer is gone.
        """

        def work(emit: Emit) -> dict[str, Any]:
            before = None if origin is None else self.store.get(origin.answer)
            if origin is not None and before is None:
                raise NotFound("no such answer (any more): leave out `of`")
            if plan is not None and records.estimate_record(self.connection, suql, params)["plan"] != plan:
                raise PlanChanged
            id, emit = new_id(), _ProgressEmitter(emit, suql)
            emit("start", {"id": id, "link": link(id)})
            self._emit_estimate(suql, emit, params)
            more: dict[str, Any] = {}
            with citing() as cited, emit_progress(emit), self._stoppable(id, emit):
                try:
                    options = self._options(asked, max_rows)
                    result = self.connection.sql(suql, params, options=options, dialect=self.connection.engine.dialect)
                except Interrupted as stopped:
                    result, more = cast(Result, stopped.partial), {"stopped": True}
                except AlmanaqError as error:
                    known = self._describe_partial(error, params, cited)
                    raise Failed(problem_of(error, suql=suql, partial=known).record()) from error
            tree = records.bind_query(self.connection.engine, suql, params)
            record = self._describe_result(result, tree, cited) | {"id": id, "link": link(id), "suql": suql, **more}
            shown = records.columns_read(self.connection, tree, (*result.evidence, result.unknown))
            columns: Columns | None = shown
            conversation = ""
            if origin is not None and before is not None:
                question = before.record.get("question") or (before.record.get("of") or {}).get("question")
                record |= {"of": {"id": origin.answer, "title": origin.title, "question": question}}
                # It shows the question as well, which may name what only those who see that answer may know.
                columns = None if before.columns is None else shown | before.columns
                conversation = origin.conversation
            answer = Answer(id, conversation, "sql", suql, self.connection.models.name, record, columns=columns)
            kept = self._keep(answer, cited, result.evidence, result.table, goes_on=bool(conversation))
            return self._add_budgets_left(kept)

        return self.job(self._log("sql", work, query=suql), asked)

    def explain(self, suql: str, params: Sequence[Any]) -> Job:
        """Return the plan of a query and what it would take; nothing is run."""

        def work(_: Emit) -> dict[str, Any]:
            try:
                found: dict[str, Any] = exact_numbers(records.estimate_record(self.connection, suql, params))
            except AlmanaqError as error:
                raise Failed(problem_of(error, suql=suql).record()) from error
            return found

        return Job(self._log("explain", work, query=suql), self.limits.deadline)

    def why_not(self, suql: str, key: dict[str, Any], params: Sequence[Any]) -> Job:
        """Return which conditions keep a row out of a query's result."""

        def work(emit: Emit) -> dict[str, Any]:
            with citing() as cited, emit_progress(emit):
                try:
                    options = self._options(Options())
                    found = self.connection.why_not(suql, key, params, options=options)
                except AlmanaqError as error:
                    raise Failed(problem_of(error, suql=suql).record()) from error
            record = why_not_record(found)
            for condition in record["conditions"]:
                condition["evidence"] = [records.count_in_utf16(each, cited) for each in condition["evidence"]]
            id = new_id()
            record = {**record, "suql": suql, "key": exact_numbers(key), "id": id, "link": link(id)}
            # The key may name columns that the query does not.
            columns, model = records.all_columns(self.connection), self.connection.models.name
            answer = Answer(id, "", "why-not", suql, model, record, columns=columns)
            return self._keep(answer, cited, [condition.evidence for condition in found.conditions])

        return self.job(self._log("why-not", work, query=suql))

    def job(self, work: Work, asked: Options | None = None, conversation: str | None = None) -> Job:
        """Return work as a job within the deadline and the budgets that it may have."""
        return Job(work, self._deadline(asked or Options()), conversation, self._budgets(conversation))

    def stop(self, id: str) -> None:
        """Stop a query or a question: the rows that are sure become its answer; raises NotFound where none runs."""
        if (running := self._running.get(id)) is None:
            raise NotFound("no such query or question is running (any more)")
        watch, token = running
        watch.keeps = True
        token.cancel()

    @contextmanager
    def _stoppable(self, id: str, emitter: _ProgressEmitter) -> Iterator[None]:
        """Let `stop` end a query that is being watched; raises Refused where no row of it is sure."""
        watch, token = current_watch(), CancelToken()
        assert watch is not None
        self._running[id] = watch, token
        try:
            with token.scope():
                yield
        except (asyncio.CancelledError, Interrupted):
            if token.is_canceled:
                raise Refused(409, emitter.describe(self.connection.engine.dialect)) from None
            raise
        finally:
            del self._running[id]

    def forget(self, conversation: str) -> None:
        """Delete a conversation, with the answer that is under way in it; raises NotFound where there is none."""
        with self._keeping:
            under_way = conversation in self._under_way
            if under_way:
                self._under_way[conversation] = False
            if not self.store.forget(conversation) and not under_way:
                raise NotFound("no such conversation (any more)")
        self._conversations.pop(conversation, None)

    @contextmanager
    def _track_conversation(self, conversation: str) -> Iterator[None]:
        with self._keeping:
            self._under_way[conversation] = True
        try:
            yield
        finally:
            with self._keeping:
                self._under_way.pop(conversation, None)

    def _keep_reply(
        self, id: str, conversation: str, response: Response, cited: CitedTexts, earlier: Sequence[Answer]
    ) -> dict[str, Any]:
        """Keep a reply and give its record; one that failed is remembered, and ends the job with its error."""
        connection, columns, tree = self.connection, [], None
        if response.suql is not None:
            tree = records.bind_query(connection.engine, connection.agent.as_run(response.suql))
        if response.table is not None and response.suql is not None:
            columns = records.describe_columns(connection.catalog, tree, response.table)
        named = {"id": id, "conversation": conversation, "link": link(id), "question": response.question}
        named |= {"asked": response.asked} if response.asked else {}
        record = records.client_record(response_record(response), cited, columns, len(response.rows)) | named
        record |= {"keys": _row_keys(response, len(record["rows"])), "lead": records.lead_of(record)}
        record |= {"stopped": True} if response.stopped else {}
        shown = records.columns_of_reply(connection, response, tree)
        # A later turn may repeat what an earlier one showed.
        known = [each.columns for each in earlier]
        carried = None if None in known else shown.union(*(each for each in known if each is not None))
        asked = response.asked or response.question
        model, turn = connection.models.name, response.turn()
        answer = Answer(id, conversation, "ask", asked, model, record, turn=turn, columns=carried)
        record = self._keep(answer, cited, response.evidence, response.table, goes_on=bool(earlier))
        if response.error is not None:
            own = {name: record[name] for name in (*named, "not_kept") if name in record}
            sure = self._describe_partial(response.error, (), cited)
            raise Failed(problem_of(response.error, suql=response.suql, partial=sure).record() | own)
        return self._add_budgets_left(record)

    def _add_budgets_left(self, record: dict[str, Any]) -> dict[str, Any]:
        return {**record, "trace": self.account.with_budgets_left(record.get("trace") or {})}

    def _log(self, action: str, work: Work, **asked: str) -> Work:
        return self.account.logged(action, self.connection, work, **asked)

    def _describe_partial(self, error: AlmanaqError, params: Sequence[Any], cited: CitedTexts) -> dict[str, Any] | None:
        """Return the rows that were sure when the budget ran out; None where there are none."""
        found = getattr(error, "partial", None) if isinstance(error, BudgetExceeded) else None
        if not isinstance(found, Result):
            return None
        return self._describe_result(found, records.bind_query(self.connection.engine, found.suql, params), cited)

    def _describe_result(self, result: Result, tree: exp.Expr | None, cited: CitedTexts) -> dict[str, Any]:
        columns = records.describe_columns(self.connection.catalog, tree, result.table)
        return records.client_record(result_record(result, records.MOST_ROWS), cited, columns, len(result))

    def _keep(
        self,
        answer: Answer,
        cited: CitedTexts,
        evidence: Sequence[Sequence[Evidence]],
        table: pa.Table | None = None,
        *,
        goes_on: bool = False,
    ) -> dict[str, Any]:
        """Keep an answer with the texts that its own quotes stand in: other rows were read on the way.

        Gives its record. One that cannot be kept was paid for all the same, and is given: without a link, and saying
        why.
        """
        if table is not None:
            rows, count = pack_rows(table)
            part = {"rows_kept": count} if count < table.num_rows else {}
            answer = replace(answer, rows=rows, record=answer.record | part)
        places = {(each.relation, each.key, each.column, each.passage) for row in evidence for each in row}
        texts = {place: cited.texts[place] for place in places if place in cited.texts}
        try:
            with self._keeping:
                if not self._under_way.get(answer.conversation, True):
                    raise NotFound("the conversation was deleted in the meantime")
                self.store.put(answer, texts, goes_on=goes_on)
        except (SourceError, NotFound) as error:
            gone = {"id": None, "link": None, "not_kept": str(error)}
            # A conversation that was not kept cannot be continued.
            return answer.record | gone | ({} if goes_on or not answer.conversation else {"conversation": None})
        return answer.record

    def _emit_estimate(self, suql: str, emit: Emit, params: Sequence[Any] = ()) -> None:
        """Emit the expected cost of a query that reads texts; running it reports what is wrong with it."""
        if not may_read_texts(suql):
            return
        try:
            found = expected_record(self.connection.explain(suql, params, dialect=self.connection.engine.dialect))
        except AlmanaqError:
            return
        if found["predicted"]["calls"]:
            emit("estimate", found)

    def _options(self, asked: Options, max_rows: int | None = None) -> Options:
        own = replace(self.connection.engine.options, max_calls=self.calls_allowed, deadline=self._deadline(asked))
        return own.within(max_calls=asked.max_calls, max_rows=max_rows)

    def _deadline(self, asked: Options) -> float:
        return min(self.limits.deadline, asked.deadline or self.limits.deadline)

    def _budgets(self, conversation: str | None) -> tuple[Budget, ...]:
        found = [*([] if self._server is None else [self._server]), *self.account.budgets()]
        if conversation is not None and self.limits.conversation_calls is not None:
            if conversation not in self._conversations:
                fresh = Budget(calls=self.limits.conversation_calls, setting="--conversation-calls")
                self._conversations[conversation] = fresh
            found.append(self._conversations[conversation])
        return tuple(found)


def _counts_rows(suql: str, dialect: str) -> bool:
    """Return whether a query counts the rows of one table that pass: of those read so far it is no more than that."""
    try:
        tree = query_tree(suql, dialect)
    except SqlglotError:
        return False
    return bool(name_counted(tree)) and [*tree.find_all(exp.Select)] == [tree]


def link(id: str) -> str:
    """Return where an answer is shown again."""
    return f"/a/{id}"


def _row_keys(response: Response, shown: int) -> list[dict[str, Any]] | None:
    """Return for each row what it is found again by; None where rows are no rows of a relation."""
    if response.shown is None:
        return None
    keys = [dict(zip(response.shown.columns, key, strict=True)) for key in response.shown.keys[:shown]]
    return exact_numbers(keys) if len(keys) == shown else None


def _rows_event(event: RowsFound, cited: CitedTexts) -> dict[str, Any]:
    """Return the rows of a reply as an event, as many as fit."""
    record = plain(event)
    rows = records.CAP.fit(exact_numbers(record["rows"])).rows
    evidence = [[records.count_in_utf16(each, cited) for each in row] for row in record["evidence"][: len(rows)]]
    return {"columns": record["columns"], "rows": rows, "evidence": evidence, "rows_total": len(event.rows)}


FILE = "answers.sqlite"
MOST_MB = 512


def open_service(
    connection: Connection,
    source: str,
    limits: Limits | None = None,
    *,
    store_mb: int | None = MOST_MB,
    worker: Worker | None = None,
    log: AuditLog | None = None,
) -> Service:
    """Return the service over a connection.

    Args:
        source: as it was named; a password in it is not shown.
        store_mb: what kept answers may take; None: they are kept in memory only.
        worker: what is known of the supervisor; None: there is none.
        log: takes a line for every request.
    """
    from almanaq.models.http import redact_address

    shown = redact_address(source) if "://" in source else source
    file = None if store_mb is None else default_cache_folder() / FILE
    store = AnswerStore(
        file, source_id(source), most_bytes=(store_mb or MOST_MB) * 1_000_000, sees=partial(records.may_see, connection)
    )
    return Service(shown, connection, store, limits or Limits(), worker or Worker(), Account(log=log))
