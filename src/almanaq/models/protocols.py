"""The seams to models, and the values that cross them.

A LanguageModel completes prompts; an Embedder turns texts into vectors; a Reader evaluates text calls (the
`answer` and `summary` of SUQL); a Linker maps a literal to the values of a column that mean the same.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import inf
from typing import Literal, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from almanaq.values import canonical


@dataclass(frozen=True, slots=True)
class Usage:
    """What calls cost. `money` is in US dollars, None when a price is unknown.

    `cached_input_tokens` is the share of `input_tokens` that the server served from its prefix cache.
    """

    calls: int = 0
    cached_calls: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    money: float | None = 0.0
    cached_input_tokens: int = 0

    def __add__(self, other: Usage) -> Usage:
        if other is NO_USAGE:
            return self
        known = self.money is not None and other.money is not None
        return Usage(
            self.calls + other.calls,
            self.cached_calls + other.cached_calls,
            self.input_tokens + other.input_tokens,
            self.output_tokens + other.output_tokens,
            (self.money or 0.0) + (other.money or 0.0) if known else None,
            self.cached_input_tokens + other.cached_input_tokens,
        )

    def __sub__(self, other: Usage) -> Usage:
        """Take a part out of a sum; money that is unknown stays so."""
        return Usage(
            self.calls - other.calls,
            self.cached_calls - other.cached_calls,
            self.input_tokens - other.input_tokens,
            self.output_tokens - other.output_tokens,
            None if self.money is None else self.money - (other.money or 0.0),
            self.cached_input_tokens - other.cached_input_tokens,
        )


NO_USAGE = Usage()


@dataclass(frozen=True, slots=True)
class Message:
    """One message of a chat."""

    role: Literal["system", "user", "assistant"]
    content: str


VERDICTS = ("Yes", "No", "null")
"""The possible verdicts on a yes-or-no question."""


class PieceSink(Protocol):
    """Receives a reply while the server writes it."""

    def show(self, text: str) -> None:
        """Called with the text so far, as often as it grows; after a failure, again from its beginning."""


@dataclass(frozen=True, slots=True)
class Prompt:
    """A request to a language model.

    Attributes:
        name: the prompt file it was made from; `version` is that file's hash (part of every cache key).
        schema: JSON schema of the reply; None asks for plain text.
        fence: the random token around untrusted text in the messages; another for each query and conversation, so not
            part of the request's identity. Empty when nothing is fenced.
        pieces: receives the reply piece by piece, where the server streams; the completion is returned as usual. Not
            part of the request's identity.
        verdict: the reply's `value` is a verdict, whose probabilities are requested too, where the server reports them.
        stop: texts at which the reply ends; they are no part of it.
        likelihood: how likely the model finds its reply is requested too, where the server reports it.
        usual_output_tokens: the length of nearly every reply, for a budget without room for the longest; None: as
            `max_output_tokens`. Not part of the request's identity.
        schema_text: `schema` as cache keys hold it, where many requests share it; else it is written for each.
        divisible: what it asks is asked again in parts where it fails, so that it is tried less often. Not part of the
            request's identity.
    """

    name: str
    version: str
    messages: tuple[Message, ...]
    schema: Mapping[str, object] | None = None
    max_output_tokens: int = 1024
    fence: str = ""
    pieces: PieceSink | None = field(default=None, compare=False, repr=False)
    verdict: bool = False
    stop: tuple[str, ...] = ()
    likelihood: bool = False
    usual_output_tokens: int | None = field(default=None, compare=False, repr=False)
    schema_text: str | None = field(default=None, compare=False, repr=False)
    divisible: bool = field(default=False, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Completion:
    """A language model's reply.

    Attributes:
        probabilities: the probability of each of VERDICTS, where requested and reported; else None.
        likelihood: the mean logarithm of the probabilities of its tokens, where requested and reported; else None.
    """

    text: str
    usage: Usage = Usage()
    probabilities: Mapping[str, float] | None = None
    likelihood: float | None = None


@runtime_checkable
class LanguageModel(Protocol):
    """Completes prompts. Raises ModelCallError for a call that failed, ModelError when no call can succeed.

    Any object with a `name` and this method is one. A prompt is in its messages; the reply is JSON of its `schema`:

    >>> class Terse:
    ...     name = "terse"
    ...
    ...     async def complete(self, prompt):
    ...         return Completion('{"value": "Yes", "quotes": []}', Usage(calls=1))
    >>> isinstance(Terse(), LanguageModel)
    True
    """

    name: str

    async def complete(self, prompt: Prompt) -> Completion: ...


def forget_reply(model: LanguageModel, prompt: Prompt) -> None:
    """Drop the reply to a prompt from the model's cache, if it has one: an unusable reply must not be served again."""
    getattr(model, "forget", lambda _: None)(prompt)


@runtime_checkable
class Embedder(Protocol):
    """Turns texts into unit vectors, shape (len(texts), dimensions), float32.

    Questions search documents: many models are trained to distinguish the two. For a model that does not,
    `models.embedders.base.SymmetricEmbedder` derives both methods from `embed`.

    >>> class Vowels:
    ...     name = "vowels"
    ...
    ...     def embed_documents(self, texts):
    ...         counts = np.array([[1 + text.count(vowel) for vowel in "aeiou"] for text in texts], np.float32)
    ...         return counts / np.linalg.norm(counts, axis=1, keepdims=True)
    ...
    ...     embed_questions = embed_documents
    >>> isinstance(Vowels(), Embedder), Vowels().embed_documents(["aa", "ee"]).shape
    (True, (2, 5))
    """

    name: str

    def embed_questions(self, texts: Sequence[str]) -> NDArray[np.float32]: ...

    def embed_documents(self, texts: Sequence[str]) -> NDArray[np.float32]: ...


