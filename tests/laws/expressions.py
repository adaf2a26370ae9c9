"""Random expressions of SUQL over a scope, as text in the PostgreSQL flavour.

Only what is deterministic is drawn: no aggregate without its own total order where order shows, no division by zero,
no cast of a reply that is not of that kind. A parameter is written as its literal between ⟦ and ⟧.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass

from .world import CITIES, GRADES, MEANINGS, NAMES, TAGS

QUESTIONS = {
    "is": ("is it calm?", "is it good for a date?", "is it 'fancy'?", "is it cheap?"),
    "who": ("who owns it?", "who cooks?"),
    "how": ("how many seats?", "how many stars?"),
    "what": ("what price is named?", "what is the bill?"),
    "when": ("when did it open?", "when was the visit?"),
}
KIND_OF = {"text": "is", "int": "how", "num": "what", "date": "when"}
CAST = {"int": "int", "num": "numeric", "date": "date"}


@dataclass(frozen=True)
class Col:
    """A column in reach: how it is written, its type, whether its null-padded side keeps it unique (a key)."""

    sql: str
    type: str
    free: bool = False


@dataclass(frozen=True)
class Scope:
    """What an expression may name: columns of the block's FROM, those of outer blocks, and keys of the FROM."""

    columns: tuple[Col, ...]
    outer: tuple[Col, ...] = ()
    keys: tuple[str, ...] = ()

    def of(self, *types: str, free: bool | None = None) -> list[Col]:
        """Return the columns of those types."""
        return [c for c in self.columns if c.type in types and (free is None or c.free == free)]


@dataclass
class Draw:
    """State shared while one query is drawn."""

    rng: random.Random
    text_left: int = 4
    beside: random.Random | None = None
    """Draws what was added to the generator later, so that all else of a seed stays as it is."""
    bare: bool = True
    """Whether an answer alone may be a condition; elsewhere it is text."""
    varied: bool = False
    structured: bool = False
    aliases: int = 0
    subquery: Callable[[Scope, str], str] | None = None

    def chance(self, share: float) -> bool:
        """Tell True in that share of draws."""
        return self.rng.random() < share

    def chance_beside(self, share: float) -> bool:
        """Tell True in that share of draws, and leave all other draws as they are."""
        return self.beside is not None and self.beside.random() < share

    def is_bare(self) -> bool:
        """Tell whether a condition is to be an answer alone."""
        return self.bare and self.chance_beside(0.5)

    def grant(self, share: float = 1.0) -> None:
        """Make sure, in that share of draws, that a text function can still be drawn."""
        if not self.structured and self.chance(share):
            self.text_left = max(self.text_left, 1)

    def alias(self, prefix: str = "a") -> str:
        """Return a name not used yet in the query."""
        self.aliases += 1
        return f"{prefix}{self.aliases}"


def literal(text: str) -> str:
    """Write a string literal."""
    return "'" + text.replace("'", "''") + "'"


def parameter(draw: Draw, text: str, share: float = 0.06) -> str:
    """Write a literal, now and then as a parameter."""
    return f"⟦{text}⟧" if draw.chance(share) else text


# --- documents and calls -------------------------------------------------------------------------------------------


def document(draw: Draw, scope: Scope) -> str | None:
    """Draw what a text function reads; None where the scope has no text."""
    free = scope.of("text", "texts", free=True)
    if not free:
        free = scope.of("text", "texts")
    if not free:
        return None
    chosen = draw.rng.choice(free)
    roll = draw.rng.random()
    if chosen.type == "text":
        other = scope.of("text", "enum", free=False)
        if roll < 0.06 and other:
            return f"{chosen.sql} || ' ' || {draw.rng.choice(other).sql}"
        if roll < 0.12:
            return f"coalesce({chosen.sql}, 'no text')"
        if roll < 0.2 and draw.text_left > 1:
            draw.text_left -= 1
            return f"answer({chosen.sql}, {literal(draw.rng.choice(QUESTIONS['who']))})"
        if roll < 0.23:
            return f"CASE WHEN {chosen.sql} IS NULL THEN 'nothing' ELSE {chosen.sql} END"
    return chosen.sql


