"""SemBench's Movie data, its queries, and how right their results are."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

import duckdb
import pyarrow as pa

from almanaq.corpus.table import Table, TableId, cell_text
from almanaq.errors import UsageError, suggest
from almanaq_bench.evaluation.significance import spearman
from almanaq_bench.question_sets import Question

Measure = Literal["rows", "pairs", "number", "counts", "ranks"]

POSITIVE = "Is the review positive?"
SENTIMENT = "Is the review positive or negative?"
SCORE = "How much did the reviewer like the film, from 1 to 5?"
KINDS = "ARRAY['POSITIVE', 'NEGATIVE']"
FEW, MANY = "taken_3", "ant_man_and_the_wasp_quantumania"


@dataclass(frozen=True, slots=True)
class SembenchQuery:
    """One query.

    Attributes:
        asks: what it asks for, in words.
        limit: how many rows are wanted; None: all.
        gold: SQL over the same tables with the labels, which gives every right row.
    """

    id: str
    asks: str
    suql: str
    measure: Measure
    gold: str
    limit: int | None = None


def _pairs(compared: str) -> str:
    texts = [f"answer({side}.reviewText, '{SENTIMENT}', {KINDS})" for side in ("a", "b")]
    return (  # the reviews of this film stand in the table twice each
        "WITH once AS (SELECT DISTINCT id, reviewId, reviewText FROM reviews) "
        "SELECT a.id, a.reviewId, b.reviewId FROM once AS a JOIN once AS b ON a.id = b.id AND "
        f"a.reviewId < b.reviewId WHERE a.id = '{MANY}' AND {texts[0]} {compared} {texts[1]}"
    )


def _gold_pairs(compared: str) -> str:
    return (
        "SELECT a.id, a.reviewId, b.reviewId FROM reviews AS a JOIN reviews AS b ON a.id = b.id AND "
        f"a.reviewId <> b.reviewId WHERE a.id = '{MANY}' AND a.scoreSentiment {compared} b.scoreSentiment"
    )


_OF_FEW = f"FROM reviews WHERE id = '{FEW}'"
_IS_POSITIVE = f"answer(reviewText, '{POSITIVE}') = 'Yes'"
_GOLD_SCORE = "CAST(split_part(originalScore, '/', 1) AS FLOAT)"

QUERIES = (
    SembenchQuery(
        "Q1",
        "five clearly positive reviews",
        f"SELECT reviewId FROM reviews WHERE {_IS_POSITIVE} LIMIT 5",
        "rows",
        "SELECT reviewId FROM reviews WHERE scoreSentiment = 'POSITIVE'",
        5,
    ),
    SembenchQuery(
        "Q2",
        f"five positive reviews of {FEW}",
        f"SELECT reviewId {_OF_FEW} AND {_IS_POSITIVE} LIMIT 5",
        "rows",
        f"SELECT reviewId {_OF_FEW} AND scoreSentiment = 'POSITIVE'",
        5,
    ),
    SembenchQuery(
        "Q3",
        f"how many reviews of {FEW} are positive",
        f"SELECT count(*) AS positive_review_cnt {_OF_FEW} AND {_IS_POSITIVE}",
        "number",
        f"SELECT count(*) {_OF_FEW} AND scoreSentiment = 'POSITIVE'",
    ),
    SembenchQuery(
        "Q4",
        f"the share of positive reviews of {FEW}",
        f"SELECT avg(CASE WHEN {_IS_POSITIVE} THEN 1.0 ELSE 0.0 END) AS positivity_ratio {_OF_FEW}",
        "number",
        f"SELECT avg(CASE WHEN scoreSentiment = 'POSITIVE' THEN 1.0 ELSE 0.0 END) {_OF_FEW}",
    ),
    SembenchQuery(
        "Q5",
        f"ten pairs of reviews of {MANY} with the same sentiment",
        f"{_pairs('=')} LIMIT 10",
        "pairs",
        _gold_pairs("="),
        10,
    ),
    SembenchQuery(
        "Q6",
        f"ten pairs of reviews of {MANY} with opposite sentiments",
        f"{_pairs('<>')} LIMIT 10",
        "pairs",
        _gold_pairs("<>"),
        10,
    ),
    SembenchQuery(
        "Q7",
        f"all pairs of reviews of {MANY} with opposite sentiments",
        _pairs("<>"),
        "pairs",
        _gold_pairs("<>"),
    ),
    SembenchQuery(
        "Q8",
        f"how many positive and how many negative reviews {FEW} has",
        f"SELECT answer(reviewText, '{SENTIMENT}', {KINDS}) AS sentiment, count(*) AS count {_OF_FEW} GROUP BY 1",
        "counts",
        f"SELECT scoreSentiment, count(*) {_OF_FEW} GROUP BY 1",
    ),
    SembenchQuery(
        "Q9",
        f"how much each reviewer liked {MANY}, from 1 to 5",
        f"SELECT reviewId, answer(reviewText, '{SCORE}')::float AS reviewScore FROM reviews WHERE id = '{MANY}'",
        "ranks",
        f"SELECT reviewId, {_GOLD_SCORE} FROM reviews WHERE id = '{MANY}' AND originalScore IS NOT NULL",
    ),
    SembenchQuery(
        "Q10",
        "every film with the mean of its reviews' scores from 1 to 5",
        f"SELECT id AS movieId, avg(answer(reviewText, '{SCORE}')::float) AS movieScore FROM reviews GROUP BY id",
        "ranks",
        "SELECT id, audienceScore FROM movies WHERE audienceScore IS NOT NULL",
    ),
)


FILES = ("Movies.csv", "Reviews.csv")
LABELS = ("scoreSentiment", "originalScore", "reviewState")
"""Columns that tell what the queries ask for."""
SPLIT = "movie"


@dataclass(frozen=True, slots=True)
class TwoTables:
    """The corpus of the task: there is nothing to find."""

    tables: tuple[Table, ...]

    def __len__(self) -> int:
        return len(self.tables)

    def __iter__(self) -> Iterator[Table]:
        yield from self.tables


@dataclass(frozen=True)
class SembenchData:
    """The folder with both files."""

    path: Path

    @property
    def splits(self) -> tuple[str, ...]:
        """The one split."""
        return (SPLIT,)

    def files(self, split: str) -> tuple[Path, ...]:
        """Return both files."""
        self._check(split)
        return tuple(self.path / name for name in FILES)

    def corpus(self, split: str | None = None) -> TwoTables:  # noqa: ARG002
        """Return the tables as a system sees them, cells as text."""
        return TwoTables(tuple(_as_table(name, table) for name, table in self.tables.items()))

    def corpus_split(self, split: str) -> str:  # noqa: ARG002
        """Return "all": there is one split."""
        return "all"

    def questions(self, split: str) -> tuple[Question, ...]:
        """Return the ten queries in words."""
        self._check(split)
        gold = tuple(TableId("movie", name) for name in ("movies", "reviews"))
        return tuple(Question(query.id, query.asks, gold, fields={"difficulty": query.id}) for query in QUERIES)

    @cached_property
    def tables(self) -> dict[str, pa.Table]:
        """The tables by name, without the columns that hold labels."""
        return {name: table.drop_columns([c for c in LABELS if c in table.column_names]) for name, table in self._all}

    @cached_property
    def labels(self) -> dict[str, tuple[str, str | None]]:
        """The sentiment and the reviewer's own score of each text; of the first review where several have one text."""
        found: dict[str, tuple[str, str | None]] = {}
        for row in dict(self._all)["reviews"].select(["reviewText", *LABELS[:2]]).to_pylist():
            found.setdefault(row["reviewText"], (row["scoreSentiment"], row["originalScore"]))
        return found

    def gold(self, query: SembenchQuery) -> list[tuple[Any, ...]]:
        """Return every right row of a query, by the labels."""
        with duckdb.connect() as connection:
            for name, table in self._all:
                connection.register(name, table)
            return connection.execute(query.gold).fetchall()

    @cached_property
    def _all(self) -> tuple[tuple[str, pa.Table], ...]:
        with duckdb.connect() as connection:
            return tuple(
                (name.partition(".")[0].lower(), connection.read_csv(str(self.path / name)).to_arrow_table())
                for name in FILES
            )

    def _check(self, split: str) -> None:
        if split != SPLIT:
            raise UsageError(f"no split {split!r} in {self.path}{suggest(split, self.splits)}")


