"""Schema files: written from a catalog, read, and applied to what a database says of itself."""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from almanaq.corpus.files.sniff import TYPES, Hints, ReadOptions
from almanaq.corpus.inference import ORDERS, Marks
from almanaq.corpus.schema_places import schema_files
from almanaq.errors import SourceError, suggest
from almanaq.suql.catalog.definitions import apply_terms
from almanaq.suql.catalog.reading import naming_column
from almanaq.suql.catalog.relations import Catalog, Column, ColumnKind, NearReference, Relation, RoleRule
from almanaq.suql.catalog.terms import (
    TERM_KEYS,
    Term,
    Terms,
    read_sections,
    write_key,
    write_sections,
    write_settings,
    write_toml,
)


def describe(catalog: Catalog, schema: Schema | None = None) -> str:
    """Return the catalog as a schema file, with types, row counts and samples as comments; none of a private column."""
    declared = {catalog.relation(name).name: entry for name, entry in schema.relations.items()} if schema else {}
    nothing = RelationSchema()
    return "\n".join(_relation_text(each, declared.get(each.name, nothing)) for each in catalog.relations)


def _relation_text(relation: Relation, said: RelationSchema) -> str:
    name = write_key(relation.name)
    lines = [] if relation.rows is None else [f"# {relation.rows:,} rows"]
    if relation.origin:
        lines.append(f"# read from {relation.origin}")
    if relation.unread:
        lines.append(f"# its rows could not be looked at: {relation.unread}")
    lines.append(f"[{name}]")
    lines += write_settings({"description": relation.description, "key": relation.key, "named_by": relation.named_by})
    lines += write_settings({"foreign_keys": [_write_reference(*each) for each in relation.foreign_keys]})
    for near in relation.near_references:
        (proposed,) = write_settings({"foreign_keys": [_write_reference((near.column,), near.relation, (near.key,))]})
        lines.append(f"# {proposed}  # {near.share:.1%} of its values; joins keep the other rows")
    hints, marks = said.hints, said.marks
    fields = {"header": hints.header, "names": hints.names, "separator": hints.separator, "encoding": hints.encoding}
    if of_file := write_settings({**fields, "days": marks.days, "decimal": marks.decimal}):
        lines += [f"[{name}.file]", *of_file]
    lines += write_sections(name, said.terms)
    for rule in relation.roles:
        sees = {"rows": rule.rows, "hidden": rule.hidden, "masked": dict(rule.masked)}
        lines += [f"[{name}.roles.{write_key(rule.role)}]", *write_settings(sees)]
    types = said.as_read_options().types
    written = {given.casefold(): entry.values for given, entry in said.columns.items()}
    for column in relation.columns:
        folded = column.name.casefold()
        # Of a private column only what a person wrote of it is written again, nothing that its cells or type hold.
        shown = replace(column, samples=(), values=written.get(folded, ())) if column.private else column
        lines.extend(_column_lines(name, shown, types.get(folded, "")))
    return "\n".join(lines) + "\n"


def _write_reference(own: tuple[str, ...], other: str, theirs: tuple[str, ...]) -> dict[str, object]:
    return {"columns": own, "table": other, "references": theirs}


def _column_lines(relation: str, column: Column, type_: str) -> list[str]:
    samples = ", ".join(map(write_toml, column.samples[:3]))
    lines = [
        f"[{relation}.columns.{write_key(column.name)}]",
        f"# {column.type}{'[]' if column.array else ''}{', e.g. ' + samples if samples else ''}",
        f'kind = "{column.kind.value}"',
    ]
    lines += write_settings({"type": type_})
    if column.kind is ColumnKind.ENUM:
        # Without an order they are left out when this is read: nobody shall take how they stand here for one.
        listed = column.ordered or not column.values
        if column.values or not column.private:
            lines.append(f"{'' if listed else '# '}values = {write_toml(column.values)}")
    said = {"description": column.description, "private": column.private or None}
    return [*lines, *write_settings(said)]


ForeignKey = tuple[tuple[str, ...], str, tuple[str, ...]]


TABLE_KEYS = ("description", "key", "foreign_keys", "columns", "named_by", "file", "roles", *TERM_KEYS)
ROLE_KEYS = ("rows", "hidden", "masked")
FILE_KEYS = ("header", "names", "separator", "encoding", "days", "decimal")
COLUMN_KEYS = ("kind", "description", "private", "values", "type")
"""What may be said of a table, of what a role sees of it, of its file and of a column."""


