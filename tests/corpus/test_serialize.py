import pytest
from hypothesis import given
from hypothesis import strategies as st

from almanaq.corpus.table import DEFAULT_FIELDS, Field, Table, TableId, field_text, parse_fields, table_text
from almanaq.errors import UsageError

TABLE = Table(
    TableId("world_1", "city"),
    ("Name", "Pop"),
    (("Lyon", "500"), ("", "7")),
    title="Cities",
    section="Europe",
    description="Towns of the world",
    keys=("ID", "Country -> country.Code"),
)


def test_each_field_has_its_text() -> None:
    assert {field: field_text(TABLE, field) for field in Field} == {
        Field.DATABASE: "world 1",
        Field.TITLE: "Cities",
        Field.SECTION: "Europe",
        Field.DESCRIPTION: "Towns of the world",
        Field.HEADER: "Name | Pop",
        Field.KEYS: "ID, Country -> country.Code",
        Field.CELLS: "Lyon | 500\n7",
    }


def test_blank_fields_leave_no_line() -> None:
    bare = Table(TableId("d", "t"), (), ())
    assert table_text(bare, DEFAULT_FIELDS) == ""


@given(st.sets(st.sampled_from(list(Field)), min_size=1), st.integers(0, 60))
def test_a_cut_text_is_the_head_of_the_whole(fields: set[Field], size: int) -> None:
    chosen = parse_fields(list(fields))
    assert table_text(TABLE, chosen, max_chars=size) == table_text(TABLE, chosen)[:size]


def test_fields_are_one_set_however_they_are_written() -> None:
    assert parse_fields("cells, title,cells") == parse_fields(["title", "Cells"]) == (Field.TITLE, Field.CELLS)


@pytest.mark.parametrize(
    ("text", "message"), [("titel", "did you mean 'title'"), ("", "no fields"), (" , ", "no fields")]
)
def test_wrong_fields(text: str, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        parse_fields(text)
