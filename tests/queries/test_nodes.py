"""The lists of a tree's nodes that planning goes through are sqlglot's walk."""

from __future__ import annotations

import pytest
from sqlglot import exp, parse_one

from almanaq.suql.syntax.nodes import nodes, nodes_of

QUERIES = (
    "SELECT 1",
    "WITH a AS (SELECT x, y FROM t WHERE x IN (1, 2, 3)) SELECT a.x::int[], sum(y) OVER (ORDER BY x) FROM a, b "
    "WHERE EXISTS (SELECT 1 FROM c WHERE c.x = a.x AND answer(c.y, 'q') = 'Yes') ORDER BY 1 LIMIT 3",
)


@pytest.mark.parametrize("query", QUERIES)
def test_the_nodes_are_those_of_the_walk_in_its_order(query: str) -> None:
    tree = parse_one(query, read="duckdb")
    assert [id(node) for node in nodes(tree)] == [id(node) for node in tree.walk()]
    kinds = (exp.Column, exp.Select)
    assert [id(node) for node in nodes_of(tree, *kinds)] == [id(node) for node in tree.find_all(*kinds)]


def test_a_tree_may_be_changed_while_its_nodes_are_gone_through() -> None:
    tree = parse_one("SELECT a, b FROM t WHERE a > b")
    for column in nodes_of(tree, exp.Column):
        column.replace(exp.func("f", column.copy()))
    assert len(list(tree.find_all(exp.Column))) == 4
