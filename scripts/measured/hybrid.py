"""HybridQA."""

from __future__ import annotations

import json
from typing import Any

from measured.results import EXPERIMENTS, markdown

WAYS = {
    "report_gold": "gold",
    "report_open_cells": "the best of 2,141 by `hybrid` over titles, header and cells",
    "report_open_first": "the best by `bm25` over these and the passages",
    "report_open": "chosen among the six best by `bm25` over these and the passages",
}
"""The runs, and with which table each asks."""


def hybridqa() -> str:
    """HybridQA with `local` on the half that nothing was fitted on: with the gold table, and one found among all."""
    rows = []
    for name, table in WAYS.items():
        found = _found(name)
        lost = found["measures"]["lost_retrieval"]
        right = "–" if name == "report_gold" else f"{100 * (1 - lost / found['questions']):.1f}"
        calls = str(found["text_calls_per_question"])
        rows.append((table, str(found["questions"]), right, *_scores(found["measures"], ""), calls))
    head = ("table", "questions", "right table or answer", "exact match", "F1", "substring", "calls per question")
    return markdown(head, rows)


def hybridqa_places() -> str:
    """HybridQA by where the answers lie and by the number of places."""
    found = _found("report_gold")
    parts = {"table": "cells", "passage": "articles", "mixed": "both", "nowhere": "neither (computed)"}
    parts |= {f"{number}_places": f"{number} places" for number in ("0", "1", "2", "3+")}
    rows = [
        (words, str(found["asked"][part]), *_scores(found["measures"], f"_{part}")) for part, words in parts.items()
    ]
    return markdown(("answers in", "questions", "exact match", "F1", "substring"), rows)


def hybridqa_stages() -> str:
    """HybridQA: how many answers each stage lost."""
    rows = []
    for name, table in WAYS.items():
        found = _found(name)
        lost = [round(count) for stage, count in found["measures"].items() if stage.startswith("lost_")]
        rows.append((table, str(found["questions"] - sum(lost)), *map(str, lost)))
    return markdown(("table", "right", "retrieval", "parse", "link", "text call", "cast", "format"), rows)


def hybridqa_sixty() -> str:
    """The sixty queries by type: answers reached in the first run and now, and calls per question."""
    first, now = (json.loads((EXPERIMENTS / "hybridqa" / f"sixty{part}.json").read_text()) for part in ("_first", ""))
    notes = json.loads((EXPERIMENTS / "hybridqa" / "sixty_notes.json").read_text())["notes"]
    faulty = {question for question, (kind, _) in notes.items() if kind == "label"}
    rows = []
    for kind, counts in now["by_type"].items():
        own = [r for r in now["queries"] if kind in (r["type"], "all") and r["question"] not in faulty]
        sound = f"{sum(r['reached'] for r in own)} / {sum(bool(r['substring']) for r in own)} of {len(own)}"
        reached = (str(first["by_type"][kind]["reached"]), str(counts["reached"]), str(counts["substring"]), sound)
        rows.append((kind, str(counts["queries"]), *reached, str(counts["calls_per_question"])))
    head = (
        "type",
        "queries",
        "reached at first",
        "reached",
        "or substring",
        "where the gold is sound: reached / or substring",
        "calls",
    )
    return markdown(head, rows)


def _found(name: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((EXPERIMENTS / "hybridqa" / f"{name}.json").read_text())
    return found


def _scores(measures: dict[str, float], part: str) -> tuple[str, ...]:
    return tuple(f"{100 * measures[name + part]:.1f}" for name in ("exact_match", "f1", "mutual_substring"))


TABLES = {
    "hybridqa": hybridqa,
    "hybridqa-places": hybridqa_places,
    "hybridqa-stages": hybridqa_stages,
    "hybridqa-sixty": hybridqa_sixty,
}
