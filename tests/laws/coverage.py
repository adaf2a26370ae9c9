"""Which clauses of the language a set of queries covers, alone and in pairs, told from the queries' trees."""

from __future__ import annotations

import argparse
import json
import sys
from collections import Counter
from collections.abc import Iterable
from itertools import combinations
from pathlib import Path

from sqlglot import exp

from .generator import Case
from .oracle import has_text, is_condition, is_text_call, parse
from .world import MEANINGS

PLACE = {
    exp.Where: "where",
    exp.Group: "group by",
    exp.Having: "having",
    exp.Order: "order by",
    exp.Case: "case",
    exp.Not: "not",
    exp.Or: "or",
    exp.And: "and",
    exp.In: "in",
    exp.Between: "between",
    exp.Coalesce: "coalesce",
    exp.DPipe: "concatenation",
    exp.Window: "window",
}
CLAUSES = (
    *("select", "where", "join on", "group by", "having", "order by", "case", "not", "or", "and", "in", "between"),
    *(
        "coalesce",
        "concatenation",
        "both sides",
        "is null",
        "cast date",
        "cast numeric",
        "cast int",
        "inside aggregate",
    ),
    *("over aggregate", "window", "distinct", "limit", "offset", "union", "union all", "intersect", "except"),
    *("inner join", "left join", "right join", "full join", "cross join", "join of answers", "cte", "recursive cte"),
    *("scalar subquery", "exists", "in subquery", "correlated subquery", "derived table", "unnest", "lateral", "star"),
    *("question per row", "nested answer", "parameter", "options", "summary", "text[] document", "typed comparison"),
    *("verdict against a column", "any", "structured only"),
    *("answer as condition", "distinct on", "unnest in select", "grouping sets", "linked literal", "unlinked literal"),
)


def clauses_of(case: Case) -> set[str]:
    """Return the clauses of a query; those that hold expressions count where a text function stands in them."""
    tree = parse(case.sql)
    found = _structure(tree)
    if "⟦" in case.marked:
        found.add("parameter")
    if any(node.is_string and node.name in MEANINGS for node in tree.find_all(exp.Literal)):
        found.add("linked literal" if case.link else "unlinked literal")
    calls = [n for n in tree.find_all(exp.Anonymous) if is_text_call(n)]
    if not calls:
        return {"structured only"}
    for node in calls:
        found |= _around(node)
    for comparison in tree.find_all(exp.EQ, exp.NEQ):
        if has_text(comparison.left) and has_text(comparison.right):
            found.add("both sides")
    return found


def nested(sql: str) -> bool:
    """Tell whether a query holds more than one SELECT."""
    return len(list(parse(sql).find_all(exp.Select))) > 1


def _structure(tree: exp.Expr) -> set[str]:
    found = set()
    simple = {exp.Limit: "limit", exp.Offset: "offset", exp.CTE: "cte", exp.Unnest: "unnest", exp.Any: "any"}
    simple |= {exp.Exists: "exists", exp.Lateral: "lateral", exp.Star: "star"}
    simple |= dict.fromkeys((exp.Rollup, exp.Cube, exp.GroupingSets), "grouping sets")
    for kind, name in simple.items():
        if any(not isinstance(n.parent, exp.Count) for n in tree.find_all(kind)):
            found.add(name)
    for node in tree.find_all(exp.Distinct):
        if not isinstance(node.parent, exp.Count):
            found.add("distinct on" if node.args.get("on") is not None else "distinct")
    if tree.find(exp.Explode):
        found.add("unnest in select")
    for kind, name in ((exp.Union, "union"), (exp.Intersect, "intersect"), (exp.Except, "except")):
        for node in tree.find_all(kind):
            found.add("union all" if name == "union" and not node.args.get("distinct") else name)
    if any(w.args.get("recursive") for w in tree.find_all(exp.With)):
        found.add("recursive cte")
    for join in tree.find_all(exp.Join):
        found |= _join(join)
    for sub in tree.find_all(exp.Subquery):
        if isinstance(sub.parent, exp.From | exp.Join):
            found.add("derived table")
        elif not isinstance(
            sub.parent,
            exp.Union | exp.Intersect | exp.Except | exp.With | exp.CTE | exp.In | exp.Subquery | exp.Lateral,
        ):
            found.add("scalar subquery")
    return found | _correlation(tree)


def _correlation(tree: exp.Expr) -> set[str]:
    found = set()
    for node in tree.find_all(exp.Exists, exp.In, exp.Subquery):
        query = node.args.get("query") if isinstance(node, exp.In) else node.this
        if isinstance(node, exp.In) and query is not None:
            found.add("in subquery")
        inner = query.find(exp.Select) if isinstance(query, exp.Expr) else None
        if inner is None or isinstance(node.parent, exp.From | exp.Join | exp.Lateral):
            continue
        known = {s.alias_or_name for s in inner.find_all(exp.Table, exp.Subquery, exp.Unnest, exp.Lateral)}
        if any(c.table and c.table not in known for c in inner.find_all(exp.Column)):
            found.add("correlated subquery")
    return found


