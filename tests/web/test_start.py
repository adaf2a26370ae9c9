"""What a newcomer sees first: the tables, and questions that surely run."""

from __future__ import annotations

import pyarrow as pa
from tests.web.live import live

import almanaq
from almanaq.testing import FunctionModel
from almanaq.web.about import sample_questions
from almanaq.web.service import open_service

CITIES = ["Bern", "Basel", "Bern", "Zug", "Basel", "Bern"]
ORDERS = {
    "order_id": list(range(6)),
    "customer": ["Ann", "Bob", "Cid", "Dora", "Eve", "Finn"],
    "city": CITIES,
    "zip": [3000, 4000, 3001, 6300, 4001, 3002],
    "amount": [12.5, 99.0, 45.2, 7.9, 61.0, 18.0],
    "note": ["Please leave it with the neighbour on the second floor, who is always at home."] * 6,
}


def test_the_questions_of_a_table_that_nobody_wrote_any_for_are_answered():
    with almanaq.connect({"orders": pa.table(ORDERS)}, model="local", cache=False) as connection:
        found = sample_questions(connection)
        assert len(found) >= 3
        assert "How many orders are there for each city?" in found
        assert not any("zip" in question or "customer" in question for question in found)  # no amount, and no group
        for question in found:
            response = connection.ask(question)
            assert (response.status, bool(response.rows)) == ("answered", True), question


def test_a_model_elsewhere_is_asked_of_the_schema_alone():
    with almanaq.connect(
        {"orders": pa.table(ORDERS)}, model=FunctionModel(lambda *_: "Yes"), cache=False
    ) as connection:
        found = sample_questions(connection)
        assert len(found) >= 3
        assert not any("city" in question for question in found)  # no value of it was looked at


def test_the_first_page_names_tables_without_javascript():
    tables = {"orders": pa.table(ORDERS)} | {f"other_{n}": pa.table({"x<y": [n]}) for n in range(14)}
    with almanaq.connect(tables, model="local", cache=False) as connection:
        service = open_service(connection, "tables", store_mb=None)
        with live(service) as client:
            page = client("GET", "/").body.decode()
        service.store.close()
    assert '<a href="/tables/orders">orders</a>' in page
    assert "order_id, customer, city" in page
    assert page.count('<a href="/tables/other_') == 11
    assert "and 3 more" in page
    assert "x&lt;y" in page
    assert "x<y" not in page
