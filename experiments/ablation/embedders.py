"""What `hybrid` makes of a better embedder and of a worse one than MiniLM: simulated, for none can be had here.

A better one knows more of what a question is about: its vector of the question lies a part of the way to that of the
gold table. A worse one knows less: noise of a fixed seed is added. Vectors of tables stay as they are, and so do the
weights, which were learned for MiniLM.

    python experiments/ablation/embedders.py DATA_DIR --out experiments/ablation/embedders.json
"""

from __future__ import annotations

import argparse
import hashlib
import json
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from almanaq.corpus.table import Table, TableId, parse_fields, table_text
from almanaq.models.embedders.vector_store import VectorStore
from almanaq.models.model_names import open_embedder
from almanaq.models.private_files import default_cache_folder
from almanaq.models.protocols import Embedder
from almanaq.retrieval.protocols import Retriever
from almanaq.retrieval.retriever_names import RetrieverParts, open_retriever
from almanaq_bench.question_sets import Question, open_dataset

SOURCES = {
    "fetaqa": ("header,cells", "title,section,header,cells"),
    "tabfact": ("header,cells",),
    "spider": ("title,section,header,cells,description,keys,database",),
}
QUESTIONS, TABLES, SEED = 300, 1000, 20
WAYS = {"worse by 1": -1.0, "worse by 1/2": -0.5, "MiniLM": 0.0, "better by 1/8": 0.125, "better by 1/4": 0.25}
WAYS |= {"better by 1/2": 0.5}
"""How far a question's vector lies on the way to its table's; below 0: the length of the noise beside its 1."""

RETRIEVERS = ("bm25", "dense", "hybrid-untuned", "hybrid")


class Simulated:
    """The embedder of another quality: vectors of questions moved, those of documents as they are."""

    cheap = True
    """A VectorStore keeps none of its vectors: they lie in that of the embedder."""

    def __init__(self, store: VectorStore, gold: Mapping[str, NDArray[np.float32]], way: float) -> None:
        self.name = store.embedder.name
        self._store, self._gold, self._way = store, gold, way

    def embed_documents(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Return the vectors of the embedder."""
        return self._store.vectors(texts)

    def embed_questions(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Return the vectors of the embedder, moved."""
        found = self._store.question_vectors(texts).copy()
        for i, text in enumerate(texts):
            if self._way > 0:
                found[i] += self._way * (self._gold[text] - found[i])
            elif self._way < 0:
                digest = hashlib.sha256(text.encode()).digest()
                noise = np.random.default_rng([SEED, int.from_bytes(digest[:8], "little")]).normal(size=found.shape[1])
                found[i] += -self._way * noise / np.linalg.norm(noise)
            found[i] /= np.linalg.norm(found[i])
        return found


def main() -> None:
    """Run each retriever with each embedder over each source."""
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("data", type=Path)
    options.add_argument("--out", type=Path, required=True)
    options.add_argument("--cache", type=Path, default=default_cache_folder())
    asked = options.parse_args()
    base = open_embedder("local")
    found = {}
    for name, sets in SOURCES.items():
        tables, questions = drawn(asked.data / name)
        for fields in sets:
            measured = found[f"{name} {fields}"] = compared(base, asked.cache, tables, questions, fields)
            for retriever, ways in measured.items():
                print(name, fields, retriever, ways, flush=True)
    command = "python experiments/ablation/embedders.py DATA_DIR --out experiments/ablation/embedders.json"
    told = {"command": command, "questions": QUESTIONS, "tables": TABLES, "seed": SEED, "recall@1, @10": found}
    asked.out.write_text(json.dumps(told, indent=1) + "\n")


def drawn(folder: Path) -> tuple[list[Table], list[Question]]:
    """Return questions drawn by hash, and their tables among others drawn in the same way."""
    dataset = open_dataset(folder)
    asked = sorted(dataset.questions("validation"), key=lambda q: hashlib.sha256((q.id + q.text).encode()).digest())
    asked = list({question.text: question for question in reversed(asked[:QUESTIONS])}.values())
    wanted = {gold for question in asked for gold in question.gold}
    tables = sorted(
        dataset.corpus("validation"),
        key=lambda t: (t.id not in wanted, hashlib.sha256(repr(tuple(t.id)).encode()).digest()),
    )
    return tables[: max(TABLES, len(wanted))], asked


def compared(
    base: Embedder, cache: Path, tables: Sequence[Table], questions: Sequence[Question], fields: str
) -> dict[str, dict[str, list[float]]]:
    """Return recall at 1 and 10 by retriever and embedder."""
    texts = {table.id: table_text(table, parse_fields(fields.split(","))) for table in tables}
    wanted = sorted({gold for question in questions for gold in question.gold})
    store = VectorStore(cache, base)
    vectors = store.vectors([texts[each] for each in wanted])
    by_table: dict[TableId, NDArray[np.float32]] = dict(zip(wanted, vectors, strict=True))
    gold = {q.text: np.mean([by_table[each] for each in q.gold], axis=0) for q in questions}
    measured: dict[str, dict[str, list[float]]] = {}
    for name in RETRIEVERS:
        for way, far in WAYS.items() if name != "bm25" else [("no embedder", 0.0)]:
            parts = RetrieverParts(partial(Simulated, store, gold, far))
            retriever = open_retriever(name, parts).retriever
            measured.setdefault(name, {})[way] = recall(retriever, tables, questions, fields)
    return measured


def recall(retriever: Retriever, tables: Sequence[Table], questions: Sequence[Question], fields: str) -> list[float]:
    """Return the mean recall at 1 and at 10."""
    rankings = retriever.index(tables, fields.split(",")).search([question.text for question in questions], 10)
    shares = [
        [len({hit.id for hit in ranking[:k]} & set(q.gold)) / min(k, len(q.gold)) for k in (1, 10)]
        for q, ranking in zip(questions, rankings, strict=True)
    ]
    return [round(float(each), 3) for each in np.mean(shares, axis=0)]


if __name__ == "__main__":
    main()
