"""Learn the reranker's weights on validation splits, and measure them on tables that they were not learned from.

A conditional logistic model: among a question's candidates, the gold tables should score highest. Five folds by the
gold table (by its database where there are several): each question's reported ranking uses weights learned without
any question about its table. The weights that are written are learned from all folds. Then `doubt.py` learns when to
say that no table fits.

    python benchmarks/retrieval/learn.py DATA_DIR --out src/almanaq/retrieval/weights.json
"""

from __future__ import annotations

import argparse
import hashlib
import json
import pickle
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import associations
import numpy as np
from scipy.optimize import minimize

from almanaq.corpus.table import parse_fields
from almanaq.models.embedders.vector_store import VectorStore
from almanaq.models.model_names import open_embedder
from almanaq.models.private_files import default_cache_folder
from almanaq.retrieval.dense import Aspects
from almanaq.retrieval.features import FEATURES, WordAssociation
from almanaq.retrieval.protocols import BATCH, Databases, Hit, top_k
from almanaq.retrieval.rerank import CANDIDATES, Rerank, Weights, add_database_scores, fuse_scores, is_statement
from almanaq_bench.question_sets import Question, open_dataset
from almanaq_bench.run_measures import route_databases

PROVENANCE = Path(__file__).parent / "results" / "weights.json"
FOLDS = 5
PENALTY = 5e-5
MOST_QUESTIONS = 3000  # of a dataset: drawn by hash, so that one with many statements does not take all day
FEWEST_QUESTIONS = 200  # of a dataset in one style, to be learned from
PAGES = ("fetaqa", "ottqa", "tabfact")
SCHEMAS = ("spider", "bird")
KINDS = {
    "titled": (PAGES, "title,section,header,cells"),
    "untitled": (PAGES, "header,cells"),
    "databases": (SCHEMAS, "title,section,header,cells,description,keys,database"),
    "bare-databases": (SCHEMAS, "title,section,header,cells"),
}
WORDS = ("bm25", "bm25_title", "company")
SHORT = ("dense", "dense_title", "dense_header", "dense_description")
SIGHTS = {
    "lexical": WORDS,
    "short": (*WORDS, *SHORT),
    "rows": (*WORDS, *SHORT, "dense_row"),
    "stored-words": ("bm25", "company"),
    "stored": ("bm25", "company", "dense"),
}
ASSOCIATION = FEATURES.index("association")
KEPT_ASSOCIATION = "association.pickle"
ASSOCIATION_SIGHT = "short"  # whose features are learned along with the words that go together


@dataclass
class Examples:
    """The candidates of a dataset's questions in one sight.

    `x` by question, candidate, feature; `tables` and `gold` by question, candidate; the rest by question.
    """

    dataset: str
    databases: Databases
    tables: np.ndarray
    x: np.ndarray
    gold: np.ndarray
    wanted: np.ndarray
    folds: np.ndarray
    home: np.ndarray
    statement: np.ndarray

    @property
    def several(self) -> bool:
        return len(self.databases.starts) > 2


def sample_questions(folder: Path, name: str, most: int = MOST_QUESTIONS) -> list[Question]:
    """Return a sample of a dataset's validation questions, the same every time."""
    questions = open_dataset(folder / name).questions("validation")
    return sorted(questions, key=lambda question: hash_of(question.id + question.text))[:most]


def fold_of(question: Question, several: bool) -> int:
    """Return the fold of a question: that of its gold table, or of its gold database."""
    return hash_of(question.gold[0].database if several else str(question.gold[0])) % FOLDS


def hash_of(text: str) -> int:
    """Return a number that is drawn by a text."""
    return int(hashlib.sha256(text.encode()).hexdigest()[:15], 16)


