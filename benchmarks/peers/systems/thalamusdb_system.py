"""ThalamusDB: `NLfilter` and `NLjoin` in its SQL, in which no values are asked for."""

from __future__ import annotations

import json
import os
from pathlib import Path

from frames import MANY, POSITIVE, Frames
from loop import serve
from tdb.data.relational import Database
from tdb.execution.constraints import Constraints
from tdb.execution.engine import ExecutionEngine
from tdb.queries.query import Query

SAME = "both reviews are positive or both are negative"
OTHER = "one review is positive and the other is negative"
AT_ONCE = 20  # as its console has it
UNBOUNDED = Constraints(max_seconds=10**6, max_calls=10**6, max_tokens=10**9)
MODEL = {"model": "openai/stand-in", "api_base": os.environ["OPENAI_BASE_URL"], "temperature": 0}


class Thalamus(Frames):
    """Its filter and its join stop at a LIMIT; a kind of two is a filter's yes or no; numbers cannot be asked for."""

    def keep(self, rows, column, question, limit=None):
        placed = rows.assign(place=range(len(rows)))[["place", column]]
        found = self._query({"rows_": placed}, f"SELECT place FROM rows_ WHERE NLfilter({column}, '{question}')", limit)
        return rows.iloc[sorted(found.place)[:limit]]

    def value(self, rows, column, question, number=False):
        if number:
            raise NotImplementedError("NLfilter and NLjoin say yes or no")
        positive = set(self.keep(rows, column, POSITIVE).index)
        return ["POSITIVE" if place in positive else "NEGATIVE" for place in rows.index]

    def _pairs(self, reviews, same, limit=None):
        if limit is None:  # its join would take a call for each block of 10 by 10 rows, more than one a row
            return super()._pairs(reviews, same)
        once = reviews[reviews.id == MANY][["id", "reviewId", "reviewText"]].drop_duplicates()
        found = self._query(
            {"once": once},
            "SELECT a.id AS id, a.reviewId AS one, b.reviewId AS other FROM once AS a, once AS b "
            f"WHERE a.reviewId < b.reviewId AND NLjoin(a.reviewText, b.reviewText, '{SAME if same else OTHER}')",
            limit,
        )
        return found[["id", "one", "other"]].head(limit).values.tolist()

    def _query(self, tables, sql, limit):
        database = Database(":memory:")
        for name, rows in tables.items():
            database.con.register("given", rows)
            database.execute2list(f"CREATE TABLE {name} AS SELECT * FROM given")
            database.con.unregister("given")
        engine = ExecutionEngine(database, AT_ONCE, str(_models()))
        query = Query(database, sql if limit is None else f"{sql} LIMIT {limit}")
        return engine.run(query, UNBOUNDED)[0]


def _models():
    """Write the file that names its models; the folder is this run's own."""
    file = Path("models.json")
    kinds = {"filter": MODEL, "join": MODEL}
    file.write_text(json.dumps({"models": [{"modalities": ["text"], "priority": 1, "kwargs": kinds}]}))
    return file


serve(Thalamus().run)
