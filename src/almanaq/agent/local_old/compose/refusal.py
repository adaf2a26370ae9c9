"""Why a question is not understood."""

from __future__ import annotations


class NotUnderstood(Exception):
    """A part of the question fits nothing: `args[0]` says which.

    `args[1]`, where it is there, holds a value and the names of the columns that it may stand in.
    """
