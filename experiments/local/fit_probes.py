"""Fits the probes by which `local` reads clauses that hold no known words (models/extractive/meaning.py).

    python experiments/local/fit_probes.py [--write]

Learns from the cues of the lexicon, from exemplars.toml and from the wordings of the sample's development restaurants.
Three-fold over the wordings, and in each fold without the cues that a left-out wording holds: so a clause is read as
one whose words nobody foresaw. Prints how often its side is right (balanced, macro over attributes), how often it is
seen to be about its attribute, and how often a clause about another one is taken for it.
"""

from __future__ import annotations

import argparse
import random
import tomllib
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
from tools.sample.grammar import read_toml
from yes_no import QUESTIONS

import almanaq.sample
from almanaq.models.embedders.minilm import LocalEmbedder
from almanaq.models.embedders.vector_store import VectorStore
from almanaq.models.extractive.clauses import Clause, clauses, entries
from almanaq.models.extractive.meaning import LEAST_RELEVANCE, PROBES_FILE, Meaning, signs
from almanaq.models.extractive.polarity import matters
from almanaq.sample import load
from almanaq_bench.sample.truth import load_truth

BAD = frozenset(("wait", "noise"))
"""Concepts that are bad when they hold."""
RIDGE = 0.1
UNMENTIONED = 1_000
"""How many clauses that express no attribute are learned from, as examples of what no probe shall take for its own."""
SHOWN = 3
"""How many mentions of a wording are learned from: they differ in their slots."""


@dataclass(frozen=True, slots=True)
class Said:
    """A clause that says of a concept that it holds, or not: a cue of the lexicon, or a wording of the sample."""

    concept: str
    yes: bool
    text: str
    attribute: str = ""
    wording: str = ""


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--write", action="store_true")
    given = arguments.parse_args()
    cues, wordings, meaning = (
        [*_cues(), *_exemplars()],
        _wordings(),
        Meaning(VectorStore(None, LocalEmbedder()).vectors),
    )
    filler = [
        text for kind in read_toml("filler.toml").values() for text in kind if "{" not in text and "[" not in text
    ] + _unmentioned()
    seen, attributes, sides, found, taken = [], [], [], [], []
    names = sorted({said.wording for said in wordings})
    random.Random(0).shuffle(names)
    for fold in (set(names[k::3]) for k in range(3)):
        left = [said for said in wordings if said.wording in fold]
        stems = {said: _stems(said.text) for said in left}
        mine = {name: [stems[s] for s in left if s.concept == name] for name in {s.concept for s in left}}
        kept = [cue for cue in cues if not any(_holds(each, cue.text) for each in mine.get(cue.concept, ()))]
        fitted = Fit([*kept, *(said for said in wordings if said.wording not in fold)], filler, meaning)
        vectors = meaning.vectors([said.text for said in left])
        others = {name: fitted.without(name) for name in mine}
        for said, vector in zip(left, vectors, strict=True):
            side = -1.0 if said.concept in BAD else 1.0
            words = [*signs(_whole(said.text))]
            words[3:] = [side * value for value in words[3:]]
            leaning, valence = vector @ fitted.leaning[said.concept], side * (vector @ fitted.valence)
            seen.append([leaning, valence, side * (vector @ others[said.concept]), *words])
            attributes.append(said.attribute)
            sides.append(said.yes)
            found.append(vector @ fitted.relevance[said.concept])
            taken += [vector @ fitted.relevance[name] for name in mine if name != said.concept]
    rows, y, groups = np.array(seen), np.array(sides), np.array(attributes)
    known, unknown = rows[:, [0, 1, 3, 4, 5, 6, 7]], rows[:, 2:]
    print("side right:", _balanced(known, y, groups), "without a concept:", _balanced(unknown, y, groups))
    for least in (0.0, 0.15, 0.3, 0.45, 0.6, LEAST_RELEVANCE):
        seen_, taken_ = np.mean(np.array(found) >= least), np.mean(np.array(taken) >= least)
        print(f"from {least}: seen to be about it {seen_:.3f}, taken for another {taken_:.4f}; {len(y)} clauses")
    if given.write:
        whole = Fit([*cues, *wordings], filler, meaning)
        concepts = sorted(whole.relevance)
        np.savez_compressed(
            PROBES_FILE,
            concepts=np.array(concepts),
            relevance=np.array([whole.relevance[name] for name in concepts], np.float16),
            leaning=np.array([whole.leaning[name] for name in concepts], np.float16),
            valence=whole.valence.astype(np.float16),
            sides=np.array([-1.0 if name in BAD else 1.0 for name in concepts], np.float16),
            known=_logistic(known, y).astype(np.float16),
            unknown=_logistic(unknown, y).astype(np.float16),
        )


