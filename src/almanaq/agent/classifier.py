"""Says what an asker does with a turn: the seam, and the classifier that asks a language model."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from almanaq.agent.history import Turn, TurnKind
from almanaq.agent.prompting import complete
from almanaq.agent.reply_reading import json_object
from almanaq.agent.small_talk import small_talk
from almanaq.errors import ModelCallError
from almanaq.models.prompts.schemas import task_prompt
from almanaq.models.protocols import LanguageModel
from almanaq.suql.catalog.relations import Catalog

_TURNS_SHOWN = 3
_ANSWER_LENGTH = 300
_TABLES_SHOWN = 40
_KINDS: dict[str, TurnKind] = {"talk": "talk", "outside": "world"}


class TurnClassifier(Protocol):
    """Says what a turn is. Raises ModelError when its model cannot be used at all."""

    def classify(self, question: str, catalog: Catalog, history: Sequence[Turn]) -> TurnKind:
        """Return the kind of a turn; `new` also where only the parser can tell the kinds of follow-ups apart."""


class PromptedClassifier:
    """A TurnClassifier that asks a language model, except for messages that are small talk as a whole.

    In doubt, and when the model's reply cannot be read, the turn goes on to the parser, which may still decline it.
    """

    def __init__(self, model: LanguageModel) -> None:
        self._model = model

    def classify(self, question: str, catalog: Catalog, history: Sequence[Turn]) -> TurnKind:
        """Return talk, world (for what no table can hold) or new; follow-ups are the parser's to tell apart."""
        asked_back = bool(history) and history[-1].status == "clarify"
        if small_talk(question) is not None and not asked_back:
            return "talk"
        earlier = [
            {"question": t.question[:_ANSWER_LENGTH], "answer": "" if t.private else t.answer[:_ANSWER_LENGTH]}
            for t in history
        ]
        tables = [f"{r.name} ({', '.join(c.name for c in r.columns[:12])})" for r in catalog.relations[:_TABLES_SHOWN]]
        values = {"tables": tables, "history": earlier[-_TURNS_SHOWN:], "question": question[:2000]}
        try:
            reply = json_object(complete(self._model, task_prompt("classify_turn", values)).text) or {}
        except ModelCallError:
            return "new"
        return _KINDS.get(str(reply.get("kind")), "new")
