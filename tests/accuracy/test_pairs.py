"""A condition on pairs of rows under targets: 200 by 200, of which one in a hundred passes."""

from __future__ import annotations

import numpy as np
import pytest

import almanaq
from almanaq import Accuracy, Options
from almanaq.testing import FunctionModel

SIDE, GROUPS = 200, 100
QUERY = "SELECT a.id, b.id FROM a JOIN b ON answer(a.x || ' / ' || b.x, 'are they of one group?') = 'Yes'"


def groups_of(text):
    return [word for word in text.split() if word.startswith("g")]


class Alike:
    """An embedder that sees, with some noise, whether both halves of a pair are of one group."""

    name, remote = "alike", False

    def embed(self, texts):
        found = np.random.default_rng(len(texts)).normal(size=(len(texts), 16))
        found[:, 0] += [5.0 * (len(set(groups_of(text))) == 1) for text in texts]
        return (found / np.linalg.norm(found, axis=1, keepdims=True)).astype(np.float32)


@pytest.mark.slow
def test_pairs_under_targets_ask_about_a_part_of_them():
    draw = np.random.default_rng(0)
    sides = {name: draw.integers(0, GROUPS, SIDE) for name in "ab"}
    tables = {
        name: {"id": list(range(SIDE)), "x": [f"{name} {i} g{group}" for i, group in enumerate(groups)]}
        for name, groups in sides.items()
    }
    model = FunctionModel(lambda text, _: "Yes" if len(set(groups_of(text))) == 1 else "No")
    right = set(zip(*(side.tolist() for side in np.nonzero(sides["a"][:, None] == sides["b"][None, :])), strict=True))
    targets = Accuracy(recall=0.8, precision=0.8, proxy="regression", seed=1)
    with almanaq.connect(tables, model=model, embedder=Alike(), cache=False) as con:
        result = con.sql(QUERY, options=Options(accuracy=targets, max_calls=SIDE * SIDE))
    found = set(map(tuple, result.rows))
    assert result.trace.inference.rows == SIDE * SIDE
    assert result.trace.text_calls == model.calls < 0.3 * SIDE * SIDE
    assert len(found & right) >= 0.8 * max(len(found), len(right))
