"""`almanaq schema`: what a source holds, as a schema file to save and edit."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from almanaq.cli.options import SOURCE_HELP, flag, name_source
from almanaq.display import visible
from almanaq.errors import SourceError, UsageError


def schema(
    source: Annotated[str | None, typer.Argument(metavar="SOURCE", help=SOURCE_HELP)] = None,
    db: Annotated[str | None, typer.Option("--db", metavar="SOURCE", help="The same.")] = None,
    schema: Annotated[str | None, flag("schema")] = None,
    write: Annotated[
        bool, typer.Option("--write", help="Write SOURCE.almanaq.toml, for you to edit, instead of printing.")
    ] = False,
    overwrite: Annotated[
        bool, typer.Option("--overwrite", help="With --write: replace the file that is there; its settings are kept.")
    ] = False,
    separate: Annotated[bool, flag("separate")] = False,
    allow_http: Annotated[bool, flag("allow_http")] = False,
) -> None:
    """Print the relations and columns of a source, and how its files were read.

    The TOML may be saved as SOURCE.almanaq.toml (--write does so) and edited. A column is structured, free_text (prose
    that answer() reads) or enum (a closed set of values); named_by is the column that names a row.
    """
    from almanaq.cli.output import write_text
    from almanaq.cli.terminal import say, warn
    from almanaq.corpus.schema_places import schema_path
    from almanaq.engines.open_source import open_database
    from almanaq.suql.catalog.schema_file import describe, keep_private, read_schema, schema_beside

    source = name_source(source, db, command="schema")
    if overwrite and not write:
        raise UsageError("--overwrite needs --write")
    target = schema_path(source) if write else None
    if target is not None:
        _check_target(source, target, overwrite=overwrite)
    database = open_database(source, schema=schema, allow_http=allow_http, separate=separate)
    try:
        catalog = database.catalog()
        catalog.check_readable()
        warn([f"the view {name!r} is left out: {why}" for name, why in catalog.broken])
        warn([message for report in getattr(database, "reports", ()) for message in report.messages])
        declared = schema_beside([Path(source)]) if schema is None else read_schema(schema)
        if target is not None and target.exists():
            catalog = keep_private(catalog, read_schema(target))
        write_text(visible(describe(catalog, declared)).rstrip("\n") + "\n", None if target is None else str(target))
        if target is not None:
            say(f"written: {target}")
    finally:
        database.close()


def _check_target(source: str, target: Path, *, overwrite: bool) -> None:
    """Raise where the schema file of a source may not be written: it is no file's, or one is there already."""
    if not Path(source).expanduser().exists():
        raise UsageError(f"--write needs a file or folder, and {source!r} is neither: save the printed schema yourself")
    if target.exists() and not overwrite:
        raise SourceError(
            f"{target} exists already: --overwrite replaces it, keeping its settings but not its comments"
        )
