"""The seam to generators, and the values that cross it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, Protocol, TypeVar, runtime_checkable

from almanaq.corpus.table import Table
from almanaq.models.budget import estimate_tokens
from almanaq.models.prompted_reader import prompt_values
from almanaq.models.prompts import prompt_file
from almanaq.models.protocols import Prompt, TextCall, Usage

Role = Literal["answer", "verify", "sql", "entities", "rows"]
"""What is wanted: an answer, a verdict, a query, entities for every turn of a conversation, or the rows of a query."""

Verdict = Literal["true", "false", "not enough"]
VERDICTS: tuple[Verdict, ...] = ("true", "false", "not enough")


@dataclass(frozen=True, slots=True)
class GenerationRequest:
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

    async def reply(self, asked: GenerationRequest) -> Reply: ...


WRITTEN_QUERY, WRITTEN_REPLY, WRITTEN_ANSWER = 150, 150, 40
"""Tokens that a reply has: a query with its reasoning, a reply in sentences, a short value with its quotes."""

_SAMPLE = 25
_Item = TypeVar("_Item")


@runtime_checkable
class Expecting(Protocol):
    """A generator that can say what its replies are expected to cost."""

    def expected(self, asked: Sequence[GenerationRequest]) -> Usage:
        """Return calls and tokens, money aside; no call where nothing is paid for."""


def of_prompt(prompt: Prompt, written: int) -> Usage:
    """Return what one call with this prompt takes, with a reply of so many tokens."""
    return Usage(1, 0, sum(estimate_tokens(message.content) for message in prompt.messages), written)


def of_text_call(passages: Sequence[str], question: str) -> Usage:
    """Return what reading one document takes."""
    call = TextCall("answer", tuple(passages), question)
    shown = {"passages": list(enumerate(passages, 1)), "part": 0, "parts": 0}
    return of_prompt(prompt_file("answer").prompt(shown | prompt_values(call)), WRITTEN_ANSWER)


def times(usage: Usage, factor: float) -> Usage:
    """Return so many times what a usage says, money aside."""
    calls, read, written = usage.calls, usage.input_tokens, usage.output_tokens
    return Usage(round(factor * calls), 0, round(factor * read), round(factor * written))


def sample_of(items: Sequence[_Item], most: int = _SAMPLE) -> Sequence[_Item]:
    """Return items spread evenly over all of them, as many as are enough for an estimate."""
    return items if len(items) <= most else [items[len(items) * n // most] for n in range(most)]
