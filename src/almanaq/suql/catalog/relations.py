"""The relations that queries may name, their schema for sqlglot, and statements that list or describe them."""

from __future__ import annotations

import itertools
import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum
from functools import cache
from textwrap import shorten
from typing import Any

from sqlglot import exp
from sqlglot.dialects.dialect import Dialect
from sqlglot.optimizer.annotate_types import annotate_types
from sqlglot.schema import MappingSchema

from almanaq.errors import SourceError, UnknownNameError, suggest
from almanaq.suql.catalog.terms import Term
from almanaq.suql.syntax.nodes import nodes_of, quoted

_ASCII_LOWER = {upper: upper + 32 for upper in range(ord("A"), ord("Z") + 1)}
_FOLD_ALL = ("duckdb", "spark", "databricks", "sqlite", "mysql", "tsql")
"""Dialects in which names match in any case, quoted ones too."""


def fold(name: str, dialect: str, *, quoted: bool) -> str:
    """Return a name in the form by which an engine finds it.

    >>> fold("Öl", "duckdb", quoted=False), fold("Id", "duckdb", quoted=True), fold("Id", "postgres", quoted=True)
    ('Öl', 'id', 'Id')
    """
    if dialect in _FOLD_ALL:
        return name.translate(_ASCII_LOWER)
    if dialect == "postgres":
        return name if quoted else name.translate(_ASCII_LOWER)
    identifier = exp.to_identifier(name, quoted=quoted)
    return Dialect.get_or_raise(dialect).normalize_identifier(identifier).name


def schema_of(relations: Iterable[Relation], dialect: str) -> MappingSchema:
    types: dict[str, exp.DataType] = {}

    def type_of(column: Column) -> exp.DataType:
        written = column.type + ("[]" if column.array else "")
        return types.get(written) or types.setdefault(written, _read_type(written).copy())

    mapping = {r.name: {fold(c.name, dialect, quoted=True): type_of(c) for c in r.columns} for r in relations}
    return MappingSchema(mapping, dialect=dialect, normalize=False)  # type: ignore[arg-type]


@cache
def _read_type(written: str) -> exp.DataType:
    return exp.DataType.from_str(written, dialect="postgres", udt=True)


def typed(tree: exp.Query, schema: MappingSchema, dialect: str) -> exp.Query:
    """Return a qualified query, which is changed, with the type of every expression that is known."""
    renamed = [(table, table.this) for table in nodes_of(tree, exp.Table) if table.alias_column_names]
    for number, (table, _) in enumerate(renamed):  # `t AS a(x, y)` has the columns of `t` in their order
        columns = schema.column_names(table)
        types = [schema.get_column_type(table, column) for column in columns]
        names = [*table.alias_column_names, *columns[len(table.alias_column_names) :]]
        own = quoted(f"{table.name} {number}")
        schema.add_table(exp.Table(this=own), dict(zip(names, types, strict=False)))
        table.set("this", own.copy())
    made = annotate_types(tree, schema=schema, expression_metadata=_read_metadata(dialect), dialect=dialect)
    for table, name in renamed:
        table.set("this", name)
    return made


@cache
def _read_metadata(dialect: str) -> dict[Any, Any]:
    known = Dialect.get_or_raise(dialect).EXPRESSION_METADATA
    listed = {"annotator": lambda annotator, node: annotator._set_type(node, node.meta.get("returns"))}
    own: dict[Any, Any] = {
        exp.Extract: {"returns": exp.DType.DECIMAL},
        exp.Sign: {"returns": exp.DType.DOUBLE},
        exp.RegexpCount: {"returns": exp.DType.INT},
        exp.ArrayPosition: {"returns": exp.DType.INT},
        exp.Anonymous: listed,
        exp.AnonymousAggFunc: listed,
        exp.Sub: {"annotator": _annotate_difference},
    }
    return {**known, **own}


def _annotate_difference(annotator: Any, node: exp.Expr) -> exp.Expr:
    """A day less a day is a number of days."""
    annotator._annotate_binary(node)
    if node.this.is_type("date") and node.expression.is_type("date"):
        annotator._set_type(node, exp.DType.INT)
    return node


_FIXED = re.compile(
    r"boolean|smallint|integer|bigint|real|double precision|date|time|timestamp|timestamptz|(?:numeric|decimal)\(.*\)"
)
"""Types whose values are small and come as the same Arrow type from every batch of rows."""


_PLAIN_TYPES = frozenset(["VARCHAR", "BIGINT", "INTEGER", "DOUBLE", "BOOLEAN", "DATE", "TIMESTAMP"])


