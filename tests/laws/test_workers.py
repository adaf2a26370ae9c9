"""A process of the nightly run that dies costs the run one seed, which is told."""

from __future__ import annotations

import contextlib
import itertools
import os
import signal
import time

import pytest

from .check import Outcome
from .workers import DIED, outcomes


def deadly(seed: int) -> Outcome:
    if seed == 2:
        os.kill(os.getpid(), signal.SIGKILL)
    if seed == 5:
        time.sleep(60)
    if seed == 7:
        raise LookupError("no such thing")
    return Outcome(seed, None)


@pytest.mark.nightly
@pytest.mark.slow
def test_a_seed_that_ends_or_holds_its_process_is_told_and_the_rest_go_on() -> None:
    with contextlib.closing(outcomes(deadly, 0, 2, patience=2)) as found:
        first = list(itertools.islice(found, 25))
    assert [outcome.seed for outcome in first] == list(range(25))
    failed = {f.seed: (f.kind, f.message) for outcome in first if (f := outcome.failure) is not None}
    assert failed == {
        2: (DIED, "SIGKILL (perhaps out of memory)"),
        5: (DIED, "it said nothing for 2 s"),
        7: ("the referee failed", "LookupError: no such thing"),
    }
