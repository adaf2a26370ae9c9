"""Plain SELECT blocks with text functions → stages."""

from __future__ import annotations

from collections.abc import Container

from sqlglot import exp

from almanaq.suql.catalog.relations import ROW_COLUMN, Catalog, Relation
from almanaq.suql.catalog.sources import from_items
from almanaq.suql.plan.references import carried_name, column, own_columns, qualified, repoint
from almanaq.suql.plan.sites import FROM_ALIAS, Site, SiteCollector
from almanaq.suql.plan.stages import EvidenceSource, RowName, TextBlock

_TITLE = 120
"""Characters of a relation's description that readers of its texts are shown."""


def text_block(
    name: str, block: exp.Select, catalog: Catalog, common: Container[str], row_id: exp.Expr | None
) -> TextBlock:
    """Return the stage that a plain block becomes.

    Args:
        common: the names that stand for members of WITH in it.
        row_id: identifies a row of FROM, when that is just one base table with row ids.
    """
    relations = _relations(block, catalog, common)
    columns = _refer_to_from(block)
    collector = SiteCollector()
    outputs = tuple(collector.replace(item.unalias()) for item in block.expressions)
    where = collector.replace(block.args["where"].this) if block.args.get("where") is not None else None
    keys = block.args["order"].expressions if block.args.get("order") is not None else ()
    order = tuple(collector.replace(node) for node in keys)
    source = exp.Select(**{clause: block.args.get(clause) for clause in ("from_", "joins", "laterals")})
    light = frozenset(name for name, c in columns.items() if _is_light(c, relations))
    evidence = tuple(e for site in collector.sites for e in _evidence(site, columns, relations))
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


def _refer_to_from(block: exp.Select) -> dict[str, exp.Expr]:
    """Write a plain block's references to its FROM through FROM_ALIAS; give what each name stands for."""
    clauses = ("from_", "joins", "laterals")
    parts = [node for key, value in block.args.items() if key not in clauses for node in _nodes(value)]
    references = own_columns(block, *parts)
    columns: dict[str, exp.Expr] = {carried_name(c): c.copy() for c in references}
    repoint(references, lambda c: column(FROM_ALIAS, carried_name(c)))
    return columns


def _nodes(value: object) -> list[exp.Expr]:
    return [node for node in (value if isinstance(value, list) else [value]) if isinstance(node, exp.Expr)]


def _relations(block: exp.Select, catalog: Catalog, common: Container[str]) -> dict[str, Relation]:
    """Return the relation of each alias in FROM that names a base table."""
    tables = [item for item in from_items(block) if isinstance(item, exp.Table) and item.name not in common]
    found = {item.alias_or_name: catalog.find(item.name) for item in tables}
    return {alias: relation for alias, relation in found.items() if relation is not None}


def _is_light(reference: exp.Expr, relations: dict[str, Relation]) -> bool:
    relation = relations.get(reference.table) if isinstance(reference, exp.Column) else None
    known = relation.column(reference.name) if relation is not None else None
    return known is not None and known.is_light


def _evidence(site: Site, columns: dict[str, exp.Expr], relations: dict[str, Relation]) -> list[EvidenceSource]:
    """Return where a site's document stands, if it is a plain column of a relation.

    What names its row joins the block's columns: its key, or else its number or address in the relation.
    """
    reference = columns.get(site.document.name) if isinstance(site.document, exp.Column) else None
    if not isinstance(reference, exp.Column) or reference.table not in relations:
        return []
    relation = relations[reference.table]
    spelled = relation.column(reference.name)
    key = [column(reference.table, name.lower()) for name in relation.key]
    columns.update({carried_name(node): node for node in key})
    names, named = tuple(map(carried_name, key)), RowName.KEY
    if not key and relation.row_id is not None:
        names = (f"{reference.table}.{ROW_COLUMN}",)
        columns[names[0]] = qualified(relation.row_id, reference.table)
        named = RowName.NUMBER if relation.numbered else RowName.ADDRESS
    elif not key:
        named = RowName.NOTHING
    name = spelled.name if spelled else reference.name
    return [EvidenceSource(site.id, relation.name, name, names, _about(relation, name), named)]


def _about(relation: Relation, column_name: str) -> str:
    """Return where a document stands, for its readers: the column, the relation, and the relation's title."""
    title = " ".join(relation.description.split())
    title = title if len(title) <= _TITLE else title[: _TITLE - 1] + "…"
    return f'column "{column_name}" of table "{relation.name}"' + (f": {title}" if title else "")
