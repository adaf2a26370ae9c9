"""Published tables, run again: each row beside the figure that was printed, and why the two differ."""

from __future__ import annotations

import os
import tomllib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from importlib.resources import files
from typing import Any

from almanaq.errors import UsageError, suggest
from almanaq_bench.config import RunRequest
from almanaq_bench.data import find_dataset
from almanaq_bench.retrievers.openers import NAMES
from almanaq_bench.run_measures import Scores
from almanaq_bench.runner import run

_NEAR = 0.01


@dataclass(frozen=True, slots=True)
class Cell:
    """One figure of a published table beside ours.

    Attributes:
        split: where ours was measured; `published_split` where theirs was.
        ours: None where the row was not run; `why` then says what it needs.
        printed: as the table has it, None where it has none; `right` what it should have been.
        why: the reasons for the difference.
    """

    method: str
    retriever: str
    dataset: str
    measure: str
    split: str
    published_split: str
    ours: float | None
    interval: tuple[float, float] | None
    printed: float | None
    right: float | None
    seconds: float | None
    printed_seconds: float | None
    why: tuple[str, ...]

    def to_dict(self) -> dict[str, Any]:
        """Return the form that `bench reproduce --json` prints."""
        return asdict(self)


def tables() -> tuple[str, ...]:
    """Return the names of the tables that can be reproduced."""
    folder = files("almanaq_bench") / "published_figures"
    return tuple(sorted(file.name.removesuffix(".toml") for file in folder.iterdir() if file.name.endswith(".toml")))


def reproduce(
    table: str, request: RunRequest, *, datasets: Sequence[str] = (), tell: Callable[[str], None] = lambda _: None
) -> Iterator[Cell]:
    """Run the rows of a table, and yield each figure as it is there.

    Args:
        request: where the data lies and how to run; its `out` gets a folder for each run, which is gone on with when
            the table is reproduced again. Task, dataset, split and retriever are the table's. With a `generator` the
            columns of replies are run as well; "" leaves them out.
        datasets: only these; by default all of the table that are at hand.
        tell: is told what is passed over, and why.

    Raises:
        UsageError: there is no such table, or no dataset of it is at hand.
    """
    published = _read(table)
    wanted = _datasets(published, request, datasets, tell)
    if not wanted:
        raise UsageError(f"{request.data_dir} holds no dataset of {table}: {', '.join(published['measures'])}")
    for dataset, split in wanted.items():
        for row in published["rows"]:
            yield from _cells(row, dataset, published["measures"][dataset], replace(request, split=split))


def _read(table: str) -> dict[str, Any]:
    if table not in tables():
        raise UsageError(f"unknown table {table!r}{suggest(table, tables())}")
    return tomllib.loads((files("almanaq_bench") / "published_figures" / f"{table}.toml").read_text("utf-8"))


def _datasets(
    published: Mapping[str, Any], request: RunRequest, chosen: Sequence[str], tell: Callable[[str], None]
) -> dict[str, str]:
    """Return the datasets at hand, each with the published split where it is there, else with the first it has."""
    unknown = next((name for name in chosen if name not in published["measures"]), None)
    if unknown is not None:
        raise UsageError(f"the table has no dataset {unknown!r}{suggest(unknown, published['measures'])}")
    found = {}
    for name, measures in published["measures"].items():
        if chosen and name not in chosen:
            continue
        try:
            splits = find_dataset(request.data_dir, name).splits
        except UsageError as error:
            tell(f"passed over: {error}")
            continue
        found[name] = measures["split"] if measures["split"] in splits else sorted(splits, reverse=True)[0]
    return found


def _cells(row: Mapping[str, Any], dataset: str, measures: Mapping[str, str], request: RunRequest) -> Iterator[Cell]:
    """Run a row on a dataset, and yield its figures: of the retrieval, and of replies where a generator is named."""
    retriever = row["retriever"]
    if retriever == "none" and not request.generator:
        return
    missing = _missing(row)
    scores = None
    if not missing:
        task = measures["task"] if request.generator else "table-retrieval"
        name = "-".join(part for part in (dataset, request.split, retriever, _plain(request.generator)) if part)
        placed = replace(request, task=task, dataset=dataset, retriever=retriever, out=request.out / name, resume=True)
        scores = run(placed)
    if retriever != "none":
        yield _retrieval(row, dataset, measures, request.split, scores, missing)
    if request.generator:
        yield _downstream(row, dataset, measures, request.split, scores, missing)


def _retrieval(
    row: Mapping[str, Any], dataset: str, measures: Mapping[str, str], split: str, scores: Scores | None, missing: str
) -> Cell:
    name = measures["retrieval"]
    printed, right = (row.get(each, {}).get(dataset) for each in ("printed", "right"))
    why = [missing] if scores is None else list(_reasons(row, split, measures, scores, printed, right))
    if right is not None:
        why.append(f"the printed figure is an error of the table; {right:g} is right")
    return Cell(
        *_cell_fields(row, dataset, name, split, measures),
        *_read_measure(name, scores),
        printed,
        right,
        scores.timings["seconds_per_query"] if scores else None,
        row.get("seconds", {}).get(dataset),
        tuple(why),
    )


def _downstream(
    row: Mapping[str, Any], dataset: str, measures: Mapping[str, str], split: str, scores: Scores | None, missing: str
) -> Cell:
    name = measures["downstream"]
    why = missing
    if scores is not None:
        other = "" if split == measures["split"] else f"; other split: {split} here, {measures['split']} there"
        why = f"another generator, {scores.config.generator}, with our prompts{other}"
    return Cell(
        *_cell_fields(row, dataset, name, split, measures),
        *_read_measure(name, scores),
        row.get("downstream", {}).get(dataset),
        None,
        scores.timings.get("seconds_per_reply") if scores else None,
        None,
        (why,),
    )


def _cell_fields(
    row: Mapping[str, Any], dataset: str, name: str, split: str, measures: Mapping[str, str]
) -> tuple[str, str, str, str, str, str]:
    """Return what a cell is about: its first fields."""
    return row["method"], row["retriever"], dataset, name, split, measures["split"]


def _read_measure(name: str, scores: Scores | None) -> tuple[float | None, tuple[float, float] | None]:
    """Return our figure and its interval; None where nothing was run."""
    return (scores.metrics[name], scores.intervals[name]) if scores else (None, None)


def _plain(name: str) -> str:
    return name.replace(":", ".").replace("/", ".")


def _missing(row: Mapping[str, Any]) -> str:
    """Say what a row needs that is not there; "" where it can run."""
    if not row.get("needs"):
        return ""
    if row["retriever"] not in NAMES:
        return f"needs {row['needs']}, and a retriever {row['retriever']!r}"
    if os.environ.get("OPENAI_API_KEY") or os.environ.get("OPENAI_BASE_URL"):
        return ""
    return f"needs {row['needs']}: set OPENAI_API_KEY, or OPENAI_BASE_URL"


def _reasons(
    row: Mapping[str, Any],
    split: str,
    measures: Mapping[str, str],
    scores: Scores,
    printed: float | None,
    right: float | None,
) -> Iterator[str]:
    if printed is not None and split != measures["split"]:
        yield f"other split: {split} here, {scores.config.tables:,} tables; {measures['split']} there"
    if scores.config.limit is not None:
        yield f"only the first {scores.queries} questions"
    if scores.config.counts:
        yield scores.config.counts
    ours = scores.metrics[measures["retrieval"]]
    target = printed if right is None else right
    if target is None or abs(ours - target) > _NEAR:
        yield row["why"]
