"""Queries that are not planned whole, taken apart: text functions become tables of their answers, DuckDB runs the rest.

    SELECT t, answer(t.x, 'q') FROM t POSITIONAL JOIN u WHERE t.n > 3

becomes three statements:

    CREATE TABLE part_1 AS SELECT DISTINCT d0 FROM (SELECT t.x AS d0 FROM t POSITIONAL JOIN u WHERE t.n > 3)
    CREATE TABLE part_2 AS SELECT d0, answer(d0, 'q') AS said FROM part_1
    SELECT t, (SELECT any_value(said) FROM part_2 WHERE d0 IS NOT DISTINCT FROM t.x) FROM … WHERE t.n > 3

The answer to a document is the same wherever it is asked for (semantics 2), so that a table of answers is the text
function itself, over the documents that reach it; no row is joined to another by its text. What a query draws by
chance, or under a LIMIT, is drawn once, before the rest reads it.

A document whose call failed is not in the table, and a condition that reads its answer is NULL.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from almanaq.engines.duckdb import trees
from almanaq.engines.duckdb.answer_readings import AnswerReading
from almanaq.engines.duckdb.answer_tables import ANSWER, DOCUMENT, SAID, Lookup, Parts, add_places, keep_first_rows
from almanaq.engines.duckdb.trees import Node
from almanaq.errors import UnsupportedError
from almanaq.suql.language import WORK_SCHEMA, Cited
from almanaq.suql.text_functions import DECLARED

_UNDECIDED = {
    "CONJUNCTION_AND": "coalesce(a, true)",
    "CONJUNCTION_OR": "NOT coalesce(a, false)",
    "OPERATOR_COALESCE": "a IS NULL",
}
"""Where a part of an expression leaves the others to decide."""


def take_apart(tree: Node, engine: Parts, *, stops: bool) -> tuple[Node, tuple[Cited, ...]]:
    """Return a tree without text functions, and what the last, hidden columns of its rows say of their documents.

    Args:
        stops: whether a LIMIT may have a part of its own, which is planned.
    """
    made = copy.deepcopy(tree)
    work = _TakingApart(engine, stops, _reads_order(tree))
    work.query(made["node"], (), ())
    if trees.has_text(made):
        raise _refusal("here")
    is_known = not trees.has_marks(made)  # the columns of a pivot without IN are not, until the text is read
    if is_known and not engine.columns(made["node"], ()):
        for lookup in work.lookups:
            lookup.look_up(engine, in_map=True)
        if not engine.columns(made["node"], ()):
            if (misread := engine.find_misread(made["node"])) is not None:
                raise misread
            unnested = [node for node in trees.walk(made) if node.get("function_name") == "unnest"]
            of_struct = any(node is lookup.node for lookup in work.lookups for node in trees.walk(unnested))
            raise _refusal("in unnest() of a STRUCT" if of_struct else "where DuckDB allows no subquery")
    shown, cited = add_places(made, work.lookups, engine, in_order=work.in_order)
    return (shown, cited) if cited and engine.columns(shown["node"], ()) else (made, ())


def _reads_order(tree: Node) -> bool:
    """Return whether a query may depend on the order of rows within it, which looking up in a table, a join, loses."""
    nested = [node for node in trees.walk(tree) if node is not tree["node"]]
    ordered = any(modifier["type"] == "ORDER_MODIFIER" for node in nested for modifier in node.get("modifiers", ()))
    return ordered or any(node.get("ref_type") == "POSITIONAL" for node in nested)


def _refusal(where: str) -> UnsupportedError:
    return UnsupportedError(
        f"text functions are not supported {where}: ask in a query of its own, in FROM or WITH, and use what it gives"
    )


@dataclass(frozen=True)
class _RowScope:
    """The rows that a nested query sees: a FROM, and the condition under which its rows matter."""

    item: Node
    where: Node | None
    written: Node | None = None
    """The FROM before its text functions were taken out, where these are."""
    branch: Node | None = None
    """The part of the condition under which rows come to an expression within others."""

    @property
    def condition(self) -> Node | None:
        return trees.both(self.where, self.branch)


@dataclass
class _TakingApart:
    engine: Parts
    stops: bool
    in_order: bool
    """The order of rows within the query counts."""
    lookups: list[Lookup] = field(default_factory=list)
    written: dict[int, Node] = field(default_factory=dict)
    """Members of WITH, by their ids, before their text functions were taken out."""
    _answer_tables: dict[tuple[int, str], str] = field(default_factory=dict)

    def query(self, node: Node, members: Sequence[Node], around: Sequence[_RowScope]) -> None:
        """Take the text functions out of a query that may name members of WITH, nested in those `around` it."""
        for member in node.get("cte_map", {}).get("map", ()):
            self.written[id(member)] = copy.deepcopy(member)
            self._member(member, members, around)
            members = (*members, member)
        if node["type"] == "SET_OPERATION_NODE":
            for side in node.get("children") or (node["left"], node["right"]):
                self.query(side, members, around)
            if trees.has_text(node["modifiers"]):
                raise _refusal("in ORDER BY or LIMIT of UNION, EXCEPT and INTERSECT")
        elif node["type"] == "SELECT_NODE":
            _Select(self, node, tuple(members), tuple(around)).take_apart()
        elif trees.has_text(node):
            raise _refusal("in a query of this form")

    def _member(self, member: Node, members: Sequence[Node], around: Sequence[_RowScope]) -> None:
        body = member["value"]
        inner = body["query_node"]
        if inner["type"] == "RECURSIVE_CTE_NODE":
            if trees.has_text(inner["right"]):
                raise UnsupportedError(
                    "text functions in the part of WITH RECURSIVE that refers to itself are not supported: ask in "
                    "the part before UNION, or about the rows of the whole"
                )
            self.query(inner["left"], members, around)
            return
        self.query(inner, members, around)
        if not around and self.engine.is_nondeterministic(inner):
            table = self.engine.make(trees.add_members(inner, members))
            if table is not None:
                body["query_node"] = trees.select_all(self.engine.item(f"{WORK_SCHEMA}.{table}"))


@dataclass
class _Select:
    work: _TakingApart
    node: Node
    members: tuple[Node, ...]
    around: tuple[_RowScope, ...]

    def take_apart(self) -> None:
        node = self.node
        if node.get("sample") is not None and node.get("from_table") is not None:
            item = node["from_table"]
            node["from_table"] = (
                item if item["type"] in ("BASE_TABLE", "SUBQUERY") else trees.subquery(trees.select_all(item), "")
            )
            node["from_table"]["sample"], node["sample"] = node["sample"], None
        self._name_outputs()
        self._inline_aliases()
        around = [scope.written or scope.item for scope in self.around]
        members = [self.work.written.get(id(member), member) for member in self.members]
        AnswerReading(node, members, around, self.work.engine, lambda value: self._helpers([value], None)).read()
        written = copy.deepcopy(node["from_table"])
        self._item(node, "from_table", None)
        if not trees.has_text({key: part for key, part in node.items() if key not in ("cte_map", "from_table")}):
            return
        if self.work.stops and not self.around:
            keep_first_rows(node, self.members, self.work.engine)
        where = node["where_clause"]
        node["where_clause"] = None
        known = self._without_text(where)
        holder = {"where": where}
        self._replace_calls(holder, "where", _RowScope(node["from_table"], known, written), rows=True)
        self._guard(holder, "where")
        node["where_clause"] = holder["where"]
        reached = _RowScope(node["from_table"], self._without_text(node["where_clause"]), written)
        clauses = ("group_expressions", "select_list", "having", "qualify", "modifiers")
        for rows in (True, False):
            for key in clauses:
                self._replace_calls(node, key, reached, rows=rows)
        for key in ("having", "qualify"):
            self._guard(node, key)
        for modifier in node["modifiers"]:
            for order in modifier.get("orders", ()):
                if any(order["expression"] is lookup.node for lookup in self.work.lookups):
                    order["null_order"] = order["null_order"].replace("ORDER_DEFAULT", "NULLS LAST")

    def _item(self, holder: Any, key: Any, before: Node | None) -> None:
        """Take the text functions out of an item of FROM, and draw what is drawn by chance."""
        item = holder[key]
        cross = self.work.engine.cross
        around = self.around if before is None else (*self.around, _RowScope(before, None))
        match item["type"]:
            case "JOIN":
                self._item(item, "left", before)
                self._item(item, "right", item["left"] if before is None else cross(before, item["left"]))
                if trees.has_text(item.get("condition")):
                    pairs = _RowScope(cross(item["left"], item["right"]), self._without_text(item["condition"]))
                    self._replace_calls(item, "condition", pairs, rows=True)
                    if item["ref_type"] == "REGULAR":
                        self._guard(item, "condition")
                return
            case "SUBQUERY":
                self.work.query(item["subquery"]["node"], self.members, around)
            case "PIVOT":
                self._item(item, "source", before)
            case "SHOW_REF" if item.get("query") is not None:
                self.work.query(item["query"], self.members, around)
        if trees.has_text(item):
            if item["type"] == "PIVOT":
                raise _refusal("in ON, USING and GROUP BY of PIVOT")
            for part in [part for part in item if part not in ("subquery", "query")]:
                self._replace_calls(
                    item, part, _RowScope(before or trees.select([], None)["from_table"], None), rows=True
                )
        if self.work.engine.is_nondeterministic(item) and not trees.has_text(item) and not around:
            name = self.work.engine.make(trees.add_members(trees.select_all(item), self.members))
            if name is not None:
                holder[key] = {**self.work.engine.item(f"{WORK_SCHEMA}.{name}"), "alias": trees.alias_of(item)}

    def _without_text(self, condition: Node | None) -> Node | None:
        """Return the part of a condition that is known before any text is asked, and is the same each time."""
        if condition is None:
            return None
        if condition.get("type") == "CONJUNCTION_AND":
            return trees.both(*map(self._without_text, condition["children"]))
        by_chance = self.work.engine.functions.volatile & trees.functions_in(trees.walk(condition))
        return None if by_chance or trees.has_text(condition) else condition

    def _name_outputs(self) -> None:
        """Give outputs that may change the names that DuckDB gives them: queries around this one may use them."""
        outputs = self.node["select_list"]
        texts = [
            i for i, item in enumerate(outputs) if not item["alias"] and item["class"] not in ("COLUMN_REF", "STAR")
        ]
        if texts and (columns := self.work.engine.columns(self.node, self.members)):
            several = ("STAR", "unnest")
            more = [
                i
                for i, item in enumerate(outputs)
                if any(n.get("type") in several or n.get("function_name") in several for n in trees.walk(item))
            ]
            more = [] if len(columns) == len(outputs) else more or texts
            for i in texts:
                if not more or i < more[0]:
                    outputs[i]["alias"] = columns[i][0]
                elif i > more[-1]:
                    outputs[i]["alias"] = columns[i - len(outputs)][0]

    def _inline_aliases(self) -> None:
        """Write an output that holds text functions out where other clauses name it: a comparison is a verdict."""
        texts: dict[str, Node] = {}
        for item in self.node["select_list"]:  # in their order, as one may name others before it
            self._inline_in(item, texts)
            if item["alias"] and trees.has_text(item):
                texts[str(item["alias"]).lower()] = item
        for key in ("where_clause", "having", "qualify"):
            self._inline_in(self.node[key], texts)

    def _inline_in(self, part: Node | None, texts: Mapping[str, Node]) -> None:
        for name in [node for node in trees.own_nodes(part) if node.get("class") == "COLUMN_REF"]:
            path = [str(part).lower() for part in name["column_names"]]
            if path[-1] not in texts or (len(path) > 1 and path[0] != "alias"):
                continue
            alone = trees.select([{**name, "alias": ""}], self.node["from_table"])
            if len(path) == 1 and self.work.engine.columns(alone, self.members):
                continue  # a column of FROM goes before an output
            trees.replace_expression(name, copy.deepcopy(texts[path[-1]]))

    def _replace_calls(self, holder: Any, key: Any, reached: _RowScope, *, rows: bool) -> None:
        """Put lookups in the place of text functions; `rows`: of those over single rows, else over groups."""
        value = holder[key]
        if isinstance(value, list):
            for i in range(len(value)):
                self._replace_calls(value, i, reached, rows=rows)
        elif isinstance(value, dict):
            if value.get("class") == "SUBQUERY":
                self._replace_calls(value, "child", reached, rows=rows)
                if trees.has_text(value["subquery"]):
                    self.work.query(value["subquery"]["node"], self.members, (*self.around, reached))
            elif is_unit(value):
                self._replace_call(value, reached, rows=rows)
            elif trees.has_text(value):
                self._replace_within(value, reached, rows=rows)

    def _replace_within(self, value: Node, reached: _RowScope, *, rows: bool) -> None:
        """Put lookups in the place of the text functions of an expression, each asked of the rows that come to it."""
        if value.get("class") == "CASE":
            for check in value["case_checks"]:
                self._replace_calls(check, "when_expr", reached, rows=rows)
                taken = self._narrow(reached, check["when_expr"], "a")
                self._replace_calls(check, "then_expr", taken, rows=rows)
                reached = self._narrow(reached, check["when_expr"], "NOT coalesce(a, false)")
            self._replace_calls(value, "else_expr", reached, rows=rows)
        elif (undecided := _UNDECIDED.get(value.get("type", ""))) is not None:
            children = value["children"]
            free = [] if value["class"] == "OPERATOR" else [c for c in children if not trees.has_text(c)]
            for child in free:
                reached = self._narrow(reached, child, undecided)
            for i, child in enumerate(children):
                self._replace_calls(children, i, reached, rows=rows)
                if not any(child is other for other in free):
                    reached = self._narrow(reached, children[i], undecided)
        else:
            for part in list(value):
                self._replace_calls(value, part, reached, rows=rows)

    def _narrow(self, reached: _RowScope, condition: Node, form: str) -> _RowScope:
        """Return the rows of which an expression of `a`, a condition, is true too; all where that is not known yet."""
        engine, where = self.work.engine, reached.where or {}
        known = condition in (where["children"] if where.get("type") == "CONJUNCTION_AND" else [where])
        if known or trees.has_text(condition) or engine.is_nondeterministic(condition) or engine.is_grouped(condition):
            return reached
        return replace(reached, branch=trees.both(reached.branch, engine.express(form, a=copy.deepcopy(condition))))

    def _replace_call(self, node: Node, reached: _RowScope, *, rows: bool) -> None:
        unit = {**copy.deepcopy(trees.without_places(node)), "alias": ""}
        call = next(part for part in trees.walk(unit) if trees.is_text_call(part))
        arguments = call["arguments"]
        if trees.has_text(arguments):
            original = next(part for part in trees.walk(node) if trees.is_text_call(part))
            self._replace_calls(original, "arguments", reached, rows=rows)
            if trees.has_text(original["arguments"]):
                return  # what it reads is over groups, and comes later
            self._replace_call(node, reached, rows=rows)
            return
        places = [i for i, one in enumerate(arguments) if _is_document(one["expression"], call, i)]
        documents = [arguments[i]["expression"] for i in places]
        if any(part.get("class") == "POSITIONAL_REFERENCE" for part in trees.own_nodes(documents)):
            raise _refusal("over columns by their numbers (#1)")
        helpers = self._helpers(documents, reached.condition)
        grouped = any(map(self.work.engine.is_grouped, [*documents, *helpers]))
        if grouped and rows:
            return
        if self.work.engine.is_nondeterministic(documents):
            raise _refusal("over what is drawn by chance, or under a LIMIT")
        for number, i in enumerate(places):
            arguments[i] = {**arguments[i], "expression": trees.column(f"{DOCUMENT}{number}")}
        branches = (reached.branch, None)  # a table of all rows has those of a branch too
        marks = [(id(self.node), repr((unit, trees.without_places([documents, branch])))) for branch in branches]
        tables = self.work._answer_tables
        table = next((tables[mark] for mark in marks if mark in tables), None)
        if table is None:
            table = tables[marks[0]] = self._make_answer_table(unit, documents, helpers, reached, grouped=grouped)
        lookup = Lookup(node, table, documents, self.node, reached.branch)
        lookup.look_up(self.work.engine, in_map=self.work.in_order)
        self.work.lookups.append(lookup)

    def _make_answer_table(
        self, unit: Node, documents: list[Node], helpers: list[Node], reached: _RowScope, *, grouped: bool
    ) -> str:
        """Return the name of the table of what a text function comes to; `unit` has marks in place of its documents."""
        engine, sources = self.work.engine, self._sources(documents)
        query = trees.select([{**unit, "alias": ANSWER}], None)
        if documents:
            name = self._list_documents(documents, helpers, reached, grouped, sources)
            listed = [trees.column(f"{DOCUMENT}{i}") for i in range(len(documents))]
            query = trees.select([*listed, *query["select_list"]], engine.item(f"{WORK_SCHEMA}.{name}"))
        table = engine.make(query, sources)
        if table is None:
            raise _refusal("within this expression")
        return table

    def _guard(self, holder: Any, key: Any) -> None:
        """Make the parts of a condition NULL that rest on a failed call, which has no row in its table of answers."""
        part = holder[key]
        if part is None:
            return
        if part.get("class") == "CONJUNCTION" or part.get("type") == "OPERATOR_NOT":
            for i in range(len(part["children"])):
                self._guard(part["children"], i)
            return
        lookups = self._lookups_in(part)
        if not lookups or any(part is lookup.node for lookup in lookups):
            return  # an answer by itself, a verdict, is NULL then
        engine = self.work.engine
        for lookup in lookups:
            said = lookup.finding(SAID, engine, in_map=self.work.in_order)
            self.work.lookups.append(said)
            present = [engine.express("a IS NOT NULL", a=copy.deepcopy(document)) for document in lookup.documents]
            failed = trees.both(copy.deepcopy(lookup.branch), *present, engine.express("a IS NULL", a=said.node))
            assert failed is not None
            holder[key] = engine.express("CASE WHEN a THEN NULL ELSE b END", a=failed, b=holder[key])

    def _lookups_in(self, part: Any) -> list[Lookup]:
        """Return the lookups of a part of this SELECT, with those that their documents are made of.

        Not those in an aggregate, which is of what was answered, as it is of what is not NULL.
        """
        nodes = list(trees.own_nodes(part))
        functions = [node for node in nodes if node.get("class") == "FUNCTION"]
        aggregates = [node for node in functions if node["function_name"].lower() in self.work.engine.aggregates]
        own = {id(node) for node in nodes} - {id(inner) for node in aggregates for inner in trees.own_nodes(node)}
        found = [lookup for lookup in self.work.lookups if id(lookup.node) in own and lookup.select is self.node]
        tables = {node.get("table_name") for lookup in found for node in trees.walk(lookup.documents)}
        return found + [lookup for lookup in self.work.lookups if lookup.table in tables]

    def _helpers(self, documents: list[Node], where: Node | None) -> list[Node]:
        """Return the outputs without text that documents, or the condition under which they matter, may name."""
        aliased = {str(item["alias"]).lower(): item for item in self.node["select_list"] if item["alias"]}
        found: dict[str, Node] = {}
        pending = trees.names_in(documents) | trees.names_in(where)
        while pending:
            name = pending.pop()
            if name in aliased and name not in found and not trees.has_text(aliased[name]):
                found[name] = aliased[name]
                pending |= trees.names_in(aliased[name])
        return [item for item in self.node["select_list"] if any(item is other for other in found.values())]

    def _list_documents(
        self,
        documents: list[Node],
        helpers: list[Node],
        reached: _RowScope,
        grouped: bool,
        sources: Sequence[Cited | None] | None,
    ) -> str:
        engine = self.work.engine
        columns = [{**copy.deepcopy(one), "alias": f"{DOCUMENT}{i}"} for i, one in enumerate(documents)]
        if grouped:
            inner = {**copy.deepcopy(self.node), "modifiers": [], "qualify": None}
            inner["having"] = None if trees.has_text(inner["having"]) else inner["having"]
            null, outputs = engine.express("NULL"), inner["select_list"]
            stubs = [{**null, "alias": item["alias"]} if trees.has_text(item) else item for item in outputs]
            inner["select_list"] = [*stubs, *columns]
        else:
            shown = [*copy.deepcopy(helpers), *columns]
            inner = trees.select(shown, copy.deepcopy(reached.item), copy.deepcopy(reached.condition))
        listed = [trees.column(f"{DOCUMENT}{i}") for i in range(len(documents))]
        for outer in [None, *reversed(self.around)]:
            if outer is not None:
                item = engine.cross(outer.item, trees.subquery(inner, "almanaq_inner"))
                inner = trees.select(copy.deepcopy(listed), copy.deepcopy(item), copy.deepcopy(outer.condition))
            query = trees.select(copy.deepcopy(listed), trees.subquery(copy.deepcopy(inner), "almanaq_inner"))
            query["modifiers"] = [{"type": "DISTINCT_MODIFIER", "distinct_on_targets": []}]
            name = engine.make(trees.add_members(query, self.members), sources)
            if name is not None:
                return name
        raise _refusal("where what they read cannot be listed")

    def _sources(self, documents: list[Node]) -> list[Cited | None] | None:
        """Return where the documents stand: one that is a column, or what a computed one is made of; None: unknown."""
        places = self.work.engine.find_sources(documents, self.node, self.members)
        plain = all(document.get("class") == "COLUMN_REF" for document in documents)
        return None if places is None else [*places, *([] if plain else [None])]


def is_unit(node: Node) -> bool:
    """Return whether a node is a text function with what says how a reply is read: a cast, or a comparison."""
    if trees.is_text_call(node) or (node.get("class") == "CAST" and trees.is_text_call(node["child"])):
        return True
    if node.get("class") == "COMPARISON":
        sides = (node["left"], node["right"])
        return any(map(is_unit, sides)) and any(map(trees.is_constant, sides))
    if node.get("class") == "BETWEEN":
        return is_unit(node["input"]) and trees.is_constant(node["lower"]) and trees.is_constant(node["upper"])
    if node.get("type") in ("COMPARE_IN", "COMPARE_NOT_IN") and node.get("children"):
        first, *others = node["children"]
        return is_unit(first) and all(map(trees.is_constant, others))
    return False


def _is_document(argument: Node, call: Node, place: int) -> bool:
    """Return whether an argument differs between rows: allowed answers do not, and constants stay where they are."""
    function = DECLARED[str(call["function_name"]).lower()]
    if place == function.options or (function.expand is not None and place == 1):
        return False
    kinds = {str(node.get("class")) for node in trees.walk(argument)}
    return bool(kinds & {"COLUMN_REF", "SUBQUERY", "WINDOW", "LAMBDA", "POSITIONAL_REFERENCE"})
