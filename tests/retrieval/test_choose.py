import pytest

from almanaq.agent.table_chooser import TableChooser
from almanaq.retrieval.bm25 import BM25
from almanaq.suql.catalog.relations import Catalog, Column, Relation


def relation(name: str, columns: str, *partners: str, **more: object) -> Relation:
    keys = tuple(((f"{other}_id",), other, ("id",)) for other in partners)
    return Relation(name, ("main", name), tuple(Column(c, "text") for c in columns.split()), foreign_keys=keys, **more)


CATALOG = Catalog(
    (
        relation("singers", "id singer_name age"),
        relation("concerts", "id venue year"),
        relation("performances", "singers_id concerts_id", "singers", "concerts"),
        relation("stadiums", "id capacity"),
    )
)


def test_the_best_relations_come_first_and_bring_what_links_them() -> None:
    chosen = TableChooser(BM25(), k=2)("age of the singer at the venue", CATALOG)
    assert chosen == ("singers", "concerts", "performances")


@pytest.mark.parametrize(
    ("columns", "more"),
    [
        ("singer_id ConcertID", {}),  # named after the other relation and its key
        ("singers_id concerts_id", {}),
        ("fee", {"foreign_keys": ((("a",), "singers", ("id",)), (("b",), "concerts", ("id",)))}),
    ],
)
def test_relations_link_by_declared_keys_and_by_the_names_of_columns(columns: str, more: dict) -> None:
    between = Relation("performances", ("performances",), tuple(Column(c, "text") for c in columns.split()), **more)
    catalog = Catalog((*CATALOG.relations[:2], between, CATALOG.relations[3]))
    assert TableChooser(BM25(), k=2)("age of the singer at the venue", catalog)[2:] == ("performances",)


def test_as_many_relations_are_ranked_as_are_asked_for() -> None:
    catalog = Catalog(tuple(relation(f"shop_{number}", "id price") for number in range(20)))
    assert len(TableChooser(BM25(), k=15)("price of the shop", catalog)) == 15


def test_nothing_fits() -> None:
    chooser = TableChooser(BM25())
    assert chooser("zzz", CATALOG) == chooser("", CATALOG) == chooser("age", Catalog(())) == ()


def test_the_index_of_a_catalog_is_kept() -> None:
    class Counting(BM25):
        made = 0

        def index(self, corpus, fields):
            Counting.made += 1
            return super().index(corpus, fields)

    chooser = TableChooser(Counting())
    chooser("age", CATALOG), chooser("venue", CATALOG), chooser("venue", Catalog(CATALOG.relations[:2]))
    assert Counting.made == 2


def test_samples_of_private_columns_are_not_indexed() -> None:
    columns = (Column("a", "text", samples=("walrus",), private=True), Column("b", "text", samples=("penguin",)))
    catalog = Catalog((Relation("zoo", ("zoo",), columns),))
    assert TableChooser(BM25())("walrus", catalog) == ()
    assert TableChooser(BM25())("penguin", catalog) == ("zoo",)
