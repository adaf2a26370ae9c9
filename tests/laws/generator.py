"""Random SUQL queries over a world, each from one seed.

A block keeps what a later comparison needs: the types of its columns, and the columns that identify a row. A block
with LIMIT inside another is always given a total order, because its rows would not be determined otherwise.
"""

from __future__ import annotations

import datetime
import random
import re
from dataclasses import dataclass, replace

import sqlglot
from sqlglot import exp

from .expressions import (
    Col,
    Draw,
    Scope,
    across,
    answer_of,
    boolean,
    call,
    constant,
    predicate,
    text_predicate,
)
from .sources import merged, recursion, renamed, values
from .world import FREE, TYPES, World, make_world

SCALARS = ("int", "num", "date", "bool", "text", "enum")
_MARKED = re.compile("⟦(.*?)⟧", re.S)
_OUTER_JOIN = re.compile(r" (LEFT|RIGHT|FULL) JOIN ")


@dataclass(frozen=True)
class Case:
    """A world and a query over it; parameters are marked in the text. `link`: literals are linked to ENUM values."""

    seed: int
    world: World
    marked: str
    link: bool = False

    @property
    def sql(self) -> str:
        """The query with parameters written as literals."""
        return _MARKED.sub(r"\1", self.marked)

    @property
    def prepared(self) -> tuple[str, list[object]]:
        """The query with `?` for each parameter, and their values."""
        return _MARKED.sub("?", self.marked), [_value(m) for m in _MARKED.findall(self.marked)]


@dataclass(frozen=True)
class Out:
    """A column that a block gives."""

    name: str
    type: str
    free: bool = False


@dataclass(frozen=True)
class Block:
    """A query as text, with what it gives."""

    sql: str
    columns: tuple[Out, ...]
    keys: tuple[str, ...] = ()


@dataclass(frozen=True)
class Source:
    """One item of a FROM: its text, its alias, its columns, and its key."""

    sql: str
    alias: str
    columns: tuple[Out, ...]
    keys: tuple[str, ...] = ()
    listed: str = ""

    def scope(self) -> tuple[Col, ...]:
        """Return its columns as a block names them."""
        return tuple(
            Col(c.name if c.name == self.alias else f"{self.alias}.{c.name}", c.type, c.free) for c in self.columns
        )


def generate(seed: int) -> Case:
    """Return the case of a seed."""
    rng = random.Random(seed)
    varied = rng.random() < 0.12
    world = make_world(rng, varied=varied)
    structured = rng.random() < 0.04
    draw = Draw(
        rng,
        text_left=0 if structured else rng.choice((1, 2, 2, 3, 4, 6)),
        beside=random.Random(f"beside {seed}"),
        varied=varied,
        structured=structured,
    )
    maker = Maker(draw, world)
    draw.subquery = None if varied else maker.subquery
    top_k = not (varied or structured) and random.Random(f"top-k {seed}").random() < 0.06
    grouped = not (varied or structured or top_k) and random.Random(f"groups {seed}").random() < 0.1
    statement = maker.with_a_match() if top_k else maker.of_groups() if grouped else maker.statement()
    return Case(seed, world, statement, link=rng.random() < 0.5)


def _is_answer(text: str) -> bool:
    key = sqlglot.parse_one(_MARKED.sub(r"\1", text), read="duckdb")
    return isinstance(key, exp.Anonymous) and key.name == "answer"


def _value(text: str) -> object:
    if text.startswith("DATE "):
        return datetime.date.fromisoformat(text[6:-1])
    if text.startswith("'"):
        return text[1:-1].replace("''", "'")
    return float(text) if "." in text else int(text)


