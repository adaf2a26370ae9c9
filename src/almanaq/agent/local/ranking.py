"""Ranking: "the 3 cheapest", "sorted by price", "more pages than …" → the order of a query."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

from sqlglot import exp

from almanaq.agent.linking.amounts import Superlative
from almanaq.agent.linking.columns import LinkedColumn
from almanaq.agent.linking.joins import is_there, table_of
from almanaq.agent.linking.words import is_verb_form
from almanaq.agent.local.draft import NotComposed
from almanaq.agent.local.figures import Figures
from almanaq.agent.local.presence import on_scale
from almanaq.agent.local.spec import Order, QuerySpec, aggregate, compared, count, plain, tables_in

_MANY = ("most", "fewest", "least")
_DOWNWARD = frozenset(("least", "bottom", "rare"))
_HARM = frozenset(
    "delay error fault loss cost price debt crime death wait complaint defect latency churn risk damage".split()
)
_OF_ANYTHING = frozenset(("rating", "size", "height", "price", "cost"))
_TIMELY = frozenset(("date", "year", "released", "founded"))


def _so_called(column: LinkedColumn, up: bool) -> float:
    """Weigh a column that is called by the end of which most is asked for: the hottest day is that of `temp_max`."""
    return 1.1 if {*column.words} & ({"max", "maximum", "high"} if up else {"min", "minimum", "low"}) else 1.0


class Ranking(Figures):
    """Adds what rows or groups are ranked by."""

    def _rank(self) -> None:
        """Turn superlatives into an order with a limit."""
        for i in list(self.sentence.of("superlative")):
            meant: Superlative = self.sentence.items[i].meanings[0]
            self.sentence.take(i)
            down = meant.extreme not in _DOWNWARD
            if meant.extreme in ("common", "rare"):
                self._take_act(i + 1)  # "most frequently ordered"
                if not self.groups and not self._group_by_subject(any_column=True):
                    raise NotComposed
                self._rank_groups(self._number_of_rows(), down, meant)
                continue
            if self._takes_other_end(i, meant, down):
                continue
            if self.measures:
                self._rank_groups(self.measures[-1], self._direction(meant, down, None), meant)
                continue
            self._rank_by_column(i, meant, down)

    def _direction(self, meant: Superlative, down: bool, column: LinkedColumn | None) -> bool:
        """Return whether the largest comes first; what is best of a delay is the least."""
        if meant.extreme != "measured" or not meant.measured:
            return down
        measures, up = meant.measured[0]
        if measures == "speed" and column is not None and "speed" not in column.roles:
            return self.choices.pick("direction", [(up, 0.9), (not up, 0.85)])
        if measures != "rating":
            return up
        named = column or (self.world.column_of(self.measures[-1]) if self.measures else None)
        if named is None or {"rating", "score", "grade", "review"} & set(named.words) or {"rating"} & named.roles:
            return up
        if set(named.words) & _HARM:
            return not up
        return self.choices.pick("direction", [(up, 0.9), (not up, 0.75)])

    def _rank_by_column(self, i: int, meant: Superlative, down: bool) -> None:
        sentence = self.sentence
        both = [item.kind for item in sentence.items[i + 1 : i + 3]] == ["and", "superlative"]  # "lowest and highest"
        k = sentence.neighbour(i, 1, gap=2, over=("value", "period", *(("and", "superlative") if both else ())))
        if k is not None and meant.extreme in ("most", "least"):
            after = sentence.items[k]
            rows = after.kind == "noun" and after.how == "row"
            if rows or (after.kind == "table" and self.main in after.meanings):  # "which city has the most orders"
                sentence.take(k)
                self._count_rows()
                self._rank_groups(self._number_of_rows(), down, meant)
                return
        target = self._ranked_column(i, k)
        timely = meant.measured is not None and meant.measured[0][0] in _TIMELY
        if target is not None and timely and target[1].kind != "date" and not set(target[1].words) & _TIMELY:
            target = None  # the latest sales are those of the latest day
        if target is not None and not timely and meant.measured and target[1].words[-1] in ("day", "month", "year"):
            sentence.take(target[0])
            target = None  # the hottest day is not the 31st
        if target is not None:
            place, column = target
            sentence.take(place)
            acts = meant.extreme != "measured" and is_verb_form(sentence.text(place))
            if (acts or meant.extreme in ("most", "least")) and not column.is_measurable:
                raise NotComposed  # "the most ordered tile"
            if not self._measures(meant, column):
                self.choices.doubt(0.6, f"{column.name} is measured otherwise")
            down = self._direction(meant, down, column)
        elif meant.measured is not None:
            ways = (n for n in self.world.graph.ways(self.main.name) if self.world.is_single(self.main.name, n))
            found = self.world.index.measured_by(meant.measured, list(dict.fromkeys((self.main.name, *ways))))
            found.sort(key=lambda each: -_so_called(*each))
            reach = [self.world.reach(self.main.name, c) for c, _ in found]
            options = [(each, (0.97 - 0.12 * k) * reach[k] * _so_called(*each)) for k, each in enumerate(found)]
            later = dict(meant.measured).get("date")
            if later is not None and (timely or not options):  # the oldest channel was created first
                dates = [c for c in self.world.dates(self.main.name) if all(c is not each for each, _ in found)]
                options += [((c, later), 0.9) for c in dates]
            rows = any(item.kind == "table" and self.main in item.meanings for item in sentence.items)
            if not options and rows and meant.measured[0][0] == "size":  # an order is as big as its amount
                amounts = [c for c in self.world.columns(self.main.name) if c.is_measurable and c.sums]
                options = [((amounts[0], meant.measured[0][1]), 0.85)] if len(amounts) == 1 else []
            if not options:
                sentence.used[i] = False
                return
            column, down = self.choices.pick(("superlative", i), options)
        else:
            by_number = meant.extreme in ("most", "least")
            surely = by_number and (self.conditions.versus or (k is not None and sentence.items[k].kind == "noun"))
            beside = {sentence.items[i - 1].how, *(item.kind for item in sentence.items[i + 1 : i + 2])}
            alone = sentence.items[i].how == "either" and bool(beside & {"verb", "and", "value"})
            if alone and sentence.text(i - 1) not in ("", "is", "are", "was", "were", "there", "has", "have", "had"):
                self.choices.doubt(0.5, "more by what the verb says")  # "who paid more, Ida or Per?"
            acts = by_number and self._take_act(i + 1)  # "most requested pages"
            if surely or acts or (by_number and sentence.items[i + 1 : i + 2] and sentence.has_kind("value")):
                self._rank_groups(self._number_of_rows(), down, meant)
            else:
                sentence.used[i] = False
            return
        self._rank_rows_or_groups(column, down, meant, by_name=target is not None)

    def _take_act(self, k: int) -> bool:
        """Use a word that only says what was done to things, and return whether there is one."""
        acts = is_verb_form(self.sentence.text(k)) and not self.sentence.text(k).endswith("ing")
        acts = acts and (self.sentence.items[k].kind == "unknown" or self.sentence.items[k].how in ("part", "root"))
        self.sentence.take(*([k] if acts else []))
        return acts

    def _measures(self, meant: Superlative, column: LinkedColumn) -> bool:
        """Return whether an adjective may be of a column: what is longest of an amount of money is not known."""
        if meant.extreme != "measured" or not meant.measured:
            return True
        money = column.unit in ("usd", "eur", "gbp", "chf") or bool(column.roles & {"price", "pay", "revenue"})
        cheap = meant.measured[0][0] in ("price", "cost")
        if money is cheap or (money and meant.measured[0][0] in _OF_ANYTHING):
            return True
        return any(column is each for each, _ in self.world.index.measured_by(meant.measured, [column.relation.name]))

    def _ranked_column(self, i: int, k: int | None) -> tuple[int, LinkedColumn] | None:
        """Return the column that a superlative ranks by: the one after it, else one after "by", or one that is near."""
        sentence = self.sentence

        measured = self.sentence.items[i].meanings[0].measured
        places = [k] if k is not None else []
        by_adjective = bool(measured) and bool(self.world.index.measured_by(measured, [self.main.name]))
        if by_adjective:
            by = [j for j, item in enumerate(sentence.items) if item.kind == "by" and j > i]
            places += [j for j in sentence.of("column") if by and j > by[0]]
        else:
            places += [j for j in sentence.of("column") if j > i] + [j for j in sentence.of("column") if j < i]
        for place in places:
            if not self._is_column(place) or sentence.used[place]:
                continue
            column = self.conditions.column(place, lambda c: c.is_ranked, "ranked")
            if column is not None:
                if place != k:
                    before = sentence.neighbour(place, -1, gap=2, over=("count",))
                    said = before is not None and sentence.items[before].kind == "by"
                    said |= column.kind == "date" and bool(measured) and measured[0][0] in _TIMELY
                    self.choices.doubt(1.0 if said else 0.6, "ranked by a column far off")
                return place, column
        return None

    def _rank_groups(self, measure: exp.Expr, down: bool, meant: Superlative) -> None:
        if not self.groups and not (self._group_by_subject() or self._group_by_subject(any_column=True)):
            raise NotComposed
        if measure not in self.measures:
            self.measures.append(measure)
        self._rank_by(measure, down, meant)

    def _doubt_those_without(self, spec: QuerySpec) -> None:
        """Doubt a ranking from the fewest rows on where things have none: they have the fewest."""
        keys = {hop.own: hop.theirs for hop in self.world.graph.hops(self.main.name) if hop.single}
        groups = tuple(keys.get(group, group) for group in spec.groups)
        others = {name for group in groups for name in tables_in(group)} - {self.main.name}
        if spec.order[:1] != ((count(), False),) or len(others) != 1:
            return
        (hop, *more), (other,) = self.world.graph.ways(self.main.name)[next(iter(others))], others
        held = exp.select(hop.own).from_(table_of(self.main.name)).where(is_there(hop.own.copy()))
        none = exp.Not(this=exp.In(this=hop.theirs, query=held.subquery()))
        self.choices.doubt(0.3, "things that have none", when=more or self.world.graph.finds(other, none) is not False)

    def _rank_by(self, expression: exp.Expr, down: bool, meant: Superlative) -> None:
        if self.order and self.limit == 1:
            self.choices.doubt(0.3, "two rankings")
            return
        self.order.append((expression, down))
        self.limit, self.offset = meant.limit or 1, meant.offset

    def _takes_other_end(self, i: int, meant: Superlative, down: bool) -> bool:
        """Turn "the lowest and the highest fee", also of each kind, into the least and the most."""
        if [item.kind for item in self.sentence.items[max(i - 2, 0) : i]] != ["superlative", "and"]:
            return False
        ranked = self.ordering if self.limit == 1 else [self.world.column_of(m) for m in self.measures[-1:]]
        column = ranked[-1] if ranked and self.limit in (1, None) else None
        if column is None:
            return False
        found = dict(self.world.index.measured_by(meant.measured or (), [column.relation.name]))
        down = found.get(column, self._direction(meant, down, column))
        if self.limit == 1:
            self.measures.append(aggregate("MAX" if self.order[-1][1] else "MIN", column))
            self.order, self.limit, self.ordering = [], None, []
        self.measures.append(aggregate("MAX" if down else "MIN", column))
        return True

    def _rank_rows_or_groups(self, column: LinkedColumn, down: bool, meant: Superlative, *, by_name: bool) -> None:
        """Rank rows by a column; groups, by the sum or mean of it, where a kind of rows is asked for."""
        if not self.world.is_single(self.main.name, column.relation.name):
            raise NotComposed
        if self.groups:  # "largest population per country"
            versus, items = bool(self.conditions.versus), self.sentence.items
            most = aggregate("MAX" if down else "MIN", column)
            rows = self.names_main or any(s.kind == "table" and self.main in s.meanings for s in items)
            if rows and not (by_name or versus or meant.offset or (meant.limit or 1) > 1):
                # "The dearest hat of each maker" is a hat; "the highest price of hats of each maker", a price.
                if self.choices.pick("first of each", [("rows", 1.0), ("figures", 0.7)]) == "rows":
                    self.firsts, self.names_main, self.ordering = [*self.groups, most], True, [column]
                    self.shown = [*filter(None, map(self.world.column_of, self.groups)), *self.shown]
                    self.groups = []
                    return
            elif rows:
                self.choices.doubt(0.5, "the rows that rank first in each group")
            self.measures.append(most)
            return
        subject = self._subject()
        kind = subject[1] if subject is not None else None
        named = self.sentence.items[subject[0]] if subject is not None else None
        other = named is not None and named.kind == "table" and self.main not in named.meanings
        grouped = kind is not None and kind is not column and not (kind.names_rows and kind.relation is self.main)
        if grouped or other:
            if kind is not None and kind.kind == "boolean":
                self.choices.doubt(0.6, "yes and no, or the rows of which it holds")  # "which draft has the most words"
            sums, mean = column.sums, self._take_mean()
            itself = subject is not None and self.sentence.text(subject[0] + 1) in ("is", "are", "was", "were")
            items = self.sentence.items
            by = next((k for k, item in enumerate(items) if item.kind == "by"), len(items))
            rows = by == len(items) or any(s.kind == "table" and self.main in s.meanings for s in items[:by])
            many = any(self.sentence.text(k).endswith(_MANY) for k, s in enumerate(items) if s.kind == "superlative")
            of_all = bool(sums) and "size" not in column.roles and (many or not rows)  # "the most sales", not seats
            options = [
                ("row", 0.5 if mean else 0.75 if of_all else 0.9),
                ("SUM", 1.0 if sums else 0.3 if sums is False or meant.extreme == "measured" else 0.8),
                ("AVG", 1.2 if mean else 0.8 if sums is False or itself else 0.4),
            ]
            if column.kind == "date":
                options = [("row", 1.0)]
            chosen = self.choices.pick("rows or groups", options)
            if chosen != "row":
                self._check_sums(column)
                self._rank_groups(aggregate(chosen, column), down, meant)
                return
        self.ordering.append(column)
        self._rank_by(compared(column), down, meant)

    def _take_mean(self) -> bool:
        """Use the words that say that groups are ranked by a mean: "which team is tallest on average"."""
        means = [i for i in self.sentence.of("aggregate") if self.sentence.items[i].meanings == ("AVG",)]
        self.sentence.take(*means)
        return bool(means)

    def _sort(self) -> None:
        """Turn "sorted by price", "highest first" into an order."""
        sentence = self.sentence
        for i in list(sentence.of("order")):
            said = sentence.items[i].meanings[0]
            down = said == "down"
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
            measured = self._column_at(k, lambda c: c.is_measurable, "sorted") if sentence.has_kind("count") else None
            column = measured or self.conditions.column(k, role="sorted")
            if column is None:
                continue
            rated = said == "none" and direction is None and bool(column.roles & {"rating", "reviews"})
            down = down or rated  # the best first
            sentence.take(i)
            while column is not None and k is not None:  # "by kind and fee"
                term = next((m for m in self.measures if self.world.column_of(m) is column), compared(column))
                sentence.take(k)
                self.order.append((term, down))
                if term not in self.measures:
                    self.ordering.append(column)
                k = self._next_listed(k)
                listed = k is not None and self._is_column(k) and not sentence.used[k]
                column = self.conditions.column(k, role="sorted") if listed and k is not None else None
        for i in list(sentence.of("direction")):
            down, figure = sentence.items[i].meanings[0] == "descending", self._figure_in_order(i)
            if figure is None and self.order:
                self.order[-1] = (self.order[-1][0], down)
                sentence.take(i)
            elif figure is not None:
                sentence.take(i)
                self.order.append(figure if isinstance(figure, tuple) else (figure, down))

    def _figure_in_order(self, i: int) -> exp.Expr | Order | None:
        """Return what a direction is of: the column that "youngest first" measures, and how, else the figure."""
        measured = self.sentence.items[i].meanings[1:] and self.sentence.items[i].meanings[1]
        if not self.measures and not self.groups and measured and not self.order:
            timely = [up for name, up in measured if name in _TIMELY][:1]
            found = self.world.index.measured_by(measured, [self.main.name])[:1]
            found = found or [(c, up) for up in timely for c in self.world.dates(self.main.name)]
            chosen = self.choices.pick(("direction", i), [(each, 0.95) for each in found]) if found else None
            return chosen and (compared(chosen[0]), chosen[1])
        grouped = [c for each in self.groups if (c := self.world.column_of(each)) is not None]
        known = self.world.index.measured_by(measured or (), [self.main.name])
        column = next((c for c, _ in known if any(c is each for each in grouped)), None)
        if column is not None:
            return plain(column)
        if self.groups and not self.measures:
            self.measures.append(count())
        return self.measures[-1] if self.measures else None

    def _compare_with_others(self) -> None:
        """Turn "more pages than The Salt Road", "stock below the reorder level" into conditions."""
        sentence = self.sentence
        signs = {">": exp.GT, "<": exp.LT, ">=": exp.GTE, "<=": exp.LTE}
        for i in list(sentence.of("than")):
            sign, measured = sentence.items[i].meanings[0]
            before, after = sentence.neighbour(i, -1, gap=2), sentence.neighbour(i, 1, gap=2)
            beside = before if after is None and sign in (">=", "<=") else after
            step = next((t for t in self.conditions.tests if t.place == beside and t.column.scale), None)
            if step is not None and isinstance(step.condition, exp.EQ):  # "no more than moderate", "moderate at most"
                self.conditions.tests.remove(step)
                sentence.take(i)
                condition = on_scale(step.column, sign, step.condition.expression.this)
                self.conditions.tests.append(replace(step, condition=condition))
                continue
            free = before is not None and self._is_column(before) and not sentence.used[before]
            left = self._column_at(before, lambda c: c.is_measurable or c.kind == "date", "than") if free else None
            if left is None and measured:
                found = self.world.index.measured_by(measured, [self.main.name])
                left, before = (found[0][0], None) if found else (None, None)
            if left is None or after is None:
                continue
            if self._is_column(after):
                unlike = partial(lambda own, c: c.kind == own.kind and c is not own, left)
                right = self.conditions.column(after, unlike, "than")
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
