"""What conversations about restaurants are expected to cost, before the first word is said."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from typing import Any

from almanaq.agent.prompted_parser import PromptedParser
from almanaq.agent.responder import Found, respond_prompt
from almanaq.models.batching import Batching
from almanaq.models.protocols import LanguageModel, Usage
from almanaq.open_connection import connect
from almanaq.suql.catalog.relations import ColumnKind
from almanaq.suql.options import Options
from almanaq.suql.plan.estimate import TEXT_SELECTIVITY
from almanaq_bench.generation.expected import (
    WRITTEN_ANSWER,
    WRITTEN_QUERY,
    WRITTEN_REPLY,
    of_prompt,
    of_text_call,
    sample_of,
    times,
)
from almanaq_bench.restaurants.dataset import RestaurantsData
from almanaq_bench.restaurants.linearize import search_prompt
from almanaq_bench.restaurants.play import MOST
from almanaq_bench.restaurants.wanted import COMBINED, Conversation, Wanted

Expected = Callable[[Conversation], Usage]

_EARLIER = Usage(0, 0, WRITTEN_QUERY + WRITTEN_REPLY)
"""What each earlier turn adds to a prompt: its query, and its reply."""

_TURNS_SHOWN = 6


def expected_of_agent(data: RestaurantsData, language: LanguageModel, batching: Batching | None = None) -> Expected:
    """Return what says what a conversation takes of the agent: requests, with as many texts in each as may share one.

    Of every turn: a query and a reply; where it needs texts, a condition on those of as many rows as are expected to be
    read for three that meet it. A query that is mended or relaxed takes more, one that the cache serves less.
    """
    with connect(data.source(), model="local", embedder="lexical") as connection:
        catalog = connection.catalog
    parser = PromptedParser(language)
    texts = [column.name for relation in catalog.relations for column in relation.columns
             if column.kind is ColumnKind.FREE_TEXT]  # fmt: skip
    (one, several), reply = _reading(data, texts, batching), _reply(data)

    def expected(conversation: Conversation) -> Usage:
        utterances = [turn.say for turn in conversation.turns if turn.say]
        parsing = (of_prompt(parser.prompt(words, catalog), WRITTEN_QUERY) for words in utterances)
        searches = list(_searches(turn for turn in conversation.turns if turn.say))
        read = times(one, searches.count(False)) + times(several, searches.count(True))
        return sum(parsing, Usage()) + _history(len(utterances)) + times(reply, len(utterances)) + read

    return expected


def _searches(turns: Iterable[Wanted]) -> Iterator[bool]:
    """Say of each turn that needs texts whether it searches; else it asks about one row. Others are passed over."""
    before = ""
    for turn in turns:
        if turn.kind == "detail":
            yield from [False] * (turn.needs == COMBINED)
            continue
        needs = before if turn.kind in ("another", "compare") else turn.needs
        yield from [True] * (needs == COMBINED)
        if turn.where is not None and turn.kind != "count":
            before = turn.needs


def expected_of_baseline(data: RestaurantsData) -> Expected:
    """Return what says what a conversation takes of the baseline: of every turn a search query and a reply."""
    reply = _reply(data)

    def expected(conversation: Conversation) -> Usage:
        utterances = [turn.say for turn in conversation.turns if turn.say]
        queries = (of_prompt(search_prompt(words, ()), WRITTEN_ANSWER) for words in utterances)
        return sum(queries, Usage()) + _history(len(utterances)) + times(reply, len(utterances))

    return expected


def _history(turns: int) -> Usage:
    return times(_EARLIER, sum(min(turn, _TURNS_SHOWN) for turn in range(turns)))


def _reading(data: RestaurantsData, columns: list[str], batching: Batching | None) -> tuple[Usage, Usage]:
    """Return what reading one text takes, and one condition on texts: rows are read until three meet it."""
    rows = list(data.restaurants.rows.values())
    documents = [_passages(row[name]) for row in sample_of(rows) for name in columns if row.get(name)]
    if not documents:
        return Usage(), Usage()
    mean = times(sum((of_text_call(each, "x" * 40) for each in documents), Usage()), 1 / len(documents))
    read, requests = _rounds(MOST, batching.texts if batching else 1)
    if read > len(rows):
        read, requests = len(rows), min(requests, len(rows))
    fixed = of_text_call((), "x" * 40).input_tokens
    tokens = read * mean.input_tokens - (read - requests) * fixed
    return mean, Usage(requests, 0, tokens, read * mean.output_tokens)


def _rounds(wanted: float, together: int) -> tuple[int, int]:
    """Return how many rows are read until so many meet a condition, and in how many requests.

    So many are under way at once as a query starts, of which the share passes that plans expect.
    """
    read = requests = 0
    while wanted > 0:
        started = math.ceil(Options().speculation * wanted)
        read, requests = read + started, requests + math.ceil(started / together)
        wanted -= max(started * TEXT_SELECTIVITY, 0.25)
    return read, requests


def _reply(data: RestaurantsData) -> Usage:
    rows: list[dict[str, Any]] = [dict(row) for row in islice(data.restaurants.rows.values(), MOST)]
    if not rows:
        return Usage()
    found = Found("", "", tuple(rows[0]), tuple(tuple(row.values()) for row in rows))
    return of_prompt(respond_prompt(found), WRITTEN_REPLY)


def _passages(value: object) -> list[str]:
    return [str(each) for each in value if each] if isinstance(value, list) else [str(value)]
