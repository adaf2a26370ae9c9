import json
import shutil
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

from almanaq.cli.app import app
from almanaq.errors import BudgetExceeded, ModelError, UsageError
from almanaq_bench.testing import StandInServer


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("data") / "films"
    folder.mkdir()
    context = json.dumps({"table_page_title": "Films of [Kurosawa]"})
    base = {"database_id": "db", "header": ["Year", "Film"], "split": "test"}
    tables = [
        {**base, "table_id": "a", "rows": [["1950", "Rashomon"]], "context": context},
        {**base, "table_id": "b", "rows": [["1941", "Citizen Kane"]], "context": "{}"},
    ]
    question = {"query_id": "1", "query": "Kurosawa in 1950", "database_id": "db", "table_id": "a", "answer": ""}
    pq.write_table(pa.Table.from_pylist(tables), folder / "corpus.parquet")
    pq.write_table(pa.Table.from_pylist([question]), folder / "queries_test.parquet")
    return folder.parent


def call(*arguments: str):
    result = CliRunner().invoke(app, arguments)
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result


def run(data: Path, out: Path, *more: str):
    where = ("--dataset", "films", "--data-dir", str(data), "--split", "test", "--out", str(out))
    return call("bench", "run", "--task", "table-retrieval", *where, "--retriever", "bm25", *more)


def test_find_prints_the_contracts_json(data: Path) -> None:
    result = call("find", "films by Kurosawa", "--corpus", str(data / "films"), "--retriever", "bm25", "--json")
    hit = json.loads(result.stdout)[0]
    assert list(hit) == ["database_id", "table_id", "score", "title"]
    assert (hit["database_id"], hit["table_id"], hit["title"]) == ("db", "a", "Films of [Kurosawa]")


def test_find_prints_a_table_for_people(data: Path) -> None:
    shown = call("find", "films by Kurosawa", "--corpus", str(data / "films"), "--retriever", "bm25").stdout
    assert "Films of [Kurosawa]" in shown
    assert "Year, Film" in shown


def test_find_says_when_nothing_fits(data: Path) -> None:
    arguments = ("find", "zzz", "--corpus", str(data / "films"), "--retriever", "bm25")
    assert json.loads(call(*arguments, "--json").stdout) == []
    assert "no table fits" in call(*arguments).stdout


def test_find_lists_the_nearest_where_none_fits_only_when_asked(data: Path) -> None:
    arguments = (
        "find",
        "Which enzyme splits lactose in films?",
        "--corpus",
        str(data / "films"),
        "--embedder",
        "lexical",
        "--retriever",
        "rerank",
    )
    refused = call(*arguments, "--json")
    assert json.loads(refused.stdout) == []
    assert "no table fits" in refused.stderr
    assert json.loads(call(*arguments, "--json", "--nearest").stdout)


