"""Generators of others: the paper's `generate(table_str, query)`, or our own seam."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from typing import Any

from almanaq.agent.threads import in_thread
from almanaq.errors import ModelError, UsageError
from almanaq.retrieval.imported import import_object
from almanaq_bench.generation.protocols import VERDICTS, Asked, Generator, Reply, failure


class PaperGenerator:
    """An object with `generate(table_str, query)`; called in a thread, so that several may be under way."""

    model = ""

    def __init__(self, made: Any, name: str) -> None:
        self.name = name
        self._made = made

    @property
    def prompts(self) -> Mapping[str, str]:
        """None of ours."""
        return {}

    async def reply(self, asked: Asked) -> Reply:
        """Return what the object says; anything it raises is this reply's fault."""
        tables = "\n\n".join(asked.texts)
        try:
            reply = await in_thread(self._made.generate, tables, asked.question)
            if inspect.isawaitable(reply):
                reply = await reply
        except ModelError:
            raise
        except Exception as error:
            return failure(error)
        if reply is None:
            return Reply("")
        if isinstance(reply, dict):  # the paper's own generators give an object
            keys = ", ".join(map(str, reply)) or "no keys"
            reply = reply.get("sql_query", reply.get("sql", reply.get("content")))
            if reply is None:
                return Reply("", fault=f"it gave an object without sql_query or content: {keys}", broken=True)
        if not isinstance(reply, str):
            return Reply("", fault=f"it gave {type(reply).__name__}, not text", broken=True)
        return Reply(verdict_in(reply)) if asked.role == "verify" else Reply(reply.strip())


def verdict_in(text: str) -> str:
    """Return the verdict that free text states: at its beginning or alone; "" where it states none, or several.

    "Not true" is no "true", and "true" inside a longer explanation is no verdict.
    """
    plain = " ".join(text.lower().strip(" .!\"'*`").split())
    spelled = {
        "true": "true", "supported": "true", "supports": "true", "yes": "true",
        "false": "false", "refuted": "false", "refutes": "false", "no": "false", "not true": "false",
        "not enough information": "not enough", "not enough": "not enough", "not enough info": "not enough",
    }  # fmt: skip
    head = plain.replace(":", ",").replace(";", ",").replace(".", ",").split(",")[0].strip()
    found = spelled.get(plain) or spelled.get(head)
    return found if found in VERDICTS else ""


def import_generator(name: str) -> Generator:
    """Return the generator that `module:object` names: one of ours, or one with `generate(table_str, query)`.

    Raises:
        UsageError: there is no such module or object, it cannot be made, or it is no generator.
    """
    return adapt_generator(import_object(name, "generator"), name)


def adapt_generator(made: Any, name: str) -> Generator:
    """Return an object as a generator. Raises UsageError for one that is none."""
    if callable(getattr(made, "reply", None)) and hasattr(made, "prompts"):
        return made  # type: ignore[no-any-return]
    if callable(getattr(made, "generate", None)):
        return PaperGenerator(made, name)
    raise UsageError(f"generator {name!r} is none: it has neither reply(asked) nor generate(table_str, query)")
