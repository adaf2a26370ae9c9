"""Composer: the spans of a cover → one QuerySpec over the rows of one relation, with the choices that were made."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from sqlglot import exp

from almanaq.agent.linking.amounts import Comparison
from almanaq.agent.linking.columns import LinkedColumn, fact_columns, name_columns, relation_words
from almanaq.agent.linking.english import english, share_root
from almanaq.agent.linking.joins import Hop, is_there, table_of
from almanaq.agent.linking.spans import Span
from almanaq.agent.linking.words import fold, is_verb_form, stem
from almanaq.agent.local.draft import NotComposed
from almanaq.agent.local.phrases import domain_of, search_words
from almanaq.agent.local.presence import Test, denied
from almanaq.agent.local.ranking import Ranking
from almanaq.agent.local.spec import (
    JOINS,
    QuerySpec,
    aggregate,
    answer,
    compared,
    count,
    kinds_of,
    plain,
    select_of,
    text,
)
from almanaq.agent.local.texts import hours_asked, seeks, text_tests, wishes_of
from almanaq.text.words import STOPWORDS

_GENERAL = re.compile(
    r"\s*(?:what(?:'s| is| are| was| does)|why|who(?! (?:has|serves?|makes?)\b)|how (?:do|does|did|to|can))\b", re.I
)
_EVERY = re.compile(r"\b(?:how many|every|(?<!at )all)\b(?! (?:day|night|week|weekend|year)\b)", re.IGNORECASE)
_OF_ALL = re.compile(r"\s*(?:is|are|was|were|do|does|did|has|have|had) (?:all|every|each|both)\b", re.IGNORECASE)
_WHAT_DAY = re.compile(r"\b(?:what|which) (date|day|month|year)\b", re.IGNORECASE)
_EITHER_WAY = re.compile(r"\bwith (?:and|or) without\b", re.IGNORECASE)
_ASKING = frozenset("is are was were does do did has have had can".split())
_BEING = frozenset("are is were was have has with had been".split())
_BARE = frozenset(
    "exist exists existing available please appear appears altogether there overall given included recorded list "
    "listed table tables database data records located yet now currently represented "
    "covered named mentioned".split()
)
"""Words after which nothing is missing: "which stations exist"."""
_LEFT_OVER = {"value": 0.15, "column": 0.3, "table": 0.45, "noun": 0.8} | dict.fromkeys(
    ("unknown", "number", "compare", "term"), 0.1
)
_BESIDE = 0.4
"""How much less sure a query is that leaves out a word before a column."""
_LEFT_OUT, _LEFT_OUT_TOO = 0.55, 0.85
"""The same for the first word that a search leaves out, and for each other: its reply says which these are."""
_TIES = frozenset("from in at to by with on of for before after between since during".split())
_RATED = frozenset("rated reviewed rating ratings reviews".split())
_SOLELY = frozenset(("only", "just", "solely", "exclusively", "always"))
_NO_AGENT = _TIES | {"is", "are", "was", "were"}
_OPENING = frozenset(("", "the", "list", "show", "all", "of", "any"))
_MOST_FACTS, _WHOLE_ROW, _FOUND, _MOST_STARS = 5, 60, 3, 5


class Composer(Ranking):
    """Composes one query; see `Draft` for its arguments."""

    def compose(self) -> QuerySpec:
        """Return the query; raises NotComposed where the words ask for nothing of these rows."""
        self._weigh_spans()
        read = text_tests(self.sentence, self.world, self.main, self.extra)
        self.read = [] if read is None else [read]
        hours = hours_asked(self.sentence, self.world, self.main)
        self.conditions.holding_tests()
        self._name_tables()
        self._count_members()
        self.conditions.value_tests()
        if hours is not None and (hours[1] is None or self._entity() is not None):
            self.shown.append(hours[0])  # of one row, and where they are asked for, the hours are shown
        elif hours is not None and hours[1] is not None:
            self.extra.append(hours[1])
        self._define()
        self._compute()
        self._group()
        self._count()
        self._having()
        self.conditions.period_tests()
        self.conditions.number_tests()
        self._group_compared()
        self._rank()
        self.conditions.missing_tests()
        self._sort()
        self.conditions.present_tests()
        self.conditions.boolean_tests()
        self._group_compared()
        self._compare_with_others()
        self._limit_by_number()
        if self.searches:
            self._rate()
            self._wish()
        self._take_shown()
        spec = self._finish()
        self._doubt_things(spec)
        if not self.searches:
            self._doubt_verbs()
        asked = _WHAT_DAY.search(self.sentence.links.question)
        told = spec.expressions() if spec.gives_figures else spec.columns
        parts = (own for each in told for own in each.find_all(exp.Column))
        days = [c for own in parts if (c := self.world.column_of(own)) is not None]
        if asked and not any(c.kind == "date" or fold(asked[1]) in c.words for c in days):
            self.choices.doubt(0.4, f"it asks for a {fold(asked[1])}")
        for i, span in enumerate(self.sentence.unused()):
            left = _BESIDE if self._says_more_of(span) else _LEFT_OVER.get(span.kind, 0.3)
            known = self.searches and bool(self.wishes) and bool(domain_of(self.world.catalog).matters)
            weight = 1.0 if known else (_LEFT_OUT, _LEFT_OUT_TOO)[bool(i)] if self.searches else left
            self.choices.doubt(weight, f"unused {self.sentence.links.text(span)}")
        return spec

    def _says_more_of(self, span: Span) -> bool:
        """Return whether an unknown word stands before the name of a column: "crew" of "average crew age"."""
        after = next((item for item in self.sentence.items if item.first == span.last), None)
        return span.kind == "unknown" and after is not None and after.kind == "column"

    def _doubt_things(self, spec: QuerySpec) -> None:
        """Doubt what is said of all rows of a thing, where single rows are found: towns with "only" dogs."""
        things = spec.distinct or any(each.find(exp.Distinct, exp.Select) for each in spec.expressions())
        words = [token.folded for token in self.sentence.links.tokens]
        if self.conditions.joined and (things or "both" in words):
            self.choices.doubt(0.4, "those with both, or with either")  # "keepers of roses and tulips"
        still = "still" in words and not (self.extra or self.sentence.has_kind("share")) and words.index("still")
        if still and all(self.sentence.items[test.place].first < still for test in self.conditions.tests):
            self.choices.doubt(0.4, "what is still so")  # "how many members do we still have"
        unique = self.world.is_unique(self.world.index.name_of(self.main))
        if any(test.never for test in self.conditions.tests) and (spec.measures or not (unique and self.names_main)):
            self.choices.doubt(0.6, "rows that are not so, or things that never are")
        several = any(c.kind == "text" and not self.world.is_unique(c) for c in self.shown[:1])
        unnamed = not (spec.measures or spec.groups or (unique and not several))
        inner = any(e.find(exp.Select) for e in spec.conditions) or any(m.find(exp.Distinct) for m in spec.measures)
        if not (spec.distinct or inner or (unnamed and not self.searches)):
            return
        said = [self.sentence.text(k) for k in range(len(self.sentence.items))]
        opens = next((k for k, item in enumerate(self.sentence.items) if item.kind != "silent"), 0)
        if _SOLELY & {*" ".join(said[opens:]).split()} or (spec.distinct and "all" in said[opens + 1 :]):
            self.choices.doubt(0.3, "rows that are so, or things of which all rows are")

    def _doubt_verbs(self) -> None:
        """Doubt a verb that no row, column or table explains: parts that were "sold", where no row is a sale."""
        items = self.sentence.items
        last = max((k for k, item in enumerate(items) if item.kind != "silent"), default=-1)
        named = any(item.kind == "noun" or self.main in item.meanings for item in items)
        elsewhere = self.counts and not named and bool(self.world.details_of(self.main))
        for k, item in enumerate(items):
            word = self.sentence.text(k)
            asked = self.sentence.text(k - 1) in ("which", "what") and not is_verb_form(word)
            unsaid = self.counts and not (named or any(i.kind in ("table", "column") for i in items[:k]))
            if k and item.how == "verb" and (asked if stem(word) == word else unsaid and word.endswith("s")):
                self.choices.doubt(0.1, f"{word}: a noun of which nothing is known")  # "which store", "how many builds"
            acts = item.how == "verb" or (k > last and word.isalpha() and word not in STOPWORDS)
            ours = self.sentence.text(k - 1) == "we" and self.sentence.text(k - 2) != "did" and not is_verb_form(word)
            told = word in _BARE or ours or self._is_explained(k)  # what "we sell" are the rows, not what "was sold"
            if k and item.kind == "silent" and acts and (not told or (elsewhere and item.how == "verb")):
                self.choices.doubt(0.4, f"{word}: a verb of which nothing is known")
                return

    def _is_explained(self, k: int) -> bool:
        """Return whether a verb says what the rows are, or ties what stands beside it."""
        sentence, verb = self.sentence, self.sentence.text(k)
        if any(share_root(verb, own) or own in english().verbs.get(verb, ()) for own in relation_words(self.main)):
            return True
        rest = {word for j in range(k + 1, len(sentence.items)) if (word := sentence.text(j)).isalpha()}
        if rest <= _TIES | {"it", "there", "them"} and self.groups and self.measures:
            return True  # "for each hall, how many plays are given there"
        before, after = (sentence.neighbour(k, step, gap=2) for step in (-1, 1))
        kind = sentence.items[before].kind if before is not None else ""
        if after is not None and sentence.items[after].kind != "and":
            said = kind if before == k - 1 else "" if sentence.text(k - 1) in _OPENING else "table"
            noun = after == k + 1 and sentence.items[after].kind in ("table", "noun", "column", "aggregate")
            return not noun or said in ("table", "noun", "value", "column")
        held = kind == "column" and bool(self.groups or not self.measures)
        if held or sentence.text(0) == "when" or sentence.items[k - 1].how == "verb":
            return True  # "which sorts are grown"; the day is shown on which it was so; "came out" is one verb
        # "Films that Ada Byron made", "where do growers live", but not "members from York came", "was Fox borrowed".
        if any(sentence.text(j) in ("do", "does", "did") for j in range(k - 1)):
            shows = bool(self.shown or self.conditions.tests)  # "what do growers eat" asks for what no row says
            return shows and before == k - 1 and kind in ("table", "noun", "value")
        return before == k - 1 and kind == "value" and sentence.text(before - 1) not in _NO_AGENT

    def _take_shown(self) -> None:
        """Take the columns that are left: they are to be shown, or to be put together where there are groups."""
        sentence = self.sentence
        for i in list(sentence.of("distinct")):
            sentence.take(i)
            self.distinct = True
        for i in list(sentence.of("share")):
            sentence.take(i)
            self._take_share(i)
        grouped = bool(self.groups) and not self.measures
        for i in list(sentence.of("column")):
            if self._is_named_again(i):
                sentence.take(i)
                continue
            column = self.conditions.column(i, role="shown")
            if column is None:
                continue
            if not self.world.is_single(self.main.name, column.relation.name):
                continue
            if grouped and column.is_measurable:
                sums = column.sums
                weights = {True: (1.0, 0.3), False: (0.3, 1.0), None: (0.85, 0.78)}[sums]
                self._check_sums(column)
                options = [("SUM", weights[0]), ("AVG", weights[1])]
                function = self.choices.pick(("put together", i), options)
                sentence.take(i)
                self.measures.append(aggregate(function, column))
                continue
            sentence.take(i)
            noun = i + 1 < len(sentence.items) and sentence.items[i + 1].kind in ("table", "noun", "column")
            if noun and not sentence.asks_doer(i, column):
                self.choices.doubt(0.6, f"{column.name} before a noun")
            self.shown.append(column)
        told = {test.column.relation.name for test in self.conditions.tests}
        for i, relation in self._tables():
            if relation is self.main:
                self.sentence.take(i)
                self.names_main = True
            elif self.world.is_single(self.main.name, relation.name):
                self.sentence.take(i)
                first = next((k for k, item in enumerate(sentence.items) if item.kind != "silent"), None)
                if not self.measures and i == first:
                    self.shown.append(self.world.index.name_of(relation))
                elif relation.name not in told:
                    told.add(relation.name)
                    self.choices.doubt(0.6, f"mention of {relation.name}")

    def _is_named_again(self, i: int) -> bool:
        """Return whether words mean a column that others have named: "missed the most games" of `Games Missed`."""
        span, items = self.sentence.items[i], self.sentence.items
        read = (*self.measures, *self.groups, *(term for term, _ in self.order))
        tested = [t.column for t in self.conditions.tests if items[t.place].kind in ("number", "compare")]
        used = [*self.shown, *self.ordering, *tested, *map(self.world.column_of, read)]
        first, *others = span.meanings
        part = getattr(first, "how", "") == "part"
        meant = [first, *(n for n in others if n.how == "part")] if part else []
        return any(n.thing is column for n in meant for column in used)

    def _rate(self) -> None:
        """Order by the rating what is to be "well rated", and compare with it what names no other column."""
        rated = [c for c in self.world.columns(self.main.name) if "rating" in c.roles and c.is_measurable]
        praise = search_words().quality | search_words().highly
        for i in list(self.sentence.of("column")) if rated and not self.order else ():
            if self.sentence.text(i) in _RATED and self.sentence.text(i - 1) in praise:
                self.sentence.take(i - 1, i)
                self.order.append((compared(rated[0]), True))
        for i in list(self.sentence.of("compare")):
            comparison: Comparison = self.sentence.items[i].meanings[0]
            if rated and not comparison.unit and max(comparison.numbers) <= _MOST_STARS:
                self.sentence.take(i)
                self.conditions.tests.append(Test(rated[0], self.conditions.compare(compared(rated[0]), comparison), i))

    def _wish(self) -> None:
        """Turn the words that are left into questions to the texts of the rows."""
        self.wishes = wishes_of(self.sentence, self.world, self.main, self.partial)
        seeking = self.partial or seeks(self.sentence, self.main) or self._entity() is not None
        if not seeking and (self.wishes or not any(self.sentence.of("column"))):
            self.choices.doubt(0.5 if self.conditions.tests else 0.01, "nothing says that rows are wanted")
        if self.wishes and _GENERAL.match(self.sentence.links.question) and not self.order and self._entity() is None:
            self.choices.doubt(0.05, "it asks what something is")
        first = self.sentence.links.tokens[0].folded if self.sentence.links.tokens else ""
        if self._entity() is not None and (first in _ASKING or first in ("how", "what")):
            return  # the texts of one row are asked, and their answers shown
        for column, phrase in self.wishes:
            wanted = text("Yes" if phrase.wanted else "No")
            self.extra.append(exp.EQ(this=answer(column, phrase.question), expression=wanted))

    def _limit_by_number(self) -> None:
        """Take a number before the noun as how many rows are wanted: "3 places furthest south"."""
        for i in list(self.sentence.of("number")):
            k = self.sentence.neighbour(i, 1, gap=0)
            meant = self.sentence.items[i].meanings[0]
            opens = self.searches and all(item.kind == "silent" for item in self.sentence.items[:i])
            opens = opens and self.sentence.text(i - 1) != "for"  # "a table for ten"
            noun = opens or (k is not None and self.sentence.items[k].kind in ("table", "noun", "column"))
            whole = not meant.unit and meant.value > 1 and meant.value == int(meant.value)
            if noun and (self.order or opens) and whole:
                self.sentence.take(i)
                self.limit = int(meant.value)

    def _take_share(self, i: int) -> None:
        tests = self.conditions.tests
        if not tests and not self.groups:
            raise NotComposed
        part = self._part_of_share(i) if tests else []
        self.conditions.tests = [t for t in tests if t not in part]
        if any(t.condition == each.condition for t in self.conditions.tests for each in part):
            raise NotComposed  # "New York, New York" is no part of New York
        first = self.sentence.neighbour(i, 1)
        of_figure = first is not None and self.sentence.items[first].kind == "aggregate"
        if of_figure and not (self.measures and isinstance(self.measures[-1], exp.Sum)):
            raise NotComposed
        counted = self.measures.pop() if of_figure else count()  # "percentage of total sales" divides sums
        self.counts = not of_figure
        k = self.sentence.neighbour(i, 1, gap=2, over=("value", "period", "number"))
        whole = (
            getattr(self.sentence.items[k].meanings[0], "thing", None) if k is not None and self._is_column(k) else None
        )
        if isinstance(whole, LinkedColumn) and k is not None:
            if whole.is_measurable:
                amount = self._column_at(k, lambda c: c.is_measurable and bool(c.sums), "measure")
                if amount is None or of_figure:
                    raise NotComposed
                self._check_sums(amount)
                self.sentence.take(k)
                counted, self.counts = aggregate("SUM", amount), False
            unique = whole.relation is self.main and self.world.is_unique(whole)
            if unique or (whole.names_rows and whole is self.world.index.name_of(self.main)):
                self.sentence.take(k)  # each has one row
                self.choices.doubt(1.0 if unique else 0.8, "rows, or what several name")
        hundredfold = exp.Mul(this=exp.Literal.number("100.0"), expression=counted.copy())
        of_all: exp.Expr = counted.copy()
        if part:
            held = exp.and_(*(denied(t.condition) if t.negated else t.condition.copy() for t in part))
            hundredfold.set("expression", exp.Filter(this=counted, expression=exp.Where(this=held)))
        else:  # "the share of loans per grade" is of all loans
            of_all = exp.select(of_all).from_(table_of(self.main.name)).subquery()
        self.measures.append(exp.Div(this=hundredfold, expression=of_all))

    def _part_of_share(self, i: int) -> list[Test]:
        """Return the tests of the rows whose share is asked for; the others are of the rows that it is a share of."""
        tests = sorted(self.conditions.tests, key=lambda t: t.place)
        said = [self.sentence.text(k) for k in range(len(self.sentence.items))]
        verbs = [k for k in range(i + 1, len(said)) if said[k] in _BEING and said[k - 1] not in ("that", "which")]
        after = [t for t in tests if verbs and t.place > verbs[0]]
        asked, whole = after or tests, after or tests[-1:]
        of_rest = [k for k in range(i + 1, len(said)) if said[k] in ("among", "within", "of all")]
        of_rest += [i] if "as" in said[max(i - 2, 0) : i] else []  # "roses as a percentage of all flowers"
        places = range(asked[0].place + 1, asked[-1].place)
        ties = [k for k in places if said[k] in _TIES and self.sentence.items[k - 1].kind not in ("silent", "and")]
        inside, head = ([t for t in asked if at and t.place < at[0]] for at in (of_rest, ties))
        if inside or not head:
            return inside or whole
        return self.choices.pick(("part", i), [(head, 1.0), (whole, 0.97)])  # of all in May, or of all roses

    def _finish(self) -> QuerySpec:
        conditions = [*self._final_conditions(), *self.extra]
        if self.firsts:
            conditions.append(self._rank_first(conditions))
        spec = QuerySpec(
            self.main.name, (), tuple(dict.fromkeys(self.measures)), (), tuple(dict.fromkeys(self.groups)),
            tuple(self.having), tuple(self.order), self.limit, self.offset,
        ).with_conditions(conditions)  # fmt: skip
        if spec.groups and not spec.measures and not spec.having:
            if not self.shown and not self.partial:
                self._doubt_history()
                spec = replace(spec, measures=(self._number_of_rows(),))
                self.choices.doubt(0.9 if self.names_main else 0.5, "groups are counted")
        items, nouns = self.sentence.items, ("table", "noun", "column", "value")
        asks = [k for k in range(1, len(items)) if self.sentence.text(k) in ("which", "who")]
        beside = [k for k in asks if items[k - 1].kind not in nouns]  # unlike "patients who smoke"
        self.choices.doubt(0.1, "with and without", when=_EITHER_WAY.search(self.sentence.links.question))
        self.choices.doubt(0.3, "whether all rows are so", when=_OF_ALL.match(self.sentence.links.question))
        self.choices.doubt(0.4, "it asks which beside a figure", when=spec.measures and not spec.groups and beside)
        asked = next((item for item in self.sentence.items if item.kind == "table"), None)
        others = asked is not None and self.main not in asked.meanings and self.sentence.has_kind("not")
        if others or self._denies_rows():
            self.choices.doubt(0.6 if others else 0.4, "rows that are not so, or others that have none")
        read = (c for e in (*spec.groups, *spec.measures, *map(plain, self.shown)) for c in e.find_all(exp.Column))
        if any(self.world.graph.is_ambiguous(self.main.name, column.table) for column in read):
            self.choices.doubt(0.5, "rows to which several keys lead")
        if self._asks_another_unit():
            self.choices.doubt(0.2, "figures in another unit")
        shares = any(isinstance(each, exp.Div) for each in spec.measures)
        if shares and self.extra:
            self.choices.doubt(0.3, "a share of rows that compare")  # "what share of oaks is taller than wide?"
        self.choices.doubt(0.05, "one figure in an order", when=spec.order and spec.measures and not spec.groups)
        self._doubt_those_without(spec)
        if spec.gives_figures:
            of_groups = (c for each in spec.groups if (c := self.world.column_of(each)) is not None)
            keys = [c for c in of_groups if self.world.is_unique(c)]
            tied = {hop.own for c in keys for hop in self.world.graph.hops(self.main.name) if hop.theirs == plain(c)}
            shown = [c for c in self.shown if plain(c) not in {*spec.groups, *tied}]
            extra = [plain(c) for c in shown]
            ranks = [k for k, item in enumerate(self.sentence.items) if item.kind == "superlative"]
            after = [m for item in self.sentence.items[max(ranks, default=len(items)) :] for m in item.meanings]
            late = [getattr(m, "thing", None) for m in after]  # "the plots with the most people wounded"
            if any(any(c is m for m in late) or all(c.relation is not key.relation for key in keys) for c in shown):
                # Beside groups, what a key does not tell makes groups of its own.
                their = {"their", "its"} & {self.sentence.text(k) for k in range(len(self.sentence.items))}
                likely = 0.9 if their and not shares else 0.45
                self.choices.doubt(likely, "columns beside a figure")
                if likely < 0.5 and spec.measures:  # or they only say what rows are of: "for users on ios"
                    extra = self.choices.pick("beside", [([], 1.0), (extra, 0.97)])
            return replace(spec, groups=(*spec.groups, *extra)) if extra else spec
        if self._lists_amounts() and self.choices.pick("amounts", [("rows", 1.0), ("SUM", 0.97)]) == "SUM":
            return replace(spec, measures=tuple(aggregate("SUM", c) for c in self.shown))
        return self._rows(spec)

    def _lists_amounts(self) -> bool:
        """Return whether only amounts of many rows are asked for, which may mean their sum: "votes in Bern"."""
        tests, opens = self.conditions.tests, any(item.kind in ("column", "value") for item in self.sentence.items[:1])
        single = any(isinstance(t.condition, exp.In) or self.world.is_unique(t.column) for t in tests)
        amounts = bool(self.shown and tests) and all(c.sums and c.relation is self.main for c in self.shown)
        return amounts and opens and not (single or self.partial or self.names_main or self.order or self.searches)

    def _denies_rows(self) -> bool:
        """Return whether it is said that there are no such rows: "who has no open orders?"."""
        for i, item in enumerate(self.sentence.items):
            if item.kind == "not" and self.sentence.text(i) in ("no", "without"):
                k = self.sentence.neighbour(i, 1, gap=1, over=("value", "column"))
                noun = k is not None and k > i + 1 and self.sentence.items[k].kind == "table"
                if noun and k is not None and self.main in self.sentence.items[k].meanings:
                    return True
        return False

    def _asks_another_unit(self) -> bool:
        """Return whether figures are asked for in a unit that they are not in: "total length in miles"."""
        units = [item.meanings[0] for item in self.sentence.items if item.how == "unit"]
        computed = [c for measure in self.measures if (c := self.world.column_of(measure)) is not None]
        return any(english().factor(unit, column.unit) != 1 for unit in units for column in (*computed, *self.shown))

    def _final_conditions(self) -> Iterator[exp.Expr]:
        """Yield the conditions; those on what a row has several of look for one of them."""
        alternatives, hops = self._has_alternatives(), self.conditions.hops
        tests = [self._by_key(test, hops[test.place]) if test.place in hops else test for test in self.conditions.tests]
        single = [t for t in tests if not t.negated and self.world.is_single(self.main.name, t.column.relation.name)]
        if alternatives and len(tests) == len(single) == 2 and not self.extra:
            yield exp.or_(*(test.condition for test in tests))
            return
        either = any(self.sentence.text(k) == "or" for k in range(len(self.sentence.items)))
        equal = [t.column for t in single if isinstance(t.condition, exp.EQ | exp.In) and t.place not in hops]
        valued = [id(column) for column in equal if either or not column.column.array]  # a list may hold both
        if alternatives or len(valued) > len({*valued}):
            self.choices.doubt(0.1, "conditions that are no more than alternatives")
        by_relation: dict[tuple[str, bool], list[Test]] = {}
        ways = self.world.graph.ways(self.main.name)
        for test in tests:
            own = test.column.relation
            through = {hop.right for hop in ways[own.name]}
            inside = any(i < test.place and relation.name in through for i, relation in self.denied)
            thing = self._thing() if own is self.main else None
            solely = not test.negated and bool(_SOLELY & {token.folded for token in self.sentence.links.tokens})
            if thing is not None and (solely or (test.never and test.negated)):
                # Towns that never had a fair are those none of whose rows is one; "with only fairs", all of whose are.
                so = self.conditions.deny(test) if test.negated else test.condition
                other = self.conditions.deny(replace(test, never=True)) if solely else test.condition
                none = exp.Not(this=self._held_by(thing, other))
                whole = exp.and_(so.copy(), none) if solely else none
                yield self.choices.pick(("never", test.place), [(whole, 1.0), (so, 0.97)])
            elif not inside and self.world.is_single(self.main.name, own.name):
                yield self.conditions.deny(test) if test.negated else test.condition
            else:
                by_relation.setdefault((own.name, inside or test.negated), []).append(test)
        for _, relation in self.denied:  # "no visits in May" are none of these, rather than none and some
            if not any(no and relation.name in (n, *(h.right for h in ways[n])) for n, no in by_relation):
                yield self._member(relation, (), wanted=False)
        for (name, negated), of in by_relation.items():
            yield self._member(self.world.catalog.relation(name), [t.condition for t in of], wanted=not negated)

    def _by_key(self, test: Test, hop: Hop) -> Test:
        """Return the test that the rows which one of several keys leads to fulfil a condition."""
        held = exp.select(hop.theirs.copy()).from_(table_of(hop.right)).where(test.condition.copy())
        found = exp.In(this=hop.own.copy(), query=held.subquery())
        found.meta[JOINS] = True
        column = self.world.index.column(self.main.name, hop.left_column)
        return replace(test, column=column or test.column, condition=found)

    def _rank_first(self, conditions: Sequence[exp.Expr]) -> exp.Expr:
        """Return the condition that a row has the most of all in its group that fulfil others."""
        *groups, most = self.firsts
        best = select_of(QuerySpec(self.main.name, (), (most,), tuple(conditions), tuple(groups)), self.world.graph)
        best.set("order", None)
        return exp.In(this=exp.Tuple(expressions=[each.copy() for each in (*groups, most.this)]), query=best.subquery())

    def _held_by(self, thing: exp.Expr, condition: exp.Expr) -> exp.Expr:
        """Return the condition that some row of a thing fulfils another condition."""
        held = exp.select(thing.copy()).from_(table_of(self.main.name)).where(condition, is_there(thing))
        return exp.In(this=thing.copy(), query=held.subquery())

    def _thing(self) -> exp.Expr | None:
        """Return what alone is asked for, and has several rows."""
        alone = len(self.shown) == 1 and not (self.measures or self.groups)
        several = alone and self.shown[0].relation is self.main and not self.world.is_unique(self.shown[0])
        return plain(self.shown[0]) if several else None

    def _has_alternatives(self) -> bool:
        """Return whether "or" stands between what is said of two columns."""
        items, kinds = self.sentence.items, ("value", "column", "period", "compare", "number")
        for k in [k for k in range(len(items)) if self.sentence.text(k) == "or"]:
            sides = [self.sentence.neighbour(k, step, over=("by", "not", "table", "noun")) for step in (-1, 1)]
            said = [items[i].meanings for i in sides if i is not None and items[i].kind in kinds]
            of = [{id(getattr(m, "column", getattr(m, "thing", None))) for m in each} for each in said]
            if len(of) == 2 and not of[0] & of[1]:  # two periods, or two comparisons, are of one column
                return True
        return False

    def _entity(self) -> Test | None:
        """Return the test that names one row."""
        for test in self.conditions.tests:
            named = any(test.column is c for c in name_columns(self.world.columns(self.main.name)))
            one = isinstance(test.condition, exp.EQ) and not test.negated
            one = one and not (self.names_main and not self.world.is_unique(test.column))
            if named and one and test.column.kind == "text":
                return test
        return None

    def _rows(self, spec: QuerySpec) -> QuerySpec:
        columns = self.world.columns(self.main.name)
        named = name_columns(columns)
        entity = self._entity()
        tested = [t.column for t in self.conditions.tests if t.column.relation is self.main]
        first = self.sentence.links.tokens[0].folded if self.sentence.links.tokens else ""
        if entity is not None and first in _ASKING and not self.shown:
            asked = [t for t in self.conditions.tests if t is not entity]
            if asked:
                kept = [t.condition for t in self.conditions.tests if t not in asked]
                spec = spec.with_conditions([*kept, *self.extra])
                self.shown += [t.column for t in asked]
        if not self.shown and not self.names_main:
            held = [t.column for t in self.conditions.tests if self.sentence.items[t.place].kind == "hold"]
            # "Reviews that mention noise" are rows, though a column has their name.
            self.names_main = any(column.words[-1:] == relation_words(self.main)[-1:] for column in held)
            self.shown += [] if self.names_main else held
        # "Rabbits with their owners" are rows, though a value names them.
        theirs = {"their", "its"} & {self.sentence.text(k) for k in range(len(self.sentence.items))}
        self.names_main |= bool(theirs) and bool(self.shown)
        asks = self.shown or self.names_main or self.ordering
        self._doubt_names()
        if self.partial and not asks:
            return replace(spec, columns=())
        if not (asks or entity is not None or self.conditions.tests or self.extra):
            raise NotComposed
        if not (asks or self.searches):
            self.choices.doubt(0.6, "nothing says what is asked for")
        if first == "where" and not self.shown and self.ordering:
            self.choices.doubt(0.4, "it asks for a place")
        listed: Iterable[LinkedColumn]
        of_kind = all(c.kind in ("text", "boolean", "date") or c.relation is not self.main for c in self.shown)
        for named_by in (c for c in self.shown if c is self.world.index.name_of(c.relation) and c not in named):
            way = self.world.graph.ways(self.main.name)[named_by.relation.name]
            key = self.world.index.column(self.main.name, way[0].left_column) if len(way) == 1 else None
            of_kind &= key is None or not (way[0].single and self.world.is_unique(key))  # a player is one person
        of_kind = of_kind and (not self.searches or self._lists_kinds())
        of_kind = of_kind and not self.ordering and entity is None and not theirs
        if self.shown and of_kind and not (self.names_main and any(c.is_measurable for c in self.shown)):
            if not any(c is each for c in self.shown for each in named) or not self.world.is_unique(named[0]):
                return self._kinds(spec)
        self.names_main |= self.searches  # a search shows which rows it found
        if self.shown:
            several = any(t.column is named[0] and isinstance(t.condition, exp.In) for t in self.conditions.tests)
            names = entity is None and (self.names_main or self.ordering or several)
            listed = [*named, *self.shown, *self.ordering] if names else self.shown
            if not self.searches:  # what was compared is shown beside
                amounts = [t.column for t in self.conditions.tests if not isinstance(t.condition, exp.EQ)]
                listed = [*listed, *(c for c in amounts if c.is_measurable and c.relation is self.main)]
        elif entity is not None and not self.ordering:
            listed = fact_columns(columns, tested)
            self.choices.doubt(0.85, "all facts of a row")
        else:
            listed = fact_columns(columns, [*tested, *self.ordering])
        prose = [c for c in (*tested, *self.read) if c.kind == "prose" and not c.column.array]
        listed = [*listed, *prose]
        one = entity is not None and (self.shown or self.world.is_unique(entity.column))
        only_shown = self.shown and not self.names_main and not all(c.kind == "number" for c in self.shown)
        named_alone = self.world.is_unique(named[0]) and (named[0].kind != "date" or named[0] in listed)
        if not one and not only_shown and not self.searches and not named_alone:
            others = (c for c in columns if c.kind != "prose" or spec.limit)  # the longest message is its text
            listed = [*listed, *(c for c in others if all(c is not each for each in listed))]
            listed = listed[:_WHOLE_ROW]
        if entity is not None and self.wishes:
            calls = tuple(answer(column, self._about_entity(entity)) for column, _ in self.wishes[:1])
            return replace(spec, columns=(*(plain(c) for c in named), *calls))
        unnamed = self.world.target_of(named[0]) is not None  # rows that only tie others have no name of their own
        shows = [*listed, *self.ordering]
        listed = [each for c in shows for each in (self._with_names(c) if unnamed or c in self.shown else [c])]
        shown = tuple(dict.fromkeys(plain(c) for c in listed if not c.column.private or c in self.shown))
        if self.searches and entity is None and not _EVERY.search(self.sentence.links.question):
            spec = replace(spec, limit=spec.limit or (_FOUND if self.wishes else _MOST_FACTS))
        return replace(spec, columns=shown)

    def _doubt_names(self) -> None:
        """Doubt columns of which more may be asked than that they are shown."""
        for k in [k for k, item in enumerate(self.sentence.items) if item.kind == "column"]:
            first = self.sentence.text(k).split()[0]
            if english().measured_by(first) or first in ("lowest", "highest", "most", "least", "best", "worst"):
                self.choices.doubt(0.5, f"{first} is a part of a name")  # `low_temp`, or the lowest of them
        if any(c.kind == "number" and c.words[-1] == "day" for c in self.shown):
            self.choices.doubt(0.6, "a day of any month")

    def _lists_kinds(self) -> bool:
        """Return whether a search asks of what kinds rows are: "what cuisines are there?"."""
        kinds = not self.names_main and not self.wishes and all(c.is_category or c.column.array for c in self.shown)
        asked = self.sentence.text(0) in ("what", "which", "list", "show")
        return asked and kinds and all(test.column not in self.shown for test in self.conditions.tests)

    def _kinds(self, spec: QuerySpec) -> QuerySpec:
        """Return the different values of columns that rows have in common."""
        self.shown = [c for i, c in enumerate(self.shown) if all(c is not each for each in self.shown[:i])]
        if len(self.shown) == 1:
            self._leave_out_missing(self.shown[0])
            spec = spec.with_conditions([*spec.conditions, *self.extra[-1:]])
        columns = dict.fromkeys(kinds_of(each) for c in self.shown for each in self._with_names(c))
        others = all(c.relation is not self.main for c in self.shown)  # each of these is listed once
        for test in [] if others else self.conditions.tests:
            if test.column.is_measurable and self.world.is_single(self.main.name, test.column.relation.name):
                columns[plain(test.column)] = None  # what was compared is shown beside
        named = any(c.names_rows and c.relation is self.main for c in self.shown)
        return replace(spec, columns=tuple(columns), distinct=not named)

    def _about_entity(self, entity: Test) -> str:
        """Return the question with "this restaurant" in the place of a row's name."""
        span, tokens = self.sentence.items[entity.place], self.sentence.links.tokens
        question = self.sentence.links.question
        before, after = question[: tokens[span.first].start], question[tokens[span.last - 1].end :]
        asked = f"{before}this {' '.join(relation_words(self.main))}{after}".strip().rstrip("?.! ")
        return asked[:1].lower() + asked[1:] + "?"
