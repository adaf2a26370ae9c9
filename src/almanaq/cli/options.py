"""The flags that the schema of options gives to commands, and the connection that they ask for."""

from __future__ import annotations

import ctypes
import inspect
import os
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from enum import Enum
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, get_type_hints

import typer

from almanaq.display import visible
from almanaq.errors import UsageError
from almanaq.options import DEFAULT_MAX_CALLS, OPTIONS, Option

if TYPE_CHECKING:
    from almanaq.connection import Connection
    from almanaq.settings import Settings


SOURCE_HELP = (
    "A .duckdb or .sqlite file, a folder of CSV, JSON, Parquet, .xlsx or SQLite files, one such file, several "
    "separated by commas, a glob, - (standard input), sample:restaurants, or a URL."
)
Db = Annotated[str | None, typer.Option("--db", metavar="SOURCE", help=SOURCE_HELP)]
Source = Annotated[str | None, typer.Argument(metavar="SOURCE", help="What --db names, without --db.")]
Chosen = Mapping[str, Any]
"""The options that the flags of a command set, by their names; those that were not given are not in it."""


def flag(name: str) -> Any:
    """Return the flag of an option, to annotate a parameter with."""
    option = OPTIONS[name]
    # Help says where there must be one of something at least; the settings check all other ranges.
    least = (option.least or None) if option.python_type is int else None
    return typer.Option(option.spelling, metavar=option.metavar, help=option.help, min=least)


_QUIET = inspect.Parameter(
    "quiet",
    inspect.Parameter.POSITIONAL_OR_KEYWORD,
    default=False,
    annotation=Annotated[bool, typer.Option("--quiet", help="Print no notes about how files were read.")],
)


