"""Plans as values: what the database and the model are to do, in order. Nothing here runs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum

from sqlglot import exp

from almanaq.suql.catalog.linking import Link
from almanaq.suql.language import Cited
from almanaq.suql.names import BoundQuery
from almanaq.suql.plan.predicates import Predicate
from almanaq.suql.plan.sites import Site, site_of, text_columns


@dataclass(frozen=True, slots=True)
class NativeQuery:
    """A checked query in the engine's own SQL.

    Attributes:
        text: its SQL; tables of earlier stages stand in it as `almanaq_work.name`.
        parameters: values that the driver binds, by position or by name.
        tables: those tables of earlier stages.
        lookups: marks in its SQL, each with the query whose values take its place.
    """

    text: str
    parameters: Sequence[object] | Mapping[str, object] = field(default=(), compare=False)
    tables: tuple[str, ...] = ()
    lookups: tuple[tuple[str, str], ...] = ()


ROW = "_row"
"""The column that identifies a row in every intermediate table."""
ORDINAL = "_ord"
"""The column that holds a row's place in its block's ORDER BY."""


class RowName(Enum):
    """What evidence names a row by: its declared key, its place in the relation, its address there, or nothing."""

    KEY = "key"
    NUMBER = "number"
    ADDRESS = "address"
    NOTHING = "nothing"


@dataclass(frozen=True, slots=True)
class EvidenceSource:
    """Where the document of a site stands: a column of a relation, in the row that `key` names.

    Attributes:
        key: the names by which the block refers to what names a row: its key columns, or its number or address.
        about: the place in words, with the relation's title.
    """

    site: str
    relation: str
    column: str
    key: tuple[str, ...]
    about: str = ""
    named: RowName = RowName.KEY


FIRST_ROWS = "first_rows"
"""What a SELECT is marked by whose rows are not all wanted, with a FirstRows."""


@dataclass(frozen=True, slots=True)
class FirstRows:
    """What rows of a block will do: of each value of a key the first that passes in an order, or any.

    Attributes:
        key, order: of the block's outputs; without an order, any row will do.
        wanted: so many values will do, because of a LIMIT around the block; None: all are wanted.
        ordered: these have to be the least of those that pass.
    """

    key: exp.Expr
    order: tuple[exp.Expr, ...] = ()
    wanted: int | None = None
    ordered: bool = False

    def mark(self, block: exp.Select) -> None:
        block.meta[FIRST_ROWS] = self

    def over(self, outputs: Mapping[str, exp.Expr]) -> FirstRows:
        """Return the same of what outputs stand for."""

        def resolve(node: exp.Expr) -> exp.Expr:
            return node.transform(lambda part: outputs[part.name].copy() if isinstance(part, exp.Column) else part)

        return replace(self, key=resolve(self.key), order=tuple(map(resolve, self.order)))


@dataclass(frozen=True, slots=True)
class TextBlock:
    """One SELECT block with text functions and nothing that groups, dedups or looks across rows; becomes a table.

    Its expressions refer to columns of FROM through FROM_ALIAS and to what the model says through TEXT_ALIAS.
    The rules of the optimizer fill in the choices below; as built, every text function is evaluated for every row
    of FROM, and the database filters afterwards.

    Attributes:
        name: the table it becomes: columns c0, c1, …, ROW and, under an ORDER BY, ORDINAL.
        source: a SELECT with FROM and its joins alone; `with_` the members of WITH that its SQL needs.
        columns: the columns of FROM that its expressions refer to, by the names they use.
        light: those of them whose values are small.
        row_id: expression that identifies a row of FROM, when that is just one base table with row ids.
        condition: structured condition under which rows are fetched; None fetches all.
        residual: what the text filter still has to decide.
        filtered: the text filter decides the WHERE; otherwise the block's last SQL does.
        stop_after: rows after which the text filter may stop; None decides all.
        direct: read the one base table by its row ids instead of copying candidates first.
        late: evaluate text that only the output needs for the rows that are returned.
        first_rows: which rows will do, where not all are wanted; `first_only`: the text filter stops at these.
        keeps_unknown: the text filter keeps rows that a failed call leaves undecided (`plan/text_blocks.py`).
        leaves_out_unknown: rows with a failed call among those of the outputs are left out.
    """

    name: str
    source: exp.Select
    columns: tuple[tuple[str, exp.Expr], ...]
    outputs: tuple[exp.Expr, ...]
    where: exp.Expr | None
    order: tuple[exp.Expr, ...]
    limit: exp.Expr | None
    offset: exp.Expr | None
    sites: tuple[Site, ...]
    evidence: tuple[EvidenceSource, ...] = ()
    row_id: exp.Expr | None = None
    with_: exp.With | None = None
    condition: exp.Expr | None = None
    residual: Predicate | None = None
    filtered: bool = False
    stop_after: int | None = None
    direct: bool = False
    late: bool = False
    first_rows: FirstRows | None = None
    first_only: bool = False
    keeps_unknown: bool = False
    leaves_out_unknown: bool = False
    light: frozenset[str] = frozenset()

    @property
    def where_sites(self) -> tuple[Site, ...]:
        return self._used_in([self.where] if self.where is not None else [])

    @property
    def order_sites(self) -> tuple[Site, ...]:
        return self._used_in(self.order)

    @property
    def output_sites(self) -> tuple[Site, ...]:
        return self._used_in([*self.outputs, *self.order])

    def _used_in(self, nodes: Sequence[exp.Expr]) -> tuple[Site, ...]:
        used = {site_of(name) for node in nodes for name in text_columns(node)}
        return tuple(site for site in self.sites if site.id in used)


@dataclass(frozen=True, slots=True)
class Materialize:
    """A SQL stage: the rows of a query become a temporary table.

    Attributes:
        within: the table of which it has no more rows; "" where only the query tells.
    """

    name: str
    select: exp.Query | NativeQuery
    purpose: str
    within: str = ""


@dataclass(frozen=True, slots=True)
class SiteInput:
    """Where a text stage finds the arguments of a site: columns of its source, or the question itself.

    Attributes:
        relation, column, key: where the document stands, for evidence; "" and () where it is computed.
    """

    site: Site
    document: str
    question_column: str | None
    relation: str = ""
    column: str = ""
    key: tuple[str, ...] = ()
    named: RowName = RowName.NOTHING


@dataclass(frozen=True, slots=True)
class TextStage:
    """A text stage: streams rows, asks the model, and stores what it says as a temporary table.

    Attributes:
        name: the table it makes: ROW and, unless it filters, the computed columns of its sites.
        block: the block it belongs to; evidence is kept under that name.
        source: SELECT of ROW, documents, questions, structured atoms, columns that computed atoms need, keys.
        predicate: rows that are not TRUE are dropped; None keeps all and stores the computed columns.
        stop_after: stop when so many rows passed; `ordered` says that they must be the first in source order.
        semi_join_key: column of the source for each value of which one row that passes will do; `ordered`: the first.
        values_wanted: so many of its values will do; None: all are wanted.
        values_ordered: the source gives its values in order, and the first that have a row which passes are wanted.
        keeps_unknown: rows that a failed call leaves undecided are kept too.
        leaves_out_unknown: rows with a failed call are left out of the table of a stage without a predicate.
        sorts: ids of the sites by whose answers the block's rows are sorted.
    """

    name: str
    block: str
    source: exp.Select
    inputs: tuple[SiteInput, ...]
    predicate: Predicate | None = None
    stop_after: int | None = None
    ordered: bool = False
    semi_join_key: str | None = None
    sorts: tuple[str, ...] = ()
    values_wanted: int | None = None
    values_ordered: bool = False
    keeps_unknown: bool = False
    leaves_out_unknown: bool = False

    @property
    def may_infer(self) -> bool:
        """Whether it is a filter that decides all of its rows: one that LIMIT or EXISTS stops is exact."""
        return self.predicate is not None and self.stop_after is None and self.semi_join_key is None


@dataclass(frozen=True, slots=True)
class SimilarityCall:
    """One distinct call of `similarity`: which columns of a stage's source it compares, and that of its own table.

    Attributes:
        other: the column of the second text; None where it is `words`, the same for every row.
        at_least: rows with a score below it, or none, are not wanted; None: all are.
        most: so many rows with the highest scores will do, with all that have the score of the last, and all that have
            none; None: all are wanted.
    """

    column: str
    document: str
    other: str | None
    words: str = ""
    at_least: float | None = None
    most: int | None = None


@dataclass(frozen=True, slots=True)
class SimilarityStage:
    """Compares texts by the vectors of an embedder; its table has ROW and a column for each call, for rows wanted."""

    name: str
    source: exp.Select
    calls: tuple[SimilarityCall, ...]


@dataclass(frozen=True, slots=True)
class SimilarityJoin:
    """Finds the pairs of rows whose texts are alike; its table has `l` and `r`, the rows, and `score`.

    Attributes:
        left, right: SELECTs of ROW and of the text, `d`.
        at_least: no pair with a score above it is left out; pairs below it may be.
    """

    name: str
    left: exp.Select
    right: exp.Select
    at_least: float


@dataclass(frozen=True, slots=True)
class Output:
    """The last SQL stage: the rows of the result.

    Attributes:
        names: what the visible columns are called; hidden columns follow them.
        evidence: (block, hidden column) pairs: the column holds one row id of that block, or a list of some.
        cited: of a query that was taken apart: the block whose row a hidden column holds, and what the hidden columns
            that follow it say of where the document stands.
        payload: columns of the last text filter's source that are, for the rows it keeps, the visible columns of the
            result: then nothing is left to run. () where the result is more than that.
    """

    select: exp.Query | NativeQuery
    names: tuple[str, ...]
    evidence: tuple[tuple[str, str], ...] = ()
    payload: tuple[str, ...] = ()
    cited: tuple[tuple[str, Cited], ...] = ()

    @property
    def tree(self) -> exp.Query:
        """The SELECT of a query that is planned; one that the engine runs as it is has none."""
        assert isinstance(self.select, exp.Query)
        return self.select


LogicalStage = Materialize | TextBlock | SimilarityStage | SimilarityJoin
Stage = Materialize | TextStage | SimilarityStage | SimilarityJoin


def selects_of(stage: Stage) -> tuple[exp.Query, ...]:
    """Return the queries that a stage runs in the database, those that were planned."""
    match stage:
        case Materialize():
            return () if isinstance(stage.select, NativeQuery) else (stage.select,)
        case SimilarityJoin():
            return (stage.left, stage.right)
    return (stage.source,)


@dataclass(frozen=True, slots=True)
class LogicalPlan:
    """A query as blocks: what the optimizer's rules rewrite.

    Attributes:
        private_columns: those that a model would read.
        private_compared: those that an embedder would see.
        certain: rows that an unknown answer drops can only be missing from the result (`plan/text_blocks.py`).
        bound: the query that it was made of, to be read only.
    """

    stages: tuple[LogicalStage, ...]
    output: Output
    links: tuple[Link, ...] = ()
    private_columns: tuple[str, ...] = ()
    private_compared: tuple[str, ...] = ()
    certain: bool = True
    bound: BoundQuery | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Plan:
    """A query as stages that run in order, and the SELECT that shows their rows.

    Attributes:
        spellings: the texts that the query writes itself: a reply that is equal to one is spelled like it.
    """

    links: tuple[Link, ...]
    stages: tuple[Stage, ...]
    output: Output
    certain: bool = True
    bound: BoundQuery | None = field(default=None, compare=False, repr=False)
    spellings: tuple[str, ...] = ()

    @property
    def is_native(self) -> bool:
        """Whether the engine runs the query as it is: it has no stage, and no text function."""
        return not self.stages and isinstance(self.output.select, NativeQuery)
