"""What the XML of an Excel workbook says that its reader leaves out: errors, formulas without values, padding."""

from __future__ import annotations

import re
import zipfile
from dataclasses import dataclass, field
from pathlib import Path
from xml.etree import ElementTree

_CELL = re.compile(rb"<c\b(?P<about>[^>]*?)(?:/>|>(?P<inner>.*?)</c>)", re.DOTALL)
_PLACE = re.compile(rb'\br="([A-Z]{1,3})([0-9]+)"')
_STYLE = re.compile(rb'\bs="([0-9]+)"')
_ZEROS = re.compile(r"0{2,}")
_SHOWN = 3
_NAMESPACE = "{http://schemas.openxmlformats.org/spreadsheetml/2006/main}"
_RELATION = "{http://schemas.openxmlformats.org/officeDocument/2006/relationships}id"


@dataclass(slots=True)
class Details:
    """What is said of the cells of a sheet.

    Attributes:
        errors: the places of errors such as #DIV/0!, as people write them.
        unvalued: the places of formulas whose value was never stored.
        padded: by row and column from 0, to how many digits a number is shown with zeros in front.
    """

    errors: list[str] = field(default_factory=list)
    unvalued: list[str] = field(default_factory=list)
    padded: dict[tuple[int, int], int] = field(default_factory=dict)

    def notes(self) -> tuple[str, ...]:
        """Say which cells have no value, for people."""
        fix = "open the workbook and save it again"
        found = (
            (self.errors, "cells hold an error such as #DIV/0! and are NULL", ""),
            (self.unvalued, "formulas have no stored value and are NULL", f": {fix}"),
        )
        return tuple(
            f"{len(places):,} {what} ({', '.join(places[:_SHOWN])}{' …' if len(places) > _SHOWN else ''}){after}"
            for places, what, after in found
            if places
        )


def read_details(path: Path) -> dict[str, Details]:
    """Return the details of each sheet of a workbook by its name; none of one that is not written as XML."""
    try:
        with zipfile.ZipFile(path) as archive:
            zeros = _zero_styles(archive)
            return {name: _scan(archive.read(part), zeros) for name, part in _sheets(archive)}
    except (zipfile.BadZipFile, OSError, KeyError, ElementTree.ParseError):
        return {}


def _sheets(archive: zipfile.ZipFile) -> list[tuple[str, str]]:
    parts = {
        each.get("Id", ""): each.get("Target", "")
        for each in ElementTree.fromstring(archive.read("xl/_rels/workbook.xml.rels"))
    }
    book = ElementTree.fromstring(archive.read("xl/workbook.xml"))
    found = [(each.get("name", ""), parts.get(each.get(_RELATION, ""), "")) for each in book.iter(f"{_NAMESPACE}sheet")]
    places = ((name, target.lstrip("/") if target.startswith("/") else f"xl/{target}") for name, target in found)
    known = set(archive.namelist())
    return [(name, place) for name, place in places if place in known]


def _zero_styles(archive: zipfile.ZipFile) -> dict[bytes, int]:
    """Return the styles whose numbers are shown with zeros in front, and with how many digits."""
    if "xl/styles.xml" not in archive.namelist():
        return {}
    styles = ElementTree.fromstring(archive.read("xl/styles.xml"))
    formats = {each.get("numFmtId"): each.get("formatCode", "") for each in styles.iter(f"{_NAMESPACE}numFmt")}
    cells = styles.find(f"{_NAMESPACE}cellXfs")
    codes = [formats.get(each.get("numFmtId"), "") for each in (cells if cells is not None else ())]
    return {str(at).encode(): len(code) for at, code in enumerate(codes) if _ZEROS.fullmatch(code)}


def _scan(xml: bytes, zeros: dict[bytes, int]) -> Details:
    found = Details()
    if b't="e"' not in xml and b"<f" not in xml and not zeros:
        return found
    for cell in _CELL.finditer(xml):
        about, inner = cell["about"], cell["inner"] or b""
        place, style = _PLACE.search(about), _STYLE.search(about)
        called = (place[1] + place[2]).decode() if place else "a cell"
        if b't="e"' in about:
            found.errors.append(called)
        elif b"<f" in inner and (b"<v>" not in inner or b"<v></v>" in inner) and b"<v " not in inner:
            found.unvalued.append(called)
        elif place and style is not None and style[1] in zeros:
            found.padded[int(place[2]) - 1, _column(place[1])] = zeros[style[1]]
    return found


def _column(letters: bytes) -> int:
    number = 0
    for letter in letters:
        number = number * 26 + letter - 64
    return number - 1
