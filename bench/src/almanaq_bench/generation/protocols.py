"""The seam to generators, and the values that cross it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, Protocol

from almanaq.corpus.table import Table
from almanaq.models.protocols import Usage

Role = Literal["answer", "verify", "sql", "entities", "rows"]
"""What is wanted: an answer, a verdict, a query, entities for every turn of a conversation, or the rows of a query."""

Verdict = Literal["true", "false", "not enough"]
VERDICTS: tuple[Verdict, ...] = ("true", "false", "not enough")


@dataclass(frozen=True, slots=True)
class Asked:
    """One question, and the context that was made for it.

    Attributes:
        texts: the tables as text, best first, packed to the budget; of a database for SQL, with types and keys.
        tables: the same tables, whole.
        sentence: whether the answer is to be a sentence.
        hint: what the dataset says of the question's words; "" unless hints were asked for.
        database: the file of the database, for SQL.
    """

    id: str
    role: Role
    question: str
    texts: tuple[str, ...] = ()
    tables: tuple[Table, ...] = ()
    sentence: bool = False
    hint: str = ""
    database: Path | None = None


@dataclass(frozen=True, slots=True)
class Reply:
    """What a generator said.

    Attributes:
        text: the answer, one of VERDICTS, or the query; "" for no answer.
        fault: why there is no usable reply; "" where there is one.
        reasoning: what it said beside.
        stage: what lost the right answer, "right" where nothing did, by a generator that knows; "" by all others.
        broken: whether the fault is the generator's own: it raised, or gave something that is no reply.
    """

    text: str
    fault: str = ""
    reasoning: str = ""
    usage: Usage = field(default_factory=Usage)
    stage: str = ""
    broken: bool = False


def failure(error: Exception) -> Reply:
    """Return the reply that stands for an exception."""
    return Reply("", fault=f"{type(error).__name__}: {' '.join(str(error).split())}", broken=True)


class Generator(Protocol):
    """Replies to questions. Raises ModelError when no call can succeed; any other failure is one reply's fault.

    `prompts` are the versions of the prompt files it uses, by name; `model` is "" where there is none.
    """

    @property
    def name(self) -> str: ...

    @property
    def model(self) -> str: ...

    @property
    def prompts(self) -> Mapping[str, str]: ...

    async def reply(self, asked: Asked) -> Reply: ...
