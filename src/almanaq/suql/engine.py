"""The compiler on one screen: parse, bind, plan, optimize, execute."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, TypeVar

from sqlglot import exp

from almanaq.errors import DatabaseError, QueryError, UnknownNameError, UnsupportedError, suggest
from almanaq.event_loops import run_sync
from almanaq.models.lexical import LexicalEmbedder
from almanaq.models.protocols import Models
from almanaq.suql.accuracy.estimates import (
    AverageEstimate,
    Averaging,
    CountEstimate,
    Counting,
    GroupCounting,
    GroupEstimates,
    Sample,
)
from almanaq.suql.bind import Binder, check_parameters
from almanaq.suql.catalog.answer_types import cast_answers
from almanaq.suql.catalog.binder import bind
from almanaq.suql.catalog.conditions import read_conditions
from almanaq.suql.catalog.database_calls import DatabaseCalls
from almanaq.suql.catalog.describe_statements import list_tables, listing
from almanaq.suql.catalog.enum_order import order_enums
from almanaq.suql.catalog.grouped_answers import check_grouped_answers
from almanaq.suql.catalog.linking import link_enums
from almanaq.suql.catalog.privacy import private_columns_compared, private_columns_read
from almanaq.suql.catalog.reading import cell_at, distinct_values
from almanaq.suql.catalog.relations import Catalog, unique_names
from almanaq.suql.databases.protocols import Database
from almanaq.suql.execution.candidates import Similarity
from almanaq.suql.execution.context import ExecutionContext
from almanaq.suql.execution.execute import execute, stream
from almanaq.suql.execution.guards import (
    check_accuracy,
    check_average,
    check_compared,
    check_countable,
    check_privacy,
    check_sampled,
    options_counted,
)
from almanaq.suql.execution.similarity import EmbedderSimilarity
from almanaq.suql.execution.statements import Statements
from almanaq.suql.execution.text_vectors import TextVectors
from almanaq.suql.execution.trial_order import describe_order
from almanaq.suql.explain.explain import Explanation, explain_plan
from almanaq.suql.explain.places import errors_placed
from almanaq.suql.explain.why_not import WhyNot, why_not, why_not_plan
from almanaq.suql.language import Parameters, Part, SplitStatement, Statement, parameters_of
from almanaq.suql.names import BoundQuery
from almanaq.suql.optimizer import QUERY_RULES, RULES, QueryRule, Rule, optimize, rewrite, steps
from almanaq.suql.options import Options
from almanaq.suql.plan.builder import build_plan
from almanaq.suql.plan.estimate import Estimate, columns_read, estimate
from almanaq.suql.plan.lower import lower
from almanaq.suql.plan.native import NativeQuery
from almanaq.suql.plan.references import aliased, column, quoted
from almanaq.suql.plan.stages import LogicalPlan, Materialize, Output, Plan, TextStage
from almanaq.suql.result import Result
from almanaq.suql.syntax.limits import within_limits
from almanaq.suql.syntax.literals import literal
from almanaq.suql.syntax.nodes import nodes
from almanaq.suql.syntax.parse import parse

if TYPE_CHECKING:
    import pyarrow as pa

T = TypeVar("T")
_PLANS_KEPT = 100
_DEEPEST_PARTS = 4
"""How often a part of a statement that was taken apart is taken apart itself."""
_VALUES_SECONDS = 5.0


@dataclass(frozen=True, slots=True)
class _Prepared:
    plan: Plan
    statements: Statements
    bound: BoundQuery | None
    """None for a query that the engine runs as it is."""


class Engine:
    """Runs SUQL queries over one database with one set of models.

    Args:
        similarity: scores passages for the order of similarity; None takes the words they share, which needs no model.
        proxy_models: opens the cheaper model that a query names as its proxy.
        vectors: what `similarity` compares texts by; None takes the vectors of the words that they share.
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
    ) -> None:
        self._database, self._options, self._rules = database, options or Options(), rules
        self._models, self._query_rules = models, query_rules
        self._plans: dict[tuple[object, ...], _Prepared] = {}
        self._proxy_models = proxy_models
        self._similarity = similarity or EmbedderSimilarity(LexicalEmbedder().embed)
        self._vectors = vectors or TextVectors(LexicalEmbedder().embed)

    @property
    def options(self) -> Options:
        """The choices for queries that are given none of their own."""
        return self._options

    def _chosen(self, options: Options | None) -> Options:
        """Return a query's own choices, and the engine's where it makes none."""
        return self._options if options is None else options.over(self._options)

    def over(self, database: Database) -> Engine:
        """Return an engine with the same models, options and rules over another database."""
        return Engine(
            database,
            self._models,
            options=self._options,
            similarity=self._similarity,
            vectors=self._vectors,
            rules=self._rules,
            query_rules=self._query_rules,
        )

    @cached_property
    def catalog(self) -> Catalog:
        """The relations of the source."""
        return self._database.catalog()

    def run(self, query: str, parameters: Sequence[object] = (), *, options: Options | None = None) -> Result:
        """Run a query and give its rows, the evidence for them and a trace.

        Raises:
            QueryError: the query is at fault; DatabaseError, ModelError, BudgetExceeded: running it failed.
        """
        return run_sync(self.arun(query, parameters, options=options))

    async def arun(self, query: str, parameters: Sequence[object] = (), *, options: Options | None = None) -> Result:
        """Run a query from asynchronous code; cancelling stops the database and every call under way."""
        chosen = self._chosen(options)
        known = self._prepare(query, parameters, chosen)
        with errors_placed(query):
            result, _ = await execute(self._context(), known.plan, chosen, suql=query, statements=known.statements)
        return result

    async def stream(self, query: str, parameters: Sequence[object] = ()) -> AsyncIterator[tuple[Any, ...]]:
        """Yield the rows of a query as they are found; leaving the loop stops the model calls under way."""
        async for row in stream(self._context(), self.plan(query, parameters), self._options):
            yield row

    def write(
        self,
        query: str,
        parameters: Sequence[object] = (),
        *,
        to: Callable[[pa.Table], None],
        options: Options | None = None,
    ) -> Result:
        """Run a query and hand its rows on, some at a time; give the last of them, with the trace of all.

        No quotes are kept. However many rows there are, no more than some are held; errors are those of `run`.
        """
        chosen = self._chosen(options)

        async def sink(table: pa.Table) -> None:
            to(table)

        known = self._prepare(query, parameters, chosen)
        work = execute(
            self._context(),
            known.plan,
            chosen,
            suql=query,
            statements=known.statements,
            sink=sink,
            row_by_row=False,
            cited=False,
        )
        with errors_placed(query):
            return run_sync(work)[0]

    def check(self, query: str) -> None:
        """Raise QueryError unless a query can be parsed and its names resolved; runs nothing."""
        with within_limits(), errors_placed(query):
            if self._binder is None:
                self._bind(query, (), self._options)
                return
            statement = self._statement(query, self._options)
            if statement.has_text:
                self._planned(statement, (), self._options)
            elif not statement.lookups:
                self._binder.language.names(statement)

    def bound(self, query: str, parameters: Sequence[object] = ()) -> BoundQuery:
        """Return a query with its names resolved; runs nothing. Raises QueryError."""
        known = self._plans.get(self._key(query, parameters, self._options))
        if known is not None and known.bound is not None:
            return known.bound
        with within_limits():
            return self._bind(query, parameters, self._options)

    def plan(self, query: str, parameters: Sequence[object] = (), *, options: Options | None = None) -> Plan:
        """Return the plan of a query; asks neither the database nor a model."""
        return self._prepare(query, parameters, self._chosen(options)).plan

    @staticmethod
    def _key(query: str, parameters: Sequence[object], options: Options) -> tuple[object, ...]:
        """Return what a query's plan depends on."""
        written = (literal(value).sql() for value in parameters)
        accuracy = options.accuracy and options.accuracy.proxy
        return (query, *written, options.link, accuracy, frozenset(options.allow_functions))

    def _prepare(self, query: str, parameters: Sequence[object], options: Options) -> _Prepared:
        """Return a query's plan with what earlier runs of it wrote; the plan of a known text is kept."""
        key = self._key(query, parameters, options)
        known = self._plans.get(key)
        if known is None:
            with within_limits(), errors_placed(query):
                native = self._native_plan(query, parameters, options)
                if native is not None:
                    return _Prepared(native, Statements(native), None)
                if self._binder is not None:
                    plan = self._planned(self._statement(query, options), parameters, options)
                    known = self._plans[key] = _Prepared(plan, Statements(plan), None)
                    return known
                bound = self._bind(query, parameters, options)
                kept = replace(bound, tree=bound.tree.copy())
                plan = self._lowered(self._logical_plan(bound, options), options)
            known = _Prepared(plan, Statements(plan), kept)
            if len(self._plans) >= _PLANS_KEPT:
                self._plans.pop(next(iter(self._plans)), None)
            self._plans[key] = known
        return known

    def logical_plan(
        self, query: str, parameters: Sequence[object] = (), *, options: Options | None = None
    ) -> LogicalPlan:
        """Return the plan of a query before the optimizer's rules."""
        chosen = self._chosen(options)
        return self._logical_plan(self._bind(query, parameters, chosen), chosen)

    def _logical_plan(self, bound: BoundQuery, options: Options, prefix: str = "") -> LogicalPlan:
        ordered, notes = (bound.tree, ()) if self._binder is not None else order_enums(bound.tree, self.catalog)
        tree, links = link_enums(cast_answers(ordered), self.catalog, link=options.link, prefix=prefix)
        private = private_columns_read(tree, links, self.catalog)
        compared = private_columns_compared(tree, self.catalog)
        tree = rewrite(tree, self._query_rules)
        plan = build_plan(tree, bound.names, self.catalog, links, prefix=prefix)
        plan = replace(plan, private_columns=private, private_compared=compared, notes=notes)
        check_compared(plan, vectors_are_remote=self._vectors.remote)
        check_privacy(plan, self._models, similarity_is_remote=getattr(self._similarity, "remote", False))
        accuracy = options.accuracy
        if accuracy is not None:
            proxy = self._proxy(accuracy.proxy)
            check_privacy(plan, proxy, similarity_is_remote=getattr(proxy.embedder, "remote", False))
        return plan

    def _proxy(self, name: str) -> Models:
        """Return the models that score rows under the name of a proxy."""
        return self._models if ":" not in name or self._proxy_models is None else self._proxy_models(name)

    def explain(
        self,
        query: str,
        parameters: Sequence[object] = (),
        *,
        verbose: bool = False,
        options: Options | None = None,
    ) -> Explanation:
        """Return the plan of a query with what each stage is expected to take; asks neither the database nor a model.

        Args:
            verbose: also give the plan after each rule.
        """
        chosen = self._chosen(options)
        with within_limits():
            logical = self.logical_plan(query, parameters, options=chosen)
            plan = self._lowered(logical, chosen)
            shown = [("binding", logical), *steps(logical, self._rules)] if verbose else []
            laid_out = explain_plan(
                plan,
                self.expected(plan),
                steps=shown,
                approximate=_approximate(chosen),
                cost=self._cost(),
                order=self._order(chosen),
            )
            return self._with_reader(laid_out, plan)

    def analyze(self, query: str, parameters: Sequence[object] = (), *, options: Options | None = None) -> Explanation:
        """Run a query and give its plan with expected and actual figures side by side."""
        chosen = self._chosen(options)
        plan = self.plan(query, parameters, options=chosen)
        result, report = run_sync(execute(self._context(), plan, chosen, suql=query))
        actual = report.figures(result.trace.spending)
        actual["result"] = {
            "rows": len(result.rows),
            "calls": result.trace.text_calls,
            "seconds": round(result.trace.seconds, 3),
        }
        estimates = self.expected(plan)
        laid_out = explain_plan(
            plan,
            estimates,
            actual=actual,
            approximate=_approximate(chosen),
            cost=self._cost(),
            order=self._order(chosen),
        )
        return self._with_reader(laid_out, plan)

    def estimate_rows(self, query: str, parameters: Sequence[object], counting: Counting) -> CountEstimate:
        """Estimate how many rows a query has, from some of them."""
        chosen = replace(self._options, accuracy=None, counting=counting)
        plan = self.plan(query, parameters, options=chosen)
        check_countable(plan)
        _, report = run_sync(execute(self._context(), plan, chosen, suql=query))
        return next(counts.estimate for counts in report.text.values() if counts.estimate is not None)

    def estimate_groups(self, query: str, parameters: Sequence[object], counting: Counting) -> GroupEstimates:
        """Estimate how many rows have each option of the answer that a query groups by."""
        groups = GroupCounting(counting, options_counted(self.bound(query, parameters).tree))
        return groups.estimate(self._sample(query, parameters, groups))

    def estimate_average(self, query: str, parameters: Sequence[object], averaging: Averaging) -> AverageEstimate:
        """Estimate the mean of a numeric answer."""
        check_average(self.bound(query, parameters).tree)
        return averaging.estimate(self._sample(query, parameters, averaging))

    def _sample(self, query: str, parameters: Sequence[object], sampling: GroupCounting | Averaging) -> Sample:
        """Return what rows say that were drawn from those that a query asks about."""
        chosen = replace(self._options, accuracy=None, counting=sampling)
        plan = self.plan(query, parameters, options=chosen)
        check_sampled(plan)
        _, report = run_sync(execute(self._context(), plan, chosen, suql=query))
        return next(counts.sample for counts in report.text.values() if counts.sample is not None)

    def cells_at(self, table: str, column: str, row: str, *, deadline: float | None = None) -> list[Any]:
        """Return the cell of the row that evidence of a table without a key names: one, or none where it is gone.

        Raises:
            UsageError: rows of this table have no number or address, or this is none.
        """
        sql = cell_at(self.catalog.relation(table), column, row, self._database.dialect)
        with self._database.session(deadline) as session:
            return list(session.fetch(sql)["cell"].to_pylist())

    def why_not(
        self,
        query: str,
        key: Mapping[str, object],
        parameters: Sequence[object] = (),
        *,
        options: Options | None = None,
    ) -> WhyNot:
        """Return each condition of a query's WHERE with what it comes to for one row, and the quotes behind it.

        Args:
            key: values of columns that name the row, as `{"id": 7}`.
        """
        chosen = self._chosen(options)
        exact = replace(chosen, accuracy=None)
        known = [column.name for relation in self.catalog.relations for column in relation.columns]
        for name in key:
            if name.lower() not in {column.lower() for column in known}:
                raise UnknownNameError(f"no column named {name!r}{suggest(name, known)}")
        with within_limits():
            plan, _ = why_not_plan(self._logical_plan(self._bind(query, parameters, exact), exact), key)
        result, _ = run_sync(execute(self._context(), self._lowered(plan, exact), exact, suql=query))
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
                return [str(value) for value in session.fetch(sql)["v"].to_pylist()]
        except DatabaseError:
            return list(shown.samples)

    def _order(self, options: Options) -> Callable[[TextStage], str]:
        """Return what says in which order a text stage's rows are tried."""
        return lambda stage: describe_order(stage, options, self.catalog)

    def expected(self, plan: Plan) -> dict[str, Estimate]:
        """Return what each stage is expected to take, of the model that reads for this engine."""
        texts = int(getattr(self._models.reader, "company", 1))
        return {name: figures.together(texts) for name, figures in estimate(plan, self.catalog).items()}

    def _cost(self) -> Callable[[Estimate], float | None] | None:
        """Return what an estimate's calls cost; None where calls cost nothing."""
        price = self._models.price
        if not self._models.reader.paid:
            return None
        return lambda expected: None if price is None else round(price.of(expected.tokens, expected.output_tokens), 6)

    def _with_reader(self, explanation: Explanation, plan: Plan) -> Explanation:
        """Add what depends on who reads the texts: what would be sent to it, and whether it counts tokens at all."""
        sent = columns_read(plan) if self._models.reader.remote else ()
        return replace(explanation, sent=sent, free=self._models.language is None and not self._models.reader.paid)

    def _lowered(self, plan: LogicalPlan, options: Options) -> Plan:
        lowered = lower(optimize(plan, self._rules), bring=self._database.typed)
        if options.accuracy is not None:
            check_accuracy(lowered)
        return lowered

    def _context(self) -> ExecutionContext:
        similarity, vectors, proxies = self._similarity, self._vectors, self._proxy_models
        return ExecutionContext(self._database, self.catalog, self._models, similarity, vectors, proxies)

    def _native_plan(self, query: str, parameters: Sequence[object], options: Options) -> Plan | None:
        """Return the plan of a query that the engine runs as it is; None where text functions or links are in it."""
        if self._binder is None:
            return None
        statement = self._statement(query, options)
        bound = check_parameters(statement, parameters)
        if statement.has_text:
            return None
        if options.link and self._binder.may_link(statement):
            try:
                logical = self._logical_plan(self._binder.bind(statement, parameters), options)
            except QueryError:
                logical = None  # the engine says what is wrong with it, if anything is
            if logical is not None and logical.links:
                return None
        select = NativeQuery(statement.shown, bound, lookups=statement.lookups)
        return Plan((), (), Output(select, statement.labels), (), True)

    def _planned(self, statement: Statement, parameters: Parameters, options: Options, prefix: str = "") -> Plan:
        """Return the plan of a statement with text functions: planned whole, or else taken apart."""
        assert self._binder is not None
        if prefix.count("part_") > _DEEPEST_PARTS:
            raise UnsupportedError("a part of the query is not supported beside text functions")
        try:
            bound = self._checked(self._binder.bind(statement, parameters), statement.text)
            return self._lowered(self._logical_plan(bound, options, prefix), options)
        except (UnsupportedError, UnknownNameError):
            made = self._binder.language.split(statement, f"{prefix}part_", parameters)
            if made is None:
                raise
            return self._composed(made, statement, parameters, options, prefix)

    def _composed(
        self, made: SplitStatement, statement: Statement, parameters: Parameters, options: Options, prefix: str
    ) -> Plan:
        """Return the plan of a statement that was taken apart: each part becomes a table, the engine runs the rest."""
        assert self._binder is not None
        catalog, stages, links, notes, certain = self.catalog, [], [], [], True
        names = () if statement.lookups else self._binder.language.names(statement, parameters)
        for part in made.parts:
            if not part.statement.has_text:
                bound = parameters_of(part.statement.parameters, parameters)
                stages.append(Materialize(part.name, NativeQuery(part.statement.shown, bound), "rows that are drawn"))
            else:
                engine = self._over_parts(catalog)
                plan = engine._planned(part.statement, parameters, options, f"{prefix}{part.name}_")
                stages += [
                    *plan.stages,
                    Materialize(part.name, _named_rows(plan.output, part), "rows with their answers"),
                ]
                links += plan.links
                notes += plan.notes
                certain = certain and plan.certain
            catalog = catalog.with_table(part.name, part.columns, private=part.private)
        tables = tuple(part.name for part in made.parts)
        output = NativeQuery(made.sql, parameters_of(made.parameters, parameters), tables, made.lookups)
        return Plan(tuple(links), tuple(stages), Output(output, names), tuple(notes), certain)

    def _over_parts(self, catalog: Catalog) -> Engine:
        """Return an engine whose queries may also name the tables that parts of a statement become."""
        if catalog is self.catalog:
            return self
        engine = self.over(self._database)
        assert self._binder is not None
        engine.__dict__ |= {"catalog": catalog, "_binder": replace(self._binder, catalog=catalog)}
        return engine

    def _statement(self, query: str, options: Options) -> Statement:
        assert self._binder is not None
        own = self._database.dialect == "duckdb"  # which answers DESCRIBE of itself
        text = list_tables(query, self.catalog) if own else listing(query, self.catalog, self._database.dialect)
        return self._binder.read(text or query, options.allow_functions)

    @cached_property
    def _binder(self) -> Binder | None:
        """What reads queries; None of an engine that has not told its language yet."""
        language = getattr(self._database, "language", None)
        return None if language is None else Binder(language(self.catalog), self.catalog)

    def _checked(self, bound: BoundQuery, text: str) -> BoundQuery:
        """Return a bound query whose conditions are read as such."""
        read_conditions(nodes(bound.tree), self.catalog, text)
        check_grouped_answers(bound.tree, text)
        return bound

    def _bind(self, query: str, parameters: Sequence[object], options: Options) -> BoundQuery:
        if self._binder is not None:
            return self._checked(self._binder.bind(self._statement(query, options), parameters), query)
        text = listing(query, self.catalog, "postgres") or query
        calls = DatabaseCalls(self.catalog, options.allow_functions)
        parsed = parse(text, parameters, self._database.dialect, own=calls.names, write_calls=calls.write)
        return bind(parsed, self.catalog, text)


def _named_rows(output: Output, part: Part) -> exp.Query | NativeQuery:
    """Return the query of a part's rows under the names of its table's columns."""
    names = unique_names(name for name, _ in part.columns)
    if isinstance(output.select, NativeQuery):
        return output.select
    shown = [aliased(column("rows", f"c{i}"), name) for i, name in enumerate(names)]
    listed = [quoted(f"c{i}") for i in range(len(output.select.selects))]  # and of what is hidden, for evidence
    rows = exp.Subquery(this=output.select, alias=exp.TableAlias(this=quoted("rows"), columns=listed))
    return exp.Select(expressions=shown, from_=exp.From(this=rows))


def _approximate(options: Options) -> bool:
    return options.candidates is not None or options.passages is not None or options.accuracy is not None
