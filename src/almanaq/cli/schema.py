"""`almanaq schema`: what a source holds, as a schema file to save and edit."""

from __future__ import annotations

from typing import Annotated

import typer

from almanaq.cli.options import SOURCE_HELP, AllowHttp, Schema
from almanaq.visible import visible


def register(app: typer.Typer) -> None:
    """Add the command to the app."""
    app.command("schema")(schema)


def schema(
    source: Annotated[str, typer.Argument(metavar="SOURCE", help=SOURCE_HELP)],
    schema: Schema = None,
    allow_http: AllowHttp = False,
) -> None:
    """Print the relations and columns of a source.

    The TOML may be saved as SOURCE.almanaq.toml and edited. A column is structured, free_text (prose that answer()
    reads) or enum (a closed set of values).
    """
    from almanaq.cli.output import write_text
    from almanaq.cli.terminal import warn
    from almanaq.suql.catalog.schema_file import describe
    from almanaq.suql.databases.registry import open_database

    database = open_database(source, schema=schema, allow_http=allow_http)
    try:
        catalog = database.catalog()
        catalog.check_readable()
        warn([f"the view {name!r} is left out: {why}" for name, why in catalog.broken])
        warn([message for report in getattr(database, "reports", ()) for message in report.messages])
        write_text(visible(describe(catalog)).rstrip("\n") + "\n")
    finally:
        database.close()
