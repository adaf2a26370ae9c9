"""Tables with linked passages as relations: types, passages, spellings, and what is at fault, counted."""

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import almanaq
from almanaq.corpus.table import Table, TableId
from almanaq.errors import SourceError, UsageError
from almanaq.suql.catalog.relations import ColumnKind
from almanaq.testing import FunctionModel
from almanaq_bench.hybridqa.relation import make_relation, open_relations, short_answer
from almanaq_bench.linked import DescribedByPassages, LinkedTable, LinkedTables
from almanaq_bench.question_sets import open_dataset

PASSAGES = {"/a": "Ada was born in Rome .", "/b": "Bo was born in Oslo .", "/r": "Rome is a city ."}


def linked(header: list[str], rows: list[list[str]], links: list[list[list[str]]]) -> LinkedTable:
    cells = tuple(tuple(map(tuple, row)) for row in links)
    return LinkedTable(Table(TableId("0", "people_0"), tuple(header), tuple(map(tuple, rows))), cells, PASSAGES)


PEOPLE = linked(
    ["Name", "Won", "Time"],
    [["Ada", "1,234", "2:13.32"], ["Bo", "56", "2:14.00"], ["Cy", "7", "2:15.10"]],
    [[["/a", "/r"], [], []], [["/b"], [], []], [["/lost"], [], []]],
)


def test_a_column_with_links_has_a_column_of_their_passages() -> None:
    relation = make_relation(PEOPLE)
    assert relation.arrow.column_names == ["Name", "Name_Info", "Won", "Time"]
    assert relation.arrow.column("Name_Info").to_pylist() == [[PASSAGES["/a"], PASSAGES["/r"]], [PASSAGES["/b"]], None]
    assert relation.origins == {"Name": 0, "Name_Info": 0, "Won": 1, "Time": 2}
    assert relation.info_columns == ("Name_Info",)


def test_a_link_without_a_passage_is_counted_and_named() -> None:
    relation = make_relation(PEOPLE)
    assert relation.missing == 1
    with almanaq.connect(open_relations([relation])) as connection:
        assert connection.warnings == ("people_0: 1 links have no passage: '/lost'",)


def test_typed_values_keep_the_spelling_of_the_table() -> None:
    relation = make_relation(PEOPLE)
    assert [column.type for column in relation.report.columns] == ["text", "bigint", "time"]
    assert relation.spelled["Won"][1234] == "1,234"
    assert "2:13.32" in relation.spelled["Time"].values()


def test_cells_that_cannot_be_cast_are_counted_and_kept_as_text() -> None:
    rows = [[str(n)] for n in range(1, 31)] + [["two dozen"]]
    relation = make_relation(linked(["Age"], rows, [[[]]] * 31))
    (column,) = relation.report.columns
    assert (column.type, column.failures, column.examples) == ("bigint", 1, ("two dozen",))
    assert relation.arrow.column_names == ["Age", "Age_Text"]
    assert relation.arrow.column("Age").to_pylist()[-1] is None
    assert relation.arrow.column("Age_Text").to_pylist()[-1] == "two dozen"


@pytest.mark.parametrize(
    ("header", "names"),
    [
        (["Name", "Name", ""], ["Name", "Name_Info", "Name_2", "Name_2_Info", "column_3"]),
        (["Name", "Name_Info", "x"], ["Name", "Name_Info", "Name_Info_2", "Name_Info_Info", "x"]),
        (["", "", ""], ["column_1", "column_1_Info", "column_2", "column_2_Info", "column_3"]),
    ],
)
def test_headers_that_repeat_collide_or_are_missing_are_mended_and_said(header: list[str], names: list[str]) -> None:
    relation = make_relation(linked(header, [["Ada", "Bo", "x"]], [[["/a"], ["/b"], []]]))
    assert relation.arrow.column_names == names
    assert relation.report.warnings
    assert sum(isinstance(v, list) for row in relation.arrow.to_pylist() for v in row.values()) == 2


def test_a_table_without_rows_is_a_relation_without_rows() -> None:
    relation = make_relation(linked(["Name", "Born"], [], []))
    assert relation.arrow.column_names == ["Name", "Born"]
    assert relation.arrow.num_rows == 0


