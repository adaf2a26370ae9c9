"""Text blocks of a query: what they read, compute and show, what leads to evidence, whether shown rows are certain."""

from __future__ import annotations

from collections.abc import Container, Iterator, Mapping
from dataclasses import dataclass, replace

from sqlglot import exp

from almanaq.suql.catalog.relations import ROW_COLUMN, Catalog, Relation, fold
from almanaq.suql.catalog.sources import from_items, qualified
from almanaq.suql.plan import blocks
from almanaq.suql.plan.blocks import is_aggregated, is_plain, windows_in
from almanaq.suql.plan.joins import has_outer_join
from almanaq.suql.plan.sites import (
    CLAUSES_OF_FROM,
    FROM_ALIAS,
    Site,
    SiteCollector,
    carried_name,
    carry,
    is_nested_call,
    is_of_block,
    own_columns,
    parts_beside,
)
from almanaq.suql.plan.stages import ROW, EvidenceSource, RowName, TextBlock
from almanaq.suql.syntax.nodes import aliased, column, nodes, table
from almanaq.suql.text_functions import (
    has_text,
    holds_fields,
    is_by_chance,
    is_model_call,
    is_similarity,
    is_text_call,
    nested_queries,
    own_nodes,
    own_text_calls,
)

Marked = tuple[str, int]
"""A block as it is written, and the number of its calls."""
KEEPS_UNKNOWN = "keeps_unknown"
"""What a block is marked by that keeps rows which an unknown answer decides."""
_POSITIVE = (exp.Where, exp.And, exp.Or, exp.Paren, exp.Exists, exp.In, exp.Subquery, exp.From, exp.Join, exp.Lateral)
"""What may stand between a query and the block around it: with fewer rows inside there are no more outside."""
_NEGATED = (exp.Paren, exp.Subquery, exp.Exists, exp.In)
"""What may stand between a query and the NOT that it is negated by."""


def keep_unknown(tree: exp.Query) -> frozenset[Marked]:
    """Mark the blocks of NOT EXISTS, NOT IN and EXCEPT that are to keep rows which an unknown answer decides.

    Such a row takes others out of the result, which then shows only rows that are in it whatever the answer is. Marked
    are blocks that read one table and decide by answers about its rows alone.
    """
    marked = []
    for block in nodes(tree):
        if isinstance(block, exp.Select) and _is_text_filter(block):
            negation = _negation_of(block)
            if negation is not None and all(_is_certain(call, tree, negation) for call in own_text_calls(block)):
                marked.append(block)
    for block in marked:
        block.meta[KEEPS_UNKNOWN] = block.sql(), len(own_text_calls(block))
    return frozenset(block.meta[KEEPS_UNKNOWN] for block in marked)


def kept_by(block: exp.Select) -> Marked | None:
    """Return the mark of a block that becomes a stage; None where some of its calls are made before."""
    marked: Marked | None = block.meta.get(KEEPS_UNKNOWN)
    return marked if marked is not None and marked[1] == len(own_text_calls(block)) else None


def _negation_of(block: exp.Select) -> exp.Expr | None:
    """Return the NOT around a block's EXISTS or IN, or the EXCEPT that takes its rows away."""
    node: exp.Expr = block
    while isinstance(parent := node.parent, _NEGATED) and (not isinstance(parent, exp.In) or node.arg_key == "query"):
        node = parent
    if isinstance(parent, exp.Except):
        return parent if node.arg_key == "expression" else None
    return parent if isinstance(parent, exp.Not) and isinstance(node.unnest(), exp.Exists | exp.In) else None


def _is_text_filter(block: exp.Select) -> bool:
    items, calls = list(from_items(block)), own_text_calls(block)
    if len(items) != 1 or not isinstance(items[0], exp.Table) or not is_plain(block) or is_by_chance(block):
        return False
    if block.args.get("offset") or (block.args.get("limit") and not isinstance(block.parent, exp.Exists)):
        return False
    if any(map(has_text, [*block.expressions, *nested_queries(block)])) or block.args.get("order"):
        return False
    about_rows = all(is_of_block(call, block) and not is_similarity(call) for call in calls)
    return bool(calls) and about_rows and not any(has_text(part) for call in calls for part in call.expressions)


