"""Queries as they come from an argument, a file, standard input, or line by line."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

from almanaq.errors import UsageError


def queries(suql: str | None, file: str | None, source: str) -> list[str]:
    """Return the queries that a command is to run: the argument, or those of a file or of standard input ("-").

    Raises:
        UsageError: none is given, or more than one way; a file that cannot be read, or that holds none.
    """
    if (suql is None) == (file is None):
        raise UsageError("give one query, -f FILE, or - for those of standard input")
    if suql is not None and suql != "-":
        return [suql]
    if file is None or file == "-":
        if source == "-":
            raise UsageError("standard input is either the queries or --db -, not both")
        place, text = "standard input", sys.stdin.read()
    else:
        place, text = file, _read(file)
    found = list(split(text))
    if not found:
        raise UsageError(f"{place} holds no query; write a SELECT, several with a ; between them")
    return found


def split(text: str) -> Iterator[str]:
    """Yield the statements of a text, without the semicolons between them; one that is not closed is the last."""
    complete, rest = complete_statements(text)
    yield from complete
    if _says_something(rest):
        yield rest.strip()


def complete_statements(text: str) -> tuple[list[str], str]:
    """Return the statements that a semicolon ends, and what follows the last one."""
    import sqlglot
    from sqlglot.errors import TokenError
    from sqlglot.tokenizer_core import TokenType

    if ";" not in text:
        return [], text
    try:
        tokens = sqlglot.tokenize(text, read="duckdb")
    except TokenError:  # a quotation mark or a comment is still open
        return [], text
    found, start = [], 0
    for token in tokens:
        if token.token_type == TokenType.SEMICOLON:
            found.append(text[start : token.start].strip())
            start = token.end + 1
    return [statement for statement in found if _says_something(statement)], text[start:]


def _says_something(text: str) -> bool:
    """Return whether a text holds more than blanks and comments."""
    lines = [line.strip() for line in text.splitlines()]
    return any(line and not line.startswith("--") for line in lines)


def _read(file: str) -> str:
    try:
        return Path(file).read_text("utf-8-sig")
    except UnicodeDecodeError as problem:
        raise UsageError(f"-f {file}: this is no text in UTF-8") from problem
    except OSError as problem:
        raise UsageError(f"-f {file}: cannot be read: {problem.strerror}") from problem
