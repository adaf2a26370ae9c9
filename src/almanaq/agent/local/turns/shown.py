"""What a turn says of rows that were shown: what it asks of them, and that it wants others, like them, or cheaper."""

from __future__ import annotations

import re
from dataclasses import replace

from sqlglot import exp

from almanaq.agent.linking.columns import LinkedColumn, fact_columns, name_columns
from almanaq.agent.linking.english import Measured, english
from almanaq.agent.linking.joins import table_of
from almanaq.agent.linking.words import fold, singular, stem
from almanaq.agent.local.phrases import domain_of, search_words
from almanaq.agent.local.reading import read
from almanaq.agent.local.spec import QuerySpec, answer, columns_in, compared, has_item, plain, read_spec, write_spec
from almanaq.agent.local.texts import is_searched, prose_for
from almanaq.agent.local.turns.merging import (
    GUESSED,
    SURE,
    Edit,
    FollowUp,
    leaves_out_rows,
    merge_conditions,
    names_row,
)
from almanaq.agent.local.turns.references import Reference, find_again, last_rows, resolve, turn_pattern
from almanaq.agent.local.world import World
from almanaq.suql.text_functions import has_text

_USABLE = 0.2
"""The probability from which a part of a turn is taken for what it says."""
_FANCY = {"better": "good", "worse": "bad", "rated": "rating"} | dict.fromkeys(
    ("fancy", "pricey", "pricy", "upscale"), "expensive"
)
_OF_ONE = {"are": "is", "do": "does", "have": "has", "were": "was"}


def ask_of_rows(turn: FollowUp, reference: Reference) -> Edit | None:
    """Return what is asked of rows that were shown: of one of them, or of all that the last query found."""
    said, world = turn.said, turn.world
    relation = world.catalog.find(reference.relation)
    if relation is None or reference.conditions is None:
        return None
    columns, single, shown = world.columns(relation.name), reference.single, reference.conditions
    names = [plain(c) for c in name_columns(columns)]
    searched = is_searched(world, relation)
    rest, prose = remove_reference(said, reference), prose_for(world, relation, None)
    people = reference.words == "they" and turn.match("opinions")  # who wrote the texts
    question = _put_to_row(said, replace(reference, words="") if people else reference, relation.name)

    def show(*asked: exp.Expr) -> Edit:
        return Edit(QuerySpec(relation.name, tuple(dict.fromkeys(asked)), (), shown), kind="detail")

    if prose is not None and (single or searched) and turn_pattern("about_what").search(rest):
        return show(*names, answer(prose, question))
    content = re.findall(r"\w+", fold(remove_reference(turn_pattern("cues").sub("", said), reference)))
    only_refers = all(word in english().silent - {"where", "how"} for word in content)  # "and the first?"
    tells_all = turn.match("more_about")
    if single and (only_refers or tells_all):
        summary = [] if prose is None else [exp.Anonymous(this="summary", expressions=[plain(prose)])]
        asked = () if tells_all else _last_asked(turn)
        return show(*(asked or (*map(plain, fact_columns(columns, ())), *summary)))
    if turn.spec.gives_figures and not single:
        return None
    if of_role := _columns_asked(turn, reference):
        return show(*names, *map(plain, of_role))
    best = next(iter(read(rest, world, main=relation, partial=True)), None)
    if best is not None and (best.probability <= _USABLE or not best.spec.expressions()):
        best = None
    elsewhere = _ask_elsewhere(turn, reference)
    if elsewhere is not None and (best is None or elsewhere.probability > best.probability):
        return elsewhere
    asks = turn.match("asks") if reference.words else turn.match("asks_row")
    if prose is not None and single and searched and elsewhere is None and asks:
        told = best is not None and (best.spec.conditions or names_anything(rest, world))
        if not told or said.casefold().startswith("why"):  # what no column says, the texts may
            return show(*names, answer(prose, question))
    if best is None:
        return elsewhere
    tested = [c for each in best.spec.conditions if (c := world.column_of(each)) is not None]
    wished = next((world.column_of(each) for each in best.spec.conditions if has_text(each)), None)
    if single and len(best.spec.measures) == 1 and (figure := world.column_of(best.spec.measures[0])) is not None:
        return show(*names, plain(figure))  # "how many reviews does it have?"
    if single and wished is not None and searched:
        return show(*names, answer(wished, question) if wished.kind == "prose" else plain(wished))
    if searched and not single and best.spec.conditions and not (best.spec.order or best.spec.gives_figures):
        return None  # "any quiet ones among these?" narrows the search that found these
    made = best.spec.with_conditions([*shown, *best.spec.conditions])
    if single and tested and not best.spec.measures:  # "is it expensive?"
        made = replace(best.spec.with_conditions(shown), columns=(*map(plain, tested), *best.spec.columns))
    if made.columns and not made.measures:
        # A key says nothing beside what is asked of one row.
        called = [plain(c) for c in name_columns(columns) if not (single and c.is_identifier)]
        made = replace(made, columns=tuple(dict.fromkeys((*called, *made.columns))), distinct=False)
    if not made.gives_figures and not made.columns:
        made = replace(made, columns=turn.spec.columns)
    return Edit(made, best.probability, "detail" if single or (searched and made.limit is not None) else "")


