"""What a run says of itself: to who watches it, to EXPLAIN ANALYZE, and to who reads its rows."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any

from almanaq.errors import ModelCallError, ModelError
from almanaq.models.budget import Spending, SpendingLine
from almanaq.models.protocols import Usage
from almanaq.models.retrying import describe_failure
from almanaq.suql.accuracy.targets import Inference
from almanaq.suql.execution.calls import TextCalls
from almanaq.suql.execution.candidates import PassageSelection
from almanaq.suql.execution.stage_rows import StageCounts


@dataclass
class Watch:
    """Receives the progress of the text stage that runs.

    Attributes:
        tell: takes how many rows are done, how many there are (None: not known), and how many passed.
        total: rows of the stage; None while they are not counted, or where a LIMIT ends it sooner.
        keeps: whether a query that is interrupted gives its rows so far, as Interrupted.
    """

    tell: Callable[[int, int | None, int], None]
    total: int | None = None
    keeps: bool = True

    def done(self, rows: int, passed: int) -> None:
        """Tell that so many rows of the stage are done, and so many of them passed."""
        self.tell(rows, self.total, passed)


class Interrupted(KeyboardInterrupt):
    """Ctrl-C, where rows are there that are surely in the full result.

    Attributes:
        partial: the Result that holds them.
    """

    def __init__(self, partial: object) -> None:
        super().__init__("interrupted")
        self.partial = partial


_watch: ContextVar[Watch | None] = ContextVar("watch", default=None)


@contextmanager
def watched(tell: Callable[[int, int | None, int], None], *, keeps: bool = True) -> Iterator[None]:
    """Have the queries that are run in this block tell how far they are, and raise Interrupted at Ctrl-C.

    Args:
        keeps: False: who interrupts wants no rows, and what is cancelled ends as it would unwatched.
    """
    token = _watch.set(Watch(tell, keeps=keeps))
    try:
        yield
    finally:
        _watch.reset(token)


def current_watch() -> Watch | None:
    """Return what watches the query that is being run."""
    return _watch.get()


@dataclass
class RunReport:
    """What each stage did, by the name of the table it made: rows for SQL stages, counts for text stages."""

    rows: dict[str, int] = field(default_factory=dict)
    text: dict[str, StageCounts] = field(default_factory=dict)
    seconds: dict[str, float] = field(default_factory=dict)

    def figures(self, spent: Sequence[SpendingLine] = ()) -> dict[str, dict[str, Any]]:
        """Return what each stage took, as EXPLAIN shows it; `spent` holds the tokens and money of paid calls."""
        found: dict[str, dict[str, Any]] = {name: {"rows": rows} for name, rows in self.rows.items()}
        for name, counts in self.text.items():
            usage = sum((line.usage for line in spent if line.operator == name), Usage())
            tokens = usage.input_tokens + usage.output_tokens
            found[name] = {"rows": counts.passed, "candidates": counts.candidates, "calls": counts.calls}
            found[name] |= {"tokens": tokens, "money": usage.money}
            if counts.inference is not None:
                found[name] |= _inference_figures(counts.inference)
        for name, seconds in self.seconds.items():
            found[name]["seconds"] = round(seconds, 4)
        return found


def _inference_figures(inference: Inference) -> dict[str, Any]:
    known = inference.certificate
    return {
        "expected": inference.expected,
        "asked": known.asked,
        "accepted unasked": known.accepted,
        "rejected unasked": known.rejected,
        "wrongly accepted at most": known.wrongly_accepted,
        "wrongly rejected at most": known.wrongly_rejected,
        "recall at least": round(known.recall, 4),
        "precision at least": round(known.precision, 4),
        "seed": inference.targets.seed,
    }


_ENOUGH, _MOSTLY = 10, 0.8
"""Texts, and the share of them without information, from which on `local` is no judge of what was asked."""


def table_order(problem: ModelError) -> str:
    """Say that rows are tried in table order, and why: only the number of calls may be another."""
    cause = describe_failure(problem)[0] if isinstance(problem, ModelCallError) else str(problem)
    return f"rows are tried in table order: the embedder failed ({cause})"


def list_warnings(
    calls: TextCalls,
    account: Spending,
    selection: PassageSelection | None,
    inference: Inference | None,
    *,
    certain: bool,
) -> Iterator[str]:
    """Yield a sentence for each thing that was not as it should be, or was left out by choice.

    Args:
        certain: an unknown answer can only leave rows out.
    """
    if unreadable := calls.unknown_answers.unreadable:
        yield f"{unreadable} answer(s) could not be read as the type asked for; they are NULL"
    if calls.unknown:
        yield f"{calls.unknown} call(s) failed ({calls.causes}); their answers are unknown: the rows are not exact"
    if calls.unknown and not certain:
        yield (
            f"rows may be shown that should not, or values be wrong: {calls.unknown} answer(s) are unknown, and the "
            "query shows rows by what others lack (NOT IN, EXCEPT, an outer join, …) or computes with them"
        )
    read = calls.made + calls.cached
    if calls.reads_words_alone and read >= _ENOUGH and calls.silent >= _MOSTLY * read:
        yield (
            f"`local` found no information in {calls.silent:,} of {read:,} texts: it recognizes what is said in the "
            "words of the question; a language model understands other words"
        )
    if account.read_in_parts:
        yield (
            f"{account.read_in_parts} text(s) were longer than the model reads at once: each was read in parts, "
            "and its answer is made of theirs"
        )
    if account.cut_prompts:
        yield (
            f"the server read only a part of {account.cut_prompts} prompt(s), without a word: these texts were read "
            "again in smaller parts; give the model a larger context (Ollama: num_ctx)"
        )
    if selection is not None:
        yield f"approximate: read {selection.read} of {selection.total} passages"
    if inference is not None and inference.saves_little:
        yield (
            f"accuracy: about {inference.expected:,} of {inference.rows:,} rows were expected to be asked: the "
            "exact query is as cheap, leave accuracy out"
        )
