"""Objects of others by `module:object`."""

from __future__ import annotations

import importlib
import os
import sys
from contextvars import ContextVar
from typing import Any

from almanaq.errors import UsageError, suggest

_HERE: ContextVar[bool] = ContextVar("almanaq_modules_here", default=False)


def look_here() -> None:
    """Let `module:object` name a file of the working folder from here on; without such a name nothing of it is run."""
    _HERE.set(True)


def import_object(name: str, kind: str) -> Any:
    """Return the object that `module:object` names, made where it names a class.

    Args:
        kind: what the object is to be, for messages.

    Raises:
        UsageError: there is no such module or object, or importing or making it fails.
    """
    module_name, _, path = name.partition(":")
    if _HERE.get() and os.getcwd() not in sys.path:
        # Last, so that a file of the folder takes no installed module's place.
        sys.path.append(os.getcwd())
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
