"""Which encoding of one byte a letter a text has that is not UTF-8, by the letters that it then is made of."""

from __future__ import annotations

import re
from pathlib import Path

_SAMPLE_BYTES = 1 << 17
_WORD = re.compile(r"[^\W\d_]{3,}")
_HIGH = re.compile(rb"[\x80-\xff]+")
_LEAST_RUN, _FOREIGN = 3, 0.6
"""In a language of Latin letters those beyond ASCII stand alone or in pairs, but for few."""
_REGULAR = 0.9
_ENCODINGS = (
    ("cp1251", "Windows-1251", re.compile(r"[А-яЁёІіЇїЄєҐґЎў]+")),
    ("koi8-u", "KOI8", re.compile(r"[А-яЁёІіЇїЄєҐґ]+")),
    ("cp1253", "Windows-1253", re.compile(r"[Ά-ώ]+")),
)
_UNKNOWN = (
    "not UTF-8, and its letters are not Latin: it is read as Windows-1252 and probably wrong; say `encoding = …` in "
    'the schema file, as "shift_jis" or "euc_jp" (Japanese), "gb18030" or "big5" (Chinese), "euc_kr" (Korean)'
)


def foreign_encoding(path: Path) -> tuple[str, str]:
    """Return Python's name of the encoding of a text that is not in Latin letters, and what it is called.

    Both are "" where its letters may be Latin, and the first is "" where it is of no encoding that is known here.
    """
    with path.open("rb") as file:
        sample = file.read(_SAMPLE_BYTES)
    high = [len(run) for run in _HIGH.findall(sample)]
    if sum(run for run in high if run >= _LEAST_RUN) < _FOREIGN * sum(high) or not high:
        return "", ""
    for encoding, called, letters in _ENCODINGS:
        words = [word for word in _WORD.findall(sample.decode(encoding, "replace")) if not word.isascii()]
        regular = sum(letters.fullmatch(word) is not None and _is_cased(word) for word in words)
        if words and regular >= _REGULAR * len(words):
            return encoding, called
    return "", _UNKNOWN


def _is_cased(word: str) -> bool:
    """Tell whether capitals stand where they do in words: at the beginning, or everywhere."""
    return word[1:].islower() or word.isupper()
