"""How well the model `local` turns questions into SUQL.

    python -m experiments.local.parsing --data-dir DIR [--out experiments/local/parsing.json] [--show]

On `suql_restaurants`: the structured conditions (column, operator, value) of the published queries, but for those that
their annotators marked as wrong parses, against those of `local` on the bundled sample. A value counts as found where
both are linked to a common value of the column. Questions of the development half were looked at while the parser was
written, the others were reported by themselves.

On Spider's validation split: execution accuracy of the one query that `local` writes given the right database; as
published, rows are compared as sets. The development part is a fixed sample; of the fourteen databases of
`OPEN` every question was looked at while the parser was written, and of the other five none. A reply
with the right rows may show more than was asked for, as the number by which rows are ranked: this counts by itself.
`right among three` counts these, and questions of which a reading that was offered gives the right rows.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import random
import sqlite3
from collections import Counter
from collections.abc import Iterator
from hashlib import sha256
from itertools import permutations
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import sqlglot
from sqlglot import exp

import almanaq
from almanaq.agent.local import LocalDialogue
from almanaq.models.extractive import LocalLinker
from almanaq.models.protocols import LinkRequest

Condition = tuple[str, str, str]
_OPERATORS = {exp.EQ: "=", exp.NEQ: "<>", exp.GT: ">", exp.GTE: ">=", exp.LT: "<", exp.LTE: "<=", exp.ILike: "like"}
SPIDER_QUESTIONS = 300
OPEN = (
    *("battle_death", "concert_singer", "cre_Doc_Template_Mgt", "employee_hire_evaluation", "museum_visit"),
    *("orchestra", "poker_player", "singer", "tvshow", "world_1", "car_1", "course_teach", "flight_2", "pets_1"),
)
"""Databases of Spider that were looked at; the others of the split are kept aside."""
LEFT_OUT = "wta_1"
"""Its database is cut down."""


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--data-dir", type=Path, required=True)
    arguments.add_argument("--out", type=Path)
    arguments.add_argument("--show", action="store_true")
    given = arguments.parse_args()
    report = {
        "command": "python -m experiments.local.parsing --data-dir DIR",
        "model": "local",
        "suql_restaurants": restaurants(given.data_dir, given.show),
        "spider": spider(given.data_dir, given.show),
    }
    text = json.dumps(report, indent=2)
    print(text)
    if given.out is not None:
        given.out.write_text(text + "\n", encoding="utf-8")


def restaurants(data_dir: Path, show: bool) -> dict[str, Any]:
    """Return precision and recall over structured conditions, by half."""
    rows = pq.read_table(data_dir / "suql_restaurants" / "queries_single_turn.parquet").to_pylist()
    rows = [row for row in rows if "Wrong parse" not in (row["wrong_parse"], row["entity_annotation"])]
    counts: dict[str, Counter[str]] = {}
    with almanaq.connect("sample:restaurants", model="local", cache=False) as connection:
        engine = connection.engine
        parser = LocalDialogue(engine)
        cuisines = tuple(map(str, engine.values("restaurants", "cuisines", 1000)))
        for row in rows:
            half = "development" if _even(row["query_id"]) else "report"
            ours = set(_linked(parser.parse(row["query"], engine.catalog).suql, cuisines))
            gold = set(_linked(row["predicted_suql"], cuisines))
            matched = {g for g in gold if any(_same(g, o) for o in ours)}
            right = {o for o in ours if any(_same(g, o) for g in gold)}
            for name in (half, "both"):
                count = counts.setdefault(name, Counter())
                count.update(questions=1, gold=len(gold), said=len(ours), right=len(right), matched=len(matched))
            if show and (len(matched) < len(gold) or len(right) < len(ours)) and half == "development":
                print(row["query"], "\n  missed", gold - matched, "\n  extra", ours - right)
    return {
        half: {
            "questions": count["questions"],
            "conditions": count["gold"],
            "precision": round(count["right"] / count["said"], 3),
            "recall": round(count["matched"] / count["gold"], 3),
        }
        for half, count in counts.items()
    }


def _even(name: str) -> bool:
    return int(sha256(name.encode()).hexdigest(), 16) % 2 == 0


def _linked(suql: str | None, cuisines: tuple[str, ...]) -> Iterator[tuple[str, str, frozenset[str]]]:
    """Yield the structured conditions of a query, each literal with the values that it is linked to."""
    for column, operator, value in _conditions(suql or "SELECT 1"):
        known = {"cuisines": cuisines}.get(column)
        if known is None:
            yield column, operator, frozenset([value.casefold()])
        else:
            yield column, operator, frozenset(asyncio.run(LocalLinker().link(LinkRequest(value, column, known))))


def _same(gold: tuple[str, str, frozenset[str]], ours: tuple[str, str, frozenset[str]]) -> bool:
    return gold[:2] == ours[:2] and (gold[2] == ours[2] or bool(gold[2] & ours[2]))


def _conditions(suql: str) -> Iterator[Condition]:
    """Yield (column, operator, value) of WHERE, but for those on the result of a function."""
    where = sqlglot.parse_one(suql, read="postgres").find(exp.Where)
    for node in where.find_all(*_OPERATORS, exp.ArrayContainsAll, exp.In) if where else ():
        if any(isinstance(part, exp.Anonymous) for part in node.walk()):
            continue
        column = node.find(exp.Column)
        values = [literal.this for literal in node.find_all(exp.Literal)]
        if column is not None:
            operator = _OPERATORS.get(type(node), "=")
            negated = isinstance(node.parent, exp.Not)
            for value in values:
                yield column.name, "<>" if negated else operator, _number(value)


def _number(value: str) -> str:
    try:
        return str(float(value))
    except ValueError:
        return value


def spider(data_dir: Path, show: bool) -> dict[str, Any]:
    """Return execution accuracy over a fixed sample, and over the other questions."""
    rows = pq.read_table(data_dir / "spider" / "queries_validation.parquet").to_pylist()
    rows = [row for row in rows if row["database_id"] != LEFT_OUT]
    chosen = random.Random(0).sample(sorted(row["query_id"] for row in rows), SPIDER_QUESTIONS)
    counts: dict[str, Counter[str]] = {}
    for database in sorted({row["database_id"] for row in rows}):
        file = data_dir / "spider" / "database" / database / f"{database}.sqlite"
        with almanaq.connect(str(file), model="local", cache=False) as connection:
            engine = connection.engine
            parser = LocalDialogue(engine)
            for row in (row for row in rows if row["database_id"] == database):
                half = "development" if row["query_id"] in chosen else "report"
                parsed = parser.parse(row["query"], engine.catalog)
                gold = _gold_rows(file, row["answer"])
                ties = any("rank equally" in remark for remark in parsed.remarks)
                outcome = _outcome(connection, parsed.suql, gold, ties=ties)
                offered = (_outcome(connection, reading.suql, gold) for reading in parsed.readings)
                three = any(each in ("right", "more columns") for each in (outcome, *offered))
                for each in (half, "looked at" if database in OPEN else "not looked at"):
                    counts.setdefault(each, Counter()).update((outcome, "asked", *(["three"] if three else [])))
                if show and outcome != "right" and database in OPEN:
                    print(outcome, "|", row["query"], "|", row["answer"], "|", parsed.suql)
    return {
        half: {
            "questions": count["asked"],
            "execution accuracy": round(count["right"] / count["asked"], 3),
            "more columns": round(count["more columns"] / count["asked"], 3),
            "no query": round(count["no query"] / count["asked"], 3),
            "refused": round(count["refused"] / count["asked"], 3),
            "right among three": round(count["three"] / count["asked"], 3),
        }
        for half, count in counts.items()
    }


def _outcome(connection: Any, suql: str | None, gold: set[tuple[str, ...]], *, ties: bool = False) -> str:
    """Return what a query gives beside the published rows; of `ties`, the published query has LIMIT 1."""
    if not suql:
        return "no query"
    if "answer(" in suql or "summary(" in suql:
        return "asks prose"
    try:
        rows = connection.sql(suql).rows
    except almanaq.AlmanaqError:
        return "refused"
    found = {tuple(map(_plain, row)) for row in rows}
    if found == gold or (ties and len(gold) == 1 and gold <= found):
        return "right"
    return "more columns" if _holds(found, gold, ties=ties) else "wrong"


def _holds(found: set[tuple[str, ...]], gold: set[tuple[str, ...]], *, ties: bool) -> bool:
    """Return whether some columns of rows, in any order, hold the gold rows and no others; of ties one is enough."""
    if not found or not gold:
        return False
    wide, narrow = len(next(iter(found))), len(next(iter(gold)))
    some = ({tuple(row[i] for i in at) for row in found} for at in permutations(range(wide), narrow))
    return any(each == gold or (ties and len(gold) == 1 and gold <= each) for each in some)


def _gold_rows(file: Path, sql: str) -> set[tuple[str, ...]]:
    with sqlite3.connect(f"file:{file}?mode=ro", uri=True) as source:
        source.text_factory = lambda raw: raw.decode("utf-8", "replace")
        return {tuple(map(_plain, row)) for row in source.execute(sql).fetchall()}


def _plain(value: object) -> str:
    """Return a value as both databases write it."""
    try:
        return f"{float(str(value)):.6g}"
    except ValueError:
        return str(value)


if __name__ == "__main__":
    main()
