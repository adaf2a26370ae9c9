"""`IN (SELECT … answer …)` in WHERE: of each value one row will do, and only of values that the block may look for."""

from __future__ import annotations

from collections.abc import Container, Sequence
from dataclasses import dataclass, replace

from sqlglot import exp

from almanaq.suql.catalog.sources import from_items
from almanaq.suql.plan.blocks import is_cut_or_grouped, is_plain
from almanaq.suql.plan.joins import has_outer_join
from almanaq.suql.plan.matches_wanted import MatchesWanted, matches_wanted
from almanaq.suql.plan.predicates import conjuncts
from almanaq.suql.plan.references import aliased, column, is_correlated, is_of_block, quoted, where_of
from almanaq.suql.plan.stages import TextBlock
from almanaq.suql.syntax.nodes import nodes_of
from almanaq.suql.text_functions import has_text, is_by_chance

OUTER = "_outer"
"""The column of a derived table that holds the row of the enclosing block it belongs to."""
PLACES, PLACE, _VALUE, _NUMBERED = "_places", "_place", "_value", "_numbered"
"""The derived table that has each value that is looked for with its first place in an ORDER BY, and its columns."""


@dataclass(frozen=True, slots=True)
class OneWillDo:
    """A block of which one row for each value will do.

    Attributes:
        wanted: so many values will do, because of a LIMIT around the block; None: all are wanted.
        ordered: these have to be the first of those that pass, in the order of the ORDER BY around the block.
        place: the column that has the place of what is looked for in that order, and stands for it; None where the
            values are such places.
    """

    block: exp.Select
    wanted: int | None = None
    ordered: bool = False
    place: exp.Column | None = None

    def with_place(self) -> OneWillDo:
        """Append the place to the block's outputs; where rows were copied without it, all values are wanted."""
        if self.place is None:
            return self
        if all(item.alias_or_name != self.place.table for item in from_items(self.block)):
            return OneWillDo(self.block)
        self.block.append("expressions", aliased(self.place.copy(), PLACE))
        return self

    def told_to(self, stage: TextBlock, labels: Sequence[str]) -> TextBlock:
        """Return the stage that the block became, with what it may stop at.

        Args:
            labels: the names of its outputs; its place follows them.
        """
        value = labels.index(OUTER) if OUTER in labels else 0  # of EXISTS the row around it; of IN what is looked for
        key = stage.outputs[value if self.place is None else len(labels)]
        return replace(stage, semi_join_key=key, values_wanted=self.wanted, values_ordered=self.ordered)


def restrict_semi_joins(block: exp.Select, named: Container[object]) -> list[OneWillDo]:
    """Look up in each `x IN (SELECT y …)` of a block's WHERE only values that `x` has in rows that may be kept.

    `FROM t WHERE c AND x IN (SELECT y FROM r WHERE f(r.z))` becomes
    `FROM t WHERE c AND x IN (SELECT y FROM r WHERE f(r.z) AND y IN (SELECT x FROM t WHERE c))`. Under
    `ORDER BY k LIMIT 3` these values come with their places in that order, and r is joined to them.

    Args:
        named: the members of WITH, which are not read once more.

    Returns:
        The nested blocks of which one row for each value will do.
    """
    found = []
    for part in conjuncts(where_of(block)):
        nested = _nested_block(part)
        if nested is not None and not is_correlated(nested):
            looked_for, whole = _looked_for(block, part, named)
            found.append(_restricted(nested, part, looked_for, matches_wanted(part) if whole else None))
    return found


def _restricted(
    nested: exp.Select, part: exp.Expr, looked_for: _LookedFor | None, wanted: MatchesWanted | None
) -> OneWillDo:
    """Restrict the block of `x IN (SELECT y …)` to the values that are looked for."""
    value = nested.expressions[0].unalias().copy()
    keys = wanted.keys if wanted is not None else ()
    if looked_for is None:
        return OneWillDo(nested)
    if keys and wanted is not None and part.this.find(exp.Column) is not None and not has_outer_join(nested):
        same = exp.EQ(this=value, expression=column(PLACES, _VALUE))
        nested.append("joins", exp.Join(this=looked_for.places(keys), on=same))
        return OneWillDo(nested, wanted.rows, ordered=True, place=column(PLACES, PLACE))
    nested.where(exp.In(this=value, query=exp.Subquery(this=looked_for.values())), copy=False)
    return OneWillDo(nested, wanted.rows if wanted is not None and not keys else None)


