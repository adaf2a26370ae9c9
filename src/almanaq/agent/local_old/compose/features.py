"""What tells sure readings from doubtful ones: by what kinds of things the words of a question were taken for."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from almanaq.agent.local_old.frame import Frame
from almanaq.agent.local_old.recognize.called import OWN
from almanaq.agent.local_old.recognize.spans import Span
from almanaq.suql.catalog.relations import Relation

_WHOLE = 0.9
"""Score of a token of a value that is spelled whole; less where a part of it is."""


def features(spans: Sequence[Span], frame: Frame, main: Relation, mentioned: Iterable[Relation]) -> dict[str, float]:
    """Count what the weights of `confidence` weigh."""
    used = {place.relation.name for place in frame.places} | {relation.name for relation in frame.nouns} | {main.name}
    named = {relation.name for span in spans if span.kind == "R" for relation in span.data}
    counts = {
        "relations": len(used) - 1,
        "relations not named": len(used - named),
        "relations spoken of": len({relation.name for relation in mentioned}),
        "groups": len(frame.groups),
        "condition of groups": bool(frame.having),
        "ranked": frame.limit is not None,
        "ordered": bool(frame.order) and frame.limit is None,
        "put together": any(term.function for term in frame.wanted),
        "conditions": len(frame.tests),
        "rows of others": len(frame.members) + len(frame.absent),
    }
    return _of_spans(spans) | {name: float(count) for name, count in counts.items()}


def _of_spans(spans: Sequence[Span]) -> dict[str, float]:
    content = [span for span in spans if span.kind not in "w&"]
    columns = [span for span in content if span.kind == "C"]
    values = [span for span in content if span.kind == "V"]
    return {
        "columns named in part": float(sum(span.data[0][1] < OWN for span in columns)),
        "columns of several relations": float(sum(len({p.relation.name for p, _ in s.data}) > 1 for s in columns)),
        "values in part": float(sum(span.score / (span.last - span.first) < _WHOLE for span in values)),
        "values of several columns": float(sum(len({p.column.name for p, _ in s.data}) > 1 for s in values)),
        "verbs left out": float(sum(span.kind in "vr" for span in content)),
        "no noun": float(not any(span.kind == "R" for span in content)),
        "words": len(content) / 10,
        "silent words": sum(span.kind == "w" for span in spans) / 10,
    }