def collect(folder: Path, name: str, fields: str, store: VectorStore) -> dict[str, Examples]:
    """Return the examples of a dataset's validation split, by sight; features are computed once for all of them."""
    corpus, asked = open_dataset(folder / name).corpus("validation"), sample_questions(folder, name)
    index = Rerank(aspects=Aspects(store), weights=Weights("none", {})).index(corpus, parse_fields(fields))
    number = {table: place for place, table in enumerate(index.ids)}
    databases = index.databases
    rows: dict[str, list[tuple[np.ndarray, np.ndarray]]] = {sight: [] for sight in SIGHTS}
    for start in range(0, len(asked), BATCH):
        batch = asked[start : start + BATCH]
        scores = index.scores([question.text for question in batch])
        seen = {sight: _collect_scores(scores, names, databases) for sight, names in SIGHTS.items()}
        first = {sight: fuse_scores(own) for sight, own in seen.items()}
        for row, question in enumerate(batch):
            chosen = {sight: _fill_candidates(top_k(own[row], CANDIDATES), len(number)) for sight, own in first.items()}
            every = np.unique(np.concatenate(list(chosen.values())))
            features = index.featurizer.features(question.text, every)
            for sight, tables in chosen.items():
                own = [
                    seen[sight][each][row][tables] if each in seen[sight] else np.zeros(len(tables))
                    for each in names_of(sight)
                ]
                made = np.column_stack([features[np.searchsorted(every, tables)], *own]).astype(np.float32)
                rows[sight].append((tables, made))
    several = len(databases.starts) > 2
    gold = [[number[table] for table in question.gold] for question in asked]
    told = (
        np.array([len(own) for own in gold]),
        np.array([fold_of(question, several) for question in asked]),
        np.array([databases.of[own[0]] for own in gold]),
        np.array([is_statement(question.text) and not several for question in asked]),
    )
    made = {}
    for sight, own in rows.items():
        held = np.array([np.isin(tables, each) for (tables, _), each in zip(own, gold, strict=True)])
        made[sight] = Examples(
            name, databases, np.array([t for t, _ in own]), np.array([x for _, x in own]), held, *told
        )
    return made


def names_of(sight: str) -> tuple[str, ...]:
    """Return the searches of a sight, in the order of the features' columns."""
    return tuple(SIGHTS[sight])


def _collect_scores(scores: dict[str, np.ndarray], names: Sequence[str], databases: Databases) -> dict[str, np.ndarray]:
    seen = {name: scores[name] for name in names if name in scores and name != "company"}
    seen["company"] = databases.pool(fuse_scores(seen))
    return seen


def _fill_candidates(chosen: np.ndarray, size: int) -> np.ndarray:
    """Fill up with others where too few tables share a word, so that all questions have as many candidates."""
    wanted = min(CANDIDATES, size)
    rest = np.setdiff1d(np.arange(size), chosen)[: wanted - len(chosen)] if len(chosen) < wanted else chosen[:0]
    return np.concatenate([chosen, rest])


def fit(parts: list[tuple[np.ndarray, np.ndarray]]) -> np.ndarray:
    """Return the weights that make gold candidates likeliest; every dataset counts the same."""
    parts = [(x[gold.any(1)], gold[gold.any(1)]) for x, gold in parts]

    def loss(weights: np.ndarray) -> tuple[float, np.ndarray]:
        total, slope = 0.0, np.zeros_like(weights)
        for x, gold in parts:
            scores = x @ weights.astype(np.float32)
            odds = np.exp(scores - scores.max(1, keepdims=True))
            odds /= odds.sum(1, keepdims=True)
            right = np.where(gold, odds, 0)
            share = np.maximum(right.sum(1, keepdims=True), 1e-12)
            total -= np.log(share).sum() / len(x)
            slope += np.tensordot(odds - right / share, x, 2) / len(x)
        total, slope = total / len(parts), slope / len(parts)
        slope += 2 * PENALTY * weights
        slope[ASSOCIATION] = 0  # its words were learned for it to count as it is
        return total + PENALTY * weights @ weights, slope

    start = np.zeros(parts[0][0].shape[2])
    start[ASSOCIATION] = any(x[..., ASSOCIATION].any() for x, _ in parts)
    return minimize(loss, start, jac=True, method="L-BFGS-B", options={"maxiter": 300}).x


