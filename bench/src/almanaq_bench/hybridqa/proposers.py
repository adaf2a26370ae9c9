"""HybridQA's steps without and with a language model: which table, which query, which words of a row."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from importlib.resources import files
from typing import Any

from almanaq.agent.dialects import dialect_notes
from almanaq.agent.prompting import complete
from almanaq.agent.schema_text import schema_text
from almanaq.errors import ModelCallError
from almanaq.models.protocols import LanguageModel, Prompt, forget_reply
from almanaq.text.sql_literals import identifier, string_literal
from almanaq_bench.hybridqa.best_rows import FoundRow
from almanaq_bench.hybridqa.evidence import FEATURES, CellPlace, Evidence, Field
from almanaq_bench.hybridqa.pipeline import Attempt, Proposal, QuestionTable
from almanaq_bench.hybridqa.relation import HybridRelation, whole_table
from almanaq_bench.prompts import bench_prompt, bench_prompt_version


@cache
def load_place_weights() -> Mapping[str, float]:
    """Return the weights that `experiments/hybridqa/fit_places.py` fitted."""
    text = (files("almanaq_bench.hybridqa") / "places.json").read_text(encoding="utf-8")
    return {name: float(weight) for name, weight in json.loads(text).items()}


def score_spots(evidence: Evidence, weights: Mapping[str, float]) -> list[tuple[CellPlace, float]]:
    """Return the places where the answer may stand with their linear scores."""
    order = [weights[name] for name in FEATURES]
    return [
        (spot, sum(w * f for w, f in zip(order, evidence.features(spot), strict=True))) for spot in evidence.spots()
    ]


def rank_spots(evidence: Evidence, weights: Mapping[str, float]) -> list[tuple[CellPlace, float]]:
    """Return the places where the answer may stand with their probabilities, the likeliest first."""
    scored = score_spots(evidence, weights)
    highest = max((score for _, score in scored), default=0.0)
    shares = [(spot, math.exp(score - highest)) for spot, score in scored]
    total = sum(share for _, share in shares)
    return [(spot, share / total) for spot, share in sorted(shares, key=lambda each: -each[1])]


class LocalProposer:
    """Names the row that a question's words point at, and asks for the likeliest of its places.

    A linear model over words ranks every cell and every cell's passages; the first query asks for the best of them, and
    each further query for the next. Cells are selected; passages are asked the question by `answer`.
    """

    name = "local"

    def __init__(self, weights: Mapping[str, float] | None = None) -> None:
        self._weights = weights or load_place_weights()
        self._last: tuple[str, HybridRelation, Sequence[Field], list[tuple[CellPlace, float]]] | None = None

    def propose(self, question: str, asked: QuestionTable, tried: Sequence[Attempt]) -> Proposal | None:
        """Return the query for the likeliest place that was not asked for yet."""
        seen = {each.suql for each in tried}
        fields, ranked = self._rank_places(question, asked.relation)
        for spot, chance in ranked:
            suql = write_query(question, spot, fields, asked.relation)
            if suql not in seen:
                return Proposal(suql, chance)
        return None

    def _rank_places(
        self, question: str, relation: HybridRelation
    ) -> tuple[Sequence[Field], list[tuple[CellPlace, float]]]:
        """Return the columns and the ranked places; those of the last question are kept for its further queries."""
        last = self._last  # questions may be asked from several threads
        if last is None or last[0] != question or last[1] is not relation:
            evidence = Evidence(question, relation)
            last = self._last = (question, relation, evidence.fields, rank_spots(evidence, self._weights))
        return last[2], last[3]


def write_query(question: str, spot: CellPlace, fields: Sequence[Field], relation: HybridRelation) -> str:
    """Return the query for one place: its row named by the first cells that tell it from all others."""
    field = fields[spot.column]
    shown = f"answer({identifier(field.info)}, {string_literal(question)})" if spot.info else identifier(field.name)
    where = " AND ".join(_equals(relation, name, spot.row) for name in _key(fields, spot, relation))
    return f"SELECT {shown} FROM {identifier(relation.name)} WHERE {where} LIMIT 1"


def _key(fields: Sequence[Field], spot: CellPlace, relation: HybridRelation) -> list[str]:
    """Return columns whose values together stand in that row only, or in the fewest rows that any do."""
    columns = {field.name: relation.arrow.column(field.name).to_pylist() for field in fields}
    names = [
        f.name
        for i, f in enumerate(fields)
        if columns[f.name][spot.row] is not None and (spot.info or i != spot.column)
    ]
    alike = set(range(relation.arrow.num_rows))
    chosen: list[str] = []
    while len(alike) > 1 and names:
        held = {n: {r for r in alike if columns[n][r] == columns[n][spot.row]} for n in names}
        best = min(names, key=lambda n: len(held[n]))
        if held[best] == alike:
            break
        chosen.append(best)
        names.remove(best)
        alike = held[best]
    return chosen or names[:1] or [fields[spot.column].name]


def _equals(relation: HybridRelation, name: str, row: int) -> str:
    column = relation.arrow.column(name)
    value = column[row].as_py()
    if isinstance(value, bool | int | float):
        return f"{identifier(name)} = {value}"
    text = string_literal(str(value))
    cast = (
        "" if name not in relation.spelled else f"::{next(c.type for c in relation.report.columns if c.name == name)}"
    )
    return f"{identifier(name)} = {text}{cast}"


MOST_TABLES = 6
"""Tables that are looked into."""

TABLE_FEATURES = ("rank", "best_place", "pairs", "triples")
"""What describes a table beside a question: its place in the ranking, how well its best place fits (the linear score of
`places.json`), and the share of the question's runs of two and of three words in the row that has most of them."""


