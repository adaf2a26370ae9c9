"""Which column each name of a query means, by PostgreSQL's rules; stars are written out, every column is qualified.

What is found is written into the tree: afterwards a name means the same wherever it stands. Names of outputs in GROUP
BY and HAVING, and names that mean nothing, are left for the binder.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from dataclasses import dataclass, replace

from sqlglot import exp

from almanaq.errors import UnknownNameError, UnsupportedError
from almanaq.suql.catalog.column_labels import apart, columns_called, identifier, of_table, typed_columns
from almanaq.suql.catalog.from_clause import read_from, renamed, spelled, written_alias
from almanaq.suql.catalog.grouping import write_group_keys
from almanaq.suql.catalog.output_names import name_of
from almanaq.suql.catalog.relations import Catalog, Relation
from almanaq.suql.catalog.scope import Item, Scope, Shown, name_error, place, table_name, within
from almanaq.suql.catalog.sources import order_members
from almanaq.suql.catalog.table_functions import columns_of_function, functions_in
from almanaq.suql.syntax.nodes import nodes_of
from almanaq.suql.syntax.recursion import columns_of_clauses
from almanaq.suql.text_functions import has_text


@dataclass(frozen=True, slots=True)
class _Member:
    """A member of WITH: its name in the tree, and what it shows; what SEARCH and CYCLE add is hidden further in."""

    name: str
    columns: tuple[Shown, ...]
    added: tuple[Shown, ...] = ()

    @property
    def within(self) -> _Member:
        return replace(self, added=tuple(replace(shown, hidden=True) for shown in self.added))


def find_names(tree: exp.Query, catalog: Catalog, text: str) -> tuple[str, ...]:
    """Write what every name of a query means into it; give what the columns of its result are called.

    Raises:
        UnknownNameError: no such relation or column, or an ambiguous one; points at the place and suggests.
    """
    shown = _Query(catalog, text, {}).query(tree, None)
    return tuple(column.spelled for column in shown)


@dataclass(frozen=True)
class _Query:
    catalog: Catalog
    text: str
    members: Mapping[str, _Member]

    # --- queries -----------------------------------------------------------------------------------------------------

    def query(self, node: exp.Expr, outer: Scope | None) -> tuple[Shown, ...]:
        """Find the names in a query; give its outputs, as they are called in the tree."""
        names = self._inside()._with(node, outer)
        _select_values(node)
        if isinstance(node, exp.Select):
            return names._select(node, outer)
        if isinstance(node, exp.SetOperation):
            outputs = names.query(node.this, outer)
            if len(outputs) != len(names.query(node.expression, outer)):
                raise UnsupportedError(f"the sides of {node.key.upper()} give different numbers of columns")
            _number_order(node, outputs, self.text)
            return outputs
        if isinstance(node, exp.Subquery) and isinstance(node.this, exp.Query):
            outputs = names.query(node.this, outer)
            _number_order(node, outputs, self.text)
            return outputs
        raise UnsupportedError(f"a query of the kind {type(node).__name__.upper()} is not supported: write a SELECT")

    def _with(self, query: exp.Expr, outer: Scope | None) -> _Query:
        """Find the names in the members of a query's WITH; give what the query itself may name."""
        with_ = query.args.get("with_")
        names = self
        if with_ is None:
            return names
        if with_.args.get("recursive"):
            order_members(with_)
        for cte in with_.expressions:
            called = cte.alias
            name = names._member_name(called)
            member = names._member(cte, name, bool(with_.args.get("recursive")), outer)
            names = replace(names, members={**names.members, called: member})
            cte.args["alias"].set("this", identifier(name))
        return names

    def _inside(self) -> _Query:
        """Return what a query in this one may name."""
        if not any(member.added for member in self.members.values()):
            return self
        return replace(self, members={called: member.within for called, member in self.members.items()})

    def _member_name(self, called: str) -> str:
        """Return a name for a member of WITH that no relation and no other member has."""
        taken = {member.name for member in self.members.values()}
        names = (called if n == 0 else f"{called}_{n}" for n in itertools.count())
        return next(name for name in names if name not in taken and self.catalog.find(name) is None)

    def _member(self, cte: exp.CTE, name: str, recursive: bool, outer: Scope | None) -> _Member:
        _, listed = written_alias(cte)
        called, query = cte.alias, cte.this
        added = tuple(Shown(column.name, column.name, column) for column in columns_of_clauses(cte))
        if not (recursive and isinstance(query, exp.SetOperation) and _reads(query, called)):
            if added:
                raise UnsupportedError(f"SEARCH and CYCLE belong to a recursive member of WITH; {called!r} is none")
            columns = renamed(self.query(query, outer), listed, called, self.text)
            cte.args["alias"].set("columns", None)
            return _Member(name, columns)
        if added and has_text(query):
            raise UnsupportedError("SEARCH and CYCLE beside text functions are not supported: answer them around WITH")
        names = self._inside()._with(query, outer)
        first = names.query(query.this, outer)
        columns = renamed(first, listed, called, self.text)
        member = _Member(name, columns, added)
        names.inside_of(called, member).query(query.expression, outer)
        cte.args["alias"].set("columns", [identifier(c.node.name) for c in columns])
        _name_searched(cte, columns, self.text)
        return member

    def inside_of(self, called: str, member: _Member) -> _Query:
        """Return what the part of a member of WITH that reads the member may name."""
        return replace(self, members={**self.members, called: member})

    def _select(self, block: exp.Select, outer: Scope | None) -> tuple[Shown, ...]:
        scope = read_from(block, outer, self)
        outputs = self._outputs(block, scope)
        _number_order(block, outputs, self.text)
        for key, value in block.args.items():
            if key not in ("expressions", "from_", "joins", "with_"):
                for part in value if isinstance(value, list) else [value]:
                    if isinstance(part, exp.Expr):
                        self.expression(part, scope)
        write_group_keys(block)
        return outputs

    def _outputs(self, block: exp.Select, scope: Scope) -> tuple[Shown, ...]:
        """Write the stars of a SELECT list out, and give each output a name of its own in the tree."""
        items: list[tuple[Shown, exp.Expr]] = []
        for i, item in enumerate(map(_star_of_row, block.expressions)):
            if item.is_star and isinstance(item, exp.Star | exp.Column):
                items += [(shown, shown.node.copy()) for shown in self._star(item, scope)]
            else:
                items.append(self._output(item, i, scope))
        outputs, written = [], []
        names = [shown.node.name if isinstance(shown.node, exp.Identifier) else shown.name for shown, _ in items]
        for (shown, node), name in zip(items, apart(names), strict=True):
            label = identifier(name)
            label.meta["spelled"] = shown.spelled
            written.append(exp.Alias(this=node, alias=label))
            outputs.append(replace(shown, node=label.copy()))
        if not written:  # `SELECT FROM t` has rows, without anything in them
            written.append(exp.Alias(this=exp.Literal.number(1), alias=identifier("_col_0")))
        block.set("expressions", written)
        return tuple(outputs)

    def _output(self, item: exp.Expr, at: int, scope: Scope) -> tuple[Shown, exp.Expr]:
        """Return an output that is no star: what it is called, in the tree too, and its expression."""
        holder = exp.paren(item, copy=False)
        node = item.this if isinstance(item, exp.Alias) else item
        bare = node
        while isinstance(bare, exp.Cast | exp.Paren) and not isinstance(item, exp.Alias):
            bare = bare.this
        named = self._find(bare, scope) if isinstance(bare, exp.Column) and not bare.is_star else None
        alias = item.args.get("alias") if isinstance(item, exp.Alias | exp.Subquery) else None
        alias = alias.this if isinstance(alias, exp.TableAlias) else alias
        self.expression(holder, scope)
        item = holder.this
        if isinstance(item, exp.Subquery):
            item.set("alias", None)
        expression = item.this if isinstance(item, exp.Alias) else item
        if alias is not None:
            return Shown(alias.name, spelled(alias), identifier(alias.name)), expression
        if named is not None:
            return Shown(named.name, named.spelled, identifier(named.name)), expression
        called = name_of(item)
        label = bare.name if isinstance(bare, exp.Column) else f"_col_{at}"
        return Shown(called.lower(), called, identifier(label)), expression

    def _star(self, star: exp.Expr, scope: Scope) -> tuple[Shown, ...]:
        if isinstance(star, exp.Column):
            found, what = scope.table(table_name(star)), star.this
            if found is None:
                known = [name for around in scope.around() for name in around.item.tables]
                last = star.parts[-2]
                if self._find(exp.Column(this=last.copy()), scope) is not None:
                    raise UnsupportedError(
                        f"the fields of {last.name!r} cannot be told here: name each, ({last.name}).a"
                    )
                raise name_error(last, f"no relation named {table_name(star)!r} in FROM", known, self.text)
        else:
            found, what = scope.item.columns, star
            if not scope.item.tables:
                raise UnknownNameError("* has nothing to stand for: the query has no FROM", query=self.text)
        if any(what.args.get(key) for key in ("replace", "rename", "ilike")):
            raise UnsupportedError(f"{what.sql('duckdb')} is not PostgreSQL's: name the columns")
        left_out = {node.name for node in what.args.get("except_") or ()}
        return tuple(shown for shown in found if shown.name not in left_out and not shown.hidden)

    # --- expressions -------------------------------------------------------------------------------------------------

    def expression(self, node: exp.Expr, scope: Scope) -> None:
        """Write what the names in an expression mean, in place; those of nested queries too."""
        for child in list(node.iter_expressions()):
            if isinstance(child, exp.Query):
                self.query(child, scope)
            elif isinstance(child, exp.Column) and not child.is_star:
                self._qualify(child, scope)
            elif isinstance(child, exp.Column) and isinstance(node, exp.Cast | exp.Paren):
                self._write_row(child, scope)
            else:
                self.expression(child, scope)

    def _write_row(self, star: exp.Column, scope: Scope) -> None:
        """Write `(t.*)::text` as `t::text`."""
        name = table_name(star)
        shown = scope.table(name)
        if shown is not None and not any(column.name == name for column in shown):
            star.replace(exp.Column(this=star.args["table"].copy()))

    def _qualify(self, column: exp.Column, scope: Scope) -> None:
        found = self._find(column, scope)
        if found is None:
            return
        node = found.node.copy()
        for part in nodes_of(node, exp.Identifier):
            part.meta.update(column.this.meta)
        column.replace(node)

    def _find(self, column: exp.Column, scope: Scope) -> Shown | None:
        found = scope.find(column, self.text)
        if found is None and column.table and column.args.get("db") is None:
            self._check_table(column, scope)
        return found

    def _check_table(self, column: exp.Column, scope: Scope) -> None:
        table = scope.table(column.table)
        if table is None:
            known = [name for around in scope.around() for name in around.item.tables]
            raise name_error(column.args["table"], f"no relation named {column.table!r} in FROM", known, self.text)
        names = [shown.name for shown in table]
        raise name_error(column.this, f"{column.table!r} has no column named {column.name!r}", names, self.text)

    # --- items of FROM -----------------------------------------------------------------------------------------------

    def alias(self, wanted: str, scope: Scope) -> str:
        """Return a name for a table that no other table in reach has."""
        names = (wanted if n == 0 else f"{wanted}_{n}" for n in itertools.count())
        return next(name for name in names if name not in scope.aliases)

    def table(self, node: exp.Expr, left: Scope, outer: Scope | None) -> tuple[Item, exp.Expr]:
        """Return what a table, a subquery or a function in FROM shows, and how it is written.

        Args:
            left: what functions and LATERAL see: the items before it, too.
            outer: what other subqueries see.
        """
        called, listed = written_alias(node)
        if isinstance(node, exp.Table) and isinstance(node.this, exp.Values):
            node = node.this
        subquery = node.this if isinstance(node, exp.Lateral) and isinstance(node.this, exp.Subquery) else node
        if isinstance(subquery, exp.Subquery):
            _select_values(subquery)
            columns = self.query(subquery.this, left if subquery is not node else outer)
            name = self.alias(called or "_query", left)
            columns = renamed(columns, listed, called, self.text)
            node.set("alias", exp.TableAlias(this=identifier(name)))
            return Item.table(called or name, of_table(columns, name)), node
        if isinstance(node, exp.Table) and not isinstance(node.this, exp.Func) and not node.args.get("rows_from"):
            return self._relation(node, called, listed, left)
        return self._function(node, called, listed, left if not isinstance(node, exp.Values) else outer, left)

    def _relation(
        self, node: exp.Table, called: str, listed: list[exp.Identifier], left: Scope
    ) -> tuple[Item, exp.Expr]:
        written = ".".join(part.name for part in node.parts)
        member = self.members.get(written)
        endings: list[str] = []
        if member is not None:
            relation, columns = member.name, member.columns + member.added
        else:
            found = self._base(node, written)
            relation, endings = found.name.lower(), [".".join(found.location[i:]).lower() for i in (-2, -3)]
            columns = tuple(Shown(c.name.lower(), c.name, identifier(c.name.lower())) for c in found.columns)
        visible = called or node.name
        if visible in left.item.tables and len(node.parts) > 1 and not called:
            visible = written
        name = self.alias(visible, left)
        for part in ("db", "catalog"):
            node.set(part, None)
        node.set("this", identifier(relation))
        node.set("alias", exp.TableAlias(this=identifier(name)))
        columns = of_table(renamed(columns, listed, visible, self.text), name)
        return Item(dict.fromkeys([visible] if called else [visible, *endings], columns), columns), node

    def _base(self, node: exp.Table, written: str) -> Relation:
        found = self.catalog.find(written)
        if found is None:
            raise UnknownNameError(self.catalog.unknown(written), query=self.text, **place(node.this))
        if confused := self.catalog.confused(found):
            raise UnknownNameError(confused + " that gives it another name", query=self.text, **place(node.this))
        return found

    def _function(
        self, node: exp.Expr, called: str, listed: list[exp.Identifier], seen: Scope | None, left: Scope
    ) -> tuple[Item, exp.Expr]:
        """Return what a function or VALUES in FROM shows; all its columns are named in the tree."""
        ordinality = bool(node.args.get("ordinality"))
        node = node.this if isinstance(node, exp.Lateral) else node
        if isinstance(node, exp.Func) and not isinstance(node, exp.UDTF):
            node = exp.Table(this=node, ordinality=ordinality or None)
        holder = exp.paren(node, copy=False)
        self.expression(holder, seen or within(None))
        node = holder.this
        first, *others = functions = functions_in(node)
        visible = called or (name_of(first) if not isinstance(first, exp.Values) else "_values")
        own = [
            name
            for function in functions
            for name in columns_of_function(
                function, name_of(function) if others else visible, self.catalog, len(listed)
            )
        ]
        names = columns_called(node, own, listed)
        if len(listed) > len(names):
            renamed((), listed[len(names) :], visible, self.text)
        name = self.alias(visible, left)
        labels = [identifier(label) for label in apart([shown for shown, _ in names])]
        columns = tuple(Shown(*shown, label) for shown, label in zip(names, labels, strict=True))
        node.set("alias", exp.TableAlias(this=identifier(name), columns=typed_columns(labels, listed)))
        return Item.table(visible, of_table(columns, name)), node


