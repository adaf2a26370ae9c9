"""What a query may hold that is sent to Spark: one SELECT over known tables, with functions that only compute.

It is read again as Spark would read it, whoever wrote it. Tables are those of the catalog, the session's own, and
members of WITH: a path (parquet.`/folder`) is none of these. Functions are what the registry holds, less a few, with
reasons.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

from sqlglot import exp

from almanaq.engines.common import KNOWN_AGGREGATES, ListedFunctions
from almanaq.errors import RefusedQueryError, UnsupportedError
from almanaq.suql.catalog.sources import find_cte
from almanaq.suql.language import Statement
from almanaq.suql.syntax.nodes import nodes_of, quoted
from almanaq.suql.text_functions import TEXT_FUNCTIONS
from almanaq.suql.tree_language import TreeLanguage, called_names, check_reads, read_tree

# --- functions --------------------------------------------------------------------------------------------------------

REFUSED: Mapping[str, str] = {
    **dict.fromkeys(("java_method", "reflect", "try_reflect"), "it calls any method of the server's Java"),
    **dict.fromkeys(
        ("input_file_name", "input_file_block_start", "input_file_block_length"), "it tells where files lie"
    ),
    **dict.fromkeys(("from_protobuf", "to_protobuf"), "it reads a file of the server"),
    **dict.fromkeys(("current_user", "session_user", "user", "version"), "it tells of the connection, not of its data"),
    **dict.fromkeys(
        ("secret", "try_secret", "list_secrets", "is_account_group_member"), "it reads the server's secrets"
    ),
    **dict.fromkeys(("ai_*", "http_request", "vector_search", "remote_query"), "it sends data elsewhere"),
    **dict.fromkeys(("read_*", "cloud_files_state", "event_log"), "it reads files"),
    "python_worker_logs": "it reads the server's logs",
    "identifier": "it names what a text says: write the name",
}
"""Functions of the registry, or of servers that have more than Spark, which do more than compute from arguments.

`raise_error` and `assert_true` only end the query that calls them; nothing in Spark waits, or runs a text as SQL.
"""

IN_FROM = frozenset(
    """
    explode explode_outer inline inline_outer json_tuple posexplode posexplode_outer range stack variant_explode
    variant_explode_outer
    """.split()
)
"""Functions that make rows of their arguments alone."""
_AGGREGATES = frozenset(
    """
    any bit_and bit_or bit_xor bitmap_construct_agg bitmap_or_agg collect_list collect_set count_min_sketch every
    histogram_numeric hll_sketch_agg hll_union_agg listagg mean percentile percentile_approx approx_percentile
    schema_of_variant_agg some std string_agg try_avg try_sum
    """.split()
)
"""Functions that aggregate, and that sqlglot has no class for: the registry lists names alone."""


_WITH_UNITS = frozenset("dateadd datediff date_add date_diff timestampadd timestampdiff".split())
"""Functions whose first argument of three is a unit; some are in Spark's grammar, not in its registry."""
_SEVERAL_COLUMNS = frozenset(
    """
    inline inline_outer json_tuple posexplode posexplode_outer stack variant_explode variant_explode_outer
    """.split()
)


def list_functions(system: Iterable[str], user: Iterable[str] = ()) -> ListedFunctions:
    """Return the functions of a server by their names: those that come with it, and those that somebody defined."""
    built_in = frozenset(name.lower() for name in system) | _WITH_UNITS
    own = frozenset(name.lower().rpartition(".")[2] for name in user) - built_in
    return ListedFunctions(built_in, (_AGGREGATES | KNOWN_AGGREGATES) & built_in, IN_FROM, REFUSED, own)


# --- trees ------------------------------------------------------------------------------------------------------------


class SparkLanguage(TreeLanguage):
    def tree(self, statement: Statement, width: int) -> exp.Expr:
        tree = super().tree(statement, width)
        for call in nodes_of(tree, exp.Func):
            name = _name_of(call)
            if name in _WITH_UNITS and len(call.expressions) == 3:
                unit = call.expressions[0]
                if isinstance(unit, exp.Column) and not unit.table:
                    unit.replace(exp.var(unit.name))
            if name in _SEVERAL_COLUMNS and isinstance(call.parent, exp.Select | exp.Alias | exp.Aliases):
                raise UnsupportedError(
                    f"{name}() makes several columns, which SELECT does not list beside text functions: write "
                    f"LATERAL VIEW {name}(…) made AS a, b"
                )
        _name_fields(tree)
        return tree


