"""How well a small model answers yes-or-no questions about texts, beside `local`, which reads without one.

    python -m experiments.small_model.texts --data-dir DIR [--each N] [--out FILE]

Three kinds of texts, half of each with the answer Yes, drawn from a fixed seed: reviews of films ("did the critic like
it?", SemBench), reviews of the sample's restaurants (its hidden attributes), and statements about small tables written
out as text (TabFact). The model (`gguf:` of ALMANAQ_MODEL) is asked for one word after four examples of the kind; its
answer is the likelier of Yes and No. Of each: balanced accuracy with its interval, the area under the curve of the
model's probability, and seconds a text.
"""

from __future__ import annotations

import argparse
import ast
import asyncio
import csv
import json
import math
import os
import random
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
from scipy.stats import binomtest

import almanaq
from almanaq.models.embedders.base import LexicalEmbedder
from almanaq.models.extractive import LocalReader
from almanaq.models.http import JsonServer
from almanaq.models.llama_server import find_or_start
from almanaq.models.protocols import TextCall
from almanaq.models.weights import GGUF, find_weights
from almanaq_bench.sample.truth import load_truth

SEED, SHOTS = 11, 4
Text = tuple[str, str, bool]
"""A text, the question and the answer."""
_ASKED = {
    "romantic": "is it romantic?",
    "quiet": "is it quiet?",
    "good_service": "is the service good?",
    "long_wait": "is the wait long?",
    "easy_parking": "is it easy to park?",
    "good_desserts": "are the desserts good?",
}


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--data-dir", type=Path, required=True)
    arguments.add_argument("--each", type=int, default=70)
    arguments.add_argument("--minutes", type=float, default=1e9, help="for each kind: what is not read by then is left")
    arguments.add_argument("--out", type=Path)
    given = arguments.parse_args()
    kinds = {
        "reviews of films": film_reviews(given.data_dir),
        "reviews of restaurants": restaurant_reviews(),
        "statements about tables": statements(given.data_dir),
    }
    found: dict[str, Any] = {
        "command": f"python -m experiments.small_model.texts --data-dir DIR --each {given.each}",
        "model": os.environ["ALMANAQ_MODEL"],
    }
    for name, texts in kinds.items():
        shots, chosen = draw(list(texts), given.each)
        read, of_model = ask_model(shots, chosen, 60 * given.minutes)
        found[name] = {"texts": len(read), "model": of_model, "local": ask_local(read)}
        print(name, found[name], flush=True)
    text = json.dumps(found, indent=2)
    print(text)
    if given.out:
        given.out.write_text(text + "\n", encoding="utf-8")


def film_reviews(folder: Path) -> Iterator[Text]:
    """Yield the reviews of SemBench with their sentiment."""
    with (folder / "sembench_movie" / "Reviews.csv").open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            if row["reviewText"]:
                yield row["reviewText"], "did the critic like it?", row["scoreSentiment"] == "POSITIVE"


def restaurant_reviews() -> Iterator[Text]:
    """Yield the reviews of the sample that speak of an attribute."""
    with almanaq.connect("sample:restaurants") as con:
        reviews = {row[0]: row[1] for row in con.sql("SELECT id, reviews FROM restaurants").rows}
    for mention in load_truth().mentions:
        if mention.attribute in _ASKED:
            yield reviews[mention.restaurant_id][mention.review], _ASKED[mention.attribute], mention.polarity


def statements(folder: Path) -> Iterator[Text]:
    """Yield TabFact's statements about tables of at most six rows."""
    tables = {row["table_id"]: row for row in pq.read_table(folder / "tabfact" / "corpus.parquet").to_pylist()}
    for row in pq.read_table(folder / "tabfact" / "queries_validation.parquet").to_pylist():
        table = tables[row["table_id"]]
        header, rows = _list(table["header"]), _list(table["rows"])
        if len(rows) <= 6:
            lines = ["; ".join(f"{name}: {cell}" for name, cell in zip(header, cells, strict=True)) for cells in rows]
            yield "\n".join(lines), f"is it true that {row['query']}?", str(row["label"]) == "1"


def _list(value: object) -> list[Any]:
    return ast.literal_eval(value) if isinstance(value, str) else list(value)  # type: ignore[call-overload]


