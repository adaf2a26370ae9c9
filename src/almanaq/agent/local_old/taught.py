"""Questions that a person has taught, known again: the examples of a source, also with other values in their place."""

from __future__ import annotations

import re

from almanaq.agent.local_old import sql
from almanaq.agent.local_old.recognize.tokens import tokenize
from almanaq.agent.local_old.recognize.vocabulary import Vocabulary
from almanaq.agent.local_old.recognize.words import words
from almanaq.agent.local_old.words import stems
from almanaq.agent.shots import Examples

_LITERAL = re.compile(r"'((?:[^']|'')*)'")


def taught(question: str, examples: Examples, vocabulary: Vocabulary) -> str | None:
    """Return the SUQL of an example whose question says the same as this one; None where none does.

    Words that ask for nothing may differ, and so may a value that the query compares with: an example about Oslo
    answers the question about Bergen, where both are values of one column.
    """
    asked = _plain(question)
    for example, suql in examples:
        if suql is None:
            continue
        if _plain(example) == asked:
            return suql
        for literal in dict.fromkeys(match[1].replace("''", "'") for match in _LITERAL.finditer(suql)):
            found = _with_value(question, example, literal, vocabulary)
            if found is not None:
                return suql.replace(sql.text(literal), sql.text(found))
    return None


def _plain(question: str) -> tuple[str, ...]:
    tokens = tokenize(question)
    return tuple(t.stem for t in tokens if t.folded not in words().silent and t.folded[:1].isalnum())


def _with_value(question: str, example: str, literal: str, vocabulary: Vocabulary) -> str | None:
    """Return the value that a question has where an example has a literal, when all else is the same."""
    at = example.casefold().find(literal.casefold())
    if not literal or at < 0:
        return None
    before, after = _plain(example[:at]), _plain(example[at + len(literal) :])
    asked = _plain(question)
    size = len(asked) - len(before) - len(after)
    if size < 1 or asked[: len(before)] != before or (after and asked[-len(after) :] != after):
        return None
    said = asked[len(before) : len(before) + size]
    columns = {
        (p.relation.name, p.column.name) for (p, _), q in vocabulary.values_named(literal, stems(literal)) if q == 1
    }
    near = vocabulary.values_named(" ".join(said), said)
    fit = {value for (p, value), q in near if q == 1 and (p.relation.name, p.column.name) in columns}
    return fit.pop() if len(fit) == 1 else None
