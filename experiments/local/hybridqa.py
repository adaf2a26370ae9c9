"""HybridQA and OTT-QA as reading: a question, and the cell or passage that is known to hold its answer."""

from __future__ import annotations

import re
import string
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq


@dataclass(frozen=True, slots=True)
class Example:
    """A question and the document that answers it.

    Attributes:
        passage_only: no cell of the table holds the answer.
        development: it belongs to the half that readers are developed on.
    """

    question: str
    answer: str
    document: str
    passage_only: bool
    development: bool
    table: str


def hybridqa_examples(data_dir: Path) -> list[Example]:
    """Return HybridQA's validation questions with the first cell or passage that their answer was traced to."""
    return list(_examples(data_dir / "hybridqa"))


def ottqa_examples(data_dir: Path) -> list[Example]:
    """Return OTT-QA's validation questions that only passages answer, but for the tables of HybridQA's."""
    known = {e.table for e in _examples(data_dir / "hybridqa")} | {e.question for e in _examples(data_dir / "hybridqa")}
    return [
        e for e in _examples(data_dir / "ottqa") if e.passage_only and e.table not in known and e.question not in known
    ]


def _examples(folder: Path) -> Iterator[Example]:
    queries = pq.read_table(folder / "queries_validation.parquet").to_pylist()
    tables = pq.read_table(folder / "corpus.parquet", columns=["table_id", "rows"]).to_pylist()
    rows = {table["table_id"]: table["rows"] for table in tables}
    passages = pq.read_table(folder / "passages.parquet").to_pylist()
    texts = {(passage["table_id"], passage["link"]): passage["text"] for passage in passages}
    for query in queries:
        nodes: list[dict[str, Any]] = query["answer_nodes"]
        if not nodes:
            continue
        node, table = nodes[0], query["table_id"]
        cell = node["where"] == "table"
        document = rows[table][node["row"]][node["col"]] if cell else texts[table, node["link"]]
        passage_only = all(each["where"] == "passage" for each in nodes)
        development = int(sha256(query["query_id"].encode()).hexdigest(), 16) % 2 == 0
        yield Example(query["query"], query["answer"], document, passage_only, development, table)


def normalised(text: str) -> str:
    """Return the published form in which answers are compared: no case, punctuation or articles."""
    bare = "".join(c for c in text.lower() if c not in string.punctuation)
    return " ".join(re.sub(r"\b(?:a|an|the)\b", " ", bare).split())


def exact(said: str, gold: str) -> bool:
    """Return whether an answer is the gold one."""
    return normalised(said) == normalised(gold)


def f1(said: str, gold: str) -> float:
    """Return the harmonic mean of precision and recall over words."""
    ours, theirs = normalised(said).split(), normalised(gold).split()
    shared = (Counter(ours) & Counter(theirs)).total()
    if not ours or not theirs:
        return float(ours == theirs)
    return 2 * shared / (len(ours) + len(theirs)) if shared else 0.0
