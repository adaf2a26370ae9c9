"""What a query may contain: one SELECT, relations, and functions that only compute.

The database's connection is read-only besides; this list keeps errors early and clear, and files and network out.
"""

from __future__ import annotations

import re

from sqlglot import exp

from almanaq.errors import QueryTypeError, RefusedQueryError, UnknownNameError, UnsupportedError, suggest
from almanaq.suql.syntax.text_functions import TEXT_FUNCTIONS, is_text_call

FUNCTIONS = frozenset(
    [
        "abs",
        "acos",
        "age",
        "any_value",
        "array_agg",
        "array_append",
        "array_cat",
        "array_length",
        "array_position",
        "array_prepend",
        "array_remove",
        "array_to_string",
        "arg_max",
        "arg_min",
        "ascii",
        "asin",
        "atan",
        "atan2",
        "avg",
        "bit_and",
        "bit_length",
        "bit_or",
        "bool_and",
        "bool_or",
        "btrim",
        "cardinality",
        "cbrt",
        "ceil",
        "ceiling",
        "char_length",
        "character_length",
        "chr",
        "coalesce",
        "concat",
        "concat_ws",
        "corr",
        "cos",
        "cot",
        "count",
        "covar_pop",
        "covar_samp",
        "cume_dist",
        "date",
        "date_part",
        "date_trunc",
        "degrees",
        "dense_rank",
        "div",
        "every",
        "exp",
        "extract",
        "factorial",
        "first_value",
        "floor",
        "format",
        "gcd",
        "generate_series",
        "greatest",
        "grouping",
        "initcap",
        "isfinite",
        "json_agg",
        "json_array_elements",
        "json_array_length",
        "json_build_object",
        "json_extract_path",
        "json_extract_path_text",
        "json_object_agg",
        "jsonb_agg",
        "jsonb_array_elements",
        "jsonb_array_length",
        "jsonb_build_object",
        "jsonb_extract_path_text",
        "justify_days",
        "lag",
        "last_value",
        "lcm",
        "lead",
        "least",
        "left",
        "length",
        "levenshtein",
        "ln",
        "log",
        "log10",
        "lower",
        "lpad",
        "ltrim",
        "make_date",
        "make_time",
        "make_timestamp",
        "max",
        "md5",
        "median",
        "min",
        "mod",
        "mode",
        "now",
        "nth_value",
        "ntile",
        "nullif",
        "octet_length",
        "overlay",
        "percent_rank",
        "percentile_cont",
        "percentile_disc",
        "pi",
        "position",
        "power",
        "radians",
        "rank",
        "regexp_count",
        "regexp_like",
        "regexp_match",
        "regexp_matches",
        "regexp_replace",
        "regexp_split_to_array",
        "regr_slope",
        "repeat",
        "replace",
        "reverse",
        "right",
        "round",
        "row_number",
        "rpad",
        "rtrim",
        "sha256",
        "sign",
        "sin",
        "split_part",
        "sqrt",
        "starts_with",
        "stddev",
        "stddev_pop",
        "stddev_samp",
        "strftime",
        "string_agg",
        "string_to_array",
        "strpos",
        "strip",
        "substr",
        "substring",
        "sum",
        "tan",
        "to_char",
        "to_date",
        "to_number",
        "to_timestamp",
        "translate",
        "trim",
        "trunc",
        "unnest",
        "upper",
        "var_pop",
        "var_samp",
        "variance",
        "width_bucket",
    ]
)
"""Functions that sqlglot has no class of its own for and that a query may call by name."""

REFUSED_CLASSES = tuple(
    getattr(exp, name)
    for name in ("ReadCSV", "ReadParquet", "CurrentUser", "SessionUser", "CurrentSchema", "CurrentCatalog")
    if hasattr(exp, name)
)
ANSWER_TYPES = ("text", "integer", "bigint", "numeric", "double precision", "date", "timestamp", "time", "boolean")
_STATEMENT_NAMES = {"Command": "command"}


def check_allowed(tree: exp.Expr, query: str) -> None:
    """Raise RefusedQueryError unless a tree is a SELECT made of allowed parts; point at the faulty place."""
    if isinstance(tree, exp.Subquery):
        tree = tree.unnest()
    if not isinstance(tree, exp.Query):
        kind = _STATEMENT_NAMES.get(type(tree).__name__, type(tree).__name__.upper())
        raise RefusedQueryError(f"only a SELECT may run here; this is a {kind} statement")
    for node in tree.walk():
        _check_node(node, query)


def _check_node(node: exp.Expr, query: str) -> None:
    if isinstance(node, exp.Into | exp.Lock | exp.DML | exp.DDL | exp.Command) and not isinstance(node, exp.Query):
        raise RefusedQueryError(f"only reading is allowed here; {type(node).__name__.upper()} is refused")
    if isinstance(node, exp.Table):
        _check_table(node, query)
    elif isinstance(node, REFUSED_CLASSES):
        raise RefusedQueryError(f"the function {node.sql_name().lower()} is not allowed in a query")
    elif isinstance(node, exp.MatchAgainst):
        raise UnsupportedError("full-text search (@@) is not supported: use ILIKE, or ~ with a pattern")
    elif isinstance(node, exp.Window) and is_text_call(node.this):
        start, end = _position(node, node.this.name, query)
        message = f"{node.this.name}() is no window function: it reads one document of each row"
        raise QueryTypeError(message, query=query, start=start, end=end)
    elif isinstance(node, exp.Cast) and is_text_call(node.this) and node.to.this == exp.DType.USERDEFINED:
        name = node.to.args["kind"].name
        start, end = _position(node, name, query)
        message = f"no type named {name!r} that an answer is read as{suggest(name, ANSWER_TYPES)}"
        raise QueryTypeError(message, query=query, start=start, end=end)
    elif isinstance(node, exp.Anonymous) and node.name.lower() not in FUNCTIONS | set(TEXT_FUNCTIONS):
        name = node.name
        start, end = _position(node, name, query)
        message = f"no function named {name!r}{suggest(name, [*FUNCTIONS, *TEXT_FUNCTIONS])}"
        raise UnknownNameError(message, query=query, start=start, end=end)


def _check_table(node: exp.Table, query: str) -> None:
    """Tables are relations by name: no files, no table functions but unnest and generate_series."""
    if isinstance(node.this, exp.Func) and not isinstance(node.this, exp.GenerateSeries | exp.Unnest):
        name = node.this.name if isinstance(node.this, exp.Anonymous) else node.this.sql_name()
        start, end = _position(node.this, name, query)
        raise RefusedQueryError(
            f"the table function {name.lower()!r} is not allowed; FROM takes relations, subqueries, unnest and "
            "generate_series",
            query=query,
            start=start,
            end=end,
        )
    if node.args.get("pivots"):
        raise UnsupportedError("PIVOT is not supported: write aggregates with FILTER (WHERE …)")
    if node.args.get("sample"):
        raise UnsupportedError("TABLESAMPLE is not supported: its rows differ from run to run")


def _position(node: exp.Expr, name: str, query: str) -> tuple[int | None, int | None]:
    """Find where a node stands: functions carry no position, so look for their name followed by a parenthesis."""
    for child in node.find_all(exp.Identifier):
        if "start" in child.meta and child.name == name:
            return child.meta["start"], child.meta["end"]
    found = re.search(rf"\b{re.escape(name)}\s*\(|::\s*(?P<type>{re.escape(name)})\b", query, re.IGNORECASE)
    start = -1 if found is None else found.start("type") if found["type"] else found.start()
    return (start, start + len(name) - 1) if start >= 0 else (None, None)