def draw(texts: list[Text], each: int) -> tuple[list[Text], list[Text]]:
    """Return some examples, and as many other texts with either answer."""
    random.Random(SEED).shuffle(texts)
    yes, no = [text for text in texts if text[2]], [text for text in texts if not text[2]]
    shots = [text for pair in zip(yes[: SHOTS // 2], no[: SHOTS // 2], strict=True) for text in pair]
    half = each // 2
    pairs = zip(yes[SHOTS // 2 :][:half], no[SHOTS // 2 :][:half], strict=True)
    return shots, [text for pair in pairs for text in pair]


def ask_model(
    shots: Sequence[Text], texts: Sequence[Text], most_seconds: float
) -> tuple[Sequence[Text], dict[str, Any]]:
    """Return the texts that were read in time, as many of either answer, and how the model does."""
    address, key = find_or_start(find_weights(os.environ["ALMANAQ_MODEL"].removeprefix(GGUF)), busy_for=3600)
    turns = [{"role": "system", "content": "Read the text. Answer the question with Yes or No."}]
    for text, question, answer in shots:
        turns += [{"role": "user", "content": f"{text}\n\n{question}"}]
        turns += [{"role": "assistant", "content": "Yes" if answer else "No"}]
    server = JsonServer(address, {"authorization": f"Bearer {key}"}, timeout=600)

    async def probability(text: str, question: str) -> float:
        messages = [*turns, {"role": "user", "content": f"{text}\n\n{question}"}]
        request = {"messages": messages, "max_tokens": 1, "temperature": 0, "logprobs": True, "top_logprobs": 20}
        reply = json.loads((await server.post("/chat/completions", request)).body)
        found = {each["token"]: math.exp(each["logprob"]) for each in first_token(reply)}
        yes, no = found.get("Yes", 0.0), found.get("No", 0.0)
        return yes / (yes + no) if yes + no else 0.5

    start = time.perf_counter()

    async def all_of() -> list[float]:
        read = []
        for text, question, _ in texts:
            if time.perf_counter() - start > most_seconds and len(read) % 2 == 0:
                break
            read.append(await probability(text, question))
        return read

    found = asyncio.run(all_of())
    seconds = (time.perf_counter() - start) / len(found)
    texts = texts[: len(found)]
    right = [(chance > 0.5) == answer for chance, (_, _, answer) in zip(found, texts, strict=True)]
    pairs = [
        (y, n) for y, t in zip(found, texts, strict=True) if t[2] for n, u in zip(found, texts, strict=True) if not u[2]
    ]
    area = sum((y > n) + (y == n) / 2 for y, n in pairs) / len(pairs)
    figures = {"area under the curve": round(area, 3), "seconds a text": round(seconds, 2)}
    return texts, {**accuracy(right, texts), **figures}


def first_token(reply: dict[str, Any]) -> list[dict[str, Any]]:
    return list(reply["choices"][0]["logprobs"]["content"][0]["top_logprobs"])


def ask_local(texts: Sequence[Text]) -> dict[str, Any]:
    """Return how `local` does; where it finds nothing in a text, that counts as No, as in a query."""
    reader = LocalReader(LexicalEmbedder())

    async def verdicts() -> list[bool]:
        calls = [TextCall("answer", (text,), question, compared=("Yes",)) for text, question, _ in texts]
        return [(await reader.read(call)).verdicts["Yes"] is True for call in calls]

    return accuracy([got == text[2] for got, text in zip(asyncio.run(verdicts()), texts, strict=True)], texts)


def accuracy(right: Sequence[bool], texts: Sequence[Text]) -> dict[str, Any]:
    """Return the balanced accuracy, with a 95 % interval: as many texts have either answer."""
    interval = binomtest(sum(right), len(right)).proportion_ci(method="wilson")
    of_yes = [ok for ok, text in zip(right, texts, strict=True) if text[2]]
    return {
        "balanced accuracy": [
            round(sum(right) / len(right), 3),
            round(float(interval.low), 3),
            round(float(interval.high), 3),
        ],
        "right of Yes": round(sum(of_yes) / len(of_yes), 3),
    }


if __name__ == "__main__":
    main()
