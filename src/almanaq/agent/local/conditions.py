"""Conditions: values, numbers, days and what is missing, each turned into a test of the column that it is of."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from datetime import date
from itertools import pairwise

from sqlglot import exp

from almanaq.agent.linking.amounts import TIMES, Comparison, Number, Period
from almanaq.agent.linking.columns import NO_VALUE, LinkedColumn, relation_words
from almanaq.agent.linking.english import english, share_root
from almanaq.agent.linking.index import Named, ValueMeaning
from almanaq.agent.linking.joins import key_of, table_of
from almanaq.agent.linking.link import is_name
from almanaq.agent.linking.words import is_verb_form, stem, value_key
from almanaq.agent.local.presence import Presence, Test, on_scale
from almanaq.agent.local.spec import aggregate, compared, day, has_item, like, number, one_of, part, plain, text

SIGNS = {"=": exp.EQ, ">": exp.GT, "<": exp.LT, ">=": exp.GTE, "<=": exp.LTE, "<>": exp.NEQ}
_ALTERNATIVES = frozenset(
    ("or", ",", "and", "/", "&", "vs", "versus", "either", "the", "a", "in", "from", "as", "well", "(", ")")
)
_JOINED = re.compile(r"\b(?:or|and|nor|well)\b|[/&]")
_FEW_ROWS, _ITSELF, _PART_OF_NAME = 20, 0.6, 0.6
_AGREED = 1.15
"""How much more a column is meant where another one, of which the words are a value too, has it for the same row."""
_BY_KEY = 0.85
"""How near are rows to which several keys lead, one of which words may say."""
_AFTER_NOUN = 0.8
"""How near to the rows is at least what stands right after the noun that it is of: "a concert in 2014"."""
_DATING = frozenset(("date", "year", "day", "on", "at"))
_NEVER = frozenset(("no", "never", "without", "don't", "do not", "doesn't", "does not", "didn't", "did not"))


Listed = tuple[int, LinkedColumn, tuple[ValueMeaning, ...]]
"""The place of a value, the column that it is of, and what it means there."""


class Conditions(Presence):
    """The tests that the spans of a sentence make of the rows of `main`."""

    def value_tests(self) -> None:
        """Turn values into tests: several of one column into one."""
        sentence = self.sentence
        lists: list[list[Listed]] = []
        for i in list(sentence.of("value")):
            column = self._column_of_value(i) if sentence.text(i - 1) != "how" else None  # "how heavy" is no value
            if column is None:
                continue
            meant = tuple(m for m in sentence.items[i].meanings if m.column is column)
            sentence.take(i)
            last = lists[-1][-1] if lists else None
            same = last is not None and self.hops.get(last[0]) == self.hops.get(i)
            if last and last[1] is column and same and self._are_listed(last[0], i):
                lists[-1].append((i, column, meant))
            else:
                lists.append([(i, column, meant)])
        for listed in lists:
            self._add_values(listed)

    def _are_listed(self, i: int, j: int) -> bool:
        between = range(i + 1, j)
        said = {self.sentence.text(k) for k in range(i)}  # "how many in Bern and how many in Basel"
        return not {"but", ", but"} & {*self.sentence.words_between(i, j)} and all(
            self.sentence.items[k].kind in ("and", "not", "number")
            or self.sentence.text(k) in _ALTERNATIVES | said
            or (self.sentence.items[k].kind == "column" and self.sentence.used[k])
            for k in between
        )

    def _column_of_value(self, i: int) -> LinkedColumn | None:
        """Return the column of which a span is a value, by what stands around it and how near the column is."""
        span, sentence = self.sentence.items[i], self.sentence
        label = self._label(i)
        weights: dict[int, tuple[LinkedColumn, float]] = {}
        before = sentence.words_before(i, 2)
        sides = [meaning.column for meaning in span.meanings]
        for meaning in span.meanings:
            column = meaning.column
            weight = self.world.reach(self.main.name, column)
            if not weight:
                continue
            weight = max(weight, _BY_KEY) if self.parallel(column) else weight
            if len({*map(id, sides)}) > 1 and is_name(meaning) and sentence.links.text(span).islower():
                weight *= 0.8  # "the alien heroes" are of a kind, rather than called Alien
            loose = meaning.how == "item" and column.distinct > 300
            alone = meaning.how == "part" and len({m.value for m in span.meanings}) == 1
            alone = alone and self.sentence.links.text(span)[:1].isupper()
            how = {"": 1.0, "item": 0.8 if loose else 1.0, "form": 0.95, "code": 0.85, "part": 1.05 if alone else 0.8}
            weight *= how.get(meaning.how, 0.9)
            if label is not None and self._labels(label, column):
                weight *= 1.7
            if column.is_category or column.column.kind.value == "enum":
                weight *= 1.08
            if column is self.world.index.name_of(column.relation):
                weight *= 1.06
            weight *= 1 - 0.03 * len(column.words)
            if id(column) not in weights or weights[id(column)][1] < weight:
                weights[id(column)] = column, weight
        if not weights:
            return None
        options = self._apart(sorted(weights.values(), key=lambda each: -each[1]), span.meanings)
        name = self.world.index.name_of(self.main)
        called = any(item.kind == "table" and self.main in item.meanings for item in sentence.items)
        if called and len(options) > 1 and before[:1] in (["in"], ["within"]):  # what is in Selby is not Selby itself
            options = [(c, weight * (_ITSELF if c is name and c.names_rows else 1.0)) for c, weight in options]
        if len(options) == 1 and (reach := self.world.reach(self.main.name, options[0][0])) < 1:
            # No other column has it, however far this one is; which key leads there is another choice.
            keys, main, of = self.parallel(options[0][0]), self.main.name, options[0][0].relation.name
            sure = all(not meaning.how for meaning in span.meanings)
            sure = sure and bool(keys or not self.world.graph.is_ambiguous(main, of))
            near = (0.95 if sure else reach) if self.world.is_single(main, of) else 0.9 if sure and called else 0.8
            options = [(column, near * weight / (max(reach, _BY_KEY) if keys else reach)) for column, weight in options]
        column = self.choices.pick(("value", span.first), options)
        self._pick_hop(i, column)
        if column.relation is self.main and (target := self.world.target_of(column)) is not None:
            sentence.take(*self.said_of(i, column.name, target))  # "departing from OSL", of a `source_airport`
        if label is not None and self._labels(label, column):
            sentence.take(label)
        if i and sentence.items[i - 1].kind == "by" and sentence.text(i - 1) == "by":
            sentence.take(i - 1)
        return column

    def _apart(
        self, options: Sequence[tuple[LinkedColumn, float]], meant: Sequence[ValueMeaning]
    ) -> list[tuple[LinkedColumn, float]]:
        """Return the columns without those that say the same of a row as a likelier one: its name, and its code."""
        kept: dict[int, tuple[LinkedColumn, float]] = {}
        rows: list[tuple[str, exp.Expr, LinkedColumn, float]] = []
        graph, finds = self.world.graph, self.world.graph.finds
        hops = [way[-1] for way in graph.ways(self.main.name).values() if way and way[-1].single]
        for column, weight in options:
            values = {m.value for m in meant if m.column is column}
            # What refers to rows that are joined by it says of these what their key does.
            own: tuple[str, exp.Expr] = (column.relation.name, plain(column))
            of, place = next(((hop.right, hop.theirs) for hop in hops if hop.own == own[1]), own)
            held = exp.paren(exp.EQ(this=place.copy(), expression=text(min(values))))
            known_rows = [each for each in rows if each[0] == of and len(values) == 1 and finds(of, held)]
            same = (r for r in known_rows if finds(of, exp.NEQ(this=held, expression=r[1])) is False)
            if (known := next(same, None)) is not None:
                kept[id(known[2])] = known[2], _AGREED * known[3]
                continue
            rows.append((of, held, column, weight))
            kept[id(column)] = column, weight
        return [*kept.values()]

    def _label(self, i: int) -> int | None:
        """Return the place of a column or table beside a value that says what it is a value of."""
        for step in (-1, 1):
            over, stops = (("by",), ()) if step < 0 else ((), ("of", "in", "with", "that", "have", "has", "are", "is"))
            k = self.sentence.neighbour(i, step, gap=3 if step < 0 else 2, stops=stops, over=over)
            if k is None or self.sentence.used[k] or self.sentence.items[k].kind not in ("column", "table"):
                continue
            if any(self._labels(k, meaning.column) for meaning in self.sentence.items[i].meanings):
                return k
        return None

    def _labels(self, k: int, column: LinkedColumn) -> bool:
        span = self.sentence.items[k]
        if span.kind == "table":
            own = self.world.index.name_of(column.relation) is column or column.names_rows
            return own and column.relation in span.meanings and column.relation is not self.main
        return any(named.thing is column for named in span.meanings if isinstance(named, Named))

    def _add_values(self, listed: Sequence[Listed]) -> None:
        first, column, _ = listed[0]
        negated = self._is_negated(first)
        never = negated and any(self.sentence.text(k) in _NEVER for k in range(max(0, first - 4), first))
        between = [w for (i, *_), (j, *_) in pairwise(listed) for w in self.sentence.words_between(i, j)]
        conditions = [self._equals(column, meant) for _, _, meant in listed]
        if negated and column.scale and len(listed) > 1 and all(isinstance(c, exp.EQ) for c in conditions):
            steps = [column.scale.index(c.expression.this) for c in conditions]
            if all((step < steps[0]) is (steps[0] > 0) for step in steps[1:]):  # "not expensive, moderate or cheap"
                listed, conditions, negated = listed[1:], conditions[1:], False
                first = listed[0][0]
        self.joined |= not negated and any(word.split()[0] == "and" for word in between)
        condition: exp.Expr
        if negated and len(listed) == 2 and not _JOINED.search(" ".join(between)):
            self.choices.doubt(0.6, "none of both, or the other")  # "not in Bern, in Basel"
            options = [("none of both", 1.0), ("the other", 0.9)]
            if self.choices.pick(("contrast", first), options) == "the other":
                conditions, negated = conditions[1:], False
        either = "or" in between and any(item.how == "either" for item in self.sentence.items)
        said = any(word in ("vs", "versus", "vs .", "compared to", "compared with") for word in between)
        said |= len(listed) > 1 and self.sentence.text(0) == "compare" and self.sentence.has_kind("aggregate")
        if either or said or (len(listed) > 1 and not negated and self._counts_each(first, column, between, listed)):
            self.versus.append(plain(column))
        several = column.column.array or column.mark
        if several and "or" not in between and len(conditions) > 1 and not negated:
            for (i, *_), condition in zip(listed, conditions, strict=True):
                self.tests.append(Test(column, condition, i))
            return
        if len(conditions) > 1 and all(isinstance(each, exp.EQ | exp.In) for each in conditions) and not several:
            spelled = [v for each in conditions for v in (each.expressions or [each.args["expression"]])]
            condition = one_of(plain(column), spelled)
        else:
            condition = conditions[0] if len(conditions) == 1 else exp.or_(*conditions)
        if negated and column.scale and isinstance(condition, exp.EQ):
            at = column.scale.index(condition.expression.this)  # what is "not expensive" is less than that
            sign = ">" if not at else "<" if at >= len(column.scale) / 2 else "<>"
            condition, negated = on_scale(column, sign, condition.expression.this), False
        if not negated and not several and self.world.is_single(self.main.name, column.relation.name):
            self.tests = [t for t in self.tests if not (t.negated and t.column is column)]  # "not A but B" is B
        if all((t.condition, t.negated) != (condition, negated) for t in self.tests):  # "rainy (weather = rain)"
            self.tests.append(Test(column, condition, first, negated, never))

    def _counts_each(self, first: int, column: LinkedColumn, between: Sequence[str], listed: Sequence[Listed]) -> bool:
        """Return whether the values counted are all that there are: "the number of men and women" is two."""
        before = self.sentence.neighbour(first, -1, gap=1)
        counted = before is not None and self.sentence.items[before].kind == "count"
        averaged = any(item.meanings in (("AVG",), ("MEDIAN",)) for item in self.sentence.items)
        said = {self.sentence.text(k) for k in range(first)}
        again = [k for k in range(first, listed[-1][0]) if self.sentence.text(k) in said]
        if any(self.sentence.items[k].kind in ("count", "aggregate") for k in again):
            return True
        if not (counted or averaged) or "and" not in between:
            return False
        held = {value for value in self.world.index.values_of(column) if value.casefold() not in NO_VALUE}
        named = {m.value for _, _, meant in listed for m in meant}
        if held <= named:
            return True
        return self.choices.pick(("each of", first), [("together", 1.0), ("each", 0.9)]) == "each"

    def _equals(self, column: LinkedColumn, meant: Sequence[ValueMeaning]) -> exp.Expr:
        values = list(dict.fromkeys(m.value for m in meant))
        if column.column.array or (any(m.how == "item" for m in meant) and column.mark):
            whole = [] if column.column.array else [v for v in self.world.index.values_of(column) if v in values]
            weights = [("item", 1.0), ("whole", 1.0)]  # "paper" alone, or also "paper, films"
            if whole and self.choices.pick(("whole", values[0]), weights) == "whole":
                return one_of(plain(column), [text(v) for v in whole])
            items = [has_item(column, value) for value in values]
            return items[0] if len(items) == 1 else exp.or_(*items)
        held: Sequence[str] = ()
        if len(values) == 1 and not meant[0].how and not column.is_identifier:  # a code is no part of another
            found = self.world.index.values_holding(tuple(value_key(values[0]).split()))
            held = [m.value for m in found if m.column is column and m.value not in values]
        if held:  # "monarchy" where there are constitutional ones too
            listed = any(
                re.search(rf"[,;/&]\s*{re.escape(values[0])}|{re.escape(values[0])}\s*[,;/&]", v) for v in held
            )
            named = column is self.world.index.name_of(column.relation)  # China is not Hong Kong, China
            weights = [("whole", 1.0), ("part", _PART_OF_NAME if named else 1.0 if listed else 0.8)]
            if self.choices.pick(("whole", values[0]), weights) == "part":
                return like(plain(column), "%X%", values[0])
        return one_of(plain(column), [text(value) for value in values])

    # --- numbers ---------------------------------------------------------------------------------------------------

    def number_tests(self) -> None:
        """Turn comparisons and bare numbers into tests of the columns that they are of."""
        for i in [i for i in self.sentence.of("compare") if self.sentence.items[i].meanings[0].unit != TIMES]:
            column = self._column_of_number(i, self.sentence.items[i].meanings[0])
            if column is not None:
                self.sentence.take(i)
                condition = self.compare(compared(column), self.sentence.items[i].meanings[0], column)
                self._check_selective(column, condition, self.sentence.items[i].meanings[0].unit)
                self._add(i, column, condition)
        for i in list(self.sentence.of("number")):
            self._bare_number(i)
        for i in list(self.sentence.of("average")):
            self._above_average(i)

    def _check_selective(self, column: LinkedColumn, condition: exp.Expr, unit: str) -> None:
        """Doubt a comparison of which all rows are true, or none: it is of another unit, or another column."""
        finds = self.world.graph.finds
        if finds(column.relation.name, condition) is False:
            self.choices.doubt(0.5, "a comparison that no row fulfils")
        elif (unit or (column.relation.rows or 0) > _FEW_ROWS) and finds(
            column.relation.name, exp.Not(this=exp.paren(condition))
        ) is False:
            self.choices.doubt(0.5, "a comparison that every row fulfils")

    def compare(self, term: exp.Expr, comparison: Comparison, column: LinkedColumn | None = None) -> exp.Expr:
        """Return a comparison of a term, with its numbers in the unit of the column."""
        numbers = [self._in_unit(value, comparison.unit, column) for value in comparison.numbers]
        if comparison.sign == "between":
            return exp.Between(this=term, low=number(numbers[0]), high=number(numbers[1]))
        return SIGNS[comparison.sign](this=term, expression=number(numbers[0]))

    def _in_unit(self, value: float, unit: str, column: LinkedColumn | None) -> float:
        if column is None or not unit:
            return value
        if unit == "%" or unit == "percent":
            over = exp.GT(this=compared(column), expression=number(1))
            return value / 100 if self.world.graph.finds(column.relation.name, over) is False else value
        factor = english().factor(unit, column.unit)
        if factor is None:
            self.choices.doubt(0.1, f"{column.name} is in {column.unit}")
            return value
        return float(f"{value * factor:.12g}")

    def _column_of_number(self, i: int, comparison: Comparison) -> LinkedColumn | None:
        """Return the column that a number is compared with."""
        sentence, span = self.sentence, self.sentence.items[i]
        options: list[tuple[LinkedColumn, float]] = []
        beside = []
        for step in (-1, 1):
            over, stops = (("value",), ("with", "and")) if step > 0 else ((), ("and",))
            k = sentence.neighbour(i, step, gap=4 if step < 0 else 2, stops=stops, over=over)
            if k is not None and sentence.items[k].kind == "column" and not sentence.used[k]:
                column = self.column(k, lambda c: c.is_measurable, "number")
                if column is not None:
                    beside.append((k, column))
                    options.append((column, self.world.reach(self.main.name, column)))
        if comparison.measured is not None and not options:
            reachable = self.world.graph.ways(self.main.name)
            for rank, (column, up) in enumerate(self.world.index.measured_by(comparison.measured, reachable)):
                if up == comparison.measured[0][1] and column.is_measurable:
                    options.append((column, (0.97 - 0.08 * rank) * self.world.reach(self.main.name, column)))
        if not options and comparison.unit:
            roles = english().unit_roles.get(comparison.unit, english().unit_roles.get(stem(comparison.unit), ()))
            for column in self._measurable():
                if stem(comparison.unit) in column.words or stem(comparison.unit) in column.about:
                    options.append((column, 0.95 * self.world.reach(self.main.name, column)))
                elif any(role in column.roles for role in roles):
                    options.append((column, 0.85 * self.world.reach(self.main.name, column)))
        if not options and comparison.measured is None:  # what is long or old is so by no other amount
            only = [c for c in self._measurable() if c.relation is self.main]
            only = only if len(only) == 1 else [c for c in only if c.roles & {"age", "price"}]
            # A number alone is an age where rows have one, or a day of birth.
            aged = any(c.roles & {"age", "birth"} for c in self.world.columns(self.main.name))
            options = [(c, 0.5) for c in only if len(only) == 1 and (not aged or "age" in c.roles)]
        options = [(c, w) for c, w in options if w and not self.world.graph.is_beyond(c, comparison.numbers[0])]
        if not options:
            return None
        chosen = self.choices.pick(("compare", span.first), options)
        for k, column in beside:
            if column is chosen:
                sentence.take(k)
        return chosen

    def _measurable(self) -> Iterator[LinkedColumn]:
        for name in self.world.graph.ways(self.main.name):
            yield from (c for c in self.world.columns(name) if c.is_measurable)

    def _bare_number(self, i: int) -> None:
        """Turn a number beside a column or a unit into a test that they are equal; "order 10248" names a row."""
        sentence, span = self.sentence, self.sentence.items[i]
        meant: Number = span.meanings[0]
        for step in (-1, 1):
            k = sentence.neighbour(i, step, gap=2)
            if k is None or (sentence.used[k] and sentence.items[k].kind != "table"):
                continue
            if sentence.items[k].kind == "column":
                beside = k == i + step  # "order no 12", but not "orders with 12 boxes"

                def fits(column: LinkedColumn, beside: bool = beside) -> bool:
                    amount = column.kind == "number" and (beside or not column.numbers)
                    return amount and str(int(meant.value)) not in column.words

                column = self.column(k, fits, "number")
                if column is not None:
                    sentence.take(i, k)
                    condition = self._equal_number(column, meant)
                    than = sentence.neighbour(k, -1, gap=1) if step < 0 else None
                    if than is not None and sentence.items[than].kind == "than" and not sentence.used[than]:
                        sentence.take(than)  # "above magnitude 5"
                        sign, measured = sentence.items[than].meanings[0]
                        known = dict(self.world.index.measured_by(measured or (), [column.relation.name]))
                        self.choices.doubt(
                            0.5 if measured and column not in known else 1.0, "of it, or of its opposite"
                        )
                        comparison = Comparison(sign, (meant.value,), meant.unit)
                        condition = self.compare(compared(column), comparison, column)
                    if self.world.graph.finds(column.relation.name, condition) is False:
                        self.choices.doubt(0.5, "a number that no row has")
                    self._add(i, column, condition)
                    return
            elif sentence.items[k].kind == "table" and k == i - 1 and not meant.unit:
                relation = next(
                    (r for r in sentence.items[k].meanings if r is self.main), sentence.items[k].meanings[0]
                )
                key = key_of(relation)
                numbers = (
                    c
                    for c in self.world.columns(relation.name)
                    if c.numbers or c.words[-1:] in (("number",), ("no",), ("nr",))
                )
                column = self.world.index.column(relation.name, key) if key else next(numbers, None)
                if column is not None and column.kind == "number" and self.world.reach(self.main.name, column):
                    sentence.take(i, k)
                    self._add(i, column, self._equal_number(column, meant))
                    return
        if meant.unit:
            column = self._column_of_number(i, Comparison("=", (meant.value,), meant.unit))
            if column is not None:
                sentence.take(i)
                self._add(i, column, self._equal_number(column, meant))

    def _equal_number(self, column: LinkedColumn, meant: Number) -> exp.Expr:
        return exp.EQ(this=compared(column), expression=number(self._in_unit(meant.value, meant.unit, column)))

    def _above_average(self, i: int) -> None:
        sign, measured = self.sentence.items[i].meanings[0]
        column = None
        for step in (1, -1):
            k = self.sentence.neighbour(i, step, gap=2)
            if k is not None and self.sentence.items[k].kind == "column" and not self.sentence.used[k]:
                column = self.column(k, lambda c: c.is_measurable, "number")
                if column is not None:
                    self.sentence.take(k)
                    break
        if column is None and measured:
            found = self.world.index.measured_by(measured, [self.main.name])
            column = found[0][0] if found else None
        if column is not None:
            self.choices.doubt(0.6, "the average of all rows, or of those asked for", when=self.tests)
            self.sentence.take(i)
            mean = exp.select(aggregate("AVG", column)).from_(table_of(column.relation.name))
            self._add(i, column, SIGNS[sign](this=compared(column), expression=mean.subquery()))

    def _add(self, i: int, column: LinkedColumn, condition: exp.Expr) -> None:
        """Add a test; two of one column with "or" between them are alternatives."""
        last = self.tests[-1] if self.tests else None
        between = self.sentence.words_between(last.place, i) if last is not None else []
        # What stands for one value or one period; no row has two.
        equal = last is not None and all(
            isinstance(c, exp.EQ | exp.In | exp.And | exp.Or) for c in (condition, last.condition)
        )
        either = "or" in between or (equal and bool({"and", "vs", "versus", ",", "compared to"} & set(between)))
        if last is not None and last.column is column and either:
            self.tests[-1] = Test(column, exp.or_(last.condition, condition), i)
            if "or" not in between:
                year = column.kind == "date"
                self.versus.append(part("year", column, self.world.dialect) if year else plain(column))
        else:
            self.tests.append(Test(column, condition, i))

    # --- days ------------------------------------------------------------------------------------------------------

    def period_tests(self) -> None:
        """Turn days into tests of the columns of dates, or of years and months, that they are of."""
        for i in list(self.sentence.of("period")):
            self._period(i, self.sentence.items[i].meanings[0])

    def _period(self, i: int, period: Period) -> None:
        sentence, span = self.sentence, self.sentence.items[i]
        options: list[tuple[LinkedColumn, float]] = []
        labels: dict[int, int] = {}
        for step in (-1, 1):
            k = sentence.neighbour(i, step, gap=3 if step < 0 else 0, over=("value",) if step < 0 else ())
            if k is not None and sentence.items[k].kind == "column" and not sentence.used[k]:
                for named in sentence.items[k].meanings:
                    if isinstance(named, Named) and self._is_time(named.thing, period):  # type: ignore[arg-type]
                        column = named.thing
                        assert isinstance(column, LinkedColumn)
                        options.append((column, 1.05 * named.sureness * self.world.reach(self.main.name, column)))
                        labels[id(column)] = k
        if not options:
            options = [*self._times(period, i)]
        options = [(c, w) for c, w in options if w]
        if not options:
            return
        tied = [c for c, w in options if w == max(w for _, w in options)]
        if len(tied) > 1 and not self._is_year_of(*tied[:2]):
            self.choices.doubt(0.8, "days of two columns that nothing tells apart")
        column = self.choices.pick(("period", span.first), options)
        if id(column) in labels:
            sentence.take(labels[id(column)])
        elif self._is_of_another_verb(column):
            self.choices.doubt(0.4, f"{column.name} is of another verb")
        sentence.take(i)
        years = {each[:4] for each in self.world.index.days_of(column)} if column.kind == "date" else ()
        within = self._within(column, period)
        if period.days is not None and period.sign == "=" and len(years) > 1:
            self.choices.doubt(0.6, "the latest, or of any year")
            within = self.choices.pick(("year", span.first), [(within, 1.0), (self._in_any_year(column, period), 0.97)])
        self._add(i, column, within)

    def _is_year_of(self, one: LinkedColumn, other: LinkedColumn) -> bool:
        """Return whether one of two columns only holds the years of the other, in every row."""
        year, day_of = sorted((one, other), key=lambda c: c.kind == "date")
        differs = exp.NEQ(this=part("year", day_of, self.world.dialect), expression=compared(year))
        kinds = (year.kind, day_of.kind) == ("number", "date") and year.relation is day_of.relation
        return kinds and self.world.graph.finds(year.relation.name, differs) is False

    def _is_of_another_verb(self, column: LinkedColumn) -> bool:
        """Return whether a verb is said that is none of the one which names a day: what was `bought` may be hired."""
        own, known = column.words[0], english().verbs
        said = [self.sentence.text(k) for k, item in enumerate(self.sentence.items) if item.how == "verb"]
        acts = [verb for verb in said if is_verb_form(verb) and not known.get(verb, frozenset()) & {*column.words}]
        return is_verb_form(own) and bool(acts) and not any(share_root(verb, own) for verb in acts)

    def _is_time(self, column: LinkedColumn, period: Period) -> bool:
        if column.kind == "date":
            return True
        if column.kind != "number":
            return False
        whole = (period.start.month, period.start.day) == (1, 1) == (period.after.month, period.after.day)
        return self._is_year(column) and (whole or self._month_beside(column, period) is not None)

    def _month_beside(self, year: LinkedColumn, period: Period) -> LinkedColumn | None:
        """Return the column of months beside one of years, for a month of a year: "in May 2012"."""
        month = period.sign == "=" and period.days is None and (period.after - period.start).days <= 31
        if not month or period.start.day != 1 or period.after.day != 1:
            return None
        return next((c for c in self.world.columns(year.relation.name) if self._is_month(c)), None)

    @staticmethod
    def _is_year(column: LinkedColumn) -> bool:
        said = {"year", "yr"} & set(column.words)
        return bool(said or {"founded", "established", "built"} & set(column.words[-1:]))

    @staticmethod
    def _is_month(column: LinkedColumn) -> bool:
        return column.words[-1:] == ("month",) and column.kind == "number"

    def _is_said(self, column: LinkedColumn, i: int) -> bool:
        """Return whether a word just before a period shares a root with the name of a column."""
        at = self.sentence.items[i].first
        before = self.sentence.links.tokens[max(0, at - 5) : at]
        said = [t.folded for t in before if t.stem == t.folded or t.stem not in english().row_nouns]
        return any(share_root(verb, own) for verb in said if len(verb) > 3 for own in column.words if len(own) > 3)

    def _times(self, period: Period, i: int) -> Iterator[tuple[LinkedColumn, float]]:
        """Yield the columns that days may be of where none stands beside them."""
        for name in self.world.graph.ways(self.main.name):
            for column in self.world.columns(name):
                if not self._is_time(column, period):
                    continue
                reach = self.world.reach(self.main.name, column) * (1.0 if name == self.main.name else 0.8)
                before = self.sentence.neighbour(i, -1, gap=2)
                if before is not None and reach and column.relation in self.sentence.items[before].meanings[:1]:
                    reach = max(reach, _AFTER_NOUN)
                exact = column.words in (("year",), ("month",), (*relation_words(column.relation), "date"))
                exact |= len(column.words) == 1 and column.kind == "date" and not is_verb_form(column.words[0])
                primary = exact or column.words[0] in ("order", "release", "released", "sale", "created")
                # What is made in 2010 is not what had its last service then.
                other = 0.25 if len(column.words) > 1 and not _DATING & {*column.words} else 0.75
                said = period.year is not None and column.kind == "number" and "year" in column.words
                other = max(other, 0.85) if said else other
                weight = 1.05 if self._is_said(column, i) else 0.95 if exact else 0.85 if primary else other
                yield column, reach * weight

    def _within(self, column: LinkedColumn, period: Period) -> exp.Expr:
        own = compared(column)
        if column.kind == "number":
            if (month := self._month_beside(column, period)) is not None:
                of_month = exp.EQ(this=compared(month), expression=number(period.start.month))
                return exp.and_(exp.EQ(this=own, expression=number(period.start.year)), of_month)
            first, last = period.start.year, period.after.year - 1
            if period.sign == "=" and first != last:
                return exp.Between(this=own, low=number(first), high=number(last))
            value = last if period.sign in (">", "<=") else first
            return SIGNS[period.sign](this=own, expression=number(value))
        start, after = self._place_period(column, period)
        if period.sign == "=":
            return exp.and_(
                exp.GTE(this=plain(column), expression=day(start, column)),
                exp.LT(this=plain(column), expression=day(after, column)),
            )
        edge = {">": (exp.GTE, after), ">=": (exp.GTE, start), "<": (exp.LT, start), "<=": (exp.LT, after)}
        kind, value_day = edge[period.sign]
        return kind(this=plain(column), expression=day(value_day, column))

    def _in_any_year(self, column: LinkedColumn, period: Period) -> exp.Expr:
        """Return the condition that a day lies in a month, or is a day of it, of whatever year."""
        of = {"month": period.start.month}
        of |= {"day": period.start.day} if (period.after - period.start).days == 1 else {}
        parts = ((exp.Extract(this=exp.var(name), expression=plain(column)), value) for name, value in of.items())
        return exp.and_(*(exp.EQ(this=each, expression=number(value)) for each, value in parts))

    def _place_period(self, column: LinkedColumn, period: Period) -> tuple[date, date]:
        """Return the days of a period; one without a year is the one nearest to the latest day known."""
        if period.days is None:
            return period.start, period.after
        days = self.world.index.days_of(column)
        latest = date.fromisoformat(days[-1]) if days else self.world.index.today()
        start, after = period.days.nearest(min(latest, self.world.index.today()))
        if start > latest and start.day == 1:  # the column ends before: the last one that it holds is meant
            return start.replace(year=start.year - 1), after.replace(year=after.year - 1)
        return start, after
