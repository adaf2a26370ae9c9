"""A PostgreSQL source of 200 tables whose names and columns resemble each other: a question finds its own."""

from __future__ import annotations

from collections.abc import Iterator

import psycopg
import pytest

import almanaq
from almanaq.agent.table_chooser import TableChooser
from almanaq.errors import UnknownNameError
from almanaq.retrieval.bm25 import BM25
from engines import PostgresServer

PLACES = (
    *("museum", "hospital", "harbour", "airport", "library", "theatre", "school", "hotel", "bakery", "vineyard"),
    *("farm", "stadium", "garage", "pharmacy", "zoo", "bridge", "factory", "court", "prison", "lighthouse"),
)
TOPICS = {
    "visits": "visited date, guests int",
    "staff": "person text, salary numeric, hired date",
    "invoices": "supplier text, amount numeric, paid boolean",
    "reviews": "stars int, opinion text",
    "repairs": "part text, repaired date, cost numeric",
    "tickets": "price numeric, sold int",
    "events": "title text, starts timestamp",
    "accidents": "injured int, happened date",
    "inspections": "inspector text, passed boolean",
    "donations": "donor text, sum numeric",
}
QUESTIONS = (
    ("How many accidents happened at the zoo?", "zoo_accidents"),
    ("What is the average salary of staff at the hospital?", "hospital_staff"),
    ("Which supplier of the bakery has an invoice that is not paid?", "bakery_invoices"),
    ("Show the theatre events that start in May", "theatre_events"),
    ("Who inspected the bridge?", "bridge_inspections"),
    ("Find museum reviews that mention quiet", "museum_reviews"),
    ("How many tickets did the stadium sell?", "stadium_tickets"),
    ("Which donor gave the most to the library?", "library_donations"),
    ("What did the repairs of the lighthouse cost?", "lighthouse_repairs"),
    ("How many guests visited the vineyard in 2023?", "vineyard_visits"),
)


@pytest.fixture(scope="module")
def con(postgres_server: PostgresServer) -> Iterator[almanaq.Connection]:
    url = postgres_server.new_database()
    with psycopg.connect(url) as connection:
        for place in PLACES:
            connection.execute(f"CREATE SCHEMA {place}")
            for topic, columns in TOPICS.items():
                table = f"{place}.{place}_{topic}"
                connection.execute(f"CREATE TABLE {table} (id int PRIMARY KEY, {columns})")
                connection.execute(f"INSERT INTO {table} (id) SELECT generate_series(1, 3)")
                if topic == "reviews":
                    connection.execute(f"COMMENT ON COLUMN {table}.opinion IS 'FREE_TEXT'")
    with almanaq.connect(url, cache=False) as opened:
        yield opened


def test_a_question_finds_its_table(con: almanaq.Connection) -> None:
    catalog = con.engine.catalog
    assert len(catalog.relations) == 200
    choose = TableChooser(BM25())
    chosen = {table: choose(question, catalog) for question, table in QUESTIONS}
    assert [table for table, names in chosen.items() if table not in names] == []
    assert sum(names[0] == table for table, names in chosen.items()) >= 9


def test_ask_names_the_table(con: almanaq.Connection) -> None:
    reply = con.ask("How many zoo accidents are there?")
    assert reply.status == "answered", reply
    assert list(reply.tables) == ["zoo_accidents"]
    assert [list(row) for row in reply.rows] == [[3]]


def test_ask_queries_the_right_table(con: almanaq.Connection) -> None:
    """What is not understood shows a query of the right table; "donor gave" alone goes to reviews."""
    replies = [(question, table, con.ask(question)) for question, table in QUESTIONS]
    assert all(table in reply.tables for _, table, reply in replies if reply.status == "answered")
    missed = [
        question
        for question, table, reply in replies
        if table not in {*reply.tables, *reply.answer.split()} and not any(table in r.suql for r in reply.readings)
    ]
    assert len(missed) <= 1, missed


def test_a_question_survives_a_view_that_fails(postgres_server: PostgresServer) -> None:
    url = postgres_server.new_database()
    with psycopg.connect(url) as connection:
        connection.execute("CREATE TABLE boats (id int PRIMARY KEY, harbour text)")
        connection.execute("INSERT INTO boats VALUES (1, 'Oslo'), (2, 'Bergen')")
        connection.execute("CREATE VIEW broken AS SELECT (1 / (id - id))::text AS captain FROM boats")
    with almanaq.connect(url, cache=False) as opened:
        assert [tuple(row) for row in opened.ask("How many boats are in Oslo?").rows] == [(1,)]
        assert opened.engine.values("boats", "harbour", 1) == ["Bergen"]
        assert opened.engine.values("broken", "captain", 9) == []
        with pytest.raises(UnknownNameError, match="did you mean 'harbour'"):
            opened.engine.values("boats", "habour", 1)


def test_a_question_joins_tables_of_several_schemas(postgres_server: PostgresServer) -> None:
    url = postgres_server.new_database()
    with psycopg.connect(url) as connection:
        connection.execute(
            """
            CREATE SCHEMA crm; CREATE SCHEMA shop;
            CREATE TABLE crm.customers (id int PRIMARY KEY, name text, city text);
            CREATE TABLE shop.orders (id int PRIMARY KEY, customer_id int REFERENCES crm.customers, status text);
            COMMENT ON COLUMN shop.orders.status IS 'ENUM';
            INSERT INTO crm.customers VALUES (1, 'Anna', 'Oslo'), (2, 'Ben', 'Rome');
            INSERT INTO shop.orders VALUES (1, 2, 'cancelled'), (2, 1, 'shipped');
            """
        )
        for number in range(14):  # more tables than a question is read over at once, were each schema a database
            connection.execute(f"CREATE TABLE shop.ledger_{number} (id int PRIMARY KEY, amount int)")
    with almanaq.connect(url, cache=False) as opened:
        reply = opened.ask("What are the names of customers with cancelled orders?")
    assert [tuple(row) for row in reply.rows] == [("Ben",)]