@dataclass(frozen=True, slots=True)
class ColumnSchema:
    """What is said of a column; None or empty: nothing. `written` and `caution` as of a Column."""

    kind: ColumnKind | None = None
    description: str | None = None
    private: bool | None = None
    values: tuple[str, ...] = ()
    type: str = ""
    written: str = ""
    caution: str = ""


@dataclass(frozen=True, slots=True)
class RelationSchema:
    """What is said of a relation; None or empty: nothing. `hints` and `marks` say how its file is written."""

    description: str | None = None
    key: tuple[str, ...] = ()
    foreign_keys: tuple[ForeignKey, ...] = ()
    columns: Mapping[str, ColumnSchema] = field(default_factory=dict)
    named_by: str = ""
    hints: Hints = field(default_factory=Hints)
    marks: Marks = field(default_factory=Marks)
    roles: tuple[RoleRule, ...] = ()
    terms: tuple[Term, ...] = ()
    near_references: tuple[NearReference, ...] = ()

    def as_read_options(self) -> ReadOptions:
        types = {name.casefold(): column.type for name, column in self.columns.items() if column.type}
        return ReadOptions(self.hints, self.marks, types)


@dataclass(frozen=True, slots=True)
class Schema:
    """What is said of a source, by relation; `name` is that of the file, for messages."""

    relations: Mapping[str, RelationSchema] = field(default_factory=dict)
    name: str = "schema"


def schema_beside(sources: Iterable[Path]) -> Schema | None:
    """Return what the schema files of files and folders say together, None where there is none.

    Of a folder, also those of what lies in it count: what is private stays so, whatever way its file is named. Beside
    `patients.csv` lies `patients.csv.almanaq.toml`, or `patients.almanaq.toml`. Where two speak of one table, the first
    counts (the folder's before those in it), and a column that either calls private is.
    """
    found: dict[Path, None] = {}
    for source in sources:
        found |= dict.fromkeys(schema_files(source))
    schemas = [read_schema(path) for path in found]
    relations: dict[str, RelationSchema] = {}
    written: dict[str, str] = {}
    for schema in schemas:
        for given, entry in schema.relations.items():
            name = written.setdefault(given.casefold(), given)
            relations[name] = _joined(relations[name], entry) if name in relations else entry
    return Schema(relations, ", ".join(schema.name for schema in schemas)) if schemas else None


def _joined(first: RelationSchema, other: RelationSchema) -> RelationSchema:
    """Return what is said first of a table, with the columns that only the other names, and every private one."""
    columns = dict(first.columns)
    written = {name.casefold(): name for name in columns}
    for given, column in other.columns.items():
        name = written.setdefault(given.casefold(), given)
        known = columns.get(name, column)
        columns[name] = replace(known, private=True) if column.private else known
    ruled = {rule.role for rule in first.roles}
    roles = (*first.roles, *(rule for rule in other.roles if rule.role not in ruled))
    named = {(term.kind, term.name) for term in first.terms}
    terms = (*first.terms, *(term for term in other.terms if (term.kind, term.name) not in named))
    return replace(first, columns=columns, roles=roles, terms=terms)


