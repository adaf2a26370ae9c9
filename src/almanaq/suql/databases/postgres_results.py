"""A result of PostgreSQL, read as the server sends it: reading stops where there is more than may be held."""

from __future__ import annotations

from collections.abc import Generator, Mapping
from typing import Any

import pyarrow as pa

from almanaq.suql.databases.postgres_driver import driver
from almanaq.suql.databases.postgres_types import size_of, to_batch, to_table

_CHUNK_ROWS = 64
"""Rows that are taken from the server at once: each may be as wide as it likes."""
_ROWS_AT_ONCE, _BYTES_AT_ONCE = 8_192, 4_000_000
"""Rows that are read before they are made Arrow's, which takes less memory."""
_Rows = list[tuple[Any, ...]]


def run(
    cursor: Any, message: str, elements: Mapping[int, int], most_bytes: int | None, most_rows: int | None = None
) -> pa.Table:
    """Run a message of several statements, one of them a SELECT; give its rows, or a little more than so many."""
    batches: list[pa.RecordBatch] = []
    rows: _Rows = []
    held = waiting = count = 0
    chunks = _chunks(cursor, message)
    for chunk, size in chunks:
        rows += chunk
        waiting, count = waiting + size, count + len(chunk)
        if len(rows) >= _ROWS_AT_ONCE or waiting > _BYTES_AT_ONCE:
            batches.append(to_batch(cursor.description, rows, elements))
            held, waiting, rows = held + batches[-1].nbytes, 0, []
        if (most_bytes is not None and held + waiting > most_bytes) or (most_rows is not None and count >= most_rows):
            chunks.close()
            break
    if rows or not batches:
        batches.append(to_batch(cursor.description or (), rows, elements))
    return to_table(cursor.description or (), batches, elements)


def _chunks(cursor: Any, message: str) -> Generator[tuple[_Rows, int], None, None]:
    """Yield rows as they come, and about how many bytes they take; the cursor describes them.

    Closing the iterator cancels the statement, and the rest of the message is not run.
    """
    psycopg, connection, done = driver(), cursor.connection, False
    transformer, server = psycopg.adapt.Transformer(cursor), connection.pgconn
    server.send_query(message.encode())
    if psycopg.capabilities.has_stream_chunked():
        server.set_chunked_rows_mode(_CHUNK_ROWS)
    else:
        server.set_single_row_mode()
    try:
        while (result := connection.wait(psycopg.generators.fetch(server))) is not None:
            if result.status == psycopg.pq.ExecStatus.FATAL_ERROR:
                raise psycopg.errors.error_from_result(result)
            if result.status != psycopg.pq.ExecStatus.COMMAND_OK and (result.ntuples or cursor.pgresult is None):
                transformer.set_pgresult(result, set_loaders=cursor.pgresult is None)
                cursor.pgresult = result
                long = [i for i in range(result.nfields) if result.fsize(i) < 0]
                rows = transformer.load_rows(0, result.ntuples, tuple)
                yield rows, 8 * len(rows) * result.nfields + sum(size_of(row[i]) for row in rows for i in long)
        done = True
    finally:
        if not done and not connection.closed:
            connection.cancel_safe(timeout=5)
            while connection.wait(psycopg.generators.fetch(server)) is not None:
                pass
