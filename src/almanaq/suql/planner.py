"""Text of a query → plan: what the engine runs as it is, what is planned whole, and what is taken apart."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace

from sqlglot import exp, tokenize
from sqlglot.tokenizer_core import TokenType

from almanaq.errors import QueryError, UnknownNameError, UnsupportedError
from almanaq.options import Options
from almanaq.suql.bind import bind, check_parameters
from almanaq.suql.catalog.answer_types import cast_answers, fold_compared, read_conditions
from almanaq.suql.catalog.lineage import private_columns_compared, private_columns_read
from almanaq.suql.catalog.linking import Link, link_enums
from almanaq.suql.catalog.relations import Catalog, ColumnKind, list_tables, unique_names
from almanaq.suql.catalog.sources import is_relation, set_place
from almanaq.suql.execution.guards import check_accuracy
from almanaq.suql.language import ROW_OF_ANSWER, Language, Parameters, Part, SplitStatement, Statement, parameters_of
from almanaq.suql.names import BoundQuery
from almanaq.suql.optimizer import QueryRule, Rule, optimize, rewrite
from almanaq.suql.plan.builder import build_plan
from almanaq.suql.plan.lower import lower
from almanaq.suql.plan.stages import LogicalPlan, Materialize, NativeQuery, Output, Plan, Stage, TextStage
from almanaq.suql.syntax.nodes import aliased, column, copy_tree, derived, nodes, nodes_of
from almanaq.suql.text_functions import declared, expand_fields, is_text_call

_DEEPEST_PARTS = 4
"""How often a part of a statement that was taken apart is taken apart itself."""


@dataclass(frozen=True)
class Planner:
    """Plans the queries of one source; asks neither the database for rows nor a model.

    Attributes:
        catalog: the relations that queries may name.
        typed: whether every batch of the database's rows has the types of the whole.
        check: raises an error for a plan that would send to a model what may not leave the machine.
        private_of: the private columns whose values the tables of a query's parts may hold, by the tables' names.
    """

    language: Language
    catalog: Catalog
    rules: tuple[Rule, ...]
    query_rules: tuple[QueryRule, ...]
    typed: bool
    check: Callable[[LogicalPlan, Options], None]
    private_of: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    def read(self, query: str, options: Options) -> Statement:
        dialect = self.language.dialect
        text = list_tables(query, self.catalog, dialect) or query
        # Nobody knows what a function reads: none is vouched for where the reader may not see all.
        allowed = frozenset(() if self.catalog.is_partial else map(str.lower, options.allow_functions))
        written = expand_fields(text, dialect)
        try:
            return self.language.read(written, allowed)
        except QueryError:
            if written != text:
                self.language.read(text, allowed)  # an error that quotes what the user wrote
            raise

    def plan(self, query: str, parameters: Parameters, options: Options) -> Plan:
        statement = self.read(query, options)
        bound = check_parameters(statement, parameters)
        if statement.has_text:
            return self.spell(self._plan_texts(statement, parameters, options), statement, parameters)
        linked = self._link(statement, parameters, options)
        if linked is not None and linked.links:
            self.check(linked, options)
            return self.lower(linked, options)
        select = NativeQuery(statement.shown, bound, lookups=statement.lookups)
        return Plan((), (), Output(select, statement.labels), bound=None if linked is None else linked.bound)

    def spell(self, plan: Plan, statement: Statement, parameters: Parameters) -> Plan:
        """Return a plan of a statement that spells replies as the statement, or a parameter, does (semantics 4)."""
        texts = [t.text for t in tokenize(statement.shown, self.language.dialect) if t.token_type is TokenType.STRING]
        values = parameters.values() if isinstance(parameters, Mapping) else parameters
        listed = [each for value in values for each in (value if isinstance(value, list | tuple) else [value])]
        return replace(plan, spellings=(*texts, *(each for each in listed if isinstance(each, str))))

    def check_query(self, query: str, options: Options, parameters: Parameters = ()) -> None:
        statement = self.read(query, options)
        if statement.has_text:
            self._plan_texts(statement, parameters, options)
        elif not statement.lookups:
            self.language.names(statement, parameters)

    def bind(self, statement: Statement, parameters: Parameters = ()) -> BoundQuery:
        bound = bind(statement, self.language, self.catalog, parameters)
        read_conditions(nodes(bound.tree), self.catalog, statement.text)
        return bound

    def logical(self, statement: Statement, parameters: Parameters, options: Options, prefix: str = "") -> LogicalPlan:
        """Return the plan of a statement that is planned whole, before the optimizer's rules."""
        plan = self._logical(statement, parameters, options, prefix)
        self.check(plan, options)
        return plan

    def _logical(self, statement: Statement, parameters: Parameters, options: Options, prefix: str) -> LogicalPlan:
        bound = self.bind(statement, parameters)
        typed = fold_compared(cast_answers(copy_tree(bound.tree)), self.catalog)
        self._check_types(typed)
        tree, links = link_enums(typed, self.catalog, link=options.link, prefix=prefix)
        private = private_columns_read(tree, links, self.catalog)
        compared = private_columns_compared(tree, self.catalog)
        tree = rewrite(tree, self.query_rules)
        plan = build_plan(tree, bound.names, self.catalog, links, prefix=prefix)
        private, compared = self._name_in_source(private), self._name_in_source(compared)
        return replace(plan, private_columns=private, private_compared=compared, bound=bound)

    def _check_types(self, tree: exp.Query) -> None:
        """Have the engine refuse what cannot be done with a text, as `avg(answer(…))`, before any call is paid for."""
        stubbed = copy_tree(tree)
        for call in filter(is_text_call, nodes_of(stubbed, exp.Anonymous)):
            call.replace(exp.cast(exp.null(), declared(call).type))
        for table in nodes_of(stubbed, exp.Table):
            relation = self.catalog.find(table.name) if is_relation(table) else None
            if relation is not None:
                set_place(table, relation.location)
        self.language.check_types(stubbed)

    def _name_in_source(self, private: tuple[str, ...]) -> tuple[str, ...]:
        found = [self.private_of.get(name.partition(".")[0], (name,)) for name in private]
        return tuple(dict.fromkeys(name for names in found for name in names))

    def lower(self, plan: LogicalPlan, options: Options) -> Plan:
        lowered = lower(optimize(plan, self.rules), bring=self.typed)
        if options.accuracy is not None:
            check_accuracy(lowered)
        return lowered

    def _link(self, statement: Statement, parameters: Parameters, options: Options) -> LogicalPlan | None:
        """Return the plan of a statement whose literals may be linked to the values of an ENUM; None where none may."""
        read = filter(None, map(self.catalog.find, statement.relations))
        if not options.link or not any(c.kind is ColumnKind.ENUM and c.values for r in read for c in r.columns):
            return None
        with suppress(QueryError):  # the engine says what is wrong with it, if anything is
            return self._logical(statement, parameters, options, "")
        return None

    def _plan_texts(self, statement: Statement, parameters: Parameters, options: Options, prefix: str = "") -> Plan:
        try:
            return self.lower(self.logical(statement, parameters, options, prefix), options)
        except (UnsupportedError, UnknownNameError) as error:
            known_to_engine = (
                isinstance(error, UnknownNameError) and self.language.binds_texts and not statement.lookups
            )
            if known_to_engine or prefix.count("part_") > _DEEPEST_PARTS:
                raise
            try:
                for made in self.language.split(statement, f"{prefix}part_", parameters):
                    with suppress(UnsupportedError, UnknownNameError):  # of a part, which nobody wrote
                        return self._compose(made, statement, parameters, options, prefix)
            except UnknownNameError:  # a part says nothing outside what it was taken from, as one of a recursion
                raise error from None
            raise

    def _compose(
        self, made: SplitStatement, statement: Statement, parameters: Parameters, options: Options, prefix: str
    ) -> Plan:
        planner = self
        stages: list[Stage] = []
        links: list[Link] = []
        names = () if statement.lookups else self.language.names(statement, parameters)
        tables = tuple(part.name for part in made.parts)
        blocks: dict[str, str] = {}
        for part in made.parts:
            if not part.statement.has_text:
                query = NativeQuery(part.statement.shown, (), tables, part.statement.lookups)
                stages.append(Materialize(part.name, query, "documents, or rows that are drawn once", part.within))
            else:
                plan = planner._plan_texts(part.statement, parameters, options, f"{prefix}{part.name}_")
                stages += [*(_reading(stage, part) for stage in plan.stages), _table_of(plan.output, part)]
                blocks[part.name] = plan.output.evidence[0][0] if plan.output.evidence else ""
                links += plan.links
            catalog = planner.catalog.with_table(part.name, part.columns, private=bool(part.private))
            held = {**planner.private_of, part.name: part.private}
            planner = replace(planner, catalog=catalog, private_of=held)
        output = NativeQuery(made.sql, parameters_of(made.parameters, parameters), tables, made.lookups)
        cited = tuple((blocks[each.part], each) for each in made.cited if names)
        return Plan(tuple(links), tuple(stages), Output(output, names, cited=cited), certain=False)


