"""How well the model `local` reads: HybridQA's questions, given the cell or passage that holds the answer.

    python experiments/local/hybridqa_reader.py --data-dir DIR [--out experiments/local/hybridqa_reader.json]

The document is the first one that the gold answer was traced to. Exact match and F1 in per cent, in the published
normal form, beside a baseline that gives the whole document back. The span ranker is fitted to the development half
(fit_spans.py), and not to the report half. "Answered elsewhere" is the share of questions that get an answer
from a passage of another question: the right reply there is "no information".
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from hybridqa import Example, exact, f1, hybridqa_examples

from almanaq.models.extractive import LocalReader
from almanaq.models.protocols import TextCall


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--data-dir", type=Path, required=True)
    arguments.add_argument("--out", type=Path)
    given = arguments.parse_args()
    examples = hybridqa_examples(given.data_dir)
    halves = {"development": True, "report": False}
    report: dict[str, Any] = {
        "command": "python experiments/local/hybridqa_reader.py --data-dir DIR",
        "model": "local",
        **{name: measure([e for e in examples if e.development is half]) for name, half in halves.items()},
        "both": measure(examples),
    }
    text = json.dumps(report, indent=2)
    print(text)
    if given.out is not None:
        given.out.write_text(text + "\n", encoding="utf-8")


def measure(examples: Sequence[Example]) -> dict[str, Any]:
    """Return the figures over all questions and over those that only a passage answers."""
    start = time.perf_counter()
    found = {
        name: {"local": _score(chosen, read), "whole document": _score(chosen, lambda _, document: document)}
        for name, chosen in (("all", examples), ("passage only", [e for e in examples if e.passage_only]))
    }
    passages = [e for e in examples if e.passage_only]
    strange = [read(e.question, passages[(i + 17) % len(passages)].document) for i, e in enumerate(passages)]
    calls = 2 * len(examples) + len(strange)
    return {
        **found,
        "answered elsewhere": round(sum(map(bool, strange)) / len(strange), 3),
        "milliseconds per call": round(1000 * (time.perf_counter() - start) / calls, 1),
    }


def _score(examples: Sequence[Example], reader: Callable[[str, str], str]) -> dict[str, float]:
    said = [(reader(e.question, e.document), e.answer) for e in examples]
    return {
        "questions": len(said),
        "exact match": round(100 * sum(exact(a, b) for a, b in said) / len(said), 1),
        "f1": round(100 * sum(f1(a, b) for a, b in said) / len(said), 1),
        "answered": round(sum(bool(a) for a, _ in said) / len(said), 3),
    }


def read(question: str, document: str) -> str:
    """Return what `local` answers, "" for no information."""
    return LocalReader().evaluate(TextCall("answer", (document,), question)).value or ""


if __name__ == "__main__":
    main()
