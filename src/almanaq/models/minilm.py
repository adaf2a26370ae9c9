"""MiniLM in numpy: the forward pass of a BERT encoder with mean pooling, for few texts where torch starts too slowly.

Reads the safetensors file and the tokenizer of a sentence-transformers folder. Float32 throughout; the vectors are
those of sentence-transformers to within rounding.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from almanaq.models.vectors import normalised

Array = NDArray[np.float32]

_LONGEST = 256
_TOKENS = 1_024
"""Texts of like length are run together, up to so many tokens with the padding."""


class MiniLM:
    """An encoder whose weights are in memory; made once, used from one thread at a time."""

    def __init__(self, folder: Path) -> None:
        from safetensors.numpy import load_file
        from tokenizers import Tokenizer

        config: dict[str, Any] = json.loads((folder / "config.json").read_text("utf-8"))
        self._heads: int = config["num_attention_heads"]
        self._epsilon: float = config["layer_norm_eps"]
        self._weights: dict[str, Array] = load_file(folder / "model.safetensors")
        self._tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
        self._tokenizer.enable_truncation(min(_LONGEST, config["max_position_embeddings"]))
        self._tokenizer.no_padding()
        self._layers: int = config["num_hidden_layers"]

    def encode(self, texts: Sequence[str]) -> Array:
        """Give one unit vector for each text."""
        ids = [encoding.ids for encoding in self._tokenizer.encode_batch(list(texts))]
        found = np.zeros((len(ids), self._weights["embeddings.LayerNorm.weight"].shape[0]), np.float32)
        for group in _groups([len(each) for each in ids]):
            found[group] = self._pooled([ids[i] for i in group])
        return normalised(found)

    def _pooled(self, ids: Sequence[Sequence[int]]) -> Array:
        """Give the mean of the last layer over the tokens of each text."""
        width = max(map(len, ids))
        padded = np.zeros((len(ids), width), np.int64)
        held = np.zeros((len(ids), width), np.float32)
        for row, each in enumerate(ids):
            padded[row, : len(each)], held[row, : len(each)] = each, 1
        weights = self._weights
        states = weights["embeddings.word_embeddings.weight"][padded]
        states = states + weights["embeddings.position_embeddings.weight"][:width]
        states = self._norm(states + weights["embeddings.token_type_embeddings.weight"][0], "embeddings")
        away = (held[:, None, None, :] - 1) * np.float32(1e9)
        for layer in range(self._layers):
            states = self._layer(states, away, f"encoder.layer.{layer}")
        pooled: Array = (states * held[:, :, None]).sum(1) / held.sum(1, keepdims=True)
        return pooled

    def _layer(self, states: Array, away: Array, name: str) -> Array:
        attended = self._linear(self._attention(states, away, name), f"{name}.attention.output.dense")
        states = self._norm(attended + states, f"{name}.attention.output")
        inner = _gelu(self._linear(states, f"{name}.intermediate.dense"))
        return self._norm(self._linear(inner, f"{name}.output.dense") + states, f"{name}.output")

    def _attention(self, states: Array, away: Array, name: str) -> Array:
        rows, width, size = states.shape
        parts = [
            self._linear(states, f"{name}.attention.self.{part}")
            .reshape(rows, width, self._heads, size // self._heads)
            .transpose(0, 2, 1, 3)
            for part in ("query", "key", "value")
        ]
        query, key, value = parts
        scores = query @ key.transpose(0, 1, 3, 2) / np.float32(np.sqrt(size // self._heads)) + away
        scores = np.exp(scores - scores.max(-1, keepdims=True))
        mixed: Array = (scores / scores.sum(-1, keepdims=True)) @ value
        return mixed.transpose(0, 2, 1, 3).reshape(rows, width, size)

    def _linear(self, states: Array, name: str) -> Array:
        weight, bias = self._weights[f"{name}.weight"], self._weights[f"{name}.bias"]
        flat: Array = states.reshape(-1, states.shape[-1]) @ weight.T + bias
        return flat.reshape(*states.shape[:-1], weight.shape[0])

    def _norm(self, states: Array, name: str) -> Array:
        centred = states - states.mean(-1, keepdims=True)
        spread = np.sqrt((centred**2).mean(-1, keepdims=True) + np.float32(self._epsilon))
        scaled: Array = centred / spread * self._weights[f"{name}.LayerNorm.weight"]
        return scaled + self._weights[f"{name}.LayerNorm.bias"]


def _groups(lengths: Sequence[int]) -> Iterator[list[int]]:
    """Yield the places of texts that are run together."""
    group: list[int] = []
    for i in sorted(range(len(lengths)), key=lambda i: (lengths[i], i)):
        if group and (len(group) + 1) * lengths[i] > _TOKENS:
            yield group
            group = []
        group.append(i)
    if group:
        yield group


def _gelu(x: Array) -> Array:
    """The Gaussian error linear unit, its error function to within 2e-7 (Abramowitz and Stegun 7.1.26)."""
    z = np.abs(x) * np.float32(0.7071067811865476)
    t = 1 / (1 + np.float32(0.3275911) * z)
    series = t * (0.254829592 + t * (-0.284496736 + t * (1.421413741 + t * (-1.453152027 + t * 1.061405429))))
    erf = np.sign(x) * (1 - series * np.exp(-z * z))
    out: Array = (0.5 * x * (1 + erf)).astype(np.float32)
    return out
