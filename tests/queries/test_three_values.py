"""Three-valued logic, blank documents, and literals: what "no information" does to a row."""

from __future__ import annotations

import pytest

from .support import Asked, arrays, texts

pytestmark = pytest.mark.usefixtures("engine")

Q = "answer(body, 'calm?')"


@pytest.fixture(scope="module")
def places(engine: str) -> Asked:
    return Asked(
        places={
            "id": [1, 2, 3, 4, 5, 6],
            "stars": [5, 4, None, 2, 1, 0],
            "body": texts("calm=Yes", "calm=No", "noise=Yes", None, "  \n", ""),
        }
    )


@pytest.mark.parametrize(
    ("condition", "ids"),
    [
        (f"{Q} = 'Yes'", [1]),
        (f"{Q} = 'No'", [2]),
        (f"{Q} <> 'Yes'", [2]),
        (f"NOT ({Q} = 'Yes')", [2]),
        (f"NOT ({Q} <> 'Yes')", [1]),
        (f"'Yes' = {Q}", [1]),
        (f"{Q} IS NULL", [3, 4, 5, 6]),
        (f"{Q} IS NOT NULL", [1, 2]),
        (f"{Q} = 'Yes' OR stars < 3", [1, 4, 5, 6]),
        (f"NOT ({Q} = 'Yes' OR stars < 3)", [2]),
        (f"NOT ({Q} = 'Yes' AND stars < 3)", [1, 2]),
        (f"({Q} = 'Yes') IS NOT TRUE", [2, 3, 4, 5, 6]),
        (f"({Q} = 'Yes') IS NULL", [3, 4, 5, 6]),
        (f"({Q} = 'Yes') IS DISTINCT FROM (stars = 5)", [4, 5, 6]),
        (f"coalesce({Q}, 'No') = 'No'", [2, 3, 4, 5, 6]),
        (f"coalesce({Q} = 'Yes', TRUE)", [1, 3, 4, 5, 6]),
        (f"{Q} IN ('Yes', 'No')", [1, 2]),
        (f"{Q} IN ('maybe', 'No')", [2]),
        (f"{Q} NOT IN ('Yes', 'maybe')", [2]),
        (f"{Q} NOT IN ('Yes', NULL)", []),
        (f"{Q} IN ('Yes', NULL)", [1]),
        (f"{Q} = 'Yes' AND NULL", []),
        (f"{Q} = 'Yes' OR NULL", [1]),
        (f"CASE {Q} WHEN 'Yes' THEN stars > 4 WHEN 'No' THEN FALSE ELSE id = 4 END", [1, 4]),
        (f"CASE WHEN stars > 3 THEN {Q} = 'No' ELSE id > 4 END", [2, 5, 6]),
        (f"{Q} || '!' = 'Yes!'", [1]),
        (f"{Q} = {Q}", [1, 2]),
        (f"{Q} BETWEEN 'A' AND 'O'", [2]),
        (f"{Q} ILIKE 'y%'", [1]),
        (f"{Q} = ANY(ARRAY['Yes', 'maybe'])", [1]),
    ],
)
def test_where(places: Asked, condition: str, ids: list[int]) -> None:
    assert sorted(r[0] for r in places.rows(f"SELECT id FROM places WHERE {condition}")) == ids


def test_the_value_of_no_information_is_null(places: Asked) -> None:
    expected = [(1, "Yes"), (2, "No"), (3, None), (4, None), (5, None), (6, None)]
    assert places.rows(f"SELECT id, {Q} FROM places ORDER BY id") == expected


def test_blank_documents_are_not_asked(places: Asked) -> None:
    assert places.calls(f"SELECT {Q} FROM places") == 3


def test_an_array_is_one_document_without_its_nulls() -> None:
    asked = Asked(
        t={"id": [1, 2, 3, 4, 5], "notes": arrays(["calm=Yes", None, " "], [None], [], None, ["z=1", "", "calm=No"])}
    )
    rows = asked.rows("SELECT id, answer(notes, 'calm?'), summary(notes) FROM t ORDER BY id")
    assert rows == [
        (1, "Yes", "<calm=Yes>"),
        (2, None, None),
        (3, None, None),
        (4, None, None),
        (5, "No", "<z=1\n\ncalm=No>"),
    ]


def test_replies_that_differ_in_case_and_space_are_one_value() -> None:
    replies = texts("who=Ann", "who= ANN ", "who=ann\n", "who=Bob")
    asked = Asked(t={"id": [1, 2, 3, 4], "body": replies})
    who = "answer(body, 'who?')"
    distinct = asked.rows(f"SELECT DISTINCT {who} FROM t")
    assert sorted(v.strip().casefold() for (v,) in distinct) == ["ann", "bob"]
    assert asked.rows(f"SELECT count(*) FROM t GROUP BY {who} ORDER BY 1") == [(1,), (3,)]
    assert asked.rows(f"SELECT count(DISTINCT {who}) FROM t") == [(2,)]
    assert asked.rows(f"SELECT id FROM t WHERE {who} = 'ANN' ORDER BY id") == [(1,), (2,), (3,)]
    assert asked.rows(f"SELECT id FROM t WHERE {who} IN ('ann', 'x') ORDER BY id") == [(1,), (2,), (3,)]
    assert asked.rows(f"SELECT id FROM t WHERE {who} <> 'aNN' ORDER BY id") == [(4,)]
    assert asked.rows(f"SELECT CASE {who} WHEN 'ann' THEN 1 ELSE 0 END FROM t ORDER BY id") == [(1,), (1,), (1,), (0,)]
    joined = "answer(a.body, 'who?') = answer(b.body, 'who?')"
    assert asked.rows(f"SELECT count(*) FROM t a JOIN t b ON {joined}") == [(10,)]
    assert asked.rows(f"SELECT {who} FROM t INTERSECT SELECT {who} FROM t WHERE id = 4") == [("Bob",)]


def test_a_distinct_answer_is_shown_in_its_first_spelling() -> None:
    asked = Asked(t={"id": [1, 2], "body": texts("who=Ann", "who=ANN")})
    assert asked.rows("SELECT DISTINCT answer(body, 'who?') FROM t") == [("Ann",)]
    assert asked.rows("SELECT id, answer(body, 'who?') FROM t ORDER BY id") == [(1, "Ann"), (2, "Ann")]
