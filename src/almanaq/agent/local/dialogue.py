"""LocalDialogue: questions and turns → SUQL, or up to three readings to choose from, without a language model."""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Sequence
from copy import copy
from dataclasses import replace
from datetime import date

from sqlglot import exp

from almanaq.agent.describe import describe
from almanaq.agent.history import NO_DATA, Turn, TurnKind
from almanaq.agent.linking.english import english
from almanaq.agent.linking.words import fold, restore_apostrophes
from almanaq.agent.local.phrases import search_words
from almanaq.agent.local.reading import MOST_READINGS, Reading, read, with_ties
from almanaq.agent.local.spec import QuerySpec
from almanaq.agent.local.texts import is_searched
from almanaq.agent.local.turns.followups import goes_on, last_query, merge, offered_search
from almanaq.agent.local.turns.merging import put_right
from almanaq.agent.local.turns.recall import recall
from almanaq.agent.local.turns.references import PLACES, refers, turn_pattern
from almanaq.agent.local.turns.shown import names_anything
from almanaq.agent.local.world import World
from almanaq.agent.parser import Failure, Parsed
from almanaq.agent.queries import QueryEngine
from almanaq.agent.responder import describe_source
from almanaq.agent.response import Reading as Offered
from almanaq.agent.schema_text import Examples
from almanaq.agent.small_talk import answer_about_source, decline_language, detect_language, small_talk
from almanaq.suql.catalog.relations import Catalog

CONFIDENCE = 0.65
"""The probability of being right below which readings are offered instead of an answer."""
_SEARCHED = 0.15
"""The same for searches of reviewed rows: a reply shows what it did not use, and the rows show the rest."""
_NOT_ANSWERED = ("clarify", "no_query", "failed")
_WHOLE = 0.55
"""The same for a turn that is read alone, as a question that needs nothing of what came before it."""
_FEW = 3
"""Words and marks of a turn that may narrow the one before it though nothing in it says so: "cheap ones", "2023?"."""
_OFFERED = 0.02
"""The probability below which a search is not offered: any words can be asked of texts."""
_SAYS_NOTHING = frozenset("silent and by aggregate count distinct share superlative order direction".split())
"""Kinds of spans that name nothing of a source by themselves."""
_LONGEST = 2000
_WORDS_KEPT = 3
_CHOICE = re.compile(
    r"(?:(?:the )?(?:number |option |no\.? ?|#)?(?P<digit>[1-3])|(?:the )?(?P<word>first|second|third|last)(?: one)?"
    r"|(?:yes|yep|yeah|ok|okay|right|exactly|sure|that one)(?:,? please)?)[.! ]*",
)
_QUESTION_WORDS = frozenset("which what who whom whose where when why how".split())
_BEGINNINGS = _QUESTION_WORDS | frozenset("list show give find number average total count top name".split())
"""Words that begin a question of its own."""
_SHORT_IS = re.compile(r"\b(where|when|how|which|which one)['’]s\b", re.IGNORECASE)
_CLAUSE = re.compile(r"[^,.!;?]+[,.!;]+\s*(?:but |and )?(?=\w)", re.IGNORECASE)
_NEXT_QUESTION = re.compile(
    rf"(?<=\?)\s+(?=(?:and |then )?(?:{'|'.join(_QUESTION_WORDS)})(?:\s\w+){{2}})", re.IGNORECASE
)
"""What comes before a question of its own: "Is there one? Which?" and "Which farm is it? Give its name" are one."""


