"""Models of the Hugging Face hub or a folder, run by PyTorch on this machine: embedders, cross-encoders, readers."""

from __future__ import annotations

import asyncio
import logging
import os
import re
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from almanaq.errors import MissingExtraError, ModelError, suggest
from almanaq.models.embedders.base import find_prefixes, normalize
from almanaq.models.extractive import LocalReader
from almanaq.models.extractive.clauses import clauses
from almanaq.models.extractive.reader import is_yes_or_no, yes_or_no_reply
from almanaq.models.protocols import Quote, TextCall, TextReply
from almanaq.values import parse_typed

_EMBED_BATCH = 16
"""Small batches of texts of similar length waste the least time on a CPU."""
_QUESTIONS = ("query", "s2p_query", "question", "search_query")
_DOCUMENTS = ("document", "passage", "corpus", "search_document")
"""Names that models use for their prompts of the two kinds."""


class HubEmbedder:
    """An Embedder of sentence-transformers, loaded at the first use.

    Questions and documents get the prompts in the model's own settings; where it has none, the prefixes known for its
    name (`embedders.base.find_prefixes`).

    Args:
        path: a model's folder, or its name on the Hugging Face hub.
    """

    def __init__(self, path: str) -> None:
        self.name = path
        self._lock = threading.Lock()
        self._model: Any = None

    def embed_questions(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Return unit vectors of questions, shape (len(texts), dimensions).

        Raises:
            MissingExtraError: the extra `torch` is not installed.
            ModelError: there is no such model.
        """
        return self._encode(texts, "encode_query", _QUESTIONS, find_prefixes(self.name).question)

    def embed_documents(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Return unit vectors of documents. Raises as `embed_questions` does."""
        return self._encode(texts, "encode_document", _DOCUMENTS, find_prefixes(self.name).document)

    def _encode(self, texts: Sequence[str], method: str, names: Sequence[str], prefix: str) -> NDArray[np.float32]:
        if not texts:
            return np.zeros((0, 0), np.float32)
        with self._lock:
            if self._model is None:
                self._model = _load_embedder(self.name)
            own = getattr(self._model, "prompts", None) or {}
            # A model with a prompt for one kind wants none for the other, unless it says so.
            known = any(own.get(name) for name in (*_QUESTIONS, *_DOCUMENTS))
            prompt = next((own[name] for name in names if own.get(name)), "") if known else prefix
            # The library sorts texts by length, as a batch is padded to its longest.
            encode = getattr(self._model, method)
            encoded = encode(list(texts), prompt=prompt, batch_size=_EMBED_BATCH, show_progress_bar=False)
        # Normalized here in float32: in bfloat16 the lengths would be off by up to half a per cent.
        return normalize(encoded)


def _load_embedder(path: str) -> Any:
    with silence_libraries():
        try:
            import torch
            from sentence_transformers import SentenceTransformer
        except ImportError as problem:
            missing = problem.name or "sentence-transformers"
            raise MissingExtraError(missing, "torch", f"the embedder {path}") from problem
        options = {"dtype": torch.bfloat16} if _computes_bf16() else {}
        try:
            return SentenceTransformer(path, device="cpu", model_kwargs=options)
        except (OSError, ValueError) as problem:
            raise ModelError(f"the embedder {path!r} cannot be loaded ({problem}): change --embedder") from problem


def _computes_bf16() -> bool:
    """Return whether the CPU computes in bfloat16, which is otherwise slower than float32."""
    try:
        flags = Path("/proc/cpuinfo").read_text("utf-8", "replace")
    except OSError:
        return False
    return "amx_bf16" in flags or "avx512_bf16" in flags


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


_SCORE_BATCH = 16


class CrossEncoder:
    """Scores pairs of texts; the model is loaded at the first use.

    Args:
        path: a cross-encoder's folder, or its name on the Hugging Face hub. Of a model with
            several labels, the last one's score is used: by custom "entailment" or "relevant" comes last.
    """

    def __init__(self, path: str) -> None:
        self.name = path
        self._lock = threading.Lock()
        self._model: Any = None

    def scores(self, question: str, texts: Sequence[str]) -> NDArray[np.float32]:
        """Return one score per text, higher for a better fit.

        Raises:
            MissingExtraError: the extra `torch` is not installed.
            ModelError: there is no such model, or its scores are not finite.
        """
        if not texts:
            return np.zeros(0, np.float32)
        with self._lock:
            if self._model is None:
                self._model = _load_cross_encoder(self.name)
            pairs = [(question, text) for text in texts]
            made = np.asarray(
                self._model.predict(pairs, batch_size=_SCORE_BATCH, show_progress_bar=False), dtype=np.float32
            )
        scores: NDArray[np.float32] = made if made.ndim == 1 else made[:, -1]
        if not np.isfinite(scores).all():
            raise ModelError(f"the cross-encoder {self.name!r} gave a score that is not finite")
        return scores


def _load_cross_encoder(path: str) -> Any:
    with silence_libraries():
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


_WINDOW_TOKENS = 384
_STRIDE = 128
_LONGEST_ANSWER = 30
_LEAST_CONFIDENCE = 0.1
_LEAST_ENTAILMENT = 0.5
_QUESTION = re.compile(
    r"(?P<verb>is|are|was|were|does|do|did|can|has|have)\s+(?P<who>it|they|you|there|(?:the|this|that|these)\s+\w+)\s+(?P<rest>.+?)\?*",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class _LoadedReader:
    tokenizer: Any
    model: Any
    answers: bool
    """Whether it finds answer spans; otherwise it judges entailment."""


class HubReader:
    """A Reader that uses a hub model for spans or for yes and no, and `local` for everything else.

    A model for extractive question answering (`…ForQuestionAnswering`) answers open questions. A cross-encoder for
    entailment (`…ForSequenceClassification` with a label "entailment") answers yes-or-no questions. The model runs on
    this machine, is loaded at the first call, and downloaded only if its name is not a folder.

    Args:
        path: the model's name on the hub, or its folder.
    """

    remote = False
    paid = False

    def __init__(self, path: str) -> None:
        self.name = f"local:{path}"
        self._path = path
        self._rest = LocalReader()
        self._lock = threading.Lock()
        self._loaded: _LoadedReader | None = None

    async def read(self, call: TextCall) -> TextReply:
        """Return what the document says, read in a thread."""
        return await asyncio.to_thread(self.evaluate, call)

    def evaluate(self, call: TextCall) -> TextReply:
        """Return the reply at once.

        Raises:
            ModelError: the model cannot be loaded, or is of another kind.
        """
        with self._lock:
            self._loaded = self._loaded or _load_reader(self._path)
        spans = call.function == "answer" and not call.options and not is_yes_or_no(call)
        if self._loaded.answers and spans:
            return _answer_by_span(self._loaded, call)
        if not self._loaded.answers and call.function == "answer" and is_yes_or_no(call):
            return _answer_by_entailment(self._loaded, call)
        return self._rest.evaluate(call)


def to_statement(question: str) -> str:
    """Turn a yes-or-no question into a statement: "is it quiet?" becomes "it is quiet"."""
    match = _QUESTION.fullmatch(question.strip())
    if match is None:
        return question.strip().rstrip("?")
    verb, who, rest = match["verb"].lower(), match["who"].lower(), match["rest"]
    return f"{who} {rest}" if verb in ("do", "does", "did") else f"{who} {verb} {rest}"


def _load_reader(path: str) -> _LoadedReader:
    with silence_libraries():
        try:
            import transformers
        except ImportError as problem:
            raise MissingExtraError(problem.name or "transformers", "torch", f"the model local:{path}") from problem
        try:
            config = transformers.AutoConfig.from_pretrained(path, trust_remote_code=False)
            kind = next(iter(config.architectures or ()), "")
            answers = kind.endswith("ForQuestionAnswering")
            labels = {str(label).lower() for label in config.id2label.values()}
            if not answers and not (kind.endswith("ForSequenceClassification") and "entailment" in labels):
                raise ModelError(
                    f"local:{path} is a {kind or 'model of an unknown kind'}: it takes a model for extractive question"
                    " answering, or a cross-encoder with a label 'entailment'"
                )
            tokenizer = transformers.AutoTokenizer.from_pretrained(path, trust_remote_code=False)
            model = getattr(transformers, kind).from_pretrained(path)
        except (OSError, ValueError, AttributeError) as problem:
            near = suggest(path, _list_local_models(path))
            raise ModelError(f"the model local:{path} cannot be loaded ({problem}): change --model{near}") from problem
    return _LoadedReader(tokenizer, model.eval(), answers)


def _list_local_models(path: str) -> list[str]:
    """List the models beside a path, and those downloaded from the hub before."""
    from huggingface_hub.constants import HF_HUB_CACHE

    beside = Path(path).parent.glob("*/config.json")
    cached = Path(HF_HUB_CACHE).glob("models--*")
    return [*(str(found.parent) for found in beside), *("/".join(found.name.split("--")[1:]) for found in cached)]


def _answer_by_span(loaded: _LoadedReader, call: TextCall) -> TextReply:
    """Return the likeliest span of all passages that parses as the requested type."""
    found = [
        (score, number, start, end)
        for number, passage in enumerate(call.passages)
        for score, start, end in _find_spans(loaded, call.question, passage)
    ]
    for score, number, start, end in sorted(found, reverse=True):
        text = call.passages[number][start:end]
        value = parse_typed(text, call.type) if score >= _LEAST_CONFIDENCE else None
        if value is not None:
            quote = Quote(number, start, text)
            same = {literal: text.strip().casefold() == literal.strip().casefold() for literal in call.compared}
            return TextReply(value, {**same}, (quote,), confidence=score)
    return TextReply(None, dict.fromkeys(call.compared))


def _find_spans(loaded: _LoadedReader, question: str, passage: str) -> list[tuple[float, int, int]]:
    """Return (probability, start, end) of the best spans of a passage, read in overlapping windows."""
    import torch

    limit = min(_WINDOW_TOKENS, loaded.model.config.max_position_embeddings)
    encoded = loaded.tokenizer(
        question,
        passage,
        truncation="only_second",
        max_length=limit,
        stride=min(_STRIDE, limit // 4),
        return_overflowing_tokens=True,
        return_offsets_mapping=True,
        return_tensors="pt",
        padding=True,
    )
    offsets = encoded.pop("offset_mapping").tolist()
    encoded.pop("overflow_to_sample_mapping")
    with torch.inference_mode():
        output = loaded.model(**encoded)
    found = []
    for window, places in enumerate(offsets):
        second = [i for i, part in enumerate(encoded.sequence_ids(window)) if part == 1]
        starts = output.start_logits[window].softmax(-1).tolist()
        ends = output.end_logits[window].softmax(-1).tolist()
        pairs = [(starts[i] * ends[j], i, j) for i in second for j in second if i <= j < i + _LONGEST_ANSWER]
        found += [(score, places[i][0], places[j][1]) for score, i, j in sorted(pairs, reverse=True)[:5]]
    return found


def _answer_by_entailment(loaded: _LoadedReader, call: TextCall) -> TextReply:
    """Give each passage one vote: whether a clause of it entails or contradicts the statement."""
    import torch

    hypothesis = to_statement(call.question)
    labels = {str(label).lower(): int(place) for place, label in loaded.model.config.id2label.items()}
    voices, quotes = 0.0, []
    for number, passage in enumerate(call.passages):
        parts = clauses(passage)
        if not parts:
            continue
        encoded = loaded.tokenizer(
            [part.text for part in parts],
            [hypothesis] * len(parts),
            truncation=True,
            max_length=min(_WINDOW_TOKENS, loaded.model.config.max_position_embeddings),
            padding=True,
            return_tensors="pt",
        )
        with torch.inference_mode():
            shares = loaded.model(**encoded).logits.softmax(-1)
        yes = shares[:, labels["entailment"]].tolist()
        no = shares[:, labels["contradiction"]].tolist() if "contradiction" in labels else [0.0] * len(parts)
        best = max(range(len(parts)), key=lambda i: max(yes[i], no[i]))
        if max(yes[best], no[best]) >= _LEAST_ENTAILMENT:
            voice = 1.0 if yes[best] >= no[best] else -1.0
            voices += voice
            quotes.append((voice, Quote(number, parts[best].start, parts[best].text)))
    verdict = None if not quotes else voices > 0
    supporting = tuple(quote for voice, quote in quotes if verdict is (voice > 0))[:3]
    reply = yes_or_no_reply(call, verdict, supporting)
    return replace(reply, confidence=abs(voices) / len(quotes)) if quotes else reply
