"""The tasks that peers were measured on: 200 rows, a structured predicate that keeps a quarter, a text predicate."""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa

COZY = "answer(body, 'is it cozy?')"
LATENCY = 0.05


@dataclass(frozen=True)
class Task:
    """A query, the rows it must give (as ids or values, sorted where the query does not order), and its bounds.

    Attributes:
        most: the calls allowed at speculation 1 in table order.
        most_default: the same at the default speculation; None where only speculation 1 is bounded.
        seconds: wall time allowed at speculation 1 and at the default.
    """

    name: str
    sql: str
    most: int
    most_default: int | None = None
    seconds: tuple[float | None, float | None] = (None, None)
    equal_texts: bool = False
    floor: bool = True


def table(*, equal_texts: bool = False) -> pa.Table:
    """Return the 200 rows: every fourth is in Paris (50), two of ten of those in Paris and outside are cozy."""
    ids = list(range(1, 201))
    return pa.table(
        {
            "id": ids,
            "city": ["Paris" if i % 4 == 0 else "Rome" for i in ids],
            "rating": [(i * 37) % 101 / 10 for i in ids],
            "body": ["cozy, the same everywhere" if equal_texts else _text(i) for i in ids],
        }
    )


def cozy(i: int) -> bool:
    """Tell whether row `i` is cozy: 20 % of all rows, of those in Paris the 1st, 4th, 6th of each 15 and so on."""
    return (i // 4) % 15 in (1, 4, 6) if i % 4 == 0 else i % 5 == 0


def _text(i: int) -> str:
    kind = "candles and cushions" if cozy(i) else "bare tables"
    return f"Place {i}: {kind}, {'loud music' if i % 3 else 'no music'}."


def reply(text: str, question: str) -> str:
    """Answer by a word of the text."""
    if "cozy" in question:
        return "Yes" if "candles" in text or "cozy" in text else "No"
    if "loud" in question:
        return "Yes" if "loud" in text else "No"
    return text.split(":")[0]


PARIS = "city = 'Paris'"
IS_COZY = f"{COZY} = 'Yes'"
FIRST = "row_number() OVER (PARTITION BY city ORDER BY rating DESC, id)"
IS_LOUD = "answer(body, 'is it loud?') = 'Yes'"

TASKS = (
    Task("limit 3", f"SELECT id FROM t WHERE {PARIS} AND {IS_COZY} LIMIT 3", 6, 9, (0.35, 0.2)),
    Task("limit 3, text first", f"SELECT id FROM t WHERE {IS_COZY} AND {PARIS} LIMIT 3", 6, 9, (0.35, 0.2)),
    Task("no limit", f"SELECT id FROM t WHERE {PARIS} AND {IS_COZY}", 50, 50),
    Task("or", f"SELECT id FROM t WHERE {PARIS} OR {IS_COZY}", 150, 150),
    Task("equal texts", f"SELECT id FROM t WHERE {PARIS} AND {IS_COZY}", 1, 1, equal_texts=True),
    Task("order by rating, limit 3", f"SELECT id FROM t WHERE {PARIS} AND {IS_COZY} ORDER BY rating DESC LIMIT 3", 0),
    Task("count and limit", f"SELECT count(*) FROM t WHERE {PARIS} AND {IS_COZY} LIMIT 3", 50, 50, floor=False),
    Task("offset", f"SELECT id FROM t WHERE {PARIS} AND {IS_COZY} LIMIT 3 OFFSET 2", 0),
    Task("not", f"SELECT id FROM t WHERE {PARIS} AND NOT ({IS_COZY}) LIMIT 3", 0),
    Task("not of or", f"SELECT id FROM t WHERE NOT ({PARIS} OR {IS_COZY})", 150, 150),
    Task("two answers", f"SELECT id FROM t WHERE {PARIS} AND {IS_COZY} AND {IS_LOUD}", 100, 100, floor=False),
    Task(
        "case",
        f"SELECT id FROM t WHERE CASE WHEN {PARIS} THEN {IS_COZY} ELSE FALSE END",
        *(50, 50),
        floor=False,
    ),
    Task(
        "concatenation",
        f"SELECT city || ': ' || {COZY} AS said FROM t WHERE {PARIS} AND {IS_COZY}",
        *(50, 50),
        floor=False,
    ),
    Task(
        "select beside where",
        f"SELECT id, answer(body, 'name?') FROM t WHERE {PARIS} AND {IS_COZY} LIMIT 3",
        *(9, 12),
        floor=False,
    ),
    Task("values of those that pass", f"SELECT DISTINCT city FROM t WHERE {IS_COZY}", 10, 10, floor=False),
    Task("greatest of those that pass", f"SELECT max(rating) FROM t WHERE {IS_COZY}", 1, 2, floor=False),
    Task("first of each group", f"SELECT id, {COZY} FROM t QUALIFY {FIRST} = 1", 2, 2, floor=False),
    Task("first of each that passes", f"SELECT id FROM t WHERE {IS_COZY} QUALIFY {FIRST} = 1", 9, 10, floor=False),
    Task(
        "largest group",
        f"SELECT city, count(*) FILTER (WHERE {IS_COZY}) AS n FROM t GROUP BY city ORDER BY count(*), city LIMIT 1",
        *(50, 50),
        floor=False,
    ),
)
