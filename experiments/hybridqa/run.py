"""HybridQA by the benchmark's runner, on one half of the questions, with the gold table or one found among all.

    python experiments/hybridqa/run.py --data-dir DATA --out RUN [--half report] [--retriever bm25] [--generator NAME]

RUN is a run folder as `almanaq bench run` leaves it, and running it again goes on where it stopped; RUN/scores.json
holds the measures of its replies. `--half` is the one that weights were fitted on ("development") or the other one.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pyarrow.parquet as pq

from almanaq.corpus.table import DEFAULT_FIELDS, parse_fields
from almanaq.models.model_names import open_embedder
from almanaq.models.private_files import default_cache_folder
from almanaq_bench.config import CONCURRENCY, RunRequest
from almanaq_bench.runner import run

sys.path.insert(0, str(Path(__file__).parent))
from fit_places import is_development

FIELDS = f"{','.join(DEFAULT_FIELDS)},description"
"""What a retriever sees of a table: beside the usual, its cells' passages as its description."""


def write_part(data: Path, folder: Path, split: str, keep: Callable[[str], bool]) -> None:
    """Write a dataset whose one split is a part of the validation questions, chosen by their ids."""
    folder.mkdir()
    for name in ("corpus.parquet", "passages.parquet"):
        (folder / name).symlink_to((data / "hybridqa" / name).resolve())
    table = pq.read_table(data / "hybridqa" / "queries_validation.parquet")
    chosen = [keep(str(name)) for name in table["query_id"].to_pylist()]
    pq.write_table(table.filter(chosen), folder / f"queries_{split}.parquet")


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--data-dir", type=Path, required=True)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--half", choices=("report", "development"), default="report")
    parser.add_argument("--retriever", default="oracle", help="oracle: with the gold table")
    parser.add_argument("--fields", default=FIELDS)
    parser.add_argument("--context-k", type=int, default=6, help="tables to choose from; 1: the best one")
    parser.add_argument("--generator", default="local")
    parser.add_argument("--sample", type=int, help="so many questions, drawn by --seed; none of sixty.sql")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--concurrency", type=int, default=CONCURRENCY, help="questions that are asked at once")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        by_hand = (Path(__file__).parent / "sixty.sql").read_text(encoding="utf-8")

        def keep(name: str) -> bool:
            read_before = arguments.sample is not None and name in by_hand
            return is_development(name) == (arguments.half == "development") and not read_before

        write_part(arguments.data_dir, Path(folder) / "hybridqa", arguments.half, keep)
        scores = run(
            RunRequest(
                "hybrid-qa",
                "hybridqa",
                Path(folder),
                arguments.half,
                arguments.retriever,
                arguments.out,
                lambda: open_embedder("local"),
                fields=parse_fields(arguments.fields),
                context_k=arguments.context_k,
                generator=arguments.generator,
                resume=True,
                sample=arguments.sample,
                seed=arguments.seed,
                concurrency=arguments.concurrency,
                cache=default_cache_folder(),
            ),
            progress=lambda done, total: print(f"{done} of {total}", file=sys.stderr),
        )
    said = ["half", "retriever", "fields", "context_k", "generator"] + ["sample", "seed"] * bool(arguments.sample)
    flags = " ".join(f"--{name.replace('_', '-')} {getattr(arguments, name)}" for name in said)
    measures = {name: value for name, value in scores.metrics.items() if "@" not in name or name == "recall@1"}
    replies = [json.loads(line) for line in (arguments.out / "replies.jsonl").read_text().splitlines()]
    led = [json.loads(reply["reasoning"]) for reply in replies if reply["reasoning"]]
    found = {
        "command": f"python experiments/hybridqa/run.py --data-dir DATA --out RUN {flags}",
        "questions": scores.queries,
        "measures": measures,
        "text_calls_per_question": round(sum(each["text_calls"] for each in led) / len(replies), 2),
        "asked": Counter([*(f"{reply['nodes']}_places" for reply in replies), *(reply["slice"] for reply in replies)]),
    }
    (arguments.out / "scores.json").write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
    print(json.dumps(found, indent=1))


if __name__ == "__main__":
    main()
