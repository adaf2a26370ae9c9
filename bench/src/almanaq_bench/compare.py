"""Run folders side by side: differences with intervals, paired tests corrected for how many there are, groups."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from almanaq.errors import BenchmarkError, UsageError
from almanaq_bench.config import RunConfig
from almanaq_bench.evaluation.rankings import Measure, PerQuery
from almanaq_bench.evaluation.significance import groups, holm, intervals, p_values, pairs
from almanaq_bench.generation.replies import score_replies
from almanaq_bench.records import Record
from almanaq_bench.run_measures import measure_rankings, read_run, read_run_replies

ALPHA = 0.05
_DIGITS = 6
_COLUMNS = 500  # differences of measures that are tested at once
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
        """Return the form that `bench compare --json` prints."""
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
        """Return the form that `bench compare --json` prints."""
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
        UsageError: there are fewer than two.
        BenchmarkError: a folder is no whole run, or they did not ask the same of the same.
    """
    names = [str(folder) for folder in folders]
    if len(set(names)) < 2:
        raise UsageError("a comparison needs two or more different run folders")
    read = {name: read_run(Path(name)) for name in names}
    runs = {name: config for name, (config, _) in read.items()}
    cutoffs = _common_cutoffs(runs)
    found: list[Mapping[str, PerQuery[Any]]] = [
        {name: measure_rankings(records, cutoffs) for name, (_, records) in read.items()}
    ]
    if all(config.generator for config in runs.values()):
        found.append({name: _of_replies(Path(name), config) for name, config in runs.items()})
    for part in found:
        _check_queries(part)
    tested = _test_pairs(found)
    return Comparison(runs, len(found[0][names[0]].queries), tested, _groups(found, tested))


def alike(
    runs: Mapping[str, RunConfig], records: Mapping[str, Sequence[Record]], measure: str
) -> tuple[str, list[tuple[str, ...]]]:
    """Return a measure at the smallest cutoff that runs have in common, and the groups that it cannot tell apart.

    Only this measure is tested, and corrected for the number of pairs.

    Raises:
        BenchmarkError: the runs did not ask the same of the same.
    """
    chosen = Measure(measure, _common_cutoffs(runs)[0])
    found = {name: measure_rankings(own, [chosen.k], [measure]) for name, own in records.items()}
    _check_queries(found)
    return str(chosen), _groups([found], _test_pairs([found]))[str(chosen)]


def _common_cutoffs(runs: Mapping[str, RunConfig]) -> list[int]:
    _check_same(runs)
    cutoffs = sorted(set.intersection(*(set(config.cutoffs) for config in runs.values())))
    if not cutoffs:
        raise BenchmarkError("the runs share no cutoff: run them with the same --k")
    return cutoffs


def _of_replies(folder: Path, config: RunConfig) -> PerQuery[str]:
    """Return the measures of a run's replies that are means over questions."""
    replies = read_run_replies(folder, config)
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


def _test_pairs(parts: Sequence[Mapping[str, PerQuery[Any]]]) -> dict[tuple[str, str], list[Difference]]:
    """Test every measure of every pair; a pair's measures that are equal for every query take no part."""
    made: dict[tuple[str, str], list[Difference]] = {}
    for found in parts:
        for pair, drafts in _drafts(found):
            made.setdefault(pair, []).extend(drafts)
    real = [draft.p for drafts in made.values() for draft in drafts if draft.p < 1.0]
    corrected = iter(holm(real))
    return {
        pair: [replace(draft, p_corrected=next(corrected) if draft.p < 1.0 else 1.0) for draft in drafts]
        for pair, drafts in made.items()
    }


def _drafts(found: Mapping[str, PerQuery[Any]]) -> Iterator[tuple[tuple[str, str], list[Difference]]]:
    """Yield each measure's difference for every pair, not yet corrected; many pairs at once, by the same draws."""
    first = next(iter(found.values()))
    means = {name: [round(mean, _DIGITS) for mean in each.means()] for name, each in found.items()}
    wide = len(first.measures)
    at_once = max(1, _COLUMNS // wide)
    every = pairs(list(found))
    for start in range(0, len(every), at_once):
        block = every[start : start + at_once]
        apart = np.concatenate([found[b].values - found[a].values for a, b in block], axis=1)
        weights = np.tile(first.weights, len(block))
        p = np.where(apart.any(axis=0), p_values(apart * weights), 1.0)
        bounds = intervals(apart, weights).round(_DIGITS)
        for number, (a, b) in enumerate(block):
            own = slice(number * wide, (number + 1) * wide)
            columns = zip(first.measures, means[a], means[b], *bounds[:, own].tolist(), p[own].tolist(), strict=True)
            yield (a, b), [Difference(str(m), x, y, (low, high), chance, 1.0) for m, x, y, low, high, chance in columns]


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


def format_p_value(p: float) -> str:
    """Return a p-value for people: never more digits than it has, never 0."""
    return "< 0.001" if p < 0.001 else f"{p:.3f}" if not math.isclose(p, 1.0) else "1"
