# ruff: noqa: E501 - one case or row per line reads best
"""Words for queries."""

from __future__ import annotations

import datetime
import decimal
import itertools

import pytest

from almanaq.agent.describe import describe, name_tables
from almanaq.agent.history import Shown
from almanaq.agent.responder import cell
from almanaq.agent.small_talk import small_talk

CASES = [
    ("SELECT name FROM restaurants", "restaurants"),
    ("SELECT * FROM r WHERE price = 'cheap' AND rating >= 4", "r whose price is cheap and rating is at least 4"),
    ("SELECT * FROM r WHERE 'thai' = ANY(cuisines)", "r whose cuisines include thai"),
    ("SELECT * FROM r WHERE NOT 'thai' = ANY(cuisines)", "r whose cuisines do not include thai"),
    ("SELECT * FROM r WHERE answer(reviews, 'is it calm?') = 'Yes' LIMIT 3", "r whose reviews say yes to “is it calm?”, at most 3"),
    ("SELECT * FROM r WHERE answer(reviews, 'is it loud?') = 'No'", "r whose reviews say no to “is it loud?”"),
    ("SELECT city, COUNT(*) FROM r GROUP BY city", "the number of rows of r, for each city"),
    ("SELECT AVG(rating) FROM r WHERE a = 1 OR b = 2", "the average rating of r whose a is 1 or b is 2"),
    ("SELECT COUNT(*), AVG(n) FROM r WHERE a = 1", "the number of rows and average n of r whose a is 1"),
    (
        "SELECT 100.0 * COUNT(*) FILTER (WHERE a = 1) / COUNT(*) FROM r",
        "the percentage with “a is 1” among all r",
    ),
    (
        "SELECT c, 100.0 * SUM(n) FILTER (WHERE a = 1 AND NOT b) / SUM(n) FROM r WHERE d > 2 GROUP BY c",
        "the percentage of the total n with “a is 1 and b is no” among r whose d is above 2, for each c",
    ),
    (
        "SELECT c, 100.0 * COUNT(*) FILTER (WHERE a) / COUNT(*) AS p FROM r GROUP BY c ORDER BY p DESC",
        "the percentage with “a is yes” among all r, for each c, highest percentage with “a is yes” first",
    ),
    ("SELECT MEDIAN(n) FROM r", "the median n of r"),
    ("SELECT * FROM r WHERE (', ' || t || ', ') LIKE '%, tin, %'", "r whose t include tin"),
    ("SELECT * FROM r WHERE NOT (';' || t || ';') LIKE '%;tin;%'", "r whose t do not include tin"),
    ("SELECT * FROM r ORDER BY num_reviews DESC", "r, highest number of reviews first"),
    ("SELECT * FROM r WHERE name ILIKE '%wok%'", "r whose name contains wok"),
    ("SELECT * FROM r WHERE city IN ('A', 'B') AND n BETWEEN 1 AND 2", "r whose city is A or B and n is between 1 and 2"),
    ("SELECT * FROM r WHERE x IS NULL", "r whose x is missing"),
    ("SELECT * FROM r WHERE x IS NOT NULL", "r whose x is given"),
    ("SELECT * FROM r WHERE n > (SELECT AVG(n) FROM r)", "r whose n is above the average n of r"),
    ("SELECT * FROM r WHERE n < (SELECT MIN(n) FROM r WHERE name = 'Ann')", "r whose n is below the lowest n of r whose name is Ann"),
    ("SELECT * FROM r WHERE NOT x IN (SELECT y FROM s WHERE y IS NOT NULL)", "r whose x is not among the y of s whose y is given"),
    ("SELECT * FROM r WHERE name ILIKE 'B%'", "r whose name begins with B"),
    ("SELECT EXTRACT(YEAR FROM d), COUNT(*) FROM r GROUP BY EXTRACT(YEAR FROM d)", "the number of rows of r, for each year of d"),
    ("SELECT * FROM r WHERE x AND NOT y", "r whose x is yes and y is no"),
    ("SELECT * FROM r WHERE n > (SELECT n FROM r WHERE name = 'Ann')", "r whose n is above that of r whose name is Ann"),
    ("SELECT * FROM r WHERE n > (SELECT n FROM r WHERE id = 3)", "r whose n is above that of r whose id is 3"),
    ("SELECT * FROM r WHERE n = (SELECT n FROM r ORDER BY m DESC LIMIT 1)", "r whose n is that of r with the highest m"),
    ("SELECT * FROM r WHERE n >= ALL (SELECT n FROM r)", "r whose n is at least every n of r"),
    ("SELECT * FROM r WHERE city = ANY (ARRAY['A', 'B'])", "r whose city is A or B"),
    ("SELECT * FROM r WHERE hours ~ '1[01]:'", "r whose hours matches the pattern 1[01]: as a whole"),
    ("SELECT * FROM r WHERE EXISTS (SELECT 1 FROM s WHERE s.a = r.a)", "r whose related s exist"),
    ("SELECT * FROM r WHERE NOT EXISTS (SELECT 1 FROM s WHERE s.a = r.a)", "r whose related s do not exist"),
    ("SELECT * FROM r WHERE lower(name) = 'ann' AND coalesce(a, b) > 1", "r whose name is ann and a or else b is above 1"),
    ("SELECT * FROM r WHERE opening ->> 'Mon' = 'x'", "r whose Mon of opening is x"),
    ("SELECT * FROM r WHERE summary(reviews) ILIKE '%calm%'", "r whose summary of reviews contains calm"),
    ("SELECT a FROM r WHERE n = 1 EXCEPT SELECT a FROM s", "r whose n is 1, but not s"),
    ("WITH t AS (SELECT a FROM r WHERE n = 1) SELECT a FROM t WHERE a > 2", "t whose a is above 2; t here are r whose n is 1"),
    ("SELECT * FROM r WHERE x IN (SELECT y FROM s WHERE z = 1)", "r whose x is among the y of s whose z is 1"),
    ("SELECT * FROM r WHERE x IN ('Bonn, Rhein', 'Ulm', 'Ulm', 'salt or sugar')", "r whose x is “Bonn, Rhein” or Ulm or “salt or sugar”"),
    ("SELECT * FROM r WHERE x NOT IN ('Bonn, Rhein', 'Ulm')", "r whose x is none of “Bonn, Rhein”, Ulm"),
    ("SELECT * FROM r WHERE n = (SELECT MIN(n) FROM r) ORDER BY m, k DESC", "r whose n is the lowest, sorted by m, then by highest k"),
    ("SELECT * FROM r WHERE n = (SELECT MIN(n) FROM r WHERE k = 1)", "r whose n is the lowest n of r whose k is 1"),
    ("SELECT * FROM r WHERE n < (SELECT MAX(m) FROM r)", "r whose n is below the highest m of r"),
    ("SELECT a, COUNT(*) AS n FROM r GROUP BY a ORDER BY n DESC LIMIT 1", "the number of rows of r, for each a, taking the one with the highest number of rows"),
    ("SELECT a FROM r ORDER BY n DESC, m LIMIT 1", "r, sorted by highest n, then by m, taking the first"),
    ("SELECT a FROM r WHERE -n > -3 ORDER BY -m LIMIT 1", "r whose -n is above -3, taking the one with the lowest -m"),
    ("SELECT a FROM r WHERE round(n) = 4 AND m::int = 4", "r whose rounded n is 4 and m as a whole number is 4"),
    ("SELECT a FROM r ORDER BY n FETCH FIRST 3 ROWS ONLY", "r, sorted by n, taking the first 3"),
    ("SELECT a FROM r ORDER BY n FETCH FIRST 3 ROWS WITH TIES", "r, sorted by n, taking the first 3 with ties"),
    ("SELECT a FROM r WHERE n <> ALL (SELECT n FROM s)", "r whose n is no n of s"),
    ("SELECT a FROM r WHERE n <> ANY (SELECT n FROM s)", "r whose n is not every n of s"),
    ("SELECT a, similarity(t, 'calm') FROM r", "r"),
]  # fmt: skip


