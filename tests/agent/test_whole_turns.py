"""A whole turn over HTTP: what all its calls took, what an empty reply says, and what a retry is told."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping
from typing import Any

import pytest

import almanaq
from almanaq.agent.relax import count_conditions
from almanaq.models.model_names import ModelSettings, open_models
from almanaq.testing import FunctionModel
from almanaq_bench.testing import StandInServer, replies_from

PLACES = {
    "name": ["Coda", "Dune", "Elm", "Fig"],
    "price": ["cheap", "cheap", "dear", "dear"],
    "city": ["Rome", "Oslo", "Rome", "Rome"],
    "reviews": [f"{word} " * 8 + "and we came again for the soup." for word in ("Quiet", "Loud", "Loud", "Fine")],
}
SCHEMA = "[places.columns.reviews]\nkind = 'free_text'\n"
QUIET = "answer(reviews, 'is it quiet?') = 'Yes'"


def read(text: str, question: str) -> str | None:
    return {"Q": "Yes", "L": "No"}.get(text[0])


class Turns:
    """Replies to a turn: the query that is given, and what to loosen; counts and keeps what it is asked."""

    def __init__(self, suql: str, relaxed: Mapping[str, object]) -> None:
        self._suql, self._relaxed, self._read = suql, relaxed, replies_from(read)
        self.asked: list[tuple[str, str]] = []
        self.whole: list[str] = []

    def __call__(self, request: Mapping[str, Any]) -> Mapping[str, object] | str:
        name = request.get("response_format", {}).get("json_schema", {}).get("name", "respond")
        self.asked.append((name, request["messages"][1]["content"]))
        self.whole += [message["content"] for message in request["messages"]]
        if name == "parse":
            return {"reasoning": "", "suql": self._suql, "needs_data": True, "clarify": None}
        if name == "relax":
            return self._relaxed
        return "Here it is." if name == "respond" else self._read(request)

    def said(self, name: str) -> str:
        return next(text for kind, text in self.asked if kind == name)


def ask(replies: Turns, tmp_path, *, batch: int | None = None):
    schema = tmp_path / "schema.toml"
    schema.write_text(SCHEMA)
    with StandInServer(replies) as server:
        from almanaq.models.batching import Batching

        settings = ModelSettings(base_url=server.url, api_key="key", batching=Batching.of(batch) if batch else None)
        models = open_models("openai:any", embedder="lexical", cache=False, settings=settings)
        with almanaq.connect({"places": PLACES}, model=models, schema=str(schema)) as connection:
            return connection.ask("a quiet cheap place in Bonn?"), server.ledger


def test_the_trace_of_a_turn_holds_every_call_of_it(tmp_path):
    replies = Turns(f"SELECT name FROM places WHERE price = 'cheap' AND {QUIET} LIMIT 3", {})
    response, ledger = ask(replies, tmp_path)
    kinds = Counter(name for name, _ in replies.asked)
    assert response.trace.physical_calls == ledger.calls == sum(kinds.values())
    assert kinds == {"parse": 1, "answer": 2}
    assert response.trace.text_calls == 2
    operators = [line.operator for line in response.trace.spending]
    assert operators[0] == "parse"
    assert response.trace.input_tokens == ledger.input_tokens
    assert 0 < response.trace.cached_input_tokens < ledger.input_tokens


def test_a_relaxed_retry_asks_no_text_twice_and_its_calls_are_counted(tmp_path):
    suql = f"SELECT name FROM places WHERE price = 'dear' AND city = 'Rome' AND {QUIET} LIMIT 3"
    replies = Turns(suql, {"condition": 1, "replacement": "price IN ('cheap', 'dear')", "said": "any price"})
    response, ledger = ask(replies, tmp_path)
    assert (response.status, response.rows) == ("answered", (("Coda",),))
    texts = [
        text.partition("<untrusted")[2].split("</untrusted")[0].partition(">")[2]
        for name, text in replies.asked
        if name == "answer"
    ]
    assert len(texts) == len(set(texts)) == 3
    assert response.trace.physical_calls == ledger.calls
    assert "[condition 1]" in replies.said("relax")
    told = replies.said("relax")
    assert "Known: the texts of 2 rows that fulfil the other conditions were asked" in told
    assert "of those read, 1 said nothing, 1 said no" in told or "of those read, 1 said no, 1 said nothing" in told
    assert "2 of 4 rows fulfil: price is dear; without it, the other conditions on columns find 3 rows" in told


def test_nothing_need_be_loosened_and_an_empty_reply_says_what_each_condition_keeps_out(tmp_path):
    replies = Turns(
        "SELECT name FROM places WHERE price = 'cheap' AND city = 'Bonn'",
        {"condition": None, "replacement": None, "said": ""},
    )
    response, _ = ask(replies, tmp_path)
    assert (response.status, response.relaxed) == ("no_result", None)
    first, *told = response.answer.splitlines()
    searched = "I searched for places whose price is cheap and city is Bonn."
    assert first == f"No city is Bonn; the column holds Oslo, Rome. {searched}"
    assert told[0] == "2 of 4 rows fulfil: price is cheap."


def test_the_name_that_was_asked_for_is_never_given_up(tmp_path):
    replies = Turns(
        "SELECT price FROM places WHERE name = 'Nemo' AND city = 'Rome'",
        {"condition": 1, "replacement": None, "said": "any name"},
    )
    response, _ = ask(replies, tmp_path)
    assert (response.status, response.relaxed) == ("no_result", None)
    assert "relax" not in dict(replies.asked)


def test_calls_of_a_turn_may_share_requests_and_the_rows_are_the_same(tmp_path):
    suql = f"SELECT name FROM places WHERE {QUIET} LIMIT 3"
    alone, shared = Turns(suql, {}), Turns(suql, {})
    one, _ = ask(alone, tmp_path)
    other, _ = ask(shared, tmp_path, batch=4)
    assert one.rows == other.rows
    assert Counter(name for name, _ in shared.asked)["answer_texts"] == 1
    assert one.trace.text_calls == other.trace.text_calls == 3


def test_of_each_condition_it_is_counted_how_many_rows_fulfil_it_do_not_or_leave_it_open():
    places = {"city": ["Rome", None, "Oslo", "Rome"], "seats": [10, 20, None, None], "stars": [1, 2, 3, 4]}
    with almanaq.connect({"places": places}, cache=False) as connection:
        city, seats = count_conditions("SELECT * FROM places WHERE city = 'Rome' AND seats > 15", connection.sql)
    assert (city.rows, city.passing, city.failing, city.others) == (4, 2, 1, 1)
    assert (seats.passing, seats.failing, seats.others) == (1, 1, 2)
    assert city.in_full().endswith("; 1 have no value; without it, the other conditions on columns find 1 row")
    assert "no value" not in str(city)


def test_values_of_private_columns_are_not_told():
    with almanaq.connect({"places": PLACES}, model=FunctionModel(read), cache=False) as connection:
        suql = "SELECT name FROM places WHERE city = 'Bonn' AND price = 'cheap'"
        assert any(each.values for each in count_conditions(suql, connection.sql))
        assert not any(each.values for each in count_conditions(suql, connection.sql, lambda query: "city" in query))


@pytest.mark.parametrize("suql", ["SELEC", "SELECT 1", "SELECT name FROM places", "SELECT x FROM nowhere WHERE x = 1"])
def test_what_cannot_be_told_is_left_out(suql):
    with almanaq.connect({"places": PLACES}, model=FunctionModel(read), cache=False) as connection:
        assert count_conditions(suql, connection.sql) == ()


def test_the_footer_counts_requests_beside_the_texts_that_they_read():
    from almanaq.cli.terminal import summary_line
    from almanaq.models.budget import SpendingLine
    from almanaq.models.protocols import Usage
    from almanaq.suql.result import Trace

    lines = tuple(SpendingLine(name, "m", 1, Usage(1, 0, 9, 1)) for name in ("parse", "text", "respond"))
    told = summary_line(1, Trace(text_calls=1, input_tokens=27, output_tokens=3, cached_input_tokens=5, spending=lines))
    assert "1 text call · 3 requests · 27 + 3 tokens · 5 of them cached by the server" in told
    assert json.dumps(told)


def test_what_the_query_leaves_out_is_said_and_long_answers_are_handed_on_whole(tmp_path):
    long = "a place where one sits for hours, " * 8 + "and nobody minds"
    suql = "SELECT name, answer(reviews, 'what is it like?') FROM places WHERE price = 'cheap' LIMIT 2"
    replies = Turns(suql, {})
    parse = {"reasoning": "", "suql": suql, "needs_data": True, "clarify": None, "left_out": ["in Bonn", 7]}
    spoken = replies.__call__

    def reply(request):
        name = request.get("response_format", {}).get("json_schema", {}).get("name", "respond")
        said = spoken(request)
        return parse if name == "parse" else {"value": long, "quotes": []} if name == "answer" else said

    response, _ = ask(reply, tmp_path)
    assert response.rows[0][1] == long
    assert long in replies.said("respond")
    assert "The tables do not hold: “in Bonn”." in replies.said("respond")


@pytest.mark.parametrize(
    ("asked", "form"),
    [
        ("what is it like?", "in one short sentence"),
        ("how many rooms are there?", "the number in digits"),
        ("who runs it?", ""),
    ],
)
def test_an_open_question_is_read_with_what_the_person_asked(tmp_path, asked, form):
    replies = Turns(f"SELECT name, answer(reviews, '{asked}') FROM places WHERE {QUIET} LIMIT 2", {})
    response, _ = ask(replies, tmp_path)
    texts = [text for name, text in replies.asked if name == "answer"]
    assert response.status == "answered"
    assert ["a quiet cheap place in Bonn?" in text for text in texts] == [asked in text for text in texts]
    assert sum(asked in text for text in texts) == 1
    assert form in "".join(replies.whole)


def test_outside_a_conversation_nothing_is_added_to_a_question():
    class Reads(FunctionModel):
        served: str | None = None

        async def read(self, call):
            self.served = call.served
            return await super().read(call)

    model = Reads(read)
    with almanaq.connect({"places": PLACES}, model=model, cache=False) as connection:
        connection.sql("SELECT answer(reviews, 'what is it like?') FROM places LIMIT 1")
    assert model.served == ""
