"""Frame: what a question asks for, ready to be written as SUQL."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from almanaq.agent.local_old import sql
from almanaq.agent.local_old.joins import Hop
from almanaq.agent.local_old.lexicon import PRICE_SCALE
from almanaq.agent.local_old.schema_index import Place
from almanaq.suql.catalog.relations import Relation


@dataclass(frozen=True, slots=True)
class Term:
    """An expression: an aggregate of a column, the column itself, or the number of rows.

    Attributes:
        function: AVG, SUM, MIN, MAX, MEDIAN, COUNT, "COUNT DISTINCT", a part of a date ("year", "decade"), SCALE for
            the rank of a word, SQL with `{}` for the column, or "" for the column.
        place: None for the number of rows.
    """

    function: str
    place: Place | None

    def write(self, qualified: bool) -> str:
        if self.place is None:
            return "COUNT(*)"
        if not self.function:
            return sql.column(self.place, qualified)
        column = sql.compared(self.place, qualified)
        if "{}" in self.function:
            return self.function.replace("{}", column)
        if self.function == "SCALE":
            cases = " ".join(f"WHEN {sql.text(word)} THEN {rank}" for word, rank in ranks(self.place).items())
            return f"CASE {column} {cases} END"
        if self.function in ("year", "month", "quarter", "week", "hour"):
            return f"EXTRACT({self.function} FROM {column})"
        if self.function == "weekday":
            return f"to_char({column}, 'FMDay')"
        if self.function == "decade":
            year = column if self.place.kind == "number" else f"EXTRACT(year FROM {column})"
            return f"{year} - {year} % 10"
        if self.function == "MEDIAN":
            return f"PERCENTILE_CONT(0.5) WITHIN GROUP (ORDER BY {column})"
        name, _, distinct = self.function.partition(" ")
        return f"{name}({distinct + ' ' if distinct else ''}{column})"

    def key(self, qualified: bool) -> str:
        """Return the expression as it is compared and ordered: texts of digits as numbers."""
        if self.place is not None and not self.function and self.place.cast:
            return sql.compared(self.place, qualified)
        return self.write(qualified)


@dataclass(frozen=True, slots=True)
class Test:
    """A condition on one term: SQL with `{}` for the term."""

    term: Term
    template: str

    def write(self, qualified: bool) -> str:
        place, own = self.term.place, self.term.key(qualified)
        if place is not None and place.minutes and not self.term.function and "NULL" not in self.template:
            own = sql.compared(place, qualified)  # a time is compared with minutes, and is there or not as it is
        return self.template.replace("{}", own)


@dataclass(frozen=True, slots=True)
class Member:
    """Rows of another relation of which a row has to have one, or none: languages of a country that are English.

    Attributes:
        counted: how many there have to be, as a comparison of `{}`; "" where one is enough.
        way: the steps to them, where these are no keys: the rows with the same value of a column.
    """

    relation: Relation
    tests: tuple[Test, ...]
    wanted: bool
    counted: str = ""
    way: tuple[Hop, ...] = ()


@dataclass(frozen=True, slots=True)
class Joined:
    """A step to another relation; `outer` keeps the rows that have no partner there."""

    hop: Hop
    outer: bool


@dataclass
class Frame:
    """What is asked for, while it is being gathered.

    Attributes:
        wanted: the outputs, in order; `groups` those of them that group the others.
        share: the conditions of which a percentage is asked.
        nouns: the relations that the question calls by their names.
        listed: the rows of a relation are listed, each with a figure of others: none of them may be left out.
        ties: what ranks as high as the last row of the limit is wanted, too.
        absent: relations of which a row is to have none.
        members: what else is asked of rows that belong to a row.
        joined: the steps to the other relations, as `joining.bring` decides.
    """

    wanted: list[Term] = field(default_factory=list)
    groups: list[Term] = field(default_factory=list)
    tests: list[Test] = field(default_factory=list)
    having: list[Test] = field(default_factory=list)
    share: list[Test] = field(default_factory=list)
    order: list[tuple[Term, bool]] = field(default_factory=list)
    limit: int | None = None
    offset: int = 0
    ties: bool = False
    distinct: bool = False
    listed: bool = False
    nouns: list[Relation] = field(default_factory=list)
    absent: list[Relation] = field(default_factory=list)
    members: list[Member] = field(default_factory=list)
    joined: list[Joined] = field(default_factory=list)

    @property
    def places(self) -> list[Place]:
        """Every column that the frame speaks of."""
        terms = [*self.wanted, *self.groups, *(t.term for t in (*self.tests, *self.having, *self.share))]
        return [term.place for term in (*terms, *(term for term, _ in self.order)) if term.place is not None]


def write(frame: Frame, main: Relation, paths: Mapping[str, tuple[Hop, ...]]) -> str:
    """Return the SUQL of a frame whose columns are all one row away from `main`."""
    qualified = bool(frame.joined)
    wanted = [*frame.groups, *frame.wanted]
    outputs = [term.write(qualified) for term in wanted]
    if frame.share:
        inside = _all(frame.share, qualified)
        outputs.append(f"100.0 * COUNT(*) FILTER (WHERE {inside}) / NULLIF(COUNT(*), 0)")
    parts = [f"SELECT {'DISTINCT ' if frame.distinct else ''}{', '.join(outputs)}", f"FROM {sql.name(main.name)}"]
    for each in frame.joined:
        parts.append(f"{'LEFT ' if each.outer else ''}JOIN {sql.name(each.hop.right)} ON {each.hop.condition}")
    if where := _where(frame, paths, qualified):
        parts.append("WHERE " + " AND ".join(where))
    if frame.groups and (frame.wanted or frame.having or frame.order or frame.share):
        parts.append("GROUP BY " + ", ".join(term.write(qualified) for term in frame.groups))
    if frame.having:
        parts.append(f"HAVING {_all(frame.having, qualified)}")
    if frame.order:
        keys = (term.key(qualified) + (" DESC" if down else " ASC") for term, down in frame.order)
        parts.append("ORDER BY " + ", ".join(keys))
    if frame.ties:
        parts.append(f"FETCH FIRST {frame.limit or 1} ROWS WITH TIES")
    elif frame.limit is not None:
        parts.append(f"LIMIT {frame.limit}" + f" OFFSET {frame.offset}" * bool(frame.offset))
    return " ".join(parts)


def _where(frame: Frame, paths: Mapping[str, tuple[Hop, ...]], qualified: bool) -> list[str]:
    where = [_all(frame.tests, qualified)] if frame.tests else []
    where += [_absent(paths[relation.name][0], qualified) for relation in frame.absent]
    return [*where, *(_member(each, each.way or paths[each.relation.name], qualified) for each in frame.members)]


def _all(tests: Sequence[Test], qualified: bool) -> str:
    return " AND ".join(dict.fromkeys(test.write(qualified) for test in tests))


def _absent(hop: Hop, qualified: bool) -> str:
    """Say that a row has no partner beyond a hop."""
    own = f"{sql.name(hop.left)}.{sql.name(hop.left_column)}" if qualified else sql.name(hop.left_column)
    theirs = sql.name(hop.right_column)
    inside = f"SELECT {hop.compared(theirs)} FROM {sql.name(hop.right)} WHERE {theirs} IS NOT NULL"
    return f"{hop.compared(own)} NOT IN ({inside})"


def _member(member: Member, way: Sequence[Hop], qualified: bool) -> str:
    """Say that a row has, or has not, a row of another relation that passes tests."""
    first, *more = way
    own = f"{sql.name(first.left)}.{sql.name(first.left_column)}" if qualified else sql.name(first.left_column)
    theirs = f"{sql.name(first.right)}.{sql.name(first.right_column)}" if more else sql.name(first.right_column)
    joined = "".join(f" JOIN {sql.name(hop.right)} ON {hop.condition}" for hop in more)
    tests = " AND ".join(dict.fromkeys(test.write(bool(more)) for test in member.tests))
    known = "" if member.wanted else f"{theirs} IS NOT NULL"
    where = " AND ".join(filter(None, (tests, known)))
    inside = f"SELECT {first.compared(theirs)} FROM {sql.name(first.right)}{joined}{' WHERE ' * bool(where)}{where}"
    counted = f" GROUP BY {theirs} HAVING {member.counted.replace('{}', 'COUNT(*)')}" if member.counted else ""
    return f"{first.compared(own)} {'' if member.wanted else 'NOT '}IN ({inside}{counted})"


def ranks(place: Place) -> dict[str, int]:
    """Return the rank of each word of a scale, the lowest first."""
    found = {value: _rank(value, i) for i, value in enumerate(place.column.values)}
    return dict(sorted(found.items(), key=lambda each: each[1]))


def is_scale(place: Place) -> bool:
    """Return whether the values of a column are listed in an order that means something: price levels."""
    return "price" in place.roles and place.kind == "text" and bool(place.column.values)


def _rank(value: str, position: int) -> int:
    folded = value.casefold()
    if set(folded) <= set("$€£"):
        return len(folded)
    return next((i for i, group in enumerate(PRICE_SCALE, 1) if folded in group), position + 1)
