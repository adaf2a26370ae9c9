"""Downloads a published dataset from the Hugging Face hub into a dataset folder, at a commit that is written down.

Nothing here runs unless the user asks for a download. A file that broke off goes on where it stopped; one that is
there and whole is not fetched again; sizes, and hashes where the hub gives them, are checked.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from http.client import HTTPException
from pathlib import Path
from typing import Any
from urllib.parse import quote, urljoin, urlsplit

from almanaq.errors import SourceError, UsageError, suggest
from almanaq_bench.cards import Card
from almanaq_bench.question_sets import DatasetFolder, open_dataset
from almanaq_bench.records import write_whole

SOURCE = "source.json"
_PIECE = 1 << 20
_SECONDS = 60
_COMMIT = re.compile(r"[0-9a-f]{40}")
_SHARD = re.compile(r"(?:.*/)?(?P<split>[\w.]+)-(?P<number>\d{5})-of-(?P<of>\d{5})(?:-[0-9a-f]{16})?\.parquet")

Progress = Callable[[str, int, int], None]
"""Told after every piece: the file, how many bytes of it are here, and how many there are."""


@dataclass(frozen=True, slots=True)
class RemoteFile:
    """A file of a repository, and the name that it gets here; `sha256` "" where the hub gives none."""

    repository: str
    path: str
    name: str
    size: int
    sha256: str = ""


_MOST_LISTED = 64 * 2**20
"""Bytes of one page of the hub's list of files; a page holds a thousand."""


def endpoint() -> str:
    """Return the hub's address: HF_ENDPOINT, as its own tools read it, or the public one."""
    return os.environ.get("HF_ENDPOINT", "https://huggingface.co").rstrip("/")


def fetch(
    card: Card, data_dir: Path, *, revision: str = "", split: str | None = None, progress: Progress | None = None
) -> DatasetFolder:
    """Download a dataset, or one split of it, into `data_dir/NAME`.

    Args:
        revision: a commit of both repositories, or `CORPUS,QUERIES`; by default the one that the card names.

    Raises:
        UsageError: the dataset is not on the hub, no revision is known, or it has no such split.
        SourceError: the hub cannot be reached, or sends something else than it announced.
    """
    if card.source is None:
        raise UsageError(
            f"{card.name} is not published in TARGET's layout: download it to {data_dir / card.name} yourself"
        )
    folder = data_dir / card.name
    revisions = _revisions(card, revision)
    wanted = [file for part, of in revisions.items() for file in _list_files(part, of, card, split)]
    _check_same(folder, revisions)
    for file in wanted:
        _download(file, revisions[file.repository], folder, progress)
    files = {file.name: {"size": file.size, "sha256": file.sha256 or _sha256(folder / file.name)} for file in wanted}
    known = read_source(folder).get("files", {})
    record = {"endpoint": endpoint(), "revisions": revisions, "licence": card.licence, "files": known | files}
    write_whole(folder / SOURCE, json.dumps(record, indent=1) + "\n")
    return open_dataset(folder)


def read_source(folder: Path) -> dict[str, Any]:
    """Return what was written down of a download: `revisions` and `files`; {} for data that came in another way."""
    file = folder / SOURCE
    if not file.exists():
        return {}
    try:
        record = json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise SourceError(f"{file} is damaged: {error}; fetch the dataset again into an empty folder") from error
    return record if isinstance(record, dict) else {}


