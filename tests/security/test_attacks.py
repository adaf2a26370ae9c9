"""Attacks by class: none reads, writes, sleeps or locks on the engine it runs on."""

from __future__ import annotations

from pathlib import Path

import pytest

from almanaq.errors import AlmanaqError
from engines import PostgresServer

from .attacks import SECRET, attacks, functions
from .targets import attack, postgres, user_duckdb

HOSTILE = (
    *(
        "'",
        "''",
        "\\",
        "\\'",
        "\\\\'",
        "' OR true --",
        "\\' OR true --",
        "'; DELETE FROM t; --",
        "$$",
        "E'\\''",
        '"',
        "%s",
    ),
    *("?", "$1", "/*", "*/", "--", "{", "[", "é\\'", "\u02bc", "日'本", "a\nb\\", "\\x27", "\\047", "\\u0027"),
)


def test_all_functions_of_sqlglot_are_tried() -> None:
    assert len(functions()) > 700


def test_a_users_own_duckdb_connection(tmp_path: Path) -> None:
    (tmp_path / "canary").write_text(SECRET)
    with user_duckdb(tmp_path) as con:
        ended = attack(con, attacks("duckdb", 250, str(tmp_path / "canary")))
    assert ended.total() == 250
    assert ended["ran"] > 12  # so that the attacks are more than faulty queries


@pytest.mark.sampled(2)
@pytest.mark.parametrize("standard", ["on", "off"])
def test_the_superuser_of_a_postgresql_server(postgres_server: PostgresServer, standard: str) -> None:
    url = postgres_server.new_database()
    canary = postgres_server.log.parent / "data" / "canary"
    canary.write_text(SECRET)
    canary.chmod(0o644)
    name = url.rpartition("/")[2]
    with postgres(url, f"ALTER DATABASE {name} SET standard_conforming_strings = {standard}") as con:
        ended = attack(con, attacks("postgres", 150, str(canary), seed=int(standard == "on")))
        for text in HOSTILE:
            _comes_back(con, text)
    assert ended.total() == 150
    assert ended["ran"] > 5


def test_parameters_come_back_as_they_are(tmp_path: Path) -> None:
    (tmp_path / "canary").write_text(SECRET)
    with user_duckdb(tmp_path) as con:
        for text in HOSTILE:
            _comes_back(con, text)


def _comes_back(con, text: str) -> None:  # type: ignore[no-untyped-def]
    """Bind a text at each place of a value; it is the value, or refused."""
    for query in ("SELECT ? AS v FROM t", "SELECT coalesce(NULL, ?) AS v FROM t", "SELECT (ARRAY[?])[1] AS v FROM t"):
        assert con.sql(query, [text]).rows == [(text,)]
    assert con.sql("SELECT x FROM t WHERE x = ? OR x IN (?, ?)", [text] * 3).rows == []
    for query in ("SELECT interval ? FROM t", "SELECT x FROM t LIMIT ?", "SELECT js ->> ? FROM t"):
        try:
            rows = con.sql(query, [text]).rows
        except AlmanaqError:
            continue
        assert rows == [(None,)], (query, text)
