"""Customers, orders, products and tickets as an analyst asks about them: what is counted, whose day, who never did."""

from __future__ import annotations

import random
from collections.abc import Iterator
from datetime import date, timedelta

import duckdb
import pyarrow as pa
import pytest

import almanaq
from almanaq.suql.databases.duckdb import load_table

COMPANIES = ["Adler AG", "Hirsch AG", "Igel AG", "Fuchs AG", "Luchs AG", "Dachs AG"]
ORDERED = "SELECT count(DISTINCT customer_id) FROM orders WHERE year(order_date) = 2024"
BY_TOTAL = "FROM orders JOIN customers USING (customer_id) {} GROUP BY company, customer_id ORDER BY sum(amount) DESC"
NEVER = "SELECT company FROM customers WHERE customer_id NOT IN (SELECT customer_id FROM orders {})"
RETURNED = NEVER.format("WHERE status = 'returned'")
TICKETS = "SELECT company FROM tickets JOIN customers USING (customer_id) GROUP BY ALL HAVING count(*) > 2"
QUESTIONS = {
    "How many customers ordered in 2024?": ORDERED,
    "How many different customers ordered in 2024?": ORDERED,
    "How many companies ordered in 2024?": ORDERED,
    "How many companies ordered Coffee in 2024?": (
        "SELECT count(DISTINCT customer_id) FROM orders JOIN products USING (sku) "
        "WHERE category = 'Coffee' AND year(order_date) = 2024"
    ),
    "Which companies never returned an order?": RETURNED,
    "Which companies have no returned orders?": RETURNED,
    "companies without returned orders": RETURNED,
    "Which customers never ordered?": NEVER.format(""),
    "Which customers have no orders?": NEVER.format(""),
    "Which companies did not order in 2024?": NEVER.format("WHERE year(order_date) = 2024"),
    "How many customers never ordered?": f"SELECT count(*) FROM ({NEVER.format('')})",
    "How many orders were delivered in February 2024?": (
        "SELECT count(*) FROM orders WHERE delivered_on BETWEEN '2024-02-01' AND '2024-02-29' AND status = 'delivered'"
    ),
    "orders delivered after 31 January 2024": (
        "SELECT order_id FROM orders WHERE delivered_on > '2024-01-31' AND status = 'delivered'"
    ),
    "Which tickets were closed in March 2024?": (
        "SELECT ticket_id FROM tickets WHERE closed_at BETWEEN '2024-03-01' AND '2024-03-31'"
    ),
    "Which customers opened more than 2 tickets?": TICKETS,
    "Which customers have more than 2 tickets?": TICKETS,
    "Which customer has the highest total amount?": f"SELECT company {BY_TOTAL.format('')} LIMIT 1",
    "Top 2 customers by total amount in 2024": (
        f"SELECT company {BY_TOTAL.format('WHERE year(order_date) = 2024')} LIMIT 2"
    ),
    "orders per month in 2024": (
        "SELECT month(order_date), count(*) FROM orders WHERE year(order_date) = 2024 GROUP BY 1"
    ),
    "orders per weekday": "SELECT dayname(order_date), count(*) FROM orders GROUP BY 1",
    "total amount of orders": "SELECT sum(amount) FROM orders",
    "average amount of orders per status": "SELECT status, avg(amount) FROM orders GROUP BY status",
    "longest session": "SELECT device FROM web_sessions ORDER BY seconds DESC LIMIT 1",
    "sessions longer than 1000 seconds": "SELECT device FROM web_sessions WHERE seconds > 1000",
}


