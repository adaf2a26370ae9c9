"""Calls that fail: their causes are named, the result is not exact, and none answered is an error."""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable, Iterator, Mapping

import pytest

import almanaq
from almanaq.errors import ModelCallError, ModelError
from almanaq.models.retrying import FailedCall
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


@pytest.mark.parametrize("shown", ["id", "id, t"])
@pytest.mark.parametrize(
    ("condition", "ids"),
    [
        ("answer(answer(body, 'urgent?'), 'why?') IS NULL", [2]),
        ("answer(answer(answer(body, 'urgent?'), 'who?'), 'why?') IS NULL AND id > 0", [2]),
        ("coalesce(answer(body || answer(body, 'urgent?'), 'why?'), '-') = '-'", [2]),
        ("CASE WHEN id < 4 THEN answer(body, 'urgent?') IS NULL ELSE true END", [4]),
        ("CASE WHEN nullif(id, 1) > 1 THEN answer(body, 'urgent?') IS NULL ELSE true END", [1]),
    ],
)
def test_no_condition_on_an_answer_about_an_unknown_one_holds(shown: str, condition: str, ids: list[int]) -> None:
    def reply(text: str, question: str) -> str | None:
        return fails(text, question) if question == "urgent?" else None if "no" in text.lower() else "since"

    with almanaq.connect(TABLES, model=FunctionModel(reply), cache=False) as con:
        assert [row[0] for row in con.sql(f"SELECT {shown} FROM t WHERE {condition} ORDER BY id").rows] == ids
        either = con.sql("SELECT id FROM t WHERE answer(answer(body, 'urgent?'), 'why?') IS NULL OR id = 3")
        assert "rows may be shown that should not" in str(either.trace.warnings)


@pytest.mark.parametrize("shown", ["id", "id, t"])
@pytest.mark.parametrize(
    "condition",
    [
        "CASE WHEN id < 3 THEN answer(body, 'urgent?') ELSE 'Yes' END = 'Yes'",
        "coalesce(CASE WHEN id > 2 THEN 'Yes' END, answer(body, 'urgent?')) = 'Yes'",
        "CASE WHEN answer(id::text, 'urgent?') = 'No' AND id < 3 THEN answer(body, 'urgent?') ELSE 'Yes' END = 'Yes'",
        "NOT CASE WHEN id < 3 THEN answer(body, 'urgent?') = 'No' ELSE answer(body, 'urgent?') = 'No' AND false END",
    ],
)
def test_a_row_does_not_rest_on_a_call_in_a_branch_that_it_does_not_take(shown: str, condition: str) -> None:
    with almanaq.connect(TABLES, model=FunctionModel(fails), cache=False) as con:
        found = con.sql(f"SELECT {shown} FROM t WHERE {condition} ORDER BY id")
    assert [row[0] for row in found.rows] == [1, 3, 4]


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


