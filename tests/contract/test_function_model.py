"""Semantics 18 and what follows from it: FunctionModel counts every call, and the engine makes none too many."""

from __future__ import annotations

import time

import pyarrow as pa
import pytest

import almanaq
from almanaq.testing import FunctionModel


def connect(model, **tables):
    return almanaq.connect(
        {name: pa.table(columns) for name, columns in tables.items()},
        model=model,
        embedder="lexical",
        speculation=1,
        order="table",
        cache=False,
    )


def run(model, suql, **tables):
    """Run one query on tables given by columns; check the law that holds for all: calls == trace.text_calls."""
    with connect(model, **tables) as connection:
        before = model.calls
        result = connection.sql(suql)
        assert model.calls - before == result.trace.text_calls
        assert len(model.requests) == model.calls
        return result


def long(words: str) -> str:
    """Pad words to prose, so that a column is taken for free text however short the point is."""
    return f"{words}. Everything else about this evening was as one would expect it to be in such a place."


def yes_if(word: str):
    return lambda text, question: "Yes" if word in text else "No"


TWO_HUNDRED = {
    "id": list(range(200)),
    "city": ["Paris" if i % 4 == 1 else "Lyon" for i in range(200)],
    "rating": [((i * 7) % 50) / 10 for i in range(200)],
    "notes": [long(f"Table {i} was set {'with candles' if i % 5 == 1 else 'without a cloth'}") for i in range(200)],
}
CANDLES = "answer(notes, 'are there candles?') = 'Yes'"


def test_one_call_per_document_passages_joined_by_a_blank_line():
    model = FunctionModel(lambda text, question: "Yes")
    run(model, "SELECT id FROM r WHERE answer(notes, 'quiet?') = 'Yes'", r={"id": [1], "notes": [["a b", "c d"]]})
    assert model.requests == [("a b\n\nc d", "quiet?")]


def test_summary_asks_summary():
    model = FunctionModel(lambda text, question: question.upper())
    result = run(model, "SELECT summary(notes) FROM r", r={"id": [1], "notes": [long("Candles")]})
    assert result.rows == [("SUMMARY",)]
    assert model.requests == [(long("Candles"), "summary")]


def test_empty_documents_are_null_without_a_call():
    model = FunctionModel(lambda text, question: "Yes")
    notes = [None, "", " \n\t ", long("Candles")]
    result = run(
        model, "SELECT id, answer(notes, 'quiet?') AS a FROM r ORDER BY id", r={"id": [1, 2, 3, 4], "notes": notes}
    )
    assert [row[1] for row in result.rows] == [None, None, None, "Yes"]
    assert model.calls == 1


def test_passages_that_are_all_blank_are_an_empty_document():
    model = FunctionModel(lambda text, question: "Yes")
    notes = [None, [], ["", " "], [None], ["", long("Candles"), None]]
    result = run(
        model, "SELECT id, answer(notes, 'quiet?') AS a FROM r ORDER BY id", r={"id": [1, 2, 3, 4, 5], "notes": notes}
    )
    assert [row[1] for row in result.rows] == [None, None, None, None, "Yes"]
    assert model.calls == 1


@pytest.mark.parametrize(
    ("condition", "ids"),
    [
        ("answer(notes, 'q') = 'Yes'", [1]),
        ("answer(notes, 'q') <> 'Yes'", [2]),
        ("NOT (answer(notes, 'q') = 'Yes')", [2]),
        ("answer(notes, 'q') = 'No'", [2]),
        ("answer(notes, 'q') IS NULL", [3]),
        ("answer(notes, 'q') IS NOT NULL", [1, 2]),
        ("answer(notes, 'q') IN ('Yes', 'No')", [1, 2]),
        ("answer(notes, 'q') NOT IN ('Yes')", [2]),
        ("(answer(notes, 'q') = 'Yes') IS NULL", [3]),
        ("answer(notes, 'q') = 'Yes' OR id = 3", [1, 3]),
        ("NOT (answer(notes, 'q') = 'Yes' AND id > 0)", [2]),
        ("coalesce(answer(notes, 'q'), 'Unknown') = 'Unknown'", [3]),
        ("CASE WHEN answer(notes, 'q') = 'Yes' THEN false ELSE true END", [2, 3]),
    ],
)
def test_no_information_is_null_everywhere(condition, ids):
    replies = {"yes": "Yes", "no": "No", "none": None}
    model = FunctionModel(lambda text, question: replies[text.split()[0]])
    result = run(
        model,
        f"SELECT id FROM r WHERE {condition} ORDER BY id",
        r={"id": [1, 2, 3], "notes": [long("yes it is"), long("no it is not"), long("none can tell")]},
    )
    assert [row[0] for row in result.rows] == ids


