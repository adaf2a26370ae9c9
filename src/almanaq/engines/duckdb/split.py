"""Queries that are not planned whole, taken apart: what holds text functions becomes tables, DuckDB runs the rest.

Three rewrites of DuckDB's tree, each with the same rows:

- *drawn items*: `FROM t USING SAMPLE 5`, a pivot or a table function without text becomes a table that is made once;
- *nested queries*: `FROM (PIVOT (SELECT …, answer(…) AS a …) ON a …)` reads the table of the nested query;
- *computed columns*: `SELECT COLUMNS('p.*'), answer(x, q) FROM t WHERE answer(y, r) = 'Yes'` reads the table of
  `SELECT *, answer(x, q) AS … FROM t WHERE answer(y, r) = 'Yes'`.
"""

from __future__ import annotations

import copy
import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from almanaq.suql.language import WORK_SCHEMA
from almanaq.suql.text_functions import DECLARED

Node = dict[str, Any]
_NOWHERE: Node = {"query_location": 2**64 - 1, "query_location_length": 0}
_LEAVES = frozenset(["BASE_TABLE", "SUBQUERY"])
ROW_OF_ITEM = "almanaq_row"
ADDED = "almanaq_answer_"
"""What begins the name of a computed column."""


@dataclass(frozen=True, slots=True)
class Part:
    """A query that becomes a table before the rest of the statement runs.

    Attributes:
        name: the table's name.
        tree: the query, over the tables of earlier parts.
        has_text: whether it holds text functions, and is to be planned.
    """

    name: str
    tree: Node
    has_text: bool


@dataclass
class Split:
    """A statement taken apart: parts, in order, and a query without text functions over their tables."""

    tree: Node
    parts: list[Part] = field(default_factory=list)


def needs_split(tree: Node) -> bool:
    """Return whether a statement has a form that sqlglot's tree says otherwise or not at all."""
    return any(map(_is_beyond, _as_written(tree)))


def _as_written(value: Any) -> Iterator[Node]:
    """Yield the nodes of a tree with `ARRAY(SELECT …)` as such, instead of what DuckDB writes for it."""
    if isinstance(value, list):
        for part in value:
            yield from _as_written(part)
    elif isinstance(value, dict):
        query = _query_of_array(value)
        if query is None:
            yield value
        for part in value.values() if query is None else [query]:
            yield from _as_written(part)


def _query_of_array(node: Node) -> Node | None:
    """Return the query of `ARRAY(SELECT …)`: `(SELECT CASE WHEN array_agg(#1) … END FROM (SELECT …))`."""
    if node.get("class") != "SUBQUERY" or node.get("subquery_type") != "SCALAR":
        return None
    select = node["subquery"]["node"]
    shown = select.get("select_list") or [{}]
    numbered = any(each.get("class") == "POSITIONAL_REFERENCE" for each in walk(shown))
    inner = select.get("from_table") or {}
    if len(shown) != 1 or shown[0].get("class") != "CASE" or not numbered or inner.get("type") != "SUBQUERY":
        return None
    query: Node = inner["subquery"]["node"]
    return query


def flatten_joins(tree: Node) -> None:
    """Write `a, (b JOIN c ON d)` as `(a, b) JOIN c ON d`, into a tree: sqlglot reads joins from left to right."""
    for join in [node for node in walk(tree) if node.get("type") == "JOIN"]:
        while _is_cross(join) and join["right"]["type"] == "JOIN" and join["right"]["join_type"] in ("INNER", "LEFT"):
            right = join["right"]
            if right.get("using_columns") or right["ref_type"] not in ("REGULAR", "CROSS"):
                break
            first = {**copy.deepcopy(join), "right": right["left"], "is_implicit": False}
            join.clear()
            join.update(right, left=first)


def _is_cross(join: Node) -> bool:
    return join["ref_type"] == "CROSS" and join.get("condition") is None and not join.get("using_columns")


def number_groups(tree: Node, aggregates: frozenset[str]) -> None:
    """Write the numbers of the outputs that hold no aggregate in the place of GROUP BY ALL, into a tree."""
    for query in [node for node in walk(tree) if node.get("aggregate_handling") == "FORCE_AGGREGATES"]:
        items = query["select_list"]
        if any(node.get("type") == "STAR" and node.get("class") == "STAR" for item in items for node in walk(item)):
            continue
        made: set[str] = set()
        keys = []
        for number, item in enumerate(items, 1):
            if _aggregates(item, aggregates) or made & _names_in(item):
                made |= {str(item.get("alias", "")).lower()} - {""}
            else:
                keys.append(number)
        query["aggregate_handling"] = "STANDARD_HANDLING"
        query["group_expressions"] = [_number(number) for number in keys]
        query["group_sets"] = [list(range(len(keys)))]


