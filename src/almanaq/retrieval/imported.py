"""Objects of others by `module:object`."""

from __future__ import annotations

import importlib
from typing import Any

from almanaq.errors import UsageError, suggest


def import_object(name: str, kind: str) -> Any:
    """Give the object that `module:object` names, made where it names a class.

    Args:
        kind: what the object is to be, for messages.

    Raises:
        UsageError: there is no such module or object, or importing or making it fails.
    """
    module_name, _, path = name.partition(":")
    try:
        found: Any = importlib.import_module(module_name)
    except Exception as error:
        raise UsageError(f"{kind} {name!r}: cannot import {module_name!r}: {_told(error)}") from error
    for part in path.split("."):
        if not hasattr(found, part):
            raise UsageError(f"{kind} {name!r}: {module_name} has no {part!r}{suggest(part, dir(found))}")
        found = getattr(found, part)
    if not isinstance(found, type):
        return found
    try:
        return found()
    except Exception as error:
        raise UsageError(f"{kind} {name!r}: it cannot be made: {_told(error)}") from error


def _told(error: Exception) -> str:
    return str(error) if isinstance(error, ImportError) else f"{type(error).__name__}: {' '.join(str(error).split())}"
