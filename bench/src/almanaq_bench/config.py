"""What determines the results of a run: what is asked for, and the configuration that is recorded."""

from __future__ import annotations

import hashlib
import json
import platform
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, Literal

from almanaq.corpus.table import DEFAULT_FIELDS
from almanaq.errors import BenchmarkError, UsageError
from almanaq.models.protocols import Embedder, LanguageModel
from almanaq.retrieval.protocols import Retriever
from almanaq_bench.cards import find_task
from almanaq_bench.generation.protocols import Generator

FORMAT = 3
"""The version of a run folder's files."""

_PACKAGES = (
    "almanaq",
    "numpy",
    "bm25s",
    "PyStemmer",
    "openvino",
    "torch",
    "sentence-transformers",
    "scikit-learn",
    "sacrebleu",
)


@dataclass(frozen=True, slots=True)
class RunConfig:
    """What was run on what. Two runs of equal configurations give equal records.

    Attributes:
        retriever: as asked for; `resolved` is what ran, `note` why they differ.
        embedder: its name; "" where the retriever has none.
        limit: the first so many questions only; None for all.
        tables: how many tables were searched, distractors included.
        distractors: how many tables of the dataset `distractors_from` were added, drawn by `seed`.
        corpus_split: the split whose tables were searched; "all" where the corpus does not mark it.
        counts: how the data differs from what is published; "" where it does not.
        generator, model: what replied, and by which model; "" for a task of retrieval alone.
        context_k: how many tables were handed to the generator; `evidence` whether hints were;
            `schema` which tables of a database, "" where none is asked.
        prompts: the version of each prompt file that was used.
        data: sha256 of each file that was read, by name; `revisions` of the repositories they were fetched from.
        versions: of almanaq and of the libraries that compute.
    """

    task: str
    dataset: str
    split: str
    retriever: str
    resolved: str
    fields: tuple[str, ...]
    cutoffs: tuple[int, ...]
    embedder: str = ""
    note: str = ""
    limit: int | None = None
    seed: int = 0
    tables: int = 0
    distractors: int = 0
    distractors_from: str = ""
    corpus_split: str = ""
    counts: str = ""
    generator: str = ""
    model: str = ""
    context_k: int = 0
    evidence: bool = False
    schema: str = ""
    prompts: Mapping[str, str] = field(default_factory=dict)
    data: Mapping[str, str] = field(default_factory=dict)
    revisions: Mapping[str, str] = field(default_factory=dict)
    versions: Mapping[str, str] = field(default_factory=dict)

    @property
    def depth(self) -> int:
        """How many tables are asked for per question: what the largest cutoff, or the generator, looks at."""
        return max(*self.cutoffs, self.context_k)

    @property
    def hash(self) -> str:
        """Return 16 hexadecimal digits that differ whenever anything here does."""
        return hashlib.sha256(_canonical(asdict(self)).encode()).hexdigest()[:16]

    def to_json(self) -> str:
        """Return the configuration with its hash, for people and for `read_config`."""
        return json.dumps({**asdict(self), "format": FORMAT, "hash": self.hash}, indent=2, ensure_ascii=False) + "\n"

    def describe_changes(self, other: RunConfig) -> list[str]:
        """Return one line per setting in which `other` differs from this one."""
        mine, theirs = asdict(self), asdict(other)
        return [f"{key}: {mine[key]!r} → {theirs[key]!r}" for key in mine if mine[key] != theirs[key]]


