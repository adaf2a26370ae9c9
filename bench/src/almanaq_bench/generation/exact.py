"""A query whose rows are the answer, exactly what was asked for: written by a language model, checked, and not run."""

from __future__ import annotations

from collections.abc import Sequence

import sqlglot
from sqlglot import exp
from sqlglot.errors import SqlglotError

from almanaq.agent.engine_protocol import QueryEngine
from almanaq.agent.parser import Failure
from almanaq.agent.prompting import complete
from almanaq.agent.reply_reading import json_object
from almanaq.agent.schema_text import schema_text
from almanaq.agent.small_tables import SmallTables
from almanaq.errors import ModelCallError, QueryError
from almanaq.models.protocols import LanguageModel, Prompt
from almanaq.suql.syntax.nodes import nodes_of
from almanaq.suql.syntax.text_functions import is_text_call
from almanaq_bench.prompts import bench_prompt

REPAIRS = 2
"""How often a query that is not accepted is written anew."""


def exact_query(question: str, engine: QueryEngine, model: LanguageModel, *, hint: str = "") -> str:
    """Return a query over the engine's tables that reads no prose; the last one written where none was accepted.

    Raises:
        ModelCallError: the model gave no query that can be read.
    """
    schema = schema_text(engine.catalog, SmallTables(engine)(engine.catalog))
    failures: list[Failure] = []
    while True:
        reply = json_object(complete(model, exact_prompt(schema, question, hint, failures)).text) or {}
        suql = str(reply.get("suql") or "").strip().rstrip(";").strip()
        if not suql:
            raise ModelCallError(
                f"{model.name} gave no readable query; ask again, or choose another model with --model"
            )
        refused = _refused(suql, engine)
        if refused is None or len(failures) == REPAIRS:
            return suql
        failures.append(Failure(suql, refused))


def exact_prompt(schema: str, question: str, hint: str = "", failures: Sequence[Failure] = ()) -> Prompt:
    """Return the request for a query."""
    values = {"schema": schema, "question": question, "hint": hint, "failures": failures}
    return bench_prompt("exact", values)


def _refused(suql: str, engine: QueryEngine) -> str | None:
    """Return why a query is not accepted; None where it is."""
    try:
        engine.check(suql)
        calls = nodes_of(sqlglot.parse_one(suql, read="postgres"), exp.Anonymous)
    except (QueryError, SqlglotError) as error:
        return str(error)
    if any(is_text_call(call) for call in calls):
        return "it reads prose: answer() and summary() are not there"
    return None
