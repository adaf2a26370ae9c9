"""Write or check the measured tables in README.md and docs/, made from the committed results under experiments/.

A table stands between `<!-- table: NAME -->` and `<!-- end -->`. `--write` writes them (`make docs`); without it,
exit 1 and a list of the files whose tables differ from the results.
"""

from __future__ import annotations

import json
import re
import sys
import tomllib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
EXPERIMENTS = ROOT / "experiments"
MARKED = re.compile(r"(<!-- table: ([\w-]+) -->\n)(.*?)(<!-- end -->)", re.DOTALL)

DATASETS = ("ottqa", "fetaqa", "tabfact", "spider", "bird", "hybridqa")
BY_DATABASE = ("spider", "bird")
WEIGHTS = ROOT / "src" / "almanaq" / "retrieval" / "weights.json"
SIGHTS = {"short": "hybrid", "rows": "rerank", "lexical": "without vectors"}
COLUMNS = ("held_out", "in_sample", "other_datasets", "untuned")
KINDS = {
    "titled": "with titles",
    "untitled": "header, cells",
    "databases": "all fields",
    "bare-databases": "without description",
}
PAGE_PAIRS = {"recall@1 / @10": ("recall@1", "recall@10")}
DATABASE_PAIRS = {
    "database first / routed": ("database_recall@1", "routed_database_recall@1"),
    "all gold in 5 / in 10": ("complete_recall@5", "complete_recall@10"),
}
RETRIEVERS = ("none", "random", "bm25", "dense", "hybrid-untuned", "hybrid", "rerank", "oracle")
FRONT = {
    "question-answering": ("exact_match", "f1", "numeric_match", "sacrebleu"),
    "fact-verification": ("precision", "recall", "f1", "recall_answered", "coverage"),
    "text-to-sql": ("execution_accuracy", "execution_accuracy_strict"),
}


def retrieval() -> str:
    """Table retrieval: a row for each retriever, a column for each dataset, and the best published figures."""
    published = json.loads((EXPERIMENTS / "published.json").read_text())
    found = _by_system("table-retrieval")
    names = [name for name in DATASETS if any(name in results for results in found.values())]
    head = ("retriever", *(f"{name} {'DB R' if name in BY_DATABASE else 'R'}@1 / @10" for name in names))
    rows = [(system, *(_pair(found[system].get(name)) for name in names)) for system in _ranked(found)]
    best = (f"{_figure(each['@1'])} / {_figure(each['@10'])} ({each['split']})" if each else "–"
            for each in map(published.get, names))  # fmt: skip
    return _markdown(head, [*rows, ("*best published*", *best)])


def target_table_2() -> str:
    """The lexical rows of the TARGET paper's table 2, each beside the printed figure."""
    with (ROOT / "src/almanaq/benchmark/published/target-table-2.toml").open("rb") as file:
        published = tomllib.load(file)
    found = _by_system("table-retrieval-published")
    names = [name for name in DATASETS if name in published["measures"]]
    head = ("row of the paper", "retriever", *(f"{n} {published['measures'][n]['retrieval']}" for n in names))
    rows = []
    for row in published["rows"]:
        if row["retriever"] in found:
            cells = []
            for name in names:
                result = found[row["retriever"]].get(name)
                ours = _figure(result["metrics"].get(published["measures"][name]["retrieval"])) if result else "–"
                printed = row.get("printed", {}).get(name)
                cells.append(f"{ours} ({_figure(printed)})" if printed is not None else ours)
            rows.append((row["method"], f"`{row['retriever']}`", *cells))
    return _markdown(head, rows)


def generation() -> str:
    """Tasks with replies: for each dataset, what each generator makes of each retriever's tables."""
    rows = []
    for record in _records("generation"):
        result = record["result"]
        metrics, provenance = result["metrics"], result["provenance"]
        front = [name for name in FRONT[result["task"]] if name in metrics]
        figures = ", ".join(
            f"{name.replace('_', ' ')} {metrics[name]:.{2 if name == 'sacrebleu' else 3}f}" for name in front
        )
        rows.append((result["dataset"], provenance["generator"], result["retriever"], figures))
    order = ("first-cell", "majority", "not-enough", "local", "agent")
    rows.sort(
        key=lambda row: (
            DATASETS.index(row[0]),
            order.index(row[1]) if row[1] in order else 9,
            RETRIEVERS.index(row[2]),
        )
    )
    return _markdown(("dataset", "generator", "retriever", "measures"), rows)


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


