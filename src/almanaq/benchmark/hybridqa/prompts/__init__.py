"""The prompts of the hybrid-qa task, in the form that `almanaq.models.prompts` describes."""
