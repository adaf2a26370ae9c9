"""What the stand-in server replies to each system's prompts: the right answer, in the form that the system asks for."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from typing import Any

from benchmarks.peers.tasks import Answer

from almanaq.testing.read_requests import replies_from

Reply = Callable[[Mapping[str, Any]], "str | Mapping[str, object]"]


def reply_of(system: str, answer: Answer) -> Reply:
    """Return the replies to a system's requests."""
    if system == "almanaq":
        return replies_from(answer)
    read, write = {"lotus": (_lotus, _claim), "blendsql": (_blendsql, _bare), "docetl": (_docetl, _tool)}[system]

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


def _claim(request: Mapping[str, Any], value: str) -> str:
    return f"Answer: {_truth(value)}" if "True or False" in request["messages"][0]["content"] else value


def _bare(request: Mapping[str, Any], value: str) -> str:
    return str(_truth(value)) if "Output 'True'" in request["messages"][0]["content"] else value


def _tool(request: Mapping[str, Any], value: str) -> Mapping[str, object]:
    fields: Mapping[str, Any] = request["tools"][0]["function"]["parameters"]["properties"]
    name, kind = next((name, field["type"]) for name, field in fields.items())
    made = {"boolean": _truth, "number": float, "string": str}[kind](value)
    return {name: made}


def _truth(value: str) -> bool:
    if not re.fullmatch("Yes|No", value):
        raise ValueError(f"asked whether, answered {value!r}")
    return value == "Yes"
