"""CrossEncoder: a model on this machine that reads a question and a text together, and scores how well they fit."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from almanaq.errors import MissingExtraError, ModelError
from almanaq.models.hub_embedder import quiet

_BATCH = 16


class CrossEncoder:
    """Scores pairs of texts; the model is loaded at the first use.

    Args:
        path: folder of a cross-encoder of sentence-transformers, or its name on the Hugging Face hub. Of a model with
            several labels the last one's score is taken: "entailment" and "relevant" stand there by custom.
    """

    def __init__(self, path: str) -> None:
        self.name = path
        self._lock = threading.Lock()
        self._model: Any = None

    def scores(self, question: str, texts: Sequence[str]) -> NDArray[np.float32]:
        """Return one score per text, higher for a better fit.

        Raises:
            MissingExtraError: the extra `torch` is not installed.
            ModelError: there is no such model, or it gives scores that are no numbers.
        """
        if not texts:
            return np.zeros(0, np.float32)
        with self._lock:
            if self._model is None:
                self._model = _load(self.name)
            pairs = [(question, text) for text in texts]
            made = np.asarray(self._model.predict(pairs, batch_size=_BATCH, show_progress_bar=False), dtype=np.float32)
        scores: NDArray[np.float32] = made if made.ndim == 1 else made[:, -1]
        if not np.isfinite(scores).all():
            raise ModelError(f"the cross-encoder {self.name!r} gave a score that is no number")
        return scores


def _load(path: str) -> Any:
    with quiet():
        try:
            from sentence_transformers import CrossEncoder as Loaded
        except ImportError as problem:
            missing = problem.name or "sentence-transformers"
            raise MissingExtraError(missing, "torch", "a cross-encoder") from problem
        try:
            return Loaded(path, device="cpu")
        except (OSError, ValueError) as problem:
            raise ModelError(
                f"the cross-encoder {path!r} cannot be loaded ({problem}): change --retriever"
            ) from problem
