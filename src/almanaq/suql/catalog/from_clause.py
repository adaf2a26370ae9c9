"""FROM as PostgreSQL reads it: what its items show in order, what USING and NATURAL merge, and what alias lists name.

Afterwards a block's FROM is a plain chain of tables, in which no USING, no NATURAL, no parenthesis and no alias of a
join is left; the columns that it shows say what they stand for in that chain.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Protocol

from sqlglot import exp

from almanaq.errors import UnknownNameError, UnsupportedError
from almanaq.suql.catalog.scope import Item, Scope, Shown, place, within
from almanaq.suql.syntax.nodes import nodes_of

_KEEPING = ("RIGHT", "FULL")
_KINDS = ("", "INNER", "CROSS", "OUTER")


class Names(Protocol):
    """Finds what the names in parts of a query mean, and writes that into the tree."""

    @property
    def text(self) -> str:
        """The text of the query."""

    def table(self, node: exp.Expr, left: Scope, outer: Scope | None) -> tuple[Item, exp.Expr]:
        """Return what a table, a subquery or a function in FROM shows, and how it is written.

        Args:
            left: what functions and LATERAL see: the items before it, too.
            outer: what other subqueries see.
        """

    def expression(self, node: exp.Expr, scope: Scope) -> None:
        """Write what the names in an expression mean."""

    def alias(self, wanted: str, scope: Scope) -> str:
        """Return a name for a table that no other table in reach has."""


@dataclass(frozen=True, slots=True)
class _Chain:
    """An item of FROM with the tables that it is made of; each says how it joins those before it, but for the first."""

    item: Item
    joins: tuple[exp.Join, ...]

    @property
    def aliases(self) -> frozenset[str]:
        return frozenset(join.this.alias_or_name for join in self.joins)

    @property
    def is_inner(self) -> bool:
        """Whether it only joins rows that match."""
        return not any(join.side for join in self.joins)


def read_from(block: exp.Select, outer: Scope | None, names: Names) -> Scope:
    """Write a block's FROM as a chain of tables, in place; give what the rest of the block may name."""
    return _Reader(outer, names).read(block)


def written_alias(node: exp.Expr) -> tuple[str, list[exp.Identifier]]:
    """Return the name that an item of FROM is given, "" for none, and those of its columns."""
    alias = node.args.get("alias")
    if not isinstance(alias, exp.TableAlias):
        return (alias.name if isinstance(alias, exp.Identifier) else ""), []
    return alias.name, list(alias.args.get("columns") or [])


def renamed(columns: tuple[Shown, ...], names: list[exp.Identifier], table: str, text: str) -> tuple[Shown, ...]:
    """Return columns under the names of an alias list, which may be shorter."""
    if len(names) > len(columns):
        message = f"{table!r} has {len(columns)} columns, and {len(names)} are named here"
        raise UnknownNameError(message, query=text, **place(names[len(columns)]))
    new = [replace(shown, name=name.name, spelled=spelled(name)) for shown, name in zip(columns, names, strict=False)]
    return (*new, *columns[len(names) :])


def spelled(name: exp.Expr) -> str:
    """Return a name as the query spells it."""
    return str(name.meta.get("spelled", name.name))


