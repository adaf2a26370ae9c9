"""connect() and what it gives: a Connection that answers questions, runs SUQL and explains it; DB-API 2.0 cursors."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache as cached
from typing import TYPE_CHECKING, Any, Literal, Self

from almanaq.cursor import Cursor, ErrorHandler, Row
from almanaq.dbapi import ErrorsAsAttributes
from almanaq.errors import UsageError
from almanaq.suql.options import Options, chosen_options

if TYPE_CHECKING:
    from almanaq.agent.chat import Chat
    from almanaq.agent.conversation import Agent, Response
    from almanaq.agent.events import Event
    from almanaq.agent.history import Turn
    from almanaq.agent.shots import Examples
    from almanaq.models.batching import Batching
    from almanaq.models.model_names import ModelSettings
    from almanaq.models.protocols import Embedder, LanguageModel, Models, Reader
    from almanaq.suql.accuracy.estimates import AverageEstimate, CountEstimate, GroupEstimates
    from almanaq.suql.accuracy.targets import Accuracy
    from almanaq.suql.catalog.relations import Catalog
    from almanaq.suql.databases.protocols import Database
    from almanaq.suql.databases.sources import Source
    from almanaq.suql.engine import Engine
    from almanaq.suql.explain.explain import Explanation
    from almanaq.suql.explain.why_not import WhyNot
    from almanaq.suql.result import Result


def connect(
    source: Source,
    *,
    model: str | Reader | LanguageModel | Models = "local",
    embedder: str | Embedder | None = None,
    schema: str | None = None,
    examples: str | None = None,
    cache: bool = True,
    order: Literal["similarity", "table"] | None = None,
    speculation: float | None = None,
    max_calls: int | None = None,
    strict: bool | None = None,
    link: bool | None = None,
    deadline: float | None = None,
    passages: int | None = None,
    candidates: int | None = None,
    concurrency: int | None = None,
    batch: int | Batching | None = None,
    max_rows: int | None = None,
    max_result_mb: int | None = None,
    accuracy: Accuracy | None = None,
    confidence: float | None = None,
    allow_functions: Sequence[str] = (),
    allow_http: bool = False,
    options: Options | None = None,
) -> Connection:
    """Open a source and give a connection to it; nothing is downloaded and nothing is written to the source.

    Args:
        source: a `.duckdb` or `.sqlite` file, a folder of CSV, JSON or Parquet files or workbooks, one such file, a
            list of them, a glob, `-` (standard input), `sample:restaurants`, a URL, a mapping of names to tables of
            Arrow, pandas or polars, one such table (it is called `data`), a connection of duckdb, sqlite3, SQLAlchemy,
            ADBC or ibis, or an opened Database.
        model: `local` (no language model), `openai:MODEL`, or an object with the methods of a Reader or LanguageModel.
        embedder: `lexical`, `local`, `openai:MODEL`, a path or a hub name, or an Embedder; None: the model's own for
            finding tables, and shared words for the order of similarity, which then costs nothing.
        schema: a TOML file with column kinds and descriptions; None: `SOURCE.almanaq.toml` where it exists.
        examples: a TOML file of questions with their SUQL, which show a language model how queries over the source are
            written; None: `SOURCE.examples.toml` where it exists, else some are generated.
        cache: keep replies, and the tables of files, on disk, shared by processes; False still merges equal calls
            within a query.
        batch: most questions on one text, or short texts with one question, that share a call of a language model, or
            a Batching that says it in full; None: each is asked alone.
        allow_functions: functions of the database's own that queries may call besides those that only compute from
            their arguments: who names one vouches for what it reads and does.
        allow_http: fetch the file that a source of the form `https://…` names.

        options: choices for every query of the connection; those of its fields that are named as arguments (`order`,
            `speculation`, … `concurrency`) count before it. None: the defaults of `Options`.

    Raises:
        SourceError: the source cannot be opened.
        UsageError: there is no such model or embedder, or an option is out of its range.
        MissingExtraError: the source or the model needs an optional dependency.

    >>> with connect({"dogs": {"name": ["Rex", "Bella"], "age": [7, 3]}}) as con:
    ...     print(con.sql("SELECT name FROM dogs WHERE age > ?", [5]).rows)
    [('Rex',)]
    """
    from almanaq.agent.shots import find_examples, read_examples
    from almanaq.models.model_names import open_models
    from almanaq.suql.databases.open_source import open_database

    chosen = chosen_options(
        options,
        order=order,
        speculation=speculation,
        max_calls=max_calls,
        strict=strict,
        link=link,
        deadline=deadline,
        passages=passages,
        candidates=candidates,
        concurrency=concurrency,
        max_rows=max_rows,
        max_result_mb=max_result_mb,
        accuracy=accuracy,
        confidence=confidence,
        allow_functions=tuple(allow_functions) or None,
    )
    settings = batch_settings(batch, model)
    shots = find_examples(source) if examples is None else read_examples(examples)
    database = open_database(source, schema=schema, keep=cache, allow_http=allow_http, seconds=deadline)
    try:
        models = open_models(model, embedder=embedder, cache=cache, settings=settings)
    except BaseException:
        database.close()
        raise
    engine = _engine(database, models, chosen, by_vectors=embedder is not None, cache=cache)
    return Connection(engine, database, bounded(models, chosen.deadline), shots)


def _engine(database: Database, models: Models, options: Options, *, by_vectors: bool, cache: bool) -> Engine:
    """Return the compiler over a database; `by_vectors`: the order of similarity is that of the models' embedder."""
    from almanaq.models.model_names import ModelSettings, open_models
    from almanaq.models.vector_store import VectorStore, default_cache_folder
    from almanaq.suql.engine import Engine
    from almanaq.suql.execution.similarity import EmbedderSimilarity
    from almanaq.suql.execution.text_vectors import TextVectors

    similarity = None
    store = VectorStore(default_cache_folder() if cache else None, models.embedder)
    remote = bool(getattr(models.embedder, "remote", False))
    if by_vectors:
        similarity = EmbedderSimilarity(store.vectors, store.question_vectors, remote=remote)
    vectors = TextVectors(store.vectors, remote=remote)

    def proxy_models(name: str) -> Models:
        return open_models(name, embedder=models.embedder, cache=cache, settings=ModelSettings(chances=True))

    proxies = cached(proxy_models)
    return Engine(database, models, options=options, similarity=similarity, proxy_models=proxies, vectors=vectors)