AnswerType = Literal["text", "number", "integer", "date", "timestamp", "time", "boolean", "list"]
"""The type of an answer's value; a "list" is a JSON array of texts."""


@dataclass(frozen=True, slots=True)
class TextCall:
    """One evaluation of `answer` or `summary` (semantics 2).

    Attributes:
        passages: the whole document; one passage for text, several for text[]. Never empty or blank.
        type: the type that the value will be parsed as.
        options: the only values allowed, where the query lists them.
        compared: the literals that the query compares the answer with; each gets a verdict.
        from_rows: whether the question contains values of rows, and so is untrusted like the document.
        about: the document's origin: its column, its table and the table's title. Shown to readers, but not part of the
            call's identity, as equal documents are read once.
        served: what a person asked in full, where an answer that nothing is compared with is shown in the reply.
        beside: whether other questions about the document are asked at the same time; no part of the identity either.
    """

    function: Literal["answer", "summary"]
    passages: tuple[str, ...]
    question: str
    type: AnswerType = "text"
    options: tuple[str, ...] = ()
    compared: tuple[str, ...] = ()
    from_rows: bool = False
    about: str = ""
    served: str = ""
    beside: bool = False

    @property
    def yes_or_no(self) -> bool:
        """Whether all that is asked for is a verdict: the answer is compared with yes or no alone."""
        if not self.compared or self.type != "text":
            return False
        return {canonical(literal) for literal in (*self.compared, *self.options)} <= {"yes", "no"}

    @property
    def chosen(self) -> bool:
        """Whether the reply is a verdict, an option or a number, which other texts in the request hardly colour."""
        chosen = self.yes_or_no or bool(self.options) or self.type in ("number", "integer", "boolean")
        return chosen and self.function == "answer" and self.type != "list"


@dataclass(frozen=True, slots=True)
class Quote:
    """Words of a passage: `passages[passage][start : start + len(text)] == text`."""

    passage: int
    start: int
    text: str


@dataclass(frozen=True, slots=True)
class TextReply:
    """What a Reader found; `value` None and a verdict None mean "no information".

    Attributes:
        confidence: how likely the value is right, from 0 to 1; None where the reader does not say.
        probabilities: how likely each verdict is "yes", where the reader asks for that and the model's server tells.
        unreadable: `value` is None because what was replied, twice, is not of the type or the options asked for.
    """

    value: str | None
    verdicts: Mapping[str, bool | None] = field(default_factory=dict)
    quotes: tuple[Quote, ...] = ()
    usage: Usage = Usage()
    confidence: float | None = None
    probabilities: Mapping[str, float] = field(default_factory=dict)
    unreadable: bool = False


@runtime_checkable
class Reader(Protocol):
    """Evaluates text calls. Raises ModelCallError for a call that failed, ModelError when none can succeed.

    `remote` says whether documents leave this machine; `paid` whether calls count against the default budget.

    >>> class Shouting:
    ...     name, remote, paid = "shouting", False, False
    ...
    ...     async def read(self, call):
    ...         return TextReply(call.passages[0].upper(), quotes=(Quote(0, 0, call.passages[0]),))
    >>> import almanaq
    >>> con = almanaq.connect({"dogs": {"about": ["Rex barks."]}}, model=Shouting(), cache=False)
    >>> result = con.sql("SELECT answer(about, 'what does it do?') FROM dogs")
    >>> result[0], result.evidence[0][0].quote
    (('REX BARKS.',), 'Rex barks.')
    """

    name: str
    remote: bool
    paid: bool

    async def read(self, call: TextCall) -> TextReply: ...


@dataclass(frozen=True, slots=True)
class LinkRequest:
    """Asks which of an ENUM column's values mean the same as `literal`; `several`: a row holds several (5.2)."""

    literal: str
    column: str
    values: tuple[str, ...]
    several: bool = False


class AllOf(tuple[str, ...]):
    """Values that a row has to hold all of, where a literal names several things at once: a vegan bakery's."""

    __slots__ = ()

    def __eq__(self, other: object) -> bool:
        return isinstance(other, AllOf) and tuple.__eq__(self, other)

    def __ne__(self, other: object) -> bool:
        return not self == other

    def __hash__(self) -> int:
        return hash((AllOf, tuple(self)))


@runtime_checkable
class Linker(Protocol):
    """Gives the values that mean the same as a literal: a row matches if it has any of them, all of an AllOf."""

    name: str

    async def link(self, request: LinkRequest) -> tuple[str, ...]: ...


@dataclass(frozen=True, slots=True)
class Price:
    """US dollars for a million tokens; raises ValueError for what is no price."""

    input: float
    output: float = 0.0

    def __post_init__(self) -> None:
        if not all(0 <= dollars < inf for dollars in (self.input, self.output)):
            raise ValueError(f"a price is a number of dollars, not {self.input} and {self.output}")

    def of(self, input_tokens: int, output_tokens: int) -> float:
        """Return the dollars that one call with these tokens costs."""
        return (input_tokens * self.input + output_tokens * self.output) / 1e6


@dataclass(frozen=True, slots=True)
class Models:
    """The models that one connection uses.

    Attributes:
        language: None where there is no language model (`local`).
        price: what its tokens cost; None: unknown, or nothing where the reader is not paid.
    """

    name: str
    reader: Reader
    linker: Linker
    embedder: Embedder
    language: LanguageModel | None = None
    price: Price | None = None
