"""Understanding a question whole: every word that means something is used once, or there is no query."""

from __future__ import annotations

from datetime import date

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import almanaq
from almanaq.agent.local.parser import LocalParser
from almanaq.agent.local.recognize.heard import recognize
from almanaq.agent.local.recognize.spans import best_cover
from almanaq.agent.local.recognize.tokens import tokenize
from almanaq.agent.local.understand import understand

TODAY = date(2026, 1, 1)
ROWS = 12
FERRIES = pa.table(
    {
        "ferry_id": list(range(ROWS)),
        "Ferry Name": [f"Ferry {chr(65 + i)}" for i in range(ROWS)],
        "harbor": ["Bergen", "Oslo", "Turku"] * 4,
        "hull": ["steel", "wood", None] * 4,
        "built": [1960 + 3 * i for i in range(ROWS)],
        "crew_size": [5 + i for i in range(ROWS)],
        "top_speed (kn)": [10.5 + i for i in range(ROWS)],
        "ticket_price": [20.0 + i for i in range(ROWS)],
        "inspected": [date(2024, 1 + i % 12, 3) for i in range(ROWS)],
    }
)
TRIPS = pa.table(
    {
        "trip_id": list(range(30)),
        "ferry_id": [i % ROWS for i in range(30)],
        "sailed": [date(2025, 1 + i % 12, 5) for i in range(30)],
        "passengers": [40 + i for i in range(30)],
    }
)
UNDERSTOOD = {
    "how many ferries are there?": "SELECT COUNT(*) FROM ferries",
    "how many ferries are in Oslo": "SELECT COUNT(*) FROM ferries WHERE harbor = 'Oslo'",
    "number of ferries per harbor": "SELECT harbor, COUNT(*) FROM ferries GROUP BY harbor",
    "average ticket price by harbor": "SELECT harbor, AVG(ticket_price) FROM ferries GROUP BY harbor",
    "total passengers": "SELECT SUM(passengers) FROM trips",
    "passengers by harbor": "SELECT ferries.harbor, SUM(trips.passengers) FROM trips "
    "LEFT JOIN ferries ON trips.ferry_id = ferries.ferry_id GROUP BY ferries.harbor",
    "how many trips were made in March 2025?": "SELECT COUNT(*) FROM trips "
    "WHERE (sailed >= '2025-03-01' AND sailed < '2025-04-01')",
    "ferries faster than 15 kn": 'top_speed (kn)" > 15',
    "which harbor has the most ferries": "SELECT harbor, COUNT(*) FROM ferries WHERE harbor IS NOT NULL "
    "GROUP BY harbor ORDER BY COUNT(*) DESC FETCH FIRST 1 ROWS WITH TIES",
    "how many ferries have an unknown hull": "SELECT COUNT(*) FROM ferries WHERE hull IS NULL",
    "how many ferries are not in Turku": "SELECT COUNT(*) FROM ferries WHERE harbor <> 'Turku'",
    "which harbors are there": "SELECT DISTINCT harbor FROM ferries",
    "harbors with more than 3 ferries": "GROUP BY harbor HAVING COUNT(*) > 3",
    "minimum and maximum crew size": "SELECT MIN(crew_size), MAX(crew_size) FROM ferries",
    "how many ferries were built after 1980": "SELECT COUNT(*) FROM ferries WHERE built > 1980",
    "the 3 cheapest ferries": "ORDER BY ticket_price ASC LIMIT 3",
    "ferries without trips": "ferry_id NOT IN (SELECT ferry_id FROM trips WHERE ferry_id IS NOT NULL)",
    "what percentage of ferries are wood": "100.0 * COUNT(*) FILTER (WHERE hull = 'wood') / NULLIF(COUNT(*), 0)",
    "how many ferries cost more than average": "ticket_price > (SELECT AVG(ticket_price) FROM ferries)",
    "ferries inspected in March": "inspected >= '2025-03-01' AND inspected < '2025-04-01'",
    "which ferry was inspected last": "ORDER BY inspected DESC FETCH FIRST 1 ROWS WITH TIES",
    "ferries faster than Ferry C": '> (SELECT "top_speed (kn)" FROM ferries WHERE "Ferry Name" = \'Ferry C\')',
    "ferries whose harbor starts with B": "harbor ILIKE 'B%'",
    "ferries with err in the name": "\"Ferry Name\" ILIKE '%err%'",
    "ferries built before 1965 or after 1990": "(built < 1965 OR built > 1990)",
    "how fast is Ferry C": 'SELECT "top_speed (kn)" FROM ferries WHERE "Ferry Name" = \'Ferry C\'',
    "top 2 harbors by average crew size": "GROUP BY harbor ORDER BY AVG(crew_size) DESC LIMIT 2",
    "top 2 harbors by number of ferries": "GROUP BY harbor ORDER BY COUNT(*) DESC LIMIT 2",
    "ferries per harbor": "SELECT harbor, COUNT(*) FROM ferries GROUP BY harbor",
    "trips in March 2025 or May 2025": " OR (sailed >= '2025-05-01' AND sailed < '2025-06-01'))",
    "how many trips had 45 passengers": "WHERE passengers = 45",
    "ferries built between 1965 and 1980": "built BETWEEN 1965 AND 1980",
    "the 3 ferries with the highest ticket price": "ORDER BY ticket_price DESC LIMIT 3",
    "total passengers above 1 thousand by harbor": "",
    "ferries with less than a hundred passengers": "",
    "ferries without trips in May 2025": "ferry_id NOT IN (SELECT ferry_id FROM trips WHERE (sailed >= '2025-05-01'",
    "how many ferries do not have the harbor Oslo": "harbor <> 'Oslo'",
    "ferries that have steel or wood as their hull": "hull IN ('steel', 'wood')",
    "the top 3 highest ticket prices": "ORDER BY ticket_price DESC LIMIT 3",
    "how many ferries have a built below -5": "built < -5",
    "total passengers per ferry name": 'SELECT ferries."Ferry Name", SUM(trips.passengers) FROM trips '
    "LEFT JOIN ferries",
    "what is the ticket price of Ferry C": "\"Ferry Name\" = 'Ferry C'",
    "ferries with their maximum passengers": 'SELECT ferries."Ferry Name", MAX(trips.passengers) FROM trips',
    "which month had the most trips": "GROUP BY EXTRACT(month FROM sailed) ORDER BY COUNT(*) DESC FETCH FIRST 1",
    "trips per decade": "SELECT EXTRACT(year FROM sailed) - EXTRACT(year FROM sailed) % 10, COUNT(*)",
    "ferries in Oslo and their crew size": 'SELECT "Ferry Name", crew_size FROM ferries',
    "how many different ferry names are there": 'SELECT COUNT(DISTINCT "Ferry Name")',
    "average passengers by ferry harbor": "SELECT ferries.harbor, AVG(trips.passengers) FROM trips",
    "second most expensive ferry": "ORDER BY ticket_price DESC LIMIT 1 OFFSET 1",
    "ferries with a higher crew size than Ferry C": "crew_size > (SELECT crew_size FROM ferries WHERE",
    "ferries with more crew size than the average": "crew_size > (SELECT AVG(crew_size) FROM ferries)",
    "ferries where the crew size is below the ticket price": "crew_size < ferries.ticket_price",
    "on average, how many ferries are there per harbor": "SELECT COUNT(*) * 1.0 / COUNT(DISTINCT harbor) FROM ferries",
    "trips in the last quarter of 2025": "sailed >= '2025-10-01' AND sailed < '2026-01-01'",
    "ferries without a hull": "hull IS NULL",
    "what share of ferries are faster than 15 kn": 'FILTER (WHERE "top_speed (kn)" > 15)',
    "averge ticket price by harbor": "SELECT harbor, AVG(ticket_price) FROM ferries GROUP BY harbor",
    "ferries in Oslo or Turku with a crew size over 6": "crew_size > 6 AND harbor IN ('Oslo', 'Turku')",
}
DECLINED = {
    "how many ferries sank?": "sank",
    "average ticket price by captain": "captain",
    "which ferry has the nicest view": "nicest",
    "how many ferries are longer than 2 hours": "",
    "ferries in Oslo with purple lamps": "purple",
    "which harbor has the highest price": "",
    "price per passenger": "",
    "what is the first week of 2025": "",
    'ferries in "the"': "the",
    "how many ferries are in OSLA": "OSLA",
    "trips posted by ferry id 3": "",
    "ferries inspected in the first week of 2024": "week",
    "average crew size of ferries by ferry": "",
    "ferries both in Oslo and in Turku": "both",
    "ferries built before 1960 and after 1990": "both above and below",
    "how fast are ferries in Oslo": "how much",
    "trips in the first week of 2025": "first",
    "trips in both March 2025 and May 2025": "two dates",
    "harbors that never had wood": "all rows of each harbor",
    "when was Ferry C last there": "says when",
    "which ferry has the largest trip": "what the superlative is over",
    "total of trips per harbor": "which column the total",
    "which ferry carried the most passengers": "by the sum of all",
    "which ferry is the oldest": "the superlative",
    "how many trips were cancelled in March 2025": "cancelled",
    "ferries that have a crew size": "what is said of crew_size",
    "trips in the third half of 2025": "third",
    "how many ferrets are there": "ferrets",
    "which ferry had more passengers than average": "the average of passengers",
    "trips with their ferry and passengers": "what is shown of each",
    "how often do ferries sail": "sail",
    "how often were ferries there": "how often",
    "ferries that never complained about a trip": "the negation",
    "how did Ferry C reach its harbor": "reach",
    "who carried the most passengers": "who is asked for",
    "how many ferries in Oslo are in Oslo": "said twice",
}


