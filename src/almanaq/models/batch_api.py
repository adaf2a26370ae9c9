"""BatchModel: requests go to the server's batch API as one file: they take up to a day and cost half.

A batch outlives the query that made it. A private SQLite file says which batch each request is in, by a hash of the
request without its random fence: a query that was stopped or killed resumes its batch, and pays for nothing twice.
"""

from __future__ import annotations

import asyncio
import hashlib
import io
import json
import sqlite3
import time
from collections.abc import Callable, Coroutine, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote

from almanaq.errors import ModelError, SourceError
from almanaq.event_loops import PerLoop
from almanaq.models.budget import record_count
from almanaq.models.http import JsonServer, NoReply, Reply, may_pass, redact_keys
from almanaq.models.openai import OpenAIModel
from almanaq.models.openai_replies import read_error_message
from almanaq.models.private_files import UNUSABLE, open_sqlite
from almanaq.models.protocols import Price, Prompt, Usage
from almanaq.models.retrying import FailedCall

MOST_REQUESTS = 10_000
"""In a batch; OpenAI takes 50,000, and 200 MB."""
_MOST_FILE_BYTES, _MOST_RESULT_BYTES = 100 * 2**20, MOST_REQUESTS * 2**16
_TRANSFER_SECONDS = 600.0
_GATHER_SECONDS = 1.0
"""A batch is sent once no request has joined it for so long."""
_FIRST_POLL, _POLL_FACTOR, _LONGEST_POLL = 0.05, 1.5, 30.0
_MOST_LOST_POLLS = 20
_KEPT_SECONDS = 30 * 86_400
"""How long servers keep results."""
_ENDPOINT = "/v1/chat/completions"
_ENDED = ("completed", "failed", "expired", "cancelled")

Requests = dict[str, tuple[bytes, list["asyncio.Future[Reply]"]]]
"""The body of each request by its key, and who waits for the reply."""


def batch_price(price: Price | None) -> Price | None:
    """Return what tokens cost in a batch: half."""
    return None if price is None else Price(price.input / 2, price.output / 2)


class BatchModel(OpenAIModel):
    """An OpenAIModel whose requests go to the server as one batch; `file` says which batch each request is in."""

    patience = 0.0

    def __init__(self, *arguments: Any, file: Path, **options: Any) -> None:
        super().__init__(*arguments, **options | {"timeout": _TRANSFER_SECONDS, "most_bytes": _MOST_RESULT_BYTES})
        self._queues = PerLoop(lambda: _BatchQueue(self._server, _open_store(file)))

    async def _post(self, body: bytes, prompt: Prompt, read: Callable[[bytes], None] | None) -> Reply:  # noqa: ARG002
        asked = body.replace(prompt.fence.encode(), b"") if prompt.fence else body
        key = hashlib.sha256(f"{self.identity}\0{self.secrets[0]}\0".encode() + asked).hexdigest()
        return await self._queues.get().post(key, body)


def _open_store(file: Path) -> sqlite3.Connection:
    schema = "CREATE TABLE IF NOT EXISTS request (key TEXT PRIMARY KEY, file TEXT, batch TEXT, made REAL)"
    try:
        store = open_sqlite(file, schema, 1)
        with store:
            store.execute("DELETE FROM request WHERE made < ?", (time.time() - _KEPT_SECONDS,))
    except (OSError, *UNUSABLE) as problem:
        raise SourceError(f"the record of batches {file} cannot be used ({problem}): delete it") from problem
    return store


@dataclass
class _Refused(Exception):
    """The server refused to take, make or show a file or a batch."""

    reply: Reply


