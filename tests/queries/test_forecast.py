"""What a query is about to take is told before its first call, and nothing is asked where that is not agreed to."""

from __future__ import annotations

import io
import sys
from contextlib import nullcontext
from pathlib import Path

import pytest
from typer.testing import CliRunner

import almanaq
from almanaq.cli.app import app
from almanaq.cli.terminal import asking, confirm
from almanaq.errors import BudgetExceeded
from almanaq.models.model_names import ModelSettings, open_models
from almanaq.models.protocols import Models, Price
from almanaq.suql.execution.forecast import Confirmation, Forecast, confirming, watched
from almanaq.testing import FunctionModel
from almanaq_bench.testing import StandInServer, replies_from

ROWS = 90
STAYS = {
    "id": list(range(ROWS)),
    "city": ["Rome" if n % 3 == 0 else "Oslo" for n in range(ROWS)],
    "note": [f"Room {n} is {'calm' if n % 4 else 'loud'}, and its view is that of number {n}." for n in range(ROWS)],
}
CALM = "answer(note, 'is it calm?') = 'Yes'"


def models(server: StandInServer, cache: Path | None = None) -> Models:
    from almanaq.models.batching import AGREED

    settings = ModelSettings(base_url=server.url, api_key="k", batching=AGREED, price=Price(1.0, 4.0), cache_file=cache)
    return open_models("openai:m", embedder="lexical", cache=cache is not None, settings=settings)


@pytest.fixture
def server():
    with StandInServer(replies_from(lambda text, question: "Yes" if "calm" in text else "No")) as running:
        yield running


@pytest.mark.parametrize(
    "where", [CALM, f"city = 'Rome' AND {CALM}", f"city = 'Rome' OR {CALM}", f"NOT (city = 'Rome' OR {CALM})"]
)
def test_without_a_limit_the_forecast_is_what_the_query_takes(server: StandInServer, where: str) -> None:
    told: list[Forecast] = []
    agree = confirming(0, lambda forecast: not told.append(forecast))
    with almanaq.connect({"stays": STAYS}, model=models(server), cache=False) as connection, agree:
        trace = connection.sql(f"SELECT id FROM stays WHERE {where}").trace
    (forecast,) = told
    assert (forecast.texts, forecast.requests) == (trace.text_calls, trace.physical_calls)
    assert forecast.money is not None
    # The server's tokens are words; one of these is about 1.4 of ours.
    assert 1 / 1.3 < forecast.tokens / (1.4 * trace.input_tokens) < 1.3


@pytest.mark.parametrize(("passing", "kept"), [(1, 0), (4, 0), (30, 0), (1000, 0), (4, 12)])
def test_under_a_limit_what_is_taken_is_within_the_forecast(passing: int, kept: int, tmp_path: Path) -> None:
    told: list[Forecast] = []

    def reply(text: str, _: str) -> str:
        return "No" if int(text.split()[1]) % passing else "Yes"

    with (
        StandInServer(replies_from(reply)) as server,
        almanaq.connect({"stays": STAYS}, model=models(server, tmp_path / "c.sqlite")) as connection,
    ):
        connection.sql(f"SELECT id FROM stays WHERE id < {kept} AND {CALM}")
        with confirming(0, lambda forecast: not told.append(forecast)):
            trace = connection.sql(f"SELECT id FROM stays WHERE {CALM} LIMIT 5").trace
    (forecast,) = told
    assert forecast.most is not None
    assert trace.text_calls <= forecast.most.texts <= ROWS
    assert forecast.texts <= forecast.most.texts


@pytest.mark.parametrize("passing", [1, 2, 4, 10])
def test_under_a_limit_replies_that_are_kept_tell_the_share_that_passes(passing: int, tmp_path: Path) -> None:
    told: list[Forecast] = []

    def reply(text: str, _: str) -> str:
        return "No" if int(text.split()[1]) % passing else "Yes"

    ordered = f"SELECT id FROM stays WHERE {CALM} ORDER BY id LIMIT"
    wanted = 60 // passing
    with (
        StandInServer(replies_from(reply)) as server,
        almanaq.connect({"stays": STAYS}, model=models(server, tmp_path / "c.sqlite")) as connection,
    ):
        connection.sql(f"SELECT id FROM stays WHERE id < 30 AND {CALM}")
        with confirming(0, lambda forecast: not told.append(forecast)):
            trace = connection.sql(f"{ordered} {wanted}", options=almanaq.Options(speculation=1)).trace
    (forecast,) = told
    assert 1 / 1.3 <= (30 + forecast.texts) / (30 + trace.text_calls) <= 1.3


