"""Weights of small models on this machine: those on offer, fetched from their hub, and the one that `auto` takes."""

from __future__ import annotations

import hashlib
import os
import urllib.error
import urllib.request
from collections.abc import Callable
from dataclasses import dataclass
from http.client import HTTPException
from importlib.util import find_spec
from pathlib import Path

from almanaq.errors import ModelError, UsageError, suggest
from almanaq.models.private_files import default_cache_folder, open_private

HUB = "https://huggingface.co"
"""Where weights are; HF_ENDPOINT names a mirror, as for the hub's own client. What comes is checked by its hash."""
GGUF = "gguf:"
"""Begins the name of a model whose weights lie on this machine."""
_SECONDS, _CHUNK = 30, 2**20
_MAGIC = b"GGUF"
_CHOSEN = "chosen"

Report = Callable[[int], None]
"""Called with the bytes that are there."""


@dataclass(frozen=True, slots=True)
class Offer:
    """Weights that can be fetched: the file of a repository at a revision, and the hash of its bytes."""

    name: str
    repository: str
    revision: str
    file: str
    bytes: int
    sha256: str
    licence: str

    @property
    def url(self) -> str:
        """The address of the file."""
        hub = os.environ.get("HF_ENDPOINT") or HUB
        return f"{hub.rstrip('/')}/{self.repository}/resolve/{self.revision}/{self.file}"

    @property
    def path(self) -> Path:
        """Where the file lies once it is fetched."""
        return weights_folder() / self.file


OFFERS = tuple(
    Offer(
        f"qwen2.5-coder-{size}",
        f"Qwen/Qwen2.5-Coder-{size.upper()}-Instruct-GGUF",
        revision,
        f"qwen2.5-coder-{size}-instruct-q4_k_m.gguf",
        length,
        sha256,
        "Apache-2.0",
    )
    for size, revision, length, sha256 in (
        (
            "0.5b",
            "ebb2015119c907b064c512bf053e945850b5875f",
            491_400_064,
            "1d9614638d18024d0fbb36575a15f1302a3adf044df10345688ec4f6e1c4ff32",
        ),
        (
            "1.5b",
            "f86cb2c1fa58255f8052cc32aeede1b7482d4361",
            1_117_320_768,
            "cc324af070c2ecbfd324a30884d2f951a7ff756aba85cb811a6ec436933bb046",
        ),
    )
)
"""The smallest first; the first is the default, as only it was measured."""


def weights_folder() -> Path:
    """Return the folder of weights that were fetched."""
    return default_cache_folder() / "models"


def find_offer(name: str | None) -> Offer:
    """Return the weights on offer under a name, the default for None; raises UsageError where there are none."""
    for offer in OFFERS:
        if name in (None, offer.name, offer.file):
            return offer
    names = [offer.name for offer in OFFERS]
    raise UsageError(f"no weights called {name!r} are on offer{suggest(str(name), names)}: give {' or '.join(names)}")


def fetch_weights(offer: Offer, report: Report = lambda _: None) -> Path:
    """Return the file of an offer; what an earlier try left is completed. Raises ModelError."""
    if offer.path.is_file() and offer.path.stat().st_size == offer.bytes:
        return offer.path
    if os.environ.get("ALMANAQ_OFFLINE") == "1":
        raise ModelError("ALMANAQ_OFFLINE is 1, so nothing is fetched: unset it, or give a file: almanaq models use")
    part = offer.path.with_suffix(".part")
    part.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    if part.is_file() and part.stat().st_size > offer.bytes:
        part.unlink()
    try:
        _download(offer, part, report)
    except (OSError, HTTPException) as problem:
        there = part.stat().st_size if part.is_file() else 0
        why = getattr(problem, "reason", None) or problem
        raise ModelError(
            f"{offer.url} cannot be fetched ({why}); {there:,} of {offer.bytes:,} bytes are there: run the command "
            "again to go on, or fetch the file yourself and give it to  almanaq models use FILE"
        ) from problem
    with part.open("rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    if digest != offer.sha256:
        part.unlink()
        raise ModelError(f"what came from {offer.url} is not what was offered (its SHA-256 differs): it was deleted")
    part.replace(offer.path)
    return offer.path


def _download(offer: Offer, part: Path, report: Report) -> None:
    there = part.stat().st_size if part.is_file() else 0
    if there == offer.bytes:
        return
    request = urllib.request.Request(offer.url, headers={"Range": f"bytes={there}-"} if there else {})
    with urllib.request.urlopen(request, timeout=_SECONDS) as reply:
        if reply.status != 206:  # it sends the whole file
            there = 0
        with open(part, "ab" if there else "wb", opener=open_private) as file:
            while there < offer.bytes and (chunk := reply.read(_CHUNK)):
                file.write(chunk[: offer.bytes - there])
                there = min(there + len(chunk), offer.bytes)
                report(there)
    if there < offer.bytes:
        raise OSError("the connection broke off")


def list_weights() -> dict[str, Path]:
    """Return the weights that are there, by the name of their model: those fetched, and the file that was chosen."""
    found = {offer.name: offer.path for offer in OFFERS if offer.path.is_file()}
    file = chosen_file()
    if file is not None and file not in found.values():
        found[file.stem] = file
    return found


def _is_offered(name: str) -> bool:
    return any(offer.name == name for offer in OFFERS)


def find_weights(name: str) -> Path:
    """Return the file of `gguf:NAME` or `gguf:FILE`; raises ModelError where there is none."""
    known = list_weights()
    if name in known:
        return known[name]
    path = Path(name).expanduser()
    if path.suffix.lower() == ".gguf" and path.is_file():
        return path
    way = f"fetch them with  almanaq models get {name}" if _is_offered(name) else "almanaq models lists what there is"
    raise ModelError(f"there are no weights {name!r} on this machine: {way}")


def model_of(file: Path) -> str:
    """Return the name of the model of a file of weights, as `--model` takes it."""
    known = {path: name for name, path in list_weights().items()}
    return f"{GGUF}{known.get(file, file)}"


def use_weights(given: str) -> Path:
    """Have `auto` take a file of weights, or a fetched offer; return the file. Raises UsageError."""
    fetched = {offer.name: offer.path for offer in OFFERS if offer.path.is_file()}
    path = fetched.get(given) or Path(given).expanduser().resolve()
    if not path.is_file():
        way = f"fetch it with  almanaq models get {given}" if _is_offered(given) else "give the path of a .gguf file"
        raise UsageError(f"there is no file {given!r} of weights: {way}")
    with path.open("rb") as file:
        if file.read(len(_MAGIC)) != _MAGIC:
            raise UsageError(f"{path} is no GGUF file: give weights in llama.cpp's format")
    weights_folder().mkdir(parents=True, exist_ok=True, mode=0o700)
    (weights_folder() / _CHOSEN).write_text(str(path), encoding="utf-8")
    return path


def forget_choice() -> None:
    """Have `auto` take no weights; the files stay."""
    (weights_folder() / _CHOSEN).unlink(missing_ok=True)


def chosen_file() -> Path | None:
    """Return the weights that `auto` takes; None where none were chosen, or they are gone."""
    try:
        path = Path((weights_folder() / _CHOSEN).read_text("utf-8"))
    except (OSError, UnicodeError):
        return None
    return path if path.is_file() else None


def llm_is_installed() -> bool:
    """Return whether the extra `llm` is there, which runs weights."""
    return find_spec("xllamacpp") is not None