def measure(examples: Examples, scores: np.ndarray) -> dict[str, float]:
    """Return recall, and for databases how often the first lies in the right one and all gold is near the top."""
    databases = examples.databases
    if examples.several:
        scores = np.array([add_database_scores(s, databases, t) for s, t in zip(scores, examples.tables, strict=True)])
    order = np.argsort(-scores, axis=1, kind="stable")
    hits = np.take_along_axis(examples.gold, order, 1)
    found = {f"recall@{k}": float((hits[:, :k].sum(1) / examples.wanted).mean()) for k in (1, 5, 10)}
    if examples.several:
        ranked = np.take_along_axis(examples.tables, order, 1)
        found["database_recall@1"] = float((databases.of[ranked[:, 0]] == examples.home).mean())
        best = -np.sort(-scores, axis=1)
        routed = [_route_question(databases.of[t[:50]], s[:50]) for t, s in zip(ranked, best, strict=True)]
        found["routed_database_recall@1"] = float((np.array(routed) == examples.home).mean())
        found |= {f"complete_recall@{k}": float((hits[:, :k].sum(1) == examples.wanted).mean()) for k in (5, 10)}
    return {name: round(value, 4) for name, value in found.items()}


def _route_question(databases: np.ndarray, scores: np.ndarray) -> int:
    from almanaq.corpus.table import TableId

    hits = tuple(Hit(TableId(str(d), str(n)), float(s)) for n, (d, s) in enumerate(zip(databases, scores, strict=True)))
    return int(route_databases(hits)[0][0])


@dataclass
class Associations:
    """What goes together, by what it was learned from: a style without a fold (-1: all), or all but one dataset."""

    bags: associations.Bags
    learned: dict[tuple[bool, int] | str, WordAssociation]

    def column(self, sets: list[Examples], number: int, learned: tuple[bool, int] | str) -> np.ndarray:
        """Return the feature for a dataset's questions and their candidates in a sight."""
        known, every = self.learned[learned], np.arange(len(sets[number].gold))
        return self.bags.scores(number, every, known.asking @ known.naming.T, sets[number].tables)


def learn_association(
    folder: Path, sets: list[Examples], kept: dict[tuple[bool, int] | str, WordAssociation]
) -> Associations:
    """Learn what goes together from everything, without each fold, and without each dataset; `kept` was learned."""
    opened = [(sample_questions(folder, each.dataset), open_dataset(folder / each.dataset)) for each in sets]
    made = Associations(
        associations.bags([(asked, list(dataset.corpus("validation"))) for asked, dataset in opened]), kept
    )
    if kept:
        return made

    def learn_fold(chosen: list[np.ndarray]) -> WordAssociation:
        own = {n: np.flatnonzero(each & sets[n].gold.any(1)) for n, each in enumerate(chosen)}
        parts = {n: (own[n], sets[n].x, sets[n].gold, sets[n].tables) for n in own if len(own[n])}
        return associations.cut(made.bags, associations.learn_pairs(made.bags, parts, PENALTY))

    for statements in (False, True):
        of = [(each.statement == statements) for each in sets]
        of = [own & (own.sum() >= FEWEST_QUESTIONS) for own in of]
        for fold in (-1, *range(FOLDS)):
            made.learned[statements, fold] = learn_fold(
                [own & (each.folds != fold) for own, each in zip(of, sets, strict=True)]
            )
            print("association", statements, fold, flush=True)
    for each in sets:
        made.learned[each.dataset] = learn_fold([np.full(len(o.gold), o is not each) for o in sets])
    return made


def _with(each: Examples, column: np.ndarray | None) -> np.ndarray:
    if column is None:
        return each.x
    x = each.x.copy()
    x[..., ASSOCIATION] = column
    return x


