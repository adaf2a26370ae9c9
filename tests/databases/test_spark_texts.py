"""What is sent to a Spark cluster, and where: without one."""

from __future__ import annotations

import os
import threading
from unittest import mock

import pyarrow as pa
import pytest
import sqlglot

from almanaq.errors import DatabaseError, UnsupportedError, UsageError
from almanaq.suql.databases import spark_driver, spark_folder
from almanaq.suql.databases.spark_allowed import Allowed, check_text, reads_numbered
from almanaq.suql.databases.spark_types import with_offsets
from almanaq.suql.databases.spark_url import read_spark_url
from almanaq.suql.dialects.write import write_differences

ALLOWED = Allowed(frozenset({("town", "places"), ("spark_catalog", "town", "places"), ("places",)}))
WRITTEN = {
    "SELECT l[1] AS x FROM t": "get(`l`, 0)",
    "SELECT 'x' = ANY(l) AS x FROM t": "EXISTS(`l`, e -> 'x' = e)",
    "SELECT l && ARRAY['x'] AS x FROM t": "EXISTS(ARRAY('x'), e -> COALESCE(array_contains(`l`, e), FALSE))",
    "SELECT btrim(a, 'x') AS x FROM t": "btrim(`a`, 'x')",
    r"SELECT a ~ '^\w+$' AS x FROM t": r"REGEXP_LIKE(`a`, '(?s)^[\\p{L}\\p{Nl}\\p{Nd}",
    r"SELECT a ~* 'k$' AS x FROM t": r"REGEXP_LIKE(`a`, '(?s)[Kk]\\z')",
    r"SELECT regexp_replace(a, 'x|xy', '$\&\2', 'g') AS x FROM t": r"REGEXP_REPLACE(`a`, '(?s)xy|x', '\\$$0')",
    "SELECT array_agg(a ORDER BY b) AS x FROM t": "sort_array(COLLECT_LIST(named_struct(",
    "SELECT string_agg(a, ',' ORDER BY a) AS x FROM t": "listagg(`a`, ',') WITHIN GROUP (ORDER BY `a` NULLS LAST)",
    "SELECT a::numeric AS x FROM t": "DECIMAL(38, 9)",
    "SELECT a::timestamp AS x FROM t": "CAST(`a` AS TIMESTAMP_NTZ)",
    "SELECT a FROM t ORDER BY a": "ORDER BY `a` NULLS LAST",
    "SELECT e FROM t CROSS JOIN unnest(l) AS u(e)": "LATERAL explode(`l`) AS `u`(`e`)",
    "SELECT a FROM t WHERE 'x' = ANY(NULL)": "EXISTS(CAST(NULL AS ARRAY<STRING>), e -> 'x' = e)",
    "SELECT a, sum(b) AS n FROM t GROUP BY ROLLUP (a) ORDER BY max(c)": "MAX(`c`) AS `_k0` FROM `t` GROUP BY ROLLUP",
    "SELECT a, grouping(a) AS g, count(*) AS n, array_agg(b) AS l FROM t WHERE c GROUP BY CUBE (a)": (
        "SELECT NULL AS `_o0`, 1 AS `_o1`, 0 AS `_o2`, NULL AS `_o3` WHERE NOT EXISTS(SELECT 1 FROM `t` WHERE `c`)"
    ),
    "SELECT CASE WHEN a THEN 1 ELSE 2 END AS k FROM t GROUP BY ROLLUP ((CASE WHEN a THEN 1 ELSE 2 END))": (
        "UNION ALL SELECT NULL AS `_o0` WHERE NOT EXISTS"
    ),
    "SELECT CASE WHEN a THEN 1 ELSE 2 END AS k FROM t GROUP BY ROLLUP (a)": "SELECT CASE WHEN FALSE THEN 1 ELSE 2 END",
    "SELECT DISTINCT ON (a) a, b FROM t ORDER BY a, b LIMIT 2": "WHERE `_first` = 1 ORDER BY `_k0`",
}
"""A query of PostgreSQL's, and a part of what Spark is told."""


def written(sql: str) -> str:
    tree = write_differences(sqlglot.parse_one(sql, read="postgres"), "spark")
    return tree.sql("spark")


def test_sets_of_keys_without_that_of_none_have_no_total() -> None:
    for sql in ("SELECT a FROM t GROUP BY a, ROLLUP (b)", "SELECT a FROM t GROUP BY GROUPING SETS ((a), (b))"):
        assert "UNION" not in written(sql)


@pytest.mark.parametrize("sql", WRITTEN)
def test_what_means_something_else_is_written_out(sql: str) -> None:
    assert WRITTEN[sql].replace("AS `x`", "").strip().lower() in written(sql).lower()


def test_a_pattern_whose_first_find_is_not_the_longest_is_refused() -> None:
    with pytest.raises(UnsupportedError, match="longer alternative first"):
        written("SELECT substring(a FROM '(a|ab)(c|bcd)?') FROM t")


