"""The parts of a statement that is taken apart: queries that become tables before the rest runs."""

from __future__ import annotations

from collections.abc import Sequence

from almanaq.engines.duckdb.statements import StatementReader
from almanaq.engines.duckdb.trees import Node, alias_of, has_text, items_of, statement, walk
from almanaq.errors import QueryError
from almanaq.suql.catalog.relations import Relation, unique_names
from almanaq.suql.language import ROW_OF_ANSWER, WORK_SCHEMA, Cited, Parameters, Part, Statement, parameters_of


class Parts:
    """The parts of one statement, as they are made, and what DuckDB knows of its queries.

    Args:
        whole: the statement.
        prefix: what the names of the parts' tables begin with.
        parameters: the values of the statement's parameters.
    """

    def __init__(self, reader: StatementReader, whole: Statement, prefix: str, parameters: Parameters) -> None:
        self._reader, self._whole = reader, whole
        self._prefix, self._parameters = prefix, parameters
        self.made: list[Part] = []
        self.kept = False
        """Whether one is of the rows that a LIMIT keeps."""
        functions = reader.functions
        self.aggregates = functions.aggregates | functions.own_names  # macros may aggregate
        self.volatile = functions.volatile
        self.own = functions.own_names
        """Functions of the database's own, which may read anything."""

    def parse(self, text: str) -> Node:
        """Return the tree of a query."""
        return self._reader.parse(text)

    def item(self, text: str) -> Node:
        """Return the tree of an item of FROM."""
        item: Node = self.parse(f"SELECT * FROM {text}")["node"]["from_table"]
        return item

    def cross(self, left: Node, right: Node) -> Node:
        """Return the pairs of two items of FROM."""
        return right if left["type"] == "EMPTY" else {**self.item("a CROSS JOIN b"), "left": left, "right": right}

    def make(
        self, query: Node, documents: Sequence[Cited | None] | None = None, *, numbered: bool = True
    ) -> str | None:
        """Make a part of a query, whose table is then known; give its name, None where DuckDB does not bind it.

        Args:
            documents: where all that its documents are made of stands; None: not known.
            numbered: whether rows that have answers have their number, too.
        """
        name = f"{self._prefix}{len(self.made) + 1}"
        try:
            self.made.append(self._part(name, query, documents, numbered=numbered))
        except QueryError:
            return None
        return name

    def keep(self, query: Node) -> str | None:
        """Make a part that is planned whole, of the rows that a LIMIT keeps; give its name, None as `make` does."""
        name = self.make(query, (), numbered=False)
        self.kept = self.kept or name is not None
        return name

    def _part(self, name: str, query: Node, documents: Sequence[Cited | None] | None, *, numbered: bool) -> Part:
        """Return a part with the columns of its table, which stands empty where later parts are described."""
        reader, tree = self._reader, statement(query)
        sql = reader.write(tree)
        shown = reader.shown(tree, sql)
        items = [node for node in walk(query) if node.get("type") == "BASE_TABLE"]
        tables = [table for item in items if (table := self._relation(item)) is not None]
        relations = tuple(dict.fromkeys(table.name for table in tables))
        private = (
            self._private(query, tables)
            if documents is None
            else [f"{each.relation}.{each.column}" for each in documents if each is not None and each.private]
        )
        alone = documents[0] if documents is not None and len(documents) == 1 else None
        reads = ((alone.relation, alone.column) if alone is not None else ("", "")) if numbered else None
        used, text = self.parameters_in(query), has_text(query)
        if used and not text:
            shown, used = reader.with_literals(shown, parameters_of(used, self._parameters)), ()
        made = Statement(self._whole.text, sql, shown, text, relations, used, reader.lookups(tree), tree)
        columns = tuple(reader.describe(shown, parameters_of(used, self._parameters)))
        names = unique_names(name for name, _ in columns)
        listed = [(name, kind) for name, (_, kind) in zip(names, columns, strict=True)]
        reader.stand_in(name, [*listed, (ROW_OF_ANSWER, "BIGINT")] if text and numbered else listed)
        return Part(name, made, columns, tuple(dict.fromkeys(private)), reads)

    def _private(self, query: Node, tables: Sequence[Relation]) -> list[str]:
        """Return the private columns whose values the rows of a query may hold."""
        called = {str(node.get("function_name", "")).lower() for node in walk(query)}
        read = tables if called.isdisjoint(self.own) else self._reader.catalog.relations
        works = {node["table_name"] for node in walk(query) if node.get("schema_name") == WORK_SCHEMA}
        held = [column for other in self.made if other.name in works for column in other.private]
        return [f"{table.name}.{column.name}" for table in read for column in table.columns if column.private] + held

    def row_id(self, item: Node) -> str | None:
        """Return the column that numbers the rows of an item of FROM; None where none does."""
        relation = self._relation(item)
        renamed = item["column_name_alias"] or item["sample"]
        return relation.row_id if relation is not None and not renamed else None

    def place_of(self, document: Node, items: Sequence[Node]) -> tuple[Node, Cited, tuple[str, ...]] | None:
        """Return where a document stands: the item of FROM, the column, and the columns that name its row.

        None of a document that is computed, or that USING may merge.
        """
        path = document.get("column_names", ()) if document.get("class") == "COLUMN_REF" else ()
        *before, name = path or ("",)
        if not before and len(items) > 1:
            return None
        found = []
        for item in items:
            if item["type"] != "BASE_TABLE" or item["column_name_alias"] or not _is_called(item, before):
                continue
            relation = self._relation(item)
            known = relation.column(str(name)) if relation is not None else None
            if relation is not None and known is not None:
                key = relation.key or ((relation.row_id,) if relation.row_id else ())
                kind = "key" if relation.key else "nothing" if not key else "number" if relation.numbered else "address"
                found.append((item, Cited("", relation.name, known.name, len(key), kind, known.private), key))
        return found[0] if len(found) == 1 else None

    def made_of(self, expressions: list[Node], query: Node, members: Sequence[Node]) -> list[Cited] | None:
        """Return the columns of relations that expressions of a SELECT are made of; None where they are unknown.

        Args:
            members: those of WITH that the query may name.
        """
        items = list(items_of(query["from_table"]))
        found: list[Cited] = []
        for node in walk(expressions):
            called = str(node.get("function_name", "")).lower()
            if node.get("class") in ("SUBQUERY", "STAR", "POSITIONAL_REFERENCE") or called in self.own:
                return None
            if node.get("class") == "COLUMN_REF":
                place = self.place_of(node, items)
                inner = [place[1]] if place is not None else self._made_within(node, items, members)
                if inner is None:
                    return None
                found += inner
        return found

    def _made_within(self, named: Node, items: Sequence[Node], members: Sequence[Node]) -> list[Cited] | None:
        """Return what a column is made of that a derived table, or a member of WITH, shows; None as above."""
        *before, name = named["column_names"]
        found = [item for item in items if _is_called(item, before) and (before or len(items) == 1)]
        query = _query_of(found[0], members) if len(found) == 1 else None
        if query is None or query["type"] != "SELECT_NODE" or query["cte_map"]["map"]:
            return None
        shown = [output for output in query["select_list"] if _output_name(output) == name.lower()]
        starred = any(output["class"] == "STAR" for output in query["select_list"])
        return self.made_of(shown, query, members) if len(shown) == 1 and not starred else None

    def names(self, query: Node) -> Sequence[str]:
        """Return what DuckDB calls the columns of a query; none where it does not bind."""
        try:
            used = parameters_of(self.parameters_in(query), self._parameters)
            return [name for name, _ in self._reader.describe(self._reader.shown(statement(query)), used)]
        except QueryError:
            return ()

    def binds(self, query: Node) -> bool:
        """Return whether DuckDB binds a query."""
        return bool(self.names(query))

    def parameters_in(self, tree: Node) -> tuple[str, ...]:
        """Return the names of the parameters of a tree, in their order in the whole."""
        found = {str(node["identifier"]) for node in walk(tree) if node.get("class") == "PARAMETER"}
        return tuple(name for name in self._whole.parameters if name in found)

    def _relation(self, item: Node) -> Relation | None:
        """Return the relation that an item of FROM names in full, as checked trees do; a bare name is one of WITH."""
        path, catalog = tuple(item["qualified_name"]["path"]), self._reader.catalog
        relation = catalog.find(".".join(path))
        return relation if relation is not None and path in (relation.location, (WORK_SCHEMA, relation.name)) else None


def _is_called(item: Node, path: Sequence[str]) -> bool:
    """Return whether what stands before a column's name, if anything does, is that of an item of FROM."""
    return not path or [alias_of(item).lower()] == [part.lower() for part in path]


def _query_of(item: Node, members: Sequence[Node]) -> Node | None:
    """Return the query of a derived table, or of the member of WITH that an item of FROM names; None of others."""
    if item.get("column_name_alias"):
        return None
    if item["type"] == "SUBQUERY":
        query: Node = item["subquery"]["node"]
        return query
    bare = item["type"] == "BASE_TABLE" and len(item["qualified_name"]["path"]) == 1
    named = [member for member in members if bare and member["key"].lower() == item["table_name"].lower()]
    return named[-1]["value"]["query_node"] if named and not named[-1]["value"]["aliases"] else None


def _output_name(output: Node) -> str:
    """Return the name that an output has by its alias or as a column, in lower case; "" where DuckDB names it."""
    return str(output["alias"] or (output.get("column_names") or [""])[-1]).lower()
