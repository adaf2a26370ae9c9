# ruff: noqa: E501 - one case or row per line reads best; fakes have the signatures of what they stand for
"""The local parser: what the words of a question become, compared as conditions rather than as text."""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import sqlglot
from sqlglot import exp

import almanaq
from almanaq.agent.local import LocalParser
from almanaq.suql.catalog.relations import Catalog

from . import worlds


@dataclass(frozen=True)
class Parts:
    """A query taken apart: its conjuncts, order and so on, each in sqlglot's own spelling."""

    shown: tuple[str, ...]
    conditions: frozenset[str]
    order: tuple[str, ...]
    group: tuple[str, ...]
    limit: str | None
    tables: frozenset[str]


def take_apart(suql: str) -> Parts:
    tree = sqlglot.parse_one(suql, read="postgres")
    assert isinstance(tree, exp.Select)
    where, order, group, limit = (tree.args.get(key) for key in ("where", "order", "group", "limit"))
    conjuncts = (
        list(where.this.flatten()) if where and isinstance(where.this, exp.And) else [where.this] if where else []
    )
    return Parts(
        tuple(spell(e) for e in tree.expressions),
        frozenset(spell(c) for c in conjuncts),
        tuple(spell(e) for e in order.expressions) if order else (),
        tuple(spell(e) for e in group.expressions) if group else (),
        _limit(limit) if limit else None,
        frozenset(t.name for t in tree.find_all(exp.Table)),
    )


def _limit(limit: exp.Expr) -> str:
    return (
        f"{spell(limit.args['count'])} with ties" if isinstance(limit, exp.Fetch) else spell(limit.args["expression"])
    )


def spell(node: exp.Expr) -> str:
    """Return an expression without the relations' names: which relation a column is of, the tables say."""
    plain = node.copy()
    for column in plain.find_all(exp.Column):
        column.set("table", None)
    return plain.sql("postgres")


def condition(text: str) -> str:
    return spell(sqlglot.parse_one(f"SELECT 1 WHERE {text}", read="postgres").args["where"].this)


WORLDS = {"eateries": worlds.eateries, "films": worlds.films, "staff": worlds.staff}


@pytest.fixture(scope="module")
def sources():
    made = {name: make() for name, make in WORLDS.items()}
    yield {name: (world, LocalParser.over(world, confidence=-1)) for name, world in made.items()}
    for world in made.values():
        world.close()


def parse(sources, world: str, question: str):
    source, parser = sources[world]
    parsed = parser.parse(question, source.catalog)
    if parsed.suql:
        source.run(parsed.suql)
    return parsed


def yes(question: str, column: str = "reviews") -> str:
    return f"answer({column}, '{question}') = 'Yes'"