def _aggregates(node: Any, aggregates: frozenset[str]) -> bool:
    if isinstance(node, list):
        return any(_aggregates(part, aggregates) for part in node)
    if not isinstance(node, dict) or node.get("class") == "SUBQUERY":
        return False
    if node.get("class") == "FUNCTION" and str(node["function_name"]).lower() in aggregates:
        return True
    return any(_aggregates(part, aggregates) for part in node.values())


def write_null_order(tree: Node, nulls: str, direction: str) -> None:
    """Write where NULLs come, and the direction, where a connection's settings are not DuckDB's own, into a tree.

    A key that holds a text function puts NULL last unless the query says otherwise (semantics 7).

    Args:
        nulls, direction: the settings `default_null_order` and `default_order`, in capitals.
    """
    for order in [node for node in walk(tree) if "null_order" in node]:
        if order["type"] == "ORDER_DEFAULT" and direction.startswith("DESC"):
            order["type"] = "DESCENDING"
        falling = order["type"] == "DESCENDING"
        first = (
            nulls == "NULLS_FIRST"
            or nulls == f"NULLS_{'LAST_ON_ASC_FIRST_ON_DESC' if falling else 'FIRST_ON_ASC_LAST_ON_DESC'}"
        )
        if order["null_order"] == "ORDER_DEFAULT" and first and not has_text(order):
            order["null_order"] = "NULLS FIRST"


def number_order(tree: Node, count: Callable[[], int]) -> Node:
    """Return a tree with the numbers of the outputs in the place of ORDER BY ALL; itself where that is not written.

    Args:
        count: gives the number of outputs.
    """
    found = [
        modifier for modifier in tree["node"].get("modifiers", ()) if any(map(_is_all, modifier.get("orders", ())))
    ]
    if not found:
        return tree
    made = copy.deepcopy(tree)
    for modifier in made["node"]["modifiers"]:
        orders = modifier.get("orders")
        if orders and len(orders) == 1 and _is_all(orders[0]):
            modifier["orders"] = [{**orders[0], "expression": _number(i + 1)} for i in range(count())]
    return made


def _is_all(order: Node) -> bool:
    star = order.get("expression", {})
    return star.get("type") == "STAR" and bool(star.get("columns")) and star.get("expr") is None


def _number(value: int) -> Node:
    literal = {"kind": "INTEGER", "text": str(value)}
    return {"class": "CONSTANT", "type": "VALUE_CONSTANT", "alias": "", "literal": literal, **_NOWHERE}


def split(
    tree: Node, prefix: str, columns_of: Callable[[Node], frozenset[str] | None], *, again: bool = False
) -> Split | None:
    """Take a statement's tree apart; None where its text functions stand where no table can stand for them.

    Args:
        prefix: begins the names of the parts.
        columns_of: gives the names of the columns of an item of FROM, in lower case; None where they are not known.
        again: whether this is a part of a statement: then members of WITH without text are drawn too.
    """
    names = (f"{prefix}{n}" for n in itertools.count(1))
    made = _Splitting(Split(copy.deepcopy(tree)), names, columns_of)
    root: Node = made.split.tree["node"]
    made.draw_items(root, members_too=again)
    if root["type"] == "SELECT_NODE" and (_has_own_text(root) or has_text(_conditions(root.get("from_table")))):
        if not made.compute_columns(root):
            return None
    made.take_nested(root)
    return None if has_text(root) else made.split


def walk(value: Any) -> Iterator[Node]:
    """Yield the nodes of a tree, each before what it is made of."""
    if isinstance(value, dict):
        yield value
        for part in value.values():
            yield from walk(part)
    elif isinstance(value, list):
        for part in value:
            yield from walk(part)


def has_text(value: Any) -> bool:
    """Return whether a text function stands in a tree."""
    return any(map(_is_text_call, walk(value)))


def _is_text_call(node: Node) -> bool:
    return node.get("class") == "FUNCTION" and str(node["function_name"]).lower() in DECLARED


