"""ENUM columns are compared, sorted, and their least and greatest found, by the order of their values (semantics 11).

The place of a value in that order is a number that every engine compares alike, also what has ENUMs of its own: a value
may have been text in between.
"""

from __future__ import annotations

from sqlglot import exp

from almanaq.errors import QueryTypeError, suggest
from almanaq.suql.catalog.enum_domains import OF_DOMAIN, Domain, Domains, is_open
from almanaq.suql.catalog.relations import Catalog, ColumnKind
from almanaq.suql.catalog.sources import relations_in
from almanaq.suql.syntax.nodes import nodes
from almanaq.suql.text_functions import is_text_call

_COMPARED = (exp.LT, exp.LTE, exp.GT, exp.GTE)
_EQUAL = (exp.EQ, exp.NEQ, exp.NullSafeEQ, exp.NullSafeNEQ, exp.In)
_OUTER = "_sorted"


def order_enums(tree: exp.Query, catalog: Catalog) -> tuple[exp.Query, tuple[str, ...]]:
    """Write what depends on the order of ENUM values over their places in it; give the tree, and what has no order.

    `col > 'mid'` becomes `CASE col WHEN 'low' THEN 1 WHEN 'mid' THEN 2 … END > 2`, and `max(col)` the value at the
    greatest place. A value that is not among those declared has no place, as NULL has none.

    Raises:
        QueryTypeError: a literal that is compared is none of the values.
    """
    columns = [column for relation in relations_in(tree, catalog) for column in relation.columns]
    if not any(column.kind is ColumnKind.ENUM for column in columns):
        return tree, ()
    holder = exp.Subquery(this=tree)  # gives the query a parent to be replaced in
    writer = _Writer(Domains(catalog))
    for node in reversed(nodes(tree)):
        writer.write(node)
    query = holder.this
    assert isinstance(query, exp.Query)
    query.pop()
    return query, tuple(writer.notes)


class _Writer:
    def __init__(self, domains: Domains) -> None:
        self._domains = domains
        self.notes: dict[str, None] = {}

    def write(self, node: exp.Expr) -> None:
        """Write a node, in place, after what it is made of."""
        if isinstance(node, _COMPARED):
            self._parts([node.this, node.expression])
        elif isinstance(node, exp.Between):
            self._parts([node.this, node.args["low"], node.args["high"]])
        elif isinstance(node, exp.Greatest | exp.Least):
            self._least(node)
        elif isinstance(node, exp.Max | exp.Min):
            self._extreme(node)
        elif isinstance(node, exp.WithinGroup) and isinstance(node.this, exp.PercentileDisc | exp.Mode):
            self._at_place(node, node.expression.expressions[0])
        elif isinstance(node, exp.Order):
            self._order(node)
        elif isinstance(node, exp.Distinct) and node.args.get("on") is not None:
            for key in list(node.args["on"].expressions):
                self._key(key, node.parent)
        elif isinstance(node, _EQUAL):
            self._as_text(node)

    def _known(self, domain: Domain | None) -> Domain | None:
        """Return a domain that has an order; note one that has none."""
        if domain is not None and not domain.ordered:
            note = f"{domain.column} has no declared order: it is compared and sorted as text; "
            self.notes[note + "list its values in their order in the schema file"] = None
            return None
        return domain

    def _parts(self, parts: list[exp.Expr]) -> None:
        domains = [domain for part in parts if (domain := self._domains.of(part)) is not None]
        domain = self._known(next((d for d in domains if d.ordered), domains[0] if domains else None))
        if domain is not None:
            for part in parts:
                part.replace(_place(part, domain))

    def _least(self, node: exp.Expr) -> None:
        parts = [node.this, *node.expressions]
        domain = self._known(self._domains.joint(parts))
        if domain is not None:
            for part in parts:
                part.replace(_place(part, domain))
            _put(node, domain)

    def _extreme(self, node: exp.Expr) -> None:
        domain = self._known(self._domains.of(node.this))
        if domain is not None:
            node.this.replace(_place(node.this, domain))
            at = node
            while isinstance(at.parent, exp.Filter | exp.Window) and at.parent.this is at:
                at = at.parent
            _put(at, domain)

    def _at_place(self, node: exp.Expr, ordered: exp.Expr) -> None:
        domain = ordered.this.meta.get(OF_DOMAIN)
        if isinstance(domain, Domain) and domain.ordered:
            at = node.parent if isinstance(node.parent, exp.Filter) else node
            _put(at, domain)

    def _order(self, order: exp.Expr) -> None:
        query = order.parent
        whole = isinstance(query, exp.SetOperation | exp.Subquery) or (
            isinstance(query, exp.Select)
            and query.args.get("distinct") is not None
            and query.args["distinct"].args.get("on") is None
        )
        if whole and isinstance(query, exp.Query):
            self._order_outside(query)
            return
        if isinstance(query, exp.Func) and isinstance(query.this, exp.Distinct):
            return  # the key has to be what is aggregated
        for ordered in order.expressions:
            self._key(ordered.this, query)

    def _key(self, key: exp.Expr, query: exp.Expr | None) -> None:
        """Write a key of ORDER BY or DISTINCT ON, which may be the name of an output."""
        meant = key
        if isinstance(key, exp.Column) and not key.table and isinstance(query, exp.Select):
            meant = next((item.unalias() for item in query.selects if item.alias_or_name == key.name), key)
        domain = self._known(self._domains.of(meant))
        if domain is not None:
            key.replace(_place(meant, domain))

    def _order_outside(self, query: exp.Query) -> None:
        """Sort what is distinct, or united, in a query around it: there a key may be anything."""
        names = [item.alias_or_name for item in query.selects]
        keys = query.args["order"].expressions
        places = []
        for ordered in keys:
            key = ordered.this
            same = [i for i, item in enumerate(query.selects) if item.unalias() == key]
            named = [i for i, name in enumerate(names) if isinstance(key, exp.Column) and name == key.name]
            found = named if isinstance(key, exp.Column) and not key.table else same
            if not found:
                return
            places.append(found[0])
        domains = [self._known(self._domains.of_output(query, place)) for place in places]
        if not any(domains):
            return
        outer = exp.Select(expressions=[exp.Alias(this=_column(n), alias=_quoted(n)) for n in names])
        for clause in ("with_", "order", "limit", "offset"):
            value = query.args.get(clause)
            query.set(clause, None)
            outer.set(clause, value)
        for ordered, place, domain in zip(keys, places, domains, strict=True):
            column: exp.Expr = _column(names[place])
            ordered.set("this", column if domain is None else _place(column, domain))
        query.replace(outer)
        outer.set("from_", exp.From(this=exp.Subquery(this=query, alias=exp.TableAlias(this=_quoted(_OUTER)))))

    def _as_text(self, node: exp.Expr) -> None:
        """Write both sides of an equality as text, columns but for themselves: their literals are linked later."""
        other = node.args.get("query") or node.args.get("expression")
        sides = [node.this, *([other] if other is not None else []), *node.expressions]
        if not any(self._domains.of(side) is not None for side in sides):
            return
        for side in sides:
            bare = side.unnest()
            query = bare.this.unnest() if isinstance(bare, exp.Any | exp.All) else bare if side is other else None
            if isinstance(bare, exp.Cast) and is_open(bare):
                side.replace(bare.this.copy())
            elif isinstance(query, exp.Query) and self._domains.of_output(query, 0) is not None:
                _cast_output(query)
            elif not isinstance(bare, exp.Column) and self._domains.of(bare) is not None:
                side.replace(exp.cast(bare.copy(), "text"))


