"""How many rows that have a match an EXISTS or IN has to find, and which: a LIMIT and an ORDER BY may say."""

from __future__ import annotations

from dataclasses import dataclass

from sqlglot import exp

from almanaq.suql.plan.predicates import conjuncts
from almanaq.suql.plan.references import is_of_block, where_of
from almanaq.suql.syntax.nodes import nodes_of
from almanaq.suql.text_functions import has_text, is_by_chance

_OTHER_CLAUSES = ("group", "having", "distinct", "qualify", "windows")
_OUTPUTS = (
    exp.Column,
    exp.Identifier,
    exp.Alias,
    exp.Literal,
    exp.Cast,
    exp.DataType,
    exp.DPipe,
    exp.Paren,
    exp.Binary,
)
_KEYS = (
    exp.Ordered,
    exp.Column,
    exp.Identifier,
    exp.Literal,
    exp.Null,
    exp.Boolean,
    exp.Paren,
    exp.Case,
    exp.If,
    exp.Coalesce,
    exp.Connector,
    exp.Not,
    exp.Is,
    exp.EQ,
    exp.NEQ,
    exp.GT,
    exp.GTE,
    exp.LT,
    exp.LTE,
    exp.Lower,
    exp.Upper,
    exp.Length,
)
"""What a key of ORDER BY may be made of: nothing that some rows fail at, since rows without a match are sorted too."""


@dataclass(frozen=True, slots=True)
class MatchesWanted:
    """So many rows with a match will do: any, or the first in the order of a block's ORDER BY, where it has keys."""

    rows: int
    keys: tuple[exp.Expr, ...] = ()


def matches_wanted(exists: exp.Expr | None) -> MatchesWanted | None:
    """Return the rows with a match that a block's LIMIT shows; None where it may need all.

    `SELECT name FROM t WHERE city = 'Paris' AND EXISTS (…) LIMIT 3` needs three: each row that meets the other
    conditions and has a match is a row of the result. So nothing may be asked of rows but this and what the database
    decides, nothing may group them, and each must give one row of output. Under `ORDER BY stars` it needs the first
    three, if their order is known before anything is asked.
    """
    block = exists.find_ancestor(exp.Select) if exists is not None else None
    if block is None or any(block.args.get(clause) for clause in _OTHER_CLAUSES):
        return None
    limit = number_in(block.args.get("limit"))
    offset = number_in(block.args.get("offset")) if block.args.get("offset") is not None else 0
    keys = order_known_before(block)
    if limit is None or offset is None or keys is None:
        return None
    if not all(isinstance(node, _OUTPUTS) for item in block.expressions for node in nodes_of(item, exp.Expr)):
        return None
    others = [part for part in conjuncts(where_of(block)) if part is not exists]
    if len(others) + 1 != len(conjuncts(where_of(block))):
        return None
    decided = all(not has_text(part) and is_of_block(part, block) and not is_by_chance(part) for part in others)
    return MatchesWanted(limit + offset, keys) if decided else None


def order_known_before(block: exp.Select) -> tuple[exp.Expr, ...] | None:
    """Return the keys of a block's ORDER BY, by which its rows can be numbered before anything is asked.

    () without an ORDER BY; None where they hold an answer, a nested query, an aggregate, or what a row without a
    match could fail at.
    """
    keys = tuple(block.args["order"].expressions) if block.args.get("order") is not None else ()
    known = all(_is_known_before(node) for key in keys for node in nodes_of(key, exp.Expr))
    return keys if known and all(is_of_block(key, block) for key in keys) else None


def _is_known_before(node: exp.Expr) -> bool:
    if isinstance(node, exp.Cast):
        return bool(node.to.is_type(*exp.DataType.TEXT_TYPES))
    return isinstance(node, _KEYS) or (isinstance(node, exp.DataType) and isinstance(node.parent, exp.Cast))


def number_in(clause: exp.Expr | None) -> int | None:
    """Return the number in LIMIT or OFFSET; None when there is none or it is computed."""
    value = clause.expression if clause is not None else None
    return int(value.name) if isinstance(value, exp.Literal) and value.name.isdigit() else None
