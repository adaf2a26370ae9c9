"""Text of a query → syntax tree, parameters filled in."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping, Sequence

from sqlglot import exp
from sqlglot.errors import ParseError, TokenError
from sqlglot.tokenizer_core import Token, TokenType

from almanaq.errors import (
    ParameterError,
    QueryError,
    QuerySyntaxError,
    RefusedQueryError,
    UnsupportedError,
    first_line,
    nearest,
)
from almanaq.suql.syntax.allowlist import check_allowed
from almanaq.suql.syntax.argument_counts import check_counts
from almanaq.suql.syntax.dialect import MISREAD, suql_dialect
from almanaq.suql.syntax.limits import check_length, check_tokens, check_tree
from almanaq.suql.syntax.literals import literal
from almanaq.suql.syntax.nodes import nodes
from almanaq.suql.syntax.normal_forms import LONG_CHAIN, balance_chains, rewritten, write_normal_forms
from almanaq.suql.syntax.placeholders import number_placeholders
from almanaq.suql.syntax.plain_texts import write_plain_texts
from almanaq.suql.syntax.recursion import move_search_clauses, read_search_clauses
from almanaq.suql.syntax.respelling import respell, spelled
from almanaq.suql.syntax.templates import hide_templates
from almanaq.suql.syntax.windows import write_named_windows
from almanaq.suql.text_functions import has_text

_OTHER_STATEMENTS = frozenset(
    [
        "ALTER",
        "ANALYZE",
        "ATTACH",
        "BEGIN",
        "CALL",
        "CHECKPOINT",
        "CLUSTER",
        "COMMENT",
        "COMMIT",
        "COPY",
        "CREATE",
        "DEALLOCATE",
        "DECLARE",
        "DELETE",
        "DESCRIBE",
        "DETACH",
        "DISCARD",
        "DO",
        "DROP",
        "EXECUTE",
        "EXPLAIN",
        "EXPORT",
        "GRANT",
        "IMPORT",
        "INSERT",
        "INSTALL",
        "LISTEN",
        "LOAD",
        "LOCK",
        "MERGE",
        "NOTIFY",
        "PRAGMA",
        "PREPARE",
        "REFRESH",
        "REINDEX",
        "RESET",
        "REVOKE",
        "ROLLBACK",
        "SAVEPOINT",
        "SET",
        "SHOW",
        "START",
        "TRUNCATE",
        "UPDATE",
        "USE",
        "VACUUM",
    ]
)
_BEGINNINGS = ("SELECT", "WITH", "VALUES", "TABLE", "DESCRIBE", "SHOW TABLES", "SUMMARIZE")
_CLAUSES = ("FROM", "WHERE", "GROUP", "HAVING", "ORDER", "LIMIT", "OFFSET", "JOIN", "UNION", "WINDOW")
"""Words that people write with a letter too few, or two in the wrong order."""
_NO_ITEM = (
    *(TokenType.COMMA, TokenType.R_PAREN, TokenType.R_BRACKET, TokenType.SEMICOLON, TokenType.FROM, TokenType.WHERE),
    *(TokenType.GROUP_BY, TokenType.HAVING, TokenType.ORDER_BY, TokenType.LIMIT),
    *(TokenType.UNION, TokenType.INTERSECT, TokenType.EXCEPT),
)
"""What no item of a list begins with."""
_GROUPING_SETS = (TokenType.ROLLUP, TokenType.CUBE, TokenType.GROUPING_SETS)


def parse(
    text: str,
    parameters: Sequence[object] = (),
    engine: str | None = None,
    *,
    own: Collection[str] = (),
    write_calls: Callable[[exp.Expr, str], exp.Expr] | None = None,
) -> exp.Query:
    """Return the tree of a single, allowed SELECT, with each `?` replaced by its parameter as a literal.

    Args:
        engine: the dialect of the engine that is to run it, which has its own list of functions; None: of any.
        own: names of functions of the database's own that may be called besides.
        write_calls: writes what the catalog knows into a tree, before it is checked.

    Raises:
        QuerySyntaxError: the text is not SUQL; points at the place.
        RefusedQueryError: several statements, anything but a SELECT, or a function that is not allowed.
        ParameterError: the number of parameters differs from the number of `?`.
    """
    check_length(text)
    if not _is_text(text):
        raise QuerySyntaxError("the query holds half a character (a lone surrogate); write it in whole ones")
    if isinstance(parameters, str | bytes | Mapping):
        raise ParameterError("parameters are given as a list, one value for each ? in order")
    tree, count = _read(text)
    if count != len(parameters):
        raise ParameterError(f"the query has {count} placeholder(s) (?), but {len(parameters)} parameter(s) were given")
    found = nodes(tree)
    _refuse_missing_arguments(found, text)
    _count_subscripts_from_one(found)
    _fetch_as_limit(found, tree)
    read_search_clauses(found, engine)
    tree = write_plain_texts(tree, text)
    if parameters:
        tree = _fill(tree, parameters)
    if write_calls is not None:
        tree = write_calls(tree, text)
    write_named_windows(tree)
    tree = write_normal_forms(tree)
    found = nodes(tree)
    check_tree(found)
    check_allowed(found, text, engine, own)
    assert isinstance(tree, exp.Query)
    return tree


def _read(text: str) -> tuple[exp.Expr, int]:
    """Return the tree of the one statement that a text holds, as it is written, and its number of placeholders."""
    dialect = suql_dialect()
    try:
        tokens = dialect.tokenize(text)
        _refuse_other_statements(tokens, text)
        check_tokens(tokens)
        _refuse_trailing_commas(tokens, text)
        check_counts(tokens, text)
        tokens, count = number_placeholders(tokens, text)
        tokens = _end_grouping_sets(respell(move_search_clauses(tokens), text))
        trees = [tree for tree in dialect.parser().parse(hide_templates(tokens), text) if tree is not None]
    except TokenError as error:
        raise _unclosed(text) from error
    except ParseError as error:
        raise _syntax_error(error, text) from error
    except MISREAD as error:
        raise QuerySyntaxError("the query cannot be read: a function lacks arguments, or has others") from error
    if not trees:
        raise QuerySyntaxError("the query is empty; write a SELECT")
    if len(trees) > 1:
        raise RefusedQueryError(f"the text holds {len(trees)} statements; give one SELECT at a time")
    return balance_chains(trees[0]) if len(tokens) > LONG_CHAIN else trees[0], count


def _count_subscripts_from_one(found: Sequence[exp.Expr]) -> None:
    """Tell each engine that counts otherwise what subscripts count from; where it counts from one, they stay."""
    for node in found:
        if isinstance(node, exp.Bracket):
            node.set("offset", 1)


def _is_text(text: str) -> bool:
    """Return whether a text can be written in UTF-8: halves of surrogate pairs cannot."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _end_grouping_sets(tokens: list[Token]) -> list[Token]:
    """Write HAVING TRUE between `ROLLUP (…)` and LIMIT or OFFSET, which sqlglot would take for another key."""
    opened: list[bool] = []
    found: list[Token] = []
    for before, token, after in zip([None, *tokens], tokens, [*tokens[1:], None], strict=False):
        found.append(token)
        if token.token_type == TokenType.L_PAREN:
            opened.append(before is not None and before.token_type in _GROUPING_SETS)
        elif token.token_type == TokenType.R_PAREN and opened and opened.pop():
            if after is not None and after.token_type in (TokenType.LIMIT, TokenType.OFFSET, TokenType.FETCH):
                found += spelled(token, (TokenType.HAVING, "HAVING"), (TokenType.TRUE, "TRUE"))
    return found


