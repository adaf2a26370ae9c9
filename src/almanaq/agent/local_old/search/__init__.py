"""Searches: what a turn asks of the rows of one relation, its texts included; new questions and follow-ups alike."""
