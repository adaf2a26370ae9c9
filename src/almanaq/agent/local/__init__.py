"""The agent's parts without a language model: they link words to the schema and to what was asked before."""

from almanaq.agent.local.dialogue import CONFIDENCE, LocalDialogue
from almanaq.agent.local.spec import count_all, is_cut, without_limit
from almanaq.agent.local.turns.followups import asks_to_list as asks_for_list

__all__ = ["CONFIDENCE", "LocalDialogue", "asks_for_list", "count_all", "is_cut", "without_limit"]
