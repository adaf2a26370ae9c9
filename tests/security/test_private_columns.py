"""Private columns never reach a remote model, whatever the query; queries that do not show them are not refused."""

from __future__ import annotations

import contextlib
import json
import random
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

import almanaq
from almanaq.agent.history import Turn
from almanaq.errors import (
    AlmanaqError,
    DatabaseError,
    PrivateColumnError,
    QueryError,
    RefusedQueryError,
    UnknownNameError,
    UnsupportedError,
)
from almanaq.models.protocols import Prompt
from almanaq.testing import ScriptedModel
from engines import PostgresServer

from .queries_with_private_columns import CANARY, SCHEMA, TABLES, Writer

DECIDED, RUN = 30, 18
PARTS = 5
"""How many times as many queries `make nightly` tries."""


class Server(ScriptedModel):
    """A language model at the other end of a line: it writes the queries it is told to, and keeps what it is sent."""

    def __init__(self) -> None:
        super().__init__(self.reply)
        self.writes: list[str] = []

    def reply(self, prompt: Prompt) -> dict[str, object] | str:
        if prompt.name == "parse":
            return {
                "reasoning": "r",
                "suql": self.writes.pop(0) if self.writes else "SELECT 1 AS one",
                "needs_data": True,
                "clarify": None,
            }
        if prompt.name == "link":
            return {"values": []}
        return "I found it." if prompt.name == "respond" else json.dumps({"value": "Yes", "verdicts": {}, "quotes": []})

    @property
    def sent(self) -> str:
        return json.dumps([[m.content for m in prompt.messages] for prompt in self.prompts], ensure_ascii=False)


class FarEmbedder:
    """An embedder that is a server's, and keeps what it is sent."""

    name = "far"
    dimension = 2
    remote = True

    def __init__(self) -> None:
        self.sent: list[str] = []

    def embed(self, texts: Sequence[str]) -> np.ndarray:
        self.sent += texts
        return np.ones((len(texts), 2), dtype=np.float32)


def is_refused(connection: almanaq.Connection, suql: str) -> bool:
    """Return whether a query is refused as showing what is private to a model."""
    try:
        connection.explain(suql)
    except RefusedQueryError as error:
        return "is private" in str(error)
    return False


@pytest.fixture(scope="module")
def schema(tmp_path_factory: pytest.TempPathFactory) -> str:
    path: Path = tmp_path_factory.mktemp("private") / "schema.toml"
    path.write_text(SCHEMA)
    return str(path)


@pytest.mark.sampled(PARTS)
@pytest.mark.parametrize("part", range(PARTS))
def test_a_query_is_refused_when_a_text_function_is_given_what_is_private_and_only_then(schema: str, part: int) -> None:
    verdicts: Counter[tuple[bool, bool]] = Counter()
    with almanaq.connect(TABLES, model=Server(), schema=schema, cache=False) as connection:
        for seed in range(part, DECIDED * PARTS, PARTS):
            query = Writer(random.Random(seed)).asking()
            with contextlib.suppress(UnsupportedError, UnknownNameError):  # what is not planned beside text functions
                refused = is_refused(connection, query.sql)
                assert refused or not query.private, f"seed {seed}: {query.sql}"
                verdicts[refused, query.private] += 1
    assert min(verdicts[True, True], verdicts[False, False]) > DECIDED // 5
    assert (
        verdicts[True, False] <= DECIDED // 4
    )  # a part of a query that is taken apart, over private rows, is all private


@pytest.mark.parametrize(
    "text",
    [
        "CASE WHEN {private} LIKE 'c%' THEN name ELSE bio END",
        "CASE {private} WHEN 'x' THEN name END",
        "string_agg(bio, ' ') FILTER (WHERE {private} = 'x')",
        "string_agg(bio, ' ' ORDER BY {private})",
        "first_value(bio) OVER (ORDER BY {private})",
        "lag(bio) OVER (PARTITION BY {private} ORDER BY id)",
        "coalesce(nullif(name, {private}), bio)",
        "substring(bio FOR length({private}))",
    ],
)
def test_what_chooses_a_text_counts_as_what_it_is_made_of(schema: str, text: str) -> None:
    """`CASE WHEN ssn LIKE '1%' THEN 'a' ELSE 'b' END` tells a letter of a number: refused, though no value is shown."""
    with almanaq.connect(TABLES, model=Server(), schema=schema, cache=False) as connection:
        for column, private in (("ssn", True), ("name", False)):
            inner = f"SELECT {text.replace('{private}', column)} AS x FROM people"
            assert is_refused(connection, f"SELECT answer(p.x, 'is it long?') FROM ({inner}) AS p") is private
        assert not is_refused(connection, "SELECT answer(bio, 'is it long?') FROM people WHERE ssn LIKE 'c%'")


