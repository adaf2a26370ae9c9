"""Functions that DuckDB has too and means otherwise: the same value as PostgreSQL's, or refused by name."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from almanaq.errors import UnsupportedError

from .support import Asked

SAME = [
    ("concat('a', true, 1 < 0), concat_ws('-', 1, true)", ("atf", "1-t")),
    ("'a' || true", ("atrue",)),
    ("encode(sha256('abc'::bytea), 'hex') LIKE 'ba7816bf%'", (True,)),
    ("ARRAY[1] || NULL", ([1],)),
    ("(SELECT sum(v) FROM (VALUES (0::numeric), (4.5)) t(v))", (4.5,)),
    ("to_timestamp('2011-12-18 23:38:15', 'YYYY-MM-DD HH24:MI:SS')", (datetime(2011, 12, 18, 23, 38, 15, tzinfo=UTC),)),
    ("float8 '2.5'::int, timestamp '2020-01-01 10:00'::date::text", (2, "2020-01-01")),
    ("interval '1.5 seconds' = interval '1500 milliseconds'", (True,)),
]
REFUSED = [
    *("44::bit(10)", "timetz '10:00+01'", "time(1) '10:00:00.55'", "timestamp(0) '2020-01-01 00:00:00.6'"),
    *("ARRAY[1, 2]::text", "'[0:1]={1,2}'::int[]", "interval '1.5 weeks'", "unnest(ARRAY[ARRAY[1], ARRAY[2]])"),
    *("""'{"a": 1}'::jsonb = '{"a":1}'::jsonb""", """'{"a": 1}'::jsonb || '{}'""", """('{"a": 1}'::jsonb)['a']"""),
    *("array_position(ARRAY['a', 'a'], 'a', 2)", "regexp_replace('aA', 'a', 'x', 1, 0, 'i')"),
    *("regexp_matches('ab', '(a)(b)')", "regexp_match('abcd', '(a|ab)(c|bcd)?')"),
    r"regexp_split_to_array('a b', '\s*')",
    *(
        "'foo' ILIKE ALL ('{F%,%O}')",
        "to_char(timestamp '2020-01-01', 'SSSS')",
        "cardinality(ARRAY[ARRAY[1], ARRAY[2]])",
    ),
]


@pytest.fixture(scope="module")
def town(engine: str) -> Asked:
    assert engine
    return Asked(t={"id": [1]})


@pytest.mark.parametrize(("items", "row"), SAME)
def test_the_same_on_every_engine(town: Asked, engine: str, items: str, row: tuple[Any, ...]) -> None:
    if engine == "postgres" or "encode" not in items:
        assert town.rows(f"SELECT {items}") == [row]


@pytest.mark.parametrize("item", REFUSED)
def test_refused_by_name_where_it_means_something_else(town: Asked, engine: str, item: str) -> None:
    if engine == "postgres":
        assert town.rows(f"SELECT {item}::text" if item.startswith("'[0") else f"SELECT {item}")
    else:
        with pytest.raises(UnsupportedError):
            town.rows(f"SELECT {item}")