def _is_beyond(node: Node) -> bool:
    kind = node.get("type")
    if node.get("class") == "FUNCTION":
        starred = any(one["expression"].get("class") == "STAR" for one in node["arguments"])
        return starred or str(node["function_name"]).lower() == "alias"
    if node.get("class") == "COLUMN_REF":
        return len(node["column_names"]) > 1 and str(node["column_names"][0]).lower() == "alias"
    if kind == "SELECT_NODE":
        aliases = [_alias(at[key]).lower() for at, key in _items(node, "from_table")]
        return node.get("sample") is not None or any(alias and aliases.count(alias) > 1 for alias in aliases)
    if kind == "STAR" and (node.get("columns") or node.get("expr") is not None or node.get("rename_list")):
        return True
    if node.get("sample") is not None or kind in ("PIVOT", "SHOW_REF", "POSITIONAL_REFERENCE"):
        return True
    if kind == "JOIN":
        apart = node.get("join_type") in ("SEMI", "ANTI", "RIGHT_SEMI", "RIGHT_ANTI") and has_text(
            node.get("condition")
        )
        return apart or node.get("ref_type") in ("ASOF", "POSITIONAL")
    return node.get("limit_type") == "PERCENTAGE"


@dataclass
class _Splitting:
    """One statement while it is taken apart."""

    split: Split
    names: Iterator[str]
    columns_of: Callable[[Node], frozenset[str] | None]

    def draw_items(self, root: Node, *, members_too: bool) -> None:
        """Make tables of the items of FROM without text that are drawn by chance, or whose columns DuckDB alone knows.

        So it does of those whose rows a query names as a whole, `SELECT t FROM t`.
        """
        members = root.get("cte_map", {"map": []})
        named = {str(member["key"]).lower() for member in members["map"]} if members_too else set()
        for query in [node for node in walk(root) if node.get("type") == "SELECT_NODE"]:
            if query.get("sample") is not None and query.get("from_table") is not None:
                item = query["from_table"]
                query["from_table"] = item if item["type"] in _LEAVES else _derived(item)
                query["from_table"]["sample"], query["sample"] = query["sample"], None
            for holder, key in _items(query, "from_table"):
                item = holder[key]
                rows = [node for node in _own_columns(query) if self._is_row(node, item)]
                drawn = item.get("sample") is not None or _is_opaque(item) or rows
                member = str(item.get("table_name", "")).lower() in named and item["type"] == "BASE_TABLE"
                if has_text(item) or not (drawn or member) or (member and has_text(members)):
                    continue
                whole = {**_select_all({**item, "alias": _alias(item)}), "cte_map": copy.deepcopy(members)}
                if rows:
                    whole["select_list"].append({**_column([_alias(item)]), "alias": ROW_OF_ITEM})
                    _hide(query, {_alias(item): [ROW_OF_ITEM]})
                for row in rows:
                    row["column_names"] = [_alias(item), ROW_OF_ITEM]
                holder[key] = self._table(whole, _alias(item), text=False)

    def _is_row(self, node: Node, item: Node) -> bool:
        """Return whether a name is that of an item of FROM, and of none of its columns: its rows are meant."""
        name = str(node["column_names"][0]).lower()
        known = self.columns_of(item)
        return (
            len(node["column_names"]) == 1 and name == _alias(item).lower() and known is not None and name not in known
        )

    def compute_columns(self, query: Node) -> bool:
        """Put tables with what a SELECT asks of their rows in the place of items of FROM; say whether that can be done.

        WHERE goes into the table of the only item whole where it names no output.
        """
        leaves = [(at, name) for at, name in _items(query, "from_table") if at[name]["type"] in _LEAVES]
        if not leaves:
            return False
        outputs = {str(each.get("alias", "")).lower() for each in query["select_list"]} - {""}
        inner = {id(holder[key]): _select_all({**holder[key], "alias": _alias(holder[key])}) for holder, key in leaves}
        where = query.get("where_clause")
        if len(leaves) == 1 and where is not None and not outputs & _names_in(where):
            ((holder, key),) = leaves
            inner[id(holder[key])]["where_clause"], query["where_clause"] = where, None
        labels: dict[str, str] = {}
        added: dict[int, list[str]] = {id(holder[key]): [] for holder, key in leaves}
        items = [at[name] for at, name in leaves]
        for holder, key in list(_places_of_units(query)):
            unit = holder[key]
            read = self._read_by(unit, items)
            if len(read) != 1 or outputs & (_names_in(unit) - (self.columns_of(read[0]) or frozenset())):
                return False
            written = repr((id(read[0]), _without_places({**unit, "alias": ""})))
            if written not in labels:
                labels[written] = f"{ADDED}{len(labels)}"
                added[id(read[0])].append(labels[written])
                inner[id(read[0])]["select_list"].append({**copy.deepcopy(unit), "alias": labels[written]})
            holder[key] = {**_column([_alias(read[0]), labels[written]]), "alias": unit.get("alias", "")}
        _hide(query, {_alias(at[name]): added[id(at[name])] for at, name in leaves})
        for holder, key in leaves:
            leaf = holder[key]
            if added[id(leaf)] or inner[id(leaf)]["where_clause"] is not None:
                part = {**inner[id(leaf)], "cte_map": copy.deepcopy(query["cte_map"])}
                holder[key] = self._table(part, _alias(leaf), text=True)
        return True

    def _read_by(self, unit: Node, items: Sequence[Node]) -> list[Node]:
        """Return the items of FROM that an expression reads."""
        if len(items) == 1:
            return list(items)
        read: list[Node] = []
        for node in walk(unit):
            if node.get("class") == "COLUMN_REF":
                first, *rest = (str(name).lower() for name in node["column_names"])
                named = [item for item in items if rest and _alias(item).lower() == first]
                read += named or [item for item in items if first in (self.columns_of(item) or ())]
        return [item for item in items if any(item is other for other in read)]

    def take_nested(self, root: Node) -> None:
        """Make tables of the outermost nested queries with text."""
        members = root.get("cte_map", {"map": []})["map"]
        for number, member in enumerate(members):
            body = member["value"]
            if has_text(body.get("query_node")):
                body["query_node"] = self._read_table(_with(body["query_node"], members[:number]))
        for holder, key in _sides(root):
            if has_text(holder[key]):
                holder[key] = self._read_table(_with(holder[key], members))
        for node in list(walk({key: part for key, part in root.items() if key != "cte_map"})):
            if node.get("type") == "SHOW_REF" and has_text(node.get("query")):
                node["query"] = self._read_table(_with(node["query"], members))
            elif node.get("type") == "SUBQUERY" and has_text(node.get("subquery")):
                node["subquery"]["node"] = self._read_table(_with(node["subquery"]["node"], members))

    def _read_table(self, query: Node) -> Node:
        """Return a query of the table that a query becomes."""
        return _select_all(self._table(query, "", text=True))

    def _table(self, query: Node, alias: str, *, text: bool) -> Node:
        """Return an item of FROM that reads the table that a query becomes."""
        name = next(self.names)
        self.split.parts.append(Part(name, query, text))
        return {
            **{"type": "BASE_TABLE", "alias": alias, "sample": None, "column_name_alias": [], "at_clause": None},
            **{"catalog_name": "", "schema_name": WORK_SCHEMA, "table_name": name},
            **{"qualified_name": {"path": [WORK_SCHEMA, name]}, **_NOWHERE},
        }


