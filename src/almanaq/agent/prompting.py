"""Makes prompts from the template files in `prompts/`, and gets a model's reply from ordinary code."""

from __future__ import annotations

import asyncio
import hashlib
import json
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache
from pathlib import Path
from typing import Any

from almanaq.models.protocols import Completion, LanguageModel, Message, Prompt

_FOLDER = Path(__file__).parent / "prompts"


def make(name: str, values: Mapping[str, object], schema: Mapping[str, object] | None = None) -> Prompt:
    """Give the prompt of template `prompts/NAME.jinja`: its block `system`, then its block `user`."""
    template = _template(name)
    context = template.new_context(dict(values))
    texts = {role: "".join(template.blocks[role](context)).strip() for role in ("system", "user")}
    return Prompt(name, version(name), (Message("system", texts["system"]), Message("user", texts["user"])), schema)


def complete(model: LanguageModel, prompt: Prompt) -> Completion:
    """Give the model's reply; works inside a running event loop as well as outside one."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return asyncio.run(model.complete(prompt))
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(lambda: asyncio.run(model.complete(prompt))).result()


def version(name: str) -> str:
    """Give the hash of a prompt file, part of every cache key."""
    return hashlib.sha256((_FOLDER / f"{name}.jinja").read_bytes()).hexdigest()[:12]


def fence(value: object) -> str:
    """Give data as JSON that cannot end the tags around it: whatever it says, it stays data."""
    return json.dumps(value, ensure_ascii=False, default=str).replace("<", "\\u003c").replace(">", "\\u003e")


@lru_cache(maxsize=16)
def _template(name: str) -> Any:
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    # Prompts are plain text: escaping for HTML would spoil them. Data goes in through `fence`.
    environment = Environment(
        loader=FileSystemLoader(_FOLDER), undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    environment.filters["fence"] = fence
    return environment.get_template(f"{name}.jinja")