def _refuse_other_statements(tokens: list[Token], text: str) -> None:
    """Name the statement that is not a SELECT before the parser stumbles over its syntax."""
    first = tokens[0].text.upper() if tokens else ""
    if first in _OTHER_STATEMENTS:
        raise RefusedQueryError(f"only a SELECT may run here; this is a statement of the kind {first}")
    if tokens and tokens[0].token_type == TokenType.VAR:
        message = f"a query begins with SELECT, WITH, VALUES or TABLE, not with {tokens[0].text!r}"
        near = _nearest(first, _BEGINNINGS)
        raise QuerySyntaxError(message + near, query=text, start=tokens[0].start, end=tokens[0].end)


def _nearest(word: str, known: Sequence[str]) -> str:
    """Return the end of a message that offers the one word that is meant, "" where none is near."""
    near = nearest(word, known, most=1, alike=0.7) if word.upper() not in known else ()
    return f"; did you mean {near[0]}?" if near else ""


def _refuse_trailing_commas(tokens: list[Token], text: str) -> None:
    """Point at a comma that nothing follows; sqlglot reads over it."""
    for token, after in zip(tokens, [*tokens[1:], None], strict=False):
        if token.token_type == TokenType.COMMA and (after is None or after.token_type in _NO_ITEM):
            message = "not a SUQL query: nothing follows this comma; leave it out or write what is missing"
            raise QuerySyntaxError(message, query=text, start=token.start, end=token.end)


