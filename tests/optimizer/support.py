"""One small table, and engines over it with chosen rules."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Any

import pyarrow as pa

import almanaq
from almanaq.engines.open_source import open_database
from almanaq.engines.protocols import Database
from almanaq.models.model_names import open_models
from almanaq.options import Options
from almanaq.suql import bind as binding
from almanaq.suql.engine import Engine
from almanaq.suql.names import BoundQuery
from almanaq.suql.optimizer import QueryRule, Rule
from almanaq.testing import FunctionModel

BODY_WORDS = ("calm", "loud")


def table() -> pa.Table:
    """Return 12 places: every third is calm, every second in Oslo; those with an even id have no phone."""
    ids = range(1, 13)
    return pa.table(
        {
            "id": list(ids),
            "city": ["Oslo" if i % 2 else "Rome" for i in ids],
            "stars": [i % 5 for i in ids],
            "phone": pa.array([str(i) if i % 2 else None for i in ids], pa.string()),
            "body": [f"place {i}: {'calm' if i % 3 == 0 else 'loud'}" for i in ids],
        }
    )


def reply(text: str, question: str) -> str | None:
    """Answer whether the text has the question's word; anything else is answered by the text itself."""
    for word in BODY_WORDS:
        if word in question:
            return "Yes" if word in text else "No"
    return text


@dataclass(frozen=True)
class Took:
    """What a run gave and took."""

    rows: list[tuple[Any, ...]]
    calls: int
    stages: dict[str, dict[str, Any]]


@cache
def _database() -> Database:
    return open_database({"t": table()})


@cache
def run(sql: str, rules: tuple[Rule, ...], query_rules: tuple[QueryRule, ...]) -> Took:
    """Run a query with these rules alone, in table order and without waste; what ran before is not run again."""
    database, models = _database(), open_models(FunctionModel(reply), cache=False)
    options = Options(order="table", speculation=1)
    engine = Engine(database, models, options=options, rules=rules, query_rules=query_rules)
    con = almanaq.Connection(engine, database, models)
    result, explained = con.sql(sql), con.analyze(sql)
    stages = {line.name: line.actual or {} for line in explained.stages}
    return Took(list(result.rows), result.trace.text_calls, stages)


def bind(sql: str, database: Database) -> BoundQuery:
    """Return a query over the tables of a database with its names resolved."""
    catalog = database.catalog()
    language = database.language(catalog)
    return binding.bind(language.read(sql), language, catalog)
