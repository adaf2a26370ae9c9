"""Tables that a query is taken apart into: of answers, and what is looked up in them; of rows that a LIMIT keeps.

DuckDB runs such a lookup as a join, which loses the order of rows. Where a query may depend on it, the table is looked
up as a MAP: that takes time for each pair of a row and a document (50,000 of each: 5 s).
"""

from __future__ import annotations

import copy
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from almanaq.engines.duckdb import trees
from almanaq.engines.duckdb.statements import StatementReader
from almanaq.engines.duckdb.trees import Node
from almanaq.errors import DatabaseError, QueryError, QueryTypeError
from almanaq.suql.catalog.relations import Relation, unique_names
from almanaq.suql.language import ROW_OF_ANSWER, WORK_SCHEMA, Cited, Parameters, Part, Statement, parameters_of
from almanaq.suql.plan.blocks import SET_RETURNING
from almanaq.suql.text_functions import DECLARED

_LIMITS = ("LIMIT_MODIFIER", "LIMIT_PERCENT_MODIFIER")


class Parts:
    """The parts of a statement, as they are made, and what DuckDB knows of its queries."""

    def __init__(self, reader: StatementReader, whole: Statement, prefix: str, parameters: Parameters) -> None:
        self._reader, self._whole, self.parse = reader, whole, reader.parse
        self._prefix, self._parameters = prefix, parameters
        self._columns: dict[str, list[tuple[str, str]]] = {}
        self.made: list[Part] = []
        self.kept = ""
        """The one that is of the rows that a LIMIT or DISTINCT ON keeps; "" where there is none."""
        self.functions = reader.functions
        # Macros may aggregate; those that stand for text functions do not.
        self.aggregates = self.functions.aggregates | (self.functions.own_names - DECLARED.keys())

    def item(self, text: str) -> Node:
        item: Node = self.parse(f"SELECT * FROM {text}")["node"]["from_table"]
        return item

    def express(self, sql: str, **parts: Node) -> Node:
        """Return an expression of SQL, with parts of a tree in the place of the columns of their names."""

        def put(value: Any) -> Any:
            if isinstance(value, list):
                return [put(each) for each in value]
            if not isinstance(value, dict):
                return value
            name = value["column_names"][0] if value.get("class") == "COLUMN_REF" else ""
            return parts[name] if name in parts else {key: put(each) for key, each in value.items()}

        made: Node = put(self.parse(f"SELECT {sql}")["node"]["select_list"][0])
        return made

    def cross(self, left: Node, right: Node) -> Node:
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

    def _part(self, name: str, query: Node, documents: Sequence[Cited | None] | None, *, numbered: bool) -> Part:
        """Return a part with the columns of its table, which stands empty where later parts are described."""
        reader, tree = self._reader, trees.statement(query)
        sql = reader.write(tree)
        shown = reader.shown(tree, sql)
        items = [node for node in trees.walk(query) if node.get("type") == "BASE_TABLE"]
        tables = [table for item in items if (table := self._relation(item)) is not None]
        relations = tuple(dict.fromkeys(table.name for table in tables))
        private = (
            self._private(query, tables)
            if documents is None
            else [f"{each.relation}.{each.column}" for each in documents if each is not None and each.private]
        )
        alone = documents[0] if documents is not None and len(documents) == 1 else None
        reads = ((alone.relation, alone.column) if alone is not None else ("", "")) if numbered else None
        used, text = self.parameters_in(query), trees.has_text(query)
        if used and not text:
            shown, used = reader.with_literals(shown, parameters_of(used, self._parameters)), ()
        made = Statement(self._whole.text, sql, shown, text, relations, used, reader.lookups(tree), tree)
        columns = tuple(reader.describe(shown, parameters_of(used, self._parameters)))
        names = unique_names(name for name, _ in columns)
        listed = [(name, kind) for name, (_, kind) in zip(names, columns, strict=True)]
        reader.stand_in(name, [*listed, (ROW_OF_ANSWER, "BIGINT")] if text and numbered else listed)
        works = [str(node["table_name"]) for node in items if node.get("schema_name") == WORK_SCHEMA]
        joined = any(node.get("type") in ("JOIN", "TABLE_FUNCTION") for node in trees.walk(query))
        within = self.kept if len(items) < len(works) + 2 and self.kept in works and not joined else ""
        return Part(name, made, columns, tuple(dict.fromkeys(private)), reads, within)

    def _private(self, query: Node, tables: Sequence[Relation]) -> list[str]:
        own = self.functions.own_names & trees.functions_in(trees.walk(query))  # which may read anything
        read = self._reader.catalog.relations if own else tables
        works = {node["table_name"] for node in trees.walk(query) if node.get("schema_name") == WORK_SCHEMA}
        held = [column for other in self.made if other.name in works for column in other.private]
        return [f"{table.name}.{column.name}" for table in read for column in table.columns if column.private] + held

    def row_id(self, item: Node) -> str | None:
        relation = self._relation(item)
        renamed = item["column_name_alias"] or item["sample"]
        return relation.row_id if relation is not None and not renamed else None

    def find_place(self, document: Node, items: Sequence[Node]) -> tuple[Node, Cited, tuple[str, ...]] | None:
        """Return the item of FROM, the column and the key of a document's row; None of one that is computed."""
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

    def find_sources(self, expressions: list[Node], query: Node, members: Sequence[Node]) -> list[Cited] | None:
        """Return the columns of relations that expressions of a SELECT are made of; None where they are unknown."""
        items = list(trees.items_of(query["from_table"]))
        found: list[Cited] = []
        for node in trees.walk(expressions):
            called = str(node.get("function_name", "")).lower()
            if node.get("class") in ("SUBQUERY", "STAR", "POSITIONAL_REFERENCE") or called in self.functions.own_names:
                return None
            if node.get("class") == "COLUMN_REF":
                place = self.find_place(node, items)
                inner = [place[1]] if place is not None else self._find_inner_sources(node, items, members)
                if inner is None:
                    return None
                found += inner
        return found

    def _find_inner_sources(self, named: Node, items: Sequence[Node], members: Sequence[Node]) -> list[Cited] | None:
        """Return what a column is made of that a derived table, or a member of WITH, shows; None as above."""
        *before, name = named["column_names"]
        found = [item for item in items if _is_called(item, before) and (before or len(items) == 1)]
        query = _query_of(found[0], members) if len(found) == 1 else None
        if query is None or query["type"] != "SELECT_NODE" or query["cte_map"]["map"]:
            return None
        names = [str(each["alias"] or (each.get("column_names") or [""])[-1]).lower() for each in query["select_list"]]
        shown = [each for each, called in zip(query["select_list"], names, strict=True) if called == name.lower()]
        starred = any(output["class"] == "STAR" for output in query["select_list"])
        return self.find_sources(shown, query, members) if len(shown) == 1 and not starred else None

    def is_nondeterministic(self, value: Any) -> bool:
        """Return whether a part of a tree may come to other rows each time that it is read."""
        cut = any(node.get("sample") is not None or node.get("type") in _LIMITS for node in trees.walk(value))
        return cut or not self.functions.volatile.isdisjoint(trees.functions_in(trees.walk(value)))

    def is_grouped(self, expression: Node) -> bool:
        """Return whether an expression is over several rows, within the query that it stands in."""
        nodes = list(trees.own_nodes(expression))
        return bool(self.aggregates & trees.functions_in(nodes)) or any(node.get("class") == "WINDOW" for node in nodes)

    def columns(self, query: Node, members: Sequence[Node]) -> Sequence[tuple[str, str]]:
        """Return the names and types of a query's columns; () where DuckDB does not bind it."""
        made = trees.add_members(query, members)
        key = json.dumps(made)
        if key not in self._columns:
            try:
                self._columns[key] = self._describe(made)
            except DatabaseError:  # DuckDB fails where unnest() of a STRUCT would copy a subquery
                return ()
        return self._columns[key]

    def _describe(self, query: Node) -> list[tuple[str, str]]:
        used = parameters_of(self.parameters_in(query), self._parameters)
        return self._reader.describe(self._reader.shown(trees.statement(query)), used)

    def find_misread(self, made: Node) -> QueryTypeError | None:
        """Return DuckDB's error where it does not bind what a query became as it would not bind the query itself."""
        own = self._whole.shown, parameters_of(self._whole.parameters, self._parameters)
        found = _find_problem(self._describe, made), _find_problem(self._reader.describe_texts, *own)
        return found[1] if None not in found and str(found[0]) == str(found[1]) else None

    def parameters_in(self, tree: Node) -> tuple[str, ...]:
        found = {str(node["identifier"]) for node in trees.walk(tree) if node.get("class") == "PARAMETER"}
        return tuple(name for name in self._whole.parameters if name in found)

    def _relation(self, item: Node) -> Relation | None:
        """Return the relation that an item of FROM names in full, as checked trees do; a bare name is one of WITH."""
        path, catalog = tuple(item["qualified_name"]["path"]), self._reader.catalog
        relation = catalog.find(".".join(path))
        return relation if relation is not None and path in (relation.location, (WORK_SCHEMA, relation.name)) else None