@pytest.mark.parametrize(
    "sql",
    [
        "WITH RECURSIVE r AS (SELECT 1 AS n UNION SELECT n + 1 FROM r WHERE n < 3) SELECT * FROM r",
        "SELECT a FROM t ORDER BY a FETCH FIRST 2 ROWS WITH TIES",
        "SELECT a ~ b FROM t",
        "SELECT a ~ '(?n)^x' FROM t",
        "SELECT a::time FROM t",
        "SELECT age(a) FROM t",
        "SELECT regexp_replace(a, 'x', 'y') FROM t",
        "SELECT to_date(a, 'DD Mon YYYY') FROM t",
    ],
)
def test_what_spark_has_not_is_refused_by_name(sql: str) -> None:
    with pytest.raises(UnsupportedError, match="spark"):
        written(sql)


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT * FROM parquet.`/etc`",
        "SELECT * FROM town.other",
        "SELECT * FROM `other`",
        "SELECT reflect('java.lang.Runtime', 'getRuntime')",
        "SELECT java_method('java.lang.System', 'getenv')",
        "SELECT input_file_name() FROM places",
        "SELECT ai_query('model', 'x')",
        "SELECT * FROM read_files('/etc')",
        "SELECT mine(1)",
        "SELECT TRANSFORM(1) USING 'cat' AS (x)",
        "SELECT 1; SELECT 2",
        "DROP TABLE places",
        "INSERT INTO places VALUES (1)",
        "CREATE TABLE x AS SELECT 1",
        "SET spark.sql.runSQLOnFiles = true",
        "ADD JAR '/tmp/x.jar'",
        "WITH x AS (SELECT * FROM town.hidden) SELECT * FROM x",
    ],
)
def test_only_a_select_of_known_tables_and_functions_is_sent(sql: str) -> None:
    with pytest.raises(DatabaseError):
        check_text(sql, ALLOWED, "t0_")


def test_tables_of_the_source_and_of_the_session_may_be_read() -> None:
    places = check_text("WITH m AS (SELECT 1 AS a) SELECT * FROM town.places p, t0_kept k, m", ALLOWED, "t0_")
    assert places == {("town", "places")}
    assert reads_numbered("SELECT _row, a FROM t0_rows", {"t0_rows"})
    assert not reads_numbered("SELECT _row, a FROM t0_rows ORDER BY a", {"t0_rows"})
    assert not reads_numbered("SELECT _row, a FROM t0_kept", {"t0_rows"})


def test_an_address_says_what_is_read_and_hides_its_token() -> None:
    url = read_spark_url("sc://host:15002/;token=s3cret;catalog=main;schema=a,b;folder=s3a://bucket/x;use_ssl=true")
    assert (url.catalog, url.schemas, url.folder) == ("main", ("a", "b"), "s3a://bucket/x")
    assert url.server == "sc://host:15002/;token=s3cret;use_ssl=true"
    assert url.shown == "sc://host:15002"
    assert "s3cret" not in url.hide("no way in with s3cret")
    for wrong in ("sc://", "sc://host/path", "sc://host/;shema=a"):
        with pytest.raises(UsageError):
            read_spark_url(wrong)


def test_only_what_ended_processes_left_is_swept(monkeypatch: pytest.MonkeyPatch) -> None:
    mine = spark_folder.session_name()
    assert not spark_folder.is_left_behind(mine)
    host, pid, born, at, number = mine.removeprefix(spark_folder.PREFIX).split("_")
    other = f"{spark_folder.PREFIX}{host}_{pid}_{int(born) + 1}_{at}_{number}"
    assert spark_folder.is_left_behind(other), "the process of that number is another one"
    elsewhere = f"{spark_folder.PREFIX}{'0' * 8}_{os.getpid()}_{born}_{at}_{number}"
    assert not spark_folder.is_left_behind(elsewhere)
    old = f"{spark_folder.PREFIX}{'0' * 8}_{pid}_{born}_{int(at) - 8 * 86_400}_{number}"
    assert spark_folder.is_left_behind(old)
    assert not spark_folder.is_left_behind("sales")


@pytest.mark.parametrize("lists", [[], [[], None, []]])
def test_what_has_no_value_has_offsets(lists: list[list[str] | None]) -> None:
    nothing = pa.Array.from_buffers(pa.string(), 0, [None, pa.py_buffer(b""), pa.py_buffer(b"")])
    offsets = pa.py_buffer(b"\0" * 4 * (len(lists) + 1) if lists else b"")
    present = pa.py_buffer(bytes([0b101]))
    sent = pa.Array.from_buffers(pa.list_(pa.string()), len(lists), [present, offsets], children=[nothing])
    batch = with_offsets(pa.RecordBatch.from_arrays([sent], names=["l"]))
    assert batch.column(0).to_pylist() == lists
    assert batch.column(0).buffers()[1].size >= 4
    assert batch.column(0).values.buffers()[1].size >= 4


@pytest.mark.parametrize("under_way", [False, True])
def test_what_is_interrupted_before_its_rows_come_is_ended_again(
    monkeypatch: pytest.MonkeyPatch, under_way: bool
) -> None:
    core = pytest.importorskip("pyspark.sql.connect.client.core")
    from pyspark.sql.connect.proto import ExecutePlanRequest

    client = mock.create_autospec(core.SparkConnectClient, instance=True)  # has the names that pyspark's has
    client.interrupt_tag.return_value = ["an-operation"]
    client._execute_plan_request_with_metadata.side_effect = ExecutePlanRequest
    client._execute.side_effect = RuntimeError("it fails, and its jobs with it")
    remote = object.__new__(spark_driver.Remote)
    remote.client, remote._interrupted, remote._closed = client, set(), threading.Event()
    monkeypatch.setattr(spark_driver, "_LATE_JOB_SECONDS", (0.0, 0.0, 0.0))
    before = set(threading.enumerate())
    remote.interrupt("a tag", under_way=under_way)
    for thread in set(threading.enumerate()) - before:
        thread.join(10)
    asked = [call.args[0].operation_id for call in client._execute.call_args_list]
    assert asked == ([] if under_way else ["an-operation"] * 3)
    assert not remote._interrupted
