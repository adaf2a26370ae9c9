"""How a delimited file is written, from its beginning: encoding, separator, lines before the table, header."""

from __future__ import annotations

import codecs
import csv
import io
import re
import sys
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from pathlib import Path
from typing import Any, Literal, TypeAlias

from almanaq.corpus.files.shape import count_preamble, join_headers, read_units
from almanaq.corpus.inference import Marks
from almanaq.errors import SourceError
from almanaq.values import MISSING, parse_number, parse_time, parse_timestamp

_SAMPLE_BYTES = 1 << 17
_WORD = re.compile(r"[^\W\d_]{3,}")
_HIGH = re.compile(rb"[\x80-\xff]+")
_LEAST_RUN, _FOREIGN = 3, 0.6  # Latin letters beyond ASCII stand alone or in pairs, but for few
_REGULAR = 0.9
_ENCODINGS = (
    ("cp1251", "Windows-1251", re.compile(r"[А-яЁёІіЇїЄєҐґЎў]+")),
    ("koi8-u", "KOI8", re.compile(r"[А-яЁёІіЇїЄєҐґ]+")),
    ("cp1253", "Windows-1253", re.compile(r"[Ά-ώ]+")),
)
# Letters of one language each, of those that other encodings have other signs for: a text has few of two languages.
_LATIN = {
    "cp1252": ("Windows-1252", ("àâæçèêëïôœùûÿ", "àèìòù", "ãàâêõôçñ", "åæøäöðþ", "õåäöüšž")),
    "cp1250": ("Windows-1250", ("ąćęłńśźż", "čďěňřšťůž", "čďľĺňŕšťžô", "őű", "ăâîşţ", "čćđšž")),
    "iso8859-2": ("ISO 8859-2", ("ąćęłńśźż", "čďěňřšťůž", "čďľĺňŕšťžô", "őű", "ăâîşţ", "čćđšž")),
}
# Signs that stand within a word or before one, as none does, so that they are letters of another encoding.
_TORN = re.compile(r"(?<=[^\W\d_])[¡-¿×÷](?=[^\W\d_])|[©®¦¨¬¯±²³´¶·¸¹¼½¾](?=[^\W\d_])")
_ALSO = {  # the encoding in which the same bytes are most often text, too
    "cp1252": "cp1250", "latin-1": "iso8859-2", "cp1250": "cp1252", "iso8859-2": "cp1252",
    "cp1251": "koi8-u", "koi8-u": "cp1251", "cp1253": "cp1251",
    "euc_jp": "gb18030", "euc_kr": "gb18030", "gb18030": "euc_jp", "big5": "gb18030", "shift_jis": "big5",
}  # fmt: skip
_LEAST_PAIRED, _KANA, _LEAST_HANGUL = 3, 0.2, 8
_MIXED_BYTES = (
    ("shift_jis", "Shift JIS (Japanese)", re.compile(r"[\u3000-\u30ff\u4e00-\u9fff\uff00-\uff5e]")),
    ("big5", "Big5 (Chinese)", re.compile(r"[\u3000-\u3017\u4e00-\u9fff\uff00-\uff5e]")),
    ("gb18030", "GB 18030 (Chinese)", re.compile(r"[\u3000-\u3017\u4e00-\u9fff\uff00-\uff5e]")),
)
_UNKNOWN = (
    "not UTF-8, and its letters are not Latin: it is read as Windows-1252, probably wrongly; set `encoding = …` in "
    'the schema file, as "shift_jis" or "euc_jp" (Japanese), "gb18030" or "big5" (Chinese), "euc_kr" (Korean)'
)

SEPARATORS = (",", ";", "\t", "|")
SPACES = " "  # one or more: as statistics programs write tables
ALONE = "\x1f"  # separates nothing: the file has one column, whose text holds commas here and there
NAMES = {",": "commas", ";": "semicolons", "\t": "tabs", "|": "bars", SPACES: "spaces"}
TYPES = ("text", "boolean", "bigint", "double precision", "date", "timestamp", "time", "interval")
_SAMPLE_ROWS = 300
_CHUNK = 1 << 22
_CONSISTENT, _HALF = 0.9, 0.5
_FEW_CONTROLS, _MOST_CONTROLS = 8, 0.02
_MOST_COLUMNS = 10_000
_LEAST_CUT = 3

