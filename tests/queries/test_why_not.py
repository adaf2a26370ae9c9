"""Why a row is not in a result: a condition that holds a nested query is judged as a whole."""

from __future__ import annotations

import pytest

import almanaq
from almanaq.errors import UnknownNameError, UnsupportedError, UsageError
from almanaq.testing import FunctionModel

_TABLES = {
    "c": {"k": [1, 2, 3], "z": ["a", "b", "b"]},
    "o": {"k": [1, 1], "x": ["a", "b"]},
    "other": {"nap": [1]},
}
_SAID = "answer(x, 'q') = 'b'"
_CONDITIONS = (
    f"EXISTS (SELECT 1 FROM o WHERE o.k = c.k AND {_SAID})",
    f"NOT EXISTS (SELECT 1 FROM o WHERE o.k = c.k AND {_SAID})",
    f"k IN (SELECT k FROM o WHERE {_SAID})",
    f"k NOT IN (SELECT k FROM o WHERE {_SAID})",
    f"k > (SELECT count(*) FROM o WHERE {_SAID})",
    "answer(z, 'w') = 'b'",
    f"answer(z, 'w') = 'b' AND k NOT IN (SELECT k FROM o WHERE {_SAID}) AND k > 2",
)


def _connect() -> almanaq.Connection:
    return almanaq.connect(_TABLES, model=FunctionModel(lambda text, _: text), cache=False)


@pytest.mark.parametrize(
    "query",
    [
        *(f"SELECT k FROM c WHERE {condition}" for condition in _CONDITIONS),
        f"SELECT c.k FROM c LEFT JOIN o ON o.k = c.k AND {_SAID} WHERE o.k IS NULL",
        f"SELECT c.k FROM c LEFT JOIN (SELECT * FROM o WHERE {_SAID}) AS o ON o.k = c.k WHERE o.k IS NULL",
        f"WITH a AS (SELECT k FROM o WHERE {_SAID}) SELECT k FROM c WHERE k IN (SELECT k FROM a)",
        f"SELECT k, (SELECT count(*) FROM o WHERE {_SAID}) AS n FROM c WHERE k > 1",
        f"SELECT c.k FROM c LEFT JOIN o ON o.k = c.k WHERE {_SAID}",
        "SELECT k FROM (SELECT * FROM c WHERE answer(z, 'w') = 'b') AS s WHERE k > 2",
    ],
)
def test_a_row_meets_every_condition_just_where_the_result_has_it(query: str) -> None:
    with _connect() as con:
        shown = {row[0] for row in con.sql(query)}
        for key in (1, 2, 3):
            why = con.why_not(query, {"k": key})
            assert why.conditions
            assert (not why.rejected) == (key in shown), str(why)


def test_each_conjunct_is_one_condition() -> None:
    with _connect() as con:
        why = con.why_not(f"SELECT k FROM c WHERE {_CONDITIONS[-1]}", {"k": 1})
    assert [condition.truth for condition in why.conditions] == [False, False, False]
    assert why.conditions[0].text == "answer(z, 'w') = 'b'"


def test_a_key_is_named_by_columns_of_the_query_alone() -> None:
    with _connect() as con, pytest.raises(UnknownNameError) as caught:
        con.why_not("SELECT k FROM c WHERE answer(z, 'w') = 'b'", {"nap": 1})
    assert "nap" not in str(caught.value).partition(";")[2]


def test_a_key_that_names_no_row_is_refused() -> None:
    with almanaq.connect({"c": {"k": [1, 2]}}) as con, pytest.raises(UsageError, match="the key is empty"):
        con.why_not("SELECT k FROM c WHERE k > 1", {})


def test_what_sqlglot_reads_otherwise_is_named_in_sql() -> None:
    with _connect() as con, pytest.raises(UnsupportedError) as caught:
        con.why_not("SELECT k FROM c WHERE position('a' IN z) = 1 AND answer(z, 'w') = 'b'", {"k": 1})
    assert caught.value.message == "not supported beside text functions: instr(z, 'a')"
