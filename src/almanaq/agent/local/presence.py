"""Tests of what is there, missing, yes or no, or held by a text, and the column that a span means."""

from __future__ import annotations

import operator
from collections.abc import Callable
from dataclasses import dataclass

from sqlglot import exp

from almanaq.agent.linking.columns import NO_VALUE, LinkedColumn, relation_words
from almanaq.agent.linking.english import share_root
from almanaq.agent.linking.index import Named
from almanaq.agent.linking.joins import Hop, is_missing, is_there
from almanaq.agent.linking.link import Holding
from almanaq.agent.linking.words import identifier_stems, is_verb_form, stem
from almanaq.agent.local.sentence import Choices, Sentence
from almanaq.agent.local.spec import compared, like, number, one_of, plain, text
from almanaq.agent.local.world import World
from almanaq.suql.catalog.relations import Relation

_FEW_ANSWERS = 5
_RECORDED = frozenset("figure figures value data entry recorded given listed known available reported stated".split())
"""Words of what is not there because nobody wrote it down: it is not 0."""
ASKED_FOR = {
    "when": frozenset(("date", "birthdate", "day", "year", "time")),
    "where": frozenset(
        "place location locality city country birthplace address town state region county district area neighborhood "
        "neighbourhood street site venue station latitude".split()
    ),
}
"""What the words of a column may be that a question word asks for."""
_ENDS = (
    frozenset("from source src origin orig start depart departing departure leave leaving".split()),
    frozenset("to into destination dest dst end target arrive arriving arrival land landing".split()),
)
"""Words for where something begins, and where it ends."""


@dataclass(frozen=True, slots=True)
class Test:
    """A condition with the column it is of, the place of the span it comes from, and whether it is to be denied.

    Attributes:
        never: it may be denied of all rows of a thing: makers "that make no van", not rows that are no van.
    """

    column: LinkedColumn
    condition: exp.Expr
    place: int
    negated: bool = False
    never: bool = False


