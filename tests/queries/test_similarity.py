"""similarity(text, text): the rows of a database with a plain function of that name, in every clause, without calls."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pytest
from tests.laws.compare import difference, expect
from tests.laws.oracle import Oracle

import almanaq
from almanaq.errors import OperationalError, QueryTypeError, RefusedQueryError
from almanaq.models.embedders.base import LexicalEmbedder
from almanaq.suql.execution import similarity
from almanaq.testing import FunctionModel

from .support import Asked, said

pytestmark = pytest.mark.usefixtures("engine")

WORDS = "good bad food service room clean dirty sea view breakfast staff friendly slow fast cheap dear".split()


def _texts(draw: random.Random, count: int) -> list[str | None]:
    made = [" ".join(draw.choices(WORDS, k=draw.randint(1, 5))) for _ in range(count)]
    odd: dict[int, str | None] = {3: None, 7: "  ", 11: "the of and"}
    return [odd.get(i, f"{text}; ok={'Yes' if i % 2 else 'No'}") for i, text in enumerate(made)]


def _tables() -> dict[str, pa.Table]:
    draw = random.Random(3)
    first, second = _texts(draw, 18), _texts(draw, 12)
    return {
        "a": pa.table({"id": range(18), "t": pa.array(first, pa.string()), "g": list("xyz" * 6)}),
        "b": pa.table({"id": range(12), "u": pa.array(second, pa.string()), "a_id": [3 * i % 20 for i in range(12)]}),
    }


QUERIES = """
    SELECT id, similarity(t, 'good food') AS s FROM a
    SELECT id FROM a ORDER BY similarity(t, 'good food') DESC NULLS LAST, id LIMIT 3
    SELECT id FROM a ORDER BY similarity(t, 'good food') DESC, id LIMIT 3 OFFSET 1
    SELECT id FROM a WHERE similarity(t, 'good food') > 0.3
    SELECT id FROM a WHERE NOT similarity(t, 'good food') > 0.3
    SELECT id FROM a WHERE similarity(t, g) IS NULL OR g = 'x'
    SELECT g, count(*) AS n, max(similarity(t, 'clean room')) AS best FROM a GROUP BY g
    SELECT round(similarity(t, 'food') * 10) AS r, count(*) AS n FROM a GROUP BY round(similarity(t, 'food') * 10)
    SELECT a.id, b.id FROM a JOIN b ON similarity(a.t, b.u) >= 0.5
    SELECT a.id, b.id, similarity(a.t, b.u) AS s FROM a, b WHERE a.g = 'x' AND similarity(a.t, b.u) >= 0.3 AND b.id > 2
    SELECT a.id, b.id FROM a, b WHERE similarity(a.t, b.u) < 0.3
    SELECT a.id, b.id FROM a LEFT JOIN b ON similarity(a.t, b.u) >= 0.5
    SELECT x.id, y.id FROM a AS x, a AS y WHERE x.id < y.id AND 0.6 < similarity(x.t, y.t)
    SELECT id FROM a WHERE EXISTS (SELECT 1 FROM b WHERE similarity(a.t, b.u) > 0.5)
    SELECT id FROM a WHERE NOT EXISTS (SELECT 1 FROM b WHERE similarity(a.t, b.u) > 0.5 AND b.a_id = a.id)
    SELECT id, (SELECT max(similarity(a.t, b.u)) FROM b) AS m FROM a
    SELECT id FROM a WHERE similarity(t, 'food') > 0.2 AND answer(t, 'ok?') = 'Yes'
    SELECT id FROM a WHERE similarity(t, 'food') > 0.2 OR answer(t, 'ok?') = 'Yes'
    SELECT id, answer(t, 'ok?') AS ok FROM a ORDER BY similarity(t, 'food') DESC NULLS LAST, id LIMIT 4
    SELECT id, similarity(answer(t, 'ok?'), 'yes') AS s FROM a
    SELECT similarity('good food', 'food') AS s
    SELECT similarity(string_agg(t, ' ' ORDER BY id), 'food') AS s FROM a GROUP BY g
    SELECT id, rank() OVER (PARTITION BY g ORDER BY similarity(t, 'food') DESC, id) AS r FROM a
    SELECT * FROM (SELECT id, similarity(t, 'food') AS s FROM a) AS q WHERE s > 0.2
    WITH w AS (SELECT id, t, similarity(t, 'food') AS s FROM a) SELECT w.id, s FROM w JOIN b ON b.a_id = w.id
    SELECT DISTINCT similarity(t, 'food') AS s FROM a
    SELECT id FROM a WHERE id IN (SELECT a_id FROM b WHERE similarity(u, 'room') > 0)
    SELECT a.id, b.id FROM a JOIN b ON similarity(a.t, b.u) > 0.4 AND answer(a.t, 'ok?') = answer(b.u, 'ok?')
    SELECT a.id, b.id, c.id FROM a JOIN b ON similarity(a.t, b.u) > 0.4 JOIN a AS c ON similarity(c.t, b.u) > 0.4
    SELECT id, similarity(t, NULL) AS s FROM a
    SELECT id, similarity(t, '') AS s FROM a
    SELECT id, similarity(t || ' x', upper(g) || ' good') AS s FROM a WHERE id % 2 = 0
