"""The sixty hand-written queries: ten of each type, each one that is SQL; and the oracle behind them."""

import re
import sys
from collections import Counter
from pathlib import Path

import pytest
import sqlglot

HERE = Path(__file__).parents[2] / "experiments" / "hybridqa"
BLOCKS = re.findall(r"^-- (\w+) ([0-9a-f]{16})\n(.+?);$", (HERE / "sixty.sql").read_text(), re.MULTILINE | re.DOTALL)


def test_there_are_ten_of_each_type_and_each_is_one_query() -> None:
    assert Counter(kind for kind, _, _ in BLOCKS) == dict.fromkeys(("I", "II", "III", "IV", "V", "VI"), 10)
    assert len({question for _, question, _ in BLOCKS}) == 60
    for _, _, suql in BLOCKS:
        sqlglot.parse_one(suql, read="duckdb")


TEXT = (
    "Ada Berg ( born 1 May 1980 in Oslo , Norway ) is a Norwegian runner , nicknamed The Moose . "
    "She won two titles in 2003 ."
)


@pytest.mark.parametrize(
    ("question", "answer"),
    [
        ("when was this person born?", "1 May 1980"),
        ("in what year was this person born?", "1980"),
        ("in what month was this person born?", "May"),
        ("where was this person born?", "Oslo, Norway"),
        ("in which city was this person born?", "Oslo"),
        ("what is her nationality?", "Norwegian"),
        ("what is her nickname?", "Moose"),
        ("how many titles did she win?", "two"),
        ("was this person born on 1 May 1980?", "Yes"),
        ("was this person born on 2 May 1980?", "No"),
        ("did she win titles in 2003?", "Yes"),
        ("did she win titles in Paris?", "No"),
    ],
)
def test_the_oracle_reads_what_passages_say(monkeypatch: pytest.MonkeyPatch, question: str, answer: str) -> None:
    monkeypatch.setattr(sys, "path", [str(HERE), *sys.path])
    from oracle import read

    assert read(TEXT, question) == answer
