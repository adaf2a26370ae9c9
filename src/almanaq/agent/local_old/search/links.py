"""What the words of a turn were taken for, before a relation is chosen that it is about."""

from __future__ import annotations

from dataclasses import dataclass, field

from almanaq.agent.local_old.lexicon import NEGATIONS
from almanaq.agent.local_old.recognize.spans import Span
from almanaq.agent.local_old.recognize.tokens import Token
from almanaq.agent.local_old.schema_index import Meaning
from almanaq.agent.local_old.search.domain import NONE, Domain


@dataclass(frozen=True, slots=True)
class Value:
    """Tokens `first` to `last` (exclusive) that spell a value.

    Attributes:
        meanings: the columns and values they may mean.
        how: "" as it is written; "part" where a name only holds the words; "misspelt".
        negated: the turn excludes the value.
    """

    first: int
    last: int
    text: str
    meanings: tuple[Meaning, ...]
    how: str = ""
    negated: bool = False


@dataclass
class Links:
    """Everything found in one turn.

    Attributes:
        used: what token i was taken for, None where for nothing yet.
        bounds: comparisons with numbers; `days` with days; `orders` superlatives; all as spans.
        limit: how many rows are wanted.
        kin: names of the relations with which a verb shares its root, or which have such a column.
        computed: it asks for groups or figures, which no search gives.
        domain: words of the domain that the source is about.
        dropped: parts that only tell of the asker.
    """

    question: str
    tokens: tuple[Token, ...]
    used: list[str | None]
    values: list[Value] = field(default_factory=list)
    bounds: list[Span] = field(default_factory=list)
    days: list[Span] = field(default_factory=list)
    orders: list[Span] = field(default_factory=list)
    columns: list[Span] = field(default_factory=list)
    relations: list[Span] = field(default_factory=list)
    limit: int | None = None
    counts: bool = False
    kin: frozenset[str] = frozenset()
    computed: bool = False
    dropped: list[str] = field(default_factory=list)
    idioms: frozenset[int] = frozenset()
    domain: Domain = NONE

    def free(self, first: int, last: int) -> bool:
        """Return whether no token from `first` to `last` (exclusive) is taken."""
        return not any(self.used[first:last])

    def take(self, first: int, last: int, label: str) -> None:
        """Mark tokens as taken for something."""
        self.used[first:last] = [label] * (min(last, len(self.used)) - first)

    def drop(self, first: int, last: int) -> None:
        """Mark tokens as chatter, to be named as unused."""
        text = self.text(first, last)
        self.dropped = [*(known for known in self.dropped if known not in text), text]
        self.take(first, last, "chatter")

    def folded(self, i: int) -> str:
        """Return token i in lower case, "" outside the turn."""
        return self.tokens[i].folded if 0 <= i < len(self.tokens) else ""

    def stem(self, i: int) -> str:
        """Return the stem of token i, "" outside the turn."""
        return self.tokens[i].stem if 0 <= i < len(self.tokens) else ""

    def text(self, first: int, last: int) -> str:
        """Return the turn's own text from token `first` to `last` (exclusive)."""
        return self.question[self.tokens[first].start : self.tokens[last - 1].end] if first < last else ""

    def negated(self, first: int, within: int = 3) -> bool:
        """Return whether a negation stands in the tokens before token `first`."""
        return any(self.folded(k) in NEGATIONS for k in range(max(0, first - within), first))

    @property
    def linked(self) -> bool:
        """Whether anything in it is known of the source."""
        return bool(self.values or self.relations or self.columns or self.bounds or self.days or self.kin)
