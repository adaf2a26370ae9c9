"""The routes of the API, and what their requests hold; each hands on to the service, the store or the catalog."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import partial
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Depends, Path, Query, Request, Response
from pydantic import BaseModel, ConfigDict, Field, JsonValue, create_model, model_validator
from starlette.routing import BaseRoute

from almanaq.agent.checked import is_usable, write_checked
from almanaq.charts.choose import DrawnKind, drawable_kinds
from almanaq.connection import Connection
from almanaq.errors import UnknownNameError, suggest
from almanaq.jobs import Job, JobRunner
from almanaq.options import Options, pydantic_fields
from almanaq.web.about import about_record, describe_table, list_tables
from almanaq.web.boards import Boards
from almanaq.web.browse import SECONDS, completion_record, profile_table, read_kept_rows, read_rows, select_kept_rows
from almanaq.web.links import links_record
from almanaq.web.problems import MEDIA_TYPE, NotFound, Refused
from almanaq.web.records import MEDIA, RowFormat, all_columns, draw_kept, format_rows, name_file, rows_of
from almanaq.web.service import Origin, Service
from almanaq.web.store import Answer, read_parquet
from almanaq.web.streaming import Document, run_job
from almanaq.web.verdicts import Verdicts, export_tests, teach

Text = Annotated[str, Field(max_length=100_000)]
Scalar = str | int | float | bool | None
Parameters = Annotated[list[JsonValue], Field(max_length=1_000)]
Key = Annotated[dict[str, Scalar], Field(min_length=1, max_length=20)]


class _Exact(BaseModel):
    model_config = ConfigDict(extra="forbid")


class _Bounds(_Exact):
    """What a client wants to be kept within; it only lowers what the server allows."""

    def options(self) -> Options:
        """Return the same as a value."""
        return Options(**self.model_dump(exclude_none=True))


AskedOptions: Any = create_model("AskedOptions", __base__=_Bounds, __doc__=_Bounds.__doc__, **pydantic_fields("http"))


class Ask(_Exact):
    """A question, in a conversation or as the first of one; or the number of a reading that its last reply offered."""

    question: Annotated[str, Field(max_length=10_000)] | None = None
    reading: Annotated[int, Field(ge=1, le=3)] | None = None
    conversation: Annotated[str, Field(max_length=100)] | None = None
    options: AskedOptions = AskedOptions()

    @model_validator(mode="after")
    def _asks_once(self) -> Ask:
        if (self.question is None) is (self.reading is None or self.conversation is None):
            raise ValueError("give a question, or a reading and the conversation that offered it")
        return self


class LinksBody(_Exact):
    """A question while it is typed, and the place of the cursor in UTF-16 units."""

    question: Annotated[str, Field(max_length=2_000)]
    at: int = Field(ge=0, le=4_000)


class Edited(_Exact):
    """The answer whose query was edited, and what the new one is called."""

    answer: Annotated[str, Field(max_length=100)]
    title: Annotated[str, Field(max_length=200)]


class Sql(_Exact):
    """A query; `plan` is the mark of the plan that was approved.

    An edited one is shown again below the answer that it is `of`: with its `conversation`, where that is given.
    """

    suql: Text
    params: Parameters = []
    max_rows: int = Field(200, ge=1, le=1_000_000)
    plan: Annotated[str, Field(max_length=100)] | None = None
    of: Edited | None = None
    conversation: Annotated[str, Field(max_length=100)] = ""
    options: AskedOptions = AskedOptions()


class Explain(_Exact):
    """A query to be planned."""

    suql: Text
    params: Parameters = []


class WhyNotBody(_Exact):
    """A query, and the row that is missed: values of columns that name it."""

    suql: Text
    key: Key
    params: Parameters = []


class About(_Exact):
    """What a verdict is about: the whole answer, a row of it, a quote, or a row that is missing."""

    kind: Literal["answer", "row", "quote", "missing"]
    key: Key | None = None
    evidence: dict[str, Any] | None = None


class Expected(_Exact):
    """What would have been right: a query, or the keys of all rows."""

    suql: Text | None = None
    keys: Annotated[list[Key], Field(max_length=1_000)] | None = None


class VerdictBody(_Exact):
    """What a person says of an answer; null takes it back. `sampled`: of a turn that was drawn, not picked."""

    verdict: Literal["right", "wrong"] | None
    about: About = About(kind="answer")
    expected: Expected | None = None
    note: Annotated[str, Field(max_length=2_000)] | None = None
    sampled: bool = False


class TextItem(_Exact):
    """A text between answers."""

    text: Annotated[str, Field(max_length=10_000)]


class ChosenChart(_Exact):
    """The chart of an answer that a person chose: its kind, and the columns along its axes and in its colours."""

    kind: DrawnKind
    x: Annotated[str, Field(max_length=500)]
    y: Annotated[str, Field(max_length=500)]
    colour: Annotated[str, Field(max_length=500)] = ""


class AnswerItem(_Exact):
    """A pinned answer, under a title and with a chart of its own."""

    answer: Annotated[str, Field(max_length=100)]
    title: Annotated[str, Field(max_length=200)] | None = None
    chart: ChosenChart | None = None


class BoardBody(_Exact):
    """What a board holds, from top to bottom."""

    title: Annotated[str, Field(max_length=200)] = ""
    items: Annotated[list[TextItem | AnswerItem], Field(max_length=100)] = []


class RunBody(_Exact):
    """Bounds of all queries of a board together."""

    options: AskedOptions = AskedOptions()


Id = Annotated[str, Path(max_length=100)]
ColumnName = Annotated[str, Query(max_length=500)]
BoardName = Annotated[str, Path(max_length=100, pattern=r"^[\w .&-]+$")]
TableName = Annotated[str, Path(max_length=500)]
Limit = Annotated[int, Query(ge=1, le=1_000)]
Sort = Annotated[str | None, Query(max_length=500)]
Filters = Annotated[list[Annotated[str, Query(max_length=200)]], Query(max_length=20)]
"""With every character escaped they fit into the 64 KB that the server reads of an address."""


class ProblemBody(BaseModel):
    """An error, as RFC 9457 has it; further members say where, what is near, and which rows are sure."""

    type: str
    title: str
    status: int
    detail: str


def problems(*statuses: int) -> dict[int | str, dict[str, Any]]:
    """Return the documentation of errors."""
    content = {MEDIA_TYPE: {"schema": {"$ref": "#/components/schemas/ProblemBody"}}}
    return {status: {"content": content} for status in sorted({421, *statuses})}


async def find_answer(service: Service, id: str, request: Request) -> Answer:
    """Return a kept answer, which the audit log takes for what the request shows; raises NotFound."""
    found = await asyncio.to_thread(service.store.get, id)
    if found is None:
        raise NotFound("no such answer (any more)")
    request.scope["almanaq.record"] = found.record
    return found


def check_parameters(request: Request) -> None:
    """Refuse a parameter of the address that the route does not have: a filter that is misspelt would give all rows."""
    known = {each.alias for each in request.scope["route"].dependant.query_params}
    for name in request.query_params:
        if name not in known:
            raise Refused(422, f"{name} is no parameter here{suggest(name, known)}")


def routes(service: Service, runner: JobRunner) -> list[BaseRoute]:
    """Return the routes over a service."""
    router = APIRouter(prefix="/api/v1", default_response_class=Document, dependencies=[Depends(check_parameters)])
    _questions(router, service, runner)
    _catalog(router, service)
    _browsing(router, service, runner)
    _answers(router, service)
    _verdicts(router, service)
    _boards(router, Boards(service), runner)
    health = APIRouter()
    # One model puts ProblemBody among the schemas; one for each status would take most of the start.
    documented = problems(503) | {503: {"model": ProblemBody} | problems(503)[503]}

    @health.get("/healthz", responses=documented, response_class=Document)
    async def healthz() -> Response:
        """Say that the server answers, and has threads to work in."""
        if runner.is_stuck:
            raise Refused(503, "stopped queries that do not end hold every thread")
        return Document({"status": "ok"})

    return [*router.routes, *health.routes]


def _questions(router: APIRouter, service: Service, runner: JobRunner) -> None:
    asking = problems(400, 401, 403, 404, 413, 422, 429, 502, 503, 504)
    running = problems(400, 401, 403, 413, 422, 429, 502, 503, 504)

    @router.post("/ask", responses=asking)
    async def ask(body: Ask, request: Request) -> Response:
        """Answer a question: the record of `ask --json`, or with `Accept: text/event-stream` the events on the way."""
        asked = body.question or (str(body.reading) if body.reading else "")
        job = await asyncio.to_thread(lambda: service.ask(asked, body.conversation, body.options.options()))
        return await run_job(runner, job, request)

    @router.post("/sql", responses=running | problems(409))
    async def sql(body: Sql, request: Request) -> Response:
        """Run a query: the record of `sql --json`."""
        edited = None if body.of is None else Origin(body.of.answer, body.of.title, body.conversation)
        asked = body.options.options()
        job = service.sql(body.suql, body.params, body.max_rows, body.plan, asked, edited)
        return await run_job(runner, job, request)

    @router.post("/explain", responses=problems(400, 401, 403, 413, 422, 429))
    async def explain(body: Explain, request: Request) -> Response:
        """Return the plan of a query and what it would take; nothing is run."""
        return await run_job(runner, service.explain(body.suql, body.params), request)

    @router.post("/why-not", responses=running)
    async def why_not(body: WhyNotBody, request: Request) -> Response:
        """Say which conditions keep a row out of a query's result, with the quotes."""
        return await run_job(runner, service.why_not(body.suql, dict(body.key), body.params), request)


