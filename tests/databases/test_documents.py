"""Folders of documents as one table: what each kind gives, where quotes stand, and what is reported."""

from __future__ import annotations

import datetime
import os
import zipfile
from pathlib import Path
from typing import Any

import pytest

import almanaq
from almanaq.engines.files.table_cache import TableCache
from almanaq.engines.open_source import open_database
from almanaq.errors import SourceError

MAIL = """From: Ann <ann@example.org>
To: bob@example.org
Subject: =?utf-8?q?R=C3=A4der?=
Date: Mon, 3 Jun 2024 00:30:00 +0200
MIME-Version: 1.0
Content-Type: multipart/mixed; boundary=x

--x
Content-Type: text/html; charset=utf-8

<p>The wheels arrived.</p><p>One is damaged.</p>
--x
Content-Disposition: attachment; filename="bill.pdf"
Content-Type: application/pdf

--x--
"""
MARKDOWN = """---
title: Shift report
date: 2024-05-01
tags: [ops, night]
Path: elsewhere
---
# Night shift

The pump in hall two leaks.
"""
PAGE = """<html><head><title>Hours</title><script>alert('x')</script><style>p {}</style></head>
<body><!-- no -->
<h1>When</h1><p>We open at <b>nine</b>.<table><tr><td>Mon</td><td>9&ndash;17</td></tr></table></body>"""
MAILBOX = "From a Mon Jan  1 00:00:00 2024\nFrom: x@y\nSubject: {}\n\nHello {}.\n\n"


def pdf(pages: list[str]) -> bytes:
    """Return a PDF with a line of text on each page; "" is a page without text."""
    objects = ["<< /Type /Catalog /Pages 2 0 R >>", "", "<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>"]
    kids = []
    for text in pages:
        stream = f"BT /F1 12 Tf 72 720 Td ({text}) Tj ET" if text else ""
        objects.append(f"<< /Length {len(stream)} >>\nstream\n{stream}\nendstream")
        font = "/Resources << /Font << /F1 3 0 R >> >>"
        objects.append(f"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 9 9] /Contents {len(objects)} 0 R {font} >>")
        kids.append(f"{len(objects)} 0 R")
    objects[1] = f"<< /Type /Pages /Kids [{' '.join(kids)}] /Count {len(kids)} >>"
    body, places = b"%PDF-1.4\n", []
    for number, text in enumerate(objects, start=1):
        places.append(len(body))
        body += f"{number} 0 obj\n{text}\nendobj\n".encode()
    table = "".join(f"{place:010d} 00000 n \n" for place in places)
    end = f"trailer << /Size {len(objects) + 1} /Root 1 0 R >>\nstartxref\n{len(body)}\n%%EOF\n"
    return body + f"xref\n0 {len(objects) + 1}\n0000000000 65535 f \n{table}{end}".encode()


def encrypted_pdf(path: Path) -> None:
    import pypdf

    writer = pypdf.PdfWriter()
    writer.add_blank_page(9, 9)
    writer.encrypt("secret")
    writer.write(path)


def word(path: Path) -> None:
    import docx

    document = docx.Document()
    document.add_heading("Contract", 0)
    document.add_paragraph("The rent is 900 francs.")
    cells = document.add_table(1, 2).rows[0].cells
    cells[0].text, cells[1].text = "deposit", "1800"
    document.save(str(path))


def slides(path: Path) -> None:
    import pptx

    presentation = pptx.Presentation()
    slide = presentation.slides.add_slide(presentation.slide_layouts[1])
    slide.shapes.title.text, slide.placeholders[1].text = "Plan", "We ship in May."
    presentation.save(str(path))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "office"
    (made / "mail").mkdir(parents=True)
    for name, content in {
        "note.txt": "First.\r\n\r\nSecond,\r\nstill second.",
        "shift.md": MARKDOWN,
        "hours.html": PAGE,
        "mail/ann.eml": MAIL,
        "mail/box.mbox": MAILBOX.format("One", "one") + MAILBOX.format("Two", "two"),
        ".hidden.txt": "no",
    }.items():
        (made / name).write_bytes(content.encode())
    (made / "scan.pdf").write_bytes(pdf(["Rent is due in March.", ""]))
    word(made / "contract.docx")
    slides(made / "plan.pptx")
    return made


