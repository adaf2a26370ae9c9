"""One case on the compiler and on the oracle: what the case must give, and what goes wrong."""

from __future__ import annotations

import itertools
import random
import re
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import duckdb
import pyarrow as pa
from sqlglot import exp
from tests.one_instance import open_in_one_instance

import almanaq
from almanaq.engines.open_source import open_database
from almanaq.engines.protocols import Database
from almanaq.models.model_names import open_models
from almanaq.models.protocols import LinkRequest
from almanaq.options import Options
from almanaq.suql.engine import Engine
from almanaq.suql.execution import candidates, row_evaluation
from almanaq.suql.execution import run as execution_run
from almanaq.suql.optimizer import QUERY_RULES, RULES
from almanaq.testing import FunctionModel

from .compare import Expected, difference, expect
from .generator import Case, generate
from .oracle import Oracle, OracleError, is_text_call, parse
from .world import GRADES, MEANINGS

WRONG_ROWS = "wrong rows"
DISPUTED = "the oracle's database gives other rows without its optimizer, those of the compiler"
KEPT_EMPTY = 0.3
"""The share of the queries without rows that are compared."""


@dataclass(frozen=True)
class Ready:
    """A case, what it must give, and the (text, question) pairs a naive evaluation without LIMIT asks."""

    case: Case
    expected: Expected
    asked: frozenset[tuple[str, str]]


_NO_JOIN, _NO_KIND = "PostgreSQL has no FULL JOIN of this condition", "PostgreSQL has no SEMI and ANTI JOIN"
_NO_QUALIFY = "PostgreSQL has no QUALIFY"
_JOINED_TO_COMMA = re.compile(r", unnest\([^()]*\) AS \w+(\(\w+\))? (LEFT |RIGHT |FULL |)JOIN")


def prepare(seed: int, *, optimized: bool = True, dialect: str = "duckdb") -> Ready | str:
    """Return the case of a seed with what it must give; why, where the seed is passed over ("" without rows).

    `optimized` and `dialect` as in `Oracle`.
    """
    case = generate(seed)
    unknown = [name for name in MEANINGS if name not in GRADES and f"'{name}'" in case.sql]
    if dialect == "postgres" and unknown and not case.link:
        return "PostgreSQL has an error where a text is no value of an ENUM"
    if dialect == "postgres" and _JOINED_TO_COMMA.search(case.sql):
        return "PostgreSQL's comma binds less than JOIN"
    if dialect == "postgres" and (refusal := _refused_by_postgres(case.sql)):
        return refusal
    oracle = Oracle(case.world.tables(), case.world.model.canonical, optimized=optimized, dialect=dialect)
    try:
        expected = expect(oracle, case.sql, fold=case.world.model.varied, link=case.link)
    except OracleError as error:
        return str(error).split("\n")[0][:110]
    finally:
        oracle.close()
    if expected.size == 0 and random.Random(seed).random() > KEPT_EMPTY:
        return ""
    return Ready(case, expected, frozenset(oracle.asked))


def _refused_by_postgres(sql: str) -> str:
    """Return why PostgreSQL does not run what DuckDB runs; "" where it does."""
    tree = parse(sql, "postgres")
    if tree.find(exp.Qualify):
        return _NO_QUALIFY
    for join in tree.find_all(exp.Join):
        if join.kind in ("SEMI", "ANTI"):
            return _NO_KIND
        parts = list(join.args["on"].flatten()) if isinstance(join.args.get("on"), exp.And) else [join.args.get("on")]
        equal = (part for part in parts if isinstance(part, exp.EQ))
        if (
            join.side == "FULL"
            and not join.args.get("using")
            and not any(all(side.find(exp.Column) for side in part.iter_expressions()) for part in equal)
        ):
            return _NO_JOIN
    return ""


def cases(seed: int, count: int, dialect: str = "duckdb") -> Iterator[Ready]:
    """Yield `count` cases from a seed on, in the SQL of an engine."""
    ready = (prepare(number, dialect=dialect) for number in itertools.count(seed))
    yield from itertools.islice((r for r in ready if isinstance(r, Ready)), count)


