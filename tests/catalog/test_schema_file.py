"""The schema file: what it says is applied, what it cannot say is an error, and it can be written back."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from typer.testing import CliRunner

from almanaq.cli.app import app
from almanaq.errors import SourceError
from almanaq.suql.catalog.relations import Catalog, Column, ColumnKind, Relation
from almanaq.suql.catalog.schema_file import apply_schema, describe, parse_schema, read_schema

PLACES = Relation(
    "restaurants",
    ("src", "main", "restaurants"),
    (Column("id", "bigint"), Column("price", "text"), Column("reviews", "text", array=True)),
    rows=3,
)
CATALOG = Catalog((PLACES,))


def test_what_is_said_replaces_what_was_found() -> None:
    text = """
        [Restaurants]
        description = "places"
        key = ["ID"]
        [Restaurants.columns.reviews]
        kind = "free_text"
        private = true
        [Restaurants.columns.price]
        kind = "enum"
        values = ["cheap", "dear"]
    """
    relation = apply_schema(CATALOG, parse_schema(text)).relation("restaurants")
    assert (relation.description, relation.key) == ("places", ("id",))
    assert (relation.columns[1].kind, relation.columns[1].values) == (ColumnKind.ENUM, ("cheap", "dear"))
    assert relation.columns[2].private
    assert relation.columns[0] == PLACES.columns[0]


def test_a_foreign_key_has_the_names_of_the_catalog_and_stays_in_its_schema() -> None:
    areas = [Relation(f"{place}.areas", ("src", place, "areas"), (Column("No", "bigint"),)) for place in ("a", "main")]
    said = parse_schema('[restaurants]\nforeign_keys = [{columns = ["ID"], table = "Areas", references = ["no"]}]')
    found = apply_schema(Catalog((PLACES, *areas)), said).relation("restaurants")
    assert found.foreign_keys == ((("id",), "main.areas", ("No",)),)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[restaurant]", r"no table 'restaurant'; did you mean 'restaurants'"),
        ('[restaurants]\nkey = ["idd"]', r"no column 'idd'; did you mean 'id'"),
        ('[restaurants.columns.reviws]\nkind = "free_text"', r"no column 'reviws'; did you mean 'reviews'"),
        ('[restaurants.columns.price]\nkind = "enumm"', r"column 'price': no kind 'enumm'; did you mean 'enum'"),
        ('[restaurants.columns.id]\nkind = "free_text"', "free_text needs text, and the column is bigint"),
        ('[restaurants.columns.price]\nkinds = "enum"', r"no setting 'kinds'; did you mean 'kind'"),
        ('[restaurants.columns.price]\nprivate = "yes"', "private must be true or false"),
        ('[restaurants]\nkey = "id"', "key must be a list of strings"),
        ("restaurants = 1", "a table of settings is expected"),
        ('[restaurants]\nforeign_keys = [{columns = ["id"]}]', "a foreign key is"),
        ("[restaurants", "is not TOML"),
        ('[restaurants.columns.price]\nkind = "structured"\nvalues = ["a"]', "only kind"),
    ],
)
def test_faults_are_named(text: str, message: str) -> None:
    with pytest.raises(SourceError, match=message):
        apply_schema(CATALOG, parse_schema(text, "x.toml"))


names = st.text(st.characters(codec="utf-8", exclude_categories=["Cs"]), min_size=1, max_size=12)
columns = st.builds(
    Column,
    names,
    st.just("text"),
    st.sampled_from([ColumnKind.FREE_TEXT, ColumnKind.STRUCTURED]),
    st.booleans(),
    description=names,
    samples=st.lists(names, max_size=2).map(tuple),
    private=st.booleans(),
)


@given(st.lists(st.tuples(names, st.lists(columns, max_size=3, unique_by=lambda c: c.name.casefold())), max_size=3))
def test_a_described_catalog_reads_back_the_same(relations: list[tuple[str, list[Column]]]) -> None:
    by_name = {name.casefold(): Relation(name, ("x",), tuple(cols), rows=1) for name, cols in relations}
    catalog = Catalog(tuple(by_name.values()))
    plain = Catalog(
        tuple(
            Relation(
                r.name,
                r.location,
                tuple(Column(c.name, c.type, array=c.array, samples=c.samples) for c in r.columns),
                rows=1,
            )
            for r in catalog.relations
        )
    )
    assert apply_schema(plain, parse_schema(describe(catalog))) == catalog


def test_what_is_written_of_a_private_column_is_what_a_person_said_of_it(tmp_path: Path) -> None:
    """Neither samples nor values, not even where another schema file is named and the one that is replaced marks it."""
    rows = "\n".join(f"{n},{'secret' if n % 2 else 'hidden'},open {n % 3}" for n in range(12))
    (tmp_path / "t.csv").write_text(f"id,word,other\n{rows}\n")
    beside, named = tmp_path / "t.csv.almanaq.toml", tmp_path / "named.toml"
    marked = '[t.columns.word]\nkind = "enum"\nprivate = true\ndescription = "told"\n'
    named.write_text('[t.columns.word]\nkind = "enum"\n')
    for words in ([], ["--write", "--overwrite"], ["--write", "--overwrite", "--schema", str(named)]):
        beside.write_text(marked)
        said = CliRunner().invoke(app, ["schema", str(tmp_path / "t.csv"), *words])
        assert said.exit_code == 0, said.output
        text = said.output + (beside.read_text() if words else "")
        assert "open 1" in text
        assert not [word for word in ("secret", "hidden") if word in text], words
        assert "private = true" in text
    beside.write_text(marked + 'values = ["hidden", "secret"]\n')  # a person's own words stay
    assert CliRunner().invoke(app, ["schema", str(tmp_path / "t.csv"), "--write", "--overwrite"]).exit_code == 0
    assert read_schema(beside).relations["t"].columns["word"].values == ("hidden", "secret")