def question(draw: Draw, scope: Scope, kind: str) -> str:
    """Draw a question whose replies are of a kind: mostly a literal, now and then an expression per row."""
    if draw.chance(0.14):
        named = scope.of("text", free=False) + scope.of("int") + [c for c in scope.outer if c.type in ("text", "int")]
        if named:
            column = draw.rng.choice(named)
            shown = column.sql if column.type == "text" else f"{column.sql}::text"
            return f"{literal(kind + ' it like ')} || {shown}"
    return parameter(draw, literal(draw.rng.choice(QUESTIONS[kind])))


def call(draw: Draw, scope: Scope, kind: str) -> str | None:
    """Draw one `answer(…)` whose replies are of a kind."""
    doc = document(draw, scope)
    if doc is None or draw.text_left <= 0:
        return None
    draw.text_left -= 1
    options = ", ARRAY['Yes', 'No']" if kind == "is" and draw.chance(0.07) else ""
    return f"answer({doc}, {question(draw, scope, kind)}{options})"


def answer_of(draw: Draw, scope: Scope, type_: str) -> str | None:
    """Draw an expression of a type with a text function in it, or None."""
    rng = draw.rng
    if type_ == "bool":
        keep, draw.bare = draw.bare, False
        made = text_predicate(draw, scope)
        draw.bare = keep
        return made
    if type_ != "text":
        inner = call(draw, scope, KIND_OF.get(type_, "is"))
        return None if inner is None else f"{inner}::{CAST[type_]}"
    roll = rng.random()
    if roll < 0.1 and draw.text_left > 0:
        doc = document(draw, scope)
        if doc is not None:
            draw.text_left -= 1
            return f"summary({doc})"
    inner = call(draw, scope, rng.choice(("is", "is", "who")))
    if inner is None:
        return None
    if roll < 0.2:
        # Where spellings vary, whether a literal is the same value as a reply is not for the referee to say.
        other = rng.choice(("No", "unknown"))
        return f"coalesce({inner}, {literal('unknown' if draw.varied else other)})"
    if roll < 0.3:
        return f"{inner} || {rng.choice([*structured_texts(scope), literal('!')])}"
    if roll < 0.4:
        return f"CASE {inner} WHEN 'Yes' THEN 'y' WHEN 'No' THEN 'n' ELSE 'other' END"
    if roll < 0.47:
        return f"CASE WHEN {predicate(draw, scope)} THEN {inner} ELSE 'skip' END"
    if roll < 0.5:
        return f"upper({inner})"
    return inner


def structured_texts(scope: Scope) -> list[str]:
    """Return the structured text columns."""
    return [c.sql for c in scope.of("text", free=False)]


# --- predicates ----------------------------------------------------------------------------------------------------


def text_predicate(draw: Draw, scope: Scope) -> str | None:
    """Draw an atom with a text function in it, or None where there is no text or no call left."""
    shapes = (
        _verdict,
        _verdict,
        _verdict,
        _verdict,
        _member,
        _null,
        _typed,
        _typed,
        _between,
        _both,
        _column,
        _column,
        _cased,
        _like,
    )
    for _ in range(3):
        made = draw.rng.choice(shapes)(draw, scope)
        if made is not None:
            return made
    return _verdict(draw, scope)


def _verdict(draw: Draw, scope: Scope) -> str | None:
    inner = call(draw, scope, "is")
    if inner is None:
        return None
    value = parameter(draw, literal(draw.rng.choice(("Yes", "Yes", "Yes", "No"))))
    operator = draw.rng.choice(("=", "=", "=", "=", "<>"))
    if draw.chance(0.08):
        return f"{value} {operator} {inner}"
    if draw.chance(0.12) and not draw.varied:
        return f"coalesce({inner}, 'No') {operator} {value}"
    if draw.chance(0.06) and not draw.varied:
        return f"{inner} || '!' {operator} {literal('Yes!')}"
    if draw.is_bare():
        return inner if operator == "=" else f"NOT {inner}"
    return f"{inner} {operator} {value}"


