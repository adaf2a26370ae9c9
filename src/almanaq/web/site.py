"""The page, and what it is made of: templates that the server fills, and assets that lie in the package."""

from __future__ import annotations

import asyncio
import datetime
import hashlib
import json
from contextlib import suppress
from functools import cache
from importlib.resources import files
from typing import Annotated, Any, Protocol

from fastapi import APIRouter, Query, Request, Response
from jinja2 import Environment, PackageLoader
from markupsafe import Markup
from starlette.background import BackgroundTask

from almanaq.charts.chart import read_spec
from almanaq.charts.choose import DrawnKind
from almanaq.display import visible
from almanaq.errors import AlmanaqError
from almanaq.web.about import about_record, describe_table, list_tables, sample_questions
from almanaq.web.boards import Boards
from almanaq.web.problems import NotFound, Refused
from almanaq.web.records import bind_query, draw_kept, name_file
from almanaq.web.service import Service
from almanaq.web.store import Answer
from almanaq.web.verdicts import Verdicts


class ReportPages(Protocol):
    """What the pages at `/bench` show: almanaq-bench makes them of run folders."""

    def report(self) -> str:
        """Return the report of all runs as HTML."""

    def record(self, number: int, page: int) -> tuple[str, int] | None:
        """Return a page of a run's record as HTML, and how many pages it has; None where there is no such page."""


REVIEWED = 20
SHOWN_TABLES = 12
_NO_RUNS = "this server shows no benchmark: start it with --bench RUN_DIR"
_KINDS = {"js": "text/javascript", "css": "text/css", "svg": "image/svg+xml"}


def pages(service: Service, bench: ReportPages | None = None) -> APIRouter:
    """Return the routes of the page; `bench`: what the benchmark pages show, where there are any."""
    router = APIRouter(include_in_schema=False)
    boards = Boards(service)
    questions = cache(lambda: sample_questions(service.connection))

    @cache
    def prepare() -> None:
        """Make what the first answer would wait for: the index of words, and what the engine reads once."""
        with suppress(AlmanaqError):  # the question itself will say so
            service.connection.agent.word_index()
        bind_query(service.connection.engine, "SELECT 1")

    async def page(name: str, *, status: int = 200, **values: Any) -> Response:
        about = await asyncio.to_thread(about_record, service)
        text = await asyncio.to_thread(
            lambda: _templates().get_template(name).render(about=about, bench=bench, **values)
        )
        return Response(text.encode("utf-8", "replace"), status_code=status, media_type="text/html; charset=utf-8")

    @router.get("/")
    async def chat() -> Response:
        found = await asyncio.to_thread(list_tables, service.connection.catalog, "", SHOWN_TABLES, None)
        more = found["total"] - len(found["tables"])
        samples = await asyncio.to_thread(questions)
        made = await page("chat.html", samples=samples, tables=found["tables"], more_tables=more)
        made.background = BackgroundTask(asyncio.to_thread, prepare)
        return made

    @router.get("/tables")
    async def tables(
        search: Annotated[str, Query(max_length=200)] = "", cursor: Annotated[str | None, Query(max_length=100)] = None
    ) -> Response:
        found = await asyncio.to_thread(list_tables, service.connection.catalog, search, 100, cursor)
        return await page("tables.html", search=search, **found)

    @router.get("/tables/{name}")
    async def table(name: str) -> Response:
        if service.connection.catalog.find(name) is None:
            raise NotFound(service.connection.catalog.unknown(name))
        return await page("table.html", table=await asyncio.to_thread(describe_table, service.connection, name))

    @router.get("/sql")
    async def query() -> Response:
        return await page("sql.html")

    @router.get("/boards")
    async def listed() -> Response:
        return await page("boards.html", boards=await asyncio.to_thread(boards.describe_all))

    @router.get("/boards/{name}")
    async def board(name: str) -> Response:
        shown = await asyncio.to_thread(lambda: boards.record(boards.get(name)))
        return await page("board.html", board=shown, items=shown["items"])

    @router.get("/boards/{name}/export")
    async def export(name: str) -> Response:
        found = await asyncio.to_thread(boards.get, name)
        text = await asyncio.to_thread(export_board, boards, found)
        headers = name_file(found.record["title"] or name, found.made, "html")
        return Response(text.encode("utf-8", "replace"), media_type="text/html; charset=utf-8", headers=headers)

    @router.get("/a/{id}")
    async def permalink(
        id: str, request: Request, kind: DrawnKind | None = None, x: str = "", y: str = "", colour: str = ""
    ) -> Response:
        found = await asyncio.to_thread(service.store.get, id)
        if found is None:
            return await page("gone.html", status=404)
        request.scope["almanaq.record"] = found.record  # for the audit log
        if kind is not None:
            with suppress(Refused):
                chart = await asyncio.to_thread(draw_kept, found, kind=kind, x=x, y=y, colour=colour)
                found.record["chart"] = chart
        return await page("answer.html", answer=found)

    @router.get("/accuracy")
    async def accuracy() -> Response:
        drawn = await asyncio.to_thread(lambda: Verdicts(service.store).draw(REVIEWED))
        return await page("accuracy.html", drawn=drawn)

    @router.get("/bench")
    async def report() -> Response:
        if bench is None:
            raise NotFound(_NO_RUNS)
        body = await asyncio.to_thread(bench.report)
        return await page("bench.html", title="Benchmarks", body=Markup(body), pages=0)

    @router.get("/bench/{number}")
    async def record(number: int, at: Annotated[int, Query(alias="page")] = 1) -> Response:
        found = await asyncio.to_thread(bench.record, number, at) if bench is not None else None
        if found is None:
            raise NotFound(_NO_RUNS if bench is None else "no such record, or no such page of it")
        body, pages = found
        return await page("bench.html", title=f"Record {number}", body=Markup(body), pages=pages, page=at)

    @router.get("/static/{name:path}")
    async def asset(name: str, request: Request) -> Response:
        found = assets().get(name)
        if found is None:
            raise NotFound(f"there is no file {name!r}")
        headers = {"etag": _etag(name), "cache-control": "private, no-cache"}
        same = request.headers.get("if-none-match") == headers["etag"]
        kind = _KINDS[name.rpartition(".")[2]]
        return Response(status_code=304, headers=headers) if same else Response(found, headers=headers, media_type=kind)

    return router


