"""Documents as rows: text, Markdown, web pages, mail, PDF, Word and PowerPoint. The one module that reads them.

Nothing in a document is run or fetched: no script or macro, no image, no entity from elsewhere. A table inside a
document is read as text, its cells separated by bars.
"""

from __future__ import annotations

import email
import email.policy
import email.utils
import importlib
import logging
import mailbox
import os
import re
import tomllib
import unicodedata
import zipfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass, field
from datetime import date, datetime
from email.message import EmailMessage
from functools import lru_cache, partial
from pathlib import Path
from typing import Any

from almanaq.corpus.files.listing import FoundFile, not_opened
from almanaq.corpus.files.sniff import find_encoding
from almanaq.corpus.read_cancellation import raise_if_cancelled
from almanaq.errors import AlmanaqError, MissingExtraError, SourceError, first_line

_OWN = ("path", "name", "title", "modified")
_MOST_UNPACKED = 300 << 20
_OLD_OFFICE = b"\xd0\xcf\x11\xe0"
_PAGES_SHOWN = 5
# Of so many letters of a PDF, texts that are read well have fewer that no script has, or that fonts number alone.
_LETTERS_SEEN, _UNNAMED = 20_000, 0.02
_BLANK_LINES = re.compile(r"\n[ \t]*\n\s*")
_HEADING = re.compile(r"^# +(.+?)[ #]*$", re.MULTILINE)
_TABLE_LINES = 5
_FRONT = re.compile(r"(---|\+\+\+)[ \t]*\n(.*?)^\1[ \t]*(?:\n|\Z)", re.DOTALL | re.MULTILINE)
_DROPPED = ("script", "style", "noscript", "template", "svg", "iframe", "object")
_BLOCKS = frozenset(
    """
    address article aside blockquote body br dd details div dl dt fieldset figcaption figure footer form h1 h2 h3 h4 h5
    h6 header hr li main nav ol p pre section summary table td th tr ul
    """.split()
)
_CELLS = frozenset(["td", "th"])

Fields = dict[str, Any]


@dataclass(frozen=True, slots=True)
class _Document:
    text: list[str]  # paragraphs, pages or slides; a page without text is "", so that the others keep their numbers
    title: str = ""
    fields: Fields = field(default_factory=dict)  # what its header says, by the names of columns
    notes: tuple[str, ...] = ()
    part: str = ""  # the number of a message, which tells it apart from others in the file


@dataclass(frozen=True, slots=True)
class DocumentTable:
    """Documents as columns of equal length: path, name, title, modified, those of headers, text."""

    columns: Mapping[str, list[Any]]
    notes: tuple[str, ...]  # which files were not opened or have no text, for people


def read_documents(found: FoundFile, limit: int | None = None) -> DocumentTable:
    """Return the documents of a source as a table, at most `limit`; moments are those of the writer's clock."""
    assert found.root is not None
    rows: list[tuple[Fields, Fields, list[str]]] = []
    start, notes = len(str(found.root)) + 1, []
    for path in found.paths:
        raise_if_cancelled()
        if limit is not None and len(rows) >= limit:
            break
        place = str(path)[start:].replace(os.sep, "/")
        try:
            modified = datetime.fromtimestamp(os.stat(path).st_mtime).replace(microsecond=0)
            for read in _READERS[path.suffix.lower()](path):
                called = f"{place}#{read.part}" if read.part else place
                own = {"path": called, "name": path.name, "title": read.title or None, "modified": modified}
                # A database can hold no NUL and no halves of characters.
                text = [each.encode("utf-8", "replace").decode("utf-8").replace("\0", "") for each in read.text]
                rows.append((own, read.fields, text))
                notes += [f"{place}: {note}" for note in read.notes]
        except (AlmanaqError, OSError) as error:
            raise_if_cancelled()
            notes.append(not_opened(place, str(error)))
        except Exception as error:  # readers raise all kinds of errors on broken files; one must not hide the others
            raise_if_cancelled()
            # What a failed look-up in their own structures says helps nobody here.
            why = "" if isinstance(error, LookupError | AttributeError | TypeError) else f" ({first_line(error)})"
            notes.append(not_opened(place, f"it is damaged{why}: save it again with the program that made it"))
    if not rows:
        raise SourceError("\n".join(notes))
    return DocumentTable(_as_columns(rows[:limit]), tuple(notes))


