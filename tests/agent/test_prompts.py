"""Golden prompts: what a model is sent, whole. Set ALMANAQ_WRITE_GOLDEN=1 to write them anew after a wanted change."""

from __future__ import annotations

import datetime
import os
from pathlib import Path

import pytest

from almanaq.agent.history import Turn
from almanaq.agent.parser import Failure
from almanaq.agent.prompted_parser import PromptedParser
from almanaq.agent.prompting import make, version
from almanaq.agent.responder import Found, respond_prompt
from almanaq.agent.schema_text import examples, schema_text
from almanaq.models.protocols import Prompt
from almanaq.suql.catalog.relations import Catalog, Column, ColumnKind, Relation
from almanaq.suql.execution.result import Evidence

from . import worlds
from .scripted import Script

GOLDEN = Path(__file__).parents[1] / "golden" / "prompts" / "agent"


def parser() -> PromptedParser:
    return PromptedParser(Script(), today=lambda: datetime.date(2026, 3, 5))


def prompts() -> dict[str, Prompt]:
    eateries, films = Catalog((worlds.EATERIES,)), Catalog(worlds.FILMS)
    turn = Turn("cheap food?", "SELECT name FROM restaurants", "Two places.", "answered", (("name", "Golden Wok"),))
    quote = Evidence("restaurants", "1", "reviews", 0, 0, "Candles on each table", "is it romantic?")
    found = Found(
        "romantic?",
        "restaurants whose reviews say yes",
        ("name", "rating"),
        (("Nonna's", 4.5),),
        ((quote,),),
        ("I did not use: “x”.",),
    )
    return {
        "parse_restaurants": parser().prompt("somewhere romantic", eateries),
        "parse_films_repair": parser().prompt(
            "oldest film", films, (), (Failure("SELECT titel FROM films", "no column named 'titel'"),)
        ),
        "parse_history": parser().prompt("the second one", eateries, (turn,)),
        "respond": respond_prompt(found),
        "chat": make("chat", {"question": "hello", "holds": "It holds restaurants."}),
    }


@pytest.mark.parametrize("name", sorted(prompts()))
def test_golden(name):
    text = "\n\n".join(f"## {m.role}\n{m.content}" for m in prompts()[name].messages) + "\n"
    path = GOLDEN / f"{name}.txt"
    if os.environ.get("ALMANAQ_WRITE_GOLDEN"):
        path.write_text(text, encoding="utf-8")
    assert text == path.read_text(encoding="utf-8")


def test_a_prompt_carries_the_hash_of_its_file():
    assert prompts()["chat"].version == version("chat") != version("parse")


def enum(size: int) -> Catalog:
    values = tuple(f"value{i}" for i in range(size))
    return Catalog((Relation("r", ("r",), (Column("e", "text", ColumnKind.ENUM, values=values),)),))


def test_an_enum_of_ten_is_listed_and_one_of_eleven_only_sampled():
    assert "'value9'" in schema_text(enum(10))
    larger = schema_text(enum(11))
    assert "'value0'" in larger
    assert "'value9'" not in larger


def test_private_columns_show_no_value():
    column = Column("secret", "text", samples=("hunter2",), private=True)
    catalog = Catalog((Relation("r", ("r",), (column, Column("n", "integer"))),))
    assert "hunter2" not in schema_text(catalog)
    assert "hunter2" not in str(examples(catalog))


@pytest.mark.parametrize("make_world", [worlds.eateries, worlds.films, worlds.staff])
def test_every_generated_example_runs(make_world):
    world = make_world()
    pairs = examples(world.catalog)
    for _, suql in pairs[:-1]:
        world.run(suql)
    world.close()
    assert len(pairs) >= 3
    assert pairs[-1][1] is None
