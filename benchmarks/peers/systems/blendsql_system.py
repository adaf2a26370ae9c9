"""BlendSQL: its SQL with calls in braces."""

from __future__ import annotations

import os

import pandas as pd
from blendsql import BlendSQL
from blendsql.models import OpenAI
from loop import serve

FEW, MANY = "taken_3", "ant_man_and_the_wasp_quantumania"
POSITIVE = "{{LLMMap('Is the review positive?', reviews.reviewText)}} = TRUE"
SENTIMENT = "{{LLMMap('Is the review positive or negative?', reviews.reviewText, options=('POSITIVE', 'NEGATIVE'))}}"
SCORE = "{{LLMMap('How much did the reviewer like the film, from 1 to 5?', reviews.reviewText, return_type='float')}}"
COZY = "{{LLMMap('is it cozy?', t.body)}} = TRUE"
PARIS = "t.city = 'Paris'"
OF_FEW = f"FROM reviews WHERE reviews.id = '{FEW}'"


def pairs(compared, rest=""):
    return (
        f"WITH s AS (SELECT DISTINCT reviews.id AS id, reviews.reviewId AS reviewId, {SENTIMENT} AS said FROM reviews "
        f"WHERE reviews.id = '{MANY}') SELECT a.id, a.reviewId, b.reviewId AS other FROM s AS a JOIN s AS b "
        f"ON a.id = b.id AND a.reviewId < b.reviewId WHERE a.said {compared} b.said{rest}"
    )


QUERIES = {
    "Q1": f"SELECT reviews.reviewId FROM reviews WHERE {POSITIVE} LIMIT 5",
    "Q2": f"SELECT reviews.reviewId {OF_FEW} AND {POSITIVE} LIMIT 5",
    "Q3": f"SELECT count(*) AS n {OF_FEW} AND {POSITIVE}",
    "Q4": f"SELECT (SELECT count(*) {OF_FEW} AND {POSITIVE}) * 1.0 / count(*) AS share {OF_FEW}",
    "Q5": pairs("=", " LIMIT 10"),
    "Q6": pairs("<>", " LIMIT 10"),
    "Q7": pairs("<>"),
    "Q8": f"SELECT {SENTIMENT} AS said, count(*) AS n {OF_FEW} GROUP BY said",
    "Q9": f"SELECT reviews.reviewId, {SCORE} AS score FROM reviews WHERE reviews.id = '{MANY}'",
    "Q10": f"SELECT id, avg(score) AS score FROM (SELECT reviews.id AS id, {SCORE} AS score FROM reviews) AS s "
    "GROUP BY id",
    "limit 3": f"SELECT t.id FROM t WHERE {PARIS} AND {COZY} LIMIT 3",
    "no limit": f"SELECT t.id FROM t WHERE {PARIS} AND {COZY}",
    "or": f"SELECT t.id FROM t WHERE {PARIS} OR {COZY}",
    "equal texts": f"SELECT t.id FROM t WHERE {PARIS} AND {COZY}",
    "order by rating, limit 3": f"SELECT t.id FROM t WHERE {PARIS} AND {COZY} ORDER BY t.rating DESC LIMIT 3",
    "count and limit": f"SELECT count(*) AS n FROM t WHERE {PARIS} AND {COZY} LIMIT 3",
}


def run(name, sql, tables):
    model = OpenAI("stand-in", base_url=os.environ["OPENAI_BASE_URL"], api_key="k")
    made = {name: pd.DataFrame(rows) for name, rows in tables.items()}
    found = BlendSQL(made, model=model).execute(QUERIES[name]).df()
    return zip(*(found[column].to_list() for column in found.columns), strict=True)


serve(run)
