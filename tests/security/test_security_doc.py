"""docs/security.md names tests and results that are there, and its figures are those of the results."""

from __future__ import annotations

import json
import re
from pathlib import Path

TOP = Path(__file__).parents[2]
TEXT = (TOP / "docs/security.md").read_text(encoding="utf-8")


def test_the_tests_it_names_are_there() -> None:
    named = re.findall(r"`(tests/[\w/]+\.py)`", TEXT)
    assert len(named) > 10
    assert [name for name in named if not (TOP / name).is_file()] == []


def test_the_results_it_names_passed_and_are_those_of_its_commands() -> None:
    named = re.findall(r"`python (benchmarks/\S+)( [^`]*)?` \| \[\w+\.json\]\(\.\./([\w/.]+)\)", TEXT)
    assert len(named) >= 4
    for script, arguments, file in named:
        told = json.loads((TOP / file).read_text(encoding="utf-8"))
        told = told.get("result", told)
        assert told["passed"] is True
        assert told.get("command", f"python {script}{arguments}") == f"python {script}{arguments}"


def test_its_figures_are_those_of_the_results() -> None:
    index = json.loads((TOP / "benchmarks/faults/results/index.json").read_text(encoding="utf-8"))
    ended = index["ended"]
    assert f"{index['flips']:,} flipped bits, {ended['refused']} refused, {ended['same']} never read" in TEXT
    faults = json.loads((TOP / "benchmarks/models/results/hostile.json").read_text(encoding="utf-8"))["result"][
        "faults"
    ]
    assert f"{faults} faults" in TEXT
