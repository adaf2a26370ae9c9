"""The compiler on one screen: parse, bind, plan, optimize, execute."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import suppress
from copy import copy
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, TypeVar

from almanaq.bounded_dict import BoundedDict
from almanaq.engines.protocols import Database
from almanaq.errors import DatabaseError, ParameterError, QueryError, UnknownNameError, suggest
from almanaq.event_loops import run_sync
from almanaq.models.embedders.base import LexicalEmbedder
from almanaq.models.protocols import Models
from almanaq.options import Options
from almanaq.suql.accuracy.estimates import (
    AverageEstimate,
    Averaging,
    CountEstimate,
    Counting,
    GroupCounting,
    GroupEstimates,
    RowCounting,
    Sample,
    Sampling,
)
from almanaq.suql.bind import read_parameters
from almanaq.suql.catalog.definitions import apply_terms, check_terms, usable_terms
from almanaq.suql.catalog.lineage import private_columns_shown
from almanaq.suql.catalog.reading import cell_at, distinct_values
from almanaq.suql.catalog.relations import Catalog, list_tables
from almanaq.suql.catalog.terms import Terms
from almanaq.suql.execution.candidates import Similarity, describe_order
from almanaq.suql.execution.execute import execute, run_native, stream
from almanaq.suql.execution.guards import (
    check_average,
    check_compared,
    check_countable,
    check_privacy,
    check_sampled,
    options_counted,
)
from almanaq.suql.execution.render import Statements
from almanaq.suql.execution.run import ExecutionContext
from almanaq.suql.execution.similarity import EmbedderSimilarity, TextVectors
from almanaq.suql.explain.explain import Explanation, explain_plan
from almanaq.suql.explain.places import errors_placed
from almanaq.suql.explain.why_not import (
    WhyNot,
    filters_by_text,
    filters_rows_of_from,
    plain_why_not,
    plain_why_not_query,
    why_not,
    why_not_plan,
)
from almanaq.suql.language import Parameters
from almanaq.suql.names import BoundQuery
from almanaq.suql.optimizer import QUERY_RULES, RULES, QueryRule, Rule, steps
from almanaq.suql.plan.estimate import Estimate, Sharing, columns_read, estimate
from almanaq.suql.plan.stages import LogicalPlan, NativeQuery, Plan
from almanaq.suql.planner import Planner
from almanaq.suql.result import Result, python_rows
from almanaq.suql.syntax.limits import within_limits
from almanaq.suql.syntax.literals import literal

if TYPE_CHECKING:
    import pyarrow as pa

T = TypeVar("T")
_PLANS_KEPT = 100
_VALUES_SECONDS = 5.0


@dataclass(frozen=True, slots=True)
class _Prepared:
    plan: Plan
    statements: Statements


class Engine:
    """Runs SUQL queries over one database with one set of models.

    Args:
        similarity: scores passages for the order of similarity; None takes the words they share, which needs no model.
        proxy_models: opens the cheaper model that a query names as its proxy.
        vectors: what `similarity` compares texts by; None takes the vectors of the words that they share.
        terms: definitions over the relations, in addition to those of the schema file.
        rules, query_rules: the optimizer's rules; for tests of each alone.
    """

    def __init__(
        self,
        database: Database,
        models: Models,
        *,
        options: Options | None = None,
        similarity: Similarity | None = None,
        rules: tuple[Rule, ...] = RULES,
        query_rules: tuple[QueryRule, ...] = QUERY_RULES,
        proxy_models: Callable[[str], Models] | None = None,
        vectors: TextVectors | None = None,
        terms: Terms | None = None,
    ) -> None:
        self._terms = terms
        self._database, self._options, self._rules = database, options or Options(), rules
        self._models, self._query_rules = models, query_rules
        self._plans = BoundedDict[tuple[object, ...] | None, _Prepared](_PLANS_KEPT)
        self._proxy_models = proxy_models
        self._similarity = similarity or EmbedderSimilarity(LexicalEmbedder().embed)
        self._vectors = vectors or TextVectors(LexicalEmbedder().embed)

    @property
    def options(self) -> Options:
        return self._options

    @property
    def dialect(self) -> str:
        return self._database.dialect

    def _merge_options(self, options: Options | None) -> Options:
        return self._options if options is None else options.over(self._options)

    def over(self, database: Database) -> Engine:
        made = copy(self)
        made._database = database
        made._forget()
        return made

    def _forget(self) -> None:
        self._plans = BoundedDict(_PLANS_KEPT)
        for cached in ("catalog", "_planner"):
            self.__dict__.pop(cached, None)

    def follow(self, *, tables: bool = False, unknown: bool = False) -> bool:
        """Let names mean what they mean to the source by now; return whether that is anything else than before.

        Args:
            tables: look for tables that were made since, too, which takes longer.
            unknown: a name is unknown, so that it is worth any time to read a catalog again that has changed.
        """
        if (follow := getattr(self._database, "follow", None)) is None:
            return False
        follow(tables=tables, unknown=unknown)
        if "catalog" not in self.__dict__ or self._database.catalog() is self._found:
            return False
        self._forget()
        return True

    @cached_property
    def catalog(self) -> Catalog:
        """The relations of the source, with the dialect in which queries name them."""
        self._found = self._database.catalog()
        found = self._found.in_dialect(self.dialect)
        return usable_terms(found if self._terms is None else apply_terms(found, self._terms))

    def run(self, query: str, parameters: Parameters | None = (), *, options: Options | None = None) -> Result:
        return run_sync(self.arun(query, parameters, options=options))

    async def arun(self, query: str, parameters: Parameters | None = (), *, options: Options | None = None) -> Result:
        """Run a query from asynchronous code; cancelling stops the database and every call under way."""
        chosen = self._merge_options(options)
        known = self._prepare(query, parameters, chosen)
        with errors_placed(query, self.catalog):
            if known.plan.is_native:
                return await run_native(self._database, known.plan, chosen, query)
            result, _ = await execute(self._context(), known.plan, chosen, suql=query, statements=known.statements)
        return result

    async def stream(self, query: str, parameters: Parameters | None = ()) -> AsyncIterator[tuple[Any, ...]]:
        async for row in stream(self._context(), self.plan(query, parameters), self._options):
            yield row

    def write(self, query: str, parameters: Parameters | None = (), *, to: Callable[[pa.Table], None]) -> Result:
        """Run a query and hand its rows on, some at a time; give the last of them, with the trace of all.

        No quotes are kept. However many rows there are, no more than some are held.
        """

        async def sink(table: pa.Table) -> None:
            to(table)

        known = self._prepare(query, parameters, self._options)
        given: dict[str, Any] = {"statements": known.statements, "sink": sink, "row_by_row": False, "cited": False}
        with errors_placed(query, self.catalog):
            return run_sync(execute(self._context(), known.plan, self._options, suql=query, **given))[0]

    def check(self, query: str) -> None:
        self._read(query, lambda planner: planner.check_query(query, self._options))

    def relations(self, query: str) -> tuple[str, ...]:
        return self._read(query, lambda planner: planner.read(query, self._options)).relations

    def _read(self, query: str, work: Callable[[Planner], T]) -> T:
        """Return what `work` makes of a query; once more where a name is unknown that the source may have by now."""
        self.follow(tables=list_tables(query, self.catalog, self.dialect) is not None)
        for last in (False, True):
            try:
                with within_limits(), errors_placed(query, self.catalog):
                    return work(self._planner)
            except UnknownNameError:
                if last or not self.follow(tables=True, unknown=True):
                    raise
        raise AssertionError

    def check_terms(self) -> None:
        """Have the database check every definition; raises SourceError with the file and line of a faulty one."""
        found = self._database.catalog()
        found = found if self._terms is None else apply_terms(found, self._terms)
        if found.terms:
            check_terms(found.in_dialect(self.dialect), self.check)

    def bound(self, query: str, parameters: Parameters | None = ()) -> BoundQuery:
        """Return a query with its names resolved, to be read only; of one whose plan is kept, as that was made."""
        self.follow()
        parameters = read_parameters(parameters)
        key = self._plan_key(query, parameters, self._options)
        known = self._plans.get(key)
        bound = known.plan.bound if known is not None else None
        if known is not None and bound is not None and not known.plan.is_native:
            return bound
        with within_limits(), errors_placed(query, self.catalog):
            statement = self._planner.read(query, self._options)
            if bound is not None and bound.names != self._planner.language.names(statement, parameters):
                bound = None  # a live table has other columns by now
            if bound is None:
                bound = self._planner.bind(statement, parameters)
                if known is not None:
                    self._plans[key] = replace(known, plan=replace(known.plan, bound=bound))
        return bound

    def plan(self, query: str, parameters: Parameters | None = (), *, options: Options | None = None) -> Plan:
        return self._prepare(query, parameters, self._merge_options(options)).plan

    def _prepare(self, query: str, parameters: Parameters | None, options: Options) -> _Prepared:
        self.follow()
        parameters = read_parameters(parameters)
        key = self._plan_key(query, parameters, options)
        if (known := self._plans.get(key)) is not None:
            return known
        plan = self._read(query, lambda planner: planner.plan(query, parameters, options))
        prepared = _Prepared(plan, Statements(plan))
        if key is not None:
            self._plans[key] = prepared
        return prepared

    def _plan_key(self, query: str, parameters: Parameters, options: Options) -> tuple[object, ...] | None:
        """Return what a plan is kept under; None where a parameter cannot be written into one."""
        named = parameters if isinstance(parameters, Mapping) else dict(enumerate(parameters))
        accuracy = options.accuracy and options.accuracy.proxy
        with suppress(ParameterError):
            written = [(name, literal(value, self._database.dialect).sql()) for name, value in named.items()]
            return (query, *written, options.link, accuracy, frozenset(options.allow_functions))
        return None

    def logical_plan(
        self, query: str, parameters: Parameters | None = (), *, options: Options | None = None
    ) -> LogicalPlan:
        chosen = self._merge_options(options)
        return self._read(
            query, lambda planner: planner.logical(planner.read(query, chosen), read_parameters(parameters), chosen)
        )

    @cached_property
    def _planner(self) -> Planner:
        language = self._database.language(self.catalog)
        rules = (self._rules, self._query_rules)
        return Planner(language, self.catalog, *rules, self._database.typed, self._check_plan)

    def _check_plan(self, plan: LogicalPlan, options: Options) -> None:
        check_compared(plan, vectors_are_remote=self._vectors.remote)
        check_privacy(plan, self._models, similarity_is_remote=getattr(self._similarity, "remote", False))
        if options.accuracy is not None:
            name, open_proxy = options.accuracy.proxy, self._proxy_models
            proxy = self._models if ":" not in name or open_proxy is None else open_proxy(name)
            check_privacy(plan, proxy, similarity_is_remote=getattr(proxy.embedder, "remote", False))

    def explain(
        self, query: str, parameters: Parameters | None = (), *, verbose: bool = False, options: Options | None = None
    ) -> Explanation:
        """Return the plan of a query with what each stage is expected to take; reads no rows, asks no model."""
        chosen = self._merge_options(options)
        with within_limits(), errors_placed(query, self.catalog):
            plan = self.plan(query, parameters, options=chosen)
            if plan.is_native:
                self._planner.check_query(query, chosen, read_parameters(parameters))
            shown: list[tuple[str, LogicalPlan]] = []
            if verbose and not isinstance(plan.output.select, NativeQuery):
                logical = self.logical_plan(query, parameters, options=chosen)
                shown = [("binding", logical), *steps(logical, self._rules)]
            return self._lay_out(plan, chosen, steps=shown)

    def analyze(self, query: str, parameters: Parameters | None = (), *, options: Options | None = None) -> Explanation:
        chosen = self._merge_options(options)
        plan = self.plan(query, parameters, options=chosen)
        result, report = run_sync(execute(self._context(), plan, chosen, suql=query))
        actual = report.figures(result.trace.spending)
        actual["result"] = {
            "rows": len(result.rows),
            "calls": result.trace.text_calls,
            "seconds": round(result.trace.seconds, 3),
        }
        return self._lay_out(plan, chosen, actual=actual)

    def _lay_out(self, plan: Plan, options: Options, **run: Any) -> Explanation:
        price, paid = self._models.price, self._models.reader.paid

        def cost(expected: Estimate) -> float | None:
            return None if price is None else round(price.of(expected.tokens, expected.output_tokens), 6)

        explanation = explain_plan(
            plan,
            self.expected(plan),
            dialect=self.dialect,
            approximate=any(given is not None for given in (options.candidates, options.passages, options.accuracy)),
            cost=cost if paid else None,
            order=lambda stage: describe_order(stage, options),
            **run,
        )
        sent = columns_read(plan) if self._models.reader.remote else ()
        return replace(explanation, sent=sent, free=not paid)

    def estimate_rows(self, query: str, parameters: Parameters | None, counting: Counting) -> CountEstimate:
        rows = RowCounting(counting)
        return rows.estimate(self._sample(query, parameters, rows, check_countable))

    def estimate_groups(self, query: str, parameters: Parameters | None, counting: Counting) -> GroupEstimates:
        groups = GroupCounting(counting, options_counted(self.bound(query, parameters).tree))
        return groups.estimate(self._sample(query, parameters, groups, check_sampled))

    def estimate_average(self, query: str, parameters: Parameters | None, averaging: Averaging) -> AverageEstimate:
        check_average(self.bound(query, parameters).tree)
        return averaging.estimate(self._sample(query, parameters, averaging, check_sampled))

    def _sample(
        self, query: str, parameters: Parameters | None, sampling: Sampling, check: Callable[[Plan], None]
    ) -> Sample:
        chosen = replace(self._options, accuracy=None, counting=sampling)
        plan = self.plan(query, parameters, options=chosen)
        check(plan)
        _, report = run_sync(execute(self._context(), plan, chosen, suql=query))
        return next(counts.sample for counts in report.text.values() if counts.sample is not None)

    def cells_at(self, table: str, column: str, row: str, *, deadline: float | None = None) -> list[Any]:
        """Return the cell of the row that evidence of a table without a key names: one, or none where it is gone."""
        sql = cell_at(self.catalog.relation(table), column, row, self._database.dialect)
        with self._database.session(deadline) as session:
            return [cell for (cell,) in python_rows(session.fetch(sql).select(["cell"]))]

    def private_columns(self, query: str) -> tuple[str, ...]:
        """Return the private columns whose values the rows of a query, or the quotes they rest on, may show.

        Judged by the lineage of the query as it runs; where that cannot be followed, by all that it reads.
        """
        if not self.catalog.has_private:
            return ()
        try:
            return private_columns_shown(self.bound(query).tree, self.catalog)
        except QueryError:
            read = map(self.catalog.relation, self.relations(query))
            return tuple(f"{r.name}.{c.name}" for r in read for c in r.columns if c.private)

    def why_not(
        self,
        query: str,
        key: Mapping[str, object],
        parameters: Parameters | None = (),
        *,
        options: Options | None = None,
    ) -> WhyNot:
        """Return each condition of a query's WHERE with what it comes to for one row, and the quotes behind it."""
        chosen = self._merge_options(options)
        exact = replace(chosen, accuracy=None)
        read = map(self.catalog.relation, self.relations(query))
        known = [column.name for relation in read for column in relation.columns]
        for name in key:
            if name.lower() not in {column.lower() for column in known}:
                raise UnknownNameError(f"no column named {name!r}{suggest(name, known)}")
        found = self.logical_plan(query, parameters, options=exact)
        tree = self.bound(query, parameters).tree
        if not any(map(filters_by_text, found.stages)) or not filters_rows_of_from(tree):
            select, compared = plain_why_not_query(tree, key, self.catalog, self.dialect)
            return plain_why_not(self.run(select.sql(self.dialect), options=exact), compared, self.dialect)
        with within_limits():
            plan, _ = why_not_plan(found, key, self.dialect)
        statement = self._planner.read(query, exact)
        lowered = self._planner.spell(self._planner.lower(plan, exact), statement, read_parameters(parameters))
        result, _ = run_sync(execute(self._context(), lowered, exact, suql=query, of_one_row=True))
        return why_not(result)

    def values(self, relation: str, column: str, limit: int) -> list[str]:
        """Return distinct values of a column, or of the elements of its arrays, as text, the most frequent first.

        Of a large relation those of its first rows; of one that fails or takes long, the samples of the catalog.
        """
        found = self.catalog.relation(relation)
        shown = found.column(column)
        if shown is None:
            raise UnknownNameError(f"no column named {column!r}{suggest(column, [c.name for c in found.columns])}")
        try:
            with self._database.session(_VALUES_SECONDS) as session:
                sql = distinct_values(found, shown, limit, self._database.dialect)
                return [str(value) for (value,) in python_rows(session.fetch(sql).select(["v"]), exact=True)]
        except DatabaseError:
            return list(shown.samples)

    def expected(self, plan: Plan) -> dict[str, Estimate]:
        return estimate(plan, self.catalog, sharing=Sharing.of(self._models.reader))

    def _context(self) -> ExecutionContext:
        similarity, vectors, proxies = self._similarity, self._vectors, self._proxy_models
        return ExecutionContext(self._database, self.catalog, self._models, similarity, vectors, proxies)
