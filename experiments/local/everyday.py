"""How many everyday questions about small databases `local` turns into a query that gives the right rows.

    python experiments/local/everyday.py [--out experiments/local/everyday.json] [--show]

Four small databases of ours (`everyday/*.toml`) in the forms that people have them in, forty questions each as an
analyst may put them. The right queries were written before any was put to `local`. Half of the questions, by a hash of
their words, were looked at while the parser was widened; of the others only how many are right. A reply is right where
some of its columns hold the rows of the right query and no others; a turn taken for small talk is wrong.
"""

from __future__ import annotations

import argparse
import json
import re
import sqlite3
import tempfile
import time
import tomllib
from collections import Counter
from collections.abc import Iterable, Sequence
from datetime import date, datetime
from hashlib import sha256
from itertools import product
from pathlib import Path
from typing import Any

import duckdb

import almanaq
from almanaq.agent.history import NO_DATA
from almanaq.agent.local import LocalDialogue

SOURCES = Path(__file__).parent / "everyday"
_LASTING = re.compile(r"(?=\d)(?:(?P<hours>\d+) ?h)? ?(?:(?P<minutes>\d+) ?m(?:in)?)?")
"""How a file writes how long something took: "1h 30m", "90 min"."""
_DAYS = ("%d %B %Y", "%d %b %Y")
"""How a file may write a day that we read as one."""
FORMS = {"csv": "", "duckdb": "data.duckdb", "sqlite": "data.sqlite"}


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--out", type=Path)
    arguments.add_argument("--show", action="store_true")
    given = arguments.parse_args()
    found = {
        file.stem: measure(tomllib.loads(file.read_text("utf-8")), given.show) for file in sorted(SOURCES.glob("*"))
    }
    halves = {
        half: {
            "questions": sum(sum(counts[half].values()) for counts, _ in found.values()),
            "right": sum(counts[half]["right"] for counts, _ in found.values()),
            "by database": {name: dict(sorted(counts[half].items())) for name, (counts, _) in found.items()},
        }
        for half in ("development", "report")
    }
    seconds = sorted(second for _, taken in found.values() for second in taken)
    record = {
        "command": "python experiments/local/everyday.py",
        "model": "local",
        **halves,
        "milliseconds": {"median": round(1e3 * seconds[len(seconds) // 2]), "slowest": round(1e3 * seconds[-1])},
    }
    text = json.dumps(record, indent=2)
    print(text)
    if given.out is not None:
        given.out.write_text(text + "\n", encoding="utf-8")


def measure(source: dict[str, Any], show: bool) -> tuple[dict[str, Counter[str]], list[float]]:
    """Return how the questions of a source fared, by half, and the seconds that each reading took."""
    counts: dict[str, Counter[str]] = {"development": Counter(), "report": Counter()}
    taken: list[float] = []
    today: date = source["today"]
    with tempfile.TemporaryDirectory() as folder, duckdb.connect() as gold:
        tables(gold, source)
        with almanaq.connect(str(written(gold, source, Path(folder))), model="local", cache=False) as connection:
            dialogue = LocalDialogue(connection.engine, today=lambda: today)
            dialogue.parse("how many", connection.catalog)
            for asked in source["asked"]:
                start = time.perf_counter()
                kind = dialogue.classify(asked["question"], connection.catalog)
                parsed = dialogue.parse(asked["question"], connection.catalog)
                taken.append(time.perf_counter() - start)
                suql = None if kind in NO_DATA else parsed.suql
                outcome = _outcome(connection, suql, gold.sql(asked["sql"]).fetchall())
                counts[half(asked["question"])][outcome] += 1
                if show and outcome != "right" and half(asked["question"]) == "development":
                    print(f"{outcome} ({kind}, {parsed.status}) | {asked['question']}\n    {asked['sql']}\n    {suql}")
    return counts, taken


def half(question: str) -> str:
    """Say to which half a question belongs."""
    return "development" if int(sha256(question.encode()).hexdigest(), 16) % 2 == 0 else "report"


def tables(database: duckdb.DuckDBPyConnection, source: dict[str, Any]) -> None:
    """Fill a database with the tables of a source, with their comments."""
    with tempfile.TemporaryDirectory() as folder:
        for name, text in source["tables"].items():
            file = Path(folder) / f"{name}.csv"
            file.write_text(text.lstrip(), encoding="utf-8")
            database.sql(f"CREATE TABLE {name} AS FROM read_csv('{file}')")
    for name, comment in source.get("comments", {}).items():
        kind = "COLUMN" if "." in name else "TABLE"
        database.sql(f"COMMENT ON {kind} {name} IS '{comment.replace(chr(39), chr(39) * 2)}'")


def written(database: duckdb.DuckDBPyConnection, source: dict[str, Any], folder: Path) -> Path:
    """Write a filled database in the source's form; give the file or folder."""
    file = folder / FORMS[source["form"]]
    if source["form"] == "csv":
        for name, text in source["tables"].items():
            (folder / f"{name}.csv").write_text(text.lstrip(), encoding="utf-8")
    elif source["form"] == "duckdb":
        with duckdb.connect(str(file)) as target:
            tables(target, source)
    else:
        _sqlite(database, source, file)
    return file


def _sqlite(database: duckdb.DuckDBPyConnection, source: dict[str, Any], file: Path) -> None:
    keys, references = source.get("keys", {}), source.get("references", {})
    with sqlite3.connect(file) as target:
        for name in source["tables"]:
            relation = database.table(name)
            parts = [f"{c} {t}" for c, t in zip(relation.columns, map(str, relation.types), strict=True)]
            parts += [f"PRIMARY KEY ({keys[name]})"] if name in keys else []
            for own, theirs in references.items():
                if own.startswith(f"{name}."):
                    other, column = theirs.split(".")
                    parts.append(f"FOREIGN KEY ({own.split('.')[1]}) REFERENCES {other} ({column})")
            target.execute(f"CREATE TABLE {name} ({', '.join(parts)})")
            marks = ", ".join("?" * len(relation.columns))
            rows = [tuple(str(v) if isinstance(v, date) else v for v in row) for row in relation.fetchall()]
            target.executemany(f"INSERT INTO {name} VALUES ({marks})", rows)
    target.close()


def _outcome(connection: almanaq.Connection, suql: str | None, gold: Sequence[tuple[Any, ...]]) -> str:
    if not suql:
        return "no query"
    try:
        rows = connection.sql(suql).rows
    except almanaq.AlmanaqError:
        return "refused"
    return "right" if holds(rows, gold) else "wrong"


def holds(rows: Iterable[Sequence[Any]], gold: Iterable[Sequence[Any]]) -> bool:
    """Return whether some columns of `rows` hold the gold rows and no others."""
    ours, theirs = [tuple(map(_plain, row)) for row in rows], {tuple(map(_plain, row)) for row in gold}
    if not ours or not theirs:
        return not ours and not theirs
    own = [set(column) for column in zip(*ours, strict=True)]
    alike = [[i for i, values in enumerate(own) if values == set(column)] for column in zip(*theirs, strict=True)]
    chosen = (at for at in product(*alike) if len(set(at)) == len(at))
    return any({tuple(row[i] for i in at) for row in ours} == theirs for at in chosen)


def _plain(value: object) -> str:
    """Return a value as every database writes it: a day, and how long something took, in one way."""
    text = str(value)
    if (lasting := _LASTING.fullmatch(text)) is not None:
        hours, minutes = int(lasting["hours"] or 0), int(lasting["minutes"] or 0)
        return f"{hours + minutes // 60:02d}:{minutes % 60:02d}:00"
    try:
        return f"{float(text):.6g}"
    except ValueError:
        pass
    for form in _DAYS:
        try:
            return datetime.strptime(text, form).date().isoformat()
        except ValueError:
            continue
    return {"yes": "True", "no": "False"}.get(text.casefold(), text.removesuffix(" 00:00:00"))


if __name__ == "__main__":
    main()
