"""Generated SQL: what is wrong, slow, greedy or hostile is counted and explained, and changes nothing."""

from __future__ import annotations

import hashlib
import sqlite3
import time
from collections import Counter
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from almanaq.errors import SourceError
from almanaq_bench.sql.accuracy import (
    Pair,
    execution_accuracy,
    judge_all,
    orders,
    strict_execution_accuracy,
    valid_efficiency,
)
from almanaq_bench.sql.sandbox import Limits, Sandbox

LIMITS = Limits(seconds=60, rows=1000, memory=64 << 20)
SOON = replace(LIMITS, seconds=1)  # for what has no end
ROWS = [(1, "a"), (2, "b"), (2, "b"), (3, None)]
BOMB = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT"


@pytest.fixture(scope="module")
def database(tmp_path_factory: pytest.TempPathFactory) -> Path:
    file = tmp_path_factory.mktemp("databases") / "small ?#.sqlite"
    with closing(sqlite3.connect(file)) as connection, connection:
        connection.execute("CREATE TABLE t (n INTEGER, s TEXT)")
        connection.executemany("INSERT INTO t VALUES (?, ?)", ROWS)
        connection.execute("INSERT INTO t VALUES (4, CAST(x'ff41' AS TEXT))")
    return file


@pytest.fixture(scope="module")
def sandbox():
    with Sandbox(LIMITS) as made:
        yield made


@pytest.fixture(scope="module")
def impatient():
    with Sandbox(SOON) as made:
        yield made


HOSTILE = {
    "nothing": (" ; ", "empty"),
    "no SQL": ("SELEC n FROM t", "error"),
    "unknown column": ("SELECT z FROM t", "error"),
    "writing": ("INSERT INTO t VALUES (9, 'x')", "refused"),
    "dropping": ("DROP TABLE t", "refused"),
    "a table of its own": ("CREATE TEMP TABLE x AS SELECT 1", "refused"),
    "several statements": ("SELECT n FROM t; DELETE FROM t", "refused"),
    "PRAGMA": ("PRAGMA writable_schema = ON", "refused"),
    "PRAGMA as a table": ("SELECT * FROM pragma_database_list", "refused"),
    "ATTACH": ("ATTACH '/etc/passwd' AS x", "refused"),
    "VACUUM INTO": ("VACUUM INTO '/tmp/stolen.sqlite'", "refused"),
    "reading a file": ("SELECT readfile('/etc/passwd')", ("refused", "error")),
    "an extension": ("SELECT load_extension('/tmp/x.so')", ("refused", "error")),
    "a transaction": ("BEGIN EXCLUSIVE", "refused"),
    "EXPLAIN": ("EXPLAIN DELETE FROM t", "refused"),
    "a recursive bomb": (f"{BOMB} count(*) FROM n", "timeout"),
    "a slow join": ("SELECT count(*) FROM t a, t b, t c, t d, t e, t f, t g, t h, t i, t j, t k, t l", "timeout"),
    "too many rows": (f"{BOMB} i FROM n LIMIT 1000000", "rows"),
    "a large value": ("SELECT hex(zeroblob(100000000))", "memory"),
    "much memory": (f"{BOMB} group_concat(printf('%1000d', i)) FROM n WHERE i < 1000000", ("memory", "timeout")),
    "a large sort": (f"{BOMB} randomblob(100000) FROM n ORDER BY 1 LIMIT 5", ("memory", "timeout")),
}


@pytest.mark.parametrize("what", HOSTILE)
def test_hostile_sql_is_stopped_and_explained(sandbox: Sandbox, impatient: Sandbox, database: Path, what: str) -> None:
    sql, kinds = HOSTILE[what]
    chosen = impatient if "timeout" in kinds else sandbox
    before = hashlib.sha256(database.read_bytes()).digest(), sorted(database.parent.iterdir())
    started = time.perf_counter()
    judged = chosen.judge(database, "SELECT n FROM t", sql)
    assert time.perf_counter() - started < 30
    assert judged.reply.kind in kinds
    assert judged.reply.reason
    assert judged.gold.kind == "ok"
    assert not execution_accuracy(judged)
    assert (hashlib.sha256(database.read_bytes()).digest(), sorted(database.parent.iterdir())) == before
    assert execution_accuracy(chosen.judge(database, "SELECT n FROM t", "SELECT n FROM t"))


