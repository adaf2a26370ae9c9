"""What notebooks show: hostile cells are inert, long results are cut and it is said, and there is a twin as text."""

from __future__ import annotations

from html.parser import HTMLParser

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import almanaq
from almanaq import display
from almanaq.agent.response import Response
from almanaq.errors import QueryError
from almanaq.suql.explain.explain import Explanation, StageLine
from almanaq.suql.explain.why_not import Condition, WhyNot
from almanaq.suql.result import Evidence, Result

HOSTILE = [
    "<script>alert(1)</script>",
    '<img src=x onerror="alert(1)">',
    "</td></table></div><iframe src='https://evil.example'>",
    "[a](javascript:alert(1)) ![b](https://evil.example/x.png)",
    "&lt;b&gt; \u202e \x1b[31m \x00",
    "' onmouseover='alert(1)",
]
TAGS = {"div", "p", "br", "table", "thead", "tbody", "tr", "th", "td", "i", "details", "summary", "ul", "li", "q"}
TAGS |= {"small", "pre"}
ATTRIBUTES = {("class", "almanaq"), ("scope", "col"), ("align", "right")}


class Reader(HTMLParser):
    """Reads HTML; every tag must be one of few, balanced, and have no other attributes."""

    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=True)
        self.open: list[str] = []
        self.text = ""
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag, attrs):
        assert tag in TAGS
        assert set(attrs) <= ATTRIBUTES
        if tag != "br":
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.text += data

    def handle_comment(self, data):
        raise AssertionError("a comment")


def quote(text):
    return Evidence(text, text, text, 0, 0, text, text)


def shown(text):
    """Every value that is shown in notebooks, made of a hostile text."""
    with almanaq.connect({"t": {"n": [1.5], "s": [text], "l": [[text]]}}, cache=False) as connection:
        result = connection.sql('SELECT n, s AS "<b>x", l FROM t')
    table = pa.table({text: [text, None], "n": [1, 2]})
    cited = ((quote(text),), ())
    yield result
    yield Response("answered", text, text, (text, "n"), evidence=cited, searched=text, table=table)
    yield Response("failed", text, error=QueryError(text))
    yield WhyNot((Condition(text, False, (quote(text),)), Condition(text, None)))
    yield Explanation((StageLine("sql", text, text, {"rows": 1}),))


class Printer:
    """What IPython passes to `_repr_pretty_`."""

    def __init__(self) -> None:
        self.said = ""

    def text(self, text: str) -> None:
        self.said += text


def twin(value) -> str:
    if isinstance(value, Result):
        return repr(value)
    printer = Printer()
    value._repr_pretty_(printer, False)
    return printer.said


@pytest.mark.parametrize("text", HOSTILE)
def test_what_is_hostile_is_text(text):
    for value in shown(text):
        read = Reader(value._repr_html_())
        assert " ".join(display.visible(text).split()) in " ".join(read.text.split())
        said = twin(value)
        assert said == display.visible(said)


@given(
    st.lists(
        st.tuples(st.text(max_size=400), st.one_of(st.none(), st.integers(), st.floats(), st.binary())), max_size=30
    )
)
def test_any_rows_give_a_table_of_as_many(rows):
    read = Reader(display.block(display.rows_html(("a", "b"), rows, [()] * len(rows), len(rows))))
    assert read.text.startswith(f"{len(rows)} row" if len(rows) <= 20 else f"20 of {len(rows)} rows")


def test_long_results_are_cut_and_it_is_said_on_top():
    with almanaq.connect({"t": {"n": list(range(812)), "s": ["x" * 5_000] * 812}}, cache=False) as connection:
        result = connection.sql("SELECT n, s FROM t ORDER BY n")
    page = result._repr_html_()
    assert page.index("20 of 812 rows") < page.index("<table>")
    assert page.count("<tr>") == 21
    assert "x" * 299 + "…" in page
    assert "x" * 300 not in page
    assert twin(result).startswith("20 of 812 rows\n")
    assert len(twin(result).splitlines()) == 22


def test_quotes_are_folded_and_named_by_their_row():
    page = display.quotes_html([(), (Evidence("t", "7", "s", 2, 0, "as it was", "how?"),)])
    assert page.startswith("<details><summary>Quotes (1)</summary>")
    assert "row 2: <q>as it was</q> <small>t.s of 7, passage 3: how?</small>" in page


def test_values_are_as_people_read_them():
    assert [display.cell_text(value) for value in (None, ["a", None, 2], b"\x01", 1.5, True, {"a": [1, 2]})] == [
        "", "a; ; 2", "\\x01", "1.5", "True", "a: 1; 2",
    ]  # fmt: skip
    assert "<i>null</i>" in display.table_html(("a",), [(None,)])
