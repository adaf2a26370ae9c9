"""What replies after the retrieval: classes of one's own, and those of the published package on our models."""

from __future__ import annotations

import hashlib
from abc import ABC, abstractmethod
from typing import Any

from almanaq.errors import UsageError
from almanaq.event_loops import run_sync
from almanaq.models.protocols import LanguageModel, Message, Prompt

DEFAULT_MODEL = "openai:gpt-4o-mini"

QA_SYSTEM_PROMPT = "You answer questions from tables. Answer in one plain sentence."
QA_USER_PROMPT = "Tables:\n{table_str}\n\nQuestion: {query_str}\nAnswer:"
SQL_SYSTEM_PROMPT = "You write SQLite queries. Reply with one SELECT statement and nothing else."
SQL_USER_PROMPT = "Tables:\n{table_str}\n\nQuestion: {query_str}\nSELECT statement:"


class AbsGenerator(ABC):
    """Replies to a question from the tables that were found for it.

    >>> class FirstCell(AbsGenerator):
    ...     def generate(self, table_str, query):
    ...         return table_str.splitlines()[-1].strip("| ")
    >>> FirstCell().generate("| dog |\\n| Rex |", "Which dog?")
    'Rex'
    """

    @abstractmethod
    def generate(self, table_str: str, query: str) -> Any:
        """Return the reply as text; for SQL also as a dictionary with `sql_query`.

        Args:
            table_str: the tables as text, the best first.
        """


class DefaultGenerator(AbsGenerator):
    """Asks a language model.

    Args:
        user_message: what it is asked, with {table_str} and {query_str} where tables and question go.
        lm_model_name: a model's name as `--model` takes it; a bare name is one of an OpenAI-compatible server.

    >>> DefaultGenerator(lm_model_name="gpt-4o-mini").lm_model_name
    'openai:gpt-4o-mini'
    """

    def __init__(
        self,
        system_message: str = QA_SYSTEM_PROMPT,
        user_message: str = QA_USER_PROMPT,
        lm_model_name: str = DEFAULT_MODEL,
    ) -> None:
        self.system_message, self.user_message = system_message, user_message
        self.lm_model_name = lm_model_name if ":" in lm_model_name else f"openai:{lm_model_name}"
        self._model: LanguageModel | None = None

    def generate(self, table_str: str, query: str) -> Any:
        """Return `{"content": reply}`. Raises ModelError where the model cannot be used."""
        return {"content": self._reply(table_str, query)}

    def _reply(self, table_str: str, query: str) -> str:
        asked = self.user_message.replace("{table_str}", table_str).replace("{query_str}", query)
        version = hashlib.sha256(f"{self.system_message}\n{self.user_message}".encode()).hexdigest()[:12]
        prompt = Prompt("target_generate", version, (Message("system", self.system_message), Message("user", asked)))
        if self._model is None:
            self._model = open_language(self.lm_model_name)
        return run_sync(self._model.complete(prompt)).text.strip()


class Text2SQLGenerator(DefaultGenerator):
    """Asks a language model for a query."""

    def __init__(
        self,
        system_message: str = SQL_SYSTEM_PROMPT,
        user_message: str = SQL_USER_PROMPT,
        lm_model_name: str = DEFAULT_MODEL,
    ) -> None:
        super().__init__(system_message, user_message, lm_model_name)

    def generate(self, table_str: str, query: str) -> Any:
        """Return `{"sql_query": query}`. Raises ModelError where the model cannot be used."""
        text = self._reply(table_str, query).strip("`\n ")
        return {"sql_query": text.removeprefix("sqlite").removeprefix("sql").strip()}


def open_language(name: str) -> LanguageModel:
    """Return the language model of a name. Raises UsageError where the name is of none."""
    from almanaq.models.model_names import open_models

    language = open_models(name, embedder="lexical").language
    if language is None:
        raise UsageError(f"{name!r} is not a language model: name one, such as openai:MODEL")
    return language
