"""One reading of a question: a main relation, conditions, an order, what is asked; and its SUQL."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from almanaq.agent.local import sql
from almanaq.agent.local.joins import Hop
from almanaq.agent.local.schema_index import Place
from almanaq.suql.catalog.relations import Relation


@dataclass(frozen=True, slots=True)
class Condition:
    """A condition on one column: SUQL with `{}` where the column's name goes.

    Attributes:
        excludes: what may hold for none of a row's partners, where the condition denies it of the row; or None.
    """

    place: Place
    template: str
    excludes: str | None = None

    def render(self, qualified: bool) -> str:
        spelled = "'" in self.template
        return self.template.replace("{}", (sql.column if spelled else sql.compared)(self.place, qualified))


@dataclass(frozen=True, slots=True)
class Item:
    """An expression of SELECT or ORDER BY over one column (None for COUNT(*)): `{}` is the column's name."""

    place: Place | None
    template: str = "{}"

    def render(self, qualified: bool, ranks: bool = False) -> str:
        """Give the expression; one that is computed, or `ranks` rows, takes texts of digits as numbers."""
        if self.place is None:
            return self.template
        written = sql.compared if ranks or self.template != "{}" else sql.column
        return self.template.replace("{}", written(self.place, qualified))


@dataclass(frozen=True, slots=True)
class Reading:
    """A reading of a question over one main relation.

    Attributes:
        paths: how every other relation is reached from the main one.
        counted: a relation whose rows per main row are counted ("the most concerts"), or None.
        period: an expression to group by, after the columns of `group`.
        beside: relations of which a name is shown beside each row, whether it has one or not.
        having: a condition on that count.
        absent, present: relations of which a row has no partner, or some.
        unused: words of the question that the query does not use.
        score: how well it covers the question; comparable between readings of one question.
    """

    main: Relation
    paths: Mapping[str, tuple[Hop, ...]]
    select: tuple[Item, ...]
    conditions: tuple[Condition, ...] = ()
    group: tuple[Place, ...] = ()
    period: Item | None = None
    beside: frozenset[str] = frozenset()
    order: tuple[tuple[Item, bool], ...] = ()
    counted: Relation | None = None
    having: str | None = None
    absent: tuple[Relation, ...] = ()
    present: tuple[Relation, ...] = ()
    distinct: bool = False
    limit: int | None = None
    unused: tuple[str, ...] = ()
    corrections: tuple[tuple[str, str], ...] = ()
    score: float = field(default=0.0)

    def suql(self) -> str:
        """Give the query."""
        return _Writer(self).write()


class _Writer:
    def __init__(self, reading: Reading) -> None:
        self.reading = reading
        self.joined: dict[str, str] = {reading.main.name: ""}
        self.hops: list[Hop] = []
        self._join_needed()

    def _join_needed(self) -> None:
        """Join what is shown, grouped, ordered or counted; and for conditions, what has one row per main row."""
        reading = self.reading
        shown = [item.place for item in reading.select] + [item.place for item, _ in reading.order]
        for place in [*shown, *reading.group]:
            if place is not None and place.relation.name not in reading.beside:
                self._reach(place.relation.name)
        if reading.counted is not None:
            self._reach(reading.counted.name)
        for condition in reading.conditions:
            way = reading.paths.get(condition.place.relation.name, ())
            if all(hop.single for hop in way):
                self._reach(condition.place.relation.name)
        for name in sorted(reading.beside):
            self._reach(name, "LEFT JOIN")

    def _reach(self, name: str, join: str = "JOIN") -> None:
        for hop in self.reading.paths.get(name, ()):
            if hop.right not in self.joined:
                self.joined[hop.right] = join
                self.hops.append(hop)

    def write(self) -> str:
        reading, qualified = self.reading, len(self.joined) > 1
        select = ", ".join(item.render(qualified) for item in reading.select)
        parts = [f"SELECT {'DISTINCT ' if reading.distinct else ''}{select}", f"FROM {sql.name(reading.main.name)}"]
        parts += [f"{self.joined[hop.right]} {sql.name(hop.right)} ON {hop.condition}" for hop in self.hops]
        where = [*self._conditions(qualified), *(self._some_of(r) for r in reading.present)]
        where += [f"NOT {self._some_of(r)}" for r in reading.absent]
        if where:
            parts.append("WHERE " + " AND ".join(where))
        group = [sql.column(p, qualified) for p in reading.group]
        group += [reading.period.render(qualified)] if reading.period else []
        if group:
            parts.append("GROUP BY " + ", ".join(group))
        if reading.having:
            parts.append(f"HAVING {reading.having}")
        if reading.order:
            keys = (item.render(qualified, ranks=True) + (" DESC" if down else " ASC") for item, down in reading.order)
            parts.append("ORDER BY " + ", ".join(keys))
        if reading.limit is not None:
            parts.append(f"LIMIT {reading.limit}")
        return " ".join(parts)

    def _conditions(self, qualified: bool) -> Iterable[str]:
        """Yield conditions on joined relations as they are, the others inside one subquery per relation."""
        apart: dict[str, list[Condition]] = {}
        for condition in self.reading.conditions:
            if condition.place.relation.name in self.joined:
                yield condition.render(qualified)
            else:
                apart.setdefault(condition.place.relation.name, []).append(condition)
        for name, conditions in apart.items():
            way = self.reading.paths[name]
            inner = len(way) > 1
            denied = [Condition(c.place, c.excludes).render(inner) for c in conditions if c.excludes]
            wanted = [c.render(inner) for c in conditions if not c.excludes]
            yield from (f"NOT {self._member(way, qualified, [each])}" for each in denied)
            if wanted:
                yield self._member(way, qualified, wanted)

    def _some_of(self, relation: Relation) -> str:
        way = self.reading.paths[relation.name]
        return self._member(way, len(self.joined) > 1, [f"{self._inner(way)} IS NOT NULL"])

    def _inner(self, way: tuple[Hop, ...]) -> str:
        own = sql.name(way[0].right_column)
        return f"{sql.name(way[0].right)}.{own}" if len(way) > 1 else own

    def _member(self, way: tuple[Hop, ...], qualified: bool, conditions: list[str]) -> str:
        """Say that a main row has a partner for which the conditions hold."""
        first, inner = way[0], self._inner(way)
        outer = sql.name(first.left_column)
        outer = first.compared(f"{sql.name(first.left)}.{outer}" if qualified else outer)
        joins = "".join(f" JOIN {sql.name(hop.right)} ON {hop.condition}" for hop in way[1:])
        where = " AND ".join(conditions)
        return f"{outer} IN (SELECT {first.compared(inner)} FROM {sql.name(first.right)}{joins} WHERE {where})"
