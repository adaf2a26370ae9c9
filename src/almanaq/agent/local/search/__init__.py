"""Searches of rows that have reviews: what no column says becomes a question to the texts."""
