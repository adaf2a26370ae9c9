"""Spans → a frame: which span plays which part, by where it stands.

The kinds of the spans in a row make a text of one letter each (`Span.kind`), and every construction of English that is
known here is a pattern over that text. A construction takes its spans away, so that at the end every span that means
something has been used exactly once, or the question is not understood. What each earns is measured by
experiments/local/constructions.py.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from almanaq.agent.local_old.compose import asked, choices, conditions, counting, days, values
from almanaq.agent.local_old.compose.outputs import finish
from almanaq.agent.local_old.compose.refusal import NotUnderstood
from almanaq.agent.local_old.compose.state import State
from almanaq.agent.local_old.recognize.spans import Span
from almanaq.agent.local_old.recognize.vocabulary import Vocabulary
from almanaq.suql.catalog.relations import Relation

__all__ = ["CONSTRUCTIONS", "NotUnderstood", "compose"]

CONSTRUCTIONS: tuple[tuple[re.Pattern[str], Callable[..., bool]], ...] = tuple(
    (re.compile(pattern), take)
    for pattern, take in (
        (r"(?P<t>L)", conditions.holding),
        (r"(?:(?P<a>C)w{0,2})?(?P<z>Z)w*(?P<values>V+)", conditions.beyond_row),
        (r"(?P<a>C)w*(?P<z>Z)w*(?P<b>C)", conditions.beside_column),
        (r"(?P<a>C)w{1,2}(?=V)", values.said_of),
        (r"[vr][wB]{0,2}(?P<v>V)", values.told_by_verb),
        (r"(?P<v>V)[vr]", values.told_by_verb),
        (r"(?P<v>V)w*\|w*(?P<u>V)", choices.versus),
        (r"(?P<n>N)(?=[RC][wCv]*S)", asked.amount_before),
        (r"B(?=w*[SO])", asked.passive),
        (r"(?P<b>B)w*(?P<a>C)(?P<n>N)", conditions.by_number),
        (r"v(?=w{0,2}[SODBG])", values.silent),
        (r"v(?=w{1,2}V)", values.silent),
        (r"(?P<b>B)(?=w*(?P<values>V(?:w{0,2}[&|]?w{0,2}V)*))", values.by_value),
        (r"[HA].*R.*(?P<b>B)(?=[w&]*(?:$|F))", asked.each_of_these),
        (r"(?P<v>v)", values.linking),
        (r"(?P<s>S)w*&w*(?P<z>S)", asked.both_extremes),
        (r"Sw*S", asked.superlatives),
        (r"(?:(?P<a>C)w*)?(?P<g>G)(?:w*(?P<b>C))?", conditions.average_reference),
        (r"A(?P<count>w*H)w*(?P<a>C)", counting.number_column),
        (r"(?P<f>A)w*(?P<a>C)w*(?P<o>O)", conditions.compared),
        (r"(?P<o>O)w*(?P<r>R)", conditions.counted_rows),
        (r"(?P<o>O)[wU]*(?P<a>C)", conditions.counted_values),
        (r"(?P<a>C)w{0,3}(?P<o>O)(?!C)", conditions.compared),
        (r"(?P<o>O)w{0,2}(?P<a>C)", conditions.compared),
        (r"(?P<o>O)", conditions.compared),
        (r"(?P<k>k)w*(?P<a>C)w*(?P<n>N)", conditions.beside_number),
        (r"(?P<a>C)w*(?P<z>Z)w*(?P<n>N)", conditions.apart_from_number),
        (r"(?P<a>C)w{0,2}(?P<n>N)", conditions.equal),
        (r"(?P<r>R)(?P<n>N)", conditions.numbered),
        (r"(?P<n>N)(?P<a>C)", conditions.equal_before),
        (r"(?P<n>N)", conditions.years_old),
        (r"Mw?(?P<a>C)|(?P<b>C)w{0,3}M(?!w?C)", values.missing),
        (r"(?P<v>V)w{0,2}Xw{0,2}(?P<a>C)w{0,2}(?P<b>C)?", values.so_of_none),
        (r"(?P<b>C)w{0,2}(?=X[wrv]{0,2}(?P<v>V))", values.beside_denied),
        (r"(?P<not>X)[wrv]{0,2}(?P<a>C)w{0,2}(?P<v>V)", values.denied),
        (r"(?P<not>X)[wrv]{0,2}(?P<v>V)(?:w?(?P<c>C))?", values.denied),
        (r"(?P<a>C)w{0,2}(?P<v>V)", values.of_column),
        (r"(?P<v>V)w{0,1}(?P<a>C)", values.of_column),
        (r"Xw{0,3}[rv]?w{0,2}B?w{0,2}(?P<r>R)", values.absent),
        (r"X[wv]?(?P<d>[Cr])", values.never),
        (r"(?P<x>X)w{0,2}(?P<a>C)", values.none_of),
        (r"(?P<x>X?)w{0,3}(?P<a>C)", values.affirmed),
        (r"(?P<v>V)w{2,6}(?P<a>C)", values.as_column),
        (r"(?P<r>R)w{1,4}(?P<a>C)(?=w*$|w*&)", values.having),
        (r"(?P<a>C)?w{0,2}(?P<d>D)", days.days),
        (r"(?P<f>F)w*(?P<a>C)[wE]*", asked.in_order),
        (r"(?P<s>S)w*[CR]?[wVD]*(?P<by>Bw*(?:(?P<f>A)w*(?P<a>C)|Hw*(?P<r>R)))", asked.ranked_by),
        (r"(?P<f>A)[w&]*Hw*(?P<r>R)w*(?P<b>B)w*(?:(?P<a>C)|(?P<c>R)|(?P<y>Y))", counting.number_per),
        (r"Hw*(?P<r>R)w*(?P<b>B)w*(?:(?P<a>C)|(?P<c>R)|(?P<y>Y))w*(?P<f>A)", counting.number_per),
        (r"Bw*[CRY](?:w*&w*[CRY])*", asked.grouped),
        (r"(?P<y>Y)(?=.*S)", asked.ranked_period),
        (r"^w*(?P<y>Y).*(?P<a>C)w*$", asked.asked_year),
        (r"(?P<r>R)[wCV&]+(?=[AH])", asked.of_each),
        (r"(?:(?P<f>A)w*)?(?P<a>C)w*(?P<s>S)", choices.measured),
        (r"(?P<s>S)w*(?P<r>R)", choices.counted),
        (r"(?P<s>S)V", choices.counted),
        (r"(?P<a>C)w{0,2}(?P<s>S)(?=(?P<c>w{0,2}[RCA])?)", asked.ranked_by_verb),
        (r"(?P<s>S)w*(?P<f>A)w*(?P<r>R?)w*(?P<a>C)", asked.ranked),
        (r"(?P<s>S)w{0,2}(?P<r>R?)(?P<a>C)(?P<f>A?)", asked.ranked),
        (r"(?P<s>S)w{0,2}(?:Vw?)*(?P<a>C?)(?P<r>R?)w*(?P<f>A?)", asked.ranked),
        (r"(?P<a>C)[wVRD]*(?P<f>A)w*$", asked.on_average),
        (r"(?P<list>A(?:[w&]+A)*)w*V?w*R?w*(?P<a>C)(?P<more>(?:w*&w*C)*)", asked.totalled),
        (r"P[wX]*(?P<r>R?)", counting.percentage),
        (r"(?P<h>H)w*(?:(?P<a>C)|(?P<r>R))(?:wC)?", counting.breakdown),
        (r"H[wU]*(?P<r>R)(?P<a>C)", counting.different_values),
        (r"Hw*(?P<a>C)(?P<r>R)", counting.kind_of_rows),
        (r"H[wU]*V*w*(?:(?P<r>R)|(?P<a>C))?", counting.how_many),
    )
)
"""A pattern and what takes it: of a group of one letter it gets the span, None where that takes no part."""


def compose(spans: Sequence[Span], vocabulary: Vocabulary, mentioned: Sequence[Relation]) -> State:
    """Put the spans of a question together; the frame of the state says what is asked for.

    Raises:
        NotUnderstood: a span fits no construction, or fits several.
    """
    state = State(spans, vocabulary, mentioned)
    for pattern, take in CONSTRUCTIONS:
        at = 0
        while (match := pattern.search("".join(state.kinds), at)) is not None:
            parts = {name: state.one(match, name) for name in pattern.groupindex if len(name) == 1}
            before = list(state.kinds)
            at = 0 if take(state, match, **parts) and state.kinds != before else match.start() + 1
    finish(state)
    return state
