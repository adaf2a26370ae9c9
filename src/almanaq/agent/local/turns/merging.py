"""What a turn changes in the query before it: what it names replaces what is of the same kind, and the rest stays."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import date, timedelta

from sqlglot import exp

from almanaq.agent.history import Turn
from almanaq.agent.linking.columns import LinkedColumn, fact_columns, name_columns
from almanaq.agent.linking.english import english
from almanaq.agent.linking.words import fold, singular
from almanaq.agent.local.phrases import domain_of, matter_of, search_words
from almanaq.agent.local.reading import Reading, read
from almanaq.agent.local.spec import QuerySpec, columns_in, count, one_of, plain
from almanaq.agent.local.texts import is_searched, search_covers
from almanaq.agent.local.turns.references import turn_pattern
from almanaq.agent.local.world import World
from almanaq.suql.text_functions import has_text

SURE, GUESSED = 0.95, 0.5
"""Probabilities of what the words of a turn say, and of what they may say."""
_ISO = re.compile(r"\d{4}-\d\d-\d\d")
_MARKS, _JOINING = frozenset(".,;:?!…"), frozenset(("and", "or", "nor", "&", "both"))
_ANY_PLACE = re.compile(r"\bany (?:place|location|area)\b", re.IGNORECASE)
_ROOT = 5
"""Letters that kin words begin with: "peace" and "peaceful", "quiet" and "quietness"."""
_OF_TIME = {"year", "date", "month", "time", "period"}
_OF_ROLES = {
    "price": {"price", "money", "budget", "cost"},
    "city": {"city", "anywhere", "wherever"},
    "address": {"address", "anywhere", "wherever"},
    "rating": {"rating", "stars"},
}
"""Words that give up any condition on a column of a role."""


@dataclass(frozen=True, slots=True)
class FollowUp:
    """A turn, with the query that was answered last, the turns before it, and what they are about."""

    said: str
    spec: QuerySpec
    history: Sequence[Turn]
    world: World

    def match(self, name: str) -> re.Match[str] | None:
        """Return where one of the patterns of `turns.toml` is said."""
        return turn_pattern(name).search(self.said)

    def read(self, said: str) -> Reading | None:
        """Return the likeliest reading of words about the same rows."""
        relation = self.world.catalog.relation(self.spec.rows)
        return next(iter(read(said, self.world, main=relation, partial=True)), None)

    def conditions_named(self, said: str) -> QuerySpec:
        """Return a spec of the conditions on columns that words name."""
        found = self.read(said)
        named = (c for c in (found.spec.conditions if found else ()) if not has_text(c))
        return QuerySpec(self.spec.rows, conditions=tuple(named))

    @property
    def is_search(self) -> bool:
        """Whether the rows have texts that they are searched by."""
        return is_searched(self.world, self.world.catalog.relation(self.spec.rows))


@dataclass(frozen=True, slots=True)
class Edit:
    """The query that a turn makes of the last one; None where it makes none.

    Attributes:
        kind: "detail" of a query from which the next turn does not go on.
        unused: the words that it leaves out.
    """

    spec: QuerySpec | None
    probability: float = SURE
    kind: str = ""
    unused: tuple[str, ...] = ()


def replace_parts(old: QuerySpec, new: QuerySpec, world: World) -> QuerySpec | None:
    """Return a query with the parts of another one in the place of its own; None where they clash.

    Conditions stay: `merge_conditions` merges these.
    """
    made = old
    if new.measures and not (old.measures and new.groups and new.measures == (count(),)):
        made = replace(made, measures=new.measures, columns=(), distinct=False, order=(), limit=None)
    if new.groups:
        made = QuerySpec(old.rows, (), made.measures or (count(),), made.conditions, new.groups, new.having)
    if new.order:
        order = new.order
        if made.gives_figures:  # the cheapest of average prices is the lowest; what only a row has orders no figures
            term, falling = order[0]
            measure = next((each for each in made.measures if term in (each, *each.find_all(exp.Column))), None)
            if measure is None and term not in made.groups:
                return None
            order = ((measure or term, falling),)
        made = replace(made, order=order, limit=new.limit or made.limit, offset=new.offset)
    elif new.columns and not made.gives_figures:
        shown = dict.fromkeys((*map(plain, name_columns(world.columns(old.rows))), *new.columns))
        made = replace(made, columns=tuple(shown), distinct=False)
    return made


def merge_conditions(old: QuerySpec, new: QuerySpec, world: World, *, keeps: bool = False) -> list[exp.Expr]:
    """Return the conditions of both; a new one takes the place of one on the same columns, or of a day of any.

    Args:
        keeps: what a list is to hold stays beside what it is to hold as well.
    """
    kept = []
    for condition in old.conditions:
        column = world.column_of(condition)
        if leaves_out_rows(condition):
            gone = bool(new.conditions)
        elif has_text(condition) and (column is None or column.kind == "prose"):  # each question is a wish of its own
            gone = condition in new.conditions or _contradicts(condition, new.conditions, world)
        elif has_text(condition):
            gone = any(columns_in(condition) == columns_in(c) for c in new.conditions)
        else:
            gone = any(_replaces(c, condition) for c in new.conditions) and not _is_other_edge(condition, new)
            gone = gone and not (keeps and column is not None and (column.column.array or column.mark))
        if not gone:
            kept.append(condition)
    if len(kept) < len(old.conditions):
        kept = [each for each in kept if not _compares_with_shown(each)]
    # "Without the music" after "with live music" asks for none, and gives the wish up.
    given_up = [c for c in new.conditions if c.text("expression") == "No" and _contradicts(c, old.conditions, world)]
    wished = [_wish_of(each, world) for each in kept]
    again = [c for c in new.conditions if (wish := _wish_of(c, world)) is not None and wish in wished]
    return [*kept, *(c for c in new.conditions if c not in given_up and c not in again)]


def _replaces(new: exp.Expr, old: exp.Expr) -> bool:
    """Return whether a condition takes the place of another: what is left out of several values leaves the others."""
    if has_text(new) or not columns_in(new) & columns_in(old):
        return False
    if isinstance(new, exp.Not):
        return old in new.find_all(type(old))
    several = isinstance(new, exp.NEQ) and isinstance(old, exp.In | exp.Or)
    return not (several and new.expression in old.find_all(exp.Literal))


def _is_other_edge(condition: exp.Expr, new: QuerySpec) -> bool:
    """Return whether a day is the other end of a period than one that is named: "until June" after "since March"."""
    named = [c for c in new.conditions if isinstance(c, exp.GTE | exp.LT) and c.this == condition.this]
    if len(named) != 1 or isinstance(condition, type(named[0])) or _day_of(condition) is None:
        return False
    days = (_day_of(named[0]) or date.min, _day_of(condition) or date.min)
    return days[0] > days[1] if isinstance(named[0], exp.LT) else days[0] < days[1]


def _day_of(condition: exp.Expr) -> date | None:
    """Return the day that a condition begins or ends with; None where it does neither."""
    edge = isinstance(condition, exp.GTE | exp.LT) and isinstance(condition.expression, exp.Cast)
    written = condition.expression.this.name if edge else ""
    return date.fromisoformat(written) if _ISO.fullmatch(written) else None


def join_alternatives(said: str, old: QuerySpec, new: QuerySpec) -> tuple[QuerySpec, bool]:
    """Return the parts that a turn names, with the old conditions beside the new ones where either may hold.

    Also return whether that is a guess: "Oslo too" may be both, or this alone.
    """
    either, adds = (turn_pattern(name).search(said) for name in ("either", "adds"))
    lists = either or said.casefold().startswith("or ")  # what a list holds "too" it may hold beside the other
    before: dict[frozenset[tuple[str, str]], exp.Expr] = {}
    for each in old.conditions if either or adds else ():
        if not has_text(each) and (lists or isinstance(each.this, exp.Column)):
            before[columns_in(each)] = exp.and_(*filter(None, (before.get(columns_in(each)), each)))
    others = [before.get(columns_in(c)) for c in new.conditions]
    pairs = zip(new.conditions, others, strict=True)
    guessed = not either and any(other is not None for other in others)
    return new.with_conditions(c if other is None else exp.or_(other, c) for c, other in pairs), guessed


def leaves_out_rows(condition: exp.Expr) -> bool:
    """Return whether a condition leaves out rows by their keys, as those that were shown."""
    inner = condition.this.unnest() if isinstance(condition, exp.Not) else None
    keys = isinstance(inner, exp.EQ) or (isinstance(inner, exp.In) and not inner.args.get("query"))
    return keys and inner is not None and inner.this.name.casefold().endswith("id")


def names_row(condition: exp.Expr, rows: str, world: World) -> bool:
    """Return whether a condition holds of one row alone, as one that calls it by its name."""
    column = world.column_of(condition) if isinstance(condition, exp.EQ) and not has_text(condition) else None
    return column is not None and column.relation.name == rows and world.is_unique(column)


def _compares_with_shown(condition: exp.Expr) -> bool:
    """Return whether a condition compares with rows that were shown, and ends with their search."""
    inner = condition.find(exp.Subquery)
    return inner is not None and isinstance(condition, exp.GT | exp.LT) and inner.find(exp.Max, exp.Min) is not None


def denies_of_things(spec: QuerySpec, new: QuerySpec) -> bool:
    """Return whether a negation may be of some rows of a thing, or of all: clubs with members "but not from Rome"."""
    lacks = any(isinstance(c, exp.Not) and c.find(exp.Subquery, exp.Select) for c in spec.conditions)
    denied = any(isinstance(c, exp.Not | exp.NEQ) for c in new.conditions)
    return (lacks and bool(new.conditions)) or (spec.distinct and denied)


def list_rows(spec: QuerySpec, world: World) -> QuerySpec | None:
    """Return the query that lists the rows; of a figure, those that it is of; None of groups."""
    if not spec.gives_figures:
        return spec if spec.order else replace(spec, limit=None)
    return None if spec.groups else QuerySpec(spec.rows, _facts(spec, world), (), spec.conditions)


def list_kinds_as_rows(spec: QuerySpec, new: QuerySpec, world: World) -> QuerySpec:
    """Return the rows of one of the kinds that a query lists, where a turn names it; else the query as it is."""
    named = any(columns_in(c) & columns_in(each) for c in new.conditions for each in spec.columns)
    return replace(spec, columns=_facts(spec, world), distinct=False) if spec.distinct and named else spec


def _facts(spec: QuerySpec, world: World) -> tuple[exp.Expr, ...]:
    tested = (c for each in spec.conditions if (c := world.column_of(each)) is not None)
    return tuple(map(plain, fact_columns(world.columns(spec.rows), tested)))


def put_right(said: str, spec: QuerySpec, world: World) -> str:
    """Return a turn without the value of the last query for which it names another one: "Oslo rather than Vik"."""
    links, searched = world.link(said), is_searched(world, world.catalog.relation(spec.rows))
    cover = next(iter(search_covers(links, world) if searched else links.covers), ())
    words = [links.text(span).casefold() for span in cover]
    tests = [c for c in spec.conditions if not isinstance(c, exp.Not | exp.NEQ)]
    tested = {(key, value) for c in tests for key in columns_in(c) for value in _values_in(c)}
    meant = [
        {((m.column.relation.name, m.column.name), m.value) for m in span.meanings if span.kind == "value"}
        for span in cover
    ]
    old = next((i for i, each in enumerate(meant) if each & tested), None)
    keys = {key for key, _ in meant[old]} if old is not None else set()
    new = next((i for i, each in enumerate(meant) if not each & tested and keys & {key for key, _ in each}), None)
    if old is None or new is None or turn_pattern("adds").search(said):
        return said
    first = max((i + 1 for i in range(old) if words[i] in _MARKS), default=0)
    last = min((i for i in range(old, len(words)) if words[i] in _MARKS), default=len(words))
    denied, between = any(each.kind == "not" for each in cover[first:old]), range(min(old, new) + 1, max(old, new))
    adds = any(words[i] in _JOINING or (old < new and cover[i].kind == "not") for i in between)
    if adds or not (denied or (searched and between)) or last - first == 1:
        return said  # "southern barbecue" is both
    start, end = (first, last) if not first <= new < last else (new + 1 if new < old else first, old + 1)
    begin, close = links.tokens[cover[start].first].start, links.tokens[cover[end - 1].last - 1].end
    return f"{said[:begin]} {said[close:]}".strip(" .,;:?!")


def fill_year(said: str, spec: QuerySpec, world: World) -> tuple[str, bool]:
    """Return a turn whose month has the year of the last query, and whether that is sure.

    It is where the turn names no month, or the last query compares with no day; of no one year, the turn stays.
    """
    cover = next(iter(world.link(said).covers), ())
    month = next((s for s in cover if s.kind == "period" and s.meanings[0].days is not None), None)
    edges = {c: found for c in spec.conditions if (found := _day_of(c)) is not None}
    if month is None or not edges:
        return said, True
    inside = {(found - timedelta(isinstance(c, exp.LT))).year for c, found in edges.items()}
    if len(inside) != 1 or len({type(c) for c in edges}) == 1 or len({c.this for c in edges}) > 1:
        return said, False
    end = world.link(said).tokens[month.last - 1].end
    return f"{said[:end]} {inside.pop()}{said[end:]}", True


def without(said: str, spec: QuerySpec, world: World) -> QuerySpec | None:
    """Return the same without the conditions that words speak of; None where they speak of none."""
    links = world.link(_ANY_PLACE.sub("anywhere", said))
    spans = [span for span in links.spans if links.text(span).casefold() not in search_words().entity_words]
    meant = [meaning for span in spans if span.kind in ("column", "value") for meaning in span.meanings]
    values = {getattr(meaning, "value", "") for meaning in meant}
    words = {word for token in links.tokens for word in (token.folded, token.stem)}
    columns = [c for meaning in meant if isinstance(c := getattr(meaning, "thing", None), LinkedColumn)]
    columns += [c for c in world.columns(spec.rows) if any(words & _OF_ROLES.get(role, set()) for role in c.roles)]
    named = {(column.relation.name, column.name) for column in columns}
    roots, runs = {word[:_ROOT] for word in words}, domain_of(world.catalog).matters.items()
    matters = {matter[0] for run, matter in runs if {word[:_ROOT] for word in run} <= roots}
    told = {word for word in words if len(word) > 3} - english().silent - {"important", spec.rows, singular(spec.rows)}
    telling = {word[:_ROOT] for word in told}

    def is_meant(condition: exp.Expr) -> bool:
        if has_text(condition):
            question = " ".join(literal.this for literal in condition.find_all(exp.Literal) if literal.is_string)
            same = (_wish_of(condition, world) or ("",))[0] in matters
            return same or bool({word[:_ROOT] for word in re.findall(r"\w+", fold(question))} & telling)
        column = world.column_of(condition)
        of_time = _OF_TIME & words and column is not None and column.kind == "date"
        return bool(_values_in(condition) & values or columns_in(condition) & named or of_time)

    left = [_keep_others(each, values) if is_meant(each) else each for each in spec.conditions]
    if left == list(spec.conditions):
        return None
    return spec.with_conditions(each for each in left if each is not None and not _compares_with_shown(each))


def _values_in(condition: exp.Expr) -> set[str]:
    return {literal.this for literal in condition.find_all(exp.Literal)}


def _keep_others(condition: exp.Expr, values: set[str]) -> exp.Expr | None:
    """Return a condition without the alternatives that are some values; None where it has no others, or not these."""
    inner = condition.unnest() if isinstance(condition, exp.Paren) else condition
    either = list(inner.flatten()) if isinstance(inner, exp.Or) else inner.expressions
    kept = [each for each in either if not values & _values_in(each)]
    if not kept or len(kept) == len(either):
        return None
    return one_of(inner.this, kept) if isinstance(inner, exp.In) else exp.or_(*kept)


def _wish_of(condition: exp.Expr, world: World) -> tuple[str, bool] | None:
    """Return the matter that texts are asked about and whether it is wanted; None where it is none with a name."""
    asked = condition.find(exp.Anonymous) if has_text(condition) else None
    matter = None if asked is None else matter_of(asked.expressions[-1].name, domain_of(world.catalog))
    return matter and (matter[0], matter[1] is (condition.text("expression") != "No"))


def _contradicts(condition: exp.Expr, others: Sequence[exp.Expr], world: World) -> bool:
    """Return whether a test of texts wants what another does not want: "lively" after "quiet"."""
    wish = _wish_of(condition, world)
    return wish is not None and (wish[0], not wish[1]) in [_wish_of(each, world) for each in others]