@pytest.mark.parametrize(("suql", "expected"), CASES)
def test_words_follow_the_query(suql, expected):
    assert describe(suql) == expected


@pytest.mark.parametrize(
    "suql",
    [
        "SELECT 1 UNION SELECT 2",
        "WITH t AS (SELECT 1) SELECT * FROM t",
        "not a query at all (",
        "SELECT * FROM r WHERE x % 2 = 0 AND price = 'cheap'",
        "SELECT AVG(n) FROM (SELECT n FROM r WHERE n > 1) AS s",
        "SELECT name, row_number() OVER (ORDER BY n) FROM r",
        "SELECT SUM(n) FILTER (WHERE n > 1) FROM r",
        "SELECT 100.0 * COUNT(*) FILTER (WHERE n > 1) / COUNT(x) FROM r",
        "SELECT 10 * COUNT(*) FILTER (WHERE n > 1) / COUNT(*) FROM r",
        "SELECT * FROM r WHERE (';' || t || ';') LIKE '%tin;%'",
        "SELECT * FROM r WHERE (';' || t || ',') LIKE '%;tin;%'",
        "SELECT SUM(CASE WHEN n > 1 THEN 1 ELSE 0 END) FROM r",
        "SELECT a.name FROM r AS a JOIN r AS b ON a.n > b.n",
        "SELECT name FROM r WHERE r.weight = s.weight",
        "SELECT name FROM r OFFSET 3",
        "SELECT COUNT(rating) FROM r",
        "SELECT name FROM r RIGHT JOIN s ON r.id = s.r",
        "SELECT name FROM r WHERE n IS DISTINCT FROM 3",
        "SELECT name FROM r WHERE CASE WHEN n > 1 THEN 'a' ELSE 'b' END = 'a'",
        "SELECT AVG(CASE size WHEN 'S' THEN 1 ELSE 2 END) FROM r",
        "SELECT name FROM r ASOF JOIN s ON r.t >= s.t",
        "SELECT name FROM r POSITIONAL JOIN s",
        "SELECT name FROM r FETCH FIRST 10 PERCENT ROWS ONLY",
        "SELECT name FROM r WHERE EXISTS (SELECT 1 FROM s WHERE s.a = r.a GROUP BY s.a HAVING COUNT(*) > 2)",
        "SELECT a FROM r EXCEPT (SELECT a FROM s UNION SELECT a FROM t)",
        "WITH RECURSIVE t AS (SELECT a FROM r UNION ALL SELECT a FROM t) SELECT a FROM t",
        "SELECT MAX(n, 3) FROM r",
        "SELECT unnest(tags) FROM r",
        "SELECT name FROM r WHERE TRY_CAST(n AS INT) IS NULL",
    ],
)
def test_what_has_no_words_is_shown_as_it_is(suql):
    assert describe(suql) == suql


