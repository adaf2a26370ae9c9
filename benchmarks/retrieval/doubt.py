"""Learn when to say that no table fits, from validation splits, and measure it on tables it was not learned from.

Each question is asked of corpora that hold its table and of corpora that do not: the whole corpus and, so that small
ones are judged as well, pieces of it of 100 and 10 tables. From a corpus without the table either the right tables
were taken away, which leaves those most like them, or it never held them. A logistic function of the figures of the
best table gives the chance that it fits; the threshold is where a set share of the answerable questions is refused.
Where words that go together take part (tables without titles), each question sees those learned without its fold,
which `learn.py --keep` left: those learned from the question itself would make it look surer than a new one.

    python benchmarks/retrieval/doubt.py DATA_DIR --out src/almanaq/retrieval/weights.json --keep DIR  # after learn.py
"""

from __future__ import annotations

import argparse
import json
import pickle
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path

import numpy as np
from learn import FOLDS, KEPT_ASSOCIATION, KINDS, fold_of, hash_of, read_record, sample_questions, write_record
from sklearn.linear_model import LogisticRegression

from almanaq.corpus.table import Table, TableId, parse_fields
from almanaq.models.embedders.vector_store import VectorStore
from almanaq.models.model_names import open_embedder
from almanaq.models.private_files import default_cache_folder
from almanaq.retrieval.dense import VIEW_ROWS, Aspects
from almanaq.retrieval.features import FEATURES, WordAssociation
from almanaq.retrieval.protocols import Databases, group_by_database
from almanaq.retrieval.rerank import DOUBT_FEATURES, Rerank, RerankIndex, ScoredCandidates, Styles, is_statement
from almanaq.retrieval.stored import build_index
from almanaq.retrieval.stored_search import StoredHybrid, StoredRerank
from almanaq_bench.question_sets import Question, open_dataset

REFUSED = {"stored-words": 0.01}
"""Share of the answerable that is refused, where it is not USUALLY: an index by words alone knows no synonyms."""
USUALLY = 0.02
FEWEST = 200  # cases of a dataset and size that weigh as much as any other's
QUESTIONS = 400  # of a dataset, for each size of corpus
PIECES = (100, 10)
AMONG = 10  # first tables; a question whose table is further back than that is left out
FIGURES = (*FEATURES, *DOUBT_FEATURES)


@dataclass
class Cases:
    """Figures of best tables, whether they fit, and which dataset, size and fold each is of."""

    x: list[list[float]] = field(default_factory=list)
    fits: list[bool] = field(default_factory=list)
    group: list[str] = field(default_factory=list)
    fold: list[int] = field(default_factory=list)

    def add(self, figures: dict[str, float], fits: bool, group: str, fold: int) -> None:
        self.x.append([figures[name] for name in FIGURES])
        self.fits.append(fits)
        self.group.append(group)
        self.fold.append(fold)


Kept = dict[tuple[bool, int] | str, WordAssociation]  # words that go together, as learn.py keeps them


def cases(data: Path, kind: str, sight: str, store: VectorStore, kept: Kept) -> dict[bool, Cases]:
    """Return the cases of a kind of corpus by style: of statements, and of questions."""
    made = {False: Cases(), True: Cases()}
    datasets, fields = KINDS[kind]
    for name in datasets:
        tables = list(open_dataset(data / name).corpus("validation"))
        asked = sample_questions(data, name, QUESTIONS)
        several = len({table.id.database for table in tables}) > 1
        for size, piece in _pieces(tables, several):
            index = index_tables(piece, fields, sight, store)
            for question, own in _choose_questions(asked, piece, size, name):
                style = is_statement(question.text) and not several
                fold = fold_of(question, several)
                for figures, fits in _both(index, question, own, _relearn_without(index.weights, kept, fold)):
                    made[style].add(figures, fits, f"{name}, {size} tables", fold)
    return made


@dataclass
class Indexed:
    """A piece of a corpus, indexed; tables are numbered in its order."""

    ids: Sequence[TableId]
    databases: Databases
    weights: Styles
    scored: Callable[[str, Styles], ScoredCandidates]


def _relearn_without(weights: Styles, kept: Kept, fold: int) -> Styles:
    """Return weights with the words that go together learned without a fold, where they have such words."""
    if weights.questions.association is None:
        return weights
    questions, statements = (
        replace(each, association=kept[style, fold])
        for style, each in enumerate((weights.questions, weights.statements))
    )
    return Styles(questions, statements)