def laws() -> str:
    """Generated queries compared with the database itself, with text functions as plain functions called per row."""
    found = json.loads((ROOT / "tests" / "laws" / "results.json").read_text())
    rows = [
        (
            f"{run['first_seed']:,} – {run['last_seed']:,}",
            f"{run['compared']:,}",
            str(run["differ"]),
            f"{run['text_calls']:,}",
            f"{run['naive_text_calls']:,}",
        )
        for run in found["runs"]
    ]
    return _markdown(("seeds", "queries compared", "differ", "text calls", "naive text calls"), rows)


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


def learned() -> str:
    """What the learned weights give on held-out tables, in sample, learned elsewhere, and untuned."""
    measured = json.loads(WEIGHTS.read_text())["provenance"]["measured"]
    kinds = [(f"{kind}-{sight}", seen, name) for kind, seen in KINDS.items() for sight, name in SIGHTS.items()]
    rows = []
    for kind, seen, retriever in kinds:
        for dataset, told in measured[kind].items():
            pairs = DATABASE_PAIRS if "database_recall@1" in told["held_out"] else PAGE_PAIRS
            for name, pair in pairs.items():
                figures = (" / ".join(_figure(told[column][each]) for each in pair) for column in COLUMNS)
                rows.append((dataset, seen, retriever, name, *figures))
    return _markdown(("dataset", "fields", "retriever", "measure", *(name.replace("_", " ") for name in COLUMNS)), rows)


def doubt() -> str:
    """How well it is known that no table fits: on held-out tables, by dataset and size of the corpus."""
    measured = json.loads(WEIGHTS.read_text())["provenance"]["doubt_measured"]
    rows = []
    for name in ("titled-short", "titled-statements-short", "untitled-short", "databases-short"):
        for group, told in measured[name].items():
            if group != "calibration":
                figures = (_figure(told[column]) for column in ("refused_answerable", "recall", "precision"))
                rows.append((name.split("-")[0], group, *figures))
    head = ("tables", "corpus", "answerable refused", "unanswerable refused (recall)", "precision of a refusal")
    return _markdown(head, rows)


def ablation() -> str:
    """Recall by field set and retriever, with intervals."""
    measured = json.loads((EXPERIMENTS / "ablation" / "fields.json").read_text())["measured"]
    retrievers = list(dict.fromkeys(r for sets in measured.values() for own in sets.values() for r in own))
    rows = [
        (dataset, fields, *(_interval(own[name]) if name in own else "–" for name in retrievers))
        for dataset, sets in measured.items()
        for fields, own in sets.items()
    ]
    return _markdown(("dataset", "fields", *retrievers), rows)


def _interval(cell: dict[str, list[float]]) -> str:
    return " / ".join(f"{mean:.3f} ({low:.3f}–{high:.3f})" for mean, low, high in cell.values())


def turns() -> str:
    """How well turns are told apart without a language model."""
    measured = json.loads((EXPERIMENTS / "agent" / "classify_turns.json").read_text())
    halves = [name for name in ("dev", "held-out", "second-dev") if name in measured]
    rows = [
        (label, *(f"{measured[half][key]:.3f}" for half in halves))
        for label, key in (("macro F1, 11 kinds", "macro_f1"), ("needs data or not", "needs_data_accuracy"))
    ]
    first = measured["first_scored"]
    unseen = (f"{first[half]['macro_f1']:.3f}" if half in first else "–" for half in halves)
    rows.insert(1, ("macro F1 when first scored, unseen", *unseen))
    kinds = measured[halves[0]]["f1"]
    rows += [(f"F1 of {kind}", *(f"{measured[half]['f1'][kind]:.3f}" for half in halves)) for kind in kinds]
    return _markdown(("", *(f"{half} ({measured[half]['turns']} turns)" for half in halves)), rows)


def conversations() -> str:
    """Our questions and conversations over the sample, judged by its truth, on the held-out half."""
    measured = json.loads((EXPERIMENTS / "agent" / "restaurants.json").read_text())
    names = {
        "script/truth": "right SUQL from a script, texts read by the truth",
        "local/truth": "`local` writes the queries, texts read by the truth",
        "local/local": "`local` writes the queries and reads the texts",
    }
    rows = []
    for key, what in names.items():
        for half in ("dev", "held-out"):
            record = measured.get(f"{key}/{half}")
            if record:
                parts = [record[kind] for kind in ("questions", "conversations")]
                rows.append((what, half, *(f"{p['turn_accuracy']:.3f} / {p['false_negatives']:.3f}" for p in parts)))
    head = ("", "half", "questions: right / wrongly empty", "conversations: right / wrongly empty")
    return _markdown(head, rows)


