"""The relations of a catalog that a question is about: table retrieval behind the agent's seam, with join partners."""

from __future__ import annotations

from collections.abc import Sequence

from almanaq.agent.linking.joins import edges
from almanaq.corpus.table import Table, TableId, parse_fields
from almanaq.retrieval.protocols import Retriever, TableIndex, find_tables
from almanaq.retrieval.rerank import Rerank, choose_weights
from almanaq.suql.catalog.relations import Catalog, Relation

FIELDS = ("title", "header", "cells", "description", "keys", "database")
_MOST_LINKED = 12
"""Tables up to which those are added that link two of the ranked ones."""


def schema_retriever() -> Retriever:
    """Return the retriever for the relations of a source: words only, scorer as for the schemas of databases."""
    weights = choose_weights(parse_fields(FIELDS), several=True, sight="lexical")
    return Rerank(weights=weights.questions)


class TableChooser:
    """Returns the relations that a question needs, most relevant first; () when none fits. The seam `ChooseTables`.

    Args:
        retriever: any retriever, by default `schema_retriever()`; its index is cached until the catalog changes.
        k: relations found by the question itself; those that link two of them are added.
    """

    def __init__(self, retriever: Retriever | None = None, k: int = 8) -> None:
        self._retriever = retriever or schema_retriever()
        self._k = k
        self._indexed: tuple[object, TableIndex, dict[str, list[str]]] | None = None

    def __call__(self, question: str, catalog: Catalog) -> tuple[str, ...]:
        if not catalog.relations or not question.strip():
            return ()
        if self._indexed is None or self._indexed[0] != catalog:
            index = self._retriever.index([_to_table(each) for each in catalog.relations], FIELDS)
            joined = {name: [hop.right for hop in hops] for name, hops in edges(catalog).items()}
            self._indexed = (catalog, index, joined)
        _, index, joined = self._indexed
        (found,) = find_tables(index, [question], self._k)
        if not found.fits:
            return ()
        return add_linking_tables([hit.id.table for hit in found.ranking], joined)


def add_linking_tables(ranked: Sequence[str], joined: dict[str, list[str]]) -> tuple[str, ...]:
    """Return the ranked tables, then those that link two of them, which a join may need in between."""
    chosen = dict.fromkeys(ranked)
    between: dict[str, int] = {}
    for name in ranked:
        for other in dict.fromkeys(joined.get(name, ())):
            between[other] = between.get(other, 0) + 1
    for other, times in sorted(between.items(), key=lambda entry: -entry[1]):
        if times > 1 and len(chosen) < _MOST_LINKED:
            chosen.setdefault(other)
    return tuple(chosen)


def _to_table(relation: Relation) -> Table:
    header = tuple(column.name for column in relation.columns)
    # Private values must not reach a remote embedder.
    samples = [() if c.private else tuple(c.values) or tuple(c.samples) for c in relation.columns]
    rows = tuple(
        tuple(values[row] if row < len(values) else "" for values in samples)
        for row in range(min(20, max(map(len, samples), default=0)))
    )
    described = [relation.description, *(column.description for column in relation.columns)]
    return Table(
        TableId(".".join(map(str, relation.location[:-1])), relation.name),
        header,
        rows,
        title=relation.name.replace("_", " "),
        description="\n".join(text for text in described if text),
        keys=tuple(f"-> {other}" for _, other, _ in relation.foreign_keys),
    )
