"""What the words of a question were linked to, before a reading of the whole is chosen."""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from dataclasses import dataclass, field, fields

from almanaq.agent.local.calendar_spans import Span
from almanaq.agent.local.schema_index import Meaning, Place
from almanaq.agent.local.words import Word
from almanaq.suql.catalog.relations import Relation


@dataclass(frozen=True, slots=True)
class ValueLink:
    """Words `first` to `last` (exclusive) that spell a value.

    Attributes:
        meanings: the columns and values they may mean.
        part: the words are only part of a name: compare with ILIKE.
        corrected: they are misspelt.
        negated: the question excludes the value.
    """

    first: int
    last: int
    text: str
    meanings: tuple[Meaning, ...]
    part: bool = False
    corrected: bool = False
    negated: bool = False


@dataclass(frozen=True, slots=True)
class NumberLink:
    """A comparison with one number, or two for "between".

    Attributes:
        units: stems of the words around it that may name the column, the nearest first.
        roles: roles of columns that those words speak of, the likeliest first.
        year: it reads like a year.
        bare: no noun goes with it: "under 25".
    """

    first: int
    last: int
    operator: str
    numbers: tuple[float, ...]
    units: tuple[str, ...]
    roles: tuple[str, ...]
    year: bool
    bare: bool = False

    @property
    def aged(self) -> bool:
        """Whether it may be the age of a person."""
        return not self.year and (self.bare or "age" in self.roles) and all(0 < n < 120 for n in self.numbers)


@dataclass(frozen=True, slots=True)
class DateLink:
    """A month or a day, with the comparison it stands in.

    Attributes:
        operator: as of a NumberLink.
        span: the days meant.
    """

    first: int
    last: int
    operator: str
    span: Span

    @property
    def whole_years(self) -> bool:
        """Whether it names years, and no month or day."""
        return all((day.month, day.day) == (1, 1) for day in (self.span.start, self.span.after))


@dataclass(frozen=True, slots=True)
class OrderLink:
    """A superlative, or another wish for an order.

    Attributes:
        choices: (role, descending), the likeliest first.
        units: stems of the words that name what is ordered by, for "most reviews".
        descending: the direction when `units` decide.
        superlative: "the best" asks for one row; "good" only for an order.
    """

    first: int
    last: int
    choices: tuple[tuple[str, bool], ...]
    units: tuple[str, ...] = ()
    descending: bool = True
    superlative: bool = True


@dataclass(frozen=True, slots=True)
class BeyondLink:
    """A comparison with a row that the values after it name, or with the average.

    Attributes:
        order: what is compared, as the superlative of the same meaning.
    """

    first: int
    last: int
    order: OrderLink
    average: bool = False


@dataclass(frozen=True, slots=True)
class PatternLink:
    """A part of a word, as ILIKE writes it, that a column is to hold."""

    first: int
    last: int
    text: str


@dataclass(frozen=True, slots=True)
class ColumnLink:
    """Words that name one column, or columns of several relations with that name; or a `verb` of the same root."""

    first: int
    last: int
    places: tuple[Place, ...]
    exact: bool
    verb: bool = False


@dataclass(frozen=True, slots=True)
class RelationLink:
    """A noun that names a relation, or several; or a `verb` of the same stem."""

    first: int
    relations: tuple[Relation, ...]
    verb: bool = False


@dataclass
class Links:
    """Everything found in one question.

    Attributes:
        used: what word i was taken for, None when for nothing yet.
        money: the word that asks for a sum of money, as "spent" does.
        implied: relations with a column of what a number, a date or pay speaks of ("who earns more than 60000").
    """

    question: str
    words: tuple[Word, ...]
    used: list[str | None]
    values: list[ValueLink] = field(default_factory=list)
    numbers: list[NumberLink] = field(default_factory=list)
    dates: list[DateLink] = field(default_factory=list)
    orders: list[OrderLink] = field(default_factory=list)
    beyond: list[BeyondLink] = field(default_factory=list)
    patterns: list[PatternLink] = field(default_factory=list)
    columns: list[ColumnLink] = field(default_factory=list)
    relations: list[RelationLink] = field(default_factory=list)
    implied: tuple[Relation, ...] = ()
    limit: int | None = None
    money: int | None = None
    dropped: list[str] = field(default_factory=list)
    idioms: frozenset[int] = frozenset()

    def copied(self) -> Links:
        """Give links of the same question that may be changed by themselves."""
        other = copy(self)
        for each in fields(self):
            held = getattr(self, each.name)
            if isinstance(held, list):
                setattr(other, each.name, list(held))
        return other

    def drop(self, first: int, last: int) -> None:
        """Mark words as chatter, to be named as unused."""
        text = self.text(first, last)
        self.dropped = [*(known for known in self.dropped if known not in text), text]
        self.take(first, last, "chatter")

    def free(self, first: int, last: int) -> bool:
        """Say whether no word from `first` to `last` (exclusive) is taken."""
        return not any(self.used[first:last])

    def take(self, first: int, last: int, label: str) -> None:
        """Mark words as taken for something."""
        for i in range(first, min(last, len(self.used))):
            self.used[i] = label

    def folded(self, i: int) -> str:
        """Give word i case-folded, "" outside the question."""
        return self.words[i].folded if 0 <= i < len(self.words) else ""

    def says(self, start: int, words: Sequence[str]) -> bool:
        """Say whether these words, case-folded, stand in a row from word `start` on."""
        return start >= 0 and all(self.folded(start + k) == word for k, word in enumerate(words))

    def stem(self, i: int) -> str:
        """Give the stem of word i, "" outside the question."""
        return self.words[i].stem if 0 <= i < len(self.words) else ""

    def text(self, first: int, last: int) -> str:
        """Give the question's own text from word `first` to `last` (exclusive)."""
        return self.question[self.words[first].start : self.words[last - 1].end] if first < last else ""
