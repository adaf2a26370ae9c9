"""The semantic parser without a language model: it links the words of a question to the schema."""

from almanaq.agent.local.parser import LocalParser

__all__ = ["LocalParser"]
