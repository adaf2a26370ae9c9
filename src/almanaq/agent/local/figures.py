"""Figures: "average price", "how many orders" → the measures of a query."""

from __future__ import annotations

from sqlglot import exp

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
                self.names_main = True
                self._total_rows(("total", i), 0.6)
        elif function == "SUM" and k is not None and self.sentence.items[k].kind == "count":
            self.sentence.take(i)

    def _group_by(self, k: int) -> bool:
        """Group by what a place means; `Groups` says how."""
        raise NotImplementedError

    def _total_rows(self, key: tuple[str, int], counted: float) -> exp.Expr:
        """Add what a number of rows means, and return it: that of the rows, or the sum of the amounts called so."""
        amount = self._amount_of_rows()
        if amount is not None and self.choices.pick(key, [("SUM", 0.95), ("ROWS", counted)]) == "SUM":
            measure = aggregate("SUM", amount)
        else:
            self._doubt_history()
            measure, self.counts = count(), True
        if measure not in self.measures:
            self.measures.append(measure)
        return measure

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
                k = after if after is not None and sentence.items[after].kind in ("table", "noun") else k
            kind = sentence.items[k].kind if k is not None else ""
            held = [t.column for t in self.conditions.tests if t.place == k and kind == "hold"]
            kinds = bool(held) and held[0].kind == "text" and not self.world.is_unique(held[0])
            if kinds and self._count_kinds(i, held[0]):
                continue
            if k is None or kind not in ("table", "column", "noun"):
                self._count_rows()
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
        if self._tells_history() and not rows:
            self.choices.doubt(0.5, "several rows are about one thing")

    def _count_rows(self) -> None:
        self._doubt_history()
        self.counts = True
        self.measures.append(count())

    def _count_kinds(self, i: int, column: LinkedColumn) -> bool:
        """Count the different texts that hold something, or the rows of these; return whether texts are counted."""
        if self.choices.pick(("held", i), [("COUNT", 0.9), ("ROWS", 0.75)]) == "ROWS":
            return False
        self.counts = True
        self.measures.append(aggregate("COUNT", column))
        return True

    def _count_different(self) -> None:
        """Count the things that rows are about: "how many different lifters"."""
        named = self.world.index.name_of(self.main)
        if self.world.is_unique(named):
            self._count_rows()
            return
        if "name" not in named.roles:
            self.choices.doubt(0.6, "different rows")
        self.counts = True
        self.measures.append(aggregate("COUNT", named))

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
        if k + 1 < len(self.sentence.items) and self.main in self.sentence.items[k + 1].meanings and not distinct:
            self.sentence.take(k, k + 1)  # "browser versions" are versions
            self.names_main = True
            self.choices.doubt(0.9, "a noun of two words")
            self._count_rows()
            return
        column = self.conditions.column(k, role="counted")
        if column is None:
            raise NotComposed
        self.sentence.take(k)
        named_like_rows = column.words == relation_words(column.relation)[-1:] and column.relation is self.main
        if column.kind == "prose" or (named_like_rows and not distinct):
            self._count_rows()
            return
        options = [("COUNT", 0.95)]
        if not distinct and self.sentence.text(k - 1) in ("count of", "the count of"):
            self.choices.doubt(0.6, "the number of values, or of rows for each")
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
