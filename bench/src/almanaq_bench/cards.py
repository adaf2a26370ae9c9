"""Tasks and datasets that the benchmark knows, by our name and by the paper's."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from almanaq.errors import UsageError, suggest


@dataclass(frozen=True, slots=True)
class Task:
    """A task.

    Attributes:
        aliases: what the paper and its users call it.
        generates: whether something replies after the retrieval.
    """

    name: str
    aliases: tuple[str, ...]
    generates: bool = False


TASKS = (
    Task("table-retrieval", ("Table Retrieval", "Table Retrieval Task")),
    Task("needle-in-haystack", ("Needle in Haystack", "Needle in Haystack Task")),
    Task("question-answering", ("Table Question Answering", "Table Question Answering Task"), generates=True),
    Task("fact-verification", ("Fact Verification", "Fact Verification Task"), generates=True),
    Task("hybrid-qa", ("Hybrid QA", "HybridQA"), generates=True),
    Task("restaurants", ("Restaurants",), generates=True),
    Task("sembench-movie", ("SemBench Movie",), generates=True),
    Task("text-to-sql", ("Text to SQL", "Text to SQL Task", "Text-to-SQL"), generates=True),
)


def find_task(name: str) -> Task:
    """Return the task of a name, ours or the paper's, case folded. Raises UsageError for a name that has none."""
    wanted = name.strip().lower()
    for task in TASKS:
        if wanted in (task.name, *(alias.lower() for alias in task.aliases)):
            return task
    known = [task.name for task in TASKS] + [task.aliases[0] for task in TASKS]
    raise UsageError(f"unknown task {name!r}{suggest(name, known)}")


@dataclass(frozen=True, slots=True)
class Counts:
    """How much a split of a dataset holds as published; None where we do not know."""

    tables: int | None = None
    questions: int | None = None


@dataclass(frozen=True, slots=True)
class HubSource:
    """Where a dataset lies on the Hugging Face hub.

    Attributes:
        corpus, queries: names of the dataset repositories; `queries` "" for distractors, which nobody asks about.
        revision: the commit that is read; "" where none was checked yet, so that a download must name one.
    """

    corpus: str
    queries: str = ""
    revision: str = ""


@dataclass(frozen=True, slots=True)
class Card:
    """A dataset of the benchmark.

    Attributes:
        source: where it is published in TARGET's layout; None where it is not.
        splits: what each split holds as published.
        name_in_paper: as tables of the paper spell it.
        sentences: whether its answers are sentences.
    """

    name: str
    about: str
    licence: str
    tasks: tuple[str, ...]
    citation: str
    source: HubSource | None = None
    splits: Mapping[str, Counts] = field(default_factory=dict)
    name_in_paper: str = ""
    sentences: bool = False

    def differs(self, split: str, tables: int, questions: int) -> str:
        """Say how the data at hand differs from what was published; "" where it does not, or that is not known."""
        published = self.splits.get(split, Counts())
        differences = [
            f"{found} {what} (published: {known})"
            for what, found, known in (
                ("tables", tables, published.tables),
                ("questions", questions, published.questions),
            )
            if known is not None and known != found
        ]
        return f"{self.name} {split} here has {' and '.join(differences)}" if differences else ""


RETRIEVAL = ("table-retrieval", "needle-in-haystack")

