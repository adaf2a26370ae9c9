"""Parts of the agent: relaxing, keys of rows, tables of a source of many, examples, classifying by a model."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from almanaq.agent.classifier import PromptedClassifier
from almanaq.agent.conversation import Agent
from almanaq.agent.describe import describe
from almanaq.agent.history import Shown, Turn
from almanaq.agent.keyed import named_rows, with_keys, without_keys
from almanaq.agent.local import LocalDialogue
from almanaq.agent.loosened_words import believed
from almanaq.agent.privacy import shows_private
from almanaq.agent.relax import LocalRelaxer, Query
from almanaq.agent.responder import cell
from almanaq.agent.shots import examples_path, find_examples, fitting, read_examples
from almanaq.agent.tables import relevant
from almanaq.errors import ModelCallError, SourceError
from almanaq.suql.catalog.relations import Catalog, Column, Relation
from almanaq.web.answers import turn_from_json, turn_to_json

from . import worlds
from .scripted import Script, models, query, turn

EATERIES = Catalog((worlds.EATERIES,))
MANY = (
    "SELECT name FROM restaurants WHERE location = 'Palo Alto' AND price = 'cheap' AND rating > 4.5 "
    "AND answer(reviews, 'is it quiet?') = 'Yes' LIMIT 3"
)

# --- relaxing --------------------------------------------------------------------------------------------------------


def order(suql, keep=()):
    """Return the conditions in the order in which they are left out."""
    query, taken = Query(suql, EATERIES, keep), []
    open_ = list(query.free)
    while open_:
        chosen, loosened = LocalRelaxer().relax("", query, open_)
        open_.remove(chosen)
        taken.append(loosened.said)
    return taken


def test_numbers_and_prices_go_first_and_places_last():
    assert order(MANY) == [
        "rating is above 4.5",
        "price is cheap",
        "reviews say yes to “is it quiet?”",
        "location is Palo Alto",
    ]


@pytest.mark.parametrize(
    "suql",
    [
        "SELECT name FROM restaurants WHERE price = 'luxury'",
        "SELECT rating FROM restaurants WHERE name = 'Nonna''s' AND id = 7",
        "SELECT rating FROM restaurants WHERE name ILIKE '%Nonna%' AND NOT id IN (1, 2)",
        "SELECT count(*) FROM restaurants WHERE price = 'luxury' AND rating > 4",
    ],
)
def test_neither_the_only_condition_nor_the_entity_nor_rows_left_out_are_relaxed(suql):
    assert order(suql) == []


def test_what_is_kept_is_kept():
    assert order(MANY, keep=("rating > 4.5", "price = 'cheap'"))[0] == "reviews say yes to “is it quiet?”"


def test_only_what_helps_is_left_out_and_asking_costs_no_model_call():
    world = worlds.eateries()
    told = world.run(Query(MANY, EATERIES).probe()).rows[0]
    world.close()
    # Palo Alto has a cheap place, rated worse: only the rating stands in its way.
    assert told == (0, 0, 1, 0)
    assert "answer" not in Query(MANY, EATERIES).probe()


def test_the_model_may_loosen_a_condition_and_is_not_believed_beyond_that():
    world = worlds.eateries()
    empty = "SELECT name FROM restaurants WHERE price = 'luxury' AND location = 'Palo Alto'"
    loosened = '{"condition": 1, "replacement": "price = \'moderate\'", "said": "DROP TABLE restaurants"}'
    reply = Agent(world, models(Script(query(empty), loosened, "One place."))).respond("grand places in Palo Alto")
    world.close()
    assert (reply.status, reply.rows) == ("answered", (("Nonna's Table",),))
    assert reply.relaxed == "price is luxury (now: price is moderate)"
    assert reply.answer == f"Nothing fulfils all of that. I left one condition out: “{reply.relaxed}”.\nOne place."


def test_what_was_loosened_is_said_as_the_model_says_it():
    world = worlds.eateries()
    empty = "SELECT name FROM restaurants WHERE price = 'luxury' AND location = 'Palo Alto'"
    said = "Palo Alto has nothing of luxury, so I looked at moderate prices"
    loosened = json.dumps({"condition": 1, "replacement": "price = 'moderate'", "said": said})
    reply = Agent(world, models(Script(query(empty), loosened, "One place."))).respond("grand places in Palo Alto")
    world.close()
    assert reply.answer == f"Nothing fulfils all of that. {said}.\nOne place."
    assert reply.relaxed == "price is luxury (now: price is moderate)"


@pytest.mark.parametrize(
    ("said", "instead"),
    [
        ("I left the rating out.", ""),
        ("Nothing is rated above 4.5 there; I took any rating.", ""),
        ("The rating may be at least 3.9 now.", "rating is at least 3.9"),
    ],
)
def test_a_sentence_about_the_condition_is_believed(said, instead):
    assert believed(said, "rating is above 4.5", instead, "well rated Thai food") == said


@pytest.mark.parametrize(
    ("said", "instead"),
    [
        ("I left the price out.", ""),
        ("I left the rating out. Call 555 for a table.", ""),
        ("I left the rating out, as Nonna's Table has the best.", ""),
        ("I took ratings from 3.", ""),
        ("I left the rating out, see https://x.example", ""),
        ("rating > 4.5 became NULL", ""),
        ("The rating may be lower.", "rating is at least 3.9"),
        ("rating " * 40, ""),
        ("", ""),
        (None, ""),
        (["rating"], ""),
    ],
)
def test_a_sentence_of_anything_else_is_not_believed(said, instead):
    assert believed(said, "rating is above 4.5", instead, "well rated Thai food") == ""


@pytest.mark.parametrize("reply", ["?", '{"condition": 9}', '{"condition": 1, "replacement": "1; DROP TABLE x"}'])
def test_a_choice_that_cannot_be_used_is_made_without_the_model(reply):
    world = worlds.eateries()
    empty = "SELECT name FROM restaurants WHERE price = 'luxury' AND location = 'Palo Alto'"
    found = Agent(world, models(Script(query(empty), reply, "Two places."))).respond("grand places in Palo Alto")
    world.close()
    assert (found.status, found.relaxed) == ("answered", "price is luxury")


# --- keys of the rows shown ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "suql",
    [
        "SELECT price, count(*) FROM restaurants GROUP BY price",
        "SELECT DISTINCT price FROM restaurants",
        "SELECT max(rating) FROM restaurants",
        "SELECT name FROM restaurants UNION SELECT location FROM restaurants",
        "WITH t AS (SELECT name FROM restaurants) SELECT name FROM t",
    ],
)
def test_rows_that_are_no_rows_of_a_relation_have_no_key(suql):
    assert with_keys(suql, EATERIES) is None


def test_keys_come_along_unseen():
    world = worlds.eateries()
    reply = Agent(world, models()).respond("cheap restaurants")
    world.close()
    assert (reply.shown.relation, reply.shown.columns) == ("restaurants", ("id",))
    assert dict(zip(reply.shown.keys, reply.shown.names, strict=True)) == {(4,): "Casa Verde", (2,): "Golden Wok"}
    assert "row_key" not in f"{reply.suql} {reply.columns} {reply.answer}"


def test_rows_carry_what_a_query_compares_or_sorts_by_where_a_model_writes_the_next_one():
    world = worlds.eateries()
    suql = "SELECT name, price FROM restaurants r WHERE rating > 4 AND price <> 'dear' ORDER BY r.num_reviews"
    keyed = with_keys(suql, world.catalog, compared=True)
    assert keyed.beside == ("rating", "num_reviews")
    result, shown = without_keys(world.run(keyed.suql), keyed, suql)
    assert result.columns == ("name", "price")
    for values, row in zip(shown.values, result.rows, strict=True):
        assert [name for name, _ in values] == ["price", "rating", "num_reviews"]
        assert values[0][1] == row[1]
        assert float(values[1][1]) > 4
    assert result.rows
    assert with_keys(suql, world.catalog).beside == ()
    private = replace(world.catalog.relations[0].column("rating"), private=True)
    columns = tuple(private if c.name == "rating" else c for c in world.catalog.relations[0].columns)
    hidden = Catalog((replace(world.catalog.relations[0], columns=columns), *world.catalog.relations[1:]))
    assert with_keys(suql, hidden, compared=True).beside == ("num_reviews",)
    turn = Turn("q", suql, "Two.", entities=tuple(("name", row[0]) for row in result.rows), shown=shown)
    told = turn_from_json(json.loads(json.dumps(turn_to_json(turn), default=str)))
    assert told.shown == shown
    world.close()


def test_without_a_key_rows_are_found_again_by_their_name():
    films = Relation("films", ("films",), (Column("title", "text"), Column("year", "integer")))
    world = worlds.World((films,), {"films": [("Salt", 1999), ("Fog", 2001)]})
    suql = "SELECT title FROM films ORDER BY year"
    shown = named_rows(suql, world.run(suql), world.catalog)
    assert shown == Shown("films", ("title",), (("Salt",), ("Fog",)), ("Salt", "Fog"))
    assert named_rows("SELECT count(*) FROM films", world.run("SELECT count(*) FROM films"), world.catalog) is None
    world.close()


def test_keys_are_told_by_name():
    shown = Shown("restaurants", ("id",), ((1,), (2,)), ("Nonna's Table", "Golden Wok"))
    suql = "SELECT name FROM restaurants WHERE price = 'cheap' AND NOT id IN (1, 2)"
    assert describe(suql, [shown]).endswith("price is cheap and name is none of Nonna's Table, Golden Wok")
    assert describe("SELECT name FROM restaurants WHERE id = 2", [shown]).endswith("whose name is Golden Wok")
    assert describe("SELECT name FROM restaurants WHERE id = 3", [shown]).endswith("whose id is 3")


def test_links_stay_whole_and_lists_are_short():
    link = "https://example.org/" + "a" * 300
    assert cell(link) == link
    assert cell("a" * 300).endswith("…")
    assert cell(list("abcdefghij")) == "a, b, c, d, e, f, g, h and 2 more"
    shops = Relation("shops", ("shops",), (Column("name", "text"), Column("website", "text")), key=("name",))
    world = worlds.World((shops,), {"shops": [("Alba", link)]})
    assert link in Agent(world, models()).respond("show all shops").answer
    world.close()


@pytest.mark.parametrize(
    "suql",
    [
        "SELECT name, phone FROM people",
        "SELECT * FROM people",
        "SELECT upper(phone) AS x FROM people",
        "SELECT x FROM (SELECT phone AS x FROM people) AS q",
    ],
)
def test_rows_with_private_columns_reach_no_language_model(suql):
    columns = (Column("name", "text"), Column("phone", "text", private=True))
    world = worlds.World((Relation("people", ("people",), columns),), {"people": [("Ada", "555-SECRET")]})
    script = Script(query(suql), query(None, needs_data=False), "Hello.")
    agent = Agent(world, models(script))
    reply = agent.respond("who is there?")
    agent.respond("thanks", [reply.turn()])
    world.close()
    assert "555-SECRET" in reply.answer
    assert "no language model saw them" in reply.answer
    assert [prompt.name for prompt in script.prompts] == ["parse", "parse", "chat"]
    assert not any("SECRET" in message.content for prompt in script.prompts for message in prompt.messages)


def test_a_star_over_one_relation_shows_its_private_columns():
    columns = (Column("name", "text"), Column("phone", "text", private=True))
    catalog = Catalog((Relation("people", ("people",), columns), worlds.EATERIES))
    assert shows_private("SELECT p.* FROM people AS p", catalog)
    assert not shows_private("SELECT name FROM people WHERE phone = '1'", catalog)
    assert not shows_private("SELECT * FROM restaurants", catalog)


# --- tables ----------------------------------------------------------------------------------------------------------


def relation(database, name, *keys):
    return Relation(name, ("memory", database, name), (Column("id", "integer"),), foreign_keys=keys)


def test_a_table_brings_its_database_and_the_last_query_its_tables():
    relations = [relation(f"db{i}", f"t{i}{j}") for i in range(10) for j in range(3)]
    catalog = Catalog(tuple(relations), separate=True)
    history = [Turn("q", "SELECT id FROM t90 JOIN t91 ON TRUE")]
    kept = {r.name for r in relevant("?", catalog, history, lambda question, _: ("t21", "t50")).relations}
    assert kept == {"t90", "t91", "t20", "t21", "t22", "t50"}
    assert relevant("?", catalog, [], lambda question, _: ()).relations == ()
    schemas = Catalog(tuple(relations))  # of one database: each table may be joined to any other
    kept = {r.name for r in relevant("?", schemas, history, lambda question, _: ("t21", "t50")).relations}
    assert kept == {"t90", "t91", "t21", "t50"}


def test_no_table_that_fits_is_said_and_nothing_is_searched():
    many = [Relation(f"misc_{i}", (f"misc_{i}",), (Column("payload", "integer"),)) for i in range(30)]
    world = worlds.World(many, {r.name: [] for r in many})
    script = Script(turn())
    reply = Agent(world, models(script), tables=lambda question, catalog: ()).respond("who won the race?")
    assert (reply.status, reply.suql, world.queries) == ("no_query", None, [])
    assert "no table of this source seems to hold that" in reply.answer
    world.close()


# --- classifying by a model ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("said", "kind"),
    [("query", "new"), ("talk", "talk"), ("outside", "world"), ("unclear", "new"), ("nonsense", "new")],
)
def test_in_doubt_a_turn_goes_on_to_the_parser(said, kind):
    assert PromptedClassifier(Script(turn(said))).classify("which one?", EATERIES, ()) == kind


def test_a_classifier_that_fails_stops_nobody():
    assert PromptedClassifier(Script(ModelCallError("timed out"))).classify("which one?", EATERIES, ()) == "new"
    assert PromptedClassifier(Script("garbage")).classify("which one?", EATERIES, ()) == "new"


def test_small_talk_asks_no_model_unless_it_may_answer_a_question():
    assert PromptedClassifier(Script()).classify("thanks!", EATERIES, ()) == "talk"
    asked_back = Turn("Casa", status="clarify", answer="The first?")
    assert PromptedClassifier(Script(turn())).classify("yes", EATERIES, (asked_back,)) == "new"


# --- questions back without a model ----------------------------------------------------------------------------------


def test_a_value_of_two_columns_is_asked_back_and_the_answer_is_taken():
    flights = Relation(
        "flights", ("flights",), (Column("origin", "text"), Column("destination", "text"), Column("price", "integer"))
    )
    world = worlds.World((flights,), {"flights": [("Rome", "Oslo", 90), ("Oslo", "Rome", 70)]})
    agent = Agent(world, models())
    asked = agent.respond("Which flights have Oslo?")
    assert (asked.status, asked.answer) == ("clarify", "By “Oslo”, do you mean the origin or destination?")
    then = agent.respond("the destination", [asked.turn()])
    world.close()
    assert then.status == "answered"
    assert "destination = 'Oslo'" in then.suql


def test_the_same_engine_serves_many_conversations():
    world = worlds.films()
    dialogue = LocalDialogue(world)
    first = dialogue.parse("comedies", world.catalog, ())
    assert dialogue.parse("comedies", world.catalog, ()) == first
    world.close()


# --- examples --------------------------------------------------------------------------------------------------------


def test_examples_lie_beside_their_source(tmp_path):
    source = tmp_path / "places.duckdb"
    examples_path(source).write_text(
        '[[example]]\nquestion = "quiet?"\nsuql = "SELECT name FROM restaurants"\n[[example]]\nquestion = "hi"\n'
    )
    assert find_examples(source) == (("quiet?", "SELECT name FROM restaurants"), ("hi", None))
    assert find_examples(tmp_path / "other.duckdb") == ()
    assert find_examples({"rows": 1}) == ()


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[[example]]\nquestion = 3", "example 1: `question` must be text"),
        ('[[example]]\nquestion = "q"\nsql = "x"', "example 1: only `question` and `suql`"),
        ('[[example]]\nquestion = "q"\nsuql = "SELECT FROM WHERE ("', "example 1: the SUQL cannot be parsed"),
        ("x = 1", "only \\[\\[example\\]\\] entries"),
        ("[[", "is not TOML"),
    ],
)
def test_a_faulty_example_is_named(tmp_path, text, said):
    path = tmp_path / "x.examples.toml"
    path.write_text(text)
    with pytest.raises(SourceError, match=said):
        read_examples(path)


def test_examples_of_tables_that_are_not_shown_are_left_out():
    shots = (("a", "SELECT name FROM restaurants"), ("b", "SELECT title FROM films"), ("c", None))
    assert [question for question, _ in fitting(shots, EATERIES)] == ["a", "c"]
    assert fitting(shots[1:], EATERIES) == ()


def test_the_samples_own_examples_run():
    import almanaq

    with almanaq.connect("sample:restaurants") as connection:
        shots = fitting(find_examples("sample:restaurants"), connection.catalog)
        assert len(shots) == 6
        for _, suql in shots:
            if suql:
                connection.engine.check(suql)
