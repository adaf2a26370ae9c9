"""The report as a page: HTML with everything in it, or Markdown."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any

import almanaq
from almanaq.corpus.table import TableId
from almanaq.display import visible
from almanaq.errors import UsageError
from almanaq_bench.records import Record, write_whole
from almanaq_bench.report.figures import Line, Point, lines_figure, points_figure
from almanaq_bench.report.runs import Group, Run, Slice, collect, main_measure
from almanaq_bench.run_measures import describe_unfinished

if TYPE_CHECKING:
    from markupsafe import Markup


_PART = re.compile(r"(exact_match|f1|mutual_substring)_.+|execution_accuracy_(?!strict).+")
"""Measures of some of the questions; those of all have a table of their own."""

_MARKUP = re.compile(r"[\\`\[\]!|]")
"""What begins code, a link, an image or a cell in Markdown, or takes such a meaning away."""
_FORMATS = (".html", ".md")


def write_report(folders: Sequence[Path], out: Path, *, data_dir: Path | None = None) -> Path:
    """Write the report of run folders, as HTML or Markdown by the file's ending, and give its path.

    Raises:
        UsageError: the file ends otherwise.
        BenchmarkError: a folder is no run folder or is damaged, or the file cannot be written.
    """
    if out.suffix.lower() not in _FORMATS:
        raise UsageError(f"--out {out}: a report ends in {' or '.join(_FORMATS)}")
    text = _render([_group_values(group) for group in collect(folders, data_dir)], f"page{out.suffix.lower()}.jinja")
    write_whole(out, text)
    return out


def report_body(groups: Sequence[Group], address: Callable[[Run], str]) -> str:
    """Return the report as HTML for a page of a server, each figure a link to the record that it was computed from.

    Args:
        address: where the record of a run is shown; the name of a measure, `took` or `questions` follows after a `#`.
    """
    shown = [_group_values(group) | {"addresses": {run.name: address(run) for run in group.runs}} for group in groups]
    return _render(shown, "body.html.jinja")


def record_body(run: Run, first: int, count: int) -> str:
    """Return the record of a run as HTML: all of its measures, and so many of its questions from one on."""
    questions = [_question(run, record) for record in run.records[first : first + count]]
    measures = list(zip(run.scores.metrics, _measures(run, list(run.scores.metrics)), strict=True))
    took = {name: f"{value:,.6g}" for name, value in run.scores.timings.items()}
    fields = {"run": run.name, "measures": measures, "took": took, "provenance": _provenance(run)}
    return _render_template("record.html.jinja", **fields, questions=questions, replied=bool(run.replies))


def _question(run: Run, record: Record) -> dict[str, Any]:
    gold, reply = set(record.gold), run.replies.get(record.query_id)
    return {
        "id": record.query_id,
        "question": record.question,
        "gold": ", ".join(map(_table_name, record.gold)),
        "rank": next((rank for rank, hit in enumerate(record.hits, 1) if hit.id in gold), None),
        "found": _table_name(record.hits[0].id) if record.hits else "",
        "reply": reply.text if reply is not None else "",
    }


def _table_name(table: TableId) -> str:
    return f"{table.database}/{table.table}"


def _inline(text: str) -> str:
    """Return text of others for one line of Markdown: none of it is read as HTML, a link, an image or a cell's end."""
    line = visible(" ".join(text.split())).replace("&", "&amp;").replace("<", "&lt;")
    return _MARKUP.sub(r"\\\g<0>", line)


def _render(groups: Sequence[Mapping[str, Any]], template: str) -> str:
    return _render_template(template, groups=groups, version=almanaq.__version__)


