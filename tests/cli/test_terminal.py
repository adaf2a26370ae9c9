"""What people see: queries, cells and figures laid out."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from almanaq.cli.rows import cell_text, shorten
from almanaq.cli.terminal import layout, summary_line
from almanaq.suql.result import Trace

WORDS = st.sampled_from(
    ["SELECT", "a", "'it''s FROM AND'", '"limit"', "(", ")", "FROM", "r", "WHERE", "AND", "or", "ORDER  BY", "BETWEEN",
     "1", "LIMIT", "left join", "answer(t, 'x AND y')", "=", ";", "'unclosed"]
)  # fmt: skip


@given(st.lists(WORDS, min_size=1).map(" ".join))
def test_layout_changes_white_space_only(suql):
    assert "".join(layout(suql).split()) == "".join(suql.split())


def test_layout_breaks_before_clauses_but_not_within_them():
    suql = "SELECT a FROM r WHERE b BETWEEN 1 AND 2 AND answer(t, 'from here AND there?') = 'Yes' ORDER BY a LIMIT 3"
    assert layout(suql).splitlines() == [
        "SELECT a",
        "FROM r",
        "WHERE b BETWEEN 1 AND 2",
        "  AND answer(t, 'from here AND there?') = 'Yes'",
        "ORDER BY a",
        "LIMIT 3",
    ]


def test_a_query_of_several_lines_stays_as_it_was_written():
    assert layout("SELECT a\nFROM r WHERE b\n") == "SELECT a\nFROM r WHERE b"


@given(st.text(), st.integers(min_value=10, max_value=50))
def test_shorten_gives_one_line_of_the_beginning(text, limit):
    short = shorten(text, limit)
    assert len(short) <= limit + 2
    assert "\n" not in short
    assert " ".join(text.split()).startswith(short.removesuffix(" …"))


def test_cells_read_as_people_write_them():
    assert [cell_text(v) for v in (None, 4.5, ["a", "b"], True)] == ["", "4.5", "a; b", "True"]


def test_the_summary_names_what_is_out_of_the_ordinary():
    assert summary_line(1, Trace()) == "1 row · 0 text calls · 0.00 s"
    odd = summary_line(2000, Trace(text_calls=1, cached_calls=3, unknown_calls=2, exact=False, partial=True))
    assert odd == "2,000 rows · 1 text call · 3 from the cache · 2 unknown · 0.00 s · approximate · partial"
