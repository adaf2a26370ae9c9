"""Functions that somebody defined in a PostgreSQL database: which of them only compute, and which may be allowed.

One that only computes is called without leave as long as nobody but the owner of the database, a superuser or the role
itself can put another in its place, or beside it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection
from typing import Any

from sqlglot import exp

from almanaq.errors import AlmanaqError
from almanaq.suql.catalog.relations import OwnFunction
from almanaq.suql.syntax.functions import ENUM_FUNCTIONS, is_allowed
from almanaq.suql.syntax.nodes import nodes_of
from almanaq.suql.syntax.parse import parse
from almanaq.suql.text_functions import TEXT_FUNCTIONS

Ask = Callable[..., list[tuple[Any, ...]]]

_FUNCTIONS = """
    SELECT p.proname::text, p.prokind::text, l.lanname::text, p.provolatile::text, p.prosecdef, p.proconfig IS NULL,
           p.proretset, format_type(p.prorettype, NULL), p.prosrc, has_function_privilege(p.oid, 'EXECUTE'),
           (o.alone OR NOT has_schema_privilege('public', p.pronamespace, 'CREATE')) AND p.proowner = ANY (o.trusted)
    FROM pg_proc p JOIN pg_language l ON l.oid = p.prolang, (
        SELECT array_agg(r.oid) FILTER (WHERE r.rolsuper OR r.oid = d.datdba OR r.rolname = current_user) AS trusted,
               bool_and(r.rolsuper OR r.oid = d.datdba OR r.rolname = current_user OR NOT r.rolcanlogin) AS alone
        FROM pg_roles r, pg_database d WHERE d.datname = current_database()) o
    WHERE p.pronamespace <> 'pg_catalog'::regnamespace AND pg_function_is_visible(p.oid)
      AND p.pronamespace IN (SELECT oid FROM pg_namespace WHERE nspname = ANY (current_schemas(false)))
      AND NOT EXISTS (SELECT 1 FROM pg_proc s
                      WHERE s.pronamespace = 'pg_catalog'::regnamespace AND s.proname = p.proname)
      AND NOT EXISTS (SELECT 1 FROM pg_depend d
                      WHERE d.classid = 'pg_proc'::regclass AND d.objid = p.oid AND d.deptype = 'e')
    ORDER BY p.proname, p.oid LIMIT 5000"""
_NAME = re.compile(r"[a-z_][a-z0-9_]*")
_ARGUMENT = re.compile(r"\$\d+")
_BY_CHANCE = re.compile(r"random|clock_timestamp|statement_timestamp|timeofday|uuid", re.IGNORECASE)
_KINDS = {"a": "an aggregate", "w": "a window function", "p": "a procedure"}


def functions_of_database(ask: Ask, shadowed: Collection[str]) -> tuple[OwnFunction, ...]:
    """Return the functions that the role finds by their bare names, under names that nothing else has.

    Args:
        shadowed: names of the system that the database has functions of, too: a body that says one calls nobody
            knows whose.
    """
    by_name: dict[str, list[tuple[Any, ...]]] = {}
    for name, *traits in ask(_FUNCTIONS):
        if _NAME.fullmatch(name) and name not in TEXT_FUNCTIONS and not is_allowed(name):
            by_name.setdefault(name, []).append(tuple(traits))
    return tuple(_function(name, overloads, shadowed) for name, overloads in by_name.items())


def _function(name: str, overloads: list[tuple[Any, ...]], shadowed: Collection[str]) -> OwnFunction:
    plain, barred, sets, types = True, "", False, set()
    for kind, language, volatility, definer, unset, rows, type_, body, may, settled in overloads:
        if kind != "f":
            barred = f"it is {_KINDS.get(kind, 'no function')}"
        elif definer:
            barred = "it runs with the rights of its owner (SECURITY DEFINER)"
        elif not may:
            barred = "this role may not call it"
        in_sql = kind == "f" and language == "sql" and not definer and unset and may
        only_computes = bool(in_sql and settled) and _computes(body, shadowed)
        if volatility == "v" and not only_computes:
            barred = barred or "it is declared VOLATILE, as a function is unless it says STABLE or IMMUTABLE"
        plain = plain and only_computes
        sets = sets or rows
        types.add(str(type_))
    return OwnFunction(name, plain, sets, types.pop() if len(types) == 1 else "", barred)


def _computes(body: str, shadowed: Collection[str]) -> bool:
    """Return whether a body in SQL is one SELECT or VALUES of its arguments that a query could be made of itself."""
    if _BY_CHANCE.search(body) or any(name in body.lower() for name in shadowed):
        return False
    try:
        tree = parse(_ARGUMENT.sub(" NULL ", body), (), "postgres")
    except AlmanaqError:
        return False
    named = {call.name.lower() for call in nodes_of(tree, exp.Anonymous)}
    return not nodes_of(tree, exp.Table) and named.isdisjoint(ENUM_FUNCTIONS | {*TEXT_FUNCTIONS})
