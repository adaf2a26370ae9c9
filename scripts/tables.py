"""Write or check the measured tables in README.md and docs/, made from the committed results under experiments/.

A table stands between `<!-- table: NAME -->` and `<!-- end -->`. `--write` writes them (`make docs`); without it,
exit 1 and a list of the files whose tables differ from the results.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
EXPERIMENTS = ROOT / "experiments"
MARKED = re.compile(r"(<!-- table: ([\w-]+) -->\n)(.*?)(<!-- end -->)", re.DOTALL)

DATASETS = ("ottqa", "fetaqa", "tabfact", "spider", "bird", "hybridqa")
BY_DATABASE = ("spider", "bird")


def retrieval() -> str:
    """Table retrieval: each dataset and retriever, beside the best published figure."""
    published = json.loads((EXPERIMENTS / "published.json").read_text())
    rows = [_retrieval_row(record, published) for record in _records("table-retrieval")]
    head = ("dataset (split)", "retriever", "measure", "@1", "@10", "best published (split)")
    return _markdown(head, rows)


def questions() -> str:
    """The main job on the bundled sample: how many questions get the right restaurants, before tuning and now."""
    rows = []
    for name, when in (("twelve_questions_first", "before any tuning"), ("twelve_questions", "now")):
        path = EXPERIMENTS / "local" / f"{name}.json"
        if path.exists():
            record = json.loads(path.read_text())
            rows.append((when, record["model"], f"{record['right']} of {record['questions']}"))
    return _markdown(("", "model", "right restaurants"), rows)


def local_reader() -> str:
    """Reading with `local`: HybridQA given the gold cell or passage, beside a baseline that gives it back whole."""
    record = json.loads((EXPERIMENTS / "local" / "hybridqa_reader.json").read_text())
    rows = [
        (
            half,
            kind,
            str(found["local"]["questions"]),
            *(_match(found[reader]) for reader in ("local", "whole document")),
        )
        for half in ("development", "report")
        for kind, found in record[half].items()
        if isinstance(found, dict)
    ]
    return _markdown(("half", "questions", "", "`local`: EM / F1", "whole document: EM / F1"), rows)


def _match(found: dict[str, float]) -> str:
    return f"{found['exact match']:.1f} / {found['f1']:.1f}"


def local_yes_no() -> str:
    """Yes and no with `local` by the sample's truth: without the embedder at first, and now."""
    rows = []
    for name, when in (("before", "at first"), ("words_only", "words only"), ("", "now")):
        record = json.loads((EXPERIMENTS / "local" / f"yes_no{'_' * bool(name)}{name}.json").read_text())
        for half in ("development", "held_out"):
            if half in record:
                found = record[half]
                figures = (found[key] for key in ("balanced_accuracy", "answered", "invented"))
                rows.append((when, half.replace("_", "-"), *(f"{figure:.3f}" for figure in figures), "0.500"))
    head = ("", "wordings", "balanced accuracy", "answered where something is said", "where nothing is", "majority")
    return _markdown(head, rows)


def local_parser() -> str:
    """Parsing with `local`: conditions of the published restaurant queries, and Spider's execution accuracy."""
    record = json.loads((EXPERIMENTS / "local" / "parsing.json").read_text())
    rows = []
    for half in ("development", "report"):
        found, spider = record["suql_restaurants"][half], record["spider"][half]
        rows.append((half, f"{found['precision']:.2f} / {found['recall']:.2f}", f"{spider['execution accuracy']:.3f}"))
    return _markdown(("half", "restaurants: precision / recall of conditions", "Spider: execution accuracy"), rows)


def candidates() -> str:
    """The paper's cut-off on the sample: the share of the exact rows found when only k candidates are verified."""
    measured = json.loads((EXPERIMENTS / "candidates" / "recall.json").read_text())
    cutoffs = list(next(iter(measured.values()))["recall_of_what_fits"])
    rows = [(name, *(f"{found['recall_of_what_fits'][k]:.2f}" for k in cutoffs)) for name, found in measured.items()]
    return _markdown(("embedder", *(f"k = {k}" for k in cutoffs)), rows)


