"""Queries that were written: their trees, the relations they read, and the keys of the rows that they give."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Protocol

import sqlglot
from sqlglot import TokenType, exp
from sqlglot.dialects.dialect import Dialect
from sqlglot.errors import SqlglotError

from almanaq.agent.history import Shown, Value, private_columns, short_cells
from almanaq.errors import QueryTypeError
from almanaq.options import Options
from almanaq.suql.catalog.relations import Catalog, ColumnKind, Relation
from almanaq.suql.text_functions import is_model_call

if TYPE_CHECKING:
    # pyarrow comes with this module, and importing the agent must stay quick.
    from almanaq.suql.result import Result

_KEY, _BESIDE = "row_key_", "row_value_"
MOST_ROWS = 20
"""Rows of a reply whose keys are kept at most."""
_MOST_BESIDE = 4


class QueryEngine(Protocol):
    """Runs SUQL over one source. Raises QueryError for a faulty query, other AlmanaqErrors when running it fails."""

    @property
    def catalog(self) -> Catalog: ...

    def run(self, query: str, parameters: Sequence[object] = (), *, options: Options | None = None) -> Result: ...

    def check(self, query: str) -> None:
        """Parse and bind only; raises QueryError."""

    def private_columns(self, query: str) -> tuple[str, ...]:
        """Return the private columns whose values the rows of a query, or their quotes, may show."""

    @property
    def dialect(self) -> str:
        """sqlglot's name of the dialect in which queries are written."""

    def values(self, relation: str, column: str, limit: int) -> list[str]:
        """Return distinct values of a text or ENUM column, the most frequent first."""


@lru_cache(maxsize=128)
def query_tree(suql: str, dialect: str) -> exp.Expr:
    """Return the tree of a query, to be read only: it is shared, since one turn looks at the same query many times.

    Raises:
        SqlglotError: it cannot be parsed.
    """
    return sqlglot.parse_one(suql, read=dialect)


def to_sql(tree: exp.Expr, dialect: str) -> str:
    """Return a tree as SQL, with the names of functions as they were written."""
    return tree.sql(dialect, normalize_functions=False)


def tables_of(suql: str, dialect: str) -> tuple[str, ...]:
    """Return the names of the relations that a query reads, in the order of their first mention."""
    tree = query_tree(suql, dialect)
    local = {cte.alias for cte in tree.find_all(exp.CTE)}
    tables = (".".join(p.name for p in t.parts) for t in tree.find_all(exp.Table))
    return tuple(dict.fromkeys(name for name in tables if name not in local))


def read_outputs(suql: str, columns: Sequence[str], dialect: str) -> frozenset[str]:
    """Return those columns of a query's result that are read off texts: answers and summaries."""
    tree = query_tree(suql, dialect)
    items = tree.selects if isinstance(tree, exp.Query) else []
    if len(items) != len(columns):  # a star stands for several
        return frozenset()
    read = [any(is_model_call(call) for call in item.find_all(exp.Anonymous)) for item in items]
    return frozenset(column for column, is_read in zip(columns, read, strict=True) if is_read)


def check_misuse(suql: str, catalog: Catalog) -> None:
    """Raise QueryTypeError, with what to write instead, for what models write that SQL allows and nobody means.

    That is the name of a column in single quotes as the text to read, and prose compared as a value.
    """
    try:
        tree = query_tree(suql, catalog.dialect)
    except SqlglotError:
        return  # the engine says what is wrong with it
    for call in tree.find_all(exp.Anonymous):
        if is_model_call(call) and call.expressions and isinstance(call.expressions[0], exp.Literal):
            _refuse_string(call, catalog)
    for node in tree.find_all(exp.Any):
        column = node.this.unnest()
        if isinstance(column, exp.Column) and _is_prose(column, catalog):
            name = column.sql(catalog.dialect)
            raise QueryTypeError(
                f"{name} holds prose, which no value is equal to: ask it instead, as answer({name}, 'is it …?') = 'Yes'"
            )