def learn(
    sets: list[Examples], *, statements: bool, learned_words: Associations | None
) -> tuple[np.ndarray, list[np.ndarray]]:
    """Return the weights of a style learned from everything, and the scores of held-out questions of that style."""
    chosen = [each.statement == statements for each in sets]
    large = [n for n, own in enumerate(chosen) if own.sum() >= FEWEST_QUESTIONS]
    held = [np.full(each.gold.shape, np.nan, dtype=np.float32) for each in sets]
    for fold in range(FOLDS):
        xs = seen_with(sets, learned_words, (statements, fold))
        out = [own & (sets[n].folds != fold) for n, own in enumerate(chosen)]
        weights = fit([(xs[n][out[n]], sets[n].gold[out[n]]) for n in large])
        for x, each, own, scores in zip(xs, sets, chosen, held, strict=True):
            mine = own & (each.folds == fold)
            scores[mine] = x[mine] @ weights.astype(np.float32)
    xs = seen_with(sets, learned_words, (statements, -1))
    return fit([(xs[n][chosen[n]], sets[n].gold[chosen[n]]) for n in large]), held


def seen_with(
    sets: list[Examples], learned_words: Associations | None, learned: tuple[bool, int] | str
) -> list[np.ndarray]:
    """Return the features of each dataset, with what goes together where that is learned."""
    return [
        _with(each, learned_words.column(sets, n, learned) if learned_words else None) for n, each in enumerate(sets)
    ]


def learn_kind(
    kind: str, sight: str, sets: list[Examples], learned_words: Associations | None
) -> tuple[dict[str, np.ndarray], dict[str, dict[str, object]]]:
    """Return the weights of a kind by name, and what held-out folds measure beside the untuned order and in-sample."""
    styles = (False, True) if any(each.statement.any() for each in sets) else (False,)
    learned, held = {}, [np.zeros(each.gold.shape, dtype=np.float32) for each in sets]
    seen = [np.zeros(each.gold.shape, dtype=np.float32) for each in sets]
    for statements in styles:
        weights, scores = learn(sets, statements=statements, learned_words=learned_words)
        learned[f"{kind}-statements-{sight}" if statements else f"{kind}-{sight}"] = weights
        xs = seen_with(sets, learned_words, (statements, -1))
        for x, each, all_scores, own, in_sample in zip(xs, sets, held, scores, seen, strict=True):
            mine = each.statement == statements
            all_scores[mine] = own[mine]
            in_sample[mine] = x[mine] @ weights.astype(np.float32)
    elsewhere = [_elsewhere(n, sets, learned_words) for n in range(len(sets))]
    untuned = [-np.tile(np.arange(each.gold.shape[1], dtype=np.float32), (len(each.gold), 1)) for each in sets]
    told = {
        each.dataset: {
            "questions": len(each.gold),
            "held_out": measure(each, own),
            "in_sample": measure(each, in_sample),
            "other_datasets": measure(each, others),
            "untuned": measure(each, first),
        }
        for each, own, in_sample, others, first in zip(sets, held, seen, elsewhere, untuned, strict=True)
    }
    return learned, told


def _elsewhere(number: int, sets: list[Examples], learned_words: Associations | None) -> np.ndarray:
    """Return the scores of a dataset's questions by weights that were learned from the other datasets only."""
    xs = seen_with(sets, learned_words, sets[number].dataset)
    weights = fit([(x, each.gold) for n, (x, each) in enumerate(zip(xs, sets, strict=True)) if n != number])
    return xs[number] @ weights.astype(np.float32)


def read_record(file: Path) -> dict[str, dict[str, object]]:
    """Return the weights of a file, and from what and how they were learned."""
    record = json.loads(file.read_text()) if file.exists() else {"weights": {}}
    record["provenance"] = json.loads(PROVENANCE.read_text()) if PROVENANCE.exists() else {"measured": {}}
    return record