class LocalDialogue:
    """A SemanticParser that also tells kinds of turns.

    A turn is first read alone. Only where that gives nothing sure, or where the turn speaks of what came before, it is
    merged into the query that was answered last.

    Args:
        engine: gives the values of columns, and says whether keys repeat.
        today: gives the date that "last year" refers to.
        confidence: the probability of being right below which readings are offered.
        examples: questions with their SUQL, which are known again.
    """

    name = "local"

    def __init__(
        self,
        engine: QueryEngine,
        today: Callable[[], date] = date.today,
        *,
        confidence: float = CONFIDENCE,
        examples: Examples = (),
    ) -> None:
        self._engine, self._today, self._confidence = engine, today, confidence
        self._examples = examples
        self._worlds: dict[tuple[str, ...], World] = {}

    @property
    def confidence(self) -> float:
        """The probability of being right below which readings are offered."""
        return self._confidence

    def with_confidence(self, confidence: float | None) -> LocalDialogue:
        """Return one that answers what it is so sure of, and shares with this one what it knows of the source."""
        other = copy(self)
        other._confidence = CONFIDENCE if confidence is None else confidence
        return other

    def world(self, catalog: Catalog) -> World:
        """Return the catalog made searchable; kept for the next question."""
        key = tuple(relation.name for relation in catalog.relations)
        known = self._worlds.get(key)
        if known is None or known.catalog != catalog:
            engine = self._engine
            known = World(catalog, engine.values, lambda q: engine.run(q).rows, self._today, engine.dialect)
            self._worlds[key] = known
        return known

    def classify(self, question: str, catalog: Catalog, history: Sequence[Turn] = ()) -> TurnKind:
        """Return whether a turn is small talk; all else is the parser's to read."""
        chosen = bool(history) and _find_choice(question, history[-1]) is not None
        asks = small_talk(question) is None or chosen or answer_about_source(question, catalog) is not None
        return "new" if asks else "talk"

    def parse(
        self, question: str, catalog: Catalog, history: Sequence[Turn] = (), failures: Sequence[Failure] = ()
    ) -> Parsed:
        """Return the query of a turn, or the readings to choose from; a query that was refused has no second form."""
        question = turn_pattern("asides").sub("", restore_apostrophes(question[:_LONGEST]))
        question = _SHORT_IS.sub(r"\1 is", question)
        while (said := _CLAUSE.match(question)) and small_talk(said[0]):  # "That sounds great, but …"
            question = question[said.end() :]
        if failures:
            return Parsed("no_query")
        begun = [i for i, turn in enumerate(history, 1) if turn_pattern("restart").search(turn.question)]
        history = history[begun[-1] :] if begun else history
        settled = self.settle(question, catalog, history) or self._answer_first(question, catalog, history)
        return settled or self._decide(question, self.world(catalog), history)

    def settle(self, question: str, catalog: Catalog, history: Sequence[Turn] = ()) -> Parsed | None:
        """Return what needs no reading of words: a reading chosen, a question known or about the source; else None."""
        if history and (chosen := _find_choice(question, history[-1])) is not None:
            return Parsed("query", chosen, asked=history[-1].question)
        if (language := detect_language(question)) is not None:
            return Parsed("no_query", reply=decline_language(language))
        if turn_pattern("restart").search(question):
            return Parsed("no_query", reply="All right: what you ask next is read alone.")
        if (about := answer_about_source(question, catalog)) is not None:
            return Parsed("no_query", reply=about)
        pairs = (pair for pair in self._examples if pair[1] is not None)
        known = (self.recall(question, example, suql, catalog) for example, suql in pairs if suql is not None)
        found = next((suql for suql in known if suql is not None), None)
        return None if found is None else Parsed("query", found)

    def recall(self, question: str, known: str, suql: str, catalog: Catalog) -> str | None:
        """Return the query of a known question for one that differs in values alone; None for any other."""
        return recall(question, known, suql, lambda: self.world(catalog), self._today())

    def stands_alone(self, question: str, history: Sequence[Turn], catalog: Catalog) -> bool:
        """Return whether a turn asks something whole, that needs nothing of those before it."""
        world = self.world(catalog)
        return not history or not (refers(question, history, world) or goes_on(question) or _is_part(question, world))

    def readings(self, question: str, catalog: Catalog) -> list[Reading]:
        """Return the readings of a question alone, the likeliest first."""
        return read(question[:_LONGEST], self.world(catalog))

    def _decide(self, question: str, world: World, history: Sequence[Turn]) -> Parsed:
        alone = read(question, world)
        best = alone[0] if alone else None
        sure = best if best is not None and self._is_answer(question, best, world) else None
        last = last_query(history, world)
        speaks_of = bool(history) and refers(question, history, world)
        names_row = sure is not None and self._names_its_row(sure, world)
        of_world = turn_pattern("of_world").search(question) and not (speaks_of or names_row)
        if of_world and best is not None and _searches(best, world) and not best.spec.gives_figures:
            return Parsed("no_query", reply="No row tells that, so I searched nothing.", kind="world")
        of_row = names_row and last is not None and is_searched(world, world.catalog.relation(last.rows))
        refers_back = (speaks_of and not names_row) or (bool(history) and goes_on(question))
        refers_back |= last is not None and put_right(question, last, world) != question
        lost = bool(history) and history[-1].status in _NOT_ANSWERED and history[-1].kind not in NO_DATA
        lost &= offered_search(history, world) is None and (speaks_of or not turn_pattern("count_all").search(question))
        shown = any(turn.shown is not None for turn in history)
        if last is None and not (speaks_of and shown) and best is not None and _searches(best, world):
            refers_back = False  # "in Bern" is a search of its own where it goes on from none
        if lost and speaks_of:  # "their" after "only the overdue ones", which was not understood, are those
            asked = history[-1].question
            lost = names_anything(asked, world) or not self.stands_alone(asked, history[:-1], world.catalog)
        if last is not None:
            whole = sure if sure is not None and not refers_back and sure.probability >= _WHOLE else None
            searched = is_searched(world, world.catalog.relation(last.rows))
            lost &= not searched
            narrows = whole is None and _is_part(question, world, searched=searched)
            narrows |= searched and best is not None and self._narrows(question, best, world)
            opens = not (refers_back or narrows or searched) and _may_go_on(question, last, world)
            merged = merge(question, history, world) if refers_back or narrows or opens else None
            merged = merged and with_ties(merged, world)
            if merged is not None and not (opens or lost) and self._is_answer(question, merged, world):
                kind: TurnKind = "detail" if of_row or "detail" in merged.reasons else "new"
                return Parsed("query", merged.suql, kind=kind, remarks=merged.notes, unused=merged.unused)
            if merged is not None:
                alone = [merged, *(reading for reading in alone if reading.suql != merged.suql)]
                return self._offer(question, alone, world)
        if refers_back:
            return self._offer(question, alone, world)
        idle = sure is not None and _searches(sure, world) and bool(sure.unused) and not sure.spec.conditions
        if sure is not None and not idle and (tied := with_ties(sure, world)) is not None:
            return Parsed(
                "query", tied.suql, kind="detail" if of_row else "new", remarks=tied.notes, unused=tied.unused
            )
        return self._offer(question, alone, world)

    def _answer_first(self, question: str, catalog: Catalog, history: Sequence[Turn]) -> Parsed | None:
        """Return the query of the first of several questions, and offer the others; None where it is one, or unsure."""
        first, *others = _NEXT_QUESTION.split(question.strip())
        answered = self.parse(first, catalog, history) if others else None
        if answered is None or answered.suql is None:
            return None
        turns, world = (*history, Turn(first, answered.suql)), self.world(catalog)
        found = [self.parse(other, catalog, turns).suql for other in others]
        if found == [None]:  # "Which has most?" is understood together with what comes before it
            found = [self._decide(question, world, history).suql]
        asked = [suql for suql in dict.fromkeys(found) if suql not in (None, answered.suql)]
        offered = tuple(Offered(describe(suql, dialect=world.dialect), suql, 1.0) for suql in asked[:MOST_READINGS])
        listed = "".join(f"\n{i}. {each.words}" for i, each in enumerate(offered, 1))
        also = f"For the rest, answer with its number:{listed}\n" if offered else "Ask the rest by itself."
        said = f"This answers “{first}” alone. {also}"
        return replace(answered, readings=offered, remarks=(*answered.remarks, said))

    def _narrows(self, question: str, best: Reading, world: World) -> bool:
        """Return whether a turn that is clear alone narrows the search before it: "is there anything cheap?".

        It does unless it asks in whole: by a word that begins a question, or a noun, with several conditions.
        """
        if not _searches(best, world) or best.spec.gives_figures or self._names_its_row(best, world):
            return False
        asks = _opening(question, world)[0] in _BEGINNINGS
        first, names = _opening(question, world, searched=asks)
        few = len(best.spec.conditions) < 2
        return few and first in _QUESTION_WORDS and not names if asks else few or not names

    def _names_its_row(self, reading: Reading, world: World) -> bool:
        """Return whether a reading is about a row that the question calls by its name."""
        columns = [world.column_of(each) for each in reading.spec.conditions if isinstance(each, exp.EQ)]
        return any(c is not None and c is world.index.name_of(c.relation) for c in columns)

    def _is_answer(self, question: str, reading: Reading, world: World) -> bool:
        """Return whether a reading is sure enough to be the answer."""
        searched = _searches(reading, world) and not reading.spec.groups
        least = min(_SEARCHED, self._confidence) if searched else self._confidence
        return reading.probability >= least and not (searched and _misses_its_point(question, reading, world))

    def _offer(self, question: str, found: Sequence[Reading], world: World) -> Parsed:
        """Return the readings that may be meant, or why there is none."""
        offered = [
            Offered(describe(reading.suql, dialect=world.dialect), reading.suql, round(reading.probability, 3))
            for reading in found[:MOST_READINGS]
            if reading.probability >= _OFFERED or not _searches(reading, world)
        ]
        return self.offer(question, offered, world)

    def offer(self, question: str, offered: Sequence[Offered], world: World) -> Parsed:
        """Return readings to choose from, the first of equal words; with none, which words were not understood."""
        worded = [each for each in offered if each.words != each.suql] or offered  # a query, only where none has words
        offered = [each for i, each in enumerate(worded) if all(each.words != e.words for e in worded[:i])]
        unknown = _unknown(question, world)
        why = f"I do not know what {', '.join(f'“{word}”' for word in unknown)} means here. " if unknown else ""
        if not offered:
            return Parsed("no_query", reply=f"{why}I ran nothing. {describe_source(world.catalog)}" if unknown else "")
        listed = "\n".join(f"{i}. {each.words}" for i, each in enumerate(offered, 1))
        number = "its number" if len(offered) > 1 else "“yes”"
        text = f"{why}I am not sure what you mean, so I ran nothing. Do you mean:\n{listed}\n"
        text += f"Answer with {number}, or ask in other words."
        return Parsed("clarify", reply=text, readings=tuple(offered), asked=question)


