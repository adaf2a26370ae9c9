"""What a text may hold that is sent to Spark: one SELECT over known tables, with functions that only compute.

It is read again as Spark would read it. Functions are allowed by name; tables are those of the catalog, the session's
own, and members of WITH: a path (parquet.`/folder`) is none of these.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from functools import lru_cache

import sqlglot
from sqlglot import exp

from almanaq.errors import NotSupportedError, ProgrammingError, RefusedQueryError, first_line
from almanaq.suql.syntax.dialect import MISREAD
from almanaq.suql.syntax.functions import CLASSES
from almanaq.suql.syntax.nodes import nodes_of

ROW = "_row"
"""The column that numbers the rows of what one step makes for the next (`plan/stages.py`)."""
Place = tuple[str, ...]
OWN = frozenset(
    """
    any_value array array_agg array_append array_compact array_contains array_distinct array_except
    array_intersect array_join array_max array_min array_position array_prepend array_size array_sort
    arrays_overlap bool_and bool_or btrim ceil char_length collect_list concat concat_ws convert_timezone
    count_if date_add date_diff date_format date_trunc day dayofweek dayofyear element_at every exists explode
    explode_outer extract filter forall format_number from_json get get_json_object hex if initcap instr isnan
    json_array_length last_day left length listagg locate lpad ltrim make_date make_dt_interval make_interval
    make_timestamp make_timestamp_ntz map_from_arrays md5 monotonically_increasing_id months_between
    named_struct nullif octet_length percentile percentile_cont percentile_disc pmod posexplode quarter range
    regexp_count regexp_extract regexp_extract_all regexp_like regexp_replace repeat replace reverse right rint
    round rpad rtrim sequence sha2 shiftleft shiftright sign signum size slice sort_array split split_part
    string_agg struct substr substring sum to_date to_json to_timestamp to_timestamp_ntz transform translate
    trim trunc try_divide try_element_at unhex unix_date unix_micros weekday weekofyear width_bucket xxhash64
    zip_with
    """.split()
)
"""Functions of Spark that the emitter writes under names that sqlglot has no class for."""
_CLASSES = frozenset(
    """
    And Anonymous AnonymousAggFunc ApproxQuantile Array ArrayContains ArrayFilter ArraySize ArraySort
    ArrayToString ArrayUniqueAgg AtTimeZone Avg Case Cast Coalesce CollectList Concat ConcatWs ConvertTimezone
    Count CountIf CurrentDate CurrentTimestamp DateAdd DateDiff DateTrunc Day DayOfWeek DayOfYear Exists Explode
    ExplodeOuter Extract Filter Flatten Format GenerateSeries GroupConcat Hex If Initcap IntDiv Interval
    JSONExtract JSONExtractScalar JSONFormat LastDay Left Length Lower Max MD5 Min Month Not Nullif Or Pad
    ParameterizedAgg PercentileCont PercentileDisc Posexplode Quantile Quarter Rand Reduce RegexpExtract
    RegexpExtractAll RegexpILike RegexpLike RegexpReplace RegexpSplit Repeat Replace Reverse Right Round SHA2
    SortArray Split StarMap Stddev StrPosition StrToTime Struct Substring Sum TimestampAdd TimestampTrunc
    TimeStrToTime TimeToStr ToChar Transform Trim Trunc TryCast TsOrDsAdd TsOrDsToDate Unhex UnixToTime Unnest
    Upper Variance WeekOfYear Xor Year
    """.split()
)


@dataclass(frozen=True, slots=True)
class Allowed:
    """What a text may name.

    Attributes:
        places: where the tables of the catalog are, in lower case.
    """

    places: frozenset[Place]


def check_text(sql: str, allowed: Allowed, prefix: str) -> frozenset[Place]:
    """Return the tables of the catalog that a text reads.

    Raises:
        ProgrammingError, NotSupportedError: it is not one SELECT.
        RefusedQueryError: it names something else, or a function that is not allowed.
    """
    places, others = _read(sql.replace(prefix, "session_"))
    for place in others:
        if tuple(part.lower() for part in place) not in allowed.places:
            raise RefusedQueryError(f"{'.'.join(place)} is no table of this source, and nothing else is read")
    return places


def reads_numbered(sql: str, tables: Collection[str]) -> bool:
    """Tell whether a text gives the numbered rows of one of these tables, in no order."""
    tree = _parsed(sql)
    if not isinstance(tree, exp.Select) or any(tree.args.get(part) for part in ("order", "limit", "group", "distinct")):
        return False
    source = tree.args.get("from_")
    plain = source is not None and isinstance(source.this, exp.Table) and source.this.name in tables
    return plain and any(item.alias_or_name == ROW for item in tree.selects)


@lru_cache(maxsize=256)
def _read(sql: str) -> tuple[frozenset[Place], frozenset[Place]]:
    tree = _parsed(sql)
    members = {cte.alias.lower() for cte in nodes_of(tree, exp.CTE)}
    found = set()
    for table in nodes_of(tree, exp.Table):
        if isinstance(table.this, exp.Func):
            continue  # its name is looked at below
        place = tuple(part.name for part in table.parts)
        if len(place) > 1 or (place[0].lower() not in members and not place[0].startswith("session_")):
            found.add(place)
    for node in nodes_of(tree, exp.Func):
        _check_function(node)
    return frozenset(found), frozenset(found)


def _parsed(sql: str) -> exp.Query:
    try:
        trees = [tree for tree in sqlglot.parse(sql, read="spark") if tree is not None]
    except (sqlglot.errors.SqlglotError, *MISREAD) as error:
        raise ProgrammingError(f"not a query: {first_line(error)}") from error
    effects = (exp.Insert, exp.Update, exp.Delete, exp.Merge, exp.Into, exp.Lock, exp.DDL, exp.Command)
    tree = trees[0] if len(trees) == 1 else None
    if not isinstance(tree, exp.Query) or any(
        isinstance(n, effects) and not isinstance(n, exp.Query) for n in tree.walk()
    ):
        raise NotSupportedError("only a single SELECT is run here")
    if tree.find(exp.QueryTransform) is not None:
        raise RefusedQueryError("TRANSFORM runs a program, and is not sent to a cluster")
    return tree


def _check_function(node: exp.Expr) -> None:
    kind = type(node).__name__
    if isinstance(node, exp.Anonymous | exp.AnonymousAggFunc):
        if node.name.lower() in OWN:
            return
        raise RefusedQueryError(f"the function {node.name.lower()!r} is not sent to a cluster")
    if kind not in CLASSES and kind not in _CLASSES and not isinstance(node, exp.Connector):
        raise RefusedQueryError(f"the function {node.key!r} is not sent to a cluster")
