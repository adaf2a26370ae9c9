"""Fakes for tests of code that uses almanaq: deterministic, counted, offline.

almanaq-bench adds a stand-in for model servers: `StandInServer`, `Faults`, `Ledger`, `replies_from`.
"""

from typing import Any

from almanaq.benchmark import import_bench
from almanaq.testing.function_model import FunctionModel
from almanaq.testing.scripted_model import ScriptedModel

__all__ = ["FunctionModel", "ScriptedModel"]
_OF_BENCH = ("Faults", "Ledger", "StandInServer", "replies_from")


def __getattr__(name: str) -> Any:
    if name not in _OF_BENCH:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_bench("testing", f"almanaq.testing.{name}"), name)
