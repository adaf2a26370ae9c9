"""Which functions, operators and types of PostgreSQL a query may use: what its own catalog calls harmless, and a few.

Of the system's functions those compute that pg_proc calls immutable or stable. An extension's are called where all of
that name are immutable; a user's where they are one SELECT of their arguments (`computes`), and nobody but the owner of
the database, a superuser or the role itself can put another in their place. Others are called where they are named.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from almanaq.engines.common import refuse_own
from almanaq.errors import RefusedQueryError, UnknownNameError, suggest
from almanaq.suql.text_functions import TEXT_FUNCTIONS

ALLOWED: Mapping[str, str] = {
    **dict.fromkeys(
        ("random", "random_normal", "gen_random_uuid", "uuidv4", "uuidv7", "array_sample", "array_shuffle"),
        "draws a value, changes nothing but where the generator is",
    ),
    **dict.fromkeys(("clock_timestamp", "timeofday"), "reads the clock"),
    **dict.fromkeys(
        ("pg_relation_size", "pg_table_size", "pg_total_relation_size", "pg_indexes_size", "pg_database_size"),
        "tells how large what the role knows of is",
    ),
}
"""Functions that PostgreSQL calls volatile, and that are harmless all the same."""

REFUSED: Mapping[str, str] = {
    r"(table|query|cursor|schema|database)_to_xml\w*": "it reads relations that its argument names",
    r"pg_stat_get_\w+|pg_show_\w+|pg_\w+_settings": "it tells of other people's sessions, or of settings",
    "current_setting": "settings may hold what is nobody's business",
    r"pg_mcv_list_items|pg_get_statisticsobjdef\w*": "it shows cells that statistics were drawn from",
    r"pg_current_xact_id\w*|txid_current\w*": "it takes a number of the server's",
}
"""Functions that PostgreSQL calls stable or immutable, and that do more than compute; patterns of names."""

TELLS_OF_COLUMNS = re.compile(r"pg_get_\w+|enum_(?:range|first|last)|obj_description|col_description")
"""Functions that tell of columns nobody named, by definitions and labels: refused where some are private."""

RELATIONS_REFUSED: Mapping[str, str] = {
    r"pg_stats\w*|pg_statistic\w*": "statistics show cells of columns",
    r"pg_stat_\w+|pg_statio_\w+": "it tells of other people's sessions",
    r"pg_authid|pg_shadow|pg_user_mappings?|pg_subscription|pg_largeobject": "it holds passwords or data",
    r"pg_settings|pg_config|pg_file_settings|pg_hba_file_rules|pg_ident_\w+": "it tells how the server is set up",
    r"pg_locks|pg_cursors|pg_prepared_\w+|pg_shmem_\w+|pg_backend_\w+|pg_replication_\w+": "it tells of sessions",
    r"pg_foreign_\w+|_pg_foreign\w*|_pg_user_mappings": "options hold passwords",
    r"user_mapping_options|foreign_\w+_options": "options hold passwords",
}
"""Relations of the system's schemas that are not read though the role may; patterns of names."""

SYSTEM = ("pg_catalog", "information_schema")
_KINDS = {"a": "an aggregate", "w": "a window function", "p": "a procedure"}
_COLUMNS = """
    CASE WHEN proargmodes && '{o,b,t}' THEN ARRAY(
             SELECT name FROM unnest(proargnames, proargmodes) WITH ORDINALITY AS a(name, mode, place)
             WHERE mode IN ('o', 'b', 't') ORDER BY place)
         WHEN (SELECT typtype FROM pg_type WHERE oid = prorettype) IN ('b', 'd', 'e', 'r', 'm') THEN '{}' END"""
"""What a function in FROM calls its columns; none where it is as the item is called, NULL where nobody knows."""
_SYSTEM_FUNCTIONS = f"""
    SELECT proname::text, bool_or(prokind = 'a'), bool_and(provolatile <> 'v' AND NOT prosecdef), bool_or(proretset),
           CASE WHEN count(DISTINCT prorettype) = 1 THEN format_type(min(prorettype), NULL) ELSE '' END,
           CASE WHEN count(DISTINCT coalesce(shown, '{{?}}')) = 1 THEN min(shown) END
    FROM pg_proc, LATERAL (SELECT {_COLUMNS} AS shown) c
    WHERE pronamespace IN ('pg_catalog'::regnamespace, 'information_schema'::regnamespace)
      AND prokind <> 'p' AND NOT 'internal'::regtype = ANY (proargtypes)
      AND prorettype NOT IN ('internal'::regtype, 'trigger'::regtype, 'event_trigger'::regtype)
    GROUP BY proname"""