def test_a_verdict_compares_canonical_replies():
    model = FunctionModel(lambda text, question: "  ponte   VECCHIO ")
    result = run(
        model, "SELECT id FROM r WHERE answer(notes, 'which bridge?') = 'Ponte Vecchio'",
        r={"id": [1], "notes": [long("Under the bridge")]},
    )  # fmt: skip
    assert result.rows == [(1,)]


def test_equal_replies_are_one_value_in_the_first_spelling():
    spellings = iter(["Jazz", "jazz ", "JAZZ", "Folk"])
    model = FunctionModel(lambda text, question: next(spellings))
    notes = [long(f"Evening {i}") for i in range(4)]
    result = run(
        model, "SELECT answer(notes, 'what music?') AS music, count(*) AS n FROM r GROUP BY 1 ORDER BY 2 DESC",
        r={"id": [1, 2, 3, 4], "notes": notes},
    )  # fmt: skip
    assert [(row[0].strip().casefold(), row[1]) for row in result.rows] == [("jazz", 3), ("folk", 1)]


def test_equal_texts_are_asked_once():
    model = FunctionModel(yes_if("candles"))
    result = run(
        model, f"SELECT id FROM r WHERE {CANDLES}", r={"id": list(range(50)), "notes": [long("with candles")] * 50}
    )
    assert (len(result.rows), model.calls) == (50, 1)


def test_where_and_select_share_a_call():
    model = FunctionModel(yes_if("candles"))
    run(
        model,
        "SELECT id, answer(notes, 'are there candles?') AS a FROM r WHERE answer(notes, 'are there candles?') = 'Yes' "
        "ORDER BY answer(notes, 'are there candles?'), id",
        r={"id": [1, 2], "notes": [long("with candles"), long("by lamp")]},
    )
    assert model.calls == 2


def test_a_limit_stops_the_calls():
    model = FunctionModel(yes_if("with candles"))
    result = run(model, f"SELECT id FROM r WHERE city = 'Paris' AND {CANDLES} LIMIT 3", r=TWO_HUNDRED)
    right = [i for i in range(200) if i % 4 == 1 and i % 5 == 1]
    assert [row[0] for row in result.rows] == right[:3]
    assert model.calls <= sum(1 for i in range(right[2] + 1) if i % 4 == 1)


def test_a_structured_condition_goes_first():
    model = FunctionModel(yes_if("with candles"))
    result = run(model, f"SELECT count(*) AS n FROM r WHERE {CANDLES} AND city = 'Paris'", r=TWO_HUNDRED)
    assert (result.rows, model.calls) == ([(10,)], 50)


def test_a_cheap_branch_of_or_spares_the_model():
    model = FunctionModel(yes_if("with candles"))
    result = run(model, f"SELECT id FROM r WHERE city = 'Paris' OR {CANDLES}", r=TWO_HUNDRED)
    assert len(result.rows) == sum(1 for i in range(200) if i % 4 == 1 or i % 5 == 1)
    assert model.calls == 150


def test_order_by_a_column_stops_at_the_last_row_needed():
    model = FunctionModel(yes_if("with candles"))
    result = run(model, f"SELECT id, rating FROM r WHERE {CANDLES} ORDER BY rating DESC, id LIMIT 3", r=TWO_HUNDRED)
    order = sorted(range(200), key=lambda i: (-TWO_HUNDRED["rating"][i], i))
    right = [i for i in order if i % 5 == 1][:3]
    assert [row[0] for row in result.rows] == right
    assert model.calls == order.index(right[2]) + 1


