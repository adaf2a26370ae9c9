"""The prompts, each a file of ours: rendered with rows fenced off, versioned by the hash of the file."""

from __future__ import annotations

import hashlib
import hmac
import json
import re
import secrets
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from contextvars import ContextVar
from dataclasses import dataclass
from functools import cache, lru_cache
from importlib.resources import files
from typing import Any

from almanaq.event_loops import set_within
from almanaq.models.protocols import Message, Prompt

_SPLIT = re.compile(r"\n---(user|assistant)---\n")
_FENCE = re.compile(r"<(?=\s*/?\s*(?:untrusted|schema|data|document|passage|system|user|assistant|\|))", re.IGNORECASE)
"""The start of anything that looks like one of our fences or like a chat's role marker."""

_MARK = secrets.token_hex(16)
_PLACE = re.compile(rf"{_MARK}(\d+)\.")
"""Where a passage goes in a prompt that is filled in later: no text can hold it, as it is never sent."""
_KEY = secrets.token_bytes(16)
_shared: ContextVar[str] = ContextVar("almanaq_fence", default="")


def escape(text: str) -> str:
    """Return untrusted text in which nothing can be taken for a fence: its opening bracket becomes a similar sign."""
    return _FENCE.sub("\u2039", text) if "<" in text else text


def draw_fence() -> str:
    """Return a random mark that nobody can have foreseen: that of `one_fence`, else a new one."""
    return _shared.get() or secrets.token_hex(4)


def one_fence(conversation: str = "") -> AbstractContextManager[None]:
    """Let all requests share a fence, so that what precedes new rows is one prefix, which servers keep.

    Turns of one `conversation` have the same fence; without it, an outer `one_fence` goes on.
    """
    return set_within(_shared, _fence_of(conversation) if conversation else draw_fence())


@lru_cache(maxsize=256)
def _fence_of(conversation: str) -> str:
    return hmac.digest(_KEY, conversation.encode("utf-8", "surrogatepass"), "sha256").hex()[:8]


def one_line(text: str) -> str:
    """Return a text on one line: what a question says cannot look like a line of ours."""
    return " ".join(text.split())


def json_rows(value: object) -> str:
    """Return untrusted data as JSON on one line, so that nothing in it can be taken for a fence or for another line."""
    return escape(json.dumps(value, ensure_ascii=False, default=str))


@dataclass(frozen=True, slots=True)
class PromptFile:
    """A prompt of ours: two templates, for the system's and the user's message, and their version.

    `turns` are examples between them, as turns of a chat.

    What is the same in every request comes first, and the random fence only where the rows begin: servers that keep
    what they computed for a prefix then read the instructions, and the question, once.
    """

    name: str
    version: str
    render_system: Callable[..., str]
    render_user: Callable[..., str]
    turns: tuple[Message, ...] = ()

    def prompt(self, values: Mapping[str, object], *, token: str | None = None, **settings: Any) -> Prompt:
        """Return the request for these values, with `settings` of a Prompt; `token` fixes the fence, for tests."""
        fence = token or draw_fence()
        messages = (
            Message("system", self.render_system(**values, fence=fence).strip()),
            *self.turns,
            Message("user", self.render_user(**values, fence=fence).strip()),
        )
        return Prompt(self.name, self.version, messages, fence=fence, **settings)

    def frame(self, values: Mapping[str, object], count: int, schema: Mapping[str, object]) -> Frame:
        """Return the prompt filled in but for its fence and the `count` passages that it shows."""
        shown = [(number, f"{_MARK}{number}.") for number in range(1, count + 1)]
        prompt = self.prompt({**values, "passages": shown}, token=f"{_MARK}0.")
        system, user = (_PLACE.split(message.content) for message in prompt.messages)
        return Frame(self.name, self.version, tuple(system), tuple(user), schema, write_schema(schema))


@dataclass(frozen=True, slots=True)
class Frame:
    """A prompt cut where its passages (by number) and its fence (0) go, for many requests that differ in those."""

    name: str
    version: str
    system: tuple[str, ...]
    user: tuple[str, ...]
    schema: Mapping[str, object]
    schema_text: str

    def prompt(self, passages: Sequence[str], *, token: str | None = None, **settings: Any) -> Prompt:
        """Return the request that `PromptFile.prompt` gives for these passages."""
        fence = token or draw_fence()
        open_ = {"0": fence} | {str(number): escape(text) for number, text in enumerate(passages, 1)}
        messages = Message("system", _fill(self.system, open_)), Message("user", _fill(self.user, open_))
        return Prompt(
            self.name, self.version, messages, self.schema, fence=fence, schema_text=self.schema_text, **settings
        )


def write_schema(schema: Mapping[str, object]) -> str:
    """Return a schema as cache keys hold it."""
    return json.dumps(schema, sort_keys=True)


def _fill(parts: tuple[str, ...], open_: Mapping[str, str]) -> str:
    if len(parts) == 1:
        return parts[0]
    found = list(parts)
    found[1::2] = [open_[number] for number in parts[1::2]]
    return "".join(found)


@cache
def prompt_file(name: str, package: str = "almanaq.models.prompts") -> PromptFile:
    """Return the prompt in `name.jinja` of a package.

    The file is cut at its `---user---` and `---assistant---` lines before anything is filled in, so that no row can
    move the cut. In templates, every value that comes from a row, a person or a model goes through the filter
    `escape_rows`, or `json_rows` where it is no text or must stay on its line, and rows stand between
    `<untrusted {{ fence }}>` and `</untrusted {{ fence }}>`.
    """
    import jinja2

    source = (files(package) / f"{name}.jinja").read_text("utf-8")
    version = hashlib.sha256(source.encode()).hexdigest()[:16]
    system, *parts = _SPLIT.split(source)
    said = [
        Message("user" if role == "user" else "assistant", text) for role, text in zip(*[iter(parts)] * 2, strict=True)
    ]
    *turns, user = said
    # Nothing here is HTML: rows are escaped by `escape`, in the way that a prompt needs.
    environment = jinja2.Environment(undefined=jinja2.StrictUndefined, trim_blocks=True, lstrip_blocks=True)
    environment.filters["escape_rows"] = escape
    environment.filters["json_rows"] = json_rows
    environment.filters["one_line"] = one_line
    environment.filters["quoted"] = lambda text: json.dumps(text, ensure_ascii=False)
    return PromptFile(
        name,
        version,
        environment.from_string(system).render,
        environment.from_string(user.content).render,
        tuple(turns),
    )


def strict_object(properties: Mapping[str, object]) -> dict[str, object]:
    """Return the schema of an object with exactly these properties."""
    required = list(properties)
    return {"type": "object", "properties": dict(properties), "required": required, "additionalProperties": False}


def one_of(*values: str) -> dict[str, object]:
    """Return the schema of one of these strings."""
    return {"type": "string", "enum": list(values)}


QUOTES: Mapping[str, object] = {"type": "array", "items": {"type": "string"}}
"""Words of the document: they are looked up in its passages, so that no number is asked for."""
