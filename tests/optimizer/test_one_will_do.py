"""Blocks are told apart as what they are, not by addresses, which a later block may have in its turn."""

from __future__ import annotations

import pytest

from almanaq.engines.open_source import open_database
from almanaq.suql.catalog.answer_types import cast_answers
from almanaq.suql.plan import builder
from almanaq.suql.plan.stages import TextBlock

from .support import bind, table

CALM = "answer(s.body, 'calm?') = 'Yes'"
SQL = f"""SELECT id, (SELECT count(*) FROM t AS s WHERE s.city = t.city AND {CALM}), answer(body, 'who?') FROM t
WHERE EXISTS (SELECT 1 FROM t AS s WHERE s.city = t.city AND {CALM})"""


def test_only_the_block_of_an_exists_stops_at_its_first_row(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(builder, "id", lambda _: 0, raising=False)  # as if every block lay where another had been
    database = open_database({"t": table()})
    try:
        bound = bind(SQL, database)
        plan = builder.build_plan(cast_answers(bound.tree), bound.names, database.catalog())
    finally:
        database.close()
    stopping = [isinstance(stage, TextBlock) and stage.first_rows is not None for stage in plan.stages]
    assert sum(stopping) == 1
