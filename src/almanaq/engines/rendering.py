"""How trees that the plan has made are written for each engine: clauses, addresses of rows, texts and names."""

from __future__ import annotations

from collections.abc import Callable

from sqlglot import exp

from almanaq.errors import UnsupportedError
from almanaq.suql.plan.predicates import TRUTH
from almanaq.suql.plan.stages import ROW
from almanaq.suql.syntax.nodes import aliased, derived, free_name, is_comma, nodes_of, quoted

# --- statements between two steps -------------------------------------------------------------------------------------

_NUMBERS_WANT_ORDER = ("bigquery", "databricks", "snowflake", "spark")
_ROWS_OF_GROUPS = {"mysql": "JSON_ARRAYAGG"}
"""The aggregate that gathers the rows behind a group, of an engine without arrays."""


def write_stage(tree: exp.Expr, dialect: str) -> exp.Expr:
    """Return the tree of a stage, changed in place, in the clauses that an engine has."""
    if dialect in _NUMBERS_WANT_ORDER:
        for window in nodes_of(tree, exp.Window):
            _order_numbers(window, dialect)
    if dialect in ("databricks", "spark"):
        for block in nodes_of(tree, exp.Select):
            _order_by_outputs(block)
            _filter_groups(block)
        for output in nodes_of(tree, exp.Alias):
            if TRUTH in output.meta:
                _keep_null(output)
        _drop_repeated_members(tree)
    if dialect in _ROWS_OF_GROUPS:
        for gathered in nodes_of(tree, exp.ArrayAgg):
            gathered.replace(exp.Anonymous(this=_ROWS_OF_GROUPS[dialect], expressions=[gathered.this]))
    if dialect == "bigquery":  # where no column's name has dots
        for name in nodes_of(tree, exp.Identifier):
            name.set("this", name.name.replace(".", "__"))
    return tree


def _order_numbers(window: exp.Expr, dialect: str) -> None:
    """Give row_number() an order, where rows are only distinguished; Spark need not bring them to one place for it."""
    if not isinstance(window.this, exp.RowNumber) or window.args.get("order") is not None:
        return
    named = isinstance(window.parent, exp.Alias) and window.parent.alias == ROW
    if dialect == "spark" and named and not window.args.get("partition_by"):
        window.replace(exp.Anonymous(this="monotonically_increasing_id"))
        return
    window.set("order", exp.Order(expressions=[exp.Ordered(this=exp.Literal.number(1), nulls_first=True)]))


def _order_by_outputs(block: exp.Select) -> None:
    """Order distinct rows, and those of several groupings, by outputs: Spark finds no other columns above them."""
    order = block.args.get("order")
    if order is None or not (_has_sets(block) or block.args.get("distinct")):
        return
    for key in order.expressions:
        shown = next((item for item in block.expressions if item.unalias() == key.this), None)
        if isinstance(shown, exp.Alias):
            key.set("this", exp.column(exp.to_identifier(shown.alias, quoted=True)))


def _filter_groups(block: exp.Select) -> None:
    """Write HAVING of several groupings as WHERE around them: Spark finds no keys in it that the outputs rename.

    `SELECT a AS c0 FROM t GROUP BY ROLLUP (a) HAVING h` becomes
    `SELECT c0 FROM (SELECT a AS c0, h AS _having FROM t GROUP BY ROLLUP (a)) AS _groups WHERE _having`.
    """
    having = block.args.get("having")
    outputs = block.expressions
    plain = all(isinstance(item, exp.Alias) for item in outputs) and not nodes_of(block, exp.Window)
    if having is None or not _has_sets(block) or not plain or block.args.get("qualify"):
        return
    kept = aliased(having.this, "_having")
    _keep_null(kept)
    above = {name: block.args.get(name) for name in ("with_", "distinct", "order", "limit", "offset")}
    inner = exp.Select(**{name: part for name, part in block.args.items() if name not in (*above, "having")})
    inner.set("expressions", [*outputs, kept])
    block.args.clear()
    shown = [aliased(exp.column(quoted(item.alias)), item.alias) for item in outputs]
    parts = {"expressions": shown, "from_": exp.From(this=derived(inner, "_groups")), **above}
    for name, part in {**parts, "where": exp.Where(this=exp.column(quoted("_having")))}.items():
        block.set(name, part)


def _has_sets(block: exp.Select) -> bool:
    group = block.args.get("group")
    return group is not None and any(group.args.get(key) for key in ("rollup", "cube", "grouping_sets"))


def _keep_null(condition: exp.Expr) -> None:
    """Write `x IN (SELECT …)` so that it may be NULL: on Spark, as an output, both it and its NOT are FALSE then.

    In WHERE these are conditions of joins, which leave the row out. Within other expressions they are FALSE there too.
    """
    if isinstance(condition, exp.Alias | exp.Connector | exp.Not | exp.Paren):
        for part in list(condition.iter_expressions()):
            _keep_null(part)
    elif isinstance(condition, exp.In) and condition.args.get("query") is not None:
        known = [exp.If(this=condition.copy(), true=exp.true()), exp.If(this=exp.not_(condition), true=exp.false())]
        condition.replace(exp.Case(ifs=known))


