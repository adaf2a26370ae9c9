"""A database as somebody may see it: without its private columns, or by a user's roles, each relation a SELECT of it.

Under a rule a value is computed only where its row is seen (`CASE WHEN rule THEN value END`): whatever an engine
evaluates first, a row that is not seen raises no error and reaches no function.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

from sqlglot import exp, parse_one
from sqlglot.errors import SqlglotError

from almanaq.corpus.inference import LoadReport
from almanaq.engines.common import RelationQueries
from almanaq.engines.protocols import Database, Session
from almanaq.engines.rendering import write_texts
from almanaq.errors import DatabaseError, ParameterError, SourceError, UsageError, first_line, suggest
from almanaq.suql.catalog.reading import written_name
from almanaq.suql.catalog.relations import ROW_COLUMN, Catalog, ColumnKind, Relation, RoleRule
from almanaq.suql.language import Language
from almanaq.suql.syntax.literals import literal
from almanaq.text.sql_literals import quote
from almanaq.users import EVERYTHING

if TYPE_CHECKING:
    from almanaq.users import User, Users

_MOST_VALUES = 10_000
_PLACES = "row_number() OVER () - 1"


class NarrowedDatabase:
    """A Database with a catalog of its own, which is a part of another's; that one stays open when this is closed."""

    def __init__(self, database: Database) -> None:
        self._database, self._of = database, Catalog(())
        self.name, self.dialect, self.typed = database.name, database.dialect, database.typed

    def catalog(self) -> Catalog:
        found = self._database.catalog()
        if found is not self._of:
            self.__dict__.pop("_seen", None)
            self._of = found
        return self._seen

    def follow(self, *, tables: bool = False, unknown: bool = False) -> None:
        if (follow := getattr(self._database, "follow", None)) is not None:
            follow(tables=tables, unknown=unknown)

    @cached_property
    def _seen(self) -> Catalog:
        raise NotImplementedError

    def language(self, catalog: Catalog) -> Language:
        return self._database.language(catalog)

    def session(self, deadline: float | None = None) -> Session:
        return self._database.session(deadline)

    def close(self) -> None: ...


class RedactedDatabase(NarrowedDatabase):
    """A Database whose catalog has no private columns. What a query reads of a table are the columns that are left."""

    @cached_property
    def _seen(self) -> Catalog:
        catalog = self._database.catalog()
        private = {(r.name, column.name) for r in catalog.relations for column in r.columns if column.private}
        if not private:
            return catalog
        return replace(catalog, relations=tuple(_without(relation, private) for relation in catalog.relations))

    @cached_property
    def reports(self) -> tuple[LoadReport, ...]:
        """How the files were read, without the columns called as a private one is: reports quote cells."""
        catalog = self._database.catalog()
        private = {column.name.casefold() for r in catalog.relations for column in r.columns if column.private}
        return tuple(
            replace(report, columns=tuple(each for each in report.columns if each.name.casefold() not in private))
            for report in getattr(self._database, "reports", ())
        )


def _without(relation: Relation, private: set[tuple[str, str]]) -> Relation:
    """Return a relation without its private columns, and without what they are part of: keys, names, references."""
    hidden = {column for table, column in private if table == relation.name}
    # A row's address says nothing of its cells; the key of one column that names rows elsewhere may be private.
    row_source = None if hidden & {*relation.key} else relation.row_source or relation.row_id
    row_id = quote(ROW_COLUMN) if hidden and row_source else None if hidden else relation.row_id
    public = relation.with_references(lambda table, column: (table, column) not in private)
    return replace(
        public,
        columns=tuple(column for column in public.columns if column.name not in hidden),
        key=relation.key if hidden.isdisjoint(relation.key) else (),
        named_by="" if relation.named_by in hidden else relation.named_by,
        row_id=row_id,
        row_source=(row_source or "") if row_id else "",
        withheld=tuple(column.name for column in relation.columns if column.name in hidden),
    )


