"""Our SUQL as it is, with what is chosen for a connection."""

from __future__ import annotations

import pyarrow as pa
from loop import serve

import almanaq
from almanaq.options import Options


def serve_ours(batch=None, **chosen):
    """Run each task as our SUQL."""

    def run(name, sql, tables):
        made = {name: pa.Table.from_pylist(rows) for name, rows in tables.items()}
        options = Options(max_calls=10_000, **chosen)
        with almanaq.connect(made, model="openai:stand-in", cache=False, batch=batch, options=options) as con:
            return con.sql(sql).rows

    serve(run)
