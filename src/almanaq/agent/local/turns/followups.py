"""Follow-ups: a turn that goes on from another is merged into the query that was answered last."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from sqlglot import exp

from almanaq.agent.history import Turn
from almanaq.agent.linking.columns import LinkedColumn
from almanaq.agent.linking.english import SPELLED
from almanaq.agent.linking.words import fold
from almanaq.agent.local.conditions import SIGNS
from almanaq.agent.local.presence import denied
from almanaq.agent.local.reading import Reading
from almanaq.agent.local.spec import QuerySpec, aggregate, count, number, order_of_groups, plain, read_spec, write_spec
from almanaq.agent.local.texts import is_searched
from almanaq.agent.local.turns.merging import (
    GUESSED,
    SURE,
    Edit,
    FollowUp,
    denies_of_things,
    fill_year,
    join_alternatives,
    list_kinds_as_rows,
    list_rows,
    merge_conditions,
    names_row,
    put_right,
    replace_parts,
    without,
)
from almanaq.agent.local.turns.references import last_rows, literal, refers, resolve, turn_pattern
from almanaq.agent.local.turns.shown import ask_of_rows, compare_with_shown, fill_same, find_others, less_or_more
from almanaq.agent.local.world import World
from almanaq.suql.text_functions import has_text

_VAGUE = ("it", "there", "the one")  # they may mean no row: "is it possible"
_GOES_ON = ("goes_on", "another", "gives_up", "drop", "count", "first", "sort", "most", "rest")


def goes_on(question: str) -> bool:
    """Return whether a turn says by its words that it goes on from the one before."""
    said = question.strip()
    says = any(turn_pattern(name).search(said) for name in _GOES_ON)
    return says or asks_to_list(said) or less_or_more(said) is not None


def asks_to_list(question: str) -> bool:
    """Return whether a turn asks to list the rows that were found."""
    bare = ("list", "show", "print", "name", "give")
    return bool(turn_pattern("list").search(question.strip())) and fold(question).strip(" .!?") not in bare


def merge(question: str, history: Sequence[Turn], world: World) -> Reading | None:
    """Return what a turn asks after those before it; None where it cannot go on from them.

    What it names replaces what is of the same kind in the last answered query: a condition one on the same column, a
    measure the measure, a grouping the grouping. "It" and "them" are the rows last shown.
    """
    last = last_query(history, world)
    if last is None:
        return None
    said = turn_pattern("like_those").sub(r"\1", question.strip())  # "how many hotels like these are in Bern?"
    turn = fill_same(FollowUp(said, last, history, world))
    edits = (_count, _rank, _bound, _of_groups, _drop, find_others, _list, _give_up, compare_with_shown, _ask_of_shown)
    found = next((found for edit in (*edits, _exchange) if (found := edit(turn)) is not None), None)
    if found is None or found.spec is None:
        return None
    try:
        suql = write_spec(found.spec, world.graph, world.dialect)
    except KeyError:
        return None
    reasons = (found.kind,) if found.kind else ()
    return Reading(found.spec, suql, found.probability, unused=found.unused, reasons=reasons)


def last_query(history: Sequence[Turn], world: World) -> QuerySpec | None:
    """Return the query that was answered last, or alone was offered since; details of a row do not count as one."""
    if (offered := offered_search(history, world)) is not None:
        return offered
    for turn in reversed(history):
        suql = turn.meant or turn.suql
        if turn.status in ("failed", "clarify", "no_query") or not suql or turn.kind == "detail":
            continue
        spec = read_spec(suql, world.dialect)
        if spec is not None and (relation := world.catalog.find(spec.rows)) is not None:
            return spec if is_searched(world, relation) else _without_ties(spec, history, world)
    return None


def offered_search(history: Sequence[Turn], world: World) -> QuerySpec | None:
    """Return the one search that the last turn offered: "golf in Atlantis" without Atlantis, before "in Salem then"."""
    offered = history[-1].offered if history and history[-1].status == "clarify" else ()
    spec = read_spec(offered[0], world.dialect) if len(offered) == 1 else None
    return spec if spec and spec.tests and is_searched(world, world.catalog.relation(spec.rows)) else None


def _without_ties(spec: QuerySpec, history: Sequence[Turn], world: World) -> QuerySpec:
    """Return a ranking with the limit that was asked for: a query shows all that tie for the first place."""
    spans = (span for turn in history for span in world.link(turn.question).spans)
    counts = (m for s in spans if s.kind in ("number", "superlative") for m in s.meanings)
    said = any(spec.limit in (getattr(m, "value", None), getattr(m, "limit", None)) for m in counts)
    return spec if said or spec.limit in (None, 1) or not spec.order else replace(spec, limit=1)


def _count(turn: FollowUp) -> Edit | None:
    """How many the last query found; less surely where it gave the first of them alone."""
    spec = turn.spec
    if spec.gives_figures or not turn.match("count"):
        return None
    columns = [c for each in spec.columns if (c := turn.world.column_of(each)) is not None]
    if spec.distinct and len(columns) != 1:
        return Edit(None)
    counted = aggregate("COUNT", columns[0]) if spec.distinct else count()
    sure = not (spec.limit is not None and spec.order)
    return Edit(QuerySpec(spec.rows, (), (counted,), spec.conditions), SURE if sure else GUESSED, "detail")


def _rank(turn: FollowUp) -> Edit | None:
    """The same rows or groups in another order, or the first of them: "and the fewest?", "the top two"."""
    spec, order = turn.spec, turn.spec.order or order_of_groups(turn.spec)
    terms = spec.measures[-1:] if spec.groups else [term for term, _ in order[:1]]
    if terms and (spec.groups or spec.limit) and (most := turn.match("most")):
        return Edit(replace(spec, order=((terms[0], bool(most[1])),), limit=1))
    if terms and (spec.groups or not spec.limit) and (sort := turn.match("sort")):
        turned = tuple((term, not down) for term, down in order)
        return Edit(replace(spec, order=turned if sort["turned"] else ((terms[0], bool(sort["down"])),)))
    if (first := turn.match("first")) is None:
        return None
    top = "top" in first[0].casefold()
    limit = int(SPELLED.get(first[1].casefold()) or first[1])
    rows = (not spec.groups and list_rows(spec, turn.world)) or spec
    best = tuple((each, True) for each in spec.measures[:1] if spec.groups and top)
    # The first rows are a part of those found, from which the next turn does not go on.
    kind = "" if spec.groups or top else "detail"
    return Edit(replace(rows, order=spec.order or best or order, limit=limit), kind=kind)


def _bound(turn: FollowUp) -> Edit | None:
    """The groups, or the rows, with another bound, where no column is named for it: "more than 3"."""
    spec, cover = turn.spec, next(iter(turn.world.link(turn.said).covers), ())
    found = [span.meanings[0] for span in cover if span.kind == "compare"]
    kinds = {span.kind for span in cover} - {"silent", "and", "compare"}
    named = {plain(c) for s in cover for m in s.meanings if isinstance(c := getattr(m, "thing", None), LinkedColumn)}
    signs = exp.GT | exp.GTE | exp.LT | exp.LTE
    compares = [c for c in spec.conditions if isinstance(c, signs) and c.expression.is_number]
    terms = spec.measures[-1:] if spec.groups else [c.this for c in compares]
    if len(found) != 1 or len(terms) != 1 or kinds - {"table", "noun", "column"} or named - {*spec.groups}:
        return None
    if found[0].measured or found[0].unit or found[0].sign == "between":
        return None
    bound = SIGNS[found[0].sign](this=terms[0].copy(), expression=number(found[0].numbers[0]))
    if not spec.groups:
        return Edit(spec.with_conditions(bound if c in compares else c for c in spec.conditions))
    sure = isinstance(terms[0], exp.Count) or bool(kinds)
    return Edit(replace(spec, having=(bound,)), SURE if sure else GUESSED)


def _of_groups(turn: FollowUp) -> Edit | None:
    """What is asked of the rows of the groups that rank first: "how many does she have?"."""
    spec, world, said = turn.spec, turn.world, fold(turn.said)
    found = turn_pattern("one").search(said) or turn_pattern("all").search(said)
    kinds = [each for each in spec.groups if not isinstance(each, exp.Explode)]
    if found is None or spec.limit is None or world.run is None or not kinds:
        return None
    ranked = world.run(write_spec(spec, world.graph, world.dialect))
    same = (exp.and_(*map(lambda e, v: exp.EQ(this=e.copy(), expression=literal(v)), kinds, row)) for row in ranked)
    rows = list_rows(QuerySpec(spec.rows, (), (count(),), (*spec.conditions, exp.or_(*same))), world)
    assert rows is not None
    rest = f"{turn.said[: found.start()]} {turn.said[found.end() :]}"
    return _exchange(replace(turn, said=rest, spec=rows)) or Edit(rows, GUESSED)


def _drop(turn: FollowUp) -> Edit | None:
    """The other rows ("the rest"), or those with any value of what is named ("in all towns")."""
    spec = turn.spec
    if turn.match("rest") and len(spec.conditions) == 1 and not turn.is_search:
        return Edit(spec.with_conditions([denied(spec.conditions[0])]), GUESSED)
    every = turn.match("every")
    dropped = without(turn.said, spec, turn.world) if every else None
    return Edit(dropped, SURE if every["of"] else GUESSED) if every and dropped is not None else None


def _list(turn: FollowUp) -> Edit | None:
    """All rows that were found, or that a figure is of."""
    return Edit(list_rows(turn.spec, turn.world)) if asks_to_list(turn.said) else None


def _give_up(turn: FollowUp) -> Edit | None:
    """The same without what parts of a turn give up, with what its other parts name: "noise is fine, but in Bern"."""
    said = turn_pattern("rather").sub(r"\1, than", turn.said.rstrip(" .!?"))
    spec, others, parts = turn.spec, list[str](), turn_pattern("parts").split(said)
    for i, part in enumerate(parts):
        gives_up = turn_pattern("gives_up").search(part) is not None
        names = not gives_up and turn.conditions_named(part).conditions
        drops = gives_up or turn_pattern("drop").search(part) is not None
        wants = names and part.casefold().startswith("any ")  # "any golf hotel is fine"
        dropped = without(part, spec, turn.world) if drops and not wants else None
        before = turn_pattern("cues").sub("", parts[i - 1]) if i else ""
        of_before = drops and dropped is None and turn_pattern("of_before").search(part)
        dropped = without(before, spec, turn.world) if of_before else dropped
        leaves_out = gives_up and dropped is None and turn_pattern("leaves_out").search(part)
        if leaves_out and (less := turn.conditions_named(part[leaves_out.end() :])).conditions:
            less = less.with_conditions(map(denied, less.conditions))
            dropped = spec.with_conditions(merge_conditions(spec, less, turn.world))
        reason = spec is not turn.spec and turn_pattern("reason").search(part)
        spec = dropped or spec  # what gives up nothing that was asked for changes nothing
        others += [] if dropped or reason or (drops and not names) else [part]
    if others == parts:
        return None
    rest = ", ".join(others)
    if turn_pattern("count_all").search(rest) and not refers(rest, turn.history, turn.world):
        spec = QuerySpec(spec.rows)  # "how many hotels have golf, never mind the price?" begins anew
    left = replace(turn, said=rest, spec=spec)
    found = compare_with_shown(left) or _exchange(left) if rest else None
    return found or Edit(spec, unused=(rest,) if rest else ())


def _ask_of_shown(turn: FollowUp) -> Edit | None:
    """What is asked of rows that were shown; of all that rank first, also in another order."""
    spec = turn.spec
    reference = resolve(turn.said, turn.history, turn.world)
    if reference is None and ((spec.limit and spec.order and turn.match("sorts")) or turn.match("about_what")):
        reference = last_rows(turn.history, turn.world)
    if reference is None:
        return None
    found = ask_of_rows(turn, reference)
    if found is None and reference.conditions is not None and (not reference.single or reference.words in _VAGUE):
        found = _exchange(turn)
    if found is None:
        return Edit(None)
    return replace(found, probability=min(found.probability, GUESSED)) if reference.guessed else found


def _exchange(turn: FollowUp) -> Edit | None:
    """The last query with what a turn names in the place of what is of the same kind."""
    spec, world = turn.spec, turn.world
    whole, turn = turn.said, replace(turn, said=put_right(turn.said, spec, world))
    short = turn_pattern("asides").sub("", turn_pattern("instead").sub(" ", turn.said).strip(" ,"))
    short = turn_pattern("cues").sub("", short).strip() or short
    short, year_is_sure = fill_year(short, spec, world)
    best = turn.read(short)
    if best is None:
        return None
    new, guessed = join_alternatives(whole, spec, best.spec)
    cover = next(iter(world.link(short).covers), ())
    functions = [span.meanings[0] for span in cover if span.kind == "aggregate"]  # "and the average?"
    column = world.column_of(spec.measures[-1]) if spec.measures and not new.measures else None
    function = functions[0] if len(functions) == 1 and column is not None else None
    if function is not None and column is not None:
        new = replace(new, measures=(aggregate(function, column),))
    conditions = merge_conditions(spec, new, world, keeps=turn.match("keeps") is not None and not turn.match("either"))
    equal = [(c, world.column_of(c)) for c in conditions if isinstance(c, exp.EQ) and not has_text(c)]
    old = (c for c in conditions if new.conditions and c not in new.conditions)
    one = [c for c in old if names_row(c, spec.rows, world)]  # more is said than the name of one row
    gone = [*one, *(c for c, col in equal if col is not None and plain(col) in new.groups)]
    merged = spec.with_conditions(c for c in conditions if c not in gone)
    which = spec.measures == (count(),) and turn.match("lists") is not None
    columns = new.columns and any(span.kind == "column" for span in cover)  # not all that a row is shown with
    of_rows = spec.measures and not spec.groups and not new.gives_figures and (which or columns or new.order)
    merged = (of_rows and list_rows(merged, world)) or list_kinds_as_rows(merged, new, world)
    made = replace_parts(merged, new, world)
    named = new.conditions or new.measures or new.groups or new.order or new.columns
    if made is None or not named or (made == spec and not (turn.is_search and new.conditions)):
        return None
    if function is not None:
        unused = [w for w in best.unused if fold(w) not in ("average", "mean", "total", "median", "sum")]
        return Edit(made, 0.2 if unused else 0.9)
    doubts = (
        one or guessed or not year_is_sure or denies_of_things(spec, new),
        new.measures and spec.limit and not spec.groups,
        of_rows and new.order and any(span.kind == "table" for span in cover),
    )
    return Edit(made, min(best.probability, GUESSED if any(doubts) else 1.0), unused=best.unused)