@pytest.mark.parametrize(
    ("suql", "said"),
    [
        ("SELECT COUNT(*), AVG(n % 2) FROM num_reviews", "rows in the table number of reviews"),
        ("SELECT a FROM r JOIN s ON r.x > s.x WHERE a = 1", "rows in the tables r and s"),
        ('SELECT COUNT(*), AVG(n % 2) FROM "4-plants"', "rows in the table “4-plants”"),
        (
            "WITH t AS (SELECT a FROM r WHERE a > 1 AND b < 2) SELECT a, COUNT(a) FROM t GROUP BY a HAVING COUNT(a) > 1",
            "rows in the table r",
        ),
        ("SELECT 1", "no table"),
    ],
)
def test_a_query_without_words_is_named_by_its_tables(suql, said):
    assert name_tables(suql, "duckdb") == said


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (None, "not known"),
        ([1, None], "1, not known"),
        (4.50, "4.5"),
        (4.0, "4"),
        (True, "yes"),
        (12, "12"),
        (datetime.datetime(2026, 3, 5), "2026-03-05"),
        ("a\n b", "a b"),
        (float("nan"), "nan"),
        (float("inf"), "inf"),
        (0.0021, "0.0021"),
        (decimal.Decimal("-0.00004"), "-4e-05"),
    ],
)
def test_cells(value, expected):
    assert cell(value) == expected


