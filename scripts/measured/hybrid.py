"""HybridQA."""

from __future__ import annotations

import json
from typing import Any

from measured.results import EXPERIMENTS, markdown


def hybridqa() -> str:
    """HybridQA with `local` on the half that nothing was fitted on: with the gold table, and one found among all."""
    rows = []
    ways = {
        "report_gold": "gold",
        "report_open_cells": "found among 2,141 by `hybrid` over titles, header and cells",
        "report_open": "found by `bm25` over these and the passages",
    }
    for name, tables in ways.items():
        found = json.loads((EXPERIMENTS / "hybridqa" / f"{name}.json").read_text())
        rows.append((tables, *_hybrid_scores(found["all"]), str(found["text_calls_per_question"])))
    head = ("table", "questions", "exact match", "F1", "substring", "calls per question")
    return markdown(head, rows)


def hybridqa_places() -> str:
    """HybridQA by where the answers lie and by the number of places."""
    found = json.loads((EXPERIMENTS / "hybridqa" / "report_gold.json").read_text())
    names = {"table": "cells", "passage": "articles", "mixed": "both", "nowhere": "neither (computed)"}
    rows = [(names[place], *_hybrid_scores(scores)) for place, scores in found["by_place"].items()]
    rows += [(f"{number} places", *_hybrid_scores(scores)) for number, scores in found["by_nodes"].items()]
    return markdown(("answers in", "questions", "exact match", "F1", "substring"), rows)


def hybridqa_stages() -> str:
    """HybridQA: how many answers each stage lost."""
    names = ("gold", "open_cells", "open")
    files = [json.loads((EXPERIMENTS / "hybridqa" / f"report_{name}.json").read_text()) for name in names]
    rows = [(stage, *(str(found["stages"][stage]) for found in files)) for stage in files[0]["stages"]]
    return markdown(("stage", "gold table", "found by cells", "found by cells and passages"), rows)


def hybridqa_sixty() -> str:
    """The sixty queries by type: answers reached in the first run and now, and calls per question."""
    first, now = (json.loads((EXPERIMENTS / "hybridqa" / f"sixty{part}.json").read_text()) for part in ("_first", ""))
    notes = json.loads((EXPERIMENTS / "hybridqa" / "sixty_notes.json").read_text())["notes"]
    faulty = {question for question, (kind, _) in notes.items() if kind == "label"}
    rows = []
    for kind, counts in now["by_type"].items():
        own = [r for r in now["queries"] if kind in (r["type"], "all") and r["question"] not in faulty]
        sound = f"{sum(bool(r['substring']) for r in own)} of {len(own)}"
        reached = (str(first["by_type"][kind]["reached"]), str(counts["reached"]), str(counts["substring"]), sound)
        rows.append((kind, str(counts["queries"]), *reached, str(counts["calls_per_question"])))
    head = ("type", "queries", "reached at first", "reached", "or substring", "of those with sound gold", "calls")
    return markdown(head, rows)


def _hybrid_scores(scores: dict[str, Any]) -> tuple[str, ...]:
    return (str(scores["questions"]), *(f"{scores[name]:.1f}" for name in ("exact_match", "f1", "substring")))


TABLES = {
    "hybridqa": hybridqa,
    "hybridqa-places": hybridqa_places,
    "hybridqa-stages": hybridqa_stages,
    "hybridqa-sixty": hybridqa_sixty,
}
