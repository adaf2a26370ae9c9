"""The agent's parts without a language model: they link words to the schema and to what was said before."""

from almanaq.agent.local.dialogue import LocalDialogue
from almanaq.agent.local.parser import LocalParser

__all__ = ["LocalDialogue", "LocalParser"]
