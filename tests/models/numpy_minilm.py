"""The layers of MiniLM in numpy, in float32: what the graph of OpenVINO is compared with."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from almanaq.models.embedders.minilm import Array


class NumpyForward:
    """Runs batches through the layers with numpy, in float32."""

    def __init__(self, weights: Mapping[str, Array], config: Mapping[str, Any], *, precise: bool = True) -> None:
        assert precise
        self._weights, self._config = weights, config

    def __call__(self, given: tuple[NDArray[np.int32], Array]) -> list[Array]:
        """Return the mean of the last layer over the tokens of each text."""
        (ids, held), weights = given, self._weights
        states = weights["embeddings.word_embeddings.weight"][ids]
        states = states + weights["embeddings.position_embeddings.weight"][: ids.shape[1]]
        states = self._norm(states + weights["embeddings.token_type_embeddings.weight"][0], "embeddings")
        away = (held[:, None, None, :] - 1) * np.float32(1e9)
        for layer in range(self._config["num_hidden_layers"]):
            states = self._layer(states, away, f"encoder.layer.{layer}")
        pool_tokens: Array = (states * held[:, :, None]).sum(1) / held.sum(1, keepdims=True)
        return [pool_tokens]

    def _layer(self, states: Array, away: Array, name: str) -> Array:
        attended = self._linear(self._attention(states, away, name), f"{name}.attention.output.dense")
        states = self._norm(attended + states, f"{name}.attention.output")
        inner = _gelu(self._linear(states, f"{name}.intermediate.dense"))
        return self._norm(self._linear(inner, f"{name}.output.dense") + states, f"{name}.output")

    def _attention(self, states: Array, away: Array, name: str) -> Array:
        rows, width, size = states.shape
        parts = [
            self._linear(states, f"{name}.attention.self.{part}")
            .reshape(rows, width, self._config["num_attention_heads"], size // self._config["num_attention_heads"])
            .transpose(0, 2, 1, 3)
            for part in ("query", "key", "value")
        ]
        query, key, value = parts
        scores = (
            query @ key.transpose(0, 1, 3, 2) / np.float32(np.sqrt(size // self._config["num_attention_heads"])) + away
        )
        scores = np.exp(scores - scores.max(-1, keepdims=True))
        mixed: Array = (scores / scores.sum(-1, keepdims=True)) @ value
        return mixed.transpose(0, 2, 1, 3).reshape(rows, width, size)

    def _linear(self, states: Array, name: str) -> Array:
        weight, bias = self._weights[f"{name}.weight"], self._weights[f"{name}.bias"]
        flat: Array = states.reshape(-1, states.shape[-1]) @ weight.T + bias
        return flat.reshape(*states.shape[:-1], weight.shape[0])

    def _norm(self, states: Array, name: str) -> Array:
        centred = states - states.mean(-1, keepdims=True)
        spread = np.sqrt((centred**2).mean(-1, keepdims=True) + np.float32(self._config["layer_norm_eps"]))
        scaled: Array = centred / spread * self._weights[f"{name}.LayerNorm.weight"]
        return scaled + self._weights[f"{name}.LayerNorm.bias"]


def _gelu(x: Array) -> Array:
    """The Gaussian error linear unit, its error function to within 2e-7 (Abramowitz and Stegun 7.1.26)."""
    z = np.abs(x) * np.float32(0.7071067811865476)
    t = 1 / (1 + np.float32(0.3275911) * z)
    series = t * (0.254829592 + t * (-0.284496736 + t * (1.421413741 + t * (-1.453152027 + t * 1.061405429))))
    erf = np.sign(x) * (1 - series * np.exp(-z * z))
    out: Array = (0.5 * x * (1 + erf)).astype(np.float32)
    return out
