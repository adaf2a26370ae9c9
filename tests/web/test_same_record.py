"""The same question gives the same record by the command line, over HTTP, and through MCP."""

from __future__ import annotations

import json

import pytest
from tests.web.live import live

import almanaq
from almanaq.cli.ask import ask
from almanaq.mcp.tools import Tools
from almanaq.web.service import open_service

QUESTIONS = (
    "Where can I have a romantic Italian dinner in Palo Alto?",
    "How many sushi restaurants are there?",
    "hello",
)
OF_ONE_RUN = ("seconds", "cached_calls", "text_calls")


@pytest.fixture(scope="module")
def sample():
    with almanaq.connect("sample:restaurants", cache=False) as connection:
        service = open_service(connection, "sample:restaurants", store_mb=None)
        with live(service) as client:
            client.tools = Tools(connection)
            yield client
        service.store.close()


@pytest.mark.parametrize("question", QUESTIONS)
def test_every_way_gives_the_same_record(sample, question, capsys):
    ask(question, "sample:restaurants", json=True, no_cache=True)
    printed = json.loads(capsys.readouterr().out)
    over_http = sample.ask(question)
    assert set(printed) <= set(over_http)
    assert [column["name"] for column in over_http["columns"]] == printed["columns"]
    for name in set(printed) - {"columns", "trace"}:
        assert over_http[name] == printed[name], name
    for name in set(printed["trace"]) - set(OF_ONE_RUN):
        assert over_http["trace"][name] == printed["trace"][name], name
    lead = over_http["lead"]
    assert all(line.rstrip(".:") in printed["answer"] for line in lead.splitlines())
    assert not printed["columns"] or not any(part in lead for part in ("I searched for", "1. ", "\n\n", "   “"))
    told = sample.tools.call("ask", {"question": question})
    for name in ("status", "answer", "suql", "columns", "rows", "searched", "relaxed"):
        assert (told[name] or None) == (printed[name] or None), name
    quotes = [[as_read_text_wants(quote) for quote in row] for row in printed["evidence"]]
    assert [len(row) for row in told["evidence"]] == [min(len(row), 3) for row in quotes]
    assert all(quote in row for some, row in zip(told["evidence"], quotes, strict=True) for quote in some)


def as_read_text_wants(quote):
    """A quote as MCP gives it: by the names of its tool `read_text`, which counts passages from 1."""
    place = {"table": quote["relation"], "key": quote["key"], "column": quote["column"]}
    return place | {"passage": quote["passage"] + 1, "quote": quote["quote"], "question": quote["question"]}