@pytest.mark.parametrize(
    ("suql", "said"),
    [
        ("SELECT a FROM dogs WHERE id = 2", "dogs whose name is Rex"),
        ("SELECT a FROM owners WHERE id = 2", "owners whose id is 2"),
        (
            "SELECT a FROM dogs JOIN owners ON dogs.id = owners.dog WHERE owners.id = 2",
            "dogs (with owners) whose id is 2",
        ),
    ],
)
def test_a_key_stands_for_a_row_of_its_own_table_alone(suql, said):
    assert describe(suql, [Shown("main.dogs", ("id",), ((2,),), ("Rex",))]) == said


def test_the_first_row_needs_no_number():
    assert describe("SELECT a FROM r FETCH FIRST ROW ONLY", dialect="postgres") == "r, at most 1"


def test_a_part_of_a_key_stands_for_no_row():
    shown = Shown("lines", ("order_id", "line"), ((5, 1),), ("nails",))
    assert describe("SELECT a FROM lines WHERE order_id = 5", [shown]) == "lines whose order id is 5"


@pytest.mark.parametrize(
    "text",
    [
        "hi!",
        "Hello there",
        "thanks, that was helpful",
        "Who are you?",
        "do you speak French?",
        "ok great",
        "Good morning, how are you?",
        "bye",
        "You've been such a help, thank you very much!",
        "Brilliant, thanks so much, dear.",
        "Thanks again, really useful!",
        "Wish me luck :)",
        "Good, we'll take the second one",
    ],
)
def test_small_talk_is_told(text):
    assert small_talk(text) is not None


@pytest.mark.parametrize(
    "text",
    [
        "hi, any thai places?",
        "thai",
        "who is the oldest singer?",
        "thanks, now show me cheaper ones",
        "thank you, quiet please",
        "is it good?",
        "thanks, I'll take the cheap one",
        "what is open?",
        "help me find a restaurant",
    ],
)
def test_requests_are_not_small_talk(text):
    assert small_talk(text) is None


@pytest.mark.parametrize(
    ("suql", "said"),
    [
        (
            "SELECT DISTINCT city FROM places LEFT JOIN owners ON places.id = owners.place WHERE price = 'cheap'",
            "different city values of places (with owners, if any) whose price is cheap",
        ),
        (
            "SELECT city, count(*) FROM places GROUP BY city HAVING count(*) > 2",
            "the number of places, for each city, where the number of rows is above 2",
        ),
        ("SELECT count(DISTINCT city) FROM places", "the number of different city values of places"),
        (
            "SELECT name FROM r WHERE price > (SELECT MAX(price) FROM r WHERE id IN (3, 4))",
            "r whose price is above the highest price of r whose id is 3 or 4",
        ),
        (
            "SELECT name FROM r WHERE price < (SELECT MIN(price) FROM r WHERE name IN ('Smash', 'Kitsune', 'Counter'))",
            "r whose price is below the lowest price of r whose name is Smash or Kitsune or Counter",
        ),
    ],
)
def test_nothing_of_a_query_that_changes_its_rows_is_left_out(suql, said):
    assert describe(suql) == said


