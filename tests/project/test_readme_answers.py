"""What the README asks of the bundled sample is answered rightly by `local`, by its hidden ground truth."""

from __future__ import annotations

import re
import shlex

import pytest

import almanaq
from almanaq.testing import FunctionModel
from almanaq_bench.sample.truth import truth_function

SAMPLE = "sample:restaurants"
BLOCK = re.compile(r"^```(?:sh|python)\n(.*?)^```$", re.DOTALL | re.MULTILINE)
PYTHON = re.compile(r"con\.(sql|ask)\(\"(.+?)\"\)")
LIMIT = re.compile(r" LIMIT \d+$")


def asked(root) -> list[tuple[str, str]]:
    """Return ("ask" or "sql", text) for each question and query that the README runs on the sample."""
    found = []
    for block in BLOCK.findall((root / "README.md").read_text()):
        for line in block.splitlines():
            if line.startswith(("almanaq ask", "almanaq sql")) and "--explain" not in line and SAMPLE in line:
                _, command, text, *_ = shlex.split(line)
                found.append((command, text))
        found += PYTHON.findall(block)
    return found


@pytest.fixture(scope="module")
def local():
    with almanaq.connect(SAMPLE, cache=False) as connection:
        yield connection


@pytest.fixture(scope="module")
def truth():
    with almanaq.connect(SAMPLE, model=FunctionModel(truth_function()), cache=False) as connection:
        yield connection


@pytest.mark.slow
def test_every_row_of_every_example_is_right(root, local, truth):
    examples = asked(root)
    assert len(examples) >= 4
    for command, text in examples:
        reply = local.ask(text) if command == "ask" else local.sql(text)
        query = reply.suql if command == "ask" else text
        limited = LIMIT.search(query) is not None
        right = truth.sql(query if "ORDER BY" in query else LIMIT.sub("", query)).rows
        assert reply.rows, text
        assert set(map(str, reply.rows)) <= set(map(str, right)), text
        assert limited or len(reply.rows) == len(right), text
