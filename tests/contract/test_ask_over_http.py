"""`almanaq ask` with a language model: question, query, texts and reply go through a real HTTP server's protocol."""

from __future__ import annotations

import json

import pytest

from almanaq import sample
from almanaq_bench.sample.truth import truth_for, truth_function
from almanaq_bench.testing import Faults, StandInServer, replies_from

QUESTION = "Where in San Francisco can one have a romantic Italian dinner?"
ANSWER = "answer(reviews, 'is this restaurant romantic?') = 'Yes'"
SUQL = (
    f"SELECT name, rating FROM restaurants WHERE 'italian' = ANY (cuisines) AND location = 'San Francisco' AND {ANSWER}"
)
WORDING = "I searched for romantic Italian restaurants in San Francisco."


class Replies:
    """What a model would reply to each of our prompts: a written query and wording, texts read by the sample's truth.

    Attributes:
        asked: the kind of each request, in order.
    """

    def __init__(self, *queries: str) -> None:
        self._queries, self._read = list(queries), replies_from(truth_function())
        self.asked: list[str] = []
        self.users: list[str] = []

    def __call__(self, request):
        kind = request.get("response_format", {}).get("json_schema", {}).get("name", "respond")
        self.asked.append(kind)
        self.users.append(request["messages"][-1]["content"])
        if kind == "parse":
            suql = self._queries.pop(0) if len(self._queries) > 1 else self._queries[0]
            return {"reasoning": "", "suql": suql or None, "needs_data": bool(suql), "clarify": None}
        return WORDING if kind == "respond" else self._read(request)


def ask(almanaq, server, *more, question=QUESTION):
    key = {"OPENAI_BASE_URL": server.url, "OPENAI_API_KEY": "secret-key", "ALMANAQ_BATCH": "1"}
    return almanaq("ask", question, "--db", "sample:restaurants", "--model", "openai:any", "--json", *more, env=key)


def right_names():
    rows = sample.load("restaurants").tables["restaurants"].to_pylist()
    italian = [row for row in rows if "italian" in row["cuisines"] and row["location"] == "San Francisco"]
    return {row["name"] for row in italian if truth_for(row["id"], "romantic")}, len(italian)


def test_the_whole_path(almanaq, conforms):
    replies = Replies(SUQL)
    with StandInServer(replies) as server:
        run = ask(almanaq, server)
        calls = server.ledger.calls
    assert (run.returncode, run.stderr) == (0, "")
    record = json.loads(run.stdout)
    conforms("ask", record)
    names, candidates = right_names()
    assert names
    assert {row[0] for row in record["rows"]} == names
    assert (record["status"], record["suql"], record["answer"]) == ("answered", SUQL, WORDING)
    assert (replies.asked[0], replies.asked[-1]) == ("parse", "respond")
    assert len(replies.asked) == calls == candidates + 2
    assert record["trace"]["text_calls"] == candidates
    assert record["trace"]["columns_sent"] == [{"column": "restaurants.reviews", "cells": candidates}]


def test_the_parser_sees_the_schema_and_the_responder_the_rows(almanaq):
    replies = Replies(SUQL)
    with StandInServer(replies) as server:
        ask(almanaq, server)
    assert QUESTION in replies.users[0]
    assert "popular_dishes" in replies.users[0]
    names = right_names()[0]
    assert not all(name in replies.users[0] for name in names)
    assert sum(name in replies.users[-1] for name in names) == min(5, len(names))


def test_a_faulty_query_is_mended_by_asking_once_more(almanaq):
    replies = Replies(SUQL.replace("rating", "stars"), SUQL)
    with StandInServer(replies) as server:
        run = ask(almanaq, server)
    assert run.returncode == 0, run.stderr
    assert replies.asked[:2] == ["parse", "parse"]
    assert "stars" in replies.users[1]
    assert json.loads(run.stdout)["suql"] == SUQL


def test_small_talk_asks_for_no_rows(almanaq, conforms):
    replies = Replies("")
    with StandInServer(replies) as server:
        run = ask(almanaq, server, question="You have been most helpful today.")
    record = json.loads(run.stdout)
    conforms("ask", record)
    assert (run.returncode, record["status"], record["rows"]) == (0, "no_query", [])


@pytest.mark.parametrize("fault", ["not_json", "off_schema", "empty"])
def test_a_model_that_replies_garbage_fails_in_clear_words(almanaq, conforms, fault):
    with StandInServer(Replies(SUQL), faults=Faults(rates={fault: 1.0})) as server:
        run = ask(almanaq, server)
    assert run.returncode == 1
    assert "repl" in run.stderr
    assert "Traceback" not in run.stderr
    record = json.loads(run.stdout)
    conforms("ask", record)
    assert (record["status"], record["rows"]) == ("failed", [])


def test_a_model_that_never_replies_is_given_up(almanaq):
    with StandInServer(Replies(SUQL), faults=Faults(rates={"hang": 1.0})) as server:
        run = ask(almanaq, server, "--deadline", "1")
    assert run.returncode == 1
    assert "--deadline" in run.stderr
    assert "Traceback" not in run.stderr
