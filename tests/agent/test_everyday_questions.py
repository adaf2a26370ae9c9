# ruff: noqa: E501 - one row or case per line reads best
"""What a new user asks of small tables of their own: `local` finds the right rows, whatever the headers look like."""

from __future__ import annotations

from datetime import date

import duckdb
import pytest

import almanaq
from almanaq.agent.local.calendar_spans import spans

EMPLOYEES = """id,first_name,last_name,department,job_title,salary,hire_date,city
1,Ana,Silva,Engineering,Engineer,72000,2019-03-04,Lisbon
2,Ben,Okafor,Sales,Account Manager,48000,2021-07-19,Porto
3,Carla,Jensen,Engineering,Head of Engineering,110000,2015-01-12,Lisbon
4,Dmitri,Petrov,Marketing,Designer,51000,2020-11-02,Braga
5,Eve,Stone,Engineering,Engineer,38000,2023-04-03,Porto
"""
ORDERS = """order_id,customer,product,quantity,unit_price,order_date,status
101,Acme Corp,Chair,4,85.50,2024-01-15,shipped
102,Blue Sky Ltd,Desk,1,320.00,2024-02-03,delivered
103,Acme Corp,Lamp,10,24.99,2024-02-20,cancelled
104,Corner Shop,Chair,2,85.50,2024-03-11,delivered
105,Blue Sky Ltd,Lamp,6,24.99,2023-12-05,delivered
"""
MOVIES = """title,director,year,genre,runtime,box_office,plot
The Glass Harbor,Mira Castellan,1998,Drama,124,45000000,"A lighthouse keeper takes in a shipwrecked boy, and slowly learns that the child remembers nothing of his life before the storm."
Night Tram,Oskar Lund,2004,Thriller,98,61000000,"On the last tram of the evening, a conductor finds a bag of money and a list of names. By morning two of them are dead."
Paper Astronauts,Mira Castellan,2011,Comedy,91,20000000,"Three sisters build a rocket from cardboard and win a science fair by accident. Then the space agency calls them."
The Quiet Bees,Oskar Lund,2019,Drama,110,15000000,"A beekeeper who has lost her hearing teaches a troubled teenager to listen. It ends with a funeral and a harvest."
Storm Season,Mira Castellan,2020,Drama,130,9000000,"A family of fishermen waits out the worst winter in living memory, and their funny grandmother keeps them laughing."
"""
BOOKS = """book_id,title,author,published,pages,in_print
1,The Salt Road,Nell Hargrove,1987,312,true
2,Small Machines,Tariq Osei,2016,221,true
3,Winter Orchard,Nell Hargrove,1994,405,false
"""
MEMBERS = """member_id,name,joined,email
1,Rosa Lind,2018-02-11,rosa@example.org
2,Tom Achter,2020-09-30,tom@example.org
"""
LOANS = """loan_id,member_id,book_id,loan_date,returned
1,1,2,2024-01-05,true
2,2,1,2024-02-20,false
3,1,2,2024-03-01,false
"""
PLACES = """name,kind,city,rating
Harbor Lights,cafe,Lyon,4.5
Old Mill,museum,Lyon,4.1
Blue Door,cafe,Nice,3.9
"""
PEOPLE = """Name,Age,Occupation,Height (cm)
Ada Lind,34,Architect,171
Bruno Costa,58,Baker,165
Chen Wei,22,Doctor,180
"""
MESSY = """ Product Name ,Unit Price ($),# In Stock,Supplier/Vendor,Discontinued?
Oak Shelf,49.90,12,Nordwood,no
Pine Table,129.00,0,Nordwood,no
Steel Stool,35.00,44,Metalia,yes
"""
CLIENTS = """id,name,country,complaint
1,Ann,Norway,"The box was broken, and nobody called me back for a whole week."
2,Bob,Norway,"I was happy with the service, but the delivery came very late again."
3,Cid,Chile,"They charged me twice, and the refund took more than a month to arrive."
"""
SOURCES = {
    "company": {"employees": EMPLOYEES, "orders": ORDERS},
    "cinema": {"movies": MOVIES},
    "library": {"books": BOOKS, "members": MEMBERS, "loans": LOANS},
    "town": {"places": PLACES},
    "club": {"people": PEOPLE},
    "shop": {"messy": MESSY},
    "desk": {"clients": CLIENTS},
}

