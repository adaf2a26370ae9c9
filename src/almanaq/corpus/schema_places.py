"""Where the schema files of a source lie, and whether they mark a column as private.

The readers of this package give the cells of every column. Whatever is searched or indexed may be sent to an embedder
or a language model, so they refuse a source with private columns; such a source is searched as a database, which knows
its columns and reads the others (`almanaq.table_search.read_tables`).
"""

from __future__ import annotations

import os
import tomllib
from collections.abc import Iterable
from pathlib import Path

from almanaq.errors import SourceError

ENDING = ".almanaq.toml"


class PrivateTablesError(SourceError):
    """The tables of a source hold private columns, and would be read whole."""


def schema_path(source: str | Path) -> Path:
    """Return the path at which the schema file of a source is written and first looked for: beside it."""
    path = Path(os.path.abspath(source))
    return path.parent / f"{path.name}{ENDING}"


def schema_files(source: Path) -> list[Path]:
    """Return the schema file of a source, then, of a folder, those within; raises SourceError for two of one source."""
    places = [schema_path(source), schema_path(source.resolve())]
    within: list[Path] = []
    if source.is_dir():
        places.append(source / places[0].name)
        within = [path for pattern in (f"*{ENDING}", f"*/*{ENDING}") for path in source.glob(pattern)]
    else:
        places += [place.with_name(Path(place.name.removesuffix(ENDING)).stem + ENDING) for place in places]
    own = dict.fromkeys(place.resolve() for place in places if place.is_file())
    if len(own) > 1:
        named = " and ".join(map(str, own))
        raise SourceError(f"two schema files describe {source.name}: {named}; keep one")
    return list(own | dict.fromkeys(sorted(p.resolve() for p in within if p.is_file() and not p.name.startswith("."))))


def refuse_private(sources: Iterable[Path]) -> None:
    """Raise PrivateTablesError where a schema file of these says `private`, SourceError where one is faulty."""
    for file in dict.fromkeys(file for source in sources for file in schema_files(source)):
        try:
            said = tomllib.loads(file.read_text(encoding="utf-8"))
        except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
            raise SourceError(f"the schema file {file.name} cannot be read: {error}") from error
        for table, entry in said.items():
            columns = entry.get("columns", {}) if isinstance(entry, dict) else {}
            for name, column in columns.items() if isinstance(columns, dict) else ():
                # A mark that is neither true nor false counts: whoever reads it faults it.
                if isinstance(column, dict) and column.get("private", False) is not False:
                    raise PrivateTablesError(
                        f"{table}.{name} is private ({file.name}), and these tables would be read whole: remove the "
                        "column from them"
                    )
