"""A schema file counts whatever way its source is named: what it calls private is never sent."""

from __future__ import annotations

from contextlib import nullcontext

import pytest

import almanaq
from almanaq.errors import PrivateColumnError, SourceError

SCHEMA = "[patients.columns.patient]\nprivate = true\n"


@pytest.fixture
def ward(tmp_path, monkeypatch):
    folder = tmp_path / "ward"
    folder.mkdir()
    folder.joinpath("patients.csv").write_text("id,patient,note\n1,Ada,slept well\n2,Bob,ate\n")
    folder.joinpath("rooms.csv").write_text("id,room\n1,East\n2,West\n")
    monkeypatch.chdir(tmp_path)
    return folder


def is_private(source) -> bool:
    with almanaq.connect(source, cache=False) as con:
        private = con.catalog.relation("patients").column("patient").private
        with pytest.raises(PrivateColumnError) if private else nullcontext():
            con.public().sql("SELECT patient FROM patients")
        return private


@pytest.mark.parametrize("place", ["patients.csv.almanaq.toml", "patients.almanaq.toml"])
def test_a_private_column_of_a_file_is_so_however_it_is_named(ward, place, monkeypatch) -> None:
    ward.joinpath(place).write_text(SCHEMA)
    link = ward.parent / "linked.csv"
    link.symlink_to(ward / "patients.csv")
    file, other = ward / "patients.csv", ward / "rooms.csv"
    named = [
        "ward/patients.csv",
        str(file),
        "ward",
        str(ward),
        "ward/*.csv",
        f"{file},{other}",
        [str(file), str(other)],
    ]
    assert [source for source in named if not is_private(source)] == []
    with pytest.raises(SourceError, match="patients"):  # the link's table has another name
        is_private(str(link))
    monkeypatch.chdir(ward)
    assert [source for source in (".", "patients.csv", "*.csv") if not is_private(source)] == []


def test_a_folders_file_is_found_from_within(ward, monkeypatch) -> None:
    ward.parent.joinpath("ward.almanaq.toml").write_text(SCHEMA)
    assert is_private("ward")
    monkeypatch.chdir(ward)
    assert is_private(".")


def test_private_for_one_is_private(ward) -> None:
    ward.parent.joinpath("ward.almanaq.toml").write_text('[Patients.columns.PATIENT]\ndescription = "who"\n')
    ward.joinpath("patients.csv.almanaq.toml").write_text(SCHEMA)
    assert is_private("ward")


def test_two_of_one_source_are_told(ward) -> None:
    for name in ("patients.csv.almanaq.toml", "patients.almanaq.toml"):
        ward.joinpath(name).write_text(SCHEMA)
    with pytest.raises(SourceError, match="two schema files describe patients"):
        is_private("ward/patients.csv")