@pytest.mark.parametrize(("operator", "limit"), [("=", 10), ("<>", 10), ("=", 40), ("<>", 40)])
def test_under_a_limit_a_text_makes_pairs_with_many(operator: str, limit: int) -> None:
    told: list[Forecast] = []
    a, b = (f"answer({side}.note, 'is it calm or loud?', ARRAY['calm', 'loud'])" for side in "ab")
    pairs = f"SELECT a.id, b.id FROM stays AS a JOIN stays AS b ON a.id < b.id AND {a} {operator} {b}"

    def reply(text: str, _: str) -> str:
        return "calm" if int(text.split()[1]) % 2 else "loud"

    with (
        StandInServer(replies_from(reply)) as server,
        almanaq.connect({"stays": STAYS}, model=models(server), cache=False) as connection,
        confirming(0, lambda forecast: not told.append(forecast)),
    ):
        trace = connection.sql(f"{pairs} LIMIT {limit}").trace
    (forecast,) = told
    assert 1 / 1.5 <= forecast.texts / trace.text_calls <= 1.5


def reading(share: int):
    """Return a reply of which one text in `share` is calm."""
    return replies_from(lambda text, _: "No" if int(text.split()[1]) % share else "Yes")


QUERIES = [
    f"SELECT id FROM stays WHERE {CALM} LIMIT 6",
    f"SELECT id FROM stays WHERE {CALM} ORDER BY id DESC LIMIT 9",
    f"SELECT id FROM stays WHERE {CALM}",
    f"SELECT id FROM stays WHERE city = 'Rome' OR {CALM} LIMIT 50",
    f"SELECT id, summary(note) FROM stays WHERE {CALM} LIMIT 5",
    "SELECT city, count(*) FROM stays WHERE answer(note, 'what is it?') = 'Yes' GROUP BY city",
]


@pytest.mark.parametrize("query", QUERIES)
@pytest.mark.parametrize("share", [1, 2, 7, 100])
def test_the_forecast_ends_at_what_was_spent_and_costs_no_call(query: str, share: int) -> None:
    told: list[Forecast | None] = []
    read: list[int] = []
    options = almanaq.Options(speculation=1, order="table")
    for watch in (nullcontext(), watched(lambda *reached: told.append(reached[-1]))):
        with (
            StandInServer(reading(share)) as server,
            almanaq.connect({"stays": STAYS}, model=models(server), cache=False, options=options) as connection,
            watch,
        ):
            trace = connection.sql(query).trace
        read.append(trace.text_calls)
    assert read[0] == read[1]
    last, tokens = told[-1], trace.input_tokens + trace.output_tokens
    assert last is not None
    assert last.money is not None
    if "LIMIT" in query:  # which may end, or the rows may, without a further reply
        assert last.texts >= trace.text_calls
        assert last.tokens >= tokens
    else:
        assert (last.texts, last.requests, last.tokens) == (trace.text_calls, trace.physical_calls, tokens)
        assert last.money == pytest.approx(trace.money)


@pytest.mark.parametrize("share", [2, 3, 6])
def test_replies_tell_the_share_that_passes(share: int) -> None:
    told: list[tuple[int, Forecast]] = []
    tables = {"stays": {"id": list(range(600)), "note": [f"Room {n} is number {n}." for n in range(600)]}}
    with (
        StandInServer(reading(share)) as server,
        almanaq.connect(tables, model=models(server), cache=False) as connection,
        watched(lambda done, _, __, forecast: told.append((done, forecast)) if forecast else None),
    ):
        options = almanaq.Options(order="table")
        trace = connection.sql(f"SELECT id FROM stays WHERE {CALM} LIMIT {300 // share}", options=options).trace
    forecast = next(forecast for done, forecast in told if done >= 30)
    for expected, taken in (
        (forecast.texts, trace.text_calls),
        (forecast.requests, trace.physical_calls),
        (forecast.tokens, trace.input_tokens + trace.output_tokens),
        (forecast.money, trace.money),
    ):
        assert 1 / 1.3 <= expected / taken <= 1.3


