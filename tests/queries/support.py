"""Small worlds with known answers: a document says what it answers, so that each expected row can be read off."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar

import pyarrow as pa
import pytest

import almanaq
from almanaq.testing import FunctionModel
from engines import in_sqlite

Row = tuple[Any, ...]


def said(text: str, question: str) -> str | None:
    """Answer from the document: `romantic=Yes; when=2020-01-02` answers questions that name its words."""
    if question == "summary":
        return f"<{text}>"
    for part in text.replace("\n\n", ";").split(";"):
        name, _, value = part.partition("=")
        if value and name.strip() in question:
            return value
    return None


class Asked:
    """A connection in table order without waste, and the calls made through it.

    `source` makes of the tables what is connected to; conftest.py sets it to each engine in turn.
    """

    source: ClassVar[Callable[[Mapping[str, pa.Table]], Any]] = staticmethod(dict)
    opened: ClassVar[list[almanaq.Connection]] = []

    def __init__(self, *, reply: Callable[[str, str], str | None] = said, latency: float = 0.0, **tables: Any) -> None:
        self.model = FunctionModel(reply, latency=latency)
        built = {n: t if isinstance(t, pa.Table) else pa.table(t) for n, t in tables.items()}
        made = Asked.source(built)
        self._missing = set(built) - set(in_sqlite(built)) if str(made).endswith(".sqlite") else set()
        if self._missing == set(built):
            pytest.skip("SQLite has no type for a column of these tables")
        self.con = almanaq.connect(made, model=self.model, speculation=1, order="table", cache=False, link=False)
        Asked.opened.append(self.con)

    @classmethod
    def close_all(cls) -> None:
        """Close every connection opened so far."""
        while cls.opened:
            cls.opened.pop().close()

    def rows(self, sql: str, params: Sequence[Any] = ()) -> list[Row]:
        """Return the rows of a query, and see that its trace counts the model's calls."""
        self._skip_where_missing(sql)
        before = self.model.calls
        result = self.con.sql(sql, list(params)) if params else self.con.sql(sql)
        assert result.trace.text_calls == self.model.calls - before
        return list(result.rows)

    def calls(self, sql: str) -> int:
        """Return the number of calls of a query."""
        self._skip_where_missing(sql)
        return int(self.con.sql(sql).trace.text_calls)

    def _skip_where_missing(self, sql: str) -> None:
        if any(re.search(rf"\b{name}\b", sql) for name in self._missing):
            pytest.skip("SQLite has no type for a column of this table")


def texts(*values: str | None) -> pa.Array:
    """Return a column of text."""
    return pa.array(values, pa.string())


def arrays(*values: list[str | None] | None) -> pa.Array:
    """Return a column of text[]."""
    return pa.array(values, pa.list_(pa.string()))