def _catalog(router: APIRouter, service: Service) -> None:
    @router.get("/about", responses=problems(401))
    async def about() -> Response:
        """Return the source, the model, what leaves this machine, and how accurate answers were found."""
        return Document(await asyncio.to_thread(about_record, service))

    @router.get("/tables", responses=problems(401, 422))
    async def tables(
        search: Annotated[str, Query(max_length=200)] = "",
        limit: Annotated[int, Query(ge=1, le=200)] = 50,
        cursor: Annotated[str | None, Query(max_length=100)] = None,
    ) -> Response:
        """List the relations of the source."""
        return Document(await asyncio.to_thread(list_tables, service.connection.catalog, search, limit, cursor))

    @router.get("/tables/{name}", responses=problems(401, 404, 422))
    async def table(name: TableName) -> Response:
        """Return one relation with its columns."""
        try:
            return Document(await asyncio.to_thread(describe_table, service.connection, name))
        except UnknownNameError as error:
            raise NotFound(error.message) from error

    @router.get("/cells", responses=problems(401, 404, 422))
    async def cells(
        relation: str,
        key: str,
        column: str,
        passage: Annotated[int, Query(ge=0, lt=2**31)] = 0,
        answer: str | None = None,
    ) -> Response:
        """Return a text that evidence points at, as it was when it was read, and where the quotes stand in it."""
        found = await asyncio.to_thread(service.store.cell, (relation, key, column, passage), answer)
        if found is None:
            raise NotFound("no kept answer cites this text")
        return Document({"text": found[0], "spans": found[1]})


