"""The report as a page: HTML with everything in it, or Markdown."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib.resources import files
from pathlib import Path
from typing import Any

import almanaq
from almanaq.benchmark.records import write_whole
from almanaq.benchmark.report.collect import Group, Run, collect, main_measure
from almanaq.benchmark.report.figures import Line, Point, lines_figure, points_figure
from almanaq.errors import UsageError

_FORMATS = (".html", ".md")


def write_report(folders: Sequence[Path], out: Path, *, data_dir: Path | None = None) -> Path:
    """Write the report of run folders, as HTML or Markdown by the file's ending, and give its path.

    Raises:
        UsageError: the file ends otherwise.
        BenchmarkError: a folder is no run folder or is damaged, or the file cannot be written.
    """
    if out.suffix.lower() not in _FORMATS:
        raise UsageError(f"--out {out}: a report ends in {' or '.join(_FORMATS)}")
    text = _rendered(collect(folders, data_dir), f"page{out.suffix.lower()}.jinja")
    write_whole(out, text)
    return out


def _rendered(groups: Sequence[Group], template: str) -> str:
    import jinja2

    source = (files("almanaq.benchmark.report") / template).read_text("utf-8")
    environment = jinja2.Environment(
        autoescape=template.endswith(".html.jinja"),
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    shown = [_shown(group) for group in groups]
    return environment.from_string(source).render(groups=shown, version=almanaq.__version__)


def _shown(group: Group) -> dict[str, Any]:
    """Give a group as a template reads it."""
    import markupsafe

    # Made of escaped parts alone.
    figures = {name: markupsafe.Markup(svg) for name, svg in _figures(group).items()}
    columns = _columns(group)
    return {
        "title": group.title,
        "columns": columns,
        "rows": [_row(run, columns) for run in group.runs],
        "alike": group.alike,
        "measure": group.measure,
        "figures": figures,
        "slices": group.slices,
        "names": [run.name for run in group.runs],
        "failures": group.failures,
        "errors": group.errors,
        "provenance": [_provenance(run) for run in group.runs],
        "counts": group.runs[0].scores.config.counts,
    }


def _columns(group: Group) -> list[str]:
    """Give the measures that are worth a column: those in front, at the smallest cutoff, at 10, at the largest."""
    cutoffs = group.runs[0].scores.config.cutoffs
    chosen = dict.fromkeys([cutoffs[0], *(k for k in cutoffs if k == 10), cutoffs[-1]])
    retrieval = [f"{group.measure}@{k}" for k in chosen]
    if group.measure == "database_recall":
        retrieval += [f"recall@{k}" for k in chosen]
    retrieval += [f"mrr@{k}" for k in cutoffs if k == 10]
    of_replies = [name for name in group.runs[0].scores.metrics if "@" not in name]
    have = set.intersection(*(set(run.scores.metrics) for run in group.runs))
    return [name for name in (*of_replies, *retrieval) if name in have]


def _row(run: Run, columns: Sequence[str]) -> dict[str, Any]:
    timings = run.scores.timings
    cells = []
    for name in columns:
        low, high = run.scores.intervals.get(name, (None, None))
        digits = 2 if name == "sacrebleu" else 3
        bounds = "" if low is None or high is None else f"{low:.{digits}f} – {high:.{digits}f}"
        cells.append((f"{run.scores.metrics[name]:.{digits}f}", bounds))
    return {
        "name": run.name,
        "cells": cells,
        "latency": f"{1e3 * timings.get('latency_p50', timings['seconds_per_query']):.2f}",
        "index": f"{timings['index_seconds']:.1f}",
        "size": f"{timings['index_bytes'] / 1e6:.1f}",
        "money": f"{timings['money']:.4f}" if timings.get("money") else "",
    }


def _figures(group: Group) -> dict[str, str]:
    label = group.measure.replace("_", " ")
    made = {
        f"{label} over k": lines_figure(
            [Line(run.name, list(run.curve), list(run.curve.values())) for run in group.runs],
            x_label="k",
            y_label=label,
        )
    }
    top = max(k for k in group.runs[0].scores.config.cutoffs if k <= 10) if min(group.runs[0].curve) <= 10 else 0
    at = f"{group.measure}@{top}"
    if len(group.runs) > 1 and all(at in run.scores.metrics for run in group.runs):
        made[f"{label}@{top} against latency"] = points_figure(
            [_point(run, max(1e3 * run.scores.timings.get("latency_p50", 0.0), 1e-3), at) for run in group.runs],
            x_label="milliseconds for one question (median)",
            y_label=f"{label}@{top}",
        )
    measure = main_measure(group.runs[0].scores.config.task)
    if measure and len(group.runs) > 1:
        if group.runs[0].scores.config.task == "text-to-sql":  # its generator sees the best table's database alone
            top = min(group.runs[0].scores.config.cutoffs)
            at = f"{group.measure}@{top}"
        made[f"{measure} against retrieval: what retrieval costs the answer"] = points_figure(
            [_point(run, run.scores.metrics.get(at, 0.0), measure) for run in group.runs],
            x_label=f"{label}@{top}",
            y_label=measure,
            log=False,
        )
        paid = [run for run in group.runs if run.scores.timings.get("money")]
        if len(paid) > 1:
            made[f"{measure} against cost"] = points_figure(
                [_point(run, run.scores.timings["money"], measure) for run in paid], x_label="dollars", y_label=measure
            )
    return made


def _point(run: Run, x: float, measure: str) -> Point:
    y = run.scores.metrics[measure]
    low, high = run.scores.intervals.get(measure, (y, y))
    return Point(run.name, x, y, low, high)


def _provenance(run: Run) -> Mapping[str, str]:
    config = run.scores.config
    return {
        "run": run.name,
        "configuration": config.hash,
        "fields": ", ".join(config.fields),
        "embedder": config.embedder or "–",
        "generator": config.generator or "–",
        "seed": str(config.seed),
        "versions": ", ".join(f"{name} {number}" for name, number in config.versions.items()),
        "data": ", ".join(f"{name} {digest[:12]}" for name, digest in config.data.items()),
        "measures": run.scores.note or "–",
    }
