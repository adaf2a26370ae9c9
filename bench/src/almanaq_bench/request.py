"""What to run, as the command line or the Python API says it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from almanaq.corpus.serialize import DEFAULT_FIELDS
from almanaq.errors import UsageError
from almanaq.models.protocols import Embedder, LanguageModel
from almanaq.retrieval.protocols import Retriever
from almanaq_bench.generation.protocols import Generator
from almanaq_bench.tasks import find_task

CUTOFFS = (1, 5, 10, 50)
DISTRACTORS = "gittables"
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
            "cannot stand beside --limit" if request.limit is not None else f"must be 1 or more, not {request.sample}"
        )
        raise UsageError(f"--sample {fault}")
    if request.distractors is not None and request.distractors < 0:
        raise UsageError(f"--distractors must be 0 or more, not {request.distractors}")
    if not request.cutoffs or min(request.cutoffs) < 1:
        raise UsageError(f"--k takes numbers of 1 or more between commas, not {list(request.cutoffs)}")
