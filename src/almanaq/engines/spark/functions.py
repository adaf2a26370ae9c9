"""Which functions of Spark a query may call: what its registry holds, less a few, with reasons."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from almanaq.engines.rules import KNOWN_AGGREGATES, ListedFunctions

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


def list_functions(system: Iterable[str], user: Iterable[str] = ()) -> ListedFunctions:
    """Return the functions of a server by their names: those that come with it, and those that somebody defined."""
    built_in = frozenset(name.lower() for name in system)
    own = frozenset(name.lower().rpartition(".")[2] for name in user) - built_in
    return ListedFunctions(built_in, (_AGGREGATES | KNOWN_AGGREGATES) & built_in, IN_FROM, REFUSED, own)
