"""Conversations by handles that the server mints: the protocol has no sessions to hang them on."""

from __future__ import annotations

import secrets
import threading
from collections import OrderedDict
from collections.abc import Sequence
from typing import TYPE_CHECKING

from almanaq.errors import UsageError

if TYPE_CHECKING:
    from almanaq.agent.history import Turn

_MOST, _MOST_TURNS = 200, 50


class Conversations:
    """The turns of each conversation; the least recently used are forgotten."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._turns: OrderedDict[str, tuple[Turn, ...]] = OrderedDict()

    def turns(self, handle: str | None) -> tuple[Turn, ...]:
        """Return the turns so far, the oldest first; none for a conversation that begins.

        Raises:
            UsageError: there is no such conversation (any more).
        """
        if handle is None:
            return ()
        with self._lock:
            if handle not in self._turns:
                raise UsageError("there is no such conversation (any more): leave `conversation` out to begin another")
            self._turns.move_to_end(handle)
            return self._turns[handle]

    def keep(self, handle: str | None, turns: Sequence[Turn]) -> str:
        """Keep the turns of a conversation; give its handle."""
        handle = handle or secrets.token_urlsafe(12)
        with self._lock:
            self._turns[handle] = tuple(turns)[-_MOST_TURNS:]
            self._turns.move_to_end(handle)
            while len(self._turns) > _MOST:
                self._turns.popitem(last=False)
        return handle
