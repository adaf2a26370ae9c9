"""Words that name values of several columns, and nothing in the question says which is meant."""

from __future__ import annotations

import re

from almanaq.agent.history import Turn
from almanaq.agent.local.assemble import Assembler
from almanaq.agent.local.conditions import value_score
from almanaq.agent.local.linker import link
from almanaq.agent.local.links import Links, ValueLink
from almanaq.agent.local.parser import readings
from almanaq.agent.local.schema_index import Place, SchemaIndex

_MARGIN = 0.4
_ASKED = re.compile(r"By “(?P<value>.+?)”, do you mean the ")


def ask_back(question: str, index: SchemaIndex) -> str | None:
    """Give a question back when a word of the question means two things alike; None when all is clear."""
    found = readings(question, index)
    if not found:
        return None
    links = link(question, index)
    paths = Assembler(links, index, found[0].main).paths
    for value in links.values:
        scored = {}
        for place, _ in value.meanings:
            if place.relation == found[0].main:
                scored[place.column.name] = (value_score(links, value, place, paths), place)
        best = sorted(scored.values(), key=lambda pair: -pair[0])
        if len(best) > 1 and not value.part and best[0][0] - best[1][0] < _MARGIN:
            return _asked(links, value, [place for _, place in best[:3]])
    return None


def _asked(links: Links, value: ValueLink, places: list[Place]) -> str:
    names = [" ".join(place.stems) for place in places]
    listed = ", ".join(names[:-1]) + " or " + names[-1]
    return f"By “{links.text(value.first, value.last)}”, do you mean the {listed}?"


def answered(asked_back: Turn, answer: str) -> str:
    """Give the question of a turn that was asked back, with what the asker answered put where it tells."""
    answer = re.sub(r"^(?:the|i mean(?:t)?|as)\b(?: the)?|[?.!]", "", answer.strip(), flags=re.IGNORECASE).strip()
    meant = _ASKED.match(asked_back.answer)
    if meant and meant["value"] in asked_back.question:
        return asked_back.question.replace(meant["value"], f"{answer} {meant['value']}", 1)
    return f"{asked_back.question.rstrip('?.! ')}, {answer}"
