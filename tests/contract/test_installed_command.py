"""The installed script itself, started from nothing: exit codes and streams are those of the other contract tests."""

from __future__ import annotations

import pytest


@pytest.mark.slow
@pytest.mark.parametrize("query", ["SELECT name FROM places WHERE id = 2", "SELECT nothing FROM places"])
def test_it_does_what_a_fork_of_the_warm_process_does(installed, almanaq, places, query):
    """The other tests rest on this."""
    one, other = (run("sql", query, "--db", "places") for run in (installed, almanaq))
    assert (one.returncode, timeless(one.stdout), one.stderr) == (
        other.returncode, timeless(other.stdout), other.stderr,
    )  # fmt: skip


def timeless(text: str) -> str:
    """Leave out the line that says how long a query took."""
    return "\n".join(line for line in text.splitlines() if "text call" not in line)
