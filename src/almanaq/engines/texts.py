"""Texts and names written so that no setting of an engine reads them as anything else."""

from __future__ import annotations

from sqlglot import exp

from almanaq.errors import UnsupportedError
from almanaq.suql.syntax.nodes import nodes_of
from almanaq.suql.syntax.variables import without_variables

_BACKSLASH_IN_NAMES = ("bigquery", "clickhouse")
"""Engines that read a backslash in a quoted name as an escape, which sqlglot does not write."""


def write_texts(tree: exp.Expr, dialect: str) -> exp.Expr:
    r"""Return a tree, which is changed, with its texts safe to print: the last step before it is.

    In PostgreSQL `'a\b'` depends on a setting of the session, `e'a\\b'` does not. Databricks and Spark put the value of
    a setting, or of a variable of the server's environment, into `${…}` wherever it stands, in a text too. Other
    engines have no such setting, or it is made at the start of a session.

    Raises:
        UnsupportedError: a name that the engine has no way to write.
    """
    if dialect == "postgres":
        return _escaped(tree)
    if dialect in ("databricks", "spark"):
        return without_variables(tree)
    if dialect in _BACKSLASH_IN_NAMES:
        for name in nodes_of(tree, exp.Identifier):
            if "\\" in name.name or (dialect == "bigquery" and "`" in name.name):
                raise UnsupportedError(f"the name {name.name!r} cannot be written for {dialect}")
    return tree


def _escaped(tree: exp.Expr) -> exp.Expr:
    for text in [node for node in nodes_of(tree, exp.Literal) if node.is_string and "\\" in node.name]:
        if isinstance(text.parent, exp.Initcap):
            continue  # its delimiters, which are not printed
        written = exp.ByteString(this=text.name.replace("\\", "\\\\"))
        if text is tree:
            return written
        text.replace(written)
    return tree