@pytest.fixture(scope="module")
def connection():
    with almanaq.connect({"ferries": FERRIES, "trips": TRIPS}, model="local", cache=False) as opened:
        yield opened


@pytest.fixture(scope="module")
def vocabulary(connection):
    return LocalParser.over(connection.engine, lambda: TODAY).vocabulary(connection.catalog)


@pytest.mark.parametrize("question", [q for q, sql in UNDERSTOOD.items() if sql])
def test_a_question_is_understood_as_one_query(connection, vocabulary, question):
    found = understand(question, vocabulary)
    assert found.suql is not None, found.missing
    assert UNDERSTOOD[question] in found.suql
    connection.sql(found.suql)


@pytest.mark.parametrize("question", DECLINED)
def test_what_fits_nothing_is_named(vocabulary, question):
    found = understand(question, vocabulary)
    assert found.suql is None
    assert found.missing
    assert DECLINED[question] in found.missing


@pytest.mark.sampled(4)
@pytest.mark.parametrize("question", UNDERSTOOD)
@pytest.mark.parametrize("word", ["zebra", "Quimby", "4711", "blorfing"])
def test_no_word_is_passed_over(vocabulary, question, word):
    """A word that nothing is known of, anywhere in a question, takes the query away."""
    words = question.split()
    for place in range(1, len(words) + 1):
        asked = " ".join([*words[:place], word, *words[place:]])
        plain, changed = understand(question, vocabulary).suql, understand(asked, vocabulary).suql
        assert changed is None or changed != plain


