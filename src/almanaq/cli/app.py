"""The command `almanaq` and its subcommands by name."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from importlib import import_module
from typing import Annotated, Any

import typer
import typer.core
import typer.main

from almanaq.cli.options import is_source
from almanaq.errors import MissingExtraError, nearest
from almanaq.plugins import load_plugin, plugin_names

COMMANDS: Mapping[str, str] = {
    "demo": "ask.demo",
    "schema": "schema.schema",
    "ask": "ask.ask",
    "chat": "ask.chat",
    "sql": "sql.sql",
    "shell": "shell.shell",
    "find": "find.find",
    "index": "find.index",
    "serve": "serve.serve",
    "board": "board.board",
    "mcp": "serve.mcp",
    "verdicts": "verdicts.verdicts",
    "test": "verdicts.rerun",
    "trust": "housekeeping.trust",
    "doctor": "housekeeping.doctor",
    "models": "housekeeping.models",
    "cache": "housekeeping.cache",
}
"""In `--help` order; each with its module in almanaq.cli and its name there."""
PIPE_CLOSED = 141
"""The exit code where the reader of the output has closed it."""
_VERBOSE = "almanaq.verbose"
_ALIKE = 0.75
"""A misspelt option is at least so much like the one that was meant."""


class _BuiltWhereRead(Mapping[str, Any]):
    """The commands of COMMANDS; one is imported and built where it is first read.

    To import and build all takes twice as long as the rest of a start.
    """

    def __init__(self) -> None:
        self._built: dict[str, Any] = {}

    def __getitem__(self, name: str) -> Any:
        if name not in self._built:
            module, function = COMMANDS[name].split(".")
            command = getattr(import_module(f"almanaq.cli.{module}"), function)
            alone = typer.Typer(rich_markup_mode=None)
            if isinstance(command, typer.Typer):
                alone.add_typer(command, name=name)
            else:
                alone.command(name)(command)
            self._built[name] = typer.main.get_group(alone).commands[name]
        return self._built[name]

    def __iter__(self) -> Iterator[str]:
        return iter(COMMANDS)

    def __len__(self) -> int:
        return len(COMMANDS)


_BUILT = _BuiltWhereRead()


class Commands(typer.core.TyperGroup):
    """The commands by their names; a source in the place of a name opens the shell over it, with a question `ask`."""

    def __init__(self, **given: Any) -> None:
        super().__init__(**given)
        self.commands = _BUILT  # type: ignore[assignment]

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        if self.get_command(ctx, args[0]) is None:
            first, second = args[0], args[1] if len(args) > 1 and not args[1].startswith("-") else ""
            if second and (is_source(first) or is_source(second)):
                return "ask", self.get_command(ctx, "ask"), args
            if is_source(first):
                return "shell", self.get_command(ctx, "shell"), args
        given = [after for each, after in zip(args, [*args[1:], ""], strict=True) if each == "--db"]
        given += [each.removeprefix("--db=") for each in args if each.startswith("--db=")]
        if len(set(given)) > 1:  # the last one would be taken silently
            listed = f"--db is given {len(given)} times ({', '.join(given)})"
            ctx.fail(f"{listed}: a command has one source; name the folder of both")
        return super().resolve_command(ctx, args)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """Return the command of a name: ours, or one that another package adds."""
        own = super().get_command(ctx, cmd_name)
        if own is not None:
            return own
        added = load_plugin("almanaq.commands", cmd_name)
        if added is not None:
            command = typer.main.get_command(added)
            command.name = cmd_name
            return command
        if cmd_name == "bench":
            raise MissingExtraError("almanaq-bench", "", "almanaq bench", install="./bench")
        return None

    def list_commands(self, ctx: Any) -> list[str]:  # noqa: ARG002
        return [*self.commands, *plugin_names("almanaq.commands")]

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        with self._correct_errors():
            return super().parse_args(ctx, args)

    def invoke(self, ctx: Any) -> Any:
        with self._correct_errors():
            return super().invoke(ctx)

    @contextmanager
    def _correct_errors(self) -> Iterator[None]:
        """Suggest the option that was probably meant for one that a command does not have; end where nobody reads."""
        try:
            yield
        except BrokenPipeError:  # typer would exit with 1
            raise SystemExit(PIPE_CLOSED) from None
        except Exception as error:
            asked = getattr(error, "option_name", None)
            if asked is not None and hasattr(error, "possibilities"):
                own = _list_flags(getattr(getattr(error, "ctx", None), "command", self))
                others = {name: _list_flags(each) for name, each in self.commands.items()}
                error.message = f"No such option: {asked}{_suggest_option(asked, own, others)}"  # type: ignore[attr-defined]
                error.possibilities = None
            raise


def _list_flags(command: Any) -> set[str]:
    return {name for each in command.params for name in (*each.opts, *each.secondary_opts) if name.startswith("--")}


def _suggest_option(asked: str, own: set[str], others: Mapping[str, set[str]]) -> str:
    """Return the end of a message about an option that is unknown: its own nearest one, or who has it.

    >>> _suggest_option("--explian", {"--explain", "--deadline"}, {})
    '; did you mean --explain?'
    >>> _suggest_option("--explian", {"--deadline"}, {"sql": {"--explain"}, "find": {"--explain"}})
    '; did you mean --explain? That is an option of almanaq sql and find'
    >>> _suggest_option("--explain", {"--deadline"}, {"sql": {"--explain"}, "find": set()})
    '; that is an option of almanaq sql'
    """
    having = [name for name, options in others.items() if asked in options]
    if having:
        return f"; that is an option of almanaq {_join_names(having)}"
    near = nearest(asked, sorted(own), most=1, alike=_ALIKE)
    if near:
        return f"; did you mean {near[0]}?"
    near = nearest(asked, sorted(set().union(*others.values())), most=1, alike=_ALIKE)
    if not near:
        return ""
    having = [name for name, options in others.items() if near[0] in options]
    return f"; did you mean {near[0]}? That is an option of almanaq {_join_names(having)}"


def _join_names(names: list[str]) -> str:
    return " and ".join([", ".join(names[:-1]), names[-1]] if len(names) > 1 else names)


app = typer.Typer(
    cls=Commands,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)


def _print_version(ctx: typer.Context, wanted: bool) -> None:
    if wanted:
        import almanaq
        from almanaq.cli.housekeeping import version_lines

        short = [f"almanaq {almanaq.__version__}"]
        typer.echo("\n".join(version_lines() if ctx.meta.get(_VERBOSE) else short))
        raise typer.Exit


def _note_verbose(ctx: typer.Context, wanted: bool) -> None:
    ctx.meta[_VERBOSE] = wanted


@app.callback()
def almanaq(
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, help="Print the version and exit.")
    ] = False,
    # Eager, so that it is read before --version, in either order.
    verbose: Annotated[
        bool,
        typer.Option("--verbose", callback=_note_verbose, is_eager=True, help="With --version: of all that it needs."),
    ] = False,
) -> None:
    """Ask questions of tables and of the text inside them.

    Settings are read from flags, then the environment (ALMANAQ_MODEL, ALMANAQ_EMBEDDER, OPENAI_BASE_URL,
    OPENAI_API_KEY, ALMANAQ_CACHE_DIR), then almanaq.toml in the working directory, then your own in
    ~/.config/almanaq. What one in a folder says of models, addresses, keys and caches counts once you
    have allowed it: almanaq trust.

    Exit codes: 0 done; 1 the request failed; 2 wrong usage; 3 refused or stopped by a budget.
    """
