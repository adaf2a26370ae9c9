"""Answers read as what they are compared or computed with, in DuckDB's tree (semantics 3 and 4).

`answer(x, q) > t.n` becomes `CAST(answer(x, q) AS BIGINT) > t.n`, and `answer(x, q) = t.k`, of a text k, becomes
`lower(trim(answer(x, q))) = lower(trim(t.k))`, as `suql/catalog/answer_types.py` does in sqlglot's tree. DuckDB tells
the types; where it binds, an answer is NULL, whose type its column keeps through derived tables and WITH.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import cached_property
from itertools import permutations
from typing import Any

from sqlglot import exp

from almanaq.engines.duckdb import trees
from almanaq.engines.duckdb.answer_tables import Parts
from almanaq.engines.duckdb.trees import Node
from almanaq.errors import UnsupportedError
from almanaq.suql.catalog.answer_types import answer_type
from almanaq.suql.text_functions import DECLARED

_EQUALS = frozenset(
    """
    COMPARE_EQUAL COMPARE_NOTEQUAL COMPARE_DISTINCT_FROM COMPARE_NOT_DISTINCT_FROM COMPARE_IN COMPARE_NOT_IN
    """.split()
)
_ARITHMETIC = frozenset("+ - * / // %".split())
_CONDITIONS = ("where_clause", "having", "qualify", "condition", "when_expr", "filter")


@dataclass
class AnswerReading:
    """Reads the answers in the expressions of one SELECT, which is changed.

    Attributes:
        members: of WITH, as they are written.
        around: what stands in FROM around it, the outermost first.
        helpers: gives the outputs that an expression names.
    """

    node: Node
    members: list[Node]
    around: list[Node]
    engine: Parts
    helpers: Callable[[Node], list[Node]]
    _known: dict[str, dict[str, set[str]]] = field(default_factory=dict)

    @cached_property
    def _items(self) -> dict[str, tuple[Node, list[Node]]]:
        """The items of FROM by name, the innermost of each, with what stands before it."""
        found = {}
        for number, whole in enumerate([*self.around, self.node["from_table"]]):
            before = self.around[:number]
            for item in trees.items_of(whole):
                found[trees.alias_of(item).lower()] = item, before
                before = [*before, item]
        return found

    @cached_property
    def _own_names(self) -> set[str]:
        item = self.node["from_table"]
        columns = self.engine.columns(trees.select_all(item), self.members) if item["type"] != "EMPTY" else ()
        return {name.lower() for name, _ in columns}

    def _columns_of(self, alias: str) -> dict[str, set[str]]:
        """Return what the columns of an item of FROM may be, of a derived table or a member of WITH; {} of others."""
        if alias in self._known:
            return self._known[alias]
        item, around = self._items[alias]
        tables = [node for node in trees.walk(item) if node.get("type") == "BASE_TABLE"]
        reads_members = any(trees.member_of(table, self.members) for table in tables)
        if not trees.has_text([item, around]) and not (reads_members and trees.has_text(self.members)):
            return {}
        members, query, renamed = self.members, None, item.get("column_name_alias") or []
        if item["type"] == "SUBQUERY":
            query = item["subquery"]["node"]
        elif item["type"] == "PIVOT":
            query = trees.select_all(item["source"])
        elif (member := trees.member_of(item, members)) is not None:
            members, query = members[: members.index(member)], member["value"]["query_node"]
            renamed = [*renamed, *member["value"]["aliases"][len(renamed) :]]
        found: dict[str, set[str]] = {}
        for i, (name, kinds) in enumerate(self._outputs(query, members, around)):
            name = renamed[i].lower() if i < len(renamed) else name
            found[name] = found.get(name, set()) | kinds
        self._known[alias] = found
        return found

    def _outputs(self, query: Node | None, members: list[Node], around: list[Node]) -> list[tuple[str, set[str]]]:
        """Return the names of a query's outputs, and what each may be; of UNION by the names of the first side."""
        members = [*members, *(query or {}).get("cte_map", {"map": []})["map"]]
        if query is None or query["type"] not in ("SELECT_NODE", "SET_OPERATION_NODE", "RECURSIVE_CTE_NODE"):
            return []
        if query["type"] != "SELECT_NODE":
            sides = query.get("children") or (query["left"], query["right"])
            first, *others = (self._outputs(side, members, around) for side in sides)
            if query.get("setop_type") == "UNION_BY_NAME":
                return [*first, *(named for side in others for named in side)]
            return [
                (name, kinds.union(*(each[1] for each in more)))
                for (name, kinds), *more in zip(first, *others, strict=True)
            ]
        inner = AnswerReading(query, members, around, self.engine, lambda _: [])
        shown: list[tuple[str, Node]] = []
        for output in query["select_list"]:
            if output["class"] == "STAR":
                starred = self.engine.columns(trees.select([output], query["from_table"]), members)
                shown += [(name.lower(), trees.column(name)) for name, _ in starred]
            else:
                shown.append((str(output["alias"]).lower() or _last(output), output))
        types = [kind for _, kind in self.engine.columns(query, members)]
        types = types if len(types) == len(shown) else [""] * len(shown)  # it sees what is around it
        return [(name, inner._kinds(value, kind)) for (name, value), kind in zip(shown, types, strict=True)]

    def read(self) -> None:
        clauses = [part for key, part in self.node.items() if key not in ("cte_map", "type")]
        below = any(map(trees.has_text, (self.node["from_table"], self.members, self.around)))
        for node in [self.node, *trees.own_nodes(clauses)]:
            for holder, key in _conditions(node):
                self._read_condition(holder, key)
            if below and node.get("type") == "JOIN":
                self._check_merged(node)
            if below and node.get("class") == "SUBQUERY" and not trees.has_text(node["subquery"]):
                self._read_nested(node["subquery"]["node"])
            if (below or trees.has_text(node)) and (sides := list(_sides(node))):
                self._read_types(node, sides)
                if node.get("comparison_type", node["type"]) in _EQUALS or node.get("function_name") == "contains":
                    self._fold_texts(node, sides)

    def _read_nested(self, query: Node) -> None:
        """Read what a query without text functions compares, as `EXISTS (SELECT 1 FROM u WHERE u.k = t.answer)`."""
        around = [*self.around, self.node["from_table"]]
        for node in [node for node in trees.walk(query) if node.get("type") == "SELECT_NODE"]:
            AnswerReading(node, self.members, around, self.engine, lambda _: []).read()

    def _read_condition(self, holder: Any, key: Any) -> None:
        if _is_answer(holder[key]):
            self._cast(holder, key, "BOOLEAN")
        for inner, place in _values(holder[key]):
            self._read_condition(inner, place)

    def _check_merged(self, join: Node) -> None:
        """Refuse to merge an answer and a text: USING would compare them as they are."""
        sides = [
            AnswerReading(trees.select([], item), self.members, self.around, self.engine, self.helpers)
            for item in (join["left"], join["right"])
        ]
        names = join["using_columns"]
        if join["ref_type"] == "NATURAL":
            shown = [self.engine.columns(trees.select_all(side.node["from_table"]), self.members) for side in sides]
            names = {name.lower() for name, _ in shown[0]} & {name.lower() for name, _ in shown[1]}
        if any(_is_between([side._kinds(trees.column(name)) for side in sides]) for name in names):
            raise UnsupportedError("USING and NATURAL JOIN of an answer and a text are not supported here: write ON")

    def _read_types(self, node: Node, sides: list[tuple[Any, Any]]) -> None:
        """Cast each answer, or that of a query of one, to the type of what it is compared with."""
        values = [holder[key] for holder, key in sides] + ([_shown(node)] if node["class"] == "SUBQUERY" else [])
        for i, value in enumerate(values):
            place = _output_of(value) if value["class"] == "SUBQUERY" else sides[i]
            if place is None or not _is_answer(place[0][place[1]]):
                continue
            kind = self._type(values[1 if i == 0 else 0])
            read = answer_type(exp.DataType.build(kind, dialect="duckdb", udt=True)) if kind else "text"
            if read != "text":
                self._cast(*place, "BIGINT" if read == "integer" else kind)

    def _cast(self, holder: Any, key: Any, kind: str) -> None:
        value = holder[key]
        holder[key] = {**self.engine.express(f"CAST(a AS {kind})", a=value), "alias": value.get("alias", "")}

    def _fold_texts(self, node: Node, sides: list[tuple[Any, Any]]) -> None:
        """Compare answers with texts whatever the case of either."""
        queried = node["class"] == "SUBQUERY"
        kinds = [self._kinds(holder[key]) for holder, key in sides] + ([self._kinds(_shown(node))] if queried else [])
        if not _is_between(kinds):
            return
        for holder, key in sides:
            holder[key] = self._folded(holder[key])
        if queried:
            rows = {**trees.subquery(node["subquery"]["node"], "almanaq_inner"), "column_name_alias": ["folded"]}
            node["subquery"]["node"] = trees.select([self._folded(trees.column("almanaq_inner", "folded"))], rows)

    def _folded(self, value: Node) -> Node:
        return self.engine.express("lower(trim(CAST(a AS VARCHAR)))", a=value)

    def _kinds(self, value: Node, kind: str = "") -> set[str]:
        """Return what a value, of a type if that is known, may be: an answer, made of one, a literal, another text, or
        something else."""
        if values := _values(value):
            return {kind for holder, key in values for kind in self._kinds(holder[key])}
        if value["class"] == "CAST" and value["type_expr"]["type_name"].upper() in ("VARCHAR", "TEXT"):
            return {"text" if kind == "other" else kind for kind in self._kinds(value["child"])}
        if trees.is_text_call(value):
            return {"answer" if DECLARED[value["function_name"].lower()].asks_model else "other"}
        if value["class"] in ("CONSTANT", "PARAMETER"):
            return {"literal"}
        shown = self._kinds_shown(value)
        if "made" in shown:
            return {"made"}
        kind = kind or self._type(value)
        if kind.strip('"') == "NULL":
            return {"answer"}
        if "answer" in shown and kind == "VARCHAR":
            return shown
        return {"text"} if kind == "VARCHAR" or kind.startswith("ENUM(") else {"other"}

    def _kinds_shown(self, value: Node) -> set[str]:
        """Return what a column, or a query of one, may be where it shows answers; "made" of what is made of them."""
        if value["class"] == "SUBQUERY":
            outputs = self._outputs(value["subquery"]["node"], self.members, [*self.around, self.node["from_table"]])
            return outputs[0][1] if outputs else set()
        if value["class"] != "COLUMN_REF":
            named = [node for node in trees.own_nodes(value) if node.get("class") == "COLUMN_REF"]
            made = trees.has_text(value) or any(self._kinds_shown(node) & {"answer", "made"} for node in named)
            return {"made"} if made else set()
        *before, name = (str(part).lower() for part in value["column_names"])
        if before:
            return self._columns_of(before[-1]).get(name, set()) if before[-1] in self._items else set()
        if name in self._own_names:
            aliases = [trees.alias_of(item).lower() for item in trees.items_of(self.node["from_table"])]
        else:
            for output in self.node["select_list"]:
                if str(output["alias"]).lower() == name and name not in trees.names_in(output):
                    return self._kinds(output)
            aliases = list(self._items)
        return {kind for alias in aliases for kind in self._columns_of(alias).get(name, ())}

    def _type(self, value: Node) -> str:
        """Return the type of an expression of the SELECT; "" where DuckDB does not bind it alone."""
        made = copy.deepcopy([*self.helpers(value), {**value, "alias": ""}])
        query = trees.select(made, copy.deepcopy(self.node["from_table"]))
        for item in reversed(self.around):
            inner = self.engine.express("(SELECT 1)")
            inner["subquery"]["node"] = {**query, "select_list": query["select_list"][-1:]}
            query = trees.select([inner], copy.deepcopy(item))
        return next((kind for _, kind in reversed(self.engine.columns(query, self.members))), "")


