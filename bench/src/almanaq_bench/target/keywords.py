"""Arguments by name: those that no class has are errors, though the classes' own signatures take any."""

from __future__ import annotations

import inspect
from collections.abc import Collection, Iterable

from almanaq.errors import UsageError, suggest


def check_keywords(kind: type, given: Iterable[str], ignored: Collection[str] = ()) -> None:
    """Check the names of what is left of a class's arguments.

    Args:
        ignored: names that are taken and change nothing.

    Raises:
        UsageError: the class and those it derives from have no argument of that name.
    """
    for name in given:
        if name not in ignored:
            known = [each for each in _arguments(kind) if each not in ignored]
            raise UsageError(f"{kind.__name__} has no argument {name!r}{suggest(name, known)}")


def _arguments(kind: type) -> list[str]:
    """Return the names of the arguments that a class and those it derives from take."""
    signatures = (inspect.signature(base.__init__) for base in kind.__mro__ if "__init__" in vars(base))  # type: ignore[misc]
    named = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
    found = (each.name for signature in signatures for each in signature.parameters.values() if each.kind in named)
    return [name for name in dict.fromkeys(found) if name != "self"]