def _find_problem(describe: Callable[..., object], *arguments: object) -> QueryTypeError | None:
    try:
        describe(*arguments)
    except QueryTypeError as error:
        return error
    except DatabaseError:
        pass
    return None


def _is_called(item: Node, path: Sequence[str]) -> bool:
    return not path or [trees.alias_of(item).lower()] == [part.lower() for part in path]


def _query_of(item: Node, members: Sequence[Node]) -> Node | None:
    """Return the query of a derived table, or of the member of WITH that an item of FROM names."""
    if item.get("column_name_alias"):
        return None
    if item["type"] == "SUBQUERY":
        query: Node = item["subquery"]["node"]
        return query
    member = trees.member_of(item, members)
    return None if member is None or member["value"]["aliases"] else member["value"]["query_node"]


# --- rows that a LIMIT keeps, found before the texts of other clauses are asked ---------------------------------------

_ROW = "almanaq_row"


def keep_first_rows(node: Node, members: Sequence[Node], engine: Parts) -> None:
    """Let a SELECT read the rows of one item of FROM that its LIMIT or DISTINCT ON keeps, where nothing else cuts.

    `SELECT t, answer(x, 'q') FROM t WHERE answer(y, 'r') = 'Yes' LIMIT 3` reads the three rows that a part keeps, which
    is planned whole: it asks no more texts than it needs, and the documents of the SELECT are then those of these rows.
    """
    item = node["from_table"]
    if not _is_cut(node, engine):
        return
    row = engine.row_id(item) if item["type"] == "BASE_TABLE" else None
    whole = item["type"] in ("BASE_TABLE", "SUBQUERY") and trees.alias_of(item) and not trees.has_text(item)
    if row is None and (not whole or item["sample"]):
        return
    numbered = trees.column(trees.alias_of(item), row or "")
    kept_item = copy.deepcopy(item)
    part = trees.select_all(kept_item) if row is None else trees.select([{**numbered, "alias": _ROW}], kept_item)
    part |= {key: copy.deepcopy(node[key]) for key in ("where_clause", "modifiers")}
    name = engine.make(trees.add_members(part, members), None if row is None else (), numbered=False)
    if name is None:
        return
    engine.kept = name
    node["modifiers"] = [modifier for modifier in node["modifiers"] if modifier["type"] == "ORDER_MODIFIER"]
    if row is None:
        node["from_table"] = {**engine.item(f"{WORK_SCHEMA}.{name}"), "alias": trees.alias_of(item)}
        node["where_clause"] = None
        return
    kept = engine.express(f"a IN (SELECT {_ROW} FROM {WORK_SCHEMA}.{name})", a=numbered)
    node["where_clause"] = trees.both(kept, node["where_clause"])


