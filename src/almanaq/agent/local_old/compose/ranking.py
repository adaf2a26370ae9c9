"""What a superlative shows: ranked groups, ranked rows, or the extreme itself."""

from __future__ import annotations

from collections.abc import Sequence

from almanaq.agent.local_old import sql
from almanaq.agent.local_old.compose import choices
from almanaq.agent.local_old.compose.refusal import NotUnderstood
from almanaq.agent.local_old.compose.state import TOGETHER, State, Superlative
from almanaq.agent.local_old.frame import Term, Test
from almanaq.agent.local_old.recognize.vocabulary import is_year
from almanaq.agent.local_old.schema_index import Place
from almanaq.suql.catalog.relations import Relation

_PERIODS = ("year", "quarter", "month", "week")
_EXTREMES = {"highest", "lowest", "greatest", "largest", "biggest", "smallest", "maximal", "minimal"}


def rank(state: State, superlative: Superlative, columns: list[Place]) -> None:
    state.frame.distinct = False
    if state.both:
        _both_extremes(state, superlative, columns)
        return
    choices.check_chosen(state)
    if state.compared_values is not None:
        columns = [state.compared_values, *(each for each in columns if each is not state.compared_values)]
    if _of_each_group(state, superlative, columns):
        return
    if _of_the_first(state, superlative):
        state.superlative = None
        return
    texts = _told_apart_by(state, superlative, columns)
    function = _function_of(state, superlative, columns, texts)
    if superlative.common or superlative.counts or function:
        _rank_groups(state, superlative, function, texts, [place for place in columns if place not in texts])
    else:
        _rank_rows(state, superlative, columns, texts)


def _told_apart_by(state: State, superlative: Superlative, columns: Sequence[Place]) -> list[Place]:
    """Return the columns that may make groups: texts, days and keys, else the number that a question begins with."""
    texts = [place for place in columns if place.kind in ("text", "date", "boolean") or place.identifier]
    first = [place for place in columns[:1] if state.begins_with("C", place)]
    if not texts and (superlative.function or state.aggregates) and not state.frame.groups:
        texts = first  # "which year had the highest average score"
    if not texts and superlative.place is not None and superlative.amount is None:
        texts = [place for place in first if _is_period(place) and not state.tells_rows(place)]
    return texts


def _function_of(state: State, superlative: Superlative, columns: Sequence[Place], texts: Sequence[Place]) -> str:
    """Return how the numbers of each group are put together; "" where single rows are ranked."""
    place, single = superlative.place, any(span.data == "single" for span in state.spans)
    function = superlative.function or (state.aggregates[0][0] if state.aggregates else "")
    if choices.is_summed(state, superlative, function, columns):
        function = "SUM"
    if single and function:
        raise NotUnderstood("what is put together of a single row")  # "the most points in a single game"
    if single or place is None or function:
        return function
    # "top 5 cities by profit": no single row is a city
    summed = _sums_groups(state, superlative, texts, place) or _is_together(state, place)
    return "SUM" if summed else ""


def _both_extremes(state: State, superlative: Superlative, columns: Sequence[Place]) -> None:
    """Show the two extremes of a column, or the rows that have them."""
    place, frame = superlative.place, state.frame
    figures = superlative.counts or superlative.function or state.counts or state.aggregates or frame.groups
    if place is None or figures or frame.having or state.each is not None or columns or frame.members or frame.absent:
        raise NotUnderstood("of what both extremes are asked for")
    if not frame.nouns and not superlative.adjective:
        frame.wanted = [Term("MAX", place), Term("MIN", place)]
        return
    asked = frame.nouns[0] if frame.nouns else place.relation
    if asked != place.relation or any(test.term.place and test.term.place.relation != asked for test in frame.tests):
        raise NotUnderstood("of what both extremes are asked for")
    where = " WHERE " * bool(frame.tests) + " AND ".join(test.write(False) for test in frame.tests)
    rows, own = f"FROM {sql.name(asked.name)}{where}", sql.compared(place, False)
    state.test(place, f"{{}} IN ((SELECT MAX({own}) {rows}), (SELECT MIN({own}) {rows}))")
    frame.nouns, frame.wanted = [asked], list(dict.fromkeys([*state.shown(asked, place), Term("", place)]))
    frame.order = [(Term("", place), True)]


