"""What words mean in a catalog: every token is used once, and function words are never values."""

from __future__ import annotations

from datetime import date

import pytest
from hypothesis import given
from hypothesis import strategies as st

import almanaq
from almanaq.agent.linking import CatalogIndex, link

TABLES = {
    "ferries": {
        "ferry_id": [1, 2, 3, 4],
        "name": ["Heron", "Total", "Teal", "Café Noir"],
        "hullKind": ["steel", "wood", "steel", "wood"],
        "unit_price_2021": [4.5, 3.0, 2.5, 7.25],
        "launched": [date(1999, 5, 1), date(2003, 6, 1), date(2011, 7, 1), date(2020, 1, 9)],
        "stops": ["Oslo, Moss", "Moss, Vik", "Oslo, Vik", "Vik, Moss"],
    }
}


@pytest.fixture(scope="module")
def index():
    with almanaq.connect(TABLES, model="local") as con:
        yield CatalogIndex(con.catalog, con.engine.values, lambda: date(2024, 3, 15))


def kinds(question, index):
    links = link(question, index)
    return [(links.text(span), span.kind) for span in links.covers[0] if span.kind != "silent"]


@pytest.mark.parametrize(
    ("question", "found"),
    [
        ("ferries of wood", [("ferries", "table"), ("wood", "value")]),
        ("hull kind of Heron", [("hull kind", "column"), ("Heron", "value")]),
        ("2021 unit price", [("2021 unit price", "column")]),
        ("unit price in 2021", [("unit price in 2021", "column")]),
        ("total unit price", [("total", "aggregate"), ("unit price", "column")]),
        ("ferries with more than 3.5 million", [("ferries", "table"), ("more than 3.5 million", "compare")]),
        ("launched since March 2003", [("launched", "column"), ("since March 2003", "period")]),
        ("the 3 cheapest ferries", [("3 cheapest", "superlative"), ("ferries", "table")]),
        ("cafe noir", [("cafe noir", "value")]),
        ("how many sank", [("how many", "count"), ("sank", "unknown")]),
    ],
)
def test_words_are_linked(question, found, index):
    assert kinds(question, index) == found


def test_items_of_lists_are_values(index):
    (span,) = [s for s in link("stops in Oslo", index).covers[0] if s.kind == "value"]
    assert {(m.column.name, m.value, m.how) for m in span.meanings} == {("stops", "Oslo", "item")}


_WORDS = st.sampled_from(
    "ferries wood Heron total average how many per the of 1999 3 more than cheapest launched zzz , ? in Total".split()
)


@given(st.lists(_WORDS, min_size=1, max_size=12))
def test_a_cover_uses_every_token_once(index, words):
    links = link(" ".join(words), index)
    for cover in links.covers:
        assert [i for span in cover for i in range(span.first, span.last)] == list(range(len(links.tokens)))


@given(st.sampled_from(["total", "max", "latest", "the most", "average", "how many", "per"]), _WORDS)
def test_a_function_word_is_never_a_value(index, word, other):
    links = link(f"{word} {other}", index)
    for span in links.spans:
        assert span.kind != "value" or links.text(span).casefold() != word or links.text(span)[:1].isupper()