def read_schema(path: str | Path) -> Schema:
    path = Path(path)
    try:
        return parse_schema(path.read_text(encoding="utf-8"), path.name)
    except OSError as error:
        raise SourceError(f"cannot read the schema file {str(path)!r}: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise SourceError(f"the schema file {path.name} is not UTF-8") from error


def parse_schema(text: str, name: str = "schema") -> Schema:
    try:
        document = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise SourceError(f"{name} is not TOML: {error}") from error
    relations = {key: _relation(entry, f"{name}, [{key}]") for key, entry in document.items()}
    return Schema(
        {key: replace(each, terms=read_sections(key, document[key], text, name)) for key, each in relations.items()},
        name,
    )


def _relation(entry: Any, where: str) -> RelationSchema:
    _check_entry(entry, TABLE_KEYS, where)
    columns, roles = _get(entry, "columns", dict, where) or {}, _get(entry, "roles", dict, where) or {}
    hints, marks = _file(entry.get("file", {}), f"{where}, file")
    return RelationSchema(
        _get(entry, "description", str, where),
        _strings(entry, "key", where),
        tuple(_foreign_key(item, where) for item in entry.get("foreign_keys", [])),
        {name: _column(column, f"{where}, column {name!r}") for name, column in columns.items()},
        _get(entry, "named_by", str, where) or "",
        hints,
        marks,
        tuple(_role(role, rule, f"{where}, role {role!r}") for role, rule in roles.items()),
    )


def _role(role: str, entry: Any, where: str) -> RoleRule:
    _check_entry(entry, ROLE_KEYS, where)
    masked = _get(entry, "masked", dict, where) or {}
    if not all(isinstance(sql, str) and sql.strip() for sql in masked.values()):
        raise SourceError(f'{where}: masked is SQL by column, such as {{phone = "NULL"}}')
    rows = _get(entry, "rows", str, where)
    if rows is not None and not rows.strip():
        raise SourceError(f"{where}: rows is empty: leave it out for every row")
    return RoleRule(role, rows or "", _strings(entry, "hidden", where), tuple(masked.items()))


def _file(entry: Any, where: str) -> tuple[Hints, Marks]:
    _check_entry(entry, FILE_KEYS, where)
    for name, known in (("days", list(ORDERS)), ("decimal", [",", "."])):
        if entry.get(name, known[0]) not in known:
            raise SourceError(f"{where}: {name} must be one of {', '.join(known)}, not {entry[name]!r}")
    separator = _get(entry, "separator", str, where) or ""
    if len(separator) > 1:
        raise SourceError(f"{where}: separator must be one character, not {separator!r}")
    names = _strings(entry, "names", where)
    if len({name.strip().casefold() for name in names} - {""}) < len(names):
        raise SourceError(f"{where}: names must be different from one another, and none empty")
    hints = Hints(_get(entry, "encoding", str, where) or "", separator, _get(entry, "header", bool, where), names)
    return hints, Marks(entry.get("decimal"), entry.get("days"))


def _column(entry: Any, where: str) -> ColumnSchema:
    _check_entry(entry, COLUMN_KEYS, where)
    kind = _get(entry, "kind", str, where)
    kinds = [k.value for k in ColumnKind]
    if kind is not None and kind.lower() not in kinds:
        raise SourceError(f"{where}: no kind {kind!r}{suggest(kind, kinds)}")
    values = _strings(entry, "values", where)
    if values and kind is not None and kind.lower() != "enum":
        raise SourceError(f'{where}: only kind = "enum" has values')
    type_ = _get(entry, "type", str, where) or ""
    if type_ and type_ not in TYPES:
        raise SourceError(f"{where}: no type {type_!r}{suggest(type_, TYPES)}")
    found = ColumnKind(kind.lower()) if kind else (ColumnKind.ENUM if values else None)
    return ColumnSchema(
        found, _get(entry, "description", str, where), _get(entry, "private", bool, where), values, type_
    )


def _foreign_key(item: Any, where: str) -> ForeignKey:
    _check_entry(item, ("columns", "table", "references"), f"{where}, foreign_keys")
    table = _get(item, "table", str, where)
    own, theirs = _strings(item, "columns", where), _strings(item, "references", where)
    if not table or not own or len(own) != len(theirs):
        raise SourceError(f'{where}: a foreign key is {{columns = ["a"], table = "other", references = ["id"]}}')
    return own, table, theirs


def _check_entry(entry: Any, known: tuple[str, ...], where: str) -> None:
    if not isinstance(entry, dict):
        raise SourceError(f"{where}: a table of settings is expected, not {entry!r}")
    for name in entry:
        if name not in known:
            raise SourceError(f"{where}: no setting {name!r}{suggest(name, known)}")


def _get(entry: Mapping[str, Any], name: str, type_: type, where: str) -> Any:
    value = entry.get(name)
    if value is not None and not isinstance(value, type_):
        expected = {str: "a string", bool: "true or false", dict: "a table of settings"}[type_]
        raise SourceError(f"{where}: {name} must be {expected}, not {value!r}")
    return value


def _strings(entry: Mapping[str, Any], name: str, where: str) -> tuple[str, ...]:
    value = entry.get(name, [])
    if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
        raise SourceError(f"{where}: {name} must be a list of strings, not {value!r}")
    return tuple(value)


def apply_schema(catalog: Catalog, schema: Schema) -> Catalog:
    """Return the catalog with what the schema says in place of what was found; raises SourceError for unknown names.

    Keys are taken over unchecked: the database checks them against its rows. The values of an ENUM without declared
    ones are left empty: the database reads them.
    """
    declared: dict[str, RelationSchema] = {}
    for name, entry in schema.relations.items():
        found = catalog.find(name)
        if found is None:
            raise SourceError(f"{schema.name}: {catalog.unknown(name).replace('relation named', 'table', 1)}")
        declared[found.name] = entry
    nothing = RelationSchema()
    applied = (_apply(r, declared.get(r.name, nothing), schema.name, catalog) for r in catalog.relations)
    relations = tuple(r if r.named_by else replace(r, named_by=naming_column(r)) for r in applied)
    terms = Terms(tuple(term for entry in declared.values() for term in entry.terms))
    return apply_terms(replace(catalog, relations=relations), terms)


def keep_private(catalog: Catalog, schema: Schema) -> Catalog:
    """Return the catalog in which each column is private that a schema calls so; what it says of others is left out."""
    marked = {
        (found.name, name.casefold())
        for table, entry in schema.relations.items()
        if (found := catalog.find(table)) is not None
        for name, column in entry.columns.items()
        if column.private
    }

    def mark(relation: Relation) -> Relation:
        private = [c.private or (relation.name, c.name.casefold()) in marked for c in relation.columns]
        columns = (replace(c, private=each) for c, each in zip(relation.columns, private, strict=True))
        return replace(relation, columns=tuple(columns))

    return replace(catalog, relations=tuple(map(mark, catalog.relations)))


def check_keys(catalog: Catalog, schema: Schema, holds: Callable[[Relation, tuple[str, ...]], bool]) -> None:
    for name, declared in schema.relations.items():
        relation = catalog.relation(name)
        if declared.key and not holds(relation, relation.key):
            raise SourceError(
                f"{schema.name}, [{relation.name}]: the key ({', '.join(relation.key)}) is not unique or has nulls; "
                "name columns that tell every row apart, or leave the key out"
            )


def _apply(relation: Relation, said: RelationSchema, where: str, catalog: Catalog) -> Relation:
    place = f"{where}, [{relation.name}]"
    known = {column.name.casefold(): column.name for column in relation.columns}
    own = [name for names, _, _ in said.foreign_keys for name in names]
    ruled = [name for rule in said.roles for name in (*rule.hidden, *dict(rule.masked))]
    for name in filter(None, (*said.columns, *said.key, said.named_by, *own, *ruled)):
        if name.casefold() not in known:
            raise SourceError(f"{place}: no column {name!r}{suggest(name, known.values())}")
    columns = {name.casefold(): entry for name, entry in said.columns.items()}
    return replace(
        relation,
        description=relation.description if said.description is None else said.description,
        key=tuple(known[name.casefold()] for name in said.key) or relation.key,
        foreign_keys=tuple(_resolve(key, relation, catalog) for key in said.foreign_keys) or relation.foreign_keys,
        near_references=tuple(
            near for near in said.near_references or relation.near_references if near.column not in own
        ),
        named_by=known.get(said.named_by.casefold(), relation.named_by),
        roles=said.roles or relation.roles,
        columns=tuple(
            _apply_column(c, entry, place) if (entry := columns.get(c.name.casefold())) else c for c in relation.columns
        ),
    )


def _resolve(key: ForeignKey, relation: Relation, catalog: Catalog) -> ForeignKey:
    """Return a foreign key with the catalog's own names; as it is where the table is missing.

    Of several tables of a name, it means the one of the relation's own schema.
    """
    own, table, theirs = key
    other = catalog.find(table) or catalog.find(".".join((*relation.location[-2:-1], table)))
    if other is None:
        return key

    def names(within: Relation, given: tuple[str, ...]) -> tuple[str, ...]:
        return tuple(name if (column := within.column(name)) is None else column.name for name in given)

    return names(relation, own), other.name, names(other, theirs)


def _apply_column(column: Column, said: ColumnSchema, where: str) -> Column:
    kind = said.kind or column.kind
    if kind is not ColumnKind.STRUCTURED and column.type != "text":
        raise SourceError(f"{where}, column {column.name!r}: {kind.value} needs text, and the column is {column.type}")
    values = (said.values or column.values) if kind is ColumnKind.ENUM else ()
    return replace(
        column,
        kind=kind,
        values=values,
        ordered=bool(said.values) or (column.ordered and bool(values)),
        description=column.description if said.description is None else said.description,
        private=column.private if said.private is None else said.private,
        written=said.written or column.written,
        caution=said.caution or column.caution,
    )
