"""What nobody declared: the kind of a column by its type and values, and which column names a relation's rows."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from almanaq.suql.catalog.relations import Column, ColumnKind, Relation

_PARTS = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+")
_WHOLE = (("name",), ("title",), ("full", "name"), ("fullname",), ("display", "name"), ("complete", "name"))
_PARTLY = (
    ("first", "name"), ("firstname",), ("given", "name"), ("forename",), ("last", "name"), ("lastname",), ("surname",)
)  # fmt: skip
_LAST = (("label",), ("caption",), ("company",))


def naming_column(relation: Relation) -> str:
    """Return the column whose values name a relation's rows, by its own name; "" where none surely does.

    In order: `name`, `title`, a person's whole name; a column called as the relation is, or with "name" or "title"
    after it (`hotel_name`); a first or last name; at last a label or a company.
    """
    texts = {words_of(c.name): c.name for c in reversed(relation.columns) if _may_name(c)}
    own = words_of(relation.name.rpartition(".")[2])
    single = (*own[:-1], singular(own[-1])) if own else ()
    called = [each for each in (own, single) if each]
    named = [(*each, last) for each in called for last in ("name", "title")]
    for wanted in (*_WHOLE, *named, *called, *_PARTLY, *_LAST):
        if wanted in texts:
            return texts[wanted]
    return ""


def _may_name(column: Column) -> bool:
    return column.type in ("text", "varchar", "char") and not column.array and column.kind is not ColumnKind.FREE_TEXT


def words_of(identifier: str) -> tuple[str, ...]:
    """Return the words of an identifier in lower case: `fullName` and `full_name` are (full, name)."""
    return tuple(part.lower() for part in _PARTS.findall(identifier))


def singular(word: str) -> str:
    """Return a noun in the singular, as far as its ending shows it."""
    if word == "people":
        return "person"
    if word.endswith("ies") and len(word) > 4:
        return word[:-3] + "y"
    return word[:-1] if word.endswith("s") and not word.endswith("ss") else word


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
