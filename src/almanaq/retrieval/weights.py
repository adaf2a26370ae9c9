"""The learned weights of the reranker, read from `weights.json`.

`benchmarks/retrieval/learn.py` learns them; `benchmarks/retrieval/results/weights.json` says from what data, and what
they give on held-out tables.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from importlib.resources import files
from typing import Any, Literal

from almanaq.corpus.serialize import Field
from almanaq.retrieval.abstain import Doubt
from almanaq.retrieval.word_association import WordAssociation, word_association

Sight = Literal["lexical", "short", "rows", "stored-words", "stored"]
"""What takes part beside words: no vectors, those of short views of each table, or those of its rows too.

Of an index on disk: its words, without a search of titles apart, and one vector per table.
"""


@dataclass(frozen=True, slots=True)
class Weights:
    """A linear score: the worth of each feature and of each search's standardized score, by name; absent is 0.

    `doubt` tells from the best table whether any fits; None where that was not learned. `association`
    makes the feature of that name, for tables whose titles are hidden; None leaves it 0.
    """

    name: str
    worth: Mapping[str, float]
    doubt: Doubt | None = None
    association: WordAssociation | None = None


@dataclass(frozen=True, slots=True)
class Styles:
    """Weights by how one asks: with a question, or with a statement that is to be checked."""

    questions: Weights
    statements: Weights

    def of(self, text: str) -> Weights:
        return self.statements if is_statement(text) else self.questions


def choose_weights(fields: Sequence[Field], *, several: bool, sight: Sight) -> Styles:
    """Return the learned weights for a corpus.

    Args:
        fields: what is declared; tables whose title is hidden are judged by other weights.
        several: the corpus holds several databases, so tables are those of schemas, not of web pages.
        sight: what takes part beside words.
    """
    if several:
        kind = "databases" if Field.DESCRIPTION in fields else "bare-databases"
    else:
        kind = "titled" if Field.TITLE in fields else "untitled"
    questions = _weights(f"{kind}-{sight}")
    return Styles(questions, questions if several else _weights(f"{kind}-statements-{sight}"))


_ASKING = re.compile(
    r"\W*(who|whom|whose|what|which|when|where|why|how|is|are|was|were|do|does|did|has|have|had|can|could|will|would"
    r"|should|list|show|find|give|name|tell|count|return|identify|describe|state|compare|calculate)\b",
    re.IGNORECASE,
)
_SHORTEST_STATEMENT = 5  # words; less is a search by keywords


def is_statement(text: str) -> bool:
    """Return whether a text asks nothing: no question mark, no word that begins a question, and not just keywords."""
    return "?" not in text and not _ASKING.match(text) and len(text.split()) >= _SHORTEST_STATEMENT


def _weights(name: str) -> Weights:
    learned = _learned()
    doubt = learned["doubt"].get(name)
    association = (
        word_association(statements="statements" in name) if "association" in learned["weights"][name] else None
    )
    return Weights(name, learned["weights"][name], Doubt(**doubt) if doubt else None, association)


@lru_cache(maxsize=1)
def _learned() -> dict[str, Any]:
    text = files("almanaq.retrieval").joinpath("weights.json").read_text(encoding="utf-8")
    return dict(json.loads(text))