def _as_columns(rows: list[tuple[Fields, Fields, list[str]]]) -> dict[str, list[Any]]:
    """Return rows as columns; fields of headers are matched whatever their case."""
    columns: dict[str, list[Any]] = {name: [own[name] for own, _, _ in rows] for name in _OWN}
    spelled: dict[str, str] = {}
    for at, (_, fields, _) in enumerate(rows):
        for name, value in fields.items():
            free = f"{name}_2" if name.casefold() in (*_OWN, "text") else name
            column = spelled.setdefault(free.casefold(), free)
            columns.setdefault(column, [None] * len(rows))[at] = value
    for column, values in columns.items():
        if column not in _OWN and any(isinstance(value, list) for value in values):
            columns[column] = [value if value is None or isinstance(value, list) else [value] for value in values]
    return {**columns, "text": [text for _, _, text in rows]}


def _split_paragraphs(text: str) -> list[str]:
    return [part for each in _BLANK_LINES.split(text) if (part := each.strip())]


def _read_plain(path: Path) -> tuple[str, tuple[str, ...]]:
    """Return a file's text with plain line ends, and what to say of its encoding."""
    notes: tuple[str, ...] = ()
    raw = path.read_bytes()
    try:
        text = raw.decode("utf-8-sig")
    except UnicodeDecodeError:
        encoding, errors, notes = find_encoding(path, "")
        text = raw.decode(encoding, errors).removeprefix("\ufeff")
    if "\0" in text:
        raise SourceError("it is not text, although its name says so")
    return text.replace("\r\n", "\n").replace("\r", "\n"), tuple(note.lstrip(": ") for note in notes)


def _read_text(path: Path) -> Iterator[_Document]:
    text, notes = _read_plain(path)
    if not text.strip():
        notes += ("it holds no text",)
    first, *others = text.splitlines()[:_TABLE_LINES] or [""]
    counts = [first.count(mark) for mark in "|\t;" if all(line.count(mark) == first.count(mark) for line in others)]
    if max(counts, default=0) > 1 and others:
        notes += ("its lines look like the rows of a table, and it is read as text: name it .csv to open it as one",)
    yield _Document(_split_paragraphs(text), notes=notes)


def _read_markdown(path: Path) -> Iterator[_Document]:
    text, notes = _read_plain(path)
    fields: Fields = {}
    if front := _FRONT.match(text):
        try:
            fields = _read_front_matter(front[1], front[2])
        except (ValueError, RecursionError) as error:
            notes = (*notes, f"its front matter is kept as text, since it cannot be read ({first_line(error)})")
        text = text[front.end() :] if fields else text
    heading = _HEADING.search(text)
    title = fields.pop("title", None) or (heading[1] if heading else "")
    yield _Document(_split_paragraphs(text), str(title), fields, notes)


def _import_reader(module: str, package: str, what: str) -> Any:
    """Return an optional module; raises MissingExtraError, which names the extra, where it is not installed."""
    try:
        return importlib.import_module(module)
    except ImportError as error:
        raise MissingExtraError(package, "documents", what) from error


def _read_front_matter(fence: str, text: str) -> Fields:
    """Return the front matter of a Markdown file, YAML or TOML: texts, numbers, days, lists; deeper values as YAML."""
    yaml = _import_reader("yaml", "PyYAML", "the front matter of a Markdown file")
    try:
        read = tomllib.loads(text) if fence == "+++" else yaml.load(text, getattr(yaml, "CSafeLoader", yaml.SafeLoader))
    except yaml.YAMLError as error:
        raise ValueError(str(error)) from error

    def plain(value: Any) -> Any:
        if isinstance(value, datetime):
            return value.replace(tzinfo=None)
        if isinstance(value, list) and all(isinstance(each, str | int | float | bool | date) for each in value):
            return [str(each) for each in value]
        # Dumped by YAML, values that are repeated by reference do not grow.
        return yaml.safe_dump(value).strip() if isinstance(value, list | dict) else value

    return {str(name): plain(value) for name, value in read.items()} if isinstance(read, dict) else {}


def _read_html(path: Path) -> Iterator[_Document]:
    notes: tuple[str, ...] = ()
    raw = path.read_bytes()
    try:
        raw.decode("utf-8")
        encoding = "utf-8"
    except UnicodeDecodeError:
        encoding = ""
        if b"charset" not in raw[:4096].lower():
            encoding, _, notes = find_encoding(path, "")
    yield _parse_html(raw, encoding, tuple(note.lstrip(": ") for note in notes))


