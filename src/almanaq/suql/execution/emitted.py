"""What is sent to an engine, looked at once more as text: what no query may make of it is refused.

The tree was checked part by part before (`syntax/allowlist.py`); this finds what a printer made of it against that.
"""

from __future__ import annotations

import re

from sqlglot import exp

from almanaq.errors import RefusedQueryError
from almanaq.suql.syntax.nodes import nodes_of

_BACKSLASHES = ("mysql", "clickhouse", "snowflake", "bigquery", "databricks", "spark")
"""Engines in whose texts a backslash is an escape."""
_STANDARD = r"""(?<!\w)[eE]'(?:[^'\\]|''|\\.)*'|'(?:[^']|'')*'|"(?:[^"]|"")*"|`(?:[^`]|``)*`"""
_ESCAPED = r"""'(?:[^'\\]|''|\\.)*'|"(?:[^"\\]|""|\\.)*"|`(?:[^`]|``)*`"""
_REST = r"|(?P<bad>--|/\*|#!|;|['\"`]|\$\w*\$)|(?P<call>[A-Za-z_]\w*)\s*\(|(?P<paren>[()])"
_PIECES = {
    engine: re.compile(f"(?P<text>{texts}){_REST}", re.DOTALL)
    for engine, texts in (("standard", _STANDARD), ("escaped", _ESCAPED))
}
_HARMLESS = re.compile(r"[\w .:%$,+/\[\]-]{0,60}")
"""Texts that a printer makes itself: units, paths of JSON, templates of dates."""
REFUSED = re.compile(
    r"""
    pg_(?:read|ls|stat_file|sleep|advisory|try_advisory|terminate|cancel|reload|rotate|logical|create|drop|switch
        |wal|promote|export|import|notify|file|current_logfile|signal|log).*
    | read_\w+ | \w*_scan | scan_\w+ | glob | sniff_csv | getenv | getvariable | query(?:_table)? | sql_auto_complete
    | pragma_\w+ | duckdb_\w+ | dblink\w* | lo_\w+ | copy | set_config | current_setting | setval | nextval
    | (?:query|table|cursor|schema|database)_to_xml\w* | query_to_\w+ | load_\w+ | install | which_secret
    | sleep\w* | benchmark | get_lock | release_\w*lock\w* | master_pos_wait | sys_\w+ | url | remote\w* | file | s3\w*
    | executable | input | mysql | postgresql | jdbc | odbc | hdfs | system\w* | external_query | ai_\w+ | http_\w+
    | convert_unit | txid_\w+ | binary_upgrade\w* | ts_stat | ts_rewrite | xmltable | write_\w+ | export_\w+
    """,
    re.VERBOSE | re.IGNORECASE,
)
"""Functions of the engines that read files, settings or tables by name, wait, lock, write, or run a text as SQL."""
_FIRST = re.compile(r"\s*\(*\s*(?:SELECT|WITH|VALUES)\b", re.IGNORECASE)


def check_emitted(text: str, tree: exp.Expr, dialect: str) -> None:
    """Raise RefusedQueryError unless a text is one SELECT, with the tree's texts and no function that is refused."""
    if not _FIRST.match(text):
        raise RefusedQueryError("only a SELECT is sent to a database")
    pieces = _PIECES["escaped" if dialect in _BACKSLASHES else "standard"]
    texts: set[str] = set()
    depth = 0
    for match in pieces.finditer(text):
        if match["text"] is not None:
            texts.add(match[0])
        elif match["bad"] is not None:
            raise RefusedQueryError(f"a statement with {match['bad']!r} outside of a text is not sent to a database")
        elif match["call"] is not None:
            depth += 1
            if REFUSED.fullmatch(match["call"]):
                raise RefusedQueryError(f"the function {match['call'].lower()!r} is not allowed in a query")
        else:
            depth += 1 if match["paren"] == "(" else -1
            if depth < 0:
                break
    if depth != 0:
        raise RefusedQueryError("a statement whose parentheses do not match is not sent to a database")
    _check_texts(texts, tree, dialect)


def _check_texts(found: set[str], tree: exp.Expr, dialect: str) -> None:
    """Refuse texts that the tree does not have, but for those that a printer makes itself."""
    nodes = nodes_of(tree, exp.Literal, exp.Identifier, exp.ByteString)
    plain = {node.this for node in nodes}
    odd: set[str] | None = None
    for written in found:
        body = written[1:-1]
        if body in plain or body.replace(written[0] * 2, written[0]) in plain or _HARMLESS.fullmatch(body):
            continue
        odd = odd if odd is not None else {node.sql(dialect) for node in nodes}
        if written not in odd:
            raise RefusedQueryError("a statement with a text that the query does not have is not sent to a database")
