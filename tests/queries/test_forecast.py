"""What a query is about to take is told before its first call, and nothing is asked where that is not agreed to."""

from __future__ import annotations

from pathlib import Path

import pytest

import almanaq
from almanaq.cli.terminal import confirm
from almanaq.errors import BudgetExceeded
from almanaq.models.model_names import ModelSettings, open_models
from almanaq.models.protocols import Models, Price
from almanaq.suql.execution.report import Confirmation, Forecast, confirming
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
    assert capsys.readouterr().err == (
        "almanaq: the question takes about 240 texts in 40 requests, 61,000 tokens, price unknown\n"
    )
