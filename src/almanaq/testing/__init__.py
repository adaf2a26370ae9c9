"""Fakes for tests of code that uses almanaq: deterministic, counted, offline."""

from almanaq.testing.function_model import FunctionModel

__all__ = ["FunctionModel"]
