"""Edit: what a follow-up changes of an earlier query, and the one function that changes it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from sqlglot import exp
from sqlglot.optimizer.simplify import simplify

from almanaq.agent.local_old import sql, trees
from almanaq.agent.local_old.schema_index import Place
from almanaq.suql.catalog.relations import Relation

SAME = -1
"""The LIMIT that the query has."""


@dataclass(frozen=True, slots=True)
class Edit:
    """A change of a query.

    Attributes:
        tree: the query that is changed.
        minus: the conditions that go; `plus` those that come.
        show: columns of its main relation that it is to show, too.
        order: (expression, descending) of the rows; () for the order that they have.
        unused, corrections, keep: as in Parsed.
    """

    tree: exp.Select
    minus: Sequence[exp.Expr] = ()
    plus: Sequence[exp.Expr] = ()
    show: Sequence[str] = ()
    order: Sequence[tuple[str, bool]] = ()
    limit: int | None = SAME
    unused: tuple[str, ...] = ()
    corrections: tuple[tuple[str, str], ...] = ()
    keep: tuple[str, ...] = ()


def applied(edit: Edit, places: Mapping[str, Place]) -> exp.Select:
    """Return the changed query."""
    kept = [each for each in trees.conditions(edit.tree) if each not in edit.minus]
    tree = trees.with_conditions(edit.tree, [*kept, *edit.plus])
    have = {item.unalias().name for item in tree.expressions}
    qualified = trees.qualifier(tree) is not None
    more = [sql.column(places[name], qualified) for name in edit.show if name in places and name not in have]
    if more:
        tree = trees.showing(tree, [*map(trees.write, tree.expressions), *more])
    limit = trees.limit_of(tree) if edit.limit == SAME else edit.limit
    if edit.order:
        return trees.ordered(tree, edit.order, limit)
    return tree if edit.limit == SAME else trees.limited(tree, limit)


def exchanged(
    old: Sequence[exp.Expr], new: Sequence[exp.Expr], main: Relation, *, all_alike: bool
) -> tuple[exp.Expr, ...]:
    """Return the conditions in whose place new ones come: those that contradict them; with `all_alike`, those on the
    same column, or else the last question to a text.
    """
    gone = [each for each in old for one in new if _alike(each, one) and (all_alike or _contradict(each, one, main))]
    texts = [each for each in old if trees.reads_text(each)]
    if all_alike and texts and not gone and all(map(trees.reads_text, new)):
        gone = texts[-1:]
    return tuple(gone)


def excludes(one: exp.Expr, other: exp.Expr) -> bool:
    """Return whether no row can fulfil both of two conditions of columns: `age > 5` and `age < 5`."""
    if trees.reads_text(one) or trees.reads_text(other):
        return False
    return isinstance(simplify(exp.and_(one.copy(), other.copy())), exp.Boolean)


def compared(condition: exp.Expr) -> frozenset[str]:
    """Return the columns that a condition compares with literals."""
    found = set()
    for node in condition.find_all(exp.Binary, exp.In, exp.Between):
        parts = [part for part in (*node.args.values(), *node.expressions) if isinstance(part, exp.Expr)]
        if any(isinstance(part, exp.Literal) for part in parts):
            for part in parts:
                inner = part.this.unnest() if isinstance(part, exp.Any) else part
                found |= {inner.name} if isinstance(inner, exp.Column) else set()
                found |= {trees.write(inner)} if isinstance(inner, exp.Anonymous) else set()
    return frozenset(found) or trees.columns(condition)


def _alike(one: exp.Expr, other: exp.Expr) -> bool:
    return compared(one) == compared(other) and trees.reads_text(one) == trees.reads_text(other)


def _contradict(one: exp.Expr, other: exp.Expr, main: Relation) -> bool:
    """Return whether both ask a column, which holds one value, to be that."""
    for each in (one, other):
        named = each.this if isinstance(each, exp.EQ | exp.In) else None
        column = main.column(named.name) if isinstance(named, exp.Column) else None
        if column is None or column.array:
            return False
    return True
