"""A query is refused for its budget only where the calls that are new are above it; what a cache serves is free."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

import almanaq
from almanaq.errors import BudgetExceeded
from almanaq.models.batching import Batching
from almanaq.models.model_names import ModelSettings, open_models
from almanaq.models.protocols import Models
from almanaq.testing import FunctionModel
from almanaq_bench.testing import StandInServer, replies_from

URGENT = "answer(body, 'urgent?') = 'Yes'"
FORMS = (
    f"SELECT id FROM t WHERE {URGENT}",
    f"SELECT id FROM t WHERE {URGENT} LIMIT 30",
    "SELECT id, answer(body, 'how soon?') FROM t",
    f"SELECT id, summary(body) FROM t WHERE kind <> 'a' AND {URGENT}",
    f"SELECT kind FROM k WHERE EXISTS (SELECT 1 FROM t WHERE t.kind = k.kind AND {URGENT})",
    f"SELECT kind, count(*) FROM t WHERE {URGENT} OR answer(body, 'rude?') = 'Yes' GROUP BY kind",
    "SELECT kind FROM k WHERE kind IN (SELECT kind FROM t WHERE answer(body, 'is ' || kind || ' late?') = 'Yes')",
)


def tables(seed: int) -> dict[str, dict[str, list[object]]]:
    """Draw texts of which some are blank, some equal."""
    draws = random.Random(seed)
    texts = [f"parcel {n} is {'late' if n % 3 else 'here'}" for n in range(20)] + [None, " ", ""]
    rows = draws.randint(20, 40)
    t = {"id": [*range(rows)], "kind": draws.choices("abc", k=rows), "body": draws.choices(texts, k=rows)}
    return {"t": t, "k": {"kind": ["a", "b", "c"]}}


@pytest.fixture(scope="module")
def server():
    with StandInServer(replies_from(lambda text, _: "Yes" if "late" in text else "No")) as server:
        yield server


def models(server: StandInServer, folder: Path, batch: int) -> Models:
    file, batching = folder / "replies.sqlite", Batching(texts=batch)
    settings = ModelSettings(server.url, "k", cache_file=file, batching=batching)
    return open_models("openai:m", settings=settings, embedder="lexical")


@pytest.mark.parametrize("batch", [1, 4])
@pytest.mark.parametrize("query", FORMS)
def test_what_was_answered_before_is_never_refused(
    query: str, batch: int, server: StandInServer, tmp_path: Path
) -> None:
    source = tables(FORMS.index(query))
    with almanaq.connect(source, model=models(server, tmp_path, batch)) as con:
        first = con.sql(query)
        assert first.trace.text_calls
    with almanaq.connect(source, model=models(server, tmp_path, batch), max_calls=0) as con:
        before = server.ledger.calls
        again = con.sql(query)
        assert sorted(again.rows) == sorted(first.rows)
        assert again.trace.text_calls == 0
        assert server.ledger.calls == before


@pytest.mark.parametrize("query", [FORMS[0], FORMS[2]])
def test_a_row_that_is_new_costs_its_own_calls(query: str, server: StandInServer, tmp_path: Path) -> None:
    source = tables(1)
    with almanaq.connect(source, model=models(server, tmp_path, 1)) as con:
        con.sql(query)
    source["t"] = {name: [*values, *values[:1]] for name, values in source["t"].items()}
    source["t"]["body"][-1] = f"parcel 100 is late, {query}"
    with almanaq.connect(source, model=models(server, tmp_path, 1), max_calls=1) as con:
        assert con.sql(query).trace.text_calls == 1
    source["t"]["body"][-1] = f"parcel 200 is late, {query}"
    with (
        almanaq.connect(source, model=models(server, tmp_path, 1), max_calls=0) as con,
        pytest.raises(BudgetExceeded, match="about 1 model call"),
    ):
        con.sql(query)


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("query", [FORMS[0], FORMS[2]])
def test_the_forecast_is_the_number_of_calls(query: str, seed: int) -> None:
    """Of equal texts one is asked about, of blank ones none: the calls are the least budget that is enough."""
    source = tables(seed)
    asked = len({text for text in source["t"]["body"] if text is not None and str(text).strip()})
    model = FunctionModel(lambda text, _: "Yes" if "late" in text else "No")
    with almanaq.connect(source, model=model, cache=False, max_calls=asked) as con:
        assert con.sql(query).trace.text_calls == asked
    with (
        almanaq.connect(source, model=model, cache=False, max_calls=asked - 1) as con,
        pytest.raises(BudgetExceeded, match=f"about {asked} model calls"),
    ):
        con.sql(query)


def test_no_more_than_the_candidates_are_expected() -> None:
    source = {"t": {"id": [*range(300)], "body": [f"parcel {n} is late" for n in range(300)]}}
    model = FunctionModel(lambda *_: "Yes")
    with almanaq.connect(source, model=model, cache=False, max_calls=20, candidates=20) as con:
        assert con.sql(FORMS[0]).trace.text_calls == 20


@pytest.mark.parametrize("rows", [300, 3000])
def test_of_exists_one_text_for_each_row_is_expected(rows: int) -> None:
    """How many more it takes is not known before: the budget stops it, and nothing is refused that may do."""
    source = {
        "k": {"kind": [*range(10)]},
        "t": {"kind": [n % 10 for n in range(rows)], "body": [f"parcel {n} is late" for n in range(rows)]},
    }
    model = FunctionModel(lambda *_: "Yes")
    with almanaq.connect(source, model=model, cache=False, max_calls=10, speculation=1.0) as con:
        assert len(con.sql(FORMS[4]).rows) == 10
    with (
        almanaq.connect(source, model=model, cache=False, max_calls=9) as con,
        pytest.raises(BudgetExceeded, match="about 10 model calls"),
    ):
        con.sql(FORMS[4])
