"""Makes the agent's prompts from the files in `prompts/`, and gets a model's reply from ordinary code."""

from __future__ import annotations

from collections.abc import Mapping

from almanaq.agent.turn_time import in_turn
from almanaq.event_loops import run_sync
from almanaq.models.prompts import prompt_file
from almanaq.models.protocols import Completion, LanguageModel, Prompt

_PACKAGE = "almanaq.agent.prompts"


def make(name: str, values: Mapping[str, object], schema: Mapping[str, object] | None = None) -> Prompt:
    """Give the prompt of the file `prompts/NAME.jinja`, with what people and rows say inside a fence of its own."""
    return prompt_file(name, _PACKAGE).prompt(values, schema=schema)


def complete(model: LanguageModel, prompt: Prompt) -> Completion:
    """Give the model's reply; works inside a running event loop as well as outside one."""
    return run_sync(in_turn(model.complete(prompt)))


def forget(model: LanguageModel, prompt: Prompt) -> None:
    """Drop the kept reply to a prompt, where the model keeps any: it was of no use, and is to be asked for anew."""
    getattr(model, "forget", lambda _: None)(prompt)


def version(name: str) -> str:
    """Give the hash of a prompt file, part of every cache key."""
    return prompt_file(name, _PACKAGE).version
