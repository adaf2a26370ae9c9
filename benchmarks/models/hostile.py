"""What a client gets from a server that means harm: one call for each fault, with a right one before and after it."""

from __future__ import annotations

import asyncio
import json
import resource
import time
from pathlib import Path
from typing import Any

from server import Server, serving

from almanaq.errors import ModelError
from almanaq.models.openai import OpenAIModel
from almanaq.models.protocols import Completion, Message, Prompt
from almanaq.models.retrying import LONGEST_RETRY_AFTER, FailedCall
from almanaq_bench.testing.faults import KINDS
from almanaq_bench.testing.hostile import HOSTILE

KEY = "sk-canary-2f7b90d4c1"
TIMEOUT = 2.0
MOST_SECONDS, MOST_MEGABYTES = TIMEOUT + 1.5, 48
"""Beyond the timeout a busy machine takes some time; 48 MB are ten times the longest reply that is read."""


def hostile(_: Path) -> dict[str, Any]:
    """Make the three calls for every fault; tell how each ended, what it took, and what it was counted as."""
    named = (*KINDS, *HOSTILE)
    script = [each for fault in named for each in (None, fault, None)]
    with serving(script=script, hang=60.0, slow=0.2) as server:
        told = {fault: _run_fault(fault, server) for fault in named}
    bad = [fault for fault, one in told.items() if one["held"] is not True]
    return {"faults": len(told), "timeout": TIMEOUT, "by_fault": told, "not_held": bad, "passed": not bad}


def _run_fault(fault: str, server: Server) -> dict[str, Any]:
    before = server.ledger()["sent"]
    first, failed, last = asyncio.run(_three(server.url))
    sent = server.ledger()["sent"] - before
    right = [isinstance(c, Completion) and json.loads(c.text)["value"] == str(n) for n, c in ((1, first), (3, last))]
    outcome, seconds, grown = failed
    told: dict[str, Any] = {
        "seconds": round(seconds, 2),
        "megabytes_sent": round(sent / 1e6, 1),
        "megabytes_kept": grown,
    }
    if isinstance(outcome, Completion):
        told |= {"ended": "reply", "tokens": outcome.usage.input_tokens + outcome.usage.output_tokens}
        whole = fault in _OTHER_TEXT or json.loads(outcome.text)["value"] == "2"
        told["counted"] = 0 < told["tokens"] < 10**6
    else:
        told |= {"ended": type(outcome).__name__, "said": str(outcome)[:160]}
        whole = isinstance(outcome, ModelError) and KEY not in str(outcome)
        wait = getattr(outcome, "retry_after", None)
        told["counted"] = wait is None or 0 <= wait <= LONGEST_RETRY_AFTER
    quick = seconds <= MOST_SECONDS and grown <= MOST_MEGABYTES
    told["held"] = all((whole, quick, told["counted"], *right))
    return told


_OTHER_TEXT = ("off_schema", "not_json", "half_character", "nul", "long_reply")
"""Replies whose words are another's to judge: they came whole."""


async def _three(url: str) -> tuple[Any, tuple[Any, float, float], Any]:
    model = OpenAIModel("m", url, KEY, timeout=TIMEOUT)
    first = await _one(model, 1)
    before, started = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, time.perf_counter()
    outcome = await _one(model, 2)
    seconds = time.perf_counter() - started
    grown = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024
    return first, (outcome, seconds, round(grown, 1)), await _one(model, 3)


async def _one(model: OpenAIModel, number: int) -> Completion | Exception:
    prompt = Prompt("answer", "1", (Message("user", f"request {number} of 3"),), max_output_tokens=64)
    try:
        return await model.complete(prompt)
    except (ModelError, FailedCall) as problem:
        return problem