def _parse_html(raw: bytes, encoding: str, notes: tuple[str, ...] = ()) -> _Document:
    """Return the text of a web page by its blocks; what a browser does not show is left out."""
    etree = _import_reader("lxml.etree", "lxml", "a web page")
    parser = etree.HTMLParser(encoding=encoding.removesuffix("-sig") or None, no_network=True, huge_tree=True)
    root = etree.fromstring(raw, parser) if raw.strip() else None
    if root is None:
        return _Document([], notes=(*notes, "it holds no text"))
    if cut := [fault.message for fault in parser.error_log if fault.level == etree.ErrorLevels.FATAL]:
        notes = (*notes, f"the page is not read to its end ({cut[0]})")
    etree.strip_elements(root, *_DROPPED, etree.Comment, etree.ProcessingInstruction, with_tail=False)
    title = " ".join("".join(root.xpath("string(//title)")).split())
    author = root.xpath("string(//meta[@name='author']/@content)").strip()
    body = root.find("body")
    text: list[str] = []
    parts: list[str] = []

    def end_block(name: str) -> None:
        if name in _CELLS:
            parts.append(" | ")
        elif name in _BLOCKS and (block := " ".join("".join(parts).split()).strip(" |")):
            text.append(block)
        if name in _BLOCKS and name not in _CELLS:
            parts.clear()

    for event, element in etree.iterwalk(root if body is None else body, events=("start", "end")):
        name = str(element.tag)
        if event == "start":
            end_block("" if name in _CELLS else name)
            parts.append(element.text or "")
        else:
            end_block(name)
            parts.append(element.tail or "")
    end_block("body")
    return _Document(text, title, {"author": author} if author else {}, notes)


_parse_header = lru_cache(maxsize=256)(email.policy.default.header_fetch_parse)


class _CachingPolicy(email.policy.EmailPolicy):
    """The standard policy, which by itself parses a header anew at each look: half of the time that a mail takes."""

    def header_fetch_parse(self, name: str, value: str) -> Any:
        return _parse_header(name, value)


_read_message: Any = partial(email.message_from_binary_file, policy=_CachingPolicy())


def is_mail(path: Path) -> bool:
    return path.suffix.lower() in (".eml", ".mbox")


def _read_mail(path: Path) -> Iterator[_Document]:
    with path.open("rb") as file:
        yield _convert_message(_read_message(file))


def _read_mailbox(path: Path) -> Iterator[_Document]:
    count = 0
    with closing(mailbox.mbox(path, factory=_read_message, create=False)) as box:
        for count, message in enumerate(box, start=1):
            raise_if_cancelled()
            yield _convert_message(message, str(count))
    if not count:
        raise SourceError("it holds no messages: a mailbox begins with a line 'From …'")


def _convert_message(message: Any, part: str = "") -> _Document:
    fields: Fields = {name: found for name in ("from", "to", "cc", "subject") if (found := _read_header(message, name))}
    notes: tuple[str, ...] = ()
    if written := _read_header(message, "date"):
        try:
            fields["date"] = email.utils.parsedate_to_datetime(written).replace(tzinfo=None)
        except ValueError:
            notes = (f"its date {written!r} cannot be read and is NULL",)
    attached = [each.get_filename() or each.get_content_type() for each in message.iter_attachments()]
    if attached:
        fields["attachments"] = attached
    body = message.get_body(("plain", "html"))
    if body is None:
        text = []
    elif body.get_content_subtype() == "html":
        text = _parse_html(_read_content(body).encode("utf-8", "replace"), "utf-8").text
    else:
        text = _split_paragraphs(_read_content(body).replace("\r\n", "\n"))
    where = f"message {part}: " if part else ""
    return _Document(text, fields.get("subject", ""), fields, tuple(where + note for note in notes), part)


def _read_header(message: EmailMessage, name: str) -> str:
    """Return a header as text; a malformed one, on which the standard library fails, as it is written."""
    try:
        value = message[name]
    except (ValueError, LookupError, AttributeError, TypeError):
        value = next((value for key, value in message.raw_items() if key.lower() == name), "")
    return " ".join(str(value or "").split())


def _read_content(part: Any) -> str:
    try:
        return str(part.get_content())
    except LookupError:  # an unknown encoding
        return str(part.get_payload(decode=True).decode("utf-8", "replace"))


