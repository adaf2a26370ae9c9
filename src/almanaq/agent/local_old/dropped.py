"""Which condition of an earlier query a turn takes away: "any price is fine"."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import takewhile

from sqlglot import exp

from almanaq.agent.describe import condition_words
from almanaq.agent.local_old import trees
from almanaq.agent.local_old.lexicon import IGNORED, KIN, NOISE
from almanaq.agent.local_old.recognize.tokens import tokenize
from almanaq.agent.local_old.recognize.vocabulary import Vocabulary
from almanaq.agent.local_old.words import identifier_stems, stem, stems
from almanaq.agent.parser import Parsed
from almanaq.suql.catalog.relations import Relation

_SHORTEST = 4
_PLAIN = frozenset(map(stem, IGNORED)) - frozenset().union(*KIN)


def unwanted(question: str, tree: exp.Select, main: Relation, vocabulary: Vocabulary) -> Sequence[exp.Expr] | Parsed:
    """Return the conditions of a query that the question names; a question back when none can be told."""
    left_out = [c for c in trees.conditions(tree) if trees.leaves_out_rows(c, main.key)]
    open_ = [c for c in trees.conditions(tree) if c not in left_out]
    asked = {w.stem for w in tokenize(question) if w.text[0].isalnum() and w.folded not in NOISE} - _PLAIN
    scores = [_overlap(asked, _spoken(c, main, vocabulary)) for c in open_]
    best = max(scores, default=0.0)
    gone = [c for c, score in zip(open_, scores, strict=True) if best and score >= best]
    if not gone and len(open_) == 1:
        gone = open_
    if not open_:
        nothing = "My last query has no condition that could be left out. What shall I look for?"
        return Parsed("clarify", reply=nothing)
    if not gone:
        known = "; ".join(f"({i}) {condition_words(c)}" for i, c in enumerate(open_, 1))
        return Parsed("clarify", reply=f"Which condition shall I leave out: {known}?")
    return [*gone, *left_out]


def _spoken(condition: exp.Expr, main: Relation, vocabulary: Vocabulary) -> dict[str, float]:
    """Return the words by which a person may mean a condition (its column, values, question), and how surely."""
    found: dict[str, float] = {}
    for name in trees.columns(condition) if not trees.reads_text(condition) else ():
        about = (p.about for p in vocabulary.index.places[main.name] if p.column.name == name)
        found |= dict.fromkeys(next(about, ()), 1.0)
        found |= dict.fromkeys(identifier_stems(name), 2.0)
    for node in condition.find_all(exp.Literal):
        if node.is_string:
            found |= dict.fromkeys(stems(node.name), 2.0)
    return {word: sure for word, sure in found.items() if word not in _PLAIN | set(identifier_stems(main.name))}


def _overlap(asked: Iterable[str], spoken: Mapping[str, float]) -> float:
    """Weigh the words that two sets share: whole, of one stem ("romance", "romantic"), or of one kind."""
    score = 0.0
    for word in asked:
        near = [sure / 2 for other, sure in spoken.items() if _akin(word, other)]
        kin = [sure / 2.5 for other, sure in spoken.items() for kin in KIN if word in kin and other in kin]
        score += max([spoken.get(word, 0.0), *near, *kin])
    return score


def _akin(word: str, other: str) -> bool:
    shared = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(word, other, strict=False)))
    return shared >= max(_SHORTEST, min(len(word), len(other)) - 3)
