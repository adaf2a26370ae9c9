"""Evidence names the row that its quote stands in: row n of table t holds the words, whatever the query is."""

from __future__ import annotations

import csv
import random
import sqlite3
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import duckdb
import pytest

import almanaq
from almanaq.errors import PrivateColumnError, UnknownNameError, UsageError
from almanaq.mcp.tools import Tools
from almanaq.models.protocols import Quote, TextCall, TextReply
from almanaq.suql.result import Evidence
from almanaq.testing import FunctionModel
from engines import PostgresServer

SO = "answer(text, 'is it so?') = 'Yes'"
KINDS = ("tables", "csv", "sqlite", "duckdb")
Tables = dict[str, dict[str, list[str]]]


class Quoting(FunctionModel):
    """Says Yes of most texts, and quotes each of them whole."""

    def __init__(self) -> None:
        super().__init__(lambda text, question: "No" if hash_of(text + question) % 4 == 0 else "Yes")

    async def read(self, call: TextCall) -> TextReply:
        reply = await super().read(call)
        return replace(reply, quotes=tuple(Quote(n, 0, passage) for n, passage in enumerate(call.passages)))


def hash_of(text: str) -> int:
    return sum(ord(letter) * place for place, letter in enumerate(text, 1))


def draw(chance: random.Random) -> Tables:
    """Return two tables without a key, whose texts are all different, and in no order."""
    found: Tables = {}
    for name in ("jobs", "skills"):
        rows = chance.randint(2, 6)
        texts = [f"{name} text {chance.getrandbits(40):x}" for _ in range(rows)]
        found[name] = {"kind": [chance.choice("ab") for _ in range(rows)], "text": texts}
    return found


def query(chance: random.Random) -> str:
    """Return a query that asks about texts of one table or of both, somewhere in it."""
    j, s = "answer(j.text, 'is it so?') = 'Yes'", "answer(s.text, 'is it short?') = 'Yes'"
    pair = "answer(j.text, 'is ' || s.text || ' needed?') = 'Yes'"
    some = chance.choice(["j.kind = 'a'", "j.text > 'jobs text 8'", "true"])
    join = chance.choice(["JOIN", "LEFT JOIN", "RIGHT JOIN", "FULL JOIN"])
    tail = chance.choice(["", " ORDER BY j.text DESC", " LIMIT 2", " ORDER BY j.text LIMIT 3"])
    return chance.choice(
        [
            f"SELECT j.text FROM jobs j WHERE {some} AND {j}{tail}",
            f"SELECT j.text, summary(j.text) FROM jobs j WHERE {some}{tail}",
            f"SELECT j.text, s.text FROM jobs j {join} skills s ON j.kind = s.kind AND {pair}",
            f"SELECT j.text, s.text FROM jobs j {join} skills s ON {some} AND {s}",
            f"SELECT j.text FROM skills s, jobs j WHERE {some} AND {j} AND {s}{tail}",
            f"SELECT a.text FROM jobs a, jobs j WHERE a.kind < j.kind AND {j} AND answer(a.text, 'old?') = 'Yes'",
            f"SELECT s.text, l.x FROM skills s, LATERAL (SELECT j.text || s.kind AS x FROM jobs j WHERE {pair}) l",
            f"SELECT s.text FROM skills s WHERE {s} AND EXISTS (SELECT 1 FROM jobs j WHERE {some} AND {pair})",
            f"SELECT s.text FROM skills s WHERE s.kind IN (SELECT j.kind FROM jobs j WHERE {some} AND {j})",
            f"WITH jobs AS (SELECT * FROM jobs j WHERE {some}) SELECT j.text FROM jobs j WHERE {j}{tail}",
            f"WITH chosen AS (SELECT j.text FROM jobs j WHERE {some} AND {j}) SELECT * FROM chosen",
            f"WITH chosen AS (SELECT DISTINCT j.text FROM jobs j) SELECT text FROM chosen j WHERE {j}",
            f"SELECT * FROM (SELECT j.text, j.kind FROM jobs j WHERE {some} ORDER BY j.text LIMIT 3) j WHERE {j}",
            f"SELECT j.kind, count(*) FROM jobs j WHERE {some} AND {j} GROUP BY j.kind",
            f"SELECT j.kind, summary(string_agg(j.text, ' ')) FROM jobs j WHERE {j} GROUP BY j.kind",
            f"SELECT j.text FROM jobs j WHERE {j} UNION ALL SELECT s.text FROM skills s WHERE {s}",
            f"SELECT v.text FROM backwards v JOIN jobs j ON j.kind = v.kind AND {j} AND answer(v.text, 'so?') = 'Yes'",
        ]
    )


