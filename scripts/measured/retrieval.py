"""Table retrieval: rows of datasets, the learned weights, field sets, the paper's table 2."""

from __future__ import annotations

import json
import tomllib
from typing import Any

from measured.results import BY_DATABASE, DATASETS, EXPERIMENTS, ROOT, by_system, figure, markdown, ranked

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
WEIGHTS = ROOT / "src" / "almanaq" / "retrieval" / "weights.json"


def retrieval() -> str:
    """Table retrieval: a row for each retriever, a column for each dataset, and the best published figures."""
    published = json.loads((EXPERIMENTS / "published.json").read_text())
    found = by_system("table-retrieval")
    names = [name for name in DATASETS if any(name in results for results in found.values())]
    head = ("retriever", *(f"{name} {'DB R' if name in BY_DATABASE else 'R'}@1 / @10" for name in names))
    rows = [(system, *(_pair(found[system].get(name)) for name in names)) for system in ranked(found)]
    best = (f"{figure(each['@1'])} / {figure(each['@10'])} ({each['split']})" if each else "–"
            for each in map(published.get, names))  # fmt: skip
    return markdown(head, [*rows, ("*best published*", *best)])


def headlines() -> str:
    """One line for each thing that is measured, and where the page on it is."""
    found, published = by_system("table-retrieval")["hybrid"], json.loads((EXPERIMENTS / "published.json").read_text())
    names = ("ottqa", "fetaqa", "tabfact")
    ours = " / ".join(figure(found[name]["metrics"]["recall@10"]) for name in names)
    best = " / ".join(figure(published[name]["@10"]) for name in names)
    kept = json.loads((EXPERIMENTS / "strangers" / "kept.json").read_text())
    pairs = json.loads((EXPERIMENTS / "sembench" / "movie-labels.json").read_text())["result"]["metrics"]
    rows = [
        (
            "the table among the first ten, of OTTQA / FeTaQA / TabFact",
            ours,
            f"best published, of the test splits: {best}",
            "retrieval",
        ),
        (
            "`local` on strangers' tables, never opened: right of what it answers",
            figure(kept["precision"][0]),
            f"it answers {figure(kept['coverage'][0])} of {kept['questions']} questions",
            "local",
        ),
        (
            "calls for ten pairs of reviews, same / opposite sentiment (SemBench Q5 / Q6)",
            f"{pairs['calls_Q5']:.0f} / {pairs['calls_Q6']:.0f}",
            f"quality {pairs['quality_Q5']:.2f} / {pairs['quality_Q6']:.2f}",
            "benchmark",
        ),
    ]
    return markdown(("what", "figure", "beside", "page"), [(*row[:3], f"[{row[3]}](docs/{row[3]}.md)") for row in rows])


def _pair(result: dict[str, Any] | None) -> str:
    if result is None:
        return "–"
    measure = "database_recall" if result["dataset"] in BY_DATABASE else "recall"
    return " / ".join(figure(result["metrics"].get(f"{measure}@{k}")) for k in (1, 10))


def target_table_2() -> str:
    """The lexical rows of the TARGET paper's table 2, each beside the printed figure."""
    with (ROOT / "src/almanaq/benchmark/published/target-table-2.toml").open("rb") as file:
        published = tomllib.load(file)
    found = by_system("table-retrieval-published")
    names = [name for name in DATASETS if name in published["measures"]]
    head = ("row of the paper", "retriever", *(f"{n} {published['measures'][n]['retrieval']}" for n in names))
    rows = []
    for row in published["rows"]:
        if row["retriever"] in found:
            cells = []
            for name in names:
                result = found[row["retriever"]].get(name)
                ours = figure(result["metrics"].get(published["measures"][name]["retrieval"])) if result else "–"
                printed = row.get("printed", {}).get(name)
                cells.append(f"{ours} ({figure(printed)})" if printed is not None else ours)
            rows.append((row["method"], f"`{row['retriever']}`", *cells))
    return markdown(head, rows)


def learned() -> str:
    """What the learned weights give on held-out tables, in sample, learned elsewhere, and untuned."""
    measured = json.loads(WEIGHTS.read_text())["provenance"]["measured"]
    kinds = [(f"{kind}-{sight}", seen, name) for kind, seen in KINDS.items() for sight, name in SIGHTS.items()]
    rows = []
    for kind, seen, retriever in kinds:
        for dataset, told in measured[kind].items():
            pairs = DATABASE_PAIRS if "database_recall@1" in told["held_out"] else PAGE_PAIRS
            for name, pair in pairs.items():
                figures = (" / ".join(figure(told[column][each]) for each in pair) for column in COLUMNS)
                rows.append((dataset, seen, retriever, name, *figures))
    return markdown(("dataset", "fields", "retriever", "measure", *(name.replace("_", " ") for name in COLUMNS)), rows)


