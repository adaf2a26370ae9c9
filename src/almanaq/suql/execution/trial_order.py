"""In which order a text stage tries its candidates where the query leaves it open (semantics 9)."""

from __future__ import annotations

import heapq
import re
from collections import defaultdict
from collections.abc import Callable, Hashable
from typing import Protocol, Self

from sqlglot import exp

from almanaq.options import Accuracy, Options
from almanaq.suql.catalog.relations import Catalog, Column
from almanaq.suql.catalog.sources import catalog_column, find_source
from almanaq.suql.execution.candidates import (
    LOOKED_AT,
    LOOKED_FURTHER,
    Candidate,
    Similarity,
    constraint_of,
)
from almanaq.suql.execution.similarity import EmbedderSimilarity
from almanaq.suql.plan.stages import SiteInput, TextStage
from almanaq.suql.syntax.nodes import column

MOST_WAITING = 2_000
"""Pairs that are looked at before the first is tried."""


def is_of_pairs(stage: TextStage) -> bool:
    """Return whether a stage reads texts of several sources, so that a text comes with many rows."""
    documents = {item.document for item in stage.inputs}
    columns = [output.this for output in stage.source.expressions if output.alias in documents]
    return len(set(map(_source_of, columns))) > 1


def _source_of(document: exp.Expr) -> object:
    """Return where a document comes from; columns of candidates that were copied are called `source.column`."""
    if not isinstance(document, exp.Column):
        return document
    return document.table, document.name.rpartition(".")[0]


class Candidates(Protocol):
    """A stream of candidates that can be closed."""

    def __aiter__(self) -> Self: ...
    async def __anext__(self) -> Candidate: ...
    async def aclose(self) -> None: ...


class FewestNewCalls:
    """Candidates of a join, next always the one with the fewest texts that no candidate before it had.

    Three texts that were asked about make three pairs, five make ten: a LIMIT of 10 over pairs takes five calls where
    all of them pass, and eleven where the pairs come row by row. The order depends only on texts, so that it is the
    same at every run. Among equals the order is that of the source.

    Args:
        asks: gives what identifies each call that a candidate may take.
    """

    def __init__(self, source: Candidates, asks: Callable[[Candidate], frozenset[Hashable]]) -> None:
        self._source, self._asks = source, asks
        self._more = True
        self._pulled = 0
        self._known: set[Hashable] = set()
        self._new: dict[int, int] = {}  # by place: how many of its calls are new
        self._waiting: dict[int, tuple[Candidate, frozenset[Hashable]]] = {}
        self._having: dict[Hashable, list[int]] = defaultdict(list)
        self._heap: list[tuple[int, int]] = []

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Candidate:
        while self._more and len(self._waiting) < MOST_WAITING:
            candidate = await anext(self._source, None)
            self._more = candidate is not None
            if candidate is not None:
                self._add(candidate)
        while self._heap:
            new, place = heapq.heappop(self._heap)
            if place in self._waiting and new == self._new[place]:
                return self._take(place)
        raise StopAsyncIteration

    async def aclose(self) -> None:
        """Close the source."""
        await self._source.aclose()

    def _add(self, candidate: Candidate) -> None:
        calls = self._asks(candidate)
        place, self._pulled = self._pulled, self._pulled + 1
        self._waiting[place] = (candidate, calls)
        self._new[place] = len(calls - self._known)
        for call in calls - self._known:
            self._having[call].append(place)
        heapq.heappush(self._heap, (self._new[place], place))

    def _take(self, place: int) -> Candidate:
        """Take a candidate; what it asks is new to no other from now on."""
        candidate, calls = self._waiting.pop(place)
        for call in calls - self._known:
            for other in self._having.pop(call):
                if other in self._waiting:
                    self._new[other] -= 1
                    heapq.heappush(self._heap, (self._new[other], other))
        self._known |= calls
        del self._new[place]
        return candidate


_DIMENSIONS = re.compile(r"\((\d+)\)")


def tries_by_similarity(stage: TextStage, options: Options) -> bool:
    """Return whether a stage's candidates are tried in order of similarity: a LIMIT stops it, and no ORDER
    BY binds it.
    """
    return options.order == "similarity" and stage.stop_after is not None and not stage.ordered