def _browsing(router: APIRouter, service: Service, runner: JobRunner) -> None:
    reading = problems(401, 404, 422, 429, 504)

    def check(name: str) -> None:
        if service.connection.catalog.find(name) is None:
            raise NotFound(service.connection.catalog.unknown(name))

    def job(work: Callable[[Connection], dict[str, Any]]) -> Job:
        return Job(lambda _: work(service.connection), min(service.limits.deadline, SECONDS))

    @router.get("/tables/{name}/rows", responses=reading | problems(400, 403))
    async def rows(
        name: TableName,
        request: Request,
        limit: Limit = 50,
        cursor: Annotated[str | None, Query(max_length=100)] = None,
        sort: Sort = None,
        filter: Filters = [],  # noqa: B006
    ) -> Response:
        """Return rows of a relation: `sort=column` or `-column`; `filter=column=value`, or != > < >= <= ~ (holds)."""
        check(name)
        read = partial(read_rows, name=name, limit=limit, cursor=cursor, sort=sort, filters=filter)
        return await run_job(runner, job(read), request)

    @router.get("/tables/{name}/profile", responses=reading)
    async def profile(name: TableName, request: Request) -> Response:
        """Return what each column of a relation holds: missing and different values, bounds, the most frequent."""
        check(name)
        return await run_job(runner, job(lambda each: profile_table(each, name)), request)

    @router.get("/complete", responses=problems(401, 422))
    async def completions(
        text: Annotated[str, Query(max_length=10_000)], at: Annotated[int, Query(ge=0, le=20_000)]
    ) -> Response:
        """Return what may stand at a place of a query, from `start` on; places count UTF-16 units."""
        return Document(await asyncio.to_thread(completion_record, service.connection, text, at))

    @router.post("/links", responses=problems(401, 403, 413, 422))
    async def links(body: LinksBody) -> Response:
        """Return which words of a question the source knows, and what may stand before a place of it."""
        return Document(await asyncio.to_thread(links_record, service.connection, body.question, body.at))


