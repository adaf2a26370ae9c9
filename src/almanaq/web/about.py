"""What a client learns of the server and its source: the model, what leaves this machine, tables, first questions."""

from __future__ import annotations

import base64
import re
from collections.abc import Callable, Iterator
from functools import partial
from itertools import islice
from typing import Any

from almanaq.accounts import Account
from almanaq.connection import Connection
from almanaq.encode import relation_record
from almanaq.errors import SourceError
from almanaq.suql.catalog.relations import Catalog, Column, ColumnKind, Relation
from almanaq.users import ANYONE
from almanaq.web.problems import Refused
from almanaq.web.service import Service
from almanaq.web.verdicts import Verdict, Verdicts, measure_accuracy


def about_record(service: Service) -> dict[str, Any]:
    """Return the source, the model, what leaves this machine, bounds, and measured accuracy."""
    connection, warnings = service.connection, list(service.connection.warnings)
    models, verdicts = connection.models, list[Verdict]()
    try:
        verdicts = Verdicts(service.store).all()
    except SourceError as error:  # a page without figures is better than none
        warnings.append(str(error))
    return {
        "source": service.source,
        "user": describe_user(service.account, connection.catalog),
        "model": models.name,
        "leaves": list_what_leaves(service),
        "paid": bool(models.reader.paid),
        "max_calls": service.calls_allowed,
        "ask_above": service.limits.ask_above if models.reader.paid else None,
        "accuracy": measure_accuracy(verdicts, sampled=False).record(),
        "sampled_accuracy": measure_accuracy(verdicts, sampled=True).record(),
        "warnings": warnings,
    }


def describe_user(account: Account, catalog: Catalog) -> dict[str, Any] | None:
    """Return who asks, and of which relations they see a part; None where users are not told apart.

    The rules are not in it: they may speak of columns that the user does not see.
    """
    if account.user is ANYONE:
        return None
    parts = [relation.name for relation in catalog.relations if relation.definition]
    return account.with_budgets_left({"name": account.user.name, "roles": list(account.user.roles), "part_of": parts})


def list_what_leaves(service: Service) -> list[str]:
    """Return the columns of prose that a query may send to a model on another machine, and what else goes there."""
    connection = service.connection
    if not connection.models.reader.remote:
        return []
    texts = [
        f"{relation.name}.{column.name}"
        for relation in connection.catalog.relations
        for column in relation.columns
        if column.kind.value == "free_text" and not column.private
    ]
    return ["questions", "the schema, with samples", "rows of replies", *texts]


def list_tables(catalog: Catalog, search: str, limit: int, cursor: str | None) -> dict[str, Any]:
    """Return relations in which every word of `search` occurs: in a name, a description, or a column's.

    Args:
        cursor: `next` of the page before.
    """
    words = search.casefold().split()
    found = [relation for relation in catalog.relations if all(word in _words(relation) for word in words)]
    start = 0 if cursor is None else read_cursor(cursor)
    shown = found[start : start + limit]
    more = start + limit < len(found)
    tables = [
        {
            "name": relation.name,
            "description": relation.description,
            "rows": relation.rows,
            "columns": [column.name for column in relation.columns],
        }
        for relation in shown
    ]
    return {"tables": tables, "total": len(found), "next": make_cursor(start + limit) if more else None}


def describe_table(connection: Connection, name: str) -> dict[str, Any]:
    """Return one relation with its columns, and notes of how it was read; raises UnknownNameError."""
    return relation_record(connection.catalog.relation(name)) | {"notes": list(connection.notes(name))}


def _words(relation: Relation) -> str:
    columns = (word for column in relation.columns for word in (column.name, column.description))
    return " ".join((relation.name, relation.description, *columns)).casefold()


def make_cursor(start: int) -> str:
    return base64.urlsafe_b64encode(b"from:%d" % start).decode().rstrip("=")


def read_cursor(cursor: str) -> int:
    try:
        text = base64.urlsafe_b64decode(cursor.encode() + b"=" * (-len(cursor) % 4)).decode("ascii")
        return int(re.fullmatch(r"from:(\d+)", text, re.ASCII)[1])  # type: ignore[index]
    except (TypeError, ValueError):  # no base64, no ASCII, or other words
        raise Refused(422, "cursor: not one that `next` gave") from None


MOST = 4
_GROUPS = 20
"""Different values up to which rows are counted for each of them."""
_LOOKED_AT = 6
_AMOUNT = re.compile(r"(smallint|integer|bigint|numeric|decimal|real|double precision)\b")
_NO_AMOUNT = re.compile(r"(^|_)(id|no|nr|number|key|code|zip|year|month|day|lat|lng|lon|latitude|longitude)$", re.I)


def sample_questions(connection: Connection) -> list[str]:
    """Return up to four questions that can be answered."""
    from almanaq.agent.local import LocalDialogue

    written = [question for question, suql in connection.examples if suql]
    if written:
        return written[:MOST]
    relations = sorted(connection.catalog.relations, key=lambda relation: -(relation.rows or 0))
    each = MOST if len(relations) == 1 else MOST // 2
    local = connection.models.name == "local"
    parse = LocalDialogue(connection.engine).parse

    def understood(question: str) -> bool:
        return not local or parse(question, connection.catalog).status == "query"

    made: dict[str, None] = {}
    for relation in relations[:MOST]:
        groups = partial(_has_few_groups, connection, relation) if local else _is_enum
        made |= dict.fromkeys(islice(filter(understood, _make_questions(relation, groups)), each))
    return list(made)[:MOST]


def _make_questions(relation: Relation, groups: Callable[[Column], bool]) -> Iterator[str]:
    name = relation.name.rpartition(".")[2].replace("_", " ")
    open_ = [column for column in relation.columns if not column.private and not column.array]
    yield f"How many {name} are there?"
    short = [column for column in open_ if column.is_light and column.name not in relation.key]
    worded = [column for column in short if column.type == "text"][:_LOOKED_AT]
    yield from (f"How many {name} are there for each {_speak_name(column)}?" for column in filter(groups, worded))
    amounts = [column for column in short if _AMOUNT.match(column.type) and not _NO_AMOUNT.search(column.name)]
    for column in amounts:
        yield f"Which {name} have the highest {_speak_name(column)}?"
        yield f"What is the average {_speak_name(column)}?"


def _speak_name(column: Column) -> str:
    return column.name.replace("_", " ")


def _is_enum(column: Column) -> bool:
    return column.kind is ColumnKind.ENUM


def _has_few_groups(connection: Connection, relation: Relation, column: Column) -> bool:
    if _is_enum(column):
        return True
    found = connection.engine.values(relation.name, column.name, _GROUPS + 1)
    return 1 < len(found) <= min(_GROUPS, (relation.rows or 0) // 2)