def turn_times() -> str:
    """How long the agent takes for a turn without a model."""
    measured = json.loads((ROOT / "benchmarks" / "agent" / "results.json").read_text())
    keys = ("again_median_ms", "again_worst_ms", "first_worst_ms", "again_processor_ms", "bound_ms")
    rows = [(f"{size['tables']:,}", *(f"{size[key]:.0f} ms" for key in keys)) for size in measured["sizes"]]
    return _markdown(("tables", "median turn", "slowest", "slowest, first time", "processor time", "bound"), rows)


def databases() -> str:
    """Spider's databases as one source: how often the right one is looked in."""
    record = json.loads((EXPERIMENTS / "agent" / "spider_databases.json").read_text())
    rows = [
        ("the database chosen first is the right one", f"{record['first']:.3f}"),
        ("every table of the right query is among those shown to the parser", f"{record['shown']:.3f}"),
        (f"`local`'s query reads the right one ({record['asked_questions']} questions)", f"{record['asked']:.3f}"),
    ]
    head = (f"{record['questions']:,} questions, {record['databases']} databases, {record['tables']} tables", "share")
    return _markdown(head, rows)


def hybridqa() -> str:
    """HybridQA with `local` on the half that nothing was fitted on: with the gold table, and one found among all."""
    rows = []
    ways = {
        "report_gold": "gold",
        "report_open_cells": "found among 2,141 by `hybrid` over titles, header and cells",
        "report_open": "found by `bm25` over these and the passages",
    }
    for name, tables in ways.items():
        found = json.loads((EXPERIMENTS / "hybridqa" / f"{name}.json").read_text())
        rows.append((tables, *_hybrid_scores(found["all"]), str(found["text_calls_per_question"])))
    head = ("table", "questions", "exact match", "F1", "substring", "calls per question")
    return _markdown(head, rows)


def hybridqa_places() -> str:
    """HybridQA by where the answers lie and by the number of places."""
    found = json.loads((EXPERIMENTS / "hybridqa" / "report_gold.json").read_text())
    names = {"table": "cells", "passage": "articles", "mixed": "both", "nowhere": "neither (computed)"}
    rows = [(names[place], *_hybrid_scores(scores)) for place, scores in found["by_place"].items()]
    rows += [(f"{number} places", *_hybrid_scores(scores)) for number, scores in found["by_nodes"].items()]
    return _markdown(("answers in", "questions", "exact match", "F1", "substring"), rows)


def hybridqa_stages() -> str:
    """HybridQA: how many answers each stage lost."""
    names = ("gold", "open_cells", "open")
    files = [json.loads((EXPERIMENTS / "hybridqa" / f"report_{name}.json").read_text()) for name in names]
    rows = [(stage, *(str(found["stages"][stage]) for found in files)) for stage in files[0]["stages"]]
    return _markdown(("stage", "gold table", "found by cells", "found by cells and passages"), rows)


def hybridqa_sixty() -> str:
    """The sixty queries by type: answers reached in the first run and now, and calls per question."""
    first, now = (json.loads((EXPERIMENTS / "hybridqa" / f"sixty{part}.json").read_text()) for part in ("_first", ""))
    notes = json.loads((EXPERIMENTS / "hybridqa" / "sixty_notes.json").read_text())["notes"]
    faulty = {question for question, (kind, _) in notes.items() if kind == "label"}
    rows = []
    for kind, counts in now["by_type"].items():
        own = [r for r in now["queries"] if kind in (r["type"], "all") and r["question"] not in faulty]
        sound = f"{sum(bool(r['substring']) for r in own)} of {len(own)}"
        reached = (str(first["by_type"][kind]["reached"]), str(counts["reached"]), str(counts["substring"]), sound)
        rows.append((kind, str(counts["queries"]), *reached, str(counts["calls_per_question"])))
    head = ("type", "queries", "reached at first", "reached", "or substring", "of those with sound gold", "calls")
    return _markdown(head, rows)


def _hybrid_scores(scores: dict[str, Any]) -> tuple[str, ...]:
    return (str(scores["questions"]), *(f"{scores[name]:.1f}" for name in ("exact_match", "f1", "substring")))


