"""Chooses the column that each linked value or number speaks of, and writes the conditions."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import date

from almanaq.agent.local import sql
from almanaq.agent.local.calendar_spans import years_before
from almanaq.agent.local.dates import span_template
from almanaq.agent.local.joins import Hop
from almanaq.agent.local.links import DateLink, Links, NumberLink, ValueLink
from almanaq.agent.local.quantities import MINUTES
from almanaq.agent.local.reading import Condition
from almanaq.agent.local.schema_index import Meaning, Place, SchemaIndex
from almanaq.agent.local.spoken import relation_stems
from almanaq.agent.local.words import roots, word_set
from almanaq.suql.catalog.relations import ColumnKind

Paths = Mapping[str, tuple[Hop, ...]]
_PLACES = word_set(
    """
    city location country state address area neighborhood district region town nation continent venue
    """
)

_LISTING = word_set(", or and a an the either")


def value_meaning(links: Links, value: ValueLink, paths: Paths) -> Meaning | None:
    """Give the likeliest meaning of a value among the relations in reach, None when none is."""
    reachable = [m for m in value.meanings if m[0].relation.name in paths]
    return max(reachable, key=lambda m: value_score(links, value, m[0], paths), default=None)


def value_score(links: Links, value: ValueLink, place: Place, paths: Paths) -> float:
    """Weigh how likely a value means one of a column's: by the words around it, and how far the column is."""
    score = 2.0 if place.column.kind is ColumnKind.ENUM else 0.0
    score -= 2.0 * len(paths[place.relation.name])
    near = {links.stem(k) for k in (*range(value.first - 3, value.first), value.last, value.last + 1)}
    score += 3.0 * bool(near & set(place.stems)) + 2.0 * bool(near & set(place.relation.name.casefold().split("_")))
    if links.folded(value.first - 1) in ("in", "at", "near", "from") and _PLACES & set(place.stems):
        score += 1.5
    return score + 0.5 * ("name" in place.roles) - 0.5 * place.identifier


def value_conditions(chosen: Sequence[tuple[ValueLink, Meaning]], links: Links) -> Iterable[Condition]:
    """Write the conditions, values of one column together: OR for one cell; for arrays, where the asker says so."""
    groups: dict[tuple[str, str, bool], list[tuple[ValueLink, Meaning]]] = {}
    for value, meaning in chosen:
        key = (meaning[0].relation.name, meaning[0].column.name, value.negated)
        groups.setdefault(key, []).append((value, meaning))
    for members in groups.values():
        for listed in _lists(members, links):
            yield from _group(listed, links)


def _lists(members: list[tuple[ValueLink, Meaning]], links: Links) -> Iterable[list[tuple[ValueLink, Meaning]]]:
    """Yield the values that stand in one list, "thai, greek or lebanese"; all of them for a column with one value."""
    listed = members[:1]
    for one in members[1:]:
        between = {links.folded(k) for k in range(listed[-1][0].last, one[0].first)}
        if members[0][1][0].column.array and not between <= _LISTING:
            yield listed
            listed = []
        listed.append(one)
    yield listed


def _group(members: list[tuple[ValueLink, Meaning]], links: Links) -> Iterable[Condition]:
    place = members[0][1][0]
    texts = []
    for value, (_, spelled) in members:
        everything = sorted({m[1] for m in value.meanings if m[0] == place}) if not value.part else [spelled]
        texts += [value_template(value, (place, each)) for each in everything]
    texts = list(dict.fromkeys(texts))
    either = not place.column.array or any(
        links.folded(k) == "or" for k in range(members[0][0].first, members[-1][0].last)
    )
    if members[0][0].negated:
        yield from (
            Condition(place, f"NOT {t}" if "ILIKE" in t or "ANY" in t else t.replace(" = ", " <> ", 1), excludes=t)
            for t in texts
        )
    elif len(texts) == 1 or not either:
        yield from (Condition(place, text) for text in texts)
    elif all(t.startswith("{} = ") for t in texts):
        yield Condition(place, "{} IN (" + ", ".join(t.removeprefix("{} = ") for t in texts) + ")")
    else:
        yield Condition(place, "(" + " OR ".join(texts) + ")")


def value_template(value: ValueLink, meaning: Meaning) -> str:
    """Write that a column, `{}`, has a value."""
    place, spelled = meaning
    if value.part:
        return "{} ILIKE " + sql.pattern(value.text)
    return f"{sql.text(spelled)} = ANY({{}})" if place.column.array else f"{{}} = {sql.text(spelled)}"


def boolean_condition(place: Place, wanted: bool) -> Condition:
    """Say that a column holds, or not; one of words is compared with its word for yes."""
    if place.affirms is None:
        return Condition(place, "{}" if wanted else "NOT {}")
    yes = place.affirms if place.affirms.isdigit() else sql.text(place.affirms)
    return Condition(place, f"{{}} {'=' if wanted else '<>'} {yes}")


def number_place(number: NumberLink, places: Iterable[Place], paths: Paths) -> Place | None:
    """Give the column that a number is compared with, None when nothing in the question says which."""
    scored = [(_number_score(number, p, paths), p) for p in places if p.relation.name in paths]
    best = max(scored, key=lambda pair: pair[0], default=None)
    if best and best[0] >= 1:
        return best[1]
    own = [p for _, p in scored if p.kind == "number" and not p.identifier and not paths[p.relation.name]]
    if len(own) == 1 and not number.year:
        return own[0]
    return _unspoken(number, [p for _, p in scored if not paths[p.relation.name]]) if number.bare else None


