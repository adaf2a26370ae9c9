"""An oracle over encyclopedic passages: dates, places, numbers, names, yes or no, by patterns alone.

It stands in for the model behind `answer` where the question is how well SUQL and its compiler do. Written from
passages, before the queries that it is asked through, and without sight of any gold answer. It shares no code with
the reader of `local`.
"""

from oracle.read import read

__all__ = ["read"]
