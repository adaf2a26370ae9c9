"""`almanaq serve`: a page and an HTTP API over a source."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from almanaq.cli.options import SOURCE_HELP, Chosen, connect_source, name_source, take_options
from almanaq.errors import MissingExtraError
from almanaq.plugins import call_plugin

if TYPE_CHECKING:
    import socket
    from collections.abc import Mapping, Sequence

    from almanaq.connection import Connection
    from almanaq.web.gate import Access, Application
    from almanaq.web.service import Limits
    from almanaq.web.site import ReportPages
    from almanaq.web.supervisor import Worker

_MODEL_CALLS = "Calls of a language model {}, since the start; default: any number."


def register(app: typer.Typer) -> None:
    """Add the command to the app."""
    app.command("serve")(serve)


@take_options
def serve(
    source: Annotated[str | None, typer.Argument(metavar="SOURCE", help=SOURCE_HELP)] = None,
    db: Annotated[str | None, typer.Option("--db", metavar="SOURCE", help="The same.")] = None,
    host: Annotated[
        str, typer.Option("--host", metavar="ADDRESS", help="Where to listen; any other than this needs --token.")
    ] = "127.0.0.1",
    port: Annotated[int, typer.Option("--port", metavar="N", min=0, max=65535, help="0: any that is free.")] = 8765,
    token: Annotated[
        str | None,
        typer.Option(
            "--token", metavar="T", envvar="ALMANAQ_TOKEN", help="Whoever shows it may ask.", show_envvar=True
        ),
    ] = None,
    allow_host: Annotated[
        list[str] | None,
        typer.Option("--allow-host", metavar="NAME", help="A further name by which clients address it; repeatable."),
    ] = None,
    conversation_calls: Annotated[
        int | None,
        typer.Option("--conversation-calls", metavar="N", min=0, help=_MODEL_CALLS.format("in one conversation")),
    ] = None,
    server_calls: Annotated[
        int | None, typer.Option("--server-calls", metavar="N", min=0, help=_MODEL_CALLS.format("in all"))
    ] = None,
    ask_above: Annotated[
        int, typer.Option("--ask-above", metavar="N", min=0, help="Calls above which the page asks before it spends.")
    ] = 100,
    at_once: Annotated[
        int, typer.Option("--at-once", metavar="N", min=1, max=64, help="Requests worked on at once; others wait.")
    ] = 32,
    no_store: Annotated[
        bool, typer.Option("--no-store", help="Keep answers in memory only: links end with the server.")
    ] = False,
    store_mb: Annotated[
        int, typer.Option("--store-mb", metavar="MB", min=1, help="What kept answers may take; the oldest give way.")
    ] = 512,
    bench: Annotated[
        list[Path] | None,
        typer.Option("--bench", metavar="RUN_DIR", help="Show this benchmark run at /bench; repeatable."),
    ] = None,
    *,
    chosen: Chosen,
) -> None:
    """Serve a page where answers can be checked, and an HTTP API.

    Prints the address once it answers, and ends at Ctrl-C. Sources and models are those that are named here: no client
    can name others.
    """
    named = name_source(source, db, command="serve")
    if find_spec("fastapi") is None or find_spec("uvicorn") is None:
        raise MissingExtraError("fastapi", "web", "almanaq serve")
    from dataclasses import replace

    from almanaq.options import AGENT_DEADLINE
    from almanaq.web.gate import Access
    from almanaq.web.supervisor import bound, supervised

    access = Access(host, port, token, tuple(allow_host or ()))
    with bound(host, port) as listening:
        access = replace(access, port=listening.getsockname()[1])
        # Nothing is opened before: what the supervisor holds, each of its workers would hold as well.
        with supervised(access.port, _tell) as worker, connect_source(named, chosen) as connection:
            from almanaq.web.service import Limits

            deadline = chosen.get("deadline", AGENT_DEADLINE)
            limits = Limits(deadline, conversation_calls, server_calls, ask_above, at_once)
            # Whoever may be on another machine is not shown what is private.
            shown = connection.public() if access.exposed else connection
            _serve(shown, named, access, limits, None if no_store else store_mb, bench or (), listening, worker)


def _tell(message: str) -> None:
    typer.echo(message, err=True)


def _serve(
    connection: Connection,
    source: str,
    access: Access,
    limits: Limits,
    store_mb: int | None,
    bench: Sequence[Path],
    listening: socket.socket,
    worker: Worker,
) -> None:
    """Answer over an open connection until a signal."""
    from contextlib import closing

    from almanaq.cli.terminal import say
    from almanaq.web.app import create_app
    from almanaq.web.opening import open_service
    from almanaq.web.serving import serve

    runs = _runs(bench)
    service = open_service(connection, source, limits, store_mb=store_mb, worker=worker)

    def ready() -> None:
        worker.say_ready()  # whoever reads the address may count on being watched
        if not worker.restarts:
            say(access.address())

    with closing(service.store):
        app = create_app(service, access, mounts=_mounts(connection), bench=runs)
        serve(app, [listening, *([] if worker.health is None else [worker.health])], ready)


def _runs(folders: Sequence[Path]) -> ReportPages | None:
    """Return what the benchmark pages show, read once; None where no run was named."""
    if not folders:
        return None
    pages: ReportPages | None = call_plugin("almanaq.pages", "bench", folders)
    if pages is None:
        raise MissingExtraError("almanaq-bench", "", "almanaq serve --bench", install="./bench")
    return pages


def _mounts(connection: Connection) -> Mapping[str, Application]:
    """Return what answers at further paths where its extra is installed: MCP, at `/mcp`."""
    if find_spec("mcp") is None:
        return {}
    from almanaq.mcp import asgi_app

    return {"/mcp": asgi_app(connection, path="/mcp", hosts=None)}
