"""Golden prompts: what a model is sent, whole. Set ALMANAQ_WRITE_GOLDEN=1 to write them anew after a wanted change."""

from __future__ import annotations

import datetime
import os
import re
import string
from pathlib import Path

import pyarrow as pa
import pytest

import almanaq
from almanaq.agent.check import check_answer
from almanaq.agent.conversation import Agent
from almanaq.agent.facts import SourceFacts
from almanaq.agent.history import Turn
from almanaq.agent.parser import Failure, PromptedParser
from almanaq.agent.responder import Found, respond_prompt
from almanaq.agent.schema_text import generate_examples, schema_text
from almanaq.agent.tables import SmallTables
from almanaq.agent.value_links import ValueLinks
from almanaq.models.cached import request_key
from almanaq.models.protocols import Prompt
from almanaq.suql.catalog.relations import Catalog, Column, ColumnKind, Relation
from almanaq.suql.result import Evidence
from almanaq_bench.generation.agent import exact_prompt

from . import worlds
from .scripted import Script, models, query

GOLDEN = Path(__file__).parents[1] / "golden" / "prompts" / "agent"

SAID = {
    "parse_restaurants": ("somewhere romantic",),
    "parse_films_repair": ("oldest film", "SELECT titel", "no column named"),
    "parse_links": ("Ramen in palo alto", "Lytton Avenue"),
    "parse_history": ("the second one", "cheap food?", "Two places.", "Golden Wok"),
    "respond": ("romantic?", "Nonna's", "Candles on each table", "I did not use", "whose reviews say yes"),
    "check": ("cheap food?", "and in Rome?", "SELECT name FROM places", "Golden Wok"),
    "exact": ("how many cheap ones?", "cheap means moderate", "SELECT nam", "no column named"),
}
"""For each prompt, what comes from people, rows and models."""


def parser() -> PromptedParser:
    return PromptedParser(Script(), today=lambda: datetime.date(2026, 3, 5), language="en_US")


def linked_parser() -> PromptedParser:
    """A parser that looks words up in columns with these values."""
    values = {"name": ["Golden Wok"], "address": ["12 Lytton Avenue, Palo Alto"], "cuisines": ["ramen"]}

    class Values:
        def values(self, relation: str, column: str, limit: int) -> list[str]:
            return values.get(column, [])[:limit]

    return PromptedParser(
        Script(), today=lambda: datetime.date(2026, 3, 5), language="en_US", find_links=ValueLinks(Values())
    )


def check_prompt() -> Prompt:
    """The prompt by which a query that ran is judged."""
    script = Script('{"verdict": "right", "reason": ""}')
    with almanaq.connect({"places": {"name": ["Golden Wok"]}}, cache=False) as connection:
        suql = "SELECT name FROM places"
        check_answer(script, "and in Rome?", ["cheap food?"], suql, connection.sql(suql))
    return script.prompts[0]


def prompts() -> dict[str, Prompt]:
    eateries, films = Catalog((worlds.EATERIES,)), Catalog(worlds.FILMS)
    turn = Turn("cheap food?", "SELECT name FROM restaurants", "Two places.", "answered", (("name", "Golden Wok"),))
    failure = Failure("SELECT nam FROM restaurants", "no column named 'nam'")
    quote = Evidence("restaurants", "1", "reviews", 0, 0, "Candles on each table", "is it romantic?")
    found = Found(
        "romantic?",
        "restaurants whose reviews say yes",
        ("name", "rating"),
        (("Nonna's", 4.5),),
        ((quote,),),
        ("I did not use: “x”.",),
        suql="SELECT name, rating FROM restaurants WHERE answer(reviews, 'is it romantic?') = 'Yes'",
        earlier="restaurants whose price is cheap",
        described=True,
    )
    return {
        "parse_restaurants": parser().prompt("somewhere romantic", eateries),
        "parse_films_repair": parser().prompt(
            "oldest film", films, (), (Failure("SELECT titel FROM films", "no column named 'titel'"),)
        ),
        "parse_links": linked_parser().prompt("Ramen in palo alto", eateries),
        "parse_history": parser().prompt("the second one", eateries, (turn,)),
        "respond": respond_prompt(found),
        "check": check_prompt(),
        "exact": exact_prompt(schema_text(eateries), "how many cheap ones?", "cheap means moderate", (failure,)),
    }


@pytest.mark.parametrize("name", sorted(SAID))
def test_golden(name):
    made = prompts()
    assert made.keys() == SAID.keys()
    prompt = made[name]
    text = "\n\n".join(f"## {m.role}\n{m.content}" for m in prompt.messages).replace(prompt.fence, "f" * 16) + "\n"
    path = GOLDEN / f"{name}.txt"
    if os.environ.get("ALMANAQ_WRITE_GOLDEN"):
        path.write_text(text, encoding="utf-8")
    assert text == path.read_text(encoding="utf-8")


