"""Where `local` recognizes next to nothing in the texts of a query, the result says so: "0" would look like "none"."""

from __future__ import annotations

import pytest

import almanaq
from almanaq.testing import FunctionModel

QUERY = "SELECT count(*) FROM t WHERE answer(body, 'was the delivery late?') = 'Yes'"
UNREAD = [f"Box {n} was crushed." for n in range(19)]


@pytest.mark.parametrize(("texts", "told"), [(UNREAD, True), (UNREAD[:8], False), (["Delivery was late."] * 19, False)])
def test_mostly_no_information_is_told(texts: list[str], told: bool) -> None:
    found = [*texts, "The delivery came late."]
    with almanaq.connect({"t": {"body": [f"{text} ({n})" for n, text in enumerate(found)]}}, cache=False) as con:
        result = con.sql(QUERY)
    assert result.rows == [(20 if texts[0].startswith("Delivery") else 1,)]
    assert any("no information in 19 of 20 texts" in warning for warning in result.trace.warnings) is told


def test_nothing_of_the_kind_is_said_of_a_language_model() -> None:
    source = {"t": {"body": UNREAD}}
    with almanaq.connect(source, model=FunctionModel(lambda text, question: None), cache=False) as con:
        assert con.sql(QUERY).trace.warnings == ()
