"""Measured tables as `scripts/tables.toml` declares them: rows are loops over JSON files, cells templates.

A table has a `head` and blocks of `rows`. A block has loops in `for` ("task in found.tasks"; a later one sees
the names of those before it), a condition `if`, names in `let`, and `cells`. What stands in braces is an
expression of Python with a format: "{task.calls:,}"; a cell that is a list in braces, "{[…]}", is as many
cells. A figure that a file lacks is shown as "–", whatever is reckoned with it.
"""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Collection, Iterator, Mapping
from itertools import groupby
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
SPEC = Path(__file__).with_name("tables.toml")
_HOLE = re.compile(r"\{([^{}]+?)(?::([^{}:'\"\])]*))?\}")
_LOOP = re.compile(r"([\w, ]+?) in (.+)", re.DOTALL)


class Record(dict[str, Any]):
    """A JSON object whose members are attributes, too; one that is not there is MISSING."""

    def __getattr__(self, name: str) -> Any:
        return self.get(name, MISSING)

    def __missing__(self, name: str) -> Any:
        return MISSING


class _Missing:
    """A figure that is not there, and all that is made of it."""

    def __getattr__(self, name: str) -> _Missing:
        return self

    def __getitem__(self, name: object) -> _Missing:
        return self

    def __iter__(self) -> Iterator[_Missing]:
        return iter(())

    def __add__(self, other: object) -> _Missing:
        return self

    __radd__ = __mul__ = __rmul__ = __truediv__ = __sub__ = __rsub__ = __add__

    def __bool__(self) -> bool:
        return False

    def __format__(self, spec: str) -> str:
        return "–"


MISSING = _Missing()


def names() -> list[str]:
    """Return the names of the declared tables."""
    return [name for name in tomllib.loads(SPEC.read_text(encoding="utf-8")) if name != "names"]


def tables(only: Collection[str] = ()) -> dict[str, str]:
    """Return every declared table, or some, as Markdown, by name."""
    spec = tomllib.loads(SPEC.read_text(encoding="utf-8"), parse_float=float)
    known = {"read": read, "results": results, "by_system": by_system, "grouped": group_rows, "MISSING": MISSING}
    known |= _wrap_records(spec.pop("names"))
    chosen = {name: table for name, table in _wrap_records(spec).items() if not only or name in only}
    return {name: _table(table, dict(known)) for name, table in chosen.items()}


def read(path: str) -> Any:
    """Return what a file of JSON or TOML holds, MISSING where it is not there."""
    file = ROOT / path
    if not file.exists():
        return MISSING
    text = file.read_text(encoding="utf-8")
    return _wrap_records(tomllib.loads(text) if file.suffix == ".toml" else json.loads(text))


def results(group: str) -> list[Record]:
    """Return the results of one folder of experiments; those not yet run are left out."""
    found = [read(str(path.relative_to(ROOT))) for path in sorted((ROOT / "experiments" / group).glob("*.json"))]
    return [record.result for record in found if record.get("result", True)]


def by_system(group: str) -> Record:
    """Return the results of one folder of experiments by retriever and dataset."""
    found = Record()
    for result in results(group):
        found.setdefault(result.retriever, Record())[result.dataset] = result
    return found


def group_rows(rows: list[Record], key: str) -> list[tuple[Any, list[Record]]]:
    """Return neighbours that have the same value of a key together."""
    return [(value, list(own)) for value, own in groupby(rows, key=lambda row: row[key])]


def format_table(head: list[str], rows: list[list[str]]) -> str:
    """Return a table of Markdown; without rows, a word that it is not measured."""
    if not rows:
        return "*Not measured yet.*\n"
    return "".join(f"| {' | '.join(cells)} |\n" for cells in (head, ["---"] * len(head), *rows))


def _table(table: Record, names: dict[str, Any]) -> str:
    names |= _let(table.get("let", {}), names)
    rows = [cells for block in table.rows for cells in _rows(block, names)]
    return format_table(_cells(table.head, names), rows)


def _rows(block: Record, names: Mapping[str, Any]) -> Iterator[list[str]]:
    for bound in _bound(block.get("for", []), names):
        own = bound | _let(block.get("let", {}), bound)
        if "if" not in block or _value(block["if"], own):
            yield _cells(block.cells, own)


def _bound(loops: list[str], names: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield the names as each turn of nested loops binds them."""
    if not loops:
        yield dict(names)
        return
    loop = _LOOP.fullmatch(loops[0])
    if loop is None:
        raise ValueError(f"{SPEC.name}: {loops[0]!r} is no loop: write NAME in EXPRESSION")
    targets = [name.strip() for name in loop[1].split(",")]
    for item in _value(loop[2], names) or ():
        values = item if len(targets) > 1 else [item]
        yield from _bound(loops[1:], {**names, **dict(zip(targets, values, strict=True))})


def _let(chosen: Mapping[str, str], names: Mapping[str, Any]) -> dict[str, Any]:
    made: dict[str, Any] = {}
    for name, expression in chosen.items():
        made[name] = _value(expression, {**names, **made})
    return made


def _cells(templates: list[str], names: Mapping[str, Any]) -> list[str]:
    """Return the cells of a row; one that is a list in braces, "{[…]}", gives as many."""
    cells: list[str] = []
    for template in templates:
        if template.startswith("{[") and template.endswith("]}"):
            cells += _value(template[1:-1], names)
        else:
            cells.append(_HOLE.sub(lambda found: _fill_hole(found, names), template))
    return cells


def _fill_hole(hole: re.Match[str], names: Mapping[str, Any]) -> str:
    return format(_value(hole[1], names), hole[2] or "")


def _value(expression: str, names: Mapping[str, Any]) -> Any:
    return eval(expression, dict(names))


def _wrap_records(value: Any) -> Any:
    if isinstance(value, dict):
        return Record({name: _wrap_records(own) for name, own in value.items()})
    return [_wrap_records(own) for own in value] if isinstance(value, list) else value
