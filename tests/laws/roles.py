"""What a user's roles show of a source is what a copy without all else shows: rows, quotes, errors, suggestions.

`python -m tests.laws.roles --count 5000 --out FILE` compares random queries of random users under random rules.
"""

from __future__ import annotations

import argparse
import json
import random
import re
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa

import almanaq
from almanaq.errors import AlmanaqError
from almanaq.users import User

from .check import LinkingModel, connect_exactly, without_threads
from .compare import difference, expect
from .expressions import Draw
from .generator import Case, Maker
from .oracle import Oracle, OracleError
from .world import TYPES, Relation, World, make_world

PER_USER = 25
USER = User("Zoë", ("one", "two"), {"city": "Oslo", "most": 3, "cities": ["Paris", "O'Hara"]})
CONDITIONS = {
    "stars": ("stars <= :most", "stars % 2 = 0 OR stars IS NULL"),
    "id": ("id % 3 <> 0", "id IN (1, 2, 5, 8, 9)"),
    "city": ("city = :city", "city <> :city", "list_contains(:cities, city)", "lower(city) = lower('PARIS')"),
    "busy": ("busy", "NOT busy"),
    "ref": ("ref BETWEEN 2 AND 9",),
    "price": ("price < 5.5",),
    "body": ("body LIKE '%a%'",),
}
MASKS = {"city": "upper(left(city, 2))", "stars": "NULL", "body": "'…'", "opened": "NULL", "ref": "ref % 2"}
ON_POSTGRES = {"list_contains(:cities, city)": "city = ANY(:cities)"}


_FORM = re.compile(r'(?:Values list|Table) ("\w+" does not have a column named "\w+").*|table "\w+" (has \d+ col.*)')
"""DuckDB calls a subquery a list of values, by its alias, and says nothing that is near its columns."""


@dataclass(frozen=True)
class Rules:
    """What two roles show of one relation together, and the lines of the schema file that say so."""

    relation: Relation
    condition: str
    columns: tuple[str, ...]
    masked: dict[str, str]
    lines: tuple[str, ...]


@dataclass
class Report:
    """What was compared; `kinds` counts how queries ended."""

    compared: int = 0
    differ: list[str] = field(default_factory=list)
    kinds: Counter[str] = field(default_factory=Counter)
    text_calls: int = 0


def draw_rules(rng: random.Random, relation: Relation, dialect: str = "duckdb") -> Rules | None:
    """Draw the rules of a relation; None: no role sees it."""
    if rng.random() < 0.12:
        return None
    roles = ["one"] if rng.random() < 0.8 else ["one", "two"]
    conditions, hidden, masked, lines = [], set[str](), dict[str, str](), []
    for role in roles:
        lines.append(f"[{relation.name}.roles.{role}]")
        offered = [each for name, found in CONDITIONS.items() if name in relation.columns for each in found]
        if rng.random() < 0.85:
            drawn = rng.choice(offered)
            conditions.append(ON_POSTGRES.get(drawn, drawn) if dialect == "postgres" else drawn)
            lines.append(f"rows = {json.dumps(conditions[-1])}")
        if rng.random() < 0.25:
            hidden.add(rng.choice(relation.columns))
            lines.append(f"hidden = {json.dumps(sorted(hidden))}")
        if (name := rng.choice(list(MASKS))) in relation.columns and rng.random() < 0.4:
            masked.setdefault(name, MASKS[name])
            lines.append(f"masked = {{{name} = {json.dumps(MASKS[name])}}}")
    condition = " OR ".join(f"({each})" for each in conditions) if len(conditions) == len(roles) else "true"
    columns = tuple(name for name in relation.columns if name not in hidden)
    return Rules(relation, condition, columns, masked, tuple(lines)) if columns else None


def copy_seen(table: pa.Table, rules: Rules) -> pa.Table:
    """Return the rows and columns seen, chosen by DuckDB beside the compiler."""
    values = {"city": "'Oslo'", "most": "3", "cities": "['Paris', 'O''Hara']"}

    def bound(sql: str) -> str:
        for name, value in values.items():
            sql = sql.replace(f":{name}", value)
        return sql.replace("= ANY(", "IN (SELECT unnest(") + (")" if "= ANY(" in sql else "")

    with duckdb.connect() as connection:
        connection.register("t", table)
        seen = connection.sql(f"SELECT coalesce(({bound(rules.condition)}), false) AS seen FROM t").to_arrow_table()
        for name, mask in rules.masked.items():
            kind = "varchar" if TYPES[name] == "text" else "date" if TYPES[name] == "date" else "integer"
            column = connection.sql(f"SELECT CAST(({mask}) AS {kind}) AS c FROM t").to_arrow_table()["c"]
            table = table.set_column(table.column_names.index(name), name, column)
    mask = seen["seen"].combine_chunks()
    return pa.table({name: table[name].combine_chunks().filter(mask) for name in rules.columns})


