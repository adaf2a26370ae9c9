"""What a user has to know of how a run went, besides its rows."""

from __future__ import annotations

from collections.abc import Iterator

from almanaq.models.budget import Spending
from almanaq.suql.accuracy.targets import Inference
from almanaq.suql.execution.calls import TextCalls
from almanaq.suql.execution.candidates import PassageSelection

_ENOUGH, _MOSTLY = 10, 0.8
"""Texts, and the share of them without information, from which on `local` is no judge of what was asked."""


def cautions(
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
    if calls.unparsed:
        yield f"{calls.unparsed} answer(s) could not be read as the type asked for; they are NULL"
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
