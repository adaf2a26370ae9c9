"""Order by the rules of a language: PostgreSQL's names of collations on DuckDB, and an error where there is none."""

from __future__ import annotations

import pytest

import almanaq

TOWNS = {"towns": {"name": ["Zug", "Ägeri", "aarau", "Aarau", "Örebro", "Olten"]}}


@pytest.mark.parametrize("name", ["de_DE", "de_DE.utf8", "de-x-icu", "und-x-icu"])
def test_umlauts_stand_beside_their_letters(name: str) -> None:
    with almanaq.connect(TOWNS) as con:
        found = con.sql(f'SELECT name FROM towns ORDER BY name COLLATE "{name}"')
        assert [row[0] for row in found] == ["aarau", "Aarau", "Ägeri", "Olten", "Örebro", "Zug"]


def test_a_language_has_rules_of_its_own() -> None:
    with almanaq.connect(TOWNS) as con:
        swedish = [row[0] for row in con.sql('SELECT name FROM towns ORDER BY name COLLATE "sv-x-icu"')]
        by_bytes = [row[0] for row in con.sql('SELECT name FROM towns ORDER BY name COLLATE "C"')]
    assert swedish[-2:] == ["Ägeri", "Örebro"]
    assert by_bytes == sorted(TOWNS["towns"]["name"])


@pytest.mark.parametrize("name", ["tlh_KL", "nocase", "de; DROP"])
def test_what_is_no_collation_is_refused_by_name(name: str) -> None:
    with almanaq.connect(TOWNS) as con, pytest.raises(almanaq.errors.QueryError, match="COLLATE"):
        con.sql(f'SELECT name FROM towns ORDER BY name COLLATE "{name}"')
