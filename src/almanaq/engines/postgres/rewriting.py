"""PostgreSQL's tree in the one of many equal forms that is read beside text functions, names of outputs written out."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from almanaq.engines.postgres.statements import Tree, copy_tree, enum_name, is_text_call, names_of, parser, walk
from almanaq.suql.catalog.relations import Relation

Find = Callable[[tuple[str, ...]], Relation | None]
_NAMED = {
    **{"coalesce_expr": "coalesce", "a_array_expr": "array", "row_expr": "row", "grouping_func": "grouping"},
    "json_scalar_expr": "json_scalar",
}
"""What PostgreSQL calls an output that is an expression of a kind."""
_ITEMS = {"Alias": "aliasname", "RangeVar": "relname"}


def rewrite(tree: Tree, columns: Mapping[str, Sequence[str]], find: Find) -> None:
    """Rewrite a tree, which is changed, as one that PostgreSQL takes for the same, but for where unknown answers stand.

    Args:
        columns: what functions in FROM call their columns, () for those that are called as the item is.
        find: the relation of a name.
    """
    put_unknown_last(tree)
    values: dict[str, str] = {}
    for node in walk(tree):
        kind = node.DESCRIPTOR.name
        if kind == "RangeFunction":
            values |= _name_columns(node, columns)
        elif kind == "RangeSubselect" and node.lateral:
            _derive_values(node.subquery.select_stmt)
        elif kind == "CommonTableExpr":
            _derive_values(node.ctequery.select_stmt)
        elif kind == "SelectStmt" and node.HasField("larg"):
            _derive_values(node.larg)
            _derive_values(node.rarg)
        elif kind == "SubLink":
            _derive_values(node.subselect.select_stmt)
            shown = node.subselect.select_stmt.target_list
            if node.subselect.select_stmt.from_clause and not shown:  # `EXISTS (SELECT FROM t)`
                shown.add().res_target.val.a_const.ival.SetInParent()
    _read_values(tree, values, find)
    for node in walk(tree):
        if node.DESCRIPTOR.name == "SelectStmt":
            _drop_no_limit(node)
            _write_group_keys(node)
            _write_dependent_keys(node, find)
            _name_outputs(node)


def _drop_no_limit(select: Tree) -> None:
    if select.limit_count.a_const.isnull:
        select.ClearField("limit_count")
        if not select.HasField("limit_offset"):
            select.limit_option = parser().pg_query_pb2.LIMIT_OPTION_DEFAULT


def _name_columns(item: Tree, columns: Mapping[str, Sequence[str]]) -> dict[str, str]:
    """`t, f(t.a) AS x` becomes `t, LATERAL f(t.a) AS x(x)`; return the column whose value is that of the item alone."""
    call = item.functions[0].list.items[0].func_call
    name = names_of(call.funcname)[-1] if call.funcname else ""
    item.lateral |= name != "unnest" and any(node.DESCRIPTOR.name == "ColumnRef" for node in walk(call))
    if item.is_rowsfrom or item.coldeflist or name not in columns:
        return {}
    item.alias.aliasname = item.alias.aliasname or name
    names = [*(columns[name] or [item.alias.aliasname]), *(["ordinality"] if item.ordinality else [])]
    for called in names[len(item.alias.colnames) :]:
        item.alias.colnames.add().string.sval = called
    value = item.alias.colnames[0].string.sval
    return {} if len(names) > 1 or value == item.alias.aliasname else {item.alias.aliasname: value}


def _read_values(tree: Tree, values: Mapping[str, str], find: Find) -> None:
    """`e` becomes `e.value` where it is a function in FROM that gives one column, and nothing else is called so."""
    items = Counter(getattr(node, _ITEMS.get(node.DESCRIPTOR.name, ""), "") for node in walk(tree))
    values = {item: value for item, value in values.items() if items[item] == 1}
    named = {name for node in walk(tree) for name in _names_in(node, find)} if values else set()
    for part in walk(tree, wrapped=True) if values else ():
        target, read = part.res_target, part.column_ref
        if target.val.HasField("column_ref"):
            target.name = target.name or names_of(target.val.column_ref.fields)[-1]
        path = names_of(read.fields)
        if len(path) == 1 and path[0] in values and path[0] not in named:
            read.fields.add().string.sval = values[path[0]]


def _names_in(node: Tree, find: Find) -> Iterable[str]:
    """Return what a part of a tree calls columns."""
    kind = node.DESCRIPTOR.name
    if kind == "RangeVar":
        relation = find((node.schemaname, node.relname))
        return [column.name for column in relation.columns] if relation is not None else []
    if kind in ("Alias", "CommonTableExpr"):
        return names_of(node.colnames if kind == "Alias" else node.aliascolnames)
    return [node.name] if kind == "ResTarget" else []


def _derive_values(select: Tree) -> None:
    """`VALUES …` becomes `SELECT * FROM (VALUES …) AS _values`."""
    pb = parser().pg_query_pb2
    if select.values_lists:
        around = pb.SelectStmt(limit_option=pb.LIMIT_OPTION_DEFAULT, op=pb.SETOP_NONE)
        around.target_list.add().res_target.val.column_ref.fields.add().a_star.SetInParent()
        item = pb.RangeSubselect(alias=pb.Alias(aliasname="_values"))
        item.subquery.select_stmt.CopyFrom(select)
        around.from_clause.add().range_subselect.CopyFrom(item)
        select.CopyFrom(around)


def _write_group_keys(select: Tree) -> None:
    """`GROUP BY (a, b)` becomes `GROUP BY a, b`, and a number in ROLLUP, CUBE or GROUPING SETS its output."""
    pb = parser().pg_query_pb2
    keys = [copy_tree(key) for key in select.group_clause]
    del select.group_clause[:]
    for key in keys:
        row = key.row_expr
        select.group_clause.extend(row.args if row.row_format == pb.COERCE_IMPLICIT_CAST and row.args else [key])
    outputs = _outputs(select)
    sets = [
        node.grouping_set for key in select.group_clause for node in walk(key, wrapped=True) if node.grouping_set.kind
    ]
    for item in [item for each in sets for part in each.content for item in (part, *part.row_expr.args)]:
        if item.a_const.HasField("ival"):
            item.CopyFrom(_find_output(item, outputs))


def _write_dependent_keys(select: Tree, find: Find) -> None:
    """`SELECT t.a … GROUP BY t.id` becomes `GROUP BY t.id, t.a` where `id` is the key of `t`."""
    keys = {names_of(key.column_ref.fields) for key in select.group_clause}
    if not all(key.HasField("column_ref") for key in select.group_clause):
        return
    later = (*select.sort_clause, *select.distinct_clause, *select.window_clause)
    parts = (*select.target_list, *later, select.having_clause)
    read = dict.fromkeys(names_of(n.fields) for part in parts for n in walk(part) if n.DESCRIPTOR.name == "ColumnRef")
    for item in _tables_of(select.from_clause):
        relation, alias = find((item.schemaname, item.relname)), item.alias.aliasname or item.relname
        if relation is None or not relation.key or item.alias.colnames:
            continue
        if not all((name,) in keys or (alias, name) in keys for name in relation.key):
            continue
        for path in read:
            stars = [(alias, column.name) for column in relation.columns] if path == (alias, "") else [path]
            for each in stars:
                if each not in keys and each[:-1] in ((), (alias,)) and each[-1] in {c.name for c in relation.columns}:
                    keys.add(each)
                    reference = select.group_clause.add().column_ref
                    for name in each:
                        reference.fields.add().string.sval = name


def _tables_of(items: Iterable[Tree]) -> Iterator[Tree]:
    for item in items:
        if item.HasField("join_expr"):
            yield from _tables_of([item.join_expr.larg, item.join_expr.rarg])
        elif item.HasField("range_var"):
            yield item.range_var


def _name_outputs(select: Tree) -> None:
    """Write what PostgreSQL calls the outputs that have no name, where no other is called so."""
    outputs = [target.res_target for target in select.target_list]
    names = [output.name or _name_of(output.val)[0] for output in outputs]
    seen = Counter(map(str.casefold, names))
    for output, name in zip(outputs, names, strict=True):
        if not output.name and seen[name.casefold()] == 1 and not output.val.HasField("column_ref"):
            output.name = name


def _name_of(part: Tree) -> tuple[str, int]:
    """Return what PostgreSQL calls an output, and how much it says: 0 nothing, 1 a type or CASE, 2 more."""
    kind = part.WhichOneof("node")
    node = getattr(part, kind)
    pb = parser().pg_query_pb2
    said = (_NAMED.get(kind, "?column?"), 2 if kind in _NAMED else 0)
    if kind == "func_call":
        said = (names_of(node.funcname)[-1], 2)
    elif kind == "column_ref":
        said = (names_of(node.fields)[-1], 2)
    elif kind in ("type_cast", "case_expr"):
        within = node.arg if kind == "type_cast" else node.defresult
        said = _name_of(within) if within.WhichOneof("node") else said
        own = names_of(node.type_name.names)[-1] if kind == "type_cast" else "case"
        said = said if said[1] > 1 else (own, 1)
    elif kind == "collate_clause":
        said = _name_of(node.arg)
    elif kind == "a_indirection":
        fields = [name for name in names_of(node.indirection) if name]
        said = (fields[-1], 2) if fields else _name_of(node.arg)
    elif kind == "min_max_expr":
        said = ("greatest" if node.op == pb.IS_GREATEST else "least", 2)
    elif kind == "a_expr" and node.kind == pb.AEXPR_NULLIF:
        said = ("nullif", 2)
    elif kind == "sqlvalue_function":
        said = (enum_name(node, "op").removeprefix("SVFOP_").removesuffix("_N").lower(), 2)
    elif kind == "sub_link" and node.sub_link_type in (pb.EXISTS_SUBLINK, pb.ARRAY_SUBLINK):
        said = ("exists" if node.sub_link_type == pb.EXISTS_SUBLINK else "array", 2)
    elif (
        kind == "sub_link" and node.sub_link_type == pb.EXPR_SUBLINK and (shown := _outputs(node.subselect.select_stmt))
    ):
        said = (shown[0].name, 2) if shown[0].name else _name_of(shown[0].val)
    return said


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
            if unsaid and any(map(is_text_call, walk(_find_output(key.node, outputs)))):
                key.sortby_nulls = pb.SORTBY_NULLS_LAST


def _outputs(select: Tree) -> list[Tree]:
    while select.HasField("larg"):
        select = select.larg
    return [target.res_target for target in select.target_list]


def _find_output(key: Tree, outputs: list[Tree]) -> Tree:
    """Return the output that a key of ORDER BY is the number or the name of; the key itself where it is none."""
    kind = key.WhichOneof("node")
    if kind == "a_const" and key.a_const.HasField("ival"):
        place = key.a_const.ival.ival - 1
        return outputs[place].val if 0 <= place < len(outputs) else key
    if kind == "column_ref" and len(key.column_ref.fields) == 1:
        name = key.column_ref.fields[0].string.sval
        return next((output.val for output in outputs if output.name == name), key)
    return key