@pytest.mark.parametrize(
    "listed",
    [
        "SELECT answer(enum_range(NULL::{type})::text, 'is it long?')",
        "SELECT answer(enum_first(NULL::{type})::text, 'is it long?') FROM people",
        "SELECT summary(array_to_string(enum_range(NULL::{type}, NULL), ',')) FROM people",
        "SELECT summary(u.g::text) FROM unnest(enum_range(NULL::{type})) AS u(g)",
    ],
)
def test_the_values_of_a_private_enum_are_not_read_from_its_type(
    postgres_server: PostgresServer, tmp_path: Path, listed: str
) -> None:
    people = TABLES["people"].append_column("level", TABLES["people"]["grade"].dictionary_encode())
    people = people.drop_columns(["grade", "codes"]).rename_columns(["id", "name", "ssn", "bio", "grade"])
    server = Server()
    url = postgres_server.source({"people": people, "visits": TABLES["visits"]})
    schema = tmp_path / "schema.toml"
    schema.write_text(SCHEMA.replace("[people.columns.codes]\nprivate = true\n", ""))
    with almanaq.connect(url, model=server, schema=str(schema), cache=False) as connection:
        query = listed.replace("{type}", "people_grade")
        with pytest.raises(RefusedQueryError, match="private"):
            connection.sql(query)
        server.writes = ["SELECT enum_range(NULL::people_grade)", "SELECT 1 AS one"]
        connection.ask("which grades are there?")
        with pytest.raises(PrivateColumnError, match="private"):
            connection.public().sql("SELECT enum_range(NULL::people_grade)")
    assert server.prompts
    assert CANARY not in server.sent


@pytest.mark.sampled(PARTS)
@pytest.mark.parametrize("part", range(PARTS))
def test_no_query_sends_a_private_column_to_a_model(schema: str, part: int) -> None:
    server, embedder = Server(), FarEmbedder()
    sent = 0
    with almanaq.connect(TABLES, model=server, embedder=embedder, schema=schema, cache=False) as connection:
        for seed in range(part, RUN * PARTS, PARTS):
            query = Writer(random.Random(seed)).asking()
            with contextlib.suppress(RefusedQueryError, DatabaseError):  # an engine knows no row of a derived table
                connection.sql(query.sql)
            assert CANARY.casefold() not in server.sent.casefold() + str(embedder.sent).casefold(), query.sql
            sent += bool(server.prompts)
            server.prompts.clear()
    assert sent > RUN // 5


@pytest.mark.sampled(PARTS)
@pytest.mark.parametrize("part", range(PARTS))
def test_no_reply_of_the_agent_shows_a_private_column_to_a_model(schema: str, part: int) -> None:
    server = Server()
    worded = 0
    with almanaq.connect(TABLES, model=server, schema=schema, cache=False) as connection:
        for seed in range(part, RUN * PARTS, PARTS):
            query = Writer(random.Random(seed)).showing()
            server.writes = [query.sql, "SELECT name FROM people WHERE id = 1"]
            chat = connection.chat()
            reply = chat.ask(f"what is there in place {seed}?")
            assert isinstance(reply.error, DatabaseError | QueryError | None), (query.sql, reply.error)
            if reply.suql == query.sql and reply.rows and not query.private:
                worded += "respond" in [prompt.name for prompt in server.prompts]
            chat.ask(f"and the first of them in place {seed}?")
            assert CANARY.casefold() not in server.sent.casefold(), f"seed {seed}: {query.sql}"
            server.prompts.clear()
    assert worded > RUN // 5


@pytest.mark.parametrize(
    "suql",
    [
        "SELECT ssn::int FROM people",
        "SELECT id FROM people WHERE ssn::date > current_date",
        "SELECT codes[1]::numeric FROM people",
        "SELECT max(name)::int FROM people",
    ],
)
def test_an_error_that_quotes_a_row_is_not_told_to_a_model(schema: str, suql: str) -> None:
    server = Server()
    server.writes = [*[suql] * 3, "SELECT 1 AS one"]  # which the two repairs repeat
    # A table of few rows is shown whole, without its private columns: this one has many.
    tables = TABLES | {"people": pa.concat_tables([TABLES["people"]] * 21)}
    with almanaq.connect(tables, model=server, schema=schema, cache=False) as connection:
        chat = connection.chat()
        failed = chat.ask("how many?")
        assert failed.status == "failed"
        assert "canary" in failed.answer or "Zed" in failed.answer, "the asker is told"
        chat.ask("try again")
    assert "It failed: " in server.sent
    assert CANARY not in server.sent
    assert "Zed" not in server.sent


def test_a_private_enum_is_neither_listed_nor_linked(schema: str) -> None:
    server = Server()
    server.writes = ["SELECT name FROM people WHERE grade = 'top'", "SELECT 1 AS one"]
    with almanaq.connect(TABLES, model=server, schema=schema, cache=False) as connection:
        chat = connection.chat()
        assert isinstance(chat.ask("who has the top grade?").error, RefusedQueryError) or not server.writes
        with pytest.raises(AlmanaqError, match="grade is private"):
            connection.sql("SELECT id FROM people AS z(id, a, b, c, d, e) WHERE e = 'top'")
    assert CANARY not in server.sent


