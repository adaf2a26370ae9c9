"""Tells what an asker does with a turn, by its words and by what they link to: no language model."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property

from almanaq.agent.history import Turn, TurnKind
from almanaq.agent.local_old.lexicon import INTERJECTIONS, cue
from almanaq.agent.local_old.listing import listing
from almanaq.agent.local_old.references import refers, shown_before
from almanaq.agent.local_old.search.links import Links
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
class Wording:
    """The words of a turn, made ready to be told apart.

    Attributes:
        links: what the words are of the source.
    """

    question: str
    links: Links
    history: Sequence[Turn] = ()

    @cached_property
    def text(self) -> str:
        """The turn in lower case, with plain apostrophes and single spaces."""
        return _CONTRACTED.sub(r"\1'", " ".join(self.question.casefold().replace("\u2019", "'").split()))

    @cached_property
    def core(self) -> str:
        """The text without the fillers that open it."""
        return _FILLERS.sub("", self.text).strip(" ,.!") or self.text

    @property
    def names_row(self) -> bool:
        """Whether it spells the name of a row."""
        meant = (value.meanings for value in self.links.values if value.how != "part")
        return any("name" in place.roles for meanings in meant for place, _ in meanings)

    @cached_property
    def before(self) -> str:
        """The latest query, in lower case."""
        return (next((turn.suql for turn in reversed(self.history) if turn.suql), None) or "").casefold()

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

    @property
    def names_others(self) -> bool:
        """Whether it names rows that the latest query does not give."""
        named = [relation.name.casefold() for span in self.links.relations for relation in span.data]
        return bool(named) and not any(f" {name} " in f" {self.before} " for name in named)

    @cached_property
    def complete(self) -> bool:
        """Whether it names rows of its own."""
        return bool(self.links.relations) and not self.of_set and not self.refers


def turn_kind(question: str, links: Links, history: Sequence[Turn]) -> TurnKind:
    """Return the kind of a turn, by what its words were taken for."""
    turn = Wording(question, links, history)
    if small_talk(question) is not None:
        return "talk"
    if turn.before:
        if listing(question) is not None:
            return "again"
        follows = next(kind for kind, holds in _FOLLOW_UPS if holds(turn))
        if follows is not None:
            return follows
    if _talks(turn):
        return "talk"
    if _worldly(turn):
        return "world"
    if turn.links.linked or cue("searching").search(turn.text):  # no word names anything, only prose can tell
        return "new"
    return "world" if turn.says("inquires") else "talk"


def reacts(question: str, links: Links) -> bool:
    """Return whether the words of a turn are those of small talk; other turns of kind "talk" only name nothing."""
    return small_talk(question) is not None or _talks(Wording(question, links))


def _worldly(turn: Wording) -> bool:
    """Return whether a turn asks for what no table of a source holds."""
    if turn.names_row or (turn.links.values and _WHO.match(turn.core)):
        return False
    general = turn.says("general") and not (turn.links.relations or turn.links.columns or turn.refers)
    return general or turn.says("world")


def _talks(turn: Wording) -> bool:
    if set(re.findall(r"[a-z]+", turn.text)) <= INTERJECTIONS:
        return True
    return bool(cue("talk").search(turn.text)) and not (turn.links.values and turn.says("asks"))


def _drops(turn: Wording) -> bool:
    """Return whether a turn takes a condition away; "without X" does when X was asked for."""
    wanted = re.findall(r"\w+", turn.core)[1:] if turn.core.startswith("without ") else []
    if turn.says("drop") or any(len(word) > 3 and word in turn.before for word in wanted):
        return True
    return bool(turn.links.columns and not turn.links.values and turn.says("any_of_column"))


def _counts(turn: Wording) -> bool:
    many = re.search(r"\bhow many\b", turn.core)
    if turn.refers and not many and "head count" not in turn.core and "headcount" not in turn.core:
        return False
    if re.search(r"\bhow many (\w+ )?(?:in total|in all|altogether|overall)", turn.core) and turn.names_others:
        return False
    if turn.says("count"):
        return not (turn.complete and turn.links.values) or bool(re.search(r"\bsuch\b", turn.core))
    if not many or turn.refers:
        return False
    only_values = turn.links.values and not turn.links.relations and not re.search(r"\bdoes\b", turn.core)
    return bool(only_values) or bool(_OF_WHAT.search(turn.core))


def _compares(turn: Wording) -> bool:
    number = _NUMBER.search(turn.core)
    return turn.says("compare") and not number and not (turn.complete and turn.links.values)


def _wants_others(turn: Wording) -> bool:
    """Return whether a turn asks for other rows than those shown, of no other kind."""
    other_kind = turn.links.values and (turn.links.relations or not turn.says("besides"))
    return turn.says("another") and not other_kind


def _replaces(turn: Wording) -> bool:
    """Return whether a turn names another value for what was asked; not by all that is wanted of rows."""
    whole = turn.complete and turn.says("asks") and not _OPENS_FRAGMENT.match(turn.core)
    return turn.says("replace") and (turn.links.linked or len(turn.core.split()) < 7) and not whole


def _narrows(turn: Wording) -> bool:
    """Return whether a turn says that it is one more condition."""
    return turn.says("relative") or bool(_MODAL.search(turn.core)) or turn.says("narrow")


def _is_fragment(turn: Wording) -> bool:
    """Return whether a turn is a few words without a verb of asking: "and comedies?", "in Sunnyvale, please"."""
    whole = turn.says("asks") or (turn.links.values and turn.says("yes_or_no"))
    goes_on = turn.links.linked or (cue("goes_on").search(turn.text) and not turn.says("inquires"))
    return not whole and len(turn.core.split()) <= 6 and bool(goes_on)


_FOLLOW_UPS: tuple[tuple[TurnKind | None, Callable[[Wording], bool]], ...] = (
    ("world", lambda turn: _worldly(turn) and not turn.links.relations),
    ("count", _counts),
    ("drop", _drops),
    ("talk", _talks),
    ("detail", lambda turn: turn.says("about") and (turn.refers or turn.of_set)),
    ("another", _wants_others),
    ("best", lambda turn: turn.says("compare") and turn.says("best_by_comparative")),
    ("compare", _compares),
    ("best", lambda turn: turn.says("best") and (turn.of_set or not (turn.links.values or turn.complete))),
    ("detail", lambda turn: turn.to_one and shown_before(turn.history)),
    ("replace", _replaces),
    (None, lambda turn: turn.complete and not turn.says("relative")),
    (None, lambda turn: _narrows(turn) and len(turn.links.values) > 1 and turn.says("asks")),
    ("narrow", _narrows),
    ("replace", lambda turn: bool(turn.links.values) and _is_fragment(turn)),
    ("narrow", _is_fragment),
    (None, lambda _: True),
)
"""What a turn after a search is, the first that holds; None where it stands alone."""
