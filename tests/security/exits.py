"""A program that gives up a query at its deadline and ends: `python exits.py {none | long} {close | leave}`."""

from __future__ import annotations

import sys
import time

import almanaq
from almanaq.errors import DeadlineExceeded

QUERIES = {
    "none": "SELECT n FROM t",
    "long": "SELECT max(length(lpad('x', 100000000, n::text || i))) FROM t, generate_series(1, 25) AS g(i)",
}
"""One that ends, and one of half a minute that looks at no interruption."""


def main() -> None:
    """Run the query; print how long what came after it took until the end of this function."""
    connection = almanaq.connect({"t": {"n": [1, 2, 3]}}, deadline=30 if sys.argv[1] == "none" else 0.2)
    try:
        connection.sql(QUERIES[sys.argv[1]])
        print("rows")
    except DeadlineExceeded:
        print("deadline")
    if sys.argv[2] == "close":
        connection.close()
    print(time.time(), flush=True)


if __name__ == "__main__":
    main()
