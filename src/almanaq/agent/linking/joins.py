"""Ways from one relation to another along foreign keys, declared or evident from the names of columns."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache

from sqlglot import exp

from almanaq.agent.linking.columns import LinkedColumn
from almanaq.agent.linking.words import identifier_stems
from almanaq.errors import AlmanaqError
from almanaq.suql.catalog.relations import Catalog, Column, Relation
from almanaq.text.sql_literals import is_plain

Finds = Callable[[exp.Select], bool]
"""Says whether a query finds a row."""
_FARTHEST = 3
_FAR = 100
_KEY_ENDS, _NAMES = ("code", "id", "key", "no", "nr", "number"), ("name", "title", "label", "description")
_MOST_RELATIONS, _FIRST = 40, 4
"""Relations between which keys are looked for by their values; columns of one that may be its key."""


@dataclass(frozen=True, slots=True)
class Hop:
    """One step: `left.left_column = right.right_column`.

    Attributes:
        single: a left row has at most one right row, as far as keys say.
        near: some left rows have no right row, though nothing says that none is meant.
        unlike: one column is of text and the other of numbers; they are compared as text.
    """

    left: str
    left_column: str
    right: str
    right_column: str
    single: bool
    unlike: bool = False
    near: bool = False

    @property
    def back(self) -> Hop:
        """The step the other way, on which a row may have several."""
        return Hop(self.right, self.right_column, self.left, self.left_column, False, self.unlike)

    @property
    def own(self) -> exp.Expr:
        return self._compared(column_of(self.left, self.left_column))

    @property
    def theirs(self) -> exp.Expr:
        return self._compared(column_of(self.right, self.right_column))

    def _compared(self, column: exp.Expr) -> exp.Expr:
        return exp.cast(column, "text") if self.unlike else column


Way = tuple[Hop, ...]


class JoinGraph:
    """How the relations of a catalog belong together.

    Args:
        finds: says whether a query finds a row; None where nothing can be asked, and only declared keys count.
    """

    def __init__(self, catalog: Catalog, finds: Finds | None = None) -> None:
        self._catalog = catalog
        self._edges = edges(catalog)
        self._finds = cache(self._ask) if finds is not None else None
        self._find = finds
        self._add_held_keys()
        self.ways = cache(self._ways)
        self.is_single = cache(self._is_single)

    def _add_held_keys(self) -> None:
        """Add the steps along columns that are called as other rows are, and hold nothing but a key of these.

        `cities.country_code` leads to `countries` where each of its values is one of `countries.iso`.
        """
        relations = self._catalog.relations
        for relation in relations if self._finds is not None and len(relations) <= _MOST_RELATIONS else ():
            for other in relations:
                if other is relation or any(hop.right == other.name for hop in self._edges[relation.name]):
                    continue
                pairs = [
                    (own, key)
                    for own in relation.columns
                    for key in other.columns[:_FIRST]
                    if _may_lead(own, key, other)
                ]
                pairs.sort(key=lambda pair: pair[0].name != pair[1].name)
                found = (pair for pair in pairs if self._holds_key(relation, pair[0], other, pair[1]))
                if (pair := next(found, None)) is not None:
                    _add(self._edges, _hop(relation, pair[0].name, other, pair[1].name))

    def _holds_key(self, relation: Relation, own: Column, other: Relation, key: Column) -> bool:
        """Return whether a column holds values of another that is unique, and no others."""
        if (
            own.type != key.type
            or own.private
            or key.private
            or not (own.type == "text" or "int" in own.type.casefold())
        ):
            return False
        held, theirs = column_of("", own.name), column_of("", key.name)
        if own.type != "text" and own.name.casefold() in _KEY_ENDS:
            # The `id` of each of two tables may only number its rows, and hold the same numbers by chance.
            if not all(self._is_sparse(of, column) for of, column in ((relation, held), (other, theirs))):
                return False
        there = is_there(held.copy())
        known = exp.select(theirs).from_(table_of(other.name)).where(is_there(theirs.copy()))
        strange = exp.and_(there, exp.Not(this=exp.In(this=held, query=known.subquery())))
        return (
            self.finds(relation.name, there) is True
            and self.finds(other.name, is_missing(theirs.copy())) is False
            and self.finds(relation.name, strange) is False
            and self.is_unique(other.name, key.name)
        )

    def _is_sparse(self, relation: Relation, column: exp.Column) -> bool:
        """Return whether whole numbers of a column go beyond the number of rows: they do not merely count them."""
        beyond = exp.GT(this=column.copy(), expression=exp.Literal.number(2 * (relation.rows or 0)))
        return relation.rows is not None and self.finds(relation.name, beyond) is True

    def _ways(self, start: str) -> dict[str, Way]:
        """Return the shortest way to every relation within three hops, () for `start` itself."""
        found: dict[str, Way] = {start: ()}
        queue = deque([start])
        while queue:
            here = queue.popleft()
            for hop in self._edges.get(here, ()) if len(found[here]) < _FARTHEST else ():
                if hop.right not in found:
                    found[hop.right] = (*found[here], hop)
                    queue.append(hop.right)
        return found

    def hops(self, relation: str) -> list[Hop]:
        """Return the steps that lead from a relation."""
        return self._edges.get(relation, [])

    def is_ambiguous(self, start: str, target: str) -> bool:
        """Return whether two shortest ways lead to a relation: a match has a home team and an away team."""
        way = self.ways(start).get(target, ())
        for i, hop in enumerate(way):
            if sum(other.right == hop.right for other in self._edges[hop.left]) > 1:
                return True
            others = [o for o in self._edges[hop.left] if o.right != hop.right and i + 1 < len(way)]
            if any(o.right == way[i + 1].right for other in others for o in self._edges[other.right]):
                return True
        return False

    def _is_single(self, start: str, target: str) -> bool:
        """Return whether each row of `start` has at most one of `target`."""
        way = self.ways(start).get(target)
        return way is not None and all(self._leads_to_one(hop) for hop in way)

    def _leads_to_one(self, hop: Hop) -> bool:
        relation = self._catalog.relation(hop.right)
        if relation.key and set(relation.key) <= {hop.right_column}:
            return True
        return hop.single if self._finds is None else self.is_unique(hop.right, hop.right_column)

    def is_unique(self, relation: str, name: str) -> bool:
        """Return whether no two rows share a value of a column; False where nothing can be asked."""
        column = column_of(relation, name)
        repeated = exp.select("1").from_(table_of(relation)).where(is_there(column))
        return self._finds is not None and self._finds(repeated.group_by(column).having("COUNT(*) > 1")) is False

    def finds(self, table: str, condition: exp.Expr) -> bool | None:
        """Return whether a row fulfils a condition; None where nothing can be asked."""
        return None if self._finds is None else self._finds(exp.select("1").from_(table_of(table)).where(condition))

    def is_beyond(self, column: LinkedColumn, number: float) -> bool:
        """Return whether a number is far beyond all that a column holds."""
        near = exp.GTE(this=column_of(column.relation.name, column.name), expression=exp.Literal.number(number / _FAR))
        return not column.cast and self.finds(column.relation.name, near) is False

    def _ask(self, query: exp.Select) -> bool | None:
        try:
            return self._find(query.limit(1)) if self._find is not None else None
        except AlmanaqError:
            return None


def _may_lead(own: Column, key: Column, other: Relation) -> bool:
    """Return whether a column is called as a key of other rows: by its name, or by their noun ("country_code")."""
    called, noun = "".join(identifier_stems(own.name)), "".join(identifier_stems(other.name))
    same = own.name.casefold() == key.name.casefold()
    same = same and (called.endswith(_KEY_ENDS) or (own.type == "text" and called not in _NAMES))
    return same or (called.startswith(noun) and called.removeprefix(noun) in ("", *_KEY_ENDS, "name", "abbr"))


def column_of(relation: str, name: str) -> exp.Column:
    """Return a column with its relation's name before it."""
    table = exp.to_identifier(relation, quoted=not is_plain(relation)) if relation else None
    return exp.Column(this=exp.to_identifier(name, quoted=not is_plain(name)), table=table)


