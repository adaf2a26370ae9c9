"""Names and objects to models: what is opened, what stands in on a bare install, what is refused."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from almanaq.errors import MissingExtraError, ModelError, SourceError, UsageError
from almanaq.models.budget import read_price
from almanaq.models.embedders import minilm
from almanaq.models.embedders.minilm import load_minilm, local_is_installed
from almanaq.models.model_names import ModelSettings, open_embedder, open_models
from almanaq.models.protocols import Embedder, LanguageModel, Linker, Price, Reader, TextCall
from almanaq.testing import FunctionModel, ScriptedModel
from almanaq_bench.testing import StandInServer, replies_from

CALL = TextCall("answer", ("Candles everywhere.",), "is it romantic?", compared=("Yes",))


def test_local_reads_and_links_on_this_machine_for_nothing() -> None:
    models = open_models("local")
    assert isinstance(models.reader, Reader)
    assert isinstance(models.linker, Linker)
    assert isinstance(models.embedder, Embedder)
    assert (models.name, models.reader.remote, models.reader.paid, models.language) == ("local", False, False, None)
    assert asyncio.run(models.reader.read(CALL)).verdicts == {"Yes": True}
    assert open_models(None).name == "local"


def test_a_bare_install_resolves_local_vectors_to_lexical(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "tokenizers", None)
    assert open_embedder("local").name == "lexical"
    assert open_models("local").embedder.name == "lexical"


def test_opening_imports_neither_torch_nor_a_client() -> None:
    code = (
        "import sys; from almanaq.models.model_names import open_models; open_models('local');"
        "open_models('openai:m', embedder='lexical');"
        "heavy = {'torch', 'openai', 'aiohttp', 'sentence_transformers', 'openvino', 'tokenizers', 'jinja2'};"
        "sys.exit(bool(heavy & set(sys.modules)))"
    )
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), "OPENAI_API_KEY": "k"}
    assert subprocess.run([sys.executable, "-c", code], env=environment).returncode == 0


def test_an_openai_model_answers_over_http_and_keeps_what_it_paid_for(tmp_path: Path) -> None:
    with StandInServer(replies_from(lambda *_: "Yes"), key="k") as server:
        settings = ModelSettings(server.url, "k", cache_file=tmp_path / "c.sqlite", price=Price(1, 1))
        found = [asyncio.run(open_models("openai:m", settings=settings).reader.read(CALL)) for _ in range(2)]
    assert [(r.value, r.usage.calls, r.usage.cached_calls) for r in found] == [("Yes", 1, 0), ("Yes", 0, 1)]
    assert settings.budget.usage.money == pytest.approx(server.ledger.money(Price(1, 1)))
    models = open_models("openai:m", settings=settings)
    assert (models.name, models.reader.remote, models.reader.paid) == ("openai:m", True, True)
    assert isinstance(models.language, LanguageModel)


def test_objects_serve_as_they_are() -> None:
    function = FunctionModel(lambda *_: "Yes")
    models = open_models(function)
    assert models.reader is function
    assert models.linker is not function  # it is never asked to link (semantics 18)
    scripted = ScriptedModel({"answer": {"value": "Yes", "verdicts": {"Yes": "yes"}, "quotes": []}})
    opened = open_models(scripted)
    assert asyncio.run(opened.reader.read(CALL)).verdicts == {"Yes": True}
    assert open_models(opened) is opened
    # A script's replies are nobody's: another script of the same name must not get them from the cache.
    other = ScriptedModel({"answer": {"value": "No", "verdicts": {"Yes": "no"}, "quotes": []}})
    assert asyncio.run(open_models(other).reader.read(CALL)).value == "No"


@pytest.mark.parametrize("name", ["locl", "openai", "openai:", "gpt-4"])
def test_an_unknown_model_is_refused_with_the_names_there_are(name: str) -> None:
    with pytest.raises(UsageError, match=r"local|openai:MODEL"):
        open_models(name)


def test_an_unknown_embedder_is_refused_with_the_names_there_are() -> None:
    with pytest.raises(UsageError, match="'lexical'"):
        open_embedder("lexcal")
    with pytest.raises(UsageError, match="is not a model"):
        open_models(3)  # type: ignore[arg-type]


def test_a_missing_key_is_named() -> None:
    with pytest.raises(ModelError, match="OPENAI_API_KEY"):
        open_models("openai:m")


def test_prices_come_from_the_users_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "prices.toml"
    file.write_text('["gpt-x"]\ninput = 0.15\noutput = 0.6\n')
    monkeypatch.setenv("ALMANAQ_PRICES", str(file))
    assert read_price("gpt-x") == Price(0.15, 0.6)
    assert read_price("other") is None
    for entry in ("in = 1", "input = nan", "input = -1", "input = 1\noutput = inf"):
        file.write_text(f'["gpt-x"]\n{entry}\n')
        with pytest.raises(SourceError, match="ALMANAQ_PRICES"):
            read_price("gpt-x")


def test_weights_that_are_not_the_published_ones_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    if not local_is_installed():
        pytest.skip("needs the extra `local`")
    monkeypatch.setattr(minilm, "WEIGHTS_SHA256", "0" * 64)
    with pytest.raises(ModelError, match="sha256"):
        load_minilm()


def test_a_model_of_the_hub_without_pytorch_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    # Hiding torch itself would let `transformers` remember for the whole run that there is none.
    monkeypatch.setitem(sys.modules, "sentence_transformers", None)
    with pytest.raises(MissingExtraError, match=r"almanaq\[torch\]"):
        open_embedder("a/b").embed_documents(["x"])


@pytest.mark.slow
def test_local_vectors_are_near_for_near_meanings() -> None:
    embedder = open_embedder("local")
    a, b, c = embedder.embed_documents(
        ["a romantic place for a date", "intimate candle-lit dinner", "underground car park"]
    )
    assert a @ b > 0.4 > a @ c
    np.testing.assert_allclose(np.linalg.norm([a, b, c], axis=1), 1, atol=1e-5)
    assert embedder.name == "local"
    assert embedder.embed_documents([]).shape[0] == 0
