"""What a role costs a query, and terms a prompt: `python -m benchmarks.roles`, written to results.json beside it.

A user sees every second of 200,000 rows. Each query runs for the user, over the whole source, and over a copy that
holds the user's rows alone, in turns; of the processor time of each the least counts.
"""

from __future__ import annotations

import json
import os
import tempfile
import time
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc

import almanaq
from almanaq.agent.parser import PromptedParser
from almanaq.models.budget import estimate_tokens
from almanaq.testing import FunctionModel, ScriptedModel
from almanaq.users import User

ROWS, TURNS = 200_000, 15
RULES = '[shops]\nkey = ["id"]\n[shops.roles.sales]\nrows = "region = :region"\nmasked = {phone = "left(phone, 2)"}\n'
QUERIES = {
    "count": "SELECT count(*) FROM shops",
    "group": "SELECT kind, sum(amount) FROM shops GROUP BY kind",
    "one row by key": "SELECT name FROM shops WHERE id = 4242",
    "twenty rows": "SELECT * FROM shops ORDER BY amount DESC LIMIT 20",
    "answer": "SELECT name FROM shops WHERE kind = 3 AND answer(about, 'is it calm?') = 'Yes' LIMIT 5",
}
TERMS = (1, 12, 100)


def main() -> None:
    """Measure, print and write the record."""
    record = {"command": "python -m benchmarks.roles", "rows": ROWS, "load_average": round(os.getloadavg()[0], 1)}
    text = json.dumps({**record, **measure_roles(), "tokens_of_terms": measure_terms()}, indent=1)
    print(text)
    Path(__file__).with_name("results.json").write_text(text + "\n", "utf-8")


def measure_roles() -> dict[str, object]:
    """Return the milliseconds of opening a user's connection, and of each query on the three connections."""
    numbers = range(ROWS)
    table = pa.table(
        {
            "id": list(numbers),
            "name": [f"Shop {number}" for number in numbers],
            "region": [("west", "east")[number % 2] for number in numbers],
            "kind": [number // 2 % 7 for number in numbers],
            "phone": [f"0{number}" for number in numbers],
            "amount": [number * 7919 % 10_007 for number in numbers],
            "about": [("A calm place.", "A loud place.")[number // 2 % 2] for number in numbers],
        }
    )
    seen = table.filter(pc.equal(table["region"], "west"))
    reader = FunctionModel(lambda text, _: "Yes" if "calm" in text else "No")
    with tempfile.TemporaryDirectory() as folder:
        schema = Path(folder, "shops.toml")
        schema.write_text(RULES)
        whole = almanaq.connect({"shops": table}, model=reader, schema=str(schema), cache=False)
        copy = almanaq.connect({"shops": seen}, model=reader, schema=str(schema), cache=False)
    start = time.process_time()
    user = whole.for_user(User("Ann", ("sales",), {"region": "west"}))
    opening = 1e3 * (time.process_time() - start)
    found = {}
    for name, query in QUERIES.items():
        least = {"user": float("inf"), "whole": float("inf"), "copy": float("inf")}
        for _ in range(TURNS):
            for side, connection in zip(least, (user, whole, copy), strict=True):
                start = time.process_time()
                connection.sql(query)
                least[side] = min(least[side], 1e3 * (time.process_time() - start))
        found[name] = {f"{side}_ms": round(value, 2) for side, value in least.items()}
        found[name]["ratio_to_whole"] = round(least["user"] / least["whole"], 2)
    return {"for_user_ms": round(opening, 1), "queries": found}


def measure_terms() -> dict[str, int]:
    """Return how many tokens the definitions add to a prompt, by how many there are."""
    orders = {"orders": {"id": [1, 2], "price": [3, 4], "status": ["paid", "lost"]}}
    added, plain = {}, 0
    for count in (0, *TERMS):
        lines = [
            f'"sales {n}" = {{expression = "sum(price) + {n}", unit = "EUR", synonyms = ["turnover {n}"]}}'
            for n in range(count)
        ]
        with tempfile.TemporaryDirectory() as folder:
            schema = Path(folder, "orders.toml")
            schema.write_text("[orders.metrics]\n" + "\n".join(lines) + "\n")
            with almanaq.connect(orders, schema=str(schema), cache=False) as connection:
                prompt = PromptedParser(ScriptedModel([])).prompt("What are the sales 7?", connection.catalog)
        tokens = sum(estimate_tokens(message.content) for message in prompt.messages)
        plain = plain or tokens
        added[str(count)] = tokens - plain
    return {"prompt": plain, **{count: more for count, more in added.items() if count != "0"}}


if __name__ == "__main__":
    main()