def describe_order(stage: TextStage, options: Options, catalog: Catalog) -> str:
    """Return the order in which a stage's candidates are tried, for EXPLAIN; "" where it is the source's own."""
    if options.accuracy is not None and stage.may_infer:
        return _describe_accuracy(options.accuracy)
    approximate = options.candidates is not None and stage.predicate is not None
    if not approximate and not tries_by_similarity(stage, options):
        return ""
    if vectors := _stored_vectors(stage, catalog):
        return f"tried in order of similarity, by the database: {', '.join(v.name for _, v in vectors)}"
    if approximate:
        return "tried in order of similarity"
    if is_of_pairs(stage):
        return f"those with the fewest new texts first, then in order of similarity; of {MOST_WAITING:,} rows at once"
    return (
        f"tried in order of similarity: the best of {LOOKED_AT} rows first, with {LOOKED_FURTHER} more to choose from "
        "after each; of more rows than that, each third in their own order"
    )


def _describe_accuracy(accuracy: Accuracy) -> str:
    return (
        f"asked until recall {accuracy.recall:g} and precision {accuracy.precision:g} are sure with probability "
        f"{1 - accuracy.delta:g}: some rows at random (seed {accuracy.seed}), then those that the proxy "
        f"{accuracy.proxy!r} leaves in doubt, and an audit of the others; the figures expected are those of all rows"
    )


def ordered_by_vectors(
    stage: TextStage, catalog: Catalog, similarity: Similarity
) -> tuple[exp.Select | None, list[str]]:
    """Return the source of a stage with `has_vectors` in order of the vectors that the database keeps, and warnings.

    The order is exact: `cosine_distance` is a function, which no approximate index answers. An index would give no more
    rows than it has found (40 by default), and leave out others that pass.

    Returns:
        None where the schema names no vectors for a document, or vectors of another model, of which a warning tells.
    """
    found = _stored_vectors(stage, catalog)
    if not isinstance(similarity, EmbedderSimilarity):
        return None, []
    select = stage.source.copy()
    distances: list[exp.Expr] = []
    for item, vectors in found:
        constraint = constraint_of(item)
        assert constraint is not None  # or it would not have been found
        vector = similarity.vector(constraint)
        dimensions = _DIMENSIONS.search(vectors.type)
        if dimensions is None or int(dimensions[1]) != len(vector):
            return None, [
                f"the vectors in {item.relation}.{vectors.name} are of type {vectors.type} and the embedder's have "
                f"{len(vector)} dimensions: they are not used; name the embedder that made them (--embedder)"
            ]
        literal = exp.Literal.string("[" + ",".join(f"{x:.7g}" for x in vector.tolist()) + "]")
        distances.append(_distance(_document(stage, item), vectors, literal))
    total = distances[0]
    for distance in distances[1:]:
        total = exp.Add(this=total, expression=distance)
    assert isinstance(select, exp.Select)
    select.set("order", exp.Order(expressions=[exp.Ordered(this=total, desc=False, nulls_first=False)]))
    return select, []


def has_vectors(stage: TextStage, catalog: Catalog) -> bool:
    """Return whether the database keeps the vectors of all of a stage's documents."""
    return bool(_stored_vectors(stage, catalog))


def _stored_vectors(stage: TextStage, catalog: Catalog) -> list[tuple[SiteInput, Column]]:
    """Return each input with the column that holds its documents' vectors; nothing if one has none."""
    found = []
    for item in stage.inputs:
        document = _document(stage, item)
        known = catalog_column(document, catalog) if document is not None else None
        if document is None or known is None or not known.vectors or item.question_column is not None:
            return []
        source = find_source(document.table, document)
        relation = catalog.find(source.name) if source is not None else None
        vectors = relation.column(known.vectors) if relation is not None else None
        if vectors is None:
            return []
        found.append((item, vectors))
    return found


def _document(stage: TextStage, item: SiteInput) -> exp.Column | None:
    """Return the column that is an input's document; None where it is computed."""
    for output in stage.source.expressions:
        if output.alias == item.document and isinstance(output.this, exp.Column):
            return output.this
    return None


def _distance(document: exp.Column | None, vectors: Column, constraint: exp.Expr) -> exp.Expr:
    """Return the cosine distance of a row's vector, or of the nearest of several, to a constraint's; 1 without any."""
    assert document is not None
    place = column(document.table, vectors.name)
    type_ = exp.DataType.build(vectors.type.partition("(")[0], dialect="postgres", udt=True)
    asked = exp.Cast(this=constraint, to=type_)
    nearest: exp.Expr
    if vectors.array:
        name = "_vectors"
        distance = exp.Anonymous(this="cosine_distance", expressions=[exp.column("v", name), asked])
        alias = exp.TableAlias(this=exp.to_identifier(name), columns=[exp.to_identifier("v")])
        unnested = exp.Unnest(expressions=[place], alias=alias)
        nearest = exp.Subquery(this=exp.select(exp.Min(this=distance)).from_(unnested))
    else:
        nearest = exp.Anonymous(this="cosine_distance", expressions=[place, asked])
    return exp.Coalesce(this=nearest, expressions=[exp.Literal.number(1)])