ATOMS = (
    "price = 'cheap'",
    "price <> 'dear'",
    "n > 3",
    "n >= 3",
    "n < 3",
    "n <= 3",
    "n BETWEEN 1 AND 2",
    "name ILIKE '%wok%'",
    "name ILIKE 'wok%'",
    "name ILIKE '%wok'",
    "name ILIKE 'wok'",
    "name LIKE 'wok'",
    "name LIKE '%wok%'",
    "name ILIKE 'w%k'",
    "name ILIKE '%w_k%'",
    "name ~ 'wok'",
    "regexp_matches(name, 'wok')",
    "x IS NULL",
    "open",
    "open IS FALSE",
    "city IN ('Rome', 'Oslo')",
    "city = ANY (ARRAY['Rome', 'Bern'])",
    "'thai' = ANY (kinds)",
    "list_contains(kinds, 'soup')",
    "answer(about, 'is it calm?') = 'Yes'",
    "answer(about, 'is it calm?') = 'No'",
    "answer(about, 'who runs it?') = 'Ann'",
    "answer(about, 'how many rooms?') > 3",
    "id IN (SELECT r FROM s WHERE y = 1)",
    "EXISTS (SELECT 1 FROM s WHERE s.r = t.id)",
    "EXISTS (SELECT 1 FROM s WHERE s.r = t.id AND s.y = 1)",
    "n > (SELECT AVG(n) FROM t)",
    "n > ALL (SELECT n FROM s)",
    "n > ANY (SELECT n FROM s)",
    "a = 1 AND b = 2",
    "a = 1 OR b = 2",
    "a = 1 AND (b = 2 OR c = 3)",
    "(a = 1 AND b = 2) OR c = 3",
)
"""Conditions of which no two mean the same, and no one the opposite of another."""


def whose(condition: str) -> str:
    said = describe(f"SELECT * FROM t WHERE {condition}")
    assert said.startswith("t whose "), f"no words for {condition}"
    return said


def test_conditions_that_differ_and_their_negations_are_described_differently():
    said = [whose(condition) for atom in ATOMS for condition in (atom, f"NOT ({atom})")]
    assert len(set(said)) == len(said), sorted(each for each in said if said.count(each) > 1)


@pytest.mark.parametrize("atom", ATOMS)
def test_what_is_negated_twice_is_described_as_it_is(atom):
    assert whose(f"NOT (NOT ({atom}))") == whose(atom)


@pytest.mark.parametrize("form", ["LIKE '%wok%'", "ILIKE 'wok%'", "ILIKE 'w%k'", "IN ('a', 'b')", "BETWEEN 1 AND 2"])
def test_not_before_the_operator_is_described_as_before_the_condition(form):
    assert whose(f"name NOT {form}") == whose(f"NOT (name {form})") != whose(f"name {form}")


@pytest.mark.parametrize(("one", "other"), list(itertools.pairwise(ATOMS)))
def test_a_negated_conjunction_is_described_by_what_holds_instead(one, other):
    assert whose(f"NOT (({one}) AND ({other}))") == whose(f"(NOT ({one})) OR (NOT ({other}))")


@pytest.mark.parametrize(
    ("suql", "said"),
    [
        ("SELECT COUNT(*) FROM album", "the number of rows of album"),
        ("SELECT a.name, COUNT(*) FROM artist AS a JOIN album AS b ON a.id = b.artist GROUP BY a.name", "the number of rows of artist (with album), for each name"),
        ("SELECT city, COUNT(*) AS n FROM r GROUP BY city ORDER BY n DESC", "the number of rows of r, for each city, highest number of rows first"),
        ("SELECT city, AVG(n) FROM r GROUP BY 1 ORDER BY 2", "the average n of r, for each city, sorted by average n"),
        ("SELECT SUM(total) FROM r", "the sum of total of r"),
        ("SELECT SUM(amount) FROM r", "the total amount of r"),
        ("SELECT name FROM r WHERE x = 1 ORDER BY n DESC LIMIT 1", "r whose x is 1, taking the one with the highest n"),
        ("SELECT Num_of_Staff FROM r ORDER BY Num_of_Staff", "r, sorted by number of staff"),
        ("SELECT name FROM r ORDER BY price / seats", "r, sorted by price / seats"),
    ],
)  # fmt: skip
def test_figures_are_named_by_what_they_count(suql, said):
    assert describe(suql) == said
