"""What the expressions of a block refer to: its own FROM, and text sites, the computed columns of what a model says."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from decimal import Decimal

from sqlglot import exp

from almanaq.errors import QueryTypeError, UnsupportedError
from almanaq.models.protocols import AnswerType, TextCall
from almanaq.suql.catalog.answer_types import answer_type, bounds_of, is_whole_text
from almanaq.suql.catalog.sources import find_source, from_items
from almanaq.suql.syntax.nodes import (
    aliased,
    ancestors,
    column,
    copy_tree,
    in_parentheses,
    is_within,
    nodes_of,
)
from almanaq.suql.text_functions import declared, has_text, is_text_call, nested_queries, own_text_calls
from almanaq.values import SEPARATOR

CLAUSES_OF_FROM = ("from_", "joins", "laterals")
CLAUSES_OF_ROWS = (*CLAUSES_OF_FROM, "where")
"""The clauses of a SELECT that make its rows, before grouping."""


def own_columns(block: exp.Select, *parts: exp.Expr) -> list[exp.Column]:
    """Return the columns in parts of a block (all of it by default, nested queries too) that belong to its FROM."""
    items = {id(item) for item in from_items(block)}
    found = [c for part in (parts or (block,)) for c in nodes_of(part, exp.Column)]
    return [c for c in found if c.table and id(find_source(c.table, c)) in items]


def tables_in(part: exp.Expr) -> set[str]:
    """Return the aliases of FROM items before the columns of an expression."""
    return {reference.table for reference in nodes_of(part, exp.Column)}


def outer_columns(query: exp.Expr) -> list[exp.Column]:
    """Return the columns of a nested query that belong to a FROM outside of it."""
    found = []
    for c in nodes_of(query, exp.Column):
        item = find_source(c.table, c) if c.table else None
        if item is not None and not is_within(item, query):
            found.append(c)
    return found


def is_correlated(query: exp.Expr) -> bool:
    return bool(outer_columns(query))


def is_of_block(part: exp.Expr, block: exp.Select) -> bool:
    """Return whether a part of a block refers to nothing outside of the block."""
    return len(outer_columns(part)) == len(own_columns(block, part))


def carried_name(reference: exp.Column) -> str:
    return f"{reference.table}.{reference.name}"


def references_from_above(block: exp.Select, cut: int) -> list[exp.Column]:
    """Return the columns of a block's FROM items up to its join number `cut` that are named outside those items."""
    items = list(from_items(block))[: cut + 1]
    kept = {id(item) for item in items}
    before = [*items, *(block.args.get("joins") or [])[:cut]]
    inside = {id(c) for item in before for c in nodes_of(item, exp.Column)}
    return [c for c in own_columns(block) if id(find_source(c.table, c)) in kept and id(c) not in inside]


def carry(references: list[exp.Column], item: str) -> dict[str, exp.Expr]:
    """Point columns, in place, at an item of FROM that has them under their carried names; return what these are."""
    carried: dict[str, exp.Expr] = {carried_name(reference): copy_tree(reference) for reference in references}
    for reference in references:
        reference.replace(column(item, carried_name(reference)))
    return carried


def parts_beside(block: exp.Select, clauses: Sequence[str]) -> list[exp.Expr]:
    return [part for part in block.iter_expressions() if part.arg_key not in clauses]


def where_of(block: exp.Select) -> exp.Expr | None:
    clause = block.args.get("where")
    return clause.this if clause is not None else None


def in_where(node: exp.Expr, block: exp.Select) -> bool:
    return any(at is block.args.get("where") for at in ancestors(node, block))


def take_rows(block: exp.Select) -> exp.Select:
    """Move the clauses that make a block's rows into a new SELECT without outputs; the block keeps the others."""
    inner = exp.Select()
    for clause in CLAUSES_OF_ROWS:
        value = block.args.get(clause)
        if value is not None:
            block.set(clause, None)
            inner.set(clause, value)
    return inner


def hand_down(block: exp.Select, inner: exp.Select, rows: str) -> None:
    """Let the nested queries of a block find the columns of the rows around it in its derived table, its only FROM."""
    derived = block.args["from_"].this
    nested = [query for query in nested_queries(block) if query is not derived and has_text(query)]
    references = [c for query in nested for c in nodes_of(query, exp.Column) if c.table == rows]
    for name, reference in carry(references, derived.alias).items():
        inner.append("expressions", aliased(reference, name))


