"""Words that carry little meaning: what reading a text passes over, and what an index of tables leaves out."""

from __future__ import annotations

QUESTION_WORDS = ("who", "whom", "whose", "what", "which", "where", "when", "why", "how")
"""The words that open a question."""

STOPWORDS = frozenset(
    """a an the this that these those i you he she it we they me him her us them my your his its our their is are was
    were be been being am do does did done have has had having will would can could should shall may might must of in on
    at to from for with by about as into over under and or but if then than so very too just also there here what which
    who whom whose when where why how any some all each not no nor""".split()
)
"""Words that sentences are compared without."""

INDEX_STOPWORDS = frozenset(
    """a an and are as at be been by did do does for from had has have how in into is it its of on or that the their
    them then there these they this those to was were what when where which who whom whose why will with""".split()
)
"""Words of questions that say nothing of a table; dropped because in a small corpus they can look rare.

"No", "All" and "You" are not among them: tables are called so.
"""
