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
from almanaq.agent.local.conditions import SIGNS
from almanaq.agent.local.phrases import domain_of, matter_of, search_words
from almanaq.agent.local.presence import denied
from almanaq.agent.local.reading import Reading, read
from almanaq.agent.local.references import Reference, find_again, last_rows, literal, resolve, turn_pattern
from almanaq.agent.local.spec import (
    QuerySpec,
    aggregate,
    answer,
    columns_in,
    compared,
    count,
    has_item,
    number,
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
_ISO = re.compile(r"\d{4}-\d\d-\d\d")
_VAGUE = ("it", "there", "the one")  # they may mean no row: "is it possible"
_PARTS = re.compile(r"[,.;]\s+(?:(?:so|and|but|then)\s+)?")
_OF_ONE = {"are": "is", "do": "does", "have": "has", "were": "was"}
_FANCY = {"better": "good", "worse": "bad", "fancy": "expensive", "pricey": "expensive", "pricy": "expensive"}


def goes_on(question: str) -> bool:
    """Return whether a turn says by its words that it goes on from the one before."""
    said, named = question.strip(), ("goes_on", "another", "gives_up", "drop", "count", "first", "sort", "most", "rest")
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
    terms = spec.measures[-1:] if spec.groups else [term for term, _ in spec.order[:1] if spec.limit]
    if terms and (most := turn_pattern("most").search(said)):
        return _make_reading(replace(spec, order=((terms[0], bool(most[1])),), limit=1), world)
    if (of_others := _compare_again(said, spec, world) or _of_groups(said, spec, world)) is not None:
        return of_others
    searched = is_searched(world, world.catalog.relation(spec.rows))
    if turn_pattern("rest").search(said) and len(spec.conditions) == 1 and not searched:
        return _make_reading(spec.with_conditions([denied(spec.conditions[0])]), world, _GUESSED)
    if (every := turn_pattern("every").search(said)) and (dropped := _without(said, spec, world)) is not None:
        return _make_reading(dropped, world, 0.95 if every["of"] else _GUESSED)
    if (filled := _fill_same(said, history, world)) != said and not searched:
        spec = replace(spec, order=(), limit=None)  # those of the same city, not the first of them again
    said = filled
    if (alike := _like_shown(said, spec, history, world)) is not None:
        closer = alike[1] and _compare_with_shown(alike[0], alike[1], history, world)
        return _make_reading(closer or alike[1], world, 0.95 if searched else _GUESSED)
    if turn_pattern("another").search(said) and not spec.gives_figures and _less_or_more(said) is None:
        return _make_reading(_others(said, spec, history, world), world)
    if (first := turn_pattern("first").search(said)) is not None:
        top = tuple((each, True) for each in spec.measures[:1] if spec.groups and "top" in first[0].casefold())
        order = spec.order or top or order_of_groups(spec)
        limit = int(SPELLED.get(first[1].casefold()) or first[1])
        rows = (not spec.groups and _list_rows(spec, world)) or spec
        # The first rows are a part of those found, from which the next turn does not go on.
        kind = "" if spec.groups or "top" in first[0].casefold() else "detail"
        return _make_reading(replace(rows, order=order, limit=limit), world, kind=kind)
    order = spec.order or order_of_groups(spec)
    if (sort := turn_pattern("sort").search(said)) is not None and (spec.groups or (order and not spec.limit)):
        named = [(each, bool(sort["down"])) for each in spec.measures[-1:] or [term for term, _ in order[:1]]]
        turned = [(term, not down) for term, down in order]
        return _make_reading(replace(spec, order=tuple(turned if sort["turned"] else named)), world)
    if asks_to_list(said):
        return _make_reading(_list_rows(spec, world), world)
    kept, rest = _give_up(said, spec, world)
    if rest != said:
        found = _exchange(rest, kept, world) if rest else None
        left = _make_reading(kept, world)
        return found or (left and replace(left, unused=(rest,) if rest else ()))
    if (closer := _compare_with_shown(said, spec, history, world)) is not None:
        return _make_reading(closer, world, _GUESSED if closer.conditions == spec.conditions else 0.95)
    reference = resolve(said, history, world)
    if reference is None and spec.limit and spec.order and turn_pattern("sorts").search(said):
        reference = last_rows(history, world)  # those that rank first, in another order
    if reference is None:
        return _exchange(said, spec, world)
    found = _about(said, spec, reference, history, world)
    if found is None and reference.conditions is not None and (not reference.single or reference.words in _VAGUE):
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
        if spec is not None and (relation := world.catalog.find(spec.rows)) is not None:
            return (spec if is_searched(world, relation) else _without_ties(spec, history, world)), turn
    return None


def _without_ties(spec: QuerySpec, history: Sequence[Turn], world: World) -> QuerySpec:
    """Return a ranking with the limit that was asked for: a query shows all that tie for the first place."""
    spans = (span for turn in history for span in world.link(turn.question).spans)
    counts = (m for s in spans if s.kind in ("number", "superlative") for m in s.meanings)
    said = any(spec.limit in (getattr(m, "value", None), getattr(m, "limit", None)) for m in counts)
    return spec if said or spec.limit in (None, 1) or not spec.order else replace(spec, limit=1)


def _compare_again(said: str, spec: QuerySpec, world: World) -> Reading | None:
    """Return the groups, or the rows, with another bound, where no column is named for it: "more than 3"."""
    cover = next(iter(world.link(said).covers), ())
    found = [span.meanings[0] for span in cover if span.kind == "compare"]
    kinds = {span.kind for span in cover} - {"silent", "and", "compare"}
    named = {plain(c) for s in cover for m in s.meanings if isinstance(c := getattr(m, "thing", None), LinkedColumn)}
    compares = [
        c for c in spec.conditions if isinstance(c, exp.GT | exp.GTE | exp.LT | exp.LTE) and c.expression.is_number
    ]
    terms = spec.measures[-1:] if spec.groups else [c.this for c in compares]
    if len(found) != 1 or len(terms) != 1 or kinds - {"table", "noun", "column"} or named - {*spec.groups}:
        return None
    if found[0].measured or found[0].unit or found[0].sign == "between":
        return None
    bound = SIGNS[found[0].sign](this=terms[0].copy(), expression=number(found[0].numbers[0]))
    if not spec.groups:
        return _make_reading(spec.with_conditions(bound if c in compares else c for c in spec.conditions), world)
    sure = isinstance(terms[0], exp.Count) or bool(kinds)
    return _make_reading(replace(spec, having=(bound,)), world, 0.95 if sure else _GUESSED)


def _of_groups(said: str, spec: QuerySpec, world: World) -> Reading | None:
    """Return what is asked of the rows of the groups that rank first: "how many does she have?"."""
    found = next(filter(None, (turn_pattern(each).search(fold(said)) for each in ("one", "all"))), None)
    kinds = [each for each in spec.groups if not isinstance(each, exp.Explode)]
    if found is None or spec.limit is None or world.run is None or not kinds:
        return None
    ranked = world.run(write_spec(spec, world.graph, world.dialect))
    same = (exp.and_(*map(lambda e, v: exp.EQ(this=e.copy(), expression=literal(v)), kinds, row)) for row in ranked)
    rows = _list_rows(QuerySpec(spec.rows, (), (count(),), (*spec.conditions, exp.or_(*same))), world)
    asked = rows and _exchange(f"{said[: found.start()]} {said[found.end() :]}", rows, world)
    return asked or _make_reading(rows, world, _GUESSED)


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


def _give_up(said: str, spec: QuerySpec, world: World) -> tuple[QuerySpec, str]:
    """Return the same without what parts of a turn give up, and its other parts: "noise is fine, but in Bern"."""
    parts, others = _PARTS.split(said), []
    for part in parts:
        gives_up = turn_pattern("gives_up").search(part) is not None
        dropped = _without(part, spec, world) if gives_up or turn_pattern("drop").search(part) else None
        spec = dropped or spec  # what gives up nothing that was asked for changes nothing
        others += [] if dropped or gives_up else [part]
    return spec, said if others == parts else ", ".join(others)


def _without(said: str, spec: QuerySpec, world: World) -> QuerySpec | None:
    """Return the same without the conditions that a turn speaks of."""
    links = world.link(said)
    meant = [meaning for span in links.spans if span.kind in ("column", "value") for meaning in span.meanings]
    values = {getattr(meaning, "value", "") for meaning in meant}
    words = {word for token in links.tokens for word in (token.folded, token.stem)}
    columns = [c for meaning in meant if isinstance(c := getattr(meaning, "thing", None), LinkedColumn)]
    columns += [c for c in world.columns(spec.rows) if words & c.roles & {"price", "city", "address", "rating"}]
    named = {(column.relation.name, column.name) for column in columns}
    timely = {"year", "date", "month", "time", "period"} & words
    matter = matter_of(said, domain_of(world.catalog))
    kept = []
    for condition in spec.conditions:
        if has_text(condition):
            question = " ".join(literal.this for literal in condition.find_all(exp.Literal) if literal.is_string)
            asked = {w.strip("?") for w in question.casefold().split()} - english().silent
            gone = bool(asked & {w for w in words if len(w) > 3 and w not in english().silent} - {"important"})
            gone = gone or (matter is not None and matter[0] == (_wish_of(condition, world) or ("",))[0])
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
    either = list(inner.flatten()) if isinstance(inner, exp.Or) else inner.expressions
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
        return _make_reading(QuerySpec(relation.name, tuple(dict.fromkeys(shown)), (), condition), world, kind="detail")

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
        if best is None or not told or not (best.spec.conditions or names_anything(rest, world)):
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
    role = "address" if "where" in words or {"how", "get"} <= words else "price" if {"how", "much"} <= words else ""
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


def names_anything(said: str, world: World) -> bool:
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
    for match in turn_pattern("comparative").finditer(said):  # as it is written: "Easter Island" compares nothing
        word = fold(match["er"] or match["base"])
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
    if kept == [*shown.conditions]:  # none of all found is more than all of them
        return replace(spec, order=((own, up),))
    limit = spec.limit if is_searched(world, column.relation) else None
    return replace(spec.with_conditions([*kept, test]), order=(), limit=limit)


def _exchange(said: str, spec: QuerySpec, world: World) -> Reading | None:
    """Return the last query with what a turn names in the place of what is of the same kind."""
    relation = world.catalog.find(spec.rows)
    if relation is None:
        return None
    short = re.sub(r"\binstead(?: of [^,.;]+?(?=[,.;]| in | with |$))?|\bones\b", " ", said).strip(" ,")
    short = turn_pattern("cues").sub("", short).strip() or short
    undated = _put_right(short, spec, world)
    short, year = _fill_year(undated, spec, world)
    readings = read(short, world, main=relation, partial=True)
    if not readings:
        return None
    best = readings[0]
    new = best.spec
    either, adds = (turn_pattern(name).search(said) for name in ("either", "adds"))
    guessed = False
    if either or adds:
        old: dict[frozenset[tuple[str, str]], exp.Expr] = {}
        columns = (c for c in spec.conditions if either or isinstance(c.this, exp.Column))  # lists may hold both
        for each in (c for c in columns if not has_text(c)):
            old[columns_in(each)] = exp.and_(*filter(None, (old.get(columns_in(each)), each)))
        joined = [(c, old.get(columns_in(c))) for c in new.conditions]
        new = new.with_conditions(c if other is None else exp.or_(other, c) for c, other in joined)
        guessed = not either and any(other is not None for _, other in joined)  # "Oslo too": both, or these alone
    keeps = bool(re.match(r"\s*(?:also|and also|only (?:the|those)|with|just)\b", said, re.IGNORECASE))
    conditions = _merge_conditions(spec, new, keeps=keeps, world=world)
    one_sided = [c for c in new.conditions if isinstance(c, exp.GTE | exp.LT)]
    conditions += [c for c in year if any(n.this == c.this and type(n) is not type(c) for n in one_sided)]
    guessed |= _asks_of_things(spec, new) or (bool(year) and short == undated)
    equal = [c for c in conditions if isinstance(c, exp.EQ) and not has_text(c)]
    tested = [(c, column) for c in equal if (column := world.column_of(c)) is not None]
    named = [c for c, column in tested if column.relation is relation and world.is_unique(column)]
    one = [c for c in named if new.conditions and c not in new.conditions]  # more is said than the name of one row
    gone = [*one, *(c for c, column in tested if plain(column) in new.groups)]
    made = spec.with_conditions(c for c in conditions if c not in gone)
    if spec.distinct and any(columns_in(c) & columns_in(each) for c in new.conditions for each in spec.columns):
        facts = fact_columns(world.columns(spec.rows), [c for each in conditions if (c := world.column_of(each))])
        made = replace(made, columns=tuple(map(plain, facts)), distinct=False)  # rows of one of the kinds listed
    which = spec.measures == (count(),) and turn_pattern("which").search(said) is not None
    lists = spec.measures and not spec.groups and not new.gives_figures and (which or new.columns or new.order)
    made = (lists and _list_rows(made, world)) or made  # those that the figure is of
    changed = bool(new.conditions)
    cover = next(iter(world.link(short).covers), ())
    functions = [span.meanings[0] for span in cover if span.kind == "aggregate"]  # "and the average?"
    function = functions[0] if len(functions) == 1 and not new.measures else None
    if new.measures and not (spec.measures and new.measures == (count(),) and best.spec.groups):
        made, changed = replace(made, measures=new.measures, columns=(), distinct=False, limit=None, order=()), True
    elif function is not None and spec.measures and (column := world.column_of(spec.measures[-1])) is not None:
        made, changed = replace(made, measures=(aggregate(function, column),), order=()), True
    if new.groups:
        figures = made.measures or (count(),)
        made, changed = QuerySpec(spec.rows, (), figures, made.conditions, new.groups, new.having), True
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
        shown = dict.fromkeys((*map(plain, name_columns(world.columns(spec.rows))), *new.columns))
        made, changed = replace(made, columns=tuple(shown), distinct=False), True
    if not changed or (made == spec):
        return None
    if function is None:
        names = any(span.kind == "table" for span in cover)
        unclear = one or (new.measures and spec.limit and not spec.groups) or (lists and new.order and names)
        return _make_reading(made, world, min(best.probability, _GUESSED if guessed or unclear else 1.0))
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
    written = [c for c in conditions if isinstance(c, exp.GTE | exp.LT) and isinstance(c.expression, exp.Cast)]
    edges = {c: date.fromisoformat(day) for c in written if _ISO.fullmatch(day := c.expression.this.name)}
    inside = {(day - timedelta(isinstance(c, exp.LT))).year for c, day in edges.items()}
    if month is None or len(inside) != 1 or len({type(c) for c in edges}) == 1 or len({c.this for c in edges}) > 1:
        return said, [*edges]
    end = world.link(said).tokens[month.last - 1].end
    return f"{said[:end]} {inside.pop()}{said[end:]}", [*edges]


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
        others = [c for c in new.conditions if not has_text(c)]
        others = [c for c in others if not isinstance(c, exp.Not) or condition in c.find_all(type(condition))]
        replaced = any(columns & columns_in(other) for other in others)
        column = world.column_of(condition)
        if has_text(condition):  # of prose, each question is a wish of its own
            of_prose = column is None or column.kind == "prose"
            replaced = (
                condition in new.conditions or _contradicts(condition, new.conditions, world)
                if of_prose
                else any(columns == columns_in(c) for c in new.conditions)
            )
        if not replaced or (keeps and column is not None and (column.column.array or column.mark)):
            kept.append(condition)
    if len(kept) < len(spec.conditions):
        kept = [each for each in kept if not _compares_with_shown(each)]
    # "Without the music" after "with live music" asks for none, and gives the wish up.
    given_up = [c for c in new.conditions if c.text("expression") == "No" and _contradicts(c, spec.conditions, world)]
    return [*kept, *(c for c in new.conditions if c not in given_up)]


def _wish_of(condition: exp.Expr, world: World) -> tuple[str, bool] | None:
    """Return the matter that texts are asked about and whether it is wanted; None where it is none with a name."""
    asked = condition.find(exp.Anonymous) if has_text(condition) else None
    matter = None if asked is None else matter_of(asked.expressions[-1].name, domain_of(world.catalog))
    return matter and (matter[0], matter[1] is (condition.text("expression") != "No"))


def _contradicts(condition: exp.Expr, others: Sequence[exp.Expr], world: World) -> bool:
    """Return whether a test of texts wants what another does not want: "lively" after "quiet"."""
    wish = _wish_of(condition, world)
    return wish is not None and (wish[0], not wish[1]) in [_wish_of(each, world) for each in others]
