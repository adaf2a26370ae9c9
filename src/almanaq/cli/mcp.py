"""`almanaq mcp`: the tools over one source, for programs that speak the Model Context Protocol."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Annotated

import typer

from almanaq.cli.options import SOURCE_HELP, Chosen, connect_source, name_source, spell_flags, take_options
from almanaq.cli.output import write_text


def register(app: typer.Typer) -> None:
    """Add the command to the app."""
    app.command("mcp")(mcp)


@take_options
def mcp(
    source: Annotated[str | None, typer.Argument(metavar="SOURCE", help=SOURCE_HELP)] = None,
    db: Annotated[str | None, typer.Option("--db", metavar="SOURCE", help="The same, as an option.")] = None,
    print_config: Annotated[
        str | None,
        typer.Option(
            "--print-config",
            metavar="CLIENT",
            help="Print what CLIENT's settings need, and end: claude-desktop, claude-code, vscode, cursor or zed.",
        ),
    ] = None,
    *,
    chosen: Chosen,
) -> None:
    """Serve one program over standard input and output (MCP): questions, queries, tables, texts.

    Seven tools, which only read. Private columns are not there. What a program asks for may lower --max-calls and
    --deadline, never raise them. Several may be started over one source.
    """
    named = name_source(source, db, command="mcp")
    if print_config is not None:
        flags = [
            text
            for option, value in spell_flags(chosen)
            for text in (option.spelling, *([_place(value) if option.metavar == "FILE" else value] if value else []))
        ]
        _print_config(print_config, named, flags)
        return
    from almanaq.mcp import run_stdio

    with connect_source(named, chosen) as connection:
        run_stdio(connection)


def _print_config(client: str, source: str, flags: list[str]) -> None:
    """Print the settings on stdout, and where they belong on stderr."""
    from almanaq.mcp.clients import client_named, command_line, settings

    found = client_named(client)
    command = str(Path(sys.argv[0]).absolute())
    arguments = ["mcp", _place(source), *flags]
    write_text(settings(found, command, arguments, _environment(flags)) + "\n", None)
    print(f"almanaq: this belongs into {found.place}", file=sys.stderr)
    if client == "claude-code":
        print(f"almanaq: or run: {command_line(command, arguments)}", file=sys.stderr)


def _environment(flags: list[str]) -> dict[str, str]:
    """Return what a server of models needs of the environment, which a client does not hand on; never a key."""
    if not any(flag.startswith("openai:") for flag in flags):
        return {}
    from almanaq.models.http import redact_address

    address = os.environ.get("OPENAI_BASE_URL")
    return {"OPENAI_API_KEY": "YOUR-KEY"} | ({"OPENAI_BASE_URL": redact_address(address)} if address else {})


def _place(source: str) -> str:
    """Return a path that holds wherever a client starts the command; names and URLs as they are."""
    return str(Path(source).absolute()) if Path(source).exists() else source
