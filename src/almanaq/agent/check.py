"""A look at an answer before it is given: whether the query and its first rows are what was asked for."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, get_args

from almanaq.agent.prompting import complete, json_object, make_prompt
from almanaq.agent.responder import ROWS_SHOWN, cell
from almanaq.errors import ModelCallError
from almanaq.models.prompts import one_of, strict_object
from almanaq.models.protocols import LanguageModel
from almanaq.suql.catalog.relations import unique_names

if TYPE_CHECKING:
    from almanaq.suql.result import Result

Judgement = Literal["right", "doubtful", "wrong"]
_SCHEMA = strict_object({"verdict": one_of(*get_args(Judgement)), "reason": {"type": "string"}})
_CELL, _REASON = 120, 300
_NO_REASON = "a model doubts that the query is what you asked for, and gives no reason."


@dataclass(frozen=True, slots=True)
class Verdict:
    """What a checker says of a query that ran; `reason` is the reading that it doubts, or what is wrong."""

    judgement: Judgement = "right"
    reason: str = ""


def check_answer(model: LanguageModel, question: str, before: Sequence[str], suql: str, result: Result) -> Verdict:
    """Return a model's verdict on a query that answers a question asked after those of `before`; one call.

    It sees the query, the first rows, and how many there are. What it cannot say is taken for right.
    """
    shown = list(result.rows[:ROWS_SHOWN])
    rows = [{c: cell(v, _CELL) for c, v in zip(unique_names(result.columns), row, strict=True)} for row in shown]
    values: dict[str, object] = {"question": question[:2000], "history": list(before), "suql": suql}
    values |= {"rows": rows, "number": len(result.rows)}
    try:
        reply = json_object(complete(model, make_prompt("check", values, _SCHEMA)).text) or {}
    except ModelCallError:
        return Verdict()
    said = str(reply.get("verdict")).casefold()
    reason = " ".join(str(reply.get("reason") or _NO_REASON).split())[:_REASON]
    return Verdict("wrong" if said == "wrong" else "doubtful", reason) if said in ("doubtful", "wrong") else Verdict()
