"""LocalEmbedder: all-MiniLM-L6-v2 on this machine, without PyTorch, its weights checked."""

from __future__ import annotations

import functools
import importlib.util
import threading
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from almanaq.errors import MissingExtraError
from almanaq.models.embedding import SymmetricEmbedder
from almanaq.models.minilm import MiniLM
from almanaq.models.minilm_weights import checked_folder, weights_are_here

_PACKAGES = ("tokenizers", "openvino")
_LOCK = threading.Lock()


def local_is_installed() -> bool:
    """Return whether the extra `local` is there, without importing it.

    Its weights may still have to be fetched. Where they are here already, OpenVINO may be missing: numpy computes too.
    """
    needed = _PACKAGES[:1] if weights_are_here() else _PACKAGES
    return all(importlib.util.find_spec(package) is not None for package in needed)


class LocalEmbedder(SymmetricEmbedder):
    """An Embedder on this machine; the vector of a text hangs on nothing but the text.

    Its weights are loaded at the first use, once in a process: all connections share them.
    """

    name = "local"

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Return unit vectors, shape (len(texts), dimensions).

        Raises:
            MissingExtraError: the extra `local` is not installed.
            ModelError: the weights are not the published ones, or cannot be fetched.
        """
        if not texts:
            return np.zeros((0, 0), np.float32)
        with _LOCK:
            return _shared_minilm().encode(texts)


def load_minilm(*, precise: bool = False) -> MiniLM:
    """Return MiniLM with its checked weights, in float32 where `precise`. Raises as LocalEmbedder.embed does."""
    if importlib.util.find_spec("tokenizers") is None:
        raise MissingExtraError("tokenizers", "local", "the local embedder")
    return MiniLM(checked_folder(), precise=precise)


@functools.cache
def _shared_minilm() -> MiniLM:
    return load_minilm()
