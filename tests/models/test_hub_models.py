"""Models in folders: a tiny BERT made here is read by our encoder and by `local:NAME` as by its own library."""

from __future__ import annotations

import string
from pathlib import Path

import numpy as np
import pytest

from almanaq.errors import ModelError
from almanaq.models.embedders.minilm import MiniLM, NumpyForward
from almanaq.models.hub_models import HubReader, to_statement
from almanaq.models.model_names import open_models
from almanaq.models.protocols import TextCall

TEXTS = ["the patio was quiet", "a", "we waited an hour for a table and then another", ""]


@pytest.mark.parametrize(
    ("question", "said"),
    [
        ("is this restaurant quiet?", "this restaurant is quiet"),
        ("does it have a patio?", "it have a patio"),
        ("can you see the sea?", "you can see the sea"),
        ("quiet?", "quiet"),
    ],
)
def test_a_question_becomes_a_statement(question: str, said: str) -> None:
    assert to_statement(question) == said


@pytest.fixture(scope="module")
def transformers():  # type: ignore[no-untyped-def]
    return pytest.importorskip("transformers")


def make(transformers, folder: Path, kind: str, **options: object) -> Path:  # type: ignore[no-untyped-def]
    """Write a tiny model of a kind with a vocabulary of letters, its weights from a fixed seed."""
    import torch

    torch.manual_seed(7)
    letters = [*string.ascii_lowercase, *string.digits, *(f"##{c}" for c in string.ascii_lowercase), "?", ".", ","]
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "vocab.txt").write_text("\n".join(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *letters]))
    sizes = {"hidden_size": 24, "num_hidden_layers": 2, "num_attention_heads": 3, "intermediate_size": 40}
    config = transformers.BertConfig(vocab_size=len(letters) + 5, max_position_embeddings=64, **sizes, **options)
    getattr(transformers, kind)(config).save_pretrained(folder)
    transformers.BertTokenizerFast(str(folder / "vocab.txt")).save_pretrained(folder)
    return folder


@pytest.mark.nightly
@pytest.mark.slow
def test_vectors_are_those_of_the_library(transformers, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    import torch

    folder = make(transformers, tmp_path / "bert", "BertModel")
    model, tokenizer = (kind.from_pretrained(folder) for kind in (transformers.AutoModel, transformers.AutoTokenizer))
    encoded = tokenizer(TEXTS, padding=True, truncation=True, max_length=64, return_tensors="pt")
    with torch.inference_mode():
        states, mask = model.eval()(**encoded).last_hidden_state, encoded["attention_mask"][:, :, None]
    pooled = ((states * mask).sum(1) / mask.sum(1)).numpy()
    expected = pooled / np.linalg.norm(pooled, axis=1, keepdims=True)
    for forward in (None, NumpyForward):
        encoder = MiniLM(folder, precise=True, forward=forward)
        np.testing.assert_allclose(encoder.encode(TEXTS), expected, atol=1e-5)


@pytest.mark.nightly
@pytest.mark.slow
def test_a_model_that_finds_spans_answers_open_questions(transformers, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    folder = make(transformers, tmp_path / "qa", "BertForQuestionAnswering")
    models = open_models(f"local:{folder}", embedder="lexical")
    reader = models.reader
    assert isinstance(reader, HubReader)
    assert (models.name, reader.remote, reader.paid) == (f"local:{folder}", False, False)
    reader_least = pytest.MonkeyPatch()
    reader_least.setattr("almanaq.models.hub_models._LEAST_CONFIDENCE", 0.0)
    try:
        call = TextCall("answer", ("She was born in 1921 in Arles. " * 6,), "when was she born?", type="integer")
        found = reader.evaluate(call)
        assert found == reader.evaluate(call)
        assert found.value in ("1921", None)
        plain = reader.evaluate(TextCall("answer", call.passages, call.question))
        assert plain.value
        assert plain.value in call.passages[0]
        quote = plain.quotes[0]
        assert call.passages[0][quote.start : quote.start + len(quote.text)] == quote.text
    finally:
        reader_least.undo()
    assert reader.evaluate(TextCall("answer", ("Such a romantic room.",), "is it romantic?")).value == "Yes"


@pytest.mark.nightly
@pytest.mark.slow
def test_a_model_that_judges_entailment_answers_yes_or_no(transformers, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    labels = {0: "entailment", 1: "neutral", 2: "contradiction"}
    folder = make(transformers, tmp_path / "nli", "BertForSequenceClassification", id2label=labels)
    reader = HubReader(str(folder))
    reader.evaluate(TextCall("answer", ("Fine.",), "is it quiet?"))
    bias = reader._loaded.model.classifier.bias.data  # type: ignore[union-attr]
    for label, value in (("entailment", "Yes"), ("contradiction", "No"), ("neutral", None)):
        bias.zero_()
        bias[next(i for i, name in labels.items() if name == label)] = 50.0
        found = reader.evaluate(TextCall("answer", ("The room hums.",), "is it quiet?", compared=("Yes",)))
        assert (found.value, found.verdicts) == (value, {"Yes": None if value is None else value == "Yes"})
        assert [quote.text for quote in found.quotes] == (["The room hums."] if value else [])


@pytest.mark.slow
def test_another_kind_of_model_and_none_at_all_are_refused(transformers, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    call = TextCall("answer", ("Fine.",), "is it quiet?")
    with pytest.raises(ModelError, match="extractive question answering"):
        HubReader(str(make(transformers, tmp_path / "plain", "BertModel"))).evaluate(call)
    with pytest.raises(ModelError, match="cannot be loaded"):
        HubReader(str(tmp_path / "nothing")).evaluate(call)
    with pytest.raises(ModelError, match=f"did you mean '{tmp_path / 'plain'}'"):
        HubReader(str(tmp_path / "plian")).evaluate(call)
