"""Fits the weights by which `local` says how surely a query is what was asked.

    python -m experiments.local.fit_confidence --data-dir DIR --strangers DIR [--out FILE]

A question of a source counts as right where some columns of the query's rows hold those of the right query. Fitted on
the open half of the strangers' sources, on the development half of the everyday questions, and on the databases of
Spider's validation split that are named here; the others are only counted. Of sources that were asked before anybody
looked at them, what was made of their questions then (`first_asked.jsonl`) is taken in place of what is made now. A
database or source is never on both sides of a fold. Sources that were asked first after that (`asked_later.jsonl`) only
show how the weights hold.
"""

from __future__ import annotations

import argparse
import json
import sqlite3
import tempfile
import tomllib
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import date
from itertools import pairwise
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow.parquet as pq
from experiments.local import everyday
from experiments.strangers.run import QUESTIONS, gold_rows, is_right
from experiments.strangers.sources import SOURCES, build
from scipy.stats import binomtest
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import LeaveOneGroupOut, cross_val_predict

import almanaq
from almanaq.agent.local.parser import LocalParser
from almanaq.agent.local.understand import understand

OPEN = (
    *("battle_death", "concert_singer", "cre_Doc_Template_Mgt", "employee_hire_evaluation", "museum_visit"),
    *("orchestra", "poker_player", "singer", "tvshow", "world_1", "car_1", "course_teach", "flight_2", "pets_1"),
)
"""Databases of Spider that were looked at; the others of the split are kept aside."""
LEFT_OUT = "wta_1"
"""Its database is cut down."""
WEIGHTS = Path("src/almanaq/agent/local/confidence.json")
THRESHOLDS = (0.5, 0.6, 0.7, 0.8, 0.85, 0.9, 0.95)
BANDS = (0.0, 0.7, 0.85, 0.9, 0.95, 0.98)
FIRST = Path(__file__).parent / "first_asked.jsonl"
"""What the questions of sources rested on when they were asked first, and whether the query was right."""
LATER = Path(__file__).parent / "asked_later.jsonl"
"""The same of sources that are no part of the fit."""
Rows = Callable[[], Iterable[Sequence[Any]]]


@dataclass(frozen=True, slots=True)
class Seen:
    """A question with its query: where it is from, its features (None without a query), and whether it is right."""

    group: str
    kept: bool
    features: dict[str, float] | None
    right: bool


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--data-dir", type=Path, required=True)
    arguments.add_argument("--strangers", type=Path, required=True)
    arguments.add_argument("--out", type=Path, default=WEIGHTS)
    given = arguments.parse_args()
    first = list(asked_first(FIRST))
    apart = {each.group for each in (*first, *asked_first(LATER))}
    now = (each for each in strangers(given.strangers) if each.group not in apart)
    seen = [*first, *now, *everyday_questions(), *spider(given.data_dir)]
    record = fit(seen)
    given.out.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")
    print(json.dumps({name: value for name, value in record.items() if name != "weights"}, indent=1))


def fit(seen: Sequence[Seen]) -> dict[str, Any]:
    """Return the weights, and how precision and coverage depend on the threshold: by folds, and on what
    is kept aside.
    """
    names = sorted({name for each in seen if each.features for name in each.features})
    usable = [each for each in seen if each.features is not None]
    x = np.array([[each.features.get(name, 0.0) for name in names] for each in usable if each.features is not None])
    y = np.array([each.right for each in usable])
    kept = np.array([each.kept for each in usable])
    groups = np.array([each.group for each in usable])
    model = LogisticRegression(C=0.3, max_iter=5000)
    folds = cross_val_predict(
        model, x[~kept], y[~kept], groups=groups[~kept], cv=LeaveOneGroupOut(), method="predict_proba"
    )[:, 1]
    opened = {each.group for each in asked_first(FIRST)}
    first = np.isin(groups[~kept], list(opened))
    model.fit(x[~kept], y[~kept])
    aside = model.predict_proba(x[kept])[:, 1]
    later = list(asked_first(LATER))
    told = np.array([[e.features.get(name, 0.0) for name in names] for e in later if e.features is not None])
    after, right = model.predict_proba(told)[:, 1], np.array([e.right for e in later if e.features is not None])
    weights = {name: round(float(weight), 4) for name, weight in zip(names, model.coef_[0], strict=True)}
    return {
        "command": "python -m experiments.local.fit_confidence --data-dir DIR --strangers DIR",
        "cross-validated by database": _table(folds, y[~kept], sum(not each.kept for each in seen)),
        "of these, first asked": _table(folds[first], y[~kept][first], sum(each.group in opened for each in seen)),
        "kept aside": _table(aside, y[kept], sum(each.kept for each in seen)),
        "asked first after the fit": _table(after, right, len(later)),
        "reliability": {
            "cross-validated by database": _reliability(folds, y[~kept]),
            "of these, first asked": _reliability(folds[first], y[~kept][first]),
            "kept aside": _reliability(aside, y[kept]),
            "asked first after the fit": _reliability(after, right),
        },
        "weights": {"bias": round(float(model.intercept_[0]), 4), **weights},
    }


