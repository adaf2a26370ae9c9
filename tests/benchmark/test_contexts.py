"""What a generator is handed: tables without copies, schemas of the database itself, questions drawn by seed."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from small_hybrid import write_hybrid

from almanaq.corpus.table import Table, TableId
from almanaq.errors import UsageError
from almanaq.models.embedders.base import LexicalEmbedder
from almanaq_bench.config import RunRequest, check_request
from almanaq_bench.generation.context import database_schema, distinct, pack, sqlite_dialect
from almanaq_bench.runner import run
from almanaq_bench.search import FILE, log_progress


def table(name: str, rows: int = 3, title: str = "Race", **more: object) -> Table:
    return Table(TableId("d", name), ("a", "b"), (("x" * 20, "y"),) * rows, title=title, **more)  # type: ignore[arg-type]


def test_copies_take_no_place_in_a_context() -> None:
    tables = [table("one"), table("copy"), table("other", title="Other"), table("longer", rows=4)]
    assert [each.id.table for each in distinct(tables)] == ["one", "other", "longer"]


def test_ten_long_tables_all_get_their_share() -> None:
    packed = pack([table(f"t{n}", 2000, f"t{n}") for n in range(10)], 24_000)
    assert len(packed) == 10
    assert min(map(len, packed)) > 800
    assert len(packed[0]) == max(map(len, packed))


def test_a_schema_shows_the_keys_and_values_that_the_database_has(tmp_path: Path) -> None:
    file = tmp_path / "d.sqlite"
    with closing(sqlite3.connect(file)) as connection, connection:
        connection.execute("CREATE TABLE team (year INT, code CHAR(3), name TEXT, PRIMARY KEY (year, code))")
        connection.execute(
            'CREATE TABLE "match day" (id INTEGER PRIMARY KEY AUTOINCREMENT, y INT, c TEXT, note TEXT,'
            " FOREIGN KEY (y, c) REFERENCES team (year, code))"
        )
        connection.execute("INSERT INTO team VALUES (1990, 'ITA', 'the Blues'' men')")
        connection.execute("INSERT INTO \"match day\" (y, c) VALUES (1990, 'ITA')")
    wrong = {"keys": ("year", "code", "y -> team.year", "c -> team.code")}
    tables = [table("team", **wrong), table("match day", **wrong), table("sqlite_sequence"), table("elsewhere")]
    team, match, elsewhere = database_schema(file, tables)
    assert "PRIMARY KEY (year, code)" in team
    assert "name TEXT,  -- for example 'the Blues'' men'" in team
    assert "FOREIGN KEY (y, c) REFERENCES team (year, code)" in match
    assert match.count("FOREIGN KEY") == 1
    assert "note TEXT," in match
    assert elsewhere.startswith("CREATE TABLE elsewhere")
    assert database_schema(tmp_path / "none.sqlite", [table("team")])[0].startswith("CREATE TABLE team")


def test_questions_are_drawn_by_seed(tmp_path: Path) -> None:
    write_hybrid(tmp_path / "small")
    asked = {}
    for seed in range(6):
        out = tmp_path / f"run{seed}"
        where = ("table-retrieval", "small", tmp_path, "test", "oracle", out, LexicalEmbedder)
        scores = run(RunRequest(*where, sample=1, seed=seed))
        assert scores.queries == 1
        assert f"1 of 2 questions, drawn by seed {seed}" in scores.config.counts
        asked[seed] = (out / "records.jsonl").read_text().partition('"query_id":')[2][:4]
    assert len(set(asked.values())) == 2
    for wrong in ({"sample": 0}, {"sample": 2, "limit": 1}):
        with pytest.raises(UsageError, match="--sample"):
            check_request(RunRequest(*where, **wrong))  # type: ignore[arg-type]


def test_a_long_run_writes_how_far_it_is(tmp_path: Path) -> None:
    told: list[tuple[int, int]] = []
    with log_progress(tmp_path, lambda done, total: told.append((done, total)), seconds=0.005) as tell:
        tell(3, 10)
        while not (tmp_path / FILE).exists() or "3 of 10 questions" not in (tmp_path / FILE).read_text():
            pass
    assert told == [(3, 10)]
    with log_progress(tmp_path / "short", None) as tell:
        tell(1, 1)
    assert not (tmp_path / "short").exists()


@pytest.mark.parametrize(
    ("suql", "rows"),
    [
        ("SELECT n FROM t ORDER BY n DESC", [2, 1, None]),
        ("SELECT n FROM t ORDER BY n", [1, 2, None]),
        ("SELECT n FROM t ORDER BY n DESC NULLS FIRST", [None, 2, 1]),
        ("SELECT n FROM (SELECT n FROM t ORDER BY n DESC LIMIT 2) AS s ORDER BY n", [1, 2]),
    ],
)
def test_nulls_are_last_in_sqlite_too(suql: str, rows: list[int | None]) -> None:
    connection = sqlite3.connect(":memory:")
    connection.execute("CREATE TABLE t AS SELECT 1 AS n UNION ALL SELECT NULL UNION ALL SELECT 2")
    assert [row[0] for row in connection.execute(sqlite_dialect(suql))] == rows
    connection.close()