def _sides(query: Node) -> list[tuple[Any, Any]]:
    """Return where the queries stand that a set operation is made of."""
    if query["type"] != "SET_OPERATION_NODE":
        return []
    children = query.get("children")
    return [(children, i) for i in range(len(children))] if children else [(query, "left"), (query, "right")]


def _items(holder: Node, key: str) -> Iterator[tuple[Node, str]]:
    """Yield where the items stand that a FROM joins."""
    item = holder.get(key)
    if item is not None and item["type"] == "JOIN":
        yield from _items(item, "left")
        yield from _items(item, "right")
    elif item is not None:
        yield holder, key


def _is_opaque(item: Node) -> bool:
    """Return whether DuckDB alone knows the columns of an item, which hangs on none of those before it."""
    if item["type"] == "TABLE_FUNCTION":
        return not any(node.get("class") == "COLUMN_REF" for node in walk(item["function"]["arguments"]))
    return item["type"] in ("PIVOT", "SHOW_REF")


def _own_columns(query: Node) -> Iterator[Node]:
    """Yield the names of columns in the clauses of a SELECT, those of nested queries included, but for FROM."""
    for key, part in query.items():
        if key not in ("cte_map", "from_table"):
            yield from (node for node in walk(part) if node.get("class") == "COLUMN_REF")


def _alias(item: Node) -> str:
    return str(item.get("alias") or item.get("table_name") or "")


def _conditions(item: Node | None) -> list[Node]:
    """Return the conditions of the joins of a FROM."""
    if item is None or item["type"] != "JOIN":
        return []
    own = [item["condition"]] if item.get("condition") is not None else []
    return [*own, *_conditions(item["left"]), *_conditions(item["right"])]


