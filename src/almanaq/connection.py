"""connect() opens a source; a Connection answers questions, runs SUQL, explains it and gives DB-API 2.0 cursors."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache as cached
from typing import TYPE_CHECKING, Any, Literal, Self

from almanaq.dbapi import Cursor, ErrorHandler, ErrorsAsAttributes, Row
from almanaq.errors import UsageError, check_text
from almanaq.options import (
    CONNECTION_OPTIONS,
    OPTIONS,
    QUERY_OPTIONS,
    Accuracy,
    Options,
    choose_options,
    describe_options,
)

if TYPE_CHECKING:
    from almanaq.agent.checked import Checked, CheckedAnswers
    from almanaq.agent.conversation import Agent, Chat
    from almanaq.agent.history import Turn
    from almanaq.agent.response import Event, Response
    from almanaq.agent.schema_text import Examples
    from almanaq.corpus.inference import LoadReport
    from almanaq.engines.open_source import Source
    from almanaq.engines.protocols import Database
    from almanaq.models.batching import Batching
    from almanaq.models.model_names import ModelSettings
    from almanaq.models.protocols import Embedder, LanguageModel, Models, Reader
    from almanaq.suql.accuracy.estimates import AverageEstimate, CountEstimate, GroupEstimates
    from almanaq.suql.catalog.relations import Catalog
    from almanaq.suql.catalog.terms import Terms
    from almanaq.suql.engine import Engine
    from almanaq.suql.explain.explain import Explanation
    from almanaq.suql.explain.why_not import WhyNot
    from almanaq.suql.language import Parameters
    from almanaq.suql.result import Result
    from almanaq.users import User


class Connection(ErrorsAsAttributes):
    """A source, the models that read it, and the options of its queries. Close it, or use it in `with`.

    Attributes:
        errorhandler: DB-API 2.0's, which cursors take over when they are opened; None: errors are raised.

    >>> import almanaq
    >>> about = ["Rex is a friendly dog.", "Bella bites."]
    >>> con = almanaq.connect({"dogs": {"name": ["Rex", "Bella"], "age": [7, 3], "about": about}})
    >>> friendly = "SELECT name FROM dogs WHERE answer(about, 'is the dog friendly?') = 'Yes'"
    >>> result = con.sql(friendly)
    >>> result.rows
    [('Rex',)]
    >>> [evidence.quote for row in result.evidence for evidence in row]
    ['Rex is a friendly dog.']
    """

    errorhandler: ErrorHandler | None = None

    def __init__(
        self,
        engine: Engine,
        database: Database,
        models: Models,
        shots: Examples = (),
        checked: CheckedAnswers | None = None,
    ) -> None:
        self._checked = checked
        self._engine: Engine | None = engine
        self._database, self._models, self._shots = database, models, shots
        self._agent: Agent | None = None
        self._agent_catalog: Catalog | None = None
        self._is_public = False

    @property
    def engine(self) -> Engine:
        """The compiler behind this connection."""
        self.check_open()
        assert self._engine is not None
        return self._engine

    def check_open(self) -> None:
        """Raise UsageError (an InterfaceError of DB-API 2.0) when the connection was closed.

        >>> con.check_open()
        """
        if self._engine is None:
            raise UsageError("this connection is closed; open another with almanaq.connect(…)")

    @property
    def models(self) -> Models:
        """The models that read this connection's texts and questions.

        >>> con.models.name, con.models.reader.remote
        ('local', False)
        """
        return self._models

    @property
    def catalog(self) -> Catalog:
        """The relations of the source: their columns with types and kinds, keys, and numbers of rows.

        >>> [(column.name, column.type) for column in con.catalog.relations[0].columns]
        [('name', 'text'), ('age', 'bigint'), ('about', 'text')]
        """
        self.engine.follow(tables=True)
        return self.engine.catalog

    def register(self, name: str, frame: Any) -> None:
        """Add a table of Arrow, pandas or polars to those of the source, which itself is left alone.

        A table registered before under the name is replaced. Results that were given keep their rows.

        Raises:
            UsageError: the source has a table of that name, it is none that DuckDB holds, or the frame is no table.

        >>> con.register("owners", {"dog": ["Rex", "Bella"], "owner": ["Ann", "Bob"]})
        >>> con.sql("SELECT owner FROM dogs JOIN owners ON dog = name WHERE age > 5").rows
        [('Ann',)]
        """
        engine, register = self.engine, getattr(self._database, "register", None)
        if register is None:
            raise UsageError(f"{self._database.name} takes no further tables: register works over files and DuckDB")
        register(name, frame)
        self._engine, self._agent = engine.over(self._database), None

    @property
    def examples(self) -> Examples:
        """Questions with their SUQL that a person wrote for the source; () where there is no such file.

        >>> with almanaq.connect("sample:restaurants") as sample:
        ...     question, suql = sample.examples[0]
        >>> question
        'Somewhere in San Francisco for ramen, not too pricey, where we do not have to queue?'
        """
        return self._shots

    @property
    def checked(self) -> CheckedAnswers:
        """The questions whose queries a person called right, on the page, with `confirm` or by `almanaq verdicts`.

        >>> [each.suql for each in con.checked.all() if each.question == "How many cats?"]
        []
        """
        from almanaq.agent.checked import CheckedAnswers

        self._checked = self._checked or CheckedAnswers()
        return self._checked

    def confirm(self, question: str, suql: str, *, by: str = "") -> Checked:
        """Keep a query as the right one for a question: it answers the same question again, with other values too.

        Args:
            by: who says so.

        Raises:
            QueryError: the query cannot be run over this source.

        >>> con.confirm("How many dogs are over 5?", "SELECT count(*) FROM dogs WHERE age > 5", by="Ann").rows
        1
        >>> con.ask("How many dogs are over 2?").rows
        ((2,),)
        """
        from almanaq.agent.checked import measure_checked

        check_text(question, "the question")
        check_text(suql, "the query")
        if not question.strip():
            raise UsageError("the question is empty")
        made = measure_checked(question, suql, by, self.engine)
        self.checked.put(made)
        return made

    @property
    def warnings(self) -> tuple[str, ...]:
        """What was mended or could not be read while the source was loaded; () for a database that is read in place.

        >>> import pathlib, tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     file = pathlib.Path(folder, "dogs.csv")
        ...     _ = file.write_text("name,age\\nRex,7\\nBella,3,5\\n")
        ...     with almanaq.connect(file) as dogs:
        ...         print(*dogs.warnings)
        dogs.csv, first in line 3: 1 of 2 rows do not have 2 fields ...
        """
        loaded = tuple(message for report in self._reports for message in report.messages) + self.catalog.left_out
        return loaded + tuple(f"the view {name!r} is left out: {why}" for name, why in self._database.catalog().broken)

    def notes(self, relation: str) -> tuple[str, ...]:
        """What was mended or could not be read while one relation was loaded; raises UnknownNameError.

        >>> con.notes("dogs")
        ()
        """
        found = self.catalog.relation(relation)
        place = found.location[-1], found.origin
        return tuple(note for each in self._reports if (each.table, each.origin) == place for note in each.messages)

    @property
    def _reports(self) -> Sequence[LoadReport]:
        return getattr(self._database, "reports", ())

    def sql(
        self,
        suql: str,
        params: Parameters | None = (),
        *,
        options: Options | None = None,
        accuracy: Accuracy | None = None,
        dialect: str | None = None,
    ) -> Result:
        """Run a SUQL query; return its rows, the evidence for them and a trace of what it took.

        Args:
            params: values for the `?` or `$1` in the query, in order, or for each `$name` as a mapping; None: none.
            options: choices for this query; what they do not name is as the connection has it.
            accuracy: targets that a text filter need only reach: fewer calls, and rows that are inferred. None: those
                of a hint in the query, `SELECT /*+ accuracy(recall=0.9) */ …`, or of the options; else it is exact.

            dialect: the dialect that the query is written in; None: that of the options, else the engine's own.

        Raises:
            QueryError: the query is at fault; the message points at the place.
            ParameterError: the parameters do not fit it.
            BudgetExceeded: too many calls were expected, or were made; `.partial` holds rows that are sure.
            DataError, OperationalError: a value cannot be computed; the database failed, or the model.

        A text that says nothing of the question answers NULL, and a structured condition saves calls.

        >>> result = con.sql("SELECT name, answer(about, 'is the dog friendly?') FROM dogs WHERE age < ?", [5])
        >>> result.rows, result.trace.text_calls
        ([('Bella', None)], 1)
        >>> con.sql("SELECT nmae FROM dogs")
        Traceback (most recent call last):
        almanaq.errors.UnknownNameError: ...did you mean 'name'...
        """
        query = self.translate(suql, dialect, options)
        return self.engine.run(query, params, options=self._with_accuracy(suql, options, accuracy))

    def translate(self, suql: str, dialect: str | None = None, options: Options | None = None) -> str:
        """Return a query in the dialect of the source's engine.

        Args:
            dialect: that of the query; None: that of the options, else of the connection's, else the engine's own.

        Raises:
            UnsupportedError: something in it cannot be carried over; nothing of it is left out.

        >>> con.translate("SELECT TOP 1 [name] FROM dogs", "tsql")
        'SELECT "name" FROM dogs LIMIT 1'
        >>> con.sql("SELECT name FROM dogs ORDER BY age FETCH FIRST 1 ROW WITH TIES", dialect="postgres")
        Traceback (most recent call last):
        almanaq.errors.UnsupportedError: the query cannot be carried over from postgres to duckdb: ...
        """
        check_text(suql, "the query")
        engine = self.engine
        chosen = engine.options if options is None else options.over(engine.options)
        OPTIONS["dialect"].check(dialect)
        read = chosen.dialect if dialect is None else dialect
        if read is None or read == engine.dialect:
            return suql
        from almanaq.suql.transpile import dialect_named, transpile

        read = dialect_named(read)
        return suql if read == engine.dialect else transpile(suql, read, engine.dialect, engine.catalog)

    def _with_accuracy(self, suql: str, options: Options | None, accuracy: Accuracy | None = None) -> Options | None:
        """Return the options with the targets that are given, or that a hint in the query names."""
        from almanaq.suql.accuracy import read_hint

        targets = accuracy or read_hint(suql)
        return options if targets is None else replace(options or self.engine.options, accuracy=targets)

    def stream(self, suql: str, params: Parameters | None = ()) -> AsyncIterator[Row]:
        """Yield the rows of a query as they are found; leaving the loop stops its model calls.

        >>> import asyncio
        >>> async def names():
        ...     return [name async for (name,) in con.stream(friendly)]
        >>> asyncio.run(names())
        ['Rex']
        """
        return self.engine.stream(self.translate(suql), params)

    def explain(
        self,
        suql: str,
        params: Parameters | None = (),
        *,
        verbose: bool = False,
        options: Options | None = None,
        dialect: str | None = None,
    ) -> Explanation:
        """Return the plan of a query with the rows and calls that are predicted; no model is called.

        Args:
            verbose: the plan shows what each rule of the optimizer did, too.
            dialect: the dialect that the query is written in, as for `sql`.

        >>> plan = con.explain(friendly + " AND age > 5")
        >>> [line.stage for line in plan.stages]
        ['text filter', 'output']
        >>> print(plan)
        1. text filter ...
            rows: SELECT ... WHERE "dogs"."age" > 5
            keep: answer(about, 'is the dog friendly?') = 'Yes'
            expected: 1 row, 1 call
        2. output ...
        """
        query = self.translate(suql, dialect, options)
        return self.engine.explain(query, params, verbose=verbose, options=self._with_accuracy(suql, options))

    def analyze(self, suql: str, params: Parameters | None = (), *, options: Options | None = None) -> Explanation:
        """Run a query; return its plan with the predicted and the actual rows and calls side by side.

        >>> print(con.analyze(friendly))
        1. text filter ...
            rows: SELECT ...
            keep: answer(about, 'is the dog friendly?') = 'Yes'
            expected: 1 row, 2 calls
            actual:   1 row, 2 candidates, 2 calls, seconds ...
        2. output ...
        """
        return self.engine.analyze(
            self.translate(suql, None, options), params, options=self._with_accuracy(suql, options)
        )

    def estimate(
        self,
        suql: str,
        params: Parameters | None = (),
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

        >>> from almanaq.testing import FunctionModel
        >>> dogs = {"about": [f"Dog {n} is {'friendly' if n % 4 else 'shy'}." for n in range(200)]}
        >>> model = FunctionModel(lambda text, question: "Yes" if "friendly" in text else "No")
        >>> counted = almanaq.connect({"dogs": dogs}, model=model, cache=False)
        >>> found = counted.estimate("SELECT * FROM dogs WHERE answer(about, 'friendly?') = 'Yes'", calls=50)
        >>> found.asked, found.low <= 150 <= found.high
        (50, True)
        """
        from almanaq.suql.accuracy.estimates import Counting

        return self.engine.estimate_rows(self.translate(suql), params, Counting(width, calls, confidence, seed, proxy))

    def estimate_groups(
        self,
        suql: str,
        params: Parameters | None = (),
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

        >>> from almanaq.testing import FunctionModel
        >>> model = FunctionModel(lambda text, question: "shy" if "bites" in text else "bold")
        >>> moods = almanaq.connect({"dogs": {"about": about * 50}}, model=model, cache=False)
        >>> query = "SELECT answer(about, 'mood?', ARRAY['shy', 'bold']), count(*) FROM dogs GROUP BY 1"
        >>> {group.answer: group.value for group in moods.estimate_groups(query, calls=40).groups}
        {'shy': 50, 'bold': 50, None: 0}
        """
        from almanaq.suql.accuracy.estimates import Counting

        return self.engine.estimate_groups(self.translate(suql), params, Counting(width, calls, confidence, seed))

    def estimate_average(
        self,
        suql: str,
        params: Parameters | None = (),
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

        >>> from almanaq.testing import FunctionModel
        >>> model = FunctionModel(lambda text, question: text.removeprefix("It weighs "))
        >>> weights = {"about": [f"It weighs {5 + n % 3}" for n in range(120)]}
        >>> weighed = almanaq.connect({"dogs": weights}, model=model, cache=False)
        >>> query = "SELECT avg(answer(about, 'weight in kg?')::numeric) FROM dogs"
        >>> mean = weighed.estimate_average(query, calls=60, bounds=(0, 10))
        >>> mean.asked, mean.low <= 6 <= mean.high
        (60, True)
        """
        from almanaq.suql.accuracy.estimates import Averaging, Counting

        counting = Counting(None, calls, confidence, seed)
        return self.engine.estimate_average(self.translate(suql), params, Averaging(counting, bounds))

    def why_not(
        self, suql: str, key: Mapping[str, Any], params: Parameters | None = (), *, options: Options | None = None
    ) -> WhyNot:
        """Return each condition of a query's WHERE with what it comes to for one row, and the quotes it rests on.

        Args:
            key: values of columns that name the row, as `{"id": 7}`.

        >>> print(con.why_not(friendly, {"name": "Bella"}))
        no information  answer(about, 'is the dog friendly?') = 'Yes'
        """
        if not key:
            raise UsageError("the key is empty: name the row by at least one column and its value")
        return self.engine.why_not(self.translate(suql, None, options), key, params, options=options)

    def ask(self, question: str, history: Sequence[Turn] = (), *, options: Options | None = None) -> Response:
        """Answer a question in plain words; the reply says which query was run and cites the evidence.

        A request that fails is a reply with the status `failed` and its error; nothing is raised for it.

        Args:
            history: the turns so far, the oldest first: `response.turn()` of each reply.
            options: choices for the queries of this reply in place of the connection's.

        >>> reply = con.ask("How many dogs are older than 5?")
        >>> reply.status, reply.rows, reply.suql
        ('answered', ((1,),), 'SELECT COUNT(*) AS count FROM dogs WHERE age > 5')
        """
        return self._agent_with(options).respond(question, history)

    def ask_stream(
        self, question: str, history: Sequence[Turn] = (), *, options: Options | None = None
    ) -> Iterator[Event]:
        """Yield what happens while a question is answered: tables, query, progress, rows, text; last, the Response.

        >>> events = list(con.ask_stream("How many dogs are older than 5?"))
        >>> [event.suql for event in events if event.kind == "query"]
        ['SELECT COUNT(*) AS count FROM dogs WHERE age > 5']
        >>> events[-1].response.status
        'answered'
        """
        return self._agent_with(options).events(question, history)

    def chat(self, history: Sequence[Turn] = ()) -> Chat:
        """Return a conversation, which remembers its turns: `chat.ask(…)`, `chat.stream(…)`, `chat.astream(…)`.

        >>> chat = con.chat()
        >>> _ = chat.ask("Which dogs are older than 2?")
        >>> chat.ask("How many are there?").rows
        ((2,),)
        """
        from almanaq.agent.conversation import Chat

        return Chat(self.agent, tuple(history))

    @property
    def agent(self) -> Agent:
        """What answers questions over this connection; it keeps what it learned of the source's values."""
        from almanaq.agent.conversation import Agent

        catalog = self.catalog
        if self._agent is None or self._agent_catalog is not catalog:
            self._agent_catalog = catalog
            options = self.engine.options.for_agent()
            self._agent = Agent(self.engine, self._models, shots=self._shots, options=options, checked=self.checked)
        return self._agent

    def _agent_with(self, options: Options | None) -> Agent:
        return self.agent if options is None else self.agent.with_options(options.for_agent())

    def public(self) -> Connection:
        """Return a connection to the same source that knows nothing of its private columns, for clients from anywhere.

        It is open as long as this one is, and has its models and options.

        >>> con.public().sql("SELECT count(*) FROM dogs")[0]
        (2,)
        """
        from almanaq.engines.restricted import RedactedDatabase

        self.check_open()
        return self._over(RedactedDatabase(self._database), self._shots, self.checked, is_public=True)

    def for_user(self, user: User) -> Connection:
        """Return a connection to what a user's roles may see of the source, as the schema file says.

        It is open as long as this one is, and has its models and options, but no examples: they may tell of other rows.
        What is confirmed over it is known to all users who may see the same.

        Raises:
            SourceError: a rule of a role cannot be applied.

        >>> from almanaq.users import User
        >>> con.for_user(User("Ada", roles=("vet",))).catalog.relations  # no rule shows any of the relations to her
        ()
        """
        from almanaq.engines.restricted import RestrictedDatabase, hash_rights

        self.check_open()
        if user.sees_everything:
            return self
        database = RestrictedDatabase(self._database, user)
        rights = hash_rights(database.catalog())  # a rule that cannot be applied is told here, not by the first query
        return self._over(database, (), self.checked.for_rights(rights), is_public=self._is_public)

    def _over(self, database: Database, shots: Examples, checked: CheckedAnswers, *, is_public: bool) -> Connection:
        made = Connection(self.engine.over(database), database, self._models, shots, checked)
        made._is_public = is_public
        return made

    @property
    def is_public(self) -> bool:
        """Whether it is one that `public()` gave, which knows nothing of private columns.

        >>> con.is_public, con.public().is_public
        (False, True)
        """
        return self._is_public

    def cursor(self) -> Cursor:
        """Return a DB-API 2.0 cursor.

        >>> con.cursor().execute("SELECT name FROM dogs ORDER BY age").fetchone()
        ('Bella',)
        """
        self.check_open()
        return Cursor(self)

    def commit(self) -> None:
        """Do nothing: connections only read (DB-API 2.0)."""
        self.check_open()

    def rollback(self) -> None:
        """Do nothing: there is never anything to undo (DB-API 2.0)."""
        self.check_open()

    def close(self) -> None:
        """Close the source; closing again does nothing. What is used after that raises UsageError.

        >>> closed = almanaq.connect({"dogs": {"name": ["Rex"]}})
        >>> closed.close()
        >>> closed.sql("SELECT name FROM dogs")
        Traceback (most recent call last):
        almanaq.errors.UsageError: this connection is closed; open another with almanaq.connect(…)
        """
        if self._engine is not None:
            self._engine = None
            self._database.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()


def connect(
    source: Source,
    *,
    model: str | Reader | LanguageModel | Models = "local",
    embedder: str | Embedder | None = None,
    schema: str | None = None,
    terms: str | None = None,
    examples: str | None = None,
    max_calls: int | None = None,
    max_money: float | None = None,
    confirm_above: int | None = None,
    speculation: float | None = None,
    order: Literal["similarity", "table"] | None = None,
    strict: bool | None = None,
    check: bool | None = None,
    deadline: float | None = None,
    passages: int | None = None,
    candidates: int | None = None,
    accuracy: Accuracy | None = None,
    confidence: float | None = None,
    link: bool | None = None,
    allow_functions: Sequence[str] | None = None,
    dialect: str | None = None,
    max_result_mb: int | None = None,
    max_rows: int | None = None,
    concurrency: int | None = None,
    batch: int | Batching | None = None,
    batch_api: bool = False,
    reasoning_effort: str | None = None,
    context_tokens: int | None = None,
    cache: bool = True,
    separate: bool = False,
    allow_http: bool = False,
    options: Options | None = None,
) -> Connection:
    """Open a source and return a connection to it; nothing is downloaded and nothing is written to the source.

    Args:
        source: a `.duckdb` or `.sqlite` file, a folder of CSV, JSON or Parquet files or workbooks, one such file, a
            list of them, a glob, `-` (standard input), `sample:restaurants`, a URL, a mapping of names to tables of
            Arrow, pandas or polars, one such table (it is called `data`), a connection of duckdb, sqlite3, SQLAlchemy,
            ADBC or ibis, or an opened Database.
        options: choices for every query of the connection; those that are also named as arguments (`max_calls`,
            `speculation`, …) count before it. None: the defaults of `Options`.
        model, …: the options of `almanaq.options`, those of queries as in `Options`.

    Raises:
        SourceError: the source cannot be opened.
        UsageError: unknown model or embedder, or an option is out of its range.
        MissingExtraError: the source or the model needs an optional dependency.

    >>> with connect({"dogs": {"name": ["Rex", "Bella"], "age": [7, 3]}}) as con:
    ...     print(con.sql("SELECT name FROM dogs WHERE age > ?", [5]).rows)
    [('Rex',)]
    >>> connect("sample:restaurant")
    Traceback (most recent call last):
    almanaq.errors.UsageError: no bundled sample 'restaurant'; did you mean 'restaurants'?
    """
    given = locals()  # the schema of options names the arguments, so this body does not
    options = choose_options(options, {each.name: given[each.name] for each in QUERY_OPTIONS})
    for each in CONNECTION_OPTIONS:
        each.check(given[each.name])

    from almanaq.agent.checked import Checked, CheckedAnswers, examples_beside, read_examples
    from almanaq.engines.open_source import open_database
    from almanaq.models.model_names import open_models
    from almanaq.models.providers import choose_model
    from almanaq.models.retrying import DeadlineModel
    from almanaq.suql.catalog.term_files import find_terms, read_terms

    if options.dialect is not None:
        from almanaq.suql.transpile import dialect_named

        dialect_named(options.dialect)
    if model == "auto":
        model = choose_model().name
    limits = {"reasoning_effort": reasoning_effort, "context_tokens": context_tokens}
    settings = replace(_model_settings(model, batch, limits), batch_api=batch_api)
    if batch_api:
        from almanaq.models.batch_api import MOST_REQUESTS

        options = options.over(Options(concurrency=MOST_REQUESTS))
    found = examples_beside(source) if examples is None else examples
    written = () if found is None else read_examples(found)
    place = find_terms(source) if terms is None else terms
    defined = None if place is None else read_terms(place)
    database = open_database(
        source, schema=schema, keep=cache, allow_http=allow_http, seconds=options.deadline, separate=separate
    )
    try:
        models = open_models(model, embedder=embedder, cache=cache, settings=settings)
        engine = _make_engine(database, models, options, by_vectors=embedder is not None, cache=cache, terms=defined)
        engine.check_terms()
    except BaseException:
        database.close()
        raise
    confirmed = (Checked(**each) for each in written if each.get("on") and each.get("suql"))
    checked = CheckedAnswers.of(source, confirmed, keep=cache)
    shots = tuple((each["question"], each.get("suql")) for each in written)
    if options.deadline is not None and models.language is not None:  # the engine bounds its own calls
        models = replace(models, language=DeadlineModel(models.language, options.deadline))
    return Connection(engine, database, models, shots, checked)


connect.__doc__ = re.sub(
    "        model, …: .*", lambda _: describe_options(tuple(OPTIONS.values()), " " * 8), connect.__doc__ or ""
)


def _make_engine(
    database: Database, models: Models, options: Options, *, by_vectors: bool, cache: bool, terms: Terms | None
) -> Engine:
    """Return the compiler over a database; `by_vectors`: the order of similarity is that of the models' embedder."""
    from almanaq.models.embedders.vector_store import VectorStore
    from almanaq.models.model_names import ModelSettings, open_models
    from almanaq.models.private_files import default_cache_folder
    from almanaq.suql.engine import Engine
    from almanaq.suql.execution.similarity import EmbedderSimilarity, TextVectors

    similarity = None
    store = VectorStore(default_cache_folder() if cache else None, models.embedder)
    remote = bool(getattr(models.embedder, "remote", False))
    if by_vectors:
        similarity = EmbedderSimilarity(store.vectors, store.question_vectors, remote=remote)
    vectors = TextVectors(store.vectors, remote=remote)

    def proxy_models(name: str) -> Models:
        return open_models(name, embedder=models.embedder, cache=cache, settings=ModelSettings(probabilities=True))

    proxies = cached(proxy_models)
    return Engine(
        database, models, options=options, similarity=similarity, proxy_models=proxies, vectors=vectors, terms=terms
    )


def _model_settings(
    model: str | Reader | LanguageModel | Models, batch: int | Batching | None, limits: Mapping[str, Any]
) -> ModelSettings:
    """Return what is asked of a model; raise UsageError where it makes no calls to share, or has its limits already."""
    from almanaq.models.batching import Batching
    from almanaq.models.model_names import ModelSettings, default_batching
    from almanaq.models.protocols import LanguageModel

    given = {name: value for name, value in limits.items() if value is not None}
    for name in given:
        if not isinstance(model, str):
            raise UsageError(f"{name}: the model is opened already, as {type(model).__name__}: give it there")
    if batch is None:
        return ModelSettings(batching=default_batching(model) if isinstance(model, str) else None, **given)
    if not isinstance(batch, int | Batching) or isinstance(batch, bool) or (isinstance(batch, int) and batch < 1):
        raise UsageError(f"batch: {batch!r} is out of range; give a whole number of at least 1")
    if model == "local" or not isinstance(model, str | LanguageModel):
        kind = "local" if model == "local" else type(model).__name__
        raise UsageError(
            f"batch: the model {kind!r} makes no calls to share; choose a language model, such as openai:MODEL"
        )
    return ModelSettings(batching=batch if isinstance(batch, Batching) else Batching.of(batch), **given)
