"""How many rows that have a match an EXISTS has to find: a LIMIT may say."""

from __future__ import annotations

from sqlglot import exp

from almanaq.suql.plan.predicates import conjuncts
from almanaq.suql.plan.references import is_of_block, where_of
from almanaq.suql.syntax.nodes import nodes_of
from almanaq.suql.syntax.text_functions import has_text, is_by_chance

_OTHER_CLAUSES = ("group", "having", "distinct", "qualify", "windows", "order")
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


def matches_wanted(exists: exp.Expr | None) -> int | None:
    """Return the number of rows with a match of which a block's LIMIT shows any; None where it may need all.

    `SELECT name FROM t WHERE city = 'Paris' AND EXISTS (…) LIMIT 3` needs three: each row that meets the other
    conditions and has a match is a row of the result. So nothing may be asked of rows but this and what the database
    decides, nothing may sort or group them, and each must give one row of output.
    """
    block = exists.find_ancestor(exp.Select) if exists is not None else None
    if block is None or any(block.args.get(clause) for clause in _OTHER_CLAUSES):
        return None
    limit = number_in(block.args.get("limit"))
    offset = number_in(block.args.get("offset")) if block.args.get("offset") is not None else 0
    if limit is None or offset is None:
        return None
    if not all(isinstance(node, _OUTPUTS) for item in block.expressions for node in nodes_of(item, exp.Expr)):
        return None
    others = [part for part in conjuncts(where_of(block)) if part is not exists]
    if len(others) + 1 != len(conjuncts(where_of(block))):
        return None
    decided = all(not has_text(part) and is_of_block(part, block) and not is_by_chance(part) for part in others)
    return limit + offset if decided else None


def number_in(clause: exp.Expr | None) -> int | None:
    """Return the number in LIMIT or OFFSET; None when there is none or it is computed."""
    value = clause.expression if clause is not None else None
    return int(value.name) if isinstance(value, exp.Literal) and value.name.isdigit() else None
