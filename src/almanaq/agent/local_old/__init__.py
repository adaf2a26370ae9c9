"""The agent's parts without a language model: they link words to the schema and to what was said before."""

from almanaq.agent.local_old.dialogue import LocalDialogue
from almanaq.agent.local_old.parser import LocalParser

__all__ = ["LocalDialogue", "LocalParser"]