URGENT = "answer(body, 'urgent?') = 'Yes'"
OF_U = "answer(u.body, 'urgent?') = 'Yes'"
CALM = "answer(u.body, 'calm?') = 'Yes'"
OR_NO = "coalesce(answer(u.body, 'calm?'), 'No')"
ASKED = f"SELECT id FROM t WHERE {URGENT}"
OF_M = f"SELECT m.id FROM t m WHERE NOT EXISTS (SELECT 1 FROM t u WHERE u.id = m.id AND {OF_U})"
CERTAIN = (
    ASKED,
    f"SELECT id FROM t WHERE NOT {URGENT} OR id < 2",
    f"SELECT id FROM t WHERE id IN ({ASKED})",
    f"SELECT id FROM t WHERE EXISTS (SELECT 1 FROM t u WHERE u.id > t.id AND {OF_U})",
    f"SELECT t.id FROM t JOIN t u ON u.id = t.id + 1 AND {OF_U}",
    f"{ASKED} UNION SELECT id FROM t WHERE id = 1",
    "SELECT id FROM (SELECT id, answer(body, 'urgent?') AS v FROM t) s WHERE v IS NULL",
    f"SELECT id FROM t WHERE id NOT IN ({ASKED})",
    f"SELECT id FROM t WHERE id <> ALL ({ASKED})",
    f"SELECT id FROM t WHERE NOT EXISTS (SELECT 1 FROM t u WHERE u.id = t.id AND {OF_U})",
    f"SELECT id FROM t WHERE NOT EXISTS (SELECT 1 FROM t u WHERE u.id > 2 AND {OF_U})",
    f"SELECT id FROM t EXCEPT {ASKED}",
    f"{ASKED} EXCEPT SELECT 2",
    f"SELECT id FROM t EXCEPT ALL SELECT id FROM t WHERE NOT {URGENT} AND id > 1",
    f"SELECT id FROM t WHERE NOT EXISTS (SELECT 1 FROM t u WHERE u.id > t.id AND {OF_U} AND {CALM})",
    f"SELECT id FROM t WHERE NOT EXISTS (SELECT 1 FROM t u WHERE u.id > t.id AND ({OF_U} OR u.id = 3 AND NOT {CALM}))",
    f"SELECT id FROM t WHERE id < 2 OR NOT EXISTS (SELECT 1 FROM t u WHERE {OR_NO} = 'No')",
    f"SELECT id FROM t WHERE id NOT IN (SELECT u.id FROM t u WHERE u.id >= t.id AND {OF_U})",
    f"SELECT id FROM t WHERE id IN ({ASKED}) AND id + 1 NOT IN ({ASKED})",
    f"SELECT id FROM t WHERE id + 1 NOT IN ({ASKED}) AND id IN ({ASKED})",
    f"SELECT id FROM t WHERE id IN ({OF_M})",
    f"SELECT s.id FROM (SELECT id FROM t WHERE id NOT IN ({ASKED})) s WHERE s.id > 1",
    f"SELECT id FROM t WHERE {URGENT} AND NOT EXISTS (SELECT 1 FROM t u WHERE u.id > t.id AND {OF_U})",
    f"WITH s AS ({ASKED}) SELECT id FROM t WHERE id NOT IN (TABLE s)",
)
UNCERTAIN = (
    f"SELECT id FROM t WHERE NOT EXISTS (SELECT 1 FROM t u WHERE NOT (u.id > t.id AND {OF_U}))",
    f"SELECT id FROM t WHERE NOT EXISTS (SELECT 1 FROM t u WHERE NOT (u.id > t.id AND {OF_U}) AND {CALM})",
    f"SELECT id FROM t WHERE id NOT IN ({OF_M})",
    f"SELECT id FROM t WHERE NOT (id > 2 OR EXISTS (SELECT 1 FROM t u WHERE u.id = t.id AND {OF_U}))",
    f"SELECT id FROM t WHERE id NOT IN (SELECT u.id FROM t u JOIN t w ON w.id = u.id + 1 WHERE {OF_U})",
    f"SELECT id FROM t WHERE id NOT IN ({ASKED} ORDER BY id LIMIT 1)",
    f"SELECT id FROM t WHERE id NOT IN ({ASKED} LIMIT 1)",
    f"SELECT id FROM t WHERE id NOT IN (SELECT max(id) FROM t WHERE {URGENT} GROUP BY id % 2)",
    f"SELECT id FROM t WHERE NOT EXISTS (SELECT 1 FROM t u WHERE u.id = t.id AND {URGENT.replace('body', 't.body')})",
    f"SELECT id, id NOT IN ({ASKED}) FROM t",
    f"SELECT count(*) FROM t WHERE id NOT IN ({ASKED})",
    f"SELECT t.id FROM t LEFT JOIN t u ON u.id = t.id AND {OF_U} WHERE u.id IS NULL",
    "SELECT id, coalesce(answer(body, 'urgent?'), 'No') FROM t",
    "SELECT coalesce(answer(body, 'urgent?'), 'No'), count(*) FROM t GROUP BY 1",
    f"SELECT count(*) FROM t WHERE {URGENT}",
    f"{ASKED} ORDER BY id LIMIT 1",
    f"SELECT id FROM t WHERE id NOT IN ({ASKED}) ORDER BY id LIMIT 1",
    f"WITH s AS ({ASKED}) SELECT id FROM t WHERE id NOT IN (TABLE s) AND id - 1 IN (TABLE s)",
)
MARK = "rows may be shown that should not"


@pytest.mark.sampled(20)
@pytest.mark.parametrize("query", [*CERTAIN, *UNCERTAIN])
def test_each_row_of_a_result_that_is_not_marked_is_one_whatever_the_unknown_answers_are(
    rows_of: RowsOf, query: str
) -> None:
    rng = random.Random(query)
    bodies = [f"text {n}" for n in range(4)]
    for _ in range(3):
        said = {pair: rng.choice(("Yes", "No")) for pair in itertools.product(bodies, ("urgent?", "calm?"))}
        failing = [(rng.choice(bodies), "urgent?"), (rng.choice(bodies), "calm?")]
        result = rows_of(query, {pair: reply for pair, reply in said.items() if pair not in failing})
        if result is None:
            continue
        asked = [pair for pair in failing if pair[1] in query]
        certain = None
        for replies in itertools.product(("Yes", "No", None), repeat=len(asked)):
            full = rows_of(query, said | dict(zip(asked, replies, strict=True)))
            assert full is not None
            certain = set(full.rows) if certain is None else certain & set(full.rows)
        assert certain is not None
        assert result.trace.exact is (result.trace.unknown_calls == 0)
        marked = any(MARK in warning for warning in result.trace.warnings)
        assert marked or set(result.rows) <= certain, query
        assert marked is (query in UNCERTAIN) or not result.trace.unknown_calls


