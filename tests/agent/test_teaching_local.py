"""`local` uses what a person writes beside a source: descriptions, other names, examples; and how sure it has to be."""

from __future__ import annotations

import pytest

import almanaq
from almanaq.errors import UsageError

SHOPS = "shop,plc,amt\nNorth Gate,Oslo,120\nHarbour,Bergen,80\nMill,Oslo,40\n"
SCHEMA = """
[outlets]
description = "Where we sell; also called kiosks, stores"
[outlets.columns.plc]
description = "City of the shop"
[outlets.columns.amt]
description = "Sales per day; also called turnover or takings"
"""
EXAMPLES = """
[[example]]
question = "how are we doing in Oslo?"
suql = "SELECT SUM(amt) FROM outlets WHERE plc = 'Oslo'"
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    made = tmp_path_factory.mktemp("taught") / "shops"
    made.mkdir()
    (made / "outlets.csv").write_text(SHOPS)
    return made


def asked(folder, question, **options):
    with almanaq.connect(str(folder), cache=False, **options) as connection:
        return connection.ask(question)


@pytest.mark.parametrize(
    ("question", "rows"),
    [
        ("total turnover", [(240,)]),
        ("average takings per city", [("Bergen", 80.0), ("Oslo", 80.0)]),
        ("how many kiosks are in Oslo", [(2,)]),
        ("which store has the highest turnover", [("North Gate", 120)]),
    ],
)
def test_other_names_of_the_schema_file_are_understood(folder, tmp_path, question, rows):
    schema = tmp_path / "named.toml"
    schema.write_text(SCHEMA)
    assert asked(folder, question).rows == ()
    found = sorted(asked(folder, question, schema=str(schema)).rows)
    assert [set(row) for row in rows] == [set(row) & set(wanted) for row, wanted in zip(found, rows, strict=True)]


def test_an_example_is_known_again_with_other_words_that_ask_nothing_and_another_value(folder, tmp_path):
    examples = tmp_path / "examples.toml"
    examples.write_text(EXAMPLES)
    assert asked(folder, "how are we doing in Oslo?").rows == ()
    for question, total in (("How are we doing in Oslo, please?", 160), ("how are we doing in Bergen?", 80)):
        assert asked(folder, question, examples=str(examples)).rows == ((total,),)
    assert asked(folder, "how are we doing in Paris?", examples=str(examples)).rows == ()


def test_confidence_decides_how_sure_a_reply_has_to_be(folder):
    question = "how many outlets are there"
    assert asked(folder, question).status == "answered"
    assert asked(folder, question, confidence=1).status == "clarify"
    with almanaq.connect(str(folder), cache=False) as connection:
        assert connection.ask(question, options=almanaq.Options(confidence=1)).status == "clarify"
        assert connection.ask(question).status == "answered"
    with pytest.raises(UsageError, match="confidence: 2 is out of range"):
        asked(folder, question, confidence=2)