def _is_cut(node: Node, engine: Parts) -> bool:
    """Return whether LIMIT or DISTINCT ON cuts the rows of FROM, and nothing else does."""
    modifiers = {modifier["type"]: modifier for modifier in node["modifiers"]}
    limit, distinct = modifiers.get("LIMIT_MODIFIER", {}), modifiers.get("DISTINCT_MODIFIER", {})
    targets = distinct.get("distinct_on_targets", [])
    if not (limit or targets) or (distinct and not targets) or "LIMIT_PERCENT_MODIFIER" in modifiers:
        return False
    if node["group_expressions"] or node["group_sets"] or node["having"] or node["qualify"] or node["sample"]:
        return False
    keys = [*targets, *(order["expression"] for order in modifiers.get("ORDER_MODIFIER", {}).get("orders", ()))]
    aliases = {str(output["alias"]).lower() for output in node["select_list"]}
    plain = all(limit.get(key) is None or trees.is_constant(limit[key]) for key in ("limit", "offset"))
    named = trees.names_in(keys) & aliases or any(trees.is_constant(key) or key["class"] == "STAR" for key in keys)
    across = any(map(engine.is_grouped, [*node["select_list"], *keys]))
    unnested = not SET_RETURNING.isdisjoint(trees.functions_in(trees.walk(node["select_list"])))
    return plain and not (named or across or unnested or engine.is_nondeterministic(node["where_clause"]))


