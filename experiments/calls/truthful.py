"""A stand-in for a language model that writes HybridQA's queries, and reads its passages, by the gold answer.

It knows where the data traces an answer to, and nothing else: a query asks for that cell or passage, under conditions
that the question's words support, as a model writes them. It does what the prompt says: `LIMIT 1` is written only where
the prompt asks for it. Of a passage that is not the right one it says "no information" two times in three, as a strong
model was seen to do, else "No", or a wrong value. Of several rows it takes the right one,
else the first.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from almanaq_bench.hybridqa.places import answer_nodes
from almanaq_bench.hybridqa.relation import INFO, HybridRelation
from almanaq_bench.question_sets import Question
from almanaq_bench.testing import replies_from

ONE_ROW = re.compile(r"LIMIT 1 (?:where|unless)", re.IGNORECASE)
"""How a prompt asks for one row where one is asked for."""

_ASKED = re.compile(r"^Question: (\".*\")$", re.MULTILINE)
_LISTS = re.compile(r"^(?:how many|which .*s\b.*\bare|name (?:all|the)|list)", re.IGNORECASE)
_VALUE, _TEST = "what is asked for here: ", "is this the one meant here: "
_WORD = re.compile(r"\w{3,}")


@dataclass(frozen=True)
class Known:
    """What the stand-in knows of one question: its query, and the gold passages of each text column that it reads."""

    text: str
    answer: str
    suql: str
    limited: str
    passages: Mapping[str, str]


def know(question: Question, relation: HybridRelation) -> Known | None:
    """Return what is known of a question; None where no cell or passage holds its answer."""
    rows = relation.arrow.to_pylist()
    nodes = [node for node in answer_nodes(question) if node["row"] < len(rows)]
    if not nodes:
        return None
    words = _words(question.text)
    node = max(nodes, key=lambda n: (len(words & _words(json.dumps(rows[n["row"]], default=str))), -n["row"]))
    row, by_origin = rows[node["row"]], {at: name for name, at in relation.origins.items() if name[-5:] != INFO}
    column = by_origin[node["col"]]
    reads = node["where"] == "passage" and bool(row.get(column + INFO))
    told = {name: "\n\n".join(row[name]) for name in relation.info_columns if row[name]}
    conditions = [c for name in row if name != column or reads if (c := _cell(name, row[name], question.text))]
    asked = _safe(question.text)
    if not conditions and told:
        best = max(told, key=lambda name: (len(words & _words(told[name])), name != column + INFO))
        conditions = [f"answer({_quoted(best)}, '{_TEST}{asked}') = 'Yes'"]
    shown = f"answer({_quoted(column + INFO)}, '{_VALUE}{asked}')" if reads else _quoted(column)
    where = f" WHERE {' AND '.join(conditions)}" if conditions else ""
    suql = f"SELECT {shown} FROM {_quoted(relation.name)}{where}"
    limited = suql if _LISTS.match(question.text) else suql + " LIMIT 1"
    return Known(question.text, question.answer, suql, limited, {_plain(text): name for name, text in told.items()})


class Truthful:
    """Replies to every request of the HybridQA task.

    Args:
        known: what is known, by question.
    """

    def __init__(self, known: Mapping[str, Known]) -> None:
        self._known = known
        self._asked = {_plain(_safe(text)): each for text, each in known.items()}
        self._read = replies_from(self.read)

    def __call__(self, request: Mapping[str, Any]) -> Mapping[str, object] | str:
        name = request.get("response_format", {}).get("json_schema", {}).get("name", "")
        user = str(request["messages"][1]["content"])
        if name == "write":
            known = self._known[json.loads(_ASKED.findall(user)[-1])]
            asks_one = ONE_ROW.search(str(request["messages"][0]["content"])) is not None
            return {"reasoning": "", "suql": known.limited if asks_one else known.suql}
        if name == "short_answer":
            values = [_value(row) for row in re.findall(r"^\[row \d+\] (.*)$", user, re.MULTILINE)]
            gold = next(each.answer for text, each in self._known.items() if text in user)
            return {"answer": gold if gold in values else values[0]}
        return self._read(request)

    def read(self, text: str, question: str) -> str | None:
        """Return what a document says, as the gold answer has it."""
        known = self._asked[_plain(question.removeprefix(_VALUE).removeprefix(_TEST))]
        if _plain(text) in known.passages:
            return known.answer if question.startswith(_VALUE) else "Yes"
        draw = hashlib.sha256(f"{question}\n{text}".encode()).digest()[0]
        if draw % 3:
            return None
        return " ".join(text.split()[:2]) if question.startswith(_VALUE) else "No"


def _value(row: str) -> str:
    """Return the value of a row as it is shown: bare, or in a JSON object as `value`."""
    try:
        shown = json.loads(row)
    except ValueError:
        return row
    return str(shown.get("value", "")) if isinstance(shown, dict) else row


def _cell(name: str, value: object, question: str) -> str | None:
    """Return the condition on a cell whose words the question repeats."""
    if isinstance(value, str) and 3 < len(value) < 60 and f" {value.lower()} " in f" {question.lower()} ":
        return f"{_quoted(name)} ILIKE '%{_safe(value)}%'"
    if isinstance(value, int) and not isinstance(value, bool) and re.search(rf"\b{value}\b", question):
        return f"{_quoted(name)} = {value}"
    return None


def _words(text: str) -> set[str]:
    return set(map(str.lower, _WORD.findall(text)))


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _safe(text: str) -> str:
    return " ".join(text.split()).replace("'", "’")


def _plain(text: str) -> str:
    return "".join(re.findall(r"\w", text)).lower()
