"""What people see: queries, cells and figures laid out."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from almanaq.agent.responder import ROWS_SHOWN, Found, LocalResponder, shows_all_rows
from almanaq.agent.response import Response
from almanaq.cli.terminal import break_query, summary_line
from almanaq.suql.result import Evidence, Trace

WORDS = st.sampled_from(
    ["SELECT", "a", "'it''s FROM AND'", '"limit"', "(", ")", "FROM", "r", "WHERE", "AND", "or", "ORDER  BY", "BETWEEN",
     "1", "LIMIT", "left join", "answer(t, 'x AND y')", "=", ";", "'unclosed"]
)  # fmt: skip


@given(st.lists(WORDS, min_size=1).map(" ".join))
def test_layout_changes_white_space_only(suql):
    assert "".join(break_query(suql).split()) == "".join(suql.split())


def test_layout_breaks_before_clauses_but_not_within_them():
    suql = "SELECT a FROM r WHERE b BETWEEN 1 AND 2 AND answer(t, 'from here AND there?') = 'Yes' ORDER BY a LIMIT 3"
    assert break_query(suql).splitlines() == [
        "SELECT a",
        "FROM r",
        "WHERE b BETWEEN 1 AND 2",
        "  AND answer(t, 'from here AND there?') = 'Yes'",
        "ORDER BY a",
        "LIMIT 3",
    ]


def test_a_query_of_several_lines_stays_as_it_was_written():
    assert break_query("SELECT a\nFROM r WHERE b\n") == "SELECT a\nFROM r WHERE b"


def test_the_summary_names_what_is_out_of_the_ordinary():
    assert summary_line(1, Trace()) == "1 row · 0 text calls · 0.00 s"
    odd = summary_line(2000, Trace(text_calls=1, cached_calls=3, unknown_calls=2, exact=False, partial=True))
    assert odd == "2,000 rows · 1 text call · 3 from the cache · 2 unknown · 0.00 s · not exact · partial"


CELLS = st.one_of(st.none(), st.integers(0, 99), st.text("abc 12.", min_size=1, max_size=6), st.floats(0, 9))


@given(st.integers(1, 8), st.data())
def test_rows_are_printed_once(count, data):
    rows = tuple(data.draw(st.tuples(st.text("xyz", min_size=1), CELLS)) for _ in range(count))
    found = Found("q", "things", ("name", "size"), rows)
    reply = Response("answered", "".join(LocalResponder().found(found)), "SELECT", ("name", "size"), rows)
    if count <= ROWS_SHOWN:
        assert shows_all_rows(reply)
    assert not shows_all_rows(replace(reply, answer="I found some."))


def test_a_number_within_another_is_not_told():
    reply = Response("answered", "Built in 1995, for 3.5 million.", "SELECT", ("price",), ((95,),))
    assert not shows_all_rows(reply)
    assert not shows_all_rows(replace(reply, rows=((5,),)))
    assert shows_all_rows(replace(reply, rows=((1995,),)))


def test_a_quote_stands_where_people_count_from_one():
    quote = Evidence("stays", "0", "notes", 0, 0, "Silent.", "is it quiet?", by_row=True)
    assert quote.place == "stays.notes, row 1, passage 1"
    assert replace(quote, by_row=False).place == "stays.notes, key 0, passage 1"
    assert replace(quote, key="(0,7)").place == "stays.notes, row (0,7), passage 1"
    assert quote == replace(quote, by_row=False)  # how a row is counted says nothing of what is quoted


def test_what_was_sent_is_told():
    sent = Trace(columns_sent=(("stays.notes", 4), ("stays.town", 1)))
    assert summary_line(2, sent).endswith("sent to the model: stays.notes (4 cells), stays.town (1 cell)")