class _BatchQueue:
    def __init__(self, server: JsonServer, store: sqlite3.Connection) -> None:
        self._server, self._store = server, store
        self._gathered: Requests = {}
        self._delivered: list[str] = []
        self._gathering: asyncio.Task[None] | None = None
        self._tasks: set[asyncio.Task[None]] = set()

    async def post(self, key: str, body: bytes) -> Reply:
        """Return the reply to a request; raises FailedCall where the batch has none, else as JsonServer.post."""
        reply: asyncio.Future[Reply] = asyncio.get_running_loop().create_future()
        self._gathered.setdefault(key, (body, []))[1].append(reply)
        if self._gathering is None:
            self._gathering = asyncio.create_task(self._run())
            self._tasks.add(self._gathering)
            self._gathering.add_done_callback(self._tasks.discard)
        return await reply

    async def close(self) -> None:
        """Forget the requests that were answered: the reply cache has them by now."""
        for task in self._tasks:
            task.cancel()
        self._forget(self._delivered)
        self._store.close()

    async def _run(self) -> None:
        count = -1
        while count < len(self._gathered) < MOST_REQUESTS:
            count = len(self._gathered)
            await asyncio.sleep(_GATHER_SECONDS)
        gathered, self._gathered, self._gathering = self._gathered, {}, None
        requests = {key: each for key, each in gathered.items() if not all(reply.done() for reply in each[1])}
        await self._guard(self._submit(requests), requests)

    async def _guard(self, work: Coroutine[Any, Any, None], requests: Requests) -> None:
        try:
            await work
        except _Refused as refused:
            _settle(requests.values(), refused.reply)
        except sqlite3.Error as problem:
            _settle(requests.values(), SourceError(f"the record of batches cannot be used: {problem}"))
        except Exception as problem:
            _settle(requests.values(), problem)

    async def _submit(self, requests: Requests) -> None:
        new, submitted = dict(requests), dict[tuple[str, str | None], Requests]()
        asked = "SELECT key, file, batch FROM request WHERE key IN (SELECT value FROM json_each(?))"
        for key, file, batch in self._store.execute(asked, (json.dumps(list(requests)),)).fetchall():
            submitted.setdefault((file, batch), {})[key] = new.pop(key)
        batches = [(batch or await self._create(file, look=True), part) for (file, batch), part in submitted.items()]
        batches += [(await self._create(await self._upload(part)), part) for part in _split(new)]
        await asyncio.gather(*(self._guard(self._follow(batch, part), part) for batch, part in batches))

    async def _upload(self, part: Requests) -> str:
        from aiohttp import FormData

        heads = (json.dumps({"custom_id": key, "method": "POST", "url": _ENDPOINT}) for key in part)
        bodies = (body for body, _ in part.values())
        lines = [head.encode()[:-1] + b', "body": ' + body + b"}" for head, body in zip(heads, bodies, strict=True)]
        form = FormData({"purpose": "batch"})
        content = io.BytesIO(b"\n".join(lines))
        form.add_field("file", content, filename="requests.jsonl", content_type="application/jsonl")
        reply = await self._server.post("/files", form)
        if reply.status in (404, 405, 501):
            raise ModelError(f"the server has no batch API ({reply.status} at /files): leave out --batch-api")
        file = str(_read(reply, "id")["id"])
        # Before the batch is made, so that one whose maker is killed is found by its file.
        rows = [(key, file, time.time()) for key in part]
        self._write("INSERT OR REPLACE INTO request VALUES (?, ?, NULL, ?)", rows)
        return file

    async def _create(self, file: str, *, look: bool = False) -> str:
        """Return the batch of a file; `look`: it may have been made already."""
        batch = await self._find(file) if look else None
        if batch is None:
            content = {"input_file_id": file, "endpoint": _ENDPOINT, "completion_window": "24h"}
            batch = str(_read(await self._server.post("/batches", content), "id")["id"])
        self._write("UPDATE request SET batch = ? WHERE file = ?", [(batch, file)])
        return batch

    async def _find(self, file: str) -> str | None:
        """Return the batch of a file, however many newer ones the server lists; None where none was made."""
        last = ""
        while True:
            page = _read(await self._server.get("/batches", f"limit=100{last and f'&after={quote(last)}'}"), "data")
            ids = {str(each["id"]): each.get("input_file_id") for each in page["data"]}
            found = [batch for batch, input_file in ids.items() if input_file == file]
            # A server without pages gives the same one again.
            if found or not page.get("has_more") or not ids or last in ids:
                return found[0] if found else None
            last = list(ids)[-1]

    async def _follow(self, batch: str, part: Requests) -> None:
        record_count("batched", len(part))
        try:
            ended = await self._poll(batch)
            files = [ended.get(name) for name in ("output_file_id", "error_file_id")]
            replies = [await self._server.get(f"/files/{file}/content") for file in files if file]
            lines = {line.get("custom_id"): line for reply in replies for line in _read_lines(reply)}
        except _Refused as refused:
            if refused.reply.status != 404:
                raise
            self._forget(list(part))
            raise ModelError(f"the server no longer has batch {batch}: run the query again to submit another") from None
        record_count("batched", -len(part))
        failed = []
        for key, (_, waiting) in part.items():
            outcome = _read_outcome(lines.get(key), batch, ended)
            if isinstance(outcome, Reply) and outcome.succeeded:
                if not all(reply.done() for reply in waiting):
                    self._delivered.append(key)
            else:
                failed.append(key)
            _settle([part[key]], outcome)
        self._forget(failed)
        # The results stay until the server drops them: a process that ends before its cache has them reads them again.
        if texts := ended.get("input_file_id"):
            with suppress(NoReply):
                await self._server.delete(f"/files/{texts}")

    async def _poll(self, batch: str) -> Mapping[str, Any]:
        """Return a batch once it has ended, however often the server is out of reach for a moment."""
        wait, lost = _FIRST_POLL, 0
        while True:
            try:
                state = _read(await self._server.get(f"/batches/{batch}"), "status")
                if state["status"] in _ENDED:
                    return state
                lost = 0
            except (NoReply, _Refused) as problem:
                lost += 1
                passing = not isinstance(problem, _Refused) or may_pass(problem.reply.status)
                if not passing or lost > _MOST_LOST_POLLS:
                    raise
            await asyncio.sleep(wait)
            wait = min(wait * _POLL_FACTOR, _LONGEST_POLL)

    def _forget(self, keys: Sequence[str]) -> None:
        self._write("DELETE FROM request WHERE key = ?", [(key,) for key in keys])

    def _write(self, statement: str, rows: Sequence[tuple[object, ...]]) -> None:
        with self._store:
            self._store.executemany(statement, rows)