def _reading(stage: Stage, part: Part) -> Stage:
    """Return a stage of a part that reads documents where they stand in the source, not in the part's table.

    A document whose call failed has no row there: a condition tells that from one without information.
    """
    if not isinstance(stage, TextStage) or part.reads is None:
        return stage
    relation, column_name = part.reads
    inputs = (replace(item, relation=relation, column=column_name) if item.relation else item for item in stage.inputs)
    return replace(stage, inputs=tuple(inputs), leaves_out_unknown=stage.predicate is None)


def _table_of(output: Output, part: Part) -> Materialize:
    purpose = "rows with their answers"
    names = unique_names(name for name, _ in part.columns)
    if isinstance(output.select, NativeQuery):
        return Materialize(part.name, output.select, purpose)
    shown = [aliased(column("rows", f"c{i}"), name) for i, name in enumerate(names)]
    hidden = len(output.select.selects) - len(names)  # for evidence: the row of the block that has the quotes
    if part.reads is not None:
        row = column("rows", f"c{len(names)}") if hidden else exp.cast(exp.null(), "bigint")
        shown.append(aliased(row, ROW_OF_ANSWER))
    rows = derived(output.select, "rows", [f"c{i}" for i in range(len(names) + hidden)])
    return Materialize(part.name, exp.Select(expressions=shown, from_=exp.From(this=rows)), purpose)