def _member(draw: Draw, scope: Scope) -> str | None:
    kind = draw.rng.choice(("is", "who"))
    inner = call(draw, scope, kind)
    if inner is None:
        return None
    pool = ("Yes", "No", "maybe") if kind == "is" else NAMES
    values = ", ".join(literal(v) for v in draw.rng.sample(pool, draw.rng.randint(1, 3)))
    return f"{inner} {draw.rng.choice(('IN', 'IN', 'NOT IN'))} ({values})"


def _null(draw: Draw, scope: Scope) -> str | None:
    inner = call(draw, scope, draw.rng.choice(("is", "who")))
    return None if inner is None else f"{inner} IS {draw.rng.choice(('', 'NOT '))}NULL"


def _typed(draw: Draw, scope: Scope) -> str | None:
    type_ = draw.rng.choice(("int", "int", "num", "date"))
    inner = call(draw, scope, KIND_OF[type_])
    if inner is None:
        return None
    cast = "" if draw.chance(0.35) else f"::{CAST[type_]}"
    return f"{inner}{cast} {draw.rng.choice(('=', '<', '>=', '>', '<='))} {constant(draw, type_)}"


def _between(draw: Draw, scope: Scope) -> str | None:
    type_ = draw.rng.choice(("int", "num", "date"))
    inner = call(draw, scope, KIND_OF[type_])
    if inner is None:
        return None
    low, high = sorted((constant(draw, type_), constant(draw, type_)))
    return f"{inner}::{CAST[type_]} {draw.rng.choice(('', '', 'NOT '))}BETWEEN {low} AND {high}"


def _both(draw: Draw, scope: Scope) -> str | None:
    if draw.text_left < 2:
        return None
    kind = draw.rng.choice(("is", "is", "how"))
    left, right = call(draw, scope, kind), call(draw, scope, kind)
    if left is None or right is None:
        return None
    cast = "::int" if kind == "how" else ""
    return f"{left}{cast} {draw.rng.choice(('=', '=', '<>'))} {right}{cast}"


def _column(draw: Draw, scope: Scope) -> str | None:
    if draw.varied:
        return None
    numbers = scope.of("int")
    if numbers and draw.chance(0.3):
        inner = call(draw, scope, "how")
        cast = "" if draw.chance(0.3) else "::int"
        return (
            None
            if inner is None
            else f"{inner}{cast} {draw.rng.choice(('=', '<', '>='))} {draw.rng.choice(numbers).sql}"
        )
    cities, tags = scope.of("text", free=False), [c for c in scope.of("texts") if not c.free]
    if tags and draw.chance(0.45):
        inner = call(draw, scope, "who")
        return None if inner is None else f"{inner} = ANY({draw.rng.choice(tags).sql})"
    if not cities:
        return None
    inner = call(draw, scope, "who")
    return None if inner is None else f"{inner} = {draw.rng.choice(cities).sql}"


def _cased(draw: Draw, scope: Scope) -> str | None:
    inner = call(draw, scope, "is")
    if inner is None:
        return None
    if draw.chance(0.5):
        return f"CASE {inner} WHEN 'Yes' THEN {boolean(draw, scope)} ELSE {boolean(draw, scope)} END"
    return f"CASE WHEN {boolean(draw, scope)} THEN {inner} = 'Yes' WHEN {inner} = 'No' THEN {boolean(draw, scope)} END"


def _like(draw: Draw, scope: Scope) -> str | None:
    inner = call(draw, scope, "who")
    return None if inner is None else f"{inner} {draw.rng.choice(('ILIKE', 'NOT ILIKE'))} '%o%'"


def constant(draw: Draw, type_: str) -> str:
    """Draw a literal of a type."""
    rng = draw.rng
    if type_ == "int":
        return str(rng.randint(0, 5))
    if type_ == "num":
        return f"{rng.randint(0, 9)}.5"
    if type_ == "date":
        return f"DATE '202{rng.randint(0, 3)}-0{rng.randint(1, 9)}-15'"
    if type_ == "bool":
        return rng.choice(("TRUE", "FALSE"))
    return literal(rng.choice(CITIES + GRADES + TAGS))


