"""The benchmark's Python names, which the distribution almanaq-bench brings: `TARGET`, `CustomTask`, `get_task_names`.

They are defined in `almanaq_bench`; this module keeps `from almanaq.benchmark import TARGET` working.
"""

from __future__ import annotations

from importlib import import_module
from types import ModuleType
from typing import Any

from almanaq.errors import MissingExtraError


def import_bench(module: str, purpose: str) -> ModuleType:
    """Import a module of almanaq-bench by its name below `almanaq_bench`; `purpose`: what needs it, for the message."""
    try:
        return import_module(f"almanaq_bench.{module}".rstrip("."))
    except ModuleNotFoundError as error:
        if error.name != "almanaq_bench":
            raise
        raise MissingExtraError("almanaq-bench", "", purpose, install="./bench") from error


def __getattr__(name: str) -> Any:
    if name.startswith("_"):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_bench("", f"almanaq.benchmark.{name}"), name)