def _of_the_first(state: State, superlative: Superlative) -> bool:
    """Ask only for what belongs to the rows that rank first: "how many concerts were in the largest stadium"."""
    place, frame, rows = superlative.place, state.frame, _of_figures(state)
    plain = superlative.amount is None and not superlative.function and not frame.groups and state.each is None
    if not plain or place is None or rows in (None, place.relation) or not state.is_single(rows, place.relation):
        return False
    own = [test for test in frame.tests if test.term.place is not None and test.term.place.relation == place.relation]
    where = " WHERE " * bool(own) + " AND ".join(test.write(False) for test in own)
    extreme = f"{'MAX' if superlative.down else 'MIN'}({sql.compared(place, False)})"
    frame.tests = [test for test in frame.tests if test not in own]
    state.test(place, f"{{}} = (SELECT {extreme} FROM {sql.name(place.relation.name)}{where})")
    frame.tests += own
    return True


def _of_figures(state: State) -> Relation | None:
    """Return the relation whose rows are counted, or whose numbers are put together, where it is one."""
    figures = [state.counted_relation] if state.counts and state.counted is None else []
    figures += [place.relation for _, place in state.aggregates]
    return figures[0] if len(figures) == 1 else None


def _of_each_group(state: State, superlative: Superlative, columns: Sequence[Place]) -> bool:
    """Show the extreme of each group: "the highest weight in each team"."""
    each = _says_each(state)
    plain = superlative.place is not None and superlative.amount is None and not superlative.function
    if not (each and plain and state.frame.groups) or columns or state.aggregates or state.frame.nouns != _named(state):
        return False
    assert superlative.place is not None
    state.frame.wanted.append(Term("MAX" if superlative.down else "MIN", superlative.place))
    return True


def _says_each(state: State) -> bool:
    return any(span.kind == "B" and {"each", "every"} & {*str(span.data).split()} for span in state.spans)


def _named(state: State) -> list[Relation]:
    """Return the relation by whose rows the others are grouped, if any."""
    return [] if state.each is None else [state.each]


def _sums_groups(state: State, superlative: Superlative, texts: Sequence[Place], place: Place) -> bool:
    """Return whether groups are ranked by a sum: "the month with the most sales", "top 5 cities by profit"."""
    several = superlative.amount is not None or any(map(_is_period, texts))
    own = [text for text in texts if text.relation == place.relation and several]
    grouped = bool(own) and not state.frame.nouns and not state.tells_rows(own[0])
    periods = any(term.function for term in state.frame.groups)
    return (grouped or periods) and state.adds_up(place)


def _is_period(place: Place) -> bool:
    """Return whether a column says in which year, month or week something was."""
    return is_year(place) or (place.kind == "number" and bool({*place.stems[-1:]} & {*_PERIODS}))


def _is_together(state: State, place: Place) -> bool:
    """Return whether the numbers of a group are to be added up: "the most goals in total"."""
    return any(span.data in TOGETHER for span in state.spans) and state.adds_up(place)


def _rank_groups(
    state: State, superlative: Superlative, function: str, texts: Sequence[Place], numbers: Sequence[Place]
) -> None:
    """Rank groups by their number of rows, or by what their numbers come to."""
    frame = state.frame
    groups = _ranked(state, superlative, function, texts, numbers)
    places = [term.place for term in groups if term.place is not None]
    term = Term("COUNT", None) if superlative.place is None else Term(function, superlative.place)
    frame.groups, frame.wanted = groups, [term]
    places = [place for place in places if place is not state.compared_values]
    frame.tests += [Test(Term("", place), "{} IS NOT NULL") for place in places]
    frame.tests += [Test(Term("", place), "{} <> ''") for place in places if state.vocabulary.index.has_blank(place)]
    _limit(state, superlative, term)


def _ranked(
    state: State, superlative: Superlative, function: str, texts: Sequence[Place], numbers: Sequence[Place]
) -> list[Term]:
    """Return what makes the groups that are ranked."""
    frame = state.frame
    groups = [*frame.groups, *(Term("", place) for place in texts)]
    named = [term.place for term in groups if term.place is not None]
    if superlative.counts and numbers and (not groups or any(map(state.tells_rows, named))):
        groups += [Term("", place) for place in numbers]
        numbers = ()  # "the name and capacity of the stadium with the most concerts"
    if not groups and (len(frame.nouns) > 1 or superlative.common or function):
        groups = [Term("", place) for place in state.ranked_names()]
    named = [term.place for term in groups if term.place is not None]
    if len(groups) > 1 and any(place.kind == "date" for place in named):
        raise NotUnderstood("whether days are told apart")  # "which shop delivered most often"
    one_relation = len({place.relation.name for place in named}) == 1
    if not one_relation or numbers or (state.aggregates and superlative.place is None):
        raise NotUnderstood("what is ranked")
    return groups


