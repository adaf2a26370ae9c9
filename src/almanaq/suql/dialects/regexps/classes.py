"""Classes of characters as PostgreSQL's locales have them, in the categories of Unicode that RE2 knows."""

from __future__ import annotations

import unicodedata
from functools import cache

from almanaq.suql.dialects.regexps.tree import Chars

Ranges = tuple[tuple[int, int], ...]

_BEYOND = 0x20000


def _ranges(text: str) -> Ranges:
    ends = [piece.split("-") for piece in text.split()]
    return tuple((int(pair[0], 16), int(pair[-1], 16)) for pair in ends)


_MARKS = _ranges(
    """345 5b0-5bd 5bf 5c1-5c2 5c4-5c5 5c7 610-61a 64b-657 659-65f 670 6d6-6dc 6e1-6e8 6ed 711-73f 7a6-7b0 816-817
    81b-82c 8d4-8df 8e3-8e9 8f0-93b 93e-94c 94e-94f 955-963 981-983 9be-9cc 9d7-9e3 a01-a03 a3e-a4c a51-a75 a81-a83
    abe-acc ae2-ae3 afa-afc b01-b03 b3e-b4c b56-b63 b82-bcc bd7 c00-c03 c3e-c4c c55-c63 c81-c83 cbe-ccc cd5-d03 d3e-d4c
    d57 d62-d63 d81-d83 dcf-df3 e31-e3a e4d eb1-eb9 ebb-ebc ecd f71-f81 f8d-fbc 102b-1036 1038 103b-103e 1056-109d
    1712-1713 1732-1733 1752-1773 17b6-17c8 1885-1938 1a17-1a1b 1a55-1a5e 1a61-1a74 1abf-1ac0 1acc-1b04 1b35-1b43
    1b80-1ba9 1bac-1bad 1be7-1bf1 1c24-1c36 1de7-1df4 24b6-24e9 2de0-2dff a674-a67b a69e-a69f a802 a80b-a827 a880-a8c3
    a8c5 a8ff-a92a a947-a952 a980-a983 a9b4-a9bf a9e5-aa4d aa7b-aabe aaeb-aaef aaf5 abe3-abea fb1e 10376-1037a
    10a01-10a0f 10d24-10d27 10eab-10eac 11000-11045 11073-11074 11082-110b8 110c2 11100-11132 11145-11146 11180-111bf
    111ce-111cf 1122c-11234 11237 1123e 112df-112e8 11300-11303 1133e-1134c 11357-11363 11435-11441 11443-11445
    114b0-114c1 115af-115be 115dc-1163e 11640 116ab-116b5 1171d-1172a 1182c-11838 11930-1193c 11940-11942 119d1-119df
    119e4-11a0a 11a35-11a3e 11a51-11a97 11c2f-11c3e 11c92-11d41 11d43 11d47-11d96 11ef3-11ef6 16f4f-16f92 16ff0-16ff1
    1bc9e 1e000-1e02a 1e947 1f130-1f149 1f150-1f169 1f170-1f189"""
)
"""Vowel signs and the like that are letters to PostgreSQL; between them stand letters alone."""
_UPPER = _ranges("1c5 1c8 1cb 1f2 1f88-1f8f 1f98-1f9f 1fa8-1faf 1fbc 1fcc 1ffc 2160-216f 24b6-24cf 1f130-1f149")
_LOWER = _ranges(
    """aa ba 1c5 1c8 1cb 1f2 2b0-2b8 2c0-2c1 2e0-2e4 345 37a 1d2c-1dbf 2071 207f 2090-209c 2170-217f 24d0-24e9 2c7c-2c7d
    a69c-a69d a770 a7f8-a7f9 ab5c-ab5f 10780 10783-107ba"""
)
_CLASSES: dict[str, tuple[tuple[str, ...], Ranges]] = {
    "alpha": (("L", "Nl"), _MARKS),
    "alnum": (("L", "Nl", "Nd"), _MARKS),
    "word": (("L", "Nl", "Nd"), (*_MARKS, (0x5F, 0x5F))),
    "upper": (("Lu",), _UPPER),
    "lower": (("Ll",), _LOWER),
    "digit": ((), ((0x30, 0x39),)),
    "xdigit": ((), ((0x30, 0x39), (0x41, 0x46), (0x61, 0x66))),
    "space": ((), _ranges("9-d 20 1680 2000-2006 2008-200a 2028-2029 205f 3000")),
    "blank": ((), ((9, 9), (32, 32))),
    "cntrl": (("Cc",), ((0x2028, 0x2029),)),
    "punct": (("P", "S", "No", "Me"), _ranges("a0 2007 202f e0001 e0020-e007f e0100-e01ef")),
    "ascii": ((), ((1, 127),)),
}
"""Class -> categories, and ranges besides. What is neither a letter, nor a sign to see, is left to the locale."""
NAMES = frozenset(_CLASSES)


def content(name: str) -> tuple[tuple[str, ...], Ranges]:
    """Return the categories and the ranges of a class."""
    categories, ranges = _CLASSES[name]
    return categories, (*ranges, *_other_signs()) if name == "punct" else ranges


@cache
def _other_signs() -> Ranges:
    """Return the accents, and signs that join others, that are no letters: they are punctuation to PostgreSQL."""
    found: list[tuple[int, int]] = []
    for point in range(_BEYOND):
        if unicodedata.category(chr(point)) in ("Mn", "Mc", "Cf") and not any(a <= point <= b for a, b in _MARKS):
            joined = found and found[-1][1] == point - 1
            found.append((found.pop()[0] if joined else point, point))
    return tuple(found)


@cache
def _in_class(name: str, point: int) -> bool:
    categories, ranges = content(name)
    category = unicodedata.category(chr(point))
    return any(category.startswith(part) for part in categories) or any(a <= point <= b for a, b in ranges)


def holds(chars: Chars, point: int) -> bool:
    """Tell whether a character, by its code point, is one of some."""
    found = any(a <= point <= b for a, b in chars.ranges) or any(_in_class(name, point) for name in chars.classes)
    return found != chars.negated


def cases(point: int) -> tuple[int, ...]:
    """Return a character small and large, each where it is one character."""
    char = chr(point)
    lower = "i" if char == "İ" else char.lower() if len(char.lower()) == 1 else char
    upper = next((text for text in (char.upper(), char.title()) if len(text) == 1), char)
    return tuple(sorted({ord(lower), ord(upper)}))


_SAMPLES = (
    "aAkKsSzZ059_ \t\n\v\r.,;:-+'\"/\\<>=$@#éÉßẞſıİǅʰªⅧⅷⓐⒶ中の한٠²½…—’“”€©™😀\u0301\u0345\u0903\u094d\u200d\u2028\u3000"
    "\xa0\x85\x01\x7f\xad\ue000\ufe0f\u0378"
)


@cache
def samples(*sets: Chars) -> tuple[int, ...]:
    """Return code points of which each combination of the sets, and being in none, has one."""
    points = {ord(char) for char in _SAMPLES}
    for low, high in {pair for chars in sets for pair in chars.ranges}:
        points |= {max(low - 1, 1), low, high, min(high + 1, LAST_SAMPLE)}
        points |= set(range(low, min(high, low + 512)))
    signatures: dict[tuple[bool, ...], int] = {}
    for point in sorted(points):
        if not 0xD800 <= point <= 0xDFFF:
            signatures.setdefault(tuple(holds(chars, point) for chars in sets), point)
    return tuple(signatures.values())


LAST_SAMPLE = 0x10FFFF
