"""Models of the Hugging Face hub or a folder, run by PyTorch on this machine."""

from __future__ import annotations

import logging
import os
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from almanaq.errors import MissingExtraError, ModelError
from almanaq.models.embedders.base import find_prefixes, normalize

_EMBED_BATCH = 16
"""Small batches of texts of similar length waste the least time on a CPU."""
_QUESTIONS = ("query", "s2p_query", "question", "search_query")
_DOCUMENTS = ("document", "passage", "corpus", "search_document")
"""Names that models use for their prompts of the two kinds."""


class HubEmbedder:
    """An Embedder of sentence-transformers, a folder or a hub name, loaded at the first use.

    Texts get the prompts in the model's own settings; where it has none, the prefixes known for its name.
    """

    def __init__(self, path: str) -> None:
        self.name = path
        self._lock = threading.Lock()
        self._model: Any = None

    def embed_questions(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Return unit vectors, shape (len(texts), dimensions). Raises MissingExtraError, ModelError."""
        return self._encode(texts, "encode_query", _QUESTIONS, find_prefixes(self.name).question)

    def embed_documents(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Return unit vectors of documents. Raises as `embed_questions` does."""
        return self._encode(texts, "encode_document", _DOCUMENTS, find_prefixes(self.name).document)

    def _encode(self, texts: Sequence[str], method: str, names: Sequence[str], prefix: str) -> NDArray[np.float32]:
        if not texts:
            return np.zeros((0, 0), np.float32)
        with self._lock:
            if self._model is None:
                flags = ""
                with suppress(OSError):
                    flags = Path("/proc/cpuinfo").read_text("utf-8", "replace")
                # On other processors bfloat16 is slower than float32.
                fast = "amx_bf16" in flags or "avx512_bf16" in flags
                options = {"dtype": "bfloat16"} if fast else {}
                self._model = load_hub_model("SentenceTransformer", self.name, "--embedder", model_kwargs=options)
            own = getattr(self._model, "prompts", None) or {}
            # A model with a prompt for one kind wants none for the other, unless it says so.
            known = any(own.get(name) for name in (*_QUESTIONS, *_DOCUMENTS))
            prompt = next((own[name] for name in names if own.get(name)), "") if known else prefix
            # The library sorts texts by length, as a batch is padded to its longest.
            encode = getattr(self._model, method)
            encoded = encode(list(texts), prompt=prompt, batch_size=_EMBED_BATCH, show_progress_bar=False)
        # Normalized here in float32: in bfloat16 the lengths would be off by up to half a per cent.
        return normalize(encoded)


def load_hub_model(kind: str, path: str, setting: str, **options: Any) -> Any:
    with silence_libraries():
        try:
            import sentence_transformers
        except ImportError as problem:
            raise MissingExtraError(problem.name or "sentence-transformers", "torch", f"the model {path}") from problem
        try:
            return getattr(sentence_transformers, kind)(path, device="cpu", **options)
        except (OSError, ValueError) as problem:
            raise ModelError(f"the model {path!r} cannot be loaded ({problem}): change {setting}") from problem


@contextmanager
def silence_libraries() -> Iterator[None]:
    """Silence progress bars and log messages of the model libraries."""
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