@pytest.mark.parametrize("question", UNDERSTOOD)
def test_every_token_is_in_one_span(vocabulary, question):
    tokens = tokenize(question)
    spans = best_cover(recognize(tokens, vocabulary, question, TODAY), len(tokens))
    assert [i for span in spans for i in range(span.first, span.last)] == list(range(len(tokens)))


WORDS = sorted({word for question in (*UNDERSTOOD, *DECLINED) for word in question.split()} | {"?", "5", "2024", "not"})


@given(question=st.lists(st.sampled_from(WORDS), max_size=12).map(" ".join))
def test_whatever_is_asked_gives_a_query_that_runs_or_none(connection, vocabulary, question):
    found = understand(question, vocabulary)
    if found.suql is not None:
        connection.sql(found.suql)


FACTS = {
    "population": {"city": ["Arlen", "Dunwich", "Ostia", "Selby"], "population": [900, 300, 1200, 50]},
    "mayor": {"city": ["Arlen", "Dunwich", "Ostia"], "mayor": ["Bo Hill", "Cy Ford", "Di Marsh"]},
    "coastal": {"city": ["Arlen", "Dunwich", "Ostia", "Selby"], "coastal": [0, 1, 1, 0]},
}
OF_FACTS = {
    "population of Arlen": [(900,)],
    "mayor of the city with the highest population": [("Di Marsh", 1200)],
    "how many cities are coastal": [(2,)],
    "average population of coastal cities": [(750.0,)],
    "how many cities have no mayor": [(1,)],
    "population of coastal cities": [("Dunwich", 300), ("Ostia", 1200)],
}
MATCHES = {
    "teams": {"team_id": [1, 2], "team name": ["Reds", "Blues"], "city": ["Ayr", "Bute"]},
    "languages": {"team_id": [1, 1, 2], "language": ["Norse", "Pictish", "Norse"]},
}
OF_MEMBERS = {
    "teams that speak both Norse and Pictish": ["Reds"],
    "teams that do not speak Pictish": ["Blues"],
    "how many teams do not speak Norse": [0],
}