def _searches(reading: Reading, world: World) -> bool:
    relation = world.catalog.find(reading.spec.rows)
    return relation is not None and is_searched(world, relation)


def _is_part(question: str, world: World, *, searched: bool = False) -> bool:
    """Return whether a turn is no question of its own: it neither asks nor names rows ("in Bern?", "cheap ones")."""
    first, names = _opening(question, world, searched=searched)
    asking = _QUESTION_WORDS if searched else _BEGINNINGS
    return first not in asking and not names and (searched or len(world.link(question).tokens) <= _FEW)


def _may_go_on(question: str, last: QuerySpec, world: World) -> bool:
    """Return whether a turn names one thing and no rows, so that it may be of those found last: "average fee"."""
    cover = next(iter(world.link(question).covers), ())
    said = [span.kind for span in cover if span.kind not in _SAYS_NOTHING]
    columns = [getattr(span.meanings[0], "thing", None) for span in cover if span.kind == "column"]
    ranks = any(span.kind == "superlative" for span in cover) and any(not c.is_measurable for c in columns if c)
    kinds = any(span.kind == "distinct" for span in cover)
    of_all = ranks or kinds or turn_pattern("whole").search(question) is not None or len(said) > 1
    found = bool(last.tests or ((last.limit or 0) > 1 and not last.groups))  # one row has no figures
    return found and not of_all and not {"table", "noun", "unknown"} & {*said}