def stored() -> str:
    """What the learned weights give on held-out tables over an index on disk, beside the index in memory."""
    measured = json.loads(WEIGHTS.read_text())["provenance"]["measured"]
    rows = []
    for kind, seen in KINDS.items():
        for dataset, told in measured[f"{kind}-stored"].items():
            pair = ("database_recall@1", "complete_recall@10")
            pair = pair if pair[0] in told["held_out"] else ("recall@1", "recall@10")
            sights = (measured[f"{kind}-{sight}"][dataset]["held_out"] for sight in ("stored-words", "stored", "short"))
            name = "database first / all gold in 10" if pair[0].startswith("database") else "recall@1 / @10"
            rows.append((dataset, seen, name, *(" / ".join(figure(own[each]) for each in pair) for own in sights)))
    return markdown(("dataset", "fields", "measure", "on disk, words", "on disk, one vector", "in memory"), rows)


def chooser() -> str:
    """How often the relations that `ask` chooses from one large catalog hold all that a question needs."""
    measured = json.loads((ROOT / "benchmarks/retrieval/results/chooser.json").read_text())["measured"]
    rows = [
        (name, str(told["relations_in_all"]), str(told["questions"]), figure(told["all_gold_chosen"]),
         f"{told['relations']:.1f}", figure(told["refused"]))
        for name, told in measured.items()
    ]  # fmt: skip
    head = ("dataset", "relations", "questions", "all gold chosen", "relations chosen", "said that none fits")
    return markdown(head, rows)


def doubt() -> str:
    """How well it is known that no table fits: on held-out tables, by dataset and size of the corpus."""
    measured = json.loads(WEIGHTS.read_text())["provenance"]["doubt_measured"]
    rows = []
    for name in ("titled", "titled-statements", "untitled", "databases"):
        for group, told in measured[f"{name}-short"].items():
            if group != "calibration":
                figures = (figure(told[column]) for column in ("refused_answerable", "recall", "precision"))
                others = (_refused(measured[f"{name}-{sight}"].get(group)) for sight in ("stored", "stored-words"))
                rows.append((name.split("-")[0], group, *figures, *others))
    head = ("tables", "corpus", "answerable refused", "unanswerable refused (recall)", "precision of a refusal",
            "on disk, one vector: answerable / unanswerable refused", "on disk, words")  # fmt: skip
    return markdown(head, rows)


def _refused(told: dict[str, float] | None) -> str:
    return f"{figure(told['refused_answerable'])} / {figure(told['recall'])}" if told else "–"


def ablation() -> str:
    """Recall by field set and retriever, with intervals."""
    measured = json.loads((EXPERIMENTS / "ablation" / "fields.json").read_text())["measured"]
    retrievers = list(dict.fromkeys(r for sets in measured.values() for own in sets.values() for r in own))
    rows = [
        (dataset, fields, *(_interval(own[name]) if name in own else "–" for name in retrievers))
        for dataset, sets in measured.items()
        for fields, own in sets.items()
    ]
    return markdown(("dataset", "fields", *retrievers), rows)


def _interval(cell: dict[str, list[float]]) -> str:
    return " / ".join(f"{mean:.3f} ({low:.3f}–{high:.3f})" for mean, low, high in cell.values())


def runner() -> str:
    """What the benchmark's runner costs for a question, in milliseconds of processor time."""
    found = json.loads((ROOT / "benchmarks" / "runner" / "results.json").read_text())
    spent, texts = found["per_question"], found["texts_embedded"]
    rows = [
        (f"asking the retriever, {found['k']} tables", f"{spent['bare_ms']:.3f} ms"),
        ("the same, checked and recorded on disk", f"{spent['asked_and_recorded_ms']:.3f} ms"),
        ("scoring all measures at four cutoffs, with intervals", f"{spent['scored_ms']:.3f} ms"),
        ("texts embedded by a run with `dense`, 500 questions", f"{texts['first_run']:,}"),
        ("texts embedded by a second run with other k", f"{texts['second_run_with_other_k']:,}"),
    ]
    return markdown(("for each question, of a retriever that takes no time", ""), rows)


def timed() -> str:
    """What the whole retrieval table took, no vector known before."""
    file = EXPERIMENTS / "timed" / "table-retrieval.json"
    if not file.exists():
        return markdown((), [])
    found = json.loads(file.read_text())
    slowest = sorted(found["each"].items(), key=lambda entry: -entry[1][1])[:5]
    whole = (f"all {found['experiments']}, {found['processes']} at once", found["wall_seconds"], found["cpu_seconds"])
    rows = [
        (name, f"{wall:,.0f} s", f"{cpu:,.0f} s")
        for name, wall, cpu in [whole, *((name.split("/")[1], *took) for name, took in slowest)]
    ]
    return markdown(("experiments", "wall", "processor"), rows)


TABLES = {
    "headlines": headlines,
    "retrieval": retrieval,
    "target-table-2": target_table_2,
    "learned": learned,
    "stored": stored,
    "chooser": chooser,
    "doubt": doubt,
    "ablation": ablation,
    "runner": runner,
    "timed": timed,
}
