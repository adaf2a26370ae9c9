"""replies_from: a stand-in server's replies to our own prompts, computed by a function of text and question."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from typing import Any

from almanaq.values import canonical

_BODY = re.compile(r"<untrusted (\w+)>\n(.*?)\n</untrusted \1>", re.DOTALL)
_ITEM = re.compile(r"^<untrusted (\w+) (item\d+)>\n(.*?)\n</untrusted \1 \2>", re.DOTALL | re.MULTILINE)
_PLACE = re.compile(r"\A\[from .*\]\n")
_PASSAGE = re.compile(r"^\[passage (\d+)\]\n", re.MULTILINE)


def replies_from(function: Callable[[str, str], str | None]) -> Callable[[Mapping[str, Any]], str]:
    """Return a function of chat requests that replies as FunctionModel would to the requests of PromptedReader.

    Args:
        function: called with the document, its passages joined by a blank line, and the question (`"summary"` for a
            summary). A request to link values chooses the equal spelling; one to combine, the first answer given.

    >>> reply = replies_from(lambda text, question: "Yes" if "friendly" in text else None)
    >>> asked = "<untrusted k1>\\nRex is friendly.\\n</untrusted k1>\\nQuestion: friendly?"
    >>> reply({"messages": [{"role": "user", "content": asked}]})
    '{"value": "Yes", "quotes": []}'
    """

    def reply(request: Mapping[str, Any]) -> str:
        # A repair goes on after the request itself.
        user = next(str(m["content"]) for m in request["messages"] if m["role"] == "user")
        name = request.get("response_format", {}).get("json_schema", {}).get("name", "answer")
        body = _BODY.search(user)
        inside = body[2] if body else ""
        if name == "link":
            return json.dumps({"values": _read_linked_values(inside)})
        if name == "combine":
            found = [m[1] for m in re.finditer(r"answer: (.*?)\.(?: |$)", inside, re.MULTILINE)]
            return json.dumps(_answer(found[0] if found else None, user))
        if name == "answer_texts":
            texts = {item: _document(text) for _, item, text in _ITEM.findall(user)}
            return json.dumps({item: _answer(function(text, _question(user)), user) for item, text in texts.items()})
        if name == "answer_many":
            items = re.split(r"^item(\d+)$", user[body.end() :] if body else "", flags=re.MULTILINE)[1:]
            asked = zip(items[::2], items[1::2], strict=True)
            return json.dumps(
                {f"item{n}": _answer(function(_document(inside), _question(item)), item) for n, item in asked}
            )
        if name == "summarise":
            return json.dumps({"value": function(_document(inside), "summary"), "quotes": []})
        return json.dumps(_answer(function(_document(inside), _question(user)), user))

    return reply


def _document(inside: str) -> str:
    inside = _PLACE.sub("", inside)
    several = _PASSAGE.split(inside)[2::2] if inside.startswith("[passage 1]\n") else [inside]
    return "\n\n".join(part.strip("\n") for part in several)


def _question(text: str) -> str:
    if made := re.search(r"^<untrusted \w+ question.*>\nQuestion: (.*)$", text, re.MULTILINE):
        return str(json.loads(made[1]))
    question = re.search(r"^Question: (.*)$", text, re.MULTILINE)
    return question[1] if question else ""


def _answer(value: str | None, user: str) -> dict[str, object]:
    listed = re.search(r"^Literals to judge: (.*)$", user, re.MULTILINE)
    literals = json.loads(f"[{listed[1]}]") if listed else []
    verdicts = {
        literal: "unknown" if value is None else "yes" if canonical(value) == canonical(literal) else "no"
        for literal in literals
    }
    return {"value": value, "quotes": []} | ({"verdicts": verdicts} if literals else {})


def _read_linked_values(inside: str) -> list[str]:
    word = re.search(r"^The person's word: (.*)$", inside, re.MULTILINE)
    literal = canonical(json.loads(word[1])) if word else ""
    values = [json.loads(line[2:]) for line in inside.splitlines() if line.startswith("- ")]
    return [value for value in values if canonical(value) == literal]