@pytest.mark.parametrize(
    "suql",
    [
        f"SELECT count(*) AS n FROM r WHERE {CANDLES} LIMIT 1",
        f"SELECT id FROM r WHERE {CANDLES} ORDER BY id OFFSET 38",
        f"SELECT DISTINCT city FROM r WHERE {CANDLES} ORDER BY city LIMIT 5",
        f"SELECT city, max(rating) AS best FROM r WHERE {CANDLES} GROUP BY city ORDER BY city LIMIT 2",
        f"SELECT id FROM r WHERE {CANDLES} UNION SELECT id FROM r WHERE id < 3 ORDER BY id LIMIT 4",
        f"SELECT id, row_number() OVER (ORDER BY rating DESC, id) AS n FROM r WHERE {CANDLES} ORDER BY n LIMIT 2",
    ],
)
def test_a_limit_is_not_pushed_where_it_would_change_the_rows(suql):
    """The database itself, with the condition written out, says what the rows are."""
    import duckdb

    model = FunctionModel(yes_if("with candles"))
    result = run(model, suql, r=TWO_HUNDRED)
    with duckdb.connect() as database:
        database.register("r", pa.table(TWO_HUNDRED))
        right = database.execute(suql.replace(CANDLES, "notes LIKE '%with candles%'")).fetchall()
    assert result.rows == right


def test_latencies_overlap():
    model = FunctionModel(yes_if("with candles"), latency=0.1)
    started = time.perf_counter()
    result = run(model, f"SELECT count(*) AS n FROM r WHERE {CANDLES}", r=TWO_HUNDRED)
    assert result.rows == [(40,)]
    assert time.perf_counter() - started < 200 * 0.1 / 2


def test_replies_are_not_persisted():
    for _ in range(2):
        model = FunctionModel(yes_if("candles"))
        with almanaq.connect({"r": pa.table({"id": [1], "notes": [long("with candles")]})}, model=model) as connection:
            assert connection.sql(f"SELECT id FROM r WHERE {CANDLES}").trace.text_calls == 1
        assert model.calls == 1


def test_a_function_is_never_asked_to_link():
    model = FunctionModel(yes_if("candles"))
    price = pa.array(["cheap", "luxury"]).dictionary_encode()
    table = pa.table({"id": [1, 2], "price": price})
    with almanaq.connect({"r": table}, model=model, cache=False) as connection:
        result = connection.sql("SELECT id FROM r WHERE price = 'inexpensive'")
    assert (model.calls, model.requests) == (0, [])
    assert [literal for _, literal, _ in result.trace.links] == ["inexpensive"]


def test_a_function_that_raises_is_not_an_empty_result():
    def fail(text: str, question: str) -> str:
        raise ValueError("this function is broken")

    tables = {"r": {"id": [1], "notes": [long("x")]}}
    with connect(FunctionModel(fail), **tables) as connection, pytest.raises(Exception, match="function is broken"):
        connection.sql(f"SELECT id FROM r WHERE {CANDLES}")


class PaidModel(FunctionModel):
    """A function whose calls cost something."""

    paid = True


def test_a_budget_refuses_before_the_first_call():
    model = FunctionModel(yes_if("with candles"))
    connection = almanaq.connect({"r": pa.table(TWO_HUNDRED)}, model=model, cache=False, max_calls=10)
    with connection, pytest.raises(almanaq.BudgetExceeded, match=r"\b10\b"):
        connection.sql(f"SELECT id FROM r WHERE {CANDLES}")
    assert model.calls == 0


def test_a_budget_that_suffices_changes_nothing():
    model = FunctionModel(yes_if("with candles"))
    with almanaq.connect({"r": pa.table(TWO_HUNDRED)}, model=model, cache=False, max_calls=200) as connection:
        assert len(connection.sql(f"SELECT id FROM r WHERE {CANDLES}").rows) == 40


def test_the_default_budget_of_what_costs_is_a_thousand_calls():
    model = PaidModel(yes_if("candles"))
    rows = {"id": list(range(1001)), "notes": [long(f"Table {i}") for i in range(1001)]}
    with connect(model, r=rows) as connection, pytest.raises(almanaq.BudgetExceeded, match=r"1,?000"):
        connection.sql(f"SELECT id FROM r WHERE {CANDLES}")
    assert model.calls == 0
