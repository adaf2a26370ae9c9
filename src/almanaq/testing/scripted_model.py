"""The place from which tests of others import `ScriptedModel`."""

from almanaq.testing import ScriptedModel

__all__ = ["ScriptedModel"]
