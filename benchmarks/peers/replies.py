"""What the stand-in server replies to each system's prompts: the right answer, in the form that the system asks for."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from typing import Any

from benchmarks.peers.tasks import Answer

from almanaq_bench.testing.read_requests import replies_from

SENTIMENT = "Is the review positive or negative?"
Reply = Callable[[Mapping[str, Any]], "str | Mapping[str, object]"]


def reply_of(system: str, answer: Answer) -> Reply:
    """Return the replies to a system's requests."""
    if system.startswith("almanaq"):
        return replies_from(answer)
    if system == "thalamusdb":
        return lambda request: _thalamus([part["text"] for part in request["messages"][-1]["content"]], answer)
    read, write = {
        "lotus": (_lotus, _claim),
        "blendsql": (_blendsql, _bare),
        "docetl": (_docetl, _tool),
        "palimpzest": (_palimpzest, _format_reply),
    }[system]

    def reply(request: Mapping[str, Any]) -> str | Mapping[str, object]:
        text, question = read(str(request["messages"][-1]["content"]))
        return write(request, answer(text, question) or "")

    return reply


def _lotus(prompt: str) -> tuple[str, str]:
    context, _, asked = prompt.rpartition("\n\nClaim: " if "\n\nClaim: " in prompt else "\n\nInstruction: ")
    return context[context.index("«") + 1 : context.rindex("»")], asked.rpartition(" ")[
        0
    ]  # the column's name is the last word


def _blendsql(prompt: str) -> tuple[str, str]:
    _, _, asked = prompt.rpartition("QUESTION:\n")
    question, _, rest = asked.partition("\n\nCONTEXT:\n")
    context = json.JSONDecoder().raw_decode(rest)[0]
    return str(next(iter(context.values()))), question


def _docetl(prompt: str) -> tuple[str, str]:
    question, _, text = prompt.partition("\n<text>")
    return text.removesuffix("</text>"), question


def _palimpzest(prompt: str) -> tuple[str, str]:
    asked, _, rest = prompt.rpartition("<<cache-boundary>>CONTEXT:\n")
    question = re.search(r"^(?:FILTER CONDITION|- said): (.*)$", asked, re.MULTILINE)
    assert question is not None
    return str(next(iter(json.JSONDecoder().raw_decode(rest)[0].values()))), question[1]


def _thalamus(parts: list[str], answer: Answer) -> str:
    """Reply to one item's question with 1 or 0, and to two lists of items with the pairs that the question joins."""
    if not parts[0].startswith("Identify pairs"):
        question = parts[0].partition('condition "')[2].rpartition('"?')[0]
        return str(int(_truth(answer(parts[1], question) or "")))
    same = "both reviews are positive or both" in parts[0]
    said = {mark[:-1]: answer(text, SENTIMENT) for mark, text in zip(parts[1::2], parts[2::2], strict=True)}
    left, right = ([mark for mark in said if mark[0] == side] for side in "LR")
    return ",".join(f"{a}-{b}" for a in left for b in right if (said[a] == said[b]) == same) + "."


def _claim(request: Mapping[str, Any], value: str) -> str:
    return f"Answer: {_truth(value)}" if "True or False" in request["messages"][0]["content"] else value


def _bare(request: Mapping[str, Any], value: str) -> str:
    return str(_truth(value)) if "Output 'True'" in request["messages"][0]["content"] else value


def _format_reply(request: Mapping[str, Any], value: str) -> str:
    if "FILTER CONDITION" in request["messages"][-1]["content"]:
        return f"ANSWER: {str(_truth(value)).upper()}\n---"
    number = re.fullmatch(r"[\d.]+", value)
    return f"ANSWER:\n{json.dumps({'said': float(value) if number else value})}\n---"


def _tool(request: Mapping[str, Any], value: str) -> Mapping[str, object]:
    fields: Mapping[str, Any] = request["tools"][0]["function"]["parameters"]["properties"]
    name, kind = next((name, field["type"]) for name, field in fields.items())
    made = {"boolean": _truth, "number": float, "string": str}[kind](value)
    return {name: made}


def _truth(value: str) -> bool:
    if not re.fullmatch("Yes|No", value):
        raise ValueError(f"asked whether, answered {value!r}")
    return value == "Yes"
