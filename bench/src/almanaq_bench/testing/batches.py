"""The batch API of a stand-in server: files of requests, and batches that answer them after some seconds."""

from __future__ import annotations

import json
import time
from collections.abc import Awaitable, Callable
from itertools import count
from typing import Any

from almanaq_bench.testing.outcome import Outcome

Answer = Callable[[bytes], Awaitable[Outcome]]
"""Serves the body of one chat request."""


class Batches:
    """Files and batches of a server.

    Args:
        seconds: that a batch takes, which may be changed; its requests are answered, and charged for, when it is made.
    """

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self.files: dict[str, bytes] = {}
        self._numbers = count()
        self.made: dict[str, dict[str, Any]] = {}

    async def serve(self, method: str, path: str, query: str, body: bytes, answer: Answer) -> Outcome:
        """Return the reply to a request for a path below /v1."""
        match method, path.split("/")[2:]:
            case "POST", ["files"]:
                return Outcome.of({"id": self._keep(body.split(b"\r\n\r\n", 2)[2].rpartition(b"\r\n--")[0])})
            case "GET", ["files", file, "content"] if file in self.files:
                return Outcome(200, self.files[file])
            case "POST", ["batches"]:
                return Outcome.of(await self._make(json.loads(body)["input_file_id"], answer))
            case "DELETE", ["files", file] if self.files.pop(file, None) is not None:
                return Outcome.of({"id": file, "deleted": True})
            case "GET", ["batches"]:  # one a page, to be found on another than the first
                names = list(self.made)
                at = names.index(query.partition("after=")[2]) + 1 if "after=" in query else 0
                return Outcome.of({"data": [self.made[n] for n in names[at : at + 1]], "has_more": len(names) > at + 1})
            case "GET", ["batches", batch] if batch in self.made:
                ended = time.time() >= self.made[batch]["created_at"] + self.seconds
                return Outcome.of(self.made[batch] | {"status": "completed" if ended else "in_progress"})
        return Outcome.error(404, f"no such path: {path}")

    def _keep(self, content: bytes) -> str:
        name = f"file-{next(self._numbers)}"
        self.files[name] = content
        return name

    async def _make(self, file: str, answer: Answer) -> dict[str, Any]:
        lines: dict[str, list[bytes]] = {"output_file_id": [], "error_file_id": []}
        for line in map(json.loads, self.files[file].splitlines()):
            reply = await answer(json.dumps(line["body"]).encode())
            response = {"status_code": reply.status, "body": json.loads(reply.body)}
            written = json.dumps({"custom_id": line["custom_id"], "response": response, "error": None}).encode()
            lines["output_file_id" if reply.status == 200 else "error_file_id"].append(written)
        files = {name: self._keep(b"\n".join(each)) for name, each in lines.items() if each}
        batch = {"id": f"batch-{len(self.made)}", "input_file_id": file, "created_at": time.time(), **files}
        self.made[str(batch["id"])] = batch
        return batch
