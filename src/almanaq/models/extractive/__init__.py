"""Reading without a language model: evidence clause by clause, spans by answer type, linking by words."""

from almanaq.models.extractive.local_linker import LocalLinker
from almanaq.models.extractive.reader import LocalReader

__all__ = ["LocalLinker", "LocalReader"]
