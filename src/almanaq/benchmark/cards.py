"""What the benchmark knows of its datasets and tasks; any other folder in the same layout can be run as well."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Card:
    """A dataset of the benchmark."""

    name: str
    about: str
    licence: str
    tasks: tuple[str, ...]


TASKS = ("table-retrieval",)
"""The tasks that can be run."""

DATASETS = (
    Card("ottqa", "open questions over Wikipedia tables and the passages they link", "MIT", TASKS),
    Card("fetaqa", "free-form questions over Wikipedia tables", "CC BY-SA 4.0", TASKS),
    Card("tabfact", "statements to verify against Wikipedia tables", "MIT", TASKS),
    Card("spider", "text-to-SQL over small databases of many domains", "CC BY-SA 4.0", TASKS),
    Card("bird", "text-to-SQL over large databases with described columns", "CC BY-SA 4.0", TASKS),
    Card("hybridqa", "questions that need a table and the passages its cells link", "MIT", TASKS),
)

SEES = {
    "none": "nothing",
    "random": "table ids",
    "oracle": "the gold tables",
    "bm25": "the declared fields, word by word, titles weighted",
    "dense": "the first 2,048 characters of the declared fields, as one vector",
    "dense-rows": "as dense, and each row with its title and column names as a vector",
    "hybrid": "as bm25 and dense",
    "rerank": "as bm25, and title, header, description and 12 rows of the declared fields as vectors of their own",
    "target-bm25": "table id, section title under that key, header (what TARGET's code indexes)",
    "target-bm25-notitle": "section title under that key, header",
    "target-tfidf": "as target-bm25",
    "target-tfidf-notitle": "as target-bm25-notitle",
    "target-bm25-described": "title, section, header, cells (what the TARGET paper describes)",
    "target-tfidf-described": "as target-bm25-described",
}
"""What each retriever sees of a table."""