# --- the compiler under test -----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Failure:
    """What went wrong with a case: `kind` groups failures of one cause."""

    seed: int
    kind: str
    message: str
    sql: str

    def __str__(self) -> str:
        return f"seed {self.seed}: {self.kind}: {self.message}\n    {self.sql}"


@dataclass(frozen=True)
class Observed:
    """Calls of one case: those made, and those that the oracle's database makes without LIMIT."""

    calls: int
    naive: int


def check(
    ready: Ready, *, connect: Callable[..., Any] | None = None, thrifty: bool | None = None, **options: object
) -> tuple[Failure | None, Observed | None]:
    """Run a case on the compiler; give what went wrong, if anything, and the calls.

    Args:
        connect: stands for `connect_exactly`: tests of the referee itself give one that errs, those of single rules one
            that leaves rules out.
        thrifty: more calls than a naive evaluation makes are a failure; by default without `connect`.
    """
    case, model = ready.case, ready.case.world.model
    under_test = LinkingModel(model.reply)
    sql, params = case.prepared
    try:
        con = (connect or connect_exactly)(case.world.tables(), under_test, link=case.link, **options)
        try:
            result = con.sql(sql, params) if params else con.sql(sql)
            columns, rows, made = list(result.columns), list(result.rows), result.trace.text_calls
        finally:
            con.close()
    except Exception as error:  # every error is a failure here: the oracle runs the query
        kind = f"{type(error).__name__}: {_gist(str(error))}"
        return Failure(case.seed, kind, str(error), sql), None
    wrong = difference(ready.expected, columns, rows, fold=model.varied)
    if wrong:
        return Failure(case.seed, WRONG_ROWS, wrong, sql), Observed(made, len(ready.asked))
    thrifty = connect is None if thrifty is None else thrifty
    wrong = _calls_wrong(case.sql, under_test, made, ready if thrifty else None)
    observed = Observed(made, len(ready.asked))
    return (Failure(case.seed, "calls", wrong, sql) if wrong else None), observed


class LinkingModel(FunctionModel):
    """A FunctionModel that knows what the literals of the laws mean."""

    async def link(self, request: LinkRequest) -> tuple[str, ...]:
        """Return the values that a literal means."""
        return MEANINGS.get(request.literal, ())


def connect_exactly(
    tables: dict[str, pa.Table] | duckdb.DuckDBPyConnection, model: FunctionModel, **options: object
) -> Any:
    """Connect as the laws want it: exact, in table order, without waste, linking or cache."""
    chosen = {"speculation": 1, "order": "table", "cache": False, "link": False, "max_calls": 10**9} | options
    return almanaq.connect(tables, model=model, **chosen)


class RuleSet:
    """Which rules of the optimizer a connection uses: `all`, `none`, the name of the only one, or all `until` one."""

    NAMES = tuple(rule.__name__ for rule in (*QUERY_RULES, *RULES))

    def __init__(self, name: str, open_tables: Callable[[Any], Database] = open_database) -> None:
        self._open = open_tables
        if name not in (*self.NAMES, "all", "none"):
            raise ValueError(f"no rule {name!r}: one of all, none, {', '.join(self.NAMES)}")
        self.rules = tuple(rule for rule in RULES if name in ("all", rule.__name__))
        self.query_rules = tuple(rule for rule in QUERY_RULES if name in ("all", rule.__name__))

    @classmethod
    def until(cls, name: str, open_tables: Callable[[Any], Database] = open_database) -> RuleSet:
        """Return the rules before one, and itself."""
        chosen = cls("none", open_tables)
        names = cls.NAMES[: cls.NAMES.index(name) + 1]
        chosen.rules = tuple(rule for rule in RULES if rule.__name__ in names)
        chosen.query_rules = tuple(rule for rule in QUERY_RULES if rule.__name__ in names)
        return chosen

    def connect(self, tables: dict[str, pa.Table], model: FunctionModel, **options: object) -> Any:
        """Connect as `connect_exactly` does, with these rules alone."""
        chosen = {"speculation": 1, "order": "table", "link": False, "max_calls": 10**9} | options
        database, models = self._open(tables), open_models(model, cache=False)
        wanted = Options(**chosen)  # type: ignore[arg-type]
        engine = Engine(database, models, options=wanted, rules=self.rules, query_rules=self.query_rules)
        return almanaq.Connection(engine, database, models)