def queries(rng: random.Random, world: World, seen: World) -> Iterator[str]:
    """Yield random queries: a few of the whole world, most of what is seen; some are misspelt, some fail at values."""
    for number in range(PER_USER):
        drawn = world if rng.random() < 0.2 else seen
        relation = rng.choice(drawn.relations)
        column = rng.choice(relation.columns)
        match number % 5:
            case 0:
                yield rng.choice((f"SELECT * FROM {relation.name}", f"SUMMARIZE {relation.name}", "SHOW TABLES"))
            case 1:
                yield f"SELECT {column}x FROM {relation.name} WHERE {column} IS NOT NULL"
            case 2:
                yield f"SELECT count(*) FROM {relation.name} WHERE CAST({column} AS INTEGER) > 1"
            case _:
                with_texts = number % 10 == 3
                draw = Draw(
                    rng,
                    text_left=2 if with_texts else 0,
                    beside=random.Random(rng.random()),
                    structured=not with_texts,
                )
                maker = Maker(draw, drawn)
                draw.subquery = maker.subquery
                yield Case(0, world, maker.statement()).sql


def outcome(connection: almanaq.Connection, sql: str) -> str:
    """Return what a query gives, as text that is equal where everything is."""
    try:
        result = connection.sql(sql)
    except AlmanaqError as error:
        return f"{type(error).__name__}: " + _FORM.sub(r"\1\2", str(error).splitlines()[0])
    rows = zip(map(repr, result.rows), (repr(sorted(map(repr, row))) for row in result.evidence), strict=True)
    return repr((result.columns, sorted(rows) if result.evidence else sorted(map(repr, result.rows))))


def compare(seed: int, report: Report, source: Callable[[Any], Any] = lambda t: t, dialect: str = "duckdb") -> None:
    """Compare what one user sees of one source with a copy."""
    rng = random.Random(seed)
    world = make_world(rng)
    ruled = {relation.name: draw_rules(rng, relation, dialect) for relation in world.relations}
    tables = world.tables()
    seen = {name: copy_seen(tables[name], rules) for name, rules in ruled.items() if rules is not None}
    if not seen:
        return
    parts = [rules for rules in ruled.values() if rules is not None]
    shown = World(tuple(replace(rules.relation, columns=rules.columns) for rules in parts), world.model)
    keys = {r.name: f'[{r.name}]\nkey = ["id"]\n' for r in world.relations if r.keyed}
    rules_text = "".join("\n".join(rules.lines) + "\n" for rules in parts)
    kept_keys = "".join(text for name, text in keys.items() if name in seen and "id" in seen[name].column_names)
    with tempfile.TemporaryDirectory() as folder:
        ours, theirs = Path(folder, "ours.toml"), Path(folder, "theirs.toml")
        ours.write_text("".join(keys.values()) + rules_text, "utf-8")
        theirs.write_text(kept_keys, "utf-8")
        model = LinkingModel(world.model.reply)
        link = rng.random() < 0.5
        whole = connect_exactly(source(tables), model, link=link, schema=str(ours))
        copy = connect_exactly(source(seen), model, link=link, schema=str(theirs))
    with whole, copy:
        part = whole.for_user(USER)
        told = [(r.name, r.rows, r.key, [c.name for c in r.columns]) for r in part.catalog.relations]
        if told != [(r.name, r.rows, r.key, [c.name for c in r.columns]) for r in copy.catalog.relations]:
            report.differ.append(f"seed {seed}: catalogs {told}")
        for sql in queries(rng, world, shown):
            given, wanted = outcome(part, sql), outcome(copy, sql)
            right = given == wanted or is_right(part, seen, world, sql, link=link)
            if right is None:
                report.kinds["left open"] += 1
                continue
            report.compared += 1
            report.kinds[wanted.partition(":")[0] if wanted[0].isalpha() else "rows"] += 1
            if not right:
                report.differ.append(f"seed {seed}: {sql}\n  {given}\n  {wanted}")
    report.text_calls += model.calls


def is_right(part: almanaq.Connection, seen: dict[str, pa.Table], world: World, sql: str, *, link: bool) -> bool | None:
    """Return whether rows are those of the query all the same: which of equal ones a LIMIT keeps is left open.

    None: the whole result, of which they are to be a part, is too large for the oracle.
    """
    if "LIMIT" not in sql and "DISTINCT ON" not in sql:
        return False
    oracle = Oracle(seen, world.model.canonical)
    try:
        expected, result = expect(oracle, sql, link=link), part.sql(sql)
        return difference(expected, result.columns, result.rows) is None
    except OracleError as error:
        return None if "more than" in str(error) else False
    except AlmanaqError:
        return False
    finally:
        oracle.close()


def run(seed: int, count: int) -> Report:
    """Compare `count` queries from a seed on."""
    report = Report()
    while report.compared < count:
        compare(seed, report)
        seed += 1
    return report


def main() -> int:
    """Run, and write what was found."""
    parser = argparse.ArgumentParser(prog="python -m tests.laws.roles", description=__doc__)
    parser.add_argument("--count", type=int, default=5_000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path)
    given = parser.parse_args()
    without_threads()
    commit = subprocess.run(["git", "describe", "--always", "--dirty"], capture_output=True, text=True, check=False)
    start = time.perf_counter()
    report = run(given.seed, given.count)
    for failure in report.differ[:20]:
        print(failure, file=sys.stderr)
    found = {
        "command": f"python -m tests.laws.roles --count {given.count} --seed {given.seed}",
        "commit": commit.stdout.strip(),
        "compared": report.compared,
        "differ": len(report.differ),
        "ended_with": dict(report.kinds.most_common()),
        "text_calls": report.text_calls,
        "seconds": round(time.perf_counter() - start),
    }
    print(json.dumps(found, indent=1))
    if given.out:
        given.out.write_text(json.dumps(found, indent=1) + "\n", "utf-8")
    return bool(report.differ)


if __name__ == "__main__":
    raise SystemExit(main())
