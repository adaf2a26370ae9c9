"""The commands of `almanaq bench` other than `run`: list, score, compare, report, reproduce, export, fetch."""

from __future__ import annotations

import sys
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from almanaq.cli.find import defer_embedder, defer_model
from almanaq.cli.options import flag
from almanaq.cli.terminal import say
from almanaq.display import visible
from almanaq_bench.cli.output import Json, cutoffs, print_scores, tell

if TYPE_CHECKING:
    from collections.abc import Callable

    from almanaq_bench.compare import Comparison
    from almanaq_bench.reproduce import Cell


def list_all(
    data_dir: Annotated[
        Path | None,
        typer.Option("--data-dir", metavar="DIR", help="Also list the datasets of this folder, with their splits."),
    ] = None,
    as_json: Json = False,
) -> None:
    """List tasks, datasets with licence and source, retrievers and what each sees of a table, generators, measures."""
    from almanaq_bench.cards import DATASETS, SEES, TASKS
    from almanaq_bench.evaluation.rankings import MEASURES
    from almanaq_bench.generation.generators import GENERATORS
    from almanaq_bench.retrievers.openers import NAMES

    listed = {
        "tasks": [task.name for task in TASKS],
        "datasets": [asdict(card) for card in DATASETS],
        "retrievers": [{"name": name, "sees": SEES.get(name, "a text of its own")} for name in NAMES],
        "generators": [{"name": name, "about": about} for name, about in GENERATORS.items()],
        "measures": [*MEASURES],
    }
    if data_dir is not None:
        listed["at_hand"] = _at_hand(data_dir)
    if as_json:
        from almanaq.cli.output import write_json

        write_json(listed, allow_nan=True)
    else:
        _print_list(listed)


def _at_hand(data_dir: Path) -> list[dict[str, Any]]:
    """Return the datasets of a folder with their splits; one that is damaged says so in their place."""
    from almanaq.errors import AlmanaqError
    from almanaq_bench.data import datasets_in, find_dataset

    found: list[dict[str, Any]] = []
    for name in datasets_in(data_dir):
        try:
            found.append({"name": name, "splits": list(find_dataset(data_dir, name).splits)})
        except AlmanaqError as error:
            found.append({"name": name, "splits": [], "fault": str(error)})
    return found


def _print_list(listed: dict[str, Any]) -> None:
    say("tasks: " + ", ".join(listed["tasks"]))
    say("\ndatasets (or any folder in the same layout, or card):")
    for card in listed["datasets"]:
        say(f"  {card['name']:12} {card['about']} ({card['licence']})")
        for split, counts in card["splits"].items():
            known = [f"{number:,} {what}" for what, number in counts.items() if number is not None]
            say(f"  {'':12}   {split}: {', '.join(known)}")
    for entry in listed.get("at_hand", ()):
        splits = ", ".join(entry["splits"]) or entry.get("fault", "no questions")
        say(f"  at hand: {entry['name']}: {splits}")
    say("\nretrievers (or module:object), and what they see of a table:")
    say("\n".join(f"  {entry['name']:24} {entry['sees']}" for entry in listed["retrievers"]))
    say("\ngenerators (or module:object):")
    say("\n".join(f"  {entry['name']:24} {entry['about']}" for entry in listed["generators"]))
    say("\nmeasures: " + ", ".join(f"{name}@K" for name in listed["measures"]))


def score(
    run_dir: Annotated[Path, typer.Argument(metavar="RUN_DIR")],
    k: Annotated[
        str, typer.Option("--k", metavar="K,K,…", help="Cutoffs other than the run's, up to its largest.")
    ] = "",
    as_json: Json = False,
) -> None:
    """Compute the measures of a run from its records; nothing is asked again."""
    from almanaq_bench.run_measures import describe_unfinished
    from almanaq_bench.run_measures import score as scored

    scores = scored(run_dir, cutoffs(k))
    tell(describe_unfinished(run_dir))
    print_scores(scores, as_json)


def compare(
    run_dirs: Annotated[list[Path], typer.Argument(metavar="RUN_DIR...", help="Two or more run folders.")],
    as_json: Json = False,
) -> None:
    """Compare runs over the same questions: differences with intervals, and whether they are more than chance.

    The test is a paired randomization test, corrected by Holm for the number of tests. Of three runs or more, those
    that cannot be told apart are shown as groups.
    """
    from almanaq_bench.compare import compare as compared

    found = compared(run_dirs)
    if as_json:
        from almanaq.cli.output import write_json

        write_json(found.to_dict(), allow_nan=True)
    else:
        _print_comparison(found)


def _print_comparison(found: Comparison) -> None:
    from almanaq_bench.compare import format_p_value

    first = next(iter(found.runs.values()))
    say(f"{first.dataset} {first.split}, {found.queries} questions")
    for (a, b), differences in found.differences.items():
        say(f"\nA {a} ({found.runs[a].resolved})\nB {b} ({found.runs[b].resolved})")
        width = max(len(each.measure) for each in differences)
        say(f"  {'':{width}}       A       B     B-A  95 % interval        p (Holm)")
        for each in differences:
            low, high = each.interval
            say(
                f"  {each.measure:{width}}  {each.a:6.4f}  {each.b:6.4f} {each.b - each.a:+7.4f}"
                f"  [{low:+.4f}, {high:+.4f}]  {format_p_value(each.p_corrected)}{' *' if each.significant else ''}"
            )
    if len(found.runs) > 2:
        say("\nindistinguishable, best first:")
        for measure, sets in found.groups.items():
            say(f"  {measure}: {'; '.join(', '.join(group) for group in sets)}")


