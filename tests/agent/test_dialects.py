"""Queries in the engine's own dialect go through every step of a turn, and prompts name that dialect."""

from __future__ import annotations

import json

import pytest

import almanaq
from almanaq.agent.describe import describe
from almanaq.agent.dialects import dialect_notes
from almanaq.agent.parser import PromptedParser
from almanaq.agent.queries import add_keys
from almanaq.agent.relax import EmptyQuery
from almanaq.agent.schema_text import choose_examples, generate_examples, schema_text
from almanaq.errors import SourceError
from almanaq.mcp.declared import instructions
from almanaq.mcp.resources import describe_language
from almanaq.suql.catalog.relations import Catalog, Column, ColumnKind, Relation
from almanaq.testing import ScriptedModel

from .scripted import Script

DOGS = {
    "dogs": {
        "id": [1, 2, 3, 4],
        "name": ["Rex", "Bella", "Milo", "Ada"],
        "breed": ["pug", "pug", "boxer", "boxer"],
        "age": [7, 3, 5, 9],
        "scores": [[1, 2], [3], [4, 5], []],
        "home": [{"city": "Bern"}, {"city": "Rome"}, {"city": "Bern"}, {"city": "Rome"}],
        "notes": ["A calm dog that sleeps all day.", "It barks a lot at night.", "A calm dog.", "It never barks."],
    }
}
SCHEMA = """
[dogs]
key = ["id"]
[dogs.columns.notes]
kind = "free_text"
"""

NATIVE = [
    ("FROM dogs SELECT name WHERE age > 4", ["Rex", "Milo", "Ada"]),
    ("SELECT name FROM dogs QUALIFY row_number() OVER (PARTITION BY breed ORDER BY age DESC) = 1", ["Rex", "Ada"]),
    ("SELECT name FROM dogs WHERE len([x FOR x IN scores IF x > 1]) > 1", ["Milo"]),
    ("SELECT name FROM dogs WHERE list_contains(list_transform(scores, lambda x: x + 1), 4)", ["Bella"]),
    ("SELECT name FROM dogs WHERE home.city = 'Bern' AND age // 2 = 3", ["Rex"]),
    ("SELECT * EXCLUDE (id, scores, home, notes) FROM dogs WHERE name GLOB 'B*'", ["Bella"]),
    ("SELECT breed, max(age) AS oldest FROM dogs GROUP BY ALL ORDER BY ALL", ["boxer", "pug"]),
    ("SELECT histogram(age) FROM dogs", None),
    ("SELECT name, age::VARCHAR FROM dogs WHERE age IS DISTINCT FROM 3 AND len(name) > 3", ["Milo"]),
    ("PIVOT dogs ON breed USING count(*) GROUP BY age", [3, 5, 7, 9]),
]


@pytest.fixture
def source(tmp_path):
    path = tmp_path / "dogs.toml"
    path.write_text(SCHEMA)

    def connect(*replies: object, **options: object) -> almanaq.Connection:
        return almanaq.connect(DOGS, schema=str(path), model=ScriptedModel(list(replies)), cache=False, **options)

    return connect


def written(suql: str) -> dict[str, object]:
    return {"reasoning": "", "suql": suql, "needs_data": True, "clarify": None, "left_out": []}


@pytest.mark.parametrize(("suql", "first"), NATIVE)
def test_a_turn_runs_what_its_engine_runs_and_names_columns_as_the_engine_does(source, suql, first):
    with source(written(suql), "Found.") as connection:
        reply = connection.ask("which dogs?")
        plain = connection.sql(suql)
    assert reply.status == "answered", reply.answer
    assert (reply.columns, sorted(map(str, reply.rows))) == (plain.columns, sorted(map(str, plain.rows)))
    if first is not None:
        assert sorted(str(row[0]) for row in reply.rows) == sorted(map(str, first))


def test_rows_of_native_queries_are_known_by_their_keys(source):
    suql = "SELECT name -- the dogs\nFROM dogs WHERE len([x FOR x IN scores IF x > 1]) > 1"
    with source(written(suql), "Found.") as connection:
        reply = connection.ask("which dogs?")
    assert reply.shown is not None
    assert (reply.shown.columns, reply.shown.keys) == (("id",), ((3,),))


def test_a_query_keeps_its_own_text_where_keys_are_added(source):
    with source() as connection:
        suql = "SELECT name, age::VARCHAR, len(name) FROM dogs WHERE age IS DISTINCT FROM 3"
        keyed = add_keys(suql, connection.catalog)
    assert keyed is not None
    assert keyed.suql.startswith('SELECT name, age::VARCHAR, len(name), "dogs"."id" AS row_key_0 FROM dogs')


def test_a_native_condition_is_relaxed_and_described(source):
    suql = "SELECT name FROM dogs WHERE list_contains(scores, 99) AND home.city = 'Bern'"
    relaxed = {"condition": 1, "replacement": "len(list_filter(scores, lambda x: x > 4)) > 0", "said": ""}
    with source(written(suql), relaxed, "Found.") as connection:
        reply = connection.ask("which dogs have 99?")
    assert reply.status == "answered", reply.answer
    assert reply.rows == (("Milo",),)
    assert "LAMBDA" in reply.suql.upper()


def test_what_a_native_condition_keeps_out_is_counted(source):
    suql = "SELECT name FROM dogs WHERE len([x FOR x IN scores IF x > 90]) > 0 AND breed = 'pug'"
    nothing = {"condition": None, "replacement": None, "said": ""}
    with source(written(suql), nothing) as connection:
        reply = connection.ask("which dogs?")
    assert reply.status == "no_result"
    assert "0 of 4 rows fulfil condition 1 of the query" in reply.answer
    assert "2 of 4 rows fulfil: breed is pug" in reply.answer


