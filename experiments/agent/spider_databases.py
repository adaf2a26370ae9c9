"""Spider's validation databases as one source: how often the agent looks in the right one.

    python experiments/agent/spider_databases.py --data-dir DIR [--write]

`first` is the database that most of the chosen tables lie in; `shown` whether every table of the right query is among
those that a parser is shown. `asked` is the share of questions whose query, written without a language model, reads
the right database, over every tenth question.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

import almanaq
from almanaq.agent.table_chooser import TableChooser
from almanaq.agent.tables import choose_relations, main_database
from almanaq.suql.catalog.relations import Catalog

EVERY = 10


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data-dir", type=Path, required=True)
    parser.add_argument("--write", action="store_true", help="write the result to spider_databases.json")
    arguments = parser.parse_args()
    text = json.dumps(measure(arguments.data_dir), indent=2)
    print(text)
    if arguments.write:
        Path(__file__).with_suffix(".json").write_text(text + "\n", encoding="utf-8")


def measure(data_dir: Path) -> dict[str, Any]:
    """Return the shares over the validation questions."""
    import pyarrow.parquet as pq

    rows = pq.read_table(data_dir / "spider" / "queries_validation.parquet").to_pylist()
    choose = TableChooser()
    first = shown = 0
    with almanaq.connect(data_dir / "spider" / "database", cache=False) as connection:
        catalog = connection.catalog
        for row in rows:
            names = [catalog.relation(name) for name in choose(row["query"], catalog)]
            first += main_database(names) == _place(row["database_id"])
            kept = {_identity(r.location) for r in choose_relations(row["query"], catalog, (), choose).relations}
            shown += all((row["database_id"].casefold(), t.casefold()) in kept for t in _tables(row))
        some = rows[::EVERY]
        asked = sum(_reads(connection, catalog, row) for row in some)
    return {
        "command": "python experiments/agent/spider_databases.py --data-dir DIR",
        "databases": len({row["database_id"] for row in rows}),
        "tables": len(catalog.relations),
        "questions": len(rows),
        "first": round(first / len(rows), 4),
        "shown": round(shown / len(rows), 4),
        "asked": round(asked / len(some), 4),
        "asked_questions": len(some),
    }


def _place(database: str) -> tuple[str, ...]:
    return ("memory", database)


def _identity(location: tuple[str, ...]) -> tuple[str, str]:
    return location[-2].casefold(), location[-1].casefold()


def _tables(row: dict[str, Any]) -> list[str]:
    found = row["table_id"]
    return [found] if isinstance(found, str) else list(found)


def _reads(connection: almanaq.Connection, catalog: Catalog, row: dict[str, Any]) -> bool:
    """Return whether the query that a question becomes reads the right database only."""
    tables = connection.ask(row["query"]).tables
    return bool(tables) and all(catalog.relation(name).location[-2] == row["database_id"] for name in tables)


if __name__ == "__main__":
    main()
