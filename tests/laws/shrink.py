"""Reduce a failing case to a small one that fails in the same way, by dropping clauses and rows."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

from sqlglot import exp
from sqlglot.errors import SqlglotError

from .check import Failure, Ready, check
from .compare import expect
from .generator import Case, generate
from .oracle import Oracle, OracleError, parse
from .world import Relation, World

WRAPPERS = (exp.And, exp.Or, exp.Not, exp.Paren, exp.Coalesce, exp.DPipe, exp.Subquery, exp.Filter, exp.Cast)
ENDS = ("where", "having", "group", "order", "limit", "offset", "distinct", "joins", "with_", "with")


def shrink(failure: Failure, *, budget: int = 400) -> str:
    """Return a minimal reproduction of a failure as text."""
    case = generate(failure.seed)
    kind = failure.kind
    tried = 0

    def fails(candidate: Case) -> bool:
        nonlocal tried
        tried += 1
        return tried < budget and _kind(candidate) == kind

    plain = replace(case, marked=case.sql)
    case = _reduced(plain, fails) if fails(plain) else case
    return _shown(case)


def _kind(case: Case) -> str | None:
    oracle = Oracle(case.world.tables(), case.world.model.canonical)
    try:
        expected = expect(oracle, case.sql, fold=case.world.model.varied, link=case.link)
    except (OracleError, SqlglotError, IndexError, AttributeError, AssertionError):
        return None
    finally:
        oracle.close()
    failure, _ = check(Ready(case, expected, frozenset(oracle.asked)))
    return failure.kind if failure else None


def _reduced(case: Case, fails: Callable[[Case], bool]) -> Case:
    moved = True
    while moved:
        moved = False
        for candidate in (*_smaller_queries(case), *_smaller_worlds(case)):
            if fails(candidate):
                case, moved = candidate, True
                break
    return case


def _smaller_queries(case: Case) -> Iterator[Case]:
    size = len(case.sql)
    texts = {t for t in _edits(parse(case.sql)) if len(t) < size}
    for text in sorted(texts, key=len):
        yield replace(case, marked=text)


def _edits(tree: exp.Query) -> Iterator[str]:
    nodes = list(tree.walk())
    for index, node in enumerate(nodes):
        for edit in _edits_of(node):
            copy = tree.copy()
            target = list(copy.walk())[index]
            result = edit(target)
            yield (copy if result is None or target is not copy else result).sql(dialect="duckdb")


def _edits_of(node: exp.Expr) -> Iterator[Callable[[exp.Expr], exp.Expr | None]]:
    if isinstance(node, exp.Select | exp.SetOperation):
        for clause in ENDS:
            if node.args.get(clause):
                yield lambda n, clause=clause: n.set(clause, None)
    if isinstance(node, exp.SetOperation):
        yield lambda n: _put(n, n.this)
        yield lambda n: _put(n, n.expression)
    if isinstance(node, exp.Select):
        for name in ("expressions", "joins"):
            for place in range(len(node.args.get(name) or [])):
                yield lambda n, name=name, place=place: _without(n, name, place)
    if isinstance(node, exp.Group | exp.Order | exp.With | exp.In):
        for place in range(len(node.expressions)):
            yield lambda n, place=place: _without(n, "expressions", place)
    if isinstance(node, WRAPPERS):
        yield lambda n: _put(n, n.this)
    if isinstance(node, exp.And | exp.Or | exp.DPipe):
        yield lambda n: _put(n, n.expression)
    if isinstance(node, exp.Predicate | exp.Exists) and not isinstance(node.parent, exp.Select):
        yield lambda n: _put(n, exp.true())
    if isinstance(node, exp.Case):
        yield lambda n: _put(n, n.args["ifs"][0].args["true"])
    if isinstance(node, exp.Window):
        yield lambda n: _put(n, n.this)


def _put(node: exp.Expr, other: exp.Expr) -> exp.Expr | None:
    other = other.copy()
    if node.parent is None:
        return other.unnest() if isinstance(other, exp.Subquery) else other
    node.replace(other)
    return None


def _without(node: exp.Expr, name: str, place: int) -> None:
    kept = [e for i, e in enumerate(node.args[name]) if i != place]
    node.set(name, kept)


def _smaller_worlds(case: Case) -> Iterator[Case]:
    for number, relation in enumerate(case.world.relations):
        if relation.name not in case.sql:
            yield _with(case, [r for r in case.world.relations if r is not relation])
            continue
        size = len(relation.rows)
        step = size
        while step >= 1:
            for start in range(0, size, step):
                kept = relation.rows[:start] + relation.rows[start + step :]
                yield _with(case, _swapped(case.world, number, replace(relation, rows=kept)))
            step //= 2
        for place, column in enumerate(relation.columns):
            if column not in case.sql and len(relation.columns) > 1:
                rows = tuple(r[:place] + r[place + 1 :] for r in relation.rows)
                columns = relation.columns[:place] + relation.columns[place + 1 :]
                yield _with(case, _swapped(case.world, number, replace(relation, columns=columns, rows=rows)))


def _swapped(world: World, number: int, relation: Relation) -> list[Relation]:
    return [relation if i == number else r for i, r in enumerate(world.relations)]


def _with(case: Case, relations: list[Relation]) -> Case:
    return replace(case, world=replace(case.world, relations=tuple(relations)))


def _shown(case: Case) -> str:
    """Write a case so that a person can run it."""
    lines = [f"-- minimal, from seed {case.seed}", case.marked]
    oracle = Oracle(case.world.tables(), case.world.model.canonical)
    for relation in case.world.relations:
        lines.append(f"{relation.name}{relation.columns!r}:")
        lines += [f"    {row!r}" for row in relation.rows]
    try:
        expected = expect(oracle, case.sql, fold=case.world.model.varied, link=case.link)
    finally:
        oracle.close()
    rows = [row for group in expected.groups for row in group]
    lines.append(f"expected: {rows[:8]} limit {expected.limit} offset {expected.offset}")
    lines += [f"    {pair!r} -> {case.world.model.reply(*pair)!r}" for pair in sorted(oracle.asked)[:8]]
    failure, _ = check(Ready(case, expected, frozenset(oracle.asked)))
    lines.append(f"got: {failure.kind}: {failure.message[:600]}" if failure else "got: right")
    return "\n".join(lines)
