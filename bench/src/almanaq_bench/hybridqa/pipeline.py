"""Question → SUQL → rows → short answer; queries that fail are mended or relaxed (paper, section 6.1)."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, Literal, Protocol

import sqlglot
from sqlglot import exp

from almanaq.agent.queries import check_misuse
from almanaq.agent.relax import count_conditions
from almanaq.connection import Connection, connect
from almanaq.errors import AlmanaqError, BudgetExceeded, ModelCallError, ModelError, QueryError
from almanaq.models.protocols import Models, Reader, TextCall, TextReply
from almanaq.suql.catalog.relations import Catalog
from almanaq_bench.evaluation.answers import exact_match, mutual_substring, same_number
from almanaq_bench.hybridqa.best_rows import AllRows, FoundRow, FoundRows, RowFinder
from almanaq_bench.hybridqa.relation import HybridRelation, open_relations
from almanaq_bench.stages import Stage, cell_condition, failed_casts, reads_texts

TRIES = 3
"""Queries written for a question: the first, and two more where it gives no rows or is refused (as in the paper)."""

CELL_SURENESS = 0.7
"""How sure a value is that was read in a cell, beside those that were read in passages (see SureReader.sureness)."""

_ROWS_KEPT = 3
_TOLD = 400


@dataclass(frozen=True, slots=True)
class Attempt:
    """A query that ran or was refused.

    Attributes:
        message: the error's, or why there was no answer; "" where nothing is to be said.
        answer: the short answer that it gave; sureness: how likely that is right, as far as its writer and readers say.
    """

    suql: str
    outcome: Literal["rows", "empty", "refused", "failed"]
    message: str = ""
    answer: str = ""
    sureness: float = 0.0


@dataclass(frozen=True, slots=True)
class QuestionTable:
    """What a question is asked of: the relation, and its catalog with the kind of each column."""

    relation: HybridRelation
    catalog: Catalog


@dataclass(frozen=True, slots=True)
class Proposal:
    """A query, and how likely it is right before it ran, where its writer knows."""

    suql: str
    chance: float = 1.0


class Proposer(Protocol):
    """Writes queries for questions."""

    name: str

    def propose(self, question: str, asked: QuestionTable, tried: Sequence[Attempt]) -> Proposal | None:
        """Return a query that differs from those that were tried, None when there is no other."""


class Shortener(Protocol):
    """Makes a short answer of rows."""

    name: str

    def shorten(self, question: str, rows: Sequence[FoundRow], asked: QuestionTable) -> str:
        """Return the short answer, "" where the rows, of which there is at least one, hold none."""


class FirstValue:
    """The Shortener that takes the first value as the table writes it."""

    name = "first"

    def shorten(self, question: str, rows: Sequence[FoundRow], asked: QuestionTable) -> str:  # noqa: ARG002
        """Return the first value that is not NULL."""
        return rows[0].value


@dataclass(frozen=True, slots=True)
class Prediction:
    """The short answer to a question, and how it came about.

    Attributes:
        answer: "" where nothing was found.
        suql: the query that the answer rests on; None where none gave rows.
        tried: every query, in order.
        rows: the first rows of the query that the answer rests on: the value, and the other cells where they were read.
        warnings: of the table and of the queries.
    """

    answer: str
    suql: str | None = None
    tried: tuple[Attempt, ...] = ()
    rows: tuple[tuple[str, ...], ...] = ()
    text_calls: int = 0
    cached_calls: int = 0
    unknown_calls: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    warnings: tuple[str, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """Return the prediction as JSON has it."""
        return asdict(self)


class HybridPipeline:
    """Answers questions over one relation each.

    Args:
        models: read the passages.
        proposer: writes the queries; shortener: makes the short answer; rows: runs the queries.
        tries: most queries for a question.
        tells: say why a query gave no answer, for the next one, and refuse what is surely not meant.
        readings: so many queries with answers are weighed, and the surest answer is taken; 1 takes the first.
    """

    def __init__(
        self,
        models: Models,
        proposer: Proposer,
        shortener: Shortener | None = None,
        *,
        tries: int = TRIES,
        readings: int = 1,
        rows: RowFinder | None = None,
        tells: bool = False,
    ) -> None:
        self._models, self._proposer, self._tries, self._readings = models, proposer, tries, readings
        self._tells = tells
        self._shortener, self._rows = shortener or FirstValue(), rows or AllRows()

    def answer(self, question: str, relation: HybridRelation) -> Prediction:
        """Return the short answer. What fails for one question is told in `tried`.

        Raises:
            ModelError, BudgetExceeded: no further question can be answered.
        """
        sure = SureReader(self._models.reader)
        models = replace(self._models, reader=sure) if self._readings > 1 else self._models
        with connect(open_relations([relation]), model=models) as connection:
            asked = QuestionTable(relation, connection.catalog)
            tried: list[Attempt] = []
            results: dict[str, FoundRows] = {}
            while len(tried) < self._tries and sum(each.outcome == "rows" for each in tried) < self._readings:
                proposal: Proposal | None = Proposal("")
                try:
                    proposal = self._proposer.propose(question, asked, tuple(tried))
                    if proposal is None:
                        break
                    sure.confidences.clear()
                    if self._tells:
                        check_misuse(proposal.suql, asked.catalog)
                    found = results[proposal.suql] = self._rows.find(connection, proposal.suql, question, relation)
                    became = self._try_query(question, proposal, found, asked, sure)
                    if self._tells and became.outcome == "empty":
                        became = replace(became, message=_why_empty(proposal.suql, found, connection))
                    tried.append(became)
                except AlmanaqError as error:
                    if isinstance(error, ModelError | BudgetExceeded) and not isinstance(error, ModelCallError):
                        raise
                    suql = proposal.suql if proposal is not None else ""
                    tried.append(Attempt(suql, "refused" if isinstance(error, QueryError) else "failed", str(error)))
            return _prediction(tried, results, relation)

    def _try_query(
        self, question: str, proposal: Proposal, found: FoundRows, asked: QuestionTable, sure: SureReader
    ) -> Attempt:
        answer = self._shortener.shorten(question, found.rows, asked) if found.rows else ""
        read = any(result.trace.text_calls for result in found.results)
        sureness = proposal.chance * (sure.sureness() if read else CELL_SURENESS)
        return Attempt(proposal.suql, "rows" if answer else "empty", "", answer, round(sureness, 4))


def _why_empty(suql: str, found: FoundRows, connection: Connection) -> str:
    """Say what kept the rows out, or that those found hold no answer."""
    if found.rows:
        return "rows were found, and no answer in them: " + "; ".join(row.value for row in found.rows)[:_TOLD]
    reasons = "; ".join(each.in_full() for each in count_conditions(suql, connection.sql))
    silent = "the texts of the rows that were found give no answer to what is selected"
    return reasons or (silent if reads_texts(sqlglot.parse_one(suql, read="duckdb")) else "")


class SureReader:
    """A Reader that remembers how sure another was of its replies."""

    def __init__(self, reader: Reader) -> None:
        self.name, self.remote, self.paid = reader.name, reader.remote, reader.paid
        self._reader = reader
        self.confidences: list[float] = []

    async def read(self, call: TextCall) -> TextReply:
        """Return the other's reply."""
        reply = await self._reader.read(call)
        if reply.confidence is not None:
            self.confidences.append(reply.confidence)
        return reply

    def sureness(self) -> float:
        """Return the square root of the least confidence since the list was cleared; 1 where none was told.

        The root, and CELL_SURENESS beside it, were chosen on the development half.
        """
        return math.sqrt(min(self.confidences, default=1.0))


