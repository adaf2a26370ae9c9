"""A quote names the table, the column and the row that it stands in, whatever the plan makes of the query."""

from __future__ import annotations

import pyarrow as pa
import pytest

import almanaq

from .support import Asked

pytestmark = pytest.mark.usefixtures("engine")

_A = {"id": [1, 2, 3], "kind": ["x", "x", "y"], "body": ["It is calm here.", "A noisy bar.", "A very calm place."]}
_B = {"ref": [1, 2, 2], "note": ["The room is calm.", "It is noisy.", "The garden is calm."]}
_EACH_PAIR = "answer(b.note, 'is it calm for ' || a.id::text) = 'Yes'"
_PLACED = [
    *(
        f"SELECT a.id FROM a {kind} JOIN b ON {on}"
        for kind in ("", "LEFT", "RIGHT", "FULL")
        for on in (
            f"a.id = b.ref AND {_EACH_PAIR}",
            "a.id = b.ref AND answer(a.body, 'is it calm?') = 'Yes'",
            "answer(a.body, 'is it calm?') = answer(b.note, 'is it calm?')",
        )
    ),
    "SELECT d.id FROM (SELECT * FROM a ORDER BY id DESC LIMIT 2) AS d WHERE answer(d.body, 'is it calm?') = 'Yes'",
    "SELECT j.id FROM (SELECT a.id, b.note FROM a JOIN b ON a.id < b.ref LIMIT 9) AS j "
    "WHERE answer(j.note, 'is it calm?') = 'Yes'",
]


@pytest.fixture
def con(engine: str) -> almanaq.Connection:
    return almanaq.connect(Asked.source({"a": pa.table(_A), "b": pa.table(_B)}), model="local", cache=False)


@pytest.mark.parametrize("query", _PLACED)
def test_a_quote_stands_in_the_row_that_it_names(con: almanaq.Connection, engine: str, query: str) -> None:
    quotes = [quote for row in con.sql(query).evidence for quote in row]
    assert quotes
    for quote in quotes:
        cells = {"a": _A, "b": _B}[quote.relation][quote.column]
        assert quote.row_known
        if engine == "duckdb":
            assert cells[int(quote.key)].startswith(quote.quote[:-1])
        assert any(quote.quote in cell for cell in cells)


@pytest.mark.parametrize(
    "query",
    [
        "SELECT summary(array_agg(body ORDER BY id)) FROM a",
        "SELECT kind, summary(array_agg(body) FILTER (WHERE id > 0)) FROM a GROUP BY kind",
        "SELECT answer(string_agg(body, ' ' ORDER BY id), 'is it calm?') FROM a",
        "SELECT answer(body, 'is it calm?') FROM a GROUP BY body",
    ],
)
def test_a_quote_from_texts_put_together_names_their_table(con: almanaq.Connection, query: str) -> None:
    quotes = [quote for row in con.sql(query).evidence for quote in row]
    assert quotes
    assert {(quote.relation, quote.column, quote.row_known) for quote in quotes} == {("a", "body", False)}
    assert quotes[0].place == "a.body, passage 1"
