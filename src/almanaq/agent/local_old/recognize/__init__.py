"""Recognizers: pure functions from the tokens of a question and a catalog to spans with a meaning and a score."""
