"""The server that is measured, in a process of its own: a language model that replies what is right after a while."""

from __future__ import annotations

import argparse
import os
import re
import tempfile
from dataclasses import replace
from typing import Any

import almanaq
from almanaq.models.protocols import Prompt
from almanaq.testing import ScriptedModel
from almanaq.web.app import create_app
from almanaq.web.gate import Access
from almanaq.web.service import open_service
from almanaq.web.serving import serve
from almanaq.web.supervisor import bind_socket

ROWS = 1_000
READ = 20
"""Texts that a question has read, all at once."""


def reply(prompt: Prompt) -> Any:
    """Return what a model would reply: the query of the conversation's own number, Yes to each text, and a sentence."""
    said = prompt.messages[-1].content
    if prompt.name == "parse":
        number, turn = map(int, re.findall(r"conversation (\d+), turn (\d+)", said)[-1])
        first = number * READ % ROWS
        where = f"id >= {first} AND id < {first + READ} AND answer(notes, 'is it quiet in {number}, {turn}?') = 'Yes'"
        suql = f"SELECT {number} AS number, name FROM places WHERE {where} ORDER BY id"
        return {"reasoning": "", "suql": suql, "needs_data": True, "clarify": None}
    return "These are quiet." if prompt.name == "respond" else {"value": "Yes", "quotes": []}


def places() -> dict[str, dict[str, list[Any]]]:
    """Return the table that is asked about."""
    ids = list(range(ROWS))
    notes = [f"A quiet place of its own, with number {i}, a garden, and much to tell of the people there." for i in ids]
    return {"places": {"id": ids, "name": [f"Place {i}" for i in ids], "notes": notes}}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--latency", type=float, default=0.2)
    arguments = parser.parse_args()
    model = ScriptedModel(reply, latency=arguments.latency)
    model.prompts = _Forgetful()  # the server is measured, not what a fake remembers
    model.persistent = True  # its replies are kept as a real model's are: on disk
    with tempfile.TemporaryDirectory() as folder, bind_socket("127.0.0.1", 0) as listening:
        os.environ["ALMANAQ_CACHE_DIR"] = folder
        access = replace(Access(), port=listening.getsockname()[1])
        with almanaq.connect(places(), model=model, embedder="lexical") as connection:
            service = open_service(connection, "places")
            serve(create_app(service, access), [listening], lambda: print(access.port, flush=True))
            service.store.close()


class _Forgetful(list[Prompt]):
    def append(self, _: Prompt) -> None:
        """Keep nothing."""


if __name__ == "__main__":
    main()
