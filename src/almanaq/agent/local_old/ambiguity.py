"""Words that name values of several columns, and nothing in the question says which is meant."""

from __future__ import annotations

import re
from collections.abc import Sequence

from almanaq.agent.history import Turn
from almanaq.agent.local_old.parser import which
from almanaq.agent.local_old.recognize.vocabulary import Vocabulary
from almanaq.agent.local_old.search.searches import searched

_MARGIN = 0.4
_ASKED = re.compile(r"By “(?P<value>.+?)”, do you mean the (?P<names>.+)\?")
_ORDINALS = (("1", "first", "1st", "one", "former"), ("2", "second", "2nd", "two"), ("3", "third", "3rd", "three"))


def ask_back(question: str, vocabulary: Vocabulary) -> str | None:
    """Return a question back when a word of the question means two things alike; None when all is clear."""
    found = searched(question, vocabulary)
    if found is None:
        return None
    for value in found.links.values:
        scored = {}
        for place, _ in value.meanings:
            if place.relation == found.main:
                scored[place.column.name] = (found.columns.value_score(value, place), place)
        best = sorted(scored.values(), key=lambda pair: -pair[0])
        if len(best) > 1 and value.how != "part" and best[0][0] - best[1][0] < _MARGIN:
            return which(value.text, [" ".join(place.stems) for _, place in best[:3]])
    return None


def answered(asked_back: Turn, answer: str) -> str:
    """Return the question of a turn that was asked back, with what the asker answered put where it tells."""
    answer = re.sub(r"^(?:the|i mean(?:t)?|as)\b(?: the)?|[?.!]", "", answer.strip(), flags=re.IGNORECASE).strip()
    meant = _ASKED.match(asked_back.answer)
    if meant and meant["value"] in asked_back.question:
        chosen = _chosen(answer, re.split(r", | or ", meant["names"]))
        return asked_back.question.replace(meant["value"], f"{chosen} {meant['value']}", 1)
    return f"{asked_back.question.rstrip('?.! ')}, {answer}"


def chooses(answer: str) -> bool:
    """Return whether an answer is a place in a list: "2", "the first one"."""
    return _place(answer) is not None


def _place(answer: str) -> int | None:
    said = re.sub(r"^the\b|\bone$|[().#!]", "", answer.casefold()).strip() or "one"
    return next((i for i, words in enumerate((*_ORDINALS, ("last", "latter"))) if said in words), None)


def _chosen(answer: str, names: Sequence[str]) -> str:
    """Return the name that an answer chooses by its place; else the answer itself."""
    at = _place(answer)
    if at is None:
        return answer
    return names[at] if at < len(names) else names[-1]