def _revisions(card: Card, given: str) -> dict[str, str]:
    assert card.source is not None
    parts = [part for part in (card.source.corpus, card.source.queries) if part]
    named = [text.strip() for text in (given or card.source.revision).split(",") if text.strip()]
    if not named:
        raise UsageError(
            f"no revision of {card.name} was checked yet: name a commit with --revision, as {endpoint()}/datasets/"
            f"{parts[0]}/commits/main shows it"
        )
    if len(named) not in (1, len(parts)):
        raise UsageError(f"--revision takes one commit, or one for each of {', '.join(parts)}, between commas")
    wrong = next((text for text in named if not _COMMIT.fullmatch(text)), None)
    if wrong is not None:
        raise UsageError(f"--revision takes a commit of 40 hexadecimal digits, which never changes, not {wrong!r}")
    return dict(zip(parts, named * (len(parts) // len(named)), strict=True))


def _list_files(repository: str, revision: str, card: Card, split: str | None) -> list[RemoteFile]:
    """Return the shards of a repository that are wanted."""
    part = "corpus" if card.source is not None and repository == card.source.corpus else "queries"
    found: list[RemoteFile] = []
    splits = set()
    for entry in _tree(repository, revision):
        name = _SHARD.fullmatch(str(entry.get("path", "")))
        if entry.get("type") != "file" or name is None:
            continue
        splits.add(name["split"])
        if split in (None, name["split"]):
            local = f"{part}/{name['split']}-{name['number']}-of-{name['of']}.parquet"
            sha256 = str((entry.get("lfs") or {}).get("oid", ""))
            found.append(RemoteFile(repository, entry["path"], local, int(entry["size"]), sha256))
    if not found:
        what = f"no split {split!r}" if split and splits else "no Parquet shards"
        raise UsageError(f"{repository} at {revision} has {what}{suggest(split or '', splits)}")
    return found


def _tree(repository: str, revision: str) -> Iterator[dict[str, Any]]:
    """Yield what the hub says of every file, page by page."""
    page = f"{endpoint()}/api/datasets/{repository}/tree/{revision}?recursive=true"
    while page:
        with _open_url(urllib.request.Request(page), repository) as reply:
            try:
                entries = json.loads(reply.read(_MOST_LISTED))
            except ValueError as error:
                raise SourceError(f"{page}: the hub's reply is not JSON") from error
            following = re.search(r'<([^>]+)>\s*;\s*rel="next"', reply.headers.get("Link") or "")
        yield from entries
        page = urljoin(page, following[1]) if following else ""


def _check_same(folder: Path, revisions: Mapping[str, str]) -> None:
    before = read_source(folder).get("revisions", {})
    other = {name for name in revisions if before.get(name, revisions[name]) != revisions[name]}
    if other:
        name = sorted(other)[0]
        raise UsageError(f"{folder} holds {name} at {before[name]}: take another --data-dir for {revisions[name]}")


def _download(file: RemoteFile, revision: str, folder: Path, progress: Progress | None) -> None:
    target = folder / file.name
    draft = target.with_name(target.name + ".part")
    if target.exists() and target.stat().st_size == file.size and file.sha256 in ("", _sha256(target)):
        return
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        _receive(file, revision, draft, progress)
    except OSError as error:
        raise SourceError(
            f"cannot write {draft}: {error}; what is there is kept, and the next fetch continues"
        ) from error
    size, sha256 = draft.stat().st_size, _sha256(draft)
    if size < file.size:
        raise _interrupted_error(file, f"{size} of {file.size} bytes")
    if size > file.size or file.sha256 not in ("", sha256):
        draft.unlink()
        raise SourceError(f"{file.repository}/{file.path}: the hub sent another file than it announced; fetch again")
    os.replace(draft, target)


def _receive(file: RemoteFile, revision: str, draft: Path, progress: Progress | None) -> None:
    """Append what is missing of a file to its draft."""
    have = draft.stat().st_size if draft.exists() else 0
    if have > file.size:
        draft.unlink()
        have = 0
    if have == file.size and draft.exists():
        return
    url = f"{endpoint()}/datasets/{file.repository}/resolve/{revision}/{quote(file.path)}"
    request = urllib.request.Request(url, headers={"Range": f"bytes={have}-"} if have else {})
    with _open_url(request, file.repository) as reply:
        # A server without ranges sends the whole file again.
        goes_on = have > 0 and reply.status == 206
        have = have if goes_on else 0
        with draft.open("ab" if goes_on else "wb") as out:
            for piece in _pieces(reply, file):
                out.write(piece)
                have += len(piece)
                if have > file.size:
                    break  # it is refused by its size; the rest may have no end
                if progress is not None:
                    progress(file.name, have, file.size)


def _pieces(reply: Any, file: RemoteFile) -> Iterator[bytes]:
    try:
        while piece := reply.read(_PIECE):
            yield piece
    except (HTTPException, OSError) as error:
        raise _interrupted_error(file, str(error)) from error


def _interrupted_error(file: RemoteFile, why: str) -> SourceError:
    return SourceError(f"{file.repository}/{file.path} broke off ({why}): the next fetch continues there")


def _open_url(request: urllib.request.Request, repository: str) -> Any:
    host = urlsplit(request.full_url).netloc
    try:
        return urllib.request.urlopen(request, timeout=_SECONDS)
    except urllib.error.HTTPError as error:
        with error:
            what = "has no such repository, revision or file" if error.code == 404 else f"answers {error.code}"
        raise SourceError(f"{host} {what}: {request.full_url}") from error
    except (OSError, HTTPException) as error:
        reason = getattr(error, "reason", error)
        raise SourceError(f"cannot reach {host} for {repository}: {reason}; HF_ENDPOINT names another hub") from error


def _sha256(file: Path) -> str:
    with file.open("rb") as data:
        return hashlib.file_digest(data, "sha256").hexdigest()
