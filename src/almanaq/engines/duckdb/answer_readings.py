"""Answers read as what they are compared or computed with, in DuckDB's tree (semantics 3 and 4).

`answer(x, q) > t.n` becomes `CAST(answer(x, q) AS BIGINT) > t.n`, and `answer(x, q) = t.k`, of a text k, becomes
`lower(trim(answer(x, q))) = lower(trim(t.k))`, as `suql/catalog/answer_types.py` does in sqlglot's tree. DuckDB tells
the types; where it binds, an answer is NULL, whose type its column keeps through derived tables and WITH.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import permutations
from typing import Any

from sqlglot import exp

from almanaq.engines.duckdb.answer_tables import Parts
from almanaq.engines.duckdb.trees import Node, column, has_text, is_text_call, own_nodes, select, subquery, walk
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

    @cached_property
    def _made(self) -> set[str]:
        """The names of what queries within show that is made of answers, as `upper(answer(…)) AS a`."""
        within = walk([self.node["from_table"], self.members, self.around])
        shown = [output for query in within for output in query.get("select_list", ())]
        return {str(output["alias"]).lower() for output in shown if _is_made(output)}

    def read(self) -> None:
        clauses = [part for key, part in self.node.items() if key not in ("cte_map", "type")]
        below = any(map(has_text, (self.node["from_table"], self.members, self.around)))
        for node in [self.node, *own_nodes(clauses)]:
            for holder, key in _conditions(node):
                if _is_answer(holder[key]):
                    self._cast(holder, key, "BOOLEAN")
            if below and node.get("class") == "SUBQUERY" and not has_text(node["subquery"]):
                self._read_nested(node["subquery"]["node"])
            if (below or has_text(node)) and (sides := list(_sides(node))):
                self._read_types(node, sides)
                if node.get("comparison_type", node["type"]) in _EQUALS:
                    self._fold_texts(node, sides)

    def _read_nested(self, query: Node) -> None:
        """Read what a query without text functions compares, as `EXISTS (SELECT 1 FROM u WHERE u.k = t.answer)`."""
        around = [*self.around, self.node["from_table"]]
        for node in [node for node in walk(query) if node.get("type") == "SELECT_NODE"]:
            AnswerReading(node, self.members, around, self.engine, lambda _: []).read()

    def _read_types(self, node: Node, sides: list[tuple[Any, Any]]) -> None:
        """Cast each answer to the type of what it is compared with."""
        for holder, key in sides:
            if not _is_answer(holder[key]):
                continue
            others = [h[k] for h, k in sides if h[k] is not holder[key]]
            kind = self._type(_shown(node) if node["class"] == "SUBQUERY" else others[0])
            read = answer_type(exp.DataType.build(kind, dialect="duckdb", udt=True)) if kind else "text"
            if read != "text":
                self._cast(holder, key, "BIGINT" if read == "integer" else kind)

    def _cast(self, holder: Any, key: Any, kind: str) -> None:
        holder[key] = self.engine.express(f"CAST(a AS {kind})", a=holder[key])

    def _fold_texts(self, node: Node, sides: list[tuple[Any, Any]]) -> None:
        """Compare answers with texts whatever the case of either."""
        queried = node["class"] == "SUBQUERY"
        kinds = [self._kinds(holder[key]) for holder, key in sides] + ([self._kinds(_shown(node))] if queried else [])
        between = any("answer" in a and "text" in b for a, b in permutations(kinds, 2))
        if not between or not set().union(*kinds) <= {"answer", "literal", "text"}:
            return
        for holder, key in sides:
            holder[key] = self._folded(holder[key])
        if queried:
            rows = {**subquery(node["subquery"]["node"], "almanaq_inner"), "column_name_alias": ["folded"]}
            node["subquery"]["node"] = select([self._folded(column("almanaq_inner", "folded"))], rows)

    def _folded(self, value: Node) -> Node:
        return self.engine.express("lower(trim(CAST(a AS VARCHAR)))", a=value)

    def _kinds(self, value: Node) -> set[str]:
        """Return what a value may be: an answer, made of one, a literal, another text, or something else."""
        if values := _values(value):
            return {kind for part in values for kind in self._kinds(part)}
        if value["class"] == "CAST" and value["type_expr"]["type_name"].upper() in ("VARCHAR", "TEXT"):
            return {"text" if kind == "other" else kind for kind in self._kinds(value["child"])}
        if is_text_call(value):
            return {"answer" if DECLARED[value["function_name"].lower()].asks_model else "other"}
        if value["class"] in ("CONSTANT", "PARAMETER"):
            return {"literal"}
        if value["class"] != "SUBQUERY" and (
            has_text(value) or not self._made.isdisjoint(map(_last, own_nodes(value)))
        ):
            return {"made"}
        kind = self._type(value)
        if kind.strip('"') == "NULL":
            return {"answer"}
        return {"text"} if kind == "VARCHAR" or kind.startswith("ENUM(") else {"other"}

    def _type(self, value: Node) -> str:
        """Return the type of an expression of the SELECT; "" where DuckDB does not bind it alone."""
        made = copy.deepcopy([*self.helpers(value), {**value, "alias": ""}])
        query = select(made, copy.deepcopy(self.node["from_table"]))
        for item in reversed(self.around):
            inner = self.engine.express("(SELECT 1)")
            inner["subquery"]["node"] = {**query, "select_list": query["select_list"][-1:]}
            query = select([inner], copy.deepcopy(item))
        return next((kind for _, kind in reversed(self.engine.columns(query, self.members))), "")


def _is_answer(value: Node | None) -> bool:
    return value is not None and is_text_call(value) and value["function_name"].lower() == "answer"


def _is_made(value: Node) -> bool:
    if values := _values(value):
        return any(map(_is_made, values))
    return has_text(value) and not is_text_call(value)


def _last(named: Node) -> str:
    return str(named.get("column_names", [""])[-1]).lower()


def _conditions(node: Node) -> Iterator[tuple[Any, Any]]:
    """Yield where a node has conditions."""
    yield from ((node, key) for key in _CONDITIONS if isinstance(node.get(key), dict))
    if node.get("class") == "CONJUNCTION" or node.get("type") == "OPERATOR_NOT":
        yield from ((node["children"], i) for i in range(len(node["children"])))


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
    elif node.get("class") == "FUNCTION" and node["function_name"] in _ARITHMETIC and len(node["arguments"]) == 2:
        yield from ((argument, "expression") for argument in node["arguments"])


def _shown(node: Node) -> Node:
    """Return the query of an expression as a scalar one."""
    return {**node, "subquery_type": "SCALAR", "child": None, "comparison_type": "INVALID"}


def _values(value: Node) -> list[Node]:
    if value.get("type") == "OPERATOR_COALESCE":
        return list(value["children"])
    if value["class"] == "CASE":
        return [*(check["then_expr"] for check in value["case_checks"]), value["else_expr"]]
    if value["class"] == "FUNCTION" and value["function_name"].lower() == "nullif":
        return [value["arguments"][0]["expression"]]
    return []