TEXT_ALIAS = "_text"
"""The alias under which a block's expressions refer to its computed columns until the plan is lowered."""
FROM_ALIAS = "_from"
"""The alias under which a block's expressions refer to the columns of its FROM until the plan is lowered."""


@dataclass(frozen=True, slots=True)
class Site:
    """One distinct text function of a block, read as one SQL type.

    Attributes:
        document, question: expressions over the block's FROM.
        compared: the literals it is compared with here; the i-th has the verdict column `{id}_{i}`.
        needed: condition under which the output looks at it, which may hang on other sites; None: always.
        options_from: the query whose values are the options; None: they are written out, or there are none.
        bounds: what a number lies between if it is one of the SQL type; None: any is.
        about: where the document comes from, as readers see it; "" where it is computed.
        casts: the SQL types that its value is cast to by the engine alone.
    """

    id: str
    function: str
    document: exp.Expr
    question: exp.Expr
    type: AnswerType
    options: tuple[str, ...] = ()
    compared: tuple[str, ...] = ()
    needed: exp.Expr | None = None
    bounds: tuple[Decimal, Decimal] | None = None
    options_from: exp.Query | None = None
    about: str = ""
    casts: tuple[exp.DataType, ...] = ()

    @property
    def columns(self) -> tuple[str, ...]:
        """Names of its computed columns: the value, then one verdict per compared literal."""
        return (self.id, *(f"{self.id}_{i}" for i in range(len(self.compared))))

    @property
    def chosen(self) -> bool:
        """Whether the reply to its calls is a verdict, an option or a number."""
        return self.function == "answer" and (self._asked.chosen or self.options_from is not None)

    @property
    def _asked(self) -> TextCall:
        return TextCall("answer", ("",), "", self.type, self.options, self.compared)


def is_text_column(node: object) -> bool:
    return isinstance(node, exp.Column) and node.table == TEXT_ALIAS


def text_columns(node: exp.Expr) -> set[str]:
    return {each.name for each in nodes_of(node, exp.Column) if is_text_column(each)}


def site_of(name: str) -> str:
    return name.split("_")[0]


class SiteCollector:
    """Replaces the text functions of a block's expressions by computed columns, one site per distinct call."""

    def __init__(self) -> None:
        self._sites: dict[tuple[str, ...], Site] = {}

    @property
    def sites(self) -> tuple[Site, ...]:
        return tuple(self._sites.values())

    def replace(self, node: exp.Expr) -> exp.Expr:
        """Return an expression with computed columns for its text functions (its own, not those of nested queries)."""
        holder = exp.Paren(this=node)
        for call in own_text_calls(node):
            self._replace_call(call)
        return holder.this  # type: ignore[no-any-return]

    def _replace_call(self, call: exp.Anonymous) -> None:
        unit, type_ = typed_unit(call)
        key = self._key(call, type_, bounds_of(unit.to) if isinstance(unit, exp.Cast) else None)
        literals, comparison = compared_literals(unit, type_)
        site = self._sites[key]
        if comparison is None:
            said = column(TEXT_ALIAS, site.id)
            if type_ == "list":
                made = _list_of(said)
                made.type = unit.type
                unit.replace(made)
            elif isinstance(unit, exp.Cast) and type_ != "text":
                unit.set("this", said)
            elif isinstance(unit, exp.Cast) and not is_whole_text(unit.to):  # what the engine reads, and need not
                self._sites[key] = replace(site, casts=tuple(dict.fromkeys((*site.casts, copy_tree(unit.to)))))
                unit.replace(exp.TryCast(this=said, to=copy_tree(unit.to)))
            else:
                unit.replace(said)
            return
        known = dict.fromkeys((*site.compared, *literals))
        self._sites[key] = replace(site, compared=tuple(known))
        verdicts = [column(TEXT_ALIAS, f"{site.id}_{list(known).index(literal)}") for literal in literals]
        verdict: exp.Expr = exp.or_(*verdicts) if len(verdicts) > 1 else verdicts[0]
        if isinstance(comparison, exp.NEQ):
            verdict = exp.not_(verdict)
        comparison.replace(exp.paren(verdict) if len(verdicts) > 1 else verdict)

    def _key(self, call: exp.Anonymous, type_: AnswerType, bounds: tuple[Decimal, Decimal] | None) -> tuple[str, ...]:
        arguments = call.expressions
        function = call.name.lower()
        same = declared(call).question
        question = arguments[1] if same is None else exp.Literal.string(same)
        found = _options_query(arguments[2]) if len(arguments) > 2 else None
        options = literal_options(arguments[2]) if len(arguments) > 2 and found is None else ()
        from_ = "" if found is None else found.sql()
        key = (function, arguments[0].sql(), question.sql(), type_, str(bounds), from_, *options)
        if key not in self._sites:
            document, asked, name = copy_tree(arguments[0]), copy_tree(question), f"t{len(self._sites)}"
            self._sites[key] = Site(name, function, document, asked, type_, options, bounds=bounds, options_from=found)
        return key


