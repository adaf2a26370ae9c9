"""Agent: a question in words → a query that ran → a reply with its evidence."""

from __future__ import annotations

from collections import deque
from collections.abc import AsyncIterator, Callable, Generator, Iterator, Sequence
from copy import copy
from dataclasses import dataclass, replace
from itertools import islice
from typing import TYPE_CHECKING, Any, cast

from sqlglot import exp
from sqlglot.errors import SqlglotError

from almanaq.agent.check import Verdict, check_answer
from almanaq.agent.checked import NEAREST, CheckedAnswers, is_usable, sort_by_nearness
from almanaq.agent.describe import describe, describe_condition, name_counted, name_tables
from almanaq.agent.facts import SourceFacts
from almanaq.agent.history import NO_DATA, History, Shown, Turn, TurnKind, judge_turns, private_columns
from almanaq.agent.linking.index import CatalogIndex
from almanaq.agent.local import LocalDialogue, count_all, is_cut
from almanaq.agent.parser import Failure, Parsed, PromptedParser, SemanticParser
from almanaq.agent.queries import (
    KeyedQuery,
    QueryEngine,
    add_keys,
    check_misuse,
    name_rows,
    query_tree,
    read_outputs,
    shows_private,
    split_keys,
    tables_of,
)
from almanaq.agent.relax import TRIES, ConditionCount, EmptyQuery, count_conditions, relax
from almanaq.agent.responder import (
    Found,
    LocalResponder,
    PromptedResponder,
    Responder,
    describe_source,
    say_nothing_found,
    write_notes,
)
from almanaq.agent.response import (
    Event,
    Finished,
    Progress,
    QueryWritten,
    Reading,
    Response,
    RowsFound,
    Status,
    TablesChosen,
    TextWritten,
    make_failure,
)
from almanaq.agent.schema_text import Examples, fits_prompt
from almanaq.agent.small.parser import SmallModelParser
from almanaq.agent.small_talk import small_talk
from almanaq.agent.tables import MOST_TABLES, ChooseTables, SmallTables, add_relations, choose_relations, make_chooser
from almanaq.agent.terms import say_cautions, say_terms
from almanaq.agent.turn import Steps, TurnAccount, TurnDeadline, add_traces, options_of_turn, run_in_thread, run_step
from almanaq.agent.unseen_rows import missing_texts_query, say_missing_texts, say_ties, ties_query
from almanaq.agent.value_links import ValueLinks
from almanaq.agent.why import say_why, why_query
from almanaq.bounded_dict import BoundedDict
from almanaq.errors import AlmanaqError, DataError, DeadlineExceeded, ModelError, QueryError, check_text
from almanaq.models.embedders.vector_store import VectorStore
from almanaq.models.private_files import default_cache_folder
from almanaq.models.protocols import Models
from almanaq.models.providers import is_small
from almanaq.models.text_calls import ServedQuestion, serve_question
from almanaq.options import Options
from almanaq.suql.catalog.relations import Catalog
from almanaq.suql.text_functions import is_text_call

if TYPE_CHECKING:
    from almanaq.suql.result import Result, Trace

REPAIRS = 2
"""How often a query that was refused is repaired."""

_TURNS_FOR_RELAXER = 6
_OFFERED = 0.5
"""How likely a query without a condition is what the asker would rather have; nothing measures it."""
_QUERIES_KEPT = 100
_SERVED_LENGTH = 500
_LOCAL_TABLES = 200
"""Relations of one database that words are linked to at once, without a language model."""

_COURTESIES = frozenset({"greeting", "thanks", "goodbye"})
"""Small talk that is answered by a template, which takes no call of a model."""

_NO_TABLE = "I searched nothing: no table of this source seems to hold that."
_NO_VALUE = "a value cannot be computed or converted: write TRY_CAST, or leave out the rows that have such values"
_UNSEEN = "The rows hold private columns: no language model saw them."


