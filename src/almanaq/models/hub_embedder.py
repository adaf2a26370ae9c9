"""HubEmbedder: any model of sentence-transformers, from a folder or the Hugging Face hub, by PyTorch."""

from __future__ import annotations

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
from almanaq.models.embedding import prefixes_of
from almanaq.models.vectors import normalised

_BATCH = 16
"""Small batches of texts of like length waste least on a processor."""
_QUESTIONS = ("query", "s2p_query", "question", "search_query")
_DOCUMENTS = ("document", "passage", "corpus", "search_document")
"""How models name their prompts for the two kinds."""


class HubEmbedder:
    """An Embedder of sentence-transformers, loaded at the first use.

    Questions and documents get the prompts that the model's own settings hold for them; where it holds none, what
    models of its name are known to want (`embedding.prefixes_of`).

    Args:
        path: folder of a model, or its name on the Hugging Face hub.
    """

    def __init__(self, path: str) -> None:
        self.name = path
        self._lock = threading.Lock()
        self._model: Any = None

    def embed_questions(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Return unit vectors of what is searched with, shape (len(texts), dimensions).

        Raises:
            MissingExtraError: the extra `torch` is not installed.
            ModelError: there is no such model.
        """
        return self._encoded(texts, "encode_query", _QUESTIONS, prefixes_of(self.name).question)

    def embed_documents(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Return unit vectors of what is searched. Raises as `embed_questions` does."""
        return self._encoded(texts, "encode_document", _DOCUMENTS, prefixes_of(self.name).document)

    def _encoded(self, texts: Sequence[str], method: str, names: Sequence[str], prefix: str) -> NDArray[np.float32]:
        if not texts:
            return np.zeros((0, 0), np.float32)
        with self._lock:
            if self._model is None:
                self._model = _load(self.name)
            own = getattr(self._model, "prompts", None) or {}
            # A model that holds prompts for either kind is believed also where it holds none for this one.
            known = any(own.get(name) for name in (*_QUESTIONS, *_DOCUMENTS))
            prompt = next((own[name] for name in names if own.get(name)), "") if known else prefix
            # Sorted by length by the library: texts of a batch are padded to its longest.
            encode = getattr(self._model, method)
            encoded = encode(list(texts), prompt=prompt, batch_size=_BATCH, show_progress_bar=False)
        # Normalised here, in single precision: in bfloat16 the lengths would be off by up to half a per cent.
        return normalised(encoded)


def _load(path: str) -> Any:
    with quiet():
        try:
            import torch
            from sentence_transformers import SentenceTransformer
        except ImportError as problem:
            missing = problem.name or "sentence-transformers"
            raise MissingExtraError(missing, "torch", f"the embedder {path}") from problem
        options = {"dtype": torch.bfloat16} if _has_bf16() else {}
        try:
            return SentenceTransformer(path, device="cpu", model_kwargs=options)
        except (OSError, ValueError) as problem:
            raise ModelError(f"the embedder {path!r} cannot be loaded ({problem}): change --embedder") from problem


def _has_bf16() -> bool:
    """Return whether the processor computes in bfloat16; where it does not, that would be slower than float32."""
    try:
        flags = Path("/proc/cpuinfo").read_text("utf-8", "replace")
    except OSError:
        return False
    return "amx_bf16" in flags or "avx512_bf16" in flags


@contextmanager
def quiet() -> Iterator[None]:
    """Load without progress bars and reports."""
    wanted = {"HF_HUB_DISABLE_PROGRESS_BARS": "1", "TRANSFORMERS_VERBOSITY": "error", "TOKENIZERS_PARALLELISM": "false"}
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