def _rank_rows(state: State, superlative: Superlative, columns: Sequence[Place], texts: Sequence[Place]) -> None:
    """Rank single rows by a column; where no row is asked for, give the extreme itself."""
    frame, place = state.frame, superlative.place
    if place is None or state.counts or state.aggregates or frame.groups or frame.having or state.each is not None:
        raise NotUnderstood("what is ranked")
    _check_single(state, superlative, texts)
    of_rows = superlative.adjective or (not columns and (superlative.amount is not None or _asks_which(state)))
    if not frame.nouns and of_rows:
        frame.nouns.append(place.relation)
    if not frame.nouns and not columns:
        frame.wanted = [Term("MAX" if superlative.down else "MIN", place)]
        return
    columns = [each for each in columns if each is not place]
    shown = [Term("", each) for place in columns for each in (*state.within(place), place)]
    asked = next((noun for noun in [*state.nouns_in_order(), *frame.nouns] if noun in frame.nouns), None)
    _check_ranked_once(state, place, columns[0].relation if columns else asked)
    shown = shown or (state.shown(asked, place) if asked else [])
    frame.wanted = list(dict.fromkeys([*shown, Term("", place)]))
    state.test(place, "{} IS NOT NULL")
    _limit(state, superlative, Term("", place))


def _asks_which(state: State) -> bool:
    """Return whether a question asks for rows of a kind: "which sedan is the heaviest", "which prerelease has the most
    downloads".
    """
    first = next((span for span in state.spans if span.kind not in "wU"), state.spans[0])
    kind = first.kind == "V" or (first.kind == "C" and first.data[0][0].kind == "boolean")
    return kind and state.spans[0].data in ("which", "what")


def _limit(state: State, superlative: Superlative, term: Term) -> None:
    """Order the rows and take the first ones, all that rank alike, or the second alone."""
    amount, frame = superlative.amount or 1, state.frame
    frame.order, frame.limit = [(term, superlative.down)], max(amount, 1)
    frame.offset = -amount - 1 if amount < 0 else 0
    frame.ties = superlative.amount is None and state.vocabulary.index.gives_ties
    if state.compared_values is not None:
        frame.limit, frame.ties = None, False  # both of the two are shown, the one that was asked for first


def _check_ranked_once(state: State, place: Place, asked: Relation | None) -> None:
    """Raise where each of those asked for may have several numbers that add up: "which ferry carried the most
    passengers" may be the one of the fullest trip, or of all its trips.
    """
    top = any(span.kind == "S" and span.data[0] in ("top", "bottom") for span in state.spans)  # "top 3 owners by fee"
    several = asked is not None and not state.is_single(asked, place.relation)
    if asked is not None and several and (top or (_says_most(state) and state.adds_up(place))):
        raise NotUnderstood(
            f"whether {asked.name} are ranked by one {place.column.name} of theirs or by the sum of all"
        )


def _says_most(state: State) -> bool:
    """Return whether a superlative is of an amount: "the most passengers"."""
    return any(span.kind == "S" and span.said.endswith(("most", "least", "fewest")) for span in state.spans)


def _check_single(state: State, superlative: Superlative, texts: Sequence[Place]) -> None:
    """Raise where not single rows may be ranked: of a row that is named, or of groups that a text makes."""
    assert superlative.place is not None
    if _says_each(state):
        raise NotUnderstood("what ranks first within each")  # "the last visit of each dog"
    if {superlative.place.relation} == {place.relation for place in state.named_by()}:
        raise NotUnderstood("what is ranked of one row")  # "when was Mia last here"
    told = bool(state.frame.nouns) or any(map(state.tells_rows, texts))
    own = [place for place in texts if not told]
    if own and not _is_extreme(state, superlative.place):
        raise NotUnderstood(f"whether single rows or each {own[0].column.name} is ranked")


def _is_extreme(state: State, place: Place) -> bool:
    """Return whether a superlative speaks of one number, whatever it is of: "the lowest price and its shop"; where
    a shop is asked for, its average may be meant, and where numbers make a sum, that.
    """
    kinds = "".join(span.kind for span in state.spans if span.kind not in "wU")
    extreme = any(span.kind == "S" and _EXTREMES & {*span.said.split()[-1:]} for span in state.spans)
    return not state.adds_up(place) and kinds.startswith("SC&") and extreme
