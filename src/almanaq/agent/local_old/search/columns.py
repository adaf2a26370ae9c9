"""Which columns a turn speaks of, seen from one relation: by the words around, by what the columns hold."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property

from almanaq.agent.local_old import sql
from almanaq.agent.local_old.compose.days import days_test
from almanaq.agent.local_old.compose.refusal import NotUnderstood
from almanaq.agent.local_old.frame import Term, is_scale
from almanaq.agent.local_old.joins import Hop
from almanaq.agent.local_old.lexicon import ADMIRED, QUALITY, UNITS
from almanaq.agent.local_old.recognize.spans import Span
from almanaq.agent.local_old.recognize.vocabulary import Vocabulary
from almanaq.agent.local_old.schema_index import Meaning, Place
from almanaq.agent.local_old.search.links import Links, Value
from almanaq.agent.local_old.words import roots, word_set
from almanaq.suql.catalog.relations import ColumnKind, Relation

_WHERE = word_set("city location country state address area neighborhood district region town nation continent venue")
_ENDS = word_set("in of for at with that which who and or is are , ? ; .")
_TURNED = {">": "<=", "<": ">=", ">=": "<", "<=": ">", "=": "<>"}
_TIMES = ("year", "date", "released", "founded")


class Columns:
    """The columns that the spans of a turn mean, where `main` is the relation it is about."""

    def __init__(
        self, links: Links, vocabulary: Vocabulary, main: Relation, ways: Mapping[str, tuple[Hop, ...]]
    ) -> None:
        self.links, self.vocabulary, self.main, self.ways = links, vocabulary, main, ways
        self.own = vocabulary.index.places[main.name]
        self.placed: list[Span] = []
        self.spoken: list[Place] = []

    @cached_property
    def values(self) -> list[tuple[Value, Meaning]]:
        """What each value means; those that mean nothing within reach are left out."""
        found = ((value, self.meaning(value)) for value in self.links.values)
        return [(value, meaning) for value, meaning in found if meaning is not None]

    def meaning(self, value: Value) -> Meaning | None:
        within = [m for m in value.meanings if m[0].relation.name in self.ways]
        return max(within, key=lambda m: self.value_score(value, m[0]), default=None)

    def value_score(self, value: Value, place: Place) -> float:
        """Weigh how likely a value means one of a column's: by the words around it, and how far the column is."""
        links = self.links
        score = 2.0 * (place.column.kind is ColumnKind.ENUM) - 2.0 * len(self.ways[place.relation.name])
        near = {links.stem(k) for k in (*range(value.first - 3, value.first), value.last, value.last + 1)}
        score += 3.0 * bool(near & set(place.stems)) + 2.0 * bool(near & set(place.relation.name.casefold().split("_")))
        if links.folded(value.first - 1) in ("in", "at", "near", "from") and _WHERE & set(place.stems):
            score += 1.5
        return score + 0.5 * ("name" in place.roles) - 0.5 * place.identifier

    @cached_property
    def named(self) -> list[tuple[Span, Place]]:
        """The columns that the turn calls by name."""
        found = []
        for span in self.links.columns:
            within = [(p, quality) for p, quality in span.data if p.relation.name in self.ways]
            if within:
                best = max(quality - 2 * len(self.ways[p.relation.name]) for p, quality in within)
                fit = [p for p, q in within if q - 2 * len(self.ways[p.relation.name]) == best]
                found.append((span, min(fit, key=lambda p: (p.identifier, "name" not in p.roles))))
        return found

    @cached_property
    def asked(self) -> tuple[Place, ...]:
        """The columns that are named and not used up by what stands beside them."""
        list(self.bounded())
        used = [*self.spoken, *(term.place for term, _ in self.order)]
        found: dict[Place, None] = {}
        for span, place in self.named:
            led = any(
                place.column.name == m[0].column.name and -5 < span.first - v.first <= v.last - v.first + 1
                for v, m in self.values
            )
            if place not in used and not led and place.kind not in ("boolean", "prose"):
                found[place] = None
        return tuple(found)

    # --- numbers and days ---------------------------------------------------------------------------------------------

    def bounded(self) -> Iterator[tuple[Place, str, bool]]:
        """Yield the conditions of numbers and days: the column, what is to hold of it, and that it is not denied."""
        placed = [(span, self._bound(span)) for span in self.links.bounds]
        placed += [(span, self._on_days(span)) for span in self.links.days]
        tests: dict[Place, list[str]] = {}
        for span, found in placed:
            if found is not None:
                self.placed.append(span)
                self.spoken.append(found[0])
                tests.setdefault(found[0], []).append(found[1])
        for place, listed in tests.items():
            if len(listed) > 1 and all(" = " in test for test in listed):
                listed = ["(" + " OR ".join(listed) + ")"]
            yield from ((place, test, False) for test in listed)

    def _bound(self, span: Span) -> tuple[Place, str] | None:
        operator, numbers, unit, measured = span.data
        place = self._number_place(span, unit, measured)
        if place is None:
            return None
        denied = self.links.folded(span.first - 1) == "not" and operator in _TURNED
        operator = _TURNED[operator] if denied else operator
        if unit in ("hour", "hours") and {"minute", "min", "runtime"} & set(place.stems):
            numbers = tuple(number * 60 for number in numbers)
        texts = [sql.number(number) for number in numbers]
        return (
            place,
            f"{{}} BETWEEN {texts[0]} AND {texts[1]}" if operator == "between" else f"{{}} {operator} {texts[0]}",
        )

    def _number_place(self, span: Span, unit: str | None, measured: Sequence[tuple[str, bool]] | None) -> Place | None:
        """Return the number column that a comparison speaks of, None when nothing around it says which."""
        near = self._around(span)
        scored = []
        for place in self._reachable():
            if place.kind == "number" and not place.identifier:
                scored.append((self._number_score(place, near, unit, measured), place))
        best = max(scored, key=lambda each: each[0], default=None)
        if best is not None and best[0] >= 1:
            return best[1]
        only = [place for _, place in scored if place.relation == self.main]
        return only[0] if len(only) == 1 and unit is None else None

    def _number_score(
        self, place: Place, near: Sequence[str], unit: str | None, measured: Sequence[tuple[str, bool]] | None
    ) -> float:
        score = 0.0
        for rank, word in enumerate(near):
            if word in place.stems:
                score += 3.0 - 0.3 * rank + 0.5 * (place.stems == (word,))
            score += (2.5 - 0.3 * rank) * any(role in place.roles for role in UNITS.get(word, ()))
        if unit is not None:
            score += 2.5 * (
                any(role in place.roles for role in UNITS.get(unit.removesuffix("s"), ())) or unit in place.stems
            )
        meant = {word for word, _ in measured or ()}
        score += 2.0 * bool(meant & ({*place.stems} | place.roles))
        return score - 0.8 * len(self.ways[place.relation.name])

    def _around(self, span: Span) -> list[str]:
        """Return the stems near a number, the nearest first; what is beyond another number is of that."""
        found = []
        for way in (range(span.last, span.last + 3), range(span.first - 1, span.first - 5, -1)):
            for k in way:
                word = self.links.folded(k)
                if word in (",", ";", ".", "and", "with") or self.links.used[k : k + 1] == ["O"] or k < 0:
                    break
                found.append(self.links.stem(k))
        return [word for word in found if word]

    def _reachable(self) -> list[Place]:
        return [p for name in self.ways for p in self.vocabulary.index.places[name]]

    def _on_days(self, span: Span) -> tuple[Place, str] | None:
        """Compare the column that says when with days, or the one that a number names with what looks like a year."""
        operator, (start, after), yearless = span.data
        years = after.year - start.year == 1 and (start.month, start.day) == (1, 1)
        near = set(self._around(span))
        if years and not any(word in _TIMES or word in ("in", "on") for word in near):
            told = self._number_place(Span(span.first, span.last, "O", None, 0.0), None, None)
            if told is not None and not ({"year"} & (told.roles | set(told.stems))):
                return told, f"{{}} {operator} {start.year}"
        when = [p for p in self._reachable() if p.kind == "date" or (p.kind == "number" and "year" in p.stems)]
        if not when:
            return None
        known = {root for word in near for root in roots(word)}
        place = max(when, key=lambda p: bool(known & set(p.stems)) - 0.5 * len(self.ways[p.relation.name]))
        if yearless is not None:
            start, after = self.vocabulary.index.nearest_days(place, yearless)
        try:
            return place, days_test(place, operator, start, after)
        except NotUnderstood:
            return None

    # --- orders -------------------------------------------------------------------------------------------------------

    @cached_property
    def order(self) -> tuple[tuple[Term, bool], ...]:
        """What the rows are ordered by, and whether the largest comes first."""
        for span in self.links.orders:
            found = self._extreme(span)
            if found is not None:
                return self._ranked(*found)
        praised = self._praise()
        return self._ranked(praised, True) if praised is not None else ()

    def _ranked(self, place: Place, down: bool) -> tuple[tuple[Term, bool], ...]:
        if is_scale(place):
            return ((Term("SCALE", place), down),)
        ties = [p for p in self.own if "reviews" in p.roles and p.kind == "number" and p is not place]
        tie = ties[:1] if "rating" in place.roles else []
        return tuple((Term("", each), down) for each in (place, *tie))

    def _extreme(self, span: Span) -> tuple[Place, bool] | None:
        """Return the column that a superlative speaks of: that of the words after it, else that of its adjective."""
        detail, meant, _ = span.data
        down = detail not in ("least", "bottom", "rare")
        named = self._named_after(span) if detail != "measured" else None
        if named is not None:
            return named, down
        for word, up in meant or ():
            fit = [p for p in self.own if self._measures(word, p)]
            if fit:
                return fit[0], up
        found = self._of_rank(span)
        return (found, down) if found is not None else None

    def _named_after(self, span: Span) -> Place | None:
        """Return the column that the words after a superlative name: "most reviews", "highest rated"."""
        after = self._words_after(span)
        for word in after:
            admired = ADMIRED.get(word)
            fit = [p for p in self.own if self._is_amount(p) and (admired in p.roles or roots(word) & {*p.stems})]
            if fit:
                return max(fit, key=lambda p: len({*after} & {*p.stems}))
        return None

    def _of_rank(self, span: Span) -> Place | None:
        """Return the column that "top" and "most popular" rank by: one that is named later, else a
        rating, or reviews.
        """
        role = {"common": "reviews", "rare": "reviews", "top": "rating", "bottom": "rating"}.get(span.data[0])
        later = [p for s, p in self.named if s.first >= span.last and self._is_amount(p)]
        by = later if span.data[0] == "top" else []
        fit = [p for p in self.own if self._is_amount(p) and role in p.roles]
        return next(iter(by or fit), None)

    def _words_after(self, span: Span) -> list[str]:
        found: list[str] = []
        for k in range(span.last, span.last + 4):
            if self.links.folded(k) in _ENDS:
                break
            found.append(self.links.stem(k))
        return [word for word in found if word]

    def _is_amount(self, place: Place) -> bool:
        return place.kind in ("number", "date") and not place.identifier and place.relation == self.main

    def _measures(self, word: str, place: Place) -> bool:
        if is_scale(place):
            return word in place.roles
        if not self._is_amount(place):
            return False
        return word in place.stems or word in place.roles or (word in _TIMES and place.kind == "date")

    def _praise(self) -> Place | None:
        """Take "good", "great" without a "for" after it as a wish for well rated rows first."""
        links = self.links
        for i, token in enumerate(links.tokens):
            having = links.folded(i - 1) in ("with", "has", "have", "having", "serves", "serve", "plus")
            proper = i > 0 and token.text[:1].isupper()
            praises = (token.folded in QUALITY and links.free(i, i + 1)) or links.used[i] == "praise"
            if praises and not having and not proper:
                if links.folded(i + 1) not in ("for", "at", "with", "to"):
                    return next((p for p in self.own if "rating" in p.roles and self._is_amount(p)), None)
        return None