def _name_of(call: exp.Func) -> str:
    return str(call.name if isinstance(call, exp.Anonymous) else call.sql_name()).lower()


def _name_fields(tree: exp.Expr) -> None:
    """Name the fields of structs as Spark does, after columns that are called otherwise where the tree is computed.

    `struct(a, f(b))` and `(a, f(b))` become `named_struct('a', a, 'col2', f(b))`, and `arrays_zip(a, b)`
    `transform(arrays_zip(coalesce(a), coalesce(b)), z -> named_struct('a', z.`0`, 'b', z.`1`))`.
    """
    for row in reversed(nodes_of(tree, exp.Func, exp.Tuple)):
        of_value = isinstance(row.parent, exp.Alias | exp.Func | exp.Select) and isinstance(row, exp.Tuple)
        name = "struct" if of_value else _name_of(row) if isinstance(row, exp.Func) else ""
        if name == "struct" and not any(part.is_star for part in row.expressions):
            names = [_name_field(part, f"col{i}") for i, part in enumerate(row.expressions, 1)]
            row.replace(_named_struct(names, [part.unalias() for part in row.expressions]))
        elif name == "arrays_zip":
            names = [_name_field(part, str(i)) for i, part in enumerate(row.expressions)]
            unnamed = [exp.Anonymous(this="coalesce", expressions=[part]) for part in row.expressions]
            parts = [exp.Dot(this=exp.to_identifier("z"), expression=quoted(str(i))) for i in range(len(names))]
            renamed = exp.Lambda(this=_named_struct(names, parts), expressions=[exp.to_identifier("z")])
            zipped = exp.Anonymous(this="arrays_zip", expressions=unnamed)
            row.replace(exp.Anonymous(this="transform", expressions=[zipped, renamed]))


def _named_struct(names: Sequence[str], parts: Sequence[exp.Expr]) -> exp.Anonymous:
    pairs = [each for name, part in zip(names, parts, strict=True) for each in (exp.Literal.string(name), part)]
    return exp.Anonymous(this="named_struct", expressions=pairs)


def _name_field(part: exp.Expr, otherwise: str) -> str:
    """Return what Spark calls a field: as its alias, a column or a field is called; `otherwise` what is computed."""
    read = part.unnest()
    if isinstance(read, exp.Alias | exp.Column | exp.Dot | exp.Identifier):
        return str(read.alias_or_name)
    if isinstance(read, exp.Bracket) and len(read.expressions) == 1 and read.expressions[0].is_string:
        return str(read.expressions[0].name)
    return otherwise


# --- statements -------------------------------------------------------------------------------------------------------

ROW = "_row"
"""The column that numbers the rows of what one step makes for the next (`plan/stages.py`)."""
Place = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Allowed:
    """What a text may name: where the tables of the catalog are, in lower case, and the functions of the server."""

    places: frozenset[Place]
    functions: ListedFunctions

    def check(self, sql: str, prefix: str) -> frozenset[Place]:
        """Return the tables of the catalog that a text reads; `prefix` begins the names of the session's own tables."""
        tree = read_tree(sql, "spark")
        check_reads(tree)
        found = set()
        for table in nodes_of(tree, exp.Table):
            if not isinstance(table.this, exp.Identifier) or find_cte(table) is not None:
                continue
            place = tuple(part.name for part in table.parts)
            if len(place) == 1 and place[0].startswith(prefix):
                continue
            if tuple(part.lower() for part in place) not in self.places:
                raise RefusedQueryError(f"{'.'.join(place)} is no table of this source, and nothing else is read")
            found.add(place)
        for name, in_from in called_names(sql, tree, "spark"):
            if name.lower() not in TEXT_FUNCTIONS:
                self.functions.check(name, in_from=in_from, allowed=self.functions.own)
        return frozenset(found)


def reads_numbered(sql: str, tables: Collection[str]) -> bool:
    """Return whether a text gives the numbered rows of one of these tables, in no order."""
    tree = read_tree(sql, "spark")
    if not isinstance(tree, exp.Select) or any(tree.args.get(part) for part in ("order", "limit", "group", "distinct")):
        return False
    source = tree.args.get("from_")
    plain = source is not None and isinstance(source.this, exp.Table) and source.this.name in tables
    return plain and any(item.alias_or_name == ROW for item in tree.selects)