def boolean(draw: Draw, scope: Scope) -> str:
    """Draw a structured predicate, mostly true of a fair share of rows."""
    rng = draw.rng
    columns = [c for c in scope.columns if not c.free]
    if not columns or rng.random() < 0.04:
        return rng.choice(("TRUE", "FALSE", "1 = 1"))
    column = rng.choice(columns)
    if column.type == "bool":
        return rng.choice((column.sql, f"NOT {column.sql}", f"{column.sql} IS NOT FALSE"))
    if column.type == "texts":
        return rng.choice(
            (
                f"{literal(rng.choice(TAGS))} = ANY({column.sql})",
                f"{column.sql} IS NOT NULL",
                f"{column.sql} @> ARRAY['bar']",
            )
        )
    if column.type in ("int", "num", "date"):
        if column.type == "int" and rng.random() < 0.1:
            return f"{column.sql} / 2 = {rng.randint(0, 3)}"
        return f"{column.sql} {rng.choice(('>=', '<=', '<>', '>', '<'))} {parameter(draw, constant(draw, column.type))}"
    if column.type == "enum":
        named = column.sql.endswith(".grade") and draw.chance(0.5)  # of an ENUM column, not of an expression over one
        values = tuple(MEANINGS) if named else GRADES
        if draw.chance(0.4):
            low, high = sorted(rng.choices(GRADES, k=2), key=GRADES.index)
            if draw.chance(0.3):
                return f"{column.sql} BETWEEN {literal(low)} AND {literal(high)}"
            others = [c.sql for c in scope.of("enum") if c.sql != column.sql]
            other = rng.choice(others) if others and draw.chance(0.4) else literal(low)
            return f"{column.sql} {rng.choice(('<', '<=', '>', '>='))} {other}"
        operator, value = rng.choice(("<>", "=", "<>")), rng.choice(values)
        if draw.beside is not None and column.sql.endswith(".grade") and draw.chance_beside(0.5):
            value = draw.beside.choice(tuple(MEANINGS))
        return f"{column.sql} {operator} {literal(value)}"
    return rng.choice(
        (f"{column.sql} <> {constant(draw, 'text')}", f"{column.sql} ILIKE '%o%'", f"{column.sql} IS NOT NULL")
    )


def predicate(draw: Draw, scope: Scope, depth: int = 2) -> str:
    """Draw a predicate: nests of AND, OR and NOT over atoms, subqueries among them."""
    rng = draw.rng
    roll = rng.random()
    if depth > 0 and roll < 0.3:
        left, right = predicate(draw, scope, depth - 1), predicate(draw, scope, depth - 1)
        return f"({left} {rng.choice(('AND', 'OR', 'OR'))} {right})"
    if depth > 0 and roll < 0.38:
        return f"NOT ({predicate(draw, scope, depth - 1)})"
    if draw.subquery is not None and roll < 0.42 + 0.06 * (depth == 2):
        return draw.subquery(scope, "bool")
    if roll < 0.75:
        made = text_predicate(draw, scope)
        if made is not None:
            return made
    return boolean(draw, scope)


def across(draw: Draw, scope: Scope) -> str | None:
    """Draw what an outer join makes hard: a condition that rows without a match in one FROM item may meet."""
    items: dict[str, list[Col]] = {}
    for column in scope.columns:
        items.setdefault(column.sql.split(".")[0], []).append(column)
    if len(items) < 2:
        return None
    sides = [Scope(tuple(items[name])) for name in draw.rng.sample(sorted(items), 2)]
    if draw.chance(0.25):
        return f"{draw.rng.choice(sides[0].columns).sql} IS NULL"
    asked = text_predicate(draw, sides[1]) if draw.chance(0.3) else None
    parts = [boolean(draw, sides[0]), asked or boolean(draw, sides[1])]
    draw.rng.shuffle(parts)
    return f"({' OR '.join(parts)})"
