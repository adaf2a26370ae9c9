"""What data holds never steers the terminal: every control character, through each command that prints data."""

from __future__ import annotations

import io
import json
import sqlite3
import tomllib
from collections.abc import Callable
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from almanaq.cli import main
from almanaq.display import STEERING, visible
from almanaq_bench.testing import StandInServer

CONTROLS = [
    chr(code) for code in (*range(0x20), 0x7F, *range(0x80, 0xA0), *range(0x202A, 0x202F), *range(0x2066, 0x206A))
]
STEERS = [each for each in CONTROLS if each not in "\t\n"]
BAD = "a" + "b".join(STEERS[1:]) + "c"  # a NUL ends a text in some databases
ESCAPE = "\\x1b"


def test_every_control_is_written_out_and_all_else_stays() -> None:
    for character in STEERS:
        shown = visible(f"a{character}b")
        assert shown == f"a\\x{ord(character):02x}b" if ord(character) < 256 else f"a\\u{ord(character):04x}b"
        assert shown.isprintable()
    rest = "".join(chr(code) for code in range(0x20, 0x3000) if not STEERING.match(chr(code)))
    assert visible("\t\n" + rest) == "\t\n" + rest
    assert visible(visible(BAD)) == visible(BAD)


Run = Callable[..., tuple[int, str, str]]


