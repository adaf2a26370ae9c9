"""A run in the form that other tools read: a TREC run file and a qrels file."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from urllib.parse import quote

import numpy as np

from almanaq.corpus.table import TableId
from almanaq.errors import BenchmarkError
from almanaq_bench.records import Record, write_whole
from almanaq_bench.run_measures import read_run


def export(run_dir: Path, out: Path) -> tuple[Path, Path]:
    """Write `run.trec` and `qrels.trec` of a run folder into the folder `out`, and give their paths.

    Columns are separated by white space, so it is percent-encoded in ids, as is `%`. Those tools break ties by id:
    a score that is not below the one before it becomes the next smaller number that they can tell apart.

    Raises:
        BenchmarkError: it is no whole run folder, or `out` cannot be written.
    """
    config, records = read_run(run_dir)
    try:
        out.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise BenchmarkError(f"cannot make {out}: {error}") from error
    tag = quote(config.resolved, safe=":+-")
    lines = [line for record in records for line in _run_lines(record, tag)]
    qrels = [f"{_plain(record.query_id)} 0 {_document(table)} 1" for record in records for table in record.gold]
    run_file, qrels_file = out / "run.trec", out / "qrels.trec"
    write_whole(run_file, "".join(f"{line}\n" for line in lines))
    write_whole(qrels_file, "".join(f"{line}\n" for line in qrels))
    return run_file, qrels_file


def _run_lines(record: Record, tag: str) -> Iterator[str]:
    scores = _strictly_falling([hit.score for hit in record.hits])
    for rank, (hit, score) in enumerate(zip(record.hits, scores, strict=True), 1):
        yield f"{_plain(record.query_id)} Q0 {_document(hit.id)} {rank} {score:.9g} {tag}"


def _strictly_falling(scores: Sequence[float]) -> list[float]:
    """Return scores that fall from rank to rank, in float32, which is what trec_eval reads."""
    fallen: list[np.float32] = []
    for score in map(np.float32, scores):
        below = np.nextafter(fallen[-1], np.float32(-np.inf)) if fallen else score
        fallen.append(min(score, below))
    return [float(score) for score in fallen]


def _document(table: TableId) -> str:
    return f"{_plain(table.database)}/{_plain(table.table)}"


def _plain(text: str) -> str:
    return "".join(quote(sign) if sign.isspace() or sign == "%" else sign for sign in text)