class Remembering:
    """An embedder that looks up what its store holds: each question is asked of several corpora."""

    cheap = True

    def __init__(self, store: VectorStore) -> None:
        self.name, self.embed = store.embedder.name, store.vectors


def index_tables(tables: Sequence[Table], fields: str, sight: str, store: VectorStore) -> Indexed:
    """Index tables in memory, or on disk where the sight is that of an index on disk."""
    ids = [table.id for table in tables]
    if sight.startswith("stored"):
        with tempfile.TemporaryDirectory() as folder:
            # The files stay mapped when their folder is gone.
            kept = build_index(tables, Path(folder), parse_fields(fields), store=store if sight == "stored" else None)
        dense = StoredHybrid(kept, Remembering(store)) if sight == "stored" else None
        stored = StoredRerank(kept, dense)
        return Indexed(ids, group_by_database(ids), stored.weights, partial(_score_question_on_disk, stored))
    aspects = None if sight == "lexical" else Aspects(store, rows=VIEW_ROWS if sight == "rows" else 0)
    made = Rerank(aspects=aspects).index(tables, parse_fields(fields))
    return Indexed(ids, made.databases, made.weights, partial(_score_question, made))


def _score_question(index: RerankIndex, question: str, weights: Styles) -> ScoredCandidates:
    ((scored, _),) = replace(index, weights=weights).score_candidates([question])
    return scored


def _score_question_on_disk(index: StoredRerank, question: str, weights: Styles) -> ScoredCandidates:
    scored, _ = replace(index, own=weights).score_candidates(question)
    return scored


def _pieces(tables: Sequence[Table], several: bool) -> Iterator[tuple[str, Sequence[Table]]]:
    """Yield the corpus and pieces of it: all its tables, for each size some drawn by hash, or single databases."""
    yield "all", tables
    if several:
        for database in dict.fromkeys(table.id.database for table in tables):
            yield "one database's", [table for table in tables if table.id.database == database]
        return
    drawn = sorted(tables, key=lambda table: hash_of(str(table.id)))
    for size in PIECES:
        for start in range(0, min(len(drawn), 4 * size if size > 10 else 250), size):
            yield str(size), drawn[start : start + size]


def _choose_questions(
    asked: Sequence[Question], piece: Sequence[Table], size: str, name: str
) -> Iterator[tuple[Question, bool]]:
    """Yield the questions whose table is in a piece, and as many whose is not."""
    held = {table.id for table in piece}
    inside = [question for question in asked if question.gold[0] in held]
    yield from ((question, True) for question in inside)
    if size != "all":
        rest = [question for question in asked if question.gold[0] not in held]
        key = str(piece[0].id) + name
        drawn = sorted(rest, key=lambda question: hash_of(key + question.id))
        yield from ((question, False) for question in drawn[: len(inside)])


def _both(index: Indexed, question: Question, own: bool, weights: Styles) -> Iterator[tuple[dict[str, float], bool]]:
    """Yield the figures as the corpus is, and, where it holds the right tables, as it were without them."""
    scored = index.scored(question.text, weights)
    if not len(scored.tables):
        return  # nothing shares a word: there is nothing to doubt
    if not own:
        yield scored.figures(len(index.ids)), False
        return
    right = {table for table, name in enumerate(index.ids) if name in question.gold}
    several = len(index.databases.starts) > 2
    if right.intersection(scored.tables[:AMONG].tolist()):
        yield scored.figures(len(index.ids)), True
    home = index.databases.of[next(iter(right))]
    gone = [index.databases.of[table] == home if several else int(table) in right for table in scored.tables]
    if not all(gone):
        yield _without(scored, np.array(gone)).figures(len(index.ids)), False


def _without(scored: ScoredCandidates, gone: np.ndarray) -> ScoredCandidates:
    kept = {name: each[~gone] for name, each in scored.searched.items()}
    return replace(
        scored, tables=scored.tables[~gone], scores=scored.scores[~gone], features=scored.features[~gone], searched=kept
    )


