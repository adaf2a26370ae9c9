"""A compressed file is unpacked where the disk has room for it, however full the disk is otherwise."""

from __future__ import annotations

import errno
import gzip
import shutil
from pathlib import Path
from typing import NamedTuple

import pytest

from almanaq.corpus.files import reader
from almanaq.errors import SourceError


class Usage(NamedTuple):
    """What shutil.disk_usage gives."""

    total: int
    used: int
    free: int


@pytest.fixture
def full_disk(monkeypatch: pytest.MonkeyPatch) -> None:
    """A terabyte of which a thousandth of one per cent is free."""
    monkeypatch.setattr(shutil, "disk_usage", lambda _: Usage(10**12, 10**12 - 10**7, 10**7))


def _packed(folder: Path, size: int) -> Path:
    path = folder / "cargo.csv.gz"
    path.write_bytes(gzip.compress(b"a,b\n" + b"1,x\n" * (size // 4)))
    return path


@pytest.mark.usefixtures("full_disk")
def test_a_small_file_is_unpacked_on_a_full_disk(tmp_path: Path) -> None:
    with reader.unpack_file(_packed(tmp_path, 4000), "gzip") as file:
        assert file.read_bytes().startswith(b"a,b\n1,x\n")


@pytest.mark.usefixtures("full_disk")
def test_a_large_file_that_would_fill_the_disk_is_refused(tmp_path: Path) -> None:
    packed = _packed(tmp_path, 4 << 20)
    with pytest.raises(SourceError, match="too large for the disk"), reader.unpack_file(packed, "gzip"):
        pass


def test_a_disk_that_is_full_already_is_not_told_as_a_broken_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(reader, "_copy", full)
    with (
        pytest.raises(SourceError, match="too large for the disk"),
        reader.unpack_file(_packed(tmp_path, 40), "gzip"),
    ):
        pass
