"""Prompts and calls that the tests of the model layer share."""

from __future__ import annotations

import pytest

from almanaq.models.protocols import Message, Prompt


@pytest.fixture(autouse=True)
def _no_settings(monkeypatch: pytest.MonkeyPatch, tmp_path: object) -> None:
    """Tests neither see nor touch the settings and the cache of whoever runs them."""
    for name in ("OPENAI_BASE_URL", "OPENAI_API_KEY", "ALMANAQ_MODEL", "ALMANAQ_EMBEDDER", "ALMANAQ_PRICES"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("ALMANAQ_CACHE", f"{tmp_path}/replies.sqlite")


@pytest.fixture
def prompt() -> Prompt:
    """A request for JSON."""
    schema = {"type": "object", "properties": {"value": {"type": "string"}}, "required": ["value"]}
    return Prompt("answer", "1", (Message("system", "Answer."), Message("user", "Is it so?")), schema, 64)
