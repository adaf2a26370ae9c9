"""Conversations, and sources of many databases."""

from __future__ import annotations

import json

from measured.results import EXPERIMENTS, ROOT, markdown


def turns() -> str:
    """How well turns are told apart without a language model."""
    measured = json.loads((EXPERIMENTS / "agent" / "classify_turns.json").read_text())
    halves = [name for name in ("dev", "held-out", "independent") if name in measured]
    rows = [
        (label, *(f"{measured[half][key]:.3f}" for half in halves))
        for label, key in (("macro F1, 11 kinds", "macro_f1"), ("needs data or not", "needs_data_accuracy"))
    ]
    kinds = measured[halves[0]]["f1"]
    rows += [(f"F1 of {kind}", *(f"{measured[half]['f1'][kind]:.3f}" for half in halves)) for kind in kinds]
    return markdown(("", *(f"{half} ({measured[half]['turns']} turns)" for half in halves)), rows)


def turn_times() -> str:
    """How long the agent takes for a turn without a model."""
    measured = json.loads((ROOT / "benchmarks" / "agent" / "results.json").read_text())
    keys = ("again_median_ms", "again_worst_ms", "first_worst_ms", "again_processor_ms", "bound_ms")
    rows = [(f"{size['tables']:,}", *(f"{size[key]:.0f} ms" for key in keys)) for size in measured["sizes"]]
    return markdown(("tables", "median turn", "slowest", "slowest, first time", "processor time", "bound"), rows)


def databases() -> str:
    """Spider's databases as one source: how often the right one is looked in."""
    record = json.loads((EXPERIMENTS / "agent" / "spider_databases.json").read_text())
    rows = [
        ("the database chosen first is the right one", f"{record['first']:.3f}"),
        ("every table of the right query is among those shown to the parser", f"{record['shown']:.3f}"),
        (f"`local`'s query reads the right one ({record['asked_questions']} questions)", f"{record['asked']:.3f}"),
    ]
    head = (f"{record['questions']:,} questions, {record['databases']} databases, {record['tables']} tables", "share")
    return markdown(head, rows)


TABLES = {
    "turns": turns,
    "turn-times": turn_times,
    "databases": databases,
}
