"""What `local` reads of amounts, of what is set against each other, of numbered names, and of values within others."""

from __future__ import annotations

import pytest
from tests.agent.test_local_questions import holds

import almanaq

TRIPS = {
    "trips": {
        "id": [1, 2, 3, 4, 5, 6],
        "route": ["R01", "R02", "R02", "R03", "R01", "R02"],
        "guide": ["Ann", "Bo", "Cy", "Di", "Ann", "Bo"],
        "sex": ["Female", "Male", "Male", "Female", "Female", "Male"],
        "weather": ["Fog", "Sun", "Fog, wind", "Sun", "Rain", "Sun"],
        "year": [2020, 2020, 2021, 2021, 2021, 2022],
        "month": [5, 6, 5, 5, 7, 5],
        "ascent": [300, 800, 450, 900, 200, 650],
        "descent": [350, 700, 500, 600, 250, 650],
        "guests": [4, 6, 2, 8, 5, 3],
        "area_km2": [3.5, 9.25, 4.0, 12.5, 2.0, 8.0],
    },
    "cooks": {"id": [1, 2, 3], "cook": ["Fay", "Gil", "Hal"], "dishes": [30, 12, 7]},
}


@pytest.fixture(scope="module")
def con():
    with almanaq.connect(TRIPS, model="local", cache=False) as connection:
        yield connection


@pytest.mark.parametrize(
    ("question", "sql"),
    [
        ("how many trips have a higher ascent than descent?", "SELECT COUNT(*) FROM trips WHERE ascent > descent"),
        ("how many trips were there in May 2021?", "SELECT COUNT(*) FROM trips WHERE year = 2021 AND month = 5"),
        ("average number of guests by year", "SELECT year, AVG(guests) FROM trips GROUP BY year"),
        ("guides with total guests over 8", "SELECT guide FROM trips GROUP BY 1 HAVING SUM(guests) > 8"),
        ("are there more trips with Ann or Di?", "SELECT guide FROM trips WHERE guide IN ('Ann', 'Di') GROUP BY 1"),
        ("total guests of women", "SELECT SUM(guests) FROM trips WHERE sex = 'Female'"),
        ("what share of guests comes with rain?", "SELECT 100.0 * 5 / 28"),
        ("total area of trips with Bo in square km", "SELECT SUM(area_km2) FROM trips WHERE guide = 'Bo'"),
    ],
)
def test_a_question_gives_what_its_sql_gives(con, question, sql):
    reply = con.ask(question, options=almanaq.Options(confidence=0.4))
    assert reply.status == "answered", reply.answer
    assert holds(reply, con.sql(sql).rows), (reply.suql, reply.rows)


def test_ids_that_only_number_rows_do_not_join(con):
    for question in ("how many trips has Fay?", "dishes of Ann"):
        assert " JOIN " not in (con.ask(question).suql or "")


def test_a_value_that_others_hold_too_is_offered_alone_and_within_them(con):
    reply = con.ask("trips with fog")
    queries = [reading.suql for reading in reply.readings]
    assert reply.status == "clarify", reply.suql
    assert any("= 'Fog'" in suql for suql in queries), queries
    assert any("LIKE '%Fog%'" in suql for suql in queries), queries


def test_a_number_that_no_row_has_is_not_answered(con):
    assert con.ask("how many trips have 777 guests?").rows == ()