@pytest.fixture(scope="module")
def tables():
    opened = {}
    for name, source in (("facts", FACTS), ("members", MATCHES)):
        tables = {table: pa.table(columns) for table, columns in source.items()}
        opened[name] = almanaq.connect(tables, model="local", cache=False)
    yield opened
    for connection in opened.values():
        connection.close()


@pytest.mark.parametrize("question", OF_FACTS)
def test_tables_of_facts_of_the_same_things_are_read_as_one(tables, question):
    assert list(tables["facts"].ask(question).rows) == OF_FACTS[question]


@pytest.mark.parametrize("question", OF_MEMBERS)
def test_what_is_said_of_rows_that_belong_to_a_row(tables, question):
    assert [row[0] for row in tables["members"].ask(question).rows] == OF_MEMBERS[question]


def test_two_ways_between_tables_are_not_chosen_between():
    games = pa.table({"game_id": [1, 2], "home_team": [1, 2], "away_team": [2, 1], "score": [3, 1]})
    teams = pa.table({"team_id": [1, 2], "name": ["Reds", "Blues"]})
    with almanaq.connect({"games": games, "teams": teams}, model="local", cache=False) as connection:
        reply = connection.ask("how many games did the Reds play?")
    assert reply.status in ("no_query", "clarify")


def test_what_names_two_columns_is_asked_back_and_answered_by_place():
    shirts = pa.table({"shirt": ["a", "b", "c"], "colour": ["red", "blue", "red"], "collar": ["blue", "red", "blue"]})
    with almanaq.connect({"shirts": shirts}, model="local", cache=False) as connection:
        for answer, found in (("2", ["b"]), ("the first", ["a", "c"]), ("collar", ["b"])):
            chat = connection.chat()
            assert chat.ask("which shirts are red").answer == "By “red”, do you mean the colour or collar?"
            assert [row[0] for row in chat.ask(answer).rows] == found


def test_an_unusual_word_is_told_before_the_figure(connection):
    said = connection.ask("average cost by harbor").answer
    assert said.index("I took “cost” for the column ticket_price.") < said.index("I searched for")
    assert "I took" not in connection.ask("average ticket price by harbor").answer


@pytest.mark.parametrize("question", DECLINED)
def test_a_query_to_edit_runs_and_rests_on_the_question(connection, vocabulary, question):
    nearest = understand(question, vocabulary).nearest
    if nearest is not None:
        connection.sql(nearest)
        assert "LIMIT" not in nearest or "first" in question or "highest" in question or "nicest" in question


def test_where_no_query_is_near_the_columns_are_named(connection):
    response = connection.ask("which ferry has the nicest view")
    assert response.status == "no_query"
    assert "SELECT" not in response.answer
    assert "The columns of ferries are ferry id, ferry name, harbor" in response.answer


def test_prose_is_asked_for_all_rows_that_fit():
    notes = [f"The driver came at {hour} and said that the crates were wet again this week." for hour in range(9)]
    table = pa.table({"delivery_id": range(9), "kilos": range(9), "note": notes})
    with almanaq.connect({"deliveries": table}, model="local", cache=False) as opened:
        answer = opened.ask("Which deliveries mention a refund?").answer
        assert "answer(note, 'does this delivery mention refund?') = 'Yes'" in answer
        assert "LIMIT" not in answer
        assert "SELECT" not in opened.ask("was the customer of delivery 1 reimbursed?").answer


