"""What a prompt shows of a source: its schema, and examples of questions with their SUQL.

People write examples into `SOURCE.examples.toml`; where there are none, some are generated from the schema.

[[example]]
question = "somewhere quiet for a date"
suql = "SELECT name FROM restaurants WHERE answer(reviews, 'is it quiet?') = 'Yes' LIMIT 3"
[[example]]
question = "what is ramen?"          # no suql: it needs no data
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence

from sqlglot import exp
from sqlglot.errors import SqlglotError

from almanaq.agent.describe import words
from almanaq.agent.dialects import contains_value, quote_name
from almanaq.agent.facts import NUMBERS, Facts
from almanaq.agent.linking.columns import LinkedColumn, link_column, name_column
from almanaq.agent.queries import query_tree
from almanaq.agent.tables import FEW_TABLES, Rows
from almanaq.agent.value_links import LISTED_VALUES
from almanaq.errors import SourceError, first_line
from almanaq.models.budget import estimate_tokens
from almanaq.suql.catalog.relations import Catalog, Column, ColumnKind, Relation
from almanaq.text.sql_literals import string_literal

_SAMPLES = 3
_SAMPLE_LENGTH = 60
_ENUM_LENGTH = 200
_MOST_EXAMPLES = 5
_DESCRIPTION_LENGTH = 4000
"""Characters of a description that are shown: a person's description is never that long."""


def schema_text(catalog: Catalog, rows: Mapping[str, Rows] | None = None, facts: Facts | None = None) -> str:
    """Return the relations as CREATE TABLE statements with kinds, keys, descriptions and samples in comments.

    Args:
        rows: those of small tables, by relation: a comment shows them all, in place of samples.
        facts: what was counted of the columns.
    """
    known, counted = rows or {}, facts or Facts()
    return "\n\n".join(
        _relation(relation, known.get(relation.name, ()), counted, catalog) for relation in catalog.relations
    )


_MOST_TOKENS = 1_000


def fits_prompt(catalog: Catalog) -> bool:
    """Return whether a prompt shows all relations, however little a question is about most of them."""
    return len(catalog.relations) <= FEW_TABLES or estimate_tokens(schema_text(catalog)) <= _MOST_TOKENS


def _relation(relation: Relation, rows: Rows, facts: Facts, catalog: Catalog) -> str:
    dialect = catalog.dialect

    def names(*columns: str) -> str:
        return ", ".join(quote_name(column, dialect) for column in columns)

    lines = [f"-- {_flat(relation.description, _DESCRIPTION_LENGTH)}"] if relation.description else []
    size = f"  -- {relation.rows:,} rows" if relation.rows is not None and not rows else ""
    lines.append(f"CREATE TABLE {names(relation.name)} ({size}")
    for column in relation.columns:
        said = [*_key_of(relation, column, facts, names), *_comments(column, sampled=not rows)]
        if (missing := facts.missing.get((relation.name, column.name))) is not None:
            said.append(f"{_percent(missing)} NULL")
        if (zeros := facts.zeros.get((relation.name, column.name))) is not None:
            said.append("zeros: {} (perhaps missing), else {:g} to {:g}".format(*zeros))
        lines.append(f"  {_declaration(column, dialect)},{'  -- ' + '; '.join(said) if said else ''}")
    if len(relation.key) > 1:
        lines.append(f"  PRIMARY KEY ({names(*relation.key)}),")
    for own, other, theirs in dict.fromkeys(relation.foreign_keys):
        if len(own) > 1:
            lines.append(f"  FOREIGN KEY ({names(*own)}) REFERENCES {names(other)} ({names(*theirs)}),")
    lines.append(");")
    if rows:
        lines.append(f"-- its {len(rows) - 1} rows:")
        lines += [f"-- {' | '.join(_flat(cell) for cell in row)}" for row in rows]
    return "\n".join(lines)


def _key_of(relation: Relation, column: Column, facts: Facts, names: Callable[..., str]) -> list[str]:
    """Return what a column identifies or refers to; each reference is said once."""
    said = ["PRIMARY KEY"] if relation.key == (column.name,) else []
    declared = dict.fromkeys((other, theirs) for own, other, theirs in relation.foreign_keys if own == (column.name,))
    said += [f"REFERENCES {names(other)} ({names(*theirs)})" for other, theirs in declared]
    near = next((each for each in relation.near_references if each.column == column.name), None)
    found = facts.references.get((relation.name, column.name))
    if near is not None:
        kept = f"LEFT JOIN keeps the other {near.strays:,}"
        said.append(f"{_percent(near.share)} of rows are in {names(near.relation)} ({names(near.key)}); {kept}")
    elif found is not None and not declared:
        said.append(f"{_percent(found.share)} of rows are in {names(found.relation)} ({names(found.column)})")
    return said


