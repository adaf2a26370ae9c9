"""Calls that fail: their causes are named, the result is not exact, and none answered is an error."""

from __future__ import annotations

import pytest

import almanaq
from almanaq.errors import ModelCallError, ModelError
from almanaq.models.failure import FailedCall
from almanaq.testing import FunctionModel

TABLES = {"t": {"id": [1, 2, 3, 4], "body": ["ASAP", "no rush", "broken", "long"]}}
WANTED = "SELECT id FROM t WHERE answer(body, 'urgent?') = 'Yes'"


def fails(text: str, _: str) -> str:
    if text == "broken":
        failure = FailedCall("https://secret/v1 said: my text", cause="HTTP 500")
        failure.tries = 4
        raise failure
    if text == "long":
        raise FailedCall("my text is too long", retryable=False, cause="longer than the model reads")
    return "Yes" if text == "ASAP" else "No"


def test_the_warning_names_each_cause_and_the_result_is_not_exact() -> None:
    with almanaq.connect(TABLES, model=FunctionModel(fails), cache=False) as con:
        result = con.sql(WANTED)
        sure = con.sql(WANTED + " AND id < 3")
    assert result.rows == [(1,)]
    assert (result.trace.unknown_calls, result.trace.exact, sure.trace.exact) == (2, False, True)
    (warning,) = result.trace.warnings
    assert "HTTP 500, in 4 tries: 1" in warning
    assert "longer than the model reads: 1" in warning
    assert "my text" not in warning
    assert "not exact: 2 answer(s) unknown" in repr(result)
    assert sure.trace.warnings == ()


@pytest.mark.parametrize(
    "query",
    [
        WANTED,
        "SELECT count(*) FROM t WHERE answer(body, 'urgent?') = 'Yes'",
        "SELECT id FROM t WHERE id NOT IN (SELECT id FROM t WHERE answer(body, 'urgent?') = 'Yes')",
        "SELECT coalesce(answer(body, 'urgent?'), 'No') FROM t",
    ],
)
def test_a_query_of_which_no_call_was_answered_is_an_error(query: str) -> None:
    def down(text: str, question: str) -> str:
        raise ModelCallError("my text")

    with almanaq.connect(TABLES, model=FunctionModel(down), cache=False) as con:
        with pytest.raises(ModelError, match="none of the query's 4 model call") as caught:
            con.sql(query)
        assert "my text" not in str(caught.value)
        assert not isinstance(caught.value, ModelCallError)
        assert con.sql("SELECT id FROM t WHERE id < 0 AND answer(body, 'urgent?') = 'Yes'").rows == []


def test_an_answer_kept_before_is_an_answer() -> None:
    asked: list[str] = []

    def once(text: str, _: str) -> str:
        asked.append(text)
        if text != "ASAP":
            raise ModelCallError("no")
        return "Yes"

    with almanaq.connect(TABLES, model=FunctionModel(once), cache=False) as con:
        assert con.sql(WANTED).rows == [(1,)]
        assert con.sql(WANTED).trace.unknown_calls == 3
