"""An extractive summary: the sentences that share most with the whole document, in its order."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from almanaq.models.extractive.clauses import Clause, clauses
from almanaq.models.protocols import Quote
from almanaq.text.words import stems

_SENTENCES = 3


def central_sentences(passages: Sequence[str]) -> tuple[Quote, ...]:
    """Return up to three clauses that together say most of what the document says most often."""
    spread = Counter(word for passage in passages for word in set(stems(passage)))
    candidates = [
        (number, clause, Counter(stems(clause.text)))
        for number, passage in enumerate(passages)
        for clause in clauses(passage)
    ]
    chosen: list[tuple[int, Clause]] = []
    covered: set[str] = set()
    for _ in range(min(_SENTENCES, len(candidates))):
        # What has been said counts little the second time: three sentences, not one sentence three times.
        gain = [
            sum(spread[word] * (0.2 if word in covered else 1.0) for word in counted) / (len(counted) + 4) ** 0.7
            for _, _, counted in candidates
        ]
        at = max(range(len(candidates)), key=lambda i: (gain[i], -i))
        number, clause, counted = candidates.pop(at)
        chosen.append((number, clause))
        covered |= set(counted)
    return tuple(Quote(n, c.start, c.text) for n, c in sorted(chosen, key=lambda item: (item[0], item[1].start)))
