"""Turns that go on from figures: each gives what the whole question gives that it stands for, or nothing."""

from datetime import date

import pytest

import almanaq

TABLES = {
    "customers": {
        "customer_id": [1, 2, 3, 4],
        "company": ["Adler", "Hirsch", "Igel", "Fuchs"],
        "city": ["Bern", "Basel", "Bern", "Chur"],
    },
    "orders": {
        "order_id": [11, 12, 13, 14, 15, 16],
        "customer_id": [1, 1, 2, 3, 1, 2],
        "order_date": [
            *(date(2024, 1, 5), date(2023, 1, 20), date(2023, 12, 30)),
            *(date(2024, 2, 10), date(2024, 3, 1), date(2023, 11, 30)),
        ],
        "amount": [100, 50, 70, 20, 30, 15],
        "status": ["delivered", "returned", "delivered", "open", "delivered", "open"],
    },
    "tickets": {
        "ticket_id": [21, 22, 23],
        "customer_id": [1, 2, 2],
        "topic": ["invoice", "delivery", "invoice"],
        "opened_at": [date(2023, 4, 1), date(2023, 12, 28), date(2024, 2, 1)],
        "closed_at": [date(2023, 4, 3), date(2024, 1, 3), date(2024, 2, 9)],
    },
}


@pytest.fixture(scope="module")
def con():
    with almanaq.connect(TABLES, model="local") as connection:
        yield connection


def last_of(con, *turns):
    chat = con.chat()
    return [chat.ask(turn) for turn in turns][-1]


@pytest.mark.parametrize(
    ("turns", "whole"),
    [
        (["total amount by city", "only in 2024"], "total amount by city in 2024"),
        (["total amount by city", "only in 2024", "what about 2023?"], "total amount by city in 2023"),
        (["total amount per status", "what about 2023?"], "total amount per status in 2023"),
        (["total amount per status", "what about 2023?", "and the average?"], "average amount per status in 2023"),
        (["total amount per status", "by city instead"], "total amount by city"),
        (["total amount per status", "only Bern", "and Basel?"], "total amount per status for Basel"),
        (["total amount per status", "without open orders"], "total amount per status without open orders"),
        (["total amount", "and per city?"], "total amount per city"),
        (["number of orders with an amount above 20", "and below 80"], "orders with an amount above 20 and below 80"),
        (["total amount by city in 2024", "forget the year", "by status"], "total amount by status"),
        (["how many orders are open?", "in 2024?"], "how many orders are open in 2024?"),
    ],
)
def test_a_turn_gives_what_the_whole_question_gives(con, turns, whole):
    wanted = con.ask(whole if not whole.startswith("orders") else f"number of {whole}")
    assert wanted.status == "answered"
    assert sorted(last_of(con, *turns).rows) == sorted(wanted.rows)


@pytest.mark.parametrize(
    ("turns", "sql"),
    [
        (
            ["Which customers are in Bern?", "What is their total amount?"],
            "SELECT SUM(amount) FROM orders JOIN customers USING (customer_id) WHERE city = 'Bern'",
        ),
        (
            ["Which customers are in Bern?", "What is their total amount?", "and in 2024?"],
            "SELECT SUM(amount) FROM orders JOIN customers USING (customer_id) WHERE city = 'Bern'"
            " AND order_date >= DATE '2024-01-01'",
        ),
        (
            ["Which customers are in Bern?", "What is their total amount?", "and in Basel?"],
            "SELECT SUM(amount) FROM orders JOIN customers USING (customer_id) WHERE city = 'Basel'",
        ),
        (
            ["customers in Basel", "how many tickets do they have?", "and how many orders?"],
            "SELECT COUNT(*) FROM orders JOIN customers USING (customer_id) WHERE city = 'Basel'",
        ),
        (
            ["orders with status delivered", "how many are there per customer id?"],
            "SELECT customer_id, COUNT(*) FROM orders WHERE status = 'delivered' GROUP BY customer_id",
        ),
    ],
)
def test_they_are_the_rows_that_were_found(con, turns, sql):
    assert sorted(last_of(con, *turns).rows) == sorted(con.sql(sql).rows)


