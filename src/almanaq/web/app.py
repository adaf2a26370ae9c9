"""create_app: the HTTP API and the page over one connection, behind the gate. The one module that builds on FastAPI."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager

from fastapi import FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException

from almanaq.accounts import AuditLog, read_relations
from almanaq.errors import AlmanaqError
from almanaq.jobs import JobRunner, start_threads
from almanaq.users import User
from almanaq.web.api import routes
from almanaq.web.gate import Access, Application, Gate, Message, Receive, Scope, Send
from almanaq.web.problems import Problem, Refused, problem_of
from almanaq.web.service import Service
from almanaq.web.site import ReportPages, pages
from almanaq.web.streaming import problem_response
from almanaq.web.supervisor import GIVES_BACK, MemoryWatch

_SHORT_OF_MEMORY = (
    "the server ran out of memory and ended the longest-running request: ask for less, or try again later"
)
_ASIDE = 16
"""Threads for what takes a moment and is no query: reading what was kept, writing pages."""


def create_app(
    service: Service,
    access: Access,
    *,
    mounts: Mapping[str, Application] | None = None,
    bench: ReportPages | None = None,
    open_user: Callable[[User], tuple[Service, Mapping[str, Application]]] | None = None,
) -> Gate:
    """Return the application for an ASGI server.

    Args:
        service: what answers.
        access: who may reach it.
        mounts: further applications by the path at and below which they answer, as `/mcp`: they stand behind the same
            gate, see the whole path, and are closed with `await close()` where they have it.
        bench: what the pages at `/bench` show.
        open_user: gives what answers one user, and their mounts; None: all are answered alike.
    """
    limits = service.limits
    runner = JobRunner(start_threads(limits.at_once, "almanaq-web"), limits.at_once, limits.waiting)
    mounts = mounts or {}
    mounted = [*mounts.values()]

    async def end() -> None:
        await runner.close(Refused(503, "the server is shutting down: try again later"))

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        async with AsyncExitStack() as stack:
            for each in mounted:
                stack.push_async_callback(getattr(each, "close", _nothing))
            asyncio.get_running_loop().set_default_executor(start_threads(_ASIDE, "almanaq-aside"))
            leave = (lambda: os._exit(GIVES_BACK)) if service.worker.health is not None else None  # to be restarted
            watch = MemoryWatch(
                lambda: runner.running, lambda: runner.end_oldest(Refused(503, _SHORT_OF_MEMORY)), leave
            )
            stack.callback(asyncio.ensure_future(watch.look()).cancel)
            yield
            await end()

    app = _PathRouter(_answer_with(service, runner, bench, lifespan), mounts)
    if open_user is None:
        return Gate(app, access, end)

    def open_app(user: User) -> tuple[Application, Iterable[Application]]:
        own, own_mounts = open_user(user)
        return _PathRouter(_answer_with(own, runner, bench), own_mounts), own_mounts.values()

    users = _UserRouter(app, open_app)
    mounted.append(users)
    return Gate(users, access, end)


def _answer_with(
    service: Service,
    runner: JobRunner,
    bench: ReportPages | None,
    lifespan: Callable[[FastAPI], AbstractAsyncContextManager[None]] | None = None,
) -> Application:
    import almanaq

    app = FastAPI(
        title="almanaq",
        version=almanaq.__version__,
        description="Asks questions of tables and of the text inside them.",
        docs_url=None,
        redoc_url=None,
        lifespan=lifespan,
    )
    app.router.routes += [*routes(service, runner), *pages(service, bench).routes]  # include_router() builds each again
    app.add_exception_handler(RequestValidationError, _answer_invalid)
    app.add_exception_handler(HTTPException, _answer_known)
    app.add_exception_handler(AlmanaqError, _answer_problem)
    app.add_exception_handler(Exception, _answer_problem)
    return app if service.account.log is None else _ReadingLog(app, service, service.account.log)


_LOGGED = ("/api/v1/", "/a/", "/boards/")
_LOGGED_AS_JOBS = ("/api/v1/ask", "/api/v1/sql", "/api/v1/explain", "/api/v1/why-not")
_TYPED = ("/api/v1/links", "/api/v1/complete")
_TYPED_SECONDS = 60.0
"""Requests while somebody types are one line of the audit log."""


class _ReadingLog:
    """Adds a line to the audit log before a table, a completion, a board or a kept answer is sent; no query is one."""

    def __init__(self, app: Application, service: Service, log: AuditLog) -> None:
        self._app, self._service, self._log = app, service, log
        self._typed: dict[str, float] = {}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        path = str(scope.get("path", ""))
        if scope["type"] != "http" or not path.startswith(_LOGGED) or path in _LOGGED_AS_JOBS:
            await self._app(scope, receive, send)
            return

        async def send_logged(message: Message) -> None:
            if message["type"] == "http.response.start" and not self._goes_on(path, message["status"]):
                await asyncio.to_thread(self._write, scope, message["status"])
            await send(message)

        await self._app(scope, receive, send_logged)

    def _goes_on(self, path: str, status: int) -> bool:
        """Return whether a request belongs to typing that has its line already."""
        if path not in _TYPED or status >= 400:
            return False
        last, now = self._typed.get(path, -_TYPED_SECONDS), time.monotonic()
        if now - last < _TYPED_SECONDS:
            return True
        self._typed[path] = now
        return False

    def _write(self, scope: Scope, status: int) -> None:
        connection, place = self._service.connection, scope.get("path_params", {})
        record = scope.get("almanaq.record", {}) if status < 400 else {}  # a refused request shows nothing
        shown = [record, *(item.get("record") or {} for item in record.get("items", ()) if isinstance(item, dict))]
        listed = [(each, each.get("rows")) for each in shown]  # a profile counts its rows
        queries = [each["suql"] for each in shown if each.get("suql")]
        table = connection.catalog.find(place.get("name", "")) if "/tables/" in scope["path"] else None
        relations = [table.name] if table else [name for query in queries for name in read_relations(connection, query)]
        self._log.write(
            user=self._service.account.user.name,
            action=f"{scope['method']} {scope['path']}",
            query="; ".join(queries) or None,
            relations=list(dict.fromkeys(relations)),
            rows=sum(each.get("rows_total", len(rows) if isinstance(rows, list) else 0) for each, rows in listed),
            error=None if status < 400 else str(status),
        )


class _PathRouter:
    """Hands a request on to the application at whose path it arrives."""

    def __init__(self, app: Application, mounts: Mapping[str, Application]) -> None:
        self._app, self._mounts = app, mounts

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        path = str(scope.get("path", ""))
        found = (mounted for at, mounted in self._mounts.items() if path == at or path.startswith(at + "/"))
        await next(found, self._app)(scope, receive, send)


class _UserRouter:
    """Hands a request on to the application of its user, which is made when they first ask.

    Args:
        others: answers what nobody known asks: `/healthz`.
        open_app: gives a user's application, and what is to be closed with it.
    """

    def __init__(
        self, others: Application, open_app: Callable[[User], tuple[Application, Iterable[Application]]]
    ) -> None:
        self._others, self._open = others, open_app
        self._opened: dict[str, tuple[Application, Iterable[Application]]] = {}
        self._lock = asyncio.Lock()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        user = scope.get("almanaq.user")
        if user is None:
            await self._others(scope, receive, send)
            return
        try:
            async with self._lock:
                if user.name not in self._opened:
                    self._opened[user.name] = await asyncio.to_thread(self._open, user)
        except AlmanaqError as error:
            await problem_response(problem_of(error).record())(scope, receive, send)
            return
        await self._opened[user.name][0](scope, receive, send)

    async def close(self) -> None:
        """Close what was opened for users."""
        for _, mounts in self._opened.values():
            for mounted in mounts:
                await getattr(mounted, "close", _nothing)()


async def _nothing() -> None:
    """Close what needs no closing."""


async def _answer_invalid(request: Request, error: Exception) -> Response:
    assert isinstance(error, RequestValidationError)
    media = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if isinstance(error.body, bytes | str) and not media.endswith("json"):
        message = "the body is not JSON: send the header Content-Type: application/json"
        return problem_response(Problem(422, "RequestError", message).record())
    faults = [
        {"where": ".".join(str(part) for part in fault["loc"]), "message": str(fault["msg"])}
        for fault in error.errors()
    ]
    message = "; ".join(f"{fault['where']}: {fault['message']}" for fault in faults[:3])
    return problem_response(Problem(422, "RequestError", message, {"errors": faults}).record())


async def _answer_known(_: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    # What FastAPI cannot read is, like JSON that it can, a body that is not what is described.
    status = 422 if error.status_code == 400 else error.status_code
    kind = {404: "NotFound", 405: "MethodError", 413: "BodyError"}.get(status, "RequestError")
    return problem_response(Problem(status, kind, str(error.detail)).record(), dict(error.headers or {}))


async def _answer_problem(_: Request, error: Exception) -> Response:
    return problem_response(problem_of(error).record())
