"""Small runs of a strong model's own replies, written by hand, behind a server of the OpenAI protocol.

    OPENAI_BASE_URL=… OPENAI_API_KEY=… ALMANAQ_TIMEOUT=3600 python experiments/calls/by_hand.py PART --data-dir DATA

`spider`: 20 questions drawn by a seed, by the agent (those of databases that are cut down here are left out of the
measure). `hybridqa`: 12 questions of the half that nothing was tuned on, drawn by hash, with their gold tables.
`restaurants`: 10 single turns that were kept aside. Any model may stand there in place of the hand:
`experiments/calls/by_hand.json` says what the hand gave.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import sys
import tempfile
from pathlib import Path

import pyarrow.parquet as pq

HERE = Path(__file__).parent
sys.path.append(str(HERE.parent / "hybridqa"))

from fit_places import is_development  # noqa: E402
from run import write_part  # noqa: E402

from almanaq.models.embedders.base import LexicalEmbedder  # noqa: E402
from almanaq_bench.config import RunRequest  # noqa: E402
from almanaq_bench.runner import run  # noqa: E402

SEED = 16
SHOWN = ("execution_accuracy", "exact_match", "f1", "mutual_substring", "turn_accuracy", "false_negatives")


def main() -> None:
    """Run one part and print its measures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("part", choices=("spider", "hybridqa", "restaurants"))
    parser.add_argument("--data-dir", type=Path, required=True)
    parser.add_argument("--out", type=Path, required=True, help="the run folder; a run goes on where it stopped")
    parser.add_argument("--model", default="openai:any")
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as made:
        request = requested(asked.part, asked.data_dir, Path(made), asked.out, asked.model)
        scores = run(request)
    print(json.dumps({name: round(scores.metrics[name], 4) for name in SHOWN if name in scores.metrics}, indent=1))


def requested(part: str, data: Path, made: Path, out: Path, model: str) -> RunRequest:
    """Return what to run."""
    if part == "spider":
        where = ("text-to-sql", "spider", data, "validation", "oracle", out, LexicalEmbedder)
        return RunRequest(*where, generator=f"agent:{model}", sample=20, seed=SEED, resume=True)
    if part == "restaurants":
        where = ("restaurants", "restaurants", data, "single-turn-held-out", "oracle", out, LexicalEmbedder)
        return RunRequest(*where, generator=model, sample=10, seed=SEED, resume=True)
    ids = pq.read_table(data / "hybridqa" / "queries_validation.parquet")["query_id"].to_pylist()
    aside = [str(name) for name in ids if not is_development(str(name))]
    drawn = sorted(aside, key=lambda name: hashlib.sha256(f"{SEED}{name}".encode()).digest())[:12]
    write_part(data, made / "hybridqa", "aside", set(drawn).__contains__)
    where = ("hybrid-qa", "hybridqa", made, "aside", "oracle", out, LexicalEmbedder)
    return RunRequest(*where, generator=model, resume=True)


if __name__ == "__main__":
    main()
