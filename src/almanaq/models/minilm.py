"""MiniLM on this machine: texts to tokens, tokens to batches, batches through OpenVINO, or numpy where it is not there.

Reads the safetensors file and the tokenizer of a sentence-transformers folder.
"""

from __future__ import annotations

import importlib.util
import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from almanaq.models.minilm_numpy import NumpyForward, Shape
from almanaq.models.minilm_weights import read_tensors
from almanaq.models.vectors import normalised

Array = NDArray[np.float32]

_LONGEST = 256
_TOKENS = 1_024
"""Texts of like length are run together, up to so many tokens with the padding."""


class Forward(Protocol):
    """Gives the mean of the last layer over the tokens of each text, from token numbers and a mask of ones."""

    def __call__(self, ids: NDArray[np.int32], held: Array) -> Array: ...


class MiniLM:
    """An encoder whose weights are in memory; made once, used from one thread at a time.

    Args:
        precise: compute in float32 even where the processor is faster in bfloat16.
        forward: a class that runs the layers; None takes OpenVINO, or numpy where that is not installed.
    """

    def __init__(self, folder: Path, *, precise: bool = False, forward: type[NumpyForward] | None = None) -> None:
        from tokenizers import Tokenizer

        config: dict[str, Any] = json.loads((folder / "config.json").read_text("utf-8"))
        self._width: int = config["hidden_size"]
        shape = Shape(
            config["num_hidden_layers"], config["num_attention_heads"], self._width, float(config["layer_norm_eps"])
        )
        weights = read_tensors(folder / "model.safetensors")
        self._longest = min(_LONGEST, config["max_position_embeddings"])
        self._tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
        self._tokenizer.enable_truncation(self._longest)
        self._tokenizer.no_padding()
        self._forward: Forward
        if forward is None and importlib.util.find_spec("openvino") is not None:
            from almanaq.models.minilm_openvino import OpenVinoForward

            self._forward = OpenVinoForward(weights, shape, precise=precise)
        else:
            self._forward = (forward or NumpyForward)(weights, shape)

    def encode(self, texts: Sequence[str]) -> Array:
        """Return one unit vector for each text."""
        return normalised(self.pooled([encoding.ids for encoding in self._tokenizer.encode_batch(list(texts))]))

    def pooled(self, ids: Sequence[Sequence[int]]) -> Array:
        """Return the mean of the last layer over the tokens of each text, which are given by their numbers."""
        found = np.zeros((len(ids), self._width), np.float32)
        for group, width in _groups([len(each) for each in ids], self._longest):
            padded, held = np.zeros((len(group), width), np.int32), np.zeros((len(group), width), np.float32)
            for row, place in enumerate(group):
                padded[row, : len(ids[place])], held[row, : len(ids[place])] = ids[place], 1
            found[group] = self._forward(padded, held)
        return found


def _groups(lengths: Sequence[int], longest: int) -> Iterator[tuple[list[int], int]]:
    """Yield the places of texts that are run together, and to how many tokens they are padded."""
    group: list[int] = []
    width = 0
    for i in sorted(range(len(lengths)), key=lambda i: (lengths[i], i)):
        needed = min(longest, _padded(lengths[i]))
        if group and (needed > width or (len(group) + 1) * width > _TOKENS):
            yield group, width
            group = []
        group.append(i)
        width = needed
    if group:
        yield group, width


def _padded(tokens: int) -> int:
    """Return to how many tokens a text is padded, by its own length: its vector must not hang on its company."""
    step = 4 if tokens <= 16 else 8
    return -(-tokens // step) * step
