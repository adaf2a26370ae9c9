"""docs/compiler.md shows the plan as it is, and names every rule."""

from __future__ import annotations

import os
import re
from pathlib import Path

import almanaq
from almanaq.suql.optimizer import QUERY_RULES, RULES
from almanaq.testing import FunctionModel

FILE = Path(__file__).parents[2] / "docs" / "compiler.md"
MARKED = re.compile(r"(<!-- explain:begin -->\n).*?(<!-- explain:end -->)", re.S)


def plan_of(query: str) -> str:
    """Return what EXPLAIN VERBOSE says, of each rule only the lines that it changed."""
    with almanaq.connect("sample:restaurants", model=FunctionModel(lambda *_: None), cache=False) as con:
        explained = con.explain(query, verbose=True)
    lines, last = [], set[str]()
    for name, text in explained.steps:
        new = [line for line in text.splitlines() if line not in last]
        lines += [f"after {name}:", *(f"    {line}" for line in new or ["(nothing to do)"])]
        last = set(text.splitlines())
    stages = str(explained).split("\n\n")[-1]
    return "\n".join([*lines, "", stages])


def test_the_plan_in_the_document() -> None:
    """Set ALMANAQ_WRITE_GOLDEN=1 to write it anew after a wanted change."""
    text = FILE.read_text(encoding="utf-8")
    query = re.search(r'--verbose "\n(.*?)"\n', text, re.S)
    assert query is not None
    written = MARKED.sub(lambda m: f"{m[1]}```text\n{plan_of(query[1])}\n```\n{m[2]}", text)
    if os.environ.get("ALMANAQ_WRITE_GOLDEN"):
        FILE.write_text(written, encoding="utf-8")
        text = written
    assert text == written


def test_every_rule_is_named() -> None:
    text = FILE.read_text(encoding="utf-8")
    for rule in (*QUERY_RULES, *RULES):
        assert f"| `{rule.__name__}` |" in text
