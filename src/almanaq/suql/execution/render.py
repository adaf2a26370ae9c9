"""A stage's tree → SQL text of the engine, kept from run to run, with linked literals and options filled in."""

from __future__ import annotations

import asyncio
import itertools
import re
import threading
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Mapping
from typing import Any

import pyarrow as pa
from sqlglot import Dialect, ErrorLevel, exp
from sqlglot.errors import UnsupportedError as SqlglotUnsupportedError

from almanaq.engines.protocols import Session
from almanaq.engines.rendering import write_for_postgres, write_stage, write_texts
from almanaq.errors import DataError, IntegrityError, UnsupportedError
from almanaq.models.protocols import AllOf, Linker, LinkRequest
from almanaq.suql.catalog.linking import Link, resolve_links
from almanaq.suql.catalog.reading import narrow, written_name
from almanaq.suql.catalog.relations import ROW_COLUMN, Catalog
from almanaq.suql.catalog.sources import find_cte, find_source, is_relation, set_place
from almanaq.suql.execution.calls import TextCalls
from almanaq.suql.execution.evidence import id_column
from almanaq.suql.execution.threads import in_thread
from almanaq.suql.language import WORK_SCHEMA
from almanaq.suql.names import MISREAD
from almanaq.suql.plan.stages import ROW, NativeQuery, Plan, TextStage, selects_of
from almanaq.suql.syntax import nodes
from almanaq.suql.syntax.limits import within_limits
from almanaq.suql.syntax.literals import literal
from almanaq.suql.syntax.nodes import aliased, copy_tree, nodes_of
from almanaq.text.sql_literals import string_literal

_MOST_TEXTS = 16
"""Texts of one tree that are kept: they differ in what links found, and in what became of the tables that it names."""


class Statements:
    """The SQL texts of a plan's own trees; that of any other tree is written each time.

    Temporary tables have other names in every session, which begin with the session's own random prefix: a text is kept
    with the prefix that it was written under, and given with that of the session that asks for it.
    """

    def __init__(self, plan: Plan) -> None:
        self._plan = plan  # as long as its trees live, no other tree has their ids
        trees = [tree for stage in plan.stages for tree in selects_of(stage)]
        self._kept: dict[int, dict[Hashable, tuple[str, str]]] = {id(t): {} for t in (*trees, plan.output.select)}
        """For each tree: what a text depends on ⇒ the prefix of the session that wrote it, and the text."""
        self._names: dict[int, tuple[str, ...]] = {}
        """For each tree: the tables that it names."""

    def text(
        self, tree: exp.Expr, prefix: str, known: Callable[[Iterable[str]], Hashable], write: Callable[[], str]
    ) -> str:
        kept = self._kept.get(id(tree))
        if kept is None:
            return write()
        if id(tree) not in self._names:
            self._names[id(tree)] = tuple(sorted({table.name for table in nodes_of(tree, exp.Table)}))
        state = known(self._names[id(tree)])
        found = kept.get(state)
        if found is None:
            if len(kept) >= _MOST_TEXTS:
                kept.clear()
            found = kept[state] = (prefix, write())
        return found[1].replace(found[0], prefix)


def write_native(query: NativeQuery, session: Session, dialect: str) -> str:
    """Return the SQL of a query with a session's tables, and the values that are looked up, in their places."""

    def place_tables(text: str) -> str:
        for name in sorted(query.tables, key=len, reverse=True):  # part_1 begins part_10
            text = text.replace(f"{WORK_SCHEMA}.{name}", written_name(session.locate(name), dialect))
        return text

    text = place_tables(query.text)
    for mark, lookup in query.lookups:
        values = session.fetch(place_tables(lookup)).column(0).to_pylist()
        if not values:
            raise UnsupportedError("PIVOT finds no values to make columns of: name them, ON … IN ('…')")
        text = text.replace(string_literal(mark), ", ".join(string_literal(str(value)) for value in values))
    return text


_ROWS_WRITTEN_OUT = 100
"""Row ids that are written into SQL instead of a temporary table, which takes longer for so few."""


