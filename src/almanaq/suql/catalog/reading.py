"""What reading the catalog of any engine has in common: names, comments, samples, and the kinds that values suggest."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

from sqlglot import exp, parse_one

from almanaq.errors import UsageError
from almanaq.suql.catalog.relations import ROW_COLUMN, Column, ColumnKind, Relation
from almanaq.suql.syntax.nodes import aliased, derived, quoted
from almanaq.text.sql_literals import string_literal
from almanaq.values import MISSING

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
    texts = {
        words_of(c.name): c.name
        for c in reversed(relation.columns)
        if c.type in ("text", "varchar", "char") and not c.array and c.kind is not ColumnKind.FREE_TEXT
    }
    own = words_of(relation.name.rpartition(".")[2])
    single = (*own[:-1], singular(own[-1])) if own else ()
    called = [each for each in (own, single) if each]
    named = [(*each, last) for each in called for last in ("name", "title")]
    for wanted in (*_WHOLE, *named, *called, *_PARTLY, *_LAST):
        addressed = wanted == ("title",) and ("first", "name") in texts  # "Ms" names nobody
        if wanted in texts and not addressed:
            return texts[wanted]
    return ""


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


def holds_value(text: str) -> bool:
    """Return whether a text is more than a mark for "no value", such as NA."""
    return text.strip().casefold() not in MISSING


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
    texts = [text for text in values if holds_value(text)]
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


SAMPLE_ROWS = 1000
"""Rows from the beginning of a relation that samples and inference look at: cheap on a relation of any size."""
_VALUES_ROWS = 100_000
_DIGITS = 19
"""A row's number has fewer."""
_SHOWN_SAMPLES, _SHOWN_CHARACTERS = 5, 80
_MARK = re.compile(r"\b(FREE_TEXT|ENUM)\b(?:\[\])?[\s:;,.\u2013-]*")


def relation_names(places: Sequence[tuple[str, str]], path: Sequence[str] = ()) -> dict[tuple[str, str], str]:
    """Return each (schema, table) its name in queries.

    It is the table's where no other schema has it, or where its schema is the first of `path` that has it, as the
    database would find it; else schema.table.
    """
    schemas: dict[str, set[str]] = defaultdict(set)
    for schema, table in places:
        schemas[table.casefold()].add(schema)
    bare = {name: next((s for s in path if s in found), None) for name, found in schemas.items()}
    return {(s, t): t if len(schemas[t.casefold()]) == 1 or bare[t.casefold()] == s else f"{s}.{t}" for s, t in places}


def declared_column(name: str, type_: str, *, array: bool, values: tuple[str, ...], comment: str) -> Column:
    """Return a column with the kind that its type or its comment declares (FREE_TEXT or ENUM, in capitals)."""
    marks = {match[1] for match in _MARK.finditer(comment)}
    kind = ColumnKind.ENUM if values else ColumnKind.STRUCTURED
    if type_ == "text" and marks:
        kind = ColumnKind.FREE_TEXT if "FREE_TEXT" in marks else ColumnKind.ENUM
    description = _MARK.sub("", comment, count=1).strip()
    return Column(name, type_, kind, array, values, description=description, ordered=bool(values))


def written_name(parts: Iterable[str], dialect: str) -> str:
    return ".".join(exp.to_identifier(part, quoted=True).sql(dialect) for part in parts)


def written_place(relation: Relation, dialect: str) -> str:
    place = written_name(relation.location, dialect)
    return f"({relation.definition}) AS {written_name(['part'], dialect)}" if relation.definition else place


def narrow(table: exp.Table, relation: Relation, dialect: str, *, row: bool = False) -> None:
    """Put a subquery of what queries may read in the place of a relation that holds more.

    It has the columns of the catalog alone: neither the relation's row nor a natural join knows others.
    """
    shown: list[exp.Expr] = [
        exp.column(quoted(column.name)) for column in relation.columns if column.name != ROW_COLUMN
    ]
    if row:
        shown.append(aliased(parse_one(relation.row_source, read="postgres"), ROW_COLUMN))
    part: exp.Expr = exp.Table(**{name: table.args.get(name) for name in ("this", "db", "catalog")})
    if relation.definition:
        part = derived(_definition(relation.definition, dialect).copy(), "part")
    inner = exp.From(this=part)
    kept = {name: value for name, value in table.args.items() if name not in ("this", "db", "catalog")}
    table.replace(exp.Subquery(this=exp.Select(expressions=shown, from_=inner), **kept))


@lru_cache(maxsize=256)
def _definition(sql: str, dialect: str) -> exp.Expr:
    return parse_one(sql, read=dialect)


def distinct_values(relation: Relation, column: Column, limit: int, dialect: str, *, whole: bool = False) -> str:
    """Return the SQL of the values of a column, of the elements of an array, the most frequent first, as `v`.

    Of a relation that is large, or may be, the rows at its beginning are taken, unless the `whole` is wanted.
    """
    value, place = written_name([column.name], dialect), written_place(relation, dialect)
    if not whole and (relation.rows is None or relation.rows > _VALUES_ROWS):
        place = f"(SELECT {value} FROM {place} LIMIT {_VALUES_ROWS}) AS beginning"
    if column.array:
        place, value = f"(SELECT unnest({value}) AS e FROM {place}) AS elements", "e"
    text = exp.cast(exp.to_column(value, dialect=dialect), "text").sql(dialect)
    return (
        f"SELECT {text} AS v FROM {place} WHERE {value} IS NOT NULL "
        f"GROUP BY 1 ORDER BY count(*) DESC, 1 LIMIT {int(limit)}"
    )


def flatten(values: Iterable[Any]) -> Iterator[str]:
    """Yield the non-null values, the elements of arrays among them."""
    for value in values:
        if isinstance(value, list):
            yield from (v for v in value if v is not None)
        elif value is not None:
            yield value


def shown_samples(values: Iterable[str]) -> tuple[str, ...]:
    """Return a few distinct values, cut to a length that a listing can show."""
    shown: dict[str, None] = {}
    for value in values:
        if value.strip():
            shown[value if len(value) <= _SHOWN_CHARACTERS else value[: _SHOWN_CHARACTERS - 1] + "…"] = None
        if len(shown) == _SHOWN_SAMPLES:
            break
    return tuple(shown)


def cell_at(relation: Relation, column: str, row: str, dialect: str) -> str:
    """Return the SELECT of a cell in the row that the evidence of a table without a key names: by number or address."""
    found = relation.column(column)
    named = relation.row_source or relation.row_id
    place = written_place(relation, dialect)
    if relation.definition and relation.row_source:
        place = f"(SELECT *, {named} AS number FROM {place}) AS numbered"
        named = "rowid" if relation.numbered else named
    if found is None or named is None:
        raise UsageError(f"rows of {relation.name} have no numbers: name the row by columns")
    number = row.removeprefix("rowid ")
    if named == "rowid" and not (number.isascii() and number.isdecimal() and len(number) < _DIGITS):
        raise UsageError(f"{row!r} is no row of {relation.name}: give the key as evidence has it")
    name = written_name([found.name], dialect)
    shown = name if found.array else f"CAST({name} AS TEXT)"
    address = "number" if relation.definition else "rowid"
    condition = f"{address} = {number}" if named == "rowid" else f"{named} = {string_literal(row)}"
    return f"SELECT {shown} AS cell FROM {place} WHERE {condition} LIMIT 1"
