"""Downloads, against a real HTTP server on the loopback that serves repositories as the hub does."""

from __future__ import annotations

import hashlib
import io
import json
import re
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import ClassVar

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from small_datasets import no_embedder

from almanaq.corpus.table import TableId
from almanaq.errors import SourceError, UsageError
from almanaq_bench.cards import Card, HubSource
from almanaq_bench.config import RunRequest
from almanaq_bench.data import datasets_in
from almanaq_bench.hub import fetch, read_source
from almanaq_bench.runner import run

COMMIT = "0123456789abcdef0123456789abcdef01234567"
CARD = Card("small", "", "MIT", (), "", HubSource("lab/small-corpus", "lab/small-queries"))


def parquet(rows: list[dict]) -> bytes:
    out = io.BytesIO()
    pq.write_table(pa.Table.from_pylist(rows), out)
    return out.getvalue()


def table(number: int) -> dict:
    return {
        "database_id": 0,
        "table_id": f"t{number}",
        "table": [["name", "size"], [f"item{number}", None]],
        "context": json.dumps({"table_page_title": f"List {number}"}),
    }


def question(number: int, gold: object) -> dict:
    return {"query_id": number, "query": f"what is item{number}?", "answer": "x", "database_id": 0, "table_id": gold}


FILES = {
    "lab/small-corpus": {
        "README.md": b"words",
        "data/test-00000-of-00002.parquet": parquet([table(0), table(1)]),
        "data/test-00001-of-00002.parquet": parquet([table(2)]),
        "data/train-00000-of-00001.parquet": parquet([table(3)]),
    },
    "lab/small-queries": {
        "data/test-00000-of-00001.parquet": parquet([question(0, ["t0"]), question(1, ["t0", "t1"])])
    },
}


class Hub(BaseHTTPRequestHandler):
    """Two endpoints of the hub: what a repository holds, page by page, and a file, with ranges."""

    asked: ClassVar[list[tuple[str, str]]] = []
    cut = 0  # bytes after which a file's connection breaks, 0: never
    wrong = False
    ranges = True

    def log_message(self, *_: object) -> None:
        pass

    def do_GET(self) -> None:
        self.asked.append((self.path, self.headers.get("Range", "")))
        if listed := re.fullmatch(r"/api/datasets/(lab/[\w-]+)/tree/(\w+)\?recursive=true(&page=2)?", self.path):
            return self.listing(listed[1], bool(listed[3]))
        if wanted := re.fullmatch(r"/datasets/(lab/[\w-]+)/resolve/(\w+)/(.+)", self.path):
            return self.content(FILES[wanted[1]][wanted[3]])
        return self.send_error(404)

    def listing(self, repository: str, second: bool) -> None:
        entries = [
            {"type": "file", "path": path, "size": len(body), "lfs": {"oid": hashlib.sha256(body).hexdigest()}}
            for path, body in FILES[repository].items()
        ]
        body = json.dumps(entries[2:] if second else entries[:2]).encode()
        self.send_response(200)
        if not second:
            self.send_header("Link", f'<{self.path}&page=2>; rel="next"')
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def content(self, body: bytes) -> None:
        start = int((self.headers.get("Range") or "bytes=0-")[6:-1]) if self.ranges else 0
        sent = bytes(len(body)) if type(self).wrong else body
        self.send_response(206 if start else 200)
        self.send_header("Content-Length", str(len(body) - start))
        self.end_headers()
        if type(self).cut:
            self.wfile.write(sent[start : start + type(self).cut])
            self.close_connection = True
        else:
            self.wfile.write(sent[start:])


@pytest.fixture
def hub(monkeypatch: pytest.MonkeyPatch) -> Iterator[type[Hub]]:
    with ThreadingHTTPServer(("127.0.0.1", 0), Hub) as server:
        threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()
        monkeypatch.setenv("HF_ENDPOINT", f"http://127.0.0.1:{server.server_port}/")
        monkeypatch.setenv("no_proxy", "127.0.0.1")
        for name, value in (("asked", []), ("cut", 0), ("wrong", False), ("ranges", True)):
            monkeypatch.setattr(Hub, name, value)
        yield Hub
        server.shutdown()


def test_a_published_dataset_is_fetched_and_read(hub: type[Hub], tmp_path: Path) -> None:
    told = []
    folder = fetch(CARD, tmp_path, revision=COMMIT, progress=lambda *step: told.append(step))
    assert folder.splits == ("test",)
    assert [each.id for each in folder.corpus("test")] == [TableId("0", f"t{n}") for n in range(3)]
    assert len(folder.corpus()) == 4
    first = next(iter(folder.corpus("test")))
    assert (first.header, first.rows, first.title) == (("name", "size"), (("item0", ""),), "List 0")
    assert folder.questions("test")[1].gold == (TableId("0", "t0"), TableId("0", "t1"))
    assert folder.corpus_split("test") == "test"
    assert {name for name, *_ in told} == set(read_source(tmp_path / "small")["files"])
    assert all(have <= size for _, have, size in told)
    assert read_source(tmp_path / "small")["revisions"] == {"lab/small-corpus": COMMIT, "lab/small-queries": COMMIT}


