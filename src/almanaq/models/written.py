"""JSON written piece by piece: a request is the same as the one before it but for its document."""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import lru_cache
from json.encoder import encode_basestring_ascii

_MOST = 64
_kept: dict[tuple[int, bool], tuple[Mapping[str, object], str]] = {}

quoted = encode_basestring_ascii
"""Gives a text as json.dumps writes it."""
quoted_once = lru_cache(maxsize=_MOST)(encode_basestring_ascii)
"""The same, kept for texts that come in many requests."""


def written(value: Mapping[str, object], *, sort_keys: bool = False) -> str:
    """Return what json.dumps writes of a schema; kept for the same object, which must not be changed afterwards."""
    place = id(value), sort_keys
    found = _kept.get(place)
    # The object is kept with its text, so that no other one can take its place in memory.
    if found is not None and found[0] is value:
        return found[1]
    text = json.dumps(value, sort_keys=sort_keys)
    if len(_kept) >= _MOST:
        _kept.clear()
    _kept[place] = value, text
    return text
