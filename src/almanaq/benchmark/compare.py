"""Run folders side by side: differences with intervals, paired tests corrected for how many there are, groups."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from almanaq.benchmark.config import RunConfig
from almanaq.benchmark.generation.replies import read_replies
from almanaq.benchmark.generation.score import score_replies
from almanaq.benchmark.records import REPLIES
from almanaq.benchmark.score import measured, read_run
from almanaq.errors import BenchmarkError
from almanaq.evaluation.evaluate import PerQuery
from almanaq.evaluation.significance import groups, holm, intervals, p_values, pairs

ALPHA = 0.05
_DIGITS = 6
_SAME = ("dataset", "split", "limit", "tables", "distractors", "distractors_from", "seed")


@dataclass(frozen=True, slots=True)
class Difference:
    """A measure of two runs over the same queries.

    Attributes:
        interval: 95 % bootstrap interval of `b - a`.
        p: of the paired randomization test; `p_corrected` by Holm over all tests of the comparison.
    """

    measure: str
    a: float
    b: float
    interval: tuple[float, float]
    p: float
    p_corrected: float

    @property
    def significant(self) -> bool:
        """Whether the two differ at the level 0.05 after the correction."""
        return self.p_corrected < ALPHA

    def to_dict(self) -> dict[str, Any]:
        """Give the form that `bench compare --json` prints."""
        return {
            "a": self.a,
            "b": self.b,
            "difference": round(self.b - self.a, _DIGITS),
            "interval": list(self.interval),
            "p": round(self.p, _DIGITS),
            "p_corrected": round(self.p_corrected, _DIGITS),
            "significant": self.significant,
        }


@dataclass(frozen=True, slots=True)
class Comparison:
    """Two or more runs over the same queries.

    Attributes:
        runs: the folders' names, as given, and what ran in each.
        differences: by pair of runs, for each measure that both have.
        groups: by measure, the largest groups of runs that cannot be told apart, best first.
    """

    runs: Mapping[str, RunConfig]
    queries: int
    differences: Mapping[tuple[str, str], Sequence[Difference]]
    groups: Mapping[str, Sequence[Sequence[str]]]

    def to_dict(self) -> dict[str, Any]:
        """Give the form that `bench compare --json` prints."""
        first = next(iter(self.runs.values()))
        return {
            "dataset": first.dataset,
            "split": first.split,
            "queries": self.queries,
            "test": "paired randomization, two-sided, 10,000 draws",
            "correction": "holm",
            "runs": [
                {"run": name, "retriever": each.resolved, "config": each.hash} for name, each in self.runs.items()
            ],
            "pairs": [
                {"a": a, "b": b, "measures": {each.measure: each.to_dict() for each in found}}
                for (a, b), found in self.differences.items()
            ],
            "groups": {measure: [list(group) for group in found] for measure, found in self.groups.items()},
        }


def compare(folders: Sequence[Path]) -> Comparison:
    """Compare runs.

    Raises:
        BenchmarkError: there are fewer than two, a folder is no whole run, or they did not ask the same of the same.
    """
    names = [str(folder) for folder in folders]
    if len(set(names)) < 2:
        raise BenchmarkError("a comparison takes two run folders or more, each of them once")
    read = {name: read_run(Path(name)) for name in names}
    runs = {name: config for name, (config, _) in read.items()}
    _check_same(runs)
    cutoffs = sorted(set.intersection(*(set(config.cutoffs) for config in runs.values())))
    if not cutoffs:
        raise BenchmarkError("the runs have no cutoff in common: run them with the same --k")
    found: list[Mapping[str, PerQuery[Any]]] = [
        {name: measured(records, cutoffs) for name, (_, records) in read.items()}
    ]
    if all(config.generator for config in runs.values()):
        found.append({name: _of_replies(Path(name)) for name in names})
    for part in found:
        _check_queries(part)
    tested = _tested(found)
    return Comparison(runs, len(found[0][names[0]].queries), tested, _groups(found, tested))


def _of_replies(folder: Path) -> PerQuery[str]:
    """Give the measures of a run's replies that are means over questions."""
    replies = list(read_replies(folder / REPLIES))
    if not replies:
        raise BenchmarkError(f"{folder} holds no replies yet: finish the run with --resume")
    each = score_replies(replies).per_question
    values = np.array(list(each.values()), dtype=np.float64).T
    return PerQuery(tuple(reply.query_id for reply in replies), tuple(each), values, np.ones_like(values))