def _ask_elsewhere(turn: FollowUp, reference: Reference) -> Edit | None:
    """Return what is asked of other rows that belong to those shown: the runways of that airport."""
    world = turn.world
    for reading in read(remove_reference(turn.said, reference), world)[:3]:
        rows = reading.spec.rows
        if rows != reference.relation and world.is_single(rows, reference.relation) and reading.probability > _USABLE:
            made = reading.spec.with_conditions([*reading.spec.conditions, *(reference.conditions or ())])
            return Edit(made, reading.probability, "detail" if reference.single else "")
    return None


def _columns_asked(turn: FollowUp, reference: Reference) -> list[LinkedColumn]:
    """Return the columns that "where are they?" and "what does it serve?" ask for, and that no word names."""
    rest = fold(remove_reference(turn_pattern("cues").sub("", turn.said), reference)).split()
    words = {word.strip("?.!,") for word in rest} - {""}
    serving, hours = domain_of(turn.world.catalog).serving.keys(), english().roles["hours"]
    asked = {
        "address": bool({"where", "street"} & words) or {"how", "get"} <= words,
        "price": {"how", "much"} <= words,
        "dishes": "what" in words and bool(words & serving),
        "hours": bool(words & hours),
        "phone": "number" in words,
    }
    role = next((role for role, is_asked in asked.items() if is_asked), "")
    known = english().silent | {"street", "number"} | serving | search_words().ignored | search_words().quality | hours
    return [] if words - known else [c for c in turn.world.columns(reference.relation) if role in c.roles]


def names_anything(said: str, world: World) -> bool:
    """Return whether any words of a turn name something of a schema, or are to be asked of texts."""
    covers = world.link(said).covers
    return any(span.kind not in ("silent", "unknown") for span in covers[0]) if covers else False


def _last_asked(turn: FollowUp) -> tuple[exp.Expr, ...]:
    """Return what the last turn asked of rows shown: the columns of one of them, or the texts that tell which."""
    last, world = turn.history[-1], turn.world
    spec = read_spec(last.meant or last.suql or "", world.dialect) if last.kind == "detail" else None
    if spec is None:
        return ()
    named = tuple(map(plain, name_columns(world.columns(spec.rows))))
    asked = tuple(each.this for each in spec.conditions if has_text(each) and isinstance(each, exp.EQ))
    return (*named, *asked) if asked else spec.columns


def remove_reference(said: str, reference: Reference) -> str:
    """Return a turn without the words that mean rows shown before."""
    at = fold(said).find(fold(reference.words))
    if reference.words.startswith("which"):
        return re.sub(r"\bwhich (?:one|of (?:them|these|those))\b", "which", said, flags=re.IGNORECASE)
    return said if at < 0 else f"{said[:at]} {said[at + len(reference.words) :]}"


def _put_to_row(said: str, reference: Reference, relation: str) -> str:
    """Return a question with "this restaurant" in the place of "it", "there" or a name."""
    noun, there = f"this {singular(relation)}", reference.words == "there"
    at = fold(said).rfind("there") if there else fold(said).find(fold(reference.words))  # "is there music there?"
    in_place = f"at {noun}" if there else noun
    asked = f"{said[:at]}{in_place}{said[at + len(reference.words) :]}" if at >= 0 and reference.words else said
    asked = re.sub(r" there$", "", turn_pattern("cues").sub("", asked).strip().rstrip("?.! "))
    asked = re.sub(r"\b(are|do|have|were)(?= this)", lambda m: _OF_ONE[m[1].casefold()], asked, flags=re.IGNORECASE)
    asked = re.sub(r"\b(?:my|our)\b", "your", re.sub(r"\b(?:me|us|I|we)\b", "you", asked))
    return asked[:1].lower() + asked[1:] + "?"


def fill_same(turn: FollowUp) -> FollowUp:
    """Return a turn with the value in the place of "the same city", after the search for all of that city."""
    same, reference = turn.match("same"), resolve(turn.said, turn.history, turn.world)
    shown = reference or last_rows(turn.history, turn.world)
    if same is None or shown is None:
        return turn
    columns = turn.world.columns(shown.relation)
    asked = next((c for c in columns if same[1].casefold() in c.roles | set(c.words)), None)
    values = set(map(str, _cells(asked, shown, turn.world))) if asked is not None else ()
    if len(values) != 1:
        return turn
    said = f"{turn.said[: same.start()]}{next(iter(values))}{turn.said[same.end() :]}"
    spec = turn.spec if turn.is_search else replace(turn.spec, order=(), limit=None)
    return replace(turn, said=remove_reference(said, reference) if reference else said, spec=spec)


def _cells(column: LinkedColumn, shown: Reference, world: World) -> list[object]:
    """Return the values that a column has in rows that were shown; [] where these are not found again."""
    if shown.conditions is None or world.run is None:
        return []
    query = QuerySpec(shown.relation, (plain(column),), (), shown.conditions)
    return [row[0] for row in world.run(write_spec(query, world.graph, world.dialect))]