def _drop_repeated_members(tree: exp.Expr) -> None:
    """Leave out members of WITH that one around them repeats: sqlglot writes all of them at the top for Spark."""
    seen: dict[str, exp.Expr] = {}
    for with_ in nodes_of(tree, exp.With):
        new = [member for member in with_.expressions if seen.setdefault(member.alias, member) is member]
        if len(new) == len(with_.expressions) or any(seen[m.alias] != m for m in with_.expressions):
            continue
        with_.set("expressions", new)
        if not new and with_.parent is not None:
            with_.parent.set("with_", None)


# --- PostgreSQL -------------------------------------------------------------------------------------------------------


def write_for_postgres(tree: exp.Expr) -> exp.Expr:
    """Return a tree, changed in place: join conditions see all items before them, rows are found by their address."""
    for join in nodes_of(tree, exp.Join):
        if is_comma(join):
            join.set("kind", "CROSS")  # a comma binds less than JOIN: later conditions would not see the item before it
    for node in nodes_of(tree, exp.EQ):
        _compare_addresses(node)
    for dot in reversed(nodes_of(tree, exp.Dot)):
        row = dot.this.unnest()
        row = row.this if isinstance(row, exp.Cast) else row
        pairs = {pair.this.name: pair.expression for pair in row.expressions} if isinstance(row, exp.Struct) else {}
        if (value := pairs.get(dot.expression.name)) is not None:
            dot.replace(exp.paren(value))
    for row in reversed(nodes_of(tree, exp.Struct)):
        row.replace(_write_row(row))
    return tree


def _write_row(row: exp.Struct) -> exp.Expr:
    """Write a STRUCT as a row that has its names: `(SELECT r FROM (SELECT x AS a) AS r)`; `ROW(x)` cast to a type."""
    fields = [(pair.this.name, pair.expression) for pair in row.expressions]
    if isinstance(row.parent, exp.Cast) and row.parent.to.this is exp.DType.USERDEFINED:
        return exp.Anonymous(this="ROW", expressions=[value for _, value in fields])
    name = free_name("row", dict(fields))
    inner = exp.Select(expressions=[aliased(value, field) for field, value in fields])
    select = exp.Select(expressions=[exp.column(quoted(name))], from_=exp.From(this=derived(inner, name)))
    return exp.Subquery(this=select)


def _compare_addresses(node: exp.EQ) -> None:
    """Write `x = t.ctid::text` so that PostgreSQL goes to the row instead of reading the relation through."""
    for other, cast in ((node.this, node.expression), (node.expression, node.this)):
        if isinstance(cast, exp.Cast) and isinstance(cast.this, exp.Column) and cast.this.name == "ctid":
            address = exp.Cast(this=other, to=exp.DataType.build("tid", dialect="postgres", udt=True))
            node.set("this", cast.this)
            node.set("expression", address)
            return


# --- texts and names that no setting of an engine reads as anything else ----------------------------------------------

_BACKSLASH_IN_NAMES = ("bigquery", "clickhouse")
"""Engines that read a backslash in a quoted name as an escape, which sqlglot does not write."""
_OPENING = "${"
"""What stands for a setting, or a variable of the server's environment, in Databricks' SQL."""


def write_texts(tree: exp.Expr, dialect: str) -> exp.Expr:
    r"""Return a tree, changed in place, whose string literals are safe to print: the last step before printing.

    In PostgreSQL `'a\b'` depends on a setting of the session, `e'a\\b'` does not. Databricks and Spark put the value of
    a setting, or of a variable of the server's environment, into `${…}` wherever it stands, in a text too. Other
    engines have no such setting, or it is made at the start of a session.
    """
    if dialect == "postgres":
        return _replace_texts(tree, "\\", lambda text: exp.ByteString(this=text.replace("\\", "\\\\")))
    if dialect in ("databricks", "spark"):
        for name in nodes_of(tree, exp.Identifier):
            if _OPENING in name.name:
                raise UnsupportedError(f"the name {name.name!r} cannot be written for databricks")
        return _replace_texts(tree, _OPENING, _split_variables)
    if dialect in _BACKSLASH_IN_NAMES:
        for name in nodes_of(tree, exp.Identifier):
            if "\\" in name.name or (dialect == "bigquery" and "`" in name.name):
                raise UnsupportedError(f"the name {name.name!r} cannot be written for {dialect}")
    return tree


def _split_variables(text: str) -> exp.Expr:
    """Write a text with `${` in two."""
    first, *others = text.split(_OPENING)
    pieces = [exp.Literal.string(piece) for other in others for piece in ("$", "{" + other)]
    return exp.func("concat", exp.Literal.string(first), *pieces)


def _replace_texts(tree: exp.Expr, mark: str, write: Callable[[str], exp.Expr]) -> exp.Expr:
    for text in [node for node in nodes_of(tree, exp.Literal) if node.is_string and mark in node.name]:
        if text is tree:
            return write(text.name)
        if mark != "\\" or not isinstance(text.parent, exp.Initcap):  # whose delimiters PostgreSQL does not print
            text.replace(write(text.name))
    return tree