@pytest.fixture(params=KINDS)
def source(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[str, Path | Tables, Tables]:
    """A source of each kind with the tables, and where an engine has views, one that turns their rows about."""
    tables = draw(random.Random(request.param))
    made: Path | Tables = tmp_path / f"shop.{request.param}"
    view = "CREATE VIEW backwards AS SELECT * FROM jobs ORDER BY text DESC"
    if request.param == "csv":
        made = tmp_path
        for name, columns in [*tables.items(), ("backwards", tables["jobs"])]:
            with (tmp_path / f"{name}.csv").open("w", newline="") as file:
                csv.writer(file).writerows([columns, *zip(*columns.values(), strict=True)])
    elif request.param == "tables":
        made = {**tables, "backwards": tables["jobs"]}
    else:
        with closing(sqlite3.connect(str(made)) if request.param == "sqlite" else duckdb.connect(str(made))) as opened:
            for name, columns in tables.items():
                opened.execute(f"CREATE TABLE {name} (kind TEXT, text TEXT)")
                for row in zip(*columns.values(), strict=True):
                    opened.execute(f"INSERT INTO {name} VALUES (?, ?)", row)
            opened.execute(view)
            opened.commit()
    return request.param, made, tables


def quoted_row(kind: str, tables: Tables, evidence: Evidence) -> str:
    """Return the text of the row that evidence names."""
    texts = tables.get(evidence.relation, {}).get("text") or tables["jobs"]["text"]
    turned = evidence.relation == "backwards" and kind == "sqlite"  # read as the view gives them
    return (sorted(texts, reverse=True) if turned else texts)[int(evidence.key)]


def test_row_n_of_a_table_holds_what_evidence_quotes_of_it(source: tuple[str, Path | Tables, Tables]) -> None:
    kind, made, tables = source
    numbered = 0
    with almanaq.connect(made, model=Quoting(), cache=False) as connection:
        for seed in range(10):
            suql = query(random.Random(seed))
            for evidence in (each for row in connection.sql(suql).evidence for each in row):
                if not evidence.row_known:
                    assert "row" not in evidence.place, f"seed {seed}: {suql}"
                    continue
                assert quoted_row(kind, tables, evidence) == evidence.quote, f"seed {seed}: {suql}"
                assert f", row {int(evidence.key) + 1}, " in evidence.place
                numbered += 1
    assert numbered > 8


def test_each_row_of_a_join_names_its_own(source: tuple[str, Path | Tables, Tables]) -> None:
    """The rows of a join name no pair: what stands in a row of the result is what its evidence leads to."""
    _, made, tables = source
    suql = "SELECT s.text, j.text FROM skills s JOIN jobs j ON answer(j.text, 'is ' || s.text || ' needed?') = 'Yes'"
    with almanaq.connect(made, model=Quoting(), cache=False) as connection:
        result = connection.sql(suql)
    assert len(result)
    for (_, text), (evidence,) in zip(result.rows, result.evidence, strict=True):
        assert tables["jobs"]["text"][int(evidence.key)] == evidence.quote == text


@pytest.mark.parametrize(
    "suql",
    [
        f"SELECT text FROM jobs WHERE {SO} UNION ALL SELECT text FROM skills WHERE {SO}",
        f"SELECT text FROM jobs WHERE {SO} UNION ALL SELECT text FROM skills WHERE text IN (SELECT text FROM jobs) "
        f"UNION ALL SELECT DISTINCT text FROM jobs WHERE text = '-' UNION ALL SELECT text FROM skills WHERE {SO}",
        f"SELECT DISTINCT text, 'k' AS k FROM jobs WHERE {SO} ORDER BY text DESC",
        "SELECT DISTINCT text, answer(text, 'is it so?') AS a FROM skills",
    ],
)
def test_rows_of_unions_and_distinct_name_their_own(source: tuple[str, Path | Tables, Tables], suql: str) -> None:
    with almanaq.connect(source[1], model=Quoting(), cache=False) as connection:
        result = connection.sql(suql)
    assert len(result)
    assert [row[0] for row in result.rows] == [evidence.quote for (evidence,) in result.evidence]


def test_where_rows_were_deleted_evidence_gives_an_address_and_no_number(tmp_path: Path) -> None:
    with closing(duckdb.connect(str(tmp_path / "shop.duckdb"))) as opened:
        opened.execute("CREATE TABLE jobs AS SELECT 'text ' || i AS text FROM range(6) AS t(i)")
        opened.execute("DELETE FROM jobs WHERE text = 'text 2'")
    with almanaq.connect(tmp_path / "shop.duckdb", model=Quoting(), cache=False) as connection:
        result = connection.sql("SELECT summary(text) FROM jobs WHERE text > 'text 2' ORDER BY text")
    assert [row[0].place for row in result.evidence] == [f"jobs.text, row rowid {n}, passage 1" for n in (3, 4, 5)]


def test_rows_of_postgresql_without_a_key_are_named_by_their_address(postgres_server: PostgresServer) -> None:
    import pyarrow as pa

    tables = draw(random.Random(3))
    url = postgres_server.source({name: pa.table(columns) for name, columns in tables.items()})
    suql = "SELECT j.text FROM skills s JOIN jobs j ON answer(j.text, 'is ' || s.text || ' needed?') = 'Yes'"
    with almanaq.connect(url, model=Quoting(), cache=False) as connection:
        result = connection.sql(suql)
        for (text,), (evidence,) in zip(result.rows, result.evidence, strict=True):
            assert evidence.quote == text
            assert evidence.place == f"jobs.text, row (0,{tables['jobs']['text'].index(text) + 1}), passage 1"


def test_a_member_of_with_is_not_taken_for_the_table_of_its_name() -> None:
    tables = {"jobs": {"text": ["first", "second"]}}
    suql = (
        "WITH jobs AS (SELECT text || ' more' AS text FROM jobs LIMIT 9) SELECT text FROM jobs "
        "WHERE answer(text, 'so?') IS NOT NULL"
    )
    with almanaq.connect(tables, model=Quoting(), cache=False) as connection:
        result = connection.sql(suql)
    assert len(result) == 2
    assert not any(evidence.row_known for row in result.evidence for evidence in row)


PRIVATE = "[jobs.columns.kind]\nprivate = true\n"


@pytest.mark.sampled(3)
@pytest.mark.parametrize("schema", ["", PRIVATE])
def test_what_an_agent_is_given_of_evidence_leads_it_back_to_the_text(
    source: tuple[str, Path | Tables, Tables], schema: str, tmp_path: Path
) -> None:
    """`run_query` and then `read_text`, for every quote: of tables without a key, with private columns or not."""
    _, made, _ = source
    said = tmp_path / "schema.toml"
    said.write_text(schema)
    read, refused = 0, 0
    with almanaq.connect(made, schema=str(said), model=Quoting(), cache=False) as connection:
        tools = Tools(connection)
        for seed in range(8):
            try:
                found = tools.call("run_query", {"suql": query(random.Random(seed))})
            except (PrivateColumnError, UnknownNameError):
                refused += 1
                continue
            for quote in (each for row in found["evidence"] for each in row if each["key"] is not None):
                place = {name: quote[name] for name in ("table", "key", "column", "passage")}
                assert tools.call("read_text", place)["text"] == quote["quote"], f"seed {seed}"
                read += 1
    assert read > 10
    assert bool(refused) == bool(schema)


@pytest.mark.parametrize("key", ["99", "-1", "1 OR 1=1", "rowid 99", "1; SELECT 1", "~1", "", "9" * 30])
def test_a_row_that_is_none_is_refused(key: str) -> None:
    with almanaq.connect({"jobs": {"text": ["first", "second"]}}, model=Quoting(), cache=False) as connection:
        read = Tools(connection).call
        with pytest.raises(UsageError, match="row"):
            read("read_text", {"table": "jobs", "key": key, "column": "text"})
        assert read("read_text", {"table": "jobs", "key": "1", "column": "text"})["text"] == "second"


def test_rows_of_postgresql_are_read_again_by_their_address(postgres_server: PostgresServer, tmp_path: Path) -> None:
    import pyarrow as pa

    tables = draw(random.Random(4))
    url = postgres_server.source({name: pa.table(columns) for name, columns in tables.items()})
    said = tmp_path / "schema.toml"
    said.write_text(PRIVATE)
    with almanaq.connect(url, schema=str(said), model=Quoting(), cache=False) as connection:
        tools = Tools(connection)
        suql = "SELECT j.text FROM skills s JOIN jobs j ON answer(j.text, 'is ' || s.text || ' needed?') = 'Yes'"
        found = tools.call("run_query", {"suql": suql})
        assert found["rows"]
        for (quote,) in found["evidence"]:
            place = {name: quote[name] for name in ("table", "key", "column", "passage")}
            assert tools.call("read_text", place)["text"] == quote["quote"]


def test_the_row_itself_and_natural_joins_know_nothing_of_the_number_of_a_row(tmp_path: Path) -> None:
    """Where columns are private, the number is read beside the others: no value of the row has it among its fields."""
    said = tmp_path / "schema.toml"
    said.write_text(PRIVATE)
    tables = {"jobs": {"kind": ["a", "b"], "text": ["x", "y"]}, "more": {"text": ["y", "x"], "n": [1, 2]}}
    with almanaq.connect(tables, schema=str(said), model=Quoting(), cache=False) as connection:
        public = connection.public()
        for suql in (
            "SELECT text, n FROM jobs NATURAL JOIN more WHERE answer(text, 'so?') IS NOT NULL ORDER BY text",
            "SELECT * FROM jobs WHERE answer(text, 'so?') IS NOT NULL ORDER BY text",
        ):
            assert [column for column in public.sql(suql).columns if column not in ("text", "n")] == []
            assert len(public.sql(suql)) == 2
