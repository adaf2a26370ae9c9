"""The command `almanaq` and the tuple of its subcommands."""

from __future__ import annotations

import os
from typing import Annotated, Any

import typer
import typer.core

from almanaq.cli import (
    ask,
    bench,
    cache,
    chat,
    demo,
    doctor,
    find,
    index,
    mcp,
    models,
    schema,
    serve,
    shell,
    sql,
    trust,
)

COMMANDS = (demo, schema, ask, chat, sql, shell, find, index, serve, mcp, models, bench, cache, trust, doctor)
"""In the order of `--help`."""
_VERBOSE = "almanaq.verbose"


class Commands(typer.core.TyperGroup):
    """The commands by their names; a source in the place of a name opens the shell over it."""

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """Return the command that the arguments name, and its own arguments."""
        if self.get_command(ctx, args[0]) is None and _is_source(args[0]):
            return "shell", self.get_command(ctx, "shell"), args
        return super().resolve_command(ctx, args)

    def invoke(self, ctx: Any) -> Any:
        """Run a command; an option that it does not have, and others do, is answered with their names."""
        try:
            return super().invoke(ctx)
        except Exception as error:
            asked = getattr(error, "option_name", None)
            having = [name for name, each in self.commands.items() if any(asked in p.opts for p in each.params)]
            if asked is not None and hasattr(error, "possibilities") and having:
                error.message = f"{error.message}; that is an option of almanaq {' and '.join(having)}"  # type: ignore[attr-defined]
                error.possibilities = None
            raise


def _is_source(word: str) -> bool:
    """Return whether a word that is no command is meant as a source: something is there, or it looks like a place."""
    return not word.startswith("-") and (os.path.exists(word) or any(sign in word for sign in (":", "/", ".", os.sep)))


app = typer.Typer(
    cls=Commands,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)


def _version(ctx: typer.Context, wanted: bool) -> None:
    if wanted:
        import almanaq

        short = [f"almanaq {almanaq.__version__}"]
        typer.echo("\n".join(doctor.version_lines() if ctx.meta.get(_VERBOSE) else short))
        raise typer.Exit


def _verbose(ctx: typer.Context, wanted: bool) -> None:
    ctx.meta[_VERBOSE] = wanted


@app.callback()
def almanaq(
    version: Annotated[bool, typer.Option("--version", callback=_version, help="Print the version and exit.")] = False,
    # Eager, so that it is known whatever stands first.
    verbose: Annotated[
        bool, typer.Option("--verbose", callback=_verbose, is_eager=True, help="With --version: of all that it needs.")
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
