"""Predicates over text: the tree that a text filter evaluates, and the structured conditions it implies."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from sqlglot import exp

from almanaq.suql.plan.sites import is_text_column, text_columns
from almanaq.suql.text_functions import has_text


@dataclass(frozen=True, slots=True)
class And:
    """True when every child is."""

    children: tuple[Predicate, ...]


@dataclass(frozen=True, slots=True)
class Or:
    """True when a child is."""

    children: tuple[Predicate, ...]


@dataclass(frozen=True, slots=True)
class Not:
    """The negation; NULL stays NULL."""

    child: Predicate


@dataclass(frozen=True, slots=True)
class Structured:
    """A condition without text that the database evaluates with the candidates, as column `column`."""

    column: str
    expression: exp.Expr


@dataclass(frozen=True, slots=True)
class Verdict:
    """A computed verdict column: whether an answer equals a literal."""

    column: str


@dataclass(frozen=True, slots=True)
class Computed:
    """Any other condition over answers; the database evaluates it once its computed columns are known."""

    column: str
    expression: exp.Expr
    needs: tuple[str, ...]


Predicate = And | Or | Not | Structured | Verdict | Computed


class PredicateBuilder:
    """Turns a WHERE whose text functions are computed columns into a predicate tree."""

    def __init__(self) -> None:
        self._atoms: dict[str, Structured | Computed] = {}

    def build(self, node: exp.Expr) -> Predicate:
        """Return the tree; parts without text stay whole, so that the database evaluates them."""
        while isinstance(node, exp.Paren):
            node = node.this
        if not text_columns(node):
            return self._atom(node)
        if isinstance(node, exp.And | exp.Or):
            kind = And if isinstance(node, exp.And) else Or
            children = [self.build(child) for child in (node.this, node.expression)]
            return kind(tuple(part for c in children for part in (c.children if isinstance(c, kind) else (c,))))
        if isinstance(node, exp.Not):
            return Not(self.build(node.this))
        if isinstance(node, exp.Case) and node.this is None:
            return self._case(node)
        if is_text_column(node) and "_" in node.name:
            return Verdict(node.name)
        return self._atom(node)

    def _case(self, node: exp.Case) -> Predicate:
        """`CASE WHEN c THEN a ELSE b END` is `(c IS TRUE AND a) OR (c IS NOT TRUE AND b)` where c holds no text.

        So a branch that a row does not take is not asked. With text in a condition the CASE stays whole.
        """
        branches = node.args["ifs"]
        if any(text_columns(branch.this) for branch in branches):
            return self._atom(node)
        result = self.build(node.args.get("default") or exp.null())
        for branch in reversed(branches):
            taken = self._atom(exp.Is(this=exp.paren(branch.this.copy()), expression=exp.true()))
            result = Or((And((taken, self.build(branch.args["true"]))), And((Not(taken), result))))
        return result

    def _atom(self, node: exp.Expr) -> Structured | Computed:
        key = node.sql()
        if key not in self._atoms:
            needs = tuple(sorted(text_columns(node)))
            name = f"s{len(self._atoms)}"
            self._atoms[key] = Computed(name, node, needs) if needs else Structured(name, node)
        return self._atoms[key]


def atoms(predicate: Predicate) -> list[Structured | Verdict | Computed]:
    """Return the atoms of a tree, each once, in order."""
    match predicate:
        case And(children) | Or(children):
            found = [atom for child in children for atom in atoms(child)]
        case Not(child):
            found = atoms(child)
        case _:
            found = [predicate]
    return list(dict.fromkeys(found))


def surely(predicate: Predicate, *, wanted: bool = True) -> exp.Expr | None:
    """Return the condition under which a predicate is TRUE (FALSE, where that is wanted) whatever its answers are.

    Returns:
        None where none makes it so.
    """
    match predicate:
        case Structured(_, expression):
            return exp.Is(this=exp.paren(expression.copy()), expression=exp.true() if wanted else exp.false())
        case Not(child):
            return surely(child, wanted=not wanted)
        case And(children) | Or(children):
            found = [surely(child, wanted=wanted) for child in children]
            sure = [condition for condition in found if condition is not None]
            if isinstance(predicate, And) == wanted:  # all of them have to be so
                return exp.and_(*sure) if len(sure) == len(found) else None
            return exp.or_(*sure) if sure else None
    return None


def conjuncts(node: exp.Expr | None) -> list[exp.Expr]:
    """Split a condition at its top-level ANDs."""
    if node is None:
        return []
    while isinstance(node, exp.Paren):
        node = node.this
    if isinstance(node, exp.And):
        return conjuncts(node.this) + conjuncts(node.expression)
    return [node]


def weakest(node: exp.Expr | None) -> exp.Expr | None:
    """Return the weakest condition without text that a condition implies; None when that is TRUE.

    Each part with text is replaced by TRUE (by FALSE under a NOT). AND and OR are monotone in the order
    FALSE < NULL < TRUE and NOT reverses it, so a row that the whole condition accepts is accepted by this one too.
    """
    implied = _bound(node, upper=True) if node is not None else True
    return None if implied is True else exp.false() if implied is False else implied


def _bound(node: exp.Expr, *, upper: bool) -> exp.Expr | bool:
    """Return the bound of a condition in the order FALSE < NULL < TRUE: True and False stand for the constants."""
    while isinstance(node, exp.Paren):
        node = node.this
    if not (text_columns(node) or has_text(node)):
        return node.copy()
    if isinstance(node, exp.And | exp.Or):
        return _combine(type(node), _bound(node.this, upper=upper), _bound(node.expression, upper=upper))
    if isinstance(node, exp.Not):
        inner = _bound(node.this, upper=not upper)
        return (not inner) if isinstance(inner, bool) else exp.not_(inner)
    return upper


def _combine(kind: type[exp.Expr], left: exp.Expr | bool, right: exp.Expr | bool) -> exp.Expr | bool:
    neutral = kind is exp.And
    for one, other in ((left, right), (right, left)):
        if isinstance(one, bool):
            return other if one is neutral else one
    assert not isinstance(left, bool)
    assert not isinstance(right, bool)
    return exp.and_(left, right) if neutral else exp.or_(left, right)


def map_atoms(predicate: Predicate, change: Callable[[Predicate], Predicate]) -> Predicate:
    """Return the tree with every atom changed."""
    match predicate:
        case And(children):
            return And(tuple(map_atoms(child, change) for child in children))
        case Or(children):
            return Or(tuple(map_atoms(child, change) for child in children))
        case Not(child):
            return Not(map_atoms(child, change))
    return change(predicate)
