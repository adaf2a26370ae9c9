"""`almanaq bench compare`: whether runs over the same questions differ."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from almanaq.cli.terminal import say
from almanaq_bench.cli.output import Json

if TYPE_CHECKING:
    from almanaq_bench.compare import Comparison


def register(bench: typer.Typer) -> None:
    """Add the command to the group."""
    bench.command("compare")(compare)


def compare(
    run_dirs: Annotated[list[Path], typer.Argument(metavar="RUN_DIR...", help="Two run folders or more.")],
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
        _print(found)


def _print(found: Comparison) -> None:
    from almanaq_bench.compare import shown

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
                f"  [{low:+.4f}, {high:+.4f}]  {shown(each.p_corrected)}{' *' if each.significant else ''}"
            )
    if len(found.runs) > 2:
        say("\nnot told apart, best first:")
        for measure, sets in found.groups.items():
            say(f"  {measure}: {'; '.join(', '.join(group) for group in sets)}")