_OTHER_FUNCTIONS = f"""
    SELECT n.nspname::text, p.proname::text, pg_function_is_visible(p.oid)
             OR n.nspname = ANY (current_schemas(false)), p.prokind::text, l.lanname::text, p.provolatile::text,
           p.prosecdef, p.proconfig IS NULL, CASE WHEN l.lanname = 'sql' THEN p.prosrc ELSE '' END,
           has_function_privilege(p.oid, 'EXECUTE'),
           (o.alone OR NOT has_schema_privilege('public', p.pronamespace, 'CREATE')) AND p.proowner = ANY (o.trusted),
           EXISTS (SELECT 1 FROM pg_depend d
                   WHERE d.classid = 'pg_proc'::regclass AND d.objid = p.oid AND d.deptype = 'e'),
           p.pronargs - p.pronargdefaults <= 1 AND EXISTS (
               SELECT 1 FROM pg_type t WHERE t.oid = p.proargtypes[0] AND t.typtype IN ('c', 'p')), p.proretset,
           {_COLUMNS}
    FROM pg_proc p JOIN pg_language l ON l.oid = p.prolang JOIN pg_namespace n ON n.oid = p.pronamespace, (
        SELECT array_agg(r.oid) FILTER (WHERE r.rolsuper OR r.oid = d.datdba OR r.rolname = current_user) AS trusted,
               bool_and(r.rolsuper OR r.oid = d.datdba OR r.rolname = current_user OR NOT r.rolcanlogin) AS alone
        FROM pg_roles r, pg_database d WHERE d.datname = current_database()) o
    WHERE n.nspname NOT IN ('pg_catalog', 'information_schema') ORDER BY p.oid LIMIT 50000"""
_OPERATORS = """
    SELECT o.oprname::text, n.nspname::text, f.pronamespace::regnamespace::text, f.proname::text,
           EXISTS (SELECT 1 FROM pg_operator s
                   WHERE s.oprnamespace = 'pg_catalog'::regnamespace AND s.oprname = o.oprname),
           ARRAY(SELECT t.typname::text FROM pg_type t
                 WHERE t.oid IN (o.oprleft, o.oprright) AND t.typnamespace <> 'pg_catalog'::regnamespace),
           ARRAY(SELECT DISTINCT m.nspname || '.' || c.relname
                 FROM pg_type s, pg_type t JOIN pg_attribute a ON a.atttypid = t.oid
                      JOIN pg_class c ON c.oid = a.attrelid JOIN pg_namespace m ON m.oid = c.relnamespace
                 WHERE s.oid IN (o.oprleft, o.oprright) AND s.typnamespace <> 'pg_catalog'::regnamespace
                   AND s.oid IN (t.oid, t.typelem, t.typbasetype))
    FROM pg_operator o JOIN pg_namespace n ON n.oid = o.oprnamespace JOIN pg_proc f ON f.oid = o.oprcode
    WHERE n.nspname <> 'pg_catalog'"""
_DOMAINS = """
    SELECT DISTINCT t.typname::text FROM pg_type t JOIN pg_constraint c ON c.contypid = t.oid
    JOIN pg_depend d ON d.classid = 'pg_constraint'::regclass AND d.objid = c.oid AND d.refclassid = 'pg_proc'::regclass
    JOIN pg_proc f ON f.oid = d.refobjid AND (f.pronamespace <> 'pg_catalog'::regnamespace OR f.provolatile = 'v')"""
_TYPES = "SELECT typname::text FROM pg_type WHERE pg_type_is_visible(oid)"
_RELATIONS = """
    SELECT n.nspname::text, c.relname::text FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
    WHERE n.nspname IN ('pg_catalog', 'information_schema') AND c.relkind IN ('r', 'v')
      AND has_table_privilege(c.oid, 'SELECT')"""
_PARTLY = """
    SELECT n.nspname::text, c.relname::text FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
    WHERE c.relkind IN ('r', 'p', 'v', 'm', 'f') AND NOT has_table_privilege(c.oid, 'SELECT')
      AND has_any_column_privilege(c.oid, 'SELECT')"""

Ask = Callable[[str], list[tuple[Any, ...]]]


