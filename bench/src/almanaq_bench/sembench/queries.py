"""The ten queries of SemBench's Movie scenario as SUQL, and by which measure each is judged.

What they ask for is SemBench's (Lao et al., VLDB 2026); the queries and their questions to the model are ours.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

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
