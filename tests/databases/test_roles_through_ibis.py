"""Roles on an engine that ibis reaches, whose queries are read by sqlglot alone."""

from __future__ import annotations

import pytest

import almanaq
from almanaq.errors import AlmanaqError
from almanaq.suql.catalog.relations import RoleRule
from almanaq.suql.catalog.schema_file import RelationSchema, Schema
from almanaq.testing import FunctionModel
from almanaq.users import User


@pytest.mark.slow
def test_a_role_sees_its_rows_and_columns(postgres: str) -> None:
    ibis = pytest.importorskip("ibis")
    from almanaq.engines.ibis.engine import IbisDatabase

    rule = RoleRule("few", "id <= :most", ("opened",), (("rating", "NULL"),))
    said = Schema({"places": RelationSchema(key=("id",), roles=(rule,))})
    database = IbisDatabase(lambda: ibis.connect(postgres), name="ibis", schema=said)
    reader = FunctionModel(lambda text, question: "Yes" if "O" in text or "Ö" in text else "No")
    with almanaq.connect(database, model=reader, cache=False) as whole:
        few = whole.for_user(User("Ann", ("few",), {"most": 1}))
        assert few.sql("SELECT * FROM places AS p").rows == [(1, "Café Ölé", None)]
        found = few.sql("SELECT p.id FROM places AS p WHERE answer(p.name, 'does it hold an O?') = 'Yes'")
        assert found.rows == [(1,)]
        assert few.engine.values("places", "name", 10) == ["Café Ölé"]
        with pytest.raises(AlmanaqError, match='"opened" does not exist'):
            few.sql("SELECT opened FROM places")
