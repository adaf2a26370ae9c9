"""Why a turn is wrong: the first stage that lost it, by what its query's conditions on columns let through."""

from __future__ import annotations

import threading
from functools import cached_property

import sqlglot
from sqlglot import exp
from sqlglot.errors import SqlglotError

from almanaq.connection import Connection
from almanaq.errors import AlmanaqError, BenchmarkError, QueryError
from almanaq.open_connection import connect
from almanaq_bench.restaurants.dataset import RestaurantsData
from almanaq_bench.restaurants.play import Said, TurnRecord
from almanaq_bench.restaurants.wanted import COMBINED, Id, Wanted
from almanaq_bench.stages import STAGES, Stage, cell_condition, failed_casts, reads_texts


def nearest_stage(turn: Wanted, said: Said, record: TurnRecord) -> Stage:  # noqa: ARG001
    """Return the stage that lost a turn of the baseline: no query was written, or other rows were nearer to it."""
    if record.judged == "no data":
        return "parse"
    return "format" if record.judged == "count" else "retrieval" if said.query else "parse"


class Analysis:
    """Tells what lost the turns of a system that writes SUQL.

    - parse: no query was accepted; nothing was to be searched; or its conditions are not about all columns that are
      meant, or none is about texts where one is meant.
    - link: they are about the same columns, and leave out right rows or let wrong ones through.
    - text call: they let right rows through, and what was asked of the texts, or read there, lost them or kept wrong
      ones.
    - cast: the same, where an answer could not be read as the type that the query asks for.
    - format: the rows are none of restaurants, or no single number where one is asked for.
    """

    def __init__(self, data: RestaurantsData) -> None:
        self._data, self._lock = data, threading.Lock()

    def find_stage(self, turn: Wanted, said: Said, record: TurnRecord) -> Stage:
        """Return the first stage that lost a turn, which is wrong."""
        if record.judged == "no data" or not said.query:
            return "parse"
        if said.fault:
            return "text call" if self._binds(said.query) else "parse"
        tree = _parsed(said.query)
        passed = None if tree is None else self._passed(tree)
        if tree is None:
            return "parse"
        if record.judged == "count":
            return self._of_count(turn, said, tree, passed)
        if not record.given:
            return self._of_empty(turn, said, record, tree, passed)
        wrong = [self._of_wrong(turn, row, tree) for row in record.given if row not in record.right]
        return min(wrong, key=STAGES.index, default="format")

    def _of_empty(
        self, turn: Wanted, said: Said, record: TurnRecord, tree: exp.Expr, passed: frozenset[Id] | None
    ) -> Stage:
        if passed is not None and not passed & set(record.right):
            return _same_columns(turn, tree)
        if not reads_texts(tree):
            return "format" if tree.find(exp.AggFunc, exp.Group) is not None else "parse"
        return "cast" if failed_casts(said.warnings) else "text call"

    def _of_count(self, turn: Wanted, said: Said, tree: exp.Expr, passed: frozenset[Id] | None) -> Stage:
        if said.figure is None:
            return "format"
        if turn.attributes and not reads_texts(tree):
            return "parse"
        meant = self._meant(turn)
        if passed is not None and meant is not None and passed != meant:
            return _same_columns(turn, tree)
        if not reads_texts(tree):
            return "parse"
        return "cast" if failed_casts(said.warnings) else "text call"

    def _of_wrong(self, turn: Wanted, row: Id, tree: exp.Expr) -> Stage:
        """Return the stage that let a wrong row through."""
        meant = self._meant(turn)
        if meant is None:
            return "text call" if turn.needs == COMBINED and reads_texts(tree) else "parse"
        if row not in meant:
            return _same_columns(turn, tree)
        return "text call" if reads_texts(tree) else "parse"

    def _meant(self, turn: Wanted) -> frozenset[Id] | None:
        """Return the rows that meet what a turn says of columns; None where it says that by other turns or by rows."""
        if turn.where is None:
            return None
        try:
            return frozenset(self._data.restaurants.holding(turn.where, {}))
        except BenchmarkError:
            return None

    def _passed(self, tree: exp.Expr) -> frozenset[Id] | None:
        """Return the rows that meet a query's conditions on columns; None where these cannot be told apart."""
        condition = cell_condition(tree)
        if condition is None:
            return None
        key = exp.column(self._data.restaurants.key, quoted=True)
        relation = self._connection.catalog.relations[0].name
        query = exp.select(key).from_(exp.to_table(relation)).where(condition).sql("postgres")
        try:
            with self._lock:
                return frozenset(row[0] for row in self._connection.sql(query).rows)
        except AlmanaqError:
            return None

    def _binds(self, query: str) -> bool:
        try:
            with self._lock:
                self._connection.explain(query)
        except QueryError:
            return False
        return True

    @cached_property
    def _connection(self) -> Connection:
        return connect(self._data.source(), model="local", embedder="lexical")


def _parsed(query: str) -> exp.Expr | None:
    try:
        return sqlglot.parse_one(query, read="postgres")
    except SqlglotError:
        return None


def _same_columns(turn: Wanted, tree: exp.Expr) -> Stage:
    """Return "link" where a query's conditions are about all columns that a turn is about, else "parse"."""
    condition = cell_condition(tree)
    meant = _parsed(f"SELECT 1 FROM restaurants WHERE {turn.where or 'TRUE'}")
    if turn.where is None or condition is None or meant is None:
        return "parse"
    columns = {column.name for column in condition.find_all(exp.Column)}
    return "link" if {column.name for column in meant.find_all(exp.Column)} <= columns else "parse"
