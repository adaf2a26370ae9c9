"""Ours: the SUQL as it is."""

from __future__ import annotations

import pyarrow as pa
from loop import serve

import almanaq
from almanaq.suql.options import Options


def run(name, sql, tables):
    made = {name: pa.Table.from_pylist(rows) for name, rows in tables.items()}
    with almanaq.connect(made, model="openai:stand-in", cache=False, options=Options(max_calls=10_000)) as con:
        return con.sql(sql).rows


serve(run)
