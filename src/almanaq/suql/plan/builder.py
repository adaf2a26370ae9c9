"""A bound tree → text blocks between SQL stages, with members of WITH planned once."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from sqlglot import exp

from almanaq.errors import UnsupportedError
from almanaq.suql.catalog.linking import Link
from almanaq.suql.catalog.relations import Catalog
from almanaq.suql.catalog.sources import from_items, qualified, readers_in, sides_of
from almanaq.suql.plan import blocks, joins, similarities
from almanaq.suql.plan.blocks import keep_grouped_readings
from almanaq.suql.plan.first_rows import derive_first_rows, first_rows_of, mark_first_rows, split_first_rows
from almanaq.suql.plan.joins import OUTER, matches_wanted, order_known_before, restrict_semi_joins
from almanaq.suql.plan.predicates import any_of, ask_lazily, conjuncts, matters_under, weakest
from almanaq.suql.plan.sites import (
    carry,
    hand_down,
    in_where,
    is_correlated,
    is_of_block,
    own_columns,
    references_from_above,
    text_unit,
    where_of,
)
from almanaq.suql.plan.stages import (
    ORDINAL,
    ROW,
    FirstRows,
    LogicalPlan,
    LogicalStage,
    Materialize,
    Output,
    TextBlock,
    selects_of,
)
from almanaq.suql.plan.text_blocks import (
    KEEPS_UNKNOWN,
    Marked,
    keep_unknown,
    kept_by,
    number_outputs,
    shows_only_certain_rows,
    text_block,
)
from almanaq.suql.syntax.literals import is_untyped
from almanaq.suql.syntax.nodes import aliased, column, derived, nodes_of, quoted, side_of, table
from almanaq.suql.text_functions import has_text, is_by_chance, nested_queries, own_text_calls


class CommonTables:
    """The members of WITH met so far, under names of their own; `compile_query` writes one without text functions."""

    def __init__(self, name: Callable[[str], str], compile_query: Callable[[exp.Query], exp.Query]) -> None:
        self._name, self._compile = name, compile_query
        self._members: dict[str, exp.CTE] = {}
        self._recursive = False

    def __contains__(self, name: object) -> bool:
        return name in self._members

    def hoist(self, query: exp.Query) -> None:
        """Take a query's WITH away and keep its members."""
        with_ = query.args.get("with_")
        if with_ is None:
            return
        self._recursive |= bool(with_.args.get("recursive"))
        readers = readers_in(query)
        for cte in list(with_.expressions):
            name = self._name(f"cte_{cte.alias}")
            for reader in readers.get(id(cte), ()):
                reader.set("this", quoted(name))
            cte.args["alias"].set("this", quoted(name))
            if has_text(cte.this):
                _check_recursion(cte, name)
                cte.this.replace(self._compile(cte.this))
            self._members[name] = cte
        query.set("with_", None)

    def attach(self, query: exp.Query) -> exp.Query:
        query.set("with_", self._find_needed([query]))
        return query

    def attach_to_stage(self, stage: LogicalStage) -> LogicalStage:
        if isinstance(stage, Materialize):
            return replace(stage, select=self.attach(*selects_of(stage)))
        if not isinstance(stage, TextBlock):
            return stage  # it reads tables that were made before
        parts = [stage.source, *stage.outputs, *stage.order, *([stage.where] if stage.where is not None else [])]
        parts += [node for site in stage.sites for node in (site.document, site.question)]
        sites = tuple(
            site if site.options_from is None else replace(site, options_from=self.attach(site.options_from))
            for site in stage.sites
        )
        return replace(stage, sites=sites, with_=self._find_needed(parts))

    def _find_needed(self, nodes: list[exp.Expr]) -> exp.With | None:
        needed: set[str] = set()
        pending = list(nodes)
        while pending:
            for name in {t.name for t in nodes_of(pending.pop(), exp.Table) if t.name in self._members} - needed:
                needed.add(name)
                pending.append(self._members[name])
        members = [cte.copy() for name, cte in self._members.items() if name in needed]
        return exp.With(expressions=members, recursive=self._recursive) if members else None


