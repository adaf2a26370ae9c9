"""SQL texts that are kept with a plan."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
from sqlglot import exp

import almanaq
from almanaq.models.protocols import AllOf, LinkRequest
from almanaq.suql.execution.render import Statements
from almanaq.testing import FunctionModel


def test_a_text_is_written_once_for_what_it_depends_on() -> None:
    with almanaq.connect({"t": pa.table({"body": ["a"]})}, model=FunctionModel(lambda *_: "Yes"), cache=False) as con:
        plan = con.engine.plan("SELECT body FROM t WHERE answer(body, 'ok?') = 'Yes' LIMIT 1")
    tree, other = plan.output.select, exp.Select()
    statements, written = Statements(plan), []

    def ask(tree: exp.Expr, prefix: str, known: str) -> str:
        def write() -> str:
            written.append(prefix)
            return f"{known} from {prefix}x"

        return statements.text(tree, prefix, lambda _: known, write)

    assert [ask(tree, "p1_", "a"), ask(tree, "p2_", "a"), ask(tree, "p3_", "b")] == [
        "a from p1_x",
        "a from p2_x",
        "b from p3_x",
    ]
    assert written == ["p1_", "p3_"]
    assert [ask(other, "p4_", "a"), ask(other, "p5_", "a")] == ["a from p4_x", "a from p5_x"]
    for number in range(100):  # what is kept is bounded, and right all the same
        assert ask(tree, "p6_", f"state {number}") == f"state {number} from p6_x"


def test_a_literal_is_linked_again_at_every_run() -> None:
    """The model may link otherwise when it is asked again: what it said then is no part of the plan."""
    kinds = pa.array(["inn", "bar", "inn"]).dictionary_encode()
    with almanaq.connect({"t": pa.table({"kind": kinds, "id": [1, 2, 3]})}, model="local", cache=False) as con:
        said = iter([("inn",), ("bar",), ("inn",)])

        class Linker:
            async def link(self, _: LinkRequest) -> tuple[str, ...]:
                return next(said)

        object.__setattr__(con.engine._models, "linker", Linker())
        found = [con.sql("SELECT id FROM t WHERE kind = 'tavern' ORDER BY id").rows for _ in range(3)]
    assert found == [[(1,), (3,)], [(2,)], [(1,), (3,)]]


def test_a_literal_may_mean_that_a_row_holds_every_one_of_several_values(tmp_path: Path) -> None:
    """The same values mean any of them, or all: what is kept of a statement tells them apart."""
    (tmp_path / "s.toml").write_text('[t.columns.kinds]\nkind = "enum"\nvalues = ["bakery", "bar", "vegan"]\n')
    rows = {"id": [1, 2, 3], "kinds": [["vegan", "bar"], ["bakery", "vegan"], ["bakery"]]}
    both = ("bakery", "vegan")
    with almanaq.connect({"t": pa.table(rows)}, model="local", schema=str(tmp_path / "s.toml"), cache=False) as con:
        said = iter([both, AllOf(both), both, AllOf(("bakery", "unknown"))])
        requests: list[LinkRequest] = []

        class Linker:
            async def link(self, request: LinkRequest) -> tuple[str, ...]:
                requests.append(request)
                return next(said)

        object.__setattr__(con.engine._models, "linker", Linker())
        found = [con.sql("SELECT id FROM t WHERE 'vegan bakery' = ANY(kinds) ORDER BY id").rows for _ in range(4)]
    assert found == [[(1,), (2,), (3,)], [(2,)], [(1,), (2,), (3,)], []]
    assert all(request.several for request in requests)