def _split(requests: Requests) -> Iterator[Requests]:
    part: Requests = {}
    size = 0
    for key, each in requests.items():
        if part and (len(part) == MOST_REQUESTS or size + len(each[0]) > _MOST_FILE_BYTES):
            yield part
            part, size = {}, 0
        part[key] = each
        size += len(each[0])
    if part:
        yield part


def _read(reply: Reply, name: str) -> Mapping[str, Any]:
    """Return the JSON object of a reply, which holds `name`; raises _Refused for an error of the server."""
    if not reply.succeeded:
        raise _Refused(reply)
    with suppress(ValueError, RecursionError):
        content = json.loads(reply.body)
        if isinstance(content, dict) and name in content:
            return content
    raise ModelError("the server's batch API does not speak OpenAI's protocol: leave out --batch-api")


def _read_lines(reply: Reply) -> Iterator[Mapping[str, Any]]:
    if not reply.succeeded:
        raise _Refused(reply)
    for line in reply.body.splitlines():
        try:
            content = json.loads(line)
        except (ValueError, RecursionError):
            continue
        if isinstance(content, dict):
            yield content


def _read_outcome(line: Mapping[str, Any] | None, batch: str, ended: Mapping[str, Any]) -> Reply | str:
    response = (line or {}).get("response")
    if isinstance(response, dict) and isinstance(status := response.get("status_code"), int):
        reply = Reply(status, json.dumps(response.get("body")).encode(), {})
        return f"HTTP {status}: {read_error_message(reply.body)}" if may_pass(status) else reply
    stated = (line or ended).get("error") or (line or ended).get("errors")
    why = f": {read_error_message(json.dumps(stated).encode())}" if stated else ""
    return f"batch {batch} {ended.get('status')} without a reply to the request{why}"


def _settle(waiting: Any, outcome: Reply | str | Exception) -> None:
    """Hand an outcome to those who wait; a text is why there is no reply."""
    for _, replies in waiting:
        for reply in replies:
            if reply.done():
                continue
            if isinstance(outcome, Reply):
                reply.set_result(outcome)
            elif isinstance(outcome, Exception):
                reply.set_exception(outcome)
            else:
                message = redact_keys(f"the request failed in its batch: {outcome[:300]}")
                cause = "expired in its batch" if "expired" in outcome else "failed in its batch"
                reply.set_exception(FailedCall(message, retryable=False, usage=Usage(calls=1), cause=cause))