@dataclass(frozen=True, slots=True)
class Function:
    """One overload of a function from outside the system catalog.

    Attributes:
        visible: whether its bare name may call it.
        kind: f function, a aggregate, w window function, p procedure.
        volatility: i immutable, s stable, v volatile.
        definer: whether it runs with the rights of its owner.
        unset: whether it runs under the settings of its caller.
        may: whether the role may call it.
        settled: whether nobody but those who are trusted can put another in its place.
        of_rows: whether `row.name` calls it.
        columns: what it calls its columns in FROM; none where it is as the item is called, None where nobody knows.
    """

    schema: str
    name: str
    visible: bool
    kind: str
    language: str
    volatility: str
    definer: bool
    unset: bool
    body: str
    may: bool
    settled: bool
    extension: bool
    of_rows: bool
    gives_rows: bool
    columns: tuple[str, ...] | None

    def barred(self) -> str:
        if self.kind != "f" and not self.extension:
            return f"it is {_KINDS.get(self.kind, 'no function')}"
        if self.definer:
            return "it runs with the rights of its owner (SECURITY DEFINER)"
        if not self.may:
            return "this role may not call it"
        if self.volatility == "v":
            return "it is declared VOLATILE, as a function is unless it says STABLE or IMMUTABLE"
        return ""


@dataclass(frozen=True, slots=True)
class Operator:
    """An operator from outside the system catalog.

    Attributes:
        function_schema, called: the function behind it.
        systems_too: whether the system has one of that name.
        types: those of its operands that are none of the system's; () takes values of any query.
        relations: the relations that have columns of these types, as `schema.name`.
    """

    schema: str
    function_schema: str
    called: str
    systems_too: bool
    types: frozenset[str]
    relations: frozenset[str]


