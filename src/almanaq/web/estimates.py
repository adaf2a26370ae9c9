"""What a query is expected to take, before it spends anything: figures, what would leave, and the plan's mark."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from almanaq.encode import plain
from almanaq.suql.plan.stages import TextStage

if TYPE_CHECKING:
    from almanaq.connection import Connection
    from almanaq.suql.explain.explain import Explanation


def estimate_record(connection: Connection, suql: str, parameters: Sequence[Any] = ()) -> dict[str, Any]:
    """Give the plan of a query: its stages, the figures of all together, and which columns a remote model would see."""
    explanation = connection.explain(suql, parameters)
    stages = plain(explanation.to_json())
    return {
        "plan": _mark(connection, suql, parameters, stages),
        "stages": stages,
        "predicted": predicted(explanation),
        "columns_sent": columns_sent(connection, suql, parameters),
        "notes": list(explanation.notes),
    }


def predicted(explanation: Explanation) -> dict[str, Any]:
    """Give what all stages are expected to take; money None where a price is not known, rows those of the last."""
    figures = [line.predicted for line in explanation.stages]
    money = [found["money"] for found in figures if "money" in found]
    return {
        "rows": next((found["rows"] for found in reversed(figures) if "rows" in found), None),
        "calls": sum(found.get("calls") or 0 for found in figures),
        "tokens": sum(found.get("tokens") or 0 for found in figures),
        "money": None if any(each is None for each in money) else sum(money),
    }


def columns_sent(connection: Connection, suql: str, parameters: Sequence[Any]) -> list[str]:
    """Give the columns whose cells leave the machine when the query runs."""
    if not connection.models.reader.remote:
        return []
    stages = connection.engine.plan(suql, parameters).stages
    texts = (item for stage in stages if isinstance(stage, TextStage) for item in stage.inputs)
    return list(dict.fromkeys(f"{item.relation}.{item.column}" if item.relation else item.column for item in texts))


def _mark(connection: Connection, suql: str, parameters: Sequence[Any], stages: Any) -> str:
    """Give a short text that is another whenever the query, its plan or the model is another."""
    parts = [suql, plain(list(parameters)), stages, connection.models.name]
    return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()[:24]