# --- answers ----------------------------------------------------------------------------------------------------------

DOCUMENT, ANSWER, _ANSWERS = "almanaq_document_", "almanaq_said", "almanaq_answers"
SAID = "1"
"""What is found in the place of an answer where only that there is one counts."""


@dataclass
class Lookup:
    """The expression that stands for a text function, or says whether it was answered: a subquery, or a map where no
    subquery may see the row, or where the order of rows counts."""

    node: Node
    table: str
    documents: list[Node]
    select: Node
    """The SELECT that it stands in."""
    branch: Node | None = None
    """The condition under which it is asked for, of one within an expression that other parts may decide."""
    found: str = f"{_ANSWERS}.{ANSWER}"

    def finding(self, found: str, engine: Parts, *, in_map: bool) -> Lookup:
        """Return one of something else in the place of the answer."""
        other = replace(self, node={"alias": ""}, found=found)
        other.look_up(engine, in_map=in_map)
        return other

    def look_up(self, engine: Parts, *, in_map: bool) -> None:
        names = [f"{DOCUMENT}{i}" for i in range(len(self.documents))]
        table = f"{WORK_SCHEMA}.{self.table} AS {_ANSWERS}"
        if in_map and names:
            own = [f"{_ANSWERS}.{name}" for name in names]
            key, mark = (f"row({', '.join(each)})" for each in (own, names))  # no key of a map is NULL, but within
            sql = f"map_extract_value((SELECT map(list({key}), list({self.found})) FROM {table}), {mark})"
        else:
            same = " AND ".join(f"{_ANSWERS}.{name} IS NOT DISTINCT FROM {name}" for name in names)
            sql = f"(SELECT any_value({self.found}) FROM {table}{f' WHERE {same}' if same else ''})"
        documents = ({**copy.deepcopy(document), "alias": ""} for document in self.documents)
        trees.replace_expression(self.node, engine.express(sql, **dict(zip(names, documents, strict=True))))


def add_places(
    made: Node, lookups: Sequence[Lookup], engine: Parts, *, in_order: bool
) -> tuple[Node, tuple[Cited, ...]]:
    """Return a tree that also shows, hidden, on which rows of answers each of its rows rests, and where these stand.

    So it is of a SELECT whose rows are those of its FROM, and of documents that are columns of relations.
    """
    root = made["node"]
    by_rows = root["type"] == "SELECT_NODE" and not root["group_expressions"] and not root["group_sets"]
    plain = by_rows and not any(modifier["type"] == "DISTINCT_MODIFIER" for modifier in root["modifiers"])
    if not plain or any(
        node.get("class") == "FUNCTION" and str(node["function_name"]).lower() in engine.aggregates
        for key in ("select_list", "having")
        for node in trees.own_nodes(root[key])
    ):
        return made, ()
    items = list(trees.items_of(root["from_table"]))
    columns: list[Node] = []
    cited: list[Cited] = []
    for lookup in lookups:
        if lookup.select is not root or len(lookup.documents) != 1 or lookup.found == SAID:
            continue
        found = engine.find_place(lookup.documents[0], items)
        if found is not None:
            item, place, key = found
            columns += [
                lookup.finding(f"{_ANSWERS}.{ROW_OF_ANSWER}", engine, in_map=in_order).node,
                *(trees.column(trees.alias_of(item), name) for name in key),
            ]
            cited.append(replace(place, part=lookup.table))
    return {**made, "node": {**root, "select_list": [*root["select_list"], *columns]}}, tuple(cited)