CONDITIONS = [
    ("eateries", "What are some good inexpensive chinese restaurants in Palo Alto?", ["price = 'cheap'", "'chinese' = ANY(cuisines)", "location = 'Palo Alto'"]),
    ("eateries", "Which Italian place is good for a date?", ["'italian' = ANY(cuisines)", yes("is this restaurant good for a date?")]),
    ("eateries", "cheap mexican restaurants with a patio and at least 4 stars", ["price = 'cheap'", "'mexican' = ANY(cuisines)", "rating >= 4", yes("does this restaurant have a patio?")]),
    ("eateries", "restaurants rated above 4 with more than 100 reviews", ["rating > 4", "num_reviews > 100"]),
    ("eateries", "romantic places in San Francisco", ["location = 'San Francisco'", yes("is this restaurant romantic?")]),
    ("eateries", "dog friendly coffee shop in Sunnyvale", ["'coffee & tea' = ANY(cuisines)", "location = 'Sunnyvale'", yes("is this restaurant dog friendly?")]),
    ("eateries", "restaurants that are not chinese with no long wait", ["NOT 'chinese' = ANY(cuisines)", "answer(reviews, 'does this restaurant have a long wait?') = 'No'"]),
    ("eateries", "Japenese restaurants with more than 100 reviews", ["'japanese' = ANY(cuisines)", "num_reviews > 100"]),
    ("eateries", "chinese or thai food in Sunnyvale or Palo Alto", ["'chinese' = ANY(cuisines) OR 'thai' = ANY(cuisines)", "location IN ('Sunnyvale', 'Palo Alto')"]),
    ("eateries", "kid-friendly restaurant with live music and outdoor seating", [yes("is this restaurant kid-friendly?"), yes("does this restaurant have live music?"), yes("does this restaurant have outdoor seating?")]),
    ("eateries", "Any Italian place with happy hour?", ["'italian' = ANY(cuisines)", yes("does this restaurant have a happy hour?")]),
    ("eateries", "We have guests this weekend, any quiet Italian place?", ["'italian' = ANY(cuisines)", yes("is this restaurant quiet?")]),
    ("eateries", "We have a puppy. Any Italian place?", ["'italian' = ANY(cuisines)", yes("does this restaurant welcome a puppy?")]),
    ("eateries", "a place where I can work on my laptop", [yes("can you work on your laptop at this restaurant?")]),
    ("eateries", "mexican food without loud music", ["'mexican' = ANY(cuisines)", "answer(reviews, 'does this restaurant have loud music?') = 'No'"]),
    ("eateries", "somewhere quiet to work", [yes("is this restaurant quiet enough to work?")]),
    ("eateries", "I want a restaurant where the staff is friendly", [yes("is the staff friendly?")]),
    ("eateries", "a place that serves tiramisu", [yes("does this restaurant serve tiramisu?", "popular_dishes")]),
    ("eateries", "a cozy italian restaurant where I can bring my dog", ["'italian' = ANY(cuisines)", yes("is this restaurant cozy?"), yes("can you bring your dog to this restaurant?")]),
    ("films", "films released in 1999 or 2004", ["(release_year = 1999 OR release_year = 2004)"]),
    ("staff", "employees above age 40", ["age > 40"]),
    ("eateries", "places that do not serve sushi", ["NOT 'sushi' = ANY(cuisines)"]),
    ("eateries", "Which restaurants are rated between 4 and 4.6?", ["rating BETWEEN 4 AND 4.6"]),
    ("eateries", "restaurants in Sunnyvale rated 4 or higher", ["location = 'Sunnyvale'", "rating >= 4"]),
    ("eateries", "sushi with fewer than 50 reviews", ["'sushi' = ANY(cuisines)", "num_reviews < 50"]),
    ("eateries", "seafood restaurants with a rating above 4.2", ["'seafood' = ANY(cuisines)", "rating > 4.2"]),
    ("eateries", "What is the phone number of Golden Wok?", ["name = 'Golden Wok'"]),
    ("eateries", "Where is Umi Corner?", ["name = 'Umi Corner'"]),
    ("eateries", "Does Casa Verde take reservations?", ["name = 'Casa Verde'"]),
    ("eateries", "What do people say about Nonna's Table?", ["name = 'Nonna''s Table'"]),
    ("eateries", "How is the parking at Golden Wok?", ["name = 'Golden Wok'"]),
    ("eateries", "restaurants with 100+ reviews in palo alto", ["num_reviews >= 100", "location = 'Palo Alto'"]),
    ("films", "Which comedies came out after 2005?", ["genre = 'comedy'", "release_year > 2005"]),
    ("films", "films longer than 100 minutes", ["runtime_minutes > 100"]),
    ("films", "How many films did Ben Ortiz direct?", ["name = 'Ben Ortiz'"]),
    ("films", "titles of films by Swedish directors", ["country = 'Sweden'"]),
    ("films", "Who directed The Cellar?", ["title = 'The Cellar'"]),
    ("films", "directors born before 1970", ["birth_date < '1970-01-01'"]),
    ("films", "movies about letters", [yes("is this movie about letters?", "plot")]),
    ("films", "films without awards", ["NOT film_id IN (SELECT film_id FROM awards WHERE film_id IS NOT NULL)"]),
    ("films", "how many awards were given in 2000?", ["year = 2000"]),
    ("films", "directors from Mexico", ["country = 'Mexico'"]),
    ("films", "documentaries under 80 minutes", ["genre = 'documentary'", "runtime_minutes < 80"]),
    ("films", "films released between 1990 and 2010", ["release_year BETWEEN 1990 AND 2010"]),
    ("staff", "employees earning more than 80k in Berlin", ["city = 'Berlin'", "salary > 80000"]),
    ("staff", "employees who speak Spanish", [yes("does this employee speak Spanish?", "bio")]),
    ("staff", "remote engineers", ["job_title = 'Engineer'", "is_remote IS TRUE"]),
    ("staff", "employees in the Research department older than 50", ["dept_name = 'Research'", "age > 50"]),
    ("staff", "departments with a budget over 350,000", ["budget > 350000"]),
    ("staff", "names of employees not in Berlin", ["city <> 'Berlin'"]),
    ("staff", "What is the salary of Tom Baker?", ["full_name = 'Tom Baker'"]),
    ("staff", "employees who are at most 30 years old", ["age <= 30"]),
    ("staff", "analysts or designers", ["job_title IN ('Analyst', 'Designer')"]),
]  # fmt: skip


