"""Which rows failed: every answer that a query lacks is named with its row and its reason, on every surface."""

from __future__ import annotations

import json

import pytest

import almanaq
from almanaq import Connection
from almanaq.agent.response import Response
from almanaq.cli.terminal import warn_of_result
from almanaq.encode import response_record, result_record, why_not_record
from almanaq.models.retrying import FailedCall
from almanaq.suql.execution.evidence import MOST_UNKNOWN
from almanaq.testing import FunctionModel

NOTES = ["3 beds", "some beds", "broken", "11 beds", "broken", None]
CALM = "answer(note, 'is it calm?')"


def reply(text: str, question: str) -> str:
    if text == "broken":
        raise FailedCall(f"the server said: {text} secret", retryable=False, cause="HTTP 451")
    return text.split()[0] if question != "is it calm?" else "Yes"


def connect(rows: dict[str, list[object]] | None = None, **options: object) -> Connection:
    tables = {"stays": rows or {"id": [10, 20, 30, 40, 50, 60], "note": NOTES}}
    return almanaq.connect(tables, model=FunctionModel(reply), cache=False, **options)  # type: ignore[arg-type]


FAILED = [("2", "HTTP 451"), ("4", "HTTP 451")]


@pytest.mark.parametrize(
    ("query", "lacking"),
    [
        (f"SELECT {CALM} FROM stays", FAILED),
        (f"SELECT id FROM stays WHERE {CALM} = 'Yes' ORDER BY id DESC", FAILED[::-1]),
        (f"SELECT id FROM stays WHERE {CALM} = 'Yes' AND id < 40", FAILED[:1]),
        (f"SELECT a.id FROM stays a JOIN stays b ON true WHERE {CALM.replace('note', 'a.note')} = 'Yes'", FAILED),
        (f"SELECT {CALM}, count(*) FROM stays GROUP BY 1", FAILED),
        (f"SELECT id FROM stays WHERE id NOT IN (SELECT id FROM stays WHERE {CALM} = 'Yes')", FAILED),
        (
            "SELECT answer(note, 'how many?')::int FROM stays WHERE id < 30",
            [("1", "a reply that cannot be read as an integer")],
        ),
        (
            "SELECT answer(note, 'how many?', ARRAY['3', '11']) FROM stays WHERE id NOT IN (30, 50)",
            [("1", "a reply that is none of the options")],
        ),
    ],
)
def test_each_row_that_lacks_an_answer_is_named_once_with_the_reason(query: str, lacking: object) -> None:
    with connect() as con:
        result = con.sql(query)
    assert [(each.row, each.reason) for each in result.unknown] == lacking
    assert {(each.relation, each.column) for each in result.unknown} == {("stays", "note")}
    assert result.trace.unknown_answers == len(result.unknown)
    assert not result.trace.exact


def test_a_row_is_named_by_its_key_and_a_private_key_is_not_shown(tmp_path) -> None:
    schema = tmp_path / "schema.toml"
    schema.write_text('[stays]\nkey = ["guest"]\n[stays.columns.guest]\nprivate = true\n')
    rows = {"guest": ["Ada Lovelace", "Grace Hopper"], "note": ["3 beds", "broken"]}
    with connect(rows, schema=schema) as con:
        result = con.sql(f"SELECT {CALM} FROM stays")
        made = con.sql("SELECT answer(note, 'is it like ' || guest || '?') FROM stays")
    (unknown,), (other,) = result.unknown, made.unknown
    assert (unknown.row, unknown.question, other.question) == ("~", "is it calm?", "what is asked of each row")
    assert "Hopper" not in json.dumps([result_record(result)["unknown"], result_record(made)["unknown"]])
    schema.write_text('[stays]\nkey = ["guest"]\n')
    with connect(rows, schema=schema) as con:
        assert con.sql(f"SELECT {CALM} FROM stays").unknown[0].row == "Grace Hopper"


def test_of_many_the_first_rows_are_named_and_all_are_counted() -> None:
    count = 3 * MOST_UNKNOWN
    rows = {"id": list(range(count)), "note": ["3 beds", *["broken"] * (count - 1)]}
    with connect(rows) as con:
        result = con.sql(f"SELECT {CALM} FROM stays")
    assert [each.row for each in result.unknown] == [str(n) for n in range(1, MOST_UNKNOWN + 1)]
    assert (result.trace.unknown_answers, result.trace.unknown_calls) == (count - 1, 1)


def test_every_surface_names_them() -> None:
    with connect() as con:
        query = f"SELECT id FROM stays WHERE {CALM} = 'Yes'"
        result, why, other = con.sql(query), con.why_not(query, {"id": 30}), con.why_not(query, {"id": 60})
    record = result_record(result)
    assert record["unknown"][0] == {
        "relation": "stays",
        "row": "2",
        "column": "note",
        "question": "is it calm?",
        "reason": "HTTP 451",
    }
    assert (record["trace"]["unknown_answers"], "unknown" in record["trace"]) == (2, False)
    assert "stays.note, row 3: is it calm? (HTTP 451)" in result._repr_html_()
    assert [each["reason"] for each in why_not_record(why)["conditions"]] == ["HTTP 451"]
    assert str(why).split()[0] == "unknown"
    assert "HTTP 451" in why._repr_html_()
    assert "no information" in str(other)
    assert not [text for text in (json.dumps(record), str(why)) if "secret" in text]


def test_a_terminal_lists_the_first_and_counts_the_others(capsys: pytest.CaptureFixture[str]) -> None:
    rows = {"id": list(range(9)), "note": ["3 beds", *["broken"] * 8]}
    with connect(rows) as con:
        warn_of_result(con.sql(f"SELECT {CALM} FROM stays").trace)
    lines = capsys.readouterr().err.splitlines()
    assert lines[-2:] == ["almanaq: unknown: stays.note, row 6: is it calm? (HTTP 451)", "almanaq: unknown: and 3 more"]


def test_a_reply_to_a_question_names_them() -> None:
    with connect() as con:
        found = con.sql(f"SELECT {CALM} FROM stays")
    reply = Response("answered", "One.", trace=found.trace, table=found.table)
    assert [each["row"] for each in response_record(reply)["unknown"]] == ["2", "4"]
    assert [each["row"] for each in reply.as_dict()["unknown"]] == ["2", "4"]
    assert "stays.note, row 5: is it calm? (HTTP 451)" in reply._repr_html_()
