"""Options that several commands share, and the connection they ask for."""

from __future__ import annotations

import sys
from contextlib import contextmanager
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated

import typer

from almanaq.errors import UsageError
from almanaq.visible import visible

if TYPE_CHECKING:
    from collections.abc import Iterator

    from almanaq.connection import Connection
    from almanaq.settings import Settings

SOURCE_HELP = (
    "A .duckdb or .sqlite file, a folder of CSV, JSON, Parquet, .xlsx or SQLite files, one such file, several with "
    "commas between, a glob, - (standard input), sample:restaurants, or a URL."
)


class Order(StrEnum):
    """In which order candidates are tried when the query does not say."""

    similarity = "similarity"
    table = "table"


Db = Annotated[str | None, typer.Option("--db", metavar="SOURCE", help=SOURCE_HELP)]
Source = Annotated[str | None, typer.Argument(metavar="SOURCE", help="What --db names, without --db.")]
Model = Annotated[
    str | None,
    typer.Option(
        "--model",
        metavar="NAME",
        help="auto (default: what is at hand, else local), local (no language model), ollama:MODEL, openai:MODEL …; see"
        " almanaq models.",
    ),
]
Embedder = Annotated[
    str | None,
    typer.Option("--embedder", metavar="NAME", help="lexical, static, local, openai:MODEL, a path or a hub name."),
]
Schema = Annotated[
    str | None,
    typer.Option("--schema", metavar="FILE", help="Column kinds and descriptions; default SOURCE.almanaq.toml."),
]
Examples = Annotated[
    str | None,
    typer.Option(
        "--examples", metavar="FILE", help="Questions with their SUQL for the model; default SOURCE.examples.toml."
    ),
]
MaxCalls = Annotated[
    int | None,
    typer.Option("--max-calls", metavar="N", help="Budget of model calls; default 1000, none for local."),
]
MaxMoney = Annotated[
    float | None,
    typer.Option("--max-money", metavar="DOLLARS", help="Budget of money for a query; needs a prices file."),
]
Speculation = Annotated[
    float | None,
    typer.Option("--speculation", metavar="X", help="Rows tried at once per row still needed; 1 wastes nothing."),
]
Confidence = Annotated[
    float | None,
    typer.Option(
        "--confidence", metavar="X", help="With local: answer only what is understood so surely, 0 to 1; default 0.65."
    ),
]
Deadline = Annotated[
    float | None,
    typer.Option(
        "--deadline",
        metavar="SECONDS",
        help="Interrupt a query, or a turn of ask and chat (120), that takes longer.",
    ),
]
OrderOption = Annotated[
    Order | None, typer.Option("--order", help="In which order rows are tried when the query does not say.")
]
Strict = Annotated[
    bool | None, typer.Option("--strict", help="Fail on a model call that failed, rather than count it as unknown.")
]
MaxResult = Annotated[
    int | None,
    typer.Option(
        "--max-result-mb",
        metavar="MB",
        min=1,
        help="Most memory of a result; default 256. None is needed for --out FILE.csv or FILE.parquet.",
    ),
]
Batch = Annotated[
    int | None,
    typer.Option(
        "--batch", metavar="N", min=1, help="Ask up to N short texts, or questions on a text, in one call; 1: none."
    ),
]
NoCache = Annotated[
    bool, typer.Option("--no-cache", help="Neither read nor write what is kept: replies, and tables of files.")
]
AllowHttp = Annotated[bool, typer.Option("--allow-http", help="Fetch a SOURCE of the form https://….")]
AllowFunction = Annotated[
    list[str] | None,
    typer.Option("--allow-function", metavar="NAME", help="Let queries call this function of your database's own."),
]
Dialect = Annotated[
    str | None,
    typer.Option(
        "--dialect",
        metavar="NAME",
        help="The dialect that queries are written in, as postgres; default: that of the source's engine.",
    ),
]
NoLink = Annotated[bool, typer.Option("--no-link", help="Compare literals with ENUM columns as they are written.")]