def batch_settings(batch: int | Batching | None, model: str | Reader | LanguageModel | Models) -> ModelSettings | None:
    """Give the settings under which calls are shared; raise UsageError where there is no call that could be."""
    if batch is None:
        return None
    from almanaq.models.batching import Batching
    from almanaq.models.model_names import ModelSettings
    from almanaq.models.protocols import LanguageModel

    if not isinstance(batch, int | Batching) or isinstance(batch, bool) or (isinstance(batch, int) and batch < 1):
        raise UsageError(f"batch: {batch!r} is out of range; give a whole number of 1 or more")
    if model == "local" or not isinstance(model, str | LanguageModel):
        kind = "local" if model == "local" else type(model).__name__
        raise UsageError(
            f"batch: the model {kind!r} has no calls that could be shared; give a language model, as openai:MODEL"
        )
    return ModelSettings(batching=batch if isinstance(batch, Batching) else Batching.of(batch))


def bounded(models: Models, deadline: float | None) -> Models:
    """Give models whose language model must reply within the deadline; the engine bounds its own calls."""
    if deadline is None or models.language is None:
        return models
    from almanaq.models.deadline import DeadlineModel

    return replace(models, language=DeadlineModel(models.language, deadline))


class Connection(ErrorsAsAttributes):
    """A source, the models that read it, and the options of its queries. Close it, or use it in `with`.

    Attributes:
        errorhandler: DB-API 2.0's, which cursors take over when they are opened; None: errors are raised.

    >>> import almanaq
    >>> dogs = {"name": ["Rex", "Bella"], "about": ["Rex is a friendly dog.", "Bella bites."]}
    >>> con = almanaq.connect({"dogs": dogs})
    >>> result = con.sql("SELECT name FROM dogs WHERE answer(about, 'is the dog friendly?') = 'Yes'")
    >>> result.rows
    [('Rex',)]
    >>> [evidence.quote for row in result.evidence for evidence in row]
    ['Rex is a friendly dog.']
    >>> con.close()
    """

    errorhandler: ErrorHandler | None = None

    def __init__(self, engine: Engine, database: Database, models: Models, shots: Examples = ()) -> None:
        self._engine: Engine | None = engine
        self._database, self._models, self._shots = database, models, shots
        self._agent: Agent | None = None

    @property
    def engine(self) -> Engine:
        """The compiler behind this connection."""
        self.check_open()
        assert self._engine is not None
        return self._engine

    def check_open(self) -> None:
        """Raise UsageError (an InterfaceError of DB-API 2.0) when the connection was closed."""
        if self._engine is None:
            raise UsageError("this connection is closed; open another with almanaq.connect(…)")

    @property
    def models(self) -> Models:
        """The models that read this connection's texts and questions."""
        return self._models

    @property
    def catalog(self) -> Catalog:
        """The relations of the source, with the kind of each column."""
        return self.engine.catalog

    @property
    def examples(self) -> Examples:
        """Questions with their SUQL that a person wrote for the source."""
        return self._shots

    @property
    def warnings(self) -> tuple[str, ...]:
        """What was mended or could not be read while the source was loaded; () for a database that is read in place."""
        reports = getattr(self._database, "reports", ())
        loaded = tuple(message for report in reports for message in report.messages)
        return loaded + tuple(f"the view {name!r} is left out: {why}" for name, why in self._database.catalog().broken)

    def sql(
        self,
        suql: str,
        params: Sequence[Any] = (),
        *,
        options: Options | None = None,
        accuracy: Accuracy | None = None,
    ) -> Result:
        """Run a SUQL query and give its rows, the evidence for them and a trace.

        Args:
            params: values for the `?` in the query, in order.
            options: choices for this query in place of the connection's.
            accuracy: targets that a text filter need only reach: fewer calls, and rows that are inferred. None: those
                of a hint in the query, `SELECT /*+ accuracy(recall=0.9) */ …`, or of the options; else it is exact.

        Raises:
            QueryError: the query is at fault; the message points at the place.
            ParameterError: the parameters do not fit it.
            BudgetExceeded: too many calls were expected, or were made; `.partial` holds rows that are sure.
            DataError, OperationalError: a value cannot be computed; the database failed, or the model.
        """
        return self.engine.run(suql, params, options=self._targeted(suql, options, accuracy))

    def _targeted(self, suql: str, options: Options | None, accuracy: Accuracy | None = None) -> Options | None:
        """Give the options with the targets that are given, or that a hint in the query names."""
        from almanaq.suql.accuracy.targets import hinted

        targets = accuracy or hinted(suql)
        return options if targets is None else replace(options or self.engine.options, accuracy=targets)

    def stream(self, suql: str, params: Sequence[Any] = ()) -> AsyncIterator[Row]:
        """Yield the rows of a query as they are found; leaving the loop stops its model calls."""
        return self.engine.stream(suql, params)

    def explain(
        self, suql: str, params: Sequence[Any] = (), *, verbose: bool = False, options: Options | None = None
    ) -> Explanation:
        """Give the plan with its predicted rows and calls; no model is called. `verbose` shows every rule's effect.

        >>> import almanaq
        >>> with almanaq.connect("sample:restaurants") as con:
        ...     plan = con.explain("SELECT name FROM restaurants WHERE answer(reviews, 'is it quiet?') = 'Yes'")
        >>> [line.stage for line in plan.stages]
        ['text filter', 'output']
        """
        return self.engine.explain(suql, params, verbose=verbose, options=self._targeted(suql, options))

    def analyze(self, suql: str, params: Sequence[Any] = (), *, options: Options | None = None) -> Explanation:
        """Run a query and give its plan with predicted and actual rows and calls side by side."""
        return self.engine.analyze(suql, params, options=self._targeted(suql, options))

    def estimate(
        self,
        suql: str,
        params: Sequence[Any] = (),
        *,
        width: float | None = None,
        calls: int | None = None,
        confidence: float = 0.95,
        seed: int = 0,
        proxy: str | None = None,
    ) -> CountEstimate:
        """Estimate how many rows a query with a text filter has, by asking about some of them, drawn at random.

        Args:
            width: ask until the interval is no wider than this share of the rows.
            calls: ask about so many rows at most; without `width`, about exactly so many, if there are.
            confidence: the probability with which the interval holds the exact number.
            seed: draws the rows; the same seed asks about the same ones.
            proxy: narrows the interval by its scores of all rows, as `Accuracy` has it; wants 200 calls or more, and
                the interval holds only as the sample grows.

        Raises:
            RefusedQueryError: the rows of the query are not those that pass one text filter.
            UsageError: neither `width` nor `calls` is given, or a number is out of its range.
        """
        from almanaq.suql.accuracy.estimates import Counting

        return self.engine.estimate_rows(suql, params, Counting(width, calls, confidence, seed, proxy))

    def estimate_groups(
        self,
        suql: str,
        params: Sequence[Any] = (),
        *,
        width: float | None = None,
        calls: int | None = None,
        confidence: float = 0.95,
        seed: int = 0,
    ) -> GroupEstimates:
        """Estimate how many rows have each option of `… GROUP BY answer(x, q, ARRAY['a', 'b'])`, from some of them.

        The arguments are those of `estimate`; all intervals hold at once with probability `confidence`.

        Raises:
            RefusedQueryError: the query does not count rows by one answer, or that has no options.
            UsageError: neither `width` nor `calls` is given, or a number is out of its range.
        """
        from almanaq.suql.accuracy.estimates import Counting

        return self.engine.estimate_groups(suql, params, Counting(width, calls, confidence, seed))

    def estimate_average(
        self,
        suql: str,
        params: Sequence[Any] = (),
        *,
        calls: int,
        bounds: tuple[float, float] | None = None,
        confidence: float = 0.95,
        seed: int = 0,
    ) -> AverageEstimate:
        """Estimate the mean of `SELECT avg(answer(x, q)::numeric) …`, over the rows that have an answer, from some.

        Args:
            bounds: the least and the most that an answer can be; without them the interval is asymptotic, and says so.

        Raises:
            RefusedQueryError: the query gives more than the mean of one numeric answer.
            UsageError: an answer lies outside of the bounds, too few rows have one, or a number is out of its range.
        """
        from almanaq.suql.accuracy.estimates import Averaging, Counting

        counting = Counting(None, calls, confidence, seed)
        return self.engine.estimate_average(suql, params, Averaging(counting, bounds))

    def why_not(
        self, suql: str, key: Mapping[str, Any], params: Sequence[Any] = (), *, options: Options | None = None
    ) -> WhyNot:
        """Give each condition of a query's WHERE with what it comes to for the row that `key` names, and the quotes.

        Args:
            key: values of columns that name the row, as `{"id": 7}`.

        >>> import almanaq
        >>> dogs = {"name": ["Rex", "Bella"], "about": ["Rex is a friendly dog.", "Bella bites."]}
        >>> query = "SELECT name FROM dogs WHERE answer(about, 'is the dog friendly?') = 'Yes'"
        >>> with almanaq.connect({"dogs": dogs}) as con:
        ...     print(con.why_not(query, {"name": "Bella"}))
        no information  answer(about, 'is the dog friendly?') = 'Yes'
        """
        return self.engine.why_not(suql, key, params, options=options)

    def ask(self, question: str, history: Sequence[Turn] = (), *, options: Options | None = None) -> Response:
        """Answer a question in plain words; the reply says which query was run and cites the evidence.

        A request that fails is a reply with the status `failed` and its error; nothing is raised for it.

        Args:
            history: the turns so far, the oldest first: `response.turn()` of each reply.
            options: choices for the queries of this reply in place of the connection's.
        """
        return self._agent_with(options).respond(question, history)

    def ask_stream(
        self, question: str, history: Sequence[Turn] = (), *, options: Options | None = None
    ) -> Iterator[Event]:
        """Yield what happens while a question is answered: tables, query, progress, rows, text; last, the Response."""
        return self._agent_with(options).events(question, history)

    def chat(self, history: Sequence[Turn] = ()) -> Chat:
        """Give a conversation, which remembers its turns: `chat.ask(…)`, `chat.stream(…)`, `chat.astream(…)`."""
        from almanaq.agent.chat import Chat

        return Chat(self.agent, tuple(history))

    @property
    def agent(self) -> Agent:
        """What answers questions over this connection; it keeps what it learned of the source's values."""
        from almanaq.agent.conversation import Agent

        if self._agent is None or self._engine is None:
            options = self.engine.options.for_agent()
            self._agent = Agent(self.engine, self._models, shots=self._shots, options=options)
        return self._agent

    def _agent_with(self, options: Options | None) -> Agent:
        return self.agent if options is None else self.agent.with_options(options.for_agent())

    def public(self) -> Connection:
        """Give a connection to the same source that knows nothing of its private columns, for clients from anywhere.

        It is open as long as this one is, and has its models and options.
        """
        from almanaq.suql.databases.public import PublicDatabase

        self.check_open()
        database = PublicDatabase(self._database)
        return Connection(self.engine.over(database), database, self._models, self._shots)

    def cursor(self) -> Cursor:
        """Give a DB-API 2.0 cursor."""
        self.check_open()
        return Cursor(self)

    def commit(self) -> None:
        """Do nothing: connections only read (DB-API 2.0)."""
        self.check_open()

    def rollback(self) -> None:
        """Do nothing: there is never anything to undo (DB-API 2.0)."""
        self.check_open()

    def close(self) -> None:
        """Close the source; closing again does nothing."""
        if self._engine is not None:
            self._engine = None
            self._database.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()
