"""Options of an answer that a query gives: ARRAY(SELECT …), asked of the database once."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

import almanaq
from almanaq.errors import QueryTypeError, UnsupportedError
from almanaq.testing import FunctionModel

from .support import Asked, texts

pytestmark = pytest.mark.usefixtures("engine")


@pytest.fixture(scope="module")
def asked(engine: str) -> Asked:

    def reply(text: str, question: str) -> str | None:
        return text.split()[0] if question.casefold().startswith("which") else f"name{text[-1]}"

    bodies = texts("red one1", "BLUE two2", "green three3", None)
    return Asked(
        reply=reply,
        t={"id": [1, 2, 3, 4], "body": bodies},
        colours={"id": [1, 2, 3, 4], "name": texts("blue", "red", None, "red"), "kind": texts("x", "x", "x", "y")},
    )


WHICH = "answer(body, 'which?', ARRAY(SELECT name FROM colours{}))"
CASES: list[tuple[str, list[tuple[Any, ...]], int]] = [
    (
        "SELECT classify(body, ARRAY['red', 'green']) AS c FROM t ORDER BY id",
        [("red",), (None,), ("green",), (None,)],
        3,
    ),
    (f"SELECT id, {WHICH.format('')} FROM t ORDER BY id", [(1, "red"), (2, "blue"), (3, None), (4, None)], 3),
    (
        f"SELECT id, {WHICH.format(' WHERE kind = $y$y$y$')} FROM t ORDER BY id".replace("$y$", "'"),
        [(1, "red"), (2, None), (3, None), (4, None)],
        3,
    ),
    (f"SELECT id FROM t WHERE {WHICH.format('')} = 'red' ORDER BY id", [(1,)], 3),
    (f"SELECT {WHICH.format('')} AS c, count(*) FROM t GROUP BY 1 ORDER BY c", [("blue", 1), ("red", 1), (None, 2)], 3),
    (f"SELECT id, {WHICH.format(' WHERE id > 9')} FROM t ORDER BY id", [(1, None), (2, None), (3, None), (4, None)], 0),
    (
        "WITH chosen AS (SELECT name FROM colours WHERE id = 1) "
        "SELECT id, answer(body, 'which?', ARRAY(SELECT name FROM chosen)) FROM t ORDER BY id",
        [(1, None), (2, "blue"), (3, None), (4, None)],
        3,
    ),
    (
        "SELECT id, answer(body, 'name?', ARRAY(SELECT answer(name, 'name?') FROM colours)) FROM t WHERE id = 1",
        [(1, None)],
        3,
    ),
]


@pytest.mark.parametrize(("sql", "rows", "calls"), CASES)
def test_options_come_from_a_query(asked: Asked, sql: str, rows: list[tuple[Any, ...]], calls: int) -> None:
    before = asked.model.calls
    assert asked.rows(sql) == rows
    assert asked.model.calls - before == calls


def test_rows_given_one_by_one_have_the_same_options(asked: Asked) -> None:
    async def rows() -> list[tuple[Any, ...]]:
        return [row async for row in asked.con.stream(f"SELECT id FROM t WHERE {WHICH.format('')} = 'red'")]

    assert asyncio.run(rows()) == [(1,)]


def test_explain_shows_the_query_of_the_options(asked: Asked) -> None:
    assert "ARRAY(SELECT " in str(asked.con.explain(f"SELECT {WHICH.format('')} FROM t"))


def test_a_query_may_give_the_options_as_one_list() -> None:
    tables = {"t": {"body": ["red", "blue", "green"], "names": [["red", "blue"], ["red"], []]}}
    with almanaq.connect(tables, model=FunctionModel(lambda text, _: text), cache=False) as con:
        for query in (
            "(SELECT list(DISTINCT body) FROM t WHERE body <> 'green')",
            "(SELECT names FROM t WHERE body = 'blue')",
        ):
            found = con.sql(f"SELECT answer(body, 'which?', {query}) AS a FROM t WHERE body <> 'green' ORDER BY a")
            assert [row[0] for row in found.rows] == (["blue", "red"] if "DISTINCT" in query else ["red", None])
        with pytest.raises(QueryTypeError, match="gives 3 lists"):
            con.sql("SELECT answer(body, 'which?', ARRAY(SELECT names FROM t)) FROM t")


def test_options_that_differ_by_row_are_refused(asked: Asked) -> None:
    with pytest.raises(UnsupportedError, match="the same for all rows"):
        asked.rows(f"SELECT {WHICH.format(' WHERE colours.id = t.id')} FROM t")


def test_too_many_options_are_an_error(monkeypatch: pytest.MonkeyPatch, asked: Asked) -> None:
    monkeypatch.setattr("almanaq.suql.execution.calls.MOST_OPTIONS", 1)
    with pytest.raises(QueryTypeError, match="gives 2 options"):
        asked.rows(f"SELECT {WHICH.format('')} FROM t")


def test_private_options_are_not_sent_to_a_remote_model(tmp_path: Any) -> None:
    class Remote(almanaq.testing.FunctionModel):
        remote = True

    schema = tmp_path / "s.toml"
    schema.write_text("[colours.columns.name]\nprivate = true\n")
    tables = {"t": {"body": ["red one"]}, "colours": {"name": ["red"]}}
    with (
        almanaq.connect(tables, model=Remote(lambda *_: "red"), schema=schema, cache=False) as con,
        pytest.raises(almanaq.AlmanaqError, match="private"),
    ):
        con.sql(f"SELECT {WHICH.format('')} FROM t")
