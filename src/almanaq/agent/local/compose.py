"""Spans → a frame: which span plays which part, by where it stands. What fits no part makes the question not understood.

The kinds of the spans in a row make a text of one letter each (`Span.kind`), and every construction of English that is
known here is a pattern over that text. A construction takes its spans away, so that at the end every span that means
something has been used exactly once, or the question is not understood.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import date
from typing import Any

from almanaq.agent.local import sql
from almanaq.agent.local.frame import Frame, Term, Test
from almanaq.agent.local.recognize.spans import Span
from almanaq.agent.local.recognize.vocabulary import Vocabulary
from almanaq.agent.local.recognize.words import words
from almanaq.agent.local.schema_index import Meaning, Place
from almanaq.agent.local.spoken import relation_stems
from almanaq.suql.catalog.relations import Relation



class NotUnderstood(Exception):
    """A part of the question fits nothing: `args[0]` says which."""


@dataclass(frozen=True, slots=True)
class Superlative:
    """What is extreme: a column or the number of rows, in which direction, and how many rows are wanted."""

    down: bool
    amount: int | None
    place: Place | None = None
    counts: bool = False
    common: bool = False
    function: str = ""


class Composer:
    """Puts the spans of one question together."""

    def __init__(self, spans: Sequence[Span], vocabulary: Vocabulary, mentioned: Sequence[Relation]) -> None:
        self.spans, self.vocabulary = list(spans), vocabulary
        self.frame = Frame()
        self.mentioned = list(mentioned)
        self.names = {relation.name for relation in mentioned}
        self.kinds = [span.kind for span in spans]
        self.superlative: Superlative | None = None
        self.counted: Span | None = None
        self.counts = False
        self.aggregates: list[tuple[str, Place]] = []
        self.lists = False
        self.counted_relation: Relation | None = None
        self.each: Relation | None = None

    # --- the walk -----------------------------------------------------------------------------------------------

    def compose(self) -> Frame:
        """Give the frame.

        Raises:
            NotUnderstood: a span fits no construction, or fits several.
        """
        for pattern, take in _CONSTRUCTIONS:
            at = 0
            while (match := pattern.search("".join(self.kinds), at)) is not None:
                taken = take(self, match, self.spans[match.start() : match.end()])
                at = 0 if taken else match.start() + 1
        self._finish()
        return self.frame

    def use(self, match: re.Match[str], *groups: str) -> None:
        """Take the spans of named groups away; all but the values of a match when none is named."""
        for group in groups or (0,):
            for i in range(*match.span(group)):
                if self.kinds[i] not in ("w&|" if groups else "w&|V"):
                    self.kinds[i] = "w"

    def one(self, match: re.Match[str], group: str) -> Span | None:
        """Give the span of a named group of one letter, if it took part."""
        return self.spans[match.start(group)] if match.group(group) else None

    def place(self, span: Span, *, numeric: bool = False) -> Place:
        """Give the one column that a span means among the relations spoken of."""
        known: tuple[tuple[Place, float], ...] = span.data
        within = [(p, quality) for p, quality in known if p.relation.name in self.names]
        if not within and any(s.kind == "R" for s in (*self._owner(span), *self._before(span))):
            raise NotUnderstood(f"{known[0][0].column.name} of {' or '.join(sorted(self.names))}")
        within = within or [(p, quality) for p, quality in known if quality == 1.0 or not self.mentioned]
        if not within:
            raise NotUnderstood(f"{known[0][0].column.name} of {' or '.join(sorted(self.names))}")
        best = max(quality for _, quality in within)
        near = self._nearest(span, [p for p, quality in within if quality == best])
        if numeric:
            near = [p for p in near if p.kind == "number" and not p.identifier] or near
        if len(near) > 1:
            near = [p for p in near if not p.identifier] or near
        if len({(p.relation.name, p.column.name) for p in near}) != 1:
            near = [p for p in near if p.relation.key == (p.column.name,)] or near
        if len({(p.relation.name, p.column.name) for p in near}) != 1:
            raise NotUnderstood(f"which of {', '.join(sorted({p.column.name for p in near})[:4])} is meant")
        return near[0]

    def _nearest(self, span: Span, places: list[Place]) -> list[Place]:
        """Give the columns of the relation that is named beside a column: "names of singers", "stadium names"."""
        if len({p.relation.name for p in places}) < 2:
            return places
        named = {p.relation.name for p in places}
        before = [s for s in self.spans if s.kind == "R" and s.last == span.first]
        for each in (*before, *self._owner(span)):
            told = {relation.name for relation in each.data} & named
            if told:
                return [p for p in places if p.relation.name in told]
        return places

    def _before(self, span: Span) -> list[Span]:
        return [s for s in self.spans if s.kind == "R" and s.last == span.first]

    def _owner(self, span: Span) -> list[Span]:
        """Give the relation named after a column and its list: "ids and texts of paragraphs"."""
        for other in (s for s in self.spans if s.first >= span.last):
            if other.kind == "R":
                return [other]
            if other.kind not in "wC&":
                break
        return []

    # --- constructions: each gives whether it took its spans ----------------------------------------------------

    def average_reference(self, match: re.Match[str], taken: Sequence[Span]) -> bool:
        span = self.one(match, "g")
        assert span is not None
        operator, measured = span.data
        named = self.one(match, "a") or self.one(match, "b")
        place = self.place(named, numeric=True) if named is not None else self._measured(measured)
        table = sql.name(place.relation.name)
        if place.kind != "number":
            raise NotUnderstood(f"the average of {place.column.name}")
        column = sql.compared(place, False)
        self.frame.tests.append(Test(Term("", place), f"{{}} {operator} (SELECT AVG({column}) FROM {table})"))
        self.use(match)
        return True

    def _measured(self, meant: Any) -> Place:
        found = self.vocabulary.measured_by(meant, self.names) if meant else None
        if found is None:
            raise NotUnderstood("what is compared")
        return found[0]

    def compared(self, match: re.Match[str], taken: Sequence[Span]) -> bool:
        """A column beside a comparison: "alcohol above 12", "more than 12% alcohol", "heavier than 6000 g"."""
        told = self.one(match, "o")
        assert told is not None
        operator, numbers, unit, measured = told.data
        function = self.one(match, "f") if "f" in match.groupdict() else None
        named = self.one(match, "a") if "a" in match.groupdict() else None
        if named is None and "b" in match.groupdict():
            named = self.one(match, "b")
        if named is not None:
            place = self.place(named, numeric=True)
        elif measured:
            place, up = self.vocabulary.measured_by(measured, self.names) or (None, True)
            if place is None:
                raise NotUnderstood("what is compared")
            if not up and not measured[0][1] is False:
                operator = {">": "<", "<": ">", ">=": "<=", "<=": ">="}.get(operator, operator)
        elif unit:
            fit = self.vocabulary.in_unit(words().converted.get(unit, (unit, 1.0))[0], self.names)
            fit = fit or self.vocabulary.in_unit(unit[:1], self.names)
            if len(fit) != 1:
                raise NotUnderstood(f"which column is in {unit}")
            place = fit[0]
        elif function is None and _is_year(numbers) and operator != "between":
            place = self._time()
        else:
            return False
        if place.kind == "date" and _is_year(numbers) and function is None and operator != "between":
            year = int(numbers[0])
            template = _days_test(place, operator, date(year, 1, 1), date(year + 1, 1, 1))
            self.frame.tests.append(Test(Term("", place), template))
            self.use(match)
            return True
        if place.kind != "number":
            raise NotUnderstood(f"{place.column.name} is compared with a number")
        values = [self._in_unit_of(place, number, unit) for number in numbers]
        test = Test(Term(function.data if function else "", place), _comparison(operator, values))
        (self.frame.having if function else self.frame.tests).append(test)
        self.use(match)
        return True

    def _in_unit_of(self, place: Place, number: float, unit: str | None) -> float:
        """Give a number in the unit of a column: 5 kg in g; per cent where the column holds fractions."""
        own = self.vocabulary.unit_of(place)
        if unit is None or unit in own:
            return number
        if unit == "%":
            samples = [float(s) for s in place.column.samples if re.fullmatch(r"-?\d+(\.\d+)?", s)]
            return number / 100 if samples and max(map(abs, samples)) <= 1 and number > 1 else number
        to = words().converted.get(unit)
        if to is not None and to[0] in own:
            return number * to[1]
        if own and not own & words().units:
            return number
        if own:
            raise NotUnderstood(f"{unit} of a column in {', '.join(sorted(own))}")
        return number

    def superlatives(self, match: re.Match[str], taken: Sequence[Span]) -> bool:
        """"The top 3 highest ratings": the first one says how many."""
        (_, _, amount), (detail, measured, other) = taken[0].data, taken[-1].data
        last = match.end() - 1
        self.spans[last] = replace(self.spans[last], data=(detail, measured, amount or other))
        self.kinds[match.start()] = "w"
        return True

    def _time(self) -> Place:
        """Give the column of the relations spoken of that says when: a year, or the one date."""
        years = [p for r in self.mentioned for p in self.vocabulary.index.places[r.name] if "year" in p.stems]
        return years[0] if len(years) == 1 and years[0].kind == "number" else self._day()

    def author(self, match: re.Match[str], taken: Sequence[Span]) -> bool:
        """"By Peter Vance": the value says in which column it stands."""
        self.kinds[match.start()] = "w"
        return True

    def verb(self, match: re.Match[str], taken: Sequence[Span]) -> bool:
        """A verb before what is counted says no more than that there is some: "placed the most orders"."""
        self.kinds[match.start()] = "w"
        return True

    def counted_rows(self, match: re.Match[str], taken: Sequence[Span]) -> bool:
        """Rows of a relation compared in number: "countries with more than 200 airports"."""
        told, noun = self.one(match, "o"), self.one(match, "r")
        assert told is not None and noun is not None
        operator, numbers, unit, measured = told.data
        if unit or measured or not ("C" in self.kinds or self.kinds.count("R") > 1):
            return False
        self.frame.having.append(Test(Term("COUNT", None), _comparison(operator, numbers)))
        self.mention(noun.data)
        self.counted_relation = self._one_of(noun.data)
        self.use(match)
        return True

    def equal(self, match: re.Match[str], taken: Sequence[Span]) -> bool:
        """A column right before a number: "quality 8", "year is 2004"."""
        named, number = self.one(match, "a"), self.one(match, "n")
        assert named is not None and number is not None
        place = self.place(named, numeric=True)
        if place.kind != "number":
            return False
        value = self._in_unit_of(place, *number.data)
        self.frame.tests.append(Test(Term("", place), f"{{}} = {sql.number(value)}"))
        self.use(match)
        return True

    def missing(self, match: re.Match[str], taken: Sequence[Span]) -> bool:
        named = self.one(match, "a")
        assert named is not None
        self.frame.tests.append(Test(Term("", self.place(named)), "{} IS NULL"))
        self.use(match)
        return True

    def none_of(self, match: re.Match[str], taken: Sequence[Span]) -> bool:
        """"No discount": 0 of a number that is always there, nothing where it may be missing."""
        named, no = self.one(match, "a"), self.one(match, "x")
        assert named is not None and no is not None
        if no.data not in ("no", "without"):
            return False
        place = self.place(named)
        if place.kind == "number":
            self.frame.tests.append(Test(Term("", place), "{} = 0"))
        elif place.kind in ("text", "date"):
            self.frame.tests.append(Test(Term("", place), "{} IS NULL"))
        else:
            return False
        self.use(match)
        return True

    def denied(self, match: re.Match[str], taken: Sequence[Span]) -> bool:
        value = self.one(match, "v")
        assert value is not None
        place, spelled = self.meaning(value)
        rows = self._nouns_in_order()[:1] or [place.relation]
        if place.relation not in rows:
            raise NotUnderstood(f"whether one row of {place.relation.name} or all of them are meant")
        self.frame.tests.append(Test(Term("", place), f"{{}} <> {sql.text(spelled)}"))
        self.use(match, "x", "v")
        return True

    def affirmed(self, match: re.Match[str], taken: Sequence[Span]) -> bool:
        """A column that holds yes or no: "did not complete the clutch"."""
        named = self.one(match, "a")
        assert named is not None
        place = self.place(named)
        if place.kind != "boolean" or place.affirms == "1":
            return False
        forms = ("{} IS TRUE", "{} IS FALSE")
        if place.affirms is not None:
            forms = (f"{{}} = {sql.text(place.affirms)}", f"{{}} <> {sql.text(place.affirms)}")
        self.frame.tests.append(Test(Term("", place), forms[bool(match["x"])]))
        self.use(match)
        return True

    def meaning(self, span: Span) -> Meaning:
        """Give the one column in which a value stands, and the value."""
        meanings: tuple[Meaning, ...] = span.data
        near = [m for m in meanings if m[0].relation.name in self.names] or list(meanings)
        before = span.first - 1
        named = [
            [place for place, _ in s.data]
            for s in self.spans
            if s.kind == "C" and (before - 2 <= s.last - 1 <= before or s.first == span.last)
        ]
        near = [m for m in near if any(m[0] in places for places in named)] or near
        whole = [m for m in near if self.vocabulary.distinct(m[0]) >= 0.8 * (m[0].relation.rows or 0)]
        if len(near) > 1 and len(whole) == 1:
            near = whole
        if len({(m[0].relation.name, m[0].column.name) for m in near}) != 1:
            raise NotUnderstood("in which column " + near[0][1] + " is meant")
        return near[0]

    def grouped(self, match: re.Match[str], taken: Sequence[Span]) -> bool:
        """"By region and category", "per year", "for each species"."""
        for i in range(*match.span("list")):
            span = self.spans[i]
            if span.kind in "CR" and self.kinds[i] in "CR":
                self._group(span)
            elif span.kind == "Y" and self.kinds[i] == "Y":
                self.frame.groups.append(Term(span.data, self._day()))
        self.use(match)
        return True

    def _group(self, span: Span) -> None:
        if span.kind == "R":
            self.mention(span.data)
            self.each = self._one_of(span.data)
            return
        place = self.place(span)
        ranked = any(kind == "S" for kind in self.kinds)
        if ranked and place.kind == "number":
            self.superlative = Superlative(True, None, place)
            return
        self.frame.groups.append(Term("", place))

    def _name(self, relations: Sequence[Relation]) -> Place:
        named = self.vocabulary.row_name(relations[0]) if len(relations) == 1 else None
        if named is None:
            raise NotUnderstood("what names " + " or ".join(relation.name for relation in relations))
        return named

    def _names(self, relation: Relation) -> list[Place]:
        return list(self.vocabulary.whole_name(relation)) or [self._name([relation])]

    def _day(self) -> Place:
        days = [p for r in self.mentioned for p in self.vocabulary.index.places[r.name] if p.kind == "date"]
        if len(days) > 1:
            days = [p for p in days if set(p.stems) & set(relation_stems(p.relation))]
        if len(days) != 1:
            raise NotUnderstood("which date is meant")
        return days[0]

    def mention(self, relations: Sequence[Relation]) -> None:
        """Note that the question names a relation."""
        self.frame.nouns.append(self._one_of(relations))

    def _one_of(self, relations: Sequence[Relation]) -> Relation:
        """Give the one relation of several of one name that holds what else the question speaks of."""
        if len(relations) > 1:
            spoken = {p[0].relation.name for s in self.spans if s.kind in "CV" for p in s.data}
            relations = [relation for relation in relations if relation.name in spoken]
        if len(relations) != 1:
            raise NotUnderstood("which table is meant")
        return relations[0]

    def ranked(self, match: re.Match[str], taken: Sequence[Span]) -> bool:
        """A superlative with what it is over: "the highest average profit", "the most airports", "heaviest"."""
        told = self.one(match, "s")
        assert told is not None
        if self.superlative is not None and self.superlative.place is None:
            raise NotUnderstood("two superlatives")
        detail, measured, amount = told.data
        function = self.one(match, "f")
        named = self.one(match, "a")
        noun = self.one(match, "r")
        down = detail in ("most", "top", "common") or (detail == "measured" and measured[0][1])
        if detail in ("common", "rare"):
            self.superlative = Superlative(detail == "common", amount, counts=True, common=True)
            self.use(match, "s")
            return True
        elif self.superlative is not None:
            self.superlative = replace(self.superlative, down=down, amount=amount)
            self.use(match, "s")
            return True
        elif named is not None:
            place = self.place(named, numeric=True)
            if place.kind not in ("number", "date"):
                return self._ranked_text(match, detail, measured, amount, down)
            self.superlative = Superlative(down, amount, place, function=function.data if function else "")
        elif measured is not None and (found := self.vocabulary.measured_by(measured, self.names)):
            up = found[1] if detail == "measured" else down
            self.superlative = Superlative(up, amount, found[0], function=function.data if function else "")
        elif noun is not None and detail in ("most", "least"):
            self.superlative = Superlative(down, amount, counts=True)
            self.counted_relation = self._one_of(noun.data)
        else:
            raise NotUnderstood("what the superlative is over")
        if noun is not None:
            self.mention(noun.data)
        self.use(match)
        return True

    def _ranked_text(self, match: re.Match[str], detail: str, measured: Any, amount: int | None, down: bool) -> bool:
        """A superlative before a column of text: "the largest region" by what "large" measures, "top 5 cities"."""
        if detail == "top" or detail == "bottom":
            raise NotUnderstood("by what the first ones are meant")
        found = self.vocabulary.measured_by(measured, self.names) if measured else None
        if found is None:
            raise NotUnderstood("what the superlative is over")
        self.superlative = Superlative(found[1] if detail == "measured" else down, amount, found[0])
        self.use(match, "s")
        return True

    def totalled(self, match: re.Match[str], taken: Sequence[Span]) -> bool:
        """An aggregate of a column: "average body mass", "minimum and maximum price"."""
        named = self.one(match, "a")
        assert named is not None
        place = self.place(named, numeric=True)
        functions = [self.spans[i].data for i in range(*match.span("f")) if self.spans[i].kind == "A"]
        if place.kind == "date" and set(functions) <= {"MIN", "MAX"}:
            pass
        elif place.kind != "number" or place.identifier:
            raise NotUnderstood(f"{', '.join(functions).lower()} of {place.column.name}")
        self.aggregates += [(function, place) for function in functions]
        for i in range(*match.span()):
            if self.spans[i].kind == "R" and self.kinds[i] == "R":
                self.mention(self.spans[i].data)
        self.use(match)
        return True

    def percentage(self, match: re.Match[str], taken: Sequence[Span]) -> bool:
        noun = self.one(match, "r")
        if noun is not None:
            self.mention(noun.data)
        self.lists = False
        self.frame.share.append(Test(Term("", None), ""))
        self.use(match)
        return True

    def how_many(self, match: re.Match[str], taken: Sequence[Span]) -> bool:
        """"How many airports", "number of different cities", "how many are in Texas"."""
        noun, named = self.one(match, "r"), self.one(match, "a")
        if noun is not None:
            self.mention(noun.data)
            self.counted_relation = self._one_of(noun.data)
        elif named is not None:
            place = self.place(named)
            if place.kind == "number" and not place.identifier:
                if not self._adds_up(place):
                    raise NotUnderstood(f"whether {place.column.name} is counted or added up")
                self.aggregates.append(("SUM", place))
                self.use(match)
                return True
            if dict(named.data)[place] < 1:
                raise NotUnderstood(f"whether values of {place.column.name} are counted")
            self.counted = replace(named, data=(place,))
        self.counts = True
        self.use(match)
        return True

    def _adds_up(self, place: Place) -> bool:
        """Say whether the numbers of a column make a sum that means something: sales do, prices do not."""
        parts = set(place.stems)
        return bool(parts & words().additive) and not parts & words().rates

    def of_column(self, match: re.Match[str], taken: Sequence[Span]) -> bool:
        """A column beside a value of its own only says where the value stands: "Dream island", "city of Paris"."""
        named, value = self.one(match, "a"), self.one(match, "v")
        assert named is not None and value is not None
        if not any(m[0] is place for m in value.data for place, _ in named.data):
            return False
        self.use(match, "a")
        return True

    def in_order(self, match: re.Match[str], taken: Sequence[Span]) -> bool:
        named, told = self.one(match, "a"), self.one(match, "f")
        assert named is not None and told is not None
        down = told.data == "down" or self._descending()
        self.frame.order.append((Term("", self.place(named)), down))
        self.kinds = ["w" if kind == "E" else kind for kind in self.kinds]
        self.use(match)
        return True

    def _descending(self) -> bool:
        return any(re.search("desc|decr|highest|oldest|most|largest", str(s.data)) for s in self.spans if s.kind == "E")

    def beside_number(self, match: re.Match[str], taken: Sequence[Span]) -> bool:
        """"Above age 20"."""
        told, named, number = self.one(match, "k"), self.one(match, "a"), self.one(match, "n")
        assert told is not None and named is not None and number is not None
        place = self.place(named, numeric=True)
        if place.kind != "number":
            return False
        value = self._in_unit_of(place, *number.data)
        self.frame.tests.append(Test(Term("", place), _comparison(told.data, [value])))
        self.use(match)
        return True

    def absent(self, match: re.Match[str], taken: Sequence[Span]) -> bool:
        """"Stadiums without any concert"."""
        noun = self.one(match, "r")
        assert noun is not None
        if len(noun.data) != 1 or self.kinds.count("R") < 2:
            return False
        self.frame.absent.append(noun.data[0])
        self.use(match)
        return True

    def days(self, match: re.Match[str], taken: Sequence[Span]) -> bool:
        span = self.one(match, "d")
        assert span is not None
        named = self.one(match, "a")
        place = self.place(named) if named is not None else None
        if place is None or place.kind not in ("date", "number"):
            place = self._time()
            self.use(match, "d")
        else:
            self.use(match)
        operator, (start, after) = span.data
        if any(test.term.place is place for test in self.frame.tests) and operator == "=":
            raise NotUnderstood("two dates")
        self.frame.tests.append(Test(Term("", place), _days_test(place, operator, start, after)))
        return True

    # --- what is left -------------------------------------------------------------------------------------------

    def _finish(self) -> None:
        left = [(self.spans[i], kind) for i, kind in enumerate(self.kinds) if kind.isupper() or kind in "?kv"]
        self.kin = [span.data for span in self.spans if span.kind == "r"]
        self._values([span for span, kind in left if kind == "V"])
        for span, kind in left:
            if kind == "E":
                continue
            if kind == "R":
                self.mention(span.data)
            elif kind == "U":
                self.frame.distinct = True
            elif kind not in "CV":
                raise NotUnderstood(f"“{span.data}”" if kind in "?v" else "")
        if "|" in self.kinds and len(self.frame.tests) > 1:
            raise NotUnderstood("which of the conditions may hold alone")
        if re.search(r"C[wR]*&w*R", "".join(span.kind for span in self.spans)) and not self.frame.groups:
            raise NotUnderstood("what is shown of each")
        columns = [self.place(span) for span, kind in left if kind == "C"]
        columns = columns or self._asked_by_wh()
        if any(place.kind == "prose" for place in columns):
            raise NotUnderstood("prose")
        self._outputs(columns)

    def _asked_by_wh(self) -> list[Place]:
        """Give the column that "where" or "when" asks for at the beginning of a question."""
        first = self.spans[0].data if self.spans and self.spans[0].kind == "w" else ""
        if first not in ("where", "when"):
            return []
        near = [p for r in self.mentioned for p in self.vocabulary.index.places[r.name]]
        fit = [p for p in near if p.kind == "date"] if first == "when" else [p for p in near if "city" in p.roles]
        if len(fit) != 1:
            raise NotUnderstood(f"which column says {first}")
        return fit

    def _values(self, spans: Sequence[Span]) -> None:
        """Make conditions of values: several of one column are alternatives."""
        by_column: dict[tuple[str, str], tuple[Place, list[str]]] = {}
        for span in spans:
            place, value = self.meaning(span)
            if place.column.array:
                raise NotUnderstood("a list")
            by_column.setdefault((place.relation.name, place.column.name), (place, []))[1].append(value)
        for place, values in by_column.values():
            spelled = [sql.text(value) for value in values]
            template = f"{{}} = {spelled[0]}" if len(spelled) == 1 else f"{{}} IN ({', '.join(spelled)})"
            (self.frame.share if self.frame.share else self.frame.tests).append(Test(Term("", place), template))
        if self.frame.share:
            self.frame.share = [test for test in self.frame.share if test.term.place is not None]
            if len(self.frame.share) != 1:
                raise NotUnderstood("of what the share is meant")

    def _outputs(self, columns: list[Place]) -> None:
        frame = self.frame
        if frame.share:
            if columns or frame.groups or self.superlative or self.counts or self.aggregates:
                raise NotUnderstood("a share of more than rows")
            return
        if self.each is not None:
            measured = [p for _, p in self.aggregates] or [p for p in columns if p.kind == "number"]
            if not (measured and all(p.relation == self.each for p in measured)):
                frame.groups += [Term("", place) for place in self._names(self.each)]
                frame.groups = list(dict.fromkeys(frame.groups))
            columns = [place for place in columns if Term("", place) not in frame.groups]
        if self.superlative is not None:
            return self._ranked_outputs(columns)
        if self.counts:
            place = self.counted.data[0] if self.counted is not None else None
            frame.wanted.append(Term("COUNT DISTINCT" if place is not None else "COUNT", place))
            frame.distinct = False
            if columns and not frame.groups:
                raise NotUnderstood("what is counted")
        frame.wanted += [Term(function, place) for function, place in self.aggregates]
        if frame.wanted:
            if columns and not (frame.groups or frame.having or self._listed_beside()):
                raise NotUnderstood("what the other columns are of")
            frame.groups += [Term("", place) for place in columns]
            return
        if frame.having:
            frame.groups += [Term("", place) for place in columns] or [Term("", self._row_name())]
            return
        if frame.groups and columns and all(p.kind == "number" and not p.identifier for p in columns):
            if not all(map(self._adds_up, columns)):
                raise NotUnderstood("how the numbers of a group are put together")
            frame.wanted += [Term("SUM", place) for place in columns]
            return
        self._rows(columns)

    def _row_name(self) -> Place:
        if not self.frame.nouns:
            raise NotUnderstood("rows of what")
        return self._name(self.frame.nouns[:1])

    def _listed_beside(self) -> bool:
        """Say whether a column stands in a list with an aggregate: "each city and the number of its shops"."""
        kinds = "".join(span.kind for span in self.spans)
        return bool(re.search(r"C[wRE]*&[wU]*[HA]|[HA][wURC]*&[w]*C", kinds))

    def _is_predicate(self) -> bool:
        """Say whether a column is told of rows: "which products are discontinued"."""
        row = [(span.kind, span.data) for span in self.spans]
        return any(
            kind == "R" and row[i + 1] in (("w", "are"), ("w", "is"), ("w", "was"), ("w", "were")) and "C" in dict(row[i + 2 :])
            for i, (kind, _) in enumerate(row[:-2])
        )

    def _rows(self, columns: list[Place]) -> None:
        """Show rows: the columns asked for, or what names a row."""
        frame = self.frame
        if frame.groups:
            raise NotUnderstood("what is shown of each group")
        if columns and self._is_predicate():
            raise NotUnderstood(f"what is asked of {columns[0].column.name}")
        if columns:
            frame.wanted += [Term("", place) for place in columns]
            alone = len(columns) == 1 and columns[0].kind == "text" and not frame.nouns and not columns[0].identifier
            ordered = "E" in self.kinds
            if ordered and not frame.order:
                frame.order.append((Term("", columns[0]), self._descending()))
            frame.distinct = frame.distinct or (alone and not frame.order)
            return
        everything = any(span.data in ("all", "list", "show", "every", "display") for span in self.spans if span.kind == "w")
        if not frame.nouns or not (frame.tests or frame.absent or (everything and len(set(self.names)) == 1)):
            raise NotUnderstood("what is asked of the rows")
        frame.wanted += self._shown(frame.nouns[0])

    def _shown(self, relation: Relation, first: Place | None = None) -> list[Term]:
        """Give what is shown of rows: their name and what was spoken of; every column where none is a name."""
        places = self.vocabulary.index.places[relation.name]
        named = self.vocabulary.whole_name(relation)
        if not named:
            return [Term("", place) for place in places if place.kind != "prose"]
        spoken = [test.term.place for test in self.frame.tests if test.term.place in places]
        return [Term("", p) for p in dict.fromkeys([*named, *([first] if first else []), *filter(None, spoken)])]

    def _ranked_outputs(self, columns: list[Place]) -> None:
        frame, told = self.frame, self.superlative
        assert told is not None
        function = told.function or (self.aggregates[0][0] if self.aggregates else "")
        texts = [place for place in columns if place.kind in ("text", "date", "boolean") or place.identifier]
        numbers = [place for place in columns if place not in texts]
        kinds = [term.place for term in frame.groups] + texts
        frame.distinct = False
        if told.common or told.counts or function:
            groups = [p for p in kinds if p is not None]
            groups = groups or (self._ranked_names() if len(frame.nouns) > 1 or told.common or function else [])
            if not groups or len({p.relation.name for p in groups}) > 1 or numbers or (self.aggregates and told.place is None):
                raise NotUnderstood("what is ranked")
            term = Term("COUNT", None) if told.place is None else Term(function, told.place)
            frame.groups, frame.wanted = [Term("", place) for place in groups], [term]
            frame.tests += [Test(Term("", place), "{} IS NOT NULL") for place in groups]
            frame.order, frame.limit = [(term, told.down)], told.amount or 1
            return
        if told.place is None or self.counts or self.aggregates or frame.groups or frame.having:
            raise NotUnderstood("what is ranked")
        own = [place for place in texts if place.relation == told.place.relation]
        if not frame.nouns and not columns and told.amount is None:
            frame.wanted = [Term("MAX" if told.down else "MIN", told.place)]
            return
        if own and not frame.nouns and not self._tells_rows(own[0]):
            raise NotUnderstood(f"whether single rows or each {own[0].column.name} is ranked")
        shown = [Term("", place) for place in columns] or self._shown(frame.nouns[0], told.place)
        frame.wanted = list(dict.fromkeys([*shown, Term("", told.place)]))
        frame.tests.append(Test(Term("", told.place), "{} IS NOT NULL"))
        frame.order, frame.limit = [(Term("", told.place), told.down)], told.amount or 1

    def _ranked_names(self) -> list[Place]:
        """Give what names the rows that are ranked: those of the relation named first that is not itself counted."""
        ranked = [r for r in self._nouns_in_order() if r != self.counted_relation]
        if not ranked:
            raise NotUnderstood("rows of what are ranked")
        return self._names(ranked[0])

    def _nouns_in_order(self) -> list[Relation]:
        return [span.data[0] for span in self.spans if span.kind == "R" and len(span.data) == 1]

    def _tells_rows(self, place: Place) -> bool:
        """Say whether a column names single rows: a name, a key, a date of a row."""
        return place.kind == "date" or self.vocabulary.names_rows(place)


def _is_year(numbers: Sequence[float]) -> bool:
    return len(numbers) == 1 and numbers[0] == int(numbers[0]) and 1500 <= numbers[0] < 2200


def _comparison(operator: str, values: Sequence[float]) -> str:
    written = [sql.number(value) for value in values]
    return f"{{}} BETWEEN {written[0]} AND {written[1]}" if operator == "between" else f"{{}} {operator} {written[0]}"


def _days_test(place: Place, operator: str, start: Any, after: Any) -> str:
    if place.kind == "number":
        if (start.month, start.day, after.year - start.year) != (1, 1, 1):
            raise NotUnderstood("days of a column of years")
        return f"{{}} {operator} {start.year}"
    forms = {
        "=": f"({{}} >= '{start}' AND {{}} < '{after}')",
        ">": f"{{}} >= '{after}'",
        ">=": f"{{}} >= '{start}'",
        "<": f"{{}} < '{start}'",
        "<=": f"{{}} < '{after}'",
    }
    return forms[operator]


_Take = Callable[[Composer, "re.Match[str]", Sequence[Span]], bool]
_CONSTRUCTIONS: tuple[tuple[re.Pattern[str], _Take], ...] = tuple((re.compile(pattern), take) for pattern, take in (
    (r"v(?=w{0,2}[SO])", Composer.verb),
    (r"B(?=w*V)", Composer.author),
    (r"Sw*S", Composer.superlatives),
    (r"(?:(?P<a>C)w*)?(?P<g>G)(?:w*(?P<b>C))?", Composer.average_reference),
    (r"(?P<f>A)w*(?P<a>C)w*(?P<o>O)", Composer.compared),
    (r"(?P<o>O)w*(?P<r>R)", Composer.counted_rows),
    (r"(?P<a>C)w{0,3}(?P<o>O)", Composer.compared),
    (r"(?P<o>O)w{0,2}(?P<a>C)", Composer.compared),
    (r"(?P<o>O)", Composer.compared),
    (r"(?P<k>k)w*(?P<a>C)w*(?P<n>N)", Composer.beside_number),
    (r"(?P<a>C)w{0,2}(?P<n>N)", Composer.equal),
    (r"M(?P<a>C)", Composer.missing),
    (r"(?P<a>C)w{0,2}M", Composer.missing),
    (r"(?P<x>X)w{0,2}(?P<v>V)", Composer.denied),
    (r"(?P<a>C)w{0,2}(?P<v>V)", Composer.of_column),
    (r"(?P<v>V)w{0,1}(?P<a>C)", Composer.of_column),
    (r"Xw{0,3}r?w{0,2}(?P<r>R)", Composer.absent),
    (r"(?P<x>X)(?P<a>C)", Composer.none_of),
    (r"(?P<x>X?)w{0,3}(?P<a>C)", Composer.affirmed),
    (r"(?P<a>C)?w{0,2}(?P<d>D)", Composer.days),
    (r"(?P<f>F)w*(?P<a>C)[wE]*", Composer.in_order),
    (r"B(?P<list>w*[CRY](?:w*&w*[CRY])*)", Composer.grouped),
    (r"(?P<s>S)w*(?P<f>A)w*(?P<r>R?)w*(?P<a>C)", Composer.ranked),
    (r"(?P<s>S)w{0,2}(?P<r>R?)(?P<a>C)(?P<f>A?)", Composer.ranked),
    (r"(?P<s>S)w{0,2}V*(?P<a>C?)(?P<r>R?)w*(?P<f>A?)", Composer.ranked),
    (r"(?P<f>A(?:[w&]+A)*)w*V?w*R?w*(?P<a>C)", Composer.totalled),
    (r"P[wX]*(?P<r>R?)", Composer.percentage),
    (r"H[wU]*V*w*(?:(?P<r>R)|(?P<a>C))?", Composer.how_many),
))
