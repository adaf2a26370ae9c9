"""`almanaq.connect` with a model behind a real server: the trace is the server's bill, whatever went wrong."""

from __future__ import annotations

import contextlib
import threading
import time
from pathlib import Path

import duckdb
import pytest

import almanaq
from almanaq.errors import BudgetExceeded, UsageError
from almanaq.models.batching import AGREED, Batching
from almanaq.models.model_names import ModelSettings, default_batching, open_models
from almanaq.models.protocols import Models, Price
from almanaq.testing import FunctionModel
from almanaq_bench.testing import Faults, StandInServer, replies_from

PRICE = Price(3.0, 9.0)
SUQL = "SELECT id FROM places WHERE answer(notes, 'are dogs welcome?') = 'Yes'"
ROWS = 24


@pytest.fixture
def source(tmp_path: Path) -> Path:
    file = tmp_path / "places.duckdb"
    with duckdb.connect(str(file)) as connection:
        connection.execute("CREATE TABLE places (id INTEGER PRIMARY KEY, notes TEXT, kind ENUM ('pub', 'café'))")
        connection.execute("COMMENT ON COLUMN places.notes IS 'free text: what people wrote'")
        for n in range(ROWS):
            notes = (
                f"Place {n}. " + ("Our dog got a bowl. " if n % 3 == 0 else "No animals at all. ") + "A fine soup. " * 8
            )
            connection.execute("INSERT INTO places VALUES (?, ?, 'pub')", [n, notes])
    return file


def models(server: StandInServer, tmp_path: Path, **settings: object) -> Models:
    chosen = ModelSettings(server.url, "k", cache_file=tmp_path / "r.sqlite", price=PRICE, **settings)  # type: ignore[arg-type]
    return open_models("openai:m", settings=chosen, embedder="lexical")


def dogs(text: str, _: str) -> str:
    return "Yes" if "dog" in text else "No"


RIGHT = [(n,) for n in range(0, ROWS, 3)]


@pytest.mark.parametrize(
    "script",
    [
        [],
        ["not_json"] * 2 + ["off_schema"] * 2,  # repairs
        ["too_many", "error", "empty", "malformed", "length"] * 2,  # retries
        ["not_json"] * 40,  # some calls fail
    ],
)
def test_the_trace_is_the_servers_bill(source: Path, tmp_path: Path, script: list[str]) -> None:
    with StandInServer(replies_from(dogs), faults=Faults(script, retry_after=0.001)) as server:
        with almanaq.connect(str(source), model=models(server, tmp_path)) as connection:
            result = connection.sql(SUQL)
        ledger = server.ledger
    trace = result.trace
    if len(script) < 40:
        assert sorted(result.rows) == RIGHT
        assert trace.unknown_calls == 0
    else:
        assert set(result.rows) <= set(RIGHT)
        assert 0 < trace.unknown_calls < ROWS
        assert not trace.exact
        assert any("a reply not in the form asked for" in warning for warning in trace.warnings)
    assert trace.text_calls == ROWS
    assert trace.physical_calls == ledger.calls == ROWS + (ledger.calls - ROWS)
    assert (trace.input_tokens, trace.output_tokens) == (ledger.input_tokens, ledger.output_tokens)
    assert trace.money == pytest.approx(ledger.money(PRICE))
    assert sum(line.usage.calls for line in trace.spending) == ledger.calls


def test_texts_in_many_parts_are_billed_whole(source: Path, tmp_path: Path) -> None:
    with StandInServer(replies_from(dogs)) as server:
        opened = models(server, tmp_path, context_tokens=1800)
        with duckdb.connect(str(source)) as connection:
            connection.execute("UPDATE places SET notes = notes || repeat('The soup was hot. ', 400) WHERE id < 2")
        with almanaq.connect(str(source), model=opened) as connection:
            trace = connection.sql(SUQL).trace
    assert trace.text_calls == ROWS < trace.physical_calls == server.ledger.calls
    assert trace.money == pytest.approx(server.ledger.money(PRICE))


def test_a_second_run_pays_nothing(source: Path, tmp_path: Path) -> None:
    with StandInServer(replies_from(dogs)) as server:
        for expected in ((ROWS, 0), (0, ROWS)):
            with almanaq.connect(str(source), model=models(server, tmp_path)) as connection:
                trace = connection.sql(SUQL).trace
            assert (trace.text_calls, trace.cached_calls) == expected
            assert trace.physical_calls == expected[0]
        assert trace.money == 0
        assert server.ledger.calls == ROWS


