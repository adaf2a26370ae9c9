"""The rows that a short answer is chosen among, over HTTP: what is read, passed over, handed on and skipped."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import pytest
from small_hybrid import HEADER, LINKS, PASSAGES, ROWS

from almanaq.connection import connect
from almanaq.corpus.table import Table, TableId
from almanaq.models.batching import AGREED
from almanaq.models.model_names import ModelSettings, open_models
from almanaq.testing import FunctionModel
from almanaq_bench.hybridqa.best_rows import AllRows, BestRows, FoundRow
from almanaq_bench.hybridqa.generator import open_pipeline
from almanaq_bench.hybridqa.pipeline import Prediction
from almanaq_bench.hybridqa.proposers import is_short
from almanaq_bench.hybridqa.relation import HybridRelation, make_relation, open_relations
from almanaq_bench.linked import LinkedTable
from almanaq_bench.testing import StandInServer, replies_from


def relation() -> HybridRelation:
    table = Table(TableId("0", "race_0"), tuple(HEADER), tuple(map(tuple, ROWS)), title="Race", section="Results")
    links = tuple(tuple(tuple(cell) for cell in row) for row in LINKS)
    return make_relation(LinkedTable(table, links, PASSAGES))


def read(text: str, question: str) -> str | None:
    if "trained" in question:
        return "Liv Dahl" if "Liv Dahl" in text else None
    if "runner" in question:
        return "Yes" if "runner" in text else None
    return "Oslo" if "Oslo" in text else "Stockholm"


def answered(suql: str, question: str = "Who is it ?") -> tuple[Prediction, list[tuple[str, str]]]:
    """Return the prediction of the whole pipeline over HTTP, and (prompt, what it says to the model)
    of every request.
    """
    asked: list[tuple[str, str]] = []
    reading = replies_from(read)

    def reply(request: Mapping[str, Any]) -> Mapping[str, object] | str:
        name = request["response_format"]["json_schema"]["name"]
        asked.append((name, request["messages"][1]["content"]))
        if name == "write":
            return {"reasoning": "", "suql": suql}
        return {"answer": "chosen"} if name == "short_answer" else reading(request)

    with StandInServer(reply) as server:
        settings = ModelSettings(base_url=server.url, api_key="key", batching=AGREED)
        models = open_models("openai:any", embedder="lexical", cache=False, settings=settings)
        return open_pipeline(models).answer(question, relation()), asked


def test_a_row_whose_answer_is_no_information_is_passed_over() -> None:
    found, asked = answered("SELECT answer(\"Athlete_Info\", 'who trained the best of all?') FROM race_0 LIMIT 1")
    assert found.answer == "Liv Dahl"
    texts = [text for name, text in asked if name == "answer"]
    assert len(texts) == len(set(texts)) <= 3


def test_one_short_value_costs_no_call_to_shorten_it() -> None:
    found, asked = answered('SELECT "Athlete" FROM race_0 WHERE "Rank" = 2 LIMIT 1')
    assert (found.answer, [name for name, _ in asked]) == ("Bo Lund", ["write"])


def test_rows_that_cost_nothing_are_handed_on_with_their_cells() -> None:
    found, asked = answered("""SELECT "Athlete" FROM race_0 WHERE "Country" = 'Norway' LIMIT 1""")
    assert [name for name, _ in asked] == ["write", "short_answer"]
    shown = [json.loads(line.partition("] ")[2]) for line in asked[1][1].splitlines() if line.startswith("[row")]
    assert [row["value"] for row in shown] == ["Ada Berg", "Cy Rask"]
    assert shown[1]["cells"] == {"Rank": "3", "Country": "Norway", "Time": "2:15.90"}
    assert found.answer == "chosen"


RUNNER = "answer(\"Athlete_Info\", 'is it a runner?') = 'Yes'"


def test_the_first_verdicts_share_a_request_and_one_row_that_passes_is_enough() -> None:
    _, asked = answered(f'SELECT "Time" FROM race_0 WHERE {RUNNER} LIMIT 1')
    assert [name for name, _ in asked] == ["write", "answer_texts"]


def test_rows_are_filtered_before_what_is_selected_is_read() -> None:
    selected = "answer(\"Country_Info\", 'what is its capital?')"
    found, asked = answered(f"SELECT {selected} FROM race_0 WHERE {RUNNER} LIMIT 1")
    assert [name for name, _ in asked] == ["write", "answer_texts", "answer"]
    assert found.answer in ("Oslo", "Stockholm")


def test_an_order_by_answers_reads_what_is_selected_for_the_first_row_alone() -> None:
    ordered = "ORDER BY answer(\"Country_Info\", 'what is its capital?') LIMIT 1"
    found, asked = answered(f"SELECT answer(\"Athlete_Info\", 'who trained this athlete?') FROM race_0 {ordered}")
    assert [text.count("trained this") for name, text in asked if name != "write"].count(1) == 1
    assert found.answer == "Liv Dahl"


@pytest.mark.parametrize(
    "suql",
    [
        "SELECT count(*) FROM race_0 LIMIT 1",
        'SELECT DISTINCT "Country" FROM race_0 LIMIT 1',
        'SELECT "Country" FROM race_0 GROUP BY 1 LIMIT 1',
        'SELECT "Athlete" FROM race_0 ORDER BY "Rank" DESC',
    ],
)
def test_what_counts_groups_or_lists_runs_as_it_is(suql: str) -> None:
    with connect(open_relations([relation()]), model=FunctionModel(read), cache=False) as connection:
        best = BestRows().find(connection, suql, "?", relation())
        assert best.rows == AllRows().find(connection, suql, "?", relation()).rows
        assert [result.suql for result in best.results] == [suql]


def test_an_order_says_which_row_is_first() -> None:
    suql = 'SELECT "Athlete" FROM race_0 ORDER BY "Rank" DESC LIMIT 1'
    with connect(open_relations([relation()]), model=FunctionModel(read), cache=False) as connection:
        (row,) = BestRows().find(connection, suql, "?", relation()).rows
    assert row == FoundRow("Cy Rask", {"Rank": "3", "Country": "Norway", "Time": "2:15.90"})


@pytest.mark.parametrize(
    ("value", "short"),
    [
        ("Liv Dahl", True),
        ("15 February 1968", True),
        ("4,500", True),
        ("over 4,500", False),
        ("February 15, 1968", True),
        ("Oslo, Norway", False),
        ("Ada Berg (born Lund)", False),
        ("Oslo or Bergen", False),
        ("She was trained by Liv Dahl", False),
        ("a town in the north of the island of Rhodes", False),
    ],
)
def test_what_is_a_name_a_number_or_a_date_is_short(value: str, short: bool) -> None:
    assert is_short(value) is short


@pytest.mark.parametrize(
    ("suql", "told"),
    [
        (
            """SELECT "Time" FROM race_0 WHERE "Country" = 'Norge' AND "Rank" = 1 LIMIT 1""",
            "0 of 3 rows fulfil: country is Norge; the column holds Norway, Sweden; 1 of 3 rows fulfil: rank is 1",
        ),
        (
            "SELECT \"Time\" FROM race_0 WHERE answer('Athlete_Info', 'is it a runner?') = 'Yes' LIMIT 1",
            "answer() is given the words 'Athlete_Info' themselves to read: write \"Athlete_Info\" in double quotes",
        ),
        (
            'SELECT "Time" FROM race_0 WHERE \'runner\' = ANY("Athlete_Info") LIMIT 1',
            "holds prose, which no value is equal to: ask it instead",
        ),
    ],
)
def test_the_next_query_is_written_with_what_kept_the_rows_out(suql: str, told: str) -> None:
    _, asked = answered(suql)
    writes = [text for name, text in asked if name == "write"]
    assert len(writes) == 2  # the same query again is not run again
    assert f"Query: {suql}" in writes[1]
    message = next(line for line in writes[1].splitlines() if line.startswith("Message: "))
    assert (
        set(told.replace(", ", "; ").split("; ")) <= set(message[9:].replace(", ", "; ").split("; ")) or told in message
    )


def test_small_tables_are_shown_whole_as_queries_compare_them() -> None:
    _, asked = answered('SELECT "Athlete" FROM race_0 WHERE "Rank" = 2 LIMIT 1')
    assert '["2", "Bo Lund", "Sweden", "00:02:14.100000"]' in asked[0][1]
