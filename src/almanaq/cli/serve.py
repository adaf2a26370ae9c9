"""`almanaq serve` and `almanaq mcp`: a page, an HTTP API and tools over a source."""

from __future__ import annotations

import json
import os
import shlex
import sys
from collections.abc import Mapping
from contextlib import closing
from dataclasses import dataclass, replace
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from almanaq.benchmark import import_bench
from almanaq.cli.options import SOURCE_HELP, Chosen, connect_source, name_source, take_options
from almanaq.cli.output import write_text
from almanaq.errors import MissingExtraError, UsageError, suggest
from almanaq.options import AGENT_DEADLINE, OPTIONS

if TYPE_CHECKING:
    from almanaq.users import User
    from almanaq.web.gate import Application
    from almanaq.web.service import Service


_MODEL_CALLS = "Limit the calls of a language model {}, since the start; default: no limit."


@take_options
def serve(
    source: Annotated[str | None, typer.Argument(metavar="SOURCE", help=SOURCE_HELP)] = None,
    db: Annotated[str | None, typer.Option("--db", metavar="SOURCE", help="The same.")] = None,
    host: Annotated[
        str, typer.Option("--host", metavar="ADDRESS", help="Where to listen; any other than this needs --token.")
    ] = "127.0.0.1",
    port: Annotated[int, typer.Option("--port", metavar="N", min=0, max=65535, help="0: any free port.")] = 8765,
    token: Annotated[
        str | None,
        typer.Option("--token", metavar="T", envvar="ALMANAQ_TOKEN", help="Clients must send it.", show_envvar=True),
    ] = None,
    allow_host: Annotated[
        list[str] | None,
        typer.Option("--allow-host", metavar="NAME", help="Another host name that clients may use; repeatable."),
    ] = None,
    conversation_calls: Annotated[
        int | None,
        typer.Option("--conversation-calls", metavar="N", min=0, help=_MODEL_CALLS.format("in one conversation")),
    ] = None,
    server_calls: Annotated[
        int | None, typer.Option("--server-calls", metavar="N", min=0, help=_MODEL_CALLS.format("in all"))
    ] = None,
    ask_above: Annotated[
        int, typer.Option("--ask-above", metavar="N", min=0, help="Calls above which the page asks for consent.")
    ] = 100,
    at_once: Annotated[
        int, typer.Option("--at-once", metavar="N", min=1, max=64, help="Requests handled at once; others wait.")
    ] = 32,
    no_store: Annotated[
        bool, typer.Option("--no-store", help="Keep answers in memory only: links end with the server.")
    ] = False,
    store_mb: Annotated[
        int,
        typer.Option("--store-mb", metavar="MB", min=1, help="Most space for kept answers; the oldest are removed."),
    ] = 512,
    users: Annotated[
        Path | None,
        typer.Option("--users", metavar="FILE", help="Who may ask, with roles of the schema file: TOML."),
    ] = None,
    user_header: Annotated[
        str | None,
        typer.Option("--user-header", metavar="NAME", help="A proxy with --token names the user in this header."),
    ] = None,
    audit: Annotated[
        Path | None, typer.Option("--audit", metavar="FILE", help="Log who asked what, a line of JSON each.")
    ] = None,
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
    from almanaq.users import read_users
    from almanaq.web.gate import Access
    from almanaq.web.supervisor import bind_socket, supervise

    if user_header is not None and users is None:
        raise UsageError("--user-header: say with --users FILE which roles the users have")
    known = None if users is None else read_users(users, user_header or "")
    access = Access(host, port, token, tuple(allow_host or ()), users=known)
    with bind_socket(host, port) as listening:
        access = replace(access, port=listening.getsockname()[1])
        # Open nothing before: each worker would inherit what the supervisor holds.
        with (
            supervise(access.port, partial(typer.echo, err=True)) as worker,
            connect_source(named, chosen) as connection,
        ):
            from almanaq.accounts import AuditLog, Ledger
            from almanaq.agent.checked import source_id
            from almanaq.cli.terminal import say
            from almanaq.engines.restricted import check_users
            from almanaq.models.private_files import default_cache_folder
            from almanaq.web.app import create_app
            from almanaq.web.service import Limits, open_service
            from almanaq.web.serving import serve as answer

            deadline = chosen.get("deadline", AGENT_DEADLINE)
            limits = Limits(deadline, conversation_calls, server_calls, ask_above, at_once)
            # Whoever may be somebody else does not see private columns.
            shown = connection.public() if access.exposed else connection
            runs = import_bench("report.page", "almanaq serve --bench").read_bench(bench) if bench else None
            log = None if audit is None else AuditLog(audit)
            mb = None if no_store else store_mb
            service = open_service(shown, named, limits, store_mb=mb, worker=worker, log=log)
            ledger = None
            if known is not None:
                ledger = Ledger(None if no_store else default_cache_folder() / "calls.sqlite", source_id(named))
                check_users(shown.catalog, known, shown.engine.dialect)

            def ready() -> None:
                worker.say_ready()  # whoever reads the address may count on being watched
                if not worker.restarts:
                    say(access.address())

            def open_user(user: User) -> tuple[Service, Mapping[str, Application]]:
                own = service.for_user(user, ledger)
                return own, _open_mounts(own)

            with closing(service.store):
                by_user = None if known is None else open_user
                app = create_app(service, access, mounts=_open_mounts(service), bench=runs, open_user=by_user)
                answer(app, [listening, *([] if worker.health is None else [worker.health])], ready)


def _open_mounts(service: Service) -> Mapping[str, Application]:
    """Return what answers at further paths where its extra is installed: MCP, at `/mcp`."""
    if find_spec("mcp") is None:
        return {}
    from almanaq.mcp import asgi_app

    return {"/mcp": asgi_app(service.connection, path="/mcp", hosts=None, account=service.account)}


_NAME = "almanaq"


@dataclass(frozen=True, slots=True)
class Client:
    """A program: `place` is where its settings are, `keys` lead to the servers in them, `more` is part of each."""

    name: str
    place: str
    keys: tuple[str, ...]
    more: tuple[tuple[str, str], ...] = ()


CLIENTS = (
    Client("claude-desktop", "claude_desktop_config.json (Settings > Developer > Edit Config)", ("mcpServers",)),
    Client("claude-code", ".mcp.json in the project's folder", ("mcpServers",), (("type", "stdio"),)),
    Client("vscode", ".vscode/mcp.json in the project's folder", ("servers",), (("type", "stdio"),)),
    Client("cursor", "~/.cursor/mcp.json, or .cursor/mcp.json in the project's folder", ("mcpServers",)),
    Client("zed", "settings.json (zed: open settings)", ("context_servers",)),
)


@take_options
def mcp(
    source: Annotated[str | None, typer.Argument(metavar="SOURCE", help=SOURCE_HELP)] = None,
    db: Annotated[str | None, typer.Option("--db", metavar="SOURCE", help="The same, as an option.")] = None,
    print_config: Annotated[
        str | None,
        typer.Option(
            "--print-config",
            metavar="CLIENT",
            help="Print the settings for CLIENT, and exit: claude-desktop, claude-code, vscode, cursor or zed.",
        ),
    ] = None,
    *,
    chosen: Chosen,
) -> None:
    """Serve one program over standard input and output (MCP): questions, queries, tables, texts.

    Eight tools; confirm keeps a right query, all others only read.
    Private columns are not there. What a program asks for may lower --max-calls and
    --deadline, never raise them. Several may be started over one source.
    """
    named = name_source(source, db, command="mcp")
    if print_config is not None:
        flags = []
        for name, value in chosen.items():
            option = OPTIONS[name]
            text = _absolute_path(str(value)) if option.metavar == "FILE" else str(value)
            flags += [option.spelling] if isinstance(value, bool) else [option.spelling, text]
        _print_config(print_config, named, flags)
        return
    from almanaq.mcp import run_stdio

    with connect_source(named, chosen) as connection:
        run_stdio(connection)


def _print_config(client: str, source: str, flags: list[str]) -> None:
    known = {each.name: each for each in CLIENTS}
    if client not in known:
        raise UsageError(f"--print-config: no client named {client!r}{suggest(client, known)}")
    found, environment = known[client], {}
    # A client hands on nothing of the environment; a key is not written.
    if any(flag.startswith("openai:") for flag in flags):
        from almanaq.models.http import redact_address

        address = os.environ.get("OPENAI_BASE_URL")
        environment = {"OPENAI_API_KEY": "YOUR-KEY"}
        environment |= {"OPENAI_BASE_URL": redact_address(address)} if address else {}
    command, arguments = str(Path(sys.argv[0]).absolute()), ["mcp", _absolute_path(source), *flags]
    server: object = {**dict(found.more), "command": command, "args": arguments, "env": environment}
    for key in (_NAME, *reversed(found.keys)):
        server = {key: server}
    write_text(json.dumps(server, indent=2, ensure_ascii=False) + "\n", None)
    print(f"almanaq: this belongs in {found.place}", file=sys.stderr)
    if client == "claude-code":
        added = shlex.join(["claude", "mcp", "add", _NAME, "--", command, *arguments])
        print(f"almanaq: or run: {added}", file=sys.stderr)


def _absolute_path(source: str) -> str:
    """Return a path that holds wherever a client starts the command; names and URLs as they are."""
    return str(Path(source).absolute()) if Path(source).exists() else source
