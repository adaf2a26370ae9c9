"""What `local` does without a language model."""

from __future__ import annotations

import json

from measured.results import EXPERIMENTS, markdown


def questions() -> str:
    """The main job on the bundled sample: how many questions get the right restaurants, before tuning and now."""
    rows = []
    runs = (
        ("twelve_questions_first", "before any tuning"),
        ("twelve_questions_unseen", "tuned, their wordings unseen"),
        ("twelve_questions", "now, seen"),
    )
    for name, when in runs:
        path = EXPERIMENTS / "local" / f"{name}.json"
        if path.exists():
            record = json.loads(path.read_text())
            rows.append((when, record["model"], f"{record['right']} of {record['questions']}"))
    return markdown(("", "model", "right restaurants"), rows)


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
    return markdown(("half", "questions", "", "`local`: EM / F1", "whole document: EM / F1"), rows)


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
    return markdown(head, rows)


def local_parser() -> str:
    """Parsing with `local`: conditions of the published restaurant queries, and Spider's execution accuracy."""
    record = json.loads((EXPERIMENTS / "local" / "parsing.json").read_text())
    rows = []
    for half in ("development", "report"):
        found, spider = record["suql_restaurants"][half], record["spider"][half]
        figures = (spider["execution accuracy"], spider["no query"])
        conditions = f"{found['precision']:.2f} / {found['recall']:.2f}"
        rows.append((half, conditions, *(f"{figure:.3f}" for figure in figures)))
    head = ("half", "restaurants: precision / recall of conditions", "Spider: execution accuracy", "declined")
    return markdown(head, rows)


def local_everyday() -> str:
    """Everyday questions about small databases of ours: how many got the right rows, no query, wrong rows."""
    rows = []
    for name, when in (("everyday_first", "at first"), ("everyday", "now")):
        record = json.loads((EXPERIMENTS / "local" / f"{name}.json").read_text())
        for half in ("development", "report"):
            databases = record[half]["by database"].values()
            declined = sum(found.get("no query", 0) for found in databases)
            wrong = sum(found.get("wrong", 0) + found.get("refused", 0) for found in databases)
            rows.append((when, half, *map(str, (record[half]["questions"], record[half]["right"], declined, wrong))))
    return markdown(("", "half", "questions", "right", "declined", "wrong"), rows)


def local_strangers() -> str:
    """Questions over tables of public packages: right, declined, wrong, with precision and coverage."""
    rows = []
    for half in ("open", "kept"):
        path = EXPERIMENTS / "strangers" / f"{half}.json"
        record = json.loads(path.read_text()) if path.exists() else {"by source": {}}
        named = [*record["by source"].items(), *([("all", record)] if "right" in record else [])]
        for source, found in named:
            counts = (str(found[name]) for name in ("questions", "right", "declined", "wrong"))
            shares = (_interval(found[name]) for name in ("precision", "coverage"))
            rows.append((half, source, *counts, *shares))
    head = ("half", "source", "questions", "right", "declined", "wrong", "right of what is answered", "answered")
    return markdown(head, rows)


def _interval(share: list[float]) -> str:
    return f"{share[0]:.2f} ({share[1]:.2f}–{share[2]:.2f})"


def local_confidence() -> str:
    """What the threshold of confidence gives: by folds over databases, and on what was kept aside."""
    path = EXPERIMENTS.parent / "src" / "almanaq" / "agent" / "local" / "confidence.json"
    record = json.loads(path.read_text())
    rows = [
        (name, f"{row['threshold']:.2f}", f"{row['precision']:.2f}", f"{row['coverage']:.2f}")
        for name in ("cross-validated by database", "kept aside")
        for row in record[name]
    ]
    return markdown(("questions", "probability at least", "right of what is answered", "answered"), rows)


def local_reliability() -> str:
    """The reliability diagram of `local`: how often queries were right, by the probability that was said of them."""
    path = EXPERIMENTS.parent / "src" / "almanaq" / "agent" / "local" / "confidence.json"
    rows = []
    for name, bands in json.loads(path.read_text())["reliability"].items():
        for band in bands:
            bar = "█" * round(20 * band["right"]) + "░" * (20 - round(20 * band["right"]))
            share = _interval([band["right"], band["low"], band["high"]])
            rows.append((name, f"{band['said']:.2f}", bar, share, str(band["queries"])))
    return markdown(("questions", "said, mean", "", "right", "queries"), rows)


def candidates() -> str:
    """The paper's cut-off on the sample: the share of the exact rows found when only k candidates are verified."""
    measured = json.loads((EXPERIMENTS / "candidates" / "recall.json").read_text())
    cutoffs = list(next(iter(measured.values()))["recall_of_what_fits"])
    rows = [(name, *(f"{found['recall_of_what_fits'][k]:.2f}" for k in cutoffs)) for name, found in measured.items()]
    return markdown(("embedder", *(f"k = {k}" for k in cutoffs)), rows)


TABLES = {
    "questions": questions,
    "local-reader": local_reader,
    "local-yes-no": local_yes_no,
    "local-parser": local_parser,
    "local-everyday": local_everyday,
    "local-strangers": local_strangers,
    "local-confidence": local_confidence,
    "local-reliability": local_reliability,
    "candidates": candidates,
}
