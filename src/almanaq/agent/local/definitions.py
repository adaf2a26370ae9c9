"""Defined terms in a query: metrics become measures, dimensions groups, filters conditions, each written out."""

from __future__ import annotations

from collections.abc import Collection

from sqlglot import exp

from almanaq.agent.linking.english import english
from almanaq.agent.linking.words import name_stems, stems
from almanaq.agent.local.draft import Draft, NotComposed
from almanaq.agent.local.spec import TITLE, tables_in
from almanaq.suql.catalog.definitions import write_definition
from almanaq.suql.catalog.terms import Term

_OTHER_UNIT = 0.1
"""How likely a metric is what is asked for in another unit than its own."""


class Defined(Draft):
    """Adds what somebody defined."""

    def _define(self) -> None:
        """Turn the metrics and filters that are named into measures and conditions."""
        sentence, units = self.sentence, set[str]()
        for i in list(sentence.of("term")):
            term = self._term(i)
            if term.kind == "metric":
                sentence.take(i)
                before = sentence.neighbour(i, -1, gap=1)
                if before is not None and sentence.items[before].meanings in (("SUM",), ("COUNT",)):
                    sentence.take(before)  # "total revenue": the definition says how it is put together
                self.measures.append(self._definition(term))
                units.add(term.unit)
            elif term.kind == "filter":
                sentence.take(i)
                self._select(term)
        self._take_units(units)

    def _take_units(self, units: Collection[str]) -> None:
        """Take what asks for metrics in their units, "in EUR" or "what percentage of"; another makes them unsure."""
        sentence, same = self.sentence, english().same_units
        own = {same.get(unit.casefold(), unit.casefold()) for unit in units if unit}
        if "%" in own:
            sentence.take(*sentence.of("share"))
        for k in range(len(sentence.items) if own else 0):
            apart = sentence.text(k - 1) == "in"
            said = sentence.text(k) if apart else sentence.text(k).removeprefix("in ")
            meant = same.get(said, said)
            if (apart or said != sentence.text(k)) and (said in english().units or meant in own):
                sentence.take(k)
                self.choices.doubt(1 if meant in own else _OTHER_UNIT, f"in {said}")

    def _term(self, i: int) -> Term:
        """Return the one term at a place that is about the rows, or raise NotComposed."""
        single = [t for t in self.sentence.items[i].meanings if self._is_reached(t)]
        own = [t for t in single if t.relation == self.main.name] or single
        if not own:
            raise NotComposed
        self.choices.doubt(0.5, "several terms of one name", when=len(own) > 1)
        term: Term = own[0]
        return term

    def _is_reached(self, term: Term) -> bool:
        if term.kind == "metric":
            return term.relation == self.main.name
        return term.relation in self.world.graph.ways(self.main.name)

    def _definition(self, term: Term) -> exp.Expr:
        """Return what a term stands for; raise NotComposed where joins would count rows of it twice."""
        tree = write_definition(term, self.world.catalog)
        others = [name for name in tables_in(tree) if name != self.main.name]
        if any(not self.world.is_single(self.main.name, name) for name in others if term.kind != "filter"):
            raise NotComposed
        for call in tree.find_all(exp.AggFunc):
            if set(tables_in(call)) - {self.main.name} and not isinstance(call.this, exp.Distinct):
                raise NotComposed
        tree.meta[TITLE] = term.name
        return tree

    def _select(self, term: Term) -> None:
        condition = self._definition(term)
        if self.world.is_single(self.main.name, term.relation):
            self.extra.append(condition)
        elif set(tables_in(condition)) == {term.relation}:
            self.extra.append(self._member(self.world.catalog.relation(term.relation), [condition]))
        else:
            raise NotComposed
        own = stems(self.main.name.replace("_", " "))[-1:]
        if term.relation == self.main.name and any(name[-1:] == own for name in name_stems(term)):
            self.names_main = True  # "active customers" names the rows too

    def _group_by_term(self, k: int) -> bool:
        """Group by a dimension."""
        term = self._term(k)
        if term.kind != "dimension":
            return False
        self.sentence.take(k)
        self.groups.append(self._definition(term))
        return True