def test_why_not_and_explain_show_conditions_in_the_engines_dialect(tmp_path):
    path = tmp_path / "dogs.toml"
    path.write_text(SCHEMA)
    suql = (
        "SELECT name FROM dogs WHERE name GLOB 'R*' AND age // 2 = 3 AND home.city = 'Bern' "
        "AND answer(notes, 'is it calm?') = 'Yes'"
    )
    with almanaq.connect(DOGS, schema=str(path), cache=False) as connection:
        for condition in ("len([x FOR x IN scores IF x > 3]) > 1", "len(list_filter(scores, lambda x: x > 3)) > 1"):
            native = suql.replace("age // 2 = 3", condition)
            assert "LAMBDA" in str(connection.explain(native))
            rejected = connection.why_not(native, {"id": 1}).rejected
            assert [part.truth for part in rejected] == [False], rejected
            assert "LAMBDA" in rejected[0].text
        shown = str(connection.explain(suql))
        reasons = connection.why_not(suql, {"id": 2})
    assert "GLOB 'R*'" in shown
    assert "age // 2" in shown.replace('"', "")
    texts = [condition.text for condition in reasons.rejected]
    assert any("GLOB 'R*'" in text for text in texts), texts


@pytest.mark.parametrize(
    ("suql", "expected"),
    [
        ("SELECT name FROM dogs WHERE age // 2 = 3", "SELECT name FROM dogs WHERE age // 2 = 3"),
        (
            "SELECT name FROM dogs WHERE [x FOR x IN s IF x > 1] = [2]",
            "SELECT name FROM dogs WHERE [x FOR x IN s IF x > 1] = [2]",
        ),
        ("SELECT breed, count(*) FROM dogs GROUP BY ALL", "the number of dogs, for each breed"),
        (
            "SELECT name FROM dogs WHERE levenshtein(name, 'Rex') = 2",
            "SELECT name FROM dogs WHERE levenshtein(name, 'Rex') = 2",
        ),
        ("SELECT name FROM dogs ANTI JOIN cats USING (id)", "dogs (without any cats)"),
        ("FROM dogs SELECT name WHERE age > 4", "dogs whose age is above 4"),
    ],
)
def test_native_conditions_have_words_or_stand_as_they_are(suql, expected):
    assert describe(suql, dialect="duckdb") == expected


@pytest.mark.parametrize(
    "suql",
    [
        "SELECT name FROM dogs QUALIFY row_number() OVER (PARTITION BY breed) = 1",
        "SELECT name FROM dogs USING SAMPLE 10%",
        "SELECT DISTINCT ON (breed) name FROM dogs",
        "SELECT name FROM dogs, unnest(scores) AS s(x)",
        "SELECT breed, count(*) FROM dogs GROUP BY ROLLUP (breed)",
        "SELECT name FROM dogs LIMIT 3 OFFSET 2",
    ],
)
def test_a_query_with_a_clause_that_has_no_words_is_shown_whole(suql):
    assert describe(suql, dialect="duckdb") == suql


SHOP = Relation(
    "Order lines",
    ("Order lines",),
    (
        Column("id", "bigint"),
        Column("Unit price", "numeric(10,2)"),
        Column("tags", "text", ColumnKind.ENUM, array=True, values=("new", "old"), samples=("new",)),
    ),
    key=("id",),
)


@pytest.mark.parametrize("dialect", ["duckdb", "postgres", "spark", "mysql", "snowflake", "clickhouse", "trino"])
def test_prompts_are_written_in_the_dialect_of_the_catalog(dialect):
    catalog = Catalog((SHOP,), dialect=dialect)
    notes = dialect_notes(dialect)
    prompt = PromptedParser(Script()).prompt("what is new?", catalog)
    system = prompt.messages[0].content
    assert f"SUQL is {notes.name}'s SELECT" in system
    assert notes.contains in system
    assert all(note in system for note in notes.notes)
    assert 1 <= len(notes.notes) <= 4
    assert notes.name in instructions(dialect)
    page = describe_language(dialect)
    assert f"here {notes.name}:" in page
    assert "{" not in page
    quoted = "`" if dialect in ("spark", "mysql") else '"'
    assert f"{quoted}Unit price{quoted}" in schema_text(catalog)
    for _, suql in generate_examples(catalog)[:-2]:
        assert suql is not None
        add_keys(suql, catalog)  # it can be parsed


def test_a_relaxed_query_is_written_in_the_dialect_of_its_catalog():
    catalog = Catalog((SHOP,), dialect="spark")
    query = EmptyQuery(
        "SELECT id FROM `Order lines` WHERE `Unit price` > 3 AND size(filter(tags, x -> x = 'a')) > 0", catalog
    )
    assert query.without(1) == "SELECT id FROM `Order lines` WHERE `Unit price` > 3"
    assert "x -> x = 'a'" in query.without(0)


def test_examples_are_read_in_the_dialect_of_the_catalog():
    shots = (("the new ones", 'FROM "Order lines" SELECT id QUALIFY row_number() OVER () = 1'), ("hello", None))
    assert choose_examples(shots, Catalog((SHOP,), dialect="duckdb")) == shots
    with pytest.raises(SourceError, match="cannot be parsed"):
        choose_examples((("x", "SELECT (("),), Catalog((SHOP,)))


def test_the_engine_names_the_dialect_of_its_catalog():
    with almanaq.connect(DOGS, cache=False) as connection:
        assert connection.catalog.dialect == connection.engine.dialect == "duckdb"
        assert json.dumps(connection.catalog.dialect)