def rows(source: Any, columns: str = "path, title, text", **options: Any) -> list[tuple[Any, ...]]:
    with almanaq.connect(source, **options) as connection:
        (name,) = [relation.name for relation in connection.catalog.relations]
        return list(connection.sql(f'SELECT {columns} FROM "{name}" ORDER BY path').rows)


def test_each_kind_gives_title_and_passages(folder: Path) -> None:
    assert rows(folder) == [
        ("contract.docx", "Contract", ["Contract", "The rent is 900 francs.", "deposit | 1800"]),
        ("hours.html", "Hours", ["When", "We open at nine.", "Mon | 9–17"]),
        ("mail/ann.eml", "Räder", ["The wheels arrived.", "One is damaged."]),
        ("mail/box.mbox#1", "One", ["Hello one."]),
        ("mail/box.mbox#2", "Two", ["Hello two."]),
        ("note.txt", None, ["First.", "Second,\nstill second."]),
        ("plan.pptx", "Plan", ["Plan\nWe ship in May."]),
        ("scan.pdf", None, ["Rent is due in March.", ""]),
        ("shift.md", "Shift report", ["# Night shift", "The pump in hall two leaks."]),
    ]


def test_headers_become_columns_in_the_writers_time(folder: Path) -> None:
    asked = '"from", "to", subject, date, attachments, tags, path_2'
    found = dict(zip((path for (path,) in rows(folder, "path")), rows(folder, asked), strict=True))
    day = datetime.datetime(2024, 6, 3, 0, 30)
    assert found["mail/ann.eml"][:5] == ("Ann <ann@example.org>", "bob@example.org", "Räder", day, ["bill.pdf"])
    assert found["shift.md"][3:] == (datetime.datetime(2024, 5, 1), None, ["ops", "night"], "elsewhere")
    assert rows(folder / "note.txt", "path, name, modified") == [
        ("note.txt", "note.txt", datetime.datetime.fromtimestamp(int((folder / "note.txt").stat().st_mtime)))
    ]


def test_a_quote_stands_on_a_page_of_a_file(folder: Path) -> None:
    with almanaq.connect(folder) as connection:
        result = connection.sql("SELECT path FROM office WHERE answer(text, 'is the rent due in March?') = 'Yes'")
    assert [(row, evidence[0].place) for row, evidence in zip(result.rows, result.evidence, strict=True)] == [
        (("scan.pdf",), "office.text, key scan.pdf, page 1")
    ]


def test_a_list_and_a_glob_are_one_table_beside_the_tables(folder: Path) -> None:
    named = [str(folder / "note.txt"), str(folder / "mail" / "ann.eml")]
    assert [path for path, *_ in rows(named)] == ["mail/ann.eml", "note.txt"]
    assert [path for path, *_ in rows(str(folder / "*.md"))] == ["shift.md"]
    (folder / "sales.csv").write_text("id,amount\n1,2\n")
    with almanaq.connect(folder) as connection:
        assert [relation.name for relation in connection.catalog.relations] == ["office", "sales"]
    (found,) = [table for table in almanaq.tables(folder) if table.id.table == "office"]
    assert (found.header[0], found.rows[5][0]) == ("path", "note.txt")


