"""Questions without a model: each gives what the SQL beside it gives, or is offered, never answered otherwise."""

from __future__ import annotations

from datetime import date

import pytest

import almanaq

TABLES = {
    "growers": {
        "grower_id": [1, 2, 3, 4],
        "name": ["Ann Holt", "Bo Rask", "Cy Lund", "Di Moe"],
        "town": ["Vik", "Moss", "Vik", "Oslo"],
        "organic": ["ja", "nein", "ja", "nein"],
        "age": [61, 35, 44, 52],
    },
    "deliveries": {
        "delivery_id": [11, 12, 13, 14, 15, 16],
        "grower_id": [1, 1, 2, 3, 3, 3],
        "fruit": ["pear", "plum", "pear", "quince", "pear", "plum"],
        "kilos": [120, 80, 40, 15, 60, 30],
        "delivered": [
            *(date(2022, 9, 1), date(2022, 10, 2), date(2023, 9, 5)),
            *(date(2023, 10, 7), date(2023, 11, 1), date(2024, 1, 2)),
        ],
        "delay": [2, 0, 9, 1, 0, 4],
    },
}
JOINED = "deliveries JOIN growers USING (grower_id)"


@pytest.fixture(scope="module")
def con():
    with almanaq.connect(TABLES, model="local") as connection:
        yield connection


def holds(reply, rows):
    """Return whether some columns of a reply hold rows, as a set."""
    found = [tuple(map(str, row)) for row in reply.rows]
    wanted = [tuple(map(str, row)) for row in rows]
    if not found or not wanted:
        return not found and not wanted
    places = []
    for column in zip(*wanted, strict=True):
        at = [i for i, own in enumerate(zip(*found, strict=True)) if sorted(own) == sorted(column)]
        if not at:
            return False
        places.append(at[0])
    return sorted(tuple(row[i] for i in places) for row in found) == sorted(wanted)


@pytest.mark.parametrize(
    ("question", "sql"),
    [
        ("how many growers are there?", "SELECT COUNT(*) FROM growers"),
        ("how many deliveries of pear are there?", "SELECT COUNT(*) FROM deliveries WHERE fruit = 'pear'"),
        ("total kilos", "SELECT SUM(kilos) FROM deliveries"),
        ("total kilos by fruit", "SELECT fruit, SUM(kilos) FROM deliveries GROUP BY fruit"),
        ("total kilos per town", f"SELECT town, SUM(kilos) FROM {JOINED} GROUP BY town"),
        ("average age of growers in Vik", "SELECT AVG(age) FROM growers WHERE town = 'Vik'"),
        ("how many different fruits are there", "SELECT COUNT(DISTINCT fruit) FROM deliveries"),
        ("growers older than 50", "SELECT name FROM growers WHERE age > 50"),
        ("who is the oldest grower?", "SELECT name FROM growers ORDER BY age DESC LIMIT 1"),
        ("the 2 youngest growers", "SELECT name FROM growers ORDER BY age LIMIT 2"),
        ("growers not in Vik", "SELECT name FROM growers WHERE town <> 'Vik'"),
        ("growers in Vik or Oslo", "SELECT name FROM growers WHERE town IN ('Vik', 'Oslo')"),
        ("how many growers are organic", "SELECT COUNT(*) FROM growers WHERE organic = 'ja'"),
        ("how many growers are not organic", "SELECT COUNT(*) FROM growers WHERE organic = 'nein'"),
        ("deliveries between 30 and 80 kilos", "SELECT delivery_id FROM deliveries WHERE kilos BETWEEN 30 AND 80"),
        ("total kilos in 2023", "SELECT SUM(kilos) FROM deliveries WHERE YEAR(delivered) = 2023"),
        ("number of deliveries per year", "SELECT YEAR(delivered), COUNT(*) FROM deliveries GROUP BY ALL"),
        (
            "growers without deliveries",
            "SELECT name FROM growers WHERE grower_id NOT IN (SELECT grower_id FROM deliveries)",
        ),
        (
            "which fruit has the most deliveries",
            "SELECT fruit FROM deliveries GROUP BY 1 ORDER BY COUNT(*) DESC LIMIT 1",
        ),
        ("what is the town of Cy Lund", "SELECT town FROM growers WHERE name = 'Cy Lund'"),
        (
            "which fruit has the highest average delay",
            "SELECT fruit FROM deliveries GROUP BY 1 ORDER BY AVG(delay) DESC LIMIT 1",
        ),
        (
            "which fruit has the worst average delay",
            "SELECT fruit FROM deliveries GROUP BY 1 ORDER BY AVG(delay) DESC LIMIT 1",
        ),
        (
            "which fruit has the best average delay",
            "SELECT fruit FROM deliveries GROUP BY 1 ORDER BY AVG(delay) LIMIT 1",
        ),
        (
            "deliveries with above average kilos",
            "SELECT delivery_id FROM deliveries WHERE kilos > (SELECT AVG(kilos) FROM deliveries)",
        ),
        ("towns with more than 1 grower", "SELECT town FROM growers GROUP BY town HAVING COUNT(*) > 1"),
        (
            "what percentage of deliveries are pear",
            "SELECT 100.0 * COUNT(*) FILTER (WHERE fruit = 'pear') / COUNT(*) FROM deliveries",
        ),
        ("names that start with C", "SELECT name FROM growers WHERE name ILIKE 'C%'"),
        ("how many delivreies are there", "SELECT COUNT(*) FROM deliveries"),
    ],
)
def test_a_question_gives_what_its_sql_gives(con, question, sql):
    reply = con.ask(question, options=almanaq.Options(confidence=0.4))
    assert reply.status == "answered", reply.answer
    assert holds(reply, _gold(sql)), (reply.suql, reply.rows)


