"""A catalog written as a schema file, for a person to go on with."""

from __future__ import annotations

import json
from dataclasses import replace

from almanaq.display import STEERING
from almanaq.suql.catalog.relations import Catalog, Column, ColumnKind, Relation
from almanaq.suql.catalog.schema_file import RelationSchema, Schema


def describe(catalog: Catalog, schema: Schema | None = None) -> str:
    """Return the catalog as a schema file, with types, row counts and samples as comments; none of a private column.

    Args:
        schema: what a person said so far; what it says of files is written too, as the catalog does not hold it.
    """
    declared = {catalog.relation(name).name: entry for name, entry in schema.relations.items()} if schema else {}
    nothing = RelationSchema()
    return "\n".join(_relation_text(each, declared.get(each.name, nothing)) for each in catalog.relations)


def _relation_text(relation: Relation, said: RelationSchema) -> str:
    name = _key(relation.name)
    lines = [] if relation.rows is None else [f"# {relation.rows:,} rows"]
    if relation.origin:
        lines.append(f"# read from {relation.origin}")
    if relation.unread:
        lines.append(f"# its rows could not be looked at: {relation.unread}")
    lines.append(f"[{name}]")
    if relation.description:
        lines.append(f"description = {_string(relation.description)}")
    if relation.key:
        lines.append(f"key = {_list(relation.key)}")
    if relation.named_by:
        lines.append(f"named_by = {_string(relation.named_by)}")
    if relation.foreign_keys:
        keys = ", ".join(
            f"{{columns = {_list(own)}, table = {_string(other)}, references = {_list(theirs)}}}"
            for own, other, theirs in relation.foreign_keys
        )
        lines.append(f"foreign_keys = [{keys}]")
    lines += _file_lines(name, said)
    types = said.as_read_options().types
    written = {given.casefold(): entry.values for given, entry in said.columns.items()}
    for column in relation.columns:
        folded = column.name.casefold()
        # Of a private column only what a person wrote of it is written again, nothing that its cells or type hold.
        shown = replace(column, samples=(), values=written.get(folded, ())) if column.private else column
        lines.extend(_column_lines(name, shown, types.get(folded, "")))
    return "\n".join(lines) + "\n"


def _file_lines(relation: str, said: RelationSchema) -> list[str]:
    """Return the lines that say how a file is to be read, where a person said it."""
    fields = {
        "header": None if said.hints.header is None else str(said.hints.header).lower(),
        "names": said.hints.names and _list(said.hints.names),
        "separator": said.hints.separator and _string(said.hints.separator),
        "encoding": said.hints.encoding and _string(said.hints.encoding),
        "days": said.marks.days and _string(said.marks.days),
        "decimal": said.marks.decimal and _string(said.marks.decimal),
    }
    lines = [f"{name} = {value}" for name, value in fields.items() if value]
    return [f"[{relation}.file]", *lines] if lines else []


def _column_lines(relation: str, column: Column, type_: str) -> list[str]:
    samples = ", ".join(_string(sample) for sample in column.samples[:3])
    lines = [
        f"[{relation}.columns.{_key(column.name)}]",
        f"# {column.type}{'[]' if column.array else ''}{', e.g. ' + samples if samples else ''}",
        f'kind = "{column.kind.value}"',
    ]
    if type_:
        lines.append(f"type = {_string(type_)}")
    if column.kind is ColumnKind.ENUM:
        # Without an order they are left out when this is read: nobody shall take how they stand here for one.
        listed = column.ordered or not column.values
        if column.values or not column.private:
            lines.append(f"{'' if listed else '# '}values = {_list(column.values)}")
    if column.description:
        lines.append(f"description = {_string(column.description)}")
    if column.vectors:
        lines.append(f"vectors = {_string(column.vectors)}")
    if column.private:
        lines.append("private = true")
    return lines


def _string(text: str) -> str:
    """Write a TOML basic string: JSON's escapes are TOML's, and what steers a terminal is written out too."""
    return STEERING.sub(lambda found: f"\\u{ord(found.group()):04x}", json.dumps(text, ensure_ascii=False))


def _list(texts: tuple[str, ...]) -> str:
    return "[" + ", ".join(_string(text) for text in texts) + "]"


def _key(name: str) -> str:
    bare = name.isascii() and name.replace("_", "").replace("-", "").isalnum()
    return name if bare else _string(name)
