"""Views: the few tables and columns that a question may be about, as a small model expects tables to look."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from sqlglot import exp
from sqlglot.tokens import Tokenizer

from almanaq.agent.linking.columns import LinkedColumn
from almanaq.agent.linking.index import Named, ValueMeaning
from almanaq.agent.linking.joins import Hop, column_of, table_of
from almanaq.agent.local.spec import text
from almanaq.agent.local.world import World
from almanaq.agent.queries import to_sql
from almanaq.suql.catalog.relations import Relation
from almanaq.text.sql_literals import string_literal

MOST_VIEWS, MOST_COLUMNS, _MOST_VALUES, _MOST_KEYS, _LONGEST_VALUE = 4, 10, 6, 3, 40
_NEAR_BEST, _SECOND_MEANING = 0.3, 0.3
_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[^\W\d_A-Z]+|\d+|[^\W\d_]+")
_RESERVED = frozenset(word.lower() for word in Tokenizer.KEYWORDS if word.isalpha()) | {"order", "group", "on", "by"}
_FLOATING = ("float", "double", "real", "numeric", "decimal", "money")


@dataclass(frozen=True, slots=True)
class ViewColumn:
    """A column under the name and with the type that a model is shown."""

    name: str
    type: str
    linked: LinkedColumn


@dataclass(frozen=True, slots=True)
class View:
    """A relation under the name that a model is shown, with the columns that a question may be about."""

    name: str
    relation: Relation
    columns: tuple[ViewColumn, ...]

    def column(self, name: str) -> ViewColumn | None:
        """Return the column of a name, the source's own name too; None where there is none."""
        folded = name.casefold()
        return next((c for c in self.columns if folded in (c.name, c.linked.name.casefold())), None)


@dataclass(frozen=True, slots=True)
class LinkedValue:
    """A value that words of the question mean, in a column that is shown; `part`: values only hold it."""

    view: str
    column: ViewColumn
    value: str
    words: str
    part: bool = False

    def written(self, qualified: bool) -> str:
        """Return the value as a condition."""
        name = f"{self.view}.{self.column.name}" if qualified else self.column.name
        if self.column.linked.column.array:
            return f"list_contains({name}, {string_literal(self.value)})"
        if self.part:
            return f"{name} LIKE {string_literal(f'%{self.value}%')}"
        return f"{name} = {self.value if self.column.type in ('int', 'float') else string_literal(self.value)}"


@dataclass(frozen=True, slots=True)
class Views:
    """What a question may be about: the views, the steps between them, and the values that it names."""

    views: tuple[View, ...]
    hops: tuple[Hop, ...]
    values: tuple[LinkedValue, ...]

    def find(self, name: str) -> View | None:
        """Return the view of a name, the source's own name too; None where there is none."""
        folded = name.casefold()
        return next((v for v in self.views if folded in (v.name, v.relation.name.casefold())), None)

    def of(self, relation: str) -> View | None:
        """Return the view of a relation; None where it is not shown."""
        return next((view for view in self.views if view.relation.name == relation), None)

    def tables(self) -> list[str]:
        """Return a line for each view: its name, and its columns with their types, or values where these are two."""
        return [f"{view.name}({', '.join(map(_declare, view.columns))})" for view in self.views]

    def joins(self) -> list[str]:
        """Return the steps between views as conditions."""
        found = []
        for hop in self.hops:
            left, right = self.of(hop.left), self.of(hop.right)
            if left is not None and right is not None:
                own, theirs = left.column(hop.left_column), right.column(hop.right_column)
                if own is not None and theirs is not None:
                    found.append(f"{left.name}.{own.name} = {right.name}.{theirs.name}")
        return found

    def conditions(self) -> list[str]:
        """Return the values that the question names as conditions."""
        return [value.written(len(self.views) > 1) for value in self.values]


