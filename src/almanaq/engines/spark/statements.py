"""What a text may hold that is sent to Spark: one query that reads known tables, with functions that only compute.

It is read again as Spark would read it, whoever wrote it. Tables are those of the catalog, the session's own, and
members of WITH: a path (parquet.`/folder`) is none of these.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from sqlglot import exp

from almanaq.engines.rules import ListedFunctions
from almanaq.errors import RefusedQueryError
from almanaq.suql.catalog.sources import find_cte
from almanaq.suql.syntax.nodes import nodes_of
from almanaq.suql.text_functions import TEXT_FUNCTIONS
from almanaq.suql.tree_language import called_names, check_reads, read_tree

ROW = "_row"
"""The column that numbers the rows of what one step makes for the next (`plan/stages.py`)."""
Place = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Allowed:
    """What a text may name.

    Attributes:
        places: where the tables of the catalog are, in lower case.
        functions: those of the server; whether one of the user's own is allowed was looked at when the query was read.
    """

    places: frozenset[Place]
    functions: ListedFunctions

    def check(self, sql: str, prefix: str) -> frozenset[Place]:
        """Return the tables of the catalog that a text reads.

        Args:
            prefix: begins the names of the session's own tables.

        Raises:
            QueryError: it is not one query that reads, names something else, or a function that does more than compute.
        """
        tree = read_tree(sql, "spark")
        check_reads(tree)
        found = set()
        for table in nodes_of(tree, exp.Table):
            if not isinstance(table.this, exp.Identifier) or find_cte(table) is not None:
                continue
            place = tuple(part.name for part in table.parts)
            if len(place) == 1 and place[0].startswith(prefix):
                continue
            if tuple(part.lower() for part in place) not in self.places:
                raise RefusedQueryError(f"{'.'.join(place)} is no table of this source, and nothing else is read")
            found.add(place)
        for name, in_from in called_names(sql, tree, "spark"):
            if name.lower() not in TEXT_FUNCTIONS:
                self.functions.check(name, in_from=in_from, allowed=self.functions.own)
        return frozenset(found)


def reads_numbered(sql: str, tables: Collection[str]) -> bool:
    """Return whether a text gives the numbered rows of one of these tables, in no order."""
    tree = read_tree(sql, "spark")
    if not isinstance(tree, exp.Select) or any(tree.args.get(part) for part in ("order", "limit", "group", "distinct")):
        return False
    source = tree.args.get("from_")
    plain = source is not None and isinstance(source.this, exp.Table) and source.this.name in tables
    return plain and any(item.alias_or_name == ROW for item in tree.selects)