def test_find_explains_only_what_declared_fields_show(data: Path) -> None:
    with pytest.raises(UsageError, match="a text of its own"):
        call("find", "films", "--corpus", str(data / "films"), "--retriever", "target-bm25", "--explain")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((" ",), "the question is empty"),
        (("q", "-k", "0"), "-k must be 1 or more"),
        (("q", "--fields", "titel"), "did you mean 'title'"),
        (("q", "--retriever", "bm"), "unknown retriever 'bm'"),
    ],
)
def test_find_refuses_wrong_usage(data: Path, arguments: tuple[str, ...], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        call("find", *arguments, "--corpus", str(data / "films"))


def test_run_and_score_print_the_same_json(data: Path, tmp_path: Path) -> None:
    ran = json.loads(run(data, tmp_path / "out", "--k", "1,2", "--json").stdout)
    assert ran["metrics"]["recall@1"] == 1
    assert "recall@2" in ran["metrics"]
    assert "recall@10" not in ran["metrics"]
    assert json.loads(call("bench", "score", str(tmp_path / "out"), "--json").stdout) == ran


def test_run_prints_measures_for_people(data: Path, tmp_path: Path) -> None:
    shown = run(data, tmp_path / "out").stdout
    assert "1 questions, 2 tables" in shown
    assert "recall@10" in shown


def test_cutoffs_must_be_numbers(data: Path, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="--k takes numbers between commas, not '1;5'"):
        run(data, tmp_path / "out", "--k", "1;5")


def test_list_says_what_every_retriever_sees() -> None:
    listed = json.loads(call("bench", "list", "--json").stdout)
    assert {entry["name"] for entry in listed["retrievers"]} >= {"none", "random", "oracle", "bm25", "dense", "hybrid"}
    assert all(entry["sees"] for entry in listed["retrievers"])
    assert "fetaqa" in {entry["name"] for entry in listed["datasets"]}
    shown = call("bench", "list").stdout
    assert "table-retrieval" in shown
    assert "train: 41,469 questions" in shown  # what is not known is not said
    assert "test: 1,695 tables, 12,779 questions" in shown


def test_list_says_what_a_folder_holds(data: Path) -> None:
    (data / "broken.yaml").write_text("corpus: [")
    try:
        listed = json.loads(call("bench", "list", "--data-dir", str(data), "--json").stdout)["at_hand"]
    finally:
        (data / "broken.yaml").unlink()
    assert [entry["name"] for entry in listed] == ["broken", "films"]
    assert "cannot be read" in listed[0]["fault"]
    assert listed[1]["splits"] == ["test"]
    assert "at hand: films: test" in call("bench", "list", "--data-dir", str(data)).stdout


@pytest.fixture
def both(data: Path, tmp_path: Path) -> Path:
    """The films, and one question with words of both tables: two candidates to rank."""
    folder = tmp_path / "both" / "films"
    shutil.copytree(data / "films", folder)
    question = {"query_id": "1", "query": "Kurosawa, Kane", "database_id": "db", "table_id": "a", "answer": ""}
    pq.write_table(pa.Table.from_pylist([question]), folder / "queries_test.parquet")
    return folder.parent


def test_questions_that_a_reranking_model_does_not_rank_are_counted(
    both: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "k")
    judged = ("--retriever", "rerank:openai:stand-in", "--embedder", "lexical")
    with StandInServer(lambda _: {"order": [1]}) as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.url)
        done = run(both, tmp_path / "run", *judged, "--json")
        again = run(both, tmp_path / "run", *judged, "--json", "--resume")
        calls = server.ledger.calls
        corpus = ("--corpus", str(both / "films"), "--nearest", "--json")
        found = call("find", "Kurosawa, Kane", *corpus, *judged)
        plain = call("find", "Kurosawa, Kane", *corpus, "--retriever", "rerank", "--embedder", "lexical")
    scored = call("bench", "score", str(tmp_path / "run"), "--json")
    for each in (done, again, scored):
        assert "1 of 1 questions keep the order" in each.stderr
        (warning,) = json.loads(each.stdout)["warnings"]
        assert "rerank:openai:stand-in" in warning
        assert "tables" in warning
    assert calls == 2  # the question and its repair; not again
    assert "were not reranked" in found.stderr
    assert json.loads(found.stdout) == json.loads(plain.stdout)


def test_a_reranking_model_that_cannot_be_asked_ends_the_run(
    both: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "k")
    judged = ("--retriever", "rerank:openai:refused", "--embedder", "lexical")
    with StandInServer(lambda _: {"tables": [1]}, key="another") as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.url)
        with pytest.raises(ModelError, match="key"):
            run(both, tmp_path / "refused", *judged)
        with pytest.raises(BudgetExceeded):
            run(both, tmp_path / "stopped", *judged, "--max-calls", "0")


@pytest.mark.parametrize("given", [(), ("--generator", "local"), ("--evidence", "--context-k", "10")], ids=" ".join)
def test_flags_that_do_nothing_are_told(data: Path, tmp_path: Path, given: tuple[str, ...]) -> None:
    said = run(data, tmp_path / "out", *given).stderr
    assert ("no effect here" in said) == bool(given)
    assert all(flag in said for flag in given if flag.startswith("--"))


def test_the_agent_takes_the_model_that_auto_does(monkeypatch):
    from almanaq_bench.cli.run import name_model

    monkeypatch.setenv("OPENAI_BASE_URL", "http://127.0.0.1:9/v1")
    monkeypatch.setenv("OPENAI_MODEL", "any")
    assert name_model("agent") == "agent:openai:any"
    assert name_model("agent:local") == "agent:local"
    monkeypatch.delenv("OPENAI_BASE_URL")
    monkeypatch.setenv("ALMANAQ_LOCAL_SERVERS", "none")
    assert name_model("agent") == "agent"