class ColumnKind(Enum):
    """How the agent and the compiler treat a column: plain SQL, prose for answer(), or a closed set of values."""

    STRUCTURED = "structured"
    FREE_TEXT = "free_text"
    ENUM = "enum"


@dataclass(frozen=True, slots=True)
class Column:
    """One column.

    Attributes:
        type: the SQL type in the PostgreSQL dialect, without `[]`; `text` for enums.
        array: whether the column holds an array of `type`.
        values: the permitted values of an ENUM column; empty otherwise.
        ordered: whether `values` stand in an order that somebody declared: the column's type, or the schema file.
        samples: a few distinct values, for prompts and the schema listing.
        private: never sent to a remote model (semantics 16).
        written: a cell as the source's file writes it, where queries compare it in another spelling; "" where not.
        caution: what was lost or guessed where its file was read, without any cell; "" for nothing.
    """

    name: str
    type: str
    kind: ColumnKind = ColumnKind.STRUCTURED
    array: bool = False
    values: tuple[str, ...] = ()
    description: str = ""
    samples: tuple[str, ...] = ()
    private: bool = False
    ordered: bool = False
    written: str = ""
    caution: str = ""

    @property
    def is_light(self) -> bool:
        """Whether its values are small as far as is known: of a fixed size, or text without a long sample."""
        if self.array or self.kind is ColumnKind.FREE_TEXT:
            return False
        short = bool(self.samples) and not any(sample.endswith("…") for sample in self.samples)
        return self.kind is ColumnKind.ENUM or bool(_FIXED.fullmatch(self.type)) or (self.type == "text" and short)


@dataclass(frozen=True, slots=True)
class RoleRule:
    """What one role sees of a relation.

    Attributes:
        rows: a condition in the engine's SQL, `:name` an attribute of the user; "" for every row.
        hidden: columns that are not there.
        masked: columns, each with the SQL that stands for its values.
    """

    role: str
    rows: str = ""
    hidden: tuple[str, ...] = ()
    masked: tuple[tuple[str, str], ...] = ()


ROW_COLUMN = "row of it"
"""What carries the `row_id` of a relation out of a SELECT of some of its columns."""


@dataclass(frozen=True, slots=True)
class NearReference:
    """A column whose values nearly all lie in a key; only outer joins along it keep every row.

    Attributes:
        relation, key: the relation that the column seems to refer to, and its key.
        values: how many rows have a value; `strays` those whose value the key lacks.
    """

    column: str
    relation: str
    key: str
    values: int
    strays: int

    @property
    def share(self) -> float:
        return 1 - self.strays / self.values


@dataclass(frozen=True, slots=True)
class Relation:
    """One table or view.

    Attributes:
        name: as queries write it.
        location: the identifiers by which the database finds it, outermost first.
        key: columns checked to be unique and not null together; empty when none are declared.
        row_id: SQL expression over the relation that identifies a row within one snapshot (`rowid`), or None; kept in
            PostgreSQL's notation, as `Column.type` is, and written in the dialect of the engine when it is used.
        row_source: what `row_id` stands for in the whole relation, where it is read without some columns.
        numbered: whether `row_id` is the place of a row in the relation, counted from 0: no number is left out.
        rows: number of rows, None when unknown.
        foreign_keys: (own columns, other relation, its columns).
        unread: why the database could not show any rows of it, "" where it could.
        named_by: the column whose values name the rows, as people speak of them; "" where none is known to.
        origin: the file that it was read from and how that is written; "" for one of a database.
        withheld: names of columns that are there, and that no query may read.
        roles: what each role sees of it.
        definition: the SELECT, in the engine's SQL, that is read in its place; "" where the whole relation is.
        near_references: columns that nobody declared a foreign key, and that refer to a key but for some values.
    """

    name: str
    location: tuple[str, ...]
    columns: tuple[Column, ...]
    key: tuple[str, ...] = ()
    row_id: str | None = None
    row_source: str = ""
    numbered: bool = False
    rows: int | None = None
    description: str = ""
    foreign_keys: tuple[tuple[tuple[str, ...], str, tuple[str, ...]], ...] = ()
    unread: str = ""
    named_by: str = ""
    origin: str = ""
    withheld: tuple[str, ...] = ()
    roles: tuple[RoleRule, ...] = ()
    definition: str = ""
    near_references: tuple[NearReference, ...] = ()

    @property
    def is_narrowed(self) -> bool:
        return bool(self.withheld or self.definition)

    def with_references(self, seen: Callable[[str, str], bool]) -> Relation:
        """Return the relation with those of its references all of whose columns are seen."""
        return replace(
            self,
            foreign_keys=tuple(
                (own, other, theirs)
                for own, other, theirs in self.foreign_keys
                if all(seen(self.name, name) for name in own) and all(seen(other, name) for name in theirs)
            ),
            near_references=tuple(
                near for near in self.near_references if seen(self.name, near.column) and seen(near.relation, near.key)
            ),
        )

    def column(self, name: str) -> Column | None:
        """Return the column of that name, else one whose name differs only in case, or None."""
        folded = name.casefold()
        alike = [c for c in self.columns if c.name.casefold() == folded]
        return next((c for c in alike if c.name == name), alike[0] if alike else None)


