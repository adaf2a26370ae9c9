"""Groups: "by region and year", "cities with more than 200 orders" → the groups of a query."""

from __future__ import annotations

from sqlglot import exp

from almanaq.agent.linking.amounts import Comparison
from almanaq.agent.linking.columns import LinkedColumn, name_columns, relation_words
from almanaq.agent.linking.index import Named
from almanaq.agent.linking.joins import Hop
from almanaq.agent.local.draft import NotComposed
from almanaq.agent.local.expressions import compared, count, is_there, part, plain, text
from almanaq.agent.local.figures import Figures
from almanaq.suql.catalog.relations import Relation


def _is_kind(column: LinkedColumn) -> bool:
    """Return whether rows can be grouped by a column: a kind, a name, a key of something else, a year."""
    return (
        column.kind in ("text", "boolean")
        or column.is_identifier
        or column.words[-1:] in (("year",), ("week",), ("month",))
    )


class Groups(Figures):
    """Adds what rows are put together by."""

    def _group(self) -> None:
        """Turn "by region and year", "per customer" into groups."""
        sentence = self.sentence
        for i in list(sentence.of("by")):
            k = sentence.neighbour(i, 1, gap=2, over=("distinct", "value"))
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
        self._group_compared()

    def _group_compared(self) -> None:
        """Group by what is set against each other: "2004 vs 2005"."""
        self.groups += [each for each in dict.fromkeys(self.conditions.versus) if each not in self.groups]

    def _next_listed(self, k: int) -> int | None:
        following = self.sentence.neighbour(k, 1, gap=1)
        if following is None:
            comma = self.sentence.text(k + 1) == ","
            return self.sentence.neighbour(k + 1, 1, gap=1) if comma else None
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
        if (
            sentence.items[k].kind != "column"
            or sentence.has_kind("count")
            or sentence.text(i) not in ("by", "according to")
        ):
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
        if _is_kind(column):
            return False
        sentence.take(i, k)
        self.order.append((compared(column), column.is_measurable))
        self.ordering.append(column)
        self.choices.doubt(0.4, "order or groups")
        return True

    def _is_measurable(self, j: int) -> bool:
        return any(
            isinstance(n, Named) and isinstance(n.thing, LinkedColumn) and n.thing.is_measurable
            for n in self.sentence.items[j].meanings
        )

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
            own = self._called(k, relation)
            if relation is not self.main and own is not None and own.kind == "text":
                self._add_group(own)  # a column of the rows themselves goes before a table of its name
                return True
            following = k + 1 < len(sentence.items) and self._is_column(k + 1)
            if following:
                column = self.conditions.column(k + 1, lambda c: c.relation is relation, "group")
                if column is not None:
                    sentence.take(k + 1)
                    self._add_group(column)
                    return True
            if relation is self.main:
                named = self.world.index.name_of(relation)
                if named.kind == "text" and "name" in named.roles and not named.names_rows and named.distinct > 1:
                    self._add_group(named)
                else:
                    self.choices.doubt(0.8, "per row")
                return True
            if not self.world.is_single(self.main.name, relation.name):
                raise NotComposed
            self._add_group(self.world.index.name_of(relation))
            return True
        return False

    def _called(self, k: int, relation: Relation) -> LinkedColumn | None:
        """Return the column of the rows themselves that has the name of a table, as it is or as it is said."""
        span = self.sentence.items[k]
        said = tuple(token.stem for token in self.sentence.links.tokens[span.first : span.last])
        called = (said, relation_words(relation))
        return next((c for c in self.world.columns(self.main.name) if c.words in called), None)

    def _add_group(self, column: LinkedColumn) -> None:
        """Group by a column; by the key too where rows of another relation may share a name."""
        if column.relation is not self.main and not self.world.is_single(self.main.name, column.relation.name):
            raise NotComposed
        if column.relation is not self.main and column is self.world.index.name_of(column.relation):
            way: tuple[Hop, ...] = self.world.graph.ways(self.main.name)[column.relation.name]
            key = self.world.index.column(column.relation.name, way[-1].right_column)
            if (
                key is not None
                and key is not column
                and column.relation.key != (column.name,)
                and not key.column.private
            ):
                self.groups.append(plain(key))
            self.groups += [plain(each) for each in name_columns(self.world.columns(column.relation.name))]
            return
        self.groups += [own for each in self._with_names(column) if (own := plain(each)) not in self.groups]

    def _group_by_part(self, k: int) -> bool:
        """Group by a part of a date; a column that is called so goes before."""
        name = self.sentence.items[k].meanings[0]
        options = [
            (c, self.world.reach(self.main.name, c))
            for each in self.world.graph.ways(self.main.name)
            for c in self.world.columns(each)
            if c.words in ((name,), (name, "number"))
        ]
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
            dates = [
                (c, 0.7)
                for each in self.world.graph.ways(self.main.name)
                if each != self.main.name and self.world.is_single(self.main.name, each)
                for c in self.world.dates(each)
            ]
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

    def _subject(self) -> tuple[int, LinkedColumn | None] | None:
        """Return the noun that is asked for: the first column of kinds, part or table that nothing else uses."""
        sentence = self.sentence
        places = [
            i for i in range(len(sentence.items)) if sentence.items[i].kind in ("column", "table", "part", "noun")
        ]
        for i in places:
            span = sentence.items[i]
            if sentence.used[i] and not (
                span.kind in ("table", "noun") and (span.kind == "noun" or self.main in span.meanings)
            ):
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
            if self._with_names(column) == [column]:
                self._leave_out_missing(column)
            else:
                self.extra.append(is_there(self.groups[-1]))  # rows of nobody are no row of it
            return True
        if span.kind == "part":
            return self._group_by_part(i)
        if span.kind == "table" and self.main not in span.meanings and self._group_by(i):
            if isinstance(self.groups[-1], exp.Column):
                self.extra.append(is_there(self.groups[-1]))
            return True
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
                (sentence.items[k].kind == "table" and self.main in sentence.items[k].meanings)
                or (sentence.items[k].kind == "noun" and sentence.items[k].how == "row")
            )
            if counted and k is not None:
                sentence.take(k)
                if not self._group_by_subject():
                    raise NotComposed
                sentence.take(i)
                if self._amount_of_rows() is not None:
                    self.choices.doubt(0.5, "number or amount of rows")
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
