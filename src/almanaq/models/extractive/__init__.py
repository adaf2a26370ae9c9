"""Reading without a language model: evidence clause by clause, spans by answer type, linking by words."""

from almanaq.models.extractive.reader import LocalLinker, LocalReader

__all__ = ["LocalLinker", "LocalReader"]