@pytest.mark.parametrize(("world", "question", "expected"), CONDITIONS, ids=[q for _, q, _ in CONDITIONS])
def test_conditions(sources, world, question, expected):
    parsed = parse(sources, world, question)
    assert parsed.suql is not None
    got = {c.replace('"', "") for c in take_apart(parsed.suql).conditions}
    assert got == {condition(e).replace('"', "") for e in expected}


ORDERS = [
    ("eateries", "top 5 sushi restaurants by number of reviews", ["num_reviews DESC"], "5"),
    ("eateries", "highest rated restaurant in Palo Alto", ["rating DESC", "num_reviews DESC"], "1"),
    ("eateries", "the best restaurants in Palo Alto", ["rating DESC", "num_reviews DESC"], "3"),
    ("eateries", "the most reviewed japanese restaurant", ["num_reviews DESC"], "1"),
    ("eateries", "two romantic restaurants", [], "2"),
    ("films", "the longest drama", ["runtime_minutes DESC"], "1 with ties"),
    ("films", "oldest director", ["birth_date ASC"], "1 with ties"),
    ("films", "Which film has the most awards?", ["COUNT(*) DESC"], "1 with ties"),
    ("films", "list the title and release year of all films ordered by release year descending", ["release_year DESC"], None),
    ("staff", "Who is the youngest employee?", ["age ASC"], "1 with ties"),
    ("staff", "show the three highest paid employees", ["salary DESC"], "3"),
    ("staff", "which department has the most employees?", ["COUNT(*) DESC"], "1 with ties"),
]  # fmt: skip


@pytest.mark.parametrize(("world", "question", "order", "limit"), ORDERS, ids=[o[1] for o in ORDERS])
def test_order_and_limit(sources, world, question, order, limit):
    parts = take_apart(parse(sources, world, question).suql)
    assert [o.replace(" NULLS LAST", "") for o in parts.order] == [_ordered(o) for o in order]
    assert parts.limit == limit


def _ordered(text: str) -> str:
    tree = sqlglot.parse_one(f"SELECT 1 ORDER BY {text}", read="postgres")
    return spell(tree.args["order"].expressions[0]).replace(" NULLS LAST", "")


def test_the_cheapest_ranks_price_words_by_meaning_not_by_letters(sources):
    suql = parse(sources, "eateries", "What is the cheapest mexican restaurant?").suql
    world, _ = sources["eateries"]
    everything = suql.replace("WHERE 'mexican' = ANY(cuisines) ", "").replace("LIMIT 1", "")
    prices = [row[world.run(everything).columns.index("price")] for row in world.run(everything).rows]
    assert prices == ["cheap", "cheap", "moderate", "expensive"]