SALES = {
    "shops": {"shop_id": [1, 2, 3], "name": ["Alma", "Brim", "Cove"]},
    "orders": {
        "order_id": [1, 2, 3, 4, 5],
        "shop_id": [1, 1, 2, 2, 3],
        "amount": [9.0, 5.0, 9.0, 3.0, 1.0],
        "ordered_on": [date(2023, 1, 4), date(2023, 2, 4), date(2024, 1, 4), date(2024, 2, 6), date(2024, 2, 6)],
    },
}


@pytest.fixture(scope="module")
def sales():
    tables = {name: pa.table(columns) for name, columns in SALES.items()}
    with almanaq.connect(tables, model="local", cache=False) as opened:
        yield opened


@pytest.mark.parametrize(
    ("question", "names"),
    [
        ("which shop has the most orders", {"Alma", "Brim"}),
        ("which shop has the fewest orders", {"Cove"}),
        ("which shop has the latest order", {"Brim", "Cove"}),
        ("which shop has the order with the highest amount", {"Alma", "Brim"}),
    ],
)
def test_what_ranks_alike_is_shown_under_the_name_that_is_asked_for(sales, question, names):
    assert {row[0] for row in sales.ask(question).rows} == names


def test_months_of_several_years_are_said_to_be_put_together(sales):
    told = "The same month of different years counts as one here (2023 to 2024)."
    assert told in sales.ask("total amount per month").answer
    assert told not in sales.ask("total amount per year").answer
    assert told not in sales.ask("total amount per month in 2024").answer


WIDE = {
    "towns": pa.table(
        {
            "town": ["Alm", "Brae", "Cley"],
            "area_km2": [10.0, 20.0, 30.0],
            "population_2011": [100, 250, 300],
            "population_2021": [200, 150, 300],
            "growth_2011_2021": [1.0, -0.4, 0.0],
        }
    )
}
OF_YEARS = {
    "population of Brae in 2021": "SELECT population_2021 FROM towns WHERE town = 'Brae'",
    "which town had the largest population in 2011": "ORDER BY population_2011 DESC",
    "2021 population of Alm": "SELECT population_2021 FROM towns WHERE town = 'Alm'",
    "the growth of Brae from 2011 to 2021": "SELECT growth_2011_2021 FROM towns WHERE town = 'Brae'",
    "towns with more than 180 people in 2021": "WHERE population_2021 > 180",
    "towns larger than 15 square km": "WHERE area_km2 > 15",
    "how many towns were there in 2021": None,
    "population of Brae": None,
    "population of Brae in 2016": None,
}


@pytest.mark.parametrize("question", OF_YEARS)
def test_a_year_chooses_among_the_columns_of_years(question):
    with almanaq.connect(WIDE, model="local", cache=False) as opened:
        found = understand(question, LocalParser.over(opened.engine).vocabulary(opened.catalog)).suql
    assert found is None if OF_YEARS[question] is None else OF_YEARS[question] in found


FILMS = {
    "films": pa.table(
        {
            "title": [f"Film {i}" for i in range(20)],
            "runtime": [80 + 5 * i for i in range(20)],
            "director": ["Lee, Ann Mary", "Lee, Bo", "Dahl, Cy", "Ek, Di"] * 5,
        }
    )
}


@pytest.mark.parametrize(
    ("question", "number"),
    [
        ("how many films are longer than 120 minutes", 11),
        ("how many films are longer than 2 hours", None),
        ("how many films are longer than 2 minutes", None),
        ("how many films are by Ann Lee", 5),
        ("how many films are by Ann Mary Lee", 5),
        ("how many films are by Ann Dahl", None),
    ],
)
def test_times_of_a_column_without_unit_and_names_that_are_turned(question, number):
    with almanaq.connect(FILMS, model="local", cache=False) as opened:
        assert opened.ask(question).rows == (() if number is None else ((number,),))