def take_options(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command the flags that the schema lists for it, in the place of its parameter `chosen`."""
    offered = {
        option.spelling.removeprefix("--").replace("-", "_"): option
        for option in OPTIONS.values()
        if option.is_set_by(command.__name__)
    }
    hints = get_type_hints(command, include_extras=True)
    shown: list[inspect.Parameter] = []
    for parameter in inspect.signature(command).parameters.values():
        if parameter.name == "chosen":
            shown += [_declare(name, option) for name, option in offered.items()]
            shown.append(_QUIET)
        else:
            shown.append(parameter.replace(annotation=hints[parameter.name]))
    signature = inspect.Signature(shown)

    @wraps(command)
    def run(*args: Any, **kwargs: Any) -> None:
        from almanaq.cli.terminal import silence_notes

        bound = signature.bind(*args, **kwargs)
        bound.apply_defaults()
        own = {name: value for name, value in bound.arguments.items() if name not in offered}
        quiet = own.pop("quiet", False)
        values = {option.name: _read(option, bound.arguments[name]) for name, option in offered.items()}
        with silence_notes(quiet):
            command(**own, chosen={name: value for name, value in values.items() if value is not None})

    run.__signature__ = signature  # type: ignore[attr-defined]
    run.__annotations__ = {parameter.name: parameter.annotation for parameter in shown}
    return run


def _declare(name: str, option: Option) -> inspect.Parameter:
    kind: Any = Enum(name, [(each, each) for each in option.choices]) if option.choices else option.python_type
    if option.annotation.startswith("Sequence"):
        kind = list[str]
    # A switch is off where it is not given, unless a setting may have turned it on.
    switch = kind is bool and not option.is_set_by("setting")
    annotation: Any = Annotated[kind if switch else kind | None, flag(option.name)]
    default = False if switch else None
    return inspect.Parameter(name, inspect.Parameter.POSITIONAL_OR_KEYWORD, default=default, annotation=annotation)


def _read(option: Option, value: Any) -> Any:
    """Return the value that a flag sets; None where it was not given."""
    if value is None or value is False or value == []:
        return None
    if isinstance(value, Enum):
        return value.value
    if option.python_type is bool:
        return not option.spelling.startswith("--no-")
    return option.parse(value) if option.parse is not None else value


def is_source(word: str) -> bool:
    """Return whether a word that is no command is meant as a source: something is there, or it looks like a place."""
    if not word or word.startswith("-"):
        return False
    return os.path.exists(word) or (" " not in word and any(sign in word for sign in (":", "/", ".", os.sep)))


def name_source(argument: str | None, option: str | None, *, command: str) -> str:
    """Return the source that is named as an argument or by --db; raise UsageError unless it is one of both."""
    if (argument is None) == (option is None):
        raise UsageError(f"name the source once: almanaq {command} SOURCE, or almanaq {command} --db SOURCE")
    return argument if argument is not None else str(option)


@contextmanager
def connect_source(source: str, chosen: Chosen, *, looks: bool = True) -> Iterator[Connection]:
    """Give a connection with flags, environment and file taken into account; `looks`: look for a model for `auto`."""
    from almanaq.cli.terminal import warn_of_source
    from almanaq.connection import connect
    from almanaq.settings import read_settings

    settings = read_settings(**{name: value for name, value in chosen.items() if OPTIONS[name].is_set_by("setting")})
    settings.export()
    model = choose_model(settings, looks=looks)
    bound_memory(settings.embedder)
    load_arrow()
    arguments = {**chosen, **settings.options(), "model": model}
    with connect(source, **arguments) as connection:
        warn_of_source(connection.warnings, source)
        yield connection


def choose_model(settings: Settings, *, looks: bool = True) -> str:
    """Return the model's name; for `auto`, look for a model and name it on stderr in one line.

    That none was found is reported on a terminal only.
    """
    from almanaq.models.providers import AUTO, auto_is_off, choose_model

    name: str = settings.resolve_model()
    if name != AUTO:
        return name
    if auto_is_off() or not (looks or "model" in settings.model_fields_set):
        return "local"
    choice = choose_model()
    if choice.place is None:
        if not sys.stderr.isatty():  # the choice costs nothing and sends nothing
            return choice.name
        message = f"{choice.name}: {choice.reason}"
    else:
        most = DEFAULT_MAX_CALLS if settings.max_calls is None else settings.max_calls
        budget = f"at most {most:,} calls per query (--max-calls)"
        message = f"{choice.name} at {choice.place} ({choice.reason}); {budget}"
    print(f"almanaq: model {visible(message)}", file=sys.stderr)
    return choice.name


_SHARE = 0.8
_CGROUP = Path("/sys/fs/cgroup/memory.max")
_ALLOCATORS = {"DUCKDB_JE_MALLOC_CONF": "retain:false", "ARROW_DEFAULT_MEMORY_POOL": "system"}
_MOST_ARENAS, _ARENAS = -8, 2
"""The parameter of `mallopt` that bounds the arenas of the C library, and the bound."""


def give_freed_memory_back() -> None:
    """Have the allocators give freed memory to the system; of effect on libraries that are not loaded yet.

    DuckDB's keeps the addresses of what was freed, Arrow's own keeps the pages (400 MB after a hundred large answers),
    and the C library keeps some for each thread. All of it counts towards the bound of a process, so that a few large
    queries would leave no memory to any other, though hardly any is in use.
    """
    for name, value in _ALLOCATORS.items():
        os.environ.setdefault(name, value)
    with suppress(OSError, AttributeError, TypeError):
        ctypes.CDLL(None).mallopt(_MOST_ARENAS, _ARENAS)


def bound_memory(embedder: str | None) -> None:
    """Let this process hold four fifths of the machine's memory, or of the container's, where the system can say so.

    Models that run in this process reserve far more than they use, on a GPU above all: with one there is no bound.
    """
    far = embedder in (None, "lexical", "static") or embedder.startswith("openai:")
    if not far:
        return
    with suppress(ImportError, OSError, ValueError):
        import resource

        soft, hard = resource.getrlimit(resource.RLIMIT_DATA)
        most = int(_SHARE * machine_memory())
        if soft == resource.RLIM_INFINITY or soft > most:
            resource.setrlimit(resource.RLIMIT_DATA, (most, hard))


def machine_memory() -> int:
    held = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    with suppress(OSError, ValueError):
        return min(held, int(_CGROUP.read_text()))
    return held


class _NoPandas:
    """Makes pandas look as if it was not installed."""

    @staticmethod
    def find_spec(name: str, *_: object) -> None:
        if name == "pandas":
            raise ModuleNotFoundError(name, name=name)


def load_arrow() -> None:
    """Import pyarrow, which looks for pandas once: half a second of work where that is installed.

    Where its tables are turned into pandas' it looks again, and finds it.
    """
    import pyarrow as pa

    if "pandas" in sys.modules:
        return
    sys.meta_path.insert(0, _NoPandas)
    try:
        pa.array([0])
    finally:
        sys.meta_path.remove(_NoPandas)
