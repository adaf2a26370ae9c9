"""Agent: a question in words → a query that ran → a reply with its evidence."""

from __future__ import annotations

from collections.abc import AsyncIterator, Generator, Iterator, Sequence
from copy import copy
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from sqlglot.errors import SqlglotError

from almanaq.agent.classifier import PromptedClassifier, TurnClassifier
from almanaq.agent.describe import describe
from almanaq.agent.engine_protocol import QueryEngine
from almanaq.agent.events import Event, Finished, Progress, QueryWritten, RowsFound, TablesChosen, TextWritten
from almanaq.agent.history import NO_DATA, History, Shown, Turn, TurnKind
from almanaq.agent.kept_out import KeptOut, kept_out
from almanaq.agent.keyed import Keyed, named_rows, with_keys, without_keys
from almanaq.agent.local import LocalDialogue, count_all
from almanaq.agent.misused import check_meant
from almanaq.agent.parser import Failure, Parsed, SemanticParser
from almanaq.agent.privacy import judge_turns, private_columns, shows_private
from almanaq.agent.prompted_parser import PromptedParser
from almanaq.agent.query_tree import query_tree
from almanaq.agent.relax import TRIES, LocalRelaxer, PromptedRelaxer, Query, Relaxer
from almanaq.agent.responder import Found, LocalResponder, PromptedResponder, Responder
from almanaq.agent.response import Response, failed
from almanaq.agent.shots import Examples
from almanaq.agent.small_tables import SmallTables
from almanaq.agent.small_talk import small_talk
from almanaq.agent.tables import MOST_TABLES, ChooseTables, relevant, tables_of
from almanaq.agent.threads import in_thread
from almanaq.agent.turn_account import Steps, TurnAccount, with_earlier
from almanaq.agent.turn_time import TurnTime, options_of_turn, within
from almanaq.errors import AlmanaqError, DeadlineExceeded, QueryError
from almanaq.models.protocols import AllOf, Models
from almanaq.options import Options
from almanaq.suql.catalog.relations import Catalog

if TYPE_CHECKING:
    from almanaq.suql.result import Result, Trace

__all__ = ["REPAIRS", "Agent", "Response", "tables_of"]

REPAIRS = 2
"""How often a query that does not bind is written anew."""

_TURNS_TOLD = 6
_QUERIES_KEPT = 100
_LOCAL_TABLES = 200
"""Relations of one database that words are linked to at once, without a language model."""

_UNSEEN = "The rows hold private columns: no language model saw them."


@dataclass(frozen=True, slots=True)
class _Ran:
    """A query that ran, with what it was asked for."""

    parsed: Parsed
    suql: str
    result: Result
    shown: Shown | None
    relaxed: str | None = None
    loosened: str = ""
    earlier: tuple[Trace, ...] = ()
    told: tuple[KeptOut, ...] = ()

    @property
    def empty(self) -> bool:
        return not self.result.rows or all(v is None for row in self.result.rows for v in row)


