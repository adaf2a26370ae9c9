"""Counts of text calls by three other ways of running one query block, and the least that any exact way needs.

Own code, none of the compiler's: conditions are evaluated here in three-valued logic, row by row.

- naive: every row that the structured condition lets through, atoms from left to right, no stop at LIMIT.
- dnf: the paper's way; the condition is brought to disjunctive normal form, each conjunct is run by itself with its
  own structured part, and stops at LIMIT only where there is no ORDER BY.
- floor: rows in the query's order down to the last row shown; for each the fewest calls that decide it, known
  beforehand by a clairvoyant.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations, product
from typing import Any

import duckdb
import pyarrow as pa
import sqlglot
from sqlglot import exp

Truth = bool | None
Call = tuple[str, str]
Reply = Callable[[str, str], "str | None"]


@dataclass(frozen=True)
class Atom:
    """A comparison of one `answer(column, 'question')` with a literal, or a structured condition."""

    sql: str
    column: str = ""
    question: str = ""
    literal: str = ""
    negated: bool = False

    @property
    def text(self) -> bool:
        """Whether it takes a call."""
        return bool(self.question)


@dataclass(frozen=True)
class Counts:
    """Calls for the condition of a query, by way of running it."""

    naive: int
    dnf: int
    floor: int


@dataclass(frozen=True)
class Line:
    """One row: the values of structured atoms, and the calls and values of text atoms."""

    values: Mapping[Atom, Truth]
    calls: Mapping[Atom, Call | None]


def counts(sql: str, tables: Mapping[str, pa.Table], reply: Reply) -> Counts:
    """Count for a query over one relation whose condition compares answers with literals."""
    tree = sqlglot.parse_one(sql.rstrip("; \n"), read="postgres")
    where = tree.find(exp.Where)
    condition = _condition(where.this) if where else ("and", ())
    lines = _lines(tree, condition, tables, reply)
    limit = _number(tree.args.get("limit"))
    wanted = None if limit is None else limit + (_number(tree.args.get("offset")) or 0)
    ordered = tree.args.get("order") is not None
    return Counts(
        naive=len(_naive(condition, lines)),
        dnf=len(_dnf_calls(condition, lines, None if ordered else wanted)),
        floor=len(_floor(condition, lines, wanted)),
    )


# --- conditions --------------------------------------------------------------------------------------------


def _condition(node: exp.Expr) -> Any:
    """Return the condition as nested ("and" | "or" | "not", parts) over atoms; text-free parts are one atom."""
    if isinstance(node, exp.Paren):
        return _condition(node.this)
    calls = [c for c in node.find_all(exp.Anonymous) if c.name.lower() == "answer"]
    if not calls:
        return Atom(node.sql("duckdb"))
    if isinstance(node, exp.And | exp.Or):
        return ("and" if isinstance(node, exp.And) else "or", (_condition(node.left), _condition(node.right)))
    if isinstance(node, exp.Not):
        return ("not", (_condition(node.this),))
    if isinstance(node, exp.EQ | exp.NEQ) and node.left in calls:
        document, question = node.left.expressions
        negated = isinstance(node, exp.NEQ)
        return Atom(node.sql("duckdb"), document.name, question.name, node.right.name, negated)
    raise ValueError(f"not a comparison of an answer with a literal: {node.sql()}")


def _atoms(condition: Any) -> list[Atom]:
    if isinstance(condition, Atom):
        return [condition]
    return [a for part in condition[1] for a in _atoms(part)]


def _evaluate(condition: Any, value: Callable[[Atom], Truth]) -> Truth:
    if isinstance(condition, Atom):
        return value(condition)
    name, parts = condition
    if name == "not":
        inner = _evaluate(parts[0], value)
        return None if inner is None else not inner
    decisive = name == "or"
    unknown = False
    for part in parts:
        one = _evaluate(part, value)
        if one is decisive:
            return decisive
        unknown = unknown or one is None
    return None if unknown else not decisive


def _lines(tree: exp.Expr, condition: Any, tables: Mapping[str, pa.Table], reply: Reply) -> list[Line]:
    atoms = list(dict.fromkeys(_atoms(condition)))
    plain, text = [a for a in atoms if not a.text], [a for a in atoms if a.text]
    relation = tree.find(exp.Table).name
    order = tree.args.get("order")
    keys = [_nulls_last(o).sql("duckdb") for o in order.expressions] if order else []
    listed = ", ".join([*(a.sql for a in plain), *(f'"{a.column}"' for a in text)]) or "1"
    sql = f'SELECT {listed} FROM source AS "{relation}" ORDER BY {", ".join([*keys, "source_position"])}'
    con = duckdb.connect()
    try:
        table = tables[relation]
        con.register("source", table.append_column("source_position", pa.array(range(table.num_rows))))
        rows = con.execute(sql).fetchall()
    finally:
        con.close()
    return [_line(plain, text, row, reply) for row in rows]


def _line(plain: Sequence[Atom], text: Sequence[Atom], row: Sequence[Any], reply: Reply) -> Line:
    values: dict[Atom, Truth] = dict(zip(plain, row, strict=False))
    calls: dict[Atom, Call | None] = {}
    for atom, cell in zip(text, row[len(plain) :], strict=True):
        document = _document(cell)
        calls[atom] = None if document is None else (document, atom.question)
        said = None if document is None else reply(document, atom.question)
        same = None if said is None else said.strip().casefold() == atom.literal.strip().casefold()
        values[atom] = None if same is None else same != atom.negated
    return Line(values, calls)


def _document(cell: Any) -> str | None:
    passages = [p for p in (cell if isinstance(cell, list) else [cell]) if p is not None and p.strip()]
    return "\n\n".join(passages) if passages else None


def _nulls_last(ordered: exp.Expr) -> exp.Expr:
    ordered = ordered.copy()
    ordered.set("nulls_first", False)
    return ordered


def _number(clause: exp.Expr | None) -> int | None:
    return None if clause is None else int(clause.expression.this)


# --- ways of running ---------------------------------------------------------------------------------------


def _possible(condition: Any, line: Line) -> bool:
    """Tell whether the row passes when every text atom may be anything: the weakest structured condition."""
    return any(v is True for v in _outcomes(condition, line, ()))


def _outcomes(condition: Any, line: Line, known: Sequence[Call]) -> set[Truth]:
    """Return the values that a condition may have when only some calls have been made."""
    calls = {c for c in line.calls.values() if c is not None and c not in known}
    open_atoms = [a for a, c in line.calls.items() if c in calls]
    found = set()
    for guess in product((True, False, None), repeat=len(open_atoms)):
        values = dict(line.values) | dict(zip(open_atoms, guess, strict=True))
        found.add(_evaluate(condition, values.__getitem__))
    return found


def _naive(condition: Any, lines: Sequence[Line]) -> set[Call]:
    asked: set[Call] = set()
    for line in lines:
        if _possible(condition, line):
            _asking(condition, line, asked)
    return asked


def _asking(condition: Any, line: Line, asked: set[Call]) -> Truth:
    def value(atom: Atom) -> Truth:
        call = line.calls.get(atom)
        if call is not None:
            asked.add(call)
        return line.values[atom]

    return _evaluate(condition, value)


def _dnf_calls(condition: Any, lines: Sequence[Line], wanted: int | None) -> set[Call]:
    asked: set[Call] = set()
    for conjunct in _dnf(condition, positive=True):
        hits = 0
        for line in lines:
            if wanted is not None and hits >= wanted:
                break
            if any(_apply_sign(line.values[a], sign) is not True for a, sign in conjunct if not a.text):
                continue
            parts = tuple(("not", (a,)) if not sign else a for a, sign in conjunct if a.text)
            hits += _asking(("and", parts), line, asked) is True
    return asked


def _apply_sign(value: Truth, sign: bool) -> Truth:
    return None if value is None else value is sign


def _dnf(condition: Any, *, positive: bool) -> list[tuple[tuple[Atom, bool], ...]]:
    if isinstance(condition, Atom):
        return [((condition, positive),)]
    name, parts = condition
    if name == "not":
        return _dnf(parts[0], positive=not positive)
    each = [_dnf(p, positive=positive) for p in parts]
    if (name == "or") == positive:
        return [c for conjuncts in each for c in conjuncts]
    return [tuple(a for c in chosen for a in c) for chosen in product(*each)]


def _floor(condition: Any, lines: Sequence[Line], wanted: int | None) -> set[Call]:
    asked: set[Call] = set()
    hits = 0
    for line in lines:
        if wanted is not None and hits >= wanted:
            break
        asked |= _certificate(condition, line, asked)
        hits += _evaluate(condition, line.values.__getitem__) is True
    return asked


def _certificate(condition: Any, line: Line, known: set[Call]) -> set[Call]:
    """Return the fewest calls, beside those made already, after which it is sure whether the row passes."""
    free = sorted({c for c in line.calls.values() if c is not None and c not in known})
    for size in range(len(free) + 1):
        for chosen in combinations(free, size):
            if len({v is True for v in _outcomes(condition, line, [*known, *chosen])}) == 1:
                return set(chosen)
    raise AssertionError("all calls decide a row")