RowsOf = Callable[[str, Mapping[tuple[str, str], str | None]], almanaq.Result | None]


@pytest.fixture(scope="module")
def rows_of() -> Iterator[RowsOf]:
    """Give what a query gives where calls without a reply fail; None where no call was answered."""
    known: dict[tuple[str, str], str | None] = {}

    def reply(*asked: str) -> str | None:
        if asked not in known:
            raise ModelCallError("no")
        return known[asked]

    tables = {"t": {"id": [1, 2, 3, 4], "body": [f"text {n}" for n in range(4)]}}
    with almanaq.connect(tables, model=FunctionModel(reply), cache=False) as con:

        def run(query: str, said: Mapping[tuple[str, str], str | None]) -> almanaq.Result | None:
            known.clear()
            known.update(said)
            try:
                return con.sql(query)
            except ModelError:
                return None

        yield run


@pytest.mark.parametrize(
    ("shown", "certain"),
    [
        ("answer(body, 'urgent?')", True),
        ("answer(body, 'urgent?', {'mood': ['good', 'bad'], 'beds': 'INTEGER'})", True),
        ("answer(body, 'urgent?', '{\"beds\": \"integer\"}'::json)", True),
        ("(answer(body, 'urgent?', {'beds': 'INTEGER'})).beds + 1", False),
        ("{'beds': coalesce(answer(body, 'urgent?: beds'), 'none')}", False),
    ],
)
def test_answers_that_are_shown_as_they_are_make_no_row_uncertain(shown: str, certain: bool) -> None:
    def reply(text: str, _: str) -> str:
        if text == "broken":
            raise ModelCallError("no")
        return "1"

    with almanaq.connect({"t": {"body": ["fine", "broken"]}}, model=FunctionModel(reply), cache=False) as con:
        trace = con.sql(f"SELECT {shown} FROM t").trace
    assert trace.unknown_calls
    assert certain is not any(MARK in warning for warning in trace.warnings)


def test_what_an_unknown_answer_takes_away_is_known_from_the_rest(rows_of: RowsOf) -> None:
    """A note of which one answer failed is asked the other: where that is No, it takes nothing away."""
    query = f"SELECT id FROM t WHERE id NOT IN (SELECT u.id FROM t u WHERE {OF_U} AND {CALM})"
    said = {(f"text {n}", question): "Yes" for n in range(4) for question in ("urgent?", "calm?")}
    del said["text 0", "urgent?"], said["text 1", "urgent?"]
    result = rows_of(query, said | {("text 1", "calm?"): "No"})
    assert result is not None
    assert (result.rows, result.trace.exact) == ([(2,)], False)


X, Y = "answer(x, 'x?')", "answer(y, 'y?')"


@pytest.mark.parametrize("order", ["", " ORDER BY id DESC"])
@pytest.mark.parametrize(
    "condition",
    [
        f"{X} IS NULL",
        f"{X} IS DISTINCT FROM 'a'",
        f"NOT ({X} IS NULL) OR id = 3",
        f"coalesce({X}, 'a') = 'a'",
        f"({X} IS NULL) = ({Y} IS NULL)",
        f"NOT ({X} IS NULL AND {Y} IS NULL)",
        f"CASE WHEN {X} IS NULL THEN true ELSE id > 1 END",
        "id IN (SELECT id FROM t WHERE answer(y, 'y?') IS NULL)",
    ],
)
def test_no_condition_holds_by_a_failed_call_in_a_query_that_is_taken_apart(condition: str, order: str) -> None:
    """A row as a value is planned no more: the text functions become tables of answers."""

    def reply(text: str, _: str) -> str | None:
        if text == "fails":
            raise ModelCallError("no")
        return None if text == "silent" else text

    xs = ["a", "b", "fails", "silent", None, "a"]
    tables = {"t": {"id": list(range(6)), "x": xs, "y": ["a", "silent", "b", "fails", "fails", None]}}
    with almanaq.connect(tables, model=FunctionModel(reply), cache=False) as con:
        whole = con.sql(f"SELECT id FROM t WHERE {condition} ORDER BY id")
        apart = con.sql(f"SELECT id FROM (SELECT t AS r, id, x, y FROM t{order}) AS t WHERE {condition} ORDER BY id")
    assert apart.rows == whole.rows
    assert apart.trace.unknown_calls