@pytest.mark.parametrize(("kind", "said"), [(ColumnKind.FREE_TEXT, True), (ColumnKind.ENUM, False)])
def test_text_functions_are_explained_where_a_table_holds_prose(kind, said):
    catalog = Catalog((Relation("t", ("t",), (Column("c", "text", kind),)),))
    assert ("answer(" in parser().prompt("which?", catalog).messages[0].content) is said


@pytest.mark.parametrize("name", sorted(SAID))
def test_each_request_has_a_fence_of_its_own_that_is_no_part_of_its_identity(name):
    one, other = prompts()[name], prompts()[name]
    assert re.fullmatch(r"[0-9a-f]{8}", one.fence)
    assert one.fence != other.fence
    assert request_key("m", one) == request_key("m", other)
    assert one.messages[0] == other.messages[0]


@pytest.mark.parametrize("name", sorted(SAID))
def test_what_people_and_rows_say_stands_inside_the_fence(name):
    prompt = prompts()[name]
    user = prompt.messages[1].content
    fenced = rf"<untrusted {prompt.fence}>\n(.*?)\n</untrusted {prompt.fence}>"
    inside, outside = " ".join(re.findall(fenced, user, re.DOTALL)), re.sub(fenced, "", user, flags=re.DOTALL)
    assert prompt.fence not in outside
    for said in SAID[name]:
        assert said in inside
        assert said not in outside


def test_the_schema_comes_before_what_is_new_in_each_request():
    """Servers that keep what they computed for a prefix read the schema and the examples once."""
    user = [parser().prompt(question, Catalog((worlds.EATERIES,))).messages[1].content for question in ("a", "b")]
    length = next(n for n, (a, b) in enumerate(zip(*user, strict=True)) if a != b)
    shared = user[0][:length]
    assert shared.rstrip(string.hexdigits).endswith("<untrusted ")  # two random fences may begin alike
    assert "CREATE TABLE" in shared


def enum(size: int) -> Catalog:
    values = tuple(f"value{i}" for i in range(size))
    return Catalog((Relation("r", ("r",), (Column("e", "text", ColumnKind.ENUM, values=values),)),))


def test_an_enum_of_a_hundred_is_listed_and_a_larger_one_only_sampled():
    assert "'value99'" in schema_text(enum(100))
    larger = schema_text(enum(101))
    assert "'value0'" in larger
    assert "'value99'" not in larger


def test_what_a_person_wrote_of_a_column_is_not_cut():
    written = "the street, " * 60 + "never the house"
    catalog = Catalog((Relation("r", ("r",), (Column("e", "text", description=written),)),))
    assert "never the house" in schema_text(catalog)


def test_private_columns_show_no_value():
    column = Column("secret", "text", samples=("hunter2",), private=True)
    catalog = Catalog((Relation("r", ("r",), (column, Column("n", "integer"))),))
    assert "hunter2" not in schema_text(catalog)
    assert "hunter2" not in str(generate_examples(catalog))


@pytest.mark.parametrize("make_world", [worlds.eateries, worlds.films, worlds.staff])
def test_every_generated_example_runs(make_world):
    world = make_world()
    *queries, lacking, needless = generate_examples(world.catalog)
    for _, suql in queries:
        world.run(suql)
    world.close()
    assert len(queries) >= 2
    assert lacking[1].startswith("null (needs_data true, reply ")
    assert needless[1] is None


def test_generated_examples_teach_a_join_with_groups_a_list_and_an_answer_that_is_shown(tmp_path):
    (tmp_path / "s.toml").write_text(
        "[spells.columns.story]\nkind = 'free_text'\n[spells.columns.school]\nkind = 'enum'\n"
    )
    (tmp_path / "schools.csv").write_text("school_id,title\n1,Fire\n2,Water\n")
    told = "It burns all that it touches, and more."
    (tmp_path / "spells.csv").write_text(
        f"name,school,school_id,story\nAcid Arrow,red,1,'{told}'\nTide,blue,2,'{told}'\n"
    )
    with almanaq.connect(str(tmp_path), schema=str(tmp_path / "s.toml"), cache=False) as connection:
        pairs = generate_examples(connection.catalog)
        for _, suql in pairs[:-2]:
            connection.engine.check(suql)
    queries = [suql for _, suql in pairs[:-2]]
    assert any(" JOIN " in suql and "GROUP BY" in suql for suql in queries)
    assert any(suql.startswith("SELECT name, answer(story") for suql in queries)
    assert any("answer(" not in suql and "LIMIT" not in suql and "WHERE school =" in suql for suql in queries)
    assert not any("is Acid Arrow" in question for question, _ in pairs)