def test_a_forecast_that_passes_the_limit_is_asked_about_once(tmp_path: Path) -> None:
    query = f"SELECT id FROM stays WHERE {CALM} LIMIT 3"
    told: list[Forecast] = []
    with (
        StandInServer(reading(1000)) as server,
        almanaq.connect({"stays": STAYS}, model=models(server, tmp_path / "c.sqlite")) as connection,
    ):
        with (
            confirming(8, lambda forecast: bool(told.append(forecast))),
            pytest.raises(BudgetExceeded, match=r"by its replies so far.*--confirm-above; replies are kept") as stopped,
        ):
            connection.sql(query)
        (forecast,) = told
        assert forecast.begun
        assert forecast.requests > 8
        assert forecast.texts <= ROWS
        assert [row for row in stopped.value.partial.rows if row[0] % 1000] == []
        before = server.ledger.calls
        assert before <= 4
        with confirming(8, lambda forecast: not told.append(forecast)):
            trace = connection.sql(query).trace
        assert len(told) == 2
        assert trace.text_calls + trace.cached_calls == ROWS
        assert trace.cached_calls >= 6
        assert server.ledger.calls - before == trace.physical_calls


@pytest.mark.parametrize(("above", "share"), [(30, 1000), (2, 1)])
def test_what_cannot_take_more_than_the_limit_is_not_asked_about(above: int, share: int) -> None:
    with (
        StandInServer(reading(share)) as server,
        almanaq.connect({"stays": STAYS}, model=models(server), cache=False) as connection,
        confirming(above, lambda _: False),
    ):
        assert connection.sql(f"SELECT id FROM stays WHERE {CALM} LIMIT 3").trace.physical_calls <= above


def test_what_was_not_confirmed_is_not_read_by_a_later_stage_either(server: StandInServer) -> None:
    with StandInServer(reading(15)) as server, almanaq.connect({"stays": STAYS}, model=models(server)) as connection:
        with confirming(9, lambda _: False), pytest.raises(BudgetExceeded, match="was not confirmed") as stopped:
            connection.sql(f"SELECT id, summary(note) FROM stays WHERE {CALM} LIMIT 5")
        assert stopped.value.partial is None
        assert server.ledger.calls <= 4


def test_what_is_not_confirmed_asks_nothing(server: StandInServer) -> None:
    with almanaq.connect({"stays": STAYS}, model=models(server), cache=False) as connection:
        with confirming(10, lambda _: False), pytest.raises(BudgetExceeded, match=r"about 90 texts in 15 requests"):
            connection.sql(f"SELECT id FROM stays WHERE {CALM}")
        assert server.ledger.calls == 0
        with confirming(15, lambda _: False):
            connection.sql(f"SELECT id FROM stays WHERE {CALM}")


@pytest.mark.parametrize(("requests", "money", "asks"), [(50, 0.2, True), (50, 0.05, False), (101, None, True)])
def test_money_is_asked_about_too(requests: int, money: float | None, asks: bool) -> None:
    asked: list[Forecast] = []
    Confirmation(100, lambda forecast: not asked.append(forecast)).check(Forecast(300, requests, 10_000, money))
    assert bool(asked) is asks


def test_replies_that_are_kept_are_neither_forecast_nor_refused(server: StandInServer, tmp_path: Path) -> None:
    query = f"SELECT id FROM stays WHERE {CALM}"
    for again in (False, True):
        agree = confirming(0, lambda forecast, again=again: not again or forecast.requests == 0)
        with almanaq.connect({"stays": STAYS}, model=models(server, tmp_path / "c.sqlite")) as connection, agree:
            result = connection.sql(query, options=almanaq.Options(max_calls=0 if again else None))
        assert len(result.rows) == len([note for note in STAYS["note"] if "calm" in note])
    assert server.ledger.calls == ROWS // 6