def _check_recursion(cte: exp.CTE, name: str) -> None:
    """Refuse text functions in the part of a recursive member that reads the member: each step would ask again."""
    arms = [cte.this.this, cte.this.expression] if isinstance(cte.this, exp.SetOperation) else []
    if any(has_text(arm) and any(table.name == name for table in nodes_of(arm, exp.Table)) for arm in arms):
        raise UnsupportedError(
            "text functions in the part of WITH RECURSIVE that refers to itself are not supported: answer them in a "
            "member of WITH before it, which that part may join"
        )


def build_plan(
    tree: exp.Query, names: Sequence[str], catalog: Catalog, links: tuple[Link, ...] = (), *, prefix: str = ""
) -> LogicalPlan:
    """Return the logical plan of a bound query, whose tree it uses up; asks neither a database nor a model."""
    builder, marked, certain = _Builder(catalog, prefix), keep_unknown(tree), shows_only_certain_rows(tree)
    mark_first_rows(tree)
    root = exp.Subquery(this=tree)
    compiled = builder.query(root.this)
    output, evidence = number_outputs(compiled, builder.blocks)
    stages = tuple(builder.common.attach_to_stage(stage) for stage in builder.stages)
    certain = certain and marked <= builder.keeping_unknown
    return LogicalPlan(stages, Output(builder.common.attach(output), tuple(names), evidence), links, certain=certain)