def write_record(file: Path, record: dict[str, dict[str, object]]) -> None:
    """Write weights, a set a line, and beside the benchmarks from what and how they were learned."""
    PROVENANCE.write_text(json.dumps(record["provenance"], indent=1) + "\n")
    parts = []
    for part in ("weights", "doubt"):
        rows = ",\n".join(f"  {json.dumps(name)}: {json.dumps(own)}" for name, own in record.get(part, {}).items())
        parts.append(f" {json.dumps(part)}: {{\n{rows}\n }}")
    file.write_text("{\n" + ",\n".join(parts) + "\n}\n")


def _digest(folder: Path, name: str) -> dict[str, str]:
    return {
        file: hashlib.sha256((folder / name / file).read_bytes()).hexdigest()[:16]
        for file in ("corpus.parquet", "queries_validation.parquet")
    }


def _collect_examples(
    folder: Path, name: str, fields: str, store: VectorStore, keep: Path | None
) -> dict[str, Examples]:
    file = keep / f"{name}-{fields.count(',')}.pickle" if keep else None
    if file and file.exists():
        return pickle.loads(file.read_bytes())
    made = collect(folder, name, fields, store)
    if file:
        file.write_bytes(pickle.dumps(made))
    return made


def _association(asked: argparse.Namespace, sets: list[Examples]) -> Associations:
    """Return what goes together, learned unless it is kept, and write it beside the weights."""
    file = asked.keep / KEPT_ASSOCIATION if asked.keep else None
    made = learn_association(asked.data, sets, pickle.loads(file.read_bytes()) if file and file.exists() else {})
    if file:
        file.write_bytes(pickle.dumps(made.learned))
    associations.write(asked.out.with_name("word_association.npz"), made.learned[False, -1], made.learned[True, -1])
    return made


def main() -> None:
    """Learn what is asked for and write it."""
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("data", type=Path)
    options.add_argument("--out", type=Path, required=True)
    options.add_argument("--cache", type=Path, default=default_cache_folder())
    options.add_argument("--keep", type=Path, help="a folder where collected examples are kept from run to run")
    options.add_argument("--kinds", default=",".join(KINDS))
    options.add_argument("--sights", default=",".join(SIGHTS))
    asked = options.parse_args()
    store = VectorStore(asked.cache, open_embedder("local"))
    file: Path = asked.out
    record = read_record(file)
    for kind in asked.kinds.split(","):
        datasets, fields = KINDS[kind]
        collected = [_collect_examples(asked.data, name, fields, store, asked.keep) for name in datasets]
        learned_words = (
            _association(asked, [each[ASSOCIATION_SIGHT] for each in collected]) if kind == "untitled" else None
        )
        for sight in asked.sights.split(","):
            learned, told = learn_kind(kind, sight, [each[sight] for each in collected], learned_words)
            labels = (*FEATURES, *names_of(sight))
            for name, weights in learned.items():
                named = zip(labels, map(float, weights), strict=True)
                record["weights"][name] = {label: round(each, 3) for label, each in named if abs(each) > 0.0005}
            record["provenance"]["measured"][f"{kind}-{sight}"] = told
            print(kind, sight, json.dumps(told), flush=True)
    record["provenance"] |= {
        "script": "benchmarks/retrieval/learn.py",
        "split": "validation",
        "folds": f"{FOLDS}, by gold table; by database where there are several",
        "penalty": PENALTY,
        "word_association": {
            "penalty": associations.PENALTY,
            "rank": associations.RANK,
            "questions": associations.FEWEST_ASKED,
            "headers": associations.FEWEST_NAMED,
        },
        "most_questions_per_dataset": MOST_QUESTIONS,
        "embedder": store.embedder.name,
        "data": {name: _digest(asked.data, name) for name in (*PAGES, *SCHEMAS)},
    }
    write_record(file, record)


if __name__ == "__main__":
    main()
