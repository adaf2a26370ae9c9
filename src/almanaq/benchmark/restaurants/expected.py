"""What conversations about restaurants are expected to cost, before the first word is said."""

from __future__ import annotations

import math
from collections.abc import Callable
from itertools import islice
from typing import Any

from almanaq.agent.prompted_parser import PromptedParser
from almanaq.agent.responder import Found, respond_prompt
from almanaq.benchmark.generation.expected import (
    WRITTEN_ANSWER,
    WRITTEN_QUERY,
    WRITTEN_REPLY,
    of_prompt,
    of_text_call,
    sample_of,
    times,
)
from almanaq.benchmark.restaurants.dataset import RestaurantsData
from almanaq.benchmark.restaurants.linearize import search_prompt
from almanaq.benchmark.restaurants.play import MOST
from almanaq.benchmark.restaurants.wanted import Conversation
from almanaq.connection import connect
from almanaq.models.protocols import LanguageModel, Usage
from almanaq.suql.catalog.relations import ColumnKind
from almanaq.suql.plan.estimate import TEXT_SELECTIVITY

Expected = Callable[[Conversation], Usage]

_EARLIER = Usage(0, 0, WRITTEN_QUERY + WRITTEN_REPLY)
"""What each earlier turn adds to a prompt: its query, and its reply."""

_TURNS_SHOWN = 6


def expected_of_agent(data: RestaurantsData, language: LanguageModel) -> Expected:
    """Give what says what a conversation takes of the agent.

    Of every turn: a query, a condition on the texts of as many rows as are expected to be read for three that meet it,
    and a reply. Turns that need no texts take less; a query that is mended or relaxed takes more.
    """
    with connect(data.source(), model="local", embedder="lexical") as connection:
        catalog = connection.catalog
    parser = PromptedParser(language)
    texts = [column.name for relation in catalog.relations for column in relation.columns
             if column.kind is ColumnKind.FREE_TEXT]  # fmt: skip
    reading, reply = _reading(data, texts), _reply(data)

    def expected(conversation: Conversation) -> Usage:
        said = [turn.say for turn in conversation.turns if turn.say]
        parsing = (of_prompt(parser.prompt(words, catalog), WRITTEN_QUERY) for words in said)
        return sum(parsing, Usage()) + _history(len(said)) + times(reading + reply, len(said))

    return expected


def expected_of_baseline(data: RestaurantsData) -> Expected:
    """Give what says what a conversation takes of the baseline: of every turn a search query and a reply."""
    reply = _reply(data)

    def expected(conversation: Conversation) -> Usage:
        said = [turn.say for turn in conversation.turns if turn.say]
        queries = (of_prompt(search_prompt(words, ()), WRITTEN_ANSWER) for words in said)
        return sum(queries, Usage()) + _history(len(said)) + times(reply, len(said))

    return expected


def _history(turns: int) -> Usage:
    return times(_EARLIER, sum(min(turn, _TURNS_SHOWN) for turn in range(turns)))


def _reading(data: RestaurantsData, columns: list[str]) -> Usage:
    """Give what one condition on texts takes: rows are read until three meet it."""
    rows = list(data.restaurants.rows.values())
    documents = [_passages(row[name]) for row in sample_of(rows) for name in columns if row.get(name)]
    if not documents:
        return Usage()
    mean = times(sum((of_text_call(each, "x" * 40) for each in documents), Usage()), 1 / len(documents))
    return times(mean, min(len(rows), math.ceil(MOST / TEXT_SELECTIVITY)))


def _reply(data: RestaurantsData) -> Usage:
    rows: list[dict[str, Any]] = [dict(row) for row in islice(data.restaurants.rows.values(), MOST)]
    if not rows:
        return Usage()
    found = Found("", "", tuple(rows[0]), tuple(tuple(row.values()) for row in rows))
    return of_prompt(respond_prompt(found), WRITTEN_REPLY)


def _passages(value: object) -> list[str]:
    return [str(each) for each in value if each] if isinstance(value, list) else [str(value)]