def table_of(name: str) -> exp.Expr:
    """Return a relation as FROM names it; one with a schema before it has its whole name as alias, as `column_of`."""
    if "." not in name:
        return exp.Table(this=exp.to_identifier(name, quoted=not is_plain(name)))
    table = exp.to_table(".".join(f'"{part}"' for part in name.split(".")))
    return exp.alias_(table, name, quoted=True, table=True)


def is_missing(column: exp.Expr) -> exp.Expr:
    """Return the condition that there is no value."""
    return exp.Is(this=column, expression=exp.Null())


def is_there(column: exp.Expr) -> exp.Expr:
    """Return the condition that there is a value."""
    return exp.Not(this=is_missing(column))


def edges(catalog: Catalog) -> dict[str, list[Hop]]:
    """Return the hops from every relation: declared foreign keys of one column, else keys evident by name."""
    found: dict[str, list[Hop]] = {r.name: [] for r in catalog.relations}
    named_after = {other.name: words for other in catalog.relations if (words := _named_after(other))}
    for relation in catalog.relations:
        linked = set()
        for own, other_name, theirs in relation.foreign_keys:
            other = catalog.find(other_name)
            if other is not None and len(own) == len(theirs) == 1:
                _add(found, _hop(relation, own[0], other, theirs[0]))
                linked.add(other.name)
        for near in relation.near_references:
            other = catalog.find(near.relation)
            if other is not None and other.name not in linked:
                _add(found, replace(_hop(relation, near.column, other, near.key), near=True))
                linked.add(other.name)
        columns = {identifier_stems(c.name): c.name for c in reversed(relation.columns) if relation.key != (c.name,)}
        for other in catalog.relations:
            column, key = columns.get(named_after.get(other.name, ())), key_of(other)
            if column is None or key is None or other is relation or other.name in linked:
                continue
            if not any(h.right == other.name for h in found[relation.name]):
                _add(found, _hop(relation, column, other, key))
    return found


def _hop(relation: Relation, own: str, other: Relation, theirs: str) -> Hop:
    types = [column.type for column in (relation.column(own), other.column(theirs)) if column is not None]
    return Hop(relation.name, own, other.name, theirs, True, len({kind == "text" for kind in types}) > 1)


def _add(found: dict[str, list[Hop]], hop: Hop) -> None:
    found[hop.left].append(hop)
    found[hop.right].append(hop.back)


def _named_after(other: Relation) -> tuple[str, ...]:
    """Return the words by which a column elsewhere is evidently a relation's single key; () where none are."""
    key = key_of(other)
    words = () if key is None else identifier_stems(key)
    if words in ((), ("name",)):
        return ()
    return words if len(words) > 1 else (*identifier_stems(other.name), *words)


def key_of(relation: Relation) -> str | None:
    """Return the column that tells rows apart: the declared key, else one that is called so ("book_id")."""
    if relation.key:
        return relation.key[0] if len(relation.key) == 1 else None
    called = (("id",), (*identifier_stems(relation.name), "id"))
    return next((c.name for c in relation.columns[:1] if identifier_stems(c.name) in called), None)