class Maker:
    """Draws the blocks of one statement."""

    def __init__(self, draw: Draw, world: World) -> None:
        self.draw, self.rng, self.world = draw, draw.rng, world
        self.ctes: list[Source] = []

    # --- statements ------------------------------------------------------------------------------------------------

    def statement(self) -> str:
        """Draw a whole statement."""
        roll = self.rng.random()
        if self.draw.varied:
            # One block, so that no answer is compared with a text that is none: what that means is left open.
            return self.block(depth=0, top=True).sql
        if roll < 0.05:
            return self._recursive()
        if roll < 0.2:
            return self._with()
        if roll < 0.34:
            return self._set_operation(top=True).sql
        return self.block(depth=2, top=True).sql

    def with_a_match(self) -> str:
        """Draw a block that shows the first of its rows which have a match, and asks nothing else."""
        sources, text = self._from(1)
        scope = Scope(tuple(c for s in sources for c in s.scope()))
        self.draw.subquery, self.draw.text_left = None, max(2, self.draw.text_left)
        inner_sources, inner_text = self._from(0)
        inner = Scope(tuple(c for s in inner_sources for c in s.scope()), scope.columns)
        correlated = self.draw.chance(0.6)
        asked = text_predicate(self.draw, inner)
        parts = [self._where(inner, scope.columns if correlated else ()), *([asked] if asked else [])]
        self.rng.shuffle(parts)
        kind = self.rng.choice(("int", "text"))
        values, looked_for = inner.of(kind), [c.sql for c in scope.of(kind, free=False)]
        rest = f"FROM {inner_text} WHERE {' AND '.join(parts)}"
        if values and looked_for and self.draw.chance(0.2 if correlated else 0.8):
            match = f"{self.rng.choice(looked_for)} IN (SELECT {self.rng.choice(values).sql} {rest})"
        else:
            match = f"EXISTS (SELECT 1 {rest})"
        conditions = [match, *([boolean(self.draw, scope)] if self.draw.chance(0.4) else [])]
        columns = self.rng.sample(scope.columns, min(2, len(scope.columns)))
        shown = ", ".join(f"{c.sql} AS {self.draw.alias('c')}" for c in columns)
        keys = scope.of("int", "num", "date", "enum", "text", free=False)
        order = ", ".join(c.sql + self._direction() for c in self.rng.sample(keys, min(2, len(keys))))
        return f"SELECT {shown} FROM {text} WHERE {' AND '.join(conditions)} ORDER BY {order or '1'}{self._limit()}"

    def of_groups(self) -> str:
        """Draw a block that shows a row of each group, some groups, or the greatest value of the rows that pass."""
        sources, text = self._from(1)
        keys = tuple(f"{s.alias}.{k}" for s in sources for k in s.keys) if all(s.keys for s in sources) else ()
        scope = Scope(tuple(c for s in sources for c in s.scope()), (), keys)
        by = scope.of("int", "text", "date", "bool", free=False)
        if not keys or not by:
            return self.statement()
        self.draw.subquery, self.draw.text_left = None, max(2, self.draw.text_left)
        asked = text_predicate(self.draw, scope) if self.draw.chance(0.6) else None
        parts = [part for part in (asked, boolean(self.draw, scope) if self.draw.chance(0.3) else None) if part]
        rest = f"FROM {text} WHERE {' AND '.join(parts)}" if parts else f"FROM {text}"
        group, roll = self.rng.choice(by), self.rng.random()
        if roll < 0.4:
            return self._one_of_each(scope, by, rest)
        return self._some_groups(scope, group, rest) if roll < 0.65 else self._numbered(scope, group, rest)

    def _one_of_each(self, scope: Scope, by: list[Col], rest: str) -> str:
        measured = self.rng.choice(scope.of("int", "num", "date", free=False) or by)
        extreme = f"{self.rng.choice(('max', 'min'))}({measured.sql})"
        groups = [column.sql for column in self.rng.sample(by, min(len(by), self.rng.choice((1, 1, 2))))]
        shown = ", ".join(f"{node} AS g{i}" for i, node in enumerate(groups))
        order = ", ".join(f"{i + 1}{self._direction()}" for i in range(len(groups)))
        ends = f" ORDER BY {order}{self._limit()}" if self.draw.chance(0.4) else ""
        return self.rng.choice(
            (
                f"SELECT {extreme} AS m {rest}",
                f"SELECT count(DISTINCT {groups[0]}) AS n {rest}",
                f"SELECT DISTINCT {shown} {rest}{ends}",
                f"SELECT {shown} {rest} GROUP BY {', '.join(groups)}{ends}",
                f"SELECT {shown}, {extreme} AS m {rest} GROUP BY {', '.join(groups)}{ends}",
            )
        )

    def _some_groups(self, scope: Scope, group: Col, rest: str) -> str:
        sizes, values = "count(*) > 1", f"{group.sql} >= {constant(self.draw, group.type)}"
        having = self.rng.choice(("", f" HAVING {sizes}", f" HAVING {values}", f" HAVING {sizes} AND {values}"))
        order = f" ORDER BY count(*){self._direction()}, 1{self._direction()}" + self._limit()
        aggregate = self.aggregate(scope, self.rng.choice(("int", "text", "date")))[1]
        ends = having + (order if self.draw.chance(0.6) else "")
        return f"SELECT {group.sql} AS g, {aggregate} AS a {rest} GROUP BY {group.sql}{ends}"

    def _numbered(self, scope: Scope, group: Col, rest: str) -> str:
        shown = f"{group.sql} AS g, {self.expression(scope, self._some_type(scope), windows=False)} AS c"
        first = scope.of("int", "date", free=False)[:1]
        order = ", ".join(f"{node}{self._direction()}" for node in (*[c.sql for c in first], *scope.keys))
        number = f"row_number() OVER (PARTITION BY {group.sql} ORDER BY {order})"
        wanted = self.rng.choice(("= 1", "= 1", "<= 1", "< 2", "= 2", "<= 2"))
        roll = self.rng.random()
        if roll < 0.2:
            ends = f" ORDER BY {group.sql}, {order}" + (self._limit() if self.draw.chance(0.3) else "")
            return f"SELECT DISTINCT ON ({group.sql}) {shown} {rest}{ends}"
        if roll < 0.4:
            return f"SELECT {shown} {rest} QUALIFY {number} {wanted}"
        outside = f"n {wanted}" + (" AND g IS NOT NULL" if self.draw.chance(0.3) else "")
        return f"SELECT g, c FROM (SELECT {shown}, {number} AS n {rest}) AS d WHERE {outside}"

    def _with(self) -> str:
        parts = []
        for _ in range(self.rng.choice((1, 1, 2))):
            inner = self.block(depth=1)
            name = self.draw.alias("w")
            parts.append(f"{name} AS ({inner.sql})")
            self.ctes.append(Source(name, name, inner.columns, inner.keys))
        self.draw.grant()
        main = self._set_operation(top=True) if self.draw.chance(0.15) else self.block(depth=1, top=True)
        return f"WITH {', '.join(parts)} {main.sql}"

    def _recursive(self) -> str:
        if self.draw.chance(0.4):
            query, names = recursion(self.rng, self.world)
            self.ctes.append(Source("r", "r", tuple(Out(name, "int") for name in names)))
            self.draw.grant()
            listed = f"({', '.join(names)})" if self.draw.chance(0.5) else ""
            return f"WITH RECURSIVE r{listed} AS ({query}) {self.block(depth=1, top=True).sql}"
        base = self.block(depth=0, want=("int",))
        inner = self.draw.alias("n")
        union = self.rng.choice(("UNION ALL", "UNION"))
        step = f"SELECT {inner} + 1 FROM r WHERE {inner} < {self.rng.randint(2, 4)}"
        self.ctes.append(Source("r", "r", (Out(inner, "int"),)))
        self.draw.grant()
        main = self.block(depth=0, top=True)
        return f"WITH RECURSIVE r({inner}) AS (({base.sql}) {union} {step}) {main.sql}"

    def _set_operation(self, *, top: bool = False, want: tuple[str, ...] = ()) -> Block:
        types = want or tuple(
            self.rng.choice(("int", "text", "text", "date")) for _ in range(self.rng.choice((1, 1, 2)))
        )
        arms = [self.block(depth=1, want=types) for _ in range(self.rng.choice((2, 2, 2, 3)))]
        text = f"({arms[0].sql})"
        for arm in arms[1:]:
            operator = self.rng.choice(
                ("UNION", "UNION ALL", "UNION ALL", "INTERSECT", "EXCEPT", "EXCEPT ALL", "INTERSECT ALL")
            )
            text = f"({text}) {operator} ({arm.sql})" if arm is not arms[1] else f"{text} {operator} ({arm.sql})"
        ends = ""
        if top and self.draw.chance(0.5) and not self.draw.varied:
            ends += f" ORDER BY 1{self._direction()}"
        if top and self.draw.chance(0.35) and not self.draw.varied:
            ends += self._limit()
        return Block(text + ends, arms[0].columns)

    # --- blocks ----------------------------------------------------------------------------------------------------

    def block(
        self,
        *,
        depth: int,
        top: bool = False,
        want: tuple[str, ...] = (),
        outer: tuple[Col, ...] = (),
        limit: bool = True,
    ) -> Block:
        """Draw a SELECT; `want` fixes the types of its columns."""
        self.draw.grant(0.5 if top else 0.2)
        sources, text = self._from(depth)
        columns = tuple(c for s in sources for c in s.scope())
        keys = tuple(f"{s.alias}.{k}" for s in sources for k in s.keys) if all(s.keys for s in sources) else ()
        scope = Scope(columns, outer, keys)
        if outer and self.draw.chance(0.2):
            scope = replace(scope, columns=columns + outer)
        kept = across(self.draw, scope) if _OUTER_JOIN.search(text) and self.draw.chance(0.45) else None
        drawn = [self._where(scope, outer)] if outer or self.draw.chance(0.4 if kept else 0.7) else []
        parts = [*([kept] if kept else []), *drawn]
        where = f" WHERE {' AND '.join(parts)}" if parts else ""
        roll = self.rng.random()
        if roll < 0.24 and (top or limit):
            return self._grouped(scope, text + where, want, top)
        distinct = 0.24 <= roll < 0.34
        if 0.34 <= roll < 0.42 and keys and limit and not want and not self.draw.varied:
            return self._first_of_each(scope, text + where)
        return self._plain(scope, sources, text + where, want, top=top, distinct=distinct, limit=limit)

    def _where(self, scope: Scope, outer: tuple[Col, ...]) -> str:
        parts = []
        if outer and self.draw.chance(0.75):
            types = {c.type for c in scope.columns} & {c.type for c in outer} & {"int", "text", "date"}
            if types:
                type_ = self.rng.choice(sorted(types))
                left = self.rng.choice(scope.of(type_))
                right = self.rng.choice([c for c in outer if c.type == type_])
                parts.append(f"{left.sql} {self.rng.choice(('=', '=', '<>'))} {right.sql}")
        if not parts or self.draw.chance(0.5):
            parts.append(predicate(self.draw, scope))
        if self.draw.chance(0.15):
            parts.append(boolean(self.draw, scope))
        if outer and self.draw.subquery == self._innermost and self.draw.chance(0.5):
            parts.append(self.subquery(scope, "bool"))
        self.rng.shuffle(parts)
        return " AND ".join(parts)

    def _plain(
        self,
        scope: Scope,
        sources: list[Source],
        rest: str,
        want: tuple[str, ...],
        *,
        top: bool,
        distinct: bool,
        limit: bool,
    ) -> Block:
        items: list[tuple[str, Out]] = []
        if not want and not distinct and self.draw.chance(0.12):
            star = self.rng.choice([s for s in sources if s.alias not in TYPES])
            if top and self.draw.chance(0.4):
                items.append(("*", Out("*", "star")))
                stars = tuple(c for s in sources for c in s.columns)
            else:
                alone = len(sources) == 1 and self.draw.chance(0.5)
                items.append(("*" if alone else f"{star.alias}.*", Out("*", "star")))
                # What USING merges is a column of each item, and the first.
                stars = (*(c for s in sources if s.alias in TYPES for c in s.columns), *star.columns)
        else:
            stars = ()
        types = want or tuple(self._some_type(scope) for _ in range(self.rng.choice((1, 2, 2, 3)) - bool(items)))
        for type_ in types:
            text = self.expression(scope, type_, windows=not distinct)
            items.append((text, Out(self.draw.alias("c"), type_, free=self._is_free(scope, text))))
        key_out: tuple[str, ...] = ()
        if not want and not distinct and scope.keys and self.draw.chance(0.4):
            names = [self.draw.alias("k") for _ in scope.keys]
            types_of = {c.sql: (c.type, c.free) for c in scope.columns}  # the keys of a grouped source may be text
            items += [(k, Out(n, *types_of.get(k, ("int",)))) for k, n in zip(scope.keys, names, strict=True)]
            key_out = tuple(names)
        ordinals = len(items)
        made = self._element(scope) if not want and not distinct and self.draw.chance(0.15) else None
        if made is not None:
            items.append((made, Out(self.draw.alias("e"), "text", free=True)))
            key_out, limit = (), False
        listed = ", ".join(t if o.type == "star" else f"{t} AS {o.name}" for t, o in items)
        columns = (*stars, *(o for _, o in items if o.type != "star"))
        sql = f"SELECT {'DISTINCT ' if distinct else ''}{listed} FROM {rest}"
        named = [o.name if self.draw.chance(0.5) else str(i + 1) for i, (_, o) in enumerate(items[:ordinals])]
        named = [] if stars else named
        sql += self._ends(scope, named, columns, top=top, distinct=distinct, limit=limit)
        return Block(sql, tuple(columns), key_out)

    def _element(self, scope: Scope) -> str | None:
        """Draw an unnest for a select list, now and then as a document."""
        arrays = scope.of("texts")
        if not arrays:
            return None
        element = f"unnest({self.rng.choice(arrays).sql})"
        if self.draw.text_left > 0 and self.draw.chance(0.3):
            self.draw.text_left -= 1
            return f"answer({element}, 'is it calm?')"
        return element

    def _first_of_each(self, scope: Scope, rest: str) -> Block:
        """Draw a DISTINCT ON under a total order."""
        on = []
        for _ in range(self.rng.choice((1, 1, 2))):
            type_ = self.rng.choice(("text", "text", "int", "date", "bool"))
            made = answer_of(self.draw, scope, type_) if self.draw.chance(0.6) else None
            columns = [c.sql for c in scope.of(type_, free=False)]
            found = made or (self.rng.choice(columns) if columns else None)
            on += [found] if found is not None and found not in on else []
        on = on or [scope.keys[0]]
        between = answer_of(self.draw, scope, self.rng.choice(("int", "date"))) if self.draw.chance(0.3) else None
        order = [*on, *([between] if between else []), *scope.keys]
        items = [(self.expression(scope, t, windows=False), t) for t in (self._some_type(scope), "int")]
        columns = tuple(Out(self.draw.alias("c"), t, free=self._is_free(scope, text)) for text, t in items)
        listed = ", ".join(f"{text} AS {o.name}" for (text, _), o in zip(items, columns, strict=True))
        by = ", ".join(f"{node}{self._direction()}" for node in order)
        sql = f"SELECT DISTINCT ON ({', '.join(on)}) {listed} FROM {rest} ORDER BY {by}"
        return Block(sql + (self._limit() if self.draw.chance(0.3) else ""), columns)

    def _ends(
        self,
        scope: Scope,
        named: list[str],
        columns: tuple[Out, ...],
        *,
        top: bool,
        distinct: bool,
        limit: bool,
    ) -> str:
        if top:
            ends = ""
            if self.draw.chance(0.45):
                ends += self._order(scope, named, distinct)
            if self.draw.chance(0.4) and not (self.draw.varied and (distinct or "answer" in ends)):
                ends += self._limit()
            return ends
        if not limit or not self.draw.chance(0.18) or self.draw.varied:
            return ""
        if distinct or not scope.keys:
            order = ", ".join(f"{c.name}{self._direction()}" for c in columns)
            if len({c.name for c in columns}) < len(columns):
                return ""
        else:
            first = [c.sql for c in scope.of("int", "date") if self.draw.chance(0.5)][:1]
            order = ", ".join(f"{k}{self._direction()}" for k in [*first, *scope.keys])
        return f" ORDER BY {order}{self._limit()}"

    def _grouped(self, scope: Scope, rest: str, want: tuple[str, ...], top: bool) -> Block:
        groups = [] if self.draw.chance(0.25) else self._group_keys(scope, want)
        items, outs = [], []
        for type_, text in groups:
            if not want or type_ in want:
                items.append(text)
                outs.append(Out(self.draw.alias("g"), type_))
        if want:
            items = [self._wanted(scope, t, groups) for t in want]
            outs = [Out(self.draw.alias("g"), t) for t in want]
        else:
            for _ in range(self.rng.choice((1, 1, 2))):
                type_, text = self.aggregate(
                    scope, self.rng.choice(("int", "int", "num", "date", "text", "text", "enum"))
                )
                items.append(text)
                outs.append(Out(self.draw.alias("g"), type_))
        sets = bool(groups) and not self.draw.varied and self.draw.chance(0.16)
        if sets and not want and self.draw.chance(0.4):
            items.append(f"grouping({self.rng.choice(groups)[1]})")
            outs.append(Out(self.draw.alias("g"), "int"))
        listed = ", ".join(f"{t} AS {o.name}" for t, o in zip(items, outs, strict=True))
        sql = f"SELECT {listed} FROM {rest}"
        if groups:
            by_place = not want and not sets and self.draw.chance(0.2)
            keys_of = [str(i + 1) if by_place else t for i, (_, t) in enumerate(groups)]
            sql += " GROUP BY " + (self._sets_of(keys_of) if sets else ", ".join(keys_of))
            if self.draw.chance(0.35):
                having, alone = self._having(scope), [text for _, text in groups if _is_answer(text)]
                sql += f" HAVING {alone[0] if alone and self.draw.is_bare() else having}"
        ordinals = list(range(1, len(items) + 1))
        ends = ""
        if top and groups and self.draw.chance(0.45) and not self.draw.varied:
            ends = f" ORDER BY {self.rng.choice(ordinals)}{self._direction()}"
            if self.draw.chance(0.3):
                ends = f" ORDER BY {self.aggregate(scope, 'int')[1]}{self._direction()}, {self.rng.choice(ordinals)}"
        if top and groups and self.draw.chance(0.3) and not self.draw.varied:
            ends = (ends or (" ORDER BY 1" if sets else "")) + self._limit()  # the oracle's parser wants an end of sets
        keys = tuple(o.name for o in outs[: len(groups)]) if groups and not want and not sets else ()
        return Block(sql + ends, tuple(outs), keys)

    def _sets_of(self, keys: list[str]) -> str:
        listed = ", ".join(f"({key})" for key in keys)
        return self.rng.choice((f"ROLLUP ({listed})", f"CUBE ({listed})", f"GROUPING SETS ({listed}, ())"))

    def _group_keys(self, scope: Scope, want: tuple[str, ...]) -> list[tuple[str, str]]:
        keys: list[tuple[str, str]] = []
        for _ in range(self.rng.choice((1, 1, 2))):
            type_ = self.rng.choice(want) if want else self.rng.choice(("text", "text", "int", "date", "bool"))
            self.draw.grant(0.3)
            made = answer_of(self.draw, scope, type_) if self.draw.chance(0.5) and type_ != "enum" else None
            columns = [c.sql for c in scope.of(type_)]
            if made is not None:
                keys.append((type_, made))
            elif columns:
                keys.append((type_, self.rng.choice(columns)))
        return list({text: (type_, text) for type_, text in keys}.values())

    def _wanted(self, scope: Scope, type_: str, groups: list[tuple[str, str]]) -> str:
        fitting = [text for t, text in groups if t == type_]
        return (
            self.rng.choice(fitting)
            if fitting and self.draw.chance(0.6)
            else self.aggregate(scope, type_, exact=True)[1]
        )

    def _having(self, scope: Scope) -> str:
        roll = self.rng.random()
        self.draw.grant(0.8)
        if roll < 0.15:
            return f"count(*) {self.rng.choice(('>= 1', '> 1', '<= 3'))}"
        if roll < 0.5:
            made = text_predicate(self.draw, scope)
            if made is not None:
                return f"bool_or({made})"
        if roll < 0.65:
            inner = call(self.draw, scope, "when")
            if inner is not None:
                return f"max({inner}::date) >= DATE '2020-06-01'"
        body = self._array(scope)
        if body is not None and self.draw.text_left > 0 and roll < 0.9:
            self.draw.text_left -= 1
            return f"answer({body}, 'is it mixed?') {self.rng.choice(('=', '<>'))} 'Yes'"
        return "count(*) >= 1"

    # --- expressions -----------------------------------------------------------------------------------------------

    def expression(self, scope: Scope, type_: str, *, windows: bool = True) -> str:
        """Draw a value of a type for a select list."""
        roll = self.rng.random()
        if roll < 0.07 and self.draw.subquery is not None:
            return self.subquery(scope, type_)
        if windows and 0.07 <= roll < 0.17 and type_ in ("int", "date", "text") and not self.draw.varied:
            made = self._window(scope, type_)
            if made is not None:
                return made
        if roll < 0.62 and type_ != "enum":
            made = answer_of(self.draw, scope, type_)
            if made is not None:
                return made
        columns = scope.of(type_)
        if not columns:
            return (
                "NULL::" + {"num": "numeric", "enum": "text", "bool": "boolean"}.get(type_, type_)
                if roll < 0.63
                else constant(self.draw, type_)
            )
        return self.rng.choice(columns).sql

    def _window(self, scope: Scope, type_: str) -> str | None:
        part = answer_of(self.draw, scope, "text") if self.draw.chance(0.5) else None
        plain = [c.sql for c in scope.of("int", "bool", "text", free=False)]
        by = f"PARTITION BY {part or self.rng.choice(plain)} " if part or (plain and self.draw.chance(0.5)) else ""
        order = answer_of(self.draw, scope, self.rng.choice(("int", "date"))) if self.draw.chance(0.5) else None
        order = order or (self.rng.choice(plain) if plain else None)
        if order is None:
            return None
        over = f"OVER ({by}ORDER BY {order}{self._direction()})"
        if type_ == "int":
            return f"{self.rng.choice(('rank()', 'dense_rank()', 'count(*)'))} {over}"
        value = answer_of(self.draw, scope, type_) if self.draw.chance(0.4) else None
        columns = [c.sql for c in scope.of(type_)]
        value = value or (self.rng.choice(columns) if columns else None)
        if value is None:
            return None
        if scope.keys and self.draw.chance(0.5):
            keys = ", ".join(scope.keys)
            total = f"OVER ({by}ORDER BY {order}{self._direction()}, {keys})"
            return f"{self.rng.choice(('lag', 'lead', 'first_value'))}({value}) {total}"
        return f"{self.rng.choice(('min', 'max'))}({value}) {over}"

    def aggregate(self, scope: Scope, type_: str, *, exact: bool = False) -> tuple[str, str]:
        """Draw an aggregate that gives a type; `exact` keeps to that type."""
        made = answer_of(self.draw, scope, type_) if self.draw.chance(0.6) and type_ != "enum" else None
        columns = [c.sql for c in scope.of(type_)]
        value = made or (self.rng.choice(columns) if columns else None)
        if type_ == "text":
            return "text", self._text_aggregate(scope, value)
        if type_ == "int" and (value is None or self.draw.chance(0.5)):
            return "int", self._count(scope)
        if value is None:
            return ("int", "count(*)") if not exact else (type_, f"max({constant(self.draw, type_)})")
        if type_ == "bool":
            return "bool", f"{self.rng.choice(('bool_or', 'bool_and'))}({value})"
        functions = ("min", "max") if type_ in ("date", "enum") or exact else ("min", "max", "sum", "avg")
        return type_, f"{self.rng.choice(functions)}({value})"

    def _count(self, scope: Scope) -> str:
        roll = self.rng.random()
        if roll < 0.3:
            return "count(*)"
        made = text_predicate(self.draw, scope)
        if made is not None and roll < 0.65:
            return f"count(*) FILTER (WHERE {made})"
        made = answer_of(self.draw, scope, "text")
        return f"count({'DISTINCT ' if self.draw.chance(0.5) else ''}{made})" if made else "count(*)"

    def _text_aggregate(self, scope: Scope, value: str | None) -> str:
        body = self._array(scope)
        if body is not None and self.draw.text_left > 0 and self.draw.chance(0.65):
            self.draw.text_left -= 1
            return f"summary({body})" if self.draw.chance(0.6) else f"answer({body}, 'who is praised?')"
        if value is None:
            return "string_agg('x', ',')"
        if self.draw.varied:
            return f"count({value})::text"
        order = ", ".join(scope.keys) or value
        return self.rng.choice((f"min({value})", f"max({value})", f"string_agg({value}, ',' ORDER BY {order})"))

    def _array(self, scope: Scope) -> str | None:
        texts = scope.of("text", free=True) or scope.of("text")
        if not texts:
            return None
        chosen = self.rng.choice(texts).sql
        if not self.draw.varied and self.draw.text_left > 1 and self.draw.chance(0.15):
            chosen = call(self.draw, scope, "who") or chosen
        order = ", ".join(scope.keys) or chosen
        keep = f" FILTER (WHERE {boolean(self.draw, scope)})" if self.draw.chance(0.15) else ""
        return f"array_agg({chosen} ORDER BY {order}){keep}"

    def subquery(self, scope: Scope, type_: str) -> str:
        """Draw a subquery of a type over another FROM; about half look at the outer row."""
        outer = scope.columns if self.draw.chance(0.6) else ()
        if scope.outer and self.draw.chance(0.6):  # two blocks out, and now and then no column of the block between
            outer = tuple(dict.fromkeys((*outer, *scope.outer)))
        keep, self.draw.subquery = self.draw.subquery, None
        if keep == self.subquery and self.draw.chance(0.4):
            self.draw.subquery = self._innermost
        try:
            if type_ != "bool":
                return self._scalar(outer, type_)
            roll = self.rng.random()
            if roll < 0.45:
                inner = self.block(depth=0, want=("int",), outer=outer, limit=False)
                return f"{self.rng.choice(('', '', 'NOT '))}EXISTS ({inner.sql})"
            kind = self.rng.choice(("int", "text", "text"))
            value = self._comparable(scope, kind)
            if roll < 0.8:
                inner = self.block(depth=0, want=(kind,), outer=outer, limit=not outer)
                return f"{value} {self.rng.choice(('IN', 'IN', 'NOT IN'))} ({inner.sql})"
            return f"{self._comparable(scope, 'int')} >= {self._scalar(outer, 'int')}"
        finally:
            self.draw.subquery = keep

    def _innermost(self, scope: Scope, type_: str) -> str:
        """Draw a subquery of a subquery."""
        return self.subquery(scope, type_)

    def _comparable(self, scope: Scope, type_: str) -> str:
        made = answer_of(self.draw, scope, type_) if self.draw.chance(0.5) else None
        columns = [c.sql for c in scope.of(type_, free=False)]
        return made or (self.rng.choice(columns) if columns else constant(self.draw, type_))

    def _scalar(self, outer: tuple[Col, ...], type_: str) -> str:
        sources, text = self._from(0)
        columns = tuple(c for s in sources for c in s.scope())
        keys = tuple(f"{s.alias}.{k}" for s in sources for k in s.keys) if all(s.keys for s in sources) else ()
        scope = Scope(columns, outer, keys)
        where = f" WHERE {self._where(scope, outer)}"
        if keys and not outer and not self.draw.varied and self.draw.chance(0.4):
            value = self.expression(scope, type_, windows=False)
            return f"(SELECT {value} FROM {text}{where} ORDER BY {', '.join(keys)} LIMIT 1)"
        return f"(SELECT {self.aggregate(scope, type_, exact=True)[1]} FROM {text}{where})"

    # --- FROM ------------------------------------------------------------------------------------------------------

    def _from(self, depth: int) -> tuple[list[Source], str]:
        if depth and not self.draw.varied and self.draw.chance(0.07):
            return merged(self.draw, self.world, Source, Out)
        first = self._source(depth)
        sources, parts = [first], [self._written(first)]
        for _ in range(self.rng.choice((0, 0, 0, 1, 1, 2) if depth else (0, 0, 0, 0, 1))):
            roll = self.rng.random()
            made = None
            if roll < 0.24:
                made = self._unnest(sources)
            elif roll < 0.4 and depth:
                made = self._lateral(sources)
            if made is None:
                made = self._join(sources, self._source(depth))
            sources += [made[0]] if made[0].columns else []  # of SEMI and ANTI joins none is seen
            if made[1].startswith((" RIGHT JOIN", " FULL JOIN")):  # these do not reach over a comma
                parts = [part.replace(",", " CROSS JOIN", 1) if part.startswith(",") else part for part in parts]
            parts.append(made[1])
        return sources, "".join(parts)

    def _source(self, depth: int) -> Source:
        if depth and self.draw.chance(0.04):
            return values(self.draw, Source, Out)
        source = self._plain_source(depth)
        names = {c.name for c in source.columns}
        return renamed(self.draw, source) if len(names) == len(source.columns) and self.draw.chance(0.07) else source

    def _plain_source(self, depth: int) -> Source:
        alias = self.draw.alias()
        if self.ctes and self.draw.chance(0.8):
            return replace(self.rng.choice(self.ctes), alias=alias)
        if depth and self.draw.chance(0.16):
            inner = self.block(depth=depth - 1) if self.draw.chance(0.85) else self._set_operation()
            if len({c.name for c in inner.columns}) == len(inner.columns):
                return Source(f"({inner.sql})", alias, inner.columns, inner.keys)
        relation = self.rng.choice(self.world.relations)
        columns = tuple(Out(c, TYPES[c], c in FREE) for c in relation.columns)
        return Source(relation.name, alias, columns, ("id",) if relation.keyed else ())

    @staticmethod
    def _written(source: Source) -> str:
        return f"{source.sql} AS {source.alias}{source.listed}"

    def _join(self, sources: list[Source], right: Source) -> tuple[Source, str]:
        kind = self.rng.choice(
            ("JOIN", "JOIN", "JOIN", "LEFT JOIN", "LEFT JOIN", "RIGHT JOIN", "FULL JOIN", "CROSS JOIN")
        )
        if kind == "CROSS JOIN":
            return right, " CROSS JOIN " + self._written(right)
        left = [c for s in sources for c in s.scope()]
        both = Scope((*left, *right.scope()))
        keep, self.draw.subquery = self.draw.subquery, None
        condition = self._on(left, right.scope(), both, equal=kind == "FULL JOIN")
        self.draw.subquery = keep
        if kind == "JOIN" and self.draw.chance_beside(0.12):  # a SEMI JOIN on answers is refused in some places
            kind = "ANTI JOIN" if "answer(" in condition or self.draw.chance(0.5) else "SEMI JOIN"
        written = f" {kind} {self._written(right)} ON {condition}"
        return replace(right, columns=()) if kind in ("SEMI JOIN", "ANTI JOIN") else right, written

    def _on(self, left: list[Col], right: tuple[Col, ...], both: Scope, *, equal: bool) -> str:
        parts = []
        types = {c.type for c in left} & {c.type for c in right} & {"int", "text", "date", "enum"}
        types -= {"text"} if self.draw.varied else set()
        if types and (equal or self.draw.chance(0.75)):
            type_ = "int" if "int" in types and self.draw.chance(0.7) else self.rng.choice(sorted(types))
            a, b = (self.rng.choice([c for c in side if c.type == type_]) for side in (left, right))
            unmatched = f" OR {a.sql} IS NULL" if not equal and self.draw.chance_beside(0.15) else ""
            parts.append(f"({a.sql} = {b.sql}{unmatched})" if unmatched else f"{a.sql} = {b.sql}")
        if not parts and self.draw.text_left > 1 and self.draw.chance(0.6):
            kind = self.rng.choice(("who", "how"))
            a_call = call(self.draw, Scope(tuple(left)), kind)
            b_call = call(self.draw, Scope(right), kind)
            if a_call and b_call:
                parts.append(f"{a_call} = {b_call}")
        if not parts or self.draw.chance(0.45):
            made = text_predicate(self.draw, both) if self.draw.chance(0.75) else None
            parts.append(made or boolean(self.draw, both))
        return " AND ".join(parts)

    def _unnest(self, sources: list[Source]) -> tuple[Source, str] | None:
        arrays = [c for s in sources for c in s.scope() if c.type == "texts"]
        if not arrays:
            return None
        column = self.rng.choice(arrays)
        alias = self.draw.alias("u")
        joined = self.rng.choice(
            (
                f", unnest({column.sql}) AS {alias}",
                f" CROSS JOIN unnest({column.sql}) AS {alias}",
                f" CROSS JOIN LATERAL unnest({column.sql}) AS {alias}({alias})",
            )
        )
        if joined.startswith(",") and len(sources) > 1:
            joined = f" CROSS JOIN unnest({column.sql}) AS {alias}"
        return Source("", alias, (Out(alias, "text", True),)), joined

    def _lateral(self, sources: list[Source]) -> tuple[Source, str]:
        outer = tuple(c for s in sources for c in s.scope())
        keep, self.draw.subquery = self.draw.subquery, None
        types = tuple(self.rng.choice(("int", "text")) for _ in range(self.rng.choice((1, 2))))
        inner = self.block(depth=0, want=types, outer=outer, limit=self.draw.chance(0.5))
        self.draw.subquery = keep
        alias = self.draw.alias("l")
        how = self.rng.choice((" CROSS JOIN LATERAL ({}) AS {}", " LEFT JOIN LATERAL ({}) AS {} ON TRUE"))
        return Source("", alias, inner.columns), how.format(inner.sql, alias)

    # --- ends ------------------------------------------------------------------------------------------------------

    def _order(self, scope: Scope, named: list[str], distinct: bool) -> str:
        items = []
        for _ in range(self.rng.choice((1, 1, 2))):
            made = None
            self.draw.grant(0.3)
            if not distinct and not self.draw.varied and self.draw.chance(0.5):
                made = answer_of(self.draw, scope, self.rng.choice(("date", "int", "num", "text", "bool")))
            columns = [c.sql for c in scope.of("int", "num", "date", "enum", free=False)]
            if made is None and columns and not distinct and self.draw.chance(0.8):
                made = self.rng.choice(columns)
            if made is None and named and not self.draw.varied:
                made = self.rng.choice(named)
            if made is not None:
                items.append(made + self._direction())
        return " ORDER BY " + ", ".join(items) if items else ""

    def _direction(self) -> str:
        return self.rng.choice(
            ("", "", " DESC", " DESC", " ASC", " DESC NULLS FIRST", " NULLS FIRST", " DESC NULLS LAST")
        )

    def _limit(self) -> str:
        text = f" LIMIT {self.rng.choice((1, 1, 2, 3, 3, 5))}"
        return text + (f" OFFSET {self.rng.randint(1, 3)}" if self.draw.chance(0.3) else "")

    def _some_type(self, scope: Scope) -> str:
        present = [c.type for c in scope.columns if c.type in SCALARS]
        return self.rng.choice([*present, "text", "text", "int", "date"])

    @staticmethod
    def _is_free(scope: Scope, text: str) -> bool:
        return any(c.free and c.sql == text for c in scope.columns)