_MOST_LINES, _WIDEST = 20, 120
"""Of a catalog as it is shown."""


@dataclass(frozen=True, slots=True, repr=False)
class Catalog:
    """The relations of one source, in a stable order.

    Attributes:
        hidden: schema.table of relations that are there, and that the user may not read.
        broken: schema.view of each view that the database cannot read, and why; it is not among the relations.
        separate: whether each schema is a database of its own, as of a folder of SQLite files: what one question needs
            lies in one of them. The schemas of a server's database are joined like one.
        terms: metrics, dimensions and filters that are defined over the relations; `tables` the names by which their
            files call relations, `left_out` which definitions could not be taken, in sentences.
        unlisted: relations that queries may name and no listing shows: sequences, tables without columns, catalogs.
        dialect: sqlglot's name of the SQL of the engine that holds the relations: queries over them are written in it.
        restricted: whether the source holds more than its reader may see, so that nothing beside relations is read.
        stale: whether the source was changed since it was opened, and is not read again.
        has_private: whether one of the relations has a private column.
    """

    relations: tuple[Relation, ...]
    hidden: tuple[str, ...] = ()
    broken: tuple[tuple[str, str], ...] = ()
    separate: bool = False
    unlisted: tuple[Relation, ...] = ()
    dialect: str = "duckdb"
    restricted: bool = False
    terms: tuple[Term, ...] = ()
    tables: Mapping[str, str] = field(default_factory=dict)
    left_out: tuple[str, ...] = ()
    stale: bool = False
    has_private: bool = field(init=False, repr=False, compare=False)
    _by_name: dict[str, Relation] = field(init=False, repr=False, compare=False)
    _alike: frozenset[str] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        places = Counter(".".join(relation.location).casefold() for relation in self.relations)
        object.__setattr__(self, "_alike", frozenset(place for place, count in places.items() if count > 1))
        named = [(name, r) for r in self.unlisted for name in (*_list_qualified_names(r), r.name)]
        named += [(name, r) for r in self.relations for name in _list_qualified_names(r)]
        named += [(r.name, r) for r in self.relations]
        object.__setattr__(self, "_by_name", {name.casefold(): r for name, r in named} | dict(named))
        private = any(column.private for r in (*self.relations, *self.unlisted) for column in r.columns)
        object.__setattr__(self, "has_private", private)

    @property
    def is_partial(self) -> bool:
        """Whether the source holds more than a reader of this catalog may see."""
        return self.restricted or any(relation.withheld for relation in self.relations)

    def __repr__(self) -> str:
        """Return the relations with their rows and columns, as many as fit on a screen."""
        lines = [
            shorten(
                f"{relation.name} ({'?' if relation.rows is None else f'{relation.rows:,}'} rows): "
                + ", ".join(f"{column.name} {column.type}{'[]' * column.array}" for column in relation.columns),
                _WIDEST,
                placeholder=" …",
            )
            for relation in self.relations[:_MOST_LINES]
        ]
        more = len(self.relations) - _MOST_LINES
        return "\n".join([*lines, *([f"… and {more:,} more"] if more > 0 else [])]) or "no relations"

    def in_dialect(self, dialect: str) -> Catalog:
        return self if self.dialect == dialect else replace(self, dialect=dialect)

    def with_table(self, name: str, columns: Sequence[tuple[str, str]], *, private: bool) -> Catalog:
        names = unique_names(column for column, _ in columns)
        made = tuple(
            Column(column, type_ if type_ in _PLAIN_TYPES else "unknown", private=private)
            for column, (_, type_) in zip(names, columns, strict=True)
        )
        table = Relation(name, ("almanaq_work", name), made)
        return replace(self, relations=(*self.relations, table))

    def find(self, name: str) -> Relation | None:
        """Return the relation of that name, with or without its schema before it, or None.

        Where none is called so, it is one whose name differs only in case.
        """
        return self._by_name.get(name) or self._by_name.get(name.casefold())

    def relation(self, name: str) -> Relation:
        found = self.find(name)
        if found is None:
            raise UnknownNameError(self.unknown(name))
        return found

    def confused(self, relation: Relation) -> str:
        """Say what a relation cannot be told from, since names match whatever their case; "" where all is clear."""
        place = ".".join(relation.location).casefold()
        if place in self._alike:
            names = [r.name for r in self.relations if ".".join(r.location).casefold() == place]
            return f"the relations {' and '.join(map(repr, names))} differ only in case: read one through a view"
        alike = alike_but_for_case([column.name for column in relation.columns])
        if alike:
            both = " and ".join(map(repr, alike))
            return f"the columns {both} of {relation.name!r} differ only in case: read it through a view"
        return ""

    def unknown(self, name: str) -> str:
        """Say that there is no relation of that name, and what to do."""
        if name.casefold() in {part.casefold() for hidden in self.hidden for part in _endings(hidden.split("."))}:
            return f"no relation named {name!r} that may be read: it is there, and this role has no right to it"
        for broken, why in self.broken:
            if name.casefold() in map(str.casefold, _endings(broken.split("."))):
                return f"the view {name!r} cannot be read: {why}"
        near = suggest(name, [r.name for r in self.relations], as_written)
        again = "; the source has changed since it was opened: open it again" if self.stale else ""
        return f"no relation named {name!r}{near}{again}"

    def check_readable(self) -> None:
        if self.hidden and not self.relations:
            raise SourceError(
                f"this role may read none of the {len(self.hidden)} tables and views: "
                "GRANT USAGE ON SCHEMA … and GRANT SELECT ON … to it"
            )


