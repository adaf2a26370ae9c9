"""The process that runs generated SQL: standard library only, started by path, one JSON line per request and reply.

A query may read the tables of one SQLite database and nothing else. The database is opened read-only and immutable;
an authorizer lets only SELECT, reading of columns, harmless functions and recursion through; the process can write no
file and has a bound on its memory; a handler interrupts the query at its deadline. The parent kills what does not
stop even so.
"""

from __future__ import annotations

import json
import os
import resource
import sqlite3
import sys
import time
from collections import Counter
from collections.abc import Callable
from typing import Any
from urllib.parse import quote

_OPCODES = 2_000  # of SQLite's virtual machine between two looks at the clock: well below a millisecond
_FETCH = 1_000
_LONGEST = 16 << 20  # bytes of one value
_FORBIDDEN = frozenset(
    {"load_extension", "readfile", "writefile", "edit", "fts3_tokenizer", "sqlite_compileoption_get"}
)
_ALLOWED = frozenset({sqlite3.SQLITE_SELECT, sqlite3.SQLITE_READ, sqlite3.SQLITE_RECURSIVE})

READY = "ready"
Row = tuple[Any, ...]


class Stopped(Exception):
    """A query was stopped; the first argument is the kind of reason, the second the reason in words."""


def authorize(action: int, first: str | None, second: str | None, *_: str | None) -> int:
    """Allow what a SELECT needs."""
    if action in _ALLOWED:
        return sqlite3.SQLITE_OK
    if action == sqlite3.SQLITE_FUNCTION and (second or first or "").lower() not in _FORBIDDEN:
        return sqlite3.SQLITE_OK
    return sqlite3.SQLITE_DENY


def open_database(file: str, memory: int) -> sqlite3.Connection:
    """Open a database so that nothing can be written."""
    connection = sqlite3.connect(f"file:{quote(os.fsencode(file))}?mode=ro&immutable=1", uri=True, isolation_level=None)
    connection.text_factory = lambda raw: raw.decode("utf-8", errors="replace")
    for setting in ("query_only=ON", "temp_store=MEMORY", "trusted_schema=OFF", f"hard_heap_limit={memory}"):
        connection.execute(f"PRAGMA {setting}").fetchall()
    connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, _LONGEST)
    connection.setlimit(sqlite3.SQLITE_LIMIT_ATTACHED, 0)
    connection.execute("SELECT 1 FROM sqlite_master").fetchall()  # a file that is no database is noticed here
    connection.set_authorizer(authorize)
    return connection


def run(connection: sqlite3.Connection, sql: str, limits: dict[str, Any]) -> tuple[list[Row], float]:
    """Return the rows of one query and the seconds that it took. Raises Stopped with the reason where
    there are none.
    """
    if not sql.strip().rstrip(";").strip():
        raise Stopped("empty", "there is no query")
    started = time.perf_counter()
    ends = started + limits["seconds"]
    connection.set_progress_handler(lambda: time.perf_counter() > ends, _OPCODES)
    try:
        cursor = connection.execute(sql)
        if cursor.description is None:
            raise Stopped("refused", "it is not a query that returns rows")
        rows: list[Row] = []
        while batch := cursor.fetchmany(_FETCH):
            rows += batch
            if len(rows) > limits["rows"]:
                raise Stopped("rows", f"it returns more than {limits['rows']:,} rows")
            if time.perf_counter() > ends:
                raise Stopped("timeout", f"it ran longer than {limits['seconds']:g} seconds")
        return rows, time.perf_counter() - started
    except sqlite3.ProgrammingError as error:
        raise Stopped("refused" if "one statement" in str(error) else "error", str(error)) from None
    except sqlite3.Warning as error:  # before Python 3.12 several statements are a Warning
        raise Stopped("refused", str(error)) from None
    except sqlite3.Error as error:
        raise Stopped(*reason(error, limits)) from None
    except ValueError as error:  # half a character, which is in no encoding
        raise Stopped("error", f"SQLite cannot read its text: {error}") from None
    except MemoryError:
        raise Stopped("memory", f"it needs more than {limits['memory'] >> 20} MiB of memory") from None
    finally:
        connection.set_progress_handler(None, 0)


def reason(error: sqlite3.Error, limits: dict[str, Any]) -> tuple[str, str]:
    """Return the kind and the words of a query's failure."""
    code = getattr(error, "sqlite_errorcode", None)
    if code == sqlite3.SQLITE_INTERRUPT:
        return "timeout", f"it ran longer than {limits['seconds']:g} seconds"
    if code in (sqlite3.SQLITE_AUTH, sqlite3.SQLITE_READONLY) or "not authorized" in str(error):
        return "refused", f"it may only read the tables of its database: {error}"
    if code in (sqlite3.SQLITE_NOMEM, sqlite3.SQLITE_TOOBIG):
        return "memory", f"it makes a value or result that is too large: {error}"
    return "error", str(error)


def judge(
    request: dict[str, Any], connection: sqlite3.Connection, tell: Callable[[dict[str, Any]], None]
) -> dict[str, Any]:
    """Run gold and generated SQL, tell how the first ended before the second begins, and say how they compare."""
    limits = request["limits"]
    reply: dict[str, Any] = {"gold": None, "reply": None, "same_set": False, "same_bag": False, "same_list": False}
    results = {}
    for name in ("gold", "reply"):
        try:
            rows, seconds = run(connection, request[name], limits)
            results[name] = rows
            reply[name] = {"kind": "ok", "rows": len(rows), "seconds": seconds}
        except Stopped as stopped:
            kind, words = stopped.args
            reply[name] = {"kind": kind, "reason": words}
        tell({name: reply[name]})
    if len(results) == 2:
        gold, given = results["gold"], results["reply"]
        reply["same_set"] = set(gold) == set(given)
        reply["same_list"] = gold == given
        reply["same_bag"] = len(gold) == len(given) and Counter(gold) == Counter(given)
    return reply


def main() -> None:
    """Answer requests until there are none."""
    memory = int(sys.argv[1])
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))
    resource.setrlimit(resource.RLIMIT_AS, (memory * 2, memory * 2))
    print(READY, flush=True)
    opened: tuple[str, sqlite3.Connection] | None = None
    for line in sys.stdin:
        request = json.loads(line)
        try:
            if opened is None or opened[0] != request["database"]:
                if opened is not None:
                    opened[1].close()
                    opened = None
                opened = request["database"], open_database(request["database"], memory)
            reply = judge(request, opened[1], say)
        except sqlite3.Error as error:
            reply = {"failed": f"cannot open {request['database']}: {error}"}
        say(reply)


def say(message: dict[str, Any]) -> None:
    """Write one line to the parent."""
    print(json.dumps(message), flush=True)


if __name__ == "__main__":
    main()