def _select_values(query: exp.Expr) -> None:
    """Write `(VALUES …)` as `(SELECT * FROM (VALUES …))`."""
    if isinstance(query, exp.Subquery) and isinstance(query.this, exp.Values):
        query.set("this", exp.select("*").from_(query.this))


def _name_searched(cte: exp.CTE, columns: tuple[Shown, ...], text: str) -> None:
    """Name the columns that SEARCH and CYCLE look at as they are called in the tree."""
    labels = {shown.name: shown.node.name for shown in columns}
    for clause in cte.args.get("key_expressions") or ():
        for column in clause.this.expressions:
            if column.name not in labels:
                raise name_error(column, f"{cte.alias!r} has no column named {column.name!r}", list(labels), text)
            column.set("this", labels[column.name])


def _star_of_row(item: exp.Expr) -> exp.Expr:
    """Write `(t).*` as `t.*`; what a value of several fields holds is not known."""
    if not (isinstance(item, exp.Dot) and isinstance(item.expression, exp.Star)):
        return item
    row = item.this.unnest()
    if isinstance(row, exp.Column) and not row.table:
        return exp.Column(this=exp.Star(), table=row.this)
    raise UnsupportedError(f"the fields of {row.sql('postgres')} cannot be told here: name them, ({row.name}).field")


def _number_order(query: exp.Expr, outputs: tuple[Shown, ...], text: str) -> None:
    """Write a bare name of an output in ORDER BY or DISTINCT ON as its position: outputs come before columns there."""
    order, distinct = query.args.get("order"), query.args.get("distinct")
    on = distinct.args.get("on") if isinstance(distinct, exp.Distinct) else None
    keys = [ordered.this for ordered in order.expressions] if order is not None else []
    for key in [*keys, *(on.expressions if on is not None else ())]:
        if not isinstance(key, exp.Column) or key.table:
            continue
        places = [i for i, shown in enumerate(outputs) if shown.name == key.name]
        written = {query.expressions[i].this.sql() if isinstance(query, exp.Select) else i for i in places}
        if len(written) > 1:
            message = f"{key.name!r} is ambiguous: several outputs are called so; write a number, or name them apart"
            raise UnknownNameError(message, query=text, **place(key.this))
        if places:
            key.replace(exp.Literal.number(places[0] + 1))


def _reads(query: exp.Expr, name: str) -> bool:
    return any(table.name == name and not table.args.get("db") for table in nodes_of(query, exp.Table))
