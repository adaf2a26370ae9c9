"""Text blocks of a query: what they read, compute and show, and the columns that lead to their evidence."""

from __future__ import annotations

from collections.abc import Container, Mapping
from dataclasses import dataclass, replace

from sqlglot import exp

from almanaq.suql.catalog.relations import ROW_COLUMN, Catalog, Relation
from almanaq.suql.catalog.sources import from_items
from almanaq.suql.plan import blocks
from almanaq.suql.plan.references import CLAUSES_OF_FROM, carried_name, carry, own_columns, parts_beside, qualified
from almanaq.suql.plan.sites import FROM_ALIAS, Site, SiteCollector
from almanaq.suql.plan.stages import ROW, EvidenceSource, RowName, TextBlock
from almanaq.suql.syntax.nodes import aliased, column
from almanaq.suql.text_functions import own_nodes


def number_outputs(query: exp.Query, text_blocks: set[str]) -> tuple[exp.Query, tuple[tuple[str, str], ...]]:
    """Number the result's columns and add a hidden one that leads to the evidence, where rows can be distinguished."""
    at = query.unnest()
    if not isinstance(at, exp.Select):
        return query, ()
    blocks.expand_output_names(at)
    at.set("expressions", [aliased(item.unalias(), f"c{i}") for i, item in enumerate(at.expressions)])
    evidence: list[tuple[str, str]] = []
    for item in from_items(at):
        name = _block_read(item, text_blocks)
        if name is None:
            continue
        if at.args.get("distinct"):  # which a hidden column would take part in
            continue
        hidden = f"e{len(evidence)}"
        row = _expose_row(item, name)
        gathered = exp.ArrayAgg(this=row) if blocks.is_aggregated(at) else row
        at.append("expressions", aliased(gathered, hidden))
        evidence.append((name, hidden))
    return query, tuple(evidence)


def _block_read(item: exp.Expr, names: set[str]) -> str | None:
    if isinstance(item, exp.Subquery) and isinstance(item.this, exp.Select) and blocks.is_plain(item.this):
        source = item.this.args.get("from_")
        item = source.this if source is not None and not item.this.args.get("joins") else item
    return item.name if isinstance(item, exp.Table) and item.name in names else None


def _expose_row(item: exp.Expr, name: str) -> exp.Expr:
    if isinstance(item, exp.Subquery):
        item.this.append("expressions", aliased(column(name, ROW), ROW))
    return column(item.alias_or_name, ROW)


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
    """Return the stage that a plain block becomes.

    Args:
        copies: what tables that earlier stages make are copies of; they are made to carry what names a row.
        common: the names that stand for members of WITH in it.
        row_id: identifies a row of FROM, when that is just one base table with row ids.
    """
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
            return None if item.alias_column_names else _in_relation(relation, reference)  # they may rename the key
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
    if any(block.args.get(clause) for clause in ("group", "having", "distinct", "qualify")):
        return False
    return not any(isinstance(node, exp.AggFunc) for output in block.expressions for node in own_nodes(output))


def _in_relation(relation: Relation, reference: exp.Column) -> _Origin:
    spelled = relation.column(reference.name)
    name = spelled.name if spelled else reference.name
    if relation.key:
        key = tuple(column(reference.table, part.lower()) for part in relation.key)
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
