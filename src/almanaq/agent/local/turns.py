"""Tells what an asker does with a turn, by its words and by what they link to: no language model."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from almanaq.agent.history import Turn, TurnKind
from almanaq.agent.local.again import again
from almanaq.agent.local.cues import cue
from almanaq.agent.local.references import refers, shown_before
from almanaq.agent.local.search.told import Said
from almanaq.agent.local.words import word_set
from almanaq.agent.small_talk import small_talk

_FILLERS = re.compile(
    r"^(?:(?:ok|okay|and|so|but|well|hmm+|hm|please|now|then|great|good|yes|yeah|nah|nope|actually"
    r"|alright|right|cool|fine|thanks|no(?! (?:\w+ ){0,2}(?:need|limit|restriction|filter|constraint|requirement"
    r"|preference|matter|longer|more)s?\b))\b[, ]*)+"
)
_CONTRACTED = re.compile(
    r"\b((?:do|does|did|is|are|was|have|has|need|ca|wo)n(?=t\b)|(?:what|who|where|how|that|there|let)(?=s\b))"
)
_NUMBER = re.compile(r"\d|\bthan (?:an?|one|two|three|four|five|six|seven|eight|nine|ten)\b")
_INTERJECTIONS = word_set(
    """
    ok okay yes no yeah nope sure great good perfect cool nice awesome amazing wow hmm hm hmmm mm ah oh lol haha alright
    right fine interesting impressive wonderful excellent super got it i see understood never mind nevermind sorry oops
    really indeed lovely brilliant then well thanks that is haha ha phew sweet neat oof yo yum whoa aha enough fair
    course of true exactly definitely totally absolutely gotcha same here too bad my one no worries problem
    """
)


_WHO = re.compile(r"who (?:is|are) (?:an?|from|in|not) ")


@dataclass(frozen=True, slots=True)
class Heard:
    """A turn made ready to be told apart.

    Attributes:
        text: in lower case, with plain apostrophes and single spaces; `core` without the fillers that open it.
        values: it names values of the data; `nouns` it names a relation; `columns` a column; `linked` anything at all;
            `named` it spells the name of a row.
    """

    text: str
    core: str
    values: int
    nouns: int
    columns: int
    linked: bool
    named: bool = False


def hear(question: str, told: Said) -> Heard:
    """Return what tells a turn apart."""
    text = _CONTRACTED.sub(r"\1'", " ".join(question.casefold().replace("\u2019", "'").split()))
    core = _FILLERS.sub("", text).strip(" ,.!") or text
    named = any("name" in place.roles for v in told.values if v.how != "part" for place, _ in v.meanings)
    return Heard(text, core, len(told.values), len(told.relations), len(told.columns), told.linked, named)


def turn_kind(question: str, told: Said, history: Sequence[Turn]) -> TurnKind:
    """Return the kind of a turn, by what its words were taken for."""
    heard = hear(question, told)
    if small_talk(question) is not None:
        return "talk"
    searched = any(t.suql for t in history)
    if searched and again(question) is not None:
        return "again"
    follows = _follow_up(heard, history) if searched else None
    if follows is not None:
        return follows
    if _talks(heard):
        return "talk"
    if _worldly(heard):
        return "world"
    if heard.linked or _searching(heard):
        return "new"
    return "world" if cue("inquires").search(heard.core) else "talk"


def _worldly(heard: Heard) -> bool:
    """Return whether a turn asks for what no table of a source holds."""
    if heard.named or (heard.values and _WHO.match(heard.core)):
        return False
    general = cue("general").search(heard.core) and not (heard.nouns or heard.columns or refers(heard.core))
    return bool(general or cue("world").search(heard.core))


def reacts(question: str, told: Said) -> bool:
    """Return whether the words of a turn are those of small talk; other turns of kind "talk" only name nothing."""
    return small_talk(question) is not None or _talks(hear(question, told))


def _talks(heard: Heard) -> bool:
    if set(re.findall(r"[a-z]+", heard.text)) <= _INTERJECTIONS:
        return True
    return bool(cue("talk").search(heard.text)) and not (heard.values and cue("asks").search(heard.core))


def _searching(heard: Heard) -> bool:
    """Return whether a turn looks for something that only prose can tell: no word of it names anything."""
    return bool(cue("searching").search(heard.text))


def _follow_up(heard: Heard, history: Sequence[Turn]) -> TurnKind | None:
    """Return the kind of a turn that goes on from an earlier one, None for one that stands alone."""
    core = heard.core
    of_set = bool(cue("of_set").search(core))
    refers_to_row = refers(core)
    complete = heard.nouns > 0 and not of_set and not refers_to_row
    if _worldly(heard) and not heard.nouns:
        return "world"
    if _counts(heard, complete):
        return "count"
    if _drops(heard, history):
        return "drop"
    if _talks(heard):
        return "talk"
    if cue("about").search(core) and (refers_to_row or of_set):
        return "detail"
    if cue("another").search(core) and not (heard.values and (heard.nouns or not cue("besides").search(core))):
        return "another"
    if cue("compare").search(core) and cue("best_by_comparative").search(core):
        return "best"
    if cue("compare").search(core) and not _NUMBER.search(core) and not (complete and heard.values):
        return None if "would be better" in core else "compare"
    if cue("best").search(core) and (of_set or not (heard.values or complete)):
        return "best"
    return _reference(heard, history, refers_to_row=refers_to_row, complete=complete)


def _drops(heard: Heard, history: Sequence[Turn]) -> bool:
    """Return whether a turn takes a condition away; "without X" does when X was asked for."""
    if cue("drop").search(heard.core):
        return True
    if heard.core.startswith("without "):
        before = (next((t.suql for t in reversed(history) if t.suql), None) or "").casefold()
        if any(len(word) > 3 and word in before for word in re.findall(r"\w+", heard.core)[1:]):
            return True
    return bool(heard.columns and not heard.values and cue("any_of_column").search(heard.core))


def _counts(heard: Heard, complete: bool) -> bool:
    if refers(heard.core) and not re.search(r"\bhow many\b|\bhead ?count\b", heard.core):
        return False
    if cue("count").search(heard.core):
        return not (complete and heard.values) or bool(re.search(r"\bsuch\b", heard.core))
    if not re.search(r"\bhow many\b", heard.core) or refers(heard.core):
        return False
    return bool(re.search(r"\b(?:is|was|would|were) (?:that|it|this|these|those)\b", heard.core)) or (
        not heard.nouns and heard.values > 0 and not re.search(r"\bdoes\b", heard.core)
    )


def _reference(heard: Heard, history: Sequence[Turn], *, refers_to_row: bool, complete: bool) -> TurnKind | None:
    core = heard.core
    if re.match(r"(?:and )?(?:what|how) about\b", core) and refers_to_row:
        return "detail"
    modal = re.search(r"\b(?:it|they|he|she)(?: also)? (?:must|should|needs?|has to|have to)\b", core)
    if refers_to_row and not modal and not re.match(r"(?:only|just|filter|restrict|limit)\b", core):
        return "detail" if shown_before(history) else None
    if (
        cue("replace").search(core)
        and (heard.linked or len(core.split()) < 7)
        and not _complete_search(heard, complete)
    ):
        return "replace"
    if re.search(r"\bto know (?:where|which|what|who)\b", core):
        return None
    relative = bool(cue("relative").search(core))
    if complete and not relative:
        return None if len(core.split()) > 2 or not heard.text.startswith(("and", "or", "ok and")) else "replace"
    if relative or modal or cue("narrow").search(core):
        return None if heard.values > 1 and cue("asks").search(core) else "narrow"
    return _fragment(heard)


def _complete_search(heard: Heard, complete: bool) -> bool:
    """Return whether a turn asks for rows by all that it wants of them."""
    return (
        complete
        and bool(cue("asks").search(heard.core))
        and not re.match(r"(?:what|how) (?:about|if|would)\b", heard.core)
    )


def _fragment(heard: Heard) -> TurnKind | None:
    """Return the kind of a few words without a verb of asking: "and comedies?", "in Sunnyvale, please"."""
    whole = cue("asks").search(heard.core) or (heard.values and cue("yes_or_no").search(heard.core))
    if whole or len(heard.core.split()) > 6:
        return None
    if not heard.linked:
        return "narrow" if cue("goes_on").search(heard.text) and not cue("inquires").search(heard.core) else None
    return "replace" if heard.values else "narrow"