def _unspoken(number: NumberLink, own: Sequence[Place]) -> Place | None:
    """Give the column that a comparison without a noun speaks of: the age of people "under 25", else money."""
    roles = ("age", "birth") if number.operator != "=" and 0 < number.numbers[0] < 120 else ()
    for role in (*roles, "price", "pay", "revenue"):
        found = [p for p in own if role in p.roles and p.kind in ("number", "date") and not p.identifier]
        if found and (role in ("age", "birth") or found[0].kind == "number"):
            return found[0]
    return next((p for p in own if p.stems == ("total",) and p.kind == "number"), None)


def _number_score(number: NumberLink, place: Place, paths: Paths) -> float:
    aged = place.kind == "date" and "birth" in place.roles and number.aged
    if place.kind not in ("number", "date") or place.identifier or (place.kind == "date" and not (number.year or aged)):
        return -10.0
    if aged:
        return 2.0 - 0.8 * len(paths[place.relation.name])
    score = 0.0
    known = {root for part in (*place.stems, *relation_stems(place.relation)) for root in roots(part)}
    for rank, unit in enumerate(number.units):
        if unit in place.stems:
            score += 3.0 - 0.3 * rank + (0.5 if place.stems == (unit,) else 0.0)
        elif unit in place.about:
            score += 1.0 if place.coded else 0.6
    if number.year and place.kind == "number" and not {"year", "since"} & set(place.stems):
        score /= 2
    if number.year and place.kind == "date":
        score += 1.5 * any(roots(unit) & known for unit in number.units)
    for rank, role in enumerate(number.roles):
        score += (2.5 - 0.5 * rank) * (role in place.roles)
    if number.year and not number.roles and (place.kind == "date" or "year" in place.stems or "year" in place.roles):
        score += 2.0
    return score - 0.8 * len(paths[place.relation.name])


def number_conditions(chosen: Sequence[tuple[NumberLink, Place]], links: Links, today: date) -> Iterable[Condition]:
    """Write the comparisons; equal numbers of one column with "or" between them are alternatives."""
    alternatives: list[tuple[NumberLink, Place]] = []
    for number, place in chosen:
        listed = number.operator == "=" and alternatives and alternatives[-1][1] is place
        if listed and {links.folded(k) for k in range(alternatives[-1][0].last, number.first)} <= _LISTING:
            alternatives.append((number, place))
            continue
        yield from _alternatives(alternatives, today)
        alternatives = [(number, place)]
    yield from _alternatives(alternatives, today)


def _alternatives(members: Sequence[tuple[NumberLink, Place]], today: date) -> Iterable[Condition]:
    written = [number_condition(number, place, today) for number, place in members]
    if len(written) < 2:
        yield from written
    else:
        yield Condition(written[0].place, "(" + " OR ".join(each.template for each in written) + ")")


def number_condition(number: NumberLink, place: Place, today: date) -> Condition:
    """Write a comparison of a column with numbers; a year compared with a date stands for the whole year."""
    if place.kind == "date" and number.aged:
        return _aged(number, place, today)
    if place.kind == "date":
        low, high = int(number.numbers[0]), int(number.numbers[-1])
        return Condition(place, span_template(number.operator, date(low, 1, 1), date(high + 1, 1, 1)))
    minutes = "hour" in number.units and MINUTES & set(place.stems)
    texts = [sql.number(n * 60 if minutes else n) for n in number.numbers]
    if number.operator == "between":
        return Condition(place, f"{{}} BETWEEN {texts[0]} AND {texts[1]}")
    return Condition(place, f"{{}} {number.operator} {texts[0]}")


def _aged(number: NumberLink, place: Place, today: date) -> Condition:
    """Compare an age with a day of birth: who is over 60 was born at least 61 years ago."""
    low, high = round(number.numbers[0]), round(number.numbers[-1])
    born = {
        ">": ("<=", years_before(today, low + 1)),
        ">=": ("<=", years_before(today, low)),
        "<": (">", years_before(today, low)),
        "<=": (">", years_before(today, low + 1)),
    }
    if number.operator in born:
        sign, day = born[number.operator]
        return Condition(place, f"{{}} {sign} '{day}'")
    return Condition(place, f"({{}} > '{years_before(today, high + 1)}' AND {{}} <= '{years_before(today, low)}')")


def date_condition(link: DateLink, place: Place, index: SchemaIndex) -> Condition:
    """Compare a column with the days of a link; where no year was said, those nearest to the latest day it holds."""
    start, after = link.span.start, link.span.after
    if place.kind == "number":
        operator = "between" if link.operator == "=" and after.year - start.year > 1 else link.operator
        years = NumberLink(link.first, link.last, operator, (start.year, after.year - 1), (), (), True)
        return number_condition(years, place, index.today())
    if link.span.yearless:
        start, after = link.span.nearest(min(filter(None, (index.latest(place), index.today()))))
    return Condition(place, span_template(link.operator, start, after))