def _place(node: exp.Expr, domain: Domain) -> exp.Expr:
    """Return the number of the place that a value has among those of a domain."""
    bare = node
    while isinstance(bare, exp.Paren):
        bare = bare.this
    if isinstance(bare, exp.Any | exp.All):
        inner: exp.Expr = bare.this.unnest()
        if isinstance(inner, exp.Query):
            _replace_output(inner, domain)
        elif isinstance(inner, exp.Array):
            for item in inner.expressions:
                item.replace(_place(item, domain))
        return node
    if bare.meta.get(OF_DOMAIN) == domain and isinstance(bare, exp.Case) and bare.this is not None:
        place: exp.Expr = bare.this.copy()
        return place
    if isinstance(bare, exp.Null):
        return bare.copy()
    if is_open(bare):
        return _numbered((bare.this if isinstance(bare, exp.Cast) else bare).name, domain)
    subject = bare.copy() if is_text_call(bare) else exp.cast(bare.copy(), "text")
    places = [
        exp.If(this=exp.Literal.string(value), true=exp.Literal.number(i + 1)) for i, value in enumerate(domain.values)
    ]
    case = exp.Case(this=subject, ifs=places)
    case.type = exp.DataType.build("int")
    case.meta[OF_DOMAIN] = domain
    return case


def _numbered(value: str, domain: Domain) -> exp.Expr:
    if value not in domain.values:
        message = f"{value!r} is none of the values of {domain.column}, so it has no place in their order"
        raise QueryTypeError(message + suggest(value, domain.values))
    return exp.Literal.number(domain.values.index(value) + 1)


def _put(node: exp.Expr, domain: Domain) -> None:
    """Put the value at a place in the place's stead, in the tree."""
    values = [
        exp.If(this=exp.Literal.number(i + 1), true=exp.Literal.string(value)) for i, value in enumerate(domain.values)
    ]
    case = exp.Case(ifs=values)
    node.replace(case)
    case.set("this", node)
    case.type = exp.DataType.build("text")
    case.meta[OF_DOMAIN] = domain


def _replace_output(query: exp.Expr, domain: Domain) -> None:
    for select in _arms(query):
        item = select.selects[0]
        item.unalias().replace(_place(item.unalias(), domain))


def _cast_output(query: exp.Expr) -> None:
    for select in _arms(query):
        node = select.selects[0].unalias()
        node.replace(exp.cast(node.copy(), "text"))


def _arms(query: exp.Expr) -> list[exp.Select]:
    if isinstance(query, exp.SetOperation):
        return _arms(query.this) + _arms(query.expression)
    if isinstance(query, exp.Subquery):
        return _arms(query.this)
    return [query] if isinstance(query, exp.Select) else []


def _quoted(name: str) -> exp.Identifier:
    return exp.to_identifier(name, quoted=True)


def _column(name: str) -> exp.Column:
    return exp.Column(this=_quoted(name), table=_quoted(_OUTER))
