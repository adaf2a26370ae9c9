"""Text from data, made safe to show in a terminal: what would steer it is written out."""

from __future__ import annotations

import re

# C0 and DEL but for tab and newline, C1, what marks, overrides or isolates the direction of text, halves of characters.
STEERING = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069\ud800-\udfff]")
"""A character that moves the cursor, colours, rings, turns what follows around, or cannot be written at all."""


def visible(text: str) -> str:
    r"""Return the text with each character that steers a terminal as its escape, `\x1b`; tabs and newlines stay."""
    return STEERING.sub(_escape, text)


def visible_json(text: str) -> str:
    r"""Return JSON with each character that steers a terminal as JSON writes it, `\u009b`: it stays the same value."""
    return STEERING.sub(lambda found: f"\\u{ord(found.group()):04x}", text)


def _escape(found: re.Match[str]) -> str:
    code = ord(found.group())
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}"
