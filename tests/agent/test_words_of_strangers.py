"""What strangers asked of their tables first, on small tables of ours: every reply is judged by its rows."""

from __future__ import annotations

from datetime import date

import pytest

import almanaq

INCIDENTS = """Name,County,Started,AcresBurned,HousesDestroyed,HousesDamaged,MajorIncident,ArchiveYear,SearchKeywords
Ash Fire,Lake,2013-07-04,300,2,,false,2013,"Ash Fire, Lake County, Lake, July 4"
Birch Fire,Lake,2014-12-01,900,0,5,true,2014,"Birch Fire, Lake County, Lake, Road 9"
Cedar Fire,Ridge,2014-08-15,50,9,,true,2014,"Cedar Fire, Ridge County, Ridge"
Dune Fire,Ridge,2015-12-20,700,,1,false,2015,"Dune Fire, Ridge County, Ridge, Road 9"
Elm Fire,Lake,2015-05-02,,,,false,2015,"Elm Fire, Lake County, Lake"
"""
STATIONS = """name,state,line,category,weight,hasWiFi,hasParking,hasBikeParking,stepless,founded
Alm,North,Fast,1,10,true,true,true,yes,1901
Berg,North,Slow,2,30,false,true,false,no,1920
Carden,South,Slow,2,20,true,false,true,partly,1950
Dorn,South,Slow,3,40,true,false,false,,1984
"""
VERDICTS = """last_name,first_name,age,offence,convicted,released,dna
Lomax,Walter,17,Theft,1968,2006,Y
Reed,Ann,22,Arson,1981,1999,
Stone,Bill,,Theft,1985,1999,
Voss,Cora,40,Fraud,1990,2010,Y
"""


@pytest.fixture(scope="module")
def ask(tmp_path_factory):
    folder = tmp_path_factory.mktemp("strangers")
    opened = {}
    for name, text in (("fires", INCIDENTS), ("stations", STATIONS), ("verdicts", VERDICTS)):
        file = folder / f"{name}.csv"
        file.write_text(text, encoding="utf-8")
        opened[name] = almanaq.connect(str(file), model="local", cache=False)
    yield lambda name, question: opened[name].ask(question)
    for connection in opened.values():
        connection.close()


@pytest.mark.parametrize(
    ("table", "question", "rows"),
    [
        # Keywords that repeat the names of their rows are no values beside them.
        ("fires", "how many fires were in Lake county", [(3,)]),
        ("fires", "when did the Dune Fire start", [(date(2015, 12, 20),)]),
        ("fires", "how many fires started in July 2013", [(1,)]),
        # Words of a column's name that stand apart, and units that only a name says.
        ("fires", "how many houses were destroyed by the Cedar Fire", [(9,)]),
        ("fires", "which fires destroyed more than 5 houses", [("Cedar Fire", 9)]),
        ("fires", "how many fires over 600 acres", [(2,)]),
        ("fires", "how many fires have no acres burned", [(1,)]),
        ("fires", "for how many fires are the acres burned missing", [(1,)]),
        # A year with the most is the one of the largest sum; months of years long over are of every year.
        ("fires", "which year had the most acres burned", [(2014, 950)]),
        ("fires", "how many fires started in December", [(2,)]),
        ("fires", "how many fires started between July and August 2013", [(1,)]),
        ("fires", "average acres burned per archive year for major incidents", [(2014, 475)]),
        ("fires", "highest acres burned in each county", [("Lake", 900), ("Ridge", 700)]),
        # What begins with has-, a no among texts, nothing where there is only yes.
        ("stations", "how many stations have wifi", [(3,)]),
        ("stations", "how many stations have parking but no bike parking", [(1,)]),
        ("stations", "how many stations have no stepless", [(1,)]),
        ("verdicts", "how many cases had no dna", [(2,)]),
        ("stations", "does Berg have wifi", [(False,)]),
        ("stations", "stations of category 1 or 3", [("Alm", 1), ("Dorn", 3)]),
        ("stations", "which slow has the highest weight", [("Dorn", 40)]),
        ("stations", "percentage of stations with wifi for each state", [("North", 50), ("South", 100)]),
        ("stations", "what percentage of slow stations have wifi", [(pytest.approx(66.67, abs=0.01),)]),
        # Words for the rows of any table, years that a verb names, an age without a noun.
        ("verdicts", "how many cases of theft", [(2,)]),
        ("verdicts", "how many were under 20", [(1,)]),
        ("verdicts", "in what year was Ann Reed released", [(1999,)]),
        ("verdicts", "in which year were the most people released", [(1999, 2)]),
        ("verdicts", "median age of people convicted of theft", [(17,)]),
        ("verdicts", "how old was Cora Voss", [(40,)]),
        ("verdicts", "list the offences", [("Arson",), ("Fraud",), ("Theft",)]),
    ],
)
def test_rows_that_are_asked_for(ask, table, question, rows):
    response = ask(table, question)
    assert response.status == "answered", response.answer
    width = len(rows[0])
    assert sorted(tuple(row[:width]) for row in response.rows) == rows


@pytest.mark.parametrize(
    ("table", "question"),
    [
        ("verdicts", "what was Walter Lomax convicted of"),
        ("stations", "how many stations have bike repair"),
        ("fires", "how many houses burned down"),
    ],
)
def test_what_no_column_says_is_declined(ask, table, question):
    assert ask(table, question).status in ("clarify", "no_query")


def test_numbers_of_one_name_join_rows_unless_another_way_leads_there(tmp_path):
    (tmp_path / "games.csv").write_text("gid,season,place\n7,2011,Oslo\n9,2012,Rome\n", encoding="utf-8")
    (tmp_path / "sides.csv").write_text("gid,side,goals\n7,home,2\n7,away,1\n9,home,4\n9,away,0\n", encoding="utf-8")
    with almanaq.connect(str(tmp_path), model="local", cache=False) as connection:
        assert connection.ask("total goals per season").rows == ((2011, 3), (2012, 4))
