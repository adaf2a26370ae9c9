"""What a text stage without a LIMIT has before it: counted off its candidates where they are few, else by the database.

Most stages have few rows before them: these are looked at before the first is asked about, and the database is not
asked to go through them twice.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import pyarrow as pa
from sqlglot import exp

from almanaq.engines.protocols import Session
from almanaq.suql.execution.candidates import CandidateStream, passages_of
from almanaq.suql.execution.pair_order import Candidates
from almanaq.suql.execution.render import Renderer
from almanaq.suql.plan.references import aliased, column, quoted
from almanaq.suql.plan.stages import TextStage


@dataclass(frozen=True, slots=True)
class Counted:
    """Rows, and the distinct texts among them that will be asked about: so many at most where that is few enough.

    Where one row will do for each value of a key (EXISTS, IN), they are as many as there are values.
    """

    rows: int
    texts: int


def counted(
    stage: TextStage, candidates: Candidates | None, session: Session, renderer: Renderer, most: int | None
) -> Counted:
    """Return what a stage has before it; blocks while the database looks for it.

    Args:
        candidates: the stage's; None where to look at them would spend something.
        most: how many texts are no matter, so that they need not be told apart; None: any number.
    """
    batches = candidates.look_ahead() if isinstance(candidates, CandidateStream) else None
    if batches is None:
        return _counted_there(stage, session, renderer, most)
    texts = [len({found for batch in batches for found in _hashes(batch[item.document])}) for item in stage.inputs]
    key = stage.semi_join_key
    keys = 0 if key is None else sum(len(batch[key].unique()) for batch in batches)
    return Counted(sum(batch.num_rows for batch in batches), _at_least(stage, _together(stage, texts), keys))


def _hashes(texts: pa.Array) -> Iterator[int]:
    """Yield what tells texts apart, and holds none of them; where there is no text nothing is asked."""
    for text in texts:
        if passages := passages_of(text.as_py()):
            yield hash(passages)


def _counted_there(stage: TextStage, session: Session, renderer: Renderer, most: int | None) -> Counted:
    (rows,) = _fetched(stage, [aliased(exp.Count(this=exp.Star()), "n")], session, renderer)
    texts = _together(stage, [rows] * len(stage.inputs))
    if most is None or texts <= most:
        # To tell a million texts apart, the database would hold them all.
        return Counted(rows, texts)
    documents = [item.document for item in stage.inputs]
    names = documents if stage.semi_join_key is None else [*documents, stage.semi_join_key]
    wanted = [
        aliased(exp.Count(this=exp.Distinct(expressions=[column("_asked", name)])), f"n{i}")
        for i, name in enumerate(names)
    ]
    found = _fetched(stage, wanted, session, renderer)
    return Counted(rows, _at_least(stage, _together(stage, found[: len(documents)]), found[-1]))


def _at_least(stage: TextStage, texts: int, keys: int) -> int:
    """Return the texts that are asked about even where the first one for each value of a semi-join's key passes."""
    if stage.semi_join_key is None:
        return texts
    return min(texts, keys if stage.values_wanted is None else min(keys, stage.values_wanted))


def _fetched(stage: TextStage, wanted: Sequence[exp.Expr], session: Session, renderer: Renderer) -> list[int]:
    source = exp.Subquery(this=stage.source.copy(), alias=exp.TableAlias(this=quoted("_asked")))
    found = session.fetch(renderer.sql(exp.Select(expressions=wanted, from_=exp.From(this=source))))
    return [int(values[0].as_py()) for values in found.columns]


def _together(stage: TextStage, texts: Sequence[int]) -> int:
    """Return the texts of all inputs: each is asked about in an output; in a filter often one decides."""
    return sum(texts) if stage.predicate is None else max(texts)