def is_sembench_folder(folder: Path) -> bool:
    """Tell whether a folder holds the Movie scenario."""
    return all((folder / name).is_file() for name in FILES)


def _as_table(name: str, table: pa.Table) -> Table:
    rows = tuple(tuple(cell_text(value) for value in row.values()) for row in table.to_pylist())
    return Table(TableId("movie", name), tuple(table.column_names), rows, title=name)


Rows = Sequence[Sequence[Any]]


def measure_query(query: SembenchQuery, found: Rows, gold: Rows) -> dict[str, float]:
    """Return the measures of a query: precision, recall and F1; the relative error; or Spearman's correlation.

    Of rows and pairs under a limit the recall is against the limit. The order of a pair does not matter. `quality`
    is F1, 1 / (1 + relative error), or the correlation, so that there is one number for each query.
    """
    match query.measure:
        case "rows" | "pairs":
            measures = _score_retrieval(_members(query, found), _members(query, gold), query.limit)
            return {**measures, "quality": measures["f1"]}
        case "number":
            error = _relative_error(_number(found), _number(gold))
        case "counts":
            error = _counts_error(found, gold)
        case "ranks":
            correlation = _score_order(found, gold)
            return {"spearman": correlation, "quality": correlation}
    return {"relative_error": error, "quality": 1 / (1 + error)}


