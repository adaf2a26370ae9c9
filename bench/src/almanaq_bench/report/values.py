"""The values that a report shows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from almanaq_bench.generation.reply_records import ReplyRecord
from almanaq_bench.records import Record
from almanaq_bench.run_measures import Scores


@dataclass(frozen=True, slots=True)
class Run:
    """One run folder, read.

    Attributes:
        name: what the report calls it; no two runs of a group share it.
        curve: recall, or for databases database recall, at each cutoff that the run reaches.
    """

    name: str
    folder: Path
    scores: Scores
    records: Sequence[Record]
    replies: Mapping[str, ReplyRecord]
    curve: Mapping[int, float]


@dataclass(frozen=True, slots=True)
class Slice:
    """A part of the questions, and how each run does on it."""

    by: str
    name: str
    questions: int
    values: Mapping[str, float]


@dataclass(frozen=True, slots=True)
class Failure:
    """A question whose gold table was not found early: what stood above, and why as far as words show it.

    Attributes:
        rank: of the first gold table; 0 where it was not found at all.
        above: what ranked first, each with the question's words that it shares.
    """

    run: str
    question: str
    gold: str
    rank: int
    above: Sequence[tuple[str, str]]
    gold_words: str


@dataclass(frozen=True, slots=True)
class Group:
    """The runs over one split of one dataset, for one task.

    Attributes:
        measure: the retrieval measure that is in front: `recall`, or `database_recall` of text-to-SQL data.
        tested: that measure at the smallest cutoff that all runs have; "" where runs could not be compared.
        alike: the largest groups of runs that cannot be told apart by it, best first.
        errors: by run, how many questions ended how: by the stage that lost them.
    """

    title: str
    measure: str
    runs: Sequence[Run]
    tested: str
    alike: Sequence[Sequence[str]]
    slices: Sequence[Slice]
    failures: Sequence[Failure]
    errors: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