def _hide(query: Node, added: Mapping[str, Sequence[str]]) -> None:
    """Leave computed columns out of what `*` and `t.*` stand for."""
    for star in walk(query["select_list"]):
        if star.get("type") == "STAR" and "exclude_list" in star:
            of = str(star.get("relation_name", "")).lower()
            hidden = [label for alias, labels in added.items() if not of or alias.lower() == of for label in labels]
            star["exclude_list"] = [*star["exclude_list"], *hidden]


def _has_own_text(query: Node) -> bool:
    """Return whether a SELECT calls a text function outside of its FROM and its nested queries."""
    return any(True for _ in _places_of_units(query))


def _places_of_units(query: Node) -> Iterator[tuple[Any, Any]]:
    """Yield where the largest expressions stand that a computed column stands for: a comparison, a cast, or a call."""
    for key in query:
        if key not in ("cte_map", "from_table"):
            yield from _units_in(query, key)
    yield from _units_in_joins(query.get("from_table"))


def _units_in_joins(item: Node | None) -> Iterator[tuple[Any, Any]]:
    if item is not None and item["type"] == "JOIN":
        yield from _units_in(item, "condition")
        yield from _units_in_joins(item["left"])
        yield from _units_in_joins(item["right"])


def _units_in(holder: Any, key: Any) -> Iterator[tuple[Any, Any]]:
    value = holder[key]
    if isinstance(value, list):
        for i in range(len(value)):
            yield from _units_in(value, i)
    elif isinstance(value, dict):
        if value.get("class") in ("SUBQUERY", "LAMBDA") or str(value.get("type", "")).endswith("_NODE"):
            return
        if _is_unit(value):
            yield holder, key
            return
        for part in list(value):
            yield from _units_in(value, part)


def _is_unit(node: Node) -> bool:
    if _is_text_call(node) or (node.get("class") == "CAST" and _is_text_call(node["child"])):
        return True
    if node.get("class") == "COMPARISON":
        sides = (node["left"], node["right"])
        return any(map(_is_unit, sides)) and any(map(_is_constant, sides))
    if node.get("class") == "BETWEEN":
        return _is_unit(node["input"]) and _is_constant(node["lower"]) and _is_constant(node["upper"])
    if node.get("type") in ("COMPARE_IN", "COMPARE_NOT_IN") and node.get("children"):
        first, *others = node["children"]
        return _is_unit(first) and all(map(_is_constant, others))
    return False


def _is_constant(node: Node) -> bool:
    return node.get("class") in ("CONSTANT", "PARAMETER") or (
        node.get("class") == "CAST" and _is_constant(node["child"])
    )


def _names_in(value: Any) -> set[str]:
    """Return the bare names that an expression has, in lower case."""
    found = (node["column_names"] for node in walk(value) if node.get("class") == "COLUMN_REF")
    named = [[str(part).lower() for part in parts] for parts in found]
    return {parts[0] for parts in named if len(parts) == 1} | {p[1] for p in named if len(p) > 1 and p[0] == "alias"}


def _with(query: Node, members: Sequence[Node]) -> Node:
    """Return a query that may name members of WITH."""
    inner = copy.deepcopy(query)
    inner["cte_map"] = {"map": [*copy.deepcopy(list(members)), *inner.get("cte_map", {"map": []})["map"]]}
    return inner


def _derived(item: Node) -> Node:
    inner = {"node": _select_all(item), "named_param_map": []}
    return {"type": "SUBQUERY", "alias": "", "sample": None, "column_name_alias": [], "subquery": inner, **_NOWHERE}


# --- nodes ---


def _select_all(item: Node) -> Node:
    star = {
        **{"class": "STAR", "type": "STAR", "alias": "", "relation_name": "", "exclude_list": [], "replace_list": []},
        **{"columns": False, "expr": None, "qualified_exclude_list": [], "rename_list": [], **_NOWHERE},
    }
    return {
        **{"type": "SELECT_NODE", "modifiers": [], "cte_map": {"map": []}, "select_list": [star], "from_table": item},
        **{"where_clause": None, "group_expressions": [], "group_sets": [], "aggregate_handling": "STANDARD_HANDLING"},
        **{"having": None, "sample": None, "qualify": None},
    }


def _column(names: list[str]) -> Node:
    return {"class": "COLUMN_REF", "type": "COLUMN_REF", "alias": "", "column_names": names, **_NOWHERE}


def _without_places(node: Any) -> Any:
    if isinstance(node, list):
        return [_without_places(part) for part in node]
    if isinstance(node, dict):
        return {k: _without_places(v) for k, v in node.items() if not k.startswith("query_location")}
    return node
