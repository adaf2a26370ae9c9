"""Tasks: which datasets are asked, what replies, and what is measured of the replies."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any, ClassVar

from almanaq.errors import MissingExtraError, UsageError, suggest
from almanaq_bench.evaluation.answers import sacrebleu
from almanaq_bench.target.data_models import (
    DatasetConfigDataModel,
    DownstreamGeneratedResultDataModel,
    DownstreamTaskPerformanceDataModel,
    GenericDatasetConfigDataModel,
    HFDatasetConfigDataModel,
    NeedleInHaystackDatasetConfigDataModel,
    RetrievalResultDataModel,
    Text2SQLDatasetConfigDataModel,
)
from almanaq_bench.target.dataset_loaders import (
    FACT_VER_DATASETS,
    NEEDLE_IN_HAYSTACK_DATASETS,
    QUESTION_ANSWERING_DATASETS,
    TABLE_RETRIEVAL_DATASETS,
    TEXT_2_SQL_DATASETS,
)
from almanaq_bench.target.retrievers import check_keywords

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


Configs = Mapping[str, DatasetConfigDataModel]

OF_OTHER_RELEASES = frozenset({"overwrite_default_datasets"})
"""Arguments of tasks in some releases of the published package; here they change nothing."""


class AbsTask:
    """A task.

    A task of one's own derives from this class or from one of those below. Where it overrides
    `_calculate_downstream_task_performance`, its own `_get_downstream_task_results` and
    `_update_downstream_task_metrics` are called batch by batch after the retrieval.

    Args:
        task_name: what results call it; by default the class's name of the task.
        datasets_config: the datasets, each a configuration or a dictionary of one; by default the class's.
        task_generator: what replies; None takes what `TARGET.run` is told.

    Raises:
        UsageError: there is no such argument, or a dataset's configuration is none.
    """

    like: ClassVar[str] = "table-retrieval"
    default_name: ClassVar[str] = "Table Retrieval Task"
    available_metrics: ClassVar[frozenset[str]] = frozenset({"accuracy", "precision", "recall"})

    def __init__(
        self, task_name: str | None = None, datasets_config: Mapping[str, Any] | None = None,
        task_generator: Any = None, **kwargs: Any,
    ) -> None:  # fmt: skip
        check_keywords(type(self), kwargs, OF_OTHER_RELEASES)
        self.task_name = task_name or self.get_default_task_name()
        given = self._get_default_dataset_config() if datasets_config is None else datasets_config
        self.dataset_config = {name: _config(name, value) for name, value in given.items()}
        self.task_generator = task_generator

    @classmethod
    def get_default_task_name(cls) -> str:
        """Return the name of tasks of this class."""
        return cls.default_name

    @classmethod
    def get_available_metrics(cls) -> str:
        """Return the measures that it knows."""
        return str(set(cls.available_metrics))

    @classmethod
    def get_available_datasets(cls) -> dict[str, DatasetConfigDataModel]:
        """Return the datasets that may be named, those whose tables are only distractors among them."""
        return {**NEEDLE_IN_HAYSTACK_DATASETS, **cls._get_default_dataset_config()}

    @classmethod
    def _get_default_dataset_config(cls) -> dict[str, DatasetConfigDataModel]:
        return dict(TABLE_RETRIEVAL_DATASETS)

    def get_task_name(self) -> str:
        """Return this task's own name."""
        return self.task_name

    def get_dataset_config(self) -> dict[str, DatasetConfigDataModel]:
        """Return the datasets of this task."""
        return self.dataset_config

    def scores_of(self, replies: Sequence[tuple[str, str]], measured: Mapping[str, float]) -> dict[str, Any]:
        """Return what is reported of the replies, each beside its gold answer, and of what was measured of them."""
        return dict(measured) if replies else {}

    def _get_downstream_task_results(
        self,
        query_batch: dict[str, list[Any]],
        retrieval_results: list[RetrievalResultDataModel],
        dataset_name: str,
        table_id_to_table: Mapping[tuple[str, str], list[list[str]]],
    ) -> list[DownstreamGeneratedResultDataModel]:
        """Have the generator reply to each question of a batch, from the tables that were found for it."""
        made = []
        for query_id, query, found in zip(
            query_batch["query_id"], query_batch["query"], retrieval_results, strict=True
        ):
            tables = [table_id_to_table[str(table[0]), str(table[1])] for table in found.retrieval_results]
            text = "\n\n".join("\n".join(f"| {' | '.join(row)} |" for row in rows) for rows in tables)
            reply = self.task_generator.generate(text, query) if self.task_generator is not None else ""
            content = reply.get("content", reply.get("sql_query")) if isinstance(reply, dict) else reply
            made.append(
                DownstreamGeneratedResultDataModel(
                    dataset_name=dataset_name, query_id=query_id, generated_results=content
                )
            )
        return made

    def _update_downstream_task_metrics(
        self, query_batch: dict[str, list[Any]], downstream_results: list[DownstreamGeneratedResultDataModel]
    ) -> None:
        """Take the replies of a batch in."""

    def _calculate_downstream_task_performance(self, **kwargs: Any) -> DownstreamTaskPerformanceDataModel:  # noqa: ARG002
        """Return the measures over all batches."""
        return DownstreamTaskPerformanceDataModel(task_name=self.task_name)

    def measures_itself(self) -> bool:
        """Return whether the class has measures of its own."""
        return type(self)._calculate_downstream_task_performance is not AbsTask._calculate_downstream_task_performance