def read_config(file: Path) -> RunConfig:
    """Read a run's configuration.

    Raises:
        BenchmarkError: the file is not there, is damaged, was written by another version of this program, or its hash
            does not fit what it says.
    """
    try:
        values: dict[str, Any] = json.loads(file.read_text(encoding="utf-8"))
        stated, form = values.pop("hash"), values.pop("format", 1)
    except FileNotFoundError:
        raise BenchmarkError(f"{file.parent} is not a run folder: it has no {file.name}") from None
    except (OSError, ValueError, KeyError, AttributeError) as error:
        raise BenchmarkError(f"{file} is damaged: {error}") from error
    known = {each.name for each in fields(RunConfig)}
    if form != FORMAT or set(values) != known:
        written = (values.get("versions") or {}).get("almanaq", "another version")
        keys = ", ".join(sorted(set(values) ^ known))
        why = f"in format {form}; this one reads format {FORMAT}" if form != FORMAT else f"with other settings ({keys})"
        raise BenchmarkError(f"{file.parent} was written by almanaq {written} {why}: run it again in a new folder")
    config = RunConfig(**{**values, "fields": tuple(values["fields"]), "cutoffs": tuple(values["cutoffs"])})
    if config.hash != stated:
        raise BenchmarkError(f"{file} was edited: its hash is {stated}, its content's {config.hash}")
    return config


def versions() -> dict[str, str]:
    """Return the versions of Python, of this program, and of the libraries that compute."""
    found = {"python": platform.python_version()}
    for package in _PACKAGES:
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            continue
    return found


def _canonical(value: object) -> str:
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False)


CUTOFFS = (1, 5, 10, 50)
DISTRACTORS = "gittables"
CONCURRENCY = 16
CONTEXT_K = 10


def print_nothing(message: str) -> None:
    """Take a message and leave it at that."""


@dataclass(frozen=True, slots=True)
class RunRequest:
    """What to run.

    Attributes:
        data_dir: the folder that holds the dataset's folder or card.
        retriever: a name, or `module:object`; `made` is an object that takes its place, the name then being its label.
        out: the run folder, made when it is not there.
        embedder: opens the embedder, for retrievers that need one.
        cache: the folder of cached vectors; None keeps them in memory.
        generator: what replies, in tasks that ask for replies: a name, or `module:object`; `replies` is an object that
            takes its place. It is handed `context_k` tables, and hints of the dataset where `evidence` is set;
            for SQL with all tables of the best table's database, or with those of them that were retrieved (`schema`).
        distractors: tables of the dataset `distractors_from` to add to the corpus; None: none, or for the needle in
            the haystack all.
        model: opens a language model by name, for retrievers and generators that need one.
        limit: ask the first so many questions; sample: so many, drawn by `seed`.
        batch: most text calls that share a request of a language model; None: what is usual for the model.
        concurrency: most questions that the generator is asked at once.
        tell: is given what paid work will cost, before it starts; `max_calls` is the most of it that may be done.
    """

    task: str
    dataset: str
    data_dir: Path
    split: str
    retriever: str
    out: Path
    embedder: Callable[[], Embedder]
    fields: Sequence[str] = DEFAULT_FIELDS
    cutoffs: Sequence[int] = CUTOFFS
    limit: int | None = None
    seed: int = 0
    resume: bool = False
    cache: Path | None = None
    distractors: int | None = None
    distractors_from: str = DISTRACTORS
    made: Retriever | None = None
    model: Callable[[str], LanguageModel] | None = None
    generator: str = "local"
    replies: Generator | None = None
    context_k: int = CONTEXT_K
    evidence: bool = False
    schema: Literal["all", "retrieved"] = "all"
    tell: Callable[[str], None] = print_nothing
    max_calls: int | None = None
    batch: int | None = None
    concurrency: int = CONCURRENCY
    sample: int | None = None


def check_request(request: RunRequest) -> None:
    """Raise UsageError for an unknown task or a number that is out of its range."""
    find_task(request.task)
    if request.context_k < 1:
        raise UsageError(f"--context-k must be 1 or more, not {request.context_k}")
    if request.limit is not None and request.limit < 1:
        raise UsageError(f"--limit must be 1 or more, not {request.limit}")
    if request.sample is not None and (request.sample < 1 or request.limit is not None):
        fault = (
            "cannot be combined with --limit"
            if request.limit is not None
            else f"must be 1 or more, not {request.sample}"
        )
        raise UsageError(f"--sample {fault}")
    if request.distractors is not None and request.distractors < 0:
        raise UsageError(f"--distractors must be 0 or more, not {request.distractors}")
    if not request.cutoffs or min(request.cutoffs) < 1:
        raise UsageError(f"--k takes numbers of 1 or more between commas, not {list(request.cutoffs)}")
