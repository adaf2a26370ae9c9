"""Figures: "average price by region", "cities with more than 200 orders" → the measures and groups of a query."""

from __future__ import annotations

from collections.abc import Callable

from sqlglot import exp

from almanaq.agent.linking.amounts import TIMES, Comparison
from almanaq.agent.linking.columns import LinkedColumn, name_columns, relation_words
from almanaq.agent.linking.english import english
from almanaq.agent.linking.index import Named
from almanaq.agent.linking.joins import Hop, is_missing, is_there
from almanaq.agent.linking.words import is_plural, is_verb_form
from almanaq.agent.local.definitions import Defined
from almanaq.agent.local.draft import HAVING, NotComposed
from almanaq.agent.local.spec import aggregate, compared, count, kinds_of, part, plain, text


def _is_kind(column: LinkedColumn) -> bool:
    """Return whether rows can be grouped by a column: a kind, a name, a key of something else, a year."""
    timely = column.words[-1:] in (("year",), ("week",), ("month",))
    return column.kind in ("text", "boolean") or column.is_identifier or timely


_NUMBERS = frozenset(("num", "number", "count"))


class Figures(Defined):
    """Adds what is computed of many rows, and what these are put together by."""

    def _compute(self) -> None:
        """Turn "average price" into measures; "average and maximum" share a column."""
        sentence = self.sentence
        over = ("value", "period", "table", "noun", "aggregate", "and", "distinct", "superlative", "unknown")
        for i in list(sentence.of("aggregate")):
            function = sentence.items[i].meanings[0]
            in_all = sentence.text(i) in ("in total", "in all", "all together")
            if in_all and (sentence.has_kind("count") or sentence.neighbour(i, 1) is not None):
                sentence.take(i)  # "how many episodes in total"
                continue

            def fits(column: LinkedColumn, function: str = function) -> bool:
                return column.is_measurable or (function in ("MIN", "MAX") and column.kind == "date")

            k = sentence.neighbour(i, 1)
            self.choices.doubt(0.2, "a figure of figures", when=k is not None and sentence.items[k].kind == "aggregate")
            k = sentence.neighbour(i, 1, gap=4, over=over)
            if k is not None and sentence.text(k).endswith("of"):  # "average number of votes"
                counted, k = k, sentence.neighbour(k, 1, gap=2, over=over)
                if self._column_at(k, fits, "measure") is not None:
                    sentence.take(counted)
            column = self._column_at(k, fits, "measure")
            if column is None:
                k = sentence.neighbour(i, -1, gap=4, over=("value", "table") if in_all else ("superlative",))
                column = self._column_at(k, fits, "measure")
            if column is None and function == "SUM":  # "sales in Bern in all"
                k = next((j for j in sentence.of("column") if j < i and self._may_be(j, fits)), None)
                column = self._column_at(k, fits, "measure")
            if column is not None and k is not None:
                sentence.take(i, k)
                self._check_sums(column)
                self.measures.append(aggregate(function, column))

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
            if sentence.text(i).startswith("breakdown") and k is not None and self._group_by(k):
                self._count_rows()
                continue
            if k is not None and sentence.items[k].kind in ("value", "missing", "not", "period"):
                after = sentence.neighbour(k, 1, gap=0, over=("value", "period"))
                noun = sentence.items[after].kind if after is not None else ""
                amount = after is not None and noun == "column" and self._may_be(after, lambda c: c.is_measurable)
                k = after if amount or noun in ("table", "noun") else k
            kind = sentence.items[k].kind if k is not None else ""
            values = {(span.first, span.last) for span in sentence.links.spans if span.kind == "value"}  # "kind AGENT"
            nouns = [item for item in sentence.items[k + 1 : k + 2] if self.main in item.meanings] if k else []
            rows = [item for item in nouns if (item.first, item.last) not in values]
            if k is not None and kind == "column" and rows and self._may_be(k, lambda c: c.kind == "text"):
                sentence.take(k)  # "how many school districts"
                self.choices.doubt(0.9, "a column before the rows")
                kind, k = "table", k + 1
            if k is not None and HAVING & {*sentence.words_between(i, k)}:
                kind = ""  # "how many have a caption" are rows
            texts = [(t, sentence.items[t.place]) for t in self.conditions.tests if k in (t.place, t.place - 1)]
            opens = [(t, sentence.links.tokens[item.first].stem) for t, item in texts if item.kind == "hold"]
            held = [t.column for t, word in opens if t.place == k or word in t.column.words]
            own = bool(held) and held[0].words[-1:] == relation_words(self.main)[-1:]
            if held and not own and not self.world.is_unique(held[0]):
                self.choices.doubt(0.5, "rows or different texts")
            if k is None or kind not in ("table", "column", "noun"):
                self._count_rows(pieces=kind == "value" and k == i + 1)  # "how many buns did Per buy?"
            elif kind == "table" and not (distinct and self.main in sentence.items[k].meanings):
                self._count_table(k)
            elif kind in ("noun", "table"):
                sentence.take(k)
                self.names_main = True
                self._count_different() if distinct else self._count_rows()
            else:
                self._count_column(k, distinct)

    def _doubt_history(self) -> None:
        rows = english().row_nouns & {
            form for token in self.sentence.links.tokens for form in (token.folded, token.stem)
        }
        self.choices.doubt(0.5, "several rows are about one thing", when=self._tells_history() and not rows)

    def _count_rows(self, *, pieces: bool = False) -> None:
        self._doubt_history()
        self.counts = True
        number = self._number_of_rows(pieces=pieces)
        if number not in self.measures:
            self.measures.append(number)

    def _number_of_rows(self, *, pieces: bool = False) -> exp.Expr:
        """Return what counts rows; where each has a `count` and their noun is not said, it may be the sum of these.

        Args:
            pieces: any quantity counts, not only one called so.
        """
        columns = (c for c in self.world.columns(self.main.name) if c.is_measurable)
        tally = next((c for c in columns if c.tallies or (pieces and "quantity" in c.roles)), None)
        acts = pieces and {"did", "does"} & {token.folded for token in self.sentence.links.tokens}
        said = [item for item in self.sentence.items if item.kind != "silent"]
        said = said[:-1] if acts else said  # "did Per order" is no noun of the rows
        named = any(s.kind == "table" and not s.how and self.main in s.meanings for s in said)
        if tally is None or named:
            return count()
        return self.choices.pick("tally", [(aggregate("SUM", tally), 1.0), (count(), 0.97)])

    def _count_different(self) -> None:
        """Count the things that rows are about: "how many different lifters"."""
        self.counts = True
        self.measures.append(aggregate("COUNT", self.world.index.name_of(self.main)))

    def _count_table(self, k: int) -> None:
        if self.main not in self.sentence.items[k].meanings:
            raise NotComposed
        self.sentence.take(k)
        self.names_main = True
        self._count_rows()

    def _count_column(self, k: int, distinct: bool) -> None:
        links, counted = self.sentence.links, self.sentence.items[k]
        stems = {token.stem for token in links.tokens[counted.first : counted.last]}
        told = (c for c in self.world.columns(self.main.name) if c.is_measurable and {*c.words} & _NUMBERS)
        number = next((c for c in told if {*c.words} - _NUMBERS == stems), None)
        if number is not None and self.searches and not distinct:  # "how many reviews" are told by `num_reviews`
            self.sentence.take(k)
            self.counts = True
            self.measures.append(aggregate("SUM", number))
            return
        column = self.conditions.column(k, role="counted")
        if column is None or not self.world.is_single(self.main.name, column.relation.name):
            raise NotComposed
        self.sentence.take(k)
        said = (s for s in self.sentence.links.spans if s.first == self.sentence.items[k].first and not s.how)
        if not distinct and any(s.kind == "table" and self.main in s.meanings for s in said):
            self.choices.doubt(0.5, f"rows, or different {column.name}")
        events = not distinct and column.kind == "text" and self.sentence.has_kind("period")
        options = [("COUNT", 0.95), *([("ROWS", 0.9)] if events else [])]
        after = self.sentence.neighbour(k, 1, gap=1)
        kind = self.sentence.items[after].kind if after is not None else ""
        timely = column.kind == "date" or bool({"year", "founded", "built"} & set(column.words))
        timely = timely and kind in ("period", "compare", "value", "number")
        if timely or (after == k + 1 and kind in ("value", "number")):
            options = [("ROWS", 0.95), ("COUNT", 0.4 if timely else 0.6)]
            self.sentence.used[k] = False
        elif column.is_measurable and not distinct:
            sums = self._is_amount(column)
            options = [("SUM", 0.95 if sums else 0.4), ("COUNT", 0.3 if sums else 0.65), ("ROWS", 0.2 if sums else 0.7)]
        elif column is self.world.index.name_of(self.main) and not distinct:
            options, unique = [("ROWS", 0.9), ("COUNT", 0.75)], self.world.is_unique(column)
            acts = self.sentence.has_kind("period") or any(item.how == "verb" for item in self.sentence.items)
            named = column.kind == "text" and (len(column.words) == 1 or column.words[-1] == "name")
            if named and not (unique or acts or {*column.words} & {*relation_words(self.main)}):
                few = 2 * column.distinct > (self.main.rows or 0)
                options = [("COUNT", 0.95), ("ROWS", 0.85 if few else 0.7)]  # "how many airports are there", of strikes
            self.choices.doubt(1.0 if unique else 0.5 if options[0][0] == "ROWS" else 0.9, "rows, or what several name")
        elif column.kind == "date" and not distinct:
            options = [("ROWS", 0.8), ("COUNT", 0.6)]
        elif column.kind == "boolean":
            options = [("ROWS", 0.95)]
            self.sentence.used[k] = False
        elif self.sentence.items[k].how in ("described", "part") and not distinct:
            options = [("ROWS", 0.9), ("COUNT", 0.85)]  # "objects" of different `object_type`
        same = (t for t in self.conditions.tests if t.column is column and not t.negated)
        if not distinct and any(isinstance(t.condition, exp.EQ) for t in same):
            options = [("ROWS", 0.95)]  # "how many grades are poor?": one value is always one
        chosen = self.choices.pick(("count", k), options)
        if chosen == "ROWS":
            self._count_rows()
        else:
            self.counts = True
            self.choices.doubt(1.0 if column.relation is self.main else 0.6, "values of what the rows lead to")
            self.measures.append(aggregate(chosen, column))

    def _is_amount(self, column: LinkedColumn) -> bool:
        """Return whether a noun in the plural asks for the sum of a column, rather than for rows that each have one.

        An amount is called in the plural (`votes`), what numbers things, or is had once, in the singular (`episode`).
        """
        return bool(english().sums(column.words[-1:])) or column.name.casefold().endswith("s")

    # --- groups -----------------------------------------------------------------------------------------------

    def _group(self) -> None:
        """Turn "by region and year", "per customer" into groups."""
        sentence = self.sentence
        for i in list(sentence.of("by")):
            k = sentence.neighbour(i, 1, gap=2, over=("distinct", "value", "unknown"))
            if k is None:
                continue
            kind = sentence.items[k].kind
            counted = sentence.neighbour(k, 1, gap=2) if kind == "count" else None
            if not self.measures and self._column_at(counted, lambda c: c.is_measurable and bool(c.sums), "ranked"):
                sentence.take(k)  # "the largest by number of students"
            elif self.measures and counted is not None and self._may_be(counted, lambda c: c.is_measurable):
                sentence.take(k)  # "average price by number of wheels"
                k, kind = counted, "column"
            if kind in ("aggregate", "count") or (sentence.used[k] and kind in ("column", "term")):
                sentence.take(i)  # "top 5 cities by total sales" ranks
                continue
            if self._ranks_by(i, k) or self._tells_doer(i, k):
                continue
            taken = False
            while k is not None and self._group_by(k):
                taken = True
                k = self._next_listed(k)
            if taken:
                sentence.take(i)
        self._group_compared()

    def _group_compared(self) -> None:
        """Group by what is set against each other: "2004 vs 2005"."""
        self.groups += [each for each in dict.fromkeys(self.conditions.versus) if each not in self.groups]

    def _next_listed(self, k: int) -> int | None:
        following = self.sentence.neighbour(k, 1, gap=1)
        if following is None or self.sentence.items[following].kind not in ("and", "by"):
            return None
        after = self.sentence.neighbour(following, 1, gap=1)
        groups = after is not None and self.sentence.items[after].kind in ("column", "part", "table", "term")
        return after if groups else None

    def _ranks_by(self, i: int, k: int) -> bool:
        """Return whether "by" says what rows are ranked or sorted by, rather than grouped."""
        sentence = self.sentence
        ranks = sentence.items[k].kind == "column" and sentence.text(i) in ("by", "according to")
        if not ranks or sentence.has_kind("count"):
            return False
        column = self.conditions.column(k, lambda c: c.is_measurable or c.kind == "date", "ranked")
        if column is None or self.measures:
            return False
        if sentence.has_kind("superlative"):
            sentence.take(i)  # the column stays for what ranks
            return True
        if _is_kind(column):
            return False
        sentence.take(i, k)
        self.order.append((compared(column), column.is_measurable))
        self.ordering.append(column)
        self.choices.doubt(0.4, "order or groups")
        return True

    def _tells_doer(self, i: int, k: int) -> bool:
        """Return whether "by" says who did something, rather than for whom each: "made by guests from Bern"."""
        last = self.sentence.links.tokens[self.sentence.items[k].last - 1]
        if not (is_verb_form(self.sentence.text(i - 1)) and self.sentence.text(i) == "by" and is_plural(last)):
            return False
        if self.choices.pick(("by", i), [("doer", 1.0), ("groups", 0.95)]) == "groups":
            return False
        self.sentence.take(i, k)
        return True

    def _may_be(self, j: int, fits: Callable[[LinkedColumn], bool]) -> bool:
        meant = (m for item in self.sentence.items[j : j + 1] for m in item.meanings)
        things = (named.thing for named in meant if isinstance(named, Named))
        return any(isinstance(thing, LinkedColumn) and fits(thing) for thing in things)

    def _group_by(self, k: int) -> bool:
        sentence, span = self.sentence, self.sentence.items[k]
        if span.kind == "column":
            column = self.conditions.column(k, lambda c: c.kind != "prose", "group")
            if column is None:
                return False
            if span.how == "part" and column.is_measurable:
                self.choices.doubt(0.2, "groups of an amount that a part of its name names")  # "month" of `fee_month`
            sentence.take(k)
            self._add_group(column)
            return True
        if span.kind == "part":
            return self._group_by_part(k)
        if span.kind == "term":
            return self._group_by_term(k)
        if span.kind == "table":
            relation = next((r for r in span.meanings if r.name in self.world.graph.ways(self.main.name)), None)
            if relation is None:
                return False
            sentence.take(k)
            following = [item.kind for item in sentence.items[k + 1 : k + 2]]
            if following == ["column"] and self._may_be(k + 1, lambda c: c.relation is relation):
                return self._group_by(k + 1)  # "by supplier country"
            own = next((c for c in self.world.columns(self.main.name) if c.words == relation_words(relation)), None)
            if relation is not self.main and own is not None and own.kind == "text":
                self._add_group(own)  # a column of the rows themselves goes before a table of its name
                return True
            if relation is self.main:
                mean = bool(self.measures) and isinstance(self.measures[-1], exp.Avg | exp.Median)
                lists = not self.measures and not sentence.has_kind("count", "share", "superlative")
                self.choices.doubt(0.9 if mean or lists else 0.5, "per row")  # "name and age of each grower"
                return True
            if not self.world.is_single(self.main.name, relation.name):
                raise NotComposed
            self._add_group(self.world.index.name_of(relation))
            return True
        return False

    def _add_group(self, column: LinkedColumn) -> None:
        """Group by a column; by the key too where rows of another relation may share a name."""
        if not self.world.is_single(self.main.name, column.relation.name):
            raise NotComposed
        if column.relation is not self.main and column is self.world.index.name_of(column.relation):
            way: tuple[Hop, ...] = self.world.graph.ways(self.main.name)[column.relation.name]
            key = self.world.index.column(column.relation.name, way[-1].right_column)
            names = key is column or column.relation.key == (column.name,)
            if key is not None and not names and not key.column.private:
                self.groups.append(plain(key))
            self.groups += [plain(each) for each in name_columns(self.world.columns(column.relation.name))]
            return
        self.groups += [own for each in self._with_names(column) if (own := kinds_of(each)) not in self.groups]

    def _group_by_part(self, k: int) -> bool:
        """Group by a part of a date."""
        name = self.sentence.items[k].meanings[0]
        after = self.sentence.neighbour(k, 1, gap=1)
        if after is None or not self._is_column(after) or self.sentence.used[after]:
            after = next((j for j in self.sentence.of("column") if self._may_be(j, lambda c: c.kind == "date")), None)
        dates = [(c, 0.9 if c.words == ("date",) else 0.8) for c in self.world.dates(self.main.name)]
        if after is not None and self._is_column(after) and not self.sentence.used[after]:
            named = self.conditions.column(after, lambda c: c.kind == "date", "dated")
            if named is not None:
                dates = [(named, 1.0)]
                self.sentence.take(after)
        if not dates:
            return False
        self.sentence.take(k)
        if len(dates) == 1:
            dates = [(dates[0][0], 1.0)]
        column = self.choices.pick(("part", k), dates)
        self.groups += self._years_of(name, column)
        self.groups.append(part(name, column, self.world.dialect))
        return True

    def _years_of(self, name: str, column: LinkedColumn) -> list[exp.Expr]:
        """Return what tells the months of different years apart, where nothing says that they are put together."""
        said = {token.stem for token in self.sentence.links.tokens}
        several = name in ("month", "quarter") and len({day[:4] for day in self.world.index.days_of(column)}) > 1
        told = self.partial or self.sentence.has_kind("period") or bool(said & {"year", "calendar"})
        if told or not several or any(test.column is column for test in self.conditions.tests):
            return []
        self.choices.doubt(0.6, f"the {name}s of each year, or of all")
        years = [part("year", column, self.world.dialect)]
        return self.choices.pick(("years", name), [([], 1.0), (years, 0.97)])

    def _subject(self, any_column: bool = False) -> tuple[int, LinkedColumn | None] | None:
        """Return the noun that is asked for: the first column of kinds, part or table that nothing else uses.

        Args:
            any_column: a column of amounts may be it, as in "the most common age".
        """
        sentence = self.sentence
        for i, span in enumerate(sentence.items):
            if span.kind not in ("column", "table", "part", "noun", "term"):
                continue
            if sentence.used[i] and not (span.kind == "noun" or (span.kind == "table" and self.main in span.meanings)):
                continue
            if span.kind == "table" and self._may_be(i + 1, lambda c, s=span: c.relation in s.meanings):  # type: ignore[misc]
                continue  # "the most common street name"
            if span.kind == "column":
                fits = (lambda c: c.kind != "prose") if any_column else _is_kind
                column = self.conditions.column(i, fits, "subject")
                if column is not None:
                    return i, column
                continue
            if span.kind != "term" or span.meanings[0].kind == "dimension":
                return i, None
        return None

    def _group_by_subject(self, any_column: bool = False) -> bool:
        """Group by the noun that is asked for; False where it is the rows' own. See `_subject` for `any_column`."""
        subject = self._subject(any_column)
        if subject is None:
            return bool(self.groups)
        i, column = subject
        span = self.sentence.items[i]
        if column is not None:
            self.sentence.take(i)
            self._add_group(column)
            self._leave_out_missing(column)
            return True
        if span.kind in ("part", "term"):
            return self._group_by(i)
        if span.kind == "table" and self.main not in span.meanings and self._group_by(i):
            if isinstance(self.groups[-1], exp.Column):
                self.extra.append(is_there(self.groups[-1]))
            return True
        return False

    def _leave_out_missing(self, column: LinkedColumn) -> None:
        finds, way = self.world.graph.finds, self.world.graph.ways(self.main.name)[column.relation.name]
        leads_nowhere = any(finds(hop.left, is_missing(hop.own)) for hop in way)
        if column.kind == "text" and "" in self.world.index.values_of(column):
            self.extra.append(exp.NEQ(this=plain(column), expression=text("")))
        elif leads_nowhere or finds(column.relation.name, is_missing(plain(column))):
            self.extra.append(is_there(plain(column)))

    def _having(self) -> None:
        """Turn "cities with more than 200 orders", "states with total sales over 1000" into conditions on groups."""
        sentence = self.sentence
        for i in list(sentence.of("compare")):
            comparison: Comparison = sentence.items[i].meanings[0]
            k = sentence.neighbour(i, 1, gap=1, over=("value",))
            times = comparison.unit == TIMES
            counted = k is not None and (
                sentence.items[k].kind == "noun"
                or (sentence.items[k].kind == "table" and self.main in sentence.items[k].meanings)
            )
            last = sentence.items[k].last - 1 if k is not None and not sentence.used[k] else None
            several = last is not None and is_plural(sentence.links.tokens[last])
            things = self._column_at(k, lambda c: c.kind == "text", "counted") if several else None
            if things is not None or times or counted:
                if k is not None and not times:
                    sentence.take(k)
                if not self._group_by_subject(any_column=times):
                    raise NotComposed
                sentence.take(i)
                if things is None or self.world.is_unique(things):
                    self._count_rows()
                else:
                    self.measures.append(aggregate("COUNT", things))
                self.having.append(self.conditions.compare(self.measures[-1], comparison))
                continue
            before = sentence.neighbour(i, -1, gap=3)
            computed = [m for m in self.measures if not isinstance(m, exp.Count)]
            if computed and before is not None and sentence.used[before] and not comparison.measured:
                if self.groups or self._group_by_subject():
                    sentence.take(i)
                    column = self.world.column_of(computed[-1])
                    self.having.append(self.conditions.compare(computed[-1], comparison, column))