def rules_that_change(ready: Ready) -> frozenset[str]:
    """Return the names of the rules that change the plan of a case, each after those before it."""
    changing: set[str] = set()

    def watched(rule: Callable[[Any], Any]) -> Callable[[Any], Any]:
        def watching(before: Any) -> Any:
            kept = before.copy() if isinstance(before, exp.Expr) else before
            after = rule(before)
            changing.update([rule.__name__] if after != kept else [])
            return after

        return watching

    watch = RuleSet("all", open_in_one_instance)
    watch.rules, watch.query_rules = tuple(map(watched, watch.rules)), tuple(map(watched, watch.query_rules))
    sql, params = ready.case.prepared
    con = watch.connect(ready.case.world.tables(), LinkingModel(ready.case.world.model.reply), link=ready.case.link)
    try:
        con.explain(sql, params or ())
    finally:
        con.close()
    return frozenset(changing)


# --- many at once ----------------------------------------------------------------------------------------------------


def without_threads() -> None:
    """Let the engine wait for the database where it stands: the model answers at once, and threads only take time."""

    async def here(work: Callable[..., Any], *args: object, **named: object) -> Any:
        return work(*args, **named)

    for module in (candidates, row_evaluation, execution_run):
        module.in_thread = here  # type: ignore[attr-defined]


def _calls_wrong(sql: str, model: FunctionModel, made: int, ready: Ready | None) -> str | None:
    if model.calls != made:
        return f"the model was called {model.calls} times, the trace says {made}"
    repeated = Counter(model.requests)
    types = _types_of(sql)
    over = [(pair, n) for pair, n in repeated.items() if n > types]
    if over:
        return f"asked {over[0][1]} times for {over[0][0]!r}, with {types} types in the query"
    if ready is not None and comparable(sql) and made > len(ready.asked):
        extra = set(model.requests) - ready.asked
        return f"{made} calls, where a naive evaluation makes {len(ready.asked)}; extra: {sorted(extra)[:3]}"
    return None


def _types_of(sql: str) -> int:
    """Return how many types text functions are cast to or compared with, at most."""
    found = {"text"}
    for call in parse(sql).find_all(exp.Anonymous):
        if is_text_call(call):
            parent = call.parent
            found.add(parent.to.sql() if isinstance(parent, exp.Cast) else type(parent).__name__)
    return len(found)


def comparable(sql: str) -> bool:
    """Tell whether the database has no luck in its order of evaluation: one text call, in SELECT or AND-ed in WHERE."""
    tree = parse(sql)
    calls = [n for n in tree.find_all(exp.Anonymous) if is_text_call(n)]
    if len(calls) != 1 or len(list(tree.find_all(exp.Select))) != 1:
        return False
    luck = (exp.Or, exp.Case, exp.Coalesce, exp.Join, exp.AggFunc, exp.Window, exp.Not)
    return tree.find(*luck) is None


def _gist(message: str) -> str:
    first = re.sub(r"'[^']*'|\"[^\"]*\"|\d+", "…", message.split("\n")[0])
    return first[:90]


@dataclass(frozen=True)
class Outcome:
    """What became of a seed: passed over (and why), or compared."""

    seed: int
    passed_over: str | None
    failure: Failure | None = None
    observed: Observed | None = None


def outcome(seed: int, *, connect: Callable[..., Any] | None = None, **options: object) -> Outcome:
    """Compare the case of one seed; `connect` as in `check`."""
    ready = prepare(seed)
    if not isinstance(ready, Ready):
        return Outcome(seed, ready)
    failure, observed = check(ready, connect=connect, **options)
    if failure is not None and failure.kind == WRONG_ROWS:
        plain = prepare(seed, optimized=False)
        if isinstance(plain, Ready) and check(plain, connect=connect, **options)[0] is None:
            return Outcome(seed, DISPUTED)
    return Outcome(seed, None, failure, observed)
