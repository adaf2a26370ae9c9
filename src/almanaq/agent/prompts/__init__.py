"""The agent's prompts, in the form that `almanaq.models.prompts` describes."""
