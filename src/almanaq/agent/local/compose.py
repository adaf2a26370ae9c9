"""Composer: the spans of a cover → one QuerySpec over the rows of one relation, with the choices that were made."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from sqlglot import exp

from almanaq.agent.linking.amounts import Comparison, Superlative
from almanaq.agent.linking.columns import LinkedColumn, fact_columns, name_columns, relation_words
from almanaq.agent.linking.english import english
from almanaq.agent.linking.index import Named
from almanaq.agent.local.choices import Choices
from almanaq.agent.local.conditions import Conditions, Test, denied
from almanaq.agent.local.expressions import aggregate, answer, compared, count, is_there, part, plain, text, tables_in
from almanaq.agent.local.joins import Hop, key_of, table_of
from almanaq.agent.local.search.phrases import Phrase
from almanaq.agent.local.search.wishes import is_searched, seeks, wishes_of
from almanaq.agent.local.sentence import Sentence
from almanaq.agent.local.spec import Order, QuerySpec
from almanaq.agent.local.texts import text_tests
from almanaq.agent.local.world import World
from almanaq.suql.catalog.relations import Relation

_DOWNWARD = frozenset(("least", "bottom", "rare"))
_HARM = frozenset(
    "delay error fault loss cost price debt crime death wait complaint defect latency churn risk damage".split()
)
_TIMELY = frozenset(("date", "year", "released", "founded"))
_ASKING = frozenset("is are was were does do did has have had can".split())
_LEFT_OVER = {"unknown": 0.1, "value": 0.15, "column": 0.3, "table": 0.6, "noun": 0.8, "number": 0.1, "compare": 0.1}
_MOST_FACTS, _LONG_LIST, _WHOLE_ROW, _FOUND, _MOST_STARS = 5, 100, 16, 3, 5


def _is_kind(column: LinkedColumn) -> bool:
    """Return whether rows can be grouped by a column: a kind, a name, a key of something else, a year."""
    return column.kind in ("text", "boolean") or column.is_identifier or column.words[-1:] in (("year",), ("week",), ("month",))


class NotComposed(Exception):
    """The spans make no query over these rows."""


class Composer:
    """Composes one query.

    Args:
        main: the relation whose rows are asked for, or put together.
        partial: the question goes on from another, and need not say what is asked for.
    """

    def __init__(
        self, sentence: Sentence, world: World, main: Relation, choices: Choices, *, partial: bool = False
    ) -> None:
        self.sentence, self.world, self.main, self.choices, self.partial = sentence, world, main, choices, partial
        self.conditions = Conditions(sentence, world, main, choices)
        self.extra: list[exp.Expr] = []
        self.groups: list[exp.Expr] = []
        self.measures: list[exp.Expr] = []
        self.having: list[exp.Expr] = []
        self.order: list[Order] = []
        self.shown: list[LinkedColumn] = []
        self.limit: int | None = None
        self.offset = 0
        self.counts = self.distinct = self.names_main = False
        self.ordering: list[LinkedColumn] = []
        self.searches = is_searched(world, main)
        self.wishes: list[tuple[LinkedColumn, Phrase]] = []
        self.asides: tuple[str, ...] = ()

    def compose(self) -> QuerySpec:
        """Return the query; raises NotComposed where the words ask for nothing of these rows."""
        self._weigh_spans()
        if not self.searches:
            text_tests(self.sentence, self.world, self.main, self.extra, self.choices)
        self.conditions.holding_tests()
        self._name_tables()
        self._count_members()
        self.conditions.value_tests()
        self._compute()
        self._group()
        self._count()
        self._having()
        self.conditions.period_tests()
        self.conditions.number_tests()
        self._rank()
        self.conditions.missing_tests()
        self._sort()
        self.conditions.boolean_tests()
        self._compare_with_others()
        self._limit_by_number()
        if self.searches:
            self._rate()
            self._wish()
        self._take_shown()
        spec = self._finish()
        for span in self.sentence.unused():
            self.choices.doubt(_LEFT_OVER.get(span.kind, 0.3), f"unused {self.sentence.links.text(span)}")
        return spec

    # --- what is spoken of -----------------------------------------------------------------------------------------

    def _weigh_spans(self) -> None:
        for span in self.sentence.items:
            if span.kind in ("table", "noun") and span.how not in ("", "row") and span.sureness < 1:
                self.choices.doubt(span.sureness if span.kind == "table" else 0.8, self.sentence.links.text(span))
            elif span.how.startswith("misspelt"):
                self.choices.doubt(0.85, self.sentence.links.text(span))

    def _tables(self) -> Iterator[tuple[int, Relation]]:
        """Yield the spans of other relations that are not used yet."""
        for i in list(self.sentence.of("table")):
            relations = [r for r in self.sentence.items[i].meanings if r.name in self.world.graph.ways(self.main.name)]
            if relations:
                yield i, relations[0]

    def _name_tables(self) -> None:
        """Use the nouns of the rows themselves, and turn "without orders", "never ordered" into conditions."""
        sentence = self.sentence
        for i in list(sentence.of("table", "noun")):
            span = sentence.items[i]
            if span.kind == "noun" or self.main in span.meanings:
                before = sentence.neighbour(i, -1, gap=1)
                kind = sentence.items[before].kind if before is not None else ""
                if kind in ("by", "compare", "superlative", "count") and before is not None and not sentence.used[before]:
                    continue
                sentence.take(i)
                self.names_main = True
        for item in sentence.items:
            last = sentence.links.tokens[item.last - 1].stem
            if item.kind == "value" and item.size > 1 and (last,) == relation_words(self.main)[-1:]:
                self.names_main = True
        for i, relation in self._tables():
            if self.world.is_single(self.main.name, relation.name):
                continue
            before = sentence.neighbour(i, -1, gap=2)
            if before is not None and sentence.items[before].kind == "not" and not sentence.used[before]:
                sentence.take(before, i)
                tests = self._tests_of(relation)
                self.extra.append(self._member(relation, tests, wanted=False))

    def _tests_of(self, relation: Relation) -> list[exp.Expr]:
        """Take the tests so far that are of the columns of a relation."""
        own = [test for test in self.conditions.tests if test.column.relation is relation]
        self.conditions.tests = [test for test in self.conditions.tests if test not in own]
        return [denied(test.condition) if test.negated else test.condition for test in own]

    def _member(
        self, relation: Relation, tests: Sequence[exp.Expr], *, wanted: bool = True, having: exp.Expr | None = None
    ) -> exp.Expr:
        """Return the condition that rows of another relation belong to a row, or that none does."""
        hop, *rest = self.world.graph.ways(self.main.name)[relation.name]
        inner = exp.select(hop.theirs.copy()).from_(table_of(hop.right))
        for step in rest:
            inner = inner.join(table_of(step.right), on=exp.EQ(this=step.own.copy(), expression=step.theirs.copy()))
        for test in tests:
            inner = inner.where(test.copy())
        if not wanted and having is None:
            inner = inner.where(is_there(hop.theirs.copy()))
        if having is not None:
            inner = inner.group_by(hop.theirs.copy()).having(having)
        found: exp.Expr = exp.In(this=hop.own.copy(), query=inner.subquery())
        return found if wanted else exp.Not(this=found)

    def _count_members(self) -> None:
        """Turn "with more than 3 orders" into a condition on how many rows of another relation belong to a row."""
        sentence = self.sentence
        for i in list(sentence.of("compare")):
            k = sentence.neighbour(i, 1, gap=1)
            if k is None or sentence.items[k].kind != "table" or sentence.used[k]:
                continue
            relations = [r for r in sentence.items[k].meanings if r is not self.main and r.name in self.world.graph.ways(self.main.name)]
            if not relations or self.world.is_single(self.main.name, relations[0].name):
                continue
            comparison: Comparison = sentence.items[i].meanings[0]
            low = comparison.sign in ("<", "<=") or (comparison.sign == "=" and comparison.numbers[0] == 0)
            sentence.take(i, k)
            if low:
                flipped = replace(comparison, sign=">=" if comparison.sign == "<" else ">")
                having = self.conditions.compare(count(), flipped)
                self.extra.append(self._member(relations[0], (), wanted=False, having=having))
            else:
                self.choices.doubt(0.85, "members counted without being shown")
                self.extra.append(self._member(relations[0], (), having=self.conditions.compare(count(), comparison)))

    # --- figures ---------------------------------------------------------------------------------------------------

    def _compute(self) -> None:
        """Turn "average price" into measures; "average and maximum" share a column."""
        sentence = self.sentence
        over = ("value", "period", "table", "noun", "aggregate", "and", "distinct", "superlative")
        for i in list(sentence.of("aggregate")):
            function = sentence.items[i].meanings[0]

            def fits(column: LinkedColumn, function: str = function) -> bool:
                return column.is_measurable or (function in ("MIN", "MAX") and column.kind == "date")

            k = sentence.neighbour(i, 1, gap=4, over=over)
            column = self.conditions.column(k, fits, "measure") if self._is_column(k) else None
            if column is None:
                k = sentence.neighbour(i, -1, gap=2)
                column = self.conditions.column(k, fits, "measure") if self._is_column(k) else None
            if column is None:
                self._total_of_rows(i, function)
                continue
            assert k is not None
            sentence.take(i)
            self._measure(function, column, k)
            following = sentence.neighbour(k, 1, gap=1)
            while following is not None and sentence.items[following].kind == "and":
                after = sentence.neighbour(following, 1, gap=1)
                if not self._is_column(after) or after is None:
                    break
                beside = self.conditions.column(after, fits, "measure")
                if beside is None:
                    break
                self._measure(function, beside, after)
                following = sentence.neighbour(after, 1, gap=1)

    def _is_column(self, k: int | None) -> bool:
        return k is not None and self.sentence.items[k].kind == "column"

    def _measure(self, function: str, column: LinkedColumn, k: int) -> None:
        self.sentence.take(k)
        if function == "SUM" and english().sums(column.words) is False:
            self.choices.doubt(0.7, "sum of a rate")
        self.measures.append(aggregate(function, column))

    def _total_of_rows(self, i: int, function: str) -> None:
        k = self.sentence.neighbour(i, 1, gap=2)
        if function == "SUM" and k is not None and self.sentence.items[k].kind in ("table", "noun"):
            if self.main in self.sentence.items[k].meanings or self.sentence.items[k].kind == "noun":
                self.sentence.take(i, k)
                self.measures.append(count())
                self.counts = True
        elif function == "SUM" and k is not None and self.sentence.items[k].kind == "count":
            self.sentence.take(i)

    def _count(self) -> None:
        """Turn "how many", "number of" into a measure: of rows, of different values, or of what a column sums up."""
        sentence = self.sentence
        for i in list(sentence.of("count")):
            k = sentence.neighbour(i, 1, gap=2)
            distinct = k is not None and sentence.items[k].kind == "distinct"
            if distinct and k is not None:
                sentence.take(k)
                k = sentence.neighbour(k, 1, gap=2)
            sentence.take(i)
            if k is not None and sentence.items[k].kind in ("value", "missing", "not", "period"):
                after = sentence.neighbour(k, 1, gap=0, over=("value", "period"))
                k = after if after is not None and sentence.items[after].kind in ("table", "noun") else k
            kind = sentence.items[k].kind if k is not None else ""
            if k is None or kind not in ("table", "column", "noun"):
                self._count_rows()
            elif kind == "table":
                self._count_table(k)
            elif kind == "noun":
                sentence.take(k)
                self.names_main = True
                self._count_rows()
            else:
                self._count_column(k, distinct)

    def _count_rows(self) -> None:
        self.counts = True
        self.measures.append(count())

    def _count_table(self, k: int) -> None:
        meanings = self.sentence.items[k].meanings
        self.sentence.take(k)
        if self.main in meanings:
            self.names_main = True
            self._count_rows()
            return
        relation = next((r for r in meanings if self.world.is_single(self.main.name, r.name)), None)
        key = key_of(relation) if relation is not None else None
        column = self.world.index.column(relation.name, key) if relation is not None and key else None
        if column is None:
            raise NotComposed
        self.choices.doubt(0.5, "rows of another table counted")
        self.counts = True
        self.measures.append(aggregate("COUNT", column))

    def _count_column(self, k: int, distinct: bool) -> None:
        column = self.conditions.column(k, role="counted")
        if column is None:
            raise NotComposed
        self.sentence.take(k)
        named_like_rows = column.words == relation_words(column.relation)[-1:] and column.relation is self.main
        if column.kind == "prose" or (named_like_rows and not distinct):
            self._count_rows()
            return
        options = [("COUNT", 0.95)]
        if column.is_measurable and not distinct:
            sums = english().sums(column.words)
            options = [("SUM", 0.95 if sums else 0.75), ("COUNT", 0.3)]
        elif column is self.world.index.name_of(self.main) and not distinct:
            options = [("ROWS", 0.9), ("COUNT", 0.75)]
        elif column.kind == "boolean":
            options = [("ROWS", 0.95)]
            self.sentence.used[k] = False
        chosen = self.choices.pick(("count", k), options)
        if chosen == "ROWS":
            self._count_rows()
        else:
            self.counts = True
            self.measures.append(aggregate(chosen, column))

    # --- groups ----------------------------------------------------------------------------------------------------

    def _group(self) -> None:
        """Turn "by region and year", "per customer" into groups."""
        sentence = self.sentence
        for i in list(sentence.of("by")):
            k = sentence.neighbour(i, 1, gap=2, over=("distinct",))
            if k is None:
                continue
            kind = sentence.items[k].kind
            if kind in ("aggregate", "count") or (sentence.used[k] and kind == "column"):
                sentence.take(i)  # "top 5 cities by total sales" ranks
                continue
            if self._ranks_by(i, k):
                continue
            taken = False
            while k is not None and self._group_by(k):
                taken = True
                k = self._next_listed(k)
            if taken:
                sentence.take(i)
        for column in self.conditions.versus:
            if plain(column) not in self.groups:
                self.groups.append(plain(column))

    def _next_listed(self, k: int) -> int | None:
        following = self.sentence.neighbour(k, 1, gap=1)
        if following is None:
            after = k + 1
            comma = self.sentence.text(after) == ","
            return self.sentence.neighbour(after, 1, gap=1) if comma else None
        if self.sentence.items[following].kind not in ("and", "by"):
            return None
        after = self.sentence.neighbour(following, 1, gap=1)
        groups = after is not None and self.sentence.items[after].kind in ("column", "part", "table")
        if groups:
            self.sentence.take(following)
        return after if groups else None

    def _ranks_by(self, i: int, k: int) -> bool:
        """Return whether "by" says what rows are ranked or sorted by, rather than grouped."""
        sentence = self.sentence
        if sentence.items[k].kind != "column" or sentence.has_kind("count") or sentence.text(i) not in ("by", "according to"):
            return False
        column = self.conditions.column(k, lambda c: c.is_measurable or c.kind == "date", "ranked")
        if column is None or self.measures:
            return False
        if sentence.has_kind("superlative"):
            sentence.take(i)  # the column stays for what ranks
            return True
        others = [j for j in sentence.of("column") if j != k and j < i and self._is_measurable(j)]
        if others:
            return False
        sentence.take(i, k)
        self.order.append((compared(column), column.is_measurable))
        self.ordering.append(column)
        self.choices.doubt(0.6, "order or groups")
        return True

    def _is_measurable(self, j: int) -> bool:
        return any(isinstance(n, Named) and isinstance(n.thing, LinkedColumn) and n.thing.is_measurable for n in self.sentence.items[j].meanings)

    def _group_by(self, k: int) -> bool:
        sentence, span = self.sentence, self.sentence.items[k]
        if span.kind == "column":
            column = self.conditions.column(k, lambda c: c.kind != "prose", "group")
            if column is None:
                return False
            sentence.take(k)
            self._add_group(column)
            return True
        if span.kind == "part":
            return self._group_by_part(k)
        if span.kind == "table":
            relation = next((r for r in span.meanings if r.name in self.world.graph.ways(self.main.name)), None)
            if relation is None:
                return False
            sentence.take(k)
            following = k + 1 < len(sentence.items) and self._is_column(k + 1)
            if following:
                column = self.conditions.column(k + 1, lambda c: c.relation is relation, "group")
                if column is not None:
                    sentence.take(k + 1)
                    self._add_group(column)
                    return True
            if relation is self.main:
                named = self.world.index.name_of(relation)
                if named.kind == "text" and not named.names_rows and named.distinct > 1:
                    self._add_group(named)
                else:
                    self.choices.doubt(0.8, "per row")
                return True
            if not self.world.is_single(self.main.name, relation.name):
                raise NotComposed
            self._add_group(self.world.index.name_of(relation))
            return True
        return False

    def _add_group(self, column: LinkedColumn) -> None:
        """Group by a column; by the key too where rows of another relation may share a name."""
        if column.relation is not self.main and not self.world.is_single(self.main.name, column.relation.name):
            raise NotComposed
        if column.relation is not self.main and column is self.world.index.name_of(column.relation):
            way: tuple[Hop, ...] = self.world.graph.ways(self.main.name)[column.relation.name]
            key = self.world.index.column(column.relation.name, way[-1].right_column)
            if key is not None and key is not column and column.relation.key != (column.name,) and not key.column.private:
                self.groups.append(plain(key))
            self.groups += [plain(each) for each in name_columns(self.world.columns(column.relation.name))]
            return
        if plain(column) not in self.groups:
            self.groups.append(plain(column))

    def _group_by_part(self, k: int) -> bool:
        """Group by a part of a date; a column that is called so goes before."""
        name = self.sentence.items[k].meanings[0]
        options = [(c, self.world.reach(self.main.name, c)) for each in self.world.graph.ways(self.main.name)
                   for c in self.world.columns(each) if c.words in ((name,), (name, "number"))]
        options = [(c, w) for c, w in options if w > 0.5]
        if options:
            self.sentence.take(k)
            self._add_group(self.choices.pick(("part", k), options))
            return True
        after = self.sentence.neighbour(k, 1, gap=1)
        if after is None or not self._is_column(after) or self.sentence.used[after]:
            after = next((j for j in self.sentence.of("column") if self._is_dated(j)), None)
        dates = [(c, 0.9 if c.words == ("date",) else 0.8) for c in self.world.dates(self.main.name)]
        if after is not None and self._is_column(after) and not self.sentence.used[after]:
            named = self.conditions.column(after, lambda c: c.kind == "date", "dated")
            if named is not None:
                dates = [(named, 1.0)]
                self.sentence.take(after)
        if name == "decade":
            years = [c for c in self.world.columns(self.main.name) if c.kind == "number" and "year" in c.words]
            dates = [(c, 0.95) for c in years] or dates
        if not dates:
            dates = [(c, 0.7) for each in self.world.graph.ways(self.main.name)
                     if each != self.main.name and self.world.is_single(self.main.name, each) for c in self.world.dates(each)]
        if not dates:
            return False
        self.sentence.take(k)
        if len(dates) == 1:
            dates = [(dates[0][0], 1.0)]
        self.groups.append(part(name, self.choices.pick(("part", k), dates), self.world.dialect))
        return True

    def _is_dated(self, j: int) -> bool:
        named = self.sentence.items[j].meanings
        return any(isinstance(n, Named) and isinstance(n.thing, LinkedColumn) and n.thing.kind == "date" for n in named)

    def _subject(self, near: int | None = None) -> tuple[int, LinkedColumn | None] | None:
        """Return the noun that is asked for: the first column of kinds, part or table that nothing else uses."""
        sentence = self.sentence
        places = [i for i in range(len(sentence.items)) if sentence.items[i].kind in ("column", "table", "part", "noun")]
        for i in places:
            span = sentence.items[i]
            if sentence.used[i] and not (span.kind in ("table", "noun") and (span.kind == "noun" or self.main in span.meanings)):
                continue
            if span.kind == "column":
                column = self.conditions.column(i, _is_kind, "subject")
                if column is not None:
                    return i, column
                continue
            return i, None
        return None

    def _group_by_subject(self) -> bool:
        """Group by the noun that is asked for; False where that is a row itself."""
        subject = self._subject()
        if subject is None:
            return bool(self.groups)
        i, column = subject
        span = self.sentence.items[i]
        if column is not None:
            if column is self.world.index.name_of(self.main) and column.names_rows:
                return False
            self.sentence.take(i)
            self._add_group(column)
            self._leave_out_missing(column)
            return True
        if span.kind == "part":
            return self._group_by_part(i)
        if span.kind == "table" and self.main not in span.meanings:
            return self._group_by(i)
        return False

    def _leave_out_missing(self, column: LinkedColumn) -> None:
        if column.kind == "text" and "" in self.world.index.values_of(column):
            self.extra.append(exp.NEQ(this=plain(column), expression=text("")))
        elif self.world.graph.finds(column.relation.name, exp.Is(this=plain(column), expression=exp.Null())):
            self.extra.append(is_there(plain(column)))

    def _having(self) -> None:
        """Turn "cities with more than 200 orders", "states with total sales over 1000" into conditions on groups."""
        sentence = self.sentence
        for i in list(sentence.of("compare")):
            comparison: Comparison = sentence.items[i].meanings[0]
            k = sentence.neighbour(i, 1, gap=1)
            counted = k is not None and (
                sentence.items[k].kind == "table" and self.main in sentence.items[k].meanings
                or sentence.items[k].kind == "noun" and sentence.items[k].how == "row"
            )
            if counted and k is not None:
                sentence.take(k)
                if not self._group_by_subject():
                    raise NotComposed
                sentence.take(i)
                if self.counts:
                    self.measures = []
                    self.choices.doubt(0.4, "number of groups")
                self.having.append(self.conditions.compare(count(), comparison))
                if count() not in self.measures:
                    self.measures.append(count())
                continue
            before = sentence.neighbour(i, -1, gap=3)
            computed = [m for m in self.measures if not isinstance(m, exp.Count)]
            if computed and before is not None and sentence.used[before] and sentence.items[before].kind == "column":
                if self.groups or self._group_by_subject():
                    sentence.take(i)
                    column = self.world.column_of(computed[-1])
                    self.having.append(self.conditions.compare(computed[-1], comparison, column))

    # --- ranking ---------------------------------------------------------------------------------------------------

    def _rank(self) -> None:
        """Turn superlatives into an order with a limit."""
        for i in list(self.sentence.of("superlative")):
            meant: Superlative = self.sentence.items[i].meanings[0]
            self.sentence.take(i)
            down = meant.extreme not in _DOWNWARD
            if meant.extreme in ("common", "rare"):
                self._rank_groups(count(), down, meant)
                continue
            if self.measures and not self.groups and self._computed_near(i):
                self._rank_groups(self.measures[-1], self._direction(meant, down, None), meant)
                continue
            if self.measures and self.groups and self._computed_near(i):
                self._rank_by(self.measures[-1], self._direction(meant, down, None), meant)
                continue
            self._rank_by_column(i, meant, down)

    def _computed_near(self, i: int) -> bool:
        """Return whether what was computed is what ranks: "highest average age", "top 5 by number of orders"."""
        after = self.sentence.neighbour(i, 1, gap=3, over=("table", "noun", "column", "by", "value"))
        kind = self.sentence.items[after].kind if after is not None else ""
        return kind in ("aggregate", "count") or (not kind and self.sentence.has_kind("by"))

    def _direction(self, meant: Superlative, down: bool, column: LinkedColumn | None) -> bool:
        """Return whether the largest comes first; what is best of a delay is the least."""
        if meant.extreme != "measured" or not meant.measured:
            return down
        good = meant.measured[0][0] == "rating"
        up = meant.measured[0][1]
        if not good:
            return up
        named = column or (self.world.column_of(self.measures[-1]) if self.measures else None)
        if named is None or {"rating", "score", "grade", "review"} & set(named.words) or {"rating"} & named.roles:
            return up
        if set(named.words) & _HARM:
            return not up
        return self.choices.pick("direction", [(up, 0.9), (not up, 0.75)])

    def _rank_by_column(self, i: int, meant: Superlative, down: bool) -> None:
        sentence = self.sentence
        k = sentence.neighbour(i, 1, gap=2, over=("value", "period"))
        kind = sentence.items[k].kind if k is not None else ""
        if kind == "table" and k is not None and meant.extreme in ("most", "least"):
            if self._most_rows(k, down, meant):
                return
        target = self._ranked_column(i, k)
        timely = meant.measured is not None and meant.measured[0][0] in _TIMELY
        if target is not None and timely and target[1].kind != "date" and not set(target[1].words) & _TIMELY:
            target = None  # the latest sales are those of the latest day
        if target is not None:
            place, column = target
            sentence.take(place)
            down = self._direction(meant, down, column)
        elif meant.measured is not None:
            reachable = [self.main.name, *(n for n in self.world.graph.ways(self.main.name) if n != self.main.name and self.world.is_single(self.main.name, n))]
            found = self.world.index.measured_by(meant.measured, reachable)
            options = [((c, up), (0.97 - 0.12 * rank) * self.world.reach(self.main.name, c)) for rank, (c, up) in enumerate(found)]
            if timely and not options:
                options = [((c, meant.measured[0][1]), 0.8) for c in self.world.dates(self.main.name)]
            if not options:
                sentence.used[i] = False
                return
            column, down = self.choices.pick(("superlative", i), options)
            if meant.extreme == "least":
                down = not down
        elif meant.extreme in ("most", "least") and self._group_by_subject_of_count(i, k):
            self._rank_groups(count(), down, meant)
            return
        else:
            sentence.used[i] = False
            return
        self._rank_rows_or_groups(column, down, meant)

    def _ranked_column(self, i: int, k: int | None) -> tuple[int, LinkedColumn] | None:
        """Return the column that a superlative ranks by: the one after it, else one that "by" left or that stands near."""
        sentence = self.sentence

        def fits(column: LinkedColumn) -> bool:
            return column.is_ranked

        measured = self.sentence.items[i].meanings[0].measured
        places = [k] if k is not None else []
        if measured is not None and self.world.index.measured_by(measured, [self.main.name]):
            by = [j for j in sentence.of("by") if j > i]
            places += [j for j in sentence.of("column") if by and j > by[0]]
        else:
            places += [j for j in sentence.of("column") if j > i] + [j for j in sentence.of("column") if j < i]
        for place in places:
            if not self._is_column(place) or sentence.used[place]:
                continue
            column = self.conditions.column(place, fits, "ranked")
            if column is not None:
                if place != k:
                    before = sentence.neighbour(place, -1, gap=2)
                    by = before is not None and sentence.items[before].kind == "by"
                    self.choices.doubt(1.0 if by else 0.75, "ranked by a column far off")
                return place, column
        return None

    def _most_rows(self, k: int, down: bool, meant: Superlative) -> bool:
        """Rank groups by how many rows they have: "which city has the most orders"."""
        if self.main not in self.sentence.items[k].meanings:
            return False
        self.sentence.take(k)
        return self._rank_groups(count(), down, meant)

    def _group_by_subject_of_count(self, i: int, k: int | None) -> bool:
        return k is not None and self.sentence.items[k].kind == "noun"

    def _rank_groups(self, measure: exp.Expr, down: bool, meant: Superlative) -> bool:
        if not self.groups and not self._group_by_subject():
            raise NotComposed
        if measure not in self.measures:
            self.measures.append(measure)
        self._rank_by(measure, down, meant)
        return True

    def _rank_by(self, expression: exp.Expr, down: bool, meant: Superlative) -> None:
        self.order.append((expression, down))
        self.limit, self.offset = meant.limit or 1, meant.offset

    def _rank_rows_or_groups(self, column: LinkedColumn, down: bool, meant: Superlative) -> None:
        """Rank rows by a column; groups, by the sum or mean of it, where a kind of rows is asked for."""
        if self.groups:  # "largest population per country"
            self.measures.append(aggregate("MAX" if down else "MIN", column))
            if self.names_main:
                self.choices.doubt(0.5, "the rows that rank first in each group")
            return
        subject = self._subject()
        kind = subject[1] if subject is not None else None
        other = subject is not None and self.sentence.items[subject[0]].kind == "table" and self.main not in self.sentence.items[subject[0]].meanings
        grouped = kind is not None and kind is not column and not kind.names_rows and self._asks_for(subject)
        if grouped or other:
            sums = english().sums(column.words)
            options = [("row", 0.85), ("SUM", 1.0 if sums else 0.3 if sums is False else 0.8), ("AVG", 0.8 if sums is False else 0.4)]
            if column.kind == "date":
                options[0] = ("row", 1.2)
            if meant.extreme in ("top", "bottom", "most", "least") and sums and meant.limit:
                options[1] = ("SUM", 1.0)
            chosen = self.choices.pick("rows or groups", options)
            if chosen != "row":
                self._rank_groups(aggregate(chosen, column), down, meant)
                return
        self.ordering.append(column)
        self._rank_by(compared(column), down, meant)

    def _asks_for(self, subject: tuple[int, LinkedColumn | None] | None) -> bool:
        return subject is not None

    def _sort(self) -> None:
        """Turn "sorted by price", "highest first" into an order."""
        sentence = self.sentence
        for i in list(sentence.of("order")):
            down = sentence.items[i].meanings[0] == "down"
            k = sentence.neighbour(i, 1, gap=2, over=("aggregate", "count"))
            direction = next((j for j in sentence.of("direction") if j > i), None)
            if direction is not None:
                sentence.take(direction)
                down = sentence.items[direction].meanings[0] == "descending"
            if k is None or not self._is_column(k):
                if self.measures and sentence.neighbour(i, 1, gap=2) is not None:
                    sentence.take(i)
                    self.order.append((self.measures[-1], down))
                continue
            column = self.conditions.column(k, role="sorted")
            if column is None:
                continue
            term = next((m for m in self.measures if self.world.column_of(m) is column), compared(column))
            sentence.take(i, k)
            self.order.append((term, down))
            if term not in self.measures:
                self.ordering.append(column)
        for i in list(sentence.of("direction")):
            down = sentence.items[i].meanings[0] == "descending"
            term = self.measures[-1] if self.measures else None
            if term is None and self.order:
                self.order[-1] = (self.order[-1][0], down)
                sentence.take(i)
            elif term is not None:
                sentence.take(i)
                self.order.append((term, down))

    # --- comparisons with something else than a number --------------------------------------------------------------

    def _compare_with_others(self) -> None:
        """Turn "more pages than The Salt Road", "stock below the reorder level" into conditions."""
        sentence = self.sentence
        signs = {">": exp.GT, "<": exp.LT}
        for i in list(sentence.of("than")):
            sign, measured = sentence.items[i].meanings[0]
            before, after = sentence.neighbour(i, -1, gap=2), sentence.neighbour(i, 1, gap=2)
            left = self.conditions.column(before, lambda c: c.is_measurable or c.kind == "date", "than") if before is not None and self._is_column(before) and not sentence.used[before] else None
            if left is None and measured:
                found = self.world.index.measured_by(measured, [self.main.name])
                left, before = (found[0][0], None) if found else (None, None)
            if left is None or after is None:
                continue
            if self._is_column(after):
                right = self.conditions.column(after, lambda c: c.kind == left.kind, "than")
                if right is not None:
                    sentence.take(i, after, *([before] if before is not None else []))
                    self.extra.append(signs[sign](this=compared(left), expression=compared(right)))
                continue
            named = [t for t in self.conditions.tests if t.place == after and t.column.relation is self.main]
            if named:
                self.conditions.tests.remove(named[0])
                sentence.take(i, *([before] if before is not None else []))
                other = exp.select(compared(left)).from_(table_of(self.main.name)).where(named[0].condition.copy())
                self.extra.append(signs[sign](this=compared(left), expression=other.subquery()))
                self.shown.append(left)

    # --- what is shown ---------------------------------------------------------------------------------------------

    def _take_shown(self) -> None:
        """Take the columns that are left: they are to be shown, or to be put together where there are groups."""
        sentence = self.sentence
        for i in list(sentence.of("distinct")):
            sentence.take(i)
            self.distinct = True
        for i in list(sentence.of("share")):
            sentence.take(i)
            self._take_share(i)
        for i in list(sentence.of("part")):
            before = sentence.words_before(i, 1)
            if before and before[0] in ("which", "what", "the") and self._group_by_part(i):
                expression = self.groups.pop()
                self.extra_shown = expression
                self.choices.doubt(0.5, "a part of a date is shown")
                self.groups.append(expression)
        grouped = bool(self.groups) and not self.measures
        for i in list(sentence.of("column")):
            column = self.conditions.column(i, role="shown")
            if column is None:
                continue
            single = column.relation is self.main or self.world.is_single(self.main.name, column.relation.name)
            if not single:
                continue
            if grouped and column.is_measurable:
                sums = english().sums(column.words)
                weights = {True: (1.0, 0.3), False: (0.3, 1.0), None: (0.85, 0.78)}[sums]
                function = self.choices.pick(("put together", i), [("SUM", weights[0]), ("AVG", weights[1])])
                sentence.take(i)
                self.measures.append(aggregate(function, column))
                continue
            sentence.take(i)
            if grouped and column.is_identifier and column.relation is self.main:
                self.measures.append(count())
                continue
            self.shown.append(column)
        for i, relation in self._tables():
            if relation is self.main:
                self.sentence.take(i)
                self.names_main = True
            elif self.world.is_single(self.main.name, relation.name):
                self.sentence.take(i)
                if not self.measures and self._asks_to_see(i):
                    self.shown.append(self.world.index.name_of(relation))
                else:
                    self.choices.doubt(0.85, f"mention of {relation.name}")
            else:
                before = self.sentence.words_before(i, 2)
                if {"with", "have", "has", "that", "had"} & set(before):
                    self.sentence.take(i)
                    self.extra.append(self._member(relation, self._tests_of(relation)))

    def _asks_to_see(self, i: int) -> bool:
        first = next((k for k, item in enumerate(self.sentence.items) if item.kind != "silent"), None)
        return i == first or "which" in self.sentence.words_before(i, 2) or "what" in self.sentence.words_before(i, 2)

    def _rate(self) -> None:
        """Take a comparison that nothing says the column of as one of the rating, where rows are rated."""
        rated = [c for c in self.world.columns(self.main.name) if "rating" in c.roles and c.is_measurable]
        for i in list(self.sentence.of("compare")):
            comparison: Comparison = self.sentence.items[i].meanings[0]
            if rated and not comparison.unit and max(comparison.numbers) <= _MOST_STARS:
                self.sentence.take(i)
                self.conditions.tests.append(Test(rated[0], self.conditions.compare(compared(rated[0]), comparison), i))

    def _wish(self) -> None:
        """Turn the words that are left into questions to the texts of the rows."""
        if not self.partial and not seeks(self.sentence, self.main) and self._entity() is None:
            self.choices.doubt(0.5, "nothing says that rows are wanted")
        self.wishes, self.asides = wishes_of(self.sentence, self.world, self.main)
        if self._entity() is not None and self._begins_with_verb():
            return  # the texts of one row are asked, and their answers shown
        for column, phrase in self.wishes:
            wanted = text("Yes" if phrase.wanted else "No")
            self.extra.append(exp.EQ(this=answer(column, phrase.question), expression=wanted))

    def _begins_with_verb(self) -> bool:
        first = self.sentence.links.tokens[0].folded if self.sentence.links.tokens else ""
        return first in _ASKING or first in ("how", "what")

    def _limit_by_number(self) -> None:
        """Take a number before the noun as how many rows are wanted: "3 places furthest south"."""
        for i in list(self.sentence.of("number")):
            k = self.sentence.neighbour(i, 1, gap=0)
            meant = self.sentence.items[i].meanings[0]
            opens = self.searches and all(item.kind == "silent" for item in self.sentence.items[:i])
            noun = opens or k is not None and self.sentence.items[k].kind in ("table", "noun", "column")
            if noun and (self.order or opens) and not meant.unit and meant.value > 1 and meant.value == int(meant.value):
                self.sentence.take(i)
                self.limit = int(meant.value)

    def _take_share(self, i: int) -> None:
        tests = self.conditions.tests
        if not tests:
            raise NotComposed
        verbs = [k for k, item in enumerate(self.sentence.items) if self.sentence.text(k) in ("are", "is", "were", "was", "have", "has", "with", "had", "been")]
        after = [t for t in tests if any(v > i and t.place > v for v in verbs)] or tests[-1:]
        self.conditions.tests = [t for t in tests if t not in after]
        held = exp.and_(*(denied(t.condition) if t.negated else t.condition.copy() for t in after))
        self.counts = True
        part_of = exp.Filter(this=count(), expression=exp.Where(this=held))
        percent = "percent" in self.sentence.text(i)
        whole = exp.Div(this=exp.Mul(this=exp.Literal.number("100.0" if percent else "1.0"), expression=part_of), expression=count())
        self.measures.append(whole)

    # --- the query -------------------------------------------------------------------------------------------------

    def _finish(self) -> QuerySpec:
        conditions = [*self._final_conditions(), *self.extra]
        spec = QuerySpec(
            self.main.name, (), tuple(dict.fromkeys(self.measures)), (), tuple(dict.fromkeys(self.groups)),
            tuple(self.having), tuple(self.order), self.limit, self.offset,
        ).with_conditions(conditions)  # fmt: skip
        if spec.groups and not spec.measures and not spec.having:
            if not self.shown and not self.partial:
                spec = replace(spec, measures=(count(),))
                self.choices.doubt(0.75, "groups are counted")
        if spec.gives_figures:
            extra = [plain(c) for c in self.shown if plain(c) not in spec.groups]
            if extra and not spec.groups:
                return self._shown_with_figures(spec, extra)
            return replace(spec, groups=(*spec.groups, *extra)) if extra else spec
        return self._rows(spec)

    def _shown_with_figures(self, spec: QuerySpec, extra: Sequence[exp.Column]) -> QuerySpec:
        """Return what is asked beside a figure: which groups it is of, at half the probability."""
        self.choices.doubt(0.45, "columns beside a figure")
        return replace(spec, groups=tuple(extra))

    def _final_conditions(self) -> Iterator[exp.Expr]:
        """Yield the conditions; those on what a row has several of look for one of them."""
        by_relation: dict[str, list[Test]] = {}
        for test in self.conditions.tests:
            own = test.column.relation
            if own is self.main or self.world.is_single(self.main.name, own.name):
                yield denied(test.condition) if test.negated else test.condition
            else:
                by_relation.setdefault(own.name, []).append(test)
        for tests in by_relation.values():
            relation = tests[0].column.relation
            if self.measures and not self.counts or any(relation.name in tables_in(m) for m in self.measures):
                self.choices.doubt(0.5, "figures of rows with others")
            for negated in (False, True):
                listed = [test.condition for test in tests if test.negated is negated]
                if listed:
                    yield self._member(relation, listed, wanted=not negated)

    def _entity(self) -> Test | None:
        """Return the test that names one row."""
        for test in self.conditions.tests:
            named = any(test.column is c for c in name_columns(self.world.columns(self.main.name)))
            if named and test.column.relation is self.main and not test.negated and test.column.kind == "text":
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
        if not self.shown:
            self.shown += self._asked_by_word(entity)
        if self.partial and not (self.shown or self.ordering or self.names_main):
            return replace(spec, columns=())
        if not self.shown and not self.names_main and not self.ordering and entity is None and not self.conditions.tests and not self.extra:
            raise NotComposed
        if not self.shown and not self.names_main and not self.ordering and not self.searches:
            self.choices.doubt(0.6, "nothing says what is asked for")
        listed: Iterable[LinkedColumn]
        whole = not spec.conditions and not spec.order
        of_kind = bool(self.shown) and not self.searches and not self.ordering and entity is None and all(c.kind in ("text", "boolean", "date") or c.relation is not self.main for c in self.shown)
        if of_kind and not (self.names_main and any(c.is_measurable for c in self.shown)):
            if not any(c is each for c in self.shown for each in named):
                if len(self.shown) == 1:
                    self._leave_out_missing(self.shown[0])
                    spec = spec.with_conditions([*spec.conditions, *self.extra[-1:]])
                return replace(spec, columns=tuple(plain(c) for c in self.shown), distinct=not self._has_name())
        if self.shown and entity is not None:
            listed = self.shown
        elif self.shown:
            listed = [*named, *self.shown, *self.ordering] if self.names_main or self.ordering else [*self.shown]
        elif entity is not None and not self.ordering:
            listed = fact_columns(columns, tested, _MOST_FACTS + 2)
            self.choices.doubt(0.7, "all facts of a row")
        else:
            listed = fact_columns(columns, [*tested, *self.ordering]) if whole or not tested else [*named, *tested, *self.ordering]
        if not named[0].names_rows and entity is None and not (self.shown and not self.names_main):
            listed = [*listed, *(c for c in columns if c.kind != "prose")][:_WHOLE_ROW]
        if entity is not None and self.wishes:
            asked = tuple(answer(column, self._about_entity(entity)) for column, _ in self.wishes[:1])
            return replace(spec, columns=(*(plain(c) for c in named), *asked))
        shown = tuple(dict.fromkeys(plain(c) for c in (*listed, *self.ordering) if not c.column.private or c in self.shown))
        if self.searches and entity is None:
            listed = fact_columns(columns, [*self.shown, *tested, *self.ordering])
            spec = replace(spec, limit=spec.limit or (_FOUND if self.wishes else _MOST_FACTS))
        limit = spec.limit if spec.limit is not None else (_LONG_LIST if whole and not self.shown else None)
        return replace(spec, columns=shown, limit=limit)

    def _about_entity(self, entity: Test) -> str:
        """Return the question with "this restaurant" in the place of a row's name."""
        span, tokens = self.sentence.items[entity.place], self.sentence.links.tokens
        question = self.sentence.links.question
        before, after = question[: tokens[span.first].start], question[tokens[span.last - 1].end :]
        asked = f"{before}this {' '.join(relation_words(self.main))}{after}".strip().rstrip("?.! ")
        return asked[:1].lower() + asked[1:] + "?"

    def _has_name(self) -> bool:
        return any(c.names_rows for c in self.shown)

    def _asked_by_word(self, entity: Test | None) -> list[LinkedColumn]:
        """Return the column that a question word asks for: "where" an address, "when" a day."""
        folded = [token.folded for token in self.sentence.links.tokens]
        columns = self.world.columns(self.main.name)
        for cue, roles in english().asked_by.items():
            if tuple(folded[: len(cue)]) != cue:
                continue
            if cue == ("when",):
                dates = [c for c in columns if c.kind == "date"]
                if len(dates) == 1:
                    return dates
            for role in roles:
                found = [c for c in columns if role in c.roles and c.kind != "prose" and not c.is_identifier]
                if found and entity is not None:
                    self.choices.doubt(0.8, f"{' '.join(cue)} asks for {found[0].name}")
                    return [min(found, key=lambda c: (c.words[-1] != role, len(c.words)))]
        return []

