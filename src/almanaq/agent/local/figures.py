"""Figures: "average price", "how many orders" → the measures of a query."""

from __future__ import annotations

from almanaq.agent.linking.columns import LinkedColumn, relation_words
from almanaq.agent.linking.english import english
from almanaq.agent.linking.joins import key_of
from almanaq.agent.local.draft import Draft, NotComposed
from almanaq.agent.local.expressions import aggregate, count


class Figures(Draft):
    """Adds what is computed of many rows."""

    def _compute(self) -> None:
        """Turn "average price" into measures; "average and maximum" share a column."""
        sentence = self.sentence
        over = ("value", "period", "table", "noun", "aggregate", "and", "distinct", "superlative")
        for i in list(sentence.of("aggregate")):
            function = sentence.items[i].meanings[0]

            def fits(column: LinkedColumn, function: str = function) -> bool:
                return column.is_measurable or (function in ("MIN", "MAX") and column.kind == "date")

            k = sentence.neighbour(i, 1, gap=4, over=over)
            column = self._column_at(k, fits, "measure")
            if column is None:
                k = sentence.neighbour(i, -1, gap=2)
                column = self._column_at(k, fits, "measure")
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

    def _measure(self, function: str, column: LinkedColumn, k: int) -> None:
        self.sentence.take(k)
        self._check_sums(column)
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
            named = self.world.index.name_of(self.main)
            if named.words == ("name",) and named.distinct > 1 and not named.names_rows:
                self.choices.doubt(0.6, "several rows share a name")
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
        after = self.sentence.neighbour(k, 1, gap=1)
        timed = after is not None and self.sentence.items[after].kind in ("period", "compare", "value", "number")
        if timed and (column.kind == "date" or {"year", "founded", "built"} & set(column.words)):
            options = [("ROWS", 0.95)]
            self.sentence.used[k] = False
        elif timed and after == k + 1 and self.sentence.items[after].kind in ("value", "number"):
            options = [("ROWS", 0.9), ("COUNT", 0.6)]
            self.sentence.used[k] = False
        elif column.is_measurable and not distinct:
            sums = english().sums(column.words)
            options = [("SUM", 0.95 if sums else 0.6), ("COUNT", 0.3 if sums else 0.6), ("ROWS", 0.2 if sums else 0.5)]
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
