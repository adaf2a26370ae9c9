"""Audited tails miss their targets no more often than they may, whatever the proxy is worth."""

from __future__ import annotations

import numpy as np
import pytest
from benchmarks.guarantees.scores import scores_of

from almanaq.errors import UsageError
from almanaq.options import Accuracy
from almanaq.suql.accuracy.tails import AuditedTails

PILOT = 60


def run(truth, scores, accuracy, seed):
    """Return the machine at its end, and the rows it returns."""
    pilot = np.random.default_rng(seed + 10_000).permutation(len(truth))[:PILOT]
    machine = AuditedTails(scores, accuracy, {int(row): bool(truth[row]) for row in pilot}, seed=seed)
    asked = set(pilot.tolist())
    while len(rows := machine.next()):
        assert asked.isdisjoint(rows.tolist())
        asked |= set(rows.tolist())
        machine.tell(rows, truth[rows])
    returned = np.zeros(len(truth), bool)
    returned[machine.accepted()] = True
    assert asked.isdisjoint(machine.accepted().tolist())
    for row in asked:
        returned[row] = truth[row]
    assert machine.certificate().asked == len(asked)
    return machine, returned


def reached(truth, returned):
    right = int((truth & returned).sum())
    return right / max(1, int(truth.sum())), right / max(1, int(returned.sum()))


KINDS = ["good", "weak", "random", "inverted", "constant", "missing", "infinite"]


@pytest.mark.sampled(7)
@pytest.mark.parametrize("kind", KINDS)
def test_targets_are_missed_no_more_often_than_delta(kind):
    missed, runs = 0, 60
    for seed in range(runs):
        draws = np.random.default_rng(seed)
        size, share = int(draws.integers(80, 600)), float(draws.choice([0.02, 0.2, 0.5, 0.8]))
        truth = draws.random(size) < share
        accuracy = Accuracy(float(draws.choice([0.7, 0.9])), float(draws.choice([0.7, 0.9])), delta=0.1)
        machine, returned = run(truth, scores_of(kind, truth, draws), accuracy, seed)
        recall, precision = reached(truth, returned)
        missed += (recall < accuracy.recall and truth.any()) or (precision < accuracy.precision and returned.any())
        assert machine.certificate().certified
    assert missed <= 11  # 60 runs at 0.1: more has a chance of 1 in 100


@pytest.mark.parametrize("truth", [np.zeros(300, bool), np.ones(300, bool), np.arange(300) == 7])
@pytest.mark.parametrize("kind", KINDS)
def test_nothing_one_or_all_of_the_rows_pass(truth, kind):
    machine, returned = run(truth, scores_of(kind, truth, np.random.default_rng(3)), Accuracy(), 3)
    assert machine.certificate().certified
    if truth.all():
        assert returned.mean() >= 0.9


def test_targets_of_one_are_exact():
    draws = np.random.default_rng(0)
    truth = draws.random(200) < 0.4
    machine, returned = run(truth, scores_of("good", truth, draws), Accuracy(1.0, 1.0), 0)
    assert machine.certificate().asked == 200
    assert (returned == truth).all()


def test_a_good_proxy_saves_calls_and_a_useless_one_costs_none():
    draws = np.random.default_rng(1)
    truth = draws.random(3000) < 0.3
    good, _ = run(truth, scores_of("good", truth, draws), Accuracy(), 1)
    useless, _ = run(truth, scores_of("random", truth, draws), Accuracy(0.95, 0.95), 1)
    assert good.certificate().asked < 0.4 * len(truth)
    assert useless.certificate().asked <= len(truth)


def test_the_same_seed_asks_the_same_rows_in_whatever_pieces_answers_come():
    draws = np.random.default_rng(2)
    truth = draws.random(500) < 0.3
    scores = scores_of("good", truth, draws)
    whole, _ = run(truth, scores, Accuracy(), 4)
    pilot = np.random.default_rng(4 + 10_000).permutation(500)[:PILOT]
    pieces = AuditedTails(scores, Accuracy(), {int(row): bool(truth[row]) for row in pilot}, seed=4)
    while len(rows := pieces.next()):
        for row in rows[::-1]:
            pieces.tell(np.array([row]), truth[[row]])
    assert sorted(pieces.accepted()) == sorted(whole.accepted())
    assert pieces.certificate() == whole.certificate()


def test_the_certificate_holds_at_every_moment():
    missed = 0
    for seed in range(40):
        draws = np.random.default_rng(seed)
        truth = draws.random(300) < 0.4
        pilot = draws.permutation(300)[:PILOT]
        machine = AuditedTails(
            scores_of("weak", truth, draws), Accuracy(), {int(row): bool(truth[row]) for row in pilot}, seed=seed
        )
        said = np.zeros(300, bool)
        said[pilot] = truth[pilot]
        wrong = False
        while len(rows := machine.next()):
            machine.tell(rows, truth[rows])
            said[rows] = truth[rows]
            returned = said.copy()
            returned[machine.accepted()] = True
            recall, precision = reached(truth, returned)
            certificate = machine.certificate()
            wrong |= recall < certificate.recall - 1e-9 or precision < certificate.precision - 1e-9
        missed += wrong
    assert missed <= 8  # 40 runs at 0.1


@pytest.mark.parametrize("wrong", [{"recall": 0}, {"recall": 1.1}, {"precision": -1}, {"delta": 0}, {"delta": 1}])
def test_targets_out_of_range_are_errors(wrong):
    with pytest.raises(UsageError, match=next(iter(wrong))):
        Accuracy(**wrong)
