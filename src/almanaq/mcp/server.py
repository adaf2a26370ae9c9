"""The protocol around the tools; the one module that knows its library, the official SDK (`almanaq[mcp]`)."""

from __future__ import annotations

import asyncio
import json
import re
import sys
import traceback
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import aclosing
from dataclasses import dataclass
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, cast

from almanaq.accounts import Account
from almanaq.display import describe_progress
from almanaq.errors import AlmanaqError, MissingExtraError, is_engine_error, suggest
from almanaq.jobs import Job, JobRunner
from almanaq.mcp import caps, resources
from almanaq.mcp.declared import BY_NAME, TOOLS, instructions
from almanaq.mcp.tools import Tools
from almanaq.suql.execution.forecast import Forecast

if TYPE_CHECKING:
    from mcp.server.lowlevel import Server

    from almanaq.connection import Connection

LOCAL = ("127.0.0.1", "localhost", "[::1]")
_MOST_BODY = 1_000_000
_AT_ONCE, _WAITING = 16, 1_000
_THREADS = ThreadPoolExecutor(_AT_ONCE, thread_name_prefix="almanaq-mcp")
_QUOTED = re.compile(r"'[^']*'|“[^”]*”")


def run_stdio(connection: Connection) -> None:
    """Serve one client over standard input and output until it closes; nothing else is written to stdout."""
    server = make_server(connection)
    from mcp.server.stdio import stdio_server

    async def serve() -> None:
        async with stdio_server() as (read, write):
            await server.run(read, write, server.create_initialization_options())

    asyncio.run(serve())


def asgi_app(
    connection: Connection,
    *,
    path: str = "/mcp",
    hosts: Sequence[str] | None = LOCAL,
    account: Account | None = None,
) -> HttpApp:
    """Return an ASGI app that serves clients over streamable HTTP at `path`.

    Args:
        hosts: names by which it may be called (with any port); others are refused, against DNS rebinding. None: whoever
            mounts the app has checked Host and Origin already.
        account: what bounds the calls of all clients together, and logs them; None: nothing.
    """
    _require_sdk()
    return HttpApp(lambda: make_server(connection, account), path, hosts)


