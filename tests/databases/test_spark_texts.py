"""What is sent to a Spark cluster, and where: without one."""

from __future__ import annotations

import os
import threading
from unittest import mock

import pyarrow as pa
import pytest
from sqlglot import exp

from almanaq.engines.rendering import write_stage
from almanaq.engines.spark import driver
from almanaq.engines.spark import folder as spark_folder
from almanaq.engines.spark.driver import read_spark_url, with_offsets
from almanaq.engines.spark.language import Allowed, SparkLanguage, list_functions, reads_numbered
from almanaq.errors import AlmanaqError, UnsupportedError, UsageError
from almanaq.suql.catalog.relations import Catalog
from almanaq.suql.plan.predicates import truth_output
from almanaq.suql.syntax.spark import decode_text
from almanaq.suql.tree_language import read_tree, write_tree

FUNCTIONS = list_functions(["count", "input_file_name", "java_method", "reflect"], ["default.mine"])
ALLOWED = Allowed(frozenset({("town", "places"), ("spark_catalog", "town", "places"), ("places",)}), FUNCTIONS)


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
        "SELECT unheard_of(1)",
        "SELECT * FROM IDENTIFIER('town.other')",
        "SELECT IDENTIFIER('input_file_name')() FROM places",
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
    with pytest.raises(AlmanaqError):
        ALLOWED.check(sql, "t0_")


def test_tables_of_the_source_and_of_the_session_may_be_read() -> None:
    places = ALLOWED.check("WITH m AS (SELECT 1 AS a) SELECT *, count(1) FROM town.places p, t0_kept k, m", "t0_")
    assert places == {("town", "places")}
    assert reads_numbered("SELECT _row, a FROM t0_rows", {"t0_rows"})
    assert not reads_numbered("SELECT _row, a FROM t0_rows ORDER BY a", {"t0_rows"})
    assert not reads_numbered("SELECT _row, a FROM t0_kept", {"t0_rows"})


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        (r"'\u0041\U0001F600\102'", "A\U0001f600B"),
        (r"'\uD83D\uDE00'", "\U0001f600"),
        (r"'a\0b\Z\q\/'", "a\0b\x1aq/"),
        (r"'\a\f\v\b\n\r\t'", "afv\b\n\r\t"),
        (r"'\%\_'", r"\%\_"),
        (r"'\377\18\u12\x41'", "37718u12x41"),
        (r"'\0011'", "\x011"),
        (r"'\u0027 \047 \u005Cu0041'", r"' ' \u0041"),
        (r"'\\u0041'", r"\u0041"),
        (r"r'\u0041'", r"\u0041"),
        (r'"\u0041\""', 'A"'),
    ],
)
def test_texts_are_read_as_spark_reads_them_and_written_so_that_it_does(written: str, meant: str) -> None:
    for text in (written, write_tree(read_tree(f"SELECT {written}", "spark"), "spark").removeprefix("SELECT ")):
        assert read_tree(f"SELECT {text}", "spark").selects[0].name == meant


@pytest.mark.parametrize(
    ("written", "computed"),
    [
        ("struct(ID, b + 1, c AS Z)", "named_struct('ID', ID, 'col2', b + 1, 'Z', c)"),
        ("struct(s.x, t[0], m['k'])", "named_struct('x', s.x, 'col2', t[0], 'k', m['k'])"),
        ("to_json((a, b))", "TO_JSON(named_struct('a', a, 'b', b))"),
        (
            "arrays_zip(a, f(b))",
            "transform(arrays_zip(coalesce(a), coalesce(f(b))), z -> named_struct('a', z.`0`, '1', z.`1`))",
        ),
        ("(a, b) IN ((1, 2))", "(a, b) IN ((1, 2))"),
    ],
)
def test_fields_keep_their_names_where_columns_have_others(written: str, computed: str) -> None:
    functions = list_functions(["struct", "to_json", "arrays_zip", "f"])
    language = SparkLanguage("spark", Catalog(()), functions, lambda sql, parameters: ())
    made = language.tree(language.read(f"SELECT {written} AS v"), 1)
    assert made.sql("spark", normalize_functions=False).upper() == f"SELECT {computed} AS v".upper()


@pytest.mark.parametrize("call", ["posexplode(a) AS (p, v)", "inline(a)", "stack(2, a, b) AS (p, q)"])
def test_what_makes_several_columns_in_select_is_refused_by_name(call: str) -> None:
    functions = list_functions(["posexplode", "inline", "stack"])
    language = SparkLanguage("spark", Catalog(()), functions, lambda sql, parameters: ())
    with pytest.raises(UnsupportedError, match=rf"{call.partition('(')[0]}\(\) makes several columns.*LATERAL VIEW"):
        language.tree(language.read(f"SELECT {call}"), 1)


def test_a_condition_that_is_computed_as_a_column_keeps_its_null() -> None:
    condition = read_tree("SELECT NOT (x IN (SELECT y FROM t) OR coalesce(x IN (SELECT z FROM t), TRUE))", "spark")
    select = exp.Select(expressions=[truth_output(condition.selects[0], "truth")])
    assert write_stage(select, "spark").sql("spark") == (
        "SELECT NOT (CASE WHEN x IN (SELECT y FROM t) THEN TRUE WHEN NOT x IN (SELECT y FROM t) THEN FALSE END OR "
        "COALESCE(x IN (SELECT z FROM t), TRUE)) AS `truth`"
    )


@pytest.mark.parametrize("character", ["\0", "\a", "\f", "\v", "\b", "\\", "'", "\n", "\U0001f600"])
def test_a_text_is_written_as_spark_reads_it(character: str) -> None:
    written = exp.Literal.string(f"a{character}1").sql("spark")
    assert decode_text(written[1:-1]) == f"a{character}1"


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
    host, pid, mark, at, number = mine.removeprefix(spark_folder.PREFIX).split("_")
    other = f"{spark_folder.PREFIX}{host}_{pid}_{'0' * 8}_{at}_{number}"
    assert spark_folder.is_left_behind(other), "the process of that number is another one"
    elsewhere = f"{spark_folder.PREFIX}{'0' * 8}_{os.getpid()}_{mark}_{at}_{number}"
    assert not spark_folder.is_left_behind(elsewhere)
    old = f"{spark_folder.PREFIX}{'0' * 8}_{pid}_{mark}_{int(at) - 8 * 86_400}_{number}"
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
    remote = object.__new__(driver.Remote)
    remote.client, remote._interrupted, remote._closed = client, set(), threading.Event()
    monkeypatch.setattr(driver, "_LATE_JOB_SECONDS", (0.0, 0.0, 0.0))
    before = set(threading.enumerate())
    remote.interrupt("a tag", under_way=under_way)
    for thread in set(threading.enumerate()) - before:
        thread.join(10)
    asked = [call.args[0].operation_id for call in client._execute.call_args_list]
    assert asked == ([] if under_way else ["an-operation"] * 3)
    assert not remote._interrupted