def _join(join: exp.Join) -> set[str]:
    on = join.args.get("on")
    kind = str(join.side or join.kind or "inner").lower()
    if isinstance(join.this, exp.Unnest | exp.Lateral):
        return set()
    found = {f"{kind} join"}
    if has_text(on):
        found.add("join on")
        if any(has_text(e.left) and has_text(e.right) for e in on.find_all(exp.EQ)):
            found.add("join of answers")
    return found


def _around(call: exp.Anonymous) -> set[str]:
    found = {"summary"} if str(call.this) == "summary" else set()
    document, *rest = call.expressions
    if rest and not isinstance(rest[0], exp.Literal):
        found.add("question per row")
    if len(rest) > 1:
        found.add("options")
    if isinstance(document, exp.Column) and document.name in ("notes", "tags"):
        found.add("text[] document")
    if document.find(exp.ArrayAgg):
        found.add("over aggregate")
    found |= _parent(call)
    below: exp.Expr = call
    node = call.parent
    while node is not None:
        found |= _place(node, below)
        if isinstance(node, exp.Select):
            break
        below, node = node, node.parent
    return found


def _parent(call: exp.Expr) -> set[str]:
    parent = call.parent
    if is_condition(call):
        return {"answer as condition"}
    if isinstance(parent, exp.Is):
        return {"is null"}
    if isinstance(parent, exp.Cast):
        return {"cast " + {"INT": "int", "DATE": "date", "DECIMAL": "numeric"}.get(parent.to.this.value, "other")}
    if isinstance(parent, exp.EQ | exp.NEQ | exp.LT | exp.LTE | exp.GT | exp.GTE):
        other = parent.right if parent.left is call else parent.left
        if isinstance(other, exp.Column):
            return {"verdict against a column"}
        if (isinstance(other, exp.Literal) and not other.is_string) or isinstance(other, exp.Cast):
            return {"typed comparison"} if not has_text(other) else set()
    return set()


def _place(node: exp.Expr, below: exp.Expr) -> set[str]:
    found = {name for kind, name in PLACE.items() if isinstance(node, kind)}
    if isinstance(node, exp.Anonymous) and is_text_call(node):
        found.add("nested answer")
    if isinstance(node, exp.AggFunc) and not isinstance(node.parent, exp.Window) and not isinstance(node, exp.Rank):
        found.add("inside aggregate")
    if isinstance(node, exp.Select) and below.arg_key == "expressions":
        found.add("select")
    return found - {"order by"} if isinstance(node, exp.Order) and not isinstance(node.parent, exp.Query) else found


def reaches_far(sql: str) -> bool:
    """Tell whether a nested query with text refers to a block further out than the one around it."""
    for inner in parse(sql).find_all(exp.Select):
        around = inner.find_ancestor(exp.Select)
        if around is None or not has_text(inner):
            continue
        near = {s.alias_or_name for block in (inner, around) for s in _items(block)}
        if any(c.table and c.table not in near for c in inner.find_all(exp.Column)):
            return True
    return False


def _items(block: exp.Select) -> list[exp.Expr]:
    return list(block.find_all(exp.Table, exp.Subquery, exp.Unnest, exp.Lateral, exp.CTE))


def measure(queries: Iterable[tuple[Case, bool]]) -> dict[str, object]:
    """Count clauses and pairs of clauses over (case, whether it has rows)."""
    single: Counter[str] = Counter()
    pairs: Counter[str] = Counter()
    total = with_rows = deep = far = 0
    for case, has_rows in queries:
        found = clauses_of(case)
        total, with_rows, deep = total + 1, with_rows + has_rows, deep + nested(case.sql)
        far += reaches_far(case.sql)
        single.update(found)
        pairs.update(" + ".join(p) for p in combinations(sorted(found), 2))
    possible = [" + ".join(p) for p in combinations(sorted(c for c in CLAUSES if c != "structured only"), 2)]
    return {
        "queries": total,
        "with_rows": round(with_rows / total, 4),
        "nested": round(deep / total, 4),
        "reaching_two_blocks_out": round(far / total, 4),
        "clauses": {c: round(single[c] / total, 4) for c in CLAUSES},
        "pairs_covered": sum(1 for p in possible if pairs[p]),
        "pairs_possible": len(possible),
        "pairs_missing": [p for p in possible if not pairs[p]],
    }


def main() -> None:
    """Write the coverage of the first seeds beside this file."""
    from .check import cases

    options = argparse.ArgumentParser(description=main.__doc__)
    options.add_argument("--count", type=int, default=5000)
    options.add_argument("--seed", type=int, default=0)
    given = options.parse_args()
    seen = [(ready.case, ready.expected.size > 0) for ready in cases(given.seed, given.count)]
    report = measure(seen)
    Path(__file__).with_name("coverage.json").write_text(json.dumps(report, indent=1) + "\n", encoding="utf-8")
    json.dump({k: v for k, v in report.items() if k != "pairs_missing"}, sys.stdout, indent=1)


if __name__ == "__main__":
    main()
