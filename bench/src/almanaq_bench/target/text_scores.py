"""ROUGE, METEOR and BERTScore of answers, through the packages that define them; the only module that imports them."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from almanaq.errors import MissingExtraError, UsageError
from almanaq_bench.evaluation.answers import sacrebleu

Pairs = Sequence[tuple[str, str]]
"""Each reply and its gold answer."""

_ROUGE = ("rouge1", "rouge2", "rougeL", "rougeLsum")


@dataclass(frozen=True, slots=True)
class Score:
    """A measure of replies; `package` is what computes it and `extra` what installs that, "" where none is needed."""

    compute: Callable[[Pairs, str], dict[str, Any]]
    package: str = ""
    extra: str = ""

    def is_installed(self) -> bool:
        """Return whether it can be computed here."""
        return not self.package or find_spec(self.package) is not None


def rouge(pairs: Pairs, language: str) -> dict[str, float]:  # noqa: ARG001
    """Return the mean F of ROUGE-1, ROUGE-2, ROUGE-L and ROUGE-Lsum, words stemmed neither here nor there."""
    from rouge_score.rouge_scorer import RougeScorer

    scorer = RougeScorer(list(_ROUGE))
    found = [scorer.score(gold, reply) for reply, gold in pairs]
    return {name: _mean([each[name].fmeasure for each in found]) for name in _ROUGE}


def meteor(pairs: Pairs, language: str) -> dict[str, Any]:  # noqa: ARG001
    """Return the mean METEOR, and whether synonyms counted: they do where NLTK finds its WordNet, which is data."""
    from nltk.translate.meteor_score import meteor_score

    words = _wordnet()
    values = [meteor_score([gold.split()], reply.split(), wordnet=words) for reply, gold in pairs]
    return {"meteor": _mean(values), "synonyms": not isinstance(words, _NoSynonyms)}


def bertscore(pairs: Pairs, language: str) -> dict[str, Any]:
    """Return the mean precision, recall and F1 of BERTScore, and the signature of what computed them.

    Its model is the one that the package downloads for the language, or that in the folder ALMANAQ_BERTSCORE_MODEL.

    Raises:
        UsageError: the model can be neither downloaded nor read.
    """
    from bert_score import score

    folder = os.environ.get("ALMANAQ_BERTSCORE_MODEL", "")
    replies, golds = [reply for reply, _ in pairs], [gold for _, gold in pairs]
    try:
        chosen = {"model_type": folder, "num_layers": _layers(Path(folder))} if folder else {"lang": language}
        (precision, recall, f1), signature = score(replies, golds, return_hash=True, **chosen)
    except OSError as error:
        wanted = f"in {folder}" if folder else f"for the language {language!r}"
        raise UsageError(
            f"there is no model of BERTScore {wanted}: {str(error).splitlines()[0]}; name the folder of a model of "
            "this machine as ALMANAQ_BERTSCORE_MODEL, or leave 'bertscore' out of metrics"
        ) from error
    means = {"precision": precision.mean(), "recall": recall.mean(), "f1": f1.mean()}
    return {**{name: float(value) for name, value in means.items()}, "signature": signature}


def _layers(folder: Path) -> int:
    """Return how many layers the model in a folder has: BERTScore takes the last one's vectors."""
    return int(json.loads((folder / "config.json").read_text("utf-8"))["num_hidden_layers"])


def check_score(name: str) -> None:
    """Raise MissingExtraError where a measure's package is not installed."""
    found = SCORES[name]
    if not found.is_installed():
        raise MissingExtraError(found.package, found.extra, f"the metric {name!r}", install=f"'./bench[{found.extra}]'")


class _NoSynonyms:
    """A WordNet that knows no word."""

    def synsets(self, word: str) -> list[Any]:  # noqa: ARG002
        return []


@cache
def _wordnet() -> Any:
    from nltk.corpus import wordnet

    try:
        wordnet.ensure_loaded()
    except LookupError:
        return _NoSynonyms()
    return wordnet


def _mean(values: Sequence[float]) -> float:
    return float(sum(values) / len(values)) if values else 0.0


SCORES: Mapping[str, Score] = {
    "bleu": Score(lambda pairs, _: {"bleu": sacrebleu(pairs).score / 100}),
    "sacrebleu": Score(lambda pairs, _: {"score": (bleu := sacrebleu(pairs)).score, "signature": bleu.signature}),
    "rouge": Score(rouge, "rouge_score", "text-metrics"),
    "meteor": Score(meteor, "nltk", "text-metrics"),
    "bertscore": Score(bertscore, "bert_score", "bertscore"),
}