def _refuse_string(call: exp.Anonymous, catalog: Catalog) -> None:
    written = call.expressions[0].name
    names = [column.name for relation in catalog.relations for column in relation.columns]
    name = next((each for each in names if each.casefold() == written.casefold()), None)
    quoted = exp.to_identifier(name, quoted=True).sql(catalog.dialect) if name else ""
    marks = "double quotes" if quoted[:1] == '"' else "backticks"
    meant = f"write {quoted} in {marks} to read that column" if name else "give it a column of prose"
    raise QueryTypeError(f"{call.name}() is given the words '{written[:60]}' themselves to read: {meant}")


def _is_prose(column: exp.Column, catalog: Catalog) -> bool:
    kinds = {found.kind for relation in catalog.relations if (found := relation.column(column.name)) is not None}
    return kinds == {ColumnKind.FREE_TEXT}


def shows_private(suql: str, engine: QueryEngine, links: Sequence[tuple[str, str, tuple[str, ...]]] = ()) -> bool:
    """Return whether the rows of a query that ran, the quotes they rest on, or its links show private values.

    Args:
        links: the trace's: column, literal, and the values that it was taken for.
    """
    private = private_columns(engine.catalog)
    return any(column in private for column, _, _ in links) or bool(private and engine.private_columns(suql))


# Keys of the rows that a reply shows: they are asked for along with the rows.


@dataclass(frozen=True, slots=True)
class KeyedQuery:
    """A query that also gives the key of each row.

    Attributes:
        suql: the query with the key's columns after its own.
        relation: the relation whose rows it gives.
        columns: names of the key's columns.
        beside: names of columns that come after these: what the query compares or sorts by, and does not show.
    """

    suql: str
    relation: str
    columns: tuple[str, ...]
    beside: tuple[str, ...] = ()


def main_relation(tree: exp.Expr, catalog: Catalog) -> Relation | None:
    """Return the relation of FROM when each row of the query is a row of it; None for groups, sets and aggregates."""
    if not isinstance(tree, exp.Select) or any(tree.args.get(part) for part in ("group", "distinct", "with_")):
        return None
    if any(_aggregates(item) for item in tree.expressions):
        return None
    source = tree.args.get("from_")
    if source is None or not isinstance(source.this, exp.Table) or source.this.args.get("pivots"):
        return None
    names = [part.name for part in source.this.parts]
    return catalog.find(".".join(names)) or catalog.find(names[-1])


def _aggregates(item: exp.Expr) -> bool:
    """Return whether an output is of many rows: an aggregate outside windows and nested queries."""
    return any(call.find_ancestor(exp.Window, exp.Subquery) is None for call in item.find_all(exp.AggFunc))


def add_keys(suql: str, catalog: Catalog, *, compared: bool = False) -> KeyedQuery | None:
    """Return the query with the key of each row added; None where its rows have none, or are rows of no relation.

    Args:
        compared: add the columns too that the query compares or sorts by.
    """
    tree = query_tree(suql, catalog.dialect)
    relation = main_relation(tree, catalog)
    if relation is None or not relation.key or not isinstance(tree, exp.Select):
        return None
    if any(column.private for column in map(relation.column, relation.key) if column is not None):
        return None
    table = tree.args["from_"].this.alias_or_name
    added = [
        exp.alias_(
            exp.column(exp.to_identifier(name, quoted=True), exp.to_identifier(table, quoted=True)), f"{_KEY}{i}"
        )
        for i, name in enumerate(relation.key)
    ]
    beside = _compared_columns(tree, table, relation) if compared else ()
    added += [exp.alias_(node.copy(), f"{_BESIDE}{i}") for i, node in enumerate(beside)]
    written = _insert_outputs(suql, tree, added, catalog.dialect)
    return KeyedQuery(written, relation.name, relation.key, tuple(node.name for node in beside))