def test_rows_beyond_what_the_model_reads_at_once_are_read_in_parts_and_counted(source: Path, tmp_path: Path) -> None:
    """Parts are calls like any other: counted, kept, and bounded by the budget; a list takes none to combine them."""
    whole = (
        "SELECT answer((SELECT string_agg(notes, E'\\n\\n' ORDER BY id) FROM places), 'are dogs welcome?'){} AS said"
    )
    with StandInServer(replies_from(dogs)) as server:
        with almanaq.connect(str(source), model=models(server, tmp_path, context_tokens=1900)) as connection:
            combined = connection.sql(whole.format(""))
            parts = server.ledger.calls - 1
            listed = connection.sql(whole.format("::text[]"))
            assert server.ledger.calls == 2 * parts + 1
            again = connection.sql(whole.format(""))
            assert connection.sql(SUQL).trace.warnings == ()
        assert parts > 2
        assert [(r.rows, r.trace.text_calls, r.trace.physical_calls) for r in (combined, listed, again)] == [
            ([("Yes",)], 1, parts + 1),
            ([(["Yes", "No"],)], 1, parts),
            ([("Yes",)], 0, 0),
        ]
        for result in (combined, listed, again):
            assert "1 text(s) were longer than the model reads at once" in result.trace.warnings[0]
        few = models(server, tmp_path / "few", context_tokens=1900)
        before = server.ledger.calls
        with almanaq.connect(str(source), model=few, max_calls=parts) as bounded, pytest.raises(BudgetExceeded):
            bounded.sql(whole.format(""))
        assert server.ledger.calls == before + parts


def test_quotes_that_stand_nowhere_are_dropped_and_counted(source: Path, tmp_path: Path) -> None:
    reply = '{"value": "Yes", "verdicts": {"Yes": "yes"}, "quotes": [{"passage": 1, "quote": "a purple elephant"}]}'
    with (
        StandInServer(lambda _: reply) as server,
        almanaq.connect(str(source), model=models(server, tmp_path)) as opened,
    ):
        result = opened.sql(SUQL)
    assert result.trace.dropped_quotes == len(result.rows) == ROWS
    assert not any(result.evidence)


def test_linking_is_in_the_bill_too(source: Path, tmp_path: Path) -> None:
    with StandInServer(replies_from(dogs)) as server:
        with almanaq.connect(str(source), model=models(server, tmp_path)) as connection:
            trace = connection.sql(SUQL + " AND kind = 'inn'").trace
        assert trace.physical_calls == server.ledger.calls >= 1
        assert "link" in {line.operator for line in trace.spending}


@pytest.mark.parametrize("batching", [Batching(texts=6, questions=1), Batching(texts=4, text_tokens=400)])
def test_batching_gives_the_same_rows_for_fewer_calls(source: Path, tmp_path: Path, batching: Batching) -> None:
    with StandInServer(replies_from(dogs)) as server:
        opened = models(server, tmp_path, batching=batching)
        with almanaq.connect(str(source), model=opened) as connection:
            result = connection.sql(SUQL)
            assert sorted(result.rows) == RIGHT
            assert result.trace.text_calls == ROWS
            assert result.trace.physical_calls == server.ledger.calls <= ROWS // 2
            assert result.trace.money == pytest.approx(server.ledger.money(PRICE))
            made = server.ledger.calls
            again = connection.sql(SUQL)
            assert (server.ledger.calls, again.trace.cached_calls) == (made, ROWS)


@pytest.mark.parametrize(
    ("column", "embedder", "condition"),
    [("notes", "lexical", ""), ("kind", "lexical", " AND kind = 'inn'"), ("notes", "openai:e", " LIMIT 1")],
)
def test_private_columns_reach_no_server(
    source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, column: str, embedder: str, condition: str
) -> None:
    schema = tmp_path / "s.toml"
    kind = 'kind = "free_text"\n' if column == "notes" else ""
    schema.write_text(f"[places.columns.{column}]\n{kind}private = true\n")
    with StandInServer(replies_from(dogs)) as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.url)
        model = "local" if embedder.startswith("openai") else models(server, tmp_path)
        opened = almanaq.connect(str(source), model=model, embedder=embedder, schema=str(schema))
        with opened as connection, pytest.raises(almanaq.AlmanaqError, match=f"{column} is private"):
            connection.sql(SUQL + condition)
        assert server.ledger.calls == 0


