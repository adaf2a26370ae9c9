"""Several typed fields of one text: one request, values of the engine's own types, the rows of one answer a field."""

from __future__ import annotations

import datetime

import pytest

import almanaq
from almanaq.errors import AlmanaqError, QueryError
from almanaq.models.batching import AGREED
from almanaq.models.model_names import ModelSettings, open_models
from almanaq.testing import FunctionModel
from almanaq_bench.testing import StandInServer, replies_from

BODY = {"id": [1, 2], "body": ["A calm flat for 900, from 1 May 2024.", "A flat."]}
SAID = {"price": "900", "free from": "1 May 2024", "mood": "calm", "kind": "flat"}
FIELDS = "{'price': 'INTEGER', free_from: 'DATE', 'mood': ['calm', 'loud'], 'kind': 'VARCHAR'}"
JSON = '\'{"price": "integer", "mood": ["calm", "loud"], "kind": "text"}\'::JSON'
ROWS = [(1, 900, datetime.date(2024, 5, 1), "calm", "flat"), (2, None, None, None, "flat")]


def said(text: str, question: str) -> str | None:
    field = question.rpartition(": ")[2]
    return "flat" if field == "kind" else SAID.get(field) if "900" in text else None


@pytest.mark.parametrize(
    ("answer", "parts"),
    [
        (f"answer(body, 'what is offered?', {FIELDS})", "o.price, o.free_from, o.mood, o.kind"),
        (
            'answer(body, \'what is offered?\', \'{"price": "integer", "free_from": "date", "mood": ["calm", "loud"], '
            '"kind": "text"}\'::JSON)',
            "(o->>'price')::INTEGER, (o->>'free_from')::DATE, o->>'mood', o->>'kind'",
        ),
    ],
)
def test_fields_are_values_of_their_types(answer: str, parts: str) -> None:
    with almanaq.connect({"t": BODY}, model=FunctionModel(said), cache=False) as con:
        result = con.sql(f"SELECT id, {parts} FROM (SELECT id, {answer} AS o FROM t) AS made ORDER BY id")
    assert list(result.rows) == ROWS
    assert result.trace.text_calls == 8


def test_a_text_takes_one_request_whatever_its_fields() -> None:
    with StandInServer(replies_from(said)) as server:
        settings = ModelSettings(base_url=server.url, api_key="k", batching=AGREED)
        models = open_models("openai:m", embedder="lexical", cache=False, settings=settings)
        with almanaq.connect({"t": BODY}, model=models, cache=False) as con:
            query = f"SELECT answer(body, 'what is offered?', {FIELDS}) AS o, summary(body) AS s FROM t ORDER BY id"
            result = con.sql(query)
            predicted = [
                stage.predicted["requests"] for stage in con.explain(query).stages if "requests" in stage.predicted
            ]
    assert result.rows[0][0] == dict(zip(("price", "free_from", "mood", "kind"), ROWS[0][1:], strict=True))
    assert server.ledger.calls == sum(predicted) == len(BODY["id"])


@pytest.mark.parametrize(
    ("query", "calls"),
    [
        ("SELECT answer(body, 'q', FIELDS).price FROM t", 2),
        ("SELECT (answer(body, 'q', FIELDS))['price'] FROM t", 2),
        ("SELECT id FROM t ORDER BY answer(body, 'q', FIELDS).price", 2),
        ("SELECT answer(body, 'q', FIELDS)->>'price', t FROM t", 2),
        ("SELECT struct_extract(answer(body, 'q', FIELDS), 'price') FROM t", 2),
        ("SELECT answer(body, 'q', JSON)->>'price', (answer(body, 'q', JSON)->'kind')::VARCHAR AS k FROM t", 4),
        ("SELECT json_extract_string(answer(body, 'q', JSON), '$.price') FROM t", 2),
        ("SELECT answer(body, 'q', JSON)->>['price', 'kind'] FROM t", 6),
        ("SELECT o.price FROM (SELECT answer(body, 'q', FIELDS) AS o FROM t LIMIT 1) AS made", 1),
        (
            "WITH made AS (SELECT answer(body, 'q', FIELDS) AS o FROM t LIMIT 1) SELECT o.price, made.o.mood FROM made",
            2,
        ),
        ("SELECT o.price, o FROM (SELECT answer(body, 'q', FIELDS) AS o FROM t LIMIT 1) AS made", 4),
        ("SELECT o.kind FROM (SELECT DISTINCT answer(body, 'q', FIELDS) AS o FROM t) AS made", 8),
    ],
)
def test_fields_that_nobody_reads_are_not_asked(query: str, calls: int) -> None:
    with almanaq.connect({"t": BODY}, model=FunctionModel(said), cache=False) as con:
        trace = con.sql(query.replace("FIELDS", FIELDS).replace("JSON", JSON)).trace
    assert trace.text_calls == calls
    assert not [warning for warning in trace.warnings if "sorted" in warning and "price" not in warning]


def test_fields_may_be_conditions() -> None:
    with almanaq.connect({"t": BODY}, model=FunctionModel(said), cache=False) as con:
        query = f"SELECT id FROM (SELECT id, answer(body, 'what?', {FIELDS}) AS o FROM t) AS made WHERE o.price < 1000"
        assert list(con.sql(query).rows) == [(1,)]


@pytest.mark.parametrize(
    "fields",
    ["{'price': 7}", "{'price': 'NO_SUCH'}", "'[1]'::JSON", "'{'::JSON", "'{}'::JSON", "{'price': body}", "{'a': ?}"],
)
def test_fields_without_a_type_are_refused(fields: str) -> None:
    with (
        almanaq.connect({"t": BODY}, model=FunctionModel(said), cache=False) as con,
        pytest.raises(AlmanaqError, match=r"answer\(\)|type"),
    ):
        con.sql(f"SELECT answer(body, 'what?', {fields}) FROM t", ["DATE"] if "?}" in fields else [])


@pytest.mark.parametrize("outputs", ["(answer(body, 'what?', {})).*", "answer(body, 'what?', {}), nothing", "f({})"])
def test_an_error_quotes_the_query_as_it_was_given(outputs: str) -> None:
    query = f"SELECT {outputs.format(FIELDS)} FROM t"
    with almanaq.connect({"t": BODY}, model=FunctionModel(said), cache=False) as con:
        with pytest.raises(QueryError) as caught:
            con.sql(query)
        assert caught.value.query == query
