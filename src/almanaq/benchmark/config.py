"""Everything that determines a run's results, as one value with a hash."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from almanaq.errors import BenchmarkError


@dataclass(frozen=True, slots=True)
class RunConfig:
    """What was run on what. Two runs of equal configurations give equal records.

    Attributes:
        retriever: as asked for; `resolved` is what ran, `note` why they differ.
        embedder: its name; "" where the retriever has none.
        depth: how many tables were asked for per question: the largest cutoff.
        limit: the first so many questions only; None for all.
        tables: how many tables were searched.
        corpus_split: the split whose tables were searched; "all" where the corpus does not mark it.
        data: sha256 of each file that was read, by name.
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
    corpus_split: str = ""
    data: Mapping[str, str] = field(default_factory=dict)
    versions: Mapping[str, str] = field(default_factory=dict)

    @property
    def depth(self) -> int:
        return max(self.cutoffs)

    @property
    def hash(self) -> str:
        """Give 16 hexadecimal digits that differ whenever anything here does."""
        return hashlib.sha256(_canonical(asdict(self)).encode()).hexdigest()[:16]

    def to_json(self) -> str:
        """Give the configuration with its hash, for people and for `from_json`."""
        return json.dumps({**asdict(self), "hash": self.hash}, indent=2, ensure_ascii=False) + "\n"

    def changed(self, other: RunConfig) -> list[str]:
        """Give one line per setting in which `other` differs from this one."""
        mine, theirs = asdict(self), asdict(other)
        return [f"{key}: {mine[key]!r} → {theirs[key]!r}" for key in mine if mine[key] != theirs[key]]


def read_config(file: Path) -> RunConfig:
    """Read a run's configuration.

    Raises:
        BenchmarkError: the file is not there, is damaged, or its hash does not fit what it says.
    """
    try:
        values: dict[str, Any] = json.loads(file.read_text(encoding="utf-8"))
        stated = values.pop("hash")
        config = RunConfig(**{**values, "fields": tuple(values["fields"]), "cutoffs": tuple(values["cutoffs"])})
    except FileNotFoundError:
        raise BenchmarkError(f"{file.parent} is no run folder: it holds no {file.name}") from None
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise BenchmarkError(f"{file} is damaged: {error}") from error
    if config.hash != stated:
        raise BenchmarkError(f"{file} was edited: its hash is {stated}, its content's {config.hash}")
    return config


def _canonical(value: object) -> str:
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
