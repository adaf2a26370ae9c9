"""Question → SUQL → rows → short answer; queries that fail are mended or relaxed (paper, section 6.1)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal, Protocol

from almanaq.benchmark.hybridqa.relation import HybridRelation, open_relations
from almanaq.benchmark.hybridqa.short_answer import short_answer
from almanaq.connection import connect
from almanaq.errors import AlmanaqError, BudgetExceeded, ModelCallError, ModelError, QueryError
from almanaq.models.protocols import Models
from almanaq.suql.catalog.relations import Catalog
from almanaq.suql.execution.result import Result, Trace

TRIES = 3
"""Queries written for a question: the first, and two more where it gives no rows or is refused (as in the paper)."""

_ROWS_KEPT = 3


@dataclass(frozen=True, slots=True)
class Tried:
    """A query that ran or was refused. `message` is the error's; "" where there was none."""

    suql: str
    outcome: Literal["rows", "empty", "refused", "failed"]
    message: str = ""


@dataclass(frozen=True, slots=True)
class Asked:
    """What a question is asked of: the relation, and its catalog with the kind of each column."""

    relation: HybridRelation
    catalog: Catalog


class Proposer(Protocol):
    """Writes queries for questions."""

    name: str

    def propose(self, question: str, asked: Asked, tried: Sequence[Tried]) -> str | None:
        """Give a query that differs from those that were tried, None when there is no other."""


class Shortener(Protocol):
    """Makes a short answer of rows."""

    name: str

    def shorten(self, question: str, rows: Result, asked: Asked) -> str:
        """Give the short answer, "" where the rows hold none."""


class FirstValue:
    """The Shortener that takes the first value as the table writes it."""

    name = "first"

    def shorten(self, question: str, rows: Result, asked: Asked) -> str:  # noqa: ARG002
        """Give the first value that is not NULL."""
        return short_answer(rows.rows, rows.columns, asked.relation)


@dataclass(frozen=True, slots=True)
class Prediction:
    """The short answer to a question, and how it came about.

    Attributes:
        answer: "" where nothing was found.
        suql: the query that the answer rests on; None where none gave rows.
        tried: every query, in order.
        rows: the first rows of the last query, as text.
        warnings: of the table and of the queries.
    """

    answer: str
    suql: str | None = None
    tried: tuple[Tried, ...] = ()
    rows: tuple[tuple[str, ...], ...] = ()
    text_calls: int = 0
    cached_calls: int = 0
    unknown_calls: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    warnings: tuple[str, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """Give the prediction as JSON has it."""
        return asdict(self)


class HybridPipeline:
    """Answers questions over one relation each.

    Args:
        models: read the passages.
        proposer: writes the queries; shortener: makes the short answer.
        tries: most queries for a question.
    """

    def __init__(
        self, models: Models, proposer: Proposer, shortener: Shortener | None = None, *, tries: int = TRIES
    ) -> None:
        self._models, self._proposer, self._tries = models, proposer, tries
        self._shortener = shortener or FirstValue()

    def answer(self, question: str, relation: HybridRelation) -> Prediction:
        """Give the short answer. What fails for one question is told in `tried`.

        Raises:
            ModelError, BudgetExceeded: no further question can be answered.
        """
        with connect(open_relations([relation]), model=self._models) as connection:
            asked = Asked(relation, connection.catalog)
            tried: list[Tried] = []
            traces: list[Trace] = []
            while len(tried) < self._tries:
                suql: str | None = ""
                try:
                    suql = self._proposer.propose(question, asked, tuple(tried))
                    if suql is None:
                        break
                    result = connection.sql(suql)
                    traces.append(result.trace)
                    answer = self._shortener.shorten(question, result, asked) if _holds(result) else ""
                except AlmanaqError as error:
                    if isinstance(error, ModelError | BudgetExceeded) and not isinstance(error, ModelCallError):
                        raise
                    tried.append(
                        Tried(suql or "", "refused" if isinstance(error, QueryError) else "failed", str(error))
                    )
                    continue
                tried.append(Tried(suql, "rows" if answer else "empty"))
                if answer:
                    return _prediction(answer, suql, tried, traces, result, relation)
            return _prediction("", None, tried, traces, None, relation)


def _holds(result: Result) -> bool:
    return any(value is not None for row in result.rows for value in row)


def _prediction(
    answer: str,
    suql: str | None,
    tried: Sequence[Tried],
    traces: Sequence[Trace],
    result: Result | None,
    relation: HybridRelation,
) -> Prediction:
    rows = result.rows[:_ROWS_KEPT] if result is not None else []
    return Prediction(
        answer,
        suql,
        tuple(tried),
        tuple(tuple("" if value is None else str(value) for value in row) for row in rows),
        sum(trace.text_calls for trace in traces),
        sum(trace.cached_calls for trace in traces),
        sum(trace.unknown_calls for trace in traces),
        sum(trace.input_tokens for trace in traces),
        sum(trace.output_tokens for trace in traces),
        (*relation.report.messages, *(warning for trace in traces for warning in trace.warnings)),
    )