@dataclass(frozen=True, slots=True)
class _Executed:
    """A query that ran, with what it was asked for."""

    parsed: Parsed
    suql: str
    result: Result
    shown: Shown | None
    relaxed: str | None = None
    earlier: tuple[Trace, ...] = ()
    counts: tuple[ConditionCount, ...] = ()
    doubt: str = ""
    stopped: bool = False

    @property
    def empty(self) -> bool:
        return not self.result.rows or all(v is None for row in self.result.rows for v in row)


class Agent:
    """Answers questions over one source.

    Args:
        engine: runs queries.
        models: with a language model, it parses and words the replies; without one, words are linked to the schema.
        tables: chooses relations where the source has more than fit; a TableChooser unless given.
        parser: replaces the one that `models` calls for.
        options: how queries are run.
        checked: questions whose queries a person called right: they answer the same ones again, without a call.
        shots: examples of questions with their SUQL, for the prompt of a language model, or for `local` to know again.
    """

    def __init__(
        self,
        engine: QueryEngine,
        models: Models,
        *,
        tables: ChooseTables | None = None,
        parser: SemanticParser | None = None,
        options: Options | None = None,
        shots: Examples = (),
        checked: CheckedAnswers | None = None,
    ) -> None:
        small = is_small(models.language)
        # A small model only writes queries; all else about a turn is done as without one.
        language = None if small else models.language
        self._engine, self._options = engine, options
        self._keyed = BoundedDict[str, KeyedQuery | None](_QUERIES_KEPT)
        self._checked = checked or CheckedAnswers()
        self._vectors = VectorStore(default_cache_folder() if self._checked.lasts else None, models.embedder)
        self._tables = tables or make_chooser()
        self._local = LocalDialogue(engine, examples=shots)
        local = self._local if options is None else self._local.with_confidence(options.confidence)
        # The one call of a prompted parser also says whether data is needed at all.
        own = parser if isinstance(parser, LocalDialogue) else local if parser is None else None
        self._classifier = own if language is None else None
        self._most = MOST_TABLES if language else _LOCAL_TABLES
        self._links_words = language is None
        self._find_links = ValueLinks(engine)
        self._parser: SemanticParser = parser or (
            PromptedParser(
                language,
                shots=shots,
                find_near=self._find_near,
                show_rows=SmallTables(engine, options),
                find_links=self._find_links,
                find_facts=SourceFacts(engine, options),
                source=lambda: engine.catalog,
            )
            if language
            else SmallModelParser(local, models.language, engine, options)
            if small and models.language is not None
            else local
        )
        self._responder: Responder = PromptedResponder(language) if language else LocalResponder()
        self._language = language

    def with_options(self, options: Options) -> Agent:
        """Return an agent that runs queries by other options, and shares with this one what it knows of the source."""
        agent = copy(self)
        agent._options = options
        local = self._local.with_confidence(options.confidence)
        agent._parser = local if isinstance(self._parser, LocalDialogue) else self._parser
        if isinstance(self._parser, SmallModelParser):
            agent._parser = self._parser.with_options(local, options)
        agent._classifier = local if self._classifier is not None else None
        return agent

    def word_index(self) -> CatalogIndex | None:
        """Return the names and values of the source by the words for them; None where it has too many relations.

        No model is asked. Values of private columns and of prose are not in it.
        """
        catalog = self._engine.catalog
        if len(catalog.relations) > _LOCAL_TABLES:
            return None
        read = self._links_words or catalog.dialect == "duckdb"
        return self._local.world(catalog).index if read else self._find_links.index_of(catalog)

    def respond(self, question: str, history: Sequence[Turn] = ()) -> Response:
        """Return the reply to a question after the turns of `history`; a failure is a reply that says what failed."""
        (last,) = deque(self.events(question, history), maxlen=1)
        return cast("Finished", last).response

    def events(self, question: str, history: Sequence[Turn] = ()) -> Iterator[Event]:
        """Yield what happens while the question is answered; the last event, Finished, holds the reply."""
        check_text(question, "the question")
        deadline = TurnDeadline.start(self._options)
        account = TurnAccount((*(t.question for t in history), question)[0])
        steps = account.watch(self._steps(question, judge_turns(history, self._engine.catalog)))
        try:
            while True:
                yield run_step(deadline, next, steps)
        except StopIteration as done:
            response: Response = done.value
        except AlmanaqError as error:
            response = make_failure(question, error)
        finally:
            steps.close()
        if deadline is not None and isinstance(response.error, DeadlineExceeded):
            response = replace(
                make_failure(question, deadline.error(account.spent.goes_on), response.suql), kind=response.kind
            )
        response = account.add_trace(response)
        if response.status not in ("answered", "failed"):
            yield TextWritten(response.answer)
        yield Finished(replace(response, question=question, marks=private_columns(self._engine.catalog)))

    async def aevents(self, question: str, history: Sequence[Turn] = ()) -> AsyncIterator[Event]:
        """Yield the events in asynchronous code; the work is done in threads, one step at a time."""
        steps = self.events(question, history)
        while (event := await run_in_thread(next, steps, None)) is not None:
            yield event

    def _steps(self, question: str, history: History) -> Steps:
        self._engine.catalog.check_readable()
        said = small_talk(question)
        asked_back = bool(history) and history[-1].status == "clarify"  # which this turn may answer in a word
        if said == "empty" or (self._classifier is None and said in _COURTESIES and not asked_back):
            return Response("no_query", self._responder.no_data(question, self._engine.catalog), kind="talk")
        catalog = self._catalog(question, history)
        kind: TurnKind = "new" if self._classifier is None else self._classifier.classify(question, catalog, history)
        if kind in NO_DATA:
            return Response("no_query", self._responder.no_data(question, self._engine.catalog), kind=kind)
        if not catalog.relations and self._links_words:
            return Response("no_query", f"{_NO_TABLE} {describe_source(self._engine.catalog)}", kind="world")
        yield TablesChosen(tuple(r.name for r in catalog.relations))
        served = ServedQuestion(question[:_SERVED_LENGTH])
        ran = yield from self._run(question, catalog, history, served)
        if isinstance(ran, Response):
            return ran
        if ran.empty and not ran.stopped:
            ran = yield from self._relax(question, catalog, ran, history, served)
        return (yield from self._reply(question, kind, ran, history))

    def _catalog(self, question: str, history: History) -> Catalog:
        """Return the relations to show the parser: all where they fit, else those that the question is about."""
        catalog = self._engine.catalog
        few = len(catalog.relations) <= (MOST_TABLES if catalog.separate else self._most)
        if few and (self._links_words or fits_prompt(catalog)):
            return catalog
        fits = (lambda _: True) if self._links_words else fits_prompt
        chosen = choose_relations(question, catalog, history, self._tables, one_database=self._links_words, fits=fits)
        return catalog if few and not chosen.relations else chosen

    def _run(
        self, question: str, catalog: Catalog, history: History, served: ServedQuestion
    ) -> Generator[Event, None, _Executed | Response]:
        """Have the parser write a query, and run it; a refused one goes back to the parser with the message."""
        failures: list[Failure] = []
        doubted: _Executed | None = None
        while True:
            yield Progress("writing a query" if not failures else "mending the query")
            parsed = None if failures else self._recall(question, history)
            try:
                parsed = parsed or self._parser.parse(question, catalog, history, tuple(failures))
            except ModelError:
                if doubted is None:
                    raise
                return doubted
            if parsed.why:
                try:
                    return (yield from self._explain(parsed, history))
                except QueryError as error:
                    failures.append(Failure(parsed.why, str(error)))
                    if len(failures) > REPAIRS:
                        return _gave_up(question, failures)
                    continue
            if parsed.status != "query" or not parsed.suql:
                if doubted is not None:
                    return doubted
                unanswerable = parsed.kind == "world" or not failures
                return self._without_query(question, parsed) if unanswerable else _gave_up(question, failures)
            yield QueryWritten(parsed.suql, len(failures) + 1)
            try:
                yield Progress("running the query")
                if not self._links_words:
                    check_misuse(parsed.suql, catalog)
                ran = self._execute(parsed, parsed.suql, served)
                verdict = self._check(question, ran, history) if doubted is None else Verdict()
                if verdict.judgement != "wrong":
                    return replace(ran, doubt=verdict.reason)
                doubted = replace(ran, doubt=verdict.reason)
                failures.append(Failure(parsed.suql, f"it ran, but it does not answer the request: {verdict.reason}"))
            except AlmanaqError as error:
                if doubted is not None:
                    return doubted
                if not isinstance(error, QueryError) and (self._links_words or not isinstance(error, DataError)):
                    return replace(make_failure(question, error, parsed.suql), kind=parsed.kind)
                # What the engine says of a value may quote one that the model must not see.
                failures.append(Failure(parsed.suql, str(error) if isinstance(error, QueryError) else _NO_VALUE))
                catalog = add_relations(catalog, self._engine.catalog, parsed.suql)
                if len(failures) > REPAIRS:
                    refused = make_failure(question, error, parsed.suql)
                    return replace(refused, kind=parsed.kind, answer=self._refusal(refused.answer, len(failures)))

    def _recall(self, question: str, history: History) -> Parsed | None:
        """Return the query of a checked question that is the same but for values; None where there is none."""
        catalog = self._engine.catalog
        for known in reversed(self._checked.all()):
            suql = self._local.recall(question, known.question, known.suql, catalog)
            alone = suql is not None and (not history or self._local.stands_alone(question, history, catalog))
            if suql is not None and alone and is_usable(suql, self._engine):
                return Parsed("query", suql, remarks=(known.say(),))
        return None

    def _find_near(self, question: str) -> Examples:
        """Return the checked questions nearest to one, for a prompt; none that speaks of private columns."""
        private = self._engine.private_columns
        near = sort_by_nearness(question, self._checked.all(), self._vectors)
        shown = (
            (each.question, each.suql) for each in near if is_usable(each.suql, self._engine) and not private(each.suql)
        )
        return tuple(islice(shown, NEAREST))

    def _explain(self, parsed: Parsed, history: History) -> Generator[Event, None, Response]:
        """Explain why rows are, or are not, among those of a query; raises QueryError where that cannot be."""
        catalog, dialect = self._engine.catalog, self._engine.dialect
        asked_of = (parsed.of, *(turn.of or turn.suql for turn in reversed(history)))
        last = next((suql for suql in asked_of if suql), None)
        if last is None:
            raise QueryError("there is no earlier query to explain; write a query that answers the question")
        asked = why_query(last, parsed.why, catalog)
        yield QueryWritten(asked.suql, 1)
        result = self._query(asked.suql)
        searched = self._searched(last, _rows_shown(history, private=False))
        said = say_why(asked, result, describe_condition(parsed.why, dialect), searched)
        columns, rows = ("row", *asked.conditions), tuple(row[: len(asked.conditions) + 1] for row in result.rows)
        if rows:
            yield RowsFound(columns, rows, result.evidence)
            yield TextWritten(said)
        return Response(
            "answered" if rows else "no_result",
            said,
            asked.suql,
            columns,
            rows,
            tables_of(asked.suql, dialect),
            result.evidence,
            searched,
            trace=result.trace,
            kind=parsed.kind,
            private=shows_private(asked.suql, self._engine, result.trace.links),
            of=last,
        )

    def _check(self, question: str, ran: _Executed, history: History) -> Verdict:
        """Return what the checker says of a query that ran, where one is wanted and may see the rows."""
        wanted = self._options is not None and self._options.check and not ran.stopped
        if not wanted or self._language is None or shows_private(ran.suql, self._engine, ran.result.trace.links):
            return Verdict()
        before = [turn.question for turn in history[-_TURNS_FOR_RELAXER:]]
        return check_answer(self._language, question, before, ran.suql, ran.result)

    def _refusal(self, message: str, attempts: int) -> str:
        """Return why the last query was refused; where a model wrote it, say so."""
        if self._links_words:
            return message
        return f"The model wrote no query that can be run, in {attempts} attempts. The last was refused: {message}"

    def _execute(self, parsed: Parsed, suql: str, served: ServedQuestion) -> _Executed:
        """Run a query with the keys of its rows, by which later turns refer to them; of a stopped one keep its rows."""
        from almanaq.suql.execution.report import Interrupted

        with serve_question(served):
            try:
                return _Executed(parsed, suql, *self._keyed_rows(suql))
            except Interrupted as stopped:
                kept = self._split_keys(cast("Result", stopped.partial), self._with_keys(suql), suql)
                return _Executed(parsed, suql, *kept, stopped=True)

    def _keyed_rows(self, suql: str) -> tuple[Result, Shown | None]:
        keyed = self._with_keys(suql)
        if keyed is not None:
            try:
                return self._split_keys(self._query(keyed.suql), keyed, suql)
            except QueryError:
                # Where the query itself is at fault, the message must speak of it. Else its rows have no keys: the
                # engine groups them by a function that we took for one of a single row.
                self._engine.check(suql)
                self._keyed[suql] = None
        return self._split_keys(self._query(suql), None, suql)

    def _query(self, suql: str) -> Result:
        """Return the rows of a query, which may take what is left of the turn."""
        return self._engine.run(suql, options=options_of_turn(self._options))

    def _split_keys(self, result: Result, keyed: KeyedQuery | None, suql: str) -> tuple[Result, Shown | None]:
        """Return the rows of a query as it was written, and which rows of a relation they are."""
        if keyed is not None:
            return split_keys(result, keyed, suql)
        return result, name_rows(suql, result, self._engine.catalog)

    def as_run(self, suql: str) -> str:
        """Return a query that was written as it is run: with the keys of its rows."""
        keyed = self._with_keys(suql)
        return suql if keyed is None else keyed.suql

    def _with_keys(self, suql: str) -> KeyedQuery | None:
        """Return the query with keys; a query that cannot be parsed is the engine's to refuse."""
        if suql in self._keyed:
            return self._keyed[suql]
        try:
            keyed = add_keys(suql, self._engine.catalog, compared=not self._links_words)
        except SqlglotError:
            return None
        self._keyed[suql] = keyed
        return keyed

    def _relax(
        self, question: str, catalog: Catalog, ran: _Executed, history: History, served: ServedQuestion
    ) -> Generator[Event, None, _Executed]:
        """Try the query without one of its conditions, then without another; return the first that finds rows."""
        engine, said = self._engine, served.said
        counts = count_conditions(ran.suql, self._query, engine.private_columns, dialect=engine.dialect, said=said)
        asked = tuple(turn.question for turn in history[-_TURNS_FOR_RELAXER:])
        query = EmptyQuery(ran.suql, catalog, counts, asked)
        open_ = query.helpful()
        earlier: tuple[Trace, ...] = ()
        for attempt in range(1, min(TRIES, len(open_)) + 1):
            choice = relax(question, query, open_, self._language)
            if choice is None:
                break
            chosen, loosened = choice
            open_.remove(chosen)
            yield Progress(f"nothing found; trying without: {loosened.words}")
            try:
                yield QueryWritten(loosened.suql, attempt + 1)
                before = (*earlier, ran.result.trace)
                other = self._execute(ran.parsed, loosened.suql, served)
                other = replace(other, relaxed=loosened.words, earlier=before)
            except AlmanaqError:
                # A relaxed query that fails or costs too much leaves the honest reply: nothing was found.
                continue
            if self._links_words and not other.empty:
                # Nobody asked for these rows: they are offered.
                offered = Reading(self._searched(loosened.suql), loosened.suql, _OFFERED)
                doubt = f"There are rows without “{loosened.words}”: answer with “yes” to see them."
                parsed = replace(ran.parsed, readings=(offered,), remarks=(*ran.parsed.remarks, doubt))
                return replace(ran, parsed=parsed, earlier=before, counts=counts)
            if not other.empty or other.stopped:
                return other
            earlier = (*earlier, other.result.trace)
            query.tried = (*query.tried, loosened.suql)
        return replace(ran, earlier=earlier, counts=counts)

    def _without_query(self, question: str, parsed: Parsed) -> Response:
        answer = parsed.reply or self._responder.no_data(question, self._engine.catalog)
        status: Status = "clarify" if parsed.status == "clarify" else "no_query"
        return Response(status, answer, kind=parsed.kind, asked=parsed.asked, readings=self._readings(parsed))

    def _readings(self, parsed: Parsed) -> tuple[Reading, ...]:
        return tuple(replace(reading, runs=self._run_reading) for reading in parsed.readings)

    def _run_reading(self, suql: str) -> Result:
        return self._engine.run(suql, options=self._options)

    def _reply(self, question: str, kind: TurnKind, ran: _Executed, history: History) -> Steps:
        rows, private = tuple(ran.result.rows), shows_private(ran.suql, self._engine, ran.result.trace.links)
        result = ran.result
        # The description goes to a language model, which must not see rows of a private turn.
        dialect = self._engine.dialect
        described = self._describe(ran.suql, _rows_shown(history, private=self._links_words))
        searched = described or name_tables(ran.suql, dialect)
        last = next((turn.suql for turn in reversed(history) if turn.suql and not turn.private), None)
        response = Response(
            "no_result" if ran.empty else "answered",
            "",
            ran.suql,
            tuple(result.columns),
            rows,
            tables_of(ran.suql, dialect),
            result.evidence,
            searched,
            ran.relaxed,
            add_traces(result.trace, ran.earlier),
            kind=ran.parsed.kind if kind == "new" else kind,
            shown=None if ran.empty else ran.shown,
            meant=ran.parsed.suql if ran.relaxed else None,
            private=private,
            asked=ran.parsed.asked,
            of=ran.parsed.of,
            table=result.table,
            stopped=ran.stopped,
            readings=self._readings(ran.parsed),
        )
        doubts = (f"I am not sure of this: {ran.doubt}",) if ran.doubt else ()
        defined = say_terms(question, ran.suql, self._engine.catalog)
        cautions = say_cautions(ran.suql, self._engine.catalog)
        earlier = (turn.suql for turn in history if turn.suql) if cautions else ()
        known = {each for suql in earlier for each in say_cautions(suql, self._engine.catalog)}
        unseen = () if ran.stopped else self._say_unseen(ran, rows, named=not private)
        new = (each for each in cautions if each not in known)
        notes = (*write_notes(ran.parsed, result.trace), *unseen, *defined, *new, *doubts)
        responder = LocalResponder() if ran.stopped else self._responder
        if response.private and not self._links_words:
            responder, notes = LocalResponder(), (*notes, _UNSEEN)
        limited = query_tree(ran.suql, dialect).args.get("limit") is not None
        total = self._total(ran.suql, len(rows)) if limited and not ran.stopped else None
        found = Found(
            question,
            searched,
            response.columns,
            rows,
            result.evidence,
            notes,
            ran.relaxed,
            total,
            limited and total is None and is_cut(ran.suql, len(rows), dialect),
            ran.parsed.remarks,
            ran.suql,
            self._searched(last) if last else "",
            read_outputs(ran.suql, response.columns, dialect),
            ran.parsed.reply,
            bool(described),
            name_counted(query_tree(ran.suql, dialect)),
            "\n".join(c.description for relation in self._engine.catalog.relations for c in relation.columns),
        )
        if ran.empty:
            return replace(response, answer=say_nothing_found(found, ran.counts))
        yield RowsFound(response.columns, rows, result.evidence)
        pieces = []
        for piece in responder.found(found):
            pieces.append(piece)
            yield TextWritten(piece)
        return replace(response, answer="".join(pieces))

    def _describe(self, suql: str, shown: Sequence[Shown] = ()) -> str:
        """Return what a query searched in words; "" where a part of it has none."""
        said = describe(suql, shown, dialect=self._engine.dialect)
        return "" if said == suql else said

    def _searched(self, suql: str, shown: Sequence[Shown] = ()) -> str:
        """Return what a query searched: in words, or, where not every part of it has any, by which tables it reads."""
        return self._describe(suql, shown) or name_tables(suql, self._engine.dialect)

    def _say_unseen(self, ran: _Executed, rows: Sequence[Sequence[object]], *, named: bool) -> tuple[str, ...]:
        """Return the notes on rows beyond a LIMIT that tie with the last, and on rows without a text to be asked."""
        tied = self._run_beside(ties_query, ran.suql, len(rows))
        trace, meant = ran.result.trace, ran.parsed.suql or ran.suql
        questions = sum(map(is_text_call, query_tree(meant, self._engine.dialect).find_all(exp.Anonymous)))
        # As many calls as rows: each had a text, and the database need not be asked.
        asked = trace.text_calls + trace.cached_calls
        all_asked = meant == ran.suql and questions == 1 and asked == trace.candidate_rows
        missing = () if all_asked else self._run_beside(missing_texts_query, meant)
        return (*say_ties(tied, [row[0] for row in rows], named=named), *say_missing_texts(missing))

    def _total(self, suql: str, found: int) -> int | None:
        """Return how many rows there are without the LIMIT; None where none cut them, or counting would read texts."""
        counted = self._run_beside(count_all, suql, found)
        return int(counted[0][0]) if counted else None

    def _run_beside(self, write: Callable[..., str | None], *about: object) -> Sequence[Sequence[Any]]:
        """Return the rows of the query that `write` makes of another one; none without one, or if it fails."""
        try:
            beside = write(*about, self._engine.dialect)
            return () if beside is None else self._query(beside).rows
        except (AlmanaqError, SqlglotError):
            return ()


