"""What a turn asks of the rows of one relation: conditions, an order, texts that are to say something; and its SUQL."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import cached_property

from almanaq.agent.local_old import sql
from almanaq.agent.local_old.compose.refusal import NotUnderstood
from almanaq.agent.local_old.facts import facts, name_place, wh_places
from almanaq.agent.local_old.frame import Frame, Member, Term, Test, write
from almanaq.agent.local_old.joining import bring
from almanaq.agent.local_old.joins import paths
from almanaq.agent.local_old.recognize.spans import Span
from almanaq.agent.local_old.recognize.vocabulary import Vocabulary
from almanaq.agent.local_old.schema_index import Place
from almanaq.agent.local_old.search.columns import Columns
from almanaq.agent.local_old.search.links import Links, Value
from almanaq.agent.local_old.search.phrases import Phrase, content, phrases
from almanaq.agent.local_old.words import singular, stems, word_set
from almanaq.suql.catalog.relations import Relation

DEFAULT_LIMIT = 5
SEARCH_LIMIT = 3
LISTED_LIMIT = 100
"""Rows of a relation of which nothing is asked; those of one without prose that a condition chooses are all shown."""
_LISTING = word_set(", or and a an the either")
_ASKING = word_set("does do is are can have has did was were how what")
_SUMMARY = re.compile(
    r"\b(summar\w+|tell me (?:more )?about|what(?:'s| is| was) .+ about"
    r"|what do (?:people|they|reviewers) (?:say|think))\b",
    re.IGNORECASE,
)


class Wishes:
    """One turn, read as a search of the rows of one relation."""

    def __init__(self, links: Links, vocabulary: Vocabulary, main: Relation) -> None:
        self.links, self.vocabulary, self.main = links, vocabulary, main
        self.ways = paths(vocabulary.hops, main)
        self.own = vocabulary.index.places[main.name]
        self.columns = Columns(links, vocabulary, main, self.ways)
        self.named = name_place(self.own)

    def suql(self, frame: Frame | None = None) -> str:
        """Return the query of what is asked for; of another frame where there is one."""
        return self._written[0] if frame is None else self._write(frame)[0]

    @property
    def is_whole(self) -> bool:
        """Whether nothing that is to be shown had to be left out of the query, as what a row has several of."""
        return self._written[1]

    @cached_property
    def _written(self) -> tuple[str, bool]:
        return self._write(self.frame)

    def _write(self, frame: Frame) -> tuple[str, bool]:
        """Return the query of a frame, and whether all of it could be kept."""
        whole = True
        try:
            bring(frame, self.main, self.ways, self.vocabulary)
        except NotUnderstood:
            whole = False
            self._keep_own(frame)
            bring(frame, self.main, self.ways, self.vocabulary)
        return write(frame, self.main, self.ways), whole

    def _keep_own(self, frame: Frame) -> None:
        """Neither show nor rank by what a row has several of; conditions on it may be fulfilled by any of them."""
        frame.wanted = [t for t in frame.wanted if t.place is None or t.place in self.own] or [Term("", self.named)]
        frame.order = [(term, down) for term, down in frame.order if term.place in self.own]
        others = [test for test in frame.tests if test.term.place is not None and test.term.place not in self.own]
        frame.tests = [test for test in frame.tests if test not in others]
        frame.members += [Member(t.term.place.relation, (t,), True) for t in others if t.term.place is not None]

    @property
    def asks_yes_or_no(self) -> bool:
        """Whether a question is opened by a verb: no rows are asked for."""
        return self.links.folded(0) in _ASKING - {"what", "how", "can"}

    @cached_property
    def frame(self) -> Frame:
        """What is asked for, ready to be written."""
        frame = Frame()
        mentioned: list[Place] = []
        for place, positive, negated in self._tests():
            self._add(frame, place, positive, negated=negated)
            mentioned.append(place)
        texts, questions = self._texts()
        frame.tests += texts
        frame.order = list(self.columns.order)
        mentioned += [term.place for term, _ in frame.order if term.place is not None]
        if self.links.counts and not frame.order:
            frame.wanted = [Term("COUNT", None)]
            frame.order = []
            return frame
        frame.wanted = [*self._shown(mentioned, questions, searches=bool(texts)), *questions]
        frame.limit = self._limit(searches=bool(texts), chosen=bool(frame.tests or frame.members))
        return frame

    def _add(self, frame: Frame, place: Place, template: str, *, negated: bool) -> None:
        """Add a condition to a frame: of rows that belong to a row, it has one of which it holds, or none."""
        way = self.ways[place.relation.name]
        if all(hop.single for hop in way):
            frame.tests.append(Test(Term("", place), _denied(template) if negated else template))
        else:
            frame.members.append(Member(place.relation, (Test(Term("", place), template),), not negated))

    def _tests(self) -> Iterator[tuple[Place, str, bool]]:
        """Yield conditions of columns: the column, what is to hold of it, and whether that is denied."""
        yield from self._of_values()
        yield from self.columns.bounded()
        for span, place in self.columns.named:
            if place.kind == "boolean":
                yield place, _affirmed(place), self.links.negated(span.first)
            elif self._is_missing(span, place):
                yield place, "{} IS NULL", False

    def _is_missing(self, span: Span, place: Place) -> bool:
        k = span.first - 1
        k -= self.links.folded(k) in ("a", "an", "any")
        none = self.links.folded(k) in ("no", "without") and place.kind in ("text", "number", "date")
        return none and place not in self.columns.spoken

    def _of_values(self) -> Iterator[tuple[Place, str, bool]]:
        groups: dict[tuple[str, str, bool], list[tuple[Value, Place, str]]] = {}
        for value, (place, spelled) in self.columns.values:
            key = (place.relation.name, place.column.name, value.negated)
            groups.setdefault(key, []).append((value, place, spelled))
        for members in groups.values():
            for listed in self._lists(members):
                yield from self._alternatives(listed)

    def _lists(self, members: list[tuple[Value, Place, str]]) -> Iterator[list[tuple[Value, Place, str]]]:
        """Yield the values that stand in one list, "thai, greek or lebanese"; all of them for a column with one."""
        listed = members[:1]
        for one in members[1:]:
            between = {self.links.folded(k) for k in range(listed[-1][0].last, one[0].first)}
            if one[1].column.array and not between <= _LISTING:
                yield listed
                listed = []
            listed.append(one)
        yield listed

    def _alternatives(self, members: list[tuple[Value, Place, str]]) -> Iterator[tuple[Place, str, bool]]:
        place, negated = members[0][1], members[0][0].negated
        texts: list[str] = []
        for value, _, spelled in members:
            alike = sorted({m[1] for m in value.meanings if m[0] == place}) if value.how != "part" else [spelled]
            texts += [_equals(value, place, each) for each in alike]
        texts = list(dict.fromkeys(texts))
        between = range(members[0][0].first, members[-1][0].last)
        either = not place.column.array or any(self.links.folded(k) == "or" for k in between)
        if negated or len(texts) == 1 or not either:
            yield from ((place, text, negated) for text in texts)
        elif all(text.startswith("{} = ") for text in texts):
            yield place, "{} IN (" + ", ".join(text.removeprefix("{} = ") for text in texts) + ")", False
        else:
            yield place, "(" + " OR ".join(texts) + ")", False

    # --- texts --------------------------------------------------------------------------------------------------------

    @cached_property
    def phrases(self) -> tuple[Phrase, ...]:
        """What only texts can tell, as questions to them."""
        return phrases(self.links, self.noun)

    @property
    def noun(self) -> str:
        """What one row is called in those questions."""
        named = next((s for s in self.links.relations if self.main in s.data), None)
        return self.links.stem(named.last - 1) if named else singular(self.main.name)

    @property
    def entity(self) -> Value | None:
        """The row that the turn is about, when it names one."""
        return next((v for v, m in self.columns.values if m[0] is self.named and not v.negated), None)

    def _texts(self) -> tuple[list[Test], list[Term]]:
        """Return conditions on texts; for a question about one named row, the answers to show instead."""
        whole = self.prose(None)
        if whole is None:
            return [], []
        asks_prose = any(p.kind == "prose" for _, p in self.columns.named)
        if self.entity and (_SUMMARY.search(self.links.question) or asks_prose) and not self.phrases:
            return [], [Term("summary({})", whole)]
        if self.entity and self.phrases and self.links.folded(0) in _ASKING:
            asked = sql.text(self._about_entity(self.entity))
            return [], [Term(f"answer({{}}, {asked})", self.prose(self.phrases[0]) or whole)]
        tests = []
        for phrase in self.phrases:
            wanted = "Yes" if phrase.wanted else "No"
            template = f"answer({{}}, {sql.text(phrase.question)}) = '{wanted}'"
            tests.append(Test(Term("", self.prose(phrase) or whole), template))
        return tests, []

    def _about_entity(self, entity: Value) -> str:
        tokens, question = self.links.tokens, self.links.question
        before, after = question[: tokens[entity.first].start], question[tokens[entity.last - 1].end :]
        before, after = before.rstrip('"“'), after.lstrip('"”')
        asked = re.sub(r"\b(the|a) this\b", "this", f"{before}this {self.noun}{after}").strip().rstrip("?.! ")
        return asked[:1].lower() + asked[1:] + "?"

    def prose(self, phrase: Phrase | None) -> Place | None:
        """Return the column of prose that a phrase is best asked of."""
        found = [p for name in self.ways for p in self.vocabulary.index.places[name] if p.kind == "prose"]

        def score(place: Place) -> float:
            said = set(stems(phrase.words)) if phrase else set()
            taste = 2.0 if phrase and phrase.dish else -2.0
            overlap = len(said & (set(place.stems) | place.about)) + taste * ("dishes" in place.roles)
            far = 1.5 * len(self.ways[place.relation.name])
            return overlap + 0.8 * ("reviews" in place.roles) + 0.5 * place.column.array - far

        return max(found, key=score, default=None)

    # --- what is shown ------------------------------------------------------------------------------------------------

    @cached_property
    def asked(self) -> tuple[Place, ...]:
        """Columns that the turn asks to see."""
        by_wh = wh_places(self.links.question, self.links.tokens, self.own)
        missing = [place for span, place in self.columns.named if self._is_missing(span, place)]
        return tuple(dict.fromkeys(place for place in (*self.columns.asked, *by_wh) if place not in missing))

    def _shown(self, mentioned: Sequence[Place], questions: Sequence[Term], *, searches: bool) -> list[Term]:
        if self.asked and searches:
            places: Sequence[Place] = facts(self.own, [*self.asked, *mentioned])
        elif self.asked:
            by_wh = wh_places(self.links.question, self.links.tokens, self.own)
            places = (self.named, *self.asked) if by_wh and self.named not in self.asked else self.asked
        else:
            places = (self.named,) if questions else facts(self.own, mentioned)
        return [Term("", place) for place in places]

    def _limit(self, *, searches: bool, chosen: bool) -> int | None:
        extreme = [span for span in self.links.orders if self.columns.order]
        if extreme or self.links.limit:
            return self.links.limit or (SEARCH_LIMIT if self._plural(extreme[0].last) else 1)
        if searches:
            return SEARCH_LIMIT
        everything = {"all", "every", "each", "list"} & {t.folded for t in self.links.tokens}
        if self.asked or everything or self.entity:
            return None
        if self.prose(None) is None:
            return None if chosen else LISTED_LIMIT
        return DEFAULT_LIMIT

    def _plural(self, after: int) -> bool:
        """Return whether the noun of a superlative is in the plural: "the best restaurants"."""
        tokens = self.links.tokens
        named = [tokens[span.last - 1] for span in self.links.relations if self.main in span.data]
        ordered = {part for term, _ in self.columns.order if term.place for part in term.place.stems}
        for token in named[:1] or tokens[after : after + 3]:
            if token.folded in ("in", "that", "which", "who", "with", "for", ","):
                break
            if token.folded != token.stem and token.stem not in ordered:
                return True
        return False

    # --- what is told -------------------------------------------------------------------------------------------------

    @property
    def unused(self) -> tuple[str, ...]:
        """The words that the query does not use."""
        links = self.links
        known = [value for value, _ in self.columns.values]
        found = [*links.dropped, *(value.text for value in links.values if value not in known)]
        spans = [span for span in (*links.bounds, *links.days) if span not in self.columns.placed]
        spans += links.orders if not self.columns.order and not links.counts else []
        found += [links.text(span.first, span.last) for span in spans]
        if self.prose(None) is None or (links.counts and not self.phrases):
            found += [links.tokens[i].text for i in range(len(links.tokens)) if content(links, i)]
        return tuple(found)

    @property
    def corrections(self) -> tuple[tuple[str, str], ...]:
        """Words of the turn that were taken for misspelt values, with these."""
        return tuple((value.text, meaning[1]) for value, meaning in self.columns.values if value.how == "misspelt")

    @property
    def score(self) -> float:
        """How well the relation fits the turn; comparable between relations."""
        score = sum(1.0 - 0.6 * len(self.ways[m[0].relation.name]) for _, m in self.columns.values)
        score += sum(1.0 - 0.6 * len(self.ways[p.relation.name]) for _, p in self.columns.named)
        score += (self.main.name in self.links.kin) - 1.0 * len(self.unused)
        for rank, span in enumerate(self.links.relations):
            if self.main in span.data:
                score += 4.0 / len(span.data) + 2.0 * (rank == 0)
        return score + 0.5 * (self.prose(None) is not None and bool(self.phrases))


def _denied(template: str) -> str:
    if "ILIKE" in template or "ANY" in template or template == "{}":
        return f"NOT {template}"
    return template.replace(" = ", " <> ", 1)


def _affirmed(place: Place) -> str:
    if place.affirms is None:
        return "{}"
    return f"{{}} = {place.affirms if place.affirms.isdigit() else sql.text(place.affirms)}"


def _equals(value: Value, place: Place, spelled: str) -> str:
    """Write that a column, `{}`, has a value."""
    if value.how == "part":
        return "{} ILIKE " + sql.pattern(value.text)
    return f"{sql.text(spelled)} = ANY({{}})" if place.column.array else f"{{}} = {sql.text(spelled)}"