def _render_template(template: str, **values: Any) -> str:
    import jinja2

    folder = files("almanaq_bench.report")
    environment = jinja2.Environment(
        loader=jinja2.FunctionLoader(lambda name: (folder / name).read_text("utf-8")),
        autoescape=template.endswith(".html.jinja"),
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["inline"] = _inline
    if template.endswith(".html.jinja"):
        environment.finalize = lambda value: visible(value) if type(value) is str else value
    return environment.get_template(template).render(**values)


def _group_values(group: Group) -> dict[str, Any]:
    """Return a group as a template reads it."""
    return {
        "addresses": {},
        "title": group.title,
        "tables": _tables(group),
        "tested": _spell(group.tested),
        "alike": [names for names in group.alike if len(names) > 1],
        "measure": _spell(group.measure),
        "figures": _figures(group),
        "slices": _by_kind(group.slices),
        "names": [run.name for run in group.runs],
        "failures": group.failures,
        "explained": any(failure.gold_words for failure in group.failures),
        "errors": group.errors,
        "ends": list(dict.fromkeys(kind for counts in group.errors.values() for kind in counts)),
        "provenance": [_provenance(run) for run in group.runs],
        "counts": "; ".join(filter(None, [group.runs[0].scores.config.counts, *_remarks(group.runs)])),
    }


@dataclass(frozen=True, slots=True)
class _Table:
    """Figures of each run: (value, interval or "") by column; `anchors`: what each column is called in a record."""

    title: str
    columns: Sequence[str]
    anchors: Sequence[str]
    rows: Sequence[tuple[str, Sequence[tuple[str, str]]]]


def _tables(group: Group) -> list[_Table]:
    """Return a table of what was replied, where anything was, one of what was found, and one of what it took."""
    have = set.intersection(*(set(run.scores.metrics) for run in group.runs))
    # What was lost to which stage has a table of its own.
    of_replies = [name for name in group.runs[0].scores.metrics if "@" not in name and not name.startswith("lost_")]
    of_parts = [name for name in of_replies if _PART.fullmatch(name)]
    of_replies = [name for name in of_replies if name not in of_parts]
    retrieval = _retrieval_columns(group)
    made = [
        _Table(
            title,
            [_spell(name) for name in names],
            names,
            [(run.name, _measures(run, names)) for run in group.runs],
        )
        for title, columns in (
            ("Replies", of_replies),
            ("Replies by part", of_parts),
            ("Retrieval", retrieval),
        )
        if (names := [name for name in columns if name in have])
    ]
    costs = {run.name: _costs(run) for run in group.runs}
    shown = [name for name in next(iter(costs.values())) if any(cost[name] != "–" for cost in costs.values())]
    rows = [(run, [(cost[name], "") for name in shown]) for run, cost in costs.items()]
    return [*made, _Table("What it took", shown, ["took"] * len(shown), rows)]


def _retrieval_columns(group: Group) -> list[str]:
    """Return the measures that are worth a column: those in front, at the smallest cutoff, at 10, at the largest."""
    cutoffs = group.runs[0].scores.config.cutoffs
    chosen = dict.fromkeys([cutoffs[0], *(k for k in cutoffs if k == 10), cutoffs[-1]])
    names = [f"{group.measure}@{k}" for k in chosen]
    if group.measure == "database_recall":
        names += [f"recall@{k}" for k in chosen]
    return names + [f"mrr@{k}" for k in cutoffs if k == 10]


def _remarks(runs: Sequence[Run]) -> list[str]:
    """Say what the figures alone do not show: runs that have not ended, questions that got no table."""
    return [text for run in runs for text in (describe_unfinished(run.folder), *run.scores.warnings) if text]


def _measures(run: Run, names: Sequence[str]) -> list[tuple[str, str]]:
    cells = []
    for name in names:
        low, high = run.scores.intervals.get(name, (None, None))
        digits = 2 if name == "sacrebleu" else 3
        bounds = "" if low is None or high is None else f"{low:.{digits}f} – {high:.{digits}f}"
        value = run.scores.metrics[name]
        cells.append((f"{value:,}" if isinstance(value, int) else f"{value:.{digits}f}", bounds))
    return cells


def _costs(run: Run) -> dict[str, str]:
    timings = run.scores.timings
    money, calls, per_reply = (timings.get(name) for name in ("money", "calls", "seconds_per_reply"))
    return {
        "retrieval, ms per question": f"{1e3 * timings.get('latency_p50', timings['seconds_per_query']):.2f}",
        "index, s": f"{timings['index_seconds']:.1f}",
        "index, MB": f"{timings['index_bytes'] / 1e6:.1f}",
        "reply, ms per question": f"{1e3 * per_reply:.0f}" if per_reply is not None else "–",
        "model calls": f"{calls:,.0f}" if calls else "–",
        "tokens": f"{timings['input_tokens'] + timings['output_tokens']:,.0f}" if calls else "–",
        "dollars": f"{money:.4f}" if money else "–",
    }


def _by_kind(slices: Sequence[Slice]) -> dict[str, list[Slice]]:
    kinds: dict[str, list[Slice]] = {}
    for each in slices:
        kinds.setdefault(each.by, []).append(each)
    return kinds


def _spell(name: str) -> str:
    return name.replace("_", " ")


@dataclass(frozen=True, slots=True)
class _Figure:
    """A figure, and the table of what it shows."""

    svg: Markup
    columns: Sequence[str]
    rows: Sequence[Sequence[str]]
    anchor: str


def _draw_lines(lines: Sequence[Line], *, x_label: str, y_label: str) -> _Figure:
    across = sorted({x for line in lines for x in line.x})
    known = [dict(zip(line.x, line.y, strict=True)) for line in lines]
    rows = [
        [line.name, *(f"{found[x]:.3f}" if x in found else "–" for x in across)]
        for line, found in zip(lines, known, strict=True)
    ]
    svg = lines_figure(lines, x_label=x_label, y_label=y_label)
    return _Figure(_markup(svg), ["system", *(f"{x_label} = {x:g}" for x in across)], rows, "questions")


def _draw_points(points: Sequence[Point], *, x_label: str, y_label: str, anchor: str, log: bool = True) -> _Figure:
    rows = [[p.name, f"{p.x:.4g}", f"{p.y:.3f}", f"{p.low:.3f} – {p.high:.3f}"] for p in points]
    svg = points_figure(points, x_label=x_label, y_label=y_label, log=log)
    return _Figure(_markup(svg), ["system", x_label, y_label, "95 % interval"], rows, anchor)


def _markup(svg: str) -> Markup:
    """Return a figure, which is made of escaped parts alone, as HTML."""
    import markupsafe

    return markupsafe.Markup(svg)


def _figures(group: Group) -> dict[str, _Figure]:
    label = _spell(group.measure)
    lines = [Line(run.name, list(run.curve), list(run.curve.values())) for run in group.runs]
    made = {f"{label} over k": _draw_lines(lines, x_label="k", y_label=label)}
    if len(group.runs) < 2:
        return made
    cutoffs = group.runs[0].scores.config.cutoffs
    at = f"{group.measure}@{max((k for k in cutoffs if k <= 10), default=0)}"
    if all(at in run.scores.metrics for run in group.runs):
        made[f"{_spell(at)} against latency"] = _draw_points(
            [_point(run, max(1e3 * run.scores.timings.get("latency_p50", 0.0), 1e-3), at) for run in group.runs],
            x_label="milliseconds for one question (median)",
            y_label=_spell(at),
            anchor=at,
        )
    measure = main_measure(group.runs[0].scores.config.task)
    if group.runs[0].scores.config.task == "text-to-sql":  # its generator sees the best table's database alone
        at = f"{group.measure}@{min(cutoffs)}"
    return made | _answer_figures(group.runs, measure, at) if measure else made


def _answer_figures(runs: Sequence[Run], measure: str, at: str) -> dict[str, _Figure]:
    """Set the answers' measure against the retrieval's, and against money where any was spent."""
    runs = [run for run in runs if measure in run.scores.metrics]
    if not runs:
        return {}
    made = {
        f"{_spell(measure)} against retrieval: what retrieval costs the answer": _draw_points(
            [_point(run, run.scores.metrics.get(at, 0.0), measure) for run in runs],
            x_label=_spell(at),
            y_label=_spell(measure),
            anchor=measure,
            log=False,
        )
    }
    paid = [run for run in runs if run.scores.timings.get("money")]
    if len(paid) > 1:
        made[f"{_spell(measure)} against cost"] = _draw_points(
            [_point(run, run.scores.timings["money"], measure) for run in paid],
            x_label="dollars",
            y_label=_spell(measure),
            anchor=measure,
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