def _check_same(runs: Mapping[str, RunConfig]) -> None:
    (first, one), *rest = runs.items()
    for name, other in rest:
        for setting in _SAME:
            mine, theirs = getattr(one, setting), getattr(other, setting)
            if mine != theirs and not (setting == "seed" and not one.distractors):
                raise BenchmarkError(
                    f"{first} and {name} cannot be compared: their {setting} is {mine!r} and {theirs!r}"
                )


def _check_queries(found: Mapping[str, PerQuery[Any]]) -> None:
    (first, one), *rest = found.items()
    for name, other in rest:
        if one.queries != other.queries:
            more = sorted(set(one.queries) ^ set(other.queries))
            what = f"{len(more)} questions are in one alone, first {more[0]!r}" if more else "in another order"
            raise BenchmarkError(f"{first} and {name} did not answer the same questions: {what}; finish both runs")


def _tested(parts: Sequence[Mapping[str, PerQuery[Any]]]) -> dict[tuple[str, str], list[Difference]]:
    """Test every measure of every pair; a pair's measures that are equal for every query take no part."""
    drafts: list[tuple[tuple[str, str], Difference]] = []
    for a, b in pairs(list(parts[0])):
        for found in parts:
            drafts += [((a, b), draft) for draft in _differences(found[a], found[b])]
    real = [place for place, (_, draft) in enumerate(drafts) if draft.p < 1.0]
    corrected = dict(zip(real, holm([drafts[place][1].p for place in real]), strict=True))
    made: dict[tuple[str, str], list[Difference]] = {}
    for place, (pair, draft) in enumerate(drafts):
        made.setdefault(pair, []).append(replace(draft, p_corrected=corrected.get(place, 1.0)))
    return made


def _differences(one: PerQuery[Any], other: PerQuery[Any]) -> list[Difference]:
    """Give each measure's difference of two runs, not yet corrected."""
    apart = other.values - one.values
    p = p_values(apart * one.weights)
    bounds = intervals(apart, one.weights)
    drafts = []
    for place, measure in enumerate(one.measures):
        low, high = (round(float(bound[place]), _DIGITS) for bound in bounds)
        mean_a, mean_b = (round(each.means()[place], _DIGITS) for each in (one, other))
        chance = float(p[place]) if np.any(apart[:, place]) else 1.0
        drafts.append(Difference(str(measure), mean_a, mean_b, (low, high), chance, 1.0))
    return drafts


def _groups(
    parts: Sequence[Mapping[str, PerQuery[Any]]], tested: Mapping[tuple[str, str], Sequence[Difference]]
) -> dict[str, list[tuple[str, ...]]]:
    means: dict[str, dict[str, float]] = {}
    for found in parts:
        for name, each in found.items():
            for measure, mean in zip(each.measures, each.means(), strict=True):
                means.setdefault(str(measure), {})[name] = mean
    differ: dict[str, dict[frozenset[str], bool]] = {}
    for pair, differences in tested.items():
        for difference in differences:
            differ.setdefault(difference.measure, {})[frozenset(pair)] = difference.significant
    return {measure: groups(found, differ[measure]) for measure, found in means.items()}


def shown(p: float) -> str:
    """Give a p-value for people: never more digits than it has, never 0."""
    return "< 0.001" if p < 0.001 else f"{p:.3f}" if not math.isclose(p, 1.0) else "1"
