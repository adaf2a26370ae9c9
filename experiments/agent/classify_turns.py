"""How well the local classifier tells turns apart: macro F1 over a set of labelled turns (see README.md).

python experiments/agent/classify_turns.py [--half dev|held-out|second-dev|paraphrases|independent] [--errors] [--write]
"""

from __future__ import annotations

import argparse
import json
import tomllib
from pathlib import Path
from typing import Literal

from contexts import BEFORE, SOURCES
from halves import Half, half

import almanaq
from almanaq.agent.history import NO_DATA
from almanaq.agent.local import LocalDialogue

HERE = Path(__file__).parent
FILES = {
    "second-dev": "turns_independent.toml",
    "paraphrases": "turns_paraphrases.toml",
    "independent": "turns_independent_2.toml",
}
UNSEEN = ("held-out", "independent")
Turns = Half | Literal["second-dev", "paraphrases", "independent"]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--half", choices=("dev", "held-out", *FILES), default="dev")
    parser.add_argument("--errors", action="store_true", help="print what was told wrongly (not of unseen turns)")
    parser.add_argument("--write", action="store_true", help="write the result to classify_turns.json")
    arguments = parser.parse_args()
    results = score(arguments.half, errors=arguments.errors)
    print(json.dumps(results, indent=2))
    if arguments.write:
        path = HERE / "classify_turns.json"
        kept = (
            json.loads(path.read_text()) if path.exists() else {"command": "python experiments/agent/classify_turns.py"}
        )
        path.write_text(json.dumps(kept | {arguments.half: results}, indent=2) + "\n")


def score(which: Turns, *, errors: bool = False) -> dict[str, object]:
    """Return accuracy, macro F1 and the F1 of each label, and how often "needs data" is told rightly."""
    labelled = _labelled(which)
    dialogues = {name: _dialogue(source) for name, source in SOURCES.items()}
    told: list[tuple[str, str]] = []
    for label, turns in labelled.items():
        for context, words in turns:
            history = () if context.endswith("0") else (BEFORE[context[0]],)
            dialogue, catalog = dialogues[context[0]]
            found = dialogue.classify(words, catalog, history)
            told.append((label, found))
            if errors and which not in UNSEEN and found != label:
                print(f"{label:8} told as {found:8} {context:3} {words}")
    f1 = {label: _f1(told, label) for label in labelled}
    needs = sum((a in NO_DATA) == (b in NO_DATA) for a, b in told)
    return {
        "turns": len(told),
        "accuracy": round(sum(a == b for a, b in told) / len(told), 4),
        "needs_data_accuracy": round(needs / len(told), 4),
        "macro_f1": round(sum(f1.values()) / len(f1), 4),
        "f1": {label: round(value, 4) for label, value in f1.items()},
    }


def _labelled(which: Turns) -> dict[str, list[list[str]]]:
    if which in FILES:
        return tomllib.loads((HERE / FILES[which]).read_text(encoding="utf-8"))
    labelled = tomllib.loads((HERE / "turns.toml").read_text(encoding="utf-8"))
    return {label: half(turns, lambda turn: turn[1], which) for label, turns in labelled.items()}


def _dialogue(source: object) -> tuple[LocalDialogue, object]:
    connection = almanaq.connect(source)
    return LocalDialogue(connection.engine), connection.catalog


def _f1(told: list[tuple[str, str]], label: str) -> float:
    right = sum(a == b == label for a, b in told)
    wrong = sum((a == label) != (b == label) for a, b in told)
    return 2 * right / (2 * right + wrong) if right else 0.0


if __name__ == "__main__":
    main()