class Fit:
    """Ridge regressions from vectors: is a clause about a concept, to which side does it lean, is it good."""

    def __init__(self, said: list[Said], filler: list[str], meaning: Meaning) -> None:
        self.said = said
        self.vectors = meaning.vectors([each.text for each in said])
        self.concepts = np.array([each.concept for each in said])
        self.yes = np.array([1.0 if each.yes else -1.0 for each in said])
        self.good = self.yes * np.array([-1.0 if each.concept in BAD else 1.0 for each in said])
        others = meaning.vectors(filler)
        self.relevance, self.leaning = {}, {}
        pooled = np.concatenate([self.vectors, others])
        for name in sorted(set(self.concepts)):
            about = self.concepts == name
            target = np.concatenate([np.where(about, 1.0, -1.0), np.full(len(others), -1.0)])
            self.relevance[name] = _ridge(pooled, target)
            self.leaning[name] = _ridge(self.vectors[about], self.yes[about])
        self.valence = _ridge(self.vectors, self.good)

    def without(self, concept: str) -> np.ndarray:
        """Return the probe for good and bad, fitted to the other concepts only."""
        other = self.concepts != concept
        return _ridge(self.vectors[other], self.good[other])


def _ridge(vectors: np.ndarray, target: np.ndarray) -> np.ndarray:
    """Fit with both sides of equal weight."""
    share = np.where(target > 0, 0.5 / max(1, (target > 0).sum()), 0.5 / max(1, (target < 0).sum()))
    share = share * len(target) / 50
    weighted = vectors * share[:, None]
    return np.linalg.solve(weighted.T @ vectors + RIDGE * np.eye(vectors.shape[1]), weighted.T @ target)


def _logistic(rows: np.ndarray, y: np.ndarray) -> np.ndarray:
    from sklearn.linear_model import LogisticRegression

    model = LogisticRegression(class_weight="balanced").fit(rows, y)
    return np.concatenate([model.coef_[0], model.intercept_])


def _balanced(rows: np.ndarray, y: np.ndarray, groups: np.ndarray) -> float:
    """Return the balanced accuracy, macro over attributes, each predicted by a fit to the others."""
    scores = []
    for name in sorted(set(groups)):
        mine = groups == name
        fitted = _logistic(rows[~mine], y[~mine])
        said = rows[mine] @ fitted[:-1] + fitted[-1] > 0
        scores += [np.mean([(said == y[mine])[y[mine] == side].mean() for side in (True, False)])]
    return round(float(np.mean(scores)), 3)


def _cues() -> list[Said]:
    """Return the cues of the concepts that have some for either side."""
    return [
        Said(name, kind == "yes", cue.replace("* ", ""))
        for name, entry in entries().items()
        if name != "denial" and entry.get("yes") and entry.get("no")
        for kind in ("yes", "no")
        for cue in entry[kind]
    ]


def _exemplars() -> list[Said]:
    """Return the clauses of exemplars.toml."""
    entries = tomllib.loads(Path(__file__).with_name("exemplars.toml").read_text("utf-8"))
    return [
        Said(name, kind == "yes", text)
        for name, entry in entries.items()
        for kind, texts in entry.items()
        for text in texts
    ]


def _wordings() -> list[Said]:
    """Return a few mentions of each wording of the development restaurants."""
    folder = almanaq.sample.__path__[0]
    mentions = pq.read_table(f"{folder}/truth_data/mentions.parquet").to_pylist()
    rows = load("restaurants").tables["restaurants"].select(["id", "reviews"]).to_pylist()
    reviews = {row["id"]: row["reviews"] for row in rows}
    found: dict[Said, None] = {}
    shown: dict[str, int] = {}
    for mention in mentions:
        if mention["held_out"] or shown.get(mention["wording"], 0) >= SHOWN:
            continue
        shown[mention["wording"]] = shown.get(mention["wording"], 0) + 1
        text = reviews[mention["restaurant_id"]][mention["review"]][mention["start"] : mention["end"]]
        name, inverse = _concept(mention["attribute"])
        found[Said(name, mention["polarity"] is not inverse, text, mention["attribute"], mention["wording"])] = None
    return list(found)


def _unmentioned() -> list[str]:
    """Return clauses of development restaurants that express no attribute: they speak of dishes, people and the day."""
    truth = load_truth()
    said: dict[tuple[int, int], list[tuple[int, int]]] = {}
    for mention in truth.mentions:
        said.setdefault((mention.restaurant_id, mention.review), []).append((mention.start, mention.end))
    rows = load("restaurants").tables["restaurants"].select(["id", "reviews"]).to_pylist()
    found = {
        clause.text
        for row in rows
        if row["id"] not in truth.held_out
        for number, review in enumerate(row["reviews"])
        for clause in clauses(review)
        if not any(
            clause.start < end and start < clause.start + len(clause.text)
            for start, end in said.get((row["id"], number), ())
        )
    }
    return random.Random(1).sample(sorted(found), UNMENTIONED)


def _concept(attribute: str) -> tuple[str, bool]:
    (found, inverse), *_ = matters(QUESTIONS[attribute])[0]
    return found.name, inverse


def _whole(text: str) -> Clause:
    return Clause(text, 0, _stems(text).strip(), False)


def _stems(text: str) -> str:
    return " " + " ".join(clause.stems for clause in clauses(text)) + " "


def _holds(stems: str, cue: str) -> bool:
    return _stems(cue) in stems


if __name__ == "__main__":
    main()
