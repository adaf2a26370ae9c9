"""Everything that determines a run's results, as one value with a hash."""

from __future__ import annotations

import hashlib
import json
import platform
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from almanaq.errors import BenchmarkError

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

    def changed(self, other: RunConfig) -> list[str]:
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
        raise BenchmarkError(f"{file.parent} is no run folder: it holds no {file.name}") from None
    except (OSError, ValueError, KeyError, AttributeError) as error:
        raise BenchmarkError(f"{file} is damaged: {error}") from error
    known = {each.name for each in fields(RunConfig)}
    if form != FORMAT or set(values) != known:
        written = (values.get("versions") or {}).get("almanaq", "another version")
        keys = ", ".join(sorted(set(values) ^ known))
        why = f"in format {form}; this one reads format {FORMAT}" if form != FORMAT else f"with other settings ({keys})"
        raise BenchmarkError(f"{file.parent} was written by almanaq {written} {why}: run it again into a new folder")
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
