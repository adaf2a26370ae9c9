"""What a person said of how a file is to be read, in place of what would be guessed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from almanaq.corpus.files.marks import Marks
from almanaq.corpus.files.sniff import Hints

TYPES = ("text", "boolean", "bigint", "double precision", "date", "timestamp", "time", "interval")


@dataclass(frozen=True, slots=True)
class Reading:
    """How a file is to be read; what is empty is guessed.

    Attributes:
        types: of columns, by their names in lower case.
    """

    hints: Hints = field(default_factory=Hints)
    marks: Marks = field(default_factory=Marks)
    types: Mapping[str, str] = field(default_factory=dict)