class _KnownTask(AbsTask):
    """One of the benchmark's tasks: its datasets come first among the arguments."""

    def __init__(
        self, datasets_config: Mapping[str, Any] | None = None, task_generator: Any = None, *, task_name: str = "",
        **kwargs: Any,
    ) -> None:  # fmt: skip
        generator = None if isinstance(task_generator, bool) else task_generator
        super().__init__(task_name or None, datasets_config, generator, **kwargs)


class TableRetrievalTask(_KnownTask):
    """Tables are found, and nothing replies.

    >>> TableRetrievalTask().get_task_name(), "fetaqa" in TableRetrievalTask().get_dataset_config()
    ('Table Retrieval Task', True)
    >>> TableRetrievalTask(datasets={})
    Traceback (most recent call last):
    almanaq.errors.UsageError: TableRetrievalTask has no argument 'datasets'; did you mean 'datasets_config'?
    """


class QuestionAnsweringTask(_KnownTask):
    """Questions are answered from the tables found.

    >>> QuestionAnsweringTask(metrics="rogue")
    Traceback (most recent call last):
    almanaq.errors.UsageError: the metric 'rogue' is unknown; did you mean 'rouge'?

    Args:
        metrics: what is measured of the answers: any of `bleu`, `sacrebleu`, `rouge`, `meteor`, `bertscore`; by
            default those whose packages are installed (the extras `text-metrics` and `bertscore`).

    Raises:
        UsageError: there is no such measure.
        MissingExtraError: a measure that is named needs a package that is not installed.
    """

    like = "question-answering"
    default_name = "Table Question Answering Task"
    available_metrics = frozenset(SCORES)

    def __init__(
        self, datasets_config: Mapping[str, Any] | None = None, task_generator: Any = None, lang: str = "en",
        metrics: str | Sequence[str] | None = None, **kwargs: Any,
    ) -> None:  # fmt: skip
        super().__init__(datasets_config, task_generator, **kwargs)
        self.language = lang
        named = [metrics] if isinstance(metrics, str) else metrics
        for name in named or ():
            if name not in SCORES:
                raise UsageError(f"the metric {name!r} is unknown{suggest(name, SCORES)}")
            check_score(name)
        self.metrics = list(named) if named is not None else [name for name in SCORES if SCORES[name].is_installed()]

    @classmethod
    def _get_default_dataset_config(cls) -> dict[str, DatasetConfigDataModel]:
        return dict(QUESTION_ANSWERING_DATASETS)

    def scores_of(self, replies: Sequence[tuple[str, str]], measured: Mapping[str, float]) -> dict[str, Any]:
        """Return our measures of the answers, and each measure that was asked for under its name."""
        if not replies:
            return {}
        return {**measured, **{name: SCORES[name].compute(replies, self.language) for name in self.metrics}}


class FactVerificationTask(_KnownTask):
    """Statements are verified against the tables found.

    >>> sorted(FactVerificationTask.available_metrics)
    ['accuracy', 'f1', 'precision', 'recall']
    """

    like = "fact-verification"
    default_name = "Fact Verification Task"
    available_metrics = frozenset({"accuracy", "f1", "precision", "recall"})

    @classmethod
    def _get_default_dataset_config(cls) -> dict[str, DatasetConfigDataModel]:
        return dict(FACT_VER_DATASETS)


class Text2SQLTask(_KnownTask):
    """Queries are written over the tables found, and run.

    >>> Text2SQLTask().available_metrics
    frozenset({'execution_accuracy'})
    """

    like = "text-to-sql"
    default_name = "Text to SQL Task"
    available_metrics = frozenset({"execution_accuracy"})

    @classmethod
    def _get_default_dataset_config(cls) -> dict[str, DatasetConfigDataModel]:
        return dict(TEXT_2_SQL_DATASETS)


TASKS: tuple[type[AbsTask], ...] = (TableRetrievalTask, QuestionAnsweringTask, FactVerificationTask, Text2SQLTask)


def _config(name: str, value: Any) -> DatasetConfigDataModel:
    """Return a dataset's configuration, which may be a dictionary of it."""
    if isinstance(value, DatasetConfigDataModel):
        return value.model_copy()
    if not isinstance(value, Mapping):
        raise UsageError(f"dataset {name!r}: {value!r} is neither a configuration nor a dictionary of one")
    settings = {"dataset_name": name, **value}
    kinds: dict[str, type[DatasetConfigDataModel]] = {
        "text to sql": Text2SQLDatasetConfigDataModel,
        "needle in haystack": NeedleInHaystackDatasetConfigDataModel,
    }
    kind = kinds.get(str(settings.get("query_type", "")).lower())
    if kind is None or "hf_corpus_dataset_path" not in settings:
        hub = "hf_corpus_dataset_path" in settings
        kind = HFDatasetConfigDataModel if hub else GenericDatasetConfigDataModel
    try:
        return kind(**settings)
    except ValueError as error:
        raise UsageError(f"dataset {name!r}: {error}") from error