class _Reader:
    def __init__(self, outer: Scope | None, names: Names) -> None:
        self._outer, self._names = outer, names

    def read(self, block: exp.Select) -> Scope:
        first = block.args.get("from_")
        if first is None:
            return within(self._outer)
        chain: _Chain | None = None
        for start, joins in _groups(first.this, block.args.get("joins") or []):
            left = self._scope(chain)
            group = self._chain(start, left)
            for join in joins:
                group = self._joined(group, join, left)
            if chain is not None and any(join.side in _KEEPING for join in group.joins):
                _check_apart(group, chain)
                group = self._derived(group, left)  # a comma binds less than JOIN
            chain = group if chain is None else self._beside(chain, group)
        assert chain is not None
        block.set("from_", exp.From(this=chain.joins[0].this))
        block.set("joins", list(chain.joins[1:]) or None)
        return self._scope(chain)

    def _scope(self, chain: _Chain | None) -> Scope:
        return within(self._outer, chain.item, chain.aliases) if chain is not None else within(self._outer)

    def _beside(self, left: _Chain, right: _Chain) -> _Chain:
        self._check_names(left.item, right.item)
        tables = {**left.item.tables, **right.item.tables}
        return _Chain(Item(tables, left.item.columns + right.item.columns), left.joins + right.joins)

    def _chain(self, node: exp.Expr, left: Scope) -> _Chain:
        """Return the chain of a table, or of joins in parentheses."""
        inner, joins = _parenthesized(node)
        if inner is None:
            item, written = self._names.table(node, left, self._outer)
            return _Chain(item, (exp.Join(this=written),))
        chain = self._chain(inner, left)
        for join in joins:
            chain = self._joined(chain, join, left)
        name, columns = written_alias(node)
        if name and node is not inner:
            shown = renamed(chain.item.columns, columns, name, self._names.text)
            chain = replace(chain, item=Item.table(name, shown))
        return chain

    def _joined(self, left: _Chain, join: exp.Join, before: Scope) -> _Chain:
        if join.kind.upper() not in _KINDS or (join.method and join.method.upper() != "NATURAL"):
            raise UnsupportedError(
                f"{join.method or join.kind} JOIN is not PostgreSQL's; write the condition into WHERE"
            )
        seen = within(before, left.item, left.aliases)
        right = self._chain(join.this, seen)
        splices = left.joins and len(right.joins) > 1 and right.is_inner and not join.side
        if len(right.joins) > 1 and not splices:
            right = self._derived(right, seen)
        self._check_names(left.item, right.item)
        item, condition = self._merged(left.item, right.item, join)
        both = _Chain(Item({**left.item.tables, **right.item.tables}, left.item.columns + right.item.columns), ())
        if condition is None and join.args.get("on") is not None:
            condition = join.args["on"]
            holder = exp.paren(condition, copy=False)
            scope = within(before, both.item, left.aliases | right.aliases)
            self._names.expression(holder, scope)
            condition = holder.this
        return _Chain(item, (*left.joins, *_with_condition(right.joins, join, condition)))

    def _merged(self, left: Item, right: Item, join: exp.Join) -> tuple[Item, exp.Expr | None]:
        """Return what a join shows, and the condition that USING or NATURAL stands for."""
        tables = {**left.tables, **right.tables}
        using = join.args.get("using")
        if join.method:
            common = {shown.name for shown in right.columns}
            using = [exp.to_identifier(shown.name) for shown in left.columns if shown.name in common]
        if not using:
            condition = exp.true() if join.method and join.side else None
            return Item(tables, left.columns + right.columns), condition
        merged, conditions = [], []
        for name in using:
            one, other = self._side(left, name, "left"), self._side(right, name, "right")
            conditions.append(exp.EQ(this=one.node.copy(), expression=other.node.copy()))
            kept = other if join.side == "RIGHT" else one
            if join.side == "FULL":
                node = exp.Coalesce(this=one.node.copy(), expressions=[other.node.copy()])
                kept = Shown(one.name, one.spelled, node)
            merged.append(kept)
        names = {shown.name for shown in merged}
        rest = [shown for shown in (*left.columns, *right.columns) if shown.name not in names]
        item = Item(tables, (*merged, *rest))
        alias = join.meta.get("using_alias")
        if alias is not None:
            item = Item({**tables, alias: tuple(merged)}, item.columns)
        return item, exp.and_(*conditions, copy=False)

    def _side(self, item: Item, name: exp.Expr, side: str) -> Shown:
        found = [shown for shown in item.columns if shown.name == name.name]
        if len(found) == 1:
            return found[0]
        wrong = f"no column named {name.name!r}" if not found else f"several columns named {name.name!r}"
        message = f"USING ({name.name}): there is {wrong} on the {side} of the join"
        raise UnknownNameError(message, query=self._names.text, **place(name))

    def _derived(self, chain: _Chain, seen: Scope) -> _Chain:
        """Put a chain into a subquery, for joins that keep rows without a match in another order than the chain's."""
        nodes = {shown.node.sql(): shown.node for columns in chain.item.tables.values() for shown in columns}
        nodes |= {shown.node.sql(): shown.node for shown in chain.item.columns}
        name = self._names.alias("_join", within(seen, aliases=chain.aliases))
        labels = {text: f"c{i}" for i, text in enumerate(nodes)}
        outputs: list[exp.Expr] = [
            exp.Alias(this=node.copy(), alias=exp.to_identifier(labels[text], quoted=True))
            for text, node in nodes.items()
        ] or [exp.Alias(this=exp.Literal.number(1), alias=exp.to_identifier("c0", quoted=True))]
        select = exp.Select(expressions=outputs, from_=exp.From(this=chain.joins[0].this))
        select.set("joins", list(chain.joins[1:]) or None)
        quoted = exp.to_identifier(name, quoted=True)
        subquery = exp.Subquery(this=select, alias=exp.TableAlias(this=quoted))

        def outside(shown: Shown) -> Shown:
            label = exp.to_identifier(labels[shown.node.sql()], quoted=True)
            return replace(shown, node=exp.Column(this=label, table=quoted.copy()))

        return _Chain(_each(chain.item, outside), (exp.Join(this=subquery),))

    def _check_names(self, left: Item, right: Item) -> None:
        for name in right.tables:
            if name in left.tables:
                message = f"two items of FROM are called {name!r}: give one another name with AS"
                raise UnknownNameError(message, query=self._names.text)