def _declare(column: ViewColumn) -> str:
    linked = column.linked
    if linked.kind == "boolean" and linked.column.type != "boolean" and linked.yes:
        values = [
            string_literal(value) if column.type == "text" else value for value in (*linked.yes, *linked.no) if value
        ]
        return f"{column.name} {'/'.join(values)}"
    return f"{column.name} {column.type}"


def choose_views(question: str, world: World, most_columns: int = MOST_COLUMNS) -> Views:
    """Return the views that the words of a question are about, each of so many columns, those most spoken of first."""
    links = world.link(question)
    named: dict[str, float] = defaultdict(float)
    wanted: dict[str, dict[str, float]] = defaultdict(lambda: defaultdict(float))
    meant: list[tuple[str, tuple[ValueMeaning, ...]]] = []
    for n, cover in enumerate(links.covers):
        weight = 1.0 if n == 0 else _SECOND_MEANING
        for span in cover:
            share = weight * span.sureness / max(1, min(len(span.meanings), 4))
            if span.kind == "table":
                for relation in span.meanings[:4]:
                    named[relation.name] += 1.5 * share
            elif span.kind == "column":
                for each in span.meanings[:4]:
                    column = each.thing if isinstance(each, Named) else each
                    if isinstance(column, LinkedColumn):
                        named[column.relation.name] += share
                        wanted[column.relation.name][column.name] += share
            elif span.kind == "value" and n == 0:
                values = tuple(m for m in span.meanings if isinstance(m, ValueMeaning))
                meant.append((links.text(span), values))
    spoken = dict(named)
    for _, meanings in meant:
        for relation_name in {m.column.relation.name for m in meanings[:4]}:
            named[relation_name] += 0.8 / len({m.column.relation.name for m in meanings[:4]})
    chosen = _choose_relations(named, world)
    values_of = _Values(world, chosen, spoken, wanted)
    pairs = [pair for words, meanings in meant for pair in values_of.resolve(words, meanings)]
    kept = [name for name in chosen if name not in values_of.left_out]
    hops = _connect(kept, world)
    shown = list(dict.fromkeys([*kept, *(name for hop in hops for name in (hop.left, hop.right))]))
    for hop in hops:
        wanted[hop.left][hop.left_column] += 9
        wanted[hop.right][hop.right_column] += 9
    taken: set[str] = set()
    views = tuple(_make_view(world, name, wanted[name], taken, most_columns) for name in shown[: MOST_VIEWS + 2])
    by_name = {view.relation.name: view for view in views}
    found = []
    for column, value, words, part in pairs:
        view = by_name.get(column.relation.name)
        as_shown = view.column(column.name) if view is not None else None
        if view is not None and as_shown is not None and len(value) <= _LONGEST_VALUE:
            found.append(LinkedValue(view.name, as_shown, value, words, part))
    return Views(views, tuple(hops), tuple(dict.fromkeys(found))[:_MOST_VALUES])


def _choose_relations(named: dict[str, float], world: World) -> list[str]:
    relations = world.catalog.relations
    if len(relations) == 1 or not named:
        return [relation.name for relation in relations[: 1 if len(relations) == 1 else MOST_VIEWS]]
    ranked = sorted(named, key=lambda name: -named[name])
    return [name for name in ranked if named[name] >= _NEAR_BEST * named[ranked[0]]][:MOST_VIEWS]


