"""What the run of a query says of itself: progress, figures, warnings."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from almanaq.errors import ModelCallError, ModelError
from almanaq.models.budget import Spending, SpendingLine
from almanaq.models.protocols import Usage
from almanaq.models.retrying import describe_failure
from almanaq.suql.accuracy import Inference
from almanaq.suql.execution.calls import TextCalls
from almanaq.suql.execution.candidates import PassageSelection
from almanaq.suql.execution.evidence import StageCounts


class Interrupted(KeyboardInterrupt):
    """Ctrl-C, where rows are there that are surely in the full result."""

    def __init__(self, partial: object) -> None:
        super().__init__("interrupted")
        self.partial = partial


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

_NEARLY_ALL = 0.95
"""The share of rows expected to be asked from which on the exact query costs no more."""


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
    if unreadable := calls.unknown_answers.unreadable:
        yield f"{unreadable} answer(s) could not be read as the type asked for; they are NULL: the rows are not exact"
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
    if account.asked_singly:
        yield (
            "the model does not reply to several texts or questions at once in the form asked for: "
            f"{account.asked_singly:,} were asked one by one, which takes more calls; batch=1 does so from the start"
        )
    if account.cut_prompts:
        yield (
            f"the server read only a part of {account.cut_prompts} prompt(s), without a word: these texts were read "
            "again in smaller parts; give the model a larger context (Ollama: num_ctx)"
        )
    if selection is not None:
        yield f"approximate: read {selection.read} of {selection.total} passages"
    if inference is not None and inference.expected >= _NEARLY_ALL * inference.rows:
        yield (
            f"accuracy: about {inference.expected:,} of {inference.rows:,} rows were expected to be asked: the "
            "exact query is as cheap, leave accuracy out"
        )
