"""Spider's gold queries on its SQLite files: the rows are those that PostgreSQL gives of the same tables.

    python -m benchmarks.gold URL --out benchmarks/gold/results.json

URL names a PostgreSQL server of which the user is a superuser; a database is made for each of Spider's, with the types
that the SQLite columns were read as and the primary keys that hold, and dropped at the end. The files lie where
ALMANAQ_DATA says, else in ../shared/data. Spider quotes texts as "x"; here they are 'x'. In both, DESC is DESC NULLS
LAST, as docs/postgres.md says of ORDER BY.

A query is compared where PostgreSQL runs it and its order decides which rows a LIMIT keeps; rows without ORDER BY as
multisets, with it in order up to ties of the keys.
"""

from __future__ import annotations

import argparse
import json
import os
import re
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from decimal import Decimal
from pathlib import Path
from typing import Any

import psycopg
import pyarrow.parquet as pq
import sqlglot
from psycopg import sql
from sqlglot import exp

import almanaq

DATA = Path(os.environ.get("ALMANAQ_DATA", Path(__file__).parents[3] / "shared" / "data")) / "spider"
Row = tuple[Any, ...]


def main() -> None:
    """Compare every query and write the counts."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("url")
    parser.add_argument("--out", type=Path)
    arguments = parser.parse_args()
    report = compare(arguments.url)
    if arguments.out is not None:
        command = "python -m benchmarks.gold URL --out benchmarks/gold/results.json"
        arguments.out.write_text(json.dumps({"command": command, **report}, indent=2, ensure_ascii=False) + "\n")
    print(json.dumps(report["counts"]))
    for entry in report["not_the_same"]:
        print(entry["database"], entry["verdict"], entry["query"], entry["why"], sep=" | ")


def compare(url: str, databases: frozenset[str] | None = None) -> dict[str, Any]:
    """Return how many queries came to which verdict, and those that did not come to the same rows."""
    queries = pq.read_table(DATA / "queries_validation.parquet").to_pylist()
    counts: Counter[str] = Counter()
    others = []
    for database in sorted({query["database_id"] for query in queries}):
        if databases is not None and database not in databases:
            continue
        path = DATA / "database" / database / f"{database}.sqlite"
        with (
            almanaq.connect(str(path), cache=False, link=False, deadline=20) as con,
            copied(con, url, database) as plain,
        ):
            for text in sorted({normal(q["answer"]) for q in queries if q["database_id"] == database}):
                verdict, why = judge(con, plain, text)
                counts[verdict] += 1
                if verdict in ("different", "refused here alone"):
                    others.append({"database": database, "query": text, "verdict": verdict, "why": why})
    return {"queries": sum(counts.values()), "counts": dict(sorted(counts.items())), "not_the_same": others}


def normal(text: str) -> str:
    """Return a query with its texts in single quotes and NULLs where they stand here."""
    text = re.sub(r'"([^"]*)"', lambda found: "'" + found[1].replace("'", "''") + "'", text.rstrip("; "))
    return re.sub(r"\bdesc\b(?!\s+nulls)", "DESC NULLS LAST", text, flags=re.IGNORECASE)


@contextmanager
def copied(con: almanaq.Connection, url: str, name: str) -> Iterator[psycopg.Connection[Any]]:
    """Give a connection to a database with the tables of a source in it."""
    own = sql.Identifier(f"gold_{name.lower()}")
    with psycopg.connect(url, autocommit=True) as server:
        server.execute(sql.SQL("DROP DATABASE IF EXISTS {}").format(own))
        server.execute(sql.SQL("CREATE DATABASE {} TEMPLATE template0 LC_COLLATE 'C' LC_CTYPE 'C'").format(own))
        try:
            with psycopg.connect(url, autocommit=True, dbname=f"gold_{name.lower()}") as plain:
                for relation in con.catalog.relations:
                    _copy(con, plain, relation)
                yield plain
        finally:
            server.execute(sql.SQL("DROP DATABASE {} WITH (FORCE)").format(own))


def _copy(con: almanaq.Connection, plain: psycopg.Connection[Any], relation: Any) -> None:
    table = sql.Identifier(relation.name.lower())
    parts = [sql.SQL("{} {}").format(sql.Identifier(c.name.lower()), sql.SQL(c.type)) for c in relation.columns]
    if relation.key:
        keys = sql.SQL(", ").join(sql.Identifier(name.lower()) for name in relation.key)
        parts.append(sql.SQL("PRIMARY KEY ({})").format(keys))
    plain.execute(sql.SQL("CREATE TABLE {} ({})").format(table, sql.SQL(", ").join(parts)))
    rows = con.sql(f'SELECT * FROM "{relation.name}"').rows
    with plain.cursor() as cursor, cursor.copy(sql.SQL("COPY {} FROM STDIN").format(table)) as copy:
        for row in rows:
            copy.write_row(row)


def judge(con: almanaq.Connection, plain: psycopg.Connection[Any], text: str) -> tuple[str, str]:
    """Return what a query came to, and why."""
    try:
        expected = [_row(row) for row in plain.execute(text).fetchall()]
    except psycopg.Error as error:
        return "refused by PostgreSQL", str(error).splitlines()[0]
    try:
        given = [_row(row) for row in con.sql(text).rows]
    except almanaq.AlmanaqError as error:
        return "refused here alone", str(error).splitlines()[0]
    if given == expected:
        return "same", ""
    if any(_has_tie(plain, part) for part in sqlglot.parse_one(text, read="postgres").find_all(exp.Subquery)):
        return "order undecided", ""
    keys = keyed(plain, text)
    same = Counter(given) == Counter(expected)
    if keys is None:
        return ("same", "") if same else ("different", f"{expected[:3]} became {given[:3]}")
    known: dict[Row, set[Row]] = {}
    for row, key in keys:
        known.setdefault(row, set()).add(key)
    if len(given) == len(expected) and all(row in known for row in given) and _in_order(given, expected, known):
        return ("same", "") if same else ("order undecided", "")
    return "different", f"{expected[:3]} became {given[:3]}"


def keyed(plain: psycopg.Connection[Any], text: str) -> list[tuple[Row, Row]] | None:
    """Return the rows of a query without its LIMIT, each with its keys of ORDER BY; None without ORDER BY."""
    tree = sqlglot.parse_one(text, read="postgres")
    order = tree.args.get("order")
    if order is None or not isinstance(tree, exp.Select) or tree.args.get("distinct"):
        return None
    width = len(tree.expressions)
    outputs = {item.alias: item.this for item in tree.expressions if isinstance(item, exp.Alias)}
    for ordered in order.expressions:
        tree.append("expressions", outputs.get(ordered.this.name, ordered.this).copy())
    tree.set("limit", None)
    rows = plain.execute(tree.sql("postgres")).fetchall()
    return (
        [(_row(row[: -len(order.expressions)]), _row(row[-len(order.expressions) :])) for row in rows]
        if width
        else None
    )


def _has_tie(plain: psycopg.Connection[Any], subquery: exp.Expr) -> bool:
    """Return whether a nested query's order leaves open which rows its LIMIT keeps."""
    limit = subquery.this.args.get("limit")
    keys = keyed(plain, subquery.this.sql("postgres")) if limit is not None else None
    kept = int(limit.expression.name) if limit is not None else 0
    ordered = [key for _, key in keys or ()]
    return len(ordered) > kept > 0 and ordered[kept - 1] == ordered[kept]


def _in_order(given: list[Row], expected: list[Row], known: dict[Row, set[Row]]) -> bool:
    """Return whether rows have the keys, one after another, that those expected have."""
    return all(known[a] & known.get(b, set()) for a, b in zip(given, expected, strict=True))


def _row(row: Any) -> Row:
    return tuple(float(f"{float(v):.9g}") if isinstance(v, int | float | Decimal) else v for v in row)


if __name__ == "__main__":
    main()
