"""Tells what an asker does with a turn, by its words and by what they link to: no language model."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property

from almanaq.agent.history import Turn, TurnKind
from almanaq.agent.local.lexicon import INTERJECTIONS, cue
from almanaq.agent.local.listing import listing
from almanaq.agent.local.references import refers, shown_before
from almanaq.agent.local.search.told import Said
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
_WHO = re.compile(r"who (?:is|are) (?:an?|from|in|not) ")
_OPENS_FRAGMENT = re.compile(r"(?:what|how) (?:about|if|would)\b")
_MODAL = re.compile(r"\b(?:it|they|he|she)(?: also)? (?:must|should|needs?|has to|have to)\b")
_LIMITS = re.compile(r"(?:only|just|filter|restrict|limit)\b")
_OF_WHAT = re.compile(r"\b(?:is|was|would|were) (?:that|it|this|these|those)\b")


@dataclass(frozen=True)
class Heard:
    """A turn made ready to be told apart.

    Attributes:
        text: in lower case, with plain apostrophes and single spaces; `core` without the fillers that open it.
        values: it names values of the data; `nouns` it names a relation; `columns` a column; `linked` anything at all;
            `named` it spells the name of a row.
        before: the latest query, in lower case; `shown` whether any reply showed rows that can be found again.
    """

    text: str
    core: str
    values: int
    nouns: int
    columns: int
    linked: bool
    named: bool
    before: str
    shown: bool

    def says(self, name: str) -> bool:
        return bool(cue(name).search(self.core))

    @cached_property
    def refers(self) -> bool:
        """Whether it speaks of a row that was shown; `to_one` not of what that must be like."""
        return refers(self.core)

    @cached_property
    def to_one(self) -> bool:
        return self.refers and not _MODAL.search(self.core) and not _LIMITS.match(self.core)

    @cached_property
    def of_set(self) -> bool:
        return self.says("of_set")

    @cached_property
    def complete(self) -> bool:
        """Whether it names rows of its own."""
        return self.nouns > 0 and not self.of_set and not self.refers


def hear(question: str, links: Said, history: Sequence[Turn] = ()) -> Heard:
    """Return what tells a turn apart."""
    text = _CONTRACTED.sub(r"\1'", " ".join(question.casefold().replace("\u2019", "'").split()))
    core = _FILLERS.sub("", text).strip(" ,.!") or text
    named = any("name" in place.roles for v in links.values if v.how != "part" for place, _ in v.meanings)
    linked = (
        len(links.values),
        len(links.relations),
        len(links.columns),
        links.linked,
        named,
    )
    before = next((turn.suql for turn in reversed(history) if turn.suql), None) or ""
    return Heard(text, core, *linked, before.casefold(), shown_before(history))


def turn_kind(question: str, links: Said, history: Sequence[Turn]) -> TurnKind:
    """Return the kind of a turn, by what its words were taken for."""
    heard = hear(question, links, history)
    if small_talk(question) is not None:
        return "talk"
    if heard.before:
        if listing(question) is not None:
            return "again"
        follows = next(kind for kind, holds in _FOLLOW_UPS if holds(heard))
        if follows is not None:
            return follows
    if _talks(heard):
        return "talk"
    if _worldly(heard):
        return "world"
    if heard.linked or cue("searching").search(heard.text):  # no word names anything, only prose can tell
        return "new"
    return "world" if heard.says("inquires") else "talk"


def reacts(question: str, links: Said) -> bool:
    """Return whether the words of a turn are those of small talk; other turns of kind "talk" only name nothing."""
    return small_talk(question) is not None or _talks(hear(question, links))


def _worldly(heard: Heard) -> bool:
    """Return whether a turn asks for what no table of a source holds."""
    if heard.named or (heard.values and _WHO.match(heard.core)):
        return False
    general = heard.says("general") and not (heard.nouns or heard.columns or heard.refers)
    return general or heard.says("world")


def _talks(heard: Heard) -> bool:
    if set(re.findall(r"[a-z]+", heard.text)) <= INTERJECTIONS:
        return True
    return bool(cue("talk").search(heard.text)) and not (heard.values and heard.says("asks"))


def _drops(heard: Heard) -> bool:
    """Return whether a turn takes a condition away; "without X" does when X was asked for."""
    wanted = re.findall(r"\w+", heard.core)[1:] if heard.core.startswith("without ") else []
    if heard.says("drop") or any(len(word) > 3 and word in heard.before for word in wanted):
        return True
    return bool(heard.columns and not heard.values and heard.says("any_of_column"))


def _counts(heard: Heard) -> bool:
    many = re.search(r"\bhow many\b", heard.core)
    if heard.refers and not many and "head count" not in heard.core and "headcount" not in heard.core:
        return False
    if heard.says("count"):
        return not (heard.complete and heard.values) or bool(re.search(r"\bsuch\b", heard.core))
    if not many or heard.refers:
        return False
    only_values = not heard.nouns and heard.values > 0 and not re.search(r"\bdoes\b", heard.core)
    return only_values or bool(_OF_WHAT.search(heard.core))


def _replaces(heard: Heard) -> bool:
    """Return whether a turn names another value for what was asked; not by all that is wanted of rows."""
    whole = heard.complete and heard.says("asks") and not _OPENS_FRAGMENT.match(heard.core)
    return heard.says("replace") and (heard.linked or len(heard.core.split()) < 7) and not whole


def _narrows(heard: Heard) -> bool:
    """Return whether a turn says that it is one more condition."""
    return heard.says("relative") or bool(_MODAL.search(heard.core)) or heard.says("narrow")


def _is_fragment(heard: Heard) -> bool:
    """Return whether a turn is a few words without a verb of asking: "and comedies?", "in Sunnyvale, please"."""
    whole = heard.says("asks") or (heard.values and heard.says("yes_or_no"))
    goes_on = heard.linked or (cue("goes_on").search(heard.text) and not heard.says("inquires"))
    return not whole and len(heard.core.split()) <= 6 and bool(goes_on)


_FOLLOW_UPS: tuple[tuple[TurnKind | None, Callable[[Heard], bool]], ...] = (
    ("world", lambda heard: _worldly(heard) and not heard.nouns),
    ("count", _counts),
    ("drop", _drops),
    ("talk", _talks),
    ("detail", lambda heard: heard.says("about") and (heard.refers or heard.of_set)),
    (
        "another",
        lambda heard: heard.says("another") and not (heard.values and (heard.nouns or not heard.says("besides"))),
    ),
    ("best", lambda heard: heard.says("compare") and heard.says("best_by_comparative")),
    (None, lambda heard: _compares(heard) and "would be better" in heard.core),
    ("compare", lambda heard: _compares(heard)),
    ("best", lambda heard: heard.says("best") and (heard.of_set or not (heard.values or heard.complete))),
    ("detail", lambda heard: heard.refers and bool(re.match(r"(?:and )?(?:what|how) about\b", heard.core))),
    ("detail", lambda heard: heard.to_one and heard.shown),
    (None, lambda heard: heard.to_one),
    ("replace", _replaces),
    (None, lambda heard: bool(re.search(r"\bto know (?:where|which|what|who)\b", heard.core))),
    ("replace", lambda heard: _names_more(heard) and heard.text.startswith(("and", "or", "ok and"))),
    (None, lambda heard: heard.complete and not heard.says("relative")),
    (None, lambda heard: _narrows(heard) and heard.values > 1 and heard.says("asks")),
    ("narrow", _narrows),
    ("replace", lambda heard: _is_fragment(heard) and heard.values > 0),
    ("narrow", _is_fragment),
    (None, lambda _: True),
)
"""What a turn after a search is, the first that holds; None where it stands alone."""


def _compares(heard: Heard) -> bool:
    number = _NUMBER.search(heard.core)
    return heard.says("compare") and not number and not (heard.complete and heard.values)


def _names_more(heard: Heard) -> bool:
    return heard.complete and not heard.says("relative") and len(heard.core.split()) < 3
