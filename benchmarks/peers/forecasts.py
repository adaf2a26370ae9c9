"""What each task was forecast to take, first and after its first replies, and what it took:
`python -m benchmarks.peers.forecasts --data DIR --out benchmarks/peers/forecasts.json`.

Texts and requests are as they were; the server's tokens are words, of which one is about 1.4 of those first forecast.
"""

from __future__ import annotations

import argparse
import json
import os
from pathlib import Path
from typing import Any
from unittest import mock

from benchmarks.peers.__main__ import LATENCY
from benchmarks.peers.replies import reply_of
from benchmarks.peers.tasks import Answer, PeerTask, tasks

import almanaq
from almanaq.options import Options
from almanaq.suql.execution.forecast import Forecast, confirming, watched
from almanaq_bench.testing import Faults, StandInServer

WITHIN = 1.3


def measure_forecasts(chosen: list[PeerTask], answer: Answer) -> dict[str, Any]:
    """Run tasks; give the figures of each, and how many were forecast within 1.3 times of what was read."""
    faults = Faults(latency=LATENCY)
    with StandInServer(reply_of("almanaq", answer), faults=faults, keep_requests=False) as server:
        served = {"OPENAI_BASE_URL": server.url, "OPENAI_API_KEY": "k"}
        with mock.patch.dict(os.environ, served):
            found = {task.name: _measure(task) for task in chosen}
    counts = {when: sum(_is_within(each, when) for each in found.values()) for when in ("first", "after_first_replies")}
    return {"tasks": found, "within_1.3": counts}


def _measure(task: PeerTask) -> dict[str, Any]:
    first: list[Forecast] = []
    later: list[Forecast] = []
    with (
        almanaq.connect(task.tables, model="openai:stand-in", cache=False, options=Options(max_calls=10_000)) as con,
        confirming(0, lambda forecast: not first.append(forecast)),
        watched(lambda *reached: later.append(reached[-1]) if reached[-1] is not None else None),
    ):
        trace = con.sql(task.sql).trace
    tokens = trace.input_tokens + trace.output_tokens
    return {
        "first": _figures(first[0]),
        "after_first_replies": _figures(later[0]),
        "spent": {"texts": trace.text_calls, "requests": trace.physical_calls, "tokens": tokens},
        "forecasts": 1 + len(later),
    }


def _figures(forecast: Forecast) -> dict[str, Any]:
    return {name: value for name, value in forecast.figures.items() if name != "money"}


def _is_within(task: dict[str, Any], when: str) -> bool:
    ratio = task[when]["texts"] / task["spent"]["texts"]
    return 1 / WITHIN <= ratio <= WITHIN


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, required=True, help="the folder with Movies.csv and Reviews.csv")
    parser.add_argument("--out", type=Path)
    given = parser.parse_args()
    found = measure_forecasts(*tasks(given.data))
    found = {"command": "python -m benchmarks.peers.forecasts --data DIR", "latency": LATENCY, **found}
    if given.out is not None:
        given.out.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
    print(json.dumps(found, indent=1))


if __name__ == "__main__":
    main()
