"""The query to edit where a question was not understood: of what was, as far as that is telling."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from almanaq.agent.local_old import sql
from almanaq.agent.local_old.frame import Frame, Term, Test, write
from almanaq.agent.local_old.recognize.spans import Span
from almanaq.agent.local_old.recognize.vocabulary import Vocabulary
from almanaq.suql.catalog.relations import Relation

_TELLING = "CVDOLH"
"""Kinds of spans that tell more of a question than of which table it is."""
_SHOWN = 5
"""Most columns that a query to edit shows of a table whose rows have no name."""


def is_telling(spans: Sequence[Span]) -> bool:
    """Return whether more was understood than which tables there are."""
    return any(span.kind in _TELLING for span in spans) or bool(_pointed(spans))


def sketch(spans: Sequence[Span], vocabulary: Vocabulary) -> str | None:
    """Return a query of the named columns of one table with the named values; None where no table is named."""
    main = _main(spans)
    if main is None:
        return None
    columns = [p for s in spans if s.kind == "C" for p, _ in s.data[:1] if p.relation == main and p.kind != "prose"]
    shown = columns or vocabulary.whole_name(main) or vocabulary.index.places[main.name][:_SHOWN]
    frame = Frame([Term("", place) for place in shown])
    for span in spans:
        meant = [(p, value) for p, value in span.data if p.relation == main] if span.kind == "V" else []
        if len(meant) == 1 and not meant[0][0].column.array:
            frame.tests.append(Test(Term("", meant[0][0]), f"{{}} = {sql.text(meant[0][1])}"))
    return write(frame, main, {})


def _main(spans: Sequence[Span]) -> Relation | None:
    """Return the relation that is asked about: that most words speak of, else that a verb speaks of, else the first."""
    named = [relation for span in spans if span.kind == "R" for relation in span.data]
    held = [place.relation for span in spans if span.kind in "CV" for place, _ in span.data]
    kin = {name for span in spans if span.kind == "r" for name in span.data}
    first = next((relation for relation in named if relation.name in kin), next(iter((*named, *held)), None))
    pointed = _pointed(spans)
    return next((relation for relation in (*named, *held) if relation.name == pointed), first)


def _pointed(spans: Sequence[Span]) -> str:
    """Return the one relation that most words speak of, two at least; "" where there is none or there are several."""
    speaking = ({place.relation.name for place, _ in span.data} for span in spans if span.kind in "CV")
    naming = ({relation.name for relation in span.data} for span in spans if span.kind == "R")
    doing = (set(span.data) for span in spans if span.kind == "r")
    counts = Counter(name for names in (*naming, *doing, *speaking) for name in names)
    first, second = (*counts.most_common(2), ("", 0), ("", 0))[:2]
    return first[0] if first[1] > max(1, second[1]) else ""
