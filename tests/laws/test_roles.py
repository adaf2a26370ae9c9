"""Roles: what a user sees is what a copy without all else shows."""

from __future__ import annotations

from pathlib import Path

import pytest

import almanaq
from almanaq.engines.protocols import Database
from almanaq.engines.restricted import RestrictedDatabase
from almanaq.errors import AlmanaqError, SourceError
from almanaq.suql.catalog.relations import Catalog
from almanaq.suql.catalog.schema_file import describe, parse_schema
from almanaq.users import User
from engines import PostgresServer

from .roles import Report, compare, run

SHOPS = {
    "shops": {
        "id": [1, 2, 3],
        "region": ["west", "east", "west"],
        "phone": ["0123", "none", "0345"],
        "about": ["calm", "loud", "calm"],
    },
    "orders": {"shop": [1, 2, 3], "note": ["late", "fine", "calm"]},
    "staff": {"name": ["Ann"]},
}
RULES = """
[shops]
key = ["id"]
[shops.roles.sales]
rows = "region = :region"
masked = {phone = "left(phone, 2)"}
[shops.roles.audit]
hidden = ["phone"]
[orders.roles.sales]
rows = "shop IN (1, 3)"
"""


def test_a_part_is_what_a_copy_shows() -> None:
    report = run(0, 60)
    assert not report.differ, "\n".join(report.differ[:5])
    assert report.kinds["rows"] > 20
    assert report.text_calls > 5


@pytest.mark.slow
def test_a_part_of_a_postgres_database_is_what_a_copy_shows(postgres_server: PostgresServer) -> None:
    report = Report()
    for seed in (3, 6):
        compare(seed, report, postgres_server.source, "postgres")
    assert not report.differ, "\n".join(report.differ[:5])


def test_a_rule_that_is_not_applied_lets_rows_through(monkeypatch: pytest.MonkeyPatch) -> None:
    """The law can fail: without definitions the whole is read."""

    def catalog(self: RestrictedDatabase) -> Catalog:
        whole: Database = self._database
        return whole.catalog()

    monkeypatch.setattr(RestrictedDatabase, "catalog", catalog)
    assert run(0, 25).differ


@pytest.fixture
def shops(tmp_path: Path) -> almanaq.Connection:
    schema = tmp_path / "shops.toml"
    schema.write_text(RULES)
    return almanaq.connect(SHOPS, schema=str(schema), cache=False)


def test_a_schema_file_that_is_written_again_keeps_its_rules(shops: almanaq.Connection) -> None:
    read = parse_schema(describe(shops.catalog))
    assert read.relations["shops"].roles == parse_schema(RULES).relations["shops"].roles


def test_several_roles_see_their_rows_together_and_the_columns_of_each(shops: almanaq.Connection) -> None:
    both = shops.for_user(User("Ann", ("sales", "audit"), {"region": "west"}))
    assert both.sql("SELECT count(*) FROM shops").rows == [(3,)]
    assert [column.name for column in both.catalog.relation("shops").columns] == ["id", "region", "about"]
    assert shops.for_user(User("Root", ("*",))) is shops


def test_a_failing_condition_tells_nothing_of_other_rows(shops: almanaq.Connection) -> None:
    sales = shops.for_user(User("Ann", ("sales",), {"region": "west"}))
    assert sales.sql("SELECT id FROM shops WHERE CAST(phone AS INTEGER) = 3").rows == [(3,)]


def test_a_list_of_aliases_may_rename_the_key(shops: almanaq.Connection) -> None:
    sales = shops.for_user(User("Ann", ("sales",), {"region": "west"}))
    found = sales.sql("SELECT s.a FROM shops AS s(a, b) WHERE answer(s.about, 'is it calm?') = 'Yes' AND s.a > 1")
    assert found.rows == [(3,)]


def test_questions_prompts_and_listings_know_only_what_is_seen(shops: almanaq.Connection) -> None:
    sales = shops.for_user(User("Ann", ("sales",), {"region": "west"}))
    told = repr(sales.catalog) + sales.ask("Which shops are in the east?").answer + str(sales.sql("SHOW TABLES").rows)
    assert "loud" not in told
    assert "none" not in told.replace("None", "")
    with pytest.raises(AlmanaqError, match="no relation named 'staff'; known: orders, shops"):
        sales.sql("SELECT * FROM staff")


@pytest.mark.parametrize(
    ("rules", "message"),
    [
        ('rows = "region = :team"', "has no attribute 'team'"),
        ('rows = "regoin = 1"', "no column 'regoin'; did you mean 'region'"),
        ('rows = "id IN (SELECT shop FROM orders)"', "no subquery"),
        ('rows = "true) OR (true"', "must be one expression"),
        ('rows = "id = "', "is no expression"),
        ('masked = {phon = "NULL"}', "no column 'phon'"),
        ('row = "id = 1"', "no setting 'row'; did you mean 'rows'"),
    ],
)
def test_a_rule_that_cannot_be_applied_shows_nothing(tmp_path: Path, rules: str, message: str) -> None:
    schema = tmp_path / "shops.toml"
    schema.write_text(f"[shops.roles.sales]\n{rules}\n")
    with pytest.raises(SourceError, match=message):
        almanaq.connect(SHOPS, schema=str(schema), cache=False).for_user(User("Ann", ("sales",)))
