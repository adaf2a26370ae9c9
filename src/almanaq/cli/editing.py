"""Typing at the prompt: earlier lines, and completion of names, by the standard library where it can."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

from almanaq.models.private_files import default_cache_folder, make_private

if TYPE_CHECKING:
    from almanaq.cli.session import Session

_KEPT = 1_000
_WORDS = """SELECT FROM WHERE GROUP BY HAVING ORDER LIMIT OFFSET DISTINCT JOIN LEFT USING UNION WITH AND OR NOT NULL
    LIKE ILIKE BETWEEN CASE WHEN THEN ELSE END CAST answer( summary( count( sum( avg( min( max("""
_PLAIN = re.compile(r"[a-z_][a-z0-9_]*")


@contextmanager
def editing(session: Session) -> Iterator[None]:
    """Complete names while lines are typed, and keep the lines in a file that only the user may read."""
    try:
        import readline
    except ImportError:  # Windows: lines are typed all the same
        yield
        return
    file = default_cache_folder() / "history"
    with suppress(OSError):
        make_private(file)
        readline.read_history_file(file)
    readline.set_history_length(_KEPT)
    readline.set_completer_delims(" \t\n,()=<>;'+-*/")
    readline.set_completer(completer(session, lambda: readline.get_line_buffer()))
    # The library that macOS has in its place takes other words.
    libedit = "libedit" in (readline.__doc__ or "")
    readline.parse_and_bind("bind ^I rl_complete" if libedit else "tab: complete")
    try:
        yield
    finally:
        with suppress(OSError):
            readline.write_history_file(file)


def completer(session: Session, line: Callable[[], str]) -> Callable[[str, int], str | None]:
    """Return the function that readline asks for the first, second, … completion of what was typed."""

    def complete(text: str, number: int) -> str | None:
        found = completions(text, line(), session)
        return found[number] if number < len(found) else None

    return complete


def completions(text: str, line: str, session: Session) -> list[str]:
    """Return what may stand where `text` begins, at the end of `line`."""
    if line.lstrip().startswith(".") and " " not in line.lstrip():
        return sorted(name for name in [*session.commands, ".quit"] if name.startswith(text))
    relations = session.connection.catalog.relations
    owner, dot, part = text.rpartition(".")
    if dot:
        columns = [c.name for r in relations if r.name.casefold() == owner.strip('"').casefold() for c in r.columns]
        return [f"{owner}.{name}" for name in _starting(part, columns)]
    names = _starting(text, [*(r.name for r in relations), *(c.name for r in relations for c in r.columns)])
    words = [word for word in _WORDS.split() if text and word.casefold().startswith(text.casefold())]
    return [*names, *(word for word in words if not line.lstrip().startswith((".schema", ".mode")))]


def _starting(text: str, names: list[str]) -> list[str]:
    """Return the names that begin with a text, as a query writes them."""
    wanted = text.strip('"').casefold()
    found = sorted({name for name in names if name.casefold().startswith(wanted)})
    return [name if _PLAIN.fullmatch(name) else f'"{name}"' for name in found]
