"""Calls that only the catalog can judge: functions of the database's own, and definitions of views."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from sqlglot import exp

from almanaq.errors import PrivateColumnError, QueryTypeError, RefusedQueryError, UnknownNameError, UnsupportedError
from almanaq.suql.catalog.relations import Catalog, OwnFunction
from almanaq.suql.syntax.literals import literal
from almanaq.suql.syntax.nodes import nodes_of
from almanaq.suql.text_functions import has_text

DEFINITION = "pg_get_viewdef"


class DatabaseCalls:
    """What queries over one catalog may call beyond what every database has.

    Args:
        allowed: names of functions that the user allows.
    """

    def __init__(self, catalog: Catalog, allowed: Collection[str]) -> None:
        withheld = any(relation.withheld for relation in catalog.relations)  # nobody knows what a function reads
        self._catalog, self._allowed = catalog, frozenset() if withheld else {name.lower() for name in allowed}
        self._functions = {function.name: function for function in catalog.functions}

    @property
    def names(self) -> frozenset[str]:
        """The functions of the database's own that may be called."""
        return frozenset(name for name, function in self._functions.items() if self._may(function))

    def write(self, tree: exp.Expr, text: str) -> exp.Expr:
        """Return a tree, which is changed, with the definitions of views that it asks for as texts.

        Raises:
            RefusedQueryError: a function of the database's own that may not be called.
            PrivateColumnError: a definition that may tell of what no query may read.
        """
        calls = nodes_of(tree, exp.Anonymous) if self._functions or self._catalog.definitions else []
        for call in calls:
            name = call.name.lower()
            if name == DEFINITION and self._catalog.definitions:
                _replace(call, self._definition(call, text))
            elif name in self._functions:
                self._check(self._functions[name], tree, text)
        return tree

    def _may(self, function: OwnFunction) -> bool:
        return function.plain or (function.name in self._allowed and not function.barred)

    def _check(self, function: OwnFunction, tree: exp.Expr, text: str) -> None:
        name = function.name
        start = text.lower().find(name)
        place: dict[str, Any] = {"query": text, "start": start, "end": start + len(name) - 1} if start >= 0 else {}
        if not self._may(function):
            of_the_database = f"the function {name!r} is one of the database's own"
            if function.barred:
                raise RefusedQueryError(f"{of_the_database} that queries do not call: {function.barred}", **place)
            raise RefusedQueryError(
                f"{of_the_database}, and nobody here knows what it does: who trusts it connects with "
                f"allow_functions=[{name!r}], or says --allow-function {name}",
                **place,
            )
        if function.sets and has_text(tree):
            raise UnsupportedError(f"{name}() gives rows, and does not stand beside answer(): put it into a view")

    def _definition(self, call: exp.Anonymous, text: str) -> exp.Expr:
        named, *pretty = call.expressions or [None]
        named = named.this if isinstance(named, exp.Cast) and _is_relation_type(named) else named
        flags = (exp.Boolean,)
        if not isinstance(named, exp.Literal) or not named.is_string or len(pretty) > 1:
            raise QueryTypeError(f"{DEFINITION}() takes the name of a view as a text here, and true for a wide one")
        if not all(isinstance(flag, flags) for flag in pretty):
            raise QueryTypeError(f"{DEFINITION}() takes true or false after the name of the view here")
        relation = self._catalog.find(named.name.replace('"', ""))
        found = next(
            (d for d in self._catalog.definitions if relation is not None and d.relation == relation.name), None
        )
        if relation is None or found is None:
            known = f"{relation.name!r} is no view" if relation is not None else self._catalog.unknown(named.name)
            raise UnknownNameError(known, query=text)
        read = [self._catalog.find(name) for name in found.reads or ()]
        private = any(
            other is None or other.withheld or any(column.private for column in other.columns)
            for other in (relation, *read)
        )
        if found.reads is None or private:
            raise PrivateColumnError(
                f"the definition of {relation.name!r} may tell of columns or relations that are not to be seen; "
                f"DESCRIBE {relation.name} shows what may be"
            )
        return exp.cast(literal(found.texts[bool(pretty) and bool(pretty[0].this)]), "text")


def _is_relation_type(cast: exp.Cast) -> bool:
    return isinstance(cast.to, exp.DataType | exp.ObjectIdentifier) and cast.to.sql("postgres").upper() in (
        *("REGCLASS", "TEXT"),
    )


def _replace(call: exp.Expr, definition: exp.Expr) -> None:
    listed = isinstance(call.parent, exp.Select) and call.arg_key == "expressions"
    call.replace(exp.alias_(definition, DEFINITION) if listed else definition)
