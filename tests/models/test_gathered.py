"""Texts of many calls embedded together: each once, in few batches, and the reply of a call as if it were alone."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import numpy as np
import pytest

from almanaq.errors import ModelError
from almanaq.models.embedders.base import LexicalEmbedder
from almanaq.models.embedders.vector_store import VectorBatcher, VectorStore
from almanaq.models.extractive import LocalReader
from almanaq.models.protocols import TextCall

CALLS = [
    TextCall(
        "answer", (f"Word{n} stands by word{n % 7}. And word{n % 3} too.",), "does the restaurant lie in the north?"
    )
    for n in range(40)
]


class Counted:
    """The lexical vectors, under the name whose clauses the local reader judges by their meaning."""

    name = "local"

    def __init__(self) -> None:
        self.batches: list[Sequence[str]] = []

    def embed(self, texts: Sequence[str]) -> np.ndarray:
        self.batches.append(texts)
        return np.pad(LexicalEmbedder().embed(texts), ((0, 0), (0, 384)))[:, :384]


def test_calls_under_way_share_batches_and_embed_each_text_once() -> None:
    embedder = Counted()
    reader = LocalReader(embedder)

    async def together() -> list[object]:
        return list(await asyncio.gather(*map(reader.read, CALLS)))

    found = asyncio.run(together())
    texts = [text for batch in embedder.batches for text in batch]
    assert len(texts) == len(set(texts))
    assert len(embedder.batches) <= 2
    assert found == [LocalReader(Counted()).evaluate(call) for call in CALLS]
    assert asyncio.run(together()) == found
    assert [text for batch in embedder.batches for text in batch] == texts


def test_a_call_that_is_cancelled_takes_nothing_from_the_others() -> None:
    gathered = VectorBatcher(VectorStore(None, Counted()))

    async def some() -> list[str]:
        leaving = asyncio.ensure_future(gathered.get_vectors(["a", "b"]))
        staying = asyncio.ensure_future(gathered.get_vectors(["b", "c"]))
        await asyncio.sleep(0)
        leaving.cancel()
        return sorted(await staying)

    assert asyncio.run(some()) == ["b", "c"]


def test_an_embedder_that_fails_fails_every_call_that_waits_for_it() -> None:
    class Broken(Counted):
        def embed(self, texts: Sequence[str]) -> np.ndarray:
            raise ModelError("no weights here")

    async def both() -> list[object]:
        reader = LocalReader(Broken())
        return list(await asyncio.gather(*map(reader.read, CALLS[:2]), return_exceptions=True))

    assert [type(each) for each in asyncio.run(both())] == [ModelError, ModelError]


@pytest.mark.parametrize("kept_on_disk", [True, False])
def test_the_oldest_clauses_give_way(tmp_path, kept_on_disk: bool) -> None:
    embedder = Counted()
    store = VectorStore(tmp_path if kept_on_disk else None, embedder, part="clauses", most=10)
    for n in range(30):
        store.vectors([f"text {n}"])
    assert store.find_missing([f"text {n}" for n in range(30)]) == [f"text {n}" for n in range(20)]
    if kept_on_disk:
        assert [file.stat().st_mode & 0o777 for file in tmp_path.iterdir()] == [0o600]
        assert VectorStore(tmp_path, embedder).find_missing(["text 29"]) == ["text 29"]  # a file of their own