# A question, and what stands in the first column of the right rows.
ASKED = [
    ("desk", "How many clients live in Norway?", [2]),
    ("desk", "clients based in Chile", ["Cid"]),
    ("company", "How many employees are there?", [5]),
    ("company", "Who earns more than 60000?", ["Ana", "Carla"]),
    ("company", "Who earns the least?", ["Eve"]),
    ("company", "Who was hired last?", ["Eve"]),
    ("company", "Who was hired after 2020?", ["Ben", "Eve"]),
    ("company", "Which department has the most employees?", ["Engineering"]),
    ("company", "How many departments are there?", [3]),
    ("company", "departments", ["Engineering", "Marketing", "Sales"]),
    ("company", "orders in February 2024", [102, 103]),
    ("company", "How many orders were placed after January 2024?", [3]),
    ("company", "How many orders were made between 2024-02-01 and 2024-03-31?", [3]),
    ("company", "show me orders with more than 5 items", [103, 105]),
    ("company", "Which customers ordered a chair?", ["Acme Corp", "Corner Shop"]),
    ("cinema", "Who directed Night Tram?", ["Oskar Lund"]),
    ("cinema", "Which movies did Oskar Lund direct?", ["Night Tram", "The Quiet Bees"]),
    ("cinema", "movies from 2019 or later", ["Storm Season", "The Quiet Bees"]),
    ("cinema", "Which director has made the most movies?", ["Mira Castellan"]),
    ("cinema", "What genres are there?", ["Comedy", "Drama", "Thriller"]),
    ("cinema", "Is there a movie about bees?", []),
    ("library", "Who wrote The Salt Road?", ["Nell Hargrove"]),
    ("library", "Which books did Nell Hargrove write?", ["The Salt Road", "Winter Orchard"]),
    ("library", "Which books has Rosa Lind borrowed?", ["Small Machines"]),
    ("library", "How many books are out of print?", [1]),
    ("library", "longest book", ["Winter Orchard"]),
    ("library", "Rosa Lind's email", ["rosa@example.org"]),
    ("town", "how many places are there?", [3]),
    ("town", "list all places", ["Blue Door", "Harbor Lights", "Old Mill"]),
    ("town", "how many cafes are in Nice?", [1]),
    ("club", "How many people are there?", [3]),
    ("club", "Who is the oldest?", ["Bruno Costa"]),
    ("club", "Who is a doctor?", ["Chen Wei"]),
    ("club", "the tallest two people", ["Ada Lind", "Chen Wei"]),
    ("club", "people under 30", ["Chen Wei"]),
    ("company", "list everyone", ["Ana", "Ben", "Carla", "Dmitri", "Eve"]),
    ("company", "Who earns more than Dmitri Petrov?", ["Ana", "Carla"]),
    ("company", "Who earns less than average?", ["Ben", "Dmitri", "Eve"]),
    ("company", "employees whose job title contains 'Head'", ["Carla"]),
    ("company", "How many employees were hired each year?", [2015, 2019, 2020, 2021, 2023]),
    ("company", "orders that have not been delivered", [101, 103]),
    ("company", "Which departments have more than one employee?", ["Engineering"]),
    ("company", "employees from Lisbon or Braga", ["Ana", "Carla", "Dmitri"]),
    ("cinema", "Which movies are shorter than average?", ["Night Tram", "Paper Astronauts", "The Quiet Bees"]),
    ("cinema", "movies of the 1990s", ["The Glass Harbor"]),
    ("library", "Which members have borrowed more than one book?", ["Rosa Lind"]),
    ("library", "show each member and the number of loans", ["Rosa Lind", "Tom Achter"]),
    ("library", "Which books are longer than The Salt Road?", ["Winter Orchard"]),
    ("library", "Who joined before Tom Achter?", ["Rosa Lind"]),
    ("library", "How many pages do we have in total?", [938]),
    ("library", "the loan of The Salt Road", [2]),
    ("library", "Which books have never been borrowed?", ["Winter Orchard"]),
    ("shop", "Which products are out of stock?", ["Pine Table"]),
    ("shop", "How many products are discontinued?", [1]),
    ("shop", "products under $60", ["Oak Shelf", "Steel Stool"]),
]  # fmt: skip

# What is not understood whole: no word of the tables says what money, or a unit, or having been borrowed is.
NOT_SURE = [
    ("company", "Who makes the most money?", "money"),
    ("cinema", "movies longer than 2 hours", ""),
    ("cinema", "Which movie made the most money?", "money"),
    ("library", "Who has borrowed the most books?", ""),
]


@pytest.fixture(scope="module")
def connections(tmp_path_factory):
    opened = {}
    for name, tables in SOURCES.items():
        folder = tmp_path_factory.mktemp(name)
        for table, text in tables.items():
            (folder / f"{table}.csv").write_text(text)
        opened[name] = almanaq.connect(folder, embedder="lexical", cache=False)
    yield opened
    for connection in opened.values():
        connection.close()


@pytest.mark.parametrize(("source", "question", "expected"), ASKED)
def test_the_right_rows_are_found(connections, source, question, expected):
    reply = connections[source].ask(question)
    found = sorted(row[0] for row in reply.rows)
    assert reply.relaxed is None
    assert found == sorted(expected) or (not expected and found)


@pytest.mark.parametrize(("source", "question", "unknown"), NOT_SURE)
def test_what_is_not_understood_gives_no_figure_but_the_nearest_query(connections, source, question, unknown):
    reply = connections[source].ask(question)
    assert (reply.status, reply.rows) == ("no_query", ())
    assert unknown in reply.answer
    assert "SELECT" in reply.answer or "The columns of" in reply.answer


