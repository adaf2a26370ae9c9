"""What a run works with."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from almanaq.engines.protocols import Database
from almanaq.models.protocols import Models
from almanaq.suql.catalog.relations import Catalog
from almanaq.suql.execution.candidates import Similarity
from almanaq.suql.execution.text_vectors import TextVectors


@dataclass(frozen=True)
class ExecutionContext:
    """The source, the models, and what compares texts."""

    database: Database
    catalog: Catalog
    models: Models
    similarity: Similarity
    vectors: TextVectors
    proxy_models: Callable[[str], Models] | None = None
