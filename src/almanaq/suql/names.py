"""Names of a query → relations and columns, by sqlglot's `qualify`; what it gets wrong is written out before."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from sqlglot import exp
from sqlglot.errors import OptimizeError, ParseError
from sqlglot.optimizer.qualify_columns import qualify_columns
from sqlglot.optimizer.qualify_tables import qualify_tables

from almanaq.errors import QueryError, UnknownNameError, UnsupportedError, suggest
from almanaq.suql.catalog.answer_types import answer_type
from almanaq.suql.catalog.relations import Catalog, as_written, fold, schema_of, typed
from almanaq.suql.catalog.sources import columns_of, enclosing_selects, find_cte, find_source, from_items
from almanaq.suql.items import (
    flatten_joins,
    inline_correlated_members,
    name_relations,
    rename_hidden_aliases,
    write_fields,
    write_rows,
)
from almanaq.suql.language import Language
from almanaq.suql.syntax.nodes import (
    aliased,
    column,
    derived,
    is_within,
    nodes,
    nodes_of,
    quoted,
    side_of,
    table_alias,
)
from almanaq.suql.text_functions import has_text, is_drawn, own_nodes

MISREAD = (LookupError, AttributeError, TypeError, ValueError, AssertionError)
"""What sqlglot raises beside its own errors, for forms that it does not foresee."""
_VALUES = {"postgres": ("column", 1), "spark": ("col", 1), "databricks": ("col", 1)}
"""What engines call the columns of VALUES: a word, and the number of the first; others as DuckDB does."""
_AFTER_FROM = ("where", "group", "having", "qualify", "order", "distinct")
_SERIES = (exp.GenerateSeries, exp.ExplodingGenerateSeries)
_HOLDERS = (exp.Column, exp.Table, exp.TableAlias, exp.Alias, exp.Join, exp.CTE, exp.Star, exp.Aliases)
"""What identifiers name relations and columns in; those elsewhere are keys of structs, types, or collations."""


@dataclass(frozen=True, slots=True)
class BoundQuery:
    """A query whose names are all resolved.

    Attributes:
        tree: qualified and typed; each column names an item of FROM, and no two nested ones have the same alias.
        names: what the result's columns are called, in order, as the engine calls them.
    """

    tree: exp.Query
    names: tuple[str, ...]


def bind_names(tree: exp.Query, catalog: Catalog, dialect: str) -> exp.Query:
    """Return a query, which is changed, with every name resolved, stars written out, and types known."""
    flatten_joins(tree)
    _fold_names(tree, dialect)
    named = name_relations(tree, catalog)
    schema = schema_of(named.values(), dialect)
    _name_unnested(tree)
    _qualify_row_ids(tree, catalog)
    _mark_laterals(tree, catalog)
    _write_semi_joins(tree)
    _name_values(tree, dialect)
    _select_limits(tree)
    for block in nodes_of(tree, exp.Select):
        _write_using(block, catalog, dialect)
    _select_renamed_members(tree)
    _prefer_columns(tree, catalog, dialect)
    while write_fields(tree, catalog) + sum(_expand_stars(b, catalog) for b in nodes_of(tree, exp.Select)[::-1]):
        pass  # what a member of WITH shows may be known only now
    write_rows(tree, catalog, dialect)
    _name_outputs(tree)
    try:
        tree = qualify_tables(tree, dialect=dialect)
        rename_hidden_aliases(tree)
        tree = qualify_columns(tree, schema, dialect=dialect, allow_partial_qualification=True)
        inline_correlated_members(tree)
    except (OptimizeError, ParseError) as error:
        raise UnknownNameError(str(error).splitlines()[0]) from error
    except MISREAD as error:
        raise UnsupportedError("a form of the query is not supported beside text functions") from error
    counted = (exp.Count, exp.AnonymousAggFunc)
    if any(isinstance(node, exp.Star) and not isinstance(node.parent, counted) for node in nodes(tree)):
        raise UnsupportedError("what * stands for cannot be told here beside text functions: name the columns")
    for identifier in nodes_of(tree, exp.Identifier):
        if isinstance(identifier.parent, _HOLDERS):
            identifier.set("quoted", True)
    _check_columns(tree, catalog)
    return typed(tree, schema, dialect)


def mark_functions(tree: exp.Expr, language: Language) -> None:
    """Note what the engine's catalog says of functions that sqlglot does not know: their types, which aggregate.

    Each call that draws by chance is numbered, so that a copy of it is told from another that is written alike.
    """
    for number, node in enumerate(filter(is_drawn, nodes(tree))):
        node.meta["draw"] = number
    for node in nodes_of(tree, exp.Anonymous):
        name = node.name.lower()
        if name in language.returns:
            kind = exp.DataType.build(language.returns[name], dialect=language.dialect, udt=True)
            node.meta["returns"] = kind if answer_type(kind) != "text" else None
        if name in language.aggregates:
            made = exp.AnonymousAggFunc(this=node.this, expressions=node.expressions)
            made.meta.update(node.meta)
            node.replace(made)


def _fold_names(tree: exp.Query, dialect: str) -> None:
    for identifier in nodes_of(tree, exp.Identifier):
        if isinstance(identifier.parent, _HOLDERS):
            identifier.meta["spelled"] = identifier.name
            identifier.set("this", fold(identifier.name, dialect, quoted=bool(identifier.args.get("quoted"))))
            identifier.set("quoted", True)


def _mark_laterals(tree: exp.Query, catalog: Catalog) -> None:
    """Write LATERAL before subqueries in FROM that name columns of the items before them; DuckDB does without."""
    for block in nodes_of(tree, exp.Select):
        items = list(from_items(block))
        for number, item in enumerate(items):
            if number and isinstance(item, exp.Subquery) and isinstance(item.this, exp.Query):
                if any(_is_of(column, items[:number], item, catalog) for column in nodes_of(item.this, exp.Column)):
                    item.replace(exp.Lateral(this=exp.Subquery(this=item.this), alias=item.args.get("alias")))


def _is_of(column: exp.Column, before: list[exp.Expr], item: exp.Expr, catalog: Catalog) -> bool:
    if column.table:
        inner = [own for select in enclosing_selects(column) if is_within(select, item) for own in from_items(select)]
        aliases = {other.alias_or_name for other in inner}
        return column.table not in aliases and any(other.alias_or_name == column.table for other in before)
    if _may_be_inner(column, item, catalog):
        return False
    return any(column.name in (columns_of(other, catalog) or ()) for other in before)


def _may_be_inner(column: exp.Column, top: exp.Expr, catalog: Catalog) -> bool:
    """Return whether a name without a table may be one of the queries around it below `top`."""
    selects = [select for select in enclosing_selects(column) if select is not top and is_within(select, top)]
    shown = [columns_of(item, catalog) for select in selects for item in from_items(select)]
    shown += [[item.alias for item in select.expressions] for select in selects]
    return any(names is None or column.name in names or "*" in names for names in shown)


def _qualify_row_ids(tree: exp.Query, catalog: Catalog) -> None:
    """Write `t.rowid` for `rowid`, which `*` does not include."""
    for reference in nodes_of(tree, exp.Column):
        block = reference.find_ancestor(exp.Select)
        if reference.table or block is None or reference.name not in ("rowid", "ctid"):
            continue
        if reference.find_ancestor(exp.Ordered, exp.Select) is not block and reference.name in block.named_selects:
            continue  # ORDER BY names an output
        items = [item for item in from_items(block) if isinstance(item, exp.Table) and find_cte(item) is None]
        relations = {item.alias: relation for item in items if (relation := catalog.find(item.name)) is not None}
        holding = [
            alias for alias, r in relations.items() if r.row_id == reference.name and r.column(reference.name) is None
        ]
        if len(holding) == 1:
            reference.set("table", quoted(holding[0]))


def _write_semi_joins(tree: exp.Query) -> None:
    """`a SEMI JOIN b ON c` becomes `a WHERE EXISTS (SELECT 1 FROM b WHERE c)`, ANTI its NOT: b is not seen."""
    for join in nodes_of(tree, exp.Join):
        block, item, using = join.parent, join.this, join.args.get("using") or ()
        kinds = {"SEMI", "ANTI"} & {join.kind, join.side}
        if not kinds or not isinstance(block, exp.Select):
            continue
        joins = block.args["joins"]
        place = next(number for number, each in enumerate(joins) if each is join)
        first = block.args["from_"].this
        kept_later = any(side_of(later) in ("RIGHT", "FULL") for later in joins[place:])
        if join.args.get("method") or (kept_later and (place or not first.alias_or_name)):
            raise UnsupportedError(
                "SEMI and ANTI joins that are NATURAL, or come between another join and a RIGHT or FULL JOIN, are not "
                "supported beside text functions: write WHERE EXISTS (…), or the join in a query of its own in FROM"
            )
        if using and (place or not first.alias_or_name or not item.alias_or_name):
            raise UnsupportedError("SEMI and ANTI joins with USING take two items beside text functions: write ON")
        sides = first.alias_or_name, item.alias_or_name
        parts: list[exp.Expr] = [
            exp.EQ(this=column(sides[0], k.name), expression=column(sides[1], k.name)) for k in using
        ]
        parts += [join.args["on"]] if join.args.get("on") is not None else []
        join.pop()
        rows = exp.Select(expressions=[exp.Literal.number(1)], from_=exp.From(this=item)).where(*parts, copy=False)
        found: exp.Expr = exp.Exists(this=rows)
        found = exp.Not(this=found) if "ANTI" in kinds else found
        if kept_later:  # which gives rows without a partner: the condition is of the first item alone
            source = exp.Select(expressions=[exp.Star()], from_=exp.From(this=first)).where(found, copy=False)
            block.args["from_"].set("this", derived(source, first.alias_or_name))
        else:
            block.where(found, copy=False)


def _select_limits(tree: exp.Query) -> None:
    """`LIMIT answer(…)::int` becomes `LIMIT (SELECT answer(…)::int)`, a query that is planned like any other."""
    for clause in nodes_of(tree, exp.Limit, exp.Offset):
        count = clause.expression
        if has_text(count) and not isinstance(count, exp.Query):
            output = exp.alias_(count.copy(), "rows", quoted=True)
            clause.set("expression", exp.Subquery(this=exp.Select(expressions=[output])))


def _name_values(tree: exp.Query, dialect: str) -> None:
    """Name the columns of VALUES as the engine does, where the query does not; those with text functions are selected.

    `(VALUES (answer(…)), ('b')) AS v(x)` becomes `(SELECT answer(…) AS x UNION ALL SELECT 'b' AS x) AS v`.
    """
    prefix, first = _VALUES.get(dialect, ("col", 0))
    for values in nodes_of(tree, exp.Values):
        rows = [row.expressions if isinstance(row, exp.Tuple) else [row] for row in values.expressions]
        listed = values.alias_column_names
        names = [*listed, *(f"{prefix}{i + first}" for i in range(len(listed), len(rows[0])))]
        if has_text(values):
            cells = [[aliased(cell, name) for cell, name in zip(row, names, strict=True)] for row in rows]
            selects = [exp.Select(expressions=each) for each in cells]
            made = exp.union(*selects, distinct=False, copy=False) if len(selects) > 1 else selects[0]
            values.replace(derived(made, values.alias or "valueslist"))
        elif values.args.get("alias") is not None:
            values.args["alias"].set("columns", [quoted(name) for name in names])


def _prefer_columns(tree: exp.Query, catalog: Catalog, dialect: str) -> None:
    """Qualify what names both a column of FROM and an output: the column is meant, but by a name alone in ORDER BY."""
    for block in nodes_of(tree, exp.Select):
        aliases = {item.alias for item in block.expressions if isinstance(item, exp.Alias)}
        items = list(from_items(block))
        if not aliases or not items:
            continue
        holders = [(item.alias_or_name, columns_of(item, catalog) or ()) for item in items]
        grouped = _grouped_names(block, {name for _, names in holders for name in names})
        clauses = [*block.expressions, *(block.args.get(key) for key in ("where", "group", "having", "qualify"))]
        if block.args.get("order") is not None and dialect in ("duckdb", "postgres"):
            clauses += [key for key in block.args["order"].expressions if not isinstance(key.this.unnest(), exp.Column)]
        named = [(clause, node) for clause in clauses if clause is not None for node in own_nodes(clause)]
        for clause, node in named:
            above = isinstance(clause, exp.Having) and node.name not in grouped
            if isinstance(node, exp.Column) and not node.table and node.name in aliases and not above:
                holding = [alias for alias, names in holders if node.name in names]
                if len(holding) == 1 and holding[0]:
                    node.set("table", quoted(holding[0]))


def _grouped_names(block: exp.Select, columns: set[str]) -> set[str]:
    group = block.args.get("group")
    outputs = {item.alias: item.this for item in block.expressions if isinstance(item, exp.Alias)}
    found: set[str] = set()
    for key in group.expressions if group is not None else ():
        if isinstance(key, exp.Literal) and key.is_int and 0 < int(key.name) <= len(block.expressions):
            key = block.expressions[int(key.name) - 1].unalias()
        if isinstance(key, exp.Column) and not key.table and key.name not in columns:
            key = outputs.get(key.name, key)
        if isinstance(key, exp.Column):
            found.add(key.name)
    return found


def _expand_stars(block: exp.Select, catalog: Catalog) -> bool:
    items = list(from_items(block))
    using = any(join.args.get("using") for join in block.args.get("joins") or ())
    if using or not all(item.alias_or_name for item in items):
        return False
    shown = {item.alias_or_name: columns_of(item, catalog) for item in items}
    outputs: list[exp.Expr] = []
    changed = False
    for output in block.expressions:
        star = output.this if isinstance(output, exp.Column) else output
        plain = type(star) is exp.Star and not any(star.args.values())
        of = [output.table] if isinstance(output, exp.Column) else list(shown)
        names = [(alias, shown.get(alias)) for alias in of]
        if not plain or any(not columns or "*" in columns or "" in columns for _, columns in names):
            outputs.append(output)
            continue
        outputs += [column(alias, name) for alias, columns in names for name in columns or ()]
        changed = True
    block.set("expressions", outputs)
    return changed


def _name_outputs(tree: exp.Query) -> None:
    """Give outputs names that differ, and write out positions in ORDER BY: qualify looks for outputs by name."""
    for block in nodes_of(tree, exp.Select):
        seen: set[str] = set()
        named: list[exp.Expr] = []
        starred = any(item.is_star for item in block.expressions)
        for number, item in enumerate(block.expressions):
            name = item.alias_or_name
            if isinstance(item, exp.Subquery) and not item.alias:
                name = f"_col_{number}"
                item = aliased(item, name)
            if name in seen and isinstance(item, exp.Column) and not item.is_star:
                item = aliased(item, f"{name}_{number}")
                item.meta["renamed"] = True
            seen.add(name)
            named.append(item)
        block.set("expressions", named)
        order = block.args.get("order")
        outputs = {item.alias_or_name: item.unalias() for item in named} if _is_renamed(block) else {}
        for key in order.expressions if order is not None and not starred else ():
            position = key.this
            if isinstance(position, exp.Column) and not position.table and position.name in outputs:
                key.set("this", outputs[position.name].copy())
            if isinstance(position, exp.Literal) and position.is_int and 0 < int(position.name) <= len(named):
                output = named[int(position.name) - 1].unalias()
                if isinstance(output, exp.Column):
                    key.set("this", output.copy())


def _is_renamed(block: exp.Select) -> bool:
    """Return whether a list of aliases around a block gives its outputs other names."""
    at: exp.Expr | None = block.parent
    while isinstance(at, exp.Subquery | exp.SetOperation) and not at.alias:
        at = at.parent
    alias = at.args.get("alias") if isinstance(at, exp.CTE | exp.Subquery) else None
    return isinstance(alias, exp.TableAlias) and bool(alias.args.get("columns"))


def _name_unnested(tree: exp.Query) -> None:
    """Name the one column of `unnest(x) AS u` as the item, and of `unnest(x)` after the function, as engines do."""
    for unnest in nodes_of(tree, exp.Unnest):
        item = unnest.parent if isinstance(unnest.parent, exp.Lateral) else unnest
        alias = item.args.get("alias")
        if alias is None:
            alias = table_alias("unnest")
            item.set("alias", alias)
        if alias.this is not None and not alias.args.get("columns") and len(unnest.expressions) == 1:
            if not unnest.args.get("offset"):
                alias.set("columns", [alias.this.copy()])
    for table in nodes_of(tree, exp.Table):
        if isinstance(table.this, _SERIES):
            name = "range" if table.this.args.get("is_end_exclusive") else "generate_series"
            alias = table.args.get("alias") or table_alias(name)
            if not alias.args.get("columns"):
                alias.set("columns", [alias.this.copy()])
            table.set("alias", alias)


def _write_using(block: exp.Select, catalog: Catalog, dialect: str) -> None:
    """Write USING and NATURAL out: qualify takes the first side's column where a RIGHT or FULL JOIN merges two before.

    `a RIGHT JOIN b USING (k) LEFT JOIN c USING (k)` becomes `a RIGHT JOIN b ON a.k = b.k LEFT JOIN c ON b.k = c.k`, and
    `k` is `b.k`.
    """
    joins = block.args.get("joins") or ()
    items = list(from_items(block))
    shown = [columns_of(item, catalog) for item in items]
    for number, join in enumerate(joins):
        if str(join.args.get("method") or "").upper() == "NATURAL":
            own, before = shown[number + 1], {name for names in shown[: number + 1] for name in names or ()}
            if own is None or not before:
                raise UnsupportedError("the columns of a NATURAL JOIN cannot be told here: write USING")
            join.set("method", None)
            join.set("using", [quoted(name) for name in own if name in before] or None)
    sides = [str(join.args.get("side") or "").upper() for join in joins if join.args.get("using")]
    unknown = any(names is None or "*" in names for names in shown) or not all(item.alias_or_name for item in items)
    if not sides or (unknown and not {"RIGHT", "FULL"} & set(sides)):
        return
    if unknown:
        raise UnsupportedError("what USING merges cannot be told here beside text functions: write ON")
    merged: dict[str, exp.Expr] = {}
    dropped: set[tuple[str, str]] = set()
    for number, join in enumerate(joins):
        alias = items[number + 1].alias_or_name
        conditions: list[exp.Expr] = []
        for name in (identifier.name for identifier in join.args.get("using") or ()):
            left = merged.get(name) or _only_holder(name, items[: number + 1], shown, dropped)
            right = column(alias, name)
            conditions.append(exp.EQ(this=left.copy(), expression=right))
            side = str(join.args.get("side") or "").upper()
            both = exp.Coalesce(this=left.copy(), expressions=[right.copy()])
            merged[name] = {"RIGHT": right.copy(), "FULL": both}.get(side, left)
            dropped.add((alias, name))
        if conditions:
            join.set("using", None)
            join.set("on", exp.and_(*conditions))
    _name_merged(block, items, shown, merged, dropped, catalog=catalog, first=dialect != "duckdb")


def _only_holder(
    name: str, items: list[exp.Expr], shown: list[list[str] | None], dropped: set[tuple[str, str]]
) -> exp.Expr:
    pairs = [(item.alias_or_name, names or ()) for item, names in zip(items, shown, strict=False)]
    holding = [alias for alias, names in pairs if name in names and (alias, name) not in dropped]
    if len(holding) != 1:
        raise UnknownNameError(f"the column {name!r} in USING is in {'several' if holding else 'no'} items before it")
    return column(holding[0], name)


def _name_merged(
    block: exp.Select,
    items: list[exp.Expr],
    shown: list[list[str] | None],
    merged: dict[str, exp.Expr],
    dropped: set[tuple[str, str]],
    *,
    catalog: Catalog,
    first: bool,
) -> None:
    """Write what USING merged where a block names it, and what `*` stands for beside it."""
    outputs: list[exp.Expr] = []
    for item in block.expressions:
        if type(item) is exp.Star and not any(item.args.values()):
            own = [exp.alias_(node.copy(), name, quoted=True) for name, node in merged.items()] if first else []
            outputs += own
            for source, names in zip(items, shown, strict=True):
                for name in names or ():
                    if name in merged and (first or (source.alias_or_name, name) in dropped):
                        continue
                    node = merged[name].copy() if name in merged else column(source.alias_or_name, name)
                    outputs.append(exp.alias_(node, name, quoted=True) if name in merged else node)
        else:
            outputs.append(item)
    block.set("expressions", outputs)
    stars = {item.table for item in outputs if isinstance(item, exp.Column) and item.is_star}
    named = Counter(item.alias_or_name for item in outputs)
    for source, names in zip(items, shown, strict=True):
        named.update(names or () if source.alias_or_name in stars else ())
    clauses = [*block.expressions, *(value for key, value in block.args.items() if key in _AFTER_FROM)]
    for node in [node for clause in clauses if clause is not None for node in nodes_of(clause, exp.Column)]:
        if not node.table and node.name in merged and not _may_be_inner(node, block, catalog):
            is_output = isinstance(node.parent, exp.Select) and node.arg_key == "expressions"
            is_key = isinstance(node.parent, exp.Ordered) and node.parent.parent is block.args.get("order")
            if is_key and named[node.name] == 1:
                continue  # it means the output of that name, which may be one side's
            made = merged[node.name].copy()
            node.replace(exp.alias_(made, node.name, quoted=True) if is_output else made)


def _select_renamed_members(tree: exp.Query) -> None:
    """`w AS a(x)`, of a member of WITH, becomes `(SELECT * FROM w) AS a(x)`, whose outputs get the names."""
    for table in nodes_of(tree, exp.Table):
        alias = table.args.get("alias")
        if alias is not None and alias.args.get("columns") and find_cte(table) is not None:
            inner = exp.Table(this=table.this.copy(), alias=exp.TableAlias(this=table.this.copy()))
            table.replace(exp.Subquery(this=exp.select("*").from_(inner), alias=alias.copy()))


def _check_columns(tree: exp.Query, catalog: Catalog) -> None:
    for reference in nodes_of(tree, exp.Column):
        if isinstance(reference.this, exp.Star) or _is_output(reference):
            continue
        block = reference.find_ancestor(exp.Select)
        if not reference.table:
            raise _make_unresolved_error(reference, block, catalog)
        item = find_source(reference.table, block) if block is not None else None
        if item is None:
            aliases = [i.alias_or_name for select in enclosing_selects(reference) for i in from_items(select)]
            raise UnknownNameError(f"no relation named {reference.table!r} in FROM{suggest(reference.table, aliases)}")


def _is_output(column: exp.Column) -> bool:
    clause = column.find_ancestor(exp.Order, exp.Distinct, exp.Query)
    query = column.find_ancestor(exp.Query)
    if column.table or query is None or isinstance(clause, exp.Query):
        return False
    return column.name in query.named_selects


def _make_unresolved_error(column: exp.Column, block: exp.Select | None, catalog: Catalog) -> QueryError:
    holders = {i.alias_or_name: columns_of(i, catalog) or [] for i in (from_items(block) if block is not None else ())}
    holding = [alias for alias, names in holders.items() if column.name in names]
    if len(holding) > 1:
        choices = " or ".join(f"{alias}.{column.name}" for alias in holding)
        return UnknownNameError(f"the column {column.name!r} is ambiguous: write {choices}")
    known = [name for names in holders.values() for name in names]
    return UnknownNameError(f"no column named {column.name!r}{suggest(column.name, known, as_written)}")