def test_without_a_terminal_the_forecast_is_said_and_the_question_goes_on(capsys: pytest.CaptureFixture[str]) -> None:
    assert confirm(Forecast(240, 40, 61_000, None))
    said = "the question takes about 240 texts in 40 requests, 61,000 tokens, price unknown\n"
    assert capsys.readouterr().err == f"almanaq: {said}"
    assert not confirm(Forecast(240, 40, 61_000, None, begun=True), strictly=True)
    assert capsys.readouterr().err == f"almanaq: by its replies so far, {said}"


@pytest.mark.parametrize(
    ("typed", "agreed"), [("y\n", True), ("YES\n", True), ("n\n", False), ("\n", False), ("", False)]
)
def test_at_a_terminal_only_yes_goes_on(typed: str, agreed: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    asked = Terminal()
    monkeypatch.setattr(sys, "stdin", Terminal(typed))
    monkeypatch.setattr(sys, "stderr", asked)
    assert confirm(Forecast(240, 40, 61_000, None), strictly=True) is agreed
    assert asked.getvalue().endswith("Go on? [y/N] ")


@pytest.mark.parametrize("above", [None, 9])
def test_without_a_terminal_a_limit_that_was_set_stops_the_question(
    above: int | None, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("almanaq.cli.terminal.DEFAULT_CONFIRM_ABOVE", 9)
    stops = nullcontext() if above is None else pytest.raises(BudgetExceeded, match="raise --confirm-above")
    with (
        StandInServer(reading(1000)) as server,
        almanaq.connect({"stays": STAYS}, model=models(server), cache=False) as connection,
        asking(above),
        stops,
    ):
        assert connection.sql(f"SELECT id FROM stays WHERE {CALM} LIMIT 3").rows == [(0,)]
    assert capsys.readouterr().err.startswith("almanaq: by its replies so far, the question takes about ")
    assert (server.ledger.calls >= ROWS // 6) == (above is None)


@pytest.mark.parametrize("shown", ["*", "stays", "stays, answer(note, 'is it calm?')"])
def test_what_a_limit_keeps_bounds_the_forecast_however_the_rows_are_shown(shown: str) -> None:
    model = FunctionModel(lambda text, _: "Yes" if "calm" in text else "No")
    query = f"SELECT {shown} FROM stays WHERE answer(note, 'is it calm?') LIKE 'Y%' LIMIT 2"
    with almanaq.connect({"stays": STAYS}, model=model, cache=False) as connection:
        assert len(connection.sql(query, options=almanaq.Options(max_calls=30))) == 2
    assert model.calls <= 8


def test_branches_that_no_row_takes_are_not_expected() -> None:
    model = FunctionModel(lambda text, _: "calm" if "calm" in text else "loud")
    query = "SELECT id FROM stays WHERE CASE WHEN id < 5 THEN answer(note, 'how is it?') END = 'calm'"
    with almanaq.connect({"stays": STAYS}, model=model, cache=False) as connection:
        assert len(connection.sql(query, options=almanaq.Options(max_calls=5))) == 3
    assert model.calls == 5


@pytest.mark.parametrize("form", ["table", "csv"])
@pytest.mark.parametrize("above", [None, 9, 10_000])
def test_sql_keeps_a_limit_that_was_set(
    above: int | None, form: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "stays.csv"
    file.write_text(
        "id,note\n" + "".join(f'{i},"{note}"\n' for i, note in zip(STAYS["id"], STAYS["note"], strict=True))
    )
    flag = [] if above is None else ["--confirm-above", str(above)]
    with StandInServer(reading(1000)) as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.url)
        command = ["sql", f"SELECT id FROM stays WHERE {CALM}", "--db", str(file), "--model", "openai:m", "--no-cache"]
        result = CliRunner().invoke(app, [*command, "--format", form, *flag])
        assert isinstance(result.exception, BudgetExceeded) == (above == 9)
        assert (server.ledger.calls > 0) == (above != 9)