class _Values:
    """Resolves the values of a question; a value of a table that only explains a key becomes the key."""

    def __init__(
        self, world: World, chosen: Sequence[str], spoken: dict[str, float], wanted: dict[str, dict[str, float]]
    ) -> None:
        self._world, self._chosen, self._spoken, self._wanted = world, chosen, spoken, wanted
        self.left_out: set[str] = set()

    def resolve(self, words: str, meanings: Sequence[ValueMeaning]) -> Iterable[tuple[LinkedColumn, str, str, bool]]:
        """Yield (column, value, words, whether values only hold it) for words of the question, two columns at most."""
        seen: set[tuple[str, str]] = set()
        for meaning in sorted(meanings, key=lambda m: bool(m.how)):
            if meaning.how and any(not m.how for m in meanings):
                return
            column = meaning.column
            place = column.relation.name, column.name
            if column.relation.name not in self._chosen or place in seen or len(seen) == 2:
                continue
            seen.add(place)
            key = self._key_of(meaning)
            if key is not None:
                own, values = key
                self._wanted[own.relation.name][own.name] += 5
                self.left_out.add(column.relation.name)
                yield from ((own, value, words, False) for value in values)
                continue
            self._wanted[column.relation.name][column.name] += 5
            part = meaning.how in ("part", "item") and not column.column.array
            yield column, words if part else meaning.value, words, part

    def _key_of(self, meaning: ValueMeaning) -> tuple[LinkedColumn, list[str]] | None:
        """Return the column that refers to the rows with a value, and their keys; None where it says more than that."""
        there = meaning.column.relation.name
        if there in self._spoken or meaning.how == "part" or self._world.run is None:
            return None
        for name in self._chosen:
            for hop in self._world.graph.hops(name) if name != there and name in self._spoken else ():
                own = self._world.index.column(name, hop.left_column)
                if hop.right != there or not hop.single or own is None:
                    continue
                query = exp.select(column_of("", hop.right_column)).distinct().from_(table_of(there))
                query = query.where(exp.EQ(this=column_of("", meaning.column.name), expression=text(meaning.value)))
                keys = [row[0] for row in self._world.run(to_sql(query.limit(_MOST_KEYS + 1), self._world.dialect))]
                if 0 < len(keys) <= _MOST_KEYS and None not in keys:
                    return own, [str(key) for key in keys]
        return None


def _connect(names: Sequence[str], world: World) -> list[Hop]:
    """Return the steps that lead from the first relation to the others."""
    found: dict[tuple[str, str, str, str], Hop] = {}
    for name in names[1:]:
        for hop in world.graph.ways(names[0]).get(name) or ():
            found.setdefault((hop.left, hop.left_column, hop.right, hop.right_column), hop)
    return [*found.values()]


def _make_view(world: World, name: str, wanted: dict[str, float], taken: set[str], most: int) -> View:
    columns = [c for c in world.columns(name) if not c.column.private and not c.minutes]
    relation = world.catalog.relation(name)
    shows = world.index.name_of(relation).name

    def worth(column: LinkedColumn) -> float:
        own = wanted.get(column.name, 0.0) + 2 * (column.name == shows) + 0.3 * (relation.key == (column.name,))
        return own + 0.2 * (column.kind in ("number", "date")) + 0.1 * column.is_category

    best = sorted(columns, key=lambda c: -worth(c))[:most]
    names: set[str] = set()
    shown = tuple(ViewColumn(_make_name(c.name, names), _type_of(c), c) for c in columns if c in best)
    return View(_make_name(name.rpartition(".")[2], taken), relation, shown)


def _make_name(name: str, taken: set[str]) -> str:
    """Return a name in small letters and underscores that needs no quotes, and that is not taken."""
    words = "_".join(word.casefold() for word in _WORD.findall(name)) or "c"
    made = f"n_{words}" if words[0].isdigit() else words
    made = f"{made}_" if made in _RESERVED and made not in ("name", "date", "year", "type") else made
    number, unique = 2, made
    while unique in taken:
        unique, number = f"{made}_{number}", number + 1
    taken.add(unique)
    return unique


def _type_of(column: LinkedColumn) -> str:
    declared = column.column.type.casefold()
    if column.column.array:
        return "text[]"
    if column.kind == "number":
        known = column.column.samples or column.column.values
        floating = any("." in value for value in known) if column.cast else any(part in declared for part in _FLOATING)
        return "float" if floating else "int"
    if column.kind == "date":
        return "timestamp" if "timestamp" in declared else "date"
    if declared.startswith("bool"):
        return "bool"
    return "int" if "int" in declared else "text"