DATASETS = (
    Card(
        "ottqa",
        "open questions over Wikipedia tables and the passages they link",
        "MIT",
        (*RETRIEVAL, "question-answering", "hybrid-qa"),
        "Chen, Chang, Schlinger, Wang, Cohen: Open Question Answering over Tables and Text. ICLR 2021",
        HubSource("target-benchmark/ottqa-corpus", "target-benchmark/ottqa-queries"),
        {"train": Counts(questions=41469), "validation": Counts(789, 2214)},
        "OTTQA",
    ),
    Card(
        "fetaqa",
        "free-form questions over Wikipedia tables",
        "CC BY-SA 4.0",
        (*RETRIEVAL, "question-answering"),
        "Nan et al.: FeTaQA: Free-form Table Question Answering. TACL 10, 2022",
        HubSource("target-benchmark/fetaqa-corpus", "target-benchmark/fetaqa-queries"),
        {"train": Counts(questions=7326), "validation": Counts(1001, 1001), "test": Counts(2003, 2003)},
        "FeTaQA",
        sentences=True,
    ),
    Card(
        "tabfact",
        "statements to verify against Wikipedia tables",
        "MIT",
        (*RETRIEVAL, "fact-verification"),
        "Chen et al.: TabFact: A Large-scale Dataset for Table-based Fact Verification. ICLR 2020",
        HubSource("target-benchmark/tabfact-corpus", "target-benchmark/tabfact-queries"),
        {"train": Counts(13182, 92283), "validation": Counts(1696, 12792), "test": Counts(1695, 12779)},
        "TabFact",
    ),
    Card(
        "spider",
        "text-to-SQL over small databases of many domains",
        "CC BY-SA 4.0",
        (*RETRIEVAL, "text-to-sql"),
        "Yu et al.: Spider: A Large-Scale Human-Labeled Dataset for Complex and Cross-Domain Semantic Parsing and "
        "Text-to-SQL Task. EMNLP 2018",
        HubSource("target-benchmark/spider-corpus", "target-benchmark/spider-queries"),
        {"train": Counts(questions=8659), "validation": Counts(81, 1034), "test": Counts(questions=2147)},
        "Spider",
    ),
    Card(
        "bird",
        "text-to-SQL over large databases with described columns",
        "CC BY-SA 4.0",
        (*RETRIEVAL, "text-to-sql"),
        "Li et al.: Can LLM Already Serve as a Database Interface? A Big Bench for Large-Scale Database Grounded "
        "Text-to-SQLs. NeurIPS 2023",
        HubSource("target-benchmark/bird-corpus-validation", "target-benchmark/bird-queries-validation"),
        {"validation": Counts(75, 1534)},
        "BIRD",
    ),
    Card(
        "infiagentda",
        "questions of data analysis over the columns of CSV files",
        "Apache-2.0",
        RETRIEVAL,
        "Hu et al.: InfiAgent-DABench: Evaluating Agents on Data Analysis Tasks. ICML 2024",
        HubSource("target-benchmark/infiagentda-corpus", "target-benchmark/infiagentda-queries"),
        name_in_paper="InfiAgent-DA",
    ),
    Card(
        "gittables",
        "tables from CSV files on GitHub, asked about by nobody: distractors",
        "CC BY 4.0",
        (),
        "Hulsebos, Demiralp, Groth: GitTables: A Large-Scale Corpus of Relational Tables. SIGMOD 2023",
        HubSource("target-benchmark/gittables-corpus"),
        name_in_paper="GitTables",
    ),
    Card(
        "hybridqa",
        "questions that need a table and the passages its cells link",
        "MIT",
        (*RETRIEVAL, "question-answering", "hybrid-qa"),
        "Chen et al.: HybridQA: A Dataset of Multi-Hop Question Answering over Tabular and Textual Data. "
        "Findings of EMNLP 2020",
        name_in_paper="HybridQA",
    ),
    Card(
        "sembench_movie",
        "ten queries over films and 2,000 reviews of them, answered by what the reviews say",
        "that of its reviews, which Rotten Tomatoes' critics wrote",
        ("sembench-movie",),
        "Lao et al.: SemBench: A Benchmark for Semantic Query Processing Engines. VLDB 2026",
        splits={"movie": Counts(2, 10)},
        name_in_paper="Movie",
    ),
    Card(
        "restaurants",
        "questions and conversations of ours about invented restaurants with reviews; comes with almanaq",
        "Apache-2.0",
        ("restaurants",),
        "written for almanaq, after section 6.2 of Liu et al.: SUQL: Conversational Search over Structured and "
        "Unstructured Data with Large Language Models. Findings of NAACL 2024",
        splits={"single-turn": Counts(1, 110), "conversations": Counts(1, 24)},
    ),
)

SEES = {
    "none": "nothing",
    "random": "table ids",
    "oracle": "the gold tables",
    "bm25": "the declared fields, word by word, titles weighted",
    "dense": "the first 2,048 characters of the declared fields, as one vector",
    "dense-rows": "as dense, and each row with its title and column names as a vector",
    "dense-columns": "as dense, and each column with its title, name and distinct cells as a vector",
    "dense-rows-columns": "as dense-rows and dense-columns",
    "dense-hnsw": "as dense, searched in an HNSW graph",
    "hybrid": "as bm25 and dense, and title, header and description as vectors of their own",
    "hybrid-untuned": "as bm25 and dense",
    "rerank": "as hybrid, and 12 rows as vectors of their own",
    "target-bm25": "table id, section title under that key, header (what TARGET's code indexes)",
    "target-bm25-notitle": "section title under that key, header",
    "target-tfidf": "as target-bm25",
    "target-tfidf-notitle": "as target-bm25-notitle",
    "target-bm25-described": "title, section, header, cells (what the TARGET paper describes)",
    "target-tfidf-described": "as target-bm25-described",
    "llm-summary": "title and summary that a language model writes from header and 10 rows, as one vector",
    "openai-embedding": "header and 100 rows as markdown, as one vector",
    "openai-embedding-header": "header as markdown, as one vector",
    "hnsw-openai": "header and all rows as markdown, as one vector",
    "stella": "as hnsw-openai, by the open embedder Stella",
    "e5": "as hnsw-openai, by the open embedder E5",
    "row-serial": 'each row as "column is value", as a vector of its own, by Stella',
}
"""What each retriever sees of a table."""


def find_card(name: str) -> Card | None:
    """Return the card of a dataset by its name, as we, the paper or its code spell it; None where there is none."""
    wanted = name.lower().removesuffix("-validation").removesuffix("-test")  # TARGET's code has `bird-validation`
    return next((card for card in DATASETS if wanted and wanted in (card.name, card.name_in_paper.lower())), None)


def card_of(name: str) -> Card:
    """Return the card of a dataset. Raises UsageError for a name that has none."""
    card = find_card(name)
    if card is None:
        raise UsageError(f"there is no card for {name!r}{suggest(name, [card.name for card in DATASETS])}")
    return card