def shows_only_certain_rows(tree: exp.Query) -> bool:
    """Return whether rows that an unknown answer drops can only be missing from the result of a query.

    So it is where answers stand in conditions, and as bare outputs of the query itself, of blocks that feed no
    NOT IN, NOT EXISTS, EXCEPT, outer join, aggregate, window or "first rows", unless these are marked (`keep_unknown`).
    """
    for call in filter(is_model_call, nodes(tree)):
        block = call.find_ancestor(exp.Select)
        kept_below = _negation_of(block) if block is not None and KEEPS_UNKNOWN in block.meta else None
        beside = is_nested_call(call) and call.find_ancestor(exp.Or) is not None  # is asked about NULL, if not left out
        if beside or not _is_certain(call, tree, kept_below):
            return False
    return True


def _is_certain(call: exp.Expr, tree: exp.Query, kept_below: exp.Expr | None) -> bool:
    """Return whether rows that an unknown answer decides can only be missing; they are kept below a negation."""
    node, nested = call, False
    while node is not tree:
        parent = node.parent
        if isinstance(parent, exp.Select):
            drops_only = node.arg_key in ("where", "from_", "joins")
            if not _keeps(parent) or not (drops_only or (parent is tree and _is_shown(node, call))):
                return False
            nested = True
        elif isinstance(parent, exp.Union) or (
            isinstance(parent, exp.Except) and (node.arg_key == "this" or parent is kept_below)
        ):
            if _is_cut(parent):
                return False
        elif parent is None or (nested and parent is not kept_below and not isinstance(parent, _POSITIVE)):
            return False
        node = parent
    return True


def _is_shown(part: exp.Expr, call: exp.Expr) -> bool:
    value = call
    while (around := value.parent) is not None and (isinstance(around, exp.Cast | exp.Paren) or holds_fields(around)):
        value = around
    return part.arg_key == "expressions" and value is part.unalias()


def _keeps(block: exp.Select) -> bool:
    if any(block.args.get(key) for key in ("group", "having", "qualify", "windows")) or _is_cut(block):
        return False
    distinct = block.args.get("distinct")
    if has_outer_join(block) or (distinct is not None and distinct.args.get("on") is not None):
        return False
    return not any(
        isinstance(node, exp.AggFunc | exp.Window)
        or (isinstance(node, exp.Anonymous) and not is_text_call(node) and not holds_fields(node))
        for output in block.expressions
        for node in own_nodes(output)
    )


def _is_cut(query: exp.Query) -> bool:
    """Return whether a query shows the first of its rows: without one of them, another moves up."""
    return any(query.args.get(key) for key in ("limit", "offset")) and query.args.get("order") is not None


def number_outputs(query: exp.Query, text_blocks: set[str]) -> tuple[exp.Query, tuple[tuple[str, str], ...]]:
    """Number the result's columns and add a hidden one that leads to the evidence, where rows can be distinguished."""
    at = query.unnest()
    if not isinstance(at, exp.Select):
        return query, tuple(_cite_sides(_sides_of(at), text_blocks))
    blocks.expand_output_names(at)
    at.set("expressions", [aliased(item.unalias(), f"c{i}") for i, item in enumerate(at.expressions)])
    evidence: list[tuple[str, str]] = []
    _group_distinct(at)
    distinct = at.args.get("distinct")  # a hidden column would take part in it
    for name, row in [] if distinct is not None and not distinct.args.get("on") else _rows_read(at, text_blocks):
        hidden = f"e{len(evidence)}"
        gathered = exp.ArrayAgg(this=row) if is_aggregated(at) else row
        at.append("expressions", aliased(gathered, hidden))
        evidence.append((name, hidden))
    return query, tuple(evidence)