class Agent:
    """Answers questions over one source.

    Args:
        engine: runs queries.
        models: with a language model, it parses and words the replies; without one, words are linked to the schema.
        tables: chooses relations where the source has more than fit; a TableChooser unless given.
        classifier, parser, relaxer, responder: replace the ones that `models` calls for.
        options: how queries are run.
        shots: examples of questions with their SUQL, for the prompt of a language model, or for `local` to know again.
    """

    def __init__(
        self,
        engine: QueryEngine,
        models: Models,
        *,
        tables: ChooseTables | None = None,
        classifier: TurnClassifier | None = None,
        parser: SemanticParser | None = None,
        relaxer: Relaxer | None = None,
        responder: Responder | None = None,
        options: Options | None = None,
        shots: Examples = (),
    ) -> None:
        language = models.language
        self._engine, self._options = engine, options
        self._with_keys: dict[str, Keyed] = {}
        self._tables = tables or _choose_tables()
        self._local = LocalDialogue(engine, examples=shots)
        local = self._local if options is None else self._local.with_confidence(options.confidence)
        self._classifier = classifier or (PromptedClassifier(language) if language else local)
        # Where all relations fit its prompt, a parser with a language model tells in the same call what needs no data.
        self._most = MOST_TABLES if language else _LOCAL_TABLES
        self._links_words = language is None
        self._always_classify = classifier is not None or (language is None and parser is None)
        self._parser: SemanticParser = parser or (
            PromptedParser(language, shots=shots, show_rows=SmallTables(engine, options)) if language else local
        )
        self._relaxer = relaxer or (PromptedRelaxer(language) if language else LocalRelaxer())
        self._responder: Responder = responder or (PromptedResponder(language) if language else LocalResponder())

    def with_options(self, options: Options) -> Agent:
        """Return an agent that runs queries by other options, and shares with this one what it knows of the source."""
        agent = copy(self)
        agent._options = options
        local = self._local.with_confidence(options.confidence)
        agent._parser = local if isinstance(self._parser, LocalDialogue) else self._parser
        agent._classifier = local if isinstance(self._classifier, LocalDialogue) else self._classifier
        return agent

    def respond(self, question: str, history: Sequence[Turn] = ()) -> Response:
        """Return the reply to a question after the turns of `history`.

        A failure is a Response that says what failed.
        """
        for event in self.events(question, history):
            if isinstance(event, Finished):
                return event.response
        raise AssertionError("events end with the response")

    def events(self, question: str, history: Sequence[Turn] = ()) -> Iterator[Event]:
        """Yield what happens while the question is answered; the last event, Finished, holds the whole reply."""
        time, account = TurnTime.of(self._options), TurnAccount()
        steps = account.watch(self._steps(question, judge_turns(history, self._engine.catalog)))
        try:
            while True:
                yield within(time, next, steps)
        except StopIteration as done:
            response: Response = done.value
        except AlmanaqError as error:
            response = failed(question, error)
        finally:
            steps.close()
        if time is not None and isinstance(response.error, DeadlineExceeded):
            response = replace(failed(question, time.over(), response.suql), kind=response.kind)
        response = account.told(response)
        if response.status not in ("answered", "failed"):
            yield TextWritten(response.answer)
        yield Finished(replace(response, question=question, marks=private_columns(self._engine.catalog)))

    async def aevents(self, question: str, history: Sequence[Turn] = ()) -> AsyncIterator[Event]:
        """Yield the events in asynchronous code; the work is done in threads, one step at a time."""
        steps = self.events(question, history)
        while (event := await in_thread(next, steps, None)) is not None:
            yield event

    def _steps(self, question: str, history: History) -> Steps:
        self._engine.catalog.check_readable()
        if small_talk(question) == "empty":
            return Response("no_query", self._responder.no_data(question, self._engine.catalog), kind="talk")
        catalog, large = self._catalog(question, history)
        kind: TurnKind = "new"
        if large or self._always_classify:
            kind = self._classifier.classify(question, catalog, history)
        if kind in NO_DATA:
            return Response("no_query", self._responder.no_data(question, self._engine.catalog), kind=kind)
        if not catalog.relations:
            return Response("no_query", self._responder.no_table(question, self._engine.catalog), kind="world")
        yield TablesChosen(tuple(r.name for r in catalog.relations))
        ran = yield from self._run(question, catalog, history)
        if isinstance(ran, Response):
            return ran
        if ran.empty:
            ran = yield from self._relax(question, catalog, ran, history)
        return (yield from self._reply(question, kind, ran, history))

    def _catalog(self, question: str, history: History) -> tuple[Catalog, bool]:
        """Return the relations to show the parser, and whether they are only those that the conversation is about."""
        catalog = self._engine.catalog
        if len(catalog.relations) <= (MOST_TABLES if catalog.separate else self._most):
            return catalog, False
        return relevant(question, catalog, history, self._tables, one_database=self._links_words), True

    def _run(self, question: str, catalog: Catalog, history: History) -> Generator[Event, None, _Ran | Response]:
        """Have a query written, and run it; written anew with the compiler's words when it is refused."""
        failures: list[Failure] = []
        while True:
            yield Progress("writing a query" if not failures else "mending the query")
            parsed = self._parser.parse(question, catalog, history, tuple(failures))
            if parsed.status != "query" or not parsed.suql:
                return _gave_up(question, failures) if failures else self._without_query(question, parsed)
            yield QueryWritten(parsed.suql, len(failures) + 1)
            try:
                yield Progress("running the query")
                if not self._links_words:
                    check_meant(parsed.suql, catalog)
                return _Ran(parsed, parsed.suql, *self._rows(parsed.suql))
            except QueryError as error:
                failures.append(Failure(parsed.suql, str(error)))
                if len(failures) > REPAIRS:
                    refused = failed(question, error, parsed.suql)
                    return replace(refused, kind=parsed.kind, answer=self._refusal(refused.answer, len(failures)))
            except AlmanaqError as error:
                return replace(failed(question, error, parsed.suql), kind=parsed.kind)

    def _refusal(self, message: str, attempts: int) -> str:
        """Return why the last query was refused; of a model's, that it is the model's."""
        if self._links_words:
            return message
        return f"The model wrote no query that can be run, in {attempts} attempts. The last was refused: {message}"

    def _rows(self, suql: str) -> tuple[Result, Shown | None]:
        """Run a query with the keys of its rows, by which later turns refer to them."""
        keyed = self._keyed(suql)
        if keyed is None:
            result = self._engine.run(suql, options=options_of_turn(self._options))
            return result, named_rows(suql, result, self._engine.catalog)
        try:
            result = self._engine.run(keyed.suql, options=options_of_turn(self._options))
        except QueryError:
            # What is wrong is told of the query as it was written.
            self._engine.check(suql)
            raise
        return without_keys(result, keyed, suql)

    def as_run(self, suql: str) -> str:
        """Return a query that was written as it is run: with the keys of its rows."""
        keyed = self._keyed(suql)
        return suql if keyed is None else keyed.suql

    def _keyed(self, suql: str) -> Keyed | None:
        """Return the query with keys; a query that cannot be parsed is the engine's to refuse."""
        known = self._with_keys.get(suql)
        if known is None:
            try:
                known = with_keys(suql, self._engine.catalog, compared=not self._links_words)
            except SqlglotError:
                return None
            if known is not None:
                self._keep(suql, known)
        return known

    def _keep(self, suql: str, keyed: Keyed) -> None:
        """Keep a query with its keys: a turn looks for them several times."""
        if len(self._with_keys) >= _QUERIES_KEPT:
            self._with_keys.pop(next(iter(self._with_keys)), None)
        self._with_keys[suql] = keyed

    def _relax(self, question: str, catalog: Catalog, ran: _Ran, history: History) -> Generator[Event, None, _Ran]:
        """Try the query without one of its conditions, then without another; give the first that finds rows."""
        query = Query(ran.suql, catalog, ran.parsed.keep)
        open_ = self._helpful(query)
        losses = self._kept_out(ran.suql)
        query.told = tuple(map(str, losses))
        query.before = tuple(turn.question for turn in history[-_TURNS_TOLD:])
        earlier: tuple[Trace, ...] = ()
        for attempt in range(1, min(TRIES, len(open_)) + 1):
            choice = self._relaxer.relax(question, query, open_)
            if choice is None:
                break
            chosen, loosened = choice
            open_.remove(chosen)
            yield Progress(f"nothing found; trying without: {loosened.said}")
            try:
                yield QueryWritten(loosened.suql, attempt + 1)
                found = self._rows(loosened.suql)
                before = (*earlier, ran.result.trace)
                other = _Ran(ran.parsed, loosened.suql, *found, loosened.said, loosened.sentence, before)
            except AlmanaqError:
                # What cannot be loosened, or costs too much, leaves the honest reply: nothing was found.
                continue
            if not other.empty:
                return other
            earlier = (*earlier, other.result.trace)
            query.tried = (*query.tried, loosened.suql)
        return replace(ran, earlier=earlier, told=losses)

    def _kept_out(self, suql: str) -> tuple[KeptOut, ...]:
        """Return what each condition of a query that found nothing keeps out, private values aside."""
        engine = self._engine

        def run(query: str) -> Result:
            return engine.run(query, options=options_of_turn(self._options))

        return kept_out(suql, run, lambda query: bool(engine.private_columns(query)), dialect=engine.dialect)

    def _helpful(self, query: Query) -> list[int]:
        """Return the conditions without which rows may be found: one look at the structured ones tells."""
        probe = query.probe()
        if probe is None:
            return []
        try:
            counts = self._engine.run(probe, options=options_of_turn(self._options)).rows[0]
        except AlmanaqError:
            return list(query.free)
        return [i for i, found in zip(query.free, counts, strict=True) if found]

    def _without_query(self, question: str, parsed: Parsed) -> Response:
        answer = parsed.reply or self._responder.no_data(question, self._engine.catalog)
        status = "no_query" if parsed.status == "query" else parsed.status
        readings = tuple(replace(reading, runs=self._run_reading) for reading in parsed.readings)
        return Response(status, answer, kind=parsed.kind, asked=parsed.asked, readings=readings)

    def _run_reading(self, suql: str) -> Result:
        return self._engine.run(suql, options=self._options)

    def _reply(self, question: str, kind: TurnKind, ran: _Ran, history: History) -> Steps:
        result, rows = ran.result, tuple(ran.result.rows)
        # What is described is shown to a language model, which has seen no row of a private turn.
        searched = describe(ran.suql, [t.shown for t in history if t.shown and (self._links_words or not t.private)])
        response = Response(
            "no_result" if ran.empty else "answered",
            "",
            ran.suql,
            tuple(result.columns),
            rows,
            tables_of(ran.suql),
            result.evidence,
            searched,
            ran.relaxed,
            with_earlier(result.trace, ran.earlier),
            kind=ran.parsed.kind if kind == "new" else kind,
            shown=None if ran.empty else ran.shown,
            meant=ran.parsed.suql if ran.relaxed else None,
            private=shows_private(ran.suql, self._engine, result.trace.links),
            asked=ran.parsed.asked,
            of=ran.parsed.of,
            table=result.table,
        )
        notes = _notes(ran.parsed, result.trace)
        responder = self._responder
        if response.private and not self._links_words:
            responder, notes = LocalResponder(), (*notes, _UNSEEN)
        total = self._total(ran.suql, len(rows))
        found = Found(
            question,
            searched,
            response.columns,
            rows,
            result.evidence,
            notes,
            ran.relaxed,
            ran.loosened,
            total,
            ran.parsed.remarks,
        )
        if ran.empty:
            return replace(response, answer=_nothing(found, ran.told))
        yield RowsFound(response.columns, rows, result.evidence)
        pieces = []
        for piece in responder.found(found):
            pieces.append(piece)
            yield TextWritten(piece)
        return replace(response, answer="".join(pieces))

    def _total(self, suql: str, found: int) -> int | None:
        """Return how many rows there are where a LIMIT cut them and no text has to be read to count them; else None."""
        try:
            # Few queries have a LIMIT, and only those are looked at.
            counting = (
                count_all(suql, found, self._engine.dialect) if query_tree(suql).args.get("limit") is not None else None
            )
            if counting is None:
                return None
            return int(self._engine.run(counting, options=options_of_turn(self._options)).rows[0][0])
        except (AlmanaqError, SqlglotError):
            return None