def _prediction(tried: Sequence[Attempt], results: Mapping[str, FoundRows], relation: HybridRelation) -> Prediction:
    best = max((each for each in tried if each.outcome == "rows"), key=lambda each: each.sureness, default=None)
    traces = [result.trace for found in results.values() for result in found.results]
    rows = results[best.suql].rows[:_ROWS_KEPT] if best is not None else ()
    return Prediction(
        best.answer if best is not None else "",
        best.suql if best is not None else None,
        tuple(tried),
        tuple((row.value, *row.cells.values()) for row in rows),
        sum(trace.text_calls for trace in traces),
        sum(trace.cached_calls for trace in traces),
        sum(trace.unknown_calls for trace in traces),
        sum(trace.input_tokens for trace in traces),
        sum(trace.output_tokens for trace in traces),
        (*relation.report.messages, *(warning for trace in traces for warning in trace.warnings)),
    )


def find_stage(
    prediction: Prediction,
    answer: str,
    nodes: Sequence[Mapping[str, Any]],
    relation: HybridRelation,
    *,
    retrieved: bool,
) -> Stage:
    """Return the stage that lost the gold answer, "right" where none did.

    Args:
        nodes: the places that the gold answer was traced to: row, column and whether it is a table's or a passage's.
        relation: the one that was asked; retrieved: whether it is the gold table.

    - retrieval: another table was asked.
    - format: the answer holds the gold answer, or is held by it, or is the same number in digits or words.
    - parse: no query was accepted, or none of its columns is one that holds the answer.
    - link: the query's conditions on cells leave out every row that holds the answer.
    - row choice: another row of those that the query found holds the gold answer.
    - cast: a value of the table or an answer could not be read as its type.
    - text call: all else: what was read in the passages is wrong or missing.
    """
    if exact_match(prediction.answer, answer):
        return "right"
    if not retrieved:
        return "retrieval"
    if mutual_substring(prediction.answer, answer) or same_number(prediction.answer, answer):
        return "format"
    if any(exact_match(row[0], answer) or same_number(row[0], answer) for row in prediction.rows if row):
        return "row choice"
    ran = [each.suql for each in prediction.tried if each.outcome in ("rows", "empty")]
    if not ran:
        return "parse"
    columns = {name for node in nodes for name, origin in relation.origins.items() if origin == node["col"]}
    tree = sqlglot.parse_one(prediction.suql or ran[-1], read="duckdb")
    if columns and not columns & {column.name for column in tree.find_all(exp.Column)}:
        return "parse"
    rows = {node["row"] for node in nodes}
    if rows and not rows & _rows_left(tree, relation):
        return "link"
    return "cast" if failed_casts(prediction.warnings) and not prediction.answer else "text call"


def _rows_left(tree: exp.Expr, relation: HybridRelation) -> set[int]:
    """Return the rows that meet a query's conditions on cells; all of them where these cannot be told apart."""
    everything = set(range(relation.arrow.num_rows))
    condition = cell_condition(tree)
    if condition is None:
        return everything
    marked = relation.arrow.append_column("row number of analysis", [list(range(relation.arrow.num_rows))])
    query = exp.select(exp.column("row number of analysis", quoted=True)).from_(exp.to_table("asked")).where(condition)
    try:
        with connect({"asked": marked}, model="local", cache=False) as connection:
            return {row[0] for row in connection.sql(query.sql("duckdb")).rows}
    except AlmanaqError:
        return everything
