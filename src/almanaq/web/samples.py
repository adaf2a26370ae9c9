"""Questions to begin with: those that somebody wrote for the source, else some that its schema makes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from almanaq.suql.catalog.relations import ColumnKind, Relation

if TYPE_CHECKING:
    from almanaq.connection import Connection

MOST = 4


def samples(connection: Connection) -> list[str]:
    """Give up to four questions that can be answered."""
    written = [question for question, suql in connection.examples if suql]
    if written:
        return written[:MOST]
    relations = sorted(connection.catalog.relations, key=lambda relation: -(relation.rows or 0))
    made = [question for relation in relations[:MOST] for question in _about(relation)]
    return list(dict.fromkeys(made))[:MOST]


def _about(relation: Relation) -> list[str]:
    name = relation.name.rpartition(".")[2].replace("_", " ")
    questions = [f"How many {name} are there?"]
    for column in relation.columns:
        if column.kind is ColumnKind.ENUM and column.values and not column.private and not column.array:
            questions.append(f"How many {name} have {column.name.replace('_', ' ')} {column.values[0]}?")
            break
    return questions