def test_what_cannot_be_read_is_reported_and_the_rest_is_read(tmp_path: Path) -> None:
    encrypted_pdf(tmp_path / "locked.pdf")
    (tmp_path / "locked.docx").write_bytes(b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(600))
    (tmp_path / "broken.pdf").write_bytes(b"%PDF-1.4 nothing")
    with zipfile.ZipFile(tmp_path / "parts.docx", "w") as archive:
        archive.writestr("[Content_Types].xml", "<Types/>")
    (tmp_path / "binary.txt").write_bytes(b"a\0b")
    (tmp_path / "scan.pdf").write_bytes(pdf(["", "text", ""]))
    (tmp_path / "dated.pdf").write_bytes(
        pdf(["text"]).replace(b"<< /Size", b"<< /Info << /CreationDate (D:0) >> /Size")
    )
    (tmp_path / "bars.txt").write_text("id|name|n\n1|Rome|2\n2|Oslo|3\n")
    (tmp_path / "old.doc").write_bytes(b"x")
    (tmp_path / "bad.md").write_text("---\na: [\n---\nText stays.")
    with almanaq.connect(tmp_path) as connection:
        said = {message.split(":")[0]: message for message in connection.warnings}
        (count,) = connection.sql(f'SELECT count(*) FROM "{tmp_path.name}"')[0]
    assert count == 4
    for name, words in {
        "locked.pdf": "not opened: it is encrypted",
        "locked.docx": "not opened: it is encrypted or in an old format",
        "broken.pdf": "not opened: it is damaged",
        "parts.docx": "not opened: it is damaged: save it again",
        "binary.txt": "not opened: it is not text",
        "scan.pdf": "2 of 3 pages hold no text (page 1, 3)",
        "dated.pdf": "its date of creation cannot be read",
        "bars.txt": "its lines look like the rows of a table",
        "old.doc": "save it as .docx",
        "bad.md": "its front matter is kept as text",
    }.items():
        assert words in said[name]
    with pytest.raises(SourceError, match=r"^locked\.pdf: not opened: it is encrypted"):
        open_database(tmp_path / "locked.pdf")


def test_nothing_is_fetched_and_deep_pages_are_read(tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("42")
    entity = f'<!DOCTYPE html [<!ENTITY x SYSTEM "file://{tmp_path}/secret">]><p>&x; <img src="http://127.0.0.1:9/">Hi.'
    (tmp_path / "a.html").write_text(entity)
    (tmp_path / "b.html").write_text("<div>" * 1000 + "<p>Deep.</p>")
    (tmp_path / "c.html").write_text("<p>Top.</p>" + "<div>" * 5000 + "<p>Deep.</p>")
    assert [text[-1].removeprefix("&x; ") for _, _, text in rows(tmp_path)] == ["Hi.", "Deep.", "Top."]
    with almanaq.connect(tmp_path) as connection:
        (warning,) = connection.warnings
    assert "c.html: the page is not read to its end" in warning


def test_many_documents_are_cached_until_one_changes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "many"
    folder.mkdir()
    for number in range(TableCache.LEAST_FILES):
        (folder / f"{number}.txt").write_text(f"Text {number}.")
    monkeypatch.setenv("ALMANAQ_CACHE_DIR", str(tmp_path / "cache"))
    open_database(folder).close()
    (cached,) = Path(tmp_path, "cache", "tables").glob("*.duckdb")
    used = cached.stat().st_mtime_ns
    assert len(rows(folder)) == TableCache.LEAST_FILES
    assert cached.stat().st_mtime_ns > used  # it was opened from there
    known = (folder / "7.txt").stat()
    (folder / "7.txt").write_text("Text 0.")
    os.utime(folder / "7.txt", ns=(known.st_atime_ns, known.st_mtime_ns))
    assert dict(rows(folder, "name, text"))["7.txt"] == ["Text 0."]


@pytest.mark.parametrize("asked", ["Which document says that a pump leaks?", "documents that mention a leaking pump"])
def test_a_question_of_what_documents_say_reads_them(tmp_path: Path, asked: str) -> None:
    (tmp_path / "shift.txt").write_text("Dear all,\n\nthe pump in hall two leaks.\n")
    (tmp_path / "hours.txt").write_text("We open at nine.\n")
    with almanaq.connect(tmp_path, cache=False) as con:
        reply = con.ask(asked)
        assert [row[0] for row in reply.rows or ()] == ["shift.txt"], reply.answer
        assert con.ask("Which document is zorgy?").status == "clarify"  # no condition was understood: no answer