"""


@pytest.fixture(scope="module")
def con(engine: str) -> Iterator[almanaq.Connection]:
    with almanaq.connect(Asked.source(_tables()), model=FunctionModel(said), embedder="lexical", cache=False) as opened:
        yield opened


@pytest.mark.sampled(6)
@pytest.mark.parametrize("sql", QUERIES.strip().splitlines())
def test_the_rows_are_those_of_a_plain_function(con: almanaq.Connection, sql: str) -> None:
    result = con.sql(sql.strip())
    oracle = Oracle(_tables(), said)
    try:
        expected = expect(oracle, sql.strip())
    finally:
        oracle.close()
    assert difference(expected, result.columns, result.rows) is None
    if "answer" not in sql:
        assert result.trace.text_calls == 0


def test_arrays_are_one_document() -> None:
    table = pa.table({"id": [1, 2, 3], "tags": [["good food", " ", None], [], None]})
    with almanaq.connect({"t": table}, model=FunctionModel(said), embedder="lexical", cache=False) as con:
        found = con.sql("SELECT id, similarity(tags, 'good food') FROM t ORDER BY id").rows
    assert list(found) == [(1, 1.0), (2, None), (3, None)]


def test_explain_shows_a_stage_that_asks_no_model(con: almanaq.Connection) -> None:
    shown = str(con.explain("SELECT a.id FROM a JOIN b ON similarity(a.t, b.u) >= 0.5 ORDER BY a.id LIMIT 3"))
    assert "similarity join" in shown
    assert "similarity(left.d, right.d) >= 0.5" in shown
    shown = str(con.analyze("SELECT id FROM a ORDER BY similarity(t, 'food') DESC NULLS LAST LIMIT 3"))
    assert "compute: similarity(d0, 'food'), the 3 highest" in shown
    assert "tokens" not in shown


@pytest.mark.parametrize(
    ("sql", "why"),
    [
        ("SELECT similarity(id, 'x') FROM a", "reads text"),
        ("SELECT similarity(t, id) FROM a", "is text"),
        ("SELECT similarity(t) FROM a", "similarity takes similarity(text, text)"),
    ],
)
def test_what_is_no_text_is_refused(con: almanaq.Connection, sql: str, why: str) -> None:
    with pytest.raises(QueryTypeError, match=why.replace("(", r"\(").replace(")", r"\)")):
        con.sql(sql)


def test_a_private_column_is_not_sent_to_a_remote_embedder(tmp_path: Any) -> None:
    class Remote(LexicalEmbedder):
        remote = True

    schema = tmp_path / "s.toml"
    schema.write_text("[t.columns.body]\nprivate = true\n")
    table = {"t": pa.table({"body": ["a b"], "name": ["c"]})}
    with almanaq.connect(table, model=FunctionModel(said), embedder=Remote(), schema=schema, cache=False) as con:
        assert con.sql("SELECT similarity(name, 'c') FROM t").rows
        with pytest.raises(RefusedQueryError, match="private"):
            con.sql("SELECT similarity(body, 'c') FROM t")


def test_too_many_pairs_are_an_error_that_says_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(similarity, "MOST_PAIRS", 50)
    table = pa.table({"t": ["good food"] * 8})
    with (
        almanaq.connect({"t": table}, model=FunctionModel(said), embedder="lexical", cache=False) as con,
        pytest.raises(OperationalError, match="more than 50 pairs"),
    ):
        con.sql("SELECT 1 FROM t AS a, t AS b WHERE similarity(a.t, b.t) > 0.5")