@pytest.fixture
def almanaq(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Run:
    """Run a command here; give its exit code and both streams, in which nothing may steer."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("ALMANAQ_EMBEDDER", "lexical")
    monkeypatch.setenv("NO_COLOR", "1")

    def run(*arguments: object, lines: str = "") -> tuple[int, str, str]:
        out, err = io.TextIOWrapper(io.BytesIO(), "utf-8", newline=""), io.StringIO(newline="")
        monkeypatch.setattr("sys.argv", ["almanaq", *map(str, arguments)])
        monkeypatch.setattr("sys.stdin", io.StringIO(lines))
        try:
            with redirect_stdout(out), redirect_stderr(err):
                code = main()
        except SystemExit as left:
            code = int(left.code or 0)
        out.flush()
        shown, said = out.buffer.getvalue().decode(), err.getvalue()
        for text in (shown, said):
            assert not [character for character in STEERS if character in text], text
        return code, shown, said

    return run


@pytest.fixture
def database(tmp_path: Path) -> Path:
    """A table whose name, column, keys, enum values and prose all hold every control character."""
    file = tmp_path / "bad.sqlite"
    connection = sqlite3.connect(file)
    name = f'"{BAD}"'
    connection.execute(f"CREATE TABLE {name} (id TEXT PRIMARY KEY, {name} TEXT, notes TEXT)")
    long = "They serve candles at every table, and the soup is good. " * 3
    connection.executemany(
        f"INSERT INTO {name} VALUES (?, ?, ?)", [(f"{n}{BAD}", BAD, f"{long}{BAD} {n}") for n in range(30)]
    )
    connection.commit()
    connection.close()
    return file


def test_queries_show_their_rows_quotes_plans_and_errors(almanaq: Run, database: Path) -> None:
    asked = f"""SELECT id, "{BAD}", notes FROM "{BAD}" WHERE answer(notes, 'is there {BAD}?') = 'Yes' LIMIT 2"""
    rows = f"""SELECT id, "{BAD}", answer(notes, 'what about {BAD}?') FROM "{BAD}" LIMIT 1"""
    for more in ((asked,), (rows,), (asked, "--explain"), (asked, "--analyze"), (rows, "--explain", "--verbose")):
        code, shown, _ = almanaq("sql", *more, "--db", database)
        assert code == 0
        assert ESCAPE in shown
    code, _, said = almanaq("sql", f'SELECT "x{BAD}" FROM "{BAD}"', "--db", database)
    assert (code, ESCAPE in said) == (1, True)
    code, _, said = almanaq("sql", "SELECT 1", "--db", f"none{BAD}.sqlite")
    assert (code, ESCAPE in said) == (1, True)


def test_a_schema_is_still_toml_that_says_the_names(almanaq: Run, database: Path) -> None:
    _, shown, _ = almanaq("schema", database)
    assert set(tomllib.loads(shown)) == {BAD}
    assert BAD in tomllib.loads(shown)[BAD]["columns"]


def test_replies_of_a_model_are_shown(almanaq: Run, database: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def reply(sent: dict) -> object:
        name = sent.get("response_format", {}).get("json_schema", {}).get("name", "")
        if name == "parse":
            suql = f'SELECT id, "{BAD}" FROM "{BAD}" LIMIT 2'
            return {"reasoning": "", "suql": suql, "needs_data": True, "clarify": None}
        return f"Here is {BAD}."

    with StandInServer(reply) as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.url)
        monkeypatch.setenv("OPENAI_API_KEY", "k")
        more = ("--db", database, "--model", "openai:stand-in", "--no-cache")
        code, shown, _ = almanaq("ask", "list some rows", *more)
        assert code == 0
        assert f"Here is a{visible(BAD)[1:9]}" in shown.replace("\n", "")
        code, shown, _ = almanaq("chat", *more, lines="list some rows\n")
        assert (code, ESCAPE in shown) == (0, True)


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """A dataset whose ids, titles, header, cells and questions hold every control character."""
    folder = tmp_path / "data" / "bad"
    folder.mkdir(parents=True)
    tables = [
        {
            "database_id": f"db{BAD}",
            "table_id": f"{name}{BAD}",
            "header": ["film", f"year{BAD}"],
            "rows": [[f"{name} film{BAD}", "1950"]],
            "context": json.dumps({"title": f"{name} films{BAD}"}),
            "split": "test",
        }
        for name in ("east", "west")
    ]
    question = {"query_id": "1", "query": "east films", "answer": ""}
    gold = {"database_id": f"db{BAD}", "table_id": f"east{BAD}"}
    pq.write_table(pa.Table.from_pylist(tables), folder / "corpus.parquet")
    pq.write_table(pa.Table.from_pylist([question | gold]), folder / "queries_test.parquet")
    pq.write_table(pa.Table.from_pylist([question | gold | {"table_id": BAD}]), folder / "queries_lost.parquet")
    return tmp_path / "data"


def test_tables_that_are_found_are_shown(almanaq: Run, data: Path) -> None:
    index = f"index{BAD}"
    for retriever in ("hybrid", "bm25"):
        code, shown, _ = almanaq(
            "find", "east films", "--corpus", data / "bad", "--retriever", retriever, "--nearest", "--explain"
        )
        assert (code, shown.count(ESCAPE) >= 4) == (0, True)
    assert ESCAPE in almanaq("index", data / "bad", "--out", index)[1]
    assert ESCAPE in almanaq("find", "east films", "--index", index, "--nearest", "--explain")[1]
    assert ESCAPE in almanaq("find", "east films", "--index", f"none{BAD}")[2]


def test_runs_their_listing_and_their_errors_are_shown(almanaq: Run, data: Path) -> None:
    def run(dataset: str, split: str, out: str) -> tuple[int, str, str]:
        where = ("--dataset", dataset, "--data-dir", data, "--split", split, "--out", out)
        return almanaq("bench", "run", "--task", "table-retrieval", *where, "--retriever", "bm25")

    (data / f"named{BAD}").symlink_to(data / "bad")
    for out in (f"a{BAD}", f"b{BAD}"):
        code, shown, _ = run(f"named{BAD}", "test", out)
        assert (code, ESCAPE in shown) == (0, True)
    assert ESCAPE in almanaq("bench", "list", "--data-dir", data)[1]
    assert ESCAPE in almanaq("bench", "score", f"a{BAD}")[1]
    assert ESCAPE in almanaq("bench", "compare", f"a{BAD}", f"b{BAD}")[1]
    assert ESCAPE in almanaq("bench", "export", f"a{BAD}", "--out", f"trec{BAD}")[1]
    code, _, said = run("bad", "lost", "lost")
    assert (code, ESCAPE in said) == (1, True)
