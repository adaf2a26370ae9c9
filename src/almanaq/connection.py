"""A Connection: it answers questions, runs SUQL and explains it, and gives DB-API 2.0 cursors."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Self

from almanaq.cursor import Cursor, ErrorHandler, Row
from almanaq.dbapi import ErrorsAsAttributes
from almanaq.errors import UsageError
from almanaq.suql.options import Options

if TYPE_CHECKING:
    from almanaq.agent.chat import Chat
    from almanaq.agent.conversation import Agent, Response
    from almanaq.agent.events import Event
    from almanaq.agent.history import Turn
    from almanaq.agent.shots import Examples
    from almanaq.models.protocols import Models
    from almanaq.suql.accuracy.estimates import AverageEstimate, CountEstimate, GroupEstimates
    from almanaq.suql.accuracy.targets import Accuracy
    from almanaq.suql.catalog.relations import Catalog
    from almanaq.suql.databases.protocols import Database
    from almanaq.suql.engine import Engine
    from almanaq.suql.explain.explain import Explanation
    from almanaq.suql.explain.why_not import WhyNot
    from almanaq.suql.result import Result


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