def report(
    run_dirs: Annotated[list[Path], typer.Argument(metavar="RUN_DIR...", help="Run folders.")],
    out: Annotated[Path, typer.Option("--out", metavar="FILE", help="report.html, or report.md.")],
    data_dir: Annotated[
        Path | None,
        typer.Option(
            "--data-dir",
            metavar="DIR",
            help="Where the datasets lie now, for slices by table and the words behind failures.",
        ),
    ] = None,
) -> None:
    """Write a page about runs: tables with intervals, recall over k, against latency and cost, slices, failures.

    The HTML page holds everything that it shows; nothing is fetched when it is opened.
    """
    from almanaq_bench.report.page import write_report

    say(str(write_report(run_dirs, out, data_dir=data_dir)))


def reproduce(
    table: Annotated[str, typer.Argument(metavar="TABLE", help="target-table-2.")],
    data_dir: Annotated[Path, typer.Option("--data-dir", metavar="DIR")],
    out: Annotated[
        Path | None,
        typer.Option("--out", metavar="DIR", help="The folder for the run folders of the rows; default runs/TABLE."),
    ] = None,
    dataset: Annotated[
        list[str] | None, typer.Option("--dataset", metavar="NAME", help="Only this one; repeatable.")
    ] = None,
    generator: Annotated[
        str, typer.Option("--generator", metavar="NAME", help="Also run the columns of replies, with this generator.")
    ] = "",
    max_calls: Annotated[int | None, flag("max_calls")] = None,
    limit: Annotated[int | None, typer.Option("--limit", metavar="N", help="Only the first N questions.")] = None,
    as_json: Json = False,
) -> None:
    """Run the rows of a published table, and set each beside the printed figure with the reasons they differ.

    Rows that need no paid model always run; the others where OPENAI_API_KEY or OPENAI_BASE_URL is set. Finished rows
    are not run again.
    """
    from almanaq.models.private_files import default_cache_folder
    from almanaq_bench.config import RunRequest
    from almanaq_bench.reproduce import reproduce as reproduced

    folder = out or Path("runs") / table
    request = RunRequest(
        "table-retrieval",
        "",
        data_dir,
        "",
        "",
        folder,
        defer_embedder(None),
        limit=limit,
        cache=default_cache_folder(),
        model=defer_model(max_calls),
        generator=generator,
        tell=tell,
    )
    cells = []
    for cell in reproduced(table, request, datasets=dataset or (), tell=tell):
        cells.append(cell)
        if not as_json:
            _print_cells(cell, first=len(cells) == 1 or cells[-2].dataset != cell.dataset)
    if as_json:
        from almanaq.cli.output import write_json

        write_json({"table": table, "cells": [cell.to_dict() for cell in cells]}, allow_nan=True)


def _print_cells(cell: Cell, *, first: bool) -> None:
    if first:
        say(f"\n{cell.dataset}: here ({cell.split}) | published ({cell.published_split})")
    ours = "not run" if cell.ours is None else f"{cell.ours:.3f}"
    printed = "–" if cell.printed is None else f"{cell.printed:.3f}"
    figures = f"{cell.measure:18} {ours:>7} | {printed:>6}"
    say(f"  {cell.method:31} {cell.retriever:24} {figures}   {'; '.join(cell.why)}")


def export(
    run_dir: Annotated[Path, typer.Argument(metavar="RUN_DIR")],
    out: Annotated[Path, typer.Option("--out", metavar="DIR", help="The folder for the files.")],
) -> None:
    """Write a run as run.trec and qrels.trec, for trec_eval and other tools of its kind."""
    from almanaq_bench.trec import export as exported

    for file in exported(run_dir, out):
        say(str(file))


def fetch(
    dataset: Annotated[str, typer.Argument(metavar="NAME", help="A name from `almanaq bench list`.")],
    data_dir: Annotated[Path, typer.Option("--data-dir", metavar="DIR", help="The folder in which NAME is created.")],
    revision: Annotated[
        str, typer.Option("--revision", metavar="COMMIT", help="A commit of the repositories, or CORPUS,QUERIES.")
    ] = "",
    split: Annotated[str | None, typer.Option("--split", metavar="SPLIT", help="Only this split.")] = None,
) -> None:
    """Download a dataset from the Hugging Face hub (HF_ENDPOINT names another), at a commit that is written down.

    A download that broke off goes on where it stopped; what is there and whole is not fetched again.
    """
    from almanaq_bench.cards import card_of
    from almanaq_bench.hub import fetch as fetched

    card = card_of(dataset)
    folder = fetched(card, data_dir, revision=revision, split=split, progress=_progress())
    say(f"{folder.path}: splits {', '.join(folder.splits) or 'none'}; licence {card.licence}")


def _progress() -> Callable[[str, int, int], None]:
    def show(name: str, have: int, size: int) -> None:
        if sys.stderr.isatty():
            end = "\n" if have == size else ""
            print(f"\r{visible(name)}: {have / 1e6:,.1f} of {size / 1e6:,.1f} MB", end=end, file=sys.stderr, flush=True)

    return show
