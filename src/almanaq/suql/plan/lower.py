"""Blocks → the SQL stages and text stages that run in order."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from sqlglot import exp

from almanaq.errors import UnsupportedError
from almanaq.suql.plan.blocks import is_plain
from almanaq.suql.plan.predicates import (
    Computed,
    Predicate,
    Structured,
    atoms,
    map_atoms,
    surely,
    truth_output,
    with_conditions,
)
from almanaq.suql.plan.sites import FROM_ALIAS, TEXT_ALIAS, Site, site_of, text_columns
from almanaq.suql.plan.stages import (
    ORDINAL,
    ROW,
    FirstRows,
    LogicalPlan,
    Materialize,
    Output,
    Plan,
    SiteInput,
    Stage,
    TextBlock,
    TextStage,
    selects_of,
)
from almanaq.suql.syntax.nodes import aliased, column, copy_tree, derived, nodes, nodes_above, nodes_of, table
from almanaq.suql.text_functions import is_text_call


def shown_columns(output: Output, block: TextBlock) -> tuple[exp.Expr, ...] | None:
    """Return the columns of a block's FROM that a result shows, one row for each that passes the block's filter.

    They can be brought along with the candidates: when these are decided, the rows of the result are there. None where
    the result is anything else: computed, asked for, joined, or cut after the filter.
    """
    cut = block.offset is not None or (block.limit is not None and block.stop_after is None)
    plain = block.direct and block.filtered and not cut and not block.output_sites
    if not plain or len(output.evidence) != 1 or not isinstance(output.select, exp.Select):
        return None
    select, visible = output.select, len(output.names)
    clauses = {name for name, clause in select.args.items() if clause}
    from_ = select.args.get("from_")
    if from_ is None or not clauses <= {"from_", "expressions", "order"} or from_.this.name != block.name:
        return None
    order = select.args.get("order")
    if order is not None and [node.this.name for node in order.expressions] != [ORDINAL]:
        return None
    read = [item.unalias() for item in select.expressions]
    if not all(isinstance(node, exp.Column) for node in read) or [node.name for node in read[visible:]] != [ROW]:
        return None
    outputs = {f"c{i}": node for i, node in enumerate(block.outputs)}
    shown = tuple(outputs[node.name] for node in read[:visible] if node.name in outputs)
    known = all(isinstance(node, exp.Literal) or _is_of_from(node) for node in shown)
    return shown if known and len(shown) == visible else None


def _is_of_from(node: exp.Expr) -> bool:
    return isinstance(node, exp.Column) and node.table == FROM_ALIAS


def lower(plan: LogicalPlan, *, bring: bool = False) -> Plan:
    stages: list[Stage] = []
    output = plan.output
    for stage in plan.stages:
        if not isinstance(stage, TextBlock):
            stages.append(stage)
            continue
        shown = shown_columns(output, stage) if bring and stage is plan.stages[-1] else None
        lowering = _Lowering(stage, shown)
        stages.extend(lowering.stages())
        output = replace(output, payload=lowering.payload)
    for select in [*(select for stage in stages for select in selects_of(stage)), output.select]:
        if isinstance(select, exp.Query):
            _check_computed(select)
    return _with_last_inside(Plan(plan.links, tuple(stages), output, plan.certain, plan.bound))


def _check_computed(select: exp.Query) -> None:
    """Raise UnsupportedError for a text function that no stage computes: the engine may have a function of its name."""
    if (call := next(filter(is_text_call, nodes(select)), None)) is not None:
        name = call.name.lower()
        raise UnsupportedError(
            f"{name}() is not supported where the query has it: compute it in a derived table (SELECT {name}(…) AS a …)"
        )


def _with_last_inside(plan: Plan) -> Plan:
    last = plan.stages[-1] if plan.stages else None
    if not isinstance(last, Materialize) or not isinstance(last.select, exp.Query):
        return plan
    if (renamed := _renamed(plan.output.tree, last)) is not None:
        return replace(plan, stages=plan.stages[:-1], output=replace(plan.output, select=renamed))
    select = copy_tree(plan.output.tree)
    readers = [reader for reader in nodes_of(select, exp.Table) if reader.name == last.name]
    if len(readers) != 1:
        return plan
    readers[0].replace(derived(copy_tree(last.select), readers[0].alias_or_name))
    return replace(plan, stages=plan.stages[:-1], output=replace(plan.output, select=select))


def _renamed(select: exp.Query, last: Materialize) -> exp.Select | None:
    """Return the rows of the last stage under the names that a SELECT gives them; None where it does more than that."""
    inner, from_, order = last.select, select.args.get("from_"), select.args.get("order")
    if not isinstance(inner, exp.Select) or from_ is None or from_.this.name != last.name:
        return None
    own = {item.alias: item.this for item in inner.selects if isinstance(item, exp.Alias)}
    labels = {item.unalias().name: item.alias_or_name for item in select.selects}
    columns = all(isinstance(item.unalias(), exp.Column) for item in select.selects)
    clauses = {name for name, clause in select.args.items() if clause}
    if not columns or not labels.keys() <= own.keys() or len(labels) < len(select.selects):
        return None
    numbered = own[ORDINAL].args.get("order") if order is not None and ORDINAL in own else None
    sorts = order is None or (numbered is not None and [key.this.name for key in order.expressions] == [ORDINAL])
    if not clauses <= {"from_", "expressions", "order"} or not sorts or inner.args.get("order") != numbered:
        return None
    outputs = inner.expressions
    inner.set("expressions", [aliased(copy_tree(own[name]), label) for name, label in labels.items()])
    if is_plain(inner):
        return inner
    inner.set("expressions", outputs)
    return None


_COMPARISONS = (exp.EQ, exp.NEQ, exp.LT, exp.LTE, exp.GT, exp.GTE, exp.Between, exp.In)
_COMPARED = (exp.Column, exp.Identifier, exp.Literal, exp.Neg, exp.Paren, *_COMPARISONS)


def _settled_parts(expression: exp.Expr) -> list[exp.Expr]:
    """Return what the engine settles for an expression with answers: columns of FROM, and their comparisons.

    A comparison cannot fail where it is not looked at, and is made where the column is: elsewhere, a value of an ENUM
    is a text, which has another order.
    """

    def settles(node: exp.Expr) -> bool:
        columns = nodes_of(node, exp.Column)
        compares = isinstance(node, _COMPARISONS) and all(isinstance(part, _COMPARED) for part in nodes(node))
        settled = bool(columns) and all(reference.table == FROM_ALIAS for reference in columns)
        return settled and (compares or isinstance(node, exp.Column))

    return list(filter(settles, nodes_above(expression, settles)))


class _Lowering:
    """One text block on its way to stages; `payload` names the columns of the filter's source that hold those `shown`.

    Its rows are at first those of FROM; copying moves them to a table that carries the columns (`_carrier`).
    """

    def __init__(self, block: TextBlock, shown: tuple[exp.Expr, ...] | None) -> None:
        self._block, self._shown = block, shown
        self._where_sites = block.where_sites
        self._asked_always = {site.id for site in self._where_sites} if not block.filtered else set()
        self.payload: tuple[str, ...] = ()
        self._columns = dict(block.columns)
        self._carrier: str | None = None
        self._from = block.source
        self._row = block.row_id if block.row_id is not None else exp.Literal.number(0)
        self._kept: str | None = None
        self._texts: dict[str, str] = {}
        self._where, self._order = block.where, block.order
        self._limit, self._offset = block.limit, block.offset

    def stages(self) -> Iterator[Stage]:
        block = self._block
        if not block.direct:
            yield self._copy_rows()
        if block.filtered:
            yield self._filter()
        asked = block.output_sites if block.filtered else block.sites
        if asked and block.late:
            sorting = self._find_sorting(asked)
            asked = tuple(site for site in asked if site not in sorting)
            yield from self._projects(sorting)
            yield self._page(asked)
        yield from self._projects(asked)
        yield self._finish()

    # The steps

    def _copy_rows(self) -> Materialize:
        name = f"{self._block.name}_rows"
        select = self._rows(aliased(exp.Window(this=exp.RowNumber()), ROW), *self._carry(list(self._columns)))
        if self._block.condition is not None:
            select.set("where", exp.Where(this=self._resolve(self._block.condition)))
            if not self._where_sites:
                self._where = None  # the condition is all of WHERE
        self._move_to(name)
        return Materialize(name, select, "candidate rows")

    def _filter(self) -> TextStage:
        block = self._block
        assert block.residual is not None
        select = self._rows(aliased(copy_tree(self._row), ROW))
        if block.direct and block.condition is not None:
            select.set("where", exp.Where(this=self._resolve(block.condition)))
        inputs = self._inputs(select, tuple(replace(site, needed=None) for site in self._where_sites))
        predicate = self._predicate(select, block.residual)
        first = block.first_rows if block.first_only else None
        if first is not None:
            select.append("expressions", aliased(self._resolve(first.key), "semi_join_key"))
            self._order_values(select, first)
        self._bring(select)
        ordered = block.stop_after is not None and bool(block.order)
        if ordered or (self.payload and block.order):
            keys = [self._resolve(node) for node in block.order]
            select.set("order", exp.Order(expressions=[*keys, exp.Ordered(this=copy_tree(self._row))]))
        self._kept, self._where = f"{block.name}_kept", None
        stage = TextStage(self._kept, block.name, select, inputs, predicate, block.stop_after, ordered)
        stage = replace(stage, keeps_unknown=block.keeps_unknown)
        if first is None:
            return stage
        stage = replace(stage, semi_join_key="semi_join_key", ordered=bool(first.order))
        return replace(stage, values_wanted=first.wanted, values_ordered=first.ordered)

    def _order_values(self, select: exp.Select, first: FirstRows) -> None:
        """Rows of the value wanted next come first; of one value, they come in its order, or those that pass without
        asking before others."""
        residual = self._block.residual
        sure = surely(residual) if residual is not None and not first.order else None
        keys: list[exp.Expr] = [exp.Ordered(this=self._resolve(first.key))] if first.ordered else []
        keys += [self._resolve(node) for node in first.order]
        if sure is not None:
            asked = exp.Case(ifs=[exp.If(this=self._resolve(sure), true=exp.Literal.number(0))])
            asked.set("default", exp.Literal.number(1))
            keys.append(exp.Ordered(this=asked))
        if keys:
            select.set("order", exp.Order(expressions=[*keys, exp.Ordered(this=copy_tree(self._row))]))

    def _bring(self, select: exp.Select) -> None:
        outputs = list(select.expressions)
        labels = []
        for i, node in enumerate(self._shown or ()):
            resolved = self._resolve(node)
            label = next((known.alias for known in outputs[1:] if known.this == resolved), None)
            if label is None:
                if isinstance(node, exp.Column) and node.name not in self._block.light:
                    return
                label = f"o{i}"
                outputs.append(aliased(resolved, label))
            labels.append(label)
        if labels:
            select.set("expressions", outputs)
            self.payload = tuple(labels)

    def _page(self, asked: tuple[Site, ...]) -> Materialize:
        name = f"{self._block.name}_page"
        order = exp.Order(expressions=[self._resolve(node) for node in self._order]) if self._order else None
        number = aliased(exp.Window(this=exp.RowNumber(), order=order), ORDINAL)
        select = self._rows(number, aliased(copy_tree(self._row), ROW), *self._carry(self._find_needed(asked)))
        self._restrict(select)
        if isinstance(self._limit, exp.Fetch) and order is not None:
            select.set("order", copy_tree(order))  # WITH TIES: no two rows have one number
        elif order is not None or self._limit is not None or self._offset is not None:
            select.order_by(exp.column(exp.to_identifier(ORDINAL, quoted=True)), copy=False)
        select.set("limit", self._limit)
        select.set("offset", self._offset)
        self._where = self._limit = self._offset = None
        self._order = (exp.Ordered(this=column(name, ORDINAL)),) if self._order else ()
        self._move_to(name)
        return Materialize(name, select, "rows that are returned")

    def _layers(self, asked: tuple[Site, ...]) -> Iterator[tuple[Site, ...]]:
        """Yield the sites in the order in which they are to be asked: those that hang on what others say after them."""
        waiting = {site.id: site for site in asked}
        while waiting:
            hanging = {site.id for site in waiting.values() if self._asked_first(site) & waiting.keys()}
            yield tuple(site for site in waiting.values() if site.id not in hanging)
            waiting = {name: site for name, site in waiting.items() if name in hanging}

    def _asked_first(self, site: Site) -> set[str]:
        """Return the sites that say whether a site is asked."""
        needed = self._asked_under(site)
        return set() if needed is None else {site_of(name) for name in text_columns(needed)}

    def _asked_under(self, site: Site) -> exp.Expr | None:
        """Return the condition under which a site is asked; where the database decides WHERE by it, always."""
        return None if site.id in self._asked_always else site.needed

    def _find_sorting(self, asked: tuple[Site, ...]) -> tuple[Site, ...]:
        """Return the sites that ORDER BY needs, with those that say whether one of them is asked."""
        wanted = {site.id for site in self._block.order_sites}
        while more := {name for site in asked if site.id in wanted for name in self._asked_first(site)} - wanted:
            wanted |= more
        return tuple(site for site in asked if site.id in wanted)

    def _projects(self, asked: tuple[Site, ...]) -> Iterator[TextStage]:
        return map(self._project, self._layers(asked))

    def _project(self, asked: tuple[Site, ...]) -> TextStage:
        number = len(set(self._texts.values())) + 1
        name = f"{self._block.name}_text" + (f"_{number}" if number > 1 else "")
        select = self._rows(aliased(copy_tree(self._row), ROW))
        if not self._where_sites:
            self._restrict(select)
        inputs = self._inputs(select, asked)
        self._texts |= {site.id: name for site in asked}
        sorting = {site_of(name) for node in self._order for name in text_columns(node)}
        sorts = tuple(site.id for site in asked if site.id in sorting)
        leaves_out = self._block.leaves_out_unknown
        return TextStage(name, self._block.name, select, inputs, sorts=sorts, leaves_out_unknown=leaves_out)

    def _finish(self) -> Materialize:
        outputs = [aliased(self._resolve(node), f"c{i}") for i, node in enumerate(self._block.outputs)]
        select = self._rows(*outputs, aliased(copy_tree(self._row), ROW))
        self._restrict(select)
        if self._order:
            order = exp.Order(expressions=[self._resolve(node) for node in self._order])
            select.append("expressions", aliased(exp.Window(this=exp.RowNumber(), order=order), ORDINAL))
            select.set("order", copy_tree(order))
        select.set("limit", self._limit)
        select.set("offset", self._offset)
        return Materialize(self._block.name, select, "the block's rows")

    # The parts of a SELECT

    def _rows(self, *outputs: exp.Expr) -> exp.Select:
        select = copy_tree(self._from)
        assert isinstance(select, exp.Select)
        select.set("expressions", list(outputs))
        for name in dict.fromkeys((self._kept, *self._texts.values())):
            if name is not None:
                on = exp.EQ(this=column(name, ROW), expression=copy_tree(self._row))
                select.append("joins", exp.Join(this=table(name), on=on))
        if self._block.with_ is not None:
            select.set("with_", copy_tree(self._block.with_))
        return select

    def _restrict(self, select: exp.Select) -> None:
        if self._where is not None:
            select.set("where", exp.Where(this=self._resolve(self._where)))

    def _resolve(self, node: exp.Expr) -> exp.Expr:
        def resolve(part: exp.Expr) -> exp.Expr:
            if _is_of_from(part):
                return column(self._carrier, part.name) if self._carrier else copy_tree(self._columns[part.name])
            if isinstance(part, exp.Column) and part.table == TEXT_ALIAS and site_of(part.name) in self._texts:
                return column(self._texts[site_of(part.name)], part.name)
            return part

        return copy_tree(node).transform(resolve, copy=False)

    def _carry(self, names: list[str]) -> list[exp.Expr]:
        return [aliased(self._resolve(column(FROM_ALIAS, name)), name) for name in names]

    def _move_to(self, name: str) -> None:
        self._carrier, self._kept = name, None
        self._from = exp.Select(from_=exp.From(this=table(name)))
        self._row = column(name, ROW)

    def _find_needed(self, sites: tuple[Site, ...]) -> list[str]:
        nodes = [*self._block.outputs, *(node for site in sites for node in (site.document, site.question))]
        nodes += [site.needed for site in sites if site.needed is not None]
        used = {c.name for node in nodes for c in nodes_of(node, exp.Column) if c.table == FROM_ALIAS}
        used |= {name for source in self._block.evidence for name in source.key}
        return [name for name in self._columns if name in used]

    def _inputs(self, select: exp.Select, sites: tuple[Site, ...]) -> tuple[SiteInput, ...]:
        labels: dict[tuple[str, str], str] = {}

        def add(node: exp.Expr, kind: str) -> str:
            key = (kind, node.sql())
            if key not in labels:
                labels[key] = f"{kind}{len(labels)}"
                select.append("expressions", aliased(self._resolve(node), labels[key]))
            return labels[key]

        def document(site: Site) -> exp.Expr:
            needed = self._asked_under(site)
            return site.document if needed is None else exp.Case(ifs=[exp.If(this=needed, true=site.document)])

        places = {source.site: source for source in self._block.evidence}
        inputs = []
        for site in sites:
            asked = None if isinstance(site.question, exp.Literal) else add(site.question, "q")
            found = SiteInput(site, add(document(site), "d"), asked)
            place = places.get(site.id)
            if place is not None:
                key = tuple(add(column(FROM_ALIAS, name), "k") for name in place.key)
                described = replace(site, about=place.about)
                found = SiteInput(described, found.document, asked, place.relation, place.column, key, place.named)
            inputs.append(found)
        return tuple(inputs)

    def _predicate(self, select: exp.Select, residual: Predicate) -> Predicate:
        carried: dict[exp.Expr, str] = {}

        def carry(atom: Structured | Computed) -> Structured | Computed:
            if isinstance(atom, Structured):
                return atom
            expression = copy_tree(atom.expression)
            for part in _settled_parts(expression):
                label = carried.setdefault(part.copy(), f"x{len(carried)}")
                part.replace(column(FROM_ALIAS, label))
            under = tuple((site, carry(condition)) for site, condition in atom.under)
            return replace(atom, expression=expression, under=under)

        for atom in with_conditions(atoms(residual)):
            if isinstance(atom, Structured):
                select.append("expressions", truth_output(self._resolve(atom.expression), atom.column))
        written = map_atoms(residual, lambda atom: carry(atom) if isinstance(atom, Computed) else atom)
        for part, label in carried.items():
            select.append("expressions", aliased(self._resolve(part), label))
        return written
