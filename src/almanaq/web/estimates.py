"""What a query is expected to take, before it spends anything: figures, what would leave, and the plan's mark."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from almanaq.encode import plain
from almanaq.suql.plan.estimate import Estimate, columns_read

if TYPE_CHECKING:
    from almanaq.connection import Connection
    from almanaq.models.protocols import Models


def estimate_record(connection: Connection, suql: str, parameters: Sequence[Any] = ()) -> dict[str, Any]:
    """Return the plan of a query: its stages, and what `expected_record` says."""
    explanation = connection.explain(suql, parameters, dialect=connection.engine.dialect)
    stages = plain(explanation.to_json())
    mark = _mark(connection, suql, parameters, stages)
    expected = expected_record(connection, suql, parameters)
    return {"plan": mark, "stages": stages, **expected, "notes": list(explanation.notes)}


def expected_record(connection: Connection, suql: str, parameters: Sequence[Any] = ()) -> dict[str, Any]:
    """Return the figures of all stages together, and which columns a model on another machine would see.

    The plan is the one that running the query takes: made once for both.
    """
    plan = connection.engine.plan(suql, parameters)
    figures = list(connection.engine.expected(plan).values())
    predicted = {
        "rows": figures[-1].rows if figures else None,
        "calls": sum(each.calls for each in figures),
        "tokens": sum(each.tokens for each in figures),
        "money": _money(connection.models, figures),
    }
    return {"predicted": predicted, "columns_sent": list(columns_read(plan)) if connection.models.reader.remote else []}


def _money(models: Models, figures: Sequence[Estimate]) -> float | None:
    """Return dollars; 0 where calls cost nothing, None where their price is not known."""
    if not models.reader.paid:
        return 0.0
    price = models.price
    return None if price is None else round(sum(price.of(each.tokens, each.output_tokens) for each in figures), 6)


def _mark(connection: Connection, suql: str, parameters: Sequence[Any], stages: Any) -> str:
    """Return a short text that is another whenever the query, its plan or the model is another."""
    parts = [suql, plain(list(parameters)), stages, connection.models.name]
    return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()[:24]
