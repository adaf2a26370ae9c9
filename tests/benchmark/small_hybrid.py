"""A race with its linked passages and two questions, in the contract's layout."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

HEADER = ["Rank", "Athlete", "Country", "Time"]
ROWS = [
    ["1", "Ada Berg", "Norway", "2:13.32"],
    ["2", "Bo Lund", "Sweden", "2:14.10"],
    ["3", "Cy Rask", "Norway", "2:15.90"],
]
LINKS = [[[], ["/ada"], ["/no"], []], [[], ["/bo"], ["/se"], []], [[], ["/cy"], ["/no"], []]]
PASSAGES = {
    "/ada": "Ada Berg ( born 1 May 1980 ) is a runner . She was trained by Liv Dahl .",
    "/bo": "Bo Lund ( born 2 June 1975 ) is a runner nicknamed The Moose .",
    "/cy": "Cy Rask ( born 3 July 1990 ) is a runner and a baker .",
    "/no": "Norway is a country . Its capital is Oslo .",
    "/se": "Sweden is a country . Its capital is Stockholm .",
}


def write_hybrid(path: Path) -> Path:
    """Write the folder, and give it."""
    path.mkdir(parents=True, exist_ok=True)
    table = {"database_id": "0", "table_id": "race_0", "header": HEADER, "rows": ROWS, "links": LINKS}
    pq.write_table(pa.Table.from_pylist([table]), path / "corpus.parquet")
    texts = [{"table_id": "race_0", "link": link, "text": text} for link, text in PASSAGES.items()]
    pq.write_table(pa.Table.from_pylist(texts), path / "passages.parquet")
    base = {"database_id": "0", "table_id": "race_0"}
    node = {"text": "", "row": 1, "col": 3, "link": None, "where": "table"}
    asked = [
        {
            **base,
            "query_id": "a",
            "query": "What was the time of Bo Lund ?",
            "answer": "2:14.10",
            "answer_nodes": [node],
        },
        {
            **base,
            "query_id": "b",
            "query": "Who trained the runner who finished with a time of 2:13.32 ?",
            "answer": "Liv",
            "answer_nodes": [],
        },
    ]
    pq.write_table(pa.Table.from_pylist(asked), path / "queries_test.parquet")
    return path
