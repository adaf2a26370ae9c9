"""The hybrid-qa task: a record for each question, and the measures of a run, by where the answers lie."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from almanaq.benchmark.hybridqa.analysis import STAGES, Stage, find_stage
from almanaq.benchmark.hybridqa.pipeline import HybridPipeline
from almanaq.benchmark.hybridqa.places import PLACES, answer_nodes, answer_place
from almanaq.benchmark.hybridqa.relation import make_relation
from almanaq.corpus.dataset import Question
from almanaq.corpus.linked import LinkedTables
from almanaq.corpus.table import TableId
from almanaq.errors import BenchmarkError
from almanaq.evaluation.short_answers import same_number, score_short_answers


@dataclass(frozen=True, slots=True)
class HybridRecord:
    """What became of one question.

    Attributes:
        table: the table that was asked; gold: those that hold the answer.
        place: one of PLACES; nodes: how many places the answer was traced to.
        stage: what lost the answer, "right" where nothing did.
        prediction: the keys of Prediction.
    """

    query_id: str
    question: str
    table: TableId
    gold: tuple[TableId, ...]
    answer: str
    place: str
    nodes: int
    stage: Stage
    prediction: Mapping[str, Any] = field(default_factory=dict)

    def to_json(self) -> str:
        """Give one line without its end."""
        return json.dumps(asdict(self), ensure_ascii=False, separators=(",", ":"))


def answer_question(
    pipeline: HybridPipeline, question: Question, tables: LinkedTables, table: TableId | None = None
) -> HybridRecord:
    """Answer one question over a table (None: the gold one), and say what lost the answer if it is wrong."""
    asked = table or question.gold[0]
    relation = make_relation(tables.get(asked))
    prediction = pipeline.answer(question.text, relation)
    nodes = answer_nodes(question)
    stage = find_stage(prediction, question.answer, nodes, relation, retrieved=asked in question.gold)
    return HybridRecord(
        question.id,
        question.text,
        asked,
        question.gold,
        question.answer,
        answer_place(question),
        len(nodes),
        stage,
        prediction.to_dict(),
    )


def read_hybrid_records(file: Path) -> Iterator[HybridRecord]:
    """Give the whole records of a file, none where it is not there; raises BenchmarkError for a line that is none."""
    lines = file.read_bytes().split(b"\n")[:-1] if file.exists() else []
    for number, line in enumerate(lines, 1):
        try:
            values = json.loads(line)
            table, gold = TableId(*values.pop("table")), tuple(TableId(*each) for each in values.pop("gold"))
            yield HybridRecord(table=table, gold=gold, **values)
        except (ValueError, KeyError, TypeError) as error:
            raise BenchmarkError(f"{file}, line {number}: not a record: {error}") from error


def score_records(records: Sequence[HybridRecord]) -> dict[str, Any]:
    """Give exact match, F1 and mutual substrings in all, by place and by number of nodes; stages; and what it took."""
    return {
        "all": _scores(records),
        "by_place": {place: _scores([r for r in records if r.place == place]) for place in PLACES},
        "by_nodes": {name: _scores([r for r in records if _many(r.nodes) == name]) for name in ("0", "1", "2", "3+")},
        "stages": {stage: Counter(r.stage for r in records)[stage] for stage in STAGES},
        "text_calls_per_question": round(_mean([r.prediction["text_calls"] for r in records]), 2),
        "queries_per_question": round(_mean([len(r.prediction["tried"]) for r in records]), 2),
        "tokens_per_question": round(
            _mean([r.prediction["input_tokens"] + r.prediction["output_tokens"] for r in records]), 1
        ),
        "same_number_written_otherwise": sum(
            r.stage == "format" and same_number(str(r.prediction["answer"]), r.answer) for r in records
        ),
        "unknown_calls": sum(r.prediction["unknown_calls"] for r in records),
    }


def _scores(records: Sequence[HybridRecord]) -> dict[str, float]:
    scores = score_short_answers([(str(r.prediction["answer"]), r.answer) for r in records])
    return {
        "questions": scores.questions,
        "exact_match": round(100 * scores.exact_match, 1),
        "f1": round(100 * scores.f1, 1),
        "substring": round(100 * scores.substring, 1),
        "answered": round(100 * _mean([bool(r.prediction["answer"]) for r in records]), 1),
    }


def _many(nodes: int) -> str:
    return str(nodes) if nodes < 3 else "3+"


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values) if values else 0.0