def unique_names(names: Iterable[str]) -> list[str]:
    """Return names for the columns of a table, those that are there already with a number behind them.

    >>> unique_names(["id", "ID", "x"])
    ['id', 'ID_1', 'x']
    """
    made: list[str] = []
    seen: set[str] = set()
    for name in names:
        choices = (name if n == 0 else f"{name}_{n}" for n in itertools.count())
        made.append(next(choice for choice in choices if choice.lower() not in seen))
        seen.add(made[-1].lower())
    return made


def alike_but_for_case(names: Sequence[str]) -> tuple[str, str] | None:
    """Return the first two names that differ only in case, or not at all; None where there are none."""
    seen: dict[str, str] = {}
    for name in names:
        if name.casefold() in seen:
            return seen[name.casefold()], name
        seen[name.casefold()] = name
    return None


def _list_qualified_names(relation: Relation) -> list[str]:
    return [name for name in _endings(relation.location) if "." in name]


def _endings(parts: Sequence[str]) -> list[str]:
    return [".".join(parts[i:]) for i in range(len(parts))]


def as_written(name: str) -> str:
    """Return a name, perhaps with its schema's, as a query writes it.

    >>> as_written("price"), as_written("Price (EUR)")
    ('price', '"Price (EUR)"')
    """
    return name if re.fullmatch(r"[^\W\d][\w$]*(\.[^\W\d][\w$]*)*", name) else '"' + name.replace('"', '""') + '"'


_TABLES = re.compile(r"\s*(?:show\s+(?:all\s+)?tables|\\dt?|\.tables)\s*;?\s*", re.I)


def list_tables(text: str, catalog: Catalog, dialect: str) -> str | None:
    """Return the query that answers SHOW TABLES, from what is known of the relations; None for any other text."""
    if not _TABLES.fullmatch(text):
        return None
    kinds = {"table": "text", "columns": "bigint", "rows": "bigint", "description": "text"}
    known = [[r.name, len(r.columns), r.rows, r.description or None] for r in catalog.relations]
    rows = [
        exp.Tuple(
            expressions=[exp.cast(exp.convert(cell), kind) for cell, kind in zip(row, kinds.values(), strict=True)]
        )
        for row in known or [[None] * len(kinds)]
    ]
    names = [exp.to_identifier(name, quoted=True) for name in kinds]
    alias = exp.TableAlias(this=exp.to_identifier("listing", quoted=True), columns=names)
    select = exp.select("*").from_(exp.Values(expressions=rows, alias=alias))
    return (select if known else select.where(exp.false())).sql(dialect)