def _table(p: Any, y: Any, asked: int) -> list[dict[str, float]]:
    return [
        {
            "threshold": at,
            "coverage": round(float((p >= at).sum() / asked), 3),
            "precision": round(float(y[p >= at].mean()), 3),
        }
        for at in THRESHOLDS
        if (p >= at).any()
    ]


def _reliability(p: Any, y: Any) -> list[dict[str, float]]:
    """Return, for bands of the probability that was said, how often the query was right, with a 95 % interval."""
    found = []
    for low, high in pairwise((*BANDS, 1.0 + 1e-9)):
        inside = (p >= low) & (p < high)
        if inside.any():
            interval = binomtest(int(y[inside].sum()), int(inside.sum())).proportion_ci(method="wilson")
            told, right = float(p[inside].mean()), float(y[inside].mean())
            figures = {"said": told, "right": right, "low": interval.low, "high": interval.high}
            found.append({"queries": int(inside.sum()), **{name: round(value, 3) for name, value in figures.items()}})
    return found


def _seen(
    connection: almanaq.Connection, questions: Iterable[tuple[str, Rows | None]], group: str, kept: bool, today: date
) -> Iterator[Seen]:
    vocabulary = LocalParser.over(connection.engine, lambda: today).vocabulary(connection.catalog)
    for question, gold in questions:
        understood = understand(question, vocabulary)
        if understood.suql is None:
            yield Seen(group, kept, None, False)
        else:
            yield Seen(group, kept, dict(understood.told), _is_right(connection, understood.suql, gold))


def _is_right(connection: almanaq.Connection, suql: str, gold: Rows | None) -> bool:
    try:
        rows = connection.sql(suql).rows
    except almanaq.AlmanaqError:
        return False
    return gold is not None and len(rows) < 5000 and is_right(rows, suql, list(gold()))


def asked_first(file: Path) -> Iterator[Seen]:
    """Yield the questions of sources as they were understood when nobody had looked at them."""
    for line in file.read_text("utf-8").splitlines():
        each = json.loads(line)
        yield Seen(f"strangers {each['source']}", False, each["features"], each["right"])


def strangers(folder: Path) -> Iterator[Seen]:
    """Yield the questions of the open sources."""
    for source in (source for source in SOURCES if source.half == "open"):
        opened = build(source, folder)
        asked = tomllib.loads((QUESTIONS / f"{source.name}.toml").read_text("utf-8"))["asked"]
        pairs = [(a["question"], _gold(opened, a["sql"]) if a.get("sql") else None) for a in asked]
        with almanaq.connect(str(opened), model="local", cache=False) as connection:
            yield from _seen(connection, pairs, f"strangers {source.name}", False, date.today())


def _gold(opened: Path, sql: str) -> Rows:
    return lambda: gold_rows(opened, sql)


def everyday_questions() -> Iterator[Seen]:
    """Yield the everyday questions of both halves."""
    for file in sorted(everyday.SOURCES.glob("*")):
        source = tomllib.loads(file.read_text("utf-8"))
        with tempfile.TemporaryDirectory() as folder, duckdb.connect() as gold:
            everyday.tables(gold, source)
            opened = everyday.written(gold, source, Path(folder))
            with almanaq.connect(str(opened), model="local", cache=False) as connection:
                for asked in source["asked"]:
                    kept = everyday.half(asked["question"]) == "report"
                    rows = gold.sql(asked["sql"]).fetchall()
                    pair = [(asked["question"], lambda rows=rows: rows)]
                    yield from _seen(connection, pair, f"everyday {file.stem}", kept, source["today"])


def spider(data_dir: Path) -> Iterator[Seen]:
    """Yield the questions of Spider's validation split."""
    rows = pq.read_table(data_dir / "spider" / "queries_validation.parquet").to_pylist()
    for name in sorted({row["database_id"] for row in rows} - {LEFT_OUT}):
        file = data_dir / "spider" / "database" / name / f"{name}.sqlite"
        with sqlite3.connect(f"file:{file}?mode=ro", uri=True) as gold:
            gold.text_factory = lambda raw: raw.decode("utf-8", "replace")
            pairs = [
                (row["query"], lambda sql=row["answer"]: gold.execute(sql).fetchall())
                for row in rows
                if row["database_id"] == name
            ]
            with almanaq.connect(str(file), model="local", cache=False) as connection:
                yield from _seen(connection, pairs, f"spider {name}", name not in OPEN, date.today())


if __name__ == "__main__":
    main()