class RestrictedDatabase(NarrowedDatabase):
    """A Database whose catalog is what a user may see; samples, values and numbers of rows are of the rows seen."""

    def __init__(self, database: Database, user: User) -> None:
        super().__init__(database)
        self._user = user

    @cached_property
    def _seen(self) -> Catalog:
        narrowed = restrict(self._database.catalog(), self._user, self.dialect)
        with self._database.session() as session:
            relations = tuple(self._with_statistics(relation, session) for relation in narrowed.relations)
        return replace(narrowed, relations=relations)

    def _with_statistics(self, relation: Relation, session: Session) -> Relation:
        if not relation.definition:
            return relation

        def rows(sql: str) -> list[tuple[Any, ...]]:
            found = session.fetch(sql)
            return list(zip(*(column.to_pylist() for column in found.columns), strict=True))

        try:
            queries = RelationQueries(rows, self.dialect)
            sampled = queries.add_samples(relation, infer=False)
            if sampled.rows is None and relation.numbered:
                ((count,),) = rows(f"SELECT count(*) FROM ({relation.definition}) AS part")
                sampled = replace(sampled, rows=int(count))
            columns = []
            for column in sampled.columns:
                if column.kind is ColumnKind.ENUM:
                    seen = queries.values(relation, column, _MOST_VALUES)
                    ordered = filter({*seen}.__contains__, column.values) if column.ordered else seen
                    column = replace(column, values=tuple(ordered))
                columns.append(column)
        except DatabaseError as error:
            # The engine's words may quote a row that is not seen.
            raise SourceError(f"the rules for {relation.name!r} fail: try them as conditions of a query") from error
        return replace(sampled, columns=tuple(columns))


def restrict(catalog: Catalog, user: User, dialect: str) -> Catalog:
    """Return the relations and columns of a catalog that a user's roles name, each with the SELECT of its rows.

    Rows of several roles come together; a column is there, or unmasked, where every such role shows it.
    """
    ruled = [(relation, [rule for rule in relation.roles if rule.role in user.roles]) for relation in catalog.relations]
    parts = [_narrow(relation, rules, user, dialect) for relation, rules in ruled if rules]
    plain = {
        (relation.name, column.name)
        for relation, rules in ruled
        if rules
        for column in relation.columns
        if not any(_folded(column.name, (*rule.hidden, *dict(rule.masked))) for rule in rules)
    }
    # References rest on columns that are neither hidden nor masked, of relations that are seen.
    relations = [part.with_references(lambda table, column: (table, column) in plain) for part in parts]
    # How many values have no partner is of all rows.
    whole = {relation.name for relation, rules in ruled if rules and not all(rule.rows for rule in rules)}
    relations = [
        replace(part, near_references=tuple(n for n in part.near_references if {part.name, n.relation} <= whole))
        for part in relations
    ]
    return replace(catalog, relations=tuple(relations), hidden=(), broken=(), unlisted=(), restricted=True)


def hash_rights(catalog: Catalog) -> str:
    """Return what two users who may see the same have in common."""
    seen = [(r.name, r.definition, *(column.name for column in r.columns)) for r in catalog.relations]
    return hashlib.sha256(repr(seen).encode()).hexdigest()[:32]


def check_users(catalog: Catalog, users: Users, dialect: str) -> None:
    """Raise UsageError for a role that no rule knows, SourceError for a rule that lacks an attribute of a user."""
    roles = {rule.role for relation in catalog.relations for rule in relation.roles} | {EVERYTHING}
    for user in users.known:
        for role in user.roles:
            if role not in roles:
                raise UsageError(
                    f"the user {user.name!r} has the role {role!r}, which no table of the schema file names: write "
                    f"[TABLE.roles.{role}]{suggest(role, sorted(roles))}"
                )
        restrict(catalog, user, dialect)


def _folded(name: str, names: Sequence[str]) -> bool:
    return name.casefold() in {each.casefold() for each in names}