def _group_distinct(block: exp.Select) -> None:
    """Write DISTINCT as the GROUP BY that it is, whose groups have rows; not where it is over groups or windows."""
    distinct, outputs = block.args.get("distinct"), [item.unalias() for item in block.expressions]
    keys = [output.copy() for output in outputs if output.find(exp.Column) is not None]
    plain = distinct is not None and not distinct.args.get("on") and not block.args.get("qualify")
    if plain and keys and not is_aggregated(block) and not windows_in(block) and not any(map(nested_queries, outputs)):
        block.set("distinct", None)
        block.set("group", exp.Group(expressions=keys))


def _sides_of(query: exp.Expr) -> list[exp.Select]:
    """Return the sides of UNION ALL that are SELECTs; [] where a side, or the whole, is anything else."""
    at = query.unnest()
    if isinstance(at, exp.Select):
        return [at]
    if not isinstance(at, exp.Union) or at.args.get("distinct"):
        return []
    left, right = _sides_of(at.this), _sides_of(at.expression)
    return [*left, *right] if left and right else []


def _cite_sides(sides: list[exp.Select], names: set[str]) -> Iterator[tuple[str, str]]:
    """Add to each side of a UNION ALL the hidden columns of all, which are NULL beside those of its own."""
    plain = [side for side in sides if side.args.get("distinct") is None and not is_aggregated(side)]
    found = [(side, *read) for side in plain for read in _rows_read(side, names)]
    for number, (owner, name, row) in enumerate(found):
        nothing = exp.Select(expressions=[column(name, ROW)], from_=exp.From(this=table(name)))
        for side in sides:
            shown = row if side is owner else exp.Subquery(this=nothing.where(exp.false()))
            side.append("expressions", aliased(shown, f"_e{number}"))
        yield name, f"_e{number}"


def _rows_read(block: exp.Select, names: set[str]) -> list[tuple[str, exp.Column]]:
    """Return the text blocks that a block reads, with their rows; derived tables on the way are made to show them."""
    found = []
    for item in from_items(block):
        if isinstance(item, exp.Table) and item.name in names:
            found.append((item.name, column(item.alias_or_name, ROW)))
        elif isinstance(item, exp.Subquery) and isinstance(item.this, exp.Select) and blocks.is_plain(item.this):
            for number, (name, row) in enumerate(_rows_read(item.this, names)):
                label = f"{ROW}_{number}"
                item.this.append("expressions", aliased(row, label))
                found.append((name, column(item.alias_or_name, label)))
    return found


_TITLE = 120
"""Characters of a relation's description that readers of its texts are shown."""


def text_block(
    name: str,
    block: exp.Select,
    catalog: Catalog,
    common: Container[str],
    row_id: exp.Expr | None,
    copies: Mapping[str, exp.Select] | None = None,
) -> TextBlock:
    origins = _Origins(catalog, common, copies or {})
    relations = origins.relations(block)
    columns = carry(own_columns(block, *parts_beside(block, CLAUSES_OF_FROM)), FROM_ALIAS)
    collector = SiteCollector()
    outputs = tuple(collector.replace(item.unalias()) for item in block.expressions)
    where = collector.replace(block.args["where"].this) if block.args.get("where") is not None else None
    keys = block.args["order"].expressions if block.args.get("order") is not None else ()
    order = tuple(collector.replace(node) for node in keys)
    source = exp.Select(**{clause: block.args.get(clause) for clause in CLAUSES_OF_FROM})
    light = frozenset(name for name, c in columns.items() if _is_light(c, relations))
    items = {item.alias_or_name: item for item in from_items(block)}
    evidence = tuple(e for site in collector.sites for e in _evidence(site, columns, items, origins))
    return TextBlock(
        name,
        source,
        tuple(columns.items()),
        outputs,
        where,
        order,
        block.args.get("limit"),
        block.args.get("offset"),
        collector.sites,
        evidence,
        row_id,
        light=light,
    )


def _is_light(reference: exp.Expr, relations: dict[str, Relation]) -> bool:
    relation = relations.get(reference.table) if isinstance(reference, exp.Column) else None
    known = relation.column(reference.name) if relation is not None else None
    return known is not None and known.is_light


@dataclass(frozen=True, slots=True)
class _Origin:
    relation: Relation
    column: str
    key: tuple[exp.Expr, ...]
    labels: tuple[str, ...]
    named: RowName