def _answers(router: APIRouter, service: Service) -> None:
    @router.get("/answers/{id}", responses=problems(401, 404, 422))
    async def answer(id: Id, request: Request) -> Response:
        """Return an answer as it was given; nothing is asked or run."""
        found = await find_answer(service, id, request)
        verdicts = await asyncio.to_thread(lambda: Verdicts(service.store).of(id))
        extra = {
            "kind": found.kind,
            "model": found.model,
            "made": found.made,
            "verdicts": [v.record() for v in verdicts],
        }
        return Document(found.record | extra)

    @router.post("/answers/{id}/stop", status_code=204, responses=problems(401, 403, 404, 422))
    async def stop(id: Id) -> Response:
        """Stop the query or question under way: the rows that are sure are its answer, and say so (`stopped`)."""
        service.stop(id)
        return Response(status_code=204)

    @router.get("/answers/{id}/rows", responses=problems(401, 404, 422))
    async def rows(
        id: Id,
        request: Request,
        format: RowFormat = "json",
        sort: Sort = None,
        filter: Filters = [],  # noqa: B006
    ) -> Response:
        """Return rows of an answer as a file, sorted and filtered; its name says how many of too many were kept."""
        found = await find_answer(service, id, request)
        kept = await asyncio.to_thread(select_kept_rows, rows_of(found), sort, filter)
        content = await asyncio.to_thread(format_rows, kept, format)
        part, headers = "", {}
        if found.rows_missing:
            count, total = found.record["rows_kept"], found.record["rows_total"]
            part, headers = f"first {count} of {total} rows ", {"almanaq-rows": f"{count} of {total}"}
        headers |= name_file(part + found.title, found.made, format)
        return Response(content, media_type=MEDIA[format], headers=headers)

    @router.get("/answers/{id}/page", responses=problems(401, 404, 422))
    async def page(
        id: Id,
        request: Request,
        start: Annotated[int, Query(ge=0, lt=2**31)] = 0,
        limit: Limit = 200,
        sort: Sort = None,
        filter: Filters = [],  # noqa: B006
    ) -> Response:
        """Return kept rows of an answer from `start` on, sorted and filtered as rows of a table are; nothing is run."""
        found = await find_answer(service, id, request)
        shown = await asyncio.to_thread(read_kept_rows, rows_of(found), start, limit, sort, filter)
        request.scope["almanaq.record"] = found.record | {"rows_total": len(shown["rows"])}
        return Document(shown)

    @router.get("/answers/{id}/chart", responses=problems(401, 404, 422))
    async def chart(
        id: Id, request: Request, kind: DrawnKind, x: ColumnName, y: ColumnName, colour: ColumnName = ""
    ) -> Response:
        """Draw the kept rows of an answer as the chart that a person chose; nothing is asked or run."""
        found = await find_answer(service, id, request)

        def draw() -> dict[str, Any]:
            rows = read_parquet(rows_of(found))
            drawn = draw_kept(found, kind=kind, x=x, y=y, colour=colour, rows=rows)
            return {"chart": drawn, "kinds": drawable_kinds(rows, x, y, colour)}

        return Document(await asyncio.to_thread(draw))

    @router.get("/conversations/{id}", responses=problems(401, 404, 422))
    async def conversation(id: Id) -> Response:
        """Return the turns of a conversation and the edited queries below them (`of`), the oldest first."""
        found = await asyncio.to_thread(service.store.conversation, id)
        if not found:
            raise NotFound("no such conversation (any more)")
        known = Verdicts(service.store)

        def describe(each: Answer) -> dict[str, Any]:
            verdicts = [verdict.record() for verdict in known.of(each.id)]
            return each.record | {"kind": each.kind, "made": each.made, "verdicts": verdicts}

        records = await asyncio.to_thread(lambda: [describe(each) for each in found])
        turns = [each for each in records if each["kind"] != "sql"]
        edits = [each for each in records if each["kind"] == "sql"]
        return Document({"conversation": id, "turns": turns, "edits": edits})

    @router.delete("/conversations/{id}", status_code=204, responses=problems(401, 403, 404, 422))
    async def forget(id: Id) -> Response:
        """Delete a conversation with all its answers."""
        await asyncio.to_thread(service.forget, id)
        return Response(status_code=204)


