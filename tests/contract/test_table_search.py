"""Finding tables from Python: over a source and over an index, as `almanaq find` does."""

from __future__ import annotations

import json

import pytest

import almanaq
from almanaq.cli.app import app

TABLES = {
    "rivers": "river,length_km\nRhine,1230\nLoire,1006\nRhône,813\n",
    "mountains": "mountain,height_m\nEiger,3967\nMatterhorn,4478\n",
    "bakeries": "bakery,street\nAlba,Main Street\nBrio,Side Street\n",
}
QUESTION = "How long is the Rhine river?"


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    place = tmp_path_factory.mktemp("atlas")
    for name, text in TABLES.items():
        (place / f"{name}.csv").write_text(text, encoding="utf-8")
    return place


def test_a_hit_names_its_table_and_holds_it(folder):
    found = almanaq.tables(folder, embedder="lexical")
    assert len(found) == len(list(found)) == 3
    hits = found.find(QUESTION, k=2, nearest=True)
    assert all(isinstance(hit, almanaq.TableHit) for hit in hits)
    assert (hits[0].database_id, hits[0].table_id) == (folder.name, "rivers")
    assert hits[0].table.header == ("river", "length_km")
    assert hits[0].title == hits[0].table.title
    assert [hit.score for hit in hits] == sorted((hit.score for hit in hits), reverse=True)


def test_it_finds_what_the_command_finds(folder, tmp_path, capsys):
    def command(*flags: str) -> list[tuple[str, float]]:
        app(["find", QUESTION, "--nearest", "--json", *flags], standalone_mode=False)
        return [(hit["table_id"], hit["score"]) for hit in json.loads(capsys.readouterr().out)]

    def shown(hits):
        return [(hit.table_id, round(hit.score, 6)) for hit in hits]

    for name in ("hybrid", "bm25"):
        hits = almanaq.tables(str(folder), retriever=name, embedder="lexical").find(QUESTION, nearest=True)
        assert shown(hits) == command("--corpus", str(folder), "--retriever", name, "--embedder", "lexical")
    made = almanaq.index(folder, out=tmp_path / "index")
    assert len(made) == 3
    again = almanaq.tables(index=tmp_path / "index")
    assert shown(again.find(QUESTION, nearest=True)) == shown(made.find(QUESTION, nearest=True))
    assert shown(again.find(QUESTION, nearest=True)) == command("--index", str(tmp_path / "index"))
    assert again.find(QUESTION, k=1, nearest=True)[0].table.rows[0] == ("Rhine", "1230")


def test_an_index_may_hold_vectors_of_an_embedder_of_one_s_own(folder, tmp_path):
    from almanaq.models.embedders.base import LexicalEmbedder

    class Own(LexicalEmbedder):
        name = "own"

    almanaq.index(folder, out=tmp_path / "index", embedder=Own())
    with pytest.raises(almanaq.UsageError, match="'own'"):
        almanaq.tables(index=tmp_path / "index").find(QUESTION)
    hits = almanaq.tables(index=tmp_path / "index", embedder=Own()).find(QUESTION, nearest=True)
    assert hits[0].table_id == "rivers"
    words = almanaq.tables(index=tmp_path / "index", retriever="bm25").find(QUESTION)
    assert words[0].table_id == "rivers"


def test_where_nothing_fits_nothing_is_found_unless_the_nearest_are_asked_for(folder):
    found = almanaq.tables(folder, embedder="lexical")
    assert found.find("zzyzx quux frobnicate") == []


def test_progress_is_told(folder, tmp_path):
    told: list[tuple[int, int]] = []
    almanaq.index(folder, out=tmp_path / "index", progress=lambda done, total: told.append((done, total)))
    assert told[-1] == (3, 3)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({}, "either a source or index"),
        ({"source": "x", "index": "y"}, "either a source or index"),
        ({"source": {"t": {"a": [1]}}, "fields": "title"}, "list"),
        ({"source": {"t": {"a": [1]}}, "fields": ["titel"]}, "title"),
    ],
)
def test_wrong_usage_is_named(given, said):
    with pytest.raises(almanaq.UsageError, match=said):
        almanaq.tables(**given)


def test_an_index_keeps_its_fields_and_its_retrievers(folder, tmp_path):
    almanaq.index(folder, out=tmp_path / "index", fields=["title"], language=None)
    for wrong in ({"fields": ["title"]}, {"retriever": "dense"}):
        with pytest.raises(almanaq.UsageError):
            almanaq.tables(index=tmp_path / "index", **wrong)
    with pytest.raises(almanaq.UsageError, match="empty"):
        almanaq.tables(index=tmp_path / "index").find(" ")


def test_a_name_that_nothing_has_is_an_error_at_once(folder, tmp_path):
    for given, near in (
        ({"retriever": "bm26"}, "bm25"),
        ({"embedder": "lexcial"}, "lexical"),
        ({"fields": ["titel"]}, "title"),
    ):
        with pytest.raises(almanaq.UsageError, match=f"did you mean.*{near}"):
            almanaq.tables(folder, **given)
    with pytest.raises(almanaq.UsageError, match="lexical"):
        almanaq.index(folder, out=tmp_path / "index", embedder="lexcial")
    assert not (tmp_path / "index").exists()


@pytest.mark.parametrize("question", ["Who won the chess final?", QUESTION])
def test_the_nearest_tables_are_given_of_any_source(folder, tmp_path, question):
    made = almanaq.index(folder, out=tmp_path / "index")
    for found in (almanaq.tables(folder, embedder="lexical"), almanaq.tables(folder, retriever="bm25"), made):
        assert found.find(question, k=2, nearest=True)
        assert 0 < len(found.find("zzz qqq", k=2, nearest=True)) <= 2
        assert found.find("zzz qqq", k=2) == []


def test_a_hit_can_be_queried(folder, tmp_path):
    made = almanaq.index(folder, out=tmp_path / "index")
    for found in (almanaq.tables(folder, retriever="bm25"), made):
        hit = found.find(QUESTION, k=1, nearest=True)[0]
        for source in ({"x": hit}, {"x": hit.table}):
            with almanaq.connect(source) as con:
                assert con.sql("SELECT river FROM x WHERE length_km < 1000").rows == [("Rhône",)]
        with almanaq.connect(hit) as con:
            assert len(con.sql("SELECT * FROM data")) == 3


def test_a_hit_with_odd_names_and_cells_is_queried_as_it_stands():
    from almanaq.corpus.table import Table, TableId

    rows = (("1", "", "x", "3"), ("2", "7", "y", "n/a"))
    with almanaq.connect({"t": Table(TableId("d", "t"), ("id", "id", "", "n"), rows)}) as con:
        result = con.sql("SELECT * FROM t")
    assert (result.columns, result.rows) == (
        ("id", "id_2", "column_3", "n"),
        [(1, None, "x", "3"), (2, 7, "y", "n/a")],
    )