def _read_pdf(path: Path) -> Iterator[_Document]:
    pypdf = _import_reader("pypdf", "pypdf", f"the PDF {path.name}")
    logging.getLogger("pypdf").addHandler(logging.NullHandler())  # its remarks on sloppy files help nobody here
    with pypdf.PdfReader(path) as reader:
        if reader.is_encrypted and not reader.decrypt(""):
            raise SourceError("it is encrypted: save it without a password")
        text, notes = [], []
        for page in reader.pages:
            raise_if_cancelled()
            text.append(page.extract_text().strip())
        empty = [str(number) for number, passage in enumerate(text, start=1) if not passage]
        if empty:
            shown = ", ".join(empty[:_PAGES_SHOWN]) + (", …" if len(empty) > _PAGES_SHOWN else "")
            notes.append(
                f"{len(empty):,} of {len(text):,} pages hold no text (page {shown}): if they are scanned, run OCR first"
            )
        letters = "".join(text)[:_LETTERS_SEEN]
        if sum(unicodedata.category(letter) in ("Cn", "Co") for letter in letters) > _UNNAMED * len(letters):
            notes.append("its fonts do not say which letters they draw, and its text is probably wrong: run OCR on it")
        known: Any = reader.metadata or pypdf.DocumentInformation()
        try:
            created = known.creation_date
        except ValueError:
            created = None
            notes.append(f"its date of creation cannot be read: {known.creation_date_raw!r}")
        yield _Document(text, str(known.title or "").strip(), _read_properties(known.author, created), tuple(notes))


def _read_properties(author: Any, created: Any) -> Fields:
    fields: Fields = {"author": str(author).strip()} if author and str(author).strip() else {}
    return fields | ({"created": created.replace(tzinfo=None)} if isinstance(created, datetime) else {})


def _check_office(path: Path) -> None:
    """Raise SourceError for an Office file that is encrypted, of an old format, or too large when it is unpacked."""
    if not zipfile.is_zipfile(path):
        with path.open("rb") as file:
            old = file.read(4) == _OLD_OFFICE
        why = "it is encrypted or in an old format" if old else "it is damaged"
        raise SourceError(f"{why}: save it again, without a password")
    with zipfile.ZipFile(path) as archive:
        size = sum(part.file_size for part in archive.infolist() if part.filename.endswith((".xml", ".rels")))
    if size > _MOST_UNPACKED:
        raise SourceError(f"it holds {size >> 20:,} MB of XML, and documents are read up to {_MOST_UNPACKED >> 20:,}")


def _read_word(path: Path) -> Iterator[_Document]:
    docx = _import_reader("docx", "python-docx", f"the document {path.name}")
    _check_office(path)
    document = docx.Document(str(path))
    text: list[str] = []
    heading = ""
    for block in document.iter_inner_content():
        if hasattr(block, "rows"):
            text += _read_table(block)
            continue
        text += _split_paragraphs(block.text)
        if not heading and block.style is not None and block.style.name in ("Title", "Heading 1"):
            heading = block.text
    known = document.core_properties
    links = [link for link in document.part.rels.values() if link.reltype.endswith(("/footnotes", "/endnotes"))]
    footnotes = any(b"<w:t>" in link.target_part.blob or b"<w:t " in link.target_part.blob for link in links)
    notes = ("its footnotes are not read",) if footnotes else ()
    yield _Document(text, known.title.strip() or heading.strip(), _read_properties(known.author, known.created), notes)


def _read_slides(path: Path) -> Iterator[_Document]:
    pptx = _import_reader("pptx", "python-pptx", f"the presentation {path.name}")
    _check_office(path)
    presentation = pptx.Presentation(str(path))
    text: list[str] = []
    heading = ""
    for slide in presentation.slides:
        raise_if_cancelled()
        parts = [part for shape in slide.shapes for part in _read_shape(shape)]
        if slide.has_notes_slide and slide.notes_slide.notes_text_frame is not None:
            parts += _split_paragraphs(slide.notes_slide.notes_text_frame.text)
        text.append("\n".join(parts))
        heading = heading or (slide.shapes.title.text if slide.shapes.title is not None else "")
    known = presentation.core_properties
    empty = sum(not passage for passage in text)
    note = f"{empty:,} of {len(text):,} slides hold no text; that of charts and pictures is not read"
    notes = (note,) if empty else ()
    yield _Document(text, (known.title or heading).strip(), _read_properties(known.author, known.created), notes)


def _read_shape(shape: Any) -> list[str]:
    if hasattr(shape, "shapes"):  # a group
        return [part for each in shape.shapes for part in _read_shape(each)]
    if shape.has_table:
        return _read_table(shape.table)
    return _split_paragraphs(shape.text_frame.text) if shape.has_text_frame else []


def _read_table(table: Any) -> list[str]:
    rows = [" | ".join(" ".join(cell.text.split()) for cell in row.cells) for row in table.rows]
    return [row for row in rows if row.strip(" |")]


_READERS: dict[str, Callable[[Path], Iterator[_Document]]] = {
    ".txt": _read_text,
    ".md": _read_markdown,
    **dict.fromkeys((".html", ".htm"), _read_html),
    ".eml": _read_mail,
    ".mbox": _read_mailbox,
    ".pdf": _read_pdf,
    ".docx": _read_word,
    ".pptx": _read_slides,
}
