"""Conditions over answers: trees in three-valued logic, and branches that ask only where they are looked at."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sqlglot import exp

from almanaq.suql.plan.sites import is_nested_call, is_of_block, is_text_column, site_of, text_columns
from almanaq.suql.syntax.nodes import aliased, copy_tree, nodes, nodes_of
from almanaq.suql.text_functions import has_text, is_by_chance, nested_queries, own_nodes, own_text_calls

_MAY_FAIL = (exp.Div, exp.IntDiv, exp.Mod, exp.Cast, exp.Func)
_ACROSS_ROWS = (exp.AggFunc, exp.Filter, exp.WithinGroup, exp.Window)


def looked_at_under(
    node: exp.Expr, top: exp.Expr | None = None, usable: Callable[[exp.Expr], bool] = lambda _: True
) -> list[exp.Expr]:
    """Return conditions that a row meets wherever the value of a part of an expression, or of a block, matters.

    In `s OR x` x does not matter where s is true, in `s AND x` where s is false; a branch of CASE is looked at
    where its condition is true and none before it, an argument of COALESCE where those before it are NULL. Of two
    parts with text that are joined by AND or OR the first is looked at always. The conjuncts of the block's own WHERE
    are left out: its rows meet them already; so is what stands around an aggregate, which is about groups.
    They come in the order in which SQL looks at them: `10 / a > 2` after the `a = 0` that guards it.

    Args:
        top: the block that the part belongs to; None for an expression by itself.
    """
    found: list[exp.Expr] = []
    conjuncts: list[exp.Expr] = []
    of_rows, at = True, node
    while at.parent is not None and at.parent is not top:
        parent = at.parent
        filtered = isinstance(parent, exp.Filter) and at is parent.this
        of_rows = of_rows and (filtered or not isinstance(at, _ACROSS_ROWS))
        conditions = _conditions(at, parent) if of_rows else []
        given = [_is(part.copy(), *truth) for part, truth in conditions if usable(part) and not is_by_chance(part)]
        if isinstance(parent, exp.And):
            conjuncts = [*given, *conjuncts]
        elif isinstance(parent, exp.Query):  # what was found is about the rows of a nested query
            found, conjuncts, of_rows = [], [], True
        elif isinstance(parent, exp.Paren | exp.Where):
            pass
        else:
            found, conjuncts = [*given, *conjuncts, *found], []
        at = parent
    return found if isinstance(at, exp.Where) else conjuncts + found


_TRUE, _NOT_TRUE, _NOT_FALSE, _NULL = (exp.true(), False), (exp.true(), True), (exp.false(), True), (exp.null(), False)
"""What a condition is, or is not."""


def _conditions(at: exp.Expr, parent: exp.Expr) -> list[tuple[exp.Expr, tuple[exp.Expr, bool]]]:
    if isinstance(parent, exp.And | exp.Or):
        first = at is parent.this
        other = parent.expression if first else parent.this
        undecided = _NOT_TRUE if isinstance(parent, exp.Or) else _NOT_FALSE
        return [] if first and (has_text(other) or text_columns(other)) else [(other, undecided)]
    if isinstance(parent, exp.If):
        return [(parent.this, _TRUE)] if at.arg_key == "true" else []
    if isinstance(parent, exp.Case) and parent.this is None:
        passed = [branch for branch in parent.args["ifs"] if at.arg_key == "default" or branch.index < at.index]
        return [(branch.this, _NOT_TRUE) for branch in passed]
    if isinstance(parent, exp.Coalesce) and at is not parent.this:
        earlier = [parent.this, *(argument for argument in parent.expressions if argument.index < at.index)]
        return [(argument, _NULL) for argument in earlier]
    if isinstance(parent, exp.Filter) and at is parent.this:
        return [(parent.expression.this, _TRUE)]
    return []


def matters_under(node: exp.Expr, block: exp.Select) -> list[exp.Expr]:
    """Return structured conditions of a block without which the value of a part of it comes to nothing."""
    return looked_at_under(node, block, lambda part: not has_text(part) and is_of_block(part, block))


def ask_lazily(units: list[exp.Expr], block: exp.Select) -> list[exp.Expr]:
    """Put text functions of a block, where every use of one is conditional, into a CASE with them; return it.

    `max(CASE WHEN s THEN f(a) END)` becomes `max(CASE WHEN s THEN CASE WHEN s THEN f(a) END END)`, so that the inner
    CASE can be computed apart from what is around it. Equal ones stay equal.
    """

    def usable(part: exp.Expr) -> bool:
        if any(isinstance(node, _ACROSS_ROWS) for node in own_nodes(part)) or not is_of_block(part, block):
            return False
        return not any(map(is_nested_call, own_text_calls(part))) and not any(map(has_text, nested_queries(part)))

    uses: dict[str, list[list[exp.Expr]]] = {}
    for unit in units:
        uses.setdefault(unit.sql(), []).append(looked_at_under(unit, block, usable))
    written = {text: any_of(found) for text, found in uses.items()}
    found = []
    for unit in units:
        if (condition := written[unit.sql()]) is not None:
            lazily = exp.Case(ifs=[exp.If(this=condition.copy(), true=unit.copy())])
            unit.replace(lazily)
            unit = lazily
        found.append(unit)
    return found


def any_of(uses: list[list[exp.Expr]]) -> exp.Expr | None:
    """Return the condition under which one of some uses looks at a value, given those of each; None: always."""
    if not all(uses):
        return None
    either = {condition.sql(): condition for condition in map(_all_in_turn, uses)}
    return exp.or_(*either.values())


def asked_under(parts: Sequence[exp.Expr], top: exp.Expr | None = None) -> dict[str, exp.Expr | None]:
    """Return the condition under which parts of an expression look at each site (None: always).

    They come in an order in which each hangs only on sites before it.
    """
    uses: dict[str, list[list[exp.Expr]]] = {}
    for each in (each for part in parts for each in nodes_of(part, exp.Column) if is_text_column(each)):
        uses.setdefault(site_of(each.name), []).append(looked_at_under(each, top))
    uses |= {site: [[]] for site, found in uses.items() if not all(found)}
    needed: dict[str, exp.Expr | None] = {}
    waiting = list(uses)
    while waiting:
        at = next((site for site in waiting if not _asked_first(uses[site]) & {*waiting}), None)
        if at is None:  # each waits for another: the first does no longer
            at = waiting[0]
            uses[at] = [[part for part in use if not _asked_first([[part]])] for use in uses[at]]
        needed[at] = any_of(uses[at])
        waiting.remove(at)
    return needed


def _asked_first(uses: list[list[exp.Expr]]) -> set[str]:
    return {site_of(name) for use in uses for part in use for name in text_columns(part)}


def _all_in_turn(conditions: list[exp.Expr]) -> exp.Expr:
    """Join conditions so that one which may fail is computed only where those before it hold: AND looks at all."""
    first, *rest = conditions
    if not rest:
        return first
    following = _all_in_turn(rest)
    if _may_fail(following):
        return exp.Case(ifs=[exp.If(this=first, true=following)], default=exp.false())
    return exp.and_(first, following)


def _may_fail(node: exp.Expr) -> bool:
    return any(isinstance(each, _MAY_FAIL) and not isinstance(each, exp.Connector) for each in nodes(node))


def _is(node: exp.Expr, value: exp.Expr, negated: bool) -> exp.Expr:
    found = exp.Is(this=exp.paren(node, copy=False), expression=value.copy())
    return exp.not_(found, copy=False) if negated else found


@dataclass(frozen=True, slots=True)
class And:
    children: tuple[Predicate, ...]


@dataclass(frozen=True, slots=True)
class Or:
    children: tuple[Predicate, ...]


@dataclass(frozen=True, slots=True)
class Not:
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
    """Any other condition over answers; the database evaluates it once the computed columns that it looks at are known.

    Attributes:
        needs: its computed columns.
        under: the sites that it looks at under a condition, as those in a branch of CASE, each after those that its
            condition reads.
    """

    column: str
    expression: exp.Expr
    needs: tuple[str, ...]
    under: tuple[tuple[str, Structured | Computed], ...] = ()


Predicate = And | Or | Not | Structured | Verdict | Computed


class PredicateBuilder:
    """Turns a WHERE whose text functions are computed columns into a predicate tree."""

    def __init__(self) -> None:
        self._atoms: dict[str, Structured | Computed] = {}
        self._conditions: dict[str, Structured | Computed] = {}

    def build(self, node: exp.Expr) -> Predicate:
        """Return the tree; parts without text stay whole, so that the database evaluates them."""
        node = node.unnest() if isinstance(node, exp.Paren) else node
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

        With text in a condition the CASE stays whole: where a call in it fails, the CASE is NULL.
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
            under = asked_under([node], node.parent) if needs else {}
            conditions = tuple((site, self._condition(part)) for site, part in under.items() if part is not None)
            name = f"s{len(self._atoms)}"
            self._atoms[key] = Computed(name, node, needs, conditions) if needs else Structured(name, node)
        return self._atoms[key]

    def _condition(self, node: exp.Expr) -> Structured | Computed:
        """Return the condition of a site; one that may fail is computed only where the site may matter."""
        key, needs = node.sql(), tuple(sorted(text_columns(node)))
        if key not in self._conditions:
            name = f"c{len(self._conditions)}"
            lazily = needs or _may_fail(node)
            self._conditions[key] = Computed(name, node, needs) if lazily else Structured(name, node)
        return self._conditions[key]


TRUTH = "truth"
"""What an output is marked by that holds the truth of a condition of WHERE: TRUE, FALSE, or NULL."""


def truth_output(condition: exp.Expr, name: str) -> exp.Alias:
    """Return a condition as an output, to be written so that it is NULL where the condition is."""
    output = aliased(condition, name)
    output.meta[TRUTH] = True
    return output


def atoms(predicate: Predicate) -> list[Structured | Verdict | Computed]:
    match predicate:
        case And(children) | Or(children):
            found = [atom for child in children for atom in atoms(child)]
        case Not(child):
            found = atoms(child)
        case _:
            found = [predicate]
    return list(dict.fromkeys(found))


def with_conditions(found: Sequence[Predicate]) -> list[Predicate]:
    """Return atoms, and the conditions under which they ask."""
    inner = [condition for atom in found if isinstance(atom, Computed) for _, condition in atom.under]
    return list(dict.fromkeys([*found, *inner]))


def surely(predicate: Predicate, *, wanted: bool = True) -> exp.Expr | None:
    """Return the condition under which a predicate is TRUE (FALSE, where that is wanted) for any answers, if any."""
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
    node = node.unnest() if isinstance(node, exp.Paren) else node
    if isinstance(node, exp.And):
        return conjuncts(node.this) + conjuncts(node.expression)
    return [node]


def weakest(node: exp.Expr | None) -> exp.Expr | None:
    """Return the weakest condition without text that a condition implies; None when that is TRUE.

    Each part with text is replaced by TRUE (by FALSE under a NOT). AND and OR are monotone in the order
    FALSE < NULL < TRUE and NOT reverses it, so a row that the whole condition accepts is accepted by this one too.
    """
    implied = _find_bound(node, upper=True) if node is not None else True
    return None if implied is True else exp.false() if implied is False else implied


def _find_bound(node: exp.Expr, *, upper: bool) -> exp.Expr | bool:
    """Return the bound of a condition in the order FALSE < NULL < TRUE: True and False stand for the constants."""
    node = node.unnest() if isinstance(node, exp.Paren) else node
    if not (text_columns(node) or has_text(node)):
        return copy_tree(node)
    if isinstance(node, exp.And | exp.Or):
        return _combine(type(node), _find_bound(node.this, upper=upper), _find_bound(node.expression, upper=upper))
    if isinstance(node, exp.Not):
        inner = _find_bound(node.this, upper=not upper)
        return (not inner) if isinstance(inner, bool) else exp.not_(inner, copy=False)
    return upper


def _combine(kind: type[exp.Expr], left: exp.Expr | bool, right: exp.Expr | bool) -> exp.Expr | bool:
    neutral = kind is exp.And
    for one, other in ((left, right), (right, left)):
        if isinstance(one, bool):
            return other if one is neutral else one
    assert not isinstance(left, bool)
    assert not isinstance(right, bool)
    return exp.and_(left, right, copy=False) if neutral else exp.or_(left, right, copy=False)


def map_atoms(predicate: Predicate, change: Callable[[Predicate], Predicate]) -> Predicate:
    match predicate:
        case And(children):
            return And(tuple(map_atoms(child, change) for child in children))
        case Or(children):
            return Or(tuple(map_atoms(child, change) for child in children))
        case Not(child):
            return Not(map_atoms(child, change))
    return change(predicate)


# --- three-valued logic with parts still open -------------------------------------------------------------------------
# A set of possible truth values is a bit mask; what is known is a mask with one bit. In the order of the bits AND is
# the least of its parts, and OR the greatest.

FALSE, NULL, TRUE = 1, 2, 4
ANY = TRUE | FALSE | NULL

Atom = Structured | Verdict | Computed


def sites_needed(atom: Atom) -> tuple[str, ...]:
    match atom:
        case Verdict(name):
            return (site_of(name),)
        case Computed():
            return tuple(dict.fromkeys(map(site_of, atom.needs)))
    return ()


def may_look_at(atom: Atom, site: str, row: Mapping[str, Any]) -> bool:
    """Return whether an atom may look at one of its sites in a row, by its structured conditions."""
    condition = dict(atom.under).get(site) if isinstance(atom, Computed) else None
    return not isinstance(condition, Structured) or bool(row[condition.column])


def mask(value: bool | None) -> int:
    return NULL if value is None else TRUE if value else FALSE


def possible(predicate: Predicate, known: Mapping[str, int]) -> int:
    """Return what a predicate can still be, given the masks of the atoms known by column."""
    match predicate:
        case And(children):
            return _fold(children, known, _AND)
        case Or(children):
            return _fold(children, known, _OR)
        case Not(child):
            return _NOT[possible(child, known)]
    return known.get(predicate.column, ANY)


@dataclass(frozen=True, slots=True)
class Choice:
    """The atom to find out next in a predicate, with what deciding the whole of it is expected to take."""

    atom: Atom
    cost: float
    chance: float


def choose(
    predicate: Predicate, known: Mapping[str, int], cost: Callable[[Atom], float], chance: Callable[[Atom], float]
) -> Choice:
    """Return the atom whose answer decides the predicate at the least expected cost.

    Children of an AND are tried by cost / chance of not being TRUE, those of an OR by cost / chance of being TRUE.
    """
    match predicate:
        case Not(child):
            inner = choose(child, known, cost, chance)
            return Choice(inner.atom, inner.cost, 1 - inner.chance)
        case And(children) | Or(children):
            conjunction = isinstance(predicate, And)
            still_open = [child for child in children if possible(child, known) & (possible(child, known) - 1)]
            choices = [choose(child, known, cost, chance) for child in still_open]
            choices.sort(key=lambda c: c.cost / max(1e-6, 1 - c.chance if conjunction else c.chance))
            reach, total = 1.0, 0.0
            for choice in choices:
                total += reach * choice.cost
                reach *= choice.chance if conjunction else 1 - choice.chance
            return Choice(choices[0].atom, total, reach if conjunction else 1 - reach)
    return Choice(predicate, cost(predicate), chance(predicate))


def _fold(children: tuple[Predicate, ...], known: Mapping[str, int], table: list[list[int]]) -> int:
    result = possible(children[0], known)
    for child in children[1:]:
        result = table[result][possible(child, known)]
    return result


def _bits(values: int) -> list[int]:
    return [bit for bit in (FALSE, NULL, TRUE) if values & bit]


_NOT = [sum(TRUE // bit for bit in _bits(values)) for values in range(8)]
_AND = [[sum({min(a, b) for a in _bits(left) for b in _bits(right)}) for right in range(8)] for left in range(8)]
_OR = [[sum({max(a, b) for a in _bits(left) for b in _bits(right)}) for right in range(8)] for left in range(8)]