@cache
def load_table_weights() -> Mapping[str, float]:
    """Return the weights that `experiments/hybridqa/fit_tables.py` fitted."""
    text = (files("almanaq_bench.hybridqa") / "tables.json").read_text(encoding="utf-8")
    return {name: float(weight) for name, weight in json.loads(text).items()}


def table_features(question: str, relation: HybridRelation, rank: int) -> list[float]:
    """Return the numbers that describe the table at a rank (1 is the best), as TABLE_FEATURES names them."""
    evidence = Evidence(question, relation)
    best = max((score for _, score in score_spots(evidence, load_place_weights())), default=0.0)
    return [-math.log(rank), best, evidence.best_row("row_pairs"), evidence.best_row("row_triples")]


def choose_table(question: str, relations: Sequence[HybridRelation]) -> int:
    """Return the place of the table to ask, of at least one, in the order of their ranking."""
    if len(relations) == 1:
        return 0
    order = [load_table_weights()[name] for name in TABLE_FEATURES]
    described = (table_features(question, relation, rank) for rank, relation in enumerate(relations[:MOST_TABLES], 1))
    scores = [sum(w * f for w, f in zip(order, features, strict=True)) for features in described]
    return scores.index(max(scores))


_ATTEMPTS = 2
_LONGEST = 2000
_SHORT_WORDS = 6
_SENTENCE = re.compile(
    r"[.;!?]\s|[()\[\]]|,(?!\s?\d)|\b(?:is|was|were|are|which|who|that|or|about|over|nearly|approximately)\b",
    re.IGNORECASE,
)
"""What a value has that is more than a name, a number or a date: a remark, a place after a comma, an alternative."""


def prompt_versions() -> Mapping[str, str]:
    """Return the hashes of the prompt files, by name."""
    return {name: bench_prompt_version(name) for name in ("write", "short_answer")}


class PromptedProposer:
    """Writes each query anew, shown what became of the ones before (no-result recovery).

    Args:
        model: completes the prompt `write`.
    """

    name = "prompted"

    def __init__(self, model: LanguageModel) -> None:
        self._model = model

    def propose(self, question: str, asked: QuestionTable, tried: Sequence[Attempt]) -> Proposal | None:
        """Return the model's query, None when it gives one that was tried before."""
        reply = _ask(self._model, self.prompt(question, asked, tried), lambda value: isinstance(value.get("suql"), str))
        suql = str(reply["suql"]).strip().rstrip(";").strip()
        return Proposal(suql) if suql and suql not in {each.suql for each in tried} else None

    def prompt(self, question: str, asked: QuestionTable, tried: Sequence[Attempt]) -> Prompt:
        """Return the request that `propose` sends."""
        values = {
            "dialect": dialect_notes(asked.catalog.dialect).name,
            "schema": schema_text(asked.catalog),
            "question": question[:_LONGEST],
            "tried": tried,
            "rows": whole_table(asked.relation),
        }
        return bench_prompt("write", values)


class PromptedShortener:
    """Cuts the value of one of the rows to a short answer; a single short value is one already, and costs no call.

    Args:
        model: completes the prompt `short_answer`.
    """

    name = "prompted"

    def __init__(self, model: LanguageModel) -> None:
        self._model = model

    def shorten(self, question: str, rows: Sequence[FoundRow], asked: QuestionTable) -> str:  # noqa: ARG002
        """Return the short answer, "" where the model finds none in the rows."""
        values = {row.value for row in rows}
        if len(values) == 1 and is_short(rows[0].value):
            return rows[0].value
        prompt = shorten_prompt(question, rows)
        reply = _ask(self._model, prompt, lambda value: isinstance(value.get("answer", 0), str | None))
        return (reply["answer"] or "").strip()


def is_short(value: str) -> bool:
    """Return whether a value needs no shortening: a name, a number or a date rather than a sentence."""
    return len(value.split()) <= _SHORT_WORDS and _SENTENCE.search(value) is None


def shorten_prompt(question: str, rows: Sequence[FoundRow]) -> Prompt:
    """Return the request that chooses among rows, and cuts the value of one to a short answer."""
    shown: list[Mapping[str, object]] = []
    for row in rows:
        inputs: dict[str, object] = {"value": row.value[:_LONGEST]}
        inputs |= {"cells": row.cells} if row.cells else {}
        shown.append(inputs | ({"quotes": row.quotes} if row.quotes else {}))
    return bench_prompt("short_answer", {"question": question[:_LONGEST], "rows": shown})


def _ask(model: LanguageModel, prompt: Prompt, is_good: Callable[[Mapping[str, Any]], bool]) -> Mapping[str, Any]:
    """Return the JSON object that a model replies, asked once more when it cannot be read."""
    text = ""
    for _ in range(_ATTEMPTS):
        text = complete(model, prompt).text
        match = re.search(r"\{.*\}", text, re.DOTALL)
        try:
            value = json.loads(match[0]) if match else None
        except ValueError:
            value = None
        if isinstance(value, dict) and is_good(value):
            return value
        forget_reply(model, prompt)
    raise ModelCallError(
        f"{model.name} gave no readable reply to the prompt {prompt.name!r} in {_ATTEMPTS} tries "
        f"(the last began {text[:60]!r})"
    )