def _nested_block(part: exp.Expr) -> exp.Select | None:
    """Return the block of `x IN (SELECT y …)` whose rows of one value may stand for each other."""
    query = part.args.get("query") if isinstance(part, exp.In) else None
    block = query.this if isinstance(query, exp.Subquery) else query
    if not isinstance(block, exp.Select) or not has_text(block) or len(block.expressions) != 1 or has_text(part.this):
        return None
    value = block.expressions[0].unalias()
    if value.find(exp.Column) is None or has_text(value) or is_by_chance(block) or is_cut_or_grouped(block):
        return None
    distinct = block.args.get("distinct")
    if distinct is not None and distinct.args.get("on") is None:
        block.set("distinct", None)  # IN takes a value once
    return block if is_plain(block) else None


@dataclass(frozen=True, slots=True)
class _LookedFor:
    """What a block looks for: a value of its rows, of tables that are read once more under other names."""

    value: exp.Expr
    items: list[exp.Expr]
    conditions: list[exp.Expr]

    def values(self, *others: exp.Expr) -> exp.Select:
        """Return the query for the values, and for others of the rows that they are of."""
        apart = {item.alias_or_name: f"_of_{item.alias_or_name}" for item in self.items}
        select = exp.Select(expressions=[self.value.copy(), *others])
        if self.conditions:
            select.where(*(each.copy() for each in self.conditions), copy=False)
        for node in nodes_of(select, exp.Column):
            node.replace(column(apart[node.table], node.name))
        first, *more = [_named(item, apart[item.alias_or_name]) for item in self.items]
        select.set("from_", exp.From(this=first))
        select.set("joins", [exp.Join(this=other, kind="CROSS") for other in more] or None)
        return select

    def places(self, keys: tuple[exp.Expr, ...]) -> exp.Subquery:
        """Return the values, each with the first place that a row with it has in an order."""
        number = exp.Window(this=exp.RowNumber(), order=exp.Order(expressions=[key.copy() for key in keys]))
        numbered = self.values(aliased(number, PLACE))
        numbered.expressions[0].replace(aliased(numbered.expressions[0].copy(), _VALUE))
        first = aliased(exp.Min(this=column(_NUMBERED, PLACE)), PLACE)
        select = exp.Select(
            expressions=[aliased(column(_NUMBERED, _VALUE), _VALUE), first],
            from_=exp.From(this=exp.Subquery(this=numbered, alias=exp.TableAlias(this=quoted(_NUMBERED)))),
            group=exp.Group(expressions=[column(_NUMBERED, _VALUE)]),
        )
        return exp.Subquery(this=select, alias=exp.TableAlias(this=quoted(PLACES)))


def _looked_for(block: exp.Select, part: exp.Expr, named: Container[object]) -> tuple[_LookedFor | None, bool]:
    """Return what a block looks for, and whether each of its values is that of a row which is kept.

    None where the block reads more than tables.
    """
    items, all_joins = list(from_items(block)), block.args.get("joins") or []
    value = part.this
    tables = all(_is_table(item) and item.name not in named for item in items)
    if not tables or has_outer_join(block) or any(set(_given(join)) - {"this", "on", "kind"} for join in all_joins):
        return None, False
    if value.find(exp.Query, exp.Tuple) or not is_of_block(value, block) or is_by_chance(value):
        return None, False
    joined = [condition for join in all_joins for condition in conjuncts(join.args.get("on"))]
    parts = [each for each in [*conjuncts(where_of(block)), *joined] if each is not part]
    usable = [each for each in parts if not (has_text(each) or each.find(exp.Query) or is_by_chance(each))]
    usable = [each for each in usable if is_of_block(each, block)]
    return _LookedFor(value, items, usable), len(usable) == len(parts)


def _is_table(item: exp.Expr) -> bool:
    alias = item.args.get("alias")
    listed = alias is not None and bool(alias.args.get("columns"))
    plain = isinstance(item, exp.Table) and isinstance(item.this, exp.Identifier)
    return plain and not listed and not set(_given(item)) - {"this", "alias"}


def _given(node: exp.Expr) -> list[str]:
    return [key for key, value in node.args.items() if value]


def _named(item: exp.Expr, name: str) -> exp.Table:
    return exp.Table(this=item.this.copy(), alias=exp.TableAlias(this=quoted(name)))
