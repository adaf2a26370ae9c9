"""A cast of an answer is the engine's cast of its text; what that does not take is NULL, counted and warned of."""

from __future__ import annotations

import duckdb
import pytest

import almanaq
from almanaq.testing import FunctionModel

BITS = (8, 16, 32, 64, 128)
EDGES = {edge + step for bits in BITS for edge in (-(2 ** (bits - 1)), 2 ** (bits - 1), 2**bits) for step in (-1, 0)}
NUMBERS = ("0", *map(str, sorted(EDGES)))
CLOCKS = ("00:00", "7:05", "22:00", "23:59:59.5", "24:00", "24:00:00", "24:01", "24:00:01", "25:00", "36:15")
INTEGERS = "TINYINT SMALLINT INTEGER BIGINT HUGEINT UTINYINT USMALLINT UINTEGER UBIGINT UHUGEINT".split()


@pytest.mark.parametrize(
    ("type_", "texts"),
    [*((type_, NUMBERS) for type_ in (*INTEGERS, "DECIMAL(18,3)", "DECIMAL(38,0)", "DOUBLE")), ("TIME", CLOCKS)],
)
def test_a_value_that_the_type_does_not_hold_is_null(type_: str, texts: tuple[str, ...]) -> None:
    with duckdb.connect() as engine:
        engine.execute("CREATE TABLE t AS SELECT unnest($1) AS x, unnest(range(len($1))) AS id", [list(texts)])
        right = engine.execute(f"SELECT try_cast(x AS {type_}) FROM t ORDER BY id").fetchall()
        with almanaq.connect(engine, model=FunctionModel(lambda text, _: text), cache=False) as con:
            found = con.sql(f"SELECT answer(x, 'q')::{type_} FROM t ORDER BY id")
            fields = con.sql(f"SELECT answer(x, 'q', {{'a': '{type_}'}}) FROM t ORDER BY id")
    assert found.rows == right
    assert [(row["a"],) for (row,) in fields.rows] == right
    missing = right.count((None,))
    assert [warning.split()[0] for warning in found.trace.warnings] == [str(missing)] * bool(missing)


@pytest.mark.parametrize("type_", INTEGERS)
def test_what_an_error_advises_runs(type_: str) -> None:
    with almanaq.connect({"t": {"x": ["no number"]}}) as con:
        with pytest.raises(almanaq.DataError, match=r"compare x::VARCHAR with text, or (.*) with numbers") as caught:
            con.sql(f"SELECT x::{type_} FROM t")
        advised = str(caught.value).split(" with text, or ")[1].split(" with numbers")[0]
        assert con.sql(f"SELECT {advised}, typeof({advised}) FROM t").rows == [(None, type_)]
