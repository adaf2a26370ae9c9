"""The retrieval half of a run: index, ask batch by batch, and write each batch's records before the next."""

from __future__ import annotations

import dataclasses
import json
import math
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import cast

import numpy as np

from almanaq.corpus.table import Corpus, TableId
from almanaq.errors import AlmanaqError, BenchmarkError
from almanaq.models.embedders.vector_store import VectorStore
from almanaq.retrieval.protocols import Hit, Ranking, Retriever, TableIndex
from almanaq_bench.config import RunConfig
from almanaq_bench.question_sets import Question
from almanaq_bench.records import RECORDS, TIMINGS, Appender, Record, read_records
from almanaq_bench.retrievers.baselines import gold_ranking
from almanaq_bench.retrievers.model_reranker import JudgeRerankerIndex
from almanaq_bench.retrievers.openers import NAMES

_MOST = 2_000_000  # objects looked at: enough for any index here, and it ends on all


def footprint(index: object) -> int:
    """Return the bytes that an index holds; models and stores of vectors, which others share, are left out."""
    seen: set[int] = set()
    open_: list[object] = [index]
    total = 0
    while open_ and len(seen) < _MOST:
        item = open_.pop()
        if id(item) in seen or isinstance(item, type | VectorStore) or hasattr(item, "embed_documents"):
            continue
        seen.add(id(item))
        total += item.nbytes if isinstance(item, np.ndarray) else sys.getsizeof(item)
        open_.extend(_parts(item))
    return total


def _parts(item: object) -> Iterable[object]:
    if isinstance(item, np.ndarray | str | bytes | int | float) or item is None:
        return ()
    if isinstance(item, Mapping):
        return (part for pair in item.items() for part in pair)
    if isinstance(item, list | tuple | set | frozenset):
        return item
    if dataclasses.is_dataclass(item):
        return [getattr(item, each.name) for each in dataclasses.fields(item)]
    return list(getattr(item, "__dict__", {}).values())


BATCH = 256
"""Questions asked at once. A resumed run asks the same batches, so that it computes the same digits."""

SAMPLE, SAMPLE_SECONDS = 50, 5.0
"""Questions asked one by one after all others, to measure how long one takes; fewer where that takes too long."""

_NUMBERS = (int, float, np.floating, np.integer)  # NumPy's single precision is no float of Python's

Progress = Callable[[int, int], None]


