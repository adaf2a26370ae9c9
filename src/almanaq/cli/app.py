"""The command `almanaq` and the tuple of its subcommands."""

from __future__ import annotations

from typing import Annotated

import typer

from almanaq.cli import ask, bench, cache, chat, demo, find, index, schema, sql, trust

COMMANDS = (demo, schema, ask, chat, sql, find, index, bench, cache, trust)
"""In the order of `--help`."""

app = typer.Typer(
    add_completion=False,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)


def _version(wanted: bool) -> None:
    if wanted:
        import almanaq

        typer.echo(f"almanaq {almanaq.__version__}")
        raise typer.Exit


@app.callback()
def almanaq(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version and exit.")
    ] = False,
) -> None:
    """Ask questions of tables and of the text inside them.

    Settings are read from flags, then the environment (ALMANAQ_MODEL, ALMANAQ_EMBEDDER, OPENAI_BASE_URL,
    OPENAI_API_KEY, ALMANAQ_CACHE_DIR), then almanaq.toml in the working directory, then your own in
    ~/.config/almanaq. What one in a folder says of models, addresses, keys and caches counts once you
    have allowed it: almanaq trust.

    Exit codes: 0 done; 1 the request failed; 2 wrong usage; 3 refused or stopped by a budget.
    """


for command in COMMANDS:
    command.register(app)