class _Builder:
    def __init__(self, catalog: Catalog, prefix: str) -> None:
        self._catalog, self._prefix = catalog, prefix
        self._count = 0
        self.common = CommonTables(self._name, self.query)
        self.blocks: set[str] = set()
        self.stages: list[LogicalStage] = []
        self.keeping_unknown: set[Marked] = set()

    def query(self, query: exp.Query) -> exp.Query:
        self.common.hoist(query)
        if not has_text(query):
            return query
        if isinstance(query, exp.Subquery):
            query.this.replace(self.query(query.this))
            return query
        if isinstance(query, exp.SetOperation):
            query.this.replace(self.query(query.this))
            query.expression.replace(self.query(query.expression))
            return query
        if isinstance(query, exp.Select):
            return self._select(query)
        raise UnsupportedError(f"text functions in {type(query).__name__.upper()} are not supported; use a SELECT")

    def _select(self, block: exp.Select) -> exp.Query:
        blocks.expand_output_names(block)
        for nested in restrict_semi_joins(block, self.common):
            FirstRows(exp.column(nested.expressions[0].alias_or_name)).mark(nested)
        self._compile_nested(block)
        joins.move_conditions_to_where(block)
        self._pair_joins(block)
        joins.push_joining_answers(block)
        self._compile_nested(block)
        self._compute_similarities(block)
        if block.args.get("group") is not None:
            keep_grouped_readings(block, own_text_calls(block))
        if self._split(block):
            return self._select(block)
        self._decorrelate(block)
        calls = own_text_calls(block)
        if not calls:
            return block
        if blocks.is_plain(block):
            if is_by_chance(block):
                blocks.draw_first(block, self._name("drawn"))
            return self._text_block(block)
        rows = self._name("rows")
        outside = [call for call in own_text_calls(block) if not in_where(call, block)]
        inner = derive_first_rows(block, rows) if not outside else None
        if inner is None:
            inner = blocks.derive(block, rows, ask_lazily([text_unit(call) for call in outside], block))
        inner.replace(self.query(inner))
        return block

    def _compile_nested(self, block: exp.Select) -> None:
        """Compile nested queries; equal ones stay equal, since an output must be found to be a key of GROUP BY."""
        compiled: dict[tuple[str, bool, bool], exp.Query] = {}
        for nested in nested_queries(block):
            if has_text(nested) and not is_correlated(nested):
                within = nested.unnest()
                written = nested.sql(), KEEPS_UNKNOWN in within.meta, first_rows_of(within) is not None
                known = compiled.get(written)
                found = known.copy() if known is not None else self.query(nested)
                compiled.setdefault(written, found)
                nested.replace(found)

    def _split(self, block: exp.Select) -> bool:
        name = self._name("part")
        return (
            blocks.split_functions(block, name)
            or blocks.split_groups(block, name)
            or blocks.split_sets(block, name)
            or split_first_rows(block, name)
            or blocks.split_windows(block, name)
            or blocks.split_ordering(block, name)
            or blocks.split_nested_calls(block, name)
        )

    def _compute_similarities(self, block: exp.Select) -> None:
        while (found := similarities.joining(block, similarities.computable(block))) is not None:
            call, bound = found
            sides = similarities.sides_of(block, call)
            tables = [self._materialize_item(block, item, keep) for item, keep in sides]
            self.stages.append(similarities.join_stage(block, self._name("pairs"), call, tables, bound))
        if calls := similarities.computable(block):
            row, source = self._rows_to_compare(block)
            stage = similarities.rows_stage(block, self._name("similar"), source, row, calls)
            self.stages.append(stage)

    def _rows_to_compare(self, block: exp.Select) -> tuple[exp.Expr, exp.Select]:
        if block.args.get("from_") is None:
            return exp.Literal.number(0), exp.Select()
        row = self._row_id(block)
        if row is None:
            rows = self._materialize_rows(block)
            return column(rows, ROW), exp.Select(from_=exp.From(this=table(rows)))
        parts = [part for part in conjuncts(where_of(block)) if is_of_block(part, block) and not is_by_chance(part)]
        condition = weakest(exp.and_(*parts)) if parts else None
        where = None if condition is None else exp.Where(this=condition)
        return row, exp.Select(from_=block.args["from_"].copy(), where=where)

    # Plain blocks

    def _text_block(self, block: exp.Select) -> exp.Query:
        name = self._name("block")
        labels, marked = [item.alias_or_name for item in block.expressions], kept_by(block)
        made = [each for each in self.stages if isinstance(each, Materialize)]
        copies = {each.name: each.select for each in made if isinstance(each.select, exp.Select)}
        stage = text_block(name, block, self._catalog, self.common, self._row_id(block), copies)
        first = first_rows_of(block)
        if first is not None:
            stage = replace(stage, first_rows=first.over(dict(zip(labels, stage.outputs, strict=False))))
        if blocks.LEAVES_OUT_UNKNOWN in block.meta:
            stage = replace(stage, leaves_out_unknown=True)
        if marked is not None:
            stage = replace(stage, keeps_unknown=True)
            self.keeping_unknown.add(marked)
        self.stages.append(stage)
        self.blocks.add(name)
        above = block.parent.parent if isinstance(block.parent, exp.Subquery) else block.parent
        read: list[exp.Expr] = [column(name, f"c{i}") for i in range(len(labels))]
        if isinstance(above, exp.SetOperation):  # where NULL and '1' take the type of the other side
            read = [one.copy() if is_untyped(one) else each for one, each in zip(stage.outputs, read, strict=True)]
        reader = exp.Select(
            expressions=[aliased(each, label) for each, label in zip(read, labels, strict=True)],
            from_=exp.From(this=table(name)),
        )
        return reader.order_by(column(name, ORDINAL), copy=False) if stage.order else reader

    def _row_id(self, block: exp.Select) -> exp.Expr | None:
        items = list(from_items(block))
        if len(items) != 1 or not isinstance(items[0], exp.Table) or items[0].name in self.common:
            return None
        relation = self._catalog.find(items[0].name)
        if relation is None or relation.row_id is None:
            return None
        return qualified(relation.row_id, items[0].alias_or_name)

    # Nested queries that refer to their surroundings

    def _decorrelate(self, block: exp.Select) -> None:
        """Give each nested query with text the rows of its surroundings as a table, keyed by ROW."""
        self._decorrelate_laterals(block)
        nested = [query for query in nested_queries(block) if has_text(query) and is_correlated(query)]
        if nested:
            rows = self._materialize_rows(block, in_order=True)
            alike: dict[tuple[bool, bool, str], list[exp.Query]] = {}
            for query in nested:
                kind = isinstance(query.parent, exp.Exists), KEEPS_UNKNOWN in query.unnest().meta
                alike.setdefault((*kind, query.sql()), []).append(query)
            for first, *others in alike.values():  # equal ones stay equal: one may be a key of GROUP BY
                within = first.this if isinstance(first, exp.Subquery) else first
                matters = [matters_under(query, block) for query in (first, *others)]
                needed = any_of(matters)
                if isinstance(within, exp.Select) and needed is not None:
                    within.where(needed, copy=False)
                self._correlate(first, rows)
                for other in others:
                    other.replace(first.copy())

    def _decorrelate_laterals(self, block: exp.Select, before: exp.Join | None = None) -> None:
        for join in list(block.args.get("joins") or ()):
            if join is before:
                break
            if isinstance(join.this, exp.Lateral) and has_text(join.this):
                rows = self._materialize_rows(block, before=join)
                self._correlate(join.this.this, rows)

    def _pair_joins(self, block: exp.Select) -> None:
        """Find the matches of a join before it whose condition asks, and cannot move to WHERE: of an outer join.

        `a FULL JOIN b ON f(a, b)` becomes `a LEFT JOIN p ON p.l = a.row FULL JOIN b ON b.row = p.r`; p has the pairs.
        """
        for join in list(block.args.get("joins") or ()):
            on, item = join.args.get("on"), join.this
            if on is None or not has_text(on):
                continue
            if not isinstance(item, exp.Table | exp.Subquery | exp.Values):
                joins.move_condition_into(item, join, block)
                continue
            self._decorrelate_laterals(block, before=join)
            left = self._materialize_rows(block, before=join)
            right = self._materialize_item(block, item)
            pairs = exp.Select(
                expressions=[aliased(column(left, ROW), "l"), aliased(column(right, ROW), "r")],
                from_=exp.From(this=table(left)),
                joins=[exp.Join(this=table(right), kind="CROSS")],
                where=exp.Where(this=exp.and_(on, *joins.conditions_about(block, right))),
            )
            name = self._name("pairs")
            found = derived(pairs, name)
            pairs.replace(self.query(pairs))
            matches = exp.EQ(this=column(name, "l"), expression=column(left, ROW))
            join.set("on", exp.EQ(this=column(right, ROW), expression=column(name, "r")))
            block.args["joins"].insert(0, exp.Join(this=found, side="LEFT" if side_of(join) else None, on=matches))
            block.set("joins", block.args["joins"])

    def _materialize_item(self, block: exp.Select, item: exp.Expr, keep: Sequence[exp.Expr] = ()) -> str:
        name, alias = self._name("rows"), item.alias_or_name
        references = [c for c in own_columns(block) if c.table == alias]
        outputs = carry(references, name)
        item.replace(table(name))
        select = _numbered(outputs)
        select.set("from_", exp.From(this=item))
        if keep:
            select.set("where", exp.Where(this=exp.and_(*keep)))
        self.stages.append(Materialize(name, select, "rows that are joined by what they say"))
        return name

    def _isolate_outer_joins(self, block: exp.Select) -> None:
        """Compute a FROM with outer joins that a block's surroundings must not be joined into before the block."""
        sides = {side_of(join) for join in block.args.get("joins") or ()}
        on = [join.args["on"] for join in block.args.get("joins") or () if join.args.get("on") is not None]
        if not (sides & {"RIGHT", "FULL"} or any(has_text(part) for part in on)):
            return
        parts = conjuncts(where_of(block))
        inner = blocks.derive(block, self._name("joined"), [], parts)
        if is_correlated(inner):
            raise UnsupportedError(
                "an outer join in a nested query whose ON refers to the query around it is not supported"
            )
        inner.replace(self.query(inner))

    def _materialize_rows(self, block: exp.Select, before: exp.Join | None = None, *, in_order: bool = False) -> str:
        """Copy the rows of a block's FROM, or of its items before a join, that WHERE may keep into a table."""
        keys = order_known_before(block) if in_order and block.args.get("limit") is not None else None
        order = exp.Order(expressions=[key.copy() for key in keys]) if keys else None
        name = self._name("rows")
        all_joins = block.args.get("joins") or []
        cut = next((i for i, join in enumerate(all_joins) if join is before), len(all_joins))
        items = list(from_items(block))[: cut + 1]
        parts = conjuncts(where_of(block))
        aliases = {item.alias_or_name for item in items}
        if any(side_of(join) in ("RIGHT", "FULL") for join in all_joins[cut:]):
            parts = []
        parts = [part for part in parts if is_of_block(part, block) and not is_by_chance(part)]
        usable = [p for p in parts if before is None or {c.table for c in own_columns(block, p)} <= aliases]
        condition = weakest(exp.and_(*usable)) if usable else None
        select = _numbered(carry(references_from_above(block, cut), name), order)
        select.set("from_", block.args["from_"].pop())
        select.set("joins", [join.pop() for join in all_joins[:cut]])
        if condition is not None:
            select.set("where", exp.Where(this=condition))
        block.set("from_", exp.From(this=table(name)))
        self.stages.append(Materialize(name, select, "rows that a nested query refers to"))
        return name

    def _correlate(self, query: exp.Query, rows: str) -> None:
        for side in sides_of(query):
            if isinstance(side, exp.Select) and has_text(side):
                self._correlated_select(side, rows)

    def _correlated_select(self, block: exp.Select, rows: str) -> None:
        blocks.expand_output_names(block)
        self._compile_nested(block)
        self._isolate_outer_joins(block)
        joins.move_conditions_to_where(block)
        while self._split(block) or (not is_by_chance(block) and blocks.split_page(block, self._name("part"))):
            pass
        for item in list(from_items(block)):
            if isinstance(item, exp.Subquery) and has_text(item):
                self._correlate(item.this, rows)
        if not has_text(block):
            return
        name = self._name("rows")
        keep_grouped_readings(block, own_text_calls(block))
        above = [part for part in conjuncts(where_of(block)) if any(has_text(q) for q in nested_queries(part))]
        outside = [call for call in own_text_calls(block) if not in_where(call, block)]
        outside += [call for part in above for call in own_text_calls(part)]
        one_will_do = isinstance(block.parent, exp.Exists) and not above and not blocks.is_cut_or_grouped(block)
        wanted = matches_wanted(block.parent) if one_will_do else None
        units = ask_lazily([text_unit(call) for call in outside], block)
        inner = blocks.derive(block, name, units, above)
        hand_down(block, inner, rows)
        first = inner.args.get("from_")
        moved = [exp.Join(this=_lateral_if_correlated(first.this.pop()), kind="CROSS")] if first is not None else []
        inner.set("joins", [*moved, *(inner.args.get("joins") or [])])
        inner.set("from_", exp.From(this=table(rows)))
        # Without the constant of a table that nothing else is read from, which DuckDB does not bind here.
        kept = [item for item in inner.expressions if not isinstance(item.unalias(), exp.Literal)]
        inner.set("expressions", [*kept, aliased(column(rows, ROW), OUTER)])
        inner.meta.update(block.meta)
        block.where(exp.EQ(this=column(name, OUTER), expression=column(rows, ROW)), copy=False)
        if one_will_do:
            FirstRows(exp.column(quoted(OUTER)), (), *(wanted or (None, False))).mark(inner)
        inner.replace(self.query(inner))
        self._decorrelate(block)

    def _name(self, kind: str) -> str:
        self._count += 1
        return f"_{self._prefix}{kind}_{self._count}"


def _numbered(outputs: Mapping[str, exp.Expr], order: exp.Order | None = None) -> exp.Select:
    number = exp.Window(this=exp.RowNumber(), order=order)
    return exp.Select(expressions=[aliased(number, ROW), *(aliased(node, name) for name, node in outputs.items())])


def _lateral_if_correlated(item: exp.Expr) -> exp.Expr:
    if isinstance(item, exp.Subquery) and item.find(exp.Column) is not None:
        return exp.Lateral(this=exp.Subquery(this=item.this), alias=item.args.get("alias"))
    return item
