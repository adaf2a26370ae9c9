"""PostgreSQL's SQL as the compiler needs it: statements checked, trees that say the same, names of results."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from sqlglot import exp
from sqlglot.dialects.dialect import Dialect
from sqlglot.errors import SqlglotError

from almanaq.engines.postgres.functions import FunctionCatalog
from almanaq.engines.postgres.normalize import normalize
from almanaq.engines.postgres.statements import StatementReader, Tree, is_text_call, names_of, parse, parser, walk, write
from almanaq.errors import DatabaseError, UnsupportedError, first_line
from almanaq.suql.catalog.relations import Catalog
from almanaq.suql.language import Parameters, Statement
from almanaq.suql.syntax.dialect import MISREAD
from almanaq.suql.syntax.nodes import nodes_of
from almanaq.suql.text_functions import DECLARED

_COMPARED = ("=", "<>", "<", "<=", ">", ">=", "!=")


class PostgresLanguage:
    """What PostgreSQL makes of a text.

    Args:
        catalog: the relations that queries may name.
        functions: gives the functions of the database.
        describe: gives the names of the columns of a query's result, and runs nothing.
    """

    dialect = "postgres"

    def __init__(
        self,
        catalog: Catalog,
        functions: Callable[[], FunctionCatalog],
        describe: Callable[[str, Parameters], tuple[str, ...]],
    ) -> None:
        withheld = any(relation.withheld for relation in catalog.relations)
        self._reader = StatementReader(catalog, functions, system=not withheld)
        self._describe = describe

    @property
    def aggregates(self) -> frozenset[str]:
        """Names of the functions that aggregate."""
        return self._reader.functions.aggregates

    def read(self, text: str, allowed: frozenset[str] = frozenset()) -> Statement:
        """Return the one query that a text holds, checked; raises QueryError."""
        return self._reader.read(text, allowed)

    def tree(self, statement: Statement) -> exp.Expr:
        """Return sqlglot's tree of a statement, which says the same to PostgreSQL as the statement does.

        Raises:
            UnsupportedError: sqlglot reads or writes it as something else.
        """
        reader, given = _dialect(), parse(statement.sql)
        put_unknown_last(given)
        text = write(given)
        try:
            trees = reader.parser().parse(reader.tokenize(text), text)
            tree = trees[0]
            assert tree is not None
            for bracket in nodes_of(tree, exp.Bracket):
                bracket.set("offset", 1)  # subscripts stay as they are written
            written = tree.sql("postgres", comments=False)
            made = parse(written)
        except (SqlglotError, *MISREAD, DatabaseError) as error:
            raise UnsupportedError(f"the query cannot be planned beside text functions: {first_line(error)}") from error
        if difference := _difference(normalize(given), normalize(made)):
            raise UnsupportedError(f"a part of the query is not supported beside text functions: {difference}")
        return tree

    def names(self, statement: Statement, parameters: Parameters = ()) -> tuple[str, ...]:
        """Return what PostgreSQL calls the columns of a result; raises its error where a statement does not bind."""
        if not statement.has_text:
            return self._describe(statement.shown, parameters)
        try:
            return self._describe(_stub(statement.shown, untyped=False), parameters)
        except DatabaseError:  # `answer(…) >= 0` compares no texts
            return self._describe(_stub(statement.shown, untyped=True), parameters)


def _dialect() -> Dialect:
    dialect = Dialect.get_or_raise("postgres")
    dialect.INDEX_OFFSET = 0
    return dialect


def _stub(text: str, *, untyped: bool) -> str:
    """Return a query with a subquery for each text call, which has its name and mentions its arguments.

    Args:
        untyped: whether what is compared is NULL of no type instead.
    """
    tree = parse(text)
    if untyped:
        for node in walk(tree):
            if node.DESCRIPTOR.name == "A_Expr" and names_of(node.name)[-1:] and names_of(node.name)[-1] in _COMPARED:
                for side in (node.lexpr, node.rexpr):
                    if side.WhichOneof("node") == "func_call" and is_text_call(side.func_call):
                        side.a_const.isnull = True
    _stub_calls(tree)
    return write(tree)


def _stub_calls(node: Tree) -> None:
    for descriptor, value in node.ListFields():
        if descriptor.message_type is None:
            continue
        for part in value if descriptor.is_repeated else (value,):
            _stub_calls(part)
            if part.DESCRIPTOR.name == "Node" and part.WhichOneof("node") == "func_call" and is_text_call(part.func_call):
                _put_null(part)


def _put_null(item: Tree) -> None:
    """`answer(x, 'q')` becomes `(SELECT NULL::text AS answer WHERE x IS NULL AND 'q' IS NULL)`."""
    call = item.func_call
    name = names_of(call.funcname)[0]
    pb = parser().pg_query_pb2
    link = pb.SubLink(sub_link_type=pb.EXPR_SUBLINK)
    select = link.subselect.select_stmt
    select.limit_option, select.op = pb.LIMIT_OPTION_DEFAULT, pb.SETOP_NONE
    target = select.target_list.add().res_target
    target.name = name
    target.val.type_cast.arg.a_const.isnull = True
    type_ = target.val.type_cast.type_name
    kind = "text" if DECLARED[name.lower()].type == "text" else "float8"
    type_.names.add().string.sval = kind
    type_.typemod = -1
    tests = select.where_clause.bool_expr
    tests.boolop = pb.AND_EXPR
    for argument in (*call.args, *call.args[:1]):  # AND takes two at least
        test = tests.args.add().null_test
        test.arg.CopyFrom(argument)
        test.nulltesttype = pb.IS_NULL
    item.sub_link.CopyFrom(link)


def put_unknown_last(tree: Tree) -> None:
    """Have NULL come last, in a tree, where a key of ORDER BY holds a text function and the query does not say."""
    pb = parser().pg_query_pb2
    for node in walk(tree):
        kind = node.DESCRIPTOR.name
        if kind not in ("SelectStmt", "WindowDef", "FuncCall"):
            continue
        keys = {"SelectStmt": "sort_clause", "WindowDef": "order_clause", "FuncCall": "agg_order"}[kind]
        outputs = _outputs(node) if kind == "SelectStmt" else []
        for item in getattr(node, keys):
            key = item.sort_by
            unsaid = key.sortby_nulls == pb.SORTBY_NULLS_DEFAULT and key.sortby_dir == pb.SORTBY_DESC
            if unsaid and any(map(is_text_call, walk(_shown(key.node, outputs)))):
                key.sortby_nulls = pb.SORTBY_NULLS_LAST


def _outputs(select: Tree) -> list[Tree]:
    while select.HasField("larg"):
        select = select.larg
    return [target.res_target for target in select.target_list]


def _shown(key: Tree, outputs: list[Tree]) -> Tree:
    """Return the output that a key of ORDER BY is the number or the name of; the key itself where it is none."""
    kind = key.WhichOneof("node")
    if kind == "a_const" and key.a_const.HasField("ival"):
        place = key.a_const.ival.ival - 1
        return outputs[place].val if 0 <= place < len(outputs) else key
    if kind == "column_ref" and len(key.column_ref.fields) == 1:
        name = key.column_ref.fields[0].string.sval
        return next((output.val for output in outputs if output.name == name), key)
    return key


def _difference(given: Any, made: Any) -> str:
    """Return where two forms differ, for a message; "" where they are the same."""
    if given == made:
        return ""
    if isinstance(given, tuple) and isinstance(made, tuple) and len(given) == len(made):
        return next(said for one, other in zip(given, made, strict=True) if (said := _difference(one, other)))
    return f"{str(given)[:120]} became {str(made)[:120]}"