def _verdicts(router: APIRouter, service: Service) -> None:
    known = Verdicts(service.store)

    def examples() -> str:
        connection = service.connection
        return write_checked(each for each in connection.checked.all() if is_usable(each.suql, connection.engine))

    @router.put("/answers/{id}/verdict", responses=problems(401, 403, 404, 413, 422))
    async def verdict(id: Id, body: VerdictBody) -> Response:
        """Return whether an answer, a row or a quote is right, or that a row is missing; null takes it back."""
        about = body.about.model_dump(exclude_none=True)
        needs = {"row": "key", "missing": "key", "quote": "evidence"}.get(body.about.kind)
        if needs is not None and needs not in about:
            raise Refused(422, f"about: a verdict on a {body.about.kind} needs `{needs}`")
        rest = body.model_dump(include={"expected", "note", "sampled"}, exclude_none=True)
        columns = all_columns(service.connection)
        await asyncio.to_thread(known.put, id, about, body.verdict, rest, columns)
        learns = body.about.kind == "answer"
        taught = learns and await asyncio.to_thread(
            lambda: teach(service.connection, service.store, id, body.verdict, rest.get("expected") or {}, "the page")
        )
        verdicts = [each.record() for each in await asyncio.to_thread(known.of, id)]
        return Document({"verdicts": verdicts, "taught": taught})

    @router.get("/verdicts", responses=problems(401))
    async def verdicts() -> Response:
        """Return all verdicts, the oldest first."""
        return Document({"verdicts": [each.record() for each in await asyncio.to_thread(known.all)]})

    @router.get("/verdicts/export", responses=problems(401, 422))
    async def exported(format: Literal["examples", "tests"]) -> Response:
        """Return verdicts as examples for a model's prompt (TOML), or as tests that pytest runs."""
        if format == "examples":
            text, media, name = await asyncio.to_thread(examples), "application/toml", "examples.toml"
        else:
            source, model = service.source, service.connection.models.name
            text = await asyncio.to_thread(export_tests, service.store, source, model)
            media, name = "text/x-python", "test_judged.py"
        headers = {"content-disposition": f'attachment; filename="{name}"'}
        return Response(text.encode("utf-8", "replace"), media_type=f"{media}; charset=utf-8", headers=headers)


def _boards(router: APIRouter, boards: Boards, runner: JobRunner) -> None:
    path = "/boards/{name}"

    @router.get("/boards", responses=problems(401))
    async def listed() -> Response:
        """List the boards over this source."""
        return Document({"boards": await asyncio.to_thread(boards.describe_all)})

    @router.get(path, responses=problems(401, 404, 422))
    async def board(name: BoardName) -> Response:
        """Return a board with its answers; of an answer that is gone, or may not be seen, the record is null."""
        return Document(await asyncio.to_thread(lambda: boards.record(boards.get(name))))

    @router.put(path, responses=problems(401, 403, 404, 413, 422))
    async def put(name: BoardName, body: BoardBody) -> Response:
        """Keep a board: a title, texts, and answers by their id."""
        items = [item.model_dump(exclude_none=True) for item in body.items]
        await asyncio.to_thread(boards.put, name, body.title, items)
        return Document(await asyncio.to_thread(lambda: boards.record(boards.get(name))))

    @router.delete(path, status_code=204, responses=problems(401, 403, 404, 422))
    async def delete(name: BoardName) -> Response:
        """Delete a board; its answers stay."""
        await asyncio.to_thread(boards.delete, name)
        return Response(status_code=204)

    @router.post(f"{path}/run", responses=problems(401, 403, 404, 413, 422, 429))
    async def run(name: BoardName, body: RunBody, request: Request) -> Response:
        """Run the queries of a board again; those that fail keep their rows, and `failed` has their problems."""
        return await run_job(runner, boards.run(name, body.options.options()), request)
