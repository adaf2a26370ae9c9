"""Replies to questions: their records on disk, and the measures that are made of them."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Any

import numpy as np

from almanaq.errors import BenchmarkError
from almanaq_bench.evaluation.answers import (
    bleu_of,
    exact_match,
    f1,
    is_numeric,
    mutual_substring,
    numeric_match,
    sacrebleu,
    same_number,
    score_verdicts,
    verdict_counts,
    verification_measures,
)
from almanaq_bench.evaluation.significance import Values, intervals, pool_intervals
from almanaq_bench.generation.protocols import Role
from almanaq_bench.question_sets import Question
from almanaq_bench.records import whole_lines
from almanaq_bench.restaurants.play import NOTE, from_text, hits, score_turns
from almanaq_bench.stages import count_stages


@dataclass(frozen=True, slots=True)
class ReplyRecord:
    """What was replied to one question, beside the gold answer.

    Attributes:
        gold: the gold answer, label or query.
        text: the reply; "" where there is none, and `fault` may say why.
        tables: how many tables the generator was handed.
        slice: what the dataset says of its difficulty, or of where the answer lies; "" where it says nothing.
        outcome: how the generated query ended, `reason` why it gave no rows; "" for other roles.
        same_set, same_ordered: whether it gave the gold rows; as sets, and as strictly as the gold query has it.
        nodes: how many places the answer was traced to, "3+" for more than two; "" where the dataset traces none.
        stage: what lost the right answer (`almanaq_bench.stages`); "" where that is not told.
    """

    query_id: str
    role: Role
    gold: str
    text: str
    fault: str = ""
    reasoning: str = ""
    tables: int = 0
    slice: str = ""
    outcome: str = ""
    reason: str = ""
    same_set: bool = False
    same_ordered: bool = False
    stage: str = ""
    nodes: str = ""

    def to_json(self) -> str:
        """Return one line without its end."""
        return json.dumps(asdict(self), ensure_ascii=False, separators=(",", ":"))


_NAMES = frozenset(each.name for each in fields(ReplyRecord))


def read_replies(file: Path) -> Iterator[ReplyRecord]:
    """Yield the replies of a run in order; none where the file is not there.

    Raises:
        BenchmarkError: a whole line is not a reply.
    """
    for number, line in enumerate(whole_lines(file), 1):
        try:
            values: dict[str, Any] = json.loads(line)
            if set(values) != _NAMES:
                raise ValueError(f"its keys are {', '.join(sorted(values))}")
            yield ReplyRecord(**values)
        except (ValueError, TypeError) as error:
            raise BenchmarkError(f"{file}, line {number}: not a reply: {error}") from error


_TRUE = frozenset({"true", "1", "entailed", "supports", "supported", "yes"})
_FALSE = frozenset({"false", "0", "refuted", "refutes", "no"})


@dataclass(frozen=True, slots=True)
class ReplyScores:
    """The measures of a run's replies.

    Attributes:
        per_question: the values of measures that are means over all questions, for tests.
        outcomes: how many replies ended how: "ok", "no answer", "fault", or what became of a generated query.
        note: what exactly was computed; the signature of sacreBLEU.
        bounds: 95 % bootstrap intervals of the metrics, over the questions that each is about.
    """

    metrics: Mapping[str, float]
    per_question: Mapping[str, Sequence[float]]
    outcomes: Mapping[str, int]
    note: str = ""
    bounds: Mapping[str, tuple[float, float]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class _ReplyMeasures:
    """The measures of one role's replies.

    Attributes:
        each: values for every question; `parts`: for some of the questions alone. Their means are measures.
        pooled: measures of the whole run; `bounds`: their intervals.
    """

    each: Mapping[str, Sequence[float]]
    parts: Mapping[str, Sequence[float]] = field(default_factory=dict)
    pooled: Mapping[str, float] = field(default_factory=dict)
    bounds: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    note: str = ""


def score_replies(replies: Sequence[ReplyRecord]) -> ReplyScores:
    """Return the measures of replies, which are all of one role."""
    made = {"answer": _answers, "verify": _verdicts, "sql": _queries, "entities": _entities, "rows": _rows}[
        replies[0].role
    ](replies)
    outcomes = Counter(_outcome(reply) for reply in replies)
    bounds = dict(made.bounds)
    bounds |= _bounds(made.each, intervals(np.array(list(made.each.values()), dtype=np.float64).T))
    for name, values in made.parts.items():
        bounds |= _bounds([name], intervals(np.array([values], dtype=np.float64).T))
    means = {name: sum(values) / len(values) for name, values in {**made.each, **made.parts}.items()}
    return ReplyScores({**made.pooled, **means}, made.each, dict(sorted(outcomes.items())), made.note, bounds)


def _bounds(names: Iterable[str], bounds: Values) -> dict[str, tuple[float, float]]:
    return {name: (float(low), float(high)) for name, low, high in zip(names, *bounds, strict=True)}


def label(gold: str) -> str:
    """Return the gold label of a statement: "true" or "false"."""
    return "true" if gold.strip().lower() in _TRUE else "false"


def check_labels(questions: Sequence[Question]) -> None:
    """Raise BenchmarkError where the gold answer of a statement is no label: it would count as "false"."""
    other = [question for question in questions if question.answer.strip().lower() not in _TRUE | _FALSE]
    if other:
        raise BenchmarkError(
            f"{len(other)} of {len(questions)} gold answers are neither true nor false, first that of question "
            f"{other[0].id!r}: {other[0].answer[:60]!r}; fact-verification takes statements"
        )


def _answers(replies: Sequence[ReplyRecord]) -> _ReplyMeasures:
    pairs = [(reply.text, reply.gold) for reply in replies]
    bleu = sacrebleu(pairs)
    each = {
        "exact_match": [float(exact_match(*pair)) for pair in pairs],
        "f1": [f1(*pair) for pair in pairs],
        "mutual_substring": [float(mutual_substring(*pair)) for pair in pairs],
        "answered": [float(bool(text.strip())) for text, _ in pairs],
    }
    cut = {name: each[name] for name in ("exact_match", "f1", "mutual_substring")}
    parts = _by_part([reply.slice for reply in replies], cut)
    parts |= _by_part([reply.nodes and f"{reply.nodes}_places" for reply in replies], cut)
    numeric = [float(numeric_match(*pair)) for pair in pairs if is_numeric(pair[1])]
    if numeric:
        parts["numeric_match"] = numeric
    bounds = _bounds(["sacrebleu"], pool_intervals(bleu.counts, bleu_of))
    pooled = {"sacrebleu": bleu.score, **count_stages(reply.stage for reply in replies)}
    others = sum(same_number(*pair) and not exact_match(*pair) for pair in pairs)
    if others:
        pooled["numbers_in_other_form"] = others
    return _ReplyMeasures(each, parts, pooled, bounds, bleu.signature)


def _verdicts(replies: Sequence[ReplyRecord]) -> _ReplyMeasures:
    pairs = [(reply.text.lower(), label(reply.gold)) for reply in replies]
    each = {"accuracy": [float(verdict == gold) for verdict, gold in pairs]}
    found = asdict(score_verdicts(pairs))
    bounds = _bounds(found, pool_intervals(verdict_counts(pairs), verification_measures))
    return _ReplyMeasures(each, pooled=found, bounds=bounds)


def _queries(replies: Sequence[ReplyRecord]) -> _ReplyMeasures:
    same = [float(reply.same_set) for reply in replies]
    each = {
        "execution_accuracy": same,
        "execution_accuracy_strict": [float(reply.same_ordered) for reply in replies],
    }
    return _ReplyMeasures(each, _by_part([reply.slice for reply in replies], {"execution_accuracy": same}))


def _by_part(parts: Sequence[str], each: Mapping[str, Sequence[float]]) -> dict[str, Sequence[float]]:
    """Return the values of each part of the questions, as MEASURE_PART; `parts` names that of each question."""
    return {
        f"{measure}_{name}": [value for value, part in zip(values, parts, strict=True) if part == name]
        for name in sorted(set(parts) - {""})
        for measure, values in each.items()
    }


def _entities(replies: Sequence[ReplyRecord]) -> _ReplyMeasures:
    turns = [from_text(reply.text) if reply.text else [] for reply in replies]
    counts = np.array([hits(own) for own in turns], dtype=np.float64)
    given = counts[:, 1:]
    each = {"all_right": [float(is_flawless(reply)) for reply in replies]}
    measured = score_turns([turn for own in turns for turn in own])
    measured["failed_conversations"] = sum(not reply.text for reply in replies)
    bounds = {}
    if "turn_accuracy" in measured:
        bounds = _bounds(["turn_accuracy"], intervals(counts[:, :1] / np.maximum(given, 1), given))
    return _ReplyMeasures(each, pooled=measured, bounds=bounds, note=NOTE)


def _rows(replies: Sequence[ReplyRecord]) -> _ReplyMeasures:
    """Return the mean quality, that of each query, and what they took together; a query that failed has none."""
    records = [json.loads(reply.text) if reply.text else {"measures": {}} for reply in replies]
    quality = [float(each["measures"].get("quality", 0.0)) for each in records]
    parts = _by_part([reply.slice for reply in replies], {"quality": quality})
    parts |= _by_part([reply.slice for reply in replies], {"calls": [float(each.get("calls", 0)) for each in records]})
    pooled = {name: float(sum(each.get(name, 0) for each in records)) for name in ("calls", "tokens", "seconds")}
    note = "quality: F1, against the limit where there is one; 1 / (1 + relative error); Spearman's correlation"
    return _ReplyMeasures({"quality": quality}, parts, pooled, note=note)


def is_flawless(reply: ReplyRecord) -> bool:
    """Return whether nothing is wrong with any turn of a reply."""
    return bool(reply.text) and all(turn.good for turn in from_text(reply.text))


def _outcome(reply: ReplyRecord) -> str:
    if reply.fault:
        return "fault"
    if not reply.text:
        return "no answer"
    return reply.outcome or "ok"