@dataclass(frozen=True, slots=True)
class _Origins:
    catalog: Catalog
    common: Container[str]
    copies: Mapping[str, exp.Select]

    def relations(self, block: exp.Select) -> dict[str, Relation]:
        found = {item.alias_or_name: self._relation(item) for item in from_items(block)}
        return {alias: relation for alias, relation in found.items() if relation is not None}

    def _relation(self, item: exp.Expr | None) -> Relation | None:
        named = isinstance(item, exp.Table) and item.name not in self.common and item.name not in self.copies
        return self.catalog.find(item.name) if named and item is not None else None

    def of(self, reference: exp.Expr | None, items: Mapping[str, exp.Expr]) -> _Origin | None:
        """Return the origin of a column of FROM items; blocks on the way are made to show what names its row."""
        if not isinstance(reference, exp.Column) or reference.table not in items:
            return None
        item = items[reference.table]
        if (relation := self._relation(item)) is not None:
            if item.alias_column_names:  # they may rename the key
                return None
            return _in_relation(relation, reference, self.catalog.dialect)
        copy = item.this if isinstance(item, exp.Subquery) else self.copies.get(item.name)
        if not isinstance(copy, exp.Select):
            return None
        made = next((made.unalias() for made in copy.selects if made.alias_or_name == reference.name), None)
        found = self.of(_find_gathered(made), {inner.alias_or_name: inner for inner in from_items(copy)})
        if found is None:
            return None
        if not (isinstance(made, exp.Column) and _gives_each_row(copy)):
            return replace(found, key=(), labels=(), named=RowName.NOTHING)
        for label, node in zip(found.labels, found.key, strict=True):
            if label not in copy.named_selects:
                copy.append("expressions", aliased(node.copy(), label))
        key = tuple(column(reference.table, label) for label in found.labels)
        return replace(found, key=key, labels=tuple(map(carried_name, key)))


def _find_gathered(made: exp.Expr | None) -> exp.Expr | None:
    """Return what an aggregate that puts texts together is made of; another expression as it is."""
    while isinstance(made, exp.Filter | exp.ArrayAgg | exp.GroupConcat | exp.Order | exp.WithinGroup):
        made = made.this
    return made


def _gives_each_row(block: exp.Select) -> bool:
    distinct = block.args.get("distinct")
    if block.args.get("group") or block.args.get("having") or (distinct is not None and not distinct.args.get("on")):
        return False
    return not any(isinstance(node, exp.AggFunc) for output in block.expressions for node in own_nodes(output))


def _in_relation(relation: Relation, reference: exp.Column, dialect: str) -> _Origin:
    spelled = relation.column(reference.name)
    name = spelled.name if spelled else reference.name
    if relation.key:
        key = tuple(column(reference.table, fold(part, dialect, quoted=True)) for part in relation.key)
        return _Origin(relation, name, key, tuple(map(carried_name, key)), RowName.KEY)
    if relation.row_id is None:
        return _Origin(relation, name, (), (), RowName.NOTHING)
    named = RowName.NUMBER if relation.numbered else RowName.ADDRESS
    address = qualified(relation.row_id, reference.table)
    return _Origin(relation, name, (address,), (f"{reference.table}.{ROW_COLUMN}",), named)


def _evidence(
    site: Site, columns: dict[str, exp.Expr], items: Mapping[str, exp.Expr], origins: _Origins
) -> list[EvidenceSource]:
    reference = columns.get(site.document.name) if isinstance(site.document, exp.Column) else None
    found = origins.of(reference, items)
    if found is None:
        return []
    columns.update(zip(found.labels, found.key, strict=True))
    relation, name = found.relation, found.column
    return [EvidenceSource(site.id, relation.name, name, found.labels, _about(relation, name), found.named)]


def _about(relation: Relation, column_name: str) -> str:
    title = " ".join(relation.description.split())
    title = title if len(title) <= _TITLE else title[: _TITLE - 1] + "…"
    return f"{column_name} of {relation.name}" + (f": {title}" if title else "")
