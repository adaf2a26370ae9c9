"""What a model says beside the rows: figures and quotes that nothing found holds, and what it leaves unsaid."""

from __future__ import annotations

import pytest

import almanaq
from almanaq.agent.unsupported import say_unsupported
from almanaq.testing import ScriptedModel

DOGS = {"name": ["Rex", "Bella", "Milo"], "age": [7, 3, 5], "city": ["Rome", None, "Oslo"]}
OWNERS = {"name": ["Ann", "Bob"], "dog": ["Rex", "Milo"]}
OLD = "SELECT name, age FROM dogs WHERE age > 4"


def ask(question: str, suql: str, *, reply: str | None = None, said: str = "Worded.", **more: object):
    """Return the response to a question whose query and wording a model wrote, and the model."""
    options = {name: more.pop(name) for name in ("max_rows", "schema") if name in more}
    parse = {"reasoning": "", "suql": suql, "needs_data": True, "clarify": None, "reply": reply, "left_out": []}
    model = ScriptedModel({"parse": parse, "respond": said, **more})
    with almanaq.connect(
        {"dogs": DOGS, "owners": OWNERS}, model=model, cache=False, check="check" in more, **options
    ) as con:
        return con.ask(question), model


@pytest.mark.parametrize(
    ("reply", "given", "strange"),
    [
        ("Rex is 7, Milo 5; these are 2.", "Rex 7 Milo 5", []),
        ("There are 12 dogs.", "Rex 7 Milo 5", ["12"]),
        ("4.67 on average, about 5", "4.6666", []),
        ("4.8 on average", "4.6666", ["4.8"]),
        ("1,234.50, auf Deutsch 1.234,50", "1234.5", []),
        ("3.4 million, or 34.1 % of them", "3412345 0.3412", []),
        ("on 5 March 2024", "2024-03-05", []),
        ("It says “a very  quiet place”.", "A very quiet place.", []),
        ("It says “a loud, bad place”.", "A very quiet place.", ["“a loud, bad place”"]),
        ("It says “very quiet … come again”.", "very quiet; we come again", []),
        ("7 euros", "price in EUR 7", []),
        ("7 euros or $7", "price 7", ["euros", "$"]),
    ],
)
def test_what_nothing_holds_is_named(reply, given, strange):
    said = say_unsupported(reply, given, 2)
    assert bool(said) == bool(strange)
    assert all(each in said for each in strange)


def test_a_reply_is_followed_by_what_it_made_up():
    response, _ = ask("old dogs", OLD, said="Rex (7), Milo (5) and 14 more.")
    assert response.answer.endswith("\n\nCheck this reply: nothing that was found holds 14.")
    assert ask("old dogs", OLD, said="Rex (7) and Milo (5).")[0].answer == "Rex (7) and Milo (5)."


def test_what_was_cut_or_doubted_is_said_whatever_the_model_says():
    assert "only the first 1 were read" in ask("dogs?", "SELECT name, age FROM dogs", max_rows=1, said="All.")[0].answer
    response, _ = ask("old dogs", OLD, check={"verdict": "Doubtful", "reason": ""})
    assert "I am not sure of this: a model doubts" in response.answer


OWNED = "SELECT dogs.name, owners.name FROM dogs JOIN owners ON dog = dogs.name"


@pytest.mark.parametrize(
    ("question", "suql", "reply"),
    [
        ("how much?", "SELECT SUM(age) AS total FROM dogs", "They cost €{total}."),
        ("old ones", OLD, "Eleven are old: {rows}."),
        ("is Rex older than 4?", f"{OLD} AND name = 'Rex'", "It is not: {name}."),
        ("where is Bella?", "SELECT name, city FROM dogs WHERE age = 3", "It lives in {city}."),
        ("whose is Rex?", f"{OWNED} WHERE dog = 'Rex'", "It is the dog of {name}."),
    ],
)
def test_a_sentence_that_claims_more_than_its_rows_hold_is_not_used(question, suql, reply):
    response, _ = ask(question, suql, reply=reply)
    assert response.status == "answered"
    assert reply.partition("{")[0] not in response.answer


def test_a_currency_that_the_source_names_may_be_said(tmp_path):
    schema = tmp_path / "schema.toml"
    schema.write_text("[dogs.columns.age]\ndescription = 'price in EUR'\n")
    suql = "SELECT SUM(age) AS total FROM dogs"
    assert ask("how much?", suql, reply="They cost €{total}.", schema=str(schema))[0].answer.startswith(
        "They cost €15."
    )


def test_columns_of_one_name_reach_the_model_both():
    _, model = ask("whose are they?", OWNED)
    assert '{"name": "Rex", "name_1": "Ann"}' in model.prompts[-1].messages[-1].content


@pytest.mark.parametrize("replacement", ["1 = 1", "city = 'Rome'"])
def test_another_condition_is_no_looser_one(replacement):
    relax = {"condition": 1, "replacement": replacement}
    response, _ = ask("old ones in Oslo", f"{OLD.replace('4', '40')} AND city = 'Oslo'", relax=relax)
    assert response.relaxed == "age is above 40"
    assert response.suql == "SELECT name, age FROM dogs WHERE city = 'Oslo'"


def test_a_query_in_a_fence_is_read_and_the_word_null_is_none():
    assert ask("old ones", f"```sql\n{OLD}\n```")[0].suql == OLD
    assert ask("colours?", "null", reply="No column holds colours.")[0].status == "no_query"
