"""Small sources behind a server."""

from __future__ import annotations

import gc
import shutil
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any

import pyarrow as pa
import pytest
from tests.web.live import Client, live
from tests.web.seen import FLAGS

import almanaq
from almanaq.models.protocols import Quote, TextReply, Usage
from almanaq.testing import FunctionModel
from almanaq.web.service import Limits, open_service

NOTES = {
    "Alba": "Candles on every table, and the pianist takes requests after ten in the evening, every day but Monday.",
    "Brio": "The queue reaches the corner at noon; the soup is worth half of it, as everyone here will tell you.",
    "Coda": "\U0001f355\U0001f355 Pizza first! Then candles are lit, one for each guest, and the owner tells of home.",
    "Duna": None,
}
CANDLES = "SELECT id, name FROM places WHERE answer(notes, 'are there candles?') = 'Yes' ORDER BY id"


def places() -> dict[str, pa.Table]:
    columns = {
        "id": pa.array([1, 2, 3, 4], pa.int64()),
        "name": list(NOTES),
        "city": ["Paris", "Lyon", "Paris", "Lyon"],
        "visits": pa.array([2**53, 2**53 - 1, -(2**60), None], pa.int64()),
        "notes": list(NOTES.values()),
    }
    return {"places": pa.table(columns)}


def reads_candles(text: str, question: str) -> str | None:
    return "Yes" if "andles" in text else "No"


class Quoting(FunctionModel):
    """A reader that quotes the candles."""

    async def read(self, call):
        reply = await super().read(call)
        start = call.passages[0].find("andles")
        found = (Quote(0, start, "andles"),) if start >= 0 else ()
        return TextReply(reply.value, reply.verdicts, found, Usage(calls=1))


Serve = Callable[..., Client]


@pytest.fixture(scope="module")
def serve() -> Iterator[Serve]:
    """Serve tables with a model; what `open_service`, `connect` and Access take by name."""
    with ExitStack() as stack:

        def start(
            source: Any = None, model: Any = None, *, limits: Limits | None = None, access: Any = None, **options: Any
        ) -> Client:
            connection = stack.enter_context(
                almanaq.connect(
                    places() if source is None else source,
                    model=FunctionModel(reads_candles) if model is None else model,
                    embedder="lexical",
                    cache=False,
                    **options,
                )
            )
            service = open_service(connection, "places", limits, store_mb=None)
            stack.callback(service.store.close)
            client = stack.enter_context(live(service, **(access or {})))
            client.service = service
            return client

        yield start


@pytest.fixture(scope="module")
def client(serve: Serve) -> Client:
    """A client of a server over the places."""
    return serve()


@pytest.fixture(scope="package")
def browser():
    playwright = pytest.importorskip("playwright.sync_api")
    chromium = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if chromium is None:
        pytest.skip("no Chromium here: scripts/system.sh installs it as root on Debian")
    with playwright.sync_playwright() as driver:
        opened = driver.chromium.launch(executable_path=chromium, args=FLAGS)
        yield opened
        opened.close()
    gc.collect()