def _opening(question: str, world: World, *, searched: bool = False) -> tuple[str, bool]:
    """Return the first word of a turn, and whether it calls rows by their noun; in a search, other nouns are wishes."""
    links, nouns = world.link(question), ("table",) if searched else ("table", "noun")
    names = any(span.kind in nouns for span in (links.covers[0] if links.covers else ()))
    return links.tokens[0].folded if links.tokens else "", names


def _misses_its_point(question: str, reading: Reading, world: World) -> bool:
    """Return whether a search leaves out a place, "in Atlantis", or what is asked of no rows: "who invented sushi?"."""
    tokens = world.link(question).tokens
    words = [token.folded for token in tokens]
    unused = {*fold(" ".join(reading.unused)).split()} - english().silent - search_words().ignored
    names = search_words().entity_words & {*words} or _opening(question, world, searched=True)[1]
    lower = question == question.casefold()
    named = (after for before, after in itertools.pairwise(tokens) if before.folded in ("in", "near", "around", "at"))
    placed = (token.folded for token in named if lower or token.text[:1].isupper())
    asks = words[0] in ("what", "when", "why", "how") and words[1:2] != ["about"]
    return (bool(unused) and asks and not names) or bool(unused & {*placed})


def _unknown(question: str, world: World) -> list[str]:
    """Return the words of a question that mean nothing here."""
    silent = english().silent | search_words().ignored | search_words().quality
    return [word for word in dict.fromkeys(world.link(question).unknown) if fold(word) not in silent][:_WORDS_KEPT]


def _find_choice(question: str, last: Turn) -> str | None:
    """Return the query that a turn chooses of those offered; None where it chooses none."""
    match = _CHOICE.fullmatch(fold(question).strip())
    if match is None or not last.offered or (match["word"] and last.suql):  # "the first one" of the rows shown
        return None
    place = int(match["digit"]) - 1 if match["digit"] else PLACES.get(match["word"], 0)
    return last.offered[place] if place < len(last.offered) else None
