"""A role on a Spark cluster sees its rows and columns, and no query fails at a row that is hidden."""

from __future__ import annotations

import pyarrow as pa
import pytest

import almanaq
from almanaq.engines.spark.engine import SparkDatabase
from almanaq.errors import AlmanaqError
from almanaq.suql.catalog.relations import RoleRule
from almanaq.suql.catalog.schema_file import RelationSchema, Schema
from almanaq.testing import FunctionModel
from almanaq.users import User

from .tables import Tables

SHOPS = {
    "id": [1, 2, 3, 4],
    "region": ["west", "east", "west", "west"],
    "phone": ["10", "none", "30", "40"],
    "margin": [1.5, 2.5, 0.5, 3.5],
    "about": ["calm", "loud", "calm", "loud"],
}
RULE = RoleRule("sales", "region = :region", ("margin",), (("about", "upper(about)"),))
ATTACKS = (
    "CAST(phone AS int) > 0",
    "assert_true(region = 'west') IS NULL",
    "1 / (CASE WHEN region = 'west' THEN 1 ELSE 0 END) = 1",
    "id IN (SELECT id FROM shops WHERE CAST(phone AS int) > 0)",
    "EXISTS (SELECT 1 FROM shops AS o WHERE o.id = shops.id AND CAST(o.phone AS int) > 0)",
)


def test_a_role_sees_its_rows_and_columns(tables: Tables) -> None:
    said = Schema({"shops": RelationSchema(key=("id",), roles=(RULE,))})
    database = SparkDatabase(tables.source({"shops": pa.table(SHOPS)}), schema=said)
    reader = FunctionModel(lambda text, question: "Yes" if text == "CALM" else "No")
    with almanaq.connect(database, model=reader, cache=False) as whole:
        sales = whole.for_user(User("Ann", ("sales",), {"region": "west"}))
        rows = [(1, "west", "10", "CALM"), (3, "west", "30", "CALM"), (4, "west", "40", "LOUD")]
        assert sales.sql("SELECT * FROM shops ORDER BY id").rows == rows
        calm = sales.sql("SELECT id FROM shops WHERE answer(about, 'is it calm?') = 'Yes' ORDER BY id")
        assert calm.rows == [(1,), (3,)]
        assert sales.engine.values("shops", "region", 10) == ["west"]
        assert sales.catalog.relation("shops").column("margin") is None
        with pytest.raises(AlmanaqError, match="cannot be resolved") as unknown:
            sales.sql("SELECT margin FROM shops")
        assert "west" not in str(unknown.value)
        ended = {}
        for attack in ATTACKS:
            try:
                ended[attack] = sales.sql(f"SELECT count(*) FROM shops WHERE {attack}").rows
            except AlmanaqError as error:
                ended[attack] = str(error)
        assert ended == {attack: [(3,)] for attack in ATTACKS}
