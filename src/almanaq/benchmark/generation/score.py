"""How well the replies of a run do, from what is on disk alone."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from almanaq.benchmark.generation.replies import ReplyRecord
from almanaq.benchmark.restaurants.play import from_text
from almanaq.benchmark.restaurants.score import NOTE, hits, score_turns
from almanaq.evaluation.answers import is_numeric, numeric_match, sacrebleu
from almanaq.evaluation.short_answers import exact_match, f1, mutual_substring
from almanaq.evaluation.significance import intervals
from almanaq.evaluation.verification import score_verdicts

_TRUE = frozenset({"true", "1", "entailed", "supports", "supported", "yes"})


@dataclass(frozen=True, slots=True)
class ReplyScores:
    """The measures of a run's replies.

    Attributes:
        per_question: the values of measures that are means over all questions, for intervals and tests.
        outcomes: how many replies ended how: "ok", "no answer", "fault", or what became of a generated query.
        note: what exactly was computed; the signature of sacreBLEU.
    """

    metrics: Mapping[str, float]
    per_question: Mapping[str, Sequence[float]]
    outcomes: Mapping[str, int]
    note: str = ""
    bounds: Mapping[str, tuple[float, float]] = field(default_factory=dict)


def score_replies(replies: Sequence[ReplyRecord]) -> ReplyScores:
    """Give the measures of replies, which are all of one role."""
    role = replies[0].role
    made = {"answer": _answers, "verify": _verdicts, "sql": _queries, "entities": _entities}[role](replies)
    outcomes = Counter(_outcome(reply) for reply in replies)
    bounds = dict(made.bounds)
    if made.per_question:
        low, high = intervals(np.array(list(made.per_question.values()), dtype=np.float64).T)
        bounds |= {
            name: (float(below), float(above)) for name, below, above in zip(made.per_question, low, high, strict=True)
        }
    return ReplyScores(made.metrics, made.per_question, dict(sorted(outcomes.items())), made.note, bounds)


def label(gold: str) -> str:
    """Give the gold label of a statement: "true" or "false"."""
    return "true" if gold.strip().lower() in _TRUE else "false"


def _answers(replies: Sequence[ReplyRecord]) -> ReplyScores:
    pairs = [(reply.text, reply.gold) for reply in replies]
    bleu = sacrebleu(pairs)
    each = {
        "exact_match": [float(exact_match(*pair)) for pair in pairs],
        "f1": [f1(*pair) for pair in pairs],
        "mutual_substring": [float(mutual_substring(*pair)) for pair in pairs],
        "answered": [float(bool(text.strip())) for text, _ in pairs],
    }
    numeric = [numeric_match(*pair) for pair in pairs if is_numeric(pair[1])]
    metrics = {"sacrebleu": bleu.score, **_means(each)}
    for name in sorted({reply.slice for reply in replies} - {""}):
        chosen = [reply.slice == name for reply in replies]
        for measure in ("exact_match", "f1"):
            values = [value for value, own in zip(each[measure], chosen, strict=True) if own]
            metrics[f"{measure}_{name}"] = sum(values) / len(values)
    if numeric:
        metrics["numeric_match"] = sum(numeric) / len(numeric)
    return ReplyScores(metrics, each, {}, bleu.signature)


def _verdicts(replies: Sequence[ReplyRecord]) -> ReplyScores:
    pairs = [(reply.text.lower(), label(reply.gold)) for reply in replies]
    found = score_verdicts(pairs)
    each = {"accuracy": [float(verdict == gold) for verdict, gold in pairs]}
    metrics = {
        "precision": found.precision,
        "recall": found.recall,
        "f1": found.f1,
        "recall_answered": found.recall_answered,
        "coverage": found.coverage,
        **_means(each),
    }
    return ReplyScores(metrics, each, {})


def _queries(replies: Sequence[ReplyRecord]) -> ReplyScores:
    each = {
        "execution_accuracy": [float(reply.same_set) for reply in replies],
        "execution_accuracy_strict": [float(reply.same_ordered) for reply in replies],
    }
    metrics = _means(each)
    for name in sorted({reply.slice for reply in replies} - {""}):
        chosen = [float(reply.same_set) for reply in replies if reply.slice == name]
        metrics[f"execution_accuracy_{name}"] = sum(chosen) / len(chosen)
    return ReplyScores(metrics, each, {})


def _entities(replies: Sequence[ReplyRecord]) -> ReplyScores:
    turns = [from_text(reply.text) if reply.text else [] for reply in replies]
    counts = np.array([hits(own) for own in turns], dtype=np.float64)
    given = counts[:, 1:]
    low, high = intervals(counts[:, :1] / np.maximum(given, 1), given)
    each = {"all_right": [float(is_flawless(reply)) for reply in replies]}
    measured = score_turns([turn for own in turns for turn in own])
    bounds = {"turn_accuracy": (float(low[0]), float(high[0]))} if "turn_accuracy" in measured else {}
    return ReplyScores({**measured, **_means(each)}, each, {}, NOTE, bounds)


def is_flawless(reply: ReplyRecord) -> bool:
    """Say whether nothing is wrong with any turn of a reply."""
    return bool(reply.text) and all(turn.good for turn in from_text(reply.text))


def _outcome(reply: ReplyRecord) -> str:
    if reply.fault:
        return "fault"
    if not reply.text:
        return "no answer"
    return reply.outcome or "ok"


def _means(each: Mapping[str, Sequence[float]]) -> dict[str, float]:
    return {name: sum(values) / len(values) for name, values in each.items()}
