"""Fewer calls with a guarantee: which rows of a semantic filter need not be asked. Pure: no model, no database."""