Escape: TypeAlias = Literal['"', "\\"]


def foreign_encoding(path: Path) -> tuple[str, str]:
    """Return Python's name of the encoding of a text that is not in Western letters, and what it is called.

    Both are "" where its letters may be Western, the first is where its encoding is unknown.
    """
    with path.open("rb") as file:
        sample = file.read(_SAMPLE_BYTES)
    encoding, share = max(_rate_latin(sample).items(), key=lambda each: each[1])  # the first of equal ones
    if encoding != "cp1252" and share >= _REGULAR:
        return encoding, _LATIN[encoding][0]
    high = [len(run) for run in _HIGH.findall(sample)]
    if sum(run for run in high if run >= _LEAST_RUN) < _FOREIGN * sum(high) or not high:
        return "", ""
    if found := _double_byte_encoding(sample):
        return found
    for encoding, called, letters in _ENCODINGS:
        words = [word for word in _WORD.findall(sample.decode(encoding, "replace")) if not word.isascii()]
        regular = sum(letters.fullmatch(word) is not None and _is_cased(word) for word in words)
        if words and regular >= _REGULAR * len(words):
            return encoding, called
    return "", _UNKNOWN


def _rate_latin(sample: bytes) -> dict[str, float]:
    """Return for each encoding which share of the bytes that encodings differ in are letters of one language."""
    # Other signs count as if they were, unless they stand within words.
    alike = {byte for byte in range(128, 256) if len({bytes([byte]).decode(each, "replace") for each in _LATIN}) == 1}
    unlike = sample.translate(None, bytes(alike))
    rates = {}
    for encoding, (_, alphabets) in _LATIN.items():
        signs = Counter(unlike.decode(encoding, "replace").casefold())
        beyond = {sign: count for sign, count in signs.items() if not sign.isascii()}
        letters = max(sum(count for s, count in beyond.items() if s in alphabet) for alphabet in alphabets)
        others = sum(count for s, count in beyond.items() if not s.isalpha() and (s.isprintable() or s == "\u00a0"))
        torn = len(_TORN.findall(sample.decode(encoding, "replace")))
        rates[encoding] = (letters + others - torn - beyond.get("\ufffd", 0)) / max(1, sum(beyond.values()))
    return rates


def _double_byte_encoding(sample: bytes) -> tuple[str, str] | None:
    """Return the encoding of Chinese, Japanese or Korean text, by which pairs of bytes its signs are.

    In EUC and GB 2312 every sign has two bytes beyond ASCII, so all runs of them are even: those of words of single
    bytes are not. Kana and Hangul have rows of their own, and Shift JIS and Big5 have second bytes in ASCII.
    """
    runs = _HIGH.findall(sample[: sample.rfind(b"\n") + 1] or sample)
    if len(runs) >= _LEAST_PAIRED and all(len(run) % 2 == 0 and min(run) >= 0xA1 for run in runs):
        leads = [lead for run in runs for lead in run[::2]]
        if sum(lead in (0xA4, 0xA5) for lead in leads) >= _KANA * len(leads):
            return "euc_jp", "EUC-JP (Japanese)"
        hangul = max(leads) <= 0xC8 and len(leads) >= _LEAST_HANGUL
        return ("euc_kr", "EUC-KR (Korean)") if hangul else ("gb18030", "GB 18030 (Chinese)")
    for encoding, called, signs in _MIXED_BYTES:
        try:
            text = sample.decode(encoding)
        except UnicodeDecodeError as error:
            if error.start < len(sample) - 2:
                continue
            text = sample[: error.start].decode(encoding)
        beyond = [sign for sign in text if not sign.isascii()]
        if sum(signs.match(sign) is not None for sign in beyond) >= _REGULAR * len(beyond):
            return encoding, called
    return None


def _is_cased(word: str) -> bool:
    """Tell whether capitals stand where they do in words: at the beginning, or everywhere."""
    return word[1:].islower() or word.isupper()


@dataclass(frozen=True, slots=True)
class Hints:
    """What a person said of how a file is written; None or "": nothing."""

    encoding: str = ""
    separator: str = ""
    header: bool | None = None
    names: tuple[str, ...] = ()  # of the columns, in place of column_1 or of what the header says