def learn(made: Cases, refused_at_most: float) -> tuple[dict[str, object], dict[str, object]]:
    """Return the function that is learned from all folds, and what held-out folds measure by dataset and size."""
    x, fits, groups, folds = np.array(made.x), np.array(made.fits), np.array(made.group), np.array(made.fold)
    names, counts = np.unique(groups, return_counts=True)
    # A handful of cases must not weigh as much as a whole dataset.
    size = dict(zip(names, np.maximum(counts, FEWEST), strict=True))
    weight = np.array([1 / size[group] for group in groups])
    weight *= len(x) / weight.sum()
    chance = np.zeros(len(x))
    for fold in range(FOLDS):
        out = folds == fold
        if out.any():
            model = _fit(x[~out], fits[~out], weight[~out])
            chance[out] = _chance(model, x[out])
    threshold = _quantile(chance[fits], weight[fits], refused_at_most)
    told: dict[str, object] = {}
    for name in names[counts >= 20]:
        own = groups == name
        refused = chance[own] < threshold
        wrong, right = refused & fits[own], refused & ~fits[own]
        told[str(name)] = {
            "answerable": int(fits[own].sum()),
            "without": int((~fits[own]).sum()),
            "precision": round(float(right.sum() / max(1, refused.sum())), 3),
            "recall": round(float(right.sum() / max(1, (~fits[own]).sum())), 3),
            "refused_answerable": round(float(wrong.sum() / max(1, fits[own].sum())), 4),
        }
    told["calibration"] = _calibration(chance, fits, weight)
    coefficients, bias = _fit(x, fits, weight)
    worth = {
        name: round(float(value), 3) for name, value in zip(FIGURES, coefficients, strict=True) if abs(value) > 0.0005
    }
    return {"worth": worth, "bias": round(float(bias), 3), "threshold": round(float(threshold), 4)}, told


def _shared(name: str) -> list[str]:
    """Return the other sets of weights that are doubted alike: those with vectors of rows, and
    schemas without prose.
    """
    names = [name]
    if name.startswith("databases"):
        names.append(f"bare-{name}")
    return [*names[1:], *(each.replace("-short", "-rows") for each in names if each.endswith("-short"))]


def _fit(x: np.ndarray, fits: np.ndarray, weight: np.ndarray) -> tuple[np.ndarray, float]:
    spread = x.std(0) + 1e-6
    model = LogisticRegression(C=1.0, max_iter=5000).fit(x / spread, fits, sample_weight=weight)
    return model.coef_[0] / spread, float(model.intercept_[0])


def _chance(model: tuple[np.ndarray, float], x: np.ndarray) -> np.ndarray:
    return 1 / (1 + np.exp(-(x @ model[0] + model[1])))


def _quantile(values: np.ndarray, weight: np.ndarray, share: float) -> float:
    order = np.argsort(values)
    return float(values[order][np.searchsorted(np.cumsum(weight[order]) / weight.sum(), share)])


def _calibration(chance: np.ndarray, fits: np.ndarray, weight: np.ndarray) -> dict[str, float]:
    """Return by tenth of the chance the share that fits: near the middle of each where it is calibrated."""
    tenth = np.minimum((chance * 10).astype(int), 9)
    return {
        f"{n / 10:.1f}": round(float(np.average(fits[tenth == n], weights=weight[tenth == n])), 3)
        for n in range(10)
        if (tenth == n).sum() >= 20
    }


def main() -> None:
    """Learn for every set of weights that the file holds, and add it."""
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("data", type=Path)
    options.add_argument("--out", type=Path, required=True)
    options.add_argument("--cache", type=Path, default=default_cache_folder())
    options.add_argument("--keep", type=Path, help="the folder that learn.py kept its examples in")
    options.add_argument("--kinds", default="titled,untitled,databases")
    options.add_argument("--sights", default="lexical,short,stored-words,stored")
    asked = options.parse_args()
    store = VectorStore(asked.cache, open_embedder("local"))
    record = read_record(asked.out)
    if "untitled" in asked.kinds.split(",") and not asked.keep:
        options.error("tables without titles need --keep: what learn.py kept of words that go together")
    kept: Kept = pickle.loads((asked.keep / KEPT_ASSOCIATION).read_bytes()) if asked.keep else {}
    for kind in asked.kinds.split(","):
        for sight in asked.sights.split(","):
            for statements, made in cases(asked.data, kind, sight, store, kept).items():
                if len(made.x) < 500:
                    continue
                name = f"{kind}-statements-{sight}" if statements else f"{kind}-{sight}"
                found, told = learn(made, REFUSED.get(sight, USUALLY))
                record.setdefault("doubt", {}).update(dict.fromkeys((name, *_shared(name)), found))
                record["provenance"].setdefault("doubt_measured", {})[name] = told
                print(name, json.dumps(told), flush=True)
    record["provenance"]["doubt_refused"] = {"usually": USUALLY, **REFUSED}
    write_record(asked.out, record)


if __name__ == "__main__":
    main()
