"""Planning and whole calls of one source tree, timed in a process that stays up; reads lines, prints JSON lines.

`python -m benchmarks.planning.measure` with the tree's `src` first in PYTHONPATH: each line that it reads is a number
of rounds, each line that it prints the least milliseconds of processor time that each query took in them.
"""

from __future__ import annotations

import itertools
import json
import sys
import time
from collections.abc import Callable
from functools import partial
from typing import Any

QUERIES = {
    "columns": "SELECT name FROM restaurants WHERE rating >= 4 AND price = 'cheap' ORDER BY rating DESC LIMIT 5",
    "one question": "SELECT name FROM restaurants WHERE answer(reviews, 'is it quiet?') = 'Yes' AND rating > 4 LIMIT 3",
    "groups": (
        "SELECT location, count(*) AS n, avg(rating) FROM restaurants WHERE 'Italian' = ANY (cuisines) "
        "GROUP BY location HAVING count(*) > 1 ORDER BY n DESC, location"
    ),
    "shown": (
        "SELECT name, summary(reviews), answer(popular_dishes, 'what is good?') FROM restaurants "
        "WHERE location IN ('Palo Alto', 'Menlo Park') AND (rating > 4 OR num_reviews > 100) LIMIT 3"
    ),
    "nested": (
        "WITH good AS (SELECT id, name, rating, reviews FROM restaurants WHERE rating >= 4) "
        "SELECT g.name, r.location FROM good g JOIN restaurants r ON r.id = g.id "
        "WHERE answer(g.reviews, 'is there parking?') = 'Yes' AND EXISTS (SELECT 1 FROM restaurants o "
        "WHERE o.location = r.location AND o.id <> r.id) ORDER BY g.rating DESC LIMIT 3"
    ),
}
"""Two of columns alone, and three with what text functions are used with."""
_number = itertools.count()


def main() -> None:
    """Answer each line with the times of as many rounds."""
    import almanaq
    from almanaq.testing import FunctionModel

    con: Any = almanaq.connect("sample:restaurants", model=FunctionModel(lambda *_: "Yes"), cache=False)
    for line in sys.stdin:
        rounds = int(line)
        found = {
            "plan": {name: _least(partial(con.engine.logical_plan, sql), rounds) for name, sql in QUERIES.items()},
            "call": {name: _call(con, sql, rounds // 4) for name, sql in QUERIES.items()},
        }
        print(json.dumps(found), flush=True)


def _call(con: Any, sql: str, rounds: int) -> float:
    """Time a query whose text is new each time, by spaces, as the plan of a known one is kept."""
    return _least(lambda: con.sql(sql + " " * (next(_number) % 500)), rounds)


def _least(work: Callable[[], object], rounds: int) -> float:
    taken = []
    for _ in range(rounds):
        start = time.process_time()
        work()
        taken.append(time.process_time() - start)
    return min(taken) * 1000


if __name__ == "__main__":
    main()
