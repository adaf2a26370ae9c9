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
    format: Annotated[str | None, typer.Argument(metavar="[osi]", help="With --write: another format.")] = None,
    db: Annotated[str | None, typer.Option("--db", metavar="SOURCE", help="The same.")] = None,
    schema: Annotated[str | None, flag("schema")] = None,
    terms: Annotated[str | None, flag("terms")] = None,
    write: Annotated[
        bool, typer.Option("--write", help="Write SOURCE.almanaq.toml, for you to edit; osi: SOURCE.terms.yaml.")
    ] = False,
    overwrite: Annotated[
        bool, typer.Option("--overwrite", help="With --write: replace the file that is there; its settings are kept.")
    ] = False,
    separate: Annotated[bool, flag("separate")] = False,
    allow_http: Annotated[bool, flag("allow_http")] = False,
) -> None:
    """Print the relations and columns of a source, and how its files were read.

    The TOML may be saved as SOURCE.almanaq.toml (--write does so) and edited. A column is structured, free_text (prose
    that answer() reads) or enum (a closed set of values); named_by is the column that names a row. `--write osi` writes
    tables, joins and metrics as a semantic model of Open Semantic Interchange.
    """
    from almanaq.cli.output import write_text
    from almanaq.cli.terminal import say, warn
    from almanaq.corpus.schema_places import schema_path
    from almanaq.engines.open_source import open_database
    from almanaq.suql.catalog.definitions import apply_terms
    from almanaq.suql.catalog.schema_file import describe, keep_private, read_schema, schema_beside
    from almanaq.suql.catalog.term_files import ENDINGS, find_terms, read_terms, write_osi

    if source == _OSI and not Path(_OSI).exists():
        source, format = format, source
    if format not in (None, _OSI) or (format and not write):
        raise UsageError(f"--write knows the format {_OSI}, not {format!r}" if write else f"{format} needs --write")
    source = name_source(source, db, command="schema")
    if overwrite and not write:
        raise UsageError("--overwrite needs --write")
    target = schema_path(source) if write else None
    if target is not None and format == _OSI:
        target = target.parent / f"{Path(source).absolute().name}{ENDINGS[0]}"
    if target is not None:
        _check_target(source, target, overwrite=overwrite)
    database = open_database(source, schema=schema, allow_http=allow_http, separate=separate)
    try:
        catalog = database.catalog()
        catalog.check_readable()
        warn([f"the view {name!r} is left out: {why}" for name, why in catalog.broken])
        warn([message for report in getattr(database, "reports", ()) for message in report.messages])
        place = find_terms(source) if terms is None else terms
        catalog = catalog if place is None else apply_terms(catalog, read_terms(place))
        warn(catalog.left_out)
        if target is not None and format == _OSI:
            write_text(write_osi(catalog, Path(source).stem), str(target))
            say(f"written: {target}")
            return
        declared = schema_beside([Path(source)]) if schema is None else read_schema(schema)
        if target is not None and target.exists():
            catalog = keep_private(catalog, read_schema(target))
        write_text(visible(describe(catalog, declared)).rstrip("\n") + "\n", None if target is None else str(target))
        if target is not None:
            say(f"written: {target}")
    finally:
        database.close()


_OSI = "osi"


def _check_target(source: str, target: Path, *, overwrite: bool) -> None:
    if not Path(source).expanduser().exists():
        raise UsageError(f"--write needs a file or folder, and {source!r} is neither: save the printed schema yourself")
    if target.exists() and not overwrite:
        raise SourceError(
            f"{target} exists already: --overwrite replaces it, keeping its settings but not its comments"
        )
