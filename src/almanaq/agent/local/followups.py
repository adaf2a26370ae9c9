"""Follow-ups: a turn that goes on from another is merged into the query that was answered last."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from datetime import date, timedelta

from sqlglot import exp

from almanaq.agent.history import Turn
from almanaq.agent.linking.columns import LinkedColumn, fact_columns, name_columns
from almanaq.agent.linking.english import SPELLED, Measured, english
from almanaq.agent.linking.joins import table_of
from almanaq.agent.linking.words import fold, singular
from almanaq.agent.local.phrases import domain_of, search_words
from almanaq.agent.local.reading import Reading, read
from almanaq.agent.local.references import Reference, find_again, last_rows, resolve, turn_pattern
from almanaq.agent.local.spec import (
    QuerySpec,
    aggregate,
    answer,
    columns_in,
    compared,
    count,
    has_item,
    one_of,
    order_of_groups,
    plain,
    read_spec,
    write_spec,
)
from almanaq.agent.local.texts import is_searched, prose_for
from almanaq.agent.local.world import World
from almanaq.suql.catalog.relations import Relation
from almanaq.suql.text_functions import has_text

_USABLE = 0.2
"""The probability from which a part of a turn is taken for what it says."""
_GUESSED = 0.5
"""The probability that the first is meant by what speaks of one row, where several were shown."""
_VAGUE = ("it", "there", "the one")  # they may mean no row: "is it possible"
_OF_ONE = {"are": "is", "do": "does", "have": "has", "were": "was"}
_FANCY = {"better": "good", "worse": "bad", "fancy": "expensive", "pricey": "expensive", "pricy": "expensive"}


def goes_on(question: str) -> bool:
    """Return whether a turn says by its words that it goes on from the one before."""
    said, named = question.strip(), ("goes_on", "another", "gives_up", "drop", "count", "first")
    says = any(pattern.search(said) for pattern in map(turn_pattern, named))
    return says or asks_to_list(said) or _less_or_more(said) is not None


def merge(question: str, history: Sequence[Turn], world: World) -> Reading | None:
    """Return what a turn asks after those before it; None where it cannot go on from them.

    What it names replaces what is of the same kind in the last answered query: a condition one on the same column, a
    measure the measure, a grouping the grouping. "It" and "them" are the rows last shown.
    """
    last = last_query(history, world)
    if last is None:
        return None
    spec = last[0]
    said = question.strip()
    if turn_pattern("count").search(said) and not spec.gives_figures:
        return _count_found(spec, world)
    if spec.groups and spec.measures and (most := turn_pattern("most").search(said)):
        ranked = replace(spec, order=((spec.measures[-1], bool(most[1])),), limit=1)
        return _make_reading(ranked, world)
    said = _fill_same(said, history, world)
    if (alike := _like_shown(said, spec, history, world)) is not None:
        closer = alike[1] and _compare_with_shown(alike[0], alike[1], history, world)
        return _make_reading(closer or alike[1], world)
    if turn_pattern("another").search(said) and not spec.gives_figures:
        return _make_reading(_others(said, spec, history, world), world)
    if (first := turn_pattern("first").search(said)) is not None:
        top = tuple((each, True) for each in spec.measures[:1] if spec.groups and "top" in first[0].casefold())
        order = spec.order or top or order_of_groups(spec)
        limit = int(SPELLED.get(first[1].casefold()) or first[1])
        return _make_reading(replace(spec, order=order, limit=limit), world)
    if (sort := turn_pattern("sort").search(said)) is not None and spec.measures:
        return _make_reading(replace(spec, order=((spec.measures[-1], bool(sort["down"])),)), world)
    if asks_to_list(said):
        return _make_reading(_list_rows(spec, world), world)
    gives_up = turn_pattern("gives_up").search(said) is not None
    if gives_up or turn_pattern("drop").search(said):
        dropped = _without(said, spec, world)
        if dropped is not None or (gives_up and "," not in said):
            return _make_reading(dropped or spec, world)  # where it asked for nothing of the kind, nothing changes
    if (closer := _compare_with_shown(said, spec, history, world)) is not None:
        return _make_reading(closer, world)
    reference = resolve(said, history, world)
    if reference is None:
        return _exchange(said, spec, world)
    found = _about(said, spec, reference, history, world)
    told = reference.conditions is not None
    if found is None and told and (not reference.single or reference.words in _VAGUE):
        found = _exchange(said, spec, world)
    return replace(found, probability=min(found.probability, _GUESSED)) if found and reference.guessed else found


def asks_to_list(question: str) -> bool:
    """Return whether a turn asks to list the rows that were found."""
    bare = ("list", "show", "print", "name", "give")
    return bool(turn_pattern("list").search(question.strip())) and fold(question).strip(" .!?") not in bare


def last_query(history: Sequence[Turn], world: World) -> tuple[QuerySpec, Turn] | None:
    """Return the query that was answered last, and its turn; details of a row do not count as one."""
    for turn in reversed(history):
        suql = turn.meant or turn.suql
        if turn.status in ("failed", "clarify", "no_query") or not suql or turn.kind == "detail":
            continue
        spec = read_spec(suql, world.dialect)
        if spec is not None and world.catalog.find(spec.rows) is not None:
            return spec, turn
    return None


def _count_found(spec: QuerySpec, world: World) -> Reading | None:
    """Return how many the last query found; less surely where it gave the first of them alone."""
    columns = [c for each in spec.columns if (c := world.column_of(each)) is not None]
    if spec.distinct and len(columns) != 1:
        return None
    counted = aggregate("COUNT", columns[0]) if spec.distinct else count()
    cut = spec.limit is not None and bool(spec.order)
    found = QuerySpec(spec.rows, (), (counted,), spec.conditions)
    return _make_reading(found, world, _GUESSED if cut else 0.95, kind="detail")


def _make_reading(spec: QuerySpec | None, world: World, probability: float = 0.95, kind: str = "") -> Reading | None:
    if spec is None:
        return None
    try:
        return Reading(spec, write_spec(spec, world.graph, world.dialect), probability, reasons=(kind,) if kind else ())
    except KeyError:
        return None


def _others(said: str, spec: QuerySpec, history: Sequence[Turn], world: World) -> QuerySpec | None:
    """Return the same, with what a turn names, without the rows that were shown; None where nothing tells which."""
    relation = world.catalog.relation(spec.rows)
    merged = _merge_conditions(spec, _conditions_named(said, relation, world), keeps=False, world=world)
    named = name_columns(world.columns(spec.rows))
    others = [c for c in merged if world.column_of(c) not in named]  # besides the row that was spoken of
    if others and others != merged:
        spec = replace(spec, columns=tuple(map(plain, fact_columns(world.columns(spec.rows), ()))))
    spec = spec.with_conditions(others or merged)
    turns = [t for t in history if t.shown and t.shown.relation == spec.rows and t.kind != "detail"]
    shown = [find_again(turn, world) for turn in turns]
    if None in shown:
        return None
    kept = [c for c in spec.conditions if not _leaves_out(c)]
    return spec.with_conditions([*kept, *(exp.Not(this=each) for each in shown if each)])


def _fill_same(said: str, history: Sequence[Turn], world: World) -> str:
    """Return a turn with the value in the place of "the same city"."""
    reference = resolve(said, history, world)
    shown = reference or last_rows(history, world)
    same = turn_pattern("same").search(said)
    columns = world.columns(shown.relation) if shown is not None else ()
    asked = next((c for c in columns if same and same[1].casefold() in c.roles | set(c.words)), None)
    if same is None or shown is None or asked is None:
        return said
    values = set(map(str, _cells(asked, shown, world)))
    if len(values) != 1:
        return said
    filled = f"{said[: same.start()]}{values.pop()}{said[same.end() :]}"
    return filled if reference is None else _remove_reference(filled, reference)


def _cells(column: LinkedColumn, shown: Reference, world: World) -> list[object]:
    """Return the values that a column has in rows that were shown; [] where these are not found again."""
    if shown.conditions is None or world.run is None:
        return []
    query = QuerySpec(shown.relation, (plain(column),), (), shown.conditions)
    return [row[0] for row in world.run(write_spec(query, world.graph, world.dialect))]


def _like_shown(
    said: str, spec: QuerySpec, history: Sequence[Turn], world: World
) -> tuple[str, QuerySpec | None] | None:
    """Return the search for rows of the kinds of one that was shown, and the turn without what asks for that."""
    alike = turn_pattern("alike").search(said)
    if alike is None or spec.gives_figures:
        return None
    reference = resolve(said, history, world)
    rest = f"{said[: alike.start()]} {said[alike.end() :]}"
    shown = reference or last_rows(history, world)
    kinds = next((c for c in world.columns(spec.rows) if c.column.array and c.kind == "text"), None)
    if reference is not None:
        rest = _remove_reference(rest, reference)
    if shown is not None and shown.single and kinds is not None:
        held = [item for cell in _cells(kinds, shown, world) if isinstance(cell, list | tuple) for item in cell]
        kept = [c for c in spec.conditions if world.column_of(c) is not kinds]
        spec = spec.with_conditions([*kept, exp.or_(*(has_item(kinds, item) for item in held))] if held else kept)
    return rest, _others(rest, spec, history, world)


def _conditions_named(said: str, relation: Relation, world: World) -> QuerySpec:
    """Return a spec of the conditions on columns that a turn names."""
    found = read(said, world, main=relation, partial=True)[:1]
    named = (c for reading in found for c in reading.spec.conditions if not has_text(c))
    return QuerySpec(relation.name, conditions=tuple(named))


def _leaves_out(condition: exp.Expr) -> bool:
    inner = condition.this.unnest() if isinstance(condition, exp.Not) else None
    keys = isinstance(inner, exp.EQ) or (isinstance(inner, exp.In) and not inner.args.get("query"))
    return keys and inner is not None and inner.this.name.casefold().endswith("id")


def _compares_with_shown(condition: exp.Expr) -> bool:
    """Return whether a condition compares with rows that were shown, and ends with their search."""
    inner = condition.find(exp.Subquery)
    return inner is not None and isinstance(condition, exp.GT | exp.LT) and inner.find(exp.Max, exp.Min) is not None


def _list_rows(spec: QuerySpec, world: World) -> QuerySpec | None:
    """Return the query that lists the rows; of a figure, those that it is of."""
    if spec.groups or not spec.gives_figures:
        return spec if spec.order else replace(spec, limit=None)
    columns = world.columns(spec.rows)
    tested = [c for each in spec.conditions if (c := world.column_of(each)) is not None]
    shown = fact_columns(columns, tested)
    return QuerySpec(spec.rows, tuple(plain(c) for c in shown), (), spec.conditions)


def _without(said: str, spec: QuerySpec, world: World) -> QuerySpec | None:
    """Return the same without the conditions that a turn speaks of."""
    links = world.link(said)
    named: set[tuple[str, str]] = set()
    values: set[str] = set()
    for span in links.spans:
        for meaning in span.meanings if span.kind in ("column", "value") else ():
            column = getattr(meaning, "thing", None)
            if isinstance(column, LinkedColumn):
                named.add((column.relation.name, column.name))
            values.add(getattr(meaning, "value", ""))
    words = {token.folded for token in links.tokens} | {token.stem for token in links.tokens}
    for column in world.columns(spec.rows):
        if words & {role for role in column.roles if role in ("price", "city", "address", "rating")}:
            named.add((column.relation.name, column.name))
    timely = {"year", "date", "month", "time", "period"} & words
    kept = []
    for condition in spec.conditions:
        if has_text(condition):
            question = " ".join(literal.this for literal in condition.find_all(exp.Literal) if literal.is_string)
            asked = {w.strip("?") for w in question.casefold().split()} - english().silent
            gone = bool(asked & {w for w in words if len(w) > 3 and w not in english().silent} - {"important"})
        else:
            column = world.column_of(condition)
            written = values & {each.this for each in condition.find_all(exp.Literal)}
            of_time = timely and column is not None and column.kind == "date"
            gone = bool(written or columns_in(condition) & named or of_time)
        left = _keep_alternatives(condition, values) if gone else None
        if not gone or left is not None:
            kept.append(left or condition)
    if kept == list(spec.conditions):
        return None
    return spec.with_conditions(each for each in kept if not _compares_with_shown(each))


def _keep_alternatives(condition: exp.Expr, values: set[str]) -> exp.Expr | None:
    """Return a condition without the alternatives that are some values; None where it has no others, or not these."""
    inner = condition.unnest() if isinstance(condition, exp.Paren) else condition
    either = (
        list(inner.flatten()) if isinstance(inner, exp.Or) else inner.expressions if isinstance(inner, exp.In) else []
    )
    kept = [each for each in either if not values & {literal.this for literal in each.find_all(exp.Literal)}]
    if not kept or len(kept) == len(either):
        return None
    return one_of(inner.this, kept) if isinstance(inner, exp.In) else exp.or_(*kept)


def _about(said: str, spec: QuerySpec, reference: Reference, history: Sequence[Turn], world: World) -> Reading | None:
    """Return what is asked of rows that were shown: one of them, or all that the last query found."""
    relation = world.catalog.find(reference.relation)
    if relation is None or reference.conditions is None:
        return None
    condition = reference.conditions
    columns, single = world.columns(relation.name), reference.single
    named = [plain(c) for c in name_columns(columns)]
    rest, prose = _remove_reference(said, reference), prose_for(world, relation, None)

    def show(*shown: exp.Expr) -> Reading | None:
        found = tuple(dict.fromkeys(shown))
        return _make_reading(QuerySpec(relation.name, found, (), condition), world, kind="detail")

    if single and prose is not None and turn_pattern("about_what").search(rest):
        return show(*named, answer(prose, _put_to_row(said, reference, relation.name)))
    if single and (turn_pattern("more_about").search(said) or _only_refers(said, reference)):
        asked = _last_asked(history, world) if _only_refers(said, reference) else ()
        summary = [] if prose is None else [exp.Anonymous(this="summary", expressions=[plain(prose)])]
        return show(*(asked or (*map(plain, fact_columns(columns, ())), *summary)))
    if spec.gives_figures and not single:
        return None
    if asked_for := _columns_asked(said, reference, relation, world):
        return show(*named, *map(plain, asked_for))
    best = next(iter(read(rest, world, main=relation, partial=True)), None)
    elsewhere = _elsewhere(said, reference, condition, relation.name, world)
    if elsewhere is not None and (best is None or elsewhere.probability > best.probability):
        return elsewhere
    usable = best is not None and best.probability > _USABLE and bool(best.spec.expressions())
    asks = single and bool(reference.words) and elsewhere is None and turn_pattern("asks").match(said) is not None
    if prose is not None and asks and is_searched(world, relation):  # what no column says, the texts may
        told = usable and best is not None and not said.casefold().startswith("why")
        if best is None or not told or not (best.spec.conditions or _names_anything(rest, world)):
            return show(*named, answer(prose, _put_to_row(said, reference, relation.name)))
    if best is None or not usable:
        return elsewhere
    tested = [c for each in best.spec.conditions if (c := world.column_of(each)) is not None]
    wished = next((world.column_of(each) for each in best.spec.conditions if has_text(each)), None)
    if single and wished is not None and is_searched(world, relation):
        asks = wished.kind == "prose"
        return show(*named, answer(wished, _put_to_row(said, reference, relation.name)) if asks else plain(wished))
    made = best.spec.with_conditions([*condition, *best.spec.conditions])
    if single and tested and not best.spec.measures:  # "is it expensive?"
        made = replace(best.spec.with_conditions(condition), columns=(*map(plain, tested), *best.spec.columns))
    if made.columns and not made.measures:
        # A key says nothing beside what is asked of one row.
        names = [plain(c) for c in name_columns(columns) if not (single and c.is_identifier)]
        made = replace(made, columns=tuple(dict.fromkeys((*names, *made.columns))), distinct=False)
    if not made.gives_figures and not made.columns:
        made = replace(made, columns=spec.columns)
    return _make_reading(made, world, best.probability, "detail" if single else "")


def _elsewhere(
    said: str, reference: Reference, condition: Sequence[exp.Expr], relation: str, world: World
) -> Reading | None:
    """Return what is asked of other rows that belong to those shown: the runways of that airport."""
    for reading in read(_remove_reference(said, reference), world)[:3]:
        rows = reading.spec.rows
        if rows != relation and world.is_single(rows, relation) and reading.probability > _USABLE:
            made = reading.spec.with_conditions([*reading.spec.conditions, *condition])
            return _make_reading(made, world, reading.probability, "detail" if reference.single else "")
    return None


def _columns_asked(said: str, reference: Reference, relation: Relation, world: World) -> list[LinkedColumn]:
    """Return the columns that "where are they?" and "what does it serve?" ask for, and that no word names."""
    rest = fold(_remove_reference(turn_pattern("cues").sub("", said), reference)).split()
    words = {word.strip("?.!,") for word in rest} - {""}
    serving = domain_of(world.catalog).serving.keys()
    role = "address" if "where" in words else "price" if {"how", "much"} <= words else ""
    role = "dishes" if "what" in words and words & serving else role
    role = role or ("hours" if words & english().roles["hours"] else "")
    known = english().silent | serving | search_words().ignored | search_words().quality | english().roles["hours"]
    if not role or words - known:
        return []
    return [c for c in world.columns(relation.name) if role in c.roles]


def _only_refers(said: str, reference: Reference) -> bool:
    """Return whether a turn is nothing but "and the first?"."""
    rest = fold(_remove_reference(turn_pattern("cues").sub("", said), reference))
    return not [w for w in re.findall(r"\w+", rest) if w not in english().silent or w in ("where", "how")]


def _names_anything(said: str, world: World) -> bool:
    """Return whether any words of a turn name something of a schema, or are to be asked of texts."""
    covers = world.link(said).covers
    return any(span.kind not in ("silent", "unknown") for span in covers[0]) if covers else False


def _last_asked(history: Sequence[Turn], world: World) -> tuple[exp.Expr, ...]:
    """Return what the last turn asked of rows shown: the columns of one of them, or the texts that tell which."""
    turn = history[-1]
    spec = read_spec(turn.meant or turn.suql or "", world.dialect) if turn.kind == "detail" else None
    if spec is None:
        return ()
    named = tuple(map(plain, name_columns(world.columns(spec.rows))))
    asked = tuple(each.this for each in spec.conditions if has_text(each) and isinstance(each, exp.EQ))
    return (*named, *asked) if asked else spec.columns


def _remove_reference(said: str, reference: Reference) -> str:
    """Return a turn without the words that mean rows shown before."""
    at = fold(said).find(fold(reference.words))
    if reference.words.startswith("which"):
        return re.sub(r"\bwhich (?:one|of (?:them|these|those))\b", "which", said, flags=re.IGNORECASE)
    return said if at < 0 else f"{said[:at]} {said[at + len(reference.words) :]}"


def _put_to_row(said: str, reference: Reference, relation: str) -> str:
    """Return a question with "this restaurant" in the place of "it", "there" or a name."""
    noun = f"this {singular(relation)}"
    at = fold(said).find(fold(reference.words))
    in_place = f"at {noun}" if reference.words == "there" else noun
    if reference.words == "there":
        at = fold(said).rfind("there")  # "is there live music there?"
    asked = said if at < 0 else f"{said[:at]}{in_place}{said[at + len(reference.words) :]}"
    asked = re.sub(r" there$", "", turn_pattern("cues").sub("", asked).strip().rstrip("?.! "))
    asked = re.sub(r"\b(are|do|have|were)(?= this)", lambda m: _OF_ONE[m[1].casefold()], asked, flags=re.IGNORECASE)
    asked = re.sub(r"\b(?:my|our)\b", "your", re.sub(r"\b(?:me|us|I|we)\b", "you", asked))
    return asked[:1].lower() + asked[1:] + "?"


def _less_or_more(said: str) -> tuple[Measured, bool] | None:
    """Return what a comparative without "than" measures, and whether less of it is wanted; None where there is none."""
    if re.search(r"\b(?:than|or)\b", said):
        return None  # it says with what it compares
    for match in turn_pattern("comparative").finditer(fold(said)):
        word = match["er"] or match["base"]
        word = _FANCY.get(word, word)
        measured = english().measures.get(word) or (english().measured_by(word) if match["er"] else None)
        if measured:
            return measured, bool(match["less"])
    return None


def _compare_with_shown(said: str, spec: QuerySpec, history: Sequence[Turn], world: World) -> QuerySpec | None:
    """Return the rows that have more, or less, than those shown: "something cheaper", "a better rated one?"."""
    wanted = _less_or_more(said)
    which = turn_pattern("which").search(said) is not None
    shown = last_rows(history, world, 2 if which else 1) if wanted is not None else None
    if wanted is None or shown is None or spec.gives_figures or shown.relation != spec.rows:
        return None
    if shown.conditions is None:
        return None
    found = world.index.measured_by(wanted[0], [spec.rows])
    if not found:
        return None
    column, up = found[0]
    if wanted[1]:
        up = not up
    own = compared(column)
    if which:  # of those shown
        return replace(spec.with_conditions(shown.conditions), order=((own, up),), limit=1)
    bound = exp.Max(this=own.copy()) if up else exp.Min(this=own.copy())
    of_shown = exp.select(bound).from_(table_of(spec.rows)).where(*shown.conditions)
    test = (exp.GT if up else exp.LT)(this=own, expression=of_shown.subquery())
    compares = (column.relation.name, column.name)
    also = _conditions_named(said, column.relation, world)  # "something cheaper in Bern"
    also = also.with_conditions(c for c in also.conditions if compares not in columns_in(c))
    kept = _merge_conditions(spec, also, keeps=False, world=world)
    kept = [c for c in kept if compares not in columns_in(c)]
    return replace(spec.with_conditions([*kept, test]), order=())


def _exchange(said: str, spec: QuerySpec, world: World) -> Reading | None:
    """Return the last query with what a turn names in the place of what is of the same kind."""
    relation = world.catalog.find(spec.rows)
    if relation is None:
        return None
    short = turn_pattern("cues").sub("", said).strip() or said
    short = re.sub(r"\binstead\b|\bones\b", " ", short)
    undated = _put_right(short, spec, world)
    short, year = _fill_year(undated, spec, world)
    readings = read(short, world, main=relation, partial=True)
    if not readings:
        return None
    best = readings[0]
    new = best.spec
    keeps = bool(re.match(r"\s*(?:also|and also|only (?:the|those)|with|just)\b", said, re.IGNORECASE))
    conditions = _merge_conditions(spec, new, keeps=keeps, world=world)
    one_sided = [c for c in new.conditions if isinstance(c, exp.GTE | exp.LT)]
    conditions += [c for c in year if any(n.this == c.this and type(n) is not type(c) for n in one_sided)]
    added = _add_values(conditions, spec) if turn_pattern("adds").search(said) else conditions
    guessed = added != conditions or _asks_of_things(spec, new) or (bool(year) and short == undated)
    conditions = added
    made = spec.with_conditions(conditions)
    if spec.distinct and any(columns_in(c) & columns_in(each) for c in new.conditions for each in spec.columns):
        shown = fact_columns(world.columns(spec.rows), [c for each in conditions if (c := world.column_of(each))])
        made = replace(made, columns=tuple(map(plain, shown)), distinct=False)  # rows of one of the kinds listed
    if spec.measures == (count(),) and not spec.groups and turn_pattern("which").search(said) and not new.gives_figures:
        made = _list_rows(made, world) or made
    changed = bool(new.conditions)
    function = _bare_function(short, world) if not new.measures else None
    if new.measures and not (spec.measures and new.measures == (count(),) and best.spec.groups):
        made = replace(made, measures=new.measures, columns=(), distinct=False, limit=None, order=())
        changed = True
    elif function is not None and spec.measures and (column := world.column_of(spec.measures[-1])) is not None:
        made, changed = replace(made, measures=(aggregate(function, column),), order=()), True
    if new.groups:
        kept_measures = made.measures or (count(),)
        made, changed = replace(made, groups=new.groups, measures=kept_measures, columns=(), order=(), limit=None), True
    if new.order:
        order = new.order
        if made.gives_figures:  # the cheapest of average prices is the lowest; what only a row has orders no figures
            term, falling = order[0]
            measure = next((each for each in made.measures if term in (each, *each.find_all(exp.Column))), None)
            if measure is None and term not in made.groups:
                return None
            order = ((measure or term, falling),)
        made, changed = replace(made, order=order, limit=new.limit or made.limit, offset=new.offset), True
    if new.columns and not new.order and not made.gives_figures:
        named = tuple(plain(c) for c in name_columns(world.columns(spec.rows)))
        made = replace(made, columns=tuple(dict.fromkeys((*named, *new.columns))), distinct=False)
        changed = True
    if not changed or (made == spec):
        return None
    if function is None:
        return _make_reading(made, world, min(best.probability, _GUESSED) if guessed else best.probability)
    unused = [w for w in best.unused if fold(w) not in ("average", "mean", "total", "median", "sum")]
    return _make_reading(made, world, 0.2 if unused else 0.9)


def _put_right(said: str, spec: QuerySpec, world: World) -> str:
    """Return what a turn puts in the place of a value of the last query: Oslo of "not Vik, Oslo"."""
    wrong = turn_pattern("puts_right").match(said)
    values = {getattr(m, "value", "") for span in world.link(wrong[1]).spans for m in span.meanings} if wrong else set()
    tested = {literal.this for each in spec.conditions for literal in each.find_all(exp.Literal)}
    return said[wrong.end() :] if wrong and values & tested else said


def _fill_year(said: str, spec: QuerySpec, world: World) -> tuple[str, list[exp.Expr]]:
    """Return a turn whose month has the year of the last query, and the edges of this; [] where it names no month.

    Where the last query is of no one year, the turn stays as it is.
    """
    cover = next(iter(world.link(said).covers), ())
    month = next((s for s in cover if s.kind == "period" and s.meanings[0].days is not None), None)
    conditions = spec.conditions if month is not None else ()
    edges = {c: day for c in conditions if isinstance(c, exp.GTE | exp.LT) and (day := _day_of(c.expression))}
    inside = {(day - timedelta(isinstance(c, exp.LT))).year for c, day in edges.items()}
    if month is None or len(inside) != 1 or len({type(c) for c in edges}) == 1 or len({c.this for c in edges}) > 1:
        return said, [*edges]
    end = world.link(said).tokens[month.last - 1].end
    return f"{said[:end]} {inside.pop()}{said[end:]}", [*edges]


def _day_of(written: exp.Expr) -> date | None:
    """Return the day that an expression writes; None where it writes none."""
    literal = written.this if isinstance(written, exp.Cast) else written
    try:
        return date.fromisoformat(literal.name[:10]) if literal.is_string else None
    except ValueError:
        return None


def _add_values(conditions: Sequence[exp.Expr], spec: QuerySpec) -> list[exp.Expr]:
    """Return conditions in which a value joins those that the last query has of its column: "Oslo too"."""
    held = {c.this: c for c in spec.conditions if isinstance(c, exp.EQ | exp.In)}

    def values(condition: exp.Expr) -> list[exp.Expr]:
        return condition.expressions or [condition.expression]

    return [
        one_of(c.this, [*values(held[c.this]), *values(c)])
        if isinstance(c, exp.EQ | exp.In) and c.this in held and c not in spec.conditions
        else c
        for c in conditions
    ]


def _asks_of_things(spec: QuerySpec, new: QuerySpec) -> bool:
    """Return whether a negation may be of some rows of a thing, or of all: clubs with members "but not from Rome"."""
    lacks = any(isinstance(c, exp.Not) and c.find(exp.Subquery, exp.Select) for c in spec.conditions)
    denied = any(isinstance(c, exp.Not | exp.NEQ) for c in new.conditions)
    return (lacks and bool(new.conditions)) or (spec.distinct and denied)


def _merge_conditions(spec: QuerySpec, new: QuerySpec, *, keeps: bool, world: World) -> list[exp.Expr]:
    """Return the conditions of both; a new one takes the place of one on the same columns, or of a day of any."""
    kept = []
    for condition in spec.conditions:
        if _leaves_out(condition) and new.conditions:
            continue
        columns = columns_in(condition)
        excludes = [
            c for c in new.conditions if isinstance(c, exp.Not) and condition not in c.find_all(type(condition))
        ]
        others = [c for c in new.conditions if not has_text(c) and c not in excludes]
        replaced = any(columns & columns_in(other) for other in others)
        column = world.column_of(condition)
        if has_text(condition):  # of prose, each question is a wish of its own
            of_prose = column is None or column.kind == "prose"
            replaced = (
                condition in new.conditions if of_prose else any(columns == columns_in(c) for c in new.conditions)
            )
        if not replaced or (keeps and column is not None and (column.column.array or column.mark)):
            kept.append(condition)
    if len(kept) < len(spec.conditions):
        kept = [each for each in kept if not _compares_with_shown(each)]
    return [*kept, *new.conditions]


def _bare_function(said: str, world: World) -> str | None:
    """Return the one function that a turn names without a column: "and the average?"."""
    cover = next(iter(world.link(said).covers), ())
    found = [span.meanings[0] for span in cover if span.kind == "aggregate"]
    return found[0] if len(found) == 1 else None