def _narrow(relation: Relation, rules: Sequence[RoleRule], user: User, dialect: str) -> Relation:
    hidden = [name for rule in rules for name in rule.hidden]
    masks = {name.casefold(): (rule, sql) for rule in reversed(rules) for name, sql in rule.masked}
    conditions = [_expression(relation, rule, rule.rows, user, dialect) for rule in rules if rule.rows]
    condition = exp.or_(*conditions) if len(conditions) == len(rules) else None
    if not hidden and not masks and condition is None:
        return replace(relation, roles=())
    columns, shown = [], []
    for column in relation.columns:
        if _folded(column.name, hidden):
            continue
        value: exp.Expr = exp.column(exp.to_identifier(column.name, quoted=True))
        rule, mask = masks.get(column.name.casefold(), (None, ""))
        if rule is not None:  # a value of the column's type, or of the nearest that holds both
            value = exp.Case(default=exp.paren(_expression(relation, rule, mask, user, dialect))).when("1 = 0", value)
        if condition is not None:
            value = exp.Case().when(condition.copy(), value)
        shown.append(exp.alias_(value, exp.to_identifier(column.name, quoted=True)))
        if rule is not None or condition is not None:  # nothing that is known of the rows of the whole
            column = replace(column, samples=(), written="", caution="")
        if rule is not None:
            column = replace(column, kind=ColumnKind.STRUCTURED, values=(), ordered=False)
        columns.append(column)
    database, schema, name = ["", "", *relation.location][-3:]
    table = exp.table_(name, db=schema or None, catalog=database or None, quoted=True)
    select = exp.Select(expressions=shown, from_=exp.From(this=table))
    if condition is not None:
        select.set("where", exp.Where(this=condition))
        if dialect == "postgres":  # it moves no condition of a query below an OFFSET, not even one without columns
            select.set("offset", exp.Offset(expression=exp.Literal.number(0)))
    key = relation.key if all(any(c.name == name for c in columns) for name in relation.key) else ()
    key = () if any(name.casefold() in masks for name in key) else key
    numbered = len(key) != 1 and dialect == "duckdb" and relation.row_id is not None
    address = written_name(key, "postgres") if len(key) == 1 else _PLACES if numbered else ""
    return replace(
        relation,
        columns=tuple(columns),
        key=key,
        named_by="" if _folded(relation.named_by, [*hidden, *masks]) else relation.named_by,
        row_id=quote(ROW_COLUMN) if address else None,  # a list of aliases may rename the key
        row_source=address,
        numbered=numbered or (relation.numbered and len(key) == 1),
        rows=None,
        roles=(),
        definition=write_texts(select, dialect).sql(dialect, comments=False),
    )


def _expression(relation: Relation, rule: RoleRule, sql: str, user: User, dialect: str) -> exp.Expr:
    where = f"[{relation.name}.roles.{rule.role}]"
    try:
        tree = parse_one(f"SELECT 1 WHERE (\n{sql}\n)", read=dialect).args["where"].this
    except (SqlglotError, KeyError, AttributeError) as error:
        raise SourceError(f"{where}: {sql!r} is no expression: {first_line(error)}") from error
    if not isinstance(tree, exp.Paren) or tree.find(exp.Query):
        raise SourceError(f"{where}: {sql!r} must be one expression over columns of {relation.name}, no subquery")
    for column in tree.find_all(exp.Column):
        if relation.column(column.name) is None and not _folded(column.name, relation.withheld):
            names = [each.name for each in relation.columns]
            raise SourceError(f"{where}: no column {column.name!r}{suggest(column.name, names)}")
    for mark in list(tree.find_all(exp.Placeholder, exp.Parameter)):
        try:
            mark.replace(literal(user.value(mark.name), dialect))
        except (KeyError, ParameterError) as error:
            raise SourceError(f"{where}: the user {user.name!r} has no attribute {mark.name!r}") from error
    return tree