def _list_of(said: exp.Column) -> exp.Expr:
    """Return the list that a reply of several texts is; one of none is empty, whatever an engine splits "" into."""
    parts = exp.StringToArray(this=said, expression=exp.Literal.string(SEPARATOR))
    none = exp.cast(exp.Array(), "text[]")
    return exp.Case(
        ifs=[exp.If(this=exp.EQ(this=copy_tree(said), expression=exp.Literal.string("")), true=none)], default=parts
    )


def typed_unit(call: exp.Expr) -> tuple[exp.Expr, AnswerType]:
    """Return the cast around a call if there is one (else the call), and the type that the answer is read as."""
    node = in_parentheses(call)
    if isinstance(node.parent, exp.Cast) and node.arg_key == "this" and node.parent.parent is not None:
        return node.parent, answer_type(node.parent.to)
    return call, "text"


def compared_literals(unit: exp.Expr, type_: AnswerType) -> tuple[list[str], exp.Expr | None]:
    """Return the string literals that a text answer is compared with by =, <> or IN, and the comparison itself."""
    node = in_parentheses(unit)
    parent = node.parent
    other = isinstance(unit, exp.Cast) and not is_whole_text(unit.to)
    if type_ != "text" or other or parent is None or parent.parent is None:
        return [], None
    if isinstance(parent, exp.EQ | exp.NEQ):
        other = parent.expression if parent.this is node else parent.this
        if isinstance(other, exp.Any) and parent.this is node and isinstance(parent, exp.EQ):
            return _string_literals(_array_items(other.this), parent)
        return _string_literals([other], parent)
    if isinstance(parent, exp.In) and parent.this is node and not parent.args.get("query"):
        return _string_literals(parent.expressions, parent)
    return [], None


def text_unit(call: exp.Expr) -> exp.Expr:
    """Return the largest expression around a call that one computed column stands for: comparison, cast or call."""
    unit, type_ = typed_unit(call)
    _, comparison = compared_literals(unit, type_)
    return comparison if comparison is not None else unit


def literal_options(node: exp.Expr) -> tuple[str, ...]:
    """Return the allowed values that a query names as the third argument of `answer`."""
    literals, _ = _string_literals(_array_items(node), node)
    if not literals:
        raise QueryTypeError(
            "the third argument of answer() takes the allowed values: ARRAY['a', 'b'] or ARRAY(SELECT …); or "
            "fields, each with its type: {'name': 'TYPE'}"
        )
    return tuple(literals)


def _options_query(node: exp.Expr) -> exp.Query | None:
    items = _array_items(node)
    query = items[0].unnest() if len(items) == 1 and isinstance(items[0].unnest(), exp.Query) else None
    if not isinstance(query, exp.Query):
        return None
    if any(each.table == FROM_ALIAS for each in nodes_of(query, exp.Column)):
        raise UnsupportedError(
            "the options of answer() are the same for all rows: ARRAY(SELECT …) may not refer to the query around it"
        )
    return copy_tree(query)


def _array_items(node: exp.Expr) -> list[exp.Expr]:
    node = node.unnest()
    return list(node.expressions) if isinstance(node, exp.Array) else [node]


def _string_literals(nodes: list[exp.Expr], comparison: exp.Expr) -> tuple[list[str], exp.Expr | None]:
    if nodes and all(isinstance(n, exp.Literal) and n.is_string for n in nodes):
        return list(dict.fromkeys(n.name for n in nodes)), comparison
    return [], None


def is_nested_call(call: exp.Expr) -> bool:
    return any(is_text_call(inner) for argument in call.expressions for inner in own_text_calls(argument))