def test_what_a_private_row_was_called_is_not_in_the_words_for_a_later_search(schema: str) -> None:
    server = Server()
    server.writes = ["SELECT ssn FROM people WHERE id = 1", f"SELECT name FROM people WHERE ssn = '{CANARY}-1'"]
    with almanaq.connect(TABLES, model=server, schema=schema, cache=False) as connection:
        chat = connection.chat()
        turns: list[Turn] = [chat.ask("the number of Ada?").turn()]
        assert turns[0].private
        server.writes = ["SELECT name FROM people WHERE id = 1"]
        connection.ask("and the name?", turns)
    assert CANARY not in server.sent


APART = {"t": {"id": [1, 2], "x": ["shown", "too"], "secret": [CANARY, CANARY]}, "u": {"id": [1], "x": ["public"]}}


@pytest.mark.parametrize(
    "query",
    [
        "WITH t AS (SELECT id, {c} AS x FROM t) SELECT t, answer(x, 'q') FROM t",
        "WITH u AS (SELECT id, {c} AS x FROM t) SELECT u, answer(x, 'q') FROM u",
        "WITH u AS (SELECT id, {c} AS x FROM t) SELECT u, id FROM u WHERE answer(u.x, 'q') IS NOT NULL LIMIT 1",
        "WITH u AS (SELECT {c} AS x FROM t LIMIT 1) SELECT u, answer(x, 'q') FROM u",
        "WITH a AS (SELECT {c} AS x FROM t), b AS (SELECT x FROM a) SELECT b, answer(x, 'q') FROM b",
        "SELECT u, answer(x, 'q') FROM (SELECT {c} || '!' AS x FROM t) u",
        "SELECT u, answer(x, 'q') FROM (SELECT {c} AS x FROM t USING SAMPLE 1 ROWS) u",
        "SELECT u.id, t, answer(t.{c}, 'q') FROM u POSITIONAL JOIN t",
        "SELECT t, answer({c}, 'q') FROM t LIMIT 1",
        "SELECT answer(x, 'q') FROM (SELECT x FROM u UNION BY NAME SELECT id, {c} AS x FROM t)",
        "WITH a AS (SELECT 1 AS k, x FROM u UNION BY NAME SELECT {c} AS x, 2 AS k FROM t) SELECT answer(x, 'q') FROM a",
        "SELECT answer(a, 'q') FROM (SELECT x, 'a' AS k FROM u UNION BY NAME SELECT 'b' AS k, {c} AS x FROM t) v(a, b)",
    ],
)
def test_what_is_taken_apart_is_refused_where_it_would_send_what_is_private(query: str, tmp_path: Path) -> None:
    schema = tmp_path / "schema.toml"
    schema.write_text("[t.columns.secret]\nprivate = true\n")
    server = Server()
    with almanaq.connect(APART, model=server, schema=str(schema), cache=False) as connection:
        with pytest.raises(RefusedQueryError, match="private"):
            connection.sql(query.format(c="secret"))
        assert not server.prompts
        if all(each not in query for each in ("LIMIT 1)", "SAMPLE", "v(a, b)")):  # there, all that was read counts
            assert connection.sql(query.format(c="x")).trace.text_calls
    assert CANARY not in server.sent


@pytest.mark.parametrize(
    ("query", "shows"),
    [
        ("SELECT name FROM people ORDER BY ssn", []),
        ("SELECT note FROM visits WHERE EXISTS (SELECT ssn FROM people)", []),
        ("SELECT count(*) FROM people", []),
        ("SELECT j.name FROM (people p JOIN visits v ON v.person = p.id) AS j", []),
        ("SELECT x FROM (VALUES (1)) v(x), people", []),
        ("SELECT name FROM visits JOIN (SELECT name FROM people UNION SELECT ssn FROM people) p ON true", ["ssn"]),
        (
            "WITH RECURSIVE w(n, s) AS (SELECT 1, '' UNION ALL SELECT n + 1, ssn FROM w, people) SELECT s FROM w",
            ["ssn"],
        ),
        ("SELECT (SELECT max(ssn) FROM people) FROM visits", ["ssn"]),
        ("SELECT u FROM people, unnest(codes) t(u)", ["codes"]),
        ("SELECT j.c FROM (people p JOIN visits v ON v.person = p.id) AS j(a, b, c)", ["ssn"]),
        ("SELECT * FROM (people p JOIN visits v ON v.person = p.id) AS j", ["ssn", "codes", "grade"]),
        ("SELECT p FROM people p", ["ssn", "codes", "grade"]),
        ("SELECT typeof(name) FROM people", ["ssn", "codes", "grade"]),
        ("PIVOT people ON name USING max(ssn)", ["ssn", "codes", "grade"]),
    ],
)
def test_the_private_columns_that_rows_show_are_those_they_are_made_of(
    tmp_path: Path, query: str, shows: Sequence[str]
) -> None:
    schema = tmp_path / "schema.toml"
    schema.write_text(SCHEMA)
    with almanaq.connect(TABLES, schema=schema) as con:
        assert con.engine.private_columns(query) == tuple(f"people.{name}" for name in shows)
