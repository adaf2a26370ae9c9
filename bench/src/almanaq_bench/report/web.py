"""Benchmark pages: the report of run folders, and the record that each of its figures was computed from.

They are made of what the folders held when the server started: a page runs nothing. `almanaq serve --bench RUN_DIR`
finds `read_bench` by the entry point `bench` of `almanaq.pages`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from almanaq_bench.report.collect import collect
from almanaq_bench.report.page import record_body, report_body
from almanaq_bench.report.values import Group, Run

AT_ONCE = 100
"""Questions of a record on one page."""


@dataclass(frozen=True, slots=True)
class Bench:
    """What the benchmark pages show."""

    groups: Sequence[Group]
    runs: Sequence[Run]

    def report(self) -> str:
        """Return the report as HTML."""
        numbers = {id(run): number for number, run in enumerate(self.runs, 1)}
        return report_body(self.groups, lambda run: f"/bench/{numbers[id(run)]}")

    def record(self, number: int, page: int) -> tuple[str, int] | None:
        """Return the record of a run as HTML, and how many pages it has; None where there is no such page."""
        if not 0 < number <= len(self.runs):
            return None
        run = self.runs[number - 1]
        pages = max(1, -(-len(run.records) // AT_ONCE))
        return (record_body(run, (page - 1) * AT_ONCE, AT_ONCE), pages) if 0 < page <= pages else None


def read_bench(folders: Sequence[Path]) -> Bench:
    """Read run folders.

    Raises:
        BenchmarkError: a folder is no run folder, or is damaged.
    """
    groups = collect(folders)
    return Bench(groups, [run for group in groups for run in group.runs])