@dataclass(frozen=True, slots=True)
class ReadOptions:
    hints: Hints = field(default_factory=Hints)
    marks: Marks = field(default_factory=Marks)
    types: Mapping[str, str] = field(default_factory=dict)  # of columns, by their names in lower case


@dataclass(frozen=True, slots=True)
class Dialect:
    encoding: str  # Python's name of it
    separator: str
    errors: str = "strict"  # "replace" where a few bytes are no text in that encoding
    escape: Escape = '"'  # what stands before a quote within quotes: one more, or a backslash
    skip: int = 0  # lines before the table
    header: bool = True  # whether the first row is one of names
    names: tuple[str, ...] = ()  # the first row as written, or names for as many columns as there are
    sample: tuple[tuple[str, ...], ...] = ()  # the first rows of values
    notes: tuple[str, ...] = ()  # what was guessed, for people
    units: tuple[str, ...] = ()  # of the columns, where a row below the header says them

    def as_utf8(self) -> Dialect:
        return replace(self, encoding="utf-8-sig", errors="strict")


def sniff(path: Path, name: str, hints: Hints = Hints()) -> Dialect:
    """Return how a file of delimited text is written; `name` is the file's, whose ending may say the separator."""
    encoding, errors, said = (hints.encoding, "replace", ()) if hints.encoding else find_encoding(path, name)
    notes: list[str] = list(said)
    try:
        text = _read_beginning(path, encoding, errors)
    except LookupError as error:
        raise SourceError(f"{name}: unknown encoding {encoding!r}") from error
    if not text.strip():
        raise SourceError(f"{name} is empty: a CSV file begins with a line of column names")
    # A slip of whoever wrote it leaves few control characters.
    strange = sum(char < " " and char not in "\t\n\r\v\f\x1c\x1d\x1e\x1f" for char in text)
    if strange > max(_FEW_CONTROLS, _MOST_CONTROLS * len(text)):
        raise SourceError(f"{name} is not text, although its name says so: rename it, or leave it out")
    tab = name.lower().split(".")[1:2] in (["tsv"], ["tab"])
    separator = hints.separator or ("\t" if tab else _find_separator(text))
    escape: Escape = '"'
    if '\\"' in text and _is_at_fault(text, separator, '"') and not _is_at_fault(text, separator, "\\"):
        escape = "\\"  # rows can be read only so
    numbered = _number_rows(text, separator, escape)
    rows = [row for _, row in numbered]
    skip = count_preamble(rows, has_header)
    body = rows[skip:]
    header = has_header(body) if hints.header is None else hints.header
    names = _read_names(body) if header else number_columns(max(map(len, body)))
    width = len(names)
    padded = [[*row[:width], *[""] * (width - len(row))] for row in body]
    joined = join_headers(padded) if hints.header is None and not hints.names else None
    head = 0 if joined is None else 1
    names, header = joined or names, header or joined is not None
    units = read_units(padded[head + 1 :]) if header else None
    head += units is not None
    if hints.names and len(hints.names) != width:
        raise SourceError(f"{name} has {width:,} columns, and `names` in the schema file lists {len(hints.names):,}")
    names = hints.names or names
    if width > _MOST_COLUMNS:
        raise SourceError(f"{name} has more than {_MOST_COLUMNS:,} columns: is {separator!r} its separator?")
    if skip:
        notes.append(
            f"{name}: left out {'the first line' if skip == 1 else f'the first {skip} lines'}, above the table"
        )
    above = numbered[skip][0]
    if joined is not None:
        notes.append(f"{name}, lines {above + 1} and {above + 2}: two header rows are joined, as in {joined[-1]!r}")
    if units is not None:
        notes.append(f"{name}, line {above + 1 + head}: gives the units of columns, and is no row")
    if not header and hints.header is None and not hints.names:
        notes.append(
            f"{name}: its first line looks like a row, not like names: it is kept as data, and the columns are called "
            "column_1 and so on; in the schema file, say `names = [...]`, or `header = true` if it is one"
        )
    return Dialect(
        encoding, separator, errors, escape, numbered[skip + head][0], header,
        names, tuple(map(tuple, body[head + header :])), tuple(notes), units or (),
    )  # fmt: skip


