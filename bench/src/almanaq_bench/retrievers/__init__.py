"""Retrievers as papers describe them: the rows that tables of results compare with."""
