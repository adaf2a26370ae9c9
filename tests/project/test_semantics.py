"""Every rule that is cited by its number stands in docs/semantics.md."""

from __future__ import annotations

import re

RULE = re.compile(r"^(\d+)\. ", re.MULTILINE)
CITED = re.compile(r"\bsemantics (\d+)(?:–(\d+))?")


def test_the_rules_are_numbered_from_one_without_a_gap(root):
    numbers = [int(n) for n in RULE.findall((root / "docs" / "semantics.md").read_text("utf-8"))]
    assert numbers == list(range(1, len(numbers) + 1))


def test_every_cited_rule_is_there(root):
    rules = set(map(int, RULE.findall((root / "docs" / "semantics.md").read_text("utf-8"))))
    files = [*(root / "src").rglob("*.py"), *(root / "tests").rglob("*.py"), *(root / "docs").rglob("*.md")]
    cited = {
        (str(file.relative_to(root)), int(number))
        for file in files
        for match in CITED.finditer(file.read_text("utf-8"))
        for number in match.groups()
        if number is not None
    }
    assert len(cited) > 20
    assert {place for place in cited if place[1] not in rules} == set()