def _read_names(rows: Sequence[Sequence[str]]) -> tuple[str, ...]:
    """Return the names of a header; empty ones at its end are none where no row has a value there."""
    # A separator at the end of a line makes an empty field.
    ends = (next((at for at in range(len(row), 0, -1) if row[at - 1].strip()), 0) for row in rows)
    return tuple(rows[0][: max(*ends, 1)] if len(rows) > 1 else rows[0])


def number_columns(width: int) -> tuple[str, ...]:
    return tuple(f"column_{position}" for position in range(1, width + 1))


def find_encoding(path: Path, name: str) -> tuple[str, str, tuple[str, ...]]:
    """Return the encoding of a file, how its errors are met, and what to say of it."""
    with path.open("rb") as file:
        start = file.read(4)
        if start[:2] in (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE):
            return "utf-16", "replace", ()
        more = start + file.read(4096)
        if len(more) > 8 and b"\0" in more:
            even, odd = more[0::2].count(0), more[1::2].count(0)
            if max(even, odd) > len(more) * 0.3:
                return ("utf-16-be" if even > odd else "utf-16-le"), "replace", ()
    good, bad = _count_utf8(path)
    if not bad:
        return "utf-8-sig", "strict", ()
    if good > 10 * bad:
        warning = f"{name}: {bad:,} characters are not UTF-8 and read as \ufffd; save the file as UTF-8"
        return "utf-8-sig", "replace", (warning,)
    foreign, named = foreign_encoding(path)
    if named and not foreign:
        return "cp1252", "replace", (f"{name}: {named}",)
    with path.open("rb") as file:  # bytes that Windows-1252 has no sign for
        western = not any(set(chunk) & {0x81, 0x8D, 0x8F, 0x90, 0x9D} for chunk in iter(lambda: file.read(_CHUNK), b""))
    encoding, called = ("cp1252", "Windows-1252") if western else ("latin-1", "ISO 8859-1")
    if foreign:
        encoding, called = foreign, named
    other = f'`encoding = "{_ALSO[encoding]}"` or another'
    warning = f"{name}: not UTF-8, read as {called}; if letters look wrong, set {other} in the schema file"
    return encoding, "replace" if foreign else "strict", (warning,)


def _count_utf8(path: Path) -> tuple[int, int]:
    """Return how many characters beyond ASCII a file holds as UTF-8, and how many faults; (0, 0) without a fault."""
    try:
        decoder = codecs.getincrementaldecoder("utf-8")()
        with path.open("rb") as file:
            while chunk := file.read(_CHUNK):
                decoder.decode(chunk)
            decoder.decode(b"", final=True)
        return 0, 0
    except UnicodeDecodeError:
        pass
    good = bad = 0
    decoder = codecs.getincrementaldecoder("utf-8")("replace")
    with path.open("rb") as file:
        while chunk := file.read(_CHUNK):
            text = decoder.decode(chunk)
            faults = text.count("\ufffd")
            bad += faults
            good += len(text) - faults - len(text.encode("ascii", "ignore"))
    return good, max(bad, 1)


def _read_beginning(path: Path, encoding: str, errors: str) -> str:
    with path.open("rb") as file:
        raw = file.read(_SAMPLE_BYTES)
        more = bool(file.read(1))
    decoder = codecs.getincrementaldecoder(encoding)(errors)
    text = decoder.decode(raw, final=not more).removeprefix("\ufeff")
    last = max(text.rfind("\n"), text.rfind("\r"))
    return text[: last + 1] if more and last >= 0 else text


def csv_reader(lines: Iterable[str], separator: str, escape: Escape = '"', *, strict: bool = False) -> Any:
    csv.field_size_limit(sys.maxsize if sys.maxsize < 2**31 else 2**31 - 1)  # a cell may hold a whole document
    if separator == SPACES:
        lines = (f"{line.strip()}\n" for line in lines)
        return csv.reader(lines, delimiter=separator, skipinitialspace=True, strict=strict)
    if escape == "\\":
        return csv.reader(lines, delimiter=separator, doublequote=False, escapechar="\\", strict=strict)
    return csv.reader(lines, delimiter=separator, strict=strict)