def find_others(turn: FollowUp) -> Edit | None:
    """Other rows than those shown, with what the turn names; of the kinds of one of them where it asks for such."""
    spec, world, said = turn.spec, turn.world, turn.said
    alike = turn.match("alike")
    if spec.gives_figures or turn.match("count_all") or not (alike or turn.match("another")):
        return None
    if alike is None:
        return Edit(_leave_out_shown(turn)) if less_or_more(said) is None else None
    reference = resolve(said, turn.history, world)
    shown = reference or last_rows(turn.history, world)
    kinds = next((c for c in world.columns(spec.rows) if c.column.array and c.kind == "text"), None)
    said = f"{said[: alike.start()]} {said[alike.end() :]}"
    if shown is not None and shown.single and kinds is not None:
        held = [item for cell in _cells(kinds, shown, world) if isinstance(cell, list | tuple) for item in cell]
        kept = [c for c in spec.conditions if world.column_of(c) is not kinds]
        spec = spec.with_conditions([*kept, exp.or_(*(has_item(kinds, item) for item in held))] if held else kept)
    turn = replace(turn, said=remove_reference(said, reference) if reference else said, spec=spec)
    others = _leave_out_shown(turn)
    closer = others and compare_with_shown(replace(turn, spec=others))
    return replace(closer or Edit(others), probability=SURE if turn.is_search else GUESSED)


def _leave_out_shown(turn: FollowUp) -> QuerySpec | None:
    """Return the same, with what a turn names, without the rows that were shown; None where nothing tells which."""
    spec, world = turn.spec, turn.world
    columns = world.columns(spec.rows)
    merged = merge_conditions(spec, turn.conditions_named(turn.said), world)
    others = [c for c in merged if world.column_of(c) not in name_columns(columns)]  # besides the row spoken of
    shown_before = [t for t in turn.history if t.shown and t.shown.relation == spec.rows and t.kind != "detail"]
    shown = [find_again(each, world) for each in shown_before]
    if None in shown:
        return None
    kept = [c for c in others or merged if not leaves_out_rows(c)]
    return spec.with_conditions([*kept, *(exp.Not(this=each) for each in shown if each)])


def less_or_more(said: str) -> tuple[Measured, bool] | None:
    """Return what a comparative measures, and whether less of it is wanted; None where it says of other things than."""
    said, than_shown = turn_pattern("than_shown").subn("", said)
    if re.search(r"\b(?:than|or)\b", said):
        return None  # it says with what it compares
    for match in turn_pattern("comparative").finditer(said):  # as it is written: "Easter Island" compares nothing
        word = fold(match["er"] or match["base"])
        word = _FANCY.get(word, word)
        measured = english().measures.get(word) or (english().measured_by(word) if match["er"] else None)
        before, after = said[: match.start()].split()[-1:], said[match.end() :].strip().split(" ")[0]
        noun = match["base"] or after.strip("?.!") or next((w for w in before if w in _FANCY), "")  # "rated higher"
        if (than_shown or turn_pattern("among").search(said)) and noun and not match[0].startswith("too"):
            measured = (
                (_FANCY.get(noun, stem(fold(noun))), word != "lower"),
                *(measured or ()),
            )  # "more reviews than these"
        if measured:
            return measured, bool(match["less"])
    return None


def compare_with_shown(turn: FollowUp) -> Edit | None:
    """The rows that have more, or less, than those shown: "something cheaper", "a better rated one?"."""
    spec, world, wanted = turn.spec, turn.world, less_or_more(turn.said)
    which = turn.match("which") is not None
    shown = last_rows(turn.history, world, 2 if which else 1) if wanted is not None else None
    if wanted is None or shown is None or shown.conditions is None:
        return None
    found = world.index.measured_by(wanted[0], [spec.rows])
    if spec.gives_figures or shown.relation != spec.rows or not found:
        return None
    column, up = found[0][0], found[0][1] is not wanted[1]
    own = compared(column)
    if which:  # of those shown
        best = replace(spec.with_conditions(shown.conditions), order=((own, up),), limit=1)
        return Edit(best, GUESSED if best.conditions == spec.conditions else SURE)
    bound = exp.Max(this=own.copy()) if up else exp.Min(this=own.copy())
    of_shown = exp.select(bound).from_(table_of(spec.rows)).where(*shown.conditions)
    test = (exp.GT if up else exp.LT)(this=own, expression=of_shown.subquery())
    same = (column.relation.name, column.name)
    also = turn.conditions_named(turn.said)  # "something cheaper in Bern"
    also = also.with_conditions(c for c in also.conditions if same not in columns_in(c))
    merged = (c for c in merge_conditions(spec, also, world) if same not in columns_in(c))
    kept = [c for c in merged if not names_row(c, spec.rows, world)]
    if kept == [*shown.conditions]:  # none of all found is more than all of them
        ordered = replace(spec, order=((own, up),))
        return Edit(ordered, GUESSED)
    return Edit(replace(spec.with_conditions([*kept, test]), order=(), limit=spec.limit if turn.is_search else None))