class Presence:
    """The tests that spans make of whether the rows of `main` have something, and what every test needs."""

    def __init__(self, sentence: Sentence, world: World, main: Relation, choices: Choices) -> None:
        self.sentence, self.world, self.main, self.choices = sentence, world, main, choices
        self.tests: list[Test] = []
        self.versus: list[exp.Expr] = []
        self.hops: dict[int, Hop] = {}
        self.joined = False

    # --- which column ----------------------------------------------------------------------------------------------

    def column(
        self, i: int, fits: Callable[[LinkedColumn], bool] = lambda _: True, role: str = "column"
    ) -> LinkedColumn | None:
        """Return the column that a span of columns means; None where none fits."""
        span = self.sentence.items[i]
        options = []
        for named in span.meanings:
            column = named.thing if isinstance(named, Named) else named
            if not isinstance(column, LinkedColumn):
                continue
            reach = self.world.reach(self.main.name, column)
            if reach and fits(column):
                sure = named.sureness if isinstance(named, Named) else 1.0
                options.append((column, sure * reach))
        if not options:
            return None
        doers = [(column, weight) for column, weight in options if self.sentence.asks_doer(i, column)]
        options = doers or options
        asked = ASKED_FOR.get(self.sentence.text(0), frozenset())
        options = [(c, w * (1.4 if asked & {*c.words, c.kind} else 1.0)) for c, w in options] if asked else options
        before = self.sentence.items[i - 1] if i else None
        if before is not None and before.kind == "table":
            beside = [(c, w * 1.5) for c, w in options if c.relation in before.meanings]
            if (beside and len(beside) < len(options)) or (beside and not self.sentence.used[i - 1]):
                options = [*beside, *(o for o in options if o[0].relation not in before.meanings)]
                if self.main not in before.meanings:
                    self.sentence.take(i - 1)
        chosen = self.choices.pick((role, span.first), options)
        word = self.sentence.text(0)
        answers = {"when": chosen.kind == "date" or bool(asked & {*chosen.words}), "why": False, "how": False}
        fits_word = chosen.kind == "text" or not word.startswith(("who", "where"))
        named = word.startswith("who") and any(item.kind != "silent" for item in self.sentence.items[1:i])
        of_what = self.sentence.links.question.rstrip(" ?").endswith((" of", " for", " with"))
        answers["what"] = chosen.kind == "text" or not of_what  # "what was he convicted of" asks for no day
        if role == "shown" and not answers.get(word, fits_word or named):
            self.choices.doubt(0.3, f"{chosen.name} is not what {word} asks for")  # a number is no day, and nobody
        elif role == "shown" and span.how in ("root", "synonym") and not (asked or doers):
            self.choices.doubt(0.8, f"{chosen.name} by another word")
        if role == "shown" and chosen.is_category and chosen.distinct <= _FEW_ANSWERS and is_verb_form(chosen.name):
            self.choices.doubt(0.4, f"{chosen.name} also says who did not")  # "who attended?"
        return chosen

    def parallel(self, column: LinkedColumn) -> list[Hop]:
        """Return the keys that lead to the rows of a column, where several do: of a flight, from where and to where."""
        hops = [h for h in self.world.graph.hops(self.main.name) if h.right == column.relation.name and h.single]
        return hops if len(hops) > 1 else []

    def said_of(self, i: int, name: str, relation: Relation) -> list[int]:
        """Return the places beside a value of words that tell a key from others: "eyes" of `eye_colour_id`."""
        own = {word for word in identifier_stems(name) if word not in ("id", "code", "key", *relation_words(relation))}
        ends = own.union(*(each for each in _ENDS if own & each))
        before = list(range(i - 1, max(i - 6, -1), -1))
        stop = next((n for n, k in enumerate(before) if k in self.hops), len(before))  # that is said of another value
        found = []
        for k, meant in [*((k, ends) for k in before[:stop]), (i + 1, own), (i + 2, own)]:
            said = [stem(word) for word in self.sentence.text(k).split()]
            if any(a in meant or (len(a) > 2 and share_root(a, b)) for a in said for b in meant):
                found.append(k)
        return found

    def _pick_hop(self, i: int, column: LinkedColumn) -> None:
        """Find which of several keys leads from a row to a value: "departing from Oslo"."""
        hops = self.parallel(column)
        said = [self.said_of(i, hop.left_column, column.relation) for hop in hops]
        listed = [k for k in self.hops if hops and self.sentence.neighbour(i, -1, over=("and",)) == k]
        if hops and listed and not any(said):
            self.hops[i] = self.hops[listed[0]]
        elif hops:
            options = [(j, 0.4 if any(said) and not places else 0.97) for j, places in enumerate(said)]
            chosen = self.choices.pick(("key", i), options)
            self.hops[i] = hops[chosen]
            self.sentence.take(*said[chosen])

    def _is_negated(self, i: int) -> bool:
        """Return whether a negation stands before a span, and use it."""
        k, passed = i - 1, 0
        while k >= 0 and passed < 4:
            item = self.sentence.items[k]
            if item.kind == "not":
                self.sentence.take(k)
                return True
            # "Without parking in Bern" denies the parking alone.
            passes = self.sentence.used[k] if item.kind == "column" else item.kind in ("silent", "table", "and")
            if not passes or self.sentence.text(k) in (",", ";"):
                return False
            passed += 1
            k -= 1
        return False

    def deny(self, test: Test) -> exp.Expr:
        """Return the opposite of a test, which rows without a value fulfil too where it says "without"."""
        unlike, missing = denied(test.condition), is_missing(plain(test.column))
        if not self.world.graph.finds(test.column.relation.name, missing):
            return unlike
        if test.never:
            return exp.or_(unlike, missing)
        self.choices.doubt(0.6, "rows of which nothing is known")
        return self.choices.pick(("not", test.place), [(unlike, 1.0), (exp.or_(unlike, missing), 0.97)])

    def missing_tests(self) -> None:
        """Turn "unknown sex", "without a capital", "not insured" into tests."""
        sentence = self.sentence
        for i in list(sentence.of("missing", "not")):
            k = sentence.neighbour(i, 1, gap=2)
            if k is None or sentence.items[k].kind != "column" or sentence.used[k]:
                if sentence.items[i].kind != "missing":
                    continue
                k = sentence.neighbour(i, -1, gap=2)
                if k is None or sentence.items[k].kind != "column" or sentence.used[k]:
                    continue
            if sentence.items[i].kind == "not" and sentence.items[k].how == "opposite":
                continue  # "not unpaid"
            column = self.column(k, lambda c: self.world.is_single(self.main.name, c.relation.name), "missing")
            if column is None:
                continue
            sentence.take(i, k)
            told = {*sentence.text(k).split()[1:], sentence.text(k + 1)}
            unknown = sentence.items[i].kind == "missing" or bool(told & _RECORDED)  # "no profit figure"
            condition = self._has_no_value(column) if unknown else self._without(column)
            self.tests.append(Test(column, condition, i, never=sentence.text(i) == "never"))

    def present_tests(self) -> None:
        """Turn "stations with a lift", "how many have a caption" into tests that there is a value."""
        sentence = self.sentence
        for i in list(sentence.of("column")):
            before = sentence.words_before(i, 2)
            articled = before[:1] in (["a"], ["an"], ["any"])
            having = before[1:2] if articled else before[:1]
            counted = sentence.has_kind("count", "share") or articled
            after = sentence.neighbour(i, 1, gap=1)
            compared_with = after is not None and sentence.items[after].kind in ("compare", "number", "than", "hold")
            if not counted or compared_with or having not in (["with"], ["have"], ["has"], ["having"]):
                continue
            whole = articled and not sentence.has_kind("aggregate", "superlative")

            def fits(column: LinkedColumn, whole: bool = whole) -> bool:
                return column.kind in ("text", "date") or column.is_identifier or (whole and column.kind == "number")

            column = self.column(i, fits, "present")
            if column is None or column.relation is not self.main:
                continue
            if self.has_zeros(column):
                sentence.take(i)
                self.tests.append(Test(column, exp.NEQ(this=compared(column), expression=number(0)), i))
            elif self.world.graph.finds(column.relation.name, is_missing(plain(column))):
                sentence.take(i)
                self.tests.append(Test(column, is_there(plain(column)), i))

    def has_zeros(self, column: LinkedColumn) -> bool:
        """Return whether some rows have nothing of what a column of amounts says: a tip of 0."""
        zero = exp.EQ(this=compared(column), expression=number(0))
        return column.is_measurable and bool(self.world.graph.finds(column.relation.name, zero))

    def _without(self, column: LinkedColumn) -> exp.Expr:
        missing = is_missing(plain(column))
        if column.kind == "boolean":  # where no row says no, those are not so of which nothing is said
            denies = affirmed(column, False)
            return missing if self.world.graph.finds(column.relation.name, denies) is False else denies
        if column.kind == "number" and column.column.type:
            if self.has_zeros(column):
                zero: exp.Expr = exp.EQ(this=compared(column), expression=number(0))
                if not self.world.graph.finds(column.relation.name, missing):
                    return zero
                return self.choices.pick(("zero", column.name), [(zero, 1.0), (missing, 0.97)])
        if column.kind == "text" and column.distinct <= _FEW_ANSWERS:
            no = next((v for v in self.world.index.values_of(column) if v.casefold() == "no"), None)
            if no is not None:
                return exp.EQ(this=plain(column), expression=text(no))
        return self._has_no_value(column)

    def _has_no_value(self, column: LinkedColumn) -> exp.Expr:
        values = self.world.index.values_of(column) if column.kind == "text" else ()
        held = [text(v) for v in values if v.casefold() in NO_VALUE and v not in ("-", "?")]
        missing = is_missing(plain(column))
        return exp.or_(missing, one_of(plain(column), held)) if held else missing

    def boolean_tests(self) -> None:
        """Turn the names of yes-or-no columns into tests, but after "by" and what asks to see them."""
        sentence = self.sentence
        for i in list(sentence.of("column")):
            before = sentence.neighbour(i, -1, gap=2)
            if before is not None and sentence.items[before].kind in ("by", "aggregate", "distinct", "order"):
                continue
            named = sentence.items[i].meanings[0]
            if not isinstance(named, Named) or getattr(named.thing, "kind", "") != "boolean":
                continue
            column = self.column(i, lambda c: c.kind == "boolean", "boolean")
            if column is None:
                continue
            negated, opposed = self._is_negated(i), sentence.items[i].how == "opposite"
            self.choices.doubt(0.3, "not unpaid", when=negated and opposed)
            negated = negated is not opposed
            sentence.take(i)
            if named.sureness < 0.85:
                self.choices.doubt(0.5, f"part of the name {column.name}")
            if self.world.is_single(self.main.name, column.relation.name):
                self.tests.append(Test(column, self._without(column) if negated else affirmed(column, True), i))
            else:
                self.tests.append(Test(column, affirmed(column, True), i, negated))  # none of several is so

    def holding_tests(self) -> None:
        """Turn "names that start with S" into tests."""
        for i in list(self.sentence.of("hold")):
            holding: Holding = self.sentence.items[i].meanings[0]
            options = [
                (named.thing, named.sureness * self.world.reach(self.main.name, named.thing))  # type: ignore[arg-type]
                for named in holding.columns
            ]
            options = [(c, w) for c, w in options if w and isinstance(c, LinkedColumn) and not c.column.array]
            if options:
                column = self.choices.pick(("hold", self.sentence.items[i].first), options)
                assert isinstance(column, LinkedColumn)
                self.sentence.take(i)
                held = like(plain(column), holding.form, holding.text)
                self.tests.append(Test(column, held, i))


def affirmed(column: LinkedColumn, wanted: bool) -> exp.Expr:
    """Return the test that a column says yes, or no."""
    own = plain(column)
    if not column.yes:
        return own if wanted else exp.Not(this=own)
    said = column.yes if wanted else column.no
    values = [text(value) if column.column.type == "text" else number(float(value)) for value in said]
    return one_of(own, values) if values else is_missing(own)


def denied(condition: exp.Expr) -> exp.Expr:
    """Return the opposite of a condition."""
    if isinstance(condition, exp.EQ) and isinstance(condition.this, exp.Column):
        return exp.NEQ(this=condition.this, expression=condition.args["expression"])
    return exp.Not(this=condition if isinstance(condition, exp.In) else exp.paren(condition))


def on_scale(column: LinkedColumn, sign: str, value: str) -> exp.Expr:
    """Return the condition that a column is above or below one of its steps."""
    at = column.scale.index(value)
    holds = {"<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge, "<>": operator.ne}[sign]
    steps = [text(step) for i, step in enumerate(column.scale) if holds(i, at)]
    return one_of(plain(column), steps) if steps else exp.false()