@dataclass(frozen=True, slots=True)
class Search:
    """Asks a retriever.

    Args:
        out: the run folder.
        ids: of the tables of the corpus.
        progress: told after every batch how many of how many questions are done.
    """

    out: Path
    config: RunConfig
    ids: Set[TableId]
    progress: Progress | None = None

    def run(self, retriever: Retriever, corpus: Corpus, questions: Sequence[Question]) -> None:
        """Write a record for each question that has none yet.

        Raises:
            BenchmarkError: the retriever raises, or what it gives is no ranking of the corpus; the records of the
                batches before are written.
        """
        done = {record.query_id for record in read_records(self.out / RECORDS)}
        batches = [questions[start : start + BATCH] for start in range(0, len(questions), BATCH)]
        todo = [batch for batch in batches if any(question.id not in done for question in batch)]
        if todo:
            index = self._index(retriever, corpus)
            self._ask(index, todo, done)
            if self.config.resolved in NAMES:
                self._sample(index, questions)

    def _index(self, retriever: Retriever, corpus: Corpus) -> TableIndex:
        started = time.perf_counter()
        with self._blame("while indexing"):
            index = retriever.index(corpus, self.config.fields)
        seconds = time.perf_counter() - started
        self._time({"stage": "index", "seconds": seconds, "bytes": footprint(index)})
        return index

    def _ask(self, index: TableIndex, todo: Sequence[Sequence[Question]], done: Set[str]) -> None:
        records = Appender(self.out / RECORDS)
        total, asked = sum(map(len, todo)), 0
        for batch in todo:
            started = time.perf_counter()
            with self._blame(f"at questions {batch[0].id!r} to {batch[-1].id!r}"):
                rankings, faults = self._rankings(index, batch)
            seconds = time.perf_counter() - started
            found = self._check(batch, rankings, faults)
            records.add(record.to_json() for record in found if record.query_id not in done)
            self._time({"stage": "search", "queries": len(batch), "seconds": seconds})
            asked += len(batch)
            if self.progress is not None:
                self.progress(asked, total)

    def _rankings(self, index: TableIndex, batch: Sequence[Question]) -> tuple[list[Ranking], Sequence[str]]:
        """Ask; give the rankings, and why some are in another order than was asked for.

        The oracle knows gold tables by the words of a question, and two may be put in the same.
        """
        depth, texts = self.config.depth, [question.text for question in batch]
        faults = [""] * len(batch)
        if self.config.resolved == "oracle":
            return [gold_ranking(question.gold, depth) for question in batch], faults
        if isinstance(index, JudgeRerankerIndex):
            found = index.find(texts, depth)
            return [each.ranking for each in found], [each.fault for each in found]
        return list(index.search(texts, depth)), faults

    def _check(self, batch: Sequence[Question], rankings: Sequence[object], faults: Sequence[str]) -> list[Record]:
        name = self.config.resolved
        if len(rankings) != len(batch):
            raise BenchmarkError(f"retriever {name} gave {len(rankings)} rankings for {len(batch)} questions")
        records = []
        for question, ranking, unusable in zip(batch, rankings, faults, strict=True):
            fault = _fault(ranking, self.ids)
            if fault:
                raise BenchmarkError(f"retriever {name}, question {question.id!r}: {fault}")
            hits: Ranking = tuple(cast("Sequence[Hit]", ranking)[: self.config.depth])
            records.append(Record(question.id, question.gold, hits, question.text, unusable))
        return records

    def _sample(self, index: TableIndex, questions: Sequence[Question]) -> None:
        """Time some questions one by one. Their vectors are known by now: nothing is embedded for a measurement.

        Retrievers of others are left alone: what a question costs them is not ours to spend.
        """
        drawn = Random(0).sample(questions, min(SAMPLE, len(questions)))
        seconds = []
        for question in drawn:
            started = time.perf_counter()
            index.search([question.text], self.config.depth)
            seconds.append(time.perf_counter() - started)
            if sum(seconds) > SAMPLE_SECONDS:
                break
        self._time({"stage": "latency", "seconds": [round(each, 6) for each in seconds]})

    @contextmanager
    def _blame(self, where: str) -> Iterator[None]:
        """Say of an error that it is the retriever's, and that nothing is lost."""
        try:
            yield
        except AlmanaqError:
            raise
        except Exception as error:
            message = " ".join(str(error).split())
            raise BenchmarkError(
                f"retriever {self.config.resolved} raised {type(error).__name__} {where}: {message}; earlier records "
                f"are kept in {self.out}: fix it and continue with --resume"
            ) from error

    def _time(self, timing: Mapping[str, object]) -> None:
        Appender(self.out / TIMINGS).add([json.dumps(timing)])


def _fault(ranking: object, ids: Set[TableId]) -> str:
    """Say what is wrong with a ranking; "" where nothing is."""
    if not isinstance(ranking, Sequence) or isinstance(ranking, str):
        return f"it gave {ranking!r} as a ranking, which is not a list of hits"
    seen: set[TableId] = set()
    before = math.inf
    for hit in ranking:
        if not isinstance(hit, Hit) or not isinstance(hit.score, _NUMBERS):
            return f"it gave {hit!r}, which is not a Hit with a table's id and a score"
        if hit.id not in ids:
            return f"it found {hit.id}, which is not in the corpus"
        if hit.id in seen:
            return f"it lists {hit.id} twice"
        if not math.isfinite(hit.score):
            return f"it scored {hit.id} with a value that is not a number"
        if hit.score > before:
            return f"its scores rise at {hit.id}: the best must come first"
        seen.add(hit.id)
        before = hit.score
    return ""


FILE = "progress.log"
_SECONDS = 60.0


@contextmanager
def log_progress(folder: Path, progress: Progress | None, *, seconds: float = _SECONDS) -> Iterator[Progress]:
    """Give what is told how many of how many questions are done, and passes it on; the file is begun after a minute."""
    started, ended = time.monotonic(), threading.Event()
    state = ["indexing"]

    def tell(done: int, total: int) -> None:
        state[0] = f"{done:,} of {total:,} questions"
        if progress is not None:
            progress(done, total)

    def write() -> None:
        while not ended.wait(seconds):
            with (folder / FILE).open("a", encoding="utf-8") as out:
                out.write(f"{time.strftime('%H:%M:%S')}  {time.monotonic() - started:,.0f} s  {state[0]}\n")

    thread = threading.Thread(target=write, name="progress of a run", daemon=True)
    thread.start()
    try:
        yield tell
    finally:
        ended.set()
        thread.join()
