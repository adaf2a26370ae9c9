"""What is asked of rows that were shown: their columns, what their texts say, and rows that belong to them."""

from __future__ import annotations

import re
from dataclasses import replace

from sqlglot import exp

from almanaq.agent.linking.columns import LinkedColumn, fact_columns, name_columns
from almanaq.agent.linking.english import english
from almanaq.agent.linking.words import fold, singular
from almanaq.agent.local.merging import Edit, FollowUp
from almanaq.agent.local.phrases import domain_of, search_words
from almanaq.agent.local.reading import read
from almanaq.agent.local.references import Reference, turn_pattern
from almanaq.agent.local.spec import QuerySpec, answer, plain, read_spec
from almanaq.agent.local.texts import is_searched, prose_for
from almanaq.agent.local.world import World
from almanaq.suql.text_functions import has_text

_USABLE = 0.2
"""The probability from which a part of a turn is taken for what it says."""
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
    question = _put_to_row(said, reference, relation.name)

    def show(*asked: exp.Expr) -> Edit:
        return Edit(QuerySpec(relation.name, tuple(dict.fromkeys(asked)), (), shown), kind="detail")

    if prose is not None and (single or searched) and turn_pattern("about_what").search(rest):
        return show(*names, answer(prose, question))
    only_refers = single and _says_nothing(turn_pattern("cues").sub("", said), reference)
    if single and (only_refers or turn.match("more_about")):
        summary = [] if prose is None else [exp.Anonymous(this="summary", expressions=[plain(prose)])]
        asked = _last_asked(turn) if only_refers else ()
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
    if prose is not None and single and searched and reference.words and elsewhere is None and turn.match("asks"):
        told = best is not None and (best.spec.conditions or names_anything(rest, world))
        if not told or said.casefold().startswith("why"):  # what no column says, the texts may
            return show(*names, answer(prose, question))
    if best is None:
        return elsewhere
    tested = [c for each in best.spec.conditions if (c := world.column_of(each)) is not None]
    wished = next((world.column_of(each) for each in best.spec.conditions if has_text(each)), None)
    if single and wished is not None and searched:
        return show(*names, answer(wished, question) if wished.kind == "prose" else plain(wished))
    made = best.spec.with_conditions([*shown, *best.spec.conditions])
    if single and tested and not best.spec.measures:  # "is it expensive?"
        made = replace(best.spec.with_conditions(shown), columns=(*map(plain, tested), *best.spec.columns))
    if made.columns and not made.measures:
        # A key says nothing beside what is asked of one row.
        called = [plain(c) for c in name_columns(columns) if not (single and c.is_identifier)]
        made = replace(made, columns=tuple(dict.fromkeys((*called, *made.columns))), distinct=False)
    if not made.gives_figures and not made.columns:
        made = replace(made, columns=turn.spec.columns)
    return Edit(made, best.probability, "detail" if single else "")


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
        "address": "where" in words or {"how", "get"} <= words,
        "price": {"how", "much"} <= words,
        "dishes": "what" in words and bool(words & serving),
        "hours": bool(words & hours),
    }
    role = next((role for role, is_asked in asked.items() if is_asked), "")
    known = english().silent | serving | search_words().ignored | search_words().quality | hours
    return [] if words - known else [c for c in turn.world.columns(reference.relation) if role in c.roles]


def _says_nothing(said: str, reference: Reference) -> bool:
    """Return whether a turn is nothing but "the first?"."""
    rest = re.findall(r"\w+", fold(remove_reference(said, reference)))
    return all(word in english().silent and word not in ("where", "how") for word in rest)


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