def _percent(share: float) -> str:
    """Return a share in percent; nearly all, or nearly none, is not said to be all or none."""
    if share in (0, 1):
        return f"{share:.0%}"
    return "under 1%" if share < 0.01 else "over 99%" if share > 0.99 else f"{share:.0%}"


def _declaration(column: Column, dialect: str) -> str:
    kinds = {ColumnKind.FREE_TEXT: "FREE_TEXT", ColumnKind.ENUM: "ENUM"}
    type_name = kinds.get(column.kind) or _type_name(column, dialect)
    if column.kind is ColumnKind.ENUM and 0 < len(column.values) <= LISTED_VALUES and not column.private:
        type_name = f"ENUM({', '.join(_literal(value, _ENUM_LENGTH) for value in column.values)})"
    return f"{quote_name(column.name, dialect)} {type_name}{'[]' if column.array else ''}"


def _type_name(column: Column, dialect: str) -> str:
    """Return a column's type as its engine calls it; the catalog has PostgreSQL's names, which DuckDB knows too."""
    if dialect in ("duckdb", "postgres"):
        return column.type
    try:
        return exp.DataType.from_str(column.type, dialect="postgres", udt=True).sql(dialect)
    except SqlglotError:
        return column.type


def _comments(column: Column, *, sampled: bool) -> list[str]:
    parts = [_flat(column.description, _DESCRIPTION_LENGTH)] if column.description else []
    listed = column.kind is ColumnKind.ENUM and len(column.values) <= LISTED_VALUES
    if listed and column.values and column.ordered and not column.array and not column.private:
        parts.append("in ascending order")
    samples = column.samples or column.values
    if samples and not listed and not column.private and (sampled or column.kind is ColumnKind.FREE_TEXT):
        plain = column.type in NUMBERS and not column.array
        shown = ", ".join(sample if plain else _literal(sample) for sample in samples[:_SAMPLES])
        there = f" (there written {_literal(column.written)})" if column.written else ""
        parts.append(f"e.g. {shown}{there}")
    return [*parts, column.caution] if column.caution else parts


def _literal(text: str, most: int = _SAMPLE_LENGTH) -> str:
    """Return a value as a query compares it, its spaces kept; what is cut goes on where the dots stand, outside."""
    end = "…" if len(text) > most or text.endswith("…") else ""
    text = text[:most].removesuffix("…")
    written = string_literal(text)
    if any(not character.isprintable() for character in text):
        return "E" + written.replace("\\", "\\\\").replace("\n", "\\n").replace("\r", "\\r").replace("\t", "\\t") + end
    return written + end


def _flat(text: str, most: int = _SAMPLE_LENGTH) -> str:
    """Return a text on one line; more than one line of it, or much more of it, would pass for lines of ours."""
    flat = re.sub(r"[\x00-\x1f\x7f\x85\u2028\u2029]+", " ", text)
    return flat if len(flat) <= most else flat[: most - 1] + "…"


def generate_examples(catalog: Catalog) -> tuple[tuple[str, str | None], ...]:
    """Return (question, SUQL) pairs over the catalog's own columns, one of each kind.

    The last two have no query: what no column tells, with "null" and what to reply, and what needs no data (None).
    """
    ranked = _richest(catalog.relations)
    found = [
        *_join_example(catalog),
        *(example for relation in ranked for example in _examples(relation, catalog.dialect)),
    ]
    kinds: dict[str, tuple[str, str | None]] = {}
    for kind, question, suql in found:
        kinds.setdefault(kind, (question, suql))
    if ranked:
        noun = words(ranked[0].name)
        lacks = f'null (needs_data true, reply "No column holds photographs of the {noun}.")'
        kinds["lacks"] = (f"Who took the photographs of the {noun}?", lacks)
    queries = [pair for kind, pair in kinds.items() if kind != "lacks"][:_MOST_EXAMPLES]
    return (*queries, *([kinds["lacks"]] if "lacks" in kinds else []), ("What is the capital of Peru?", None))


def _richest(relations: Sequence[Relation]) -> list[Relation]:
    """Return relations with prose, then with ENUMs, first: they show most of the language."""
    return sorted(
        relations, key=lambda r: -sum({ColumnKind.FREE_TEXT: 3, ColumnKind.ENUM: 2}.get(c.kind, 0) for c in r.columns)
    )


Example = tuple[str, str, str]
"""What an example shows, its question, and its SUQL."""