def _is_at_fault(text: str, separator: str, escape: Escape) -> bool:
    """Tell whether a quote stands in the beginning of a file where none may; its end may be within one."""
    try:
        for _ in csv_reader(io.StringIO(text, newline=""), separator, escape, strict=True):
            pass
    except csv.Error as error:
        return "unexpected end" not in str(error)
    return False


def _number_rows(text: str, separator: str, escape: Escape = '"') -> list[tuple[int, list[str]]]:
    """Return the rows of a beginning of a file, without empty ones, each with the number of lines before it."""
    reader, found, before = csv_reader(io.StringIO(text, newline=""), separator, escape), [], 0
    for row in reader:
        if row and not (len(row) == 1 and row[0].isspace()):
            found.append((before, row))
        if len(found) >= _SAMPLE_ROWS:
            break
        before = reader.line_num
    return found or [(0, [""])]


def _read_rows(text: str, separator: str) -> list[list[str]]:
    return [row for _, row in _number_rows(text, separator)]


def _find_separator(text: str) -> str:
    """Return the separator that cuts most rows into equally many fields, the one of more fields where two do."""
    best, chosen = (0.0, 0), ","
    for separator in SEPARATORS:
        widths = Counter(map(len, _read_rows(text, separator)))
        width, rows = max(widths.items(), key=lambda each: (each[0] > 1, each[1], each[0]))
        share = rows / widths.total()
        if width > 1 and (round(share, 2), width) > best:
            best, chosen = (round(share, 2), width), separator
    if not best[1] and _is_cut_by_spaces(text):
        return SPACES
    cut = _read_rows(text, chosen)
    in_first = len(cut[count_preamble(cut, has_header)]) > 1
    return chosen if in_first or not best[1] or best[0] >= _CONSISTENT else ALONE


def _is_cut_by_spaces(text: str) -> bool:
    """Tell whether spaces cut every row into equally many fields, one of which holds numbers: prose has none."""
    rows = _read_rows(text, SPACES)
    width = len(rows[0])
    if width < 2 or len(rows) < _LEAST_CUT or any(len(row) != width for row in rows):
        return False
    return any(_main_kind([row[i] for row in rows[1:]]) == "number" for i in range(width))


def has_header(rows: Sequence[Sequence[str]]) -> bool:
    """Tell whether the first row holds names: it does unless it is like those below it."""
    first, body = rows[0], rows[1:]
    if any(not cell.strip() for cell in first):
        return True
    kinds = [_kind(cell) for cell in first]
    if not body:
        return set(kinds) != {"number"} and "moment" not in kinds
    if len({cell.strip().casefold() for cell in first}) < len(first) and "text" in kinds and len(body) < 2:
        return True
    columns = [[row[i] for row in body if i < len(row) and row[i].strip()] for i in range(len(first))]
    typed = [_main_kind(column) for column in columns]
    differs = [kind == own for kind, own in zip(kinds, typed, strict=True) if own in ("number", "moment")]
    if differs:
        return not all(differs) or _is_header_of_years(first, kinds)
    again = sum(cell in column for cell, column in zip(first, columns, strict=True))
    return len(body) < 3 or again * 2 <= len(first)


def _is_header_of_years(first: Sequence[str], kinds: Sequence[str]) -> bool:
    """Tell whether the numbers of a first row are years in order, as the columns of a table by year are called."""
    years = [cell.strip() for cell, kind in zip(first, kinds, strict=True) if kind == "number"]
    whole = [int(year) for year in years if year.isdigit() and 1500 <= int(year) <= 2200]
    steps = {after - before for before, after in pairwise(whole)}
    return len(whole) == len(years) > 1 and len(steps) == 1 and 0 < abs(steps.pop()) <= 10


def _main_kind(cells: Sequence[str]) -> str:
    kinds = Counter(_kind(cell) for cell in cells[:200] if cell.strip().casefold() not in MISSING)
    kind, count = kinds.most_common(1)[0] if kinds else ("text", 0)
    share = _HALF if kind == "moment" else _CONSISTENT  # numbers are often mixed with words, days seldom
    return kind if count >= share * kinds.total() else "text"


def _kind(cell: str) -> str:
    if parse_number(cell) is not None:
        return "number"
    return "text" if parse_timestamp(cell) is None and parse_time(cell) is None else "moment"