def test_a_run_over_it_records_the_commit(hub: type[Hub], tmp_path: Path) -> None:
    fetch(CARD, tmp_path / "data", revision=COMMIT)
    found = run(
        RunRequest("table-retrieval", "small", tmp_path / "data", "test", "bm25", tmp_path / "out", no_embedder)
    )
    assert found.config.revisions == {"lab/small-corpus": COMMIT, "lab/small-queries": COMMIT}
    assert (found.config.tables, found.config.corpus_split) == (3, "test")
    assert "corpus/test-00001-of-00002.parquet" in found.config.data


def test_what_is_there_and_whole_is_not_fetched_again(hub: type[Hub], tmp_path: Path) -> None:
    fetch(CARD, tmp_path, revision=COMMIT, split="test")
    assert not list(tmp_path.rglob("train*"))
    hub.asked.clear()
    fetch(CARD, tmp_path, revision=COMMIT)
    assert [path for path, _ in hub.asked if "resolve" in path] == [
        f"/datasets/lab/small-corpus/resolve/{COMMIT}/data/train-00000-of-00001.parquet"
    ]


@pytest.mark.parametrize("ranges", [True, False])
def test_a_broken_download_goes_on_where_it_stopped(hub: type[Hub], tmp_path: Path, ranges: bool) -> None:
    hub.cut, hub.ranges = 100, ranges
    with pytest.raises(SourceError, match=r"broke off .*the next fetch continues there"):
        fetch(CARD, tmp_path, revision=COMMIT)
    assert [file.stat().st_size for file in tmp_path.rglob("*.part")] == [100]
    hub.cut = 0
    hub.asked.clear()
    assert len(fetch(CARD, tmp_path, revision=COMMIT).corpus("test")) == 3
    assert "bytes=100-" in {asked for _, asked in hub.asked}
    assert not list(tmp_path.rglob("*.part"))


def test_another_content_than_announced_is_refused(hub: type[Hub], tmp_path: Path) -> None:
    hub.wrong = True
    with pytest.raises(SourceError, match="another file than it announced"):
        fetch(CARD, tmp_path, revision=COMMIT)
    assert not list(tmp_path.rglob("*.par*"))


def test_wrong_requests(hub: type[Hub], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(UsageError, match=r"no revision of small was checked yet.*lab/small-corpus/commits/main"):
        fetch(CARD, tmp_path)
    with pytest.raises(UsageError, match="a commit of 40 hexadecimal digits, which never changes, not 'main'"):
        fetch(CARD, tmp_path, revision="main")
    with pytest.raises(UsageError, match=r"no split 'tset'; did you mean 'test'"):
        fetch(CARD, tmp_path, revision=COMMIT, split="tset")
    with pytest.raises(SourceError, match="no such repository, revision or file"):
        fetch(Card("x", "", "", (), "", HubSource("nobody/x")), tmp_path, revision=COMMIT)
    with pytest.raises(UsageError, match="is not published"):
        fetch(Card("x", "", "", (), ""), tmp_path, revision=COMMIT)
    fetch(CARD, tmp_path, revision=COMMIT)
    with pytest.raises(UsageError, match="take another --data-dir"):
        fetch(CARD, tmp_path, revision="f" * 40)
    monkeypatch.setenv("HF_ENDPOINT", "http://127.0.0.1:9")
    with pytest.raises(SourceError, match=r"cannot reach 127\.0\.0\.1:9"):
        fetch(CARD, tmp_path / "other", revision=COMMIT)


def test_a_missing_shard_is_noticed(hub: type[Hub], tmp_path: Path) -> None:
    folder = fetch(CARD, tmp_path, revision=COMMIT)
    (tmp_path / "small" / "corpus" / "test-00000-of-00002.parquet").unlink()
    with pytest.raises(SourceError, match="shard 0 of the 2 of 'test' is not there"):
        folder.corpus("test")


@pytest.mark.parametrize("place", ["", "target-benchmark/"])
@pytest.mark.parametrize("ending", ["", "-0123456789abcdef"])
def test_repositories_that_other_tools_copied_are_read_as_they_are(tmp_path: Path, place: str, ending: str) -> None:
    """As `hf download target-benchmark/bird-corpus-validation --local-dir …` leaves them."""
    for part, repository in (("corpus", "lab/small-corpus"), ("queries", "lab/small-queries")):
        for name, content in FILES[repository].items():
            file = tmp_path / f"{place}bird-{part}-validation" / name.replace(".parquet", f"{ending}.parquet")
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(content)
    (tmp_path / "bird" / "database").mkdir(parents=True)
    request = RunRequest("table-retrieval", "bird", tmp_path, "test", "bm25", tmp_path / "out", no_embedder)
    scores = run(request)
    assert (scores.queries, scores.config.tables, scores.metrics["recall@5"]) == (2, 3, 1.0)
    assert len(scores.config.data) == 3
    assert datasets_in(tmp_path) == ["bird"]