@pytest.mark.parametrize(("batch", "most"), [(None, ROWS // 2), (1, ROWS), (4, ROWS // 2), (8, ROWS // 3)])
def test_connect_shares_calls_unless_told_otherwise(
    source: Path, monkeypatch: pytest.MonkeyPatch, batch: int | None, most: int
) -> None:
    """The rows and what was asked stay the same; only the requests that the server gets become fewer."""
    with StandInServer(replies_from(dogs)) as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.url)
        with almanaq.connect(str(source), model="openai:m", cache=False, batch=batch) as connection:
            result = connection.sql(SUQL)
    assert sorted(result.rows) == RIGHT
    assert result.trace.text_calls == ROWS
    assert result.trace.physical_calls == server.ledger.calls <= most
    assert server.ledger.calls == ROWS or batch != 1


@pytest.mark.parametrize("batch", [0, -1, 2.5, True, "8"])
def test_a_batch_out_of_range_is_refused(source: Path, batch: object) -> None:
    with pytest.raises(UsageError, match=r"batch: .* whole number of at least 1"):
        almanaq.connect(str(source), model="openai:m", batch=batch)  # type: ignore[arg-type]


@pytest.mark.parametrize("model", ["local", FunctionModel(dogs)])
def test_a_batch_without_a_language_model_is_refused(source: Path, model: str | FunctionModel) -> None:
    with pytest.raises(UsageError, match="makes no calls to share"):
        almanaq.connect(str(source), model=model, batch=8)


def test_what_is_under_way_when_limit_is_met_is_not_paid_for_twice(source: Path, tmp_path: Path) -> None:
    """The reply of the second row comes after the first has met the LIMIT; a later query finds it in the cache."""
    first_is_there = threading.Event()

    def slow(text: str, question: str) -> str:
        if "Place 1." in text:
            first_is_there.wait(5)
            time.sleep(0.05)
        first_is_there.set()
        return dogs(text, question)

    with StandInServer(replies_from(slow)) as server:
        opened = models(server, tmp_path)
        with almanaq.connect(str(source), model=opened, order="table", speculation=2) as connection:
            assert connection.sql(SUQL + " LIMIT 1").rows == [(0,)]
            made = server.ledger.calls
            assert connection.sql(SUQL + " AND id < 2").trace.cached_calls == 2
    assert made == server.ledger.calls == 2


def test_only_what_was_measured_shares_a_call_where_nobody_says(source: Path, tmp_path: Path) -> None:
    """The servers of one's own machine, with their small models, and questions for a value share none."""
    assert default_batching("openai:m") == default_batching("azure:m") == AGREED
    assert default_batching("ollama:m") is default_batching("local") is None
    with (
        StandInServer(replies_from(dogs)) as server,
        almanaq.connect(str(source), model=models(server, tmp_path, batching=AGREED)) as connection,
    ):
        assert sorted(connection.sql(SUQL).rows) == RIGHT
        shared = server.ledger.calls
        connection.sql("SELECT answer(notes, 'what is served?') FROM places")
    assert shared == ROWS // AGREED.texts
    assert server.ledger.calls == shared + ROWS


def test_pairs_share_requests_by_choice(source: Path, tmp_path: Path) -> None:
    pairs = (
        "SELECT a.id, b.id FROM places AS a JOIN places AS b ON a.id < 6 AND b.id < 6 "
        "AND answer(a.id || ' / ' || b.id, 'is one half of the other?') = 'Yes'"
    )

    def halves(text: str, _: str) -> str:
        left, right = map(int, text.split(" / "))
        return "Yes" if left * 2 == right else "No"

    found = {}
    for most in (1, 12):
        with StandInServer(replies_from(halves)) as server:
            opened = models(server, tmp_path / str(most), batching=Batching.of(most))
            with almanaq.connect(str(source), model=opened) as connection:
                result = connection.sql(pairs)
            found[most] = sorted(result.rows), result.trace.text_calls
            assert server.ledger.calls == 36 if most == 1 else server.ledger.calls <= 18
    assert found[1] == found[12] == ([(0, 0), (1, 2), (2, 4)], 36)


@pytest.mark.parametrize("batching", [None, AGREED])
def test_a_query_with_little_money_spends_no_more_and_one_with_enough_ends(
    source: Path, tmp_path: Path, batching: Batching | None
) -> None:
    """Texts that would share a call go alone when only that fits; what one call may cost is what must be there."""

    def bill(money: float | None, place: str) -> tuple[float, int | None]:
        (tmp_path / place).mkdir()
        found = None
        with StandInServer(replies_from(dogs), faults=Faults(latency=0.002)) as server:
            opened = models(server, tmp_path / place, batching=batching)
            connection = almanaq.connect(str(source), model=opened, max_money=money)
            with connection, contextlib.suppress(BudgetExceeded):
                found = len(connection.sql(SUQL).rows)
            return server.ledger.money(PRICE), found

    spent, found = bill(None, "free")
    assert found == len(RIGHT)
    enough = spent + PRICE.of(6000, 1024)
    tight, found = bill(enough, "tight")
    assert found == len(RIGHT)
    assert tight <= enough
    little, found = bill(0.8 * spent, "little")
    assert found is None
    assert little <= 0.8 * spent
    assert bill(0.0, "none") == (0.0, None)


def test_what_is_foreseen_counts_the_requests_that_texts_share(source: Path, tmp_path: Path) -> None:
    with StandInServer(replies_from(dogs)) as server:
        foreseen, columns = [], []
        for batching in (None, AGREED):
            with almanaq.connect(str(source), model=models(server, tmp_path, batching=batching)) as connection:
                for query, found in ((SUQL, foreseen), ("SELECT answer(notes, 'which animals?') FROM places", columns)):
                    stages = connection.explain(query).stages
                    found.append(next(line.predicted for line in stages if "calls" in line.predicted))
    alone, together = foreseen
    assert alone["calls"] == together["calls"] == alone["requests"] == 6 * together["requests"] == ROWS
    assert together["tokens"] < alone["tokens"]
    assert together["money"] < alone["money"]
    assert columns[0] == columns[1]