def _choose_tables() -> ChooseTables:
    """Return a TableChooser that is made when it is first needed: most sources have few tables."""
    chooser: list[ChooseTables] = []

    def choose(question: str, catalog: Catalog) -> tuple[str, ...]:
        if not chooser:
            from almanaq.retrieval.table_chooser import TableChooser

            chooser.append(TableChooser())
        return chooser[0](question, catalog)

    return choose


def _notes(parsed: Parsed, trace: Trace) -> tuple[str, ...]:
    """Return what the asker should know of how the question was understood and the query was run."""
    notes = [*parsed.notes, *(f"I took “{written}” for “{meant}”." for written, meant in parsed.corrections)]
    if parsed.unused:
        notes.append("I did not use: " + ", ".join(f"“{w}”" for w in parsed.unused) + ".")
    for _, literal, values in trace.links:
        if tuple(map(str.casefold, values)) != (literal.casefold(),):
            meant = (" and " if isinstance(values, AllOf) else ", ").join(values)
            notes.append(f"“{literal}” was looked up as {meant or 'nothing: no value means the same'}.")
    if trace.unknown_calls:
        notes.append(f"{trace.unknown_calls} texts could not be read; rows may be missing.")
    if trace.partial:
        notes.append("A budget stopped the search early; rows may be missing.")
    return (*notes, *trace.warnings)


def _nothing(found: Found, told: Sequence[KeptOut]) -> str:
    """Say plainly that nothing was found, and of several conditions what each keeps out.

    No model words this: there is nothing to word, and much to invent.
    """
    message = (
        [f"{str(each)[:1].upper()}{str(each)[1:]}." for each in told]
        if len(told) > 1 or any(each.values for each in told)
        else []
    )
    return "\n".join([*found.remarks, f"I searched for {found.searched}, and found nothing.", *message, *found.notes])


def _gave_up(question: str, failures: Sequence[Failure]) -> Response:
    last = failures[-1]
    error = QueryError(f"no query for this question was accepted; the last error: {last.message}")
    return failed(question, error, last.suql)