def test_what_does_not_stop_is_killed(database: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from almanaq_bench.sql import sandbox as module

    monkeypatch.setattr(module, "_GRACE", 0.4)
    # One instruction of SQLite's machine that takes long: no handler gets to look at the clock.
    slow = "SELECT instr(hex(zeroblob(4000000)), hex(zeroblob(2000000)) || '1')"
    with Sandbox(Limits(seconds=0.4)) as made:
        judged = made.judge(database, "SELECT 1", slow)
        assert judged.reply.kind == "crashed"
        assert judged.gold.kind == "ok"
        assert made.judge(database, "SELECT 1", "SELECT 1").same_list


def test_a_database_that_is_none(sandbox: Sandbox, tmp_path: Path) -> None:
    with pytest.raises(SourceError, match="there is no database"):
        sandbox.judge(tmp_path / "x.sqlite", "SELECT 1", "SELECT 1")
    (tmp_path / "x.sqlite").write_text("words, and no database, however long they may be")
    with pytest.raises(SourceError, match="cannot open"):
        sandbox.judge(tmp_path / "x.sqlite", "SELECT 1", "SELECT 1")


values = st.one_of(st.none(), st.integers(-2, 2), st.sampled_from(["a", "b"]), st.sampled_from([1.0, 0.5]))
tables = st.lists(st.tuples(values, values), max_size=4)


def query(rows: list[tuple]) -> str:
    def literal(value: object) -> str:
        return "NULL" if value is None else f"'{value}'" if isinstance(value, str) else str(value)

    lines = [f"SELECT {literal(a)}, {literal(b)}" for a, b in rows]
    return " UNION ALL ".join(lines) if lines else "SELECT 1, 1 WHERE 0"


@given(tables, tables)
def test_rows_are_compared_as_sets_bags_and_lists(sandbox: Sandbox, database: Path, gold, reply) -> None:
    judged = sandbox.judge(database, query(gold), query(reply))
    assert judged.same_set is (set(gold) == set(reply))
    assert judged.same_bag is (Counter(gold) == Counter(reply))
    assert judged.same_list is (gold == reply)
    assert strict_execution_accuracy(judged, query(gold)) <= execution_accuracy(judged)
    assert (valid_efficiency(judged) > 0) is execution_accuracy(judged)


@pytest.mark.parametrize(
    ("sql", "ordered"),
    [
        ("SELECT n FROM t ORDER BY n", True),
        ("SELECT n FROM (SELECT n FROM t ORDER BY n)", False),
        ("SELECT n FROM t UNION SELECT 1 ORDER BY 1", True),
        ("SELECT rank() OVER (ORDER BY n) FROM t", False),
        ("WITH x AS (SELECT 1) SELECT * FROM x ORDER BY 1 LIMIT 1", True),
        ("SELECT n FROM t WHERE s = 'order by' LIMIT 1", False),
    ],
)
def test_order_counts_where_the_gold_query_orders(sql: str, ordered: bool) -> None:
    assert orders(sql) is ordered


def test_a_thousand_pairs_are_judged_in_the_order_they_came(database: Path) -> None:
    pairs = [Pair(database, f"SELECT {n % 7}", f"SELECT {n % 5}") for n in range(1000)]
    judged = judge_all(pairs)
    assert [execution_accuracy(each) for each in judged] == [n % 7 == n % 5 for n in range(1000)]


def test_text_that_is_not_unicode_is_read_all_the_same(sandbox: Sandbox, database: Path) -> None:
    assert sandbox.judge(database, "SELECT s FROM t WHERE n = 4", "SELECT s FROM t WHERE n > 3").same_list
