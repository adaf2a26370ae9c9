"""Responses of jobs: as one JSON document, or as events on the way; either ends the work when the client goes."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import AsyncIterator
from contextlib import aclosing
from typing import Any, cast

from fastapi import Request, Response
from starlette.types import Receive, Scope, Send

from almanaq.errors import AlmanaqError
from almanaq.jobs import Event, Job, JobRunner
from almanaq.web.problems import MEDIA_TYPE, Failed, is_lack_of_memory, problem_of

_log = logging.getLogger("almanaq.web")
_KEEP_ALIVE = 10.0
_NOBODY = 499


async def run_job(runner: JobRunner, job: Job, request: Request) -> Response:
    """Run a job and return its response; a stream of events is begun at once."""
    streamed = "text/event-stream" in request.headers.get("accept", "")
    events = _with_problems(runner.run(job, last_only=not streamed))
    if streamed:
        return EventStream(events)
    last: Event | None = None
    async with aclosing(cast(Any, _follow(events, request.receive))) as seen:
        async for event in seen:
            last = event or last
    if last is None or last[0] not in ("response", "error"):
        return Response(status_code=_NOBODY)
    return problem_response(last[1]) if last[0] == "error" else Document(last[1])


async def _follow(events: AsyncIterator[Event], receive: Receive) -> AsyncIterator[Event | None]:
    """Yield events until the last or until the client goes, which ends the work; None while nothing happens."""
    gone = asyncio.ensure_future(_await_disconnect(receive))
    following: asyncio.Future[Event | None] | None = None
    async with aclosing(cast(Any, events)) as each:
        try:
            while True:
                following = following or asyncio.ensure_future(anext(each, None))
                both = (following, gone)
                done, _ = await asyncio.wait(both, timeout=_KEEP_ALIVE, return_when=asyncio.FIRST_COMPLETED)
                event = None
                if following in done:
                    event, following = following.result(), None
                if event is None and done:  # the last was given, or nobody is there
                    return
                yield event
        finally:
            gone.cancel()
            if following is not None:
                following.cancel()
                await asyncio.gather(following, return_exceptions=True)


async def _with_problems(events: AsyncIterator[Event]) -> AsyncIterator[Event]:
    """Yield the events of a job; where it fails, the last is `error` with the problem."""
    try:
        async with aclosing(cast(Any, events)) as each:
            async for event in each:
                yield event
    except Failed as failure:
        yield "error", failure.problem
    except AlmanaqError as error:
        yield "error", problem_of(error).record()
    except Exception as error:
        if is_lack_of_memory(error):
            _log.warning("a request failed for lack of memory")
        else:
            _log.error("a request failed unexpectedly", exc_info=error)
        yield "error", problem_of(error).record()


def problem_response(data: dict[str, Any], headers: dict[str, str] | None = None) -> Response:
    """Return the response of RFC 9457."""
    more = {"retry-after": "5"} if data["status"] == 429 else {}
    return Document(data, status_code=data["status"], media_type=MEDIA_TYPE, headers=(headers or {}) | more)


class Document(Response):
    """A JSON document, in ASCII, as text may hold halves of characters."""

    media_type = "application/json"

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send the document; the audit log counts what is in it."""
        scope.setdefault("almanaq.record", self._content)
        await super().__call__(scope, receive, send)

    def render(self, content: Any) -> bytes:
        """Return the bytes of the document."""
        self._content = content
        return json.dumps(content, allow_nan=False, separators=(",", ":")).encode()


class EventStream(Response):
    """Server-sent events; comments keep the connection open while nothing happens."""

    media_type = "text/event-stream"

    def __init__(self, events: AsyncIterator[Event]) -> None:
        super().__init__()
        self._events = events
        del self.headers["content-length"]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send the events until the last, or until the client goes."""
        del scope
        await send({"type": "http.response.start", "status": 200, "headers": self.raw_headers})
        async with aclosing(cast(Any, _follow(self._events, receive))) as seen:
            async for event in seen:
                await send({"type": "http.response.body", "body": _write_event(event), "more_body": True})
        await send({"type": "http.response.body", "body": b""})


def _write_event(event: Event | None) -> bytes:
    """Write an event, or a comment for none."""
    if event is None:
        return b": waiting\n\n"
    name, data = event
    return f"event: {name}\ndata: {json.dumps(data, allow_nan=False, separators=(',', ':'))}\n\n".encode()


async def _await_disconnect(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