def _members(query: SembenchQuery, rows: Rows) -> set[Any]:
    if query.measure == "rows":
        return {row[0] for row in rows if row[0] is not None}
    return {(row[0], *sorted(row[1:3])) for row in rows if None not in row[:3]}


def _score_retrieval(found: set[Any], gold: set[Any], limit: int | None) -> dict[str, float]:
    right = len(found & gold)
    wanted = len(gold) if limit is None else min(limit, len(gold))
    precision = right / len(found) if found else float(not gold)
    recall = min(right, wanted) / wanted if wanted else 1.0
    f1 = 2 * precision * recall / (precision + recall) if precision + recall else 0.0
    return {"precision": precision, "recall": recall, "f1": f1}


def _number(rows: Rows) -> float | None:
    return None if not rows or rows[0][0] is None else float(rows[0][0])


def _relative_error(found: float | None, gold: float | None) -> float:
    if found is None or gold is None:
        return float(found is not gold)
    return abs(found - gold) / abs(gold) if gold else float(found != gold)


def _counts_error(found: Rows, gold: Rows) -> float:
    """Return the mean of the relative errors of the groups; one that should not be there counts as 1."""
    counted, right = ({str(row[0]).upper(): float(row[1]) for row in rows if row[0]} for rows in (found, gold))
    groups = counted.keys() | right.keys()
    return sum(_relative_error(counted.get(group, 0.0), right.get(group, 0.0)) for group in groups) / len(groups)


def _score_order(found: Rows, gold: Rows) -> float:
    """Return the rank correlation over the members that both have a score for."""
    scores = {row[0]: float(row[1]) for row in found if row[1] is not None}
    pairs = [(scores[row[0]], float(row[1])) for row in gold if row[0] in scores and row[1] is not None]
    return spearman([own for own, _ in pairs], [right for _, right in pairs])