@pytest.fixture(scope="module")
def old_system(tmp_path_factory):
    """A database whose names are codes, told by comments; its numbers are texts in one column, 1 and 0 in another."""
    file = tmp_path_factory.mktemp("old") / "old.duckdb"
    with duckdb.connect(str(file)) as database:
        database.sql("CREATE TABLE t_17 (k1 INTEGER, k2 VARCHAR, k3 VARCHAR, k4 INTEGER, sold INTEGER)")
        database.sql("INSERT INTO t_17 VALUES (1, 'Elm', '9.5', 3, 1), (2, 'Fir', '22', 0, 0), (3, 'Oak', '120', 8, 0)")
        for name, comment in (
            ("TABLE t_17", "Trees in the nursery"),
            ("COLUMN t_17.k2", "Name of the kind"),
            ("COLUMN t_17.k3", "Price of one in euros"),
            ("COLUMN t_17.k4", "Height in metres"),
        ):
            database.sql(f"COMMENT ON {name} IS '{comment}'")
    with almanaq.connect(str(file), embedder="lexical", cache=False) as connection:
        yield connection


@pytest.mark.parametrize(
    ("question", "expected"),
    [
        ("How many trees do we have?", [3]),
        ("trees over 20 euros", ["Fir", "Oak"]),
        ("most expensive tree", ["Oak"]),
        ("What is the average price of a tree?", [50.5]),
        ("Which trees are sold?", ["Elm"]),
    ],
)
def test_codes_are_spoken_of_by_their_comments(old_system, question, expected):
    assert sorted(row[0] for row in old_system.ask(question).rows) == expected


def test_a_text_question_forgets_the_noun_of_the_row(connections):
    """The noun that names the row is no word that its text must hold."""
    nearest = connections["cinema"].ask("Is there a funny movie?").answer
    assert "funny" in nearest
    assert "funny movie" not in nearest


def test_what_cannot_be_ordered_is_said_and_not_cut_down_to_one_row(connections):
    reply = connections["shop"].ask("Which product was delivered last?")
    assert (reply.status, reply.rows) == ("no_query", ())
    assert "what the superlative is over" in reply.answer


@pytest.mark.parametrize(
    ("question", "condition"),
    [
        ("orders on 3 February 2024", "order_date >= '2024-02-03' AND order_date < '2024-02-04'"),
        ("orders before Feb 3, 2024", "order_date < '2024-02-03'"),
        ("orders since December 2023", "order_date >= '2023-12-01'"),
        ("orders until 2024-01", "order_date < '2024-02-01'"),
        ("orders on 02/03/2024", "order_date >= '2024-02-03' AND order_date < '2024-02-04'"),
        ("orders before 13/2/2024", "order_date < '2024-02-13'"),
        ("orders on February 20", "order_date >= '2024-02-20' AND order_date < '2024-02-21'"),
        ("orders in December", "order_date >= '2023-12-01' AND order_date < '2024-01-01'"),
        ("orders from January 2024 to March 2024", "order_date >= '2024-01-01' AND order_date < '2024-04-01'"),
    ],
)
def test_months_and_days(connections, question, condition):
    assert condition in connections["company"].ask(question).suql


@pytest.mark.parametrize("question", ["orders on 31 February 2024", "orders in 2024-13", "orders in May 9999"])
def test_days_that_no_calendar_has_break_nothing(connections, question):
    assert connections["company"].ask(question).status in ("answered", "no_result", "no_query")


@pytest.mark.parametrize(
    ("words", "start", "after"),
    [
        ("yesterday", "2024-02-29", "2024-03-01"),
        ("last week", "2024-02-19", "2024-02-26"),
        ("this month", "2024-03-01", "2024-04-01"),
        ("last month", "2024-02-01", "2024-03-01"),
        ("last quarter", "2023-10-01", "2024-01-01"),
        ("last year", "2023-01-01", "2024-01-01"),
        ("the last 3 months", "2023-12-01", "2024-03-02"),
        ("next year", "2025-01-01", "2026-01-01"),
        ("last year's budget", "2023-01-01", "2024-01-01"),
    ],
)
def test_days_told_from_today(words, start, after):
    found = [(str(span.start), str(span.after)) for span in spans(f"orders of {words}", date(2024, 3, 1))]
    assert found == [(start, after)]


@pytest.mark.parametrize("before", ["", "Q1 report (final)_", "my_"])
def test_a_column_leads_to_the_sheet_that_it_is_called_after(tmp_path, before):
    """Sheets are called after their file and themselves."""
    (tmp_path / f"{before}sales.csv").write_text("rep,revenue\nBerg,100\nDahl,20\nBerg,5\nRossi,7\n")
    (tmp_path / f"{before}reps.csv").write_text("name,office\nBerg,Oslo\nDahl,Oslo\nRossi,Milan\n")
    with almanaq.connect(tmp_path) as connection:
        reply = connection.ask("What is the total revenue by office?")
    assert reply.rows is not None, reply.answer
    assert sorted(reply.rows) == [("Milan", 7), ("Oslo", 125)]
