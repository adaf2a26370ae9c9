"""The learned weights of the reranker: read from `weights.json`, which says from what and how they were learned."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from importlib.resources import files
from typing import Any

from almanaq.corpus.serialize import Field


@dataclass(frozen=True, slots=True)
class Weights:
    """A linear score: the worth of each feature and of each search's standardized score, by name; absent is 0."""

    name: str
    worth: Mapping[str, float]


def choose_weights(fields: Sequence[Field], *, several: bool, meaning: bool) -> Weights:
    """Give the learned weights for a corpus.

    Args:
        fields: what is declared; tables whose title is hidden are judged by other weights.
        several: the corpus holds several databases, so tables are those of schemas, not of web pages.
        meaning: vectors of an embedder of meaning take part.
    """
    kind = "databases" if several else "titled" if Field.TITLE in fields else "untitled"
    name = kind if meaning else f"{kind}-lexical"
    return Weights(name, _learned()["weights"][name])


def provenance() -> Mapping[str, object]:
    """Give how the weights were learned: data by hash, method, and measures of held-out tables."""
    told: Mapping[str, object] = _learned()["provenance"]
    return told


@lru_cache(maxsize=1)
def _learned() -> dict[str, Any]:
    text = files("almanaq.retrieval").joinpath("weights.json").read_text(encoding="utf-8")
    return dict(json.loads(text))
