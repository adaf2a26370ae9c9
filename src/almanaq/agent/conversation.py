"""Agent: a question in words → a query that ran → a reply with its evidence."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, fields, is_dataclass
from typing import TYPE_CHECKING, Any, Literal

from almanaq.agent.describe import describe
from almanaq.agent.engine_protocol import QueryEngine
from almanaq.agent.history import History, Key, Turn
from almanaq.agent.local import LocalParser
from almanaq.agent.parser import Failure, Parsed, SemanticParser
from almanaq.agent.prompted_parser import PromptedParser
from almanaq.agent.responder import Found, LocalResponder, PromptedResponder, Responder
from almanaq.agent.small_talk import small_talk
from almanaq.agent.tables import MOST_TABLES, ChooseTables, choose_tables, restrict
from almanaq.errors import AlmanaqError, QueryError
from almanaq.models.protocols import Models
from almanaq.suql.catalog.relations import Catalog
from almanaq.suql.options import Options

if TYPE_CHECKING:
    from almanaq.suql.execution.result import Evidence, Result, Trace

Status = Literal["answered", "no_result", "no_query", "clarify", "failed"]
REPAIRS = 2
"""How often a query that does not bind is written anew."""

_LOCAL_TABLES = 200


@dataclass(frozen=True)
class Response:
    """A reply, with everything it rests on (the keys of `ask --json`).

    Attributes:
        suql: the query that ran, or the last that was refused; None when there was none.
        tables: names of the relations that the query reads.
        evidence: for each row, the quotes that it rests on.
        searched: what was searched, in words; "" when nothing was.
        relaxed: the condition that was dropped to find rows, in words; None when none was.
        trace: what the query took; None when none ran.
        error: what failed, for callers that want the exception; the message is in `answer`.
    """

    status: Status
    answer: str
    suql: str | None = None
    columns: tuple[str, ...] = ()
    rows: tuple[tuple[Any, ...], ...] = ()
    tables: tuple[str, ...] = ()
    evidence: tuple[tuple[Evidence, ...], ...] = ()
    searched: str = ""
    relaxed: str | None = None
    trace: Trace | None = None
    question: str = ""
    error: AlmanaqError | None = field(default=None, compare=False)

    def turn(self) -> Turn:
        """Give what a conversation remembers of this reply."""
        keys: tuple[Key, ...] = tuple((self.columns[0], str(row[0])) for row in self.rows[:20] if row)
        return Turn(self.question, self.suql, self.answer, self.status, keys)

    def as_dict(self) -> dict[str, Any]:
        """Give the keys of `ask --json`; rows keep Python values."""
        kept = [f.name for f in fields(self) if f.name not in ("question", "error")]
        return {name: _plain(getattr(self, name)) for name in kept}


def _plain(value: Any) -> Any:
    if is_dataclass(value) and not isinstance(value, type):
        return {f.name: _plain(getattr(value, f.name)) for f in fields(value)}
    return [_plain(v) for v in value] if isinstance(value, tuple | list) else value


class Agent:
    """Answers questions over one source.

    Args:
        engine: runs queries.
        models: with a language model, it parses and words the replies; without one, words are linked to the schema.
        tables: chooses relations where the source has more than fit; by shared words unless given.
        parser, responder: replace the ones that `models` calls for.
        options: how queries are run.
    """

    def __init__(
        self,
        engine: QueryEngine,
        models: Models,
        *,
        tables: ChooseTables = choose_tables,
        parser: SemanticParser | None = None,
        responder: Responder | None = None,
        options: Options | None = None,
    ) -> None:
        language = models.language
        self._engine, self._tables, self._options = engine, tables, options
        self._most = MOST_TABLES if language else _LOCAL_TABLES
        self._parser: SemanticParser = parser or (PromptedParser(language) if language else LocalParser(engine.values))
        self._responder: Responder = responder or (PromptedResponder(language) if language else LocalResponder())

    def respond(self, question: str, history: Sequence[Turn] = ()) -> Response:
        """Give the reply to a question after the turns of `history`; a failure is a Response that says what failed."""
        if small_talk(question) == "empty":
            return Response("no_query", self._responder.no_data(question, self._engine.catalog), question=question)
        try:
            return self._respond(question, tuple(history))
        except AlmanaqError as error:
            return _failed(question, error)

    def _respond(self, question: str, history: History) -> Response:
        catalog = self._catalog(question, history)
        failures: list[Failure] = []
        while True:
            parsed = self._parser.parse(question, catalog, history, tuple(failures))
            if parsed.status != "query" or not parsed.suql:
                if failures:
                    return _gave_up(question, failures)
                return self._without_query(question, parsed)
            try:
                self._engine.check(parsed.suql)
                result = self._engine.run(parsed.suql, options=self._options)
            except QueryError as error:
                failures.append(Failure(parsed.suql, str(error)))
                if len(failures) > REPAIRS:
                    return _failed(question, error, parsed.suql)
            except AlmanaqError as error:
                return _failed(question, error, parsed.suql)
            else:
                return self._reply(question, parsed, result)

    def _catalog(self, question: str, history: History) -> Catalog:
        """Give the relations to show the parser: all where they fit, else those the question is about."""
        catalog = self._engine.catalog
        if len(catalog.relations) <= self._most:
            return catalog
        asked = " ".join([*(t.question for t in history[-2:]), question])
        chosen = self._tables(asked, catalog)
        return (
            restrict(catalog, chosen)
            if chosen
            else restrict(catalog, tuple(r.name for r in catalog.relations[: self._most]))
        )

    def _without_query(self, question: str, parsed: Parsed) -> Response:
        if parsed.status == "clarify":
            return Response("clarify", parsed.reply, question=question)
        answer = parsed.reply or self._responder.no_data(question, self._engine.catalog)
        return Response("no_query", answer, question=question)

    def _reply(self, question: str, parsed: Parsed, result: Result) -> Response:
        suql = parsed.suql or ""
        searched, rows = describe(suql), tuple(result.rows)
        notes = _notes(parsed, result.trace)
        found = Found(question, searched, tuple(result.columns), rows, result.evidence, notes)
        empty = not rows or all(v is None for row in rows for v in row)
        answer = _nothing(found) if empty else self._responder.found(found)
        return Response(
            "no_result" if empty else "answered",
            answer,
            suql,
            found.columns,
            rows,
            tables_of(suql),
            result.evidence,
            searched,
            trace=result.trace,
            question=question,
        )


def tables_of(suql: str) -> tuple[str, ...]:
    """Give the names of the relations that a query reads, in the order of their first mention."""
    import sqlglot
    from sqlglot import exp

    tree = sqlglot.parse_one(suql, read="postgres")
    local = {cte.alias for cte in tree.find_all(exp.CTE)}
    return tuple(dict.fromkeys(t.name for t in tree.find_all(exp.Table) if t.name not in local))


def _notes(parsed: Parsed, trace: Trace) -> tuple[str, ...]:
    """Give what the asker should know of how the question was understood and the query was run."""
    notes = [f"I took “{written}” for “{meant}”." for written, meant in parsed.corrections]
    if parsed.unused:
        notes.append("I did not use: " + ", ".join(f"“{w}”" for w in parsed.unused) + ".")
    for _, literal, values in trace.links:
        if tuple(map(str.casefold, values)) != (literal.casefold(),):
            notes.append(
                f"“{literal}” was looked up as {', '.join(values) if values else 'nothing: no value means the same'}."
            )
    if trace.unknown_calls:
        notes.append(f"{trace.unknown_calls} texts could not be read; rows may be missing.")
    if trace.partial:
        notes.append("A budget stopped the search early; rows may be missing.")
    return (*notes, *trace.warnings)


def _nothing(found: Found) -> str:
    """Say plainly that nothing was found. No model words this: there is nothing to word, and much to invent."""
    return "\n".join([f"I searched for {found.searched}, and found nothing.", *found.notes])


def _failed(question: str, error: AlmanaqError, suql: str | None = None) -> Response:
    return Response("failed", str(error), suql, question=question, error=error)


def _gave_up(question: str, failures: Sequence[Failure]) -> Response:
    last = failures[-1]
    error = QueryError(f"no query for this question was accepted; the last error: {last.message}")
    return _failed(question, error, last.suql)
