"""The figures that were shown once more: in another order, or the first of them."""

from __future__ import annotations

import re

from sqlglot import exp

from almanaq.agent.local_old import trees
from almanaq.agent.local_old.listing import Listing, listing
from almanaq.agent.local_old.restated import core
from almanaq.agent.local_old.standing import Standing, query_of
from almanaq.agent.local_old.words import stems
from almanaq.agent.parser import Parsed

_FIRST = re.compile(r"(?:the )?(?:first|top) (\d+)(?: (?:rows|ones|of (?:them|those|these)))?", re.IGNORECASE)
_DIRECTION = re.compile(
    r"(?:(?:sort|order|rank)(?: (?:it|them|these|those))?(?: in)? )?(?:(?P<down>(?:high|larg|bigg|great)est first"
    r"|desc(?:ending)?(?: order)?)|(?:low|small)est first|asc(?:ending)?(?: order)?)",
    re.IGNORECASE,
)
_CALLED = {
    exp.Sum: "sum total",
    exp.Avg: "average mean avg",
    exp.Count: "count number amount",
    exp.Min: "minimum min lowest",
    exp.Max: "maximum max highest",
    exp.PercentileCont: "median",
}


def anew(question: str, stands: Standing) -> Parsed | None:
    """Return the same figures in another order, or the first of them."""
    if not stands.gives_figures:
        return None
    wanted = listing(question)
    if wanted is not None:
        return _sorted(wanted, stands) if wanted.by else None
    if direction := _DIRECTION.fullmatch(core(question)):
        return _sorted(Listing("", down=direction["down"] is not None), stands)
    first = _FIRST.fullmatch(core(question))
    return _cut(int(first[1]), stands) if first else None


def _sorted(wanted: Listing, stands: Standing) -> Parsed:
    """Return the figures in another order: by what is shown beside them, or by the figures themselves."""
    tree = stands.tree
    assert tree is not None
    shown = [item.unalias() for item in tree.expressions]
    said = set(stems(wanted.by.rsplit(",")[-1]))
    by = [item for item in shown if said <= set(stems(_called(item)))]
    by = by if said else [item for item in shown if item.find(exp.AggFunc)]
    if len(by) != 1:
        listed = ", ".join(_name(item) for item in shown)
        by_what = f"Nothing that is shown is called “{wanted.by}”" if wanted.by else "Several things are shown"
        reply = f"{by_what}. I can sort by {listed}. By what shall I sort?"
        return Parsed("clarify", reply=reply, kind="again")
    changed = tree.copy()
    changed.set("order", trees.ordered(tree, [(trees.write(by[0]), wanted.down)], None).args["order"])
    return query_of(changed, "again", stands.question, stands.of)


def _cut(most: int, stands: Standing) -> Parsed | None:
    """Return the first of the figures; which these are, their order says."""
    tree = stands.tree
    if tree is None or tree.args.get("order") is None:
        return None
    return query_of(trees.limited(tree, most), "again", stands.question, stands.of)


def _called(item: exp.Expr) -> str:
    """Return every word by which an output may be called."""
    names = [column.name for column in item.find_all(exp.Column)]
    kinds = [words for kind, words in _CALLED.items() if item.find(kind) is not None]
    return " ".join((*kinds, *names)).replace("_", " ")


def _name(item: exp.Expr) -> str:
    """Return the name by which an output is offered."""
    column = " ".join(column.name.replace("_", " ") for column in item.find_all(exp.Column))
    kinds = [words.split()[0] for kind, words in _CALLED.items() if item.find(kind) is not None]
    return " of ".join(filter(None, (*kinds, column)))
