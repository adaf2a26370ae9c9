"""Restaurants: our questions and conversations over the sample, judged by its truth."""

from __future__ import annotations

import json
import re

from measured.results import EXPERIMENTS, markdown


def conversations() -> str:
    """Our questions and conversations over the sample, judged by its truth."""
    names = {
        "truth": "right SUQL from a script, texts read by the truth",
        "local-truth": "`local` writes the queries, texts read by the truth",
        "local": "`local` writes the queries and reads the texts",
    }
    rows = []
    for key, what in names.items():
        for half in ("dev", "held-out"):
            record = json.loads((EXPERIMENTS / "restaurants" / f"{key}-{half}.json").read_text())
            parts = [record[kind] for kind in ("single-turn", "conversations")]
            rows.append((what, half, *(f"{p['turn_accuracy']:.3f} / {p['false_negatives']:.3f}" for p in parts)))
    head = ("", "half", "questions: right / wrongly empty", "conversations: right / wrongly empty")
    return markdown(head, rows)


def restaurants() -> str:
    """The restaurants task on the held-out halves: turn accuracy and false negatives, the paper's figures beside."""
    systems = {
        "truth": ("right SUQL, texts read by the ground truth", None),
        "local-truth": ("SUQL by `local`, texts read by the ground truth", None),
        "local": ("SUQL by `local`, texts read by `local`", "SUQL"),
        "linearize@1-lexical": ("linearization @1, `lexical`", None),
        "linearize@1-local": ("linearization @1, MiniLM", "Linearization @1"),
        "linearize@3-lexical": ("linearization @3, `lexical`", None),
        "linearize@3-local": ("linearization @3, MiniLM", "Linearization @3"),
    }
    published = json.loads((EXPERIMENTS / "published.json").read_text())["suql-restaurants"]
    rows = []
    for name, (words, printed) in systems.items():
        found = json.loads((EXPERIMENTS / "restaurants" / f"{name}-held-out.json").read_text())
        cells = []
        for kind in ("single-turn", "conversations"):
            cells += [_percent(found[kind]["turn_accuracy"]), _percent(found[kind]["false_negatives"])]
            cells.append(_percent(published[printed][kind]) if printed else "–")
        rows.append((words, *cells))
    columns = ("turn accuracy", "false negatives", "*paper: accuracy*")
    head = ("system", *(f"{kind}: {column}" for kind in ("single", "conversations") for column in columns))
    return markdown(head, rows)


def restaurants_needs() -> str:
    """The restaurants task on the held-out halves by what the turns need."""
    rows = []
    for name in ("truth", "local-truth", "local", "linearize@1-local", "linearize@3-local"):
        found = json.loads((EXPERIMENTS / "restaurants" / f"{name}-held-out.json").read_text())
        for kind in ("single-turn", "conversations"):
            own = found[kind]
            cells = [
                f"{_percent(own[f'turn_accuracy_{needs}'])} / {_percent(own[f'false_negatives_{needs}'])}"
                for needs in ("structured", "combined")
            ]
            rows.append((f"`{name}`", kind, *cells, _percent(own["count_accuracy"])))
    return markdown(("system", "turns", "columns alone", "columns and texts", "counts told right"), rows)


def restaurants_stages() -> str:
    """The restaurants task on both halves: how many turns each stage lost."""
    rows = []
    for name in ("local-truth", "local", "linearize@1-local", "linearize@3-local"):
        for half in ("dev", "held-out"):
            found = json.loads((EXPERIMENTS / "restaurants" / f"{name}-{half}.json").read_text())
            for kind in ("single-turn", "conversations"):
                own = found[kind]
                if "lost_parse" not in own:
                    continue
                judged = own["turns"] - sum(own[f"{why}_turns"] for why in ("skipped", "unjudged", "broken"))
                lost = [round(count) for stage, count in own.items() if stage.startswith("lost_")]
                rows.append((f"`{name}`", f"{kind}, {half}", *map(str, (round(judged) - sum(lost), *lost))))
    head = ("system", "turns", "right", "retrieval", "parse", "link", "text call", "cast", "format")
    return markdown(head, rows)


def restaurants_served() -> str:
    """The restaurants task with a model behind a server: what was foretold and what it took."""
    found = json.loads((EXPERIMENTS / "restaurants" / "served.json").read_text())
    rows = []
    for split, own in found.items():
        if split == "command":
            continue
        calls, tokens = re.findall(r"([\d,]+) (?:calls|tokens)", own["foretold"][0])
        took = own["counted"]
        spent = f"{took['input_tokens'] + took['output_tokens']:,}"
        right = f"{_percent(own['turn_accuracy'])} / {_percent(own['false_negatives'])}"
        rows.append((split, str(own["turns"]), f"{calls} / {took['calls']:,}", f"{tokens} / {spent}", right))
    head = (
        "split",
        "turns",
        "calls foretold / made",
        "tokens foretold / counted",
        "accuracy / wrongly empty",
    )
    return markdown(head, rows)


def _percent(share: float) -> str:
    return f"{100 * share:.1f}"


TABLES = {
    "conversations": conversations,
    "restaurants": restaurants,
    "restaurants-needs": restaurants_needs,
    "restaurants-stages": restaurants_stages,
    "restaurants-served": restaurants_served,
}