def _insert_outputs(suql: str, tree: exp.Select, added: Sequence[exp.Expr], dialect: str) -> str:
    """Return a query with more outputs, its own text as it was written.

    Some engines name a column without an alias after the spelling of its expression, so that must not change. Only a
    query that does not begin with SELECT … FROM is written from its tree.
    """
    columns = ", ".join(to_sql(item, dialect) for item in added)
    depth = 0
    before: TokenType | None = None
    for token in Dialect.get_or_raise(dialect).tokenize(suql):
        depth += (token.token_type in _OPENING) - (token.token_type in _CLOSING)
        if before is None and token.token_type != TokenType.SELECT:
            break
        if token.token_type == TokenType.FROM and depth == 0 and before != TokenType.DISTINCT:
            return f"{suql[: token.start].rstrip(' ')}, {columns} {suql[token.start :]}"
        before = token.token_type
    keyed = tree.copy()
    keyed.set("expressions", [*keyed.expressions, *added])
    return to_sql(keyed, dialect)


_OPENING = (TokenType.L_PAREN, TokenType.L_BRACKET, TokenType.L_BRACE)
_CLOSING = (TokenType.R_PAREN, TokenType.R_BRACKET, TokenType.R_BRACE)


def _compared_columns(tree: exp.Select, table: str, relation: Relation) -> tuple[exp.Column, ...]:
    """Return the plain columns of a relation that a query compares or sorts by, and does not show."""
    shown = {item.unalias().name.casefold() for item in tree.expressions if isinstance(item.unalias(), exp.Column)}
    shown |= {name.casefold() for name in relation.key}
    found: dict[str, exp.Column] = {}
    for clause in (tree.args.get("where"), tree.args.get("order")):
        for node in clause.find_all(exp.Column) if clause is not None else ():
            column = relation.column(node.name) if node.table in ("", table) else None
            own = node.find_ancestor(exp.Select) is tree and node.name.casefold() not in shown
            if own and column is not None and not column.private and column.kind is not ColumnKind.FREE_TEXT:
                found.setdefault(column.name, node)
    return tuple(found.values())[:_MOST_BESIDE]


def split_keys(result: Result, keyed: KeyedQuery, suql: str) -> tuple[Result, Shown]:
    """Return the result of the query as it was written, and the rows that it shows."""
    first = result.table.num_columns - len(keyed.columns) - len(keyed.beside)
    last = first + len(keyed.columns)
    table = result.table.select(list(range(first)))
    rows = result.rows[:MOST_ROWS]
    keys = tuple(tuple(_key_value(v) for v in row[first:last]) for row in rows)
    names = tuple(str(row[0]) for row in rows)
    values = short_cells((*result.columns[1:first], *keyed.beside), [(*row[1:first], *row[last:]) for row in rows])
    shown = Shown(keyed.relation, keyed.columns, keys, names, values)
    return type(result)(table, result.evidence, result.trace, suql), shown


def name_rows(suql: str, result: Result, catalog: Catalog) -> Shown | None:
    """Return the rows of a relation without a key by their first column, when that is one of the relation's own."""
    tree = query_tree(suql, catalog.dialect)
    relation = main_relation(tree, catalog)
    first = tree.expressions[0] if isinstance(tree, exp.Select) and tree.expressions else None
    if relation is None or not isinstance(first, exp.Column) or relation.column(first.name) is None:
        return None
    rows = [row for row in result.rows[:MOST_ROWS] if row[0] is not None]
    keys, names = tuple((_key_value(row[0]),) for row in rows), tuple(str(row[0]) for row in rows)
    values = short_cells(result.columns[1:], [row[1:] for row in rows])
    return Shown(relation.name, (first.name,), keys, names, values)


def _key_value(value: Any) -> Value:
    return value if isinstance(value, int | float) and not isinstance(value, bool) else str(value)