@cache
def assets() -> dict[str, bytes]:
    """Return the files of the page by name, those of others as `vendor/NAME`; nothing else can be asked for."""
    folder = files("almanaq.web") / "static"
    places = {"": folder, "vendor/": folder / "vendor"}
    return {
        prefix + each.name: each.read_bytes()
        for prefix, place in places.items()
        for each in place.iterdir()
        if each.name.rpartition(".")[2] in _KINDS
    }


@cache
def _etag(name: str) -> str:
    return f'"{hashlib.sha256(assets()[name]).hexdigest()}"'


@cache
def _templates() -> Environment:
    loader = PackageLoader("almanaq.web", "templates")
    made = Environment(loader=loader, autoescape=True, trim_blocks=True, lstrip_blocks=True)
    made.globals.update(shown=_show_cell, time=_show_time, draw=_draw_chart)
    made.finalize = lambda value: visible(value) if isinstance(value, str) and not isinstance(value, Markup) else value
    return made


def export_board(boards: Boards, board: Answer) -> str:
    """Return a board as one HTML file without scripts, which needs no server."""
    shown, style = boards.record(board), Markup(assets()["export.css"].decode())
    return _templates().get_template("export.html").render(style=style, board=shown, items=shown["items"])


def _draw_chart(record: dict[str, Any]) -> Markup:
    """Return the chart of a record as a still picture; "" where its sentence says as much."""
    spec = record.get("chart") or {}
    own = spec.get("usermeta")
    return Markup(read_spec(spec).svg() if own and own["almanaq"]["kind"] != "number" else "")


def _show_time(made: float) -> str:
    return datetime.datetime.fromtimestamp(made, datetime.UTC).strftime("%Y-%m-%d %H:%M UTC")


def _show_cell(cell: Any) -> str:
    if cell is None:
        return ""
    if isinstance(cell, float):
        return f"{cell:,.2f}" if abs(cell) >= 1 else f"{cell:.4g}"
    if isinstance(cell, list):
        return ", ".join(map(_show_cell, cell))
    return json.dumps(cell, ensure_ascii=False) if isinstance(cell, dict | bool) else str(cell)