def _fill(tree: exp.Expr, parameters: Sequence[object]) -> exp.Expr:
    """Return a tree, which is changed, with its parameters as literals.

    `interval ?` is the text cast to an interval.
    """

    def fill(node: exp.Expr) -> exp.Expr:
        if isinstance(node, exp.Parameter):
            number = int(node.name) if node.name.isdecimal() else 0
            if not 1 <= number <= len(parameters):
                raise ParameterError(f"parameter ${node.name} has no value; {len(parameters)} given")
            return literal(parameters[number - 1])
        if isinstance(node, exp.Interval) and isinstance(node.this, exp.Literal) and node.args.get("unit") is None:
            return exp.cast(node.this, "interval", copy=False)
        return node

    return rewritten(tree, fill)


def _refuse_missing_arguments(found: list[exp.Expr], text: str) -> None:
    """Point at a function that lacks arguments, where the parser did not."""
    for node in found:
        args = node.args if isinstance(node, exp.Func | exp.Binary) else None
        if args is not None and any(needed and args.get(name) is None for name, needed in node.arg_types.items()):
            name = node.sql_name().lower() if isinstance(node, exp.Func) else node.key
            start, end = node.meta.get("start"), node.meta.get("end")
            raise QuerySyntaxError(f"not a SUQL query: {name} lacks an argument", query=text, start=start, end=end)


def _fetch_as_limit(found: list[exp.Expr], tree: exp.Expr) -> None:
    """Write FETCH FIRST n ROWS ONLY as LIMIT n; WITH TIES stays where no model is asked."""
    for fetch in [node for node in found if isinstance(node, exp.Fetch)]:
        options = fetch.args.get("limit_options")
        if options is not None and options.args.get("percent"):
            raise UnsupportedError("FETCH takes a number of ROWS here: write a subquery with percent_rank()")
        if options is None or not options.args.get("with_ties"):
            fetch.replace(exp.Limit(expression=fetch.args.get("count") or exp.Literal.number(1)))
            continue
        query = fetch.parent
        if query is None or query.args.get("order") is None:
            raise QuerySyntaxError("WITH TIES wants an ORDER BY, by which rows are ties")
        if has_text(tree):
            raise UnsupportedError("WITH TIES beside answer() is not supported: write a subquery with rank() for ties")


def _unclosed(text: str) -> QuerySyntaxError:
    """Point at the quote or the comment that is never closed."""
    literals = r"""'(?:[^']|'')*+'|"(?:[^"]|"")*+"|--[^\n]*|/\*.*?\*/"""
    start = next((m.start() for m in re.finditer(rf"{literals}|(?P<open>'|\"|/\*)", text, re.S) if m["open"]), None)
    message = "not a SUQL query: what begins here is never closed" if start is not None else "the query cannot be read"
    return QuerySyntaxError(message, query=text, start=start, end=start)


def _syntax_error(error: ParseError, text: str) -> QueryError:
    details = error.errors[0] if error.errors else {}
    message = str(details.get("description") or first_line(error)).partition(" but got <Token")[0].rstrip(".")
    if message.startswith("Required keyword"):
        message = "something is missing"
    highlight = details.get("highlight")
    line, column = details.get("line"), details.get("col")
    if not (highlight and isinstance(line, int) and isinstance(column, int)):
        return QuerySyntaxError(f"not a SUQL query: {message}")
    # sqlglot counts the column at the end of the token.
    start = sum(len(part) + 1 for part in text.split("\n")[: line - 1]) + column - len(str(highlight))
    before = re.search(r"(\w+)\s*$", text[: max(0, start)])  # read as an alias
    near = _nearest(str(highlight), _CLAUSES) or (_nearest(before[1], _CLAUSES) if before is not None else "")
    return QuerySyntaxError(
        f"not a SUQL query: {message} near {highlight!r}{near}",
        query=text,
        start=max(0, start),
        end=start + len(highlight) - 1,
    )
