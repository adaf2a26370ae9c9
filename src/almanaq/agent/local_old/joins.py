"""Ways from one relation to another along foreign keys, declared or evident from the names of columns."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from almanaq.agent.local_old.words import identifier_stems
from almanaq.suql.catalog.relations import Catalog, Relation
from almanaq.text.sql_literals import identifier

_FARTHEST = 3


@dataclass(frozen=True, slots=True)
class Hop:
    """One step: `left.left_column = right.right_column`.

    Attributes:
        single: a left row has at most one right row.
        unlike: one column is of text and the other of numbers; they are compared as text.
    """

    left: str
    left_column: str
    right: str
    right_column: str
    single: bool
    unlike: bool = False

    @property
    def back(self) -> Hop:
        """The step the other way, on which a row may have several."""
        return Hop(self.right, self.right_column, self.left, self.left_column, False, self.unlike)

    @property
    def condition(self) -> str:
        left = f"{identifier(self.left)}.{identifier(self.left_column)}"
        right = f"{identifier(self.right)}.{identifier(self.right_column)}"
        return f"{self.compared(left)} = {self.compared(right)}"

    def compared(self, column: str) -> str:
        """Return one of the two columns as it can be compared with the other."""
        return f"CAST({column} AS text)" if self.unlike else column


def paths(steps: Mapping[str, Sequence[Hop]], start: Relation) -> dict[str, tuple[Hop, ...]]:
    """Return the shortest way to every relation within three hops, () for `start` itself.

    Args:
        steps: the hops from every relation, as `edges` gives them.
    """
    found: dict[str, tuple[Hop, ...]] = {start.name: ()}
    queue = deque([start.name])
    while queue:
        here = queue.popleft()
        if len(found[here]) < _FARTHEST:
            for hop in steps.get(here, ()):
                if hop.right not in found:
                    found[hop.right] = (*found[here], hop)
                    queue.append(hop.right)
    return found


def ambiguous(steps: Mapping[str, Sequence[Hop]], start: Relation) -> frozenset[str]:
    """Return the relations to which two shortest ways lead: a match has a home team and an away team."""
    depth, ways = {start.name: 0}, {start.name: 1}
    queue = deque([start.name])
    while queue:
        here = queue.popleft()
        for hop in steps.get(here, ()) if depth[here] < _FARTHEST else ():
            if hop.right not in depth:
                depth[hop.right], ways[hop.right] = depth[here] + 1, ways[here]
                queue.append(hop.right)
            elif depth[hop.right] == depth[here] + 1:
                ways[hop.right] += ways[here]
    return frozenset(name for name, count in ways.items() if count > 1)


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
    """Return the column that tells rows apart: the declared key, else, where there is none, one
    called so ("book_id").
    """
    if relation.key:
        return relation.key[0] if len(relation.key) == 1 else None
    called = (("id",), (*identifier_stems(relation.name), "id"))
    return next((c.name for c in relation.columns[:1] if identifier_stems(c.name) in called), None)
