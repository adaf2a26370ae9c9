"""The installed script itself, started from nothing: exit codes and streams are those of the other contract tests."""

from __future__ import annotations

import json

import pytest


def test_it_runs_a_query(installed, places, conforms):
    run = installed("sql", "SELECT name FROM places WHERE id = 2", "--db", places, "--format", "json")
    assert (run.returncode, run.stderr) == (0, "")
    record = json.loads(run.stdout)
    conforms("sql", record)
    assert record["rows"] == [["Brio"]]


def test_it_fails_and_refuses(installed, places, refused):
    refused(installed("sql", "SELECT nmae FROM places", "--db", places), 1, '"nmae"', "'name'")
    refused(installed("sql", "SELECT 1"), 2, "--db")


@pytest.mark.sampled(4)
@pytest.mark.slow
@pytest.mark.parametrize(
    "arguments",
    [
        ("--version",),
        ("sql", "SELECT nothing FROM places", "--db", "places"),
        ("ask", "Which Italian restaurants are in Palo Alto?", "--db", "sample:restaurants"),
        ("schema", "places"),
    ],
)
def test_it_does_what_a_fork_of_the_warm_process_does(installed, almanaq, places, arguments):
    """The other tests rest on this."""
    one, other = installed(*arguments), almanaq(*arguments)
    assert (one.returncode, timeless(one.stdout), one.stderr) == (
        other.returncode, timeless(other.stdout), other.stderr,
    )  # fmt: skip


def timeless(text: str) -> str:
    """Leave out the line that says how long a query took."""
    return "\n".join(line for line in text.splitlines() if "text call" not in line)
