"""Questions that a person has taught, known again: the examples of a source, also with other values in their place."""

from __future__ import annotations

import re

from almanaq.agent.linking.english import english
from almanaq.agent.linking.words import tokenize
from almanaq.agent.local.world import World
from almanaq.agent.schema_text import Examples
from almanaq.text.sql_literals import string_literal

_LITERAL = re.compile(r"'((?:[^']|'')*)'")


def taught(question: str, examples: Examples, world: World) -> str | None:
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
            found = _other_value(question, example, literal, world)
            if found is not None:
                return suql.replace(string_literal(literal), string_literal(found))
    return None


def _plain(question: str) -> tuple[str, ...]:
    return tuple(t.stem for t in tokenize(question) if t.folded not in english().silent and t.is_word)


def _other_value(question: str, example: str, literal: str, world: World) -> str | None:
    """Return the value that a question has where an example has a literal, when all else is the same."""
    at = example.casefold().find(literal.casefold())
    if not literal or at < 0:
        return None
    before, after, asked = _plain(example[:at]), _plain(example[at + len(literal) :]), _plain(question)
    size = len(asked) - len(before) - len(after)
    if size < 1 or asked[: len(before)] != before or (after and asked[-len(after) :] != after):
        return None
    columns = {id(m.column) for m in world.index.values_spelled(literal) if not m.how}
    said = " ".join(asked[len(before) : len(before) + size])
    near = [*world.index.values_spelled(said), *world.index.values_of_stems(tuple(said.split()))]
    fit = {m.value for m in near if not m.how and id(m.column) in columns}
    return fit.pop() if len(fit) == 1 else None