@dataclass(frozen=True, slots=True)
class Request:
    """The flags of a command that decide how to connect; None where a flag was not given.

    `looks`: whether a model is looked for where none is named; else that is `local`.
    """

    source: str
    model: str | None = None
    embedder: str | None = None
    schema: str | None = None
    max_calls: int | None = None
    speculation: float | None = None
    order: str | None = None
    strict: bool | None = None
    deadline: float | None = None
    cache: bool = True
    link: bool = True
    passages: int | None = None
    candidates: int | None = None
    batch: int | None = None
    examples: str | None = None
    allow_http: bool = False
    allow_functions: tuple[str, ...] = ()
    max_result_mb: int | None = None
    accuracy: str | None = None
    confidence: float | None = None
    looks: bool = True
    max_money: float | None = None
    dialect: str | None = None


def named_once(argument: str | None, option: str | None, *, command: str) -> str:
    """Return the source that is named as an argument or by --db; raise UsageError unless it is one of both."""
    if (argument is None) == (option is None):
        raise UsageError(f"name the source once: almanaq {command} SOURCE, or almanaq {command} --db SOURCE")
    return argument if argument is not None else str(option)


@contextmanager
def connected(request: Request) -> Iterator[Connection]:
    """Give a connection with flags, environment and file taken into account; close it at the end."""
    from almanaq.cli.arrow import load_arrow
    from almanaq.cli.memory import bound_memory
    from almanaq.cli.terminal import warn_of_source
    from almanaq.models.default_batching import usual_batching
    from almanaq.open_connection import connect
    from almanaq.settings import read_settings
    from almanaq.suql.accuracy.targets import read_accuracy

    settings = read_settings(
        model=request.model,
        embedder=request.embedder,
        max_calls=request.max_calls,
        max_money=request.max_money,
        speculation=request.speculation,
        order=request.order,
        strict=request.strict,
        deadline=request.deadline,
        max_result_mb=request.max_result_mb,
        confidence=request.confidence,
        batch=request.batch,
        dialect=request.dialect,
    )
    settings.export()
    model = chosen_model(settings, looks=request.looks)
    bound_memory(model, settings.embedder)
    load_arrow()
    with connect(
        request.source,
        model=model,
        embedder=settings.embedder,
        schema=request.schema,
        cache=request.cache,
        order=settings.order,
        speculation=settings.speculation,
        max_calls=settings.max_calls,
        max_money=settings.max_money,
        strict=settings.strict,
        link=request.link,
        deadline=settings.deadline,
        passages=request.passages,
        candidates=request.candidates,
        concurrency=settings.concurrency,
        batch=usual_batching(model) if settings.batch is None else settings.batch,
        examples=request.examples,
        allow_http=request.allow_http,
        allow_functions=request.allow_functions,
        max_result_mb=settings.max_result_mb,
        accuracy=None if request.accuracy is None else read_accuracy(request.accuracy),
        confidence=settings.confidence,
        dialect=settings.dialect,
    ) as connection:
        warn_of_source(connection.warnings)
        yield connection


def chosen_model(settings: Settings, *, looks: bool = True) -> str:
    """Return the model's name; what `auto` stands for is looked up, and said on stderr in one line.

    That nothing was found is said to a terminal alone.
    """
    from almanaq.models.auto import AUTO, choose, looks_nowhere
    from almanaq.models.budget import DEFAULT_MAX_CALLS

    name = settings.named_model()
    if name != AUTO:
        return name
    if looks_nowhere() or not (looks or "model" in settings.model_fields_set):
        return "local"
    choice = choose()
    if choice.place is None:
        message = f"{choice.name}: {choice.reason}"
        if not sys.stderr.isatty():  # nothing was chosen that costs anything or goes anywhere
            return choice.name
    else:
        most = DEFAULT_MAX_CALLS if settings.max_calls is None else settings.max_calls
        budget = f"at most {most:,} calls a query (--max-calls)"
        message = f"{choice.name} at {choice.place} ({choice.reason}); {budget}"
    print(f"almanaq: model {visible(message)}", file=sys.stderr)
    return choice.name
