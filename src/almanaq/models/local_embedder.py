"""LocalEmbedder: all-MiniLM-L6-v2 on this machine, without PyTorch, its weights checked."""

from __future__ import annotations

import importlib.util
import threading
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from almanaq.errors import MissingExtraError
from almanaq.models.minilm import MiniLM
from almanaq.models.minilm_weights import checked_folder, weights_are_here

_PACKAGES = ("tokenizers", "openvino")


def local_is_installed() -> bool:
    """Say whether the extra `local` is there, without importing it.

    Its weights may still have to be fetched. Where they are here already, OpenVINO may be missing: numpy computes too.
    """
    needed = _PACKAGES[:1] if weights_are_here() else _PACKAGES
    return all(importlib.util.find_spec(package) is not None for package in needed)


class LocalEmbedder:
    """An Embedder on this machine, loaded at the first use; the vector of a text hangs on nothing but the text."""

    name = "local"

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._model: MiniLM | None = None

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Give unit vectors, shape (len(texts), dimensions).

        Raises:
            MissingExtraError: the extra `local` is not installed.
            ModelError: the weights are not the published ones, or cannot be fetched.
        """
        if not texts:
            return np.zeros((0, 0), np.float32)
        with self._lock:
            if self._model is None:
                self._model = load_minilm()
            return self._model.encode(texts)


def load_minilm(*, precise: bool = False) -> MiniLM:
    """Give MiniLM with its checked weights, in float32 where `precise`. Raises as LocalEmbedder.embed does."""
    if importlib.util.find_spec("tokenizers") is None:
        raise MissingExtraError("tokenizers", "local", "the local embedder")
    return MiniLM(checked_folder(), precise=precise)
