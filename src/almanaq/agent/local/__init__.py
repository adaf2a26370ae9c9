"""The agent's parts without a language model."""