def calls() -> str:
    """Model calls of the benchmark's tasks, beside those of other plans for the same rows."""
    tasks = json.loads((ROOT / "benchmarks" / "text_calls" / "results.json").read_text())["tasks"]
    rows = [
        (
            task["task"],
            *(str(task.get(key, "–")) for key in ("naive", "dnf", "floor")),
            str(task["speculation_1"]["calls"]),
            str(task["default"]["calls"]),
        )
        for task in tasks
    ]
    return _markdown(("task", "naive", "DNF (the paper's)", "floor", "ours, speculation 1", "ours, default"), rows)


def overhead() -> str:
    """Our time and memory without the model over the database's own, on a million rows."""
    measured = json.loads((ROOT / "benchmarks" / "overhead" / "results.json").read_text())["a_million_rows"]
    rows = []
    for case in (value for value in measured.values() if isinstance(value, dict)):
        own, ours = case["database"], case["table"]
        times = (f"{own['median_ms']:.1f} ms", f"{ours['median_ms']:.1f} ms", f"{ours['time_ratio']:.2f}")
        rows.append((f"`{case['predicate']}`", *times, f"{ours['memory_ratio']:.2f}"))
    return _markdown(("structured predicate", "database", "with a text predicate", "time ratio", "memory ratio"), rows)


TABLES: dict[str, Callable[[], str]] = {
    "retrieval": retrieval,
    "questions": questions,
    "local-reader": local_reader,
    "local-yes-no": local_yes_no,
    "local-parser": local_parser,
    "candidates": candidates,
    "calls": calls,
    "overhead": overhead,
}


def documents() -> Iterator[tuple[Path, str, str]]:
    """Yield every file with marked tables: its path, its text, and what its text should be."""
    for path in (ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))):
        text = path.read_text()
        if MARKED.search(text):
            yield path, text, MARKED.sub(_fill, text)


def drifted() -> list[str]:
    """Name the files whose tables are not what the results say."""
    return [str(path.relative_to(ROOT)) for path, text, wanted in documents() if text != wanted]


def _fill(match: re.Match[str]) -> str:
    before, name, _, after = match.groups()
    if name not in TABLES:
        raise SystemExit(f"unknown table {name!r}; known: {', '.join(TABLES)}")
    return before + TABLES[name]() + after


def _records(group: str) -> list[dict[str, Any]]:
    """Give the committed results of one kind, those not yet run left out, in the order of DATASETS."""
    found = [json.loads(path.read_text()) for path in sorted((EXPERIMENTS / group).glob("*.json"))]
    done = [record for record in found if record.get("result", True)]
    return sorted(done, key=_rank)


def _rank(record: dict[str, Any]) -> tuple[int, str]:
    result = record.get("result") or {}
    dataset = result.get("dataset", "")
    return (DATASETS.index(dataset) if dataset in DATASETS else len(DATASETS), result.get("retriever", ""))


def _retrieval_row(record: dict[str, Any], published: dict[str, Any]) -> tuple[str, ...]:
    result = record["result"]
    measure = "database recall" if result["dataset"] in BY_DATABASE else "recall"
    figures = [_figure(result["metrics"].get(f"{measure.replace(' ', '_')}@{k}")) for k in (1, 10)]
    best = published.get(result["dataset"])
    beside = f"{_figure(best['@1'])} / {_figure(best['@10'])} ({best['split']})" if best else "–"
    return (f"{result['dataset']} ({result['split']})", result["retriever"], measure, *figures, beside)


def _figure(value: float | None) -> str:
    return "–" if value is None else f"{value:.3f}"


def _markdown(head: tuple[str, ...], rows: list[tuple[str, ...]]) -> str:
    if not rows:
        return "*Not measured yet.*\n"
    lines = [head, tuple("---" for _ in head), *rows]
    return "".join("| " + " | ".join(cells) + " |\n" for cells in lines)


if __name__ == "__main__":
    if "--write" in sys.argv[1:]:
        for path, text, wanted in documents():
            if text != wanted:
                path.write_text(wanted)
    elif stale := drifted():
        sys.exit(f"drifted: {', '.join(stale)}; run `make docs`")
