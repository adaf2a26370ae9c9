"""Pairs under a LIMIT: texts that were asked about already come first, and the rows are right."""

from __future__ import annotations

import pytest

import almanaq
from almanaq.testing import FunctionModel

REVIEWS = 60
PAIRS = "SELECT a.id, b.id FROM reviews AS a JOIN reviews AS b ON a.film = b.film AND a.id < b.id WHERE {} LIMIT 10"
SAME = "answer(a.text, 'good or bad?') = answer(b.text, 'good or bad?')"
OTHER = "answer(a.text, 'good or bad?') <> answer(b.text, 'good or bad?')"
BOTH = "answer(a.text, 'good or bad?') = 'good' AND answer(b.text, 'good or bad?') = 'good'"


def said(text, _=None):
    return "good" if int(text.split()[1]) % 3 else "bad"


def run(condition, **options):
    model = FunctionModel(said)
    table = {"reviews": {"id": range(REVIEWS), "film": ["f"] * REVIEWS, "text": [f"note {i}" for i in range(REVIEWS)]}}
    with almanaq.connect(
        {"reviews": {k: list(v) for k, v in table["reviews"].items()}}, model=model, cache=False
    ) as con:
        options = {"order": "similarity"} | options
        result = con.sql(PAIRS.format(condition), options=almanaq.Options(**options))
        return result.rows, model.calls


@pytest.mark.parametrize(("condition", "most"), [(SAME, 7), (OTHER, 7), (BOTH, 10)])
@pytest.mark.parametrize("speculation", [1, 2])
def test_pairs_of_texts_that_were_asked_come_first(condition, most, speculation):
    rows, calls = run(condition, speculation=speculation)
    in_table_order = run(condition, speculation=speculation, order="table")[1]
    assert len(set(rows)) == 10
    for a, b in rows:
        assert a < b
        kinds = said(f"note {a}"), said(f"note {b}")
        assert {SAME: kinds[0] == kinds[1], OTHER: kinds[0] != kinds[1], BOTH: kinds == ("good", "good")}[condition]
    assert calls <= most
    assert calls <= in_table_order


def test_the_order_is_the_same_at_every_run():
    assert run(SAME)[0] == run(SAME)[0]


def test_a_condition_that_nothing_fulfils_asks_about_each_text_once():
    rows, calls = run("answer(a.text, 'good or bad?') = 'fair' AND answer(b.text, 'good or bad?') = 'fair'")
    assert rows == []
    assert calls <= REVIEWS