def test_small_tables_are_shown_whole_but_for_prose_and_private_columns(tmp_path):
    (tmp_path / "clubs.csv").write_text("club,town,pin\n" + "".join(f"Club {i},Town {i},p{i}\n" for i in range(20)))
    (tmp_path / "races.csv").write_text("runner,lap\n" + "".join(f"Runner {i},2:{i + 10}.32\n" for i in range(21)))
    (tmp_path / "s.toml").write_text("[clubs.columns.pin]\nprivate = true\n")
    with almanaq.connect(str(tmp_path), schema=str(tmp_path / "s.toml"), cache=False) as connection:
        catalog = connection.catalog
        text = schema_text(catalog, SmallTables(connection.engine)(catalog))
    assert "-- its 20 rows:\n-- club | town\n" in text
    assert "-- Club 19 | Town 19" in text
    assert "p1" not in text  # private
    assert "Runner 20" not in text


@pytest.mark.parametrize("times", [1, 1000])
def test_a_value_that_its_file_writes_otherwise_is_shown_in_both_spellings(tmp_path, times):
    """A small file is read by Python, a larger one by DuckDB."""
    rows = 'Ann,2:13.32,3 May 2021,"$1,200",2021\nBob,2:14.01,4 May 2021,$900,2022\n'
    (tmp_path / "races.csv").write_text("driver,lap,day,prize,year\n" + rows * times)
    with almanaq.connect(str(tmp_path), cache=False) as connection:
        lines = {line.split()[0]: line for line in schema_text(connection.catalog).splitlines()}
    assert lines["lap"].endswith("'00:02:13.32', '00:02:14.01' (there written '2:13.32')")
    assert "'2021-05-03'" in lines["day"]
    assert lines["day"].endswith("(there written '3 May 2021')")
    assert "(there written '$1,200')" in lines["prize"]
    assert "there written" not in lines["year"] + lines["driver"]


def test_values_that_words_spell_are_shown_unless_they_are_listed_private_or_prose(tmp_path):
    (tmp_path / "s.toml").write_text(
        '[people.columns.pin]\nprivate = true\n[people.columns.about]\nkind = "free_text"\n'
    )
    people = {
        "name": ["Ann O'Hara", "Bob", "Cleo"],
        "town": ["New York", "Bern", "Bern"],
        "pin": ["swordfish", "perch", "trout"],
        "about": ["Ann likes swordfish.", "Bob sleeps.", "Cleo runs."],
    }
    with almanaq.connect({"people": people}, schema=str(tmp_path / "s.toml"), cache=False) as connection:
        find = ValueLinks(connection.engine)
        assert find("who lives in new york?", connection.catalog) == (
            {"words": "new york", "may_be": ["people.town = 'New York'"]},
        )
        (link,) = find("where does ann o'hara live?", connection.catalog)
        assert link["may_be"] == ["people.name = 'Ann O''Hara'"]
        assert find("who has swordfish?", connection.catalog) == ()
        assert find("how many people are there?", connection.catalog) == ()


def test_values_of_a_server_are_not_read_for_links():
    class Server:
        def values(self, relation: str, column: str, limit: int) -> list[str]:
            raise AssertionError("distinct values of a column are a query that a server may charge for")

    town = Column("town", "text", samples=("New York",))
    catalog = Catalog((Relation("people", ("people",), (Column("id", "bigint"), town)),), dialect="snowflake")
    assert ValueLinks(Server())("new york", catalog) == ({"words": "new york", "may_be": ["people.town = 'New York'"]},)


SHOPS = {
    "shops": {"code": [f"S{i}" for i in range(10)], "town": ["Rome"] * 10, "floor": [1] * 10},
    "sales": {"shop": [f"S{i % 10}" for i in range(39)] + ["S99"], "paid": [1.5] * 36 + [None] * 4},
}


def test_what_is_missing_how_many_rows_there_are_and_what_refers_to_what_is_said():
    with almanaq.connect(SHOPS, cache=False) as connection:
        text = schema_text(connection.catalog, facts=SourceFacts(connection.engine)(connection.catalog))
    lines = {line.split()[0]: line for line in text.splitlines() if line.startswith("  ")}
    assert "CREATE TABLE sales (  -- 40 rows" in text
    assert lines["paid"].endswith("; 10% NULL")
    assert "98% of rows are in shops (code)" in lines["shop"]
    assert "NULL" not in lines["code"] + lines["town"]
    assert "rows are in" not in lines["town"]


