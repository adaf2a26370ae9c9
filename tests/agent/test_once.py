"""A question is linked, read and chosen for once, whoever asks for it in its turn."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise

import pyarrow as pa
import pytest

import almanaq
from almanaq.agent.conversation import Agent
from almanaq.agent.local import understand
from almanaq.agent.local.recognize import heard
from almanaq.agent.local.search import linking
from almanaq.suql.catalog.relations import Column, Relation

from . import worlds
from .scripted import models

FARES = pa.table({"town": ["Ulm", "Bonn", "Ulm"], "price": [1.5, 2.5, 3.0]})


@pytest.fixture
def calls(monkeypatch):
    counted: Counter[str] = Counter()

    def counting(module, name, work):
        def called(*given):
            counted[f"{module.__name__.rpartition('.')[2]}.{name}"] += 1
            return work(*given)

        return called

    steps = ((heard, "recognize"), (linking, "best_cover"), (understand, "best_cover"), (understand, "compose"))
    for module, name in steps:
        monkeypatch.setattr(module, name, counting(module, name, getattr(module, name)))
    return counted


@pytest.mark.parametrize("question", ["average price by town", "how many fares are in Ulm", "which lorries are red"])
def test_a_question_over_tables_is_worked_on_once(calls, question):
    with almanaq.connect({"fares": FARES}, model="local", cache=False) as connection:
        connection.ask(question)
    assert max(calls.values()) == 1
    assert set(calls) >= {"heard.recognize", "linking.best_cover", "understand.best_cover"}


def test_a_search_of_reviews_is_worked_on_once(calls):
    with almanaq.connect("sample:restaurants", model="local", cache=False) as connection:
        connection.ask("find me a romantic Italian place in Sunnyvale")
    assert calls == {"heard.recognize": 1, "linking.best_cover": 1}


def test_the_same_thing_is_not_asked_back_for_ever():
    people = tuple(Column(name, "text") for name in ("seller", "buyer"))
    sales = Relation("sales", ("sales",), (*people, Column("price", "integer")))
    world = worlds.World((sales,), {"sales": [("Ann Ray", "Bo Lind", 3), ("Bo Lind", "Ann Ray", 4)]})
    agent, turns, replies = Agent(world, models()), [], []
    for words in ("Which sales have Ann Ray?", "banana", "banana", "the buyer"):
        reply = agent.respond(words, turns)
        turns.append(reply.turn())
        replies.append(reply.answer)
    world.close()
    assert replies[0] == "By “Ann Ray”, do you mean the seller or buyer?"
    assert all(first != second for first, second in pairwise(replies))