SHOWN = [
    ("eateries", "What is the phone number of Golden Wok?", ["phone_number"], []),
    ("eateries", "Where is Umi Corner?", ["name", "address"], []),
    ("eateries", "How many restaurants per location?", ["location", "COUNT(*)"], ["location"]),
    ("eateries", "average rating by price", ["price", "AVG(rating)"], ["price"]),
    ("eateries", "How many different locations are there?", ["COUNT(DISTINCT location)"], []),
    ("eateries", "Does Casa Verde take reservations?", ["name", "answer(reviews, 'does this restaurant take reservations?')"], []),
    ("eateries", "How is the parking at Golden Wok?", ["name", "answer(reviews, 'how is the parking at this restaurant?')"], []),
    ("eateries", "What do people say about Nonna's Table?", ["name", "summary(reviews)"], []),
    ("eateries", "Which city has the most restaurants?", ["location", "COUNT(*)"], ["location"]),
    ("eateries", "list all cities", ["location"], []),
    ("eateries", "restaurants without a phone number", ["name", "phone_number", "rating", "price", "address"], []),
    ("films", "titles of films by Swedish directors", ["title"], []),
    ("films", "average runtime by genre", ["genre", "AVG(runtime_minutes)"], ["genre"]),
    ("staff", "list the names and ages of all employees", ["full_name", "age"], []),
    ("staff", "maximum and minimum salary of designers", ["MAX(salary)", "MIN(salary)"], []),
    ("staff", "What is the average salary per department?", ["dept_name", "AVG(salary)"], ["dept_name"]),
    ("staff", "how many engineers are there?", ["COUNT(*)"], []),
    ("films", "Which film has the most awards?", ["title", "COUNT(*)"], ["title"]),
]  # fmt: skip


@pytest.mark.parametrize(("world", "question", "shown", "group"), SHOWN, ids=[s[1] for s in SHOWN])
def test_what_is_shown(sources, world, question, shown, group):
    parts = take_apart(parse(sources, world, question).suql)
    assert [s.lower() for s in parts.shown] == [s.lower() for s in shown]
    assert list(parts.group) == group


@pytest.mark.parametrize(
    "question", ["hi", "Thanks a lot!", "do you speak Spanish?", "what is the capital of France?", "?!"]
)
def test_a_question_that_links_to_nothing_gets_no_query(sources, question):
    assert parse(sources, "eateries", question).status == "no_query"


def test_words_that_no_column_can_take_are_named(sources):
    parsed = parse(sources, "eateries", "restaurants in Palo Alto under $20")
    assert parsed.unused == ("under $20",)
    assert parse(sources, "eateries", "restaurants in Palo Alto").unused == ()


def test_what_a_question_only_tells_is_named_as_unused(sources):
    parsed = parse(sources, "eateries", "My sister visits this weekend, so where is good Thai food?")
    assert parsed.unused == ("My sister visits this weekend",)


def test_misspellings_are_understood_and_reported(sources):
    parsed = parse(sources, "eateries", "itallian restaurants in Sunyvale")
    assert dict(parsed.corrections) == {"itallian": "italian", "Sunyvale": "Sunnyvale"}


def test_quotes_and_wildcards_in_a_question_stay_literals(sources):
    parsed = parse(sources, "eateries", "restaurants with \"it's'; DROP TABLE restaurants; --\" in Palo Alto")
    tree = sqlglot.parse(parsed.suql, read="postgres")
    assert len(tree) == 1
    assert isinstance(tree[0], exp.Select)


@pytest.mark.parametrize(
    "question",
    ["", " ", "x" * 5000, "餐厅在哪里", "¿Dónde está?", "% _ ' \" ;", "1 2 3", "not", "the most", "between 3 and"],
)
def test_any_text_gives_a_valid_query_or_none(sources, question):
    for world in WORLDS:
        parsed = parse(sources, world, question)
        assert (parsed.suql is None) == (parsed.status != "query")


def test_an_empty_catalog_gives_no_query():
    parsed = LocalParser(lambda relation, column, limit: [], confidence=-1).parse("cheap restaurants", Catalog(()))
    assert parsed.status == "no_query"


def test_elements_of_arrays_are_values(tmp_path):
    """Also where no schema file says that the column is an enumeration."""
    rows = {"name": ["Roma", "Kyoto"], "cuisines": [["pizza", "italian"], ["sushi"]], "rating": [4.1, 4.5]}
    pq.write_table(pa.table(rows), tmp_path / "places.parquet")
    with almanaq.connect(tmp_path / "places.parquet", embedder="lexical") as con:
        assert con.ask("Which pizza places are there?").rows == (("Roma", ["pizza", "italian"], 4.1),)