@pytest.mark.parametrize(
    ("ages", "said"),
    [
        ([0, *range(7, 67)], "zeros: 1 (perhaps missing), else 7 to 66"),
        ([0] * 30 + [1] * 30, ""),
        ([0, -1, *range(7, 67)], ""),
        (list(range(60)), ""),
        (list(range(7, 67)), ""),
        ([None] * 60, ""),
        ([0.0, float("inf"), *[2.5] * 60], "zeros: 1 (perhaps missing), else 2.5 to inf"),
    ],
)
def test_a_few_zeros_among_greater_numbers_may_be_missing_values(ages, said):
    table = {"name": [f"n{i}" for i in range(len(ages))], "age": pa.array(ages, None if any(ages) else pa.int64())}
    with almanaq.connect({"people": pa.table(table)}, cache=False) as connection:
        text = schema_text(connection.catalog, facts=SourceFacts(connection.engine)(connection.catalog))
    line = next(line for line in text.splitlines() if line.startswith("  age"))
    assert said in line
    assert ("perhaps missing" in line) == bool(said)


def test_of_a_server_nothing_is_counted():
    class Server:
        catalog = Catalog((Relation("r", ("r",), (Column("e", "text"),), rows=3),), dialect="snowflake")

        def run(self, query: str, **_: object) -> object:
            raise AssertionError("counting is a query that a server may charge for")

    assert SourceFacts(Server())(Server.catalog).missing == {}


def test_values_are_written_as_they_compare():
    values = ("a  b", "a b", "<x>", "it's", "two\nlines", "long " * 20)
    columns = (
        Column("e", "text", ColumnKind.ENUM, values=values),
        Column("t", "text", samples=(values[5],)),
        Column("n", "integer", samples=("7",)),
    )
    text = schema_text(Catalog((Relation("r", ("r",), columns),)))
    assert f"ENUM('a  b', 'a b', '<x>', 'it''s', E'two\\nlines', '{values[5]}')" in text
    assert f"'{values[5][:60]}'…" in text
    assert "e.g. 7" in text


def test_a_table_that_is_shown_whole_has_no_samples_and_each_reference_stands_once():
    shop = Column("shop", "text", samples=("S1",))
    keys = ((("shop",), "shops", ("code",)),) * 2
    catalog = Catalog((Relation("sales", ("sales",), (shop,), foreign_keys=keys),))
    text = schema_text(catalog, {"sales": (("shop",), ("S1",))})
    assert text.count("S1") == 1
    assert text.count("REFERENCES shops (code)") == 1


def test_of_many_wide_tables_the_prompt_shows_those_that_the_question_is_about():
    wide = {f"topic{i}": {f"topic{i} measure {j}": [j] for j in range(20)} for i in range(10)}
    script = Script(query("SELECT 1 FROM topic7"))
    with almanaq.connect(wide, cache=False) as connection:
        Agent(connection.engine, models(script)).respond("topic7 measure 3?")
    shown = script.prompts[0].messages[1].content
    assert "CREATE TABLE topic7" in shown
    assert shown.count("CREATE TABLE") <= 4
    assert "Tables that are not shown: topic" in shown


@pytest.mark.parametrize(
    ("question", "shown"),
    [
        ("thanks!! and is the skipper paid well?", "crews"),
        ("who skippered most?", "crews"),
        ("anything from the azure coast", "coasts"),
    ],
)
def test_a_table_that_alone_shares_a_word_with_the_question_is_shown_and_the_others_with_their_columns(question, shown):
    many = list(range(30))
    wide = {f"log{i}": {f"gauge {i} {j}": many for j in range(30)} for i in range(4)}
    crews = {"boat": many, "skipper": many}
    coasts = {"boat": many, "area": ["Azure Coast", "Amber Bay"] * 15}
    script = Script(query("SELECT 1 FROM crews"), "One.")
    with almanaq.connect({**wide, "crews": crews, "coasts": coasts}, cache=False) as connection:
        agent = Agent(connection.engine, models(script), tables=lambda *_: ())
        agent.respond(question)
    prompt = script.prompts[0].messages[1].content
    assert re.findall(r"CREATE TABLE (\w+)", prompt) == [shown]
    listed = prompt.partition("-- Tables that are not shown: ")[2].splitlines()[0]
    assert "log0 (gauge 0 0, " in listed
    assert ", …)" in listed
    assert ("crews (boat, skipper)" in listed) is (shown != "crews")
    assert "Where a table that is not shown may hold" in script.prompts[0].messages[0].content