class Renderer:
    """Writes trees as SQL for one session; knows which temporary tables it has made."""

    def __init__(
        self, session: Session, catalog: Catalog, dialect: str, *, statements: Statements | None = None
    ) -> None:
        self._session, self._catalog, self.dialect = session, catalog, dialect
        self.casts: AnswerCasts | None = None
        """Which answers the engine does not cast: where it has no TRY_CAST, texts say so."""
        self._statements, self._prefix = statements, session.locate("")[-1]
        self._temporary: dict[str, str] = {}
        self._times: Counter[str] = Counter()
        self._empty: set[str] = set()
        self._rows: dict[str, list[Any]] = {}
        self._links: dict[str, Link] = {}
        self._values: dict[str, tuple[str, ...]] = {}

    def create(self, name: str, select: exp.Query | NativeQuery) -> int:
        """Make the temporary table of a SELECT; give its number of rows. Blocks."""
        sql = self.sql(select)
        return self._session.create(self._add(name), sql)

    def store(self, name: str, table: pa.Table) -> None:
        """Make a temporary table of rows, in place of an earlier one under its name in the plan. Blocks."""
        self._session.store(self._add(name), table)
        if not table.num_rows:
            self._empty.add(name)  # its row ids have no type

    def _add(self, name: str) -> str:
        number = self._times[name]
        self._times[name] += 1
        self._temporary[name] = f"{name}__{number}" if number else name
        self._rows.pop(name, None)
        self._empty.discard(name)
        return self._temporary[name]

    def store_rows(self, name: str, rows: list[Any]) -> None:
        """Make a table of row ids; a few are written out where SQL names it. Blocks."""
        if 0 < len(rows) <= _ROWS_WRITTEN_OUT and self.dialect in ("duckdb", "postgres"):
            self._rows[name] = rows
            self._empty.discard(name)
        else:
            self.store(name, pa.table({ROW: id_column(rows)}))

    def add_links(self, links: Mapping[str, Link], values: Mapping[str, tuple[str, ...]]) -> None:
        self._links.update(links)
        self._values.update(values)

    def sql(self, tree: exp.Expr | NativeQuery) -> str:
        """Return the SQL text of a tree; UnsupportedError for what the engine cannot do: no clause is dropped."""
        if isinstance(tree, NativeQuery):
            return write_native(tree, self._session, self.dialect)
        if self.casts is not None and not self.casts.by_engine:
            self.casts.settle()
        with within_limits():
            if self._statements is None:
                return self._with_rows(self._write(tree))
            return self._with_rows(self._statements.text(tree, self._prefix, self._state_of, lambda: self._write(tree)))

    def _state_of(self, names: Iterable[str]) -> Hashable:
        made = tuple((self._temporary.get(name), name in self._empty, name in self._rows) for name in names)
        refused = self.casts.refused if self.casts is not None and not self.casts.by_engine else {}
        return made, tuple(self._values.items()), tuple((cast, tuple(texts)) for cast, texts in refused.items())

    def _with_rows(self, text: str) -> str:
        if not self._rows:
            return text
        marks = {f"'{self._mark(name)}'": rows for name, rows in self._rows.items()}

        def written(mark: re.Match[str]) -> str:
            return "), (".join(
                str(row) if type(row) is int else write_texts(literal(row), self.dialect).sql(self.dialect)
                for row in marks[mark[0]]
            )

        return re.sub("|".join(map(re.escape, marks)), written, text)  # once: what a row id holds is not looked at

    def _mark(self, name: str) -> str:
        """Return the text that stands for the row ids of a table: the session's prefix tells it from any other."""
        return self._prefix + name

    def _write(self, tree: exp.Expr) -> str:
        tree = resolve_links(tree, self._links, self._values) if self._links else copy_tree(tree)
        if self.dialect != "duckdb":
            self._spell_columns(tree)
        if self.casts is not None and not self.casts.by_engine:
            for node in nodes_of(tree, exp.TryCast):
                node.replace(self.casts.write(node))
        for join in nodes_of(tree, exp.Join) if self._empty else ():
            on = join.args.get("on")
            if join.this.name in self._empty and isinstance(on, exp.EQ):
                on.set("this", exp.null())  # nobody knows whether its row ids would be numbers or text
        for table in nodes_of(tree, exp.Table):
            if table.name in self._rows:
                mark = exp.Tuple(expressions=[exp.Literal.string(self._mark(table.name))])
                table.replace(exp.Values(expressions=[mark], alias=nodes.table_alias(table.alias_or_name, [ROW])))
            else:
                self._place(table, tree)
        if self.dialect == "postgres":
            tree = write_for_postgres(tree)
        elif self.dialect != "duckdb":
            tree = write_texts(write_stage(tree, self.dialect), self.dialect)
        try:
            text = tree.sql(self.dialect, copy=False, unsupported_level=ErrorLevel.RAISE, comments=False)
        except SqlglotUnsupportedError as error:
            raise UnsupportedError(f"{self.dialect} cannot do what the query asks: {error}") from error
        except MISREAD as error:
            raise UnsupportedError(f"a function lacks arguments, or has others than {self.dialect} takes") from error
        return text

    def _place(self, table: exp.Table, tree: exp.Expr) -> None:
        if not is_relation(table):
            return
        relation = self._catalog.find(table.name) if table.name not in self._temporary else None
        if relation is None and table.name not in self._temporary:
            return
        place = relation.location if relation is not None else self._session.locate(self._temporary[table.name])
        set_place(table, place)
        if relation is not None and relation.is_narrowed:
            row = any(c.name == ROW_COLUMN and c.table == table.alias for c in nodes_of(tree, exp.Column))
            narrow(table, relation, self.dialect, row=row)

    def _spell_columns(self, tree: exp.Expr) -> None:
        for column in nodes_of(tree, exp.Column):
            item = find_source(column.table, column) if column.table else None
            relation = self._catalog.find(item.name) if isinstance(item, exp.Table) and find_cte(item) is None else None
            found = relation.column(column.name) if relation is not None else None
            if found is not None:
                column.set("this", exp.to_identifier(found.name, quoted=True))