def test_relations_are_asked_in_suql_and_passages_are_free_text() -> None:
    model = FunctionModel(lambda text, _: "Yes" if "Oslo" in text else "No")
    with almanaq.connect(open_relations([make_relation(PEOPLE)]), model=model, cache=False) as connection:
        column = connection.catalog.relation("people_0").column("name_info")
        assert column is not None
        assert (column.kind, column.array) == (ColumnKind.FREE_TEXT, True)
        result = connection.sql("""SELECT "Won" FROM people_0 WHERE answer("Name_Info", 'born in Oslo?') = 'Yes'""")
        assert result.rows == [(56,)]
        assert model.calls == 2  # the row without a passage is not asked about


def test_an_opened_database_takes_no_other_schema(tmp_path: Path) -> None:
    file = tmp_path / "some.toml"
    file.write_text("")
    with pytest.raises(UsageError, match="has its schema already"):
        almanaq.connect(open_relations([make_relation(PEOPLE)]), schema=str(file))


def test_linked_tables_are_read_from_a_dataset_folder(tmp_path: Path) -> None:
    rows = [
        {"database_id": "0", "table_id": "t", "header": ["a"], "rows": [["x"]], "links": [[["/a", "/a"]]]},
        {"database_id": "0", "table_id": "bad", "header": ["a"], "rows": [["x"]], "links": [[["/a"], []]]},
        {"database_id": "0", "table_id": "none", "header": ["a"], "rows": [["x"]], "links": None},
        {"database_id": "0", "table_id": "half", "header": ["a"], "rows": [["x"]], "links": [None]},
    ]
    pq.write_table(pa.Table.from_pylist(rows), tmp_path / "corpus.parquet")
    texts = [{"table_id": "t", "link": "/a", "text": "Ada ."}, {"table_id": "t", "link": "/b", "text": " "}]
    pq.write_table(pa.Table.from_pylist(texts), tmp_path / "passages.parquet")
    only_one = tmp_path / "one"
    only_one.mkdir()
    pq.write_table(pa.Table.from_pylist(rows[:1]), only_one / "corpus.parquet")
    pq.write_table(pa.Table.from_pylist(texts), only_one / "passages.parquet")
    tables = LinkedTables(open_dataset(tmp_path))
    one = tables.get(TableId("0", "t"))
    assert (len(tables), one.links, dict(one.passages)) == (4, ((("/a",),),), {"/a": "Ada ."})
    assert [table.description for table in DescribedByPassages(LinkedTables(open_dataset(only_one)))] == ["Ada ."]
    assert tables.get(TableId("0", "none")).links == (((),),)
    for name in ("bad", "half"):
        with pytest.raises(SourceError, match=rf"links of table 0/{name} do not have the shape"):
            tables.get(TableId("0", name))
    with pytest.raises(SourceError, match="no table 0/nowhere"):
        tables.get(TableId("0", "nowhere"))


def test_a_remark_after_a_linked_name_is_no_part_of_a_short_answer() -> None:
    cells = ("Ada Berg ( NOR )", "Bo Lund ( SWE )", "BA Mathematics ( 2nd )")
    links = ((("/wiki/Ada_Berg_(runner)",),), (("/wiki/Sweden",),), ((),))
    table = Table(TableId("0", "race"), ("Name",), tuple((cell,) for cell in cells))
    relation = make_relation(LinkedTable(table, links, {}))
    said = [short_answer([[cell]], ["Name"], relation) for cell in cells]
    assert said == ["Ada Berg", "Bo Lund ( SWE )", "BA Mathematics ( 2nd )"]
    assert short_answer([[["one", "two"]]], ["Name_Info"], relation) == "one"


def test_titled_texts_begin_with_the_name_of_their_article_where_they_do_not_say_it() -> None:
    table = Table(TableId("0", "people_0"), ("Name",), (("Ada and Bo",),), title="People", section="Winners")
    texts = {
        "/wiki/Ada_Lovelace": "Ada Lovelace was born in Rome .",
        "/wiki/Bo_(singer)": "The singer was born in Oslo .",
    }
    people = LinkedTable(table, ((tuple(texts),),), texts)
    assert make_relation(people).arrow.column("Name_Info").to_pylist() == [list(texts.values())]
    (titled,) = make_relation(people, titled=True).arrow.column("Name_Info").to_pylist()
    assert titled == ["Ada Lovelace was born in Rome .", "Bo: The singer was born in Oslo ."]
    model = FunctionModel(lambda text, question: None)
    with almanaq.connect(open_relations([make_relation(people)]), model=model, cache=False) as connection:
        assert connection.catalog.relations[0].description == "People / Winners"
