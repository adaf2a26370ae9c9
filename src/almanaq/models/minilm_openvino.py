"""The forward pass of a BERT encoder with mean pooling in OpenVINO: many times numpy's speed.

In bfloat16 where the processor computes in it, else in float32. What a text gives hangs on the text alone, not on its
company: texts of one run are padded to one width of few (minilm.py), and masked tokens count exactly nothing.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import numpy as np
from numpy.typing import NDArray

from almanaq.models.minilm_numpy import Shape

Array = NDArray[np.float32]


class OpenVinoForward:
    """Runs batches through the layers; compiled when it is made, in about a quarter of a second.

    Args:
        precise: compute in float32 even where bfloat16 would be faster.
    """

    def __init__(self, weights: Mapping[str, Array], shape: Shape, *, precise: bool = False) -> None:
        with _no_telemetry():
            import openvino

        core = openvino.Core()
        fast = not precise and "BF16" in core.get_property("CPU", "OPTIMIZATION_CAPABILITIES")
        settings = {
            "PERFORMANCE_HINT": "LATENCY",
            "INFERENCE_PRECISION_HINT": "bf16" if fast else "f32",
            "ENABLE_CPU_PINNING": False,  # pinned threads wait for their core where other work holds it
        }
        self._model: Any = core.compile_model(_Graph(weights, shape).model(), "CPU", settings)

    def __call__(self, ids: NDArray[np.int32], held: Array) -> Array:
        """Return the mean of the last layer over the tokens of each text."""
        found: Array = self._model([ids, held])[0].copy()
        return found


@contextmanager
def _no_telemetry() -> Iterator[None]:
    """Import OpenVINO as where `openvino-telemetry` is not installed: it would tell its maker of each import."""
    name = "openvino_telemetry"
    if "openvino" in sys.modules or name in sys.modules:
        yield
        return
    sys.modules[name] = None  # type: ignore[assignment]
    try:
        yield
    finally:
        sys.modules.pop(name, None)


class _Graph:
    """Writes the layers as operations of OpenVINO."""

    def __init__(self, weights: Mapping[str, Array], shape: Shape) -> None:
        from openvino import opset13

        self._op: Any = opset13
        self._weights, self._shape = weights, shape

    def model(self) -> Any:
        """Return the model from token numbers and a mask to one vector for each text."""
        import openvino

        op = self._op
        ids = op.parameter([-1, -1], np.int32, name="ids")
        held = op.parameter([-1, -1], np.float32, name="held")
        states = self._embedded(ids)
        less = op.subtract(held, op.constant(np.float32(1)))
        away = op.unsqueeze(op.multiply(less, op.constant(np.float32(1e9))), self._ints(1, 2))
        for layer in range(self._shape.layers):
            states = self._layer(states, away, f"encoder.layer.{layer}")
        counted = op.unsqueeze(held, self._ints(2))
        sums = op.reduce_sum(op.multiply(states, counted), self._ints(1))
        return openvino.Model([op.divide(sums, op.reduce_sum(counted, self._ints(1)))], [ids, held], "minilm")

    def _embedded(self, ids: Any) -> Any:
        op, first = self._op, self._op.constant(np.int32(0))
        words = op.gather(self._constant("embeddings.word_embeddings.weight"), ids, first)
        places = self._weights["embeddings.position_embeddings.weight"]
        places = places + self._weights["embeddings.token_type_embeddings.weight"][0]
        width = op.gather(op.shape_of(ids, "i32"), self._ints(1), first)
        here = op.strided_slice(op.constant(places), self._ints(0), width, self._ints(1), [0], [0])
        return self._norm(op.add(words, here), "embeddings")

    def _layer(self, states: Any, away: Any, name: str) -> Any:
        op = self._op
        attended = self._linear(self._attention(states, away, name), f"{name}.attention.output.dense")
        states = self._norm(op.add(attended, states), f"{name}.attention.output")
        inner = op.gelu(self._linear(states, f"{name}.intermediate.dense"), "erf")
        return self._norm(op.add(self._linear(inner, f"{name}.output.dense"), states), f"{name}.output")

    def _attention(self, states: Any, away: Any, name: str) -> Any:
        op, heads = self._op, self._shape.heads
        size = self._shape.size // heads
        query, key, value = (
            op.transpose(
                op.reshape(
                    self._linear(states, f"{name}.attention.self.{part}"),
                    self._ints(0, 0, heads, size),
                    special_zero=True,
                ),
                self._ints(0, 2, 1, 3),
            )
            for part in ("query", "key", "value")
        )
        scale = op.constant(np.float32(1 / np.sqrt(size)))
        mixed = op.scaled_dot_product_attention(query, key, value, away, scale, causal=False)
        joined = op.transpose(mixed, self._ints(0, 2, 1, 3))
        return op.reshape(joined, self._ints(0, 0, self._shape.size), special_zero=True)

    def _linear(self, states: Any, name: str) -> Any:
        op = self._op
        product = op.matmul(states, self._constant(f"{name}.weight"), transpose_a=False, transpose_b=True)
        return op.add(product, self._constant(f"{name}.bias"))

    def _norm(self, states: Any, name: str) -> Any:
        op = self._op
        even = op.mvn(states, self._ints(2), normalize_variance=True, eps=self._shape.epsilon, eps_mode="inside_sqrt")
        scaled = op.multiply(even, self._constant(f"{name}.LayerNorm.weight"))
        return op.add(scaled, self._constant(f"{name}.LayerNorm.bias"))

    def _constant(self, name: str) -> Any:
        return self._op.constant(np.ascontiguousarray(self._weights[name]))

    def _ints(self, *numbers: int) -> Any:
        return self._op.constant(np.array(numbers, np.int32))