class FunctionCatalog:
    """What a database has, and which of it queries may use; `computes` judges the body of a function in SQL."""

    def __init__(self, ask: Ask, computes: Callable[[str, FunctionCatalog], bool]) -> None:
        self._computes = computes
        system, found = (
            [(*row, None if shown is None else tuple(shown)) for *row, shown in ask(sql)]
            for sql in (_SYSTEM_FUNCTIONS, _OTHER_FUNCTIONS)
        )
        self._system = {name: steady for name, _, steady, *_ in system}
        """Names of the system's functions, and whether all of that name are immutable or stable."""
        self._others: dict[str, list[Function]] = {}
        others = [Function(*row) for row in found]
        for function in others:
            self._others.setdefault(function.name, []).append(function)
        aggregates = {name for name, aggregate, *_ in system if aggregate}
        self.aggregates = frozenset(aggregates | {f.name for f in others if f.kind == "a" and f.visible})
        self.gives_rows = frozenset(
            {n for n, _, _, rows, *_ in system if rows} | {f.name for f in others if f.gives_rows}
        )
        self.returns = {n: type_ for n, *_, type_, _ in system if type_ and n not in self._others}
        shown: dict[str, set[tuple[str, ...] | None]] = {}
        for name, own in [*((n, own) for n, *_, own in system), *((f.name, f.columns) for f in others)]:
            shown.setdefault(name, set()).add(own)
        self.columns = {name: one for name, (one, *more) in shown.items() if one is not None and not more}
        """What functions in FROM call their columns; () where it is as the item is called."""
        self._operators: dict[str, list[Operator]] = {}
        for name, schema, function_schema, called, both, types, relations in ask(_OPERATORS):
            operator = Operator(schema, function_schema, called, both, frozenset(types), frozenset(relations))
            self._operators.setdefault(name, []).append(operator)
        self._domains = frozenset(name for (name,) in ask(_DOMAINS))
        self._types = frozenset(name for (name,) in ask(_TYPES))
        self._relations = frozenset((schema, name) for schema, name in ask(_RELATIONS))
        self.partly_readable = frozenset((schema, name) for schema, name in ask(_PARTLY))
        """Relations of which the role may read some columns."""
        self._plain: dict[Function, bool] = {}

    def check(self, path: tuple[str, ...], allowed: frozenset[str], **place: Any) -> tuple[str, ...]:
        """Return the name by which a query calls a function: the system's where the database has one, too."""
        *schema, name = path
        if len(path) > 2:
            raise RefusedQueryError(f"call {name}() with no more than a schema before its name", **place)
        if schema and schema[0] in SYSTEM:
            self._check_system(name, place)
            return path
        own = [f for f in self._others.get(name, ()) if (f.schema == schema[0] if schema else f.visible)]
        if not own and not schema and name not in self._system and name in self._types:
            self.check_type(name, **place)  # `int4range(…)` may be a function, `citext(…)` is a cast
            return path
        if not own and (schema or name not in self._system):
            known = [*self._system, *(n for n, fs in self._others.items() if any(f.visible for f in fs))]
            raise UnknownNameError(f"no function named {name!r}{suggest(name, [*known, *TEXT_FUNCTIONS])}", **place)
        refusal = next((said for f in own if (said := self._refusal(f, allowed))), "")
        if own and not refusal:
            return path
        if refusal and (schema or name not in self._system):
            raise RefusedQueryError(refusal, **place)
        self._check_system(name, place)
        return ("pg_catalog", name) if refusal else path

    def check_operator(
        self, path: tuple[str, ...], allowed: frozenset[str], used: Callable[[Operator], bool]
    ) -> tuple[str, ...]:
        """Return the name of an operator: the system's where the own one, if `used`, may do anything."""
        *schema, name = path
        if schema and schema[0] == "pg_catalog":
            return path
        for own in self._operators.get(name, ()):
            if (schema and own.schema != schema[-1]) or not used(own):
                continue
            others = [f for f in self._others.get(own.called, ()) if f.schema == own.function_schema]
            steady = all(f.extension and f.volatility != "v" and not f.definer for f in others)
            if not steady and any(self._refusal(f, allowed) for f in others):
                if own.systems_too and not schema:
                    return ("pg_catalog", name)
                raise RefusedQueryError(
                    f"the operator {name} of the database calls the function {own.called!r}, and nobody here knows "
                    f"what it does: who trusts it connects with allow_functions=[{own.called!r}]"
                )
        return path

    def check_type(self, name: str, **place: Any) -> None:
        """Raise RefusedQueryError for a domain whose values are checked by a function that may do anything."""
        if name in self._domains:
            raise RefusedQueryError(
                f"the domain {name!r} checks its values by a function of the database's own", **place
            )

    def check_field(self, name: str, allowed: frozenset[str]) -> None:
        """Raise RefusedQueryError where `row.name` may call a function of the database's own that may do anything."""
        for function in self._others.get(name, ()):
            if function.of_rows and function.visible and self._refusal(function, allowed):
                raise RefusedQueryError(self._refusal(function, allowed))

    def finds_relation(self, schema: str, name: str) -> bool:
        """Return whether the system's schemas have a relation; raise an error where queries may not read it."""
        if (schema or "pg_catalog", name) not in self._relations:
            return False
        for pattern, reason in RELATIONS_REFUSED.items():
            if re.fullmatch(pattern, name):
                raise RefusedQueryError(f"the relation {name!r} is not read here: {reason}")
        return True

    def _check_system(self, name: str, place: Mapping[str, Any]) -> None:
        if name not in self._system:
            raise UnknownNameError(f"no function named {name!r}{suggest(name, self._system)}", **place)
        for pattern, reason in REFUSED.items():
            if re.fullmatch(pattern, name):
                raise RefusedQueryError(f"the function {name!r} is not allowed in a query: {reason}", **place)
        if not self._system[name] and name not in ALLOWED:
            why = "PostgreSQL calls it volatile, it may do anything"
            raise RefusedQueryError(f"the function {name!r} is not allowed in a query: {why}", **place)

    def _refusal(self, function: Function, allowed: frozenset[str]) -> str:
        if function.extension and function.volatility == "i" and not function.definer and function.may:
            return ""
        if self._is_plain(function):
            return ""
        if barred := function.barred():
            return f"the function {function.name!r} is one of the database's own that queries do not call: {barred}"
        return "" if function.name.lower() in allowed else refuse_own(function.name, function.name)

    def _is_plain(self, f: Function) -> bool:
        """Return whether a function only computes from its arguments, by what queries may call themselves."""
        if f.kind != "f" or f.language != "sql" or f.definer or not (f.unset and f.may and f.settled):
            return False
        if f not in self._plain:
            known = dict(self._plain)
            self._plain[f] = True  # until it is known: it may call itself
            if not self._computes(f.body, self):
                self._plain = {**known, f: False}  # what was taken for plain because of it may not be
        return self._plain[f]

    def is_steady(self, path: Iterable[str]) -> bool:
        """Return whether a function is one of the system's alone, and PostgreSQL calls it immutable or stable."""
        *schema, name = path
        mixed = not schema and any(f.visible for f in self._others.get(name, ()))
        return not mixed and self._system.get(name, False)
