"""A generator without a language model: it finds the row that speaks of the question, and is modest about it."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from almanaq.benchmark.generation.context import sqlite_dialect
from almanaq.benchmark.generation.protocols import Asked, Reply
from almanaq.corpus.table import Table
from almanaq.errors import AlmanaqError
from almanaq.text.words import stems

_LEAST = 0.5
"""Share of a statement's words that title, header and best row must hold to settle it."""

_NUMBER = re.compile(r"\d+(?:[.,]\d+)*")
_NUMERIC = re.compile(r"\bhow (?:many|much|long|old|far|high|tall)\b|\bnumber\b|\byear\b|\bwhen\b", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class _Row:
    """A row, and how much of the question it and its table hold."""

    table: Table
    cells: tuple[str, ...]
    share: float


@dataclass(frozen=True)
class LocalGenerator:
    """Answers with words of a cell, judges by words and numbers, and writes SQL by linking words to the schema."""

    name: str = "local"
    model: str = ""
    prompts: Mapping[str, str] = field(default_factory=dict)
    parsers: dict[Path, Callable[[str], str | None]] = field(default_factory=dict, repr=False, compare=False)

    async def reply(self, asked: Asked) -> Reply:
        """Return the reply at once."""
        if asked.role == "sql":
            return self._sql(asked)
        best = _best_row(asked.question, asked.tables)
        if asked.role == "verify":
            return Reply(_verdict(asked.question, best))
        if best is None:
            return Reply("")
        return Reply(_sentence(asked.question, best) if asked.sentence else _cell(asked.question, best))

    def _sql(self, asked: Asked) -> Reply:
        if asked.database is None:
            return Reply("", fault="the database is not at hand")
        if asked.database not in self.parsers:
            self.parsers[asked.database] = _parser(asked.database)
        try:
            suql = self.parsers[asked.database](asked.question)
        except AlmanaqError as error:
            return Reply("", fault=str(error))
        return Reply(
            sqlite_dialect(suql) if suql else "", fault="" if suql else "no word of the question links to the schema"
        )


def _best_row(question: str, tables: Sequence[Table]) -> _Row | None:
    """Return the row that holds most of the question's words, with its table's titles and header.

    The first of equals.
    """
    keys = set(stems(question))
    best: _Row | None = None
    for row in _rows(tables, keys):
        if best is None or row.share > best.share:
            best = row
    return best


def _rows(tables: Sequence[Table], keys: set[str]) -> Iterator[_Row]:
    for table in tables:
        around = keys & set(stems(" ".join((table.title, table.section, *table.header))))
        for cells in table.rows:
            held = around | (keys & set(stems(" ".join(cells))))
            yield _Row(table, cells, len(held) / max(len(keys), 1))


def _verdict(statement: str, best: _Row | None) -> str:
    """Judge a statement: true where its numbers stand in the row that speaks of it too, false where they do not."""
    if best is None or best.share < _LEAST:
        return "not enough"
    numbers = set(_NUMBER.findall(statement))
    held = set(_NUMBER.findall(" ".join((best.table.title, *best.table.header, *best.cells))))
    return "true" if numbers <= held else "false"


def _cell(question: str, best: _Row) -> str:
    """Choose the cell that answers: not itself in the question, under a column that the question names."""
    keys = set(stems(question))
    numeric = bool(_NUMERIC.search(question))

    def fitness(place: int) -> tuple[float, ...]:
        cell, name = best.cells[place], best.table.header[place]
        new = set(stems(cell)) - keys
        named = len(set(stems(name)) & keys)
        return (bool(new), named, bool(_NUMBER.search(cell)) is numeric, -place)

    filled = [place for place, cell in enumerate(best.cells) if cell.strip()]
    return best.cells[max(filled, key=fitness)].strip() if filled else ""


def _sentence(question: str, best: _Row) -> str:
    """Say the row in a sentence, beginning with what the table is about."""
    about = best.table.title or best.table.section
    parts = [
        f"{name} {cell}".strip()
        for name, cell in zip(best.table.header, best.cells, strict=True)
        if cell.strip() and set(stems(cell)) - set(stems(question))
    ]
    return f"{about}: {', '.join(parts)}.".lstrip(": ")


def _parser(database: Path) -> Callable[[str], str | None]:
    """Return what links words of a question to one database, which is read once."""
    from almanaq import connect
    from almanaq.agent.local import LocalDialogue

    connection = connect(str(database), model="local", cache=False)
    parser = LocalDialogue(connection.engine)
    return lambda question: parser.best_query(question, connection.catalog)
