"""Folders as people have them: every file written otherwise, and some that are none."""

from __future__ import annotations

import bz2
import gzip
import json
import os
import zipfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from xml.sax.saxutils import escape

import pyarrow as pa
import pyarrow.parquet as pq

_BOOK = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
_RELS = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
_PACK = "http://schemas.openxmlformats.org/package/2006/relationships"


def write_messy(folder: Path, *, rows: int = 400) -> Path:
    """Write a folder of files that can all be opened, whatever they are like."""
    folder.mkdir()

    def put(name: str, text: str, encoding: str = "utf-8") -> None:
        (folder / name).write_bytes(text.encode(encoding))

    put("semicolons.csv", "id;city;price\n" + "".join(f"{i};Köln;1.{i:03d},50\n" for i in range(rows)), "cp1252")
    put("quoted.csv", 'id,note\n1,"line one\nline two"\n2,"say ""hi"", ok"\n')
    days = [(i % 28 + 1, i % 12 + 1, 2001 + i % 20) for i in range(rows)]
    put("dmy.csv", "id,day\n" + "".join(f"{i},{d:02d}/{m:02d}/{y}\n" for i, (d, m, y) in enumerate(days)))
    put("mdy.csv", "id,day\n" + "".join(f"{i},{m:02d}/{d:02d}/{y}\n" for i, (d, m, y) in enumerate(days)))
    put("ymd.csv", "id,day\n" + "".join(f"{i},{y}-{m:02d}-{d:02d}\n" for i, (d, m, y) in enumerate(days)))
    put("wide.csv", ",".join(f"c{i}" for i in range(200)) + "\n" + f"{','.join(map(str, range(200)))}\n" * 20)
    grown = "".join(f"{i},{i / 4:.2f},2024-01-{i % 28 + 1:02d} 10:00:00,word {i % 9}\n" for i in range(100_000))
    put("large.csv", f"id,share,at,word\n{grown}n/a,US$3m,,\n")
    put("tabs.tsv", "a\tb\n1\tx\n2\ty\n")
    put("bars.csv", "a|b\n1|x\n2|y\n")
    put("utf16.csv", "a,b\n1,é\n", "utf-16")
    put("bom.csv", "\ufeffa,b\n1,é\n")
    (folder / "zipped.csv.gz").write_bytes(gzip.compress(b"a,b\n1,x\n"))
    (folder / "packed.csv.bz2").write_bytes(bz2.compress(b"a,b\n1,x\n"))
    with pa.CompressedOutputStream(str(folder / "squeezed.csv.zst"), "zstd") as file:
        file.write(b"a,b\n1,x\n")
    orders = [
        {"id": 1, "to": {"city": "Rome", "at": {"lat": 1.5}}, "tags": ["a"], "items": [{"sku": "x"}, {"sku": "y"}]},
        {"id": 2, "to": {"city": "Oslo"}, "tags": [], "items": []},
    ]
    put("orders.json", json.dumps(orders))
    for year in (2023, 2024):
        part = folder / "sales" / f"year={year}"
        part.mkdir(parents=True)
        pq.write_table(pa.table({"amount": [1.5, 2.5]}), part / "part-0.parquet")
    return folder


def write_bad(folder: Path) -> Path:
    """Write a folder in which most files are at fault, some beyond help."""
    folder.mkdir()
    (folder / "good.csv").write_text("id,name\n1,Ann\n2,Bob\n")
    (folder / "ragged.csv").write_text("a,b,c\n1,2,3\n4,5\n6,7,8,9\n")
    (folder / "headerless.csv").write_text("1,Rome,2.5\n2,Oslo,3.5\n3,Bern,4.5\n")
    (folder / "titled.csv").write_text("Report of 2024\n\nname,n\nx,1\ny,2\n")
    (folder / "latin.csv").write_bytes("a,b\nn\xe9,1\n".encode("latin-1"))
    (folder / "open_quote.csv").write_text('a,b\n1,"x\n2,y\n')
    (folder / "unsure.csv").write_text("id,day\n" + "1,03/04/2020\n2,05/06/2020\n" * 9)
    (folder / "lines.jsonl").write_text('{"a": 1}\n{"a":\n{"a": 2}\n')
    (folder / "empty.csv").write_text("")
    (folder / "binary.csv").write_bytes(bytes(range(7)) * 40)
    (folder / "one.json").write_text('{"version": 3}')
    (folder / "bad.parquet").write_text("PAR1 no")
    (folder / "bad.csv.gz").write_text("no gzip")
    os.mkfifo(folder / "pipe.csv")
    (folder / "link.csv").symlink_to("/etc/passwd")
    return folder


def write_workbook(
    path: Path, sheets: Mapping[str, Sequence[Sequence[object]]], merged: str = "", hidden: str = ""
) -> Path:
    """Write a small .xlsx file, as every program that reads them takes it.

    Args:
        merged: a range of the first sheet.
        hidden: the name of a sheet.
    """
    names = list(sheets)
    ids = [(name, f"rId{i}", f"worksheets/sheet{i}.xml") for i, name in enumerate(names, 1)]
    with zipfile.ZipFile(path, "w") as archive:
        parts = "".join(
            f'<Override PartName="/xl/{target}" ContentType="application/vnd.openxmlformats-officedocument.'
            'spreadsheetml.worksheet+xml"/>'
            for _, _, target in ids
        )
        archive.writestr(
            "[Content_Types].xml",
            '<Types xmlns="http://schemas.openxmlformats.org/package/2006/content-types">'
            '<Default Extension="rels" ContentType="application/vnd.openxmlformats-package.relationships+xml"/>'
            '<Override PartName="/xl/workbook.xml" ContentType="application/vnd.openxmlformats-officedocument.'
            f'spreadsheetml.sheet.main+xml"/>{parts}</Types>',
        )
        archive.writestr(
            "_rels/.rels",
            f'<Relationships xmlns="{_PACK}"><Relationship Id="r" Type="{_RELS}/officeDocument" '
            'Target="xl/workbook.xml"/></Relationships>',
        )
        states = {name: "hidden" if name == hidden else "visible" for name in names}
        listed = "".join(f'<sheet name="{n}" sheetId="{i[3:]}" state="{states[n]}" r:id="{i}"/>' for n, i, _ in ids)
        archive.writestr(
            "xl/workbook.xml", f'<workbook xmlns="{_BOOK}" xmlns:r="{_RELS}"><sheets>{listed}</sheets></workbook>'
        )
        related = "".join(f'<Relationship Id="{i}" Type="{_RELS}/worksheet" Target="{t}"/>' for _, i, t in ids)
        archive.writestr("xl/_rels/workbook.xml.rels", f'<Relationships xmlns="{_PACK}">{related}</Relationships>')
        for name, _, target in ids:
            rows = "".join(f"<row>{''.join(map(_cell, row))}</row>" for row in sheets[name])
            ranges = f'<mergeCells count="1"><mergeCell ref="{merged}"/></mergeCells>' if merged else ""
            archive.writestr(
                f"xl/{target}", f'<worksheet xmlns="{_BOOK}"><sheetData>{rows}</sheetData>{ranges}</worksheet>'
            )
            merged = ""
    return path


def _cell(value: object) -> str:
    if value is None:
        return "<c/>"
    if isinstance(value, bool):
        return f'<c t="b"><v>{int(value)}</v></c>'
    if isinstance(value, int | float):
        return f"<c><v>{value}</v></c>"
    return f'<c t="inlineStr"><is><t>{escape(str(value))}</t></is></c>'
