"""Draft: a query while it is composed: what its parts are so far, and what rows of other relations belong to a row."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

from sqlglot import exp

from almanaq.agent.linking.amounts import Comparison
from almanaq.agent.linking.columns import LinkedColumn, name_columns, relation_words
from almanaq.agent.linking.joins import is_there, table_of
from almanaq.agent.linking.spans import Span
from almanaq.agent.linking.words import is_plural, value_key
from almanaq.agent.local.conditions import Conditions
from almanaq.agent.local.phrases import Phrase
from almanaq.agent.local.sentence import Choices, Sentence
from almanaq.agent.local.spec import Order, count
from almanaq.agent.local.texts import is_searched
from almanaq.agent.local.world import World
from almanaq.suql.catalog.relations import Relation


class NotComposed(Exception):
    """The spans make no query over these rows."""


HAVING = frozenset(("have", "has", "had", "having", "with"))
_UNNAMED, _ALONE, _SAID_AGAIN, _IS_VALUE, _SURE_PART = 0.5, 0.8, 0.9, 0.3, 0.7
"""How surely a noun of which nothing is known means the rows, one beside no other, one after their own, and one that is
a value of theirs; how sure a part of a value has to be."""


class Draft:
    """A query over the rows of one relation, while it is composed.

    Args:
        main: the relation whose rows are asked for, or put together.
        partial: the question goes on from another, and need not say what is asked for.
    """

    def __init__(self, sentence: Sentence, world: World, main: Relation, choices: Choices, *, partial: bool) -> None:
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
        self.denied: list[tuple[int, Relation]] = []
        self.firsts: list[exp.Expr] = []
        self.searches = is_searched(world, main)
        self.wishes: list[tuple[LinkedColumn, Phrase]] = []

    def _weigh_spans(self) -> None:
        said = [span for span in self.sentence.items if span.kind == "table" and not span.how]
        for span in self.sentence.items:
            if span.how.startswith("misspelt"):
                self.choices.doubt(0.85, self.sentence.links.text(span))
            elif span.kind == "table" and any(
                set(span.meanings) & set(each.meanings) for each in said if each is not span
            ):
                continue  # "growers who" names them twice
            elif span.kind in ("table", "noun") and span.how not in ("", "row") and span.sureness < 1:
                only = len(self.world.catalog.relations) == 1 and span.how in ("part", "described", "unnamed")
                only |= span.how in ("part", "described") and span.meanings == (self.main,)
                sure = (1 + span.sureness) / 2 if only else span.sureness
                unnamed = _ALONE if only and self._only_noun(span) else _UNNAMED
                again = any(each.last == span.first for each in said)  # "staff members", but not "senate votes"
                unnamed = _SAID_AGAIN if again else unnamed
                sure = sure if span.kind == "table" else unnamed
                if span.how == "unnamed" and self._is_held(span):
                    sure = min(sure, _IS_VALUE)  # "burritos" are some of the items
                self.choices.doubt(sure, self.sentence.links.text(span))
            elif span.kind == "value" and span.size > 1 and self._ranks(span):
                self.choices.doubt(_IS_VALUE, f"{self.sentence.links.text(span)} may rank")  # an album called "Top 10"
            elif span.kind == "value" and span.how == "part" and self._begins_another_name(span):
                self.choices.doubt(0.1, f"{self.sentence.links.text(span)}, of a name that no value is")
            elif span.kind == "value" and span.how in ("part", "") and span.sureness < _SURE_PART:
                self.choices.doubt(span.sureness, self.sentence.links.text(span))

    def _ranks(self, span: Span) -> bool:
        """Return whether the words of a value ask for the first of a ranking as well."""
        place = (span.first, span.last)
        return any(
            each.kind == "superlative" and (each.first, each.last) == place for each in self.sentence.links.spans
        )

    def _is_held(self, span: Span) -> bool:
        """Return whether values of the rows hold the last word of a span, in the singular or as it stands."""
        noun = self.sentence.links.tokens[span.last - 1]
        held = (m for word in {noun.folded, noun.stem} for m in self.world.index.values_holding((word,)))
        return any(meant.column.relation is self.main for meant in held)

    def _begins_another_name(self, span: Span) -> bool:
        """Return whether a part of values goes on as none of them does: "Old Street", of Old Mill Lane."""
        first, *after = self.sentence.links.tokens[span.first : span.last + 1]
        held = (word for meant in span.meanings for word in value_key(meant.value).split())
        goes_on = len(after) == span.size and first.text[:1].isupper() and after[-1].text[:1].isupper()
        return goes_on and not any(after[-1].folded.startswith(word) for word in held)

    def _only_noun(self, span: Span) -> bool:
        """Return whether an unknown noun means the rows, which no other names: of `children`, "daughters" are some."""
        if not self.main.name.casefold().endswith(relation_words(self.main)[-1]):
            return False
        return [item for item in self.sentence.items if item.kind in ("table", "noun", "term")] == [span]

    def _tables(self) -> Iterator[tuple[int, Relation]]:
        """Yield the spans of other relations that are not used yet."""
        for i in list(self.sentence.of("table")):
            relations = [r for r in self.sentence.items[i].meanings if r.name in self.world.graph.ways(self.main.name)]
            if relations:
                yield i, relations[0]

    def _name_tables(self) -> None:
        """Use the nouns of the rows themselves, and turn "without orders" into conditions."""
        sentence = self.sentence
        timed = self.world.index.timed.get(self.main.name)
        for i in list(sentence.of("table", "noun", "part")):
            span = sentence.items[i]
            if span.kind == "noun" or self.main in span.meanings or timed in span.meanings:
                before = sentence.neighbour(i, -1, gap=1)
                kind = sentence.items[before].kind if before is not None else ""
                k = next((k for k in range(i - 1, 0, -1) if sentence.items[k].kind != "value"), 0)
                if k and span.kind == "table" and sentence.text(k) in HAVING and sentence.items[k - 1].kind == "value":
                    raise NotComposed  # "how many vans have open leases" counts vans
                takes = kind in ("by", "compare", "superlative", "count")
                if takes and before is not None and not sentence.used[before]:
                    continue
                sentence.take(i)
                self.names_main = True
        opening = next((item for item in sentence.items if item.kind not in ("silent", "count")), None)
        if opening is not None and is_plural(sentence.links.tokens[opening.last - 1]):
            meant = [getattr(m, "column", getattr(m, "thing", None)) for m in opening.meanings]
            kinds = opening.how == "plural" or (opening.kind == "column" and getattr(meant[0], "kind", "") == "boolean")
            self.names_main |= kinds and any(getattr(c, "relation", None) is self.main for c in meant)  # "the admins"
        for i, relation in self._tables():
            one = self.world.is_single(self.main.name, relation.name)
            if relation is self.main or (one and not self.world.is_single(relation.name, self.main.name)):
                continue
            before = sentence.neighbour(i, -1, gap=4, over=("by",))  # "are not used by any document"
            if before is not None and sentence.items[before].kind == "not" and not sentence.used[before]:
                sentence.take(before, i, *(k for k in range(before, i) if sentence.items[k].kind == "by"))
                self.denied.append((i, relation))

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
            ways = self.world.graph.ways(self.main.name)
            relations = [r for r in sentence.items[k].meanings if r is not self.main and r.name in ways]
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

    def _with_names(self, column: LinkedColumn) -> list[LinkedColumn]:
        """Return a column with what people call its values: beside a country's code its name, and the other way."""
        ways = self.world.graph.ways(self.main.name)
        if column.relation is self.main:
            target = self.world.target_of(column)
            way = ways.get(target.name, ()) if target is not None else ()
            if target is None or len(way) != 1 or way[0].left_column != column.name:
                return [column]
            named = name_columns(self.world.columns(target.name))
            own = way[0].right_column
            return [column, *(c for c in named if c.kind == "text" and not c.column.private and c.name != own)]
        way = ways.get(column.relation.name, ())
        key = self.world.index.column(self.main.name, way[0].left_column) if len(way) == 1 else None
        if key is None or key.kind != "text" or column is not self.world.index.name_of(column.relation):
            return [column]
        return [key] if way[0].right_column == column.name else [key, column]

    def _tells_history(self) -> bool:
        """Return whether several rows are about one thing at different times: the positions of a storm."""
        named = self.world.index.name_of(self.main)
        columns = self.world.columns(self.main.name)
        timely = any(c.kind == "date" or c.words in (("year",), ("day",), ("date",)) for c in columns)
        repeats = 1 < named.distinct <= (self.main.rows or 0) / 2 and not named.names_rows and named.words == ("name",)
        called = (c for c in columns if c.is_identifier and {*c.words} & {*relation_words(self.main)})
        return timely and repeats and not any(map(self.world.is_unique, called))  # an `animal_no` tells two Rexes apart

    def _check_sums(self, column: LinkedColumn) -> None:
        """Raise NotComposed where figures of a column would lose rows of its relation, or count some twice."""
        own, other = self.main.name, column.relation.name
        if own != other and not (self.world.is_single(own, other) and self.world.is_single(other, own)):
            raise NotComposed

    def _column_at(self, k: int | None, fits: Callable[[LinkedColumn], bool], role: str) -> LinkedColumn | None:
        """Return the column that a place means; None where there is no column that fits."""
        return self.conditions.column(k, fits, role) if k is not None and self._is_column(k) else None

    def _is_column(self, k: int | None) -> bool:
        return k is not None and self.sentence.items[k].kind == "column"