def tables(seed: int) -> dict[str, pa.Table]:
    """Draw a shop: customers without orders, orders that are open, of one year and of another."""
    draws = random.Random(seed)

    def day(first: date, days: int) -> date:
        return first + timedelta(draws.randrange(days))

    orders = []
    for number in range(draws.randint(20, 40)):
        ordered = day(date(2023, 10, 1), 200)
        status = draws.choice(["delivered", "delivered", "returned", "open", "cancelled"])
        delivered = ordered + timedelta(draws.randint(2, 40)) if status in ("delivered", "returned") else None
        of = draws.choice([10, 10, 11, 12, 13])
        sku = f"P{draws.randint(1, 3)}"
        orders.append((number + 1, of, ordered, 10 * number + draws.randint(1, 9), status, delivered, sku))
    tickets = []
    for number in range(draws.randint(6, 14)):
        opened = day(date(2024, 1, 1), 60)
        tickets.append((number + 1, draws.choice([10, 10, 11, 14]), opened, opened + timedelta(draws.randint(1, 50))))
    customers = [
        (10 + i, name, draws.choice(["Bern", "Basel"]), day(date(2019, 1, 1), 1500)) for i, name in enumerate(COMPANIES)
    ]
    sessions = [
        (f"{kind}{n}", draws.randint(10, 3000), draws.randint(1, 40)) for n, kind in enumerate(["phone", "tablet"] * 3)
    ]
    drawn = {
        "customers": (("customer_id", "company", "city", "since"), customers),
        "orders": (("order_id", "customer_id", "order_date", "amount", "status", "delivered_on", "sku"), orders),
        "products": (
            ("sku", "product", "category"),
            [("P1", "Bean", "Coffee"), ("P2", "Leaf", "Tea"), ("P3", "Mug", "Cups")],
        ),
        "tickets": (("ticket_id", "customer_id", "opened_at", "closed_at"), tickets),
        "web_sessions": (("device", "seconds", "pages"), sessions),
        "survey": (("respondent", "would_recommend"), [(1, "Yes"), (2, "No"), (3, "Maybe")]),
    }
    return {
        name: pa.Table.from_pylist([dict(zip(names, row, strict=True)) for row in rows])
        for name, (names, rows) in drawn.items()
    }


@pytest.fixture(scope="module", params=[1, 2, 3])
def shop(request: pytest.FixtureRequest) -> Iterator[tuple[almanaq.Connection, duckdb.DuckDBPyConnection]]:
    drawn = tables(request.param)
    with duckdb.connect() as plain, almanaq.connect(drawn, embedder="lexical", cache=False) as connection:
        for name, table in drawn.items():
            load_table(plain, ("memory", "main", name), table)
        yield connection, plain


@pytest.mark.parametrize("question", QUESTIONS)
def test_the_rows_are_those_that_are_meant(
    question: str, shop: tuple[almanaq.Connection, duckdb.DuckDBPyConnection]
) -> None:
    connection, plain = shop
    reply = connection.ask(question)
    wanted = plain.execute(QUESTIONS[question]).fetchall()
    assert reply.suql is not None, reply.answer
    found = connection.sql(reply.suql).rows
    ordered = "ORDER BY" in QUESTIONS[question]
    shown = [tuple(row[: len(wanted[0])]) for row in found] if wanted else found
    assert (shown if ordered else sorted(shown)) == (wanted if ordered else sorted(wanted)), reply.suql


@pytest.mark.parametrize("question", ["customers whose orders were all delivered", "customers who only ordered Coffee"])
def test_what_is_said_of_all_rows_is_declined(
    question: str, shop: tuple[almanaq.Connection, duckdb.DuckDBPyConnection]
) -> None:
    reply = shop[0].ask(question)
    assert reply.suql is None
    assert "whether each row of" in reply.answer


def test_what_several_customers_last_did_is_not_told_of_one(
    shop: tuple[almanaq.Connection, duckdb.DuckDBPyConnection],
) -> None:
    chat = shop[0].chat()
    shown = chat.ask("customers in Bern or Basel").shown
    assert shown is not None
    assert len(shown.keys) > 1
    reply = chat.ask("when did they last order?")
    assert reply.suql is None, "neither the last customer alone, nor the one last order of all"
