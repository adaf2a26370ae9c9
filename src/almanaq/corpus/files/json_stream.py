"""JSON read element by element: an array of any length needs no more room than its longest element and what is kept."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from sys import intern
from typing import Any, TextIO

from almanaq.corpus.read_cancellation import raise_if_cancelled

_CHUNK = 1 << 18
_LOOK = 1 << 10
"""How many elements are read between two looks whether the reading is to end."""
_SPACE = re.compile(r"[ \t\r\n]*")
_CLOSED, _BEHIND = frozenset('"]}'), frozenset(" \t\r\n,]}")
"""A value that ends with one of these, or has one of those behind it, is whole; "1e" may go on."""


class JSONStream:
    """A JSON text, of which as much is held as the value that is read needs.

    Raises:
        ValueError: what is asked for is not there, as the text is no JSON.
    """

    def __init__(self, file: TextIO) -> None:
        self._file = file
        self._text, self._at, self._before = "", 0, 0
        self._ended = False
        self._decoder = json.JSONDecoder()

    def peek(self) -> str:
        """Return the next sign that is no space; "" at the end."""
        while True:
            found = _SPACE.match(self._text, self._at)
            self._at = found.end() if found else self._at
            if self._at < len(self._text) or not self._more():
                return self._text[self._at : self._at + 1]

    def value(self) -> Any:
        """Return the next value, whole."""
        self.peek()
        while True:
            try:
                value, end = self._decoder.raw_decode(self._text, self._at)
            except ValueError as error:
                if self._more():
                    continue
                where = self._before + (error.pos if isinstance(error, json.JSONDecodeError) else self._at)
                why = error.msg if isinstance(error, json.JSONDecodeError) else str(error)
                raise ValueError(f"{why}: char {where:,}") from error
            if self._text[end - 1] in _CLOSED or self._text[end : end + 1] in _BEHIND or not self._more():
                self._at = end
                return value

    def elements(self) -> Iterator[Any]:
        """Yield the elements of the array that comes next."""
        for number, _ in enumerate(self._parts("[", "]")):
            if number % _LOOK == 0:
                raise_if_cancelled()
            value = self.value()
            # Each value comes with keys of its own, as long as they may be.
            yield {intern(key): inner for key, inner in value.items()} if type(value) is dict else value

    def members(self) -> Iterator[str]:
        """Yield the keys of the object that comes next; the caller takes the value of each before the next."""
        for _ in self._parts("{", "}"):
            key = self.value()
            if not isinstance(key, str):
                raise ValueError(f"a key is no string: char {self._place():,}")
            self._take(":")
            yield key

    def finish(self) -> None:
        """See that nothing follows."""
        if self.peek():
            raise ValueError(f"Extra data: char {self._place():,}")

    def _parts(self, opens: str, closes: str) -> Iterator[None]:
        """Stop at each part of what stands between two signs, with commas between the parts."""
        self._take(opens)
        if self.peek() == closes:
            self._at += 1
            return
        while True:
            yield
            if self.peek() == closes:
                self._at += 1
                return
            self._take(",")

    def _take(self, sign: str) -> None:
        if self.peek() != sign:
            raise ValueError(f"{sign!r} is missing: char {self._place():,}")
        self._at += 1

    def _place(self) -> int:
        return self._before + self._at

    def _more(self) -> bool:
        """Read on, each time as much as is held; False at the end."""
        if self._ended:
            return False
        raise_if_cancelled()
        self._text, self._before, kept = self._text[self._at :], self._before + self._at, len(self._text) - self._at
        self._at = 0
        read = self._file.read(max(_CHUNK, kept))
        self._text += read
        self._ended = not read
        return bool(read)