_WITH_TRY_CAST = ("databricks", "spark")
"""Engines that have TRY_CAST, of which sqlglot does not say so."""


class AnswerCasts:
    """The casts of answers to types that the engine alone reads: an answer that it does not take is NULL there.

    An engine without TRY_CAST would end the query at the first: it is asked before which texts it takes.
    """

    def __init__(self, noted: dict[tuple[str, exp.DataType, str], None], session: Session, renderer: Renderer) -> None:
        self._noted, self._session, self._renderer = noted, session, renderer
        writer = Dialect.get_or_raise(renderer.dialect).generator_class
        self.by_engine = bool(writer.TRY_SUPPORTED) or renderer.dialect in _WITH_TRY_CAST
        """Whether the engine has TRY_CAST."""
        self.refused: dict[tuple[str, exp.DataType], list[str]] = {}
        """The texts that the engine does not cast, by question and type."""
        self._lock = threading.RLock()
        self._tables = itertools.count(1)

    def settle(self) -> None:
        with self._lock:
            found: dict[tuple[str, exp.DataType], dict[str, None]] = {}
            while self._noted:
                (question, kind, text), _ = self._noted.popitem()
                found.setdefault((question, kind), {})[text] = None
            for cast, texts in found.items():
                known = self.refused.get(cast, [])
                if refused := self._find_refused(cast[1], list(texts)):
                    self.refused[cast] = list(dict.fromkeys([*known, *refused]))

    def describe(self) -> list[str]:
        self.settle()
        refused, dialect = dict(self.refused), self._renderer.dialect
        return [
            f"{len(texts)} answer(s) to {question!r} could not be read as {kind.sql(dialect).lower()}; they are NULL"
            for (question, kind), texts in refused.items()
        ]

    def write(self, cast: exp.TryCast) -> exp.Expr:
        """Return a cast whose operand is NULL where it is a text that the engine refuses."""
        texts = [text for (_, kind), refused in self.refused.items() if kind == cast.to for text in refused]
        made = exp.cast(cast.this.copy(), cast.to.copy())
        if not texts:
            return made
        refused = cast.this.copy().isin(*map(exp.Literal.string, dict.fromkeys(texts)))
        return exp.Case(ifs=[exp.If(this=refused, true=exp.null())], default=made)

    def _find_refused(self, kind: exp.DataType, texts: list[str]) -> list[str]:
        name = f"_cast_{next(self._tables)}"
        stored = {"_i": pa.array(range(len(texts)), pa.int64()), "v": pa.array(texts, pa.string())}
        self._renderer.store(name, pa.table(stored))
        if self.by_engine:
            refused = exp.TryCast(this=nodes.column(name, "v"), to=kind.copy()).is_(exp.null())
            select = exp.select(aliased(nodes.column(name, "_i"), "_i")).from_(nodes.table(name)).where(refused)
            found = self._session.fetch(self._renderer.sql(select))
            return [texts[i] for i in found["_i"].to_pylist()]
        return [texts[i] for i in self._bisect(name, kind, 0, len(texts))]

    def _bisect(self, name: str, kind: exp.DataType, first: int, end: int) -> list[int]:
        within = nodes.column(name, "_i").between(exp.Literal.number(first), exp.Literal.number(end - 1))
        read = exp.Count(this=exp.cast(nodes.column(name, "v"), kind.copy()))
        try:
            self._session.fetch(self._renderer.sql(exp.select(read).from_(nodes.table(name)).where(within)))
        except (DataError, IntegrityError):
            if end - first == 1:
                return [first]
            middle = (first + end) // 2
            return self._bisect(name, kind, first, middle) + self._bisect(name, kind, middle, end)
        return []


async def find_options(stage: TextStage, calls: TextCalls, session: Session, renderer: Renderer) -> None:
    for site in (item.site for item in stage.inputs):
        if site.options_from is not None and calls.options_of(site) is None:
            found = await in_thread(session.fetch, renderer.sql(site.options_from))
            calls.know_options(site, found.column(0).to_pylist())


async def link_literals(
    links: tuple[Link, ...], linker: Linker, renderer: Renderer
) -> tuple[tuple[str, str, tuple[str, ...]], ...]:
    """Find what each literal means and make it known to the renderer; give (column, literal, values) for the trace."""
    requests = [LinkRequest(link.literal, f"{link.relation}.{link.column}", link.values, link.array) for link in links]
    found = await asyncio.gather(*(linker.link(request) for request in requests))
    known = [_state_of(link, values) for link, values in zip(links, found, strict=True)]
    renderer.add_links({link.id: link for link in links}, dict(zip((link.id for link in links), known, strict=True)))
    return tuple((request.column, request.literal, values) for request, values in zip(requests, known, strict=True))


def _state_of(link: Link, values: tuple[str, ...]) -> tuple[str, ...]:
    if isinstance(values, AllOf):
        return values if set(values) <= set(link.values) else ()
    return tuple(value for value in values if value in link.values)