def _gave_up(question: str, failures: Sequence[Failure]) -> Response:
    last = failures[-1]
    error = QueryError(f"no query for this question was accepted; the last error: {last.message}")
    return make_failure(question, error, last.suql)


def _rows_shown(history: History, *, private: bool) -> list[Shown]:
    """Return the rows of earlier replies, by which keys are described; those of private turns only where wanted."""
    return [turn.shown for turn in history if turn.shown and (private or not turn.private)]


class Chat:
    """A conversation with one source: each question is understood in the light of the earlier ones.

    A failed turn is remembered as failed; it does not lose the turns before it.

    Args:
        agent: answers the questions; several conversations may share it.
        history: turns to go on from, the oldest first.

    Attributes:
        history: the turns so far.

    >>> import almanaq
    >>> con = almanaq.connect({"dogs": {"name": ["Rex", "Bella", "Milo"], "age": [7, 3, 5]}})
    >>> chat = con.chat()
    >>> chat.ask("Which dogs are older than 4?").suql
    'SELECT name, age FROM dogs WHERE age > 4'
    >>> chat.ask("How many are there?").suql
    'SELECT COUNT(*) AS count FROM dogs WHERE age > 4'
    >>> [turn.question for turn in chat.history]
    ['Which dogs are older than 4?', 'How many are there?']
    """

    def __init__(self, agent: Agent, history: History = ()) -> None:
        self._agent = agent
        self.history = history

    def ask(self, question: str) -> Response:
        """Return the reply to the next question; a request that fails is a reply, too, with the status `failed`.

        >>> chat.ask("How old is Rex?").rows
        ((7,),)
        """
        return self._remember(self._agent.respond(question, self.history))

    def stream(self, question: str) -> Iterator[Event]:
        """Yield what happens while the next question is answered; the last event, Finished, holds the reply.

        >>> *events, last = chat.stream("How old is Bella?")
        >>> last.response.rows
        ((3,),)
        >>> "query" in {event.kind for event in events}
        True
        """
        for event in self._agent.events(question, self.history):
            if isinstance(event, Finished):
                self._remember(event.response)
            yield event

    async def astream(self, question: str) -> AsyncIterator[Event]:
        """Yield the same events in asynchronous code.

        >>> import asyncio
        >>> async def kinds(question):
        ...     return [event.kind async for event in chat.astream(question)]
        >>> asyncio.run(kinds("How old is Milo?"))[-1]
        'response'
        """
        async for event in self._agent.aevents(question, self.history):
            if isinstance(event, Finished):
                self._remember(event.response)
            yield event

    def _remember(self, response: Response) -> Response:
        self.history = (*self.history, response.turn())
        return response
