"""The list of functions agrees with sqlglot's classes: what is listed passes, and every other class is refused."""

from __future__ import annotations

import pytest
from almanaq.suql.syntax.allowlist import STRUCTURE
from almanaq.suql.syntax.dialect import suql_dialect
from almanaq.suql.syntax.functions import CLASSES, ENGINES, FUNCTIONS, functions_of, is_allowed
from almanaq.suql.syntax.parse import parse
from sqlglot import exp
from sqlglot.errors import SqlglotError

from almanaq.errors import QueryError

ARGUMENTS = (
    *("", "x", "x, y", "x, y, 1", "'a', y", "x, '[', 'b'", "1, 2, 3, 4, 5, 6.5", "1 IN x", "x, 1, 2, 3"),
    *("'year', y", "year FROM x", "x PLACING 'a' FROM 1", "'a' : 1", "SELECT 1", "x AS text", "e -> e > 1"),
)
BARE = ("current_date", "current_time", "current_timestamp", "localtime", "localtimestamp")


def calls(name: str) -> list[str]:
    """Return calls of a function with arguments of several kinds, those that can be read."""
    written = [f"{name}({arguments})" for arguments in ARGUMENTS] + ([name] if name in BARE else [])
    return [call for call in written if _is_read(call)]


def _is_read(call: str) -> bool:
    try:
        return suql_dialect().parse(f"SELECT {call}") is not None
    except SqlglotError:
        return False


@pytest.mark.sampled(4)
@pytest.mark.parametrize("name", sorted(FUNCTIONS))
def test_a_listed_function_passes_with_some_arguments_on_its_engines(name: str) -> None:
    for engine in (None, *FUNCTIONS[name]):
        assert any(_passes(call, engine) for call in calls(name)), (name, engine)


def _passes(call: str, engine: str | None) -> bool:
    try:
        parse(f"SELECT {call}", (), engine)
    except QueryError:
        return False
    return True


def test_every_listed_class_is_one_of_sqlglot_and_stands_for_listed_functions() -> None:
    for kind, names in CLASSES.items():
        assert issubclass(getattr(exp, kind), exp.Expr)
        assert names
        assert names <= set(FUNCTIONS)
    assert not set(CLASSES) & STRUCTURE
    assert all(issubclass(getattr(exp, kind), exp.Expr) for kind in STRUCTURE)


def test_engines_differ_only_by_what_is_listed() -> None:
    assert set(functions_of()) == set(FUNCTIONS)
    assert all(engines <= set(ENGINES) for engines in FUNCTIONS.values())
    assert is_allowed("ARRAY_UPPER", "postgres")
    assert not is_allowed("array_upper", "duckdb")
    assert not is_allowed("pg_read_file")
