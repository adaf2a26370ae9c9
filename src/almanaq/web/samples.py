"""Questions to begin with: those that somebody wrote for the source, else some that its schema makes."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING

from almanaq.suql.catalog.relations import Column, ColumnKind, Relation

if TYPE_CHECKING:
    from almanaq.connection import Connection

MOST = 4
_GROUPS = 20
"""Different values up to which rows are counted for each of them."""
_LOOKED_AT = 6
_AMOUNT = re.compile(r"(smallint|integer|bigint|numeric|decimal|real|double precision)\b")
_NO_AMOUNT = re.compile(r"(^|_)(id|no|nr|number|key|code|zip|year|month|day|lat|lng|lon|latitude|longitude)$", re.I)


def samples(connection: Connection) -> list[str]:
    """Return up to four questions that can be answered."""
    written = [question for question, suql in connection.examples if suql]
    if written:
        return written[:MOST]
    relations = sorted(connection.catalog.relations, key=lambda relation: -(relation.rows or 0))
    each = MOST if len(relations) == 1 else MOST // 2
    local = connection.models.name == "local"
    understood = _understood(connection) if local else lambda _: True
    made: dict[str, None] = {}
    for relation in relations[:MOST]:
        groups = partial(_few, connection, relation) if local else _is_enum
        made |= dict.fromkeys(islice(filter(understood, _about(relation, groups)), each))
    return list(made)[:MOST]


def _about(relation: Relation, groups: Callable[[Column], bool]) -> Iterator[str]:
    name = relation.name.rpartition(".")[2].replace("_", " ")
    open_ = [column for column in relation.columns if not column.private and not column.array]
    yield f"How many {name} are there?"
    short = [column for column in open_ if column.is_light and column.name not in relation.key]
    worded = [column for column in short if column.type == "text"][:_LOOKED_AT]
    yield from (f"How many {name} are there for each {_spoken(column)}?" for column in filter(groups, worded))
    amounts = [column for column in short if _AMOUNT.match(column.type) and not _NO_AMOUNT.search(column.name)]
    for column in amounts:
        yield f"Which {name} have the highest {_spoken(column)}?"
        yield f"What is the average {_spoken(column)}?"


def _spoken(column: Column) -> str:
    return column.name.replace("_", " ")


def _is_enum(column: Column) -> bool:
    return column.kind is ColumnKind.ENUM


def _few(connection: Connection, relation: Relation, column: Column) -> bool:
    """Return whether the rows fall into a few groups by a column."""
    if _is_enum(column):
        return True
    found = connection.engine.values(relation.name, column.name, _GROUPS + 1)
    return 1 < len(found) <= min(_GROUPS, (relation.rows or 0) // 2)


def _understood(connection: Connection) -> Callable[[str], bool]:
    """Return what says whether the parser that links words to the schema makes a query of a question; none is run."""
    from almanaq.agent.local import LocalDialogue

    parser = LocalDialogue(connection.engine)
    return lambda question: parser.parse(question, connection.catalog).status == "query"
