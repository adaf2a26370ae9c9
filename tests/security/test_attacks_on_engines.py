"""Attacks on the engines that ibis reaches: what would be sent to each is held against that engine's own rules.

No server is needed: an engine is a stand-in that keeps every statement. MariaDB, where it is installed, runs them.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from types import SimpleNamespace

import pyarrow as pa
import pytest

import mariadb_server
from almanaq.engines.ibis.profiles import PROFILES
from almanaq.engines.ibis.session import IbisSession, Link
from almanaq.errors import DatabaseError
from almanaq.suql.catalog.reading import written_name

from .attacks import STEALING, Attack, attacks
from .engine_texts import LEXICONS, objection, without_quoted
from .targets import Recorded, attack, mariadb, recorded

ibis = pytest.importorskip("ibis")
HOSTILE = (
    "'",
    "''",
    "\\",
    "\\'",
    "\\\\'",
    "''' --",
    "' OR 1 = 1 -- ",
    "\\' OR 1 = 1 -- ",
    "'; DROP TABLE t; -- ",
    "\\'; x",
)
HOSTILE += (
    '"',
    "`",
    "$$",
    "${x}",
    "{{x}}",
    "%s",
    "?",
    "@a",
    ":a",
    "a\nb\\",
    "#",
    "/*",
    "é\\'",
    "\u02bc",
    "\\x27",
    "\\047",
)
PLACES = ("x = ?", "x IN (?, ?)", "x LIKE ?", "x || ? = x", "coalesce(x, ?) = ?", "upper(?) = x", "(x, ?) = (?, x)")
PLACES += (
    "CASE x WHEN ? THEN 1 ELSE 2 END = 1",
    "replace(x, ?, ?) = x",
    "x > ANY (ARRAY[?, ?])",
    "position(? IN x) = 1",
)


@pytest.mark.sampled(3)
@pytest.mark.parametrize("engine", LEXICONS)
def test_what_is_sent_does_nothing_but_read(engine: str) -> None:
    with recorded(engine) as target:
        ended = attack(target.connection, attacks(engine, 120, "/canary/here"))
        assert ended.total() == 120
        assert len(target.queries) > 8  # so that the attacks are more than faulty queries
        assert [(text, why) for text in target.queries if (why := objection(text, engine))] == []


@pytest.mark.sampled(6)
@pytest.mark.parametrize("engine", LEXICONS)
def test_a_parameter_stays_one_text_at_every_place(engine: str) -> None:
    """Whatever it holds, the statement with it has as many words as the statement with a plain one."""
    taken = 0
    with recorded(engine) as target:
        for place in PLACES:
            plain = _outlines(_sent(target, place, "plain"), engine)
            for text in HOSTILE:
                found = _sent(target, place, text)
                assert [why for sent in found if (why := objection(sent, engine))] == [], (place, text)
                assert _outlines(found, engine) in ([], plain) or (engine, text) == ("databricks", "${x}"), (
                    place,
                    text,
                )
                taken += bool(found)
        assert taken > len(PLACES) * len(HOSTILE) // 2


def _outlines(sent: list[str], engine: str) -> list[str]:
    """Return statements without their texts, and without the word for what a backslash in a pattern is."""
    return [str(without_quoted(text, engine)).replace(" ESCAPE ''", "").replace("'at'", "''") for text in sent]


def _sent(target: Recorded, place: str, text: str) -> list[str]:
    target.queries.clear()
    query = Attack("", f"SELECT x FROM t WHERE {place}", (text,) * place.count("?"))
    attack(target.connection, [query])
    return list(target.queries)


@pytest.mark.parametrize("engine", LEXICONS)
def test_what_an_attack_wants_would_be_seen(engine: str) -> None:
    """The judge objects to each thing that attacks want, as a value, beside a text and in a condition."""
    for wanted in STEALING[engine]:
        for query in ("SELECT {x} FROM t", "SELECT 'a' || {x} AS b", "SELECT x FROM t WHERE x = '1' OR {x} = x"):
            assert objection(query.replace("{x}", wanted), engine), wanted
    for text in ("SELECT 'a", "SELECT 1; SELECT 2", "SELECT 1 /* a */", "SELECT 1 -- a", "DELETE FROM t", "SELECT (1"):
        assert objection(text, engine), text
    quote = "\\'" if engine == "bigquery" else "''"
    assert objection(f"SELECT x, 'sleep(1) -- @a' FROM t WHERE x = 'it{quote}s; ' OR x = ''", engine) == ""


def test_a_row_that_is_written_into_a_statement_names_no_variable_either() -> None:
    """Where rows go from one step to the next in the text of a statement, as on Databricks."""
    sent: list[str] = []
    link = Link(SimpleNamespace(raw_sql=sent.append), cancel=lambda: None, run=sent.append)
    session = IbisSession(link, PROFILES["databricks"], give_back=lambda *_: None)
    rows = pa.table({"_row": ["a${env:HOME}", "it's", "\\'"]})
    session.store("rows", rows)
    with contextlib.suppress(DatabaseError):  # the stand-in has no rows to give
        session.fetch(f"SELECT * FROM {written_name(session.locate('rows'), 'databricks')}")
    assert objection(sent[-1], "databricks") == ""
    assert "HOME" in sent[-1]


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    if not mariadb_server.is_installed():
        pytest.skip("no MariaDB or no driver for it here: apt-get install mariadb-server, pip install mysqlclient")
    with mariadb_server.run_server() as url:
        yield url


def test_a_mariadb_server_whose_user_may_do_anything(server: str) -> None:
    with mariadb(server) as (con, canary):
        ended = attack(con, attacks("mysql", 250, canary))
        assert ended.total() == 250
        assert ended["ran"] > 8
        for place in PLACES:
            for text in HOSTILE:
                found = attack(con, [Attack("mysql", f"SELECT x FROM t WHERE {place}", (text,) * place.count("?"))])
                assert found["ran"] or not found["ProgrammingError"], (place, text)
        for text in HOSTILE:
            assert con.sql("SELECT ? AS v, x FROM t", [text]).rows == [(text, "abc")]
            assert con.sql("SELECT x FROM t WHERE concat(x, ?) = ?", [text, "abc" + text]).rows == [("abc",)]