def _check_apart(group: _Chain, before: _Chain) -> None:
    """Refuse joins that keep rows without a match and refer to what a comma stands between."""
    for join in group.joins:
        for column in nodes_of(join, exp.Column):
            if column.table in before.aliases:
                kept = "a RIGHT or FULL JOIN after a comma in FROM cannot refer to what is before the comma"
                raise UnsupportedError(f"{kept}, as {column.table!r}: write CROSS JOIN for the comma")


def _each(item: Item, change: Callable[[Shown], Shown]) -> Item:
    tables = {name: tuple(map(change, columns)) for name, columns in item.tables.items()}
    return Item(tables, tuple(map(change, item.columns)))


def _groups(first: exp.Expr, joins: list[exp.Join]) -> list[tuple[exp.Expr, list[exp.Join]]]:
    """Return the items of FROM that commas stand between: each with its joins."""
    groups: list[tuple[exp.Expr, list[exp.Join]]] = [(first, [])]
    for join in joins:
        if any(join.args.get(key) for key in ("kind", "side", "on", "using", "method")):
            groups[-1][1].append(join)
        else:
            groups.append((join.this, []))
    return groups


def _parenthesized(node: exp.Expr) -> tuple[exp.Expr | None, list[exp.Join]]:
    """Return the first item and the joins of joins in parentheses, or of `a JOIN b JOIN c ON … ON …`."""
    joins = node.args.get("joins") or []
    if joins:
        node.set("joins", None)
        return node, joins
    if isinstance(node, exp.Subquery) and isinstance(node.this, exp.Table | exp.Subquery | exp.Unnest | exp.Lateral):
        inner = node.this
        if not isinstance(inner, exp.Subquery) or inner.args.get("joins") or written_alias(inner)[0]:
            joins = inner.args.get("joins") or []
            inner.set("joins", None)
            return inner, joins
        if not isinstance(inner.unnest(), exp.Query):
            return inner, []
    return None, []


def _with_condition(joins: tuple[exp.Join, ...], join: exp.Join, condition: exp.Expr | None) -> list[exp.Join]:
    """Return a chain's joins with the first of them joining as a join says, on a condition."""
    first, *rest = joins
    kind = "CROSS" if condition is None or rest else ""
    made = exp.Join(this=first.this, side=join.side or None, kind=kind or None)
    if rest and condition is not None:
        last = rest[-1]
        on = last.args.get("on")
        last.set("on", condition if on is None else exp.and_(on, condition))
        last.set("kind", None)
    elif condition is not None:
        made.set("on", condition)
    return [made, *rest]
