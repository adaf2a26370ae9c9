"""How a server looks for garbage: seldom, and not through what it has loaded, for every turn is halted meanwhile."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager

_SELDOM = (10_000, 5, 5)
"""Of 4,000 objects that a turn makes: the young are looked through every few turns, all of them every sixty or so. With
turns under way at once most outlive the first looks, so that rarer ones would hold their garbage: 100 MB of it."""


@contextmanager
def seldom_collected() -> Iterator[None]:
    """Leave what there is now out of every search within the block: 130,000 objects, which take 80 ms each time."""
    before = gc.get_threshold()
    gc.collect()
    gc.freeze()
    gc.set_threshold(*_SELDOM)
    try:
        yield
    finally:
        gc.set_threshold(*before)
        gc.unfreeze()
