"""A text stage over the distinct texts of its rows, for databases where fetching rows is expensive.

The database groups the rows by all that decides about them, gives one row of each group, and joins what was said of it
to the others: a text that a million rows have comes here once, and what goes back is as short.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa
from sqlglot import exp

from almanaq.engines.protocols import Session
from almanaq.models.budget import operator
from almanaq.options import Options
from almanaq.suql.execution.evidence import EvidenceBook, rows_behind
from almanaq.suql.execution.render import Renderer
from almanaq.suql.execution.report import RunReport
from almanaq.suql.execution.stage_rows import SiteQuote, StageRow, id_column
from almanaq.suql.execution.threads import in_thread
from almanaq.suql.execution.unknown_answers import MissingAnswer, UnknownAnswers
from almanaq.suql.plan.predicates import Computed, atoms
from almanaq.suql.plan.sites import FROM_ALIAS
from almanaq.suql.plan.stages import ROW, Materialize, TextStage
from almanaq.suql.syntax.nodes import aliased, column, nodes_of, table

FEWEST_ROWS = 10_000
"""Of fewer, each is brought: to group them would take the database longer."""
_OF = "_of"
"""The column that says which row stands for a row."""
_MOST_NAMED = 10_000
"""Rows that lack an answer which are fetched and counted."""
_MOST_OF_A_LIST = 100
"""Rows behind an aggregate that are looked at for examples of quotes."""


@dataclass(frozen=True, slots=True)
class GroupedStage:
    """A text stage as one over groups of rows that are decided alike.

    Attributes:
        whole: the stage as planned; its table is made from that of `stage`.
        stage: the stage over one row of each group.
        same: the columns of the source that the rows of a group share.
    """

    whole: TextStage
    stage: TextStage
    same: tuple[str, ...]

    @property
    def alike(self) -> exp.Expr:
        """The condition under which a row of the source is in the group of another."""
        names = self.same
        return exp.and_(*(exp.NullSafeEQ(this=column("_each", n), expression=column("_one", n)) for n in names))

    def spread(self, said: Iterable[str]) -> Materialize:
        """Return what makes the planned stage's table: all rows of the groups, with columns of what was
        said of them.
        """
        kept = self.stage.name
        select = exp.Select(
            expressions=[
                aliased(column("_each", ROW), ROW),
                aliased(column(kept, ROW), _OF),
                *(aliased(column(kept, name), name) for name in said),
            ],
            from_=exp.From(this=_source(self.whole, "_each")),
            with_=_with(self.whole),
        )
        select.append("joins", exp.Join(this=_source(self.whole, "_one"), on=self.alike))
        select.append("joins", exp.Join(this=table(kept), on=_equal(kept, "_one", ROW)))
        return Materialize(self.whole.name, select, "the rows of each text")


def group_stage(stage: TextStage, rows: Mapping[str, int], options: Options) -> GroupedStage | None:
    """Return a stage over groups of its rows; None where it is to see each row, or has few.

    Args:
        rows: those of the tables that were made so far; a source that is none of them may number its rows anew each
            time that it is read.
    """
    read = stage.source.args["from_"].this
    if not isinstance(read, exp.Table) or rows.get(read.name, 0) < FEWEST_ROWS:
        return None
    if stage.stop_after is not None or stage.semi_join_key is not None or stage.sorts:
        return None
    if options.candidates is not None or options.accuracy is not None or options.counting is not None:
        return None
    same = _deciding(stage)
    outputs = [aliased(exp.Min(this=column("_asked", ROW)), ROW)]
    outputs += [aliased(column("_asked", name), name) for name in same]
    source = exp.Select(
        expressions=outputs,
        from_=exp.From(this=_source(stage, "_asked")),
        group=exp.Group(expressions=[column("_asked", name) for name in same]),
        with_=_with(stage),
    )
    inputs = tuple(replace(item, key=()) for item in stage.inputs)
    return GroupedStage(stage, replace(stage, name=f"{stage.name}_groups", source=source, inputs=inputs), same)


def _deciding(stage: TextStage) -> tuple[str, ...]:
    """Return the columns of a stage's source that decide what becomes of a row: neither its id, its key
    nor its looks.
    """
    used = {item.document for item in stage.inputs}
    used |= {item.question_column for item in stage.inputs if item.question_column is not None}
    for atom in atoms(stage.predicate) if stage.predicate is not None else ():
        used.add(atom.column)
        if isinstance(atom, Computed):
            used |= {c.name for c in nodes_of(atom.expression, exp.Column) if c.table == FROM_ALIAS}
    return tuple(item.alias for item in stage.source.expressions if item.alias in used)


def _equal(one: str, other: str, name: str) -> exp.EQ:
    return exp.EQ(this=column(one, name), expression=column(other, name))


def _source(stage: TextStage, name: str) -> exp.Subquery:
    rows = stage.source.copy()
    rows.set("with_", None)
    return exp.Subquery(this=rows, alias=exp.TableAlias(this=exp.to_identifier(name, quoted=True)))


def _with(stage: TextStage) -> exp.With | None:
    """Return the members of WITH that a source names: what is evaluated over its rows looks for them at the top."""
    members: exp.With | None = stage.source.args.get("with_")
    return None if members is None else members.copy()


class Groups:
    """The text stages of one run that are run over groups, and the quotes of rows for which others were asked about.

    Args:
        wanted: the database is one that is to group rows.

    Attributes:
        said: the columns of what was last said of rows, beside their ids.
    """

    def __init__(
        self,
        session: Session,
        renderer: Renderer,
        book: EvidenceBook,
        unknown: UnknownAnswers,
        options: Options,
        *,
        wanted: bool,
    ) -> None:
        self._session, self._renderer, self._book, self._options = session, renderer, book, options
        self._unknown = unknown
        self._wanted = wanted
        self._current: GroupedStage | None = None
        self._groups: dict[str, list[tuple[GroupedStage, dict[object, StageRow]]]] = defaultdict(list)
        self._found: set[tuple[str, object]] = set()
        self.said: tuple[str, ...] = ()

    def of(self, stage: TextStage, rows: Mapping[str, int]) -> GroupedStage | None:
        """Return a stage as one over groups of rows, where that is wanted; `rows` as in `group_stage`."""
        return group_stage(stage, rows, self._options) if self._wanted else None

    def planned(self, stage: TextStage) -> TextStage:
        """Return the stage of the plan that a stage over groups of its rows stands for, or itself."""
        return stage if self._current is None else self._current.whole

    async def run(
        self,
        group: GroupedStage,
        text: Callable[[TextStage], Awaitable[None]],
        make: Callable[[Materialize], Awaitable[int]],
        report: RunReport,
    ) -> None:
        """Run a text stage over groups of rows, and make its table of all their rows; report it as planned."""
        self._current, self.said = group, ()
        with operator(group.whole.name), self._unknown.of_groups() as missing:
            await text(group.stage)
        self._current = None
        if missing:
            await in_thread(self._name_unknown, group, missing)
        counts = report.text.pop(group.stage.name)
        counts.passed = await make(group.spread(self.said))
        report.text[group.whole.name] = counts

    def _name_unknown(self, group: GroupedStage, missing: Sequence[MissingAnswer]) -> None:
        """Name the rows that lack the answer which the one that stands for them lacks."""
        whole, name = group.whole, f"{group.whole.name}_unknown"
        keys = tuple(dict.fromkeys(label for item in whole.inputs for label in item.key))
        self._session.store(name, pa.table({ROW: id_column(list({each.row: None for each in missing}))}))
        self._renderer.add_table(name)
        outputs = [aliased(column("_one", ROW), _OF), aliased(column("_each", ROW), ROW)]
        select = exp.Select(
            expressions=[*outputs, *(aliased(column("_each", label), label) for label in keys)],
            from_=exp.From(this=table(name)),
            with_=_with(whole),
        )
        select.append("joins", exp.Join(this=_source(whole, "_one"), on=_equal(name, "_one", ROW)))
        select.append("joins", exp.Join(this=_source(whole, "_each"), on=group.alike))
        members: dict[object, list[dict[str, Any]]] = defaultdict(list)
        for row in self._session.fetch(self._renderer.sql(select.limit(_MOST_NAMED))).to_pylist():
            members[row[_OF]].append(row)
        for each in missing:
            item = next(item for item in whole.inputs if item.site.id == each.item.site.id)
            for row in members[each.row]:
                self._unknown.add(replace(each, item=item, row=row[ROW], key=row))

    def keep(self, rows: Iterable[StageRow]) -> bool:
        """Keep what was said of rows that stand for others; tell whether they do."""
        stage = self._current
        if stage is None:
            return False
        known = self._groups[stage.whole.block]
        if not known or known[-1][0] is not stage:
            known.append((stage, {}))
        known[-1][1].update((row.row, row) for row in rows)
        return True

    def stand_in(self, block: str) -> bool:
        """Tell whether rows of a block stand for others."""
        return block in self._groups

    def find(self, block: str, shown: pa.ChunkedArray) -> None:
        """Put the quotes of rows into the book; blocks while the database says which rows stand for them."""
        wanted = {row for rows in shown.to_pylist() for row in rows_behind(rows)[:_MOST_OF_A_LIST]}
        missing = [row for row in wanted if row is not None and (block, row) not in self._found]
        self._found |= {(block, row) for row in missing}
        for stage, replies in self._groups[block] if missing else ():
            for row, one, key in self._stand_ins(stage, missing):
                if one in replies:
                    quotes = [_use_planned_input(quote, stage.whole) for quote in replies[one].quotes]
                    self._book.add(block, replace(replies[one], row=row, key=key, quotes=quotes))

    def _stand_ins(self, stage: GroupedStage, rows: list[Any]) -> Iterable[tuple[Any, Any, dict[str, Any]]]:
        """Yield rows, each with the one that stands for it and its own key."""
        whole, name = stage.whole, f"{stage.whole.name}_shown_{len(self._found)}"
        keys = tuple(dict.fromkeys(label for item in whole.inputs for label in item.key))
        self._session.store(name, pa.table({ROW: id_column(rows)}))
        self._renderer.add_table(name)
        outputs = [aliased(column(name, ROW), ROW), aliased(column(whole.name, _OF), _OF)]
        select = exp.Select(
            expressions=[*outputs, *(aliased(column("_each", label), label) for label in keys)],
            from_=exp.From(this=table(name)),
            with_=_with(whole),
        )
        for joined, label in ((table(whole.name), whole.name), (_source(whole, "_each"), "_each")):
            select.append("joins", exp.Join(this=joined, on=_equal(label, name, ROW)))
        found = self._session.fetch(self._renderer.sql(select))
        for row in found.to_pylist():
            yield row[ROW], row[_OF], {label: row[label] for label in keys}


def _use_planned_input(quote: SiteQuote, stage: TextStage) -> SiteQuote:
    """Return a quote with the stage's own input, which says where a row's key stands."""
    return replace(quote, item=next(item for item in stage.inputs if item.site.id == quote.item.site.id))