def engines() -> str:
    """Text predicates over 10 million rows in PostgreSQL: rows that leave it, and seconds beside plain SQL."""
    measured = json.loads((ROOT / "benchmarks" / "engines" / "results.json").read_text())
    rows = [
        (
            query["query"],
            query["order"],
            str(query["rows_to_client"]),
            str(query["text_calls"]),
            f"{query['seconds']:.3f}",
            f"{query['bare_seconds']:.3f}",
            f"{query['ratio_to_bare']:.2f}",
            f"{query['read_seconds']:.3f}",
        )
        for query in measured["queries"]
    ]
    head = ("query", "order", "rows to the client", "text calls", "seconds", "without the text predicate", "ratio")
    return _markdown((*head, "only reading the same rows"), rows)


def index_scale() -> str:
    """The index on disk by size: what building it takes, and how quick and sure it is, by words and with vectors."""
    head = ("tables", "build CPU s", "build GB", "on disk GB", "update writes", "by words: CPU p50 / p95 ms",
            "R@1 / @10", "with static vectors: CPU p50 / p95 ms", "R@1 / @10")  # fmt: skip
    rows = []
    for run in json.loads((ROOT / "benchmarks/retrieval/results/scale.json").read_text())["runs"]:
        found = [part for kind in ("lexical", "hybrid") for part in _searched(run.get(kind))]
        built = (f"{run['build_cpu_seconds']:.0f}", f"{run['peak_memory_gb']:.2f}", f"{run['index_gb']:.3f}")
        rows.append((f"{run['tables']:,}", *built, f"{run['update_writes_share']:.2%}", *found))
    return _markdown(head, rows)


def _searched(told: dict[str, Any] | None) -> tuple[str, str]:
    if told is None:
        return "–", "–"
    recalls = f"{_figure(told['recall@1'])} / {_figure(told['recall@10'])}"
    return f"{told['cpu_p50_ms']:.1f} / {told['cpu_p95_ms']:.1f}", recalls


def index_yardsticks() -> str:
    """Our index beside bm25s and tantivy, called bare on the same text."""
    head = ("tables", "", "build CPU s", "GB while building", "on disk GB", "CPU p50 / p95 ms", "R@10")
    rows = []
    for run in json.loads((ROOT / "benchmarks/retrieval/results/yardsticks.json").read_text())["runs"]:
        for name in ("ours", "bm25s", "tantivy"):
            told = run[name]
            times = f"{told['cpu_p50_ms']:.1f} / {told['cpu_p95_ms']:.1f}"
            built = (f"{told['build_cpu_seconds']:.0f}", f"{told['peak_memory_gb']:.2f}", f"{told['index_gb']:.3f}")
            rows.append((f"{run['tables']:,}", name, *built, times, _figure(told["recall@10"])))
    return _markdown(head, rows)


TABLES: dict[str, Callable[[], str]] = {
    "retrieval": retrieval,
    "learned": learned,
    "doubt": doubt,
    "ablation": ablation,
    "target-table-2": target_table_2,
    "generation": generation,
    "questions": questions,
    "local-reader": local_reader,
    "local-yes-no": local_yes_no,
    "local-parser": local_parser,
    "candidates": candidates,
    "laws": laws,
    "calls": calls,
    "overhead": overhead,
    "turns": turns,
    "conversations": conversations,
    "turn-times": turn_times,
    "databases": databases,
    "hybridqa": hybridqa,
    "hybridqa-places": hybridqa_places,
    "hybridqa-stages": hybridqa_stages,
    "hybridqa-sixty": hybridqa_sixty,
    "engines": engines,
    "index-scale": index_scale,
    "index-yardsticks": index_yardsticks,
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


def _by_system(group: str) -> dict[str, dict[str, Any]]:
    """Give the results of one kind by retriever and dataset."""
    found: dict[str, dict[str, Any]] = {}
    for record in _records(group):
        result = record["result"]
        found.setdefault(result["retriever"], {})[result["dataset"]] = result
    return found


def _ranked(found: dict[str, dict[str, Any]]) -> list[str]:
    """Give the systems in the order of RETRIEVERS, others after them."""
    return sorted(found, key=lambda name: (RETRIEVERS.index(name) if name in RETRIEVERS else len(RETRIEVERS), name))


def _pair(result: dict[str, Any] | None) -> str:
    if result is None:
        return "–"
    measure = "database_recall" if result["dataset"] in BY_DATABASE else "recall"
    return " / ".join(_figure(result["metrics"].get(f"{measure}@{k}")) for k in (1, 10))


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