def _gold(sql):
    import duckdb
    import pyarrow as pa

    with duckdb.connect() as gold:
        for name, columns in TABLES.items():
            gold.register(name, pa.table(columns))
        return gold.sql(sql).fetchall()


@pytest.mark.parametrize(
    "question",
    [
        "how many growers sank?",
        "which growers are overdue",
        "total wingspan by town",
        "growers heavier than 80 kg",
        "average kilos by planet",
        "what did Ann Holt shout",
    ],
)
def test_a_word_that_means_nothing_is_not_passed_over(con, question):
    reply = con.ask(question)
    assert (reply.rows, reply.suql) == ((), None)
    assert reply.answer


@pytest.mark.parametrize("name", ["visit", "parcel", "claim", "session"])
def test_a_number_called_like_the_rows_is_not_added_up(name):
    with almanaq.connect({f"{name}s": {name: [901, 902, 907], "desk": ["A", "B", "A"]}}, model="local") as own:
        assert own.ask(f"how many {name}s are there?").rows == ((3,),)


@pytest.mark.parametrize(("yes", "no"), [("oui", "non"), ("on", "off"), ("y", "n"), ("x", None), ("true", "false")])
def test_yes_and_no_are_known_in_all_their_spellings(yes, no):
    table = {"name": ["a", "b", "c", "d"], "insured": [yes, no, yes, yes]}
    with almanaq.connect({"boats": table}, model="local") as own:
        assert own.ask("how many boats are insured?").rows == ((3,),)


@pytest.mark.parametrize("word", ["Total", "Max", "Average", "Most"])
def test_a_function_word_among_the_values_stays_a_function(word):
    table = {"firm": [word, "Sun", "Moss"], "land": ["FR", "FR", "NO"], "sales": [1, 20, 5]}
    with almanaq.connect({"firms": table}, model="local") as own:
        assert own.ask("total sales").rows == ((26,),)
        assert own.ask("max sales").rows[0][-1] == 20


def test_the_latest_is_by_day_and_not_by_amount():
    table = {"paid_on": [date(2020, 1, 1), date(2022, 1, 1)], "payer": ["Old", "New"], "amount": [500, 3]}
    with almanaq.connect({"payments": table}, model="local") as own:
        reply = own.ask("what is the latest amount?")
        assert reply.status != "answered" or 3 in reply.rows[0]


@pytest.mark.parametrize("question", ["what columns are there?", "which columns do you have", "list the columns"])
def test_the_columns_are_told(con, question):
    answer = con.ask(question).answer
    assert "fruit" in answer
    assert "town" in answer


def test_the_tables_are_told(con):
    answer = con.ask("what tables are there?").answer
    assert "growers" in answer
    assert "deliveries" in answer


def test_groups_are_told_by_the_highest_and_the_lowest():
    with almanaq.connect({"sales": {"city": ["Rome", "Bonn", "Rome"], "price": [3.5, 2.0, 4.5]}}, cache=False) as con:
        told = con.ask("average price for each city").answer
    assert told.startswith("2 groups by city: average price is highest for Rome (4), lowest for Bonn (2).\n")


def test_texts_are_asked_what_the_reader_can_read():
    texts = [
        "The ferry was late again, and the queue was long in the rain that day.",
        "A calm crossing with kind people, nothing to say against it at all really.",
        "Long queue at the pier, but the coffee on board was worth the wait to us.",
    ]
    with almanaq.connect({"remarks": {"id": [1, 2, 3], "remark": texts}}, model="local", cache=False) as own:
        reply = own.ask("how many remarks mention the queue?")
        assert reply.rows == ((2,),)
        reply = own.ask("which remarks say it is too long?")
        assert reply.suql.startswith("SELECT id, remark FROM remarks WHERE answer(remark")


def test_short_texts_hold_what_they_are_said_to_say():
    remarks = {"id": [1, 2, 3, 4], "remark": ["Far too loud", "Quiet", "Too loud", "Too loud"]}
    with almanaq.connect({"remarks": remarks}, model="local", cache=False) as own:
        chat = own.chat()
        assert chat.ask("how many remarks are there?").rows == ((4,),)
        reply = chat.ask("which remarks say that it is too loud?")
        assert [row[reply.columns.index("id")] for row in reply.rows] == [1, 3, 4]


PIECES = {
    "title": ["Blue Heron", "Red Bowl", "Old Bridge"],
    "object_type": ["painting", "bowl", "painting"],
    "status": ["on display", "in storage", "in storage"],
    "weight_kg": [4, 1, 9],
    "owner": ["Ann Holt", "Bo Rask", "Ann Holt"],
    "made_on": [date(1901, 3, 1), date(1950, 5, 2), date(1880, 7, 3)],
}


@pytest.fixture(scope="module")
def pieces():
    with almanaq.connect({"pieces": PIECES}, model="local") as connection:
        yield connection


@pytest.mark.parametrize(
    ("question", "rows"),
    [
        ("average weight of paintings", [(6.5,)]),
        ("who owns Red Bowl?", [("Bo Rask",)]),
        ("paintings with their owners", [("Blue Heron", "Ann Holt"), ("Old Bridge", "Ann Holt")]),
        ("heaviest piece on display", [("Blue Heron",)]),
    ],
)
def test_units_verbs_possessives_and_values_of_function_words_are_read(pieces, question, rows):
    reply = pieces.ask(question)
    assert reply.status == "answered", reply.answer
    assert holds(reply, rows), reply.suql


@pytest.mark.parametrize(
    "question",
    ["how old is Red Bowl?", "who made Red Bowl?", "how many objects per owner?"],
)
def test_a_near_column_is_offered_and_not_answered(pieces, question):
    assert pieces.ask(question).suql is None
