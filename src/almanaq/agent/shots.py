"""Examples of questions with their SUQL, for the parser's prompt: `SOURCE.examples.toml`, which a person writes.

[[example]]
question = "somewhere quiet for a date"
suql = "SELECT name FROM restaurants WHERE answer(reviews, 'is it quiet?') = 'Yes' LIMIT 3"
[[example]]
question = "what is ramen?"          # no suql: it needs no data
"""

from __future__ import annotations

import tomllib
from collections.abc import Sequence
from pathlib import Path

import sqlglot
from sqlglot import exp

from almanaq.errors import SourceError, first_line
from almanaq.suql.catalog.relations import Catalog

Examples = tuple[tuple[str, str | None], ...]
"""(question, SUQL), None for a question that needs no data."""

MOST = 8


def examples_path(source: str | Path) -> Path:
    """Return the path at which the examples of a source are looked for."""
    path = Path(source)
    return path.parent / f"{path.resolve().name if path.is_dir() else path.name}.examples.toml"


def find_examples(source: object) -> Examples:
    """Return the examples that lie beside a source, () when there are none."""
    if not isinstance(source, str | Path):
        return ()
    if str(source).startswith("sample:"):
        from almanaq.sample import examples_path as bundled

        return read_examples(bundled(str(source).removeprefix("sample:")))
    path = examples_path(Path(source).expanduser())
    return read_examples(path) if path.is_file() else ()


def read_examples(path: str | Path) -> Examples:
    """Return the examples of a file; raises SourceError that says which entry is at fault."""
    path = Path(path)
    try:
        document = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise SourceError(f"cannot read the examples {str(path)!r}: {error.strerror}") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise SourceError(f"{path.name} is not TOML: {error}") from error
    if set(document) - {"example"} or not isinstance(document.get("example", []), list):
        raise SourceError(f"{path.name}: only [[example]] entries are expected, with `question` and `suql`")
    return tuple(_example(entry, f"{path.name}, example {i}") for i, entry in enumerate(document.get("example", []), 1))


def _example(entry: object, where: str) -> tuple[str, str | None]:
    if not isinstance(entry, dict) or set(entry) - {"question", "suql"}:
        raise SourceError(f"{where}: only `question` and `suql` are expected")
    question, suql = entry.get("question"), entry.get("suql")
    if not isinstance(question, str) or not question.strip() or not isinstance(suql, str | None):
        raise SourceError(f"{where}: `question` must be text, and `suql` text or left out")
    if suql is not None:
        try:
            sqlglot.parse_one(suql, read="postgres")
        except sqlglot.errors.SqlglotError as error:
            raise SourceError(f"{where}: the SUQL cannot be parsed: {first_line(error)}") from error
    return question, suql


def fitting(shots: Sequence[tuple[str, str | None]], catalog: Catalog) -> Examples:
    """Return the examples whose relations are all in the catalog, at most eight.

    () when no example has a query then.
    """
    found = [(question, suql) for question, suql in shots if suql is None or _reads(suql, catalog)][:MOST]
    return tuple(found) if any(suql for _, suql in found) else ()


def _reads(suql: str, catalog: Catalog) -> bool:
    tree = sqlglot.parse_one(suql, read="postgres")
    own = {cte.alias for cte in tree.find_all(exp.CTE)}
    return all(catalog.find(table.name) for table in tree.find_all(exp.Table) if table.name not in own)
