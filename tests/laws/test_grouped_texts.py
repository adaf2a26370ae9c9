"""What a database that groups the rows of a text stage gives: the same rows, quotes and calls."""

from __future__ import annotations

import pytest

import almanaq
from almanaq.engines.duckdb.engine import DuckDBDatabase
from almanaq.models.protocols import Prompt
from almanaq.models.retrying import FailedCall
from almanaq.suql.execution import grouped_texts
from almanaq.suql.execution.grouped_texts import GroupedStage
from almanaq.testing import FunctionModel, ScriptedModel

from .check import RuleSet, check, open_in_one_instance, prepare

SEEDS = (*range(8), 26)


@pytest.fixture
def grouping(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Let DuckDB group rows, however few; give the names of the tables that are made of groups."""
    spread: list[str] = []
    planned = GroupedStage.spread

    def spying(self: GroupedStage, said: tuple[str, ...]) -> object:
        spread.append(self.whole.name)
        return planned(self, said)

    monkeypatch.setattr(DuckDBDatabase, "groups_texts", True, raising=False)
    monkeypatch.setattr(grouped_texts, "FEWEST_ROWS", 1)
    monkeypatch.setattr(GroupedStage, "spread", spying)
    return spread


def test_generated_queries(grouping: list[str]) -> None:
    connect = RuleSet("all", open_in_one_instance).connect
    for seed in SEEDS:
        ready = prepare(seed)
        if not isinstance(ready, str):
            failure, _ = check(ready, connect=connect)
            assert failure is None, str(failure)
    assert len(grouping) > 4


TABLES = {
    "towns": {"id": range(6), "body": ["calm and dry", "wet", "calm and dry", None, "wet", "calm and dry"]},
    "other": {"ref": [0, 2, 4, 5], "grade": ["a", "b", "c", "d"]},
}
SQL = "SELECT id, grade FROM towns JOIN other ON ref = id WHERE answer(body, 'how is it?') LIKE 'calm%' ORDER BY id"


def test_each_row_has_the_quotes_of_its_text(grouping: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    rows, quoted, calls = answered()
    assert rows == [(0, "a"), (2, "b"), (5, "d")]
    assert calls == 2
    assert grouping
    assert [[text for _, text in quotes] for quotes in quoted] == [["calm"]] * 3
    monkeypatch.setattr(grouped_texts, "FEWEST_ROWS", 10**9)
    assert answered() == (rows, quoted, calls)


def answered() -> tuple[list[tuple[object, ...]], list[list[tuple[str, str]]], int]:
    """Return the rows of the query, the key and text of each row's quotes, and the calls that they took."""

    def reply(prompt: Prompt) -> dict[str, object]:
        word = prompt.messages[-1].content.partition("]\n")[2].split()[0]
        return {"value": word, "quotes": [word], "verdicts": {}}

    model = ScriptedModel(reply)
    with almanaq.connect(TABLES, model=model, cache=False) as con:
        result = con.sql(SQL)
    return (
        list(result.rows),
        [[(quote.key, quote.quote) for quote in quotes] for quotes in result.evidence],
        model.calls,
    )


@pytest.mark.parametrize("query", [SQL, "SELECT answer(body, 'how is it?') FROM towns JOIN other ON ref = id"])
def test_each_row_that_lacks_an_answer_is_named(
    grouping: list[str], monkeypatch: pytest.MonkeyPatch, query: str
) -> None:
    def lacking() -> list[tuple[str, str]]:
        def reply(text: str, _: str) -> str:
            if text == "calm and dry":
                raise FailedCall("no", retryable=False, cause="refused")
            return "wet"

        with almanaq.connect(TABLES, model=FunctionModel(reply), cache=False) as con:
            return sorted((each.row, each.reason) for each in con.sql(query).unknown)

    named = lacking()
    assert {row for row, _ in named} >= {"0", "2", "5"}
    assert bool(grouping)
    monkeypatch.setattr(grouped_texts, "FEWEST_ROWS", 10**9)
    assert lacking() == named
