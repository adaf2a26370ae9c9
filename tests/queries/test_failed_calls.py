"""Calls that fail: their causes are named, the result is not exact, and none answered is an error."""

from __future__ import annotations

import itertools
import random

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


def test_under_strict_a_failed_call_is_the_error_that_users_know() -> None:
    with almanaq.connect(TABLES, model=FunctionModel(fails), cache=False, strict=True) as con:
        with pytest.raises(ModelCallError) as caught:
            con.sql(WANTED)
        failed = con.ask(WANTED).error
    assert type(caught.value) is ModelCallError
    assert isinstance(caught.value.__cause__, FailedCall)
    assert failed is None or type(failed) is ModelCallError


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


FORMS = (
    "SELECT id FROM t WHERE answer(body, 'urgent?') = 'Yes'",
    "SELECT id FROM t WHERE NOT answer(body, 'urgent?') = 'Yes' OR id < 2",
    "SELECT id FROM t WHERE id IN (SELECT id FROM t WHERE answer(body, 'urgent?') = 'Yes')",
    "SELECT id FROM t WHERE EXISTS (SELECT 1 FROM t u WHERE u.id > t.id AND answer(u.body, 'urgent?') = 'Yes')",
    "SELECT t.id FROM t JOIN t u ON u.id = t.id + 1 AND answer(u.body, 'urgent?') = 'Yes'",
    "SELECT id FROM t WHERE answer(body, 'urgent?') = 'Yes' UNION SELECT id FROM t WHERE id = 1",
    "SELECT id FROM (SELECT id, answer(body, 'urgent?') AS v FROM t) s WHERE v IS NULL",
    "SELECT id FROM t WHERE id NOT IN (SELECT id FROM t WHERE answer(body, 'urgent?') = 'Yes')",
    "SELECT id FROM t WHERE id <> ALL (SELECT id FROM t WHERE answer(body, 'urgent?') = 'Yes')",
    "SELECT id FROM t WHERE NOT EXISTS (SELECT 1 FROM t u WHERE u.id = t.id AND answer(u.body, 'urgent?') = 'Yes')",
    "SELECT id FROM t EXCEPT SELECT id FROM t WHERE answer(body, 'urgent?') = 'Yes'",
    "SELECT t.id FROM t LEFT JOIN t u ON u.id = t.id AND answer(u.body, 'urgent?') = 'Yes' WHERE u.id IS NULL",
    "SELECT id, coalesce(answer(body, 'urgent?'), 'No') FROM t",
    "SELECT coalesce(answer(body, 'urgent?'), 'No'), count(*) FROM t GROUP BY 1",
    "SELECT count(*) FROM t WHERE answer(body, 'urgent?') = 'Yes'",
    "SELECT id FROM t WHERE answer(body, 'urgent?') = 'Yes' ORDER BY id LIMIT 1",
    "WITH s AS (SELECT id FROM t WHERE answer(body, 'urgent?') = 'Yes') SELECT id FROM t WHERE id NOT IN (TABLE s)",
)
MARK = "rows may be shown that should not"


@pytest.mark.sampled(3)
@pytest.mark.parametrize("query", FORMS)
def test_each_row_of_a_result_that_is_not_marked_is_one_whatever_the_unknown_answers_are(query: str) -> None:
    rng = random.Random(query)
    for _ in range(2):
        bodies = [f"text {n}" for n in range(4)]
        said = {body: rng.choice(("Yes", "No")) for body in bodies}
        failing = rng.sample(bodies, 1)
        tables = {"t": {"id": list(range(1, 5)), "body": bodies}}

        def partly(text: str, _: str, said: dict[str, str] = said, failing: list[str] = failing) -> str:
            if text in failing:
                raise ModelCallError("no")
            return said[text]

        with almanaq.connect(tables, model=FunctionModel(partly), cache=False) as con:
            try:
                result = con.sql(query)
            except ModelError:  # it asked about texts that fail alone
                continue
        certain = None
        for replies in itertools.product(("Yes", "No", None), repeat=len(failing)):
            full = said | dict(zip(failing, replies, strict=True))
            with almanaq.connect(tables, model=FunctionModel(lambda t, _, full=full: full[t]), cache=False) as con:
                found = set(con.sql(query).rows)
            certain = found if certain is None else certain & found
        assert certain is not None
        assert result.trace.exact is (result.trace.unknown_calls == 0)
        marked = any(MARK in warning for warning in result.trace.warnings)
        assert marked or set(result.rows) <= certain, query
        assert marked is (FORMS.index(query) >= 7) or not result.trace.unknown_calls
