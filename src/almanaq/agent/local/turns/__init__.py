"""Turns of a conversation without a model: a follow-up changes the last query that was answered."""
