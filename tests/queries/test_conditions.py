"""An `answer` where a boolean stands is read as one, in every clause alike; other replies are refused there."""

from __future__ import annotations

import re

import pytest

import almanaq
from almanaq.errors import QueryTypeError
from almanaq.testing import FunctionModel

_SAID = {"ASAP": "Yes", "no rush": "No", "maybe": "perhaps"}
_TABLES = {
    "t": {"id": [1, 2, 3, 4], "body": ["ASAP", "no rush", "hello", "maybe"], "ok": [True, False, None, True]},
    "u": {"n": [1, 0]},
}
_ASKED = "answer(body, 'urgent?')"


def _rows(query: str) -> list[tuple[object, ...]]:
    model = FunctionModel(lambda text, question: _SAID.get(text))
    return sorted(almanaq.connect(_TABLES, model=model, cache=False).sql(query).rows, key=repr)


@pytest.mark.parametrize(
    ("query", "rows"),
    [
        ("SELECT id FROM t WHERE A", [(1,)]),
        ("SELECT id FROM t WHERE NOT A", [(2,)]),
        ("SELECT id FROM t WHERE A AND id < 3", [(1,)]),
        ("SELECT id FROM t WHERE NOT A OR id = 3", [(2,), (3,)]),
        ("SELECT t.id, n FROM t JOIN u ON A", [(1, 0), (1, 1)]),
        ("SELECT id FROM t GROUP BY id, body HAVING A", [(1,)]),
        ("SELECT id FROM t GROUP BY id HAVING bool_or(A)", [(1,)]),
        ("SELECT count(*) FILTER (WHERE A) FROM t", [(1,)]),
        ("SELECT id FROM t WHERE CASE WHEN A THEN FALSE ELSE TRUE END", [(2,), (3,), (4,)]),
        ("SELECT id FROM t WHERE CASE WHEN ok THEN A ELSE FALSE END", [(1,)]),
        ("SELECT id FROM t WHERE A IS NOT FALSE", [(1,), (3,), (4,)]),
        ("SELECT id FROM t WHERE coalesce(A, ok)", [(1,), (4,)]),
        ("SELECT id FROM t WHERE (SELECT A)", [(1,)]),
        ("SELECT id, A AND ok FROM t", [(1, True), (2, False), (3, None), (4, None)]),
        ("SELECT id FROM t WHERE answer(body, 'urgent?', ARRAY['Yes', 'No'])", [(1,)]),
    ],
)
def test_an_answer_is_read_as_a_boolean_where_one_stands(query: str, rows: list[tuple[object, ...]]) -> None:
    assert _rows(re.sub(r"\bA\b", _ASKED, query)) == rows


@pytest.mark.parametrize(
    ("query", "rows"),
    [
        ("SELECT A AS u, count(*) FROM t GROUP BY A HAVING A", [("Yes", 1)]),
        ("SELECT count(*), A FROM t GROUP BY 2 HAVING NOT A OR count(*) > 1", [(1, "No")]),
        ("SELECT A AS u FROM t GROUP BY u HAVING A IS NOT FALSE", [("Yes",), ("perhaps",), (None,)]),
        (
            "SELECT CASE WHEN A THEN 'now' END, count(*) FROM t GROUP BY A",
            [("now", 1), (None, 1), (None, 1), (None, 1)],
        ),
        ("SELECT A FROM t GROUP BY ROLLUP (A) HAVING A", [("Yes",)]),
        ("SELECT summary(array_agg(id::text)) IS NULL AS s FROM t GROUP BY A HAVING A", [(True,)]),
        ("SELECT (A), count(*) FROM t GROUP BY (A) HAVING (A)", [("Yes", 1)]),
        ("SELECT A::boolean FROM t GROUP BY A, body HAVING A", [(True,)]),
        ("SELECT length(A), count(*) FROM t GROUP BY A HAVING length(A::text) = 3", [(3, 1)]),
    ],
)
def test_an_answer_that_rows_are_grouped_by_is_read_as_a_boolean_above_them(
    query: str, rows: list[tuple[object, ...]]
) -> None:
    assert _rows(re.sub(r"\bA\b", _ASKED, query)) == rows


@pytest.mark.parametrize(
    "query",
    [
        "SELECT A, count(*) FROM t",
        "SELECT A, count(*) FROM t GROUP BY ok",
        "SELECT count(*) FROM t GROUP BY ok HAVING A",
        "SELECT count(*) FROM t GROUP BY ok ORDER BY A",
        "SELECT A, count(*) FROM t GROUP BY A::boolean",
        "SELECT A, count(*) FROM t GROUP BY coalesce(A, 'No')",
        "SELECT summary(body) FROM t GROUP BY ok",
        "SELECT id FROM t WHERE EXISTS (SELECT answer(s.body, 'urgent?') FROM t AS s GROUP BY s.ok)",
    ],
)
def test_an_answer_that_differs_within_a_group_is_refused_at_its_place(query: str) -> None:
    with pytest.raises(QueryTypeError, match="must appear in the GROUP BY clause") as caught:
        _rows(re.sub(r"\bA\b", _ASKED, query))
    assert "^" in str(caught.value)


def test_a_bare_answer_asks_as_few_as_a_comparison() -> None:
    calls = []
    for condition in (_ASKED, f"{_ASKED} = 'Yes'"):
        model = FunctionModel(lambda text, question: _SAID.get(text))
        source = almanaq.connect(_TABLES, model=model, cache=False)
        one = source.sql(f"SELECT id FROM t WHERE {condition} AND id < 3")
        calls.append((one.trace.text_calls, len(one.evidence)))
    assert calls[0] == calls[1] == (2, calls[0][1])


@pytest.mark.parametrize(
    ("condition", "said"),
    [
        ("WHERE summary(body)", "write summary(…) IS NOT NULL"),
        ("WHERE answer(body, 'how?', ARRAY['good', 'bad'])", "answer(…) = 'good'"),
    ],
)
def test_a_reply_that_is_no_boolean_is_refused_by_name(condition: str, said: str) -> None:
    with pytest.raises(QueryTypeError) as caught:
        _rows(f"SELECT id FROM t {condition}")
    assert said in str(caught.value)


def test_an_answer_that_a_derived_table_shows_is_text() -> None:
    with pytest.raises(QueryTypeError, match="write urgent = 'Yes'"):
        _rows(f"SELECT id FROM (SELECT id, {_ASKED} AS urgent FROM t) s WHERE urgent")
    assert _rows(f"SELECT id FROM (SELECT id, {_ASKED}::boolean AS urgent FROM t) s WHERE urgent") == [(1,)]


@pytest.mark.parametrize("condition", ["ok", "NULL", "'true'", "NOT ok IS NULL", "coalesce(ok, FALSE)"])
def test_booleans_are_conditions(condition: str) -> None:
    assert _rows(f"SELECT id FROM t WHERE {condition}") is not None


def test_an_answer_takes_the_type_of_a_column_that_its_table_gives_another_name() -> None:
    model = FunctionModel(lambda text, question: "1,234")
    tables = {"t": {"id": [1], "body": ["x"]}, "u": {"n": [1234], "m": [1]}}
    con = almanaq.connect(tables, model=model, cache=False)
    query = "SELECT id FROM t JOIN u AS v(a, b) ON answer(body, 'how many?') = v.a"
    assert con.sql(query).rows == [(1,)]
