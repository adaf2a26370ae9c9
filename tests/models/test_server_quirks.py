"""Whatever ways a server has at once: no row is wrong, none is lost for good that need not be, no budget is passed."""

from __future__ import annotations

import pytest
from benchmarks.models.quirks import QUIRKS, Quirk, mixture, run


@pytest.mark.sampled(17)
@pytest.mark.parametrize("seed", range(50))
def test_a_mixture_of_quirks_costs_no_row_and_passes_no_budget(seed: int) -> None:
    quirks, batch = mixture(seed)
    found = run(quirks, seed, 200, batch=batch)
    assert found.result is not None
    assert sorted(found.result.rows) == found.right
    assert {int(each.row) for each in found.result.unknown} == set(found.refused)
    assert found.result.trace.physical_calls == found.calls
    assert found.result.trace.money == pytest.approx(found.server.money)
    most = found.calls * 2 // 3
    short = run(quirks, seed, 200, batch=batch, max_calls=most)
    assert short.result is None
    assert short.calls <= most
    cheap = run(quirks, seed, 200, batch=batch, max_money=found.server.money / 2)
    assert cheap.result is None
    assert cheap.server.money <= found.server.money / 2


@pytest.mark.sampled(6)
@pytest.mark.parametrize("quirk", QUIRKS, ids=lambda quirk: quirk.name)
def test_each_quirk_is_met_and_costs_no_row(quirk: Quirk) -> None:
    found = run([quirk], 0, 40, batch=8 if "batches" in quirk.name else 1, rate=0.5)
    assert found.server.met[quirk.name]
    assert (found.lost, found.wrong) == (0, 0)