def _join_example(catalog: Catalog) -> Iterator[Example]:
    """Yield a join with groups: how many rows of one relation belong to each of another."""
    dialect = catalog.dialect
    for relation in catalog.relations:
        for own, other, theirs in relation.foreign_keys:
            parent = catalog.find(other)
            if parent is None or parent.name == relation.name or len(own) != 1:
                continue
            name = _name_of(parent)
            if name.column.private or name.column.kind is ColumnKind.FREE_TEXT:
                continue
            shown, key = quote_name(name.column.name, dialect), f"b.{quote_name(theirs[0], dialect)}"
            asked = f"How many {words(relation.name)} has each of the {words(parent.name)}?"
            tables = f"{quote_name(relation.name, dialect)} AS a JOIN {quote_name(parent.name, dialect)} AS b"
            on = f"a.{quote_name(own[0], dialect)} = {key}"
            yield "group", asked, f"SELECT b.{shown}, COUNT(*) FROM {tables} ON {on} GROUP BY {key}, b.{shown}"


def _name_of(relation: Relation) -> LinkedColumn:
    return name_column(tuple(link_column(relation, column) for column in relation.columns))


def _examples(relation: Relation, dialect: str) -> Iterator[Example]:
    places = tuple(link_column(relation, column) for column in relation.columns)
    name, noun, table = name_column(places), words(relation.name), quote_name(relation.name, dialect)
    shown = quote_name(name.column.name, dialect)
    number = next((p for p in places if p.kind == "number" and not p.is_identifier and p is not name), None)
    value = next((p for p in places if p is not name and p.column.kind is ColumnKind.ENUM and _value(p)), None)
    prose = next((p for p in places if p.kind == "prose" and not p.column.private), None)
    if prose is not None:
        column = quote_name(prose.column.name, dialect)
        also, whose = (
            (f"{_equals(value, dialect)} AND ", f", with {words(value.column.name)} {_value(value)}")
            if value
            else ("", "")
        )
        call = f"answer({column}, 'is this praised?') = 'Yes'"
        yield (
            "prose",
            f"Suggest some {noun} that people praise{whose}.",
            f"SELECT {shown} FROM {table} WHERE {also}{call} LIMIT 3",
        )
        # No value that rows hold stands here: the examples are outside the marks around the schema.
        read = f"SELECT {shown}, answer({column}, 'what is said most?') FROM {table} LIMIT 3"
        yield "read", f"What do the {words(prose.column.name)} of some {noun} say?", read
    if value is not None:
        asked = f"List the {noun} whose {words(value.column.name)} is {_value(value)}."
        yield "list", asked, f"SELECT {shown} FROM {table} WHERE {_equals(value, dialect)}"
        if not value.column.array:
            by = quote_name(value.column.name, dialect)
            asked = f"How many {noun} are there for each {words(value.column.name)}?"
            yield "group", asked, f"SELECT {by}, COUNT(*) FROM {table} GROUP BY {by}"
    if number is not None:
        column = quote_name(number.column.name, dialect)
        asked = f"Which of the {noun} has the highest {words(number.column.name)}?"
        yield "first", asked, f"SELECT {shown}, {column} FROM {table} ORDER BY {column} DESC LIMIT 1"


def _value(place: LinkedColumn) -> str:
    """Return a value of a column that has few, "" where it has none to show."""
    column = place.column
    return column.values[0] if column.values and not column.private and column.values[0].isprintable() else ""


def _equals(place: LinkedColumn, dialect: str) -> str:
    literal, column = string_literal(_value(place)), quote_name(place.column.name, dialect)
    return contains_value(column, literal, dialect) if place.column.array else f"{column} = {literal}"


# Examples that people write.

Examples = tuple[tuple[str, str | None], ...]
"""(question, SUQL), None for a question that needs no data."""

MOST_EXAMPLES = 8
"""How many of a person's examples a prompt shows."""


def choose_examples(shots: Sequence[tuple[str, str | None]], catalog: Catalog) -> Examples:
    """Return the examples whose relations are all in the catalog, at most eight; () when none of them has a query.

    Raises:
        SourceError: a query cannot be parsed in the engine's dialect.
    """
    found = [(question, suql) for question, suql in shots if suql is None or _fits(suql, catalog)][:MOST_EXAMPLES]
    return tuple(found) if any(suql for _, suql in found) else ()


def _fits(suql: str, catalog: Catalog) -> bool:
    try:
        tree = query_tree(suql, catalog.dialect)
    except SqlglotError as error:
        raise SourceError(f"the example {suql!r} cannot be parsed: {first_line(error)}") from error
    own = {cte.alias for cte in tree.find_all(exp.CTE)}
    return all(catalog.find(table.name) for table in tree.find_all(exp.Table) if table.name not in own)
