"""The kind of a column that nobody declared, guessed from its type and its values; `almanaq schema` prints it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from almanaq.suql.catalog.relations import Column, ColumnKind

PROSE_WORDS = 12
"""Text with at least so many words per value is prose …"""
SENTENCE_WORDS = 7
"""… and so is text with so many words whose values mostly end as sentences do: addresses and titles rarely do."""
REMARK_WORDS, _REMARKS, _REMARKS_DISTINCT, _LOWER = 4, 5, 0.9, 0.85
"""… and so are remarks of so many words, "hates the rain but loves children": at least five of them, nearly all
different, nearly all in lower case after the first word, with the small words of sentences."""
DISTINCT_SHARE = 0.5
"""Prose differs from row to row: at least this share of the sampled values is distinct."""
ENUM_VALUES = 50
"""An inferred ENUM has at most so many values, each of them short, and each used five times on average."""
_ENDS = (".", "!", "?", "…", '."', ".”", "。", "！", "？")
_JOINED = re.compile("[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af\u0e00-\u0e7f]")
_MARKS = ".,;:!?\"'()“”"
_SMALL_SHARE, _LISTED = 0.15, 0.5
_SMALL = frozenset(
    """
    the a an and or of to in on at for with by from is was were are be been it its i we you he she they this that not
    but as so had has have my our their very there when which who
    der die das und oder ein eine ist war mit von zu im nicht auf wir ich es den dem sehr für
    le la les un une et ou de du des est était dans pour pas nous je il elle que qui très
    el los las y o en con es era para por no que una muy se lo il di che per non è un della sono
    o os e em com é foi não uma que het een en van op met voor niet was zijn
    """.split()
)
"""Small words of the languages that most text is in."""
_ENUM_REPEATS = 5
_ENUM_CHARACTERS = 40


@dataclass(frozen=True, slots=True)
class ColumnSample:
    """What inference looks at.

    Attributes:
        values: non-null values of some rows, in row order; of an array, its elements.
        distinct: every distinct value of the whole column, the commonest first, where few were found; None: unknown.
        total: non-null values in the whole column, when `distinct` is given.
    """

    values: tuple[str, ...]
    distinct: tuple[str, ...] | None = None
    total: int = 0


def infer_kind(column: Column, sample: ColumnSample) -> Column:
    """Return the column with the kind that its values suggest; only undeclared columns of text are changed."""
    if column.kind is not ColumnKind.STRUCTURED or column.type != "text":
        return column
    if is_prose(sample.values):
        return replace(column, kind=ColumnKind.FREE_TEXT)
    if sample.distinct is not None and is_enumerable(sample.distinct, sample.total):
        return replace(column, kind=ColumnKind.ENUM, values=sample.distinct)
    return column


def is_prose(values: Iterable[str]) -> bool:
    """Tell whether values read like prose: long, mostly distinct, and made of the words that sentences are made of.

    Long titles, addresses and lists of keywords are none: they hold few of the small words, and most of their words
    are capitalized, numbers or set apart by commas.
    """
    texts = [text for text in values if text.strip()]
    if not texts or len(set(texts)) < DISTINCT_SHARE * len(texts):
        return False
    words = sum(map(_count_words, texts)) / len(texts)
    if words < SENTENCE_WORDS:
        return words >= REMARK_WORDS and _are_remarks(texts)
    ended = sum(text.rstrip().endswith(_ENDS) for text in texts) * 2 >= len(texts)
    return (ended or words >= PROSE_WORDS) and (ended or _reads_on(texts))


def _are_remarks(texts: Sequence[str]) -> bool:
    """Tell whether short texts are what somebody says of something: names, titles and codes are capitalized or have
    digits, labels come again and again.
    """
    if len(texts) < _REMARKS or len(set(texts)) < _REMARKS_DISTINCT * len(texts):
        return False
    later = [word for text in texts for word in text.split()[1:]]
    plain = sum(word[:1].islower() for word in later)
    listed = sum(word.endswith((",", ";", "|")) for word in later)
    small = sum(word.strip(_MARKS).lower() in _SMALL for text in texts for word in text.split())
    spoken = small >= _SMALL_SHARE * sum(len(text.split()) for text in texts)
    return plain >= _LOWER * len(later) and listed < _LOWER * len(texts) / 2 and spoken


def _count_words(text: str) -> int:
    """Count words; of scripts that set none apart, two characters are taken for one."""
    apart = len(text.split())
    joined = len(_JOINED.findall(text)) // 2
    return max(apart, joined)


def _reads_on(texts: Sequence[str]) -> bool:
    """Tell whether texts that do not end as sentences do are made like them."""
    words = [word for text in texts for word in text.split()]
    if sum(len(_JOINED.findall(text)) for text in texts) > len(words):
        return True
    small = sum(word.strip(_MARKS).lower() in _SMALL for word in words)
    lower = sum(word[:1].islower() for word in words)
    listed = sum(word.endswith((",", ";", "|")) for word in words)
    return listed < _LISTED * len(words) and (small >= _SMALL_SHARE * len(words) or lower * 2 >= len(words))


def is_enumerable(distinct: tuple[str, ...], total: int) -> bool:
    """Tell whether the distinct values of a column are few, short and often repeated."""
    few = 2 <= len(distinct) <= ENUM_VALUES and len(distinct) * _ENUM_REPEATS <= total
    return few and all(0 < len(value) <= _ENUM_CHARACTERS for value in distinct)
