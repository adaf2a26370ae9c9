"""The tasks of the benchmark, by our name and by the paper's."""

from __future__ import annotations

from dataclasses import dataclass

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