class HttpApp:
    """An ASGI app of one server. It starts with the first request, whoever mounts it, and ends with the event loop.

    Only then is the SDK imported: a page that no MCP client asks starts in two thirds of the time.
    """

    def __init__(self, open_server: Callable[[], Server[Any]], path: str, hosts: Sequence[str] | None) -> None:
        self._open_server, self._path, self._hosts = open_server, path, hosts
        self._app: Any = None
        self._manager: Any = None
        self._running: asyncio.Task[None] | None = None
        self._starting = asyncio.Lock()

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Serve a request; `lifespan` is answered, and nothing waits for it."""
        if scope["type"] == "lifespan":
            while (await receive())["type"] == "lifespan.startup":
                await send({"type": "lifespan.startup.complete"})
            await self.close()
            await send({"type": "lifespan.shutdown.complete"})
            return
        async with self._starting:
            if self._running is None:
                await asyncio.to_thread(self._open)
                started = asyncio.Event()
                self._running = asyncio.create_task(self._run(started))
                await started.wait()
        await self._app(scope, receive, send)

    def _open(self) -> None:
        from mcp.server.transport_security import TransportSecuritySettings

        names = [f"{host}{port}" for port in (":*", "") for host in self._hosts or ()]
        security = TransportSecuritySettings(
            enable_dns_rebinding_protection=self._hosts is not None,
            allowed_hosts=names,
            allowed_origins=[f"{scheme}://{name}" for scheme in ("http", "https") for name in names],
        )
        server = self._open_server()
        self._app = server.streamable_http_app(
            streamable_http_path=self._path, transport_security=security, max_request_body_size=_MOST_BODY
        )
        self._manager = server.session_manager

    async def close(self) -> None:
        if self._running is not None:
            self._running.cancel()
            await asyncio.gather(self._running, return_exceptions=True)

    async def _run(self, started: asyncio.Event) -> None:
        async with self._manager.run():
            started.set()
            await asyncio.Event().wait()


def make_server(connection: Connection, account: Account | None = None) -> Server[Any]:
    """Return a server of the SDK over a connection; raises MissingExtraError without the SDK."""
    _require_sdk()
    from mcp.server.lowlevel import Server

    import almanaq

    handlers = _Handlers(Tools(connection, account or Account()))
    return Server(
        "almanaq",
        version=almanaq.__version__,
        title="almanaq",
        instructions=instructions(connection.engine.dialect),
        on_list_tools=handlers.list_tools,
        on_call_tool=handlers.call_tool,
        on_list_resources=handlers.list_resources,
        on_list_resource_templates=handlers.list_templates,
        on_read_resource=handlers.read_resource,
        on_list_prompts=handlers.list_prompts,
        on_get_prompt=handlers.get_prompt,
        on_completion=handlers.complete,
    )


def _require_sdk() -> None:
    if find_spec("mcp") is None:
        raise MissingExtraError("mcp", "mcp", "an MCP server")


class _Handlers:
    def __init__(self, tools: Tools) -> None:
        import mcp_types

        self._tools = tools
        self._runner = JobRunner(_THREADS, _AT_ONCE, _WAITING)
        self._types: Any = mcp_types

    async def list_tools(self, context: Any, params: Any) -> Any:  # noqa: ARG002 - what the SDK passes
        types = self._types

        listed = [
            types.Tool(
                name=tool.name,
                description=tool.description,
                input_schema=tool.input_schema,
                output_schema=tool.output_schema,
                annotations=types.ToolAnnotations(
                    read_only_hint=tool.name != "confirm",
                    destructive_hint=False,
                    idempotent_hint=True,
                    open_world_hint=self._tools.remote,
                ),
            )
            for tool in TOOLS
        ]
        return types.ListToolsResult(tools=listed)

    async def call_tool(self, context: Any, params: Any) -> Any:
        wrong = _find_fault(params.name, params.arguments or {})
        if wrong:
            return self._fail(wrong)
        arguments = params.arguments or {}
        account = self._tools.account
        work = account.logged(
            params.name,
            self._tools.connection,
            lambda emit: self._tools.call(params.name, arguments, emit),
            question=arguments.get("question", ""),
            query=arguments.get("suql", ""),
        )
        job = Job(work, budgets=account.budgets())
        course = _ProgressCounter()
        try:
            async with aclosing(cast(Any, self._runner.run(job))) as events:
                async for name, data in events:
                    if name == "progress":
                        await context.session.report_progress(*course.place(data))
                    else:
                        record = data
        except AlmanaqError as error:
            # What an engine quotes may be from a row.
            return self._fail(_QUOTED.sub("'…'", str(error)) if is_engine_error(error) else str(error))
        except Exception as error:
            traceback.print_exc(file=sys.stderr)
            return self._fail(f"unexpected {type(error).__name__}: this is a bug in almanaq; details are in its log")
        text = json.dumps(record, ensure_ascii=False)
        return self._types.CallToolResult(
            content=[self._types.TextContent(type="text", text=text)], structured_content=record
        )

    def _fail(self, message: str) -> Any:
        content = [self._types.TextContent(type="text", text=caps.clip(message))]
        return self._types.CallToolResult(content=content, is_error=True)

    async def list_resources(self, context: Any, params: Any) -> Any:  # noqa: ARG002
        listed = [self._types.Resource(**each) for each in resources.RESOURCES]
        return self._types.ListResourcesResult(resources=listed)

    async def list_templates(self, context: Any, params: Any) -> Any:  # noqa: ARG002
        listed = [self._types.ResourceTemplate(**each) for each in resources.TEMPLATES]
        return self._types.ListResourceTemplatesResult(resource_templates=listed)

    async def read_resource(self, context: Any, params: Any) -> Any:  # noqa: ARG002
        uri = str(params.uri)
        text, mime_type = self._call_or_refuse(resources.read_resource, uri, self._tools.connection.catalog)
        content = self._types.TextResourceContents(uri=uri, mime_type=mime_type, text=text)
        return self._types.ReadResourceResult(contents=[content])

    async def list_prompts(self, context: Any, params: Any) -> Any:  # noqa: ARG002
        listed = [self._types.Prompt(name=name, **each) for name, each in resources.PROMPTS.items()]
        return self._types.ListPromptsResult(prompts=listed)

    async def get_prompt(self, context: Any, params: Any) -> Any:  # noqa: ARG002
        types = self._types
        text = self._call_or_refuse(resources.fill_prompt, params.name, params.arguments or {})
        message = types.PromptMessage(role="user", content=types.TextContent(type="text", text=text))
        described = resources.PROMPTS[params.name]["description"]
        return types.GetPromptResult(description=described, messages=[message])

    async def complete(self, context: Any, params: Any) -> Any:  # noqa: ARG002
        types, argument = self._types, params.argument
        values, total = resources.complete_argument(argument.name, argument.value, self._tools.connection.catalog)
        completion = types.Completion(values=values, total=total, has_more=total > len(values))
        return types.CompleteResult(completion=completion)

    def _call_or_refuse(self, give: Any, *arguments: Any) -> Any:
        from mcp.shared.exceptions import MCPError

        try:
            return give(*arguments)
        except AlmanaqError as error:
            raise MCPError(code=self._types.INVALID_PARAMS, message=caps.clip(str(error))) from None


@dataclass
class _ProgressCounter:
    """How far some work is, counted so that it never goes back, as the protocol wants it."""

    base: float = 0.0
    last: float = 0.0

    def place(self, data: dict[str, Any]) -> tuple[float, float | None, str]:
        """Return how far the work is, how far it will go (None: not known), and what is done, in a few words."""
        if "done" not in data:
            self.base = self.last = self.last + 1
            return self.last, None, data["message"]
        done, total = data["done"], data["total"]
        if self.base + done < self.last:
            self.base = self.last
        self.last = self.base + done
        whole = None if total is None else self.base + total
        forecast = None if data["forecast"] is None else Forecast(**data["forecast"])
        return self.last, whole, describe_progress(done, total, data["passed"], forecast)


def _find_fault(name: str, arguments: dict[str, Any]) -> str:
    """Say what is wrong with a call, "" where nothing is: the schema that clients see is the one that counts."""
    from jsonschema import Draft202012Validator

    tool = BY_NAME.get(name)
    if tool is None:
        return f"there is no tool {caps.clip(name, 100)!r}{suggest(name, BY_NAME)}"
    unknown = [key for key in arguments if key not in tool.takes]
    if unknown:
        return f"{name} takes no argument {caps.clip(unknown[0], 100)!r}{suggest(unknown[0], tool.takes)}"
    found = next(Draft202012Validator(tool.input_schema).iter_errors(arguments), None)
    if found is None:
        return ""
    place = "".join(f"{part!r}: " for part in found.absolute_path)
    return f"{name}: {place}{caps.clip(found.message, 500)}"