@pytest.mark.parametrize(
    ("said", "column", "down"),
    [
        ("sort them by sum highest first", 1, True),
        ("sort by total, lowest first", 1, False),
        ("highest first", 1, True),
        ("sort by status", 0, False),
    ],
)
def test_figures_are_sorted_by_what_is_shown(con, said, column, down):
    shown = [row[column] for row in last_of(con, "total amount per status", said).rows]
    assert shown == sorted(shown, reverse=down)
    assert len(shown) == 3


def test_only_what_is_shown_is_offered_to_sort_by(con):
    reply = last_of(con, "total amount per status", "sort by order date")
    assert (reply.status, reply.rows) == ("clarify", ())
    assert "I can sort by status, sum of amount." in reply.answer


def test_an_order_stays_while_what_it_is_by_is_shown(con):
    rows = last_of(con, "total amount per status", "sort by sum highest first", "only in 2024").rows
    assert rows == (("delivered", 130), ("open", 20))


@pytest.mark.parametrize(
    "turns",
    [
        ["number of tickets by topic", "what about 2023?"],  # opened or closed?
        ["total amount by city", "by weight of the parcel"],
        ["total amount by city", "and for martians?"],
        ["total amount by city", "opened at"],
        ["total amount by city", "only orders from 2024 by order date"],  # another grouping, or which date?
        ["Which customers are in Bern?", "What did they shout in total?"],
        ["average wingspan by city", "only in 2024"],
    ],
)
def test_nothing_is_shown_for_what_is_not_understood(con, turns):
    reply = last_of(con, *turns)
    assert (reply.rows, reply.suql) == ((), None)
    assert reply.answer


def test_what_was_not_understood_leaves_the_question_as_it_was(con):
    rows = last_of(con, "total amount by city", "and for martians?", "only in 2024").rows
    assert sorted(rows) == sorted(con.ask("total amount by city in 2024").rows)


def test_a_reply_says_how_its_question_was_read(con):
    reply = last_of(con, "total amount by city", "only in 2024")
    assert reply.answer.startswith("I read it as “total amount by city in 2024”.")


@pytest.mark.parametrize(
    ("answer", "where"),
    [("those", " WHERE city = 'Bern'"), ("the first", " WHERE city = 'Bern'"), ("of all orders", ""), ("all", "")],
)
def test_figures_that_may_be_of_the_rows_found_are_asked_back(con, answer, where):
    chat = con.chat()
    chat.ask("Which customers are in Bern?")
    asked = chat.ask("average amount")
    assert (asked.status, asked.answer) == ("clarify", "Do you mean of the customers found before, or of all orders?")
    wanted = con.sql(f"SELECT AVG(amount) FROM orders JOIN customers USING (customer_id){where}").rows
    assert list(chat.ask(answer).rows) == list(wanted)


def test_another_question_is_no_answer_to_a_question_back(con):
    turns = ["Which customers are in Bern?", "average amount", "total amount per status"]
    assert sorted(last_of(con, *turns).rows) == [("delivered", 200), ("open", 35), ("returned", 50)]


def test_rows_of_a_question_that_was_not_understood_have_no_figures(con):
    reply = last_of(con, "orders that shimmer", "what is their average amount?")
    assert (reply.status, reply.suql) == ("no_query", None)


def test_a_year_after_which_takes_the_place_of_a_year(con):
    rows = last_of(con, "how many orders in 2023?", "and after 2023?").rows
    assert rows == ((3,),)


def test_the_other_end_of_a_ranking(con):
    first, last = "which order has the highest amount?", "which order has the lowest amount?"
    assert last_of(con, first, "and the lowest?").rows == con.ask(last).rows != con.ask(first).rows


def test_what_rows_are_stands_before_their_name():
    with almanaq.connect({"dogs": {"name": ["Rex", "Bo"], "breed": ["pug", "lab"], "trained": [True, False]}}) as dogs:
        whole = dogs.ask("number of trained dogs by breed")
        assert last_of(dogs, "number of dogs by breed", "only trained ones").rows == whole.rows == (("pug", 1),)


def test_a_sort_after_a_turn_that_was_declined_says_of_what_it_is(con):
    reply = last_of(con, "total amount by city", "and for martians?", "sort by sum")
    assert reply.answer.startswith("I go on from “total amount by city”.")


def test_a_question_with_a_grouping_of_its_own_is_of_all(con):
    rows = last_of(con, "Which customers are in Bern?", "total amount per status").rows
    assert sorted(rows) == [("delivered", 200), ("open", 35), ("returned", 50)]