def _is_answer(value: Node | None) -> bool:
    return value is not None and trees.is_text_call(value) and value["function_name"].lower() == "answer"


def _is_between(kinds: list[set[str]]) -> bool:
    """Return whether values compare an answer with a text, and nothing else."""
    between = any("answer" in a and "text" in b for a, b in permutations(kinds, 2))
    return between and set().union(*kinds) <= {"answer", "literal", "text"}


def _last(named: Node) -> str:
    return str(named.get("column_names", [""])[-1]).lower()


def _conditions(node: Node) -> Iterator[tuple[Any, Any]]:
    """Yield where a node has conditions."""
    yield from ((node, key) for key in _CONDITIONS if isinstance(node.get(key), dict))
    if node.get("class") == "CONJUNCTION" or node.get("type") == "OPERATOR_NOT":
        yield from ((node["children"], i) for i in range(len(node["children"])))
    if node.get("function_name") in ("bool_and", "bool_or"):
        yield node["arguments"][0], "expression"


def _sides(node: Node) -> Iterator[tuple[Any, Any]]:
    """Yield where the sides of a comparison stand, or those of arithmetic; of `x IN (SELECT …)`, the first alone."""
    if node.get("class") == "COMPARISON":
        yield from ((node, "left"), (node, "right"))
    elif node.get("class") == "BETWEEN":
        yield from ((node, "input"), (node, "lower"), (node, "upper"))
    elif node.get("type") in ("COMPARE_IN", "COMPARE_NOT_IN"):
        yield from ((node["children"], i) for i in range(len(node["children"])))
    elif node.get("class") == "SUBQUERY" and node["subquery_type"] == "ANY":
        yield node, "child"
    elif node.get("function_name") == "contains":  # x IN [a, b]
        listed, value = node["arguments"]
        if listed["expression"].get("function_name") == "list_value":
            yield from ((argument, "expression") for argument in (value, *listed["expression"]["arguments"]))
    elif node.get("class") == "FUNCTION" and node["function_name"] in _ARITHMETIC and len(node["arguments"]) == 2:
        yield from ((argument, "expression") for argument in node["arguments"])


def _output_of(value: Node) -> tuple[Any, Any] | None:
    """Return where the one output of a query stands, that is an expression; None of any other."""
    query = value["subquery"]["node"]
    alone = query["type"] == "SELECT_NODE" and value["subquery_type"] == "SCALAR" and len(query["select_list"]) == 1
    return (query["select_list"], 0) if alone else None


def _shown(node: Node) -> Node:
    """Return the query of an expression as a scalar one."""
    return {**node, "subquery_type": "SCALAR", "child": None, "comparison_type": "INVALID"}


def _values(value: Node | None) -> list[tuple[Any, Any]]:
    """Return where the values stand that an expression gives one of."""
    if value is None:
        return []
    if value.get("type") == "OPERATOR_COALESCE":
        return [(value["children"], i) for i in range(len(value["children"]))]
    if value["class"] == "CASE":
        return [*((check, "then_expr") for check in value["case_checks"]), (value, "else_expr")]
    if value["class"] == "FUNCTION" and value["function_name"].lower() == "nullif":
        return [(value["arguments"][0], "expression")]
    return []
