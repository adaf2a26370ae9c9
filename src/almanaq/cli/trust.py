"""`almanaq trust`: allow the settings of a folder to say where documents and keys go."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from almanaq.cli.terminal import say
from almanaq.errors import UsageError


def register(app: typer.Typer) -> None:
    """Add the command to the app."""
    app.command("trust")(trust)


def trust(
    folder: Annotated[
        Path, typer.Argument(metavar="[FOLDER]", help="Where the almanaq.toml lies; default here.")
    ] = Path(),
    revoke: Annotated[bool, typer.Option("--revoke", help="Allow it no longer.")] = False,
) -> None:
    """Allow the almanaq.toml of a folder, as it is now, to name models, addresses, keys and caches."""
    from almanaq import trust as trusted
    from almanaq.settings import FILE, reaches_out, read_file, shown_setting

    file = folder / FILE
    if revoke:
        was = trusted.distrust(file)
        say(f"{file.resolve()} is {'allowed no longer' if was else 'not allowed, and was not'}")
        return
    found = read_file(file)
    if found is None:
        raise UsageError(f"{folder.resolve()} holds no {FILE}: name the folder of the one to allow")
    trusted.trust(file, found.content)
    lines = [shown_setting(name, value) for name, value in reaches_out(found.values).items()]
    say(
        "\n".join(
            [f"{file.resolve()} is allowed, until it changes, to set", *(f"  {line}" for line in lines or ["nothing"])]
        )
    )
