import json
from io import StringIO
from pathlib import Path

import pytest
from typer.testing import CliRunner

from almanaq.cli.app import app
from almanaq.cli.find import show_tables_done
from almanaq.errors import SourceError, UsageError


def run(*arguments: str):
    return CliRunner().invoke(app, list(arguments), catch_exceptions=True)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    tables = tmp_path / "tables"
    tables.mkdir()
    (tables / "films.csv").write_text("year,film\n1950,Rashomon\n1954,Ikiru\n")
    (tables / "rivers.csv").write_text("river,length\nNile,6650\n")
    return tables


def test_index_find_update_find(folder: Path, tmp_path: Path) -> None:
    index = str(tmp_path / "index")
    assert run("index", str(folder), "--out", index).stdout == f"2 tables indexed in {index}\n"
    (hit,) = json.loads(run("find", "how long is the Nile?", "--index", index, "--json").stdout)
    assert hit["table_id"] == "rivers"
    (folder / "lakes.csv").write_text("lake,depth\nBaikal,1642\n")
    assert "1 added, 0 changed, 0 deleted, 2 unchanged" in run("index", str(folder), "--out", index, "--update").stdout
    (hit,) = json.loads(run("find", "depth of Baikal", "--index", index, "--json").stdout)
    assert set(hit) == {"database_id", "table_id", "score", "title"}
    assert hit["table_id"] == "lakes"


def test_an_index_within_the_folder_is_none_of_its_tables(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder)
    for _ in range(2):
        made = run("index", ".", "--out", "index")
        assert (made.stdout, made.stderr) == ("2 tables indexed in index\n", "")
    assert "manifest" not in run("schema", ".").output


def test_an_index_tells_when_no_table_fits(folder: Path, tmp_path: Path) -> None:
    index = str(tmp_path / "index")
    for number in range(12):
        (folder / f"other{number}.csv").write_text(f"year,item{number}\n{1950 + number},thing{number}\n")
    run("index", str(folder), "--out", index)
    asked = ("find", "which year did the zebras of Timbuktu kick most goals?", "--index", index, "--json")
    plain, nearest, bm25 = run(*asked), run(*asked, "--nearest"), run(*asked, "--retriever", "bm25")
    assert "no table fits" in plain.stderr
    assert plain.stdout == "[]\n"
    assert nearest.stderr == bm25.stderr == ""
    assert len(json.loads(nearest.stdout)) == len(json.loads(bm25.stdout)) == 10


def test_an_index_is_searched_by_the_untuned_sum_where_that_is_asked_for(folder: Path, tmp_path: Path) -> None:
    index = str(tmp_path / "index")
    for more in ((), ("--embedder", "lexical")):
        run("index", str(folder), "--out", index, *more)
        found = run("find", "how long is the Nile?", "--index", index, "--retriever", "hybrid-untuned", "--json")
        assert json.loads(found.stdout)[0]["table_id"] == "rivers"


def test_an_index_with_vectors(folder: Path, tmp_path: Path) -> None:
    index = str(tmp_path / "index")
    run("index", str(folder), "--out", index, "--embedder", "lexical", "--language", "german")
    told = json.loads((tmp_path / "index" / "manifest.json").read_text())
    assert (told["embedder"], told["language"]) == ("lexical", "german")
    (folder / "lakes.csv").write_text("lake,depth\nBaikal,1642\n")
    assert "1 added" in run("index", str(folder), "--out", index, "--update").stdout
    asked = ("find", "depths of Baikal", "--index", index, "--json")
    hits = json.loads(run(*asked, "--retriever", "hybrid-untuned").stdout)
    assert hits[0]["table_id"] == "lakes"
    assert len(hits) == 3  # by words alone, only what shares one
    # A second count of the same words is no second opinion: the learned score leaves such vectors out.
    assert [hit["table_id"] for hit in json.loads(run(*asked).stdout)] == ["lakes"]
    assert len(json.loads(run("find", "Baikal", "--index", index, "--retriever", "bm25", "--json").stdout)) == 1


@pytest.mark.parametrize(
    "arguments",
    [
        ("find", "q"),
        ("find", "q", "--index", "y", "--retriever", "rerank"),
        ("index", "x", "--out", "y", "--update", "--language", "german"),
        ("find", "q", "--corpus", "x", "--index", "y"),
        ("find", "q", "--corpus", "x", "--retriever", "oracle"),
        ("find", "q", "--index", "y", "--fields", "title"),
        ("find", "q", "--index", "y", "--explain", "--json"),
        ("find", "q", "--corpus", "x", "--retriever", "target-bm25", "--fields", "title"),
    ],
)
def test_wrong_usage(arguments: tuple[str, ...]) -> None:
    assert isinstance(run(*arguments).exception, UsageError)


def test_a_question_that_is_no_unicode_is_asked_all_the_same(folder: Path) -> None:
    for retriever in ("hybrid", "random"):
        asked = ("find", "\udcff Nile", "--corpus", str(folder), "--retriever", retriever, "--embedder", "lexical")
        assert "rivers" in run(*asked).stdout


def test_find_explains_what_matched(folder: Path) -> None:
    shown = run("find", "Nile", "--corpus", str(folder), "--retriever", "bm25", "--explain").stdout
    assert "row 1, river: Nile" in shown


def test_find_explains_what_an_index_holds(folder: Path, tmp_path: Path) -> None:
    (folder / "orte.csv").write_text("Stadt,Häuser\nKöln,viele\n")
    for name, more in (("english", ()), ("german", ("--language", "german", "--fields", "header,cells"))):
        run("index", str(folder), "--out", str(tmp_path / name), *more)
    asked = ("find", "Rashomon film of 1950", "--explain", "--retriever", "bm25")
    in_memory = run(*asked, "--corpus", str(folder)).stdout.partition("\n\n1.")[2]
    for path in folder.iterdir():
        path.unlink()  # an index needs its tables no more
    assert in_memory
    assert run(*asked, "--index", str(tmp_path / "english")).stdout.partition("\n\n1.")[2] == in_memory
    shown = run("find", "Haus in Köln", "--index", str(tmp_path / "german"), "--explain", "--nearest").stdout
    lines = ("header: Stadt | Häuser", "  matched: haus", "cells: Köln | viele", "  matched: koln")
    assert "\n".join(f"   {line}" for line in lines) in shown
    assert "title:" not in shown


def test_no_index_there(tmp_path: Path, folder: Path) -> None:
    assert isinstance(run("find", "q", "--index", str(tmp_path / "none")).exception, SourceError)
    assert isinstance(run("index", str(folder), "--out", str(tmp_path / "none"), "--update").exception, SourceError)


def test_progress_is_shown_to_a_terminal_only(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = StringIO()
    monkeypatch.setattr("sys.stderr", terminal)
    assert show_tables_done() is None
    monkeypatch.setattr(terminal, "isatty", lambda: True)
    show = show_tables_done()
    show(1, 2)
    show(2, 2)
    assert terminal.getvalue().endswith("2 of 2 tables\n")
