"""SmallModelParser: `local` first; where that is not sure, a small language model, held to what can be checked."""

from __future__ import annotations

import math
from collections.abc import Sequence
from contextlib import suppress
from copy import copy
from dataclasses import dataclass, replace

from sqlglot import exp

from almanaq.agent.describe import describe
from almanaq.agent.history import Turn
from almanaq.agent.local import LocalDialogue
from almanaq.agent.local.world import World
from almanaq.agent.parser import Failure, Parsed
from almanaq.agent.prompting import complete, make_prompt
from almanaq.agent.queries import QueryEngine, query_tree
from almanaq.agent.response import Reading
from almanaq.agent.small.translate import NotTranslated, Translated, translate
from almanaq.agent.small.views import Views, choose_views
from almanaq.agent.turn import options_of_turn
from almanaq.errors import DatabaseError, DeadlineExceeded, ModelCallError, ModelError, QueryError
from almanaq.models.protocols import LanguageModel, Prompt
from almanaq.models.retrying import describe_failure
from almanaq.options import Options
from almanaq.suql.catalog.relations import Catalog
from almanaq.suql.text_functions import is_model_call

_LIKELY, _LIKELY_JOINED, _LIKELY_CONFIRMED = -0.13, -0.05, -0.1
"""The mean log probability of a query's tokens from which it is sure: with one table shown, with several, and
where a reading of `local` finds the same (chosen on the open questions of experiments/small_model)."""
_SURE = 0.62
"""How often such queries were right on questions that nobody had looked at (21 of 34): below the usual `confidence`."""
_MOST_QUESTION, _MOST_OUTPUT, _MOST_ROWS = 600, 160, 1000
_MOST_CHARACTERS, _COLUMNS = 760, (10, 7, 5, 3)
"""Of the tables in a prompt: with the examples and a question, 450 tokens."""
_READINGS = 3


@dataclass(frozen=True, slots=True)
class Draft:
    """A query that a model wrote, and what speaks for it.

    Attributes:
        likelihood: the mean log probability of its tokens; None where the server does not say.
        rows: what it finds.
        views: how many tables the model was shown.
    """

    translated: Translated
    likelihood: float | None
    rows: Sequence[Sequence[object]]
    views: int

    @property
    def is_empty(self) -> bool:
        """Whether it finds nothing."""
        return all(value is None or value == 0 for row in self.rows for value in row)

    def agrees(self, rows: Sequence[Sequence[object]]) -> bool:
        """Return whether other rows hold the same columns, or the columns of these, in any order."""
        few, many = sorted((_columns(self.rows), _columns(rows)), key=len)
        return not self.is_empty and bool(few) and all(column in many for column in few)


class SmallModelParser:
    """A SemanticParser around `local` that asks a small model where `local` would ask back.

    The model sees a few tables and columns under short names and the values that the question names, and replies with
    one SELECT. What does not bind is mended by rule or dropped. The rest is offered, and run where `confidence` is as
    low as the share of its sure queries that were right.

    Args:
        local: reads each question first, and alone what goes on from earlier turns.
        model: completes the prompt `small`.
        engine: runs what the model wrote, before it is shown to anybody.
    """

    name = "small"

    def __init__(
        self, local: LocalDialogue, model: LanguageModel, engine: QueryEngine, options: Options | None = None
    ) -> None:
        self._local, self._model, self._engine, self._options = local, model, engine, options

    def with_options(self, local: LocalDialogue, options: Options) -> SmallModelParser:
        """Return one that runs queries by other options, after another `local`."""
        other = copy(self)
        other._local, other._options = local, options
        return other

    def parse(
        self, question: str, catalog: Catalog, history: Sequence[Turn] = (), failures: Sequence[Failure] = ()
    ) -> Parsed:
        """Return the query of a turn, or the readings to choose from; what was refused has no second form."""
        parsed = self._local.parse(question, catalog, history, failures)
        settled = failures or self._local.settle(question, catalog, history) is not None
        if parsed.status == "query" or settled or not self._local.stands_alone(question, history, catalog):
            return parsed
        world = self._local.world(catalog)
        try:
            draft = self.draft(question, world)
        except ModelCallError as failure:
            why, _ = describe_failure(failure)
            return replace(parsed, reply=f"{self._model.name} wrote no query ({why}). {parsed.reply}".strip())
        if draft is None:
            return parsed
        suql = draft.translated.suql
        chance = _SURE if self._is_sure(draft, parsed.readings) else min(0.5, math.exp(5 * (draft.likelihood or -1.0)))
        if chance >= self._local.confidence:
            remark = f"{self._model.name} wrote this query."
            return Parsed("query", suql, unused=draft.translated.left_out, remarks=(remark,))
        reading = Reading(describe(suql, dialect=world.dialect), suql, round(chance, 3))
        others = [each for each in parsed.readings if each.suql != suql]
        return self._local.offer(question, [reading, *others][:_READINGS], world)

    def draft(self, question: str, world: World) -> Draft | None:
        """Return what the model wrote as a query that runs; None where that is none. Raises ModelCallError."""
        prompt, views = self.prompt(question, world)
        completion = complete(self._model, prompt)
        try:
            translated = translate(completion.text, views, world)
            rows = self._run(translated.suql)
        except (DeadlineExceeded, ModelError):
            raise
        except (NotTranslated, DatabaseError):  # what the engine says of it is no answer
            return None
        return Draft(translated, completion.likelihood, rows, len(views.views))

    def _is_sure(self, draft: Draft, readings: Sequence[Reading]) -> bool:
        """Return whether the model is sure of a query, or a reading of `local` finds the same."""
        if draft.likelihood is None or draft.is_empty:
            return False
        likely = draft.likelihood > (_LIKELY if draft.views == 1 else _LIKELY_JOINED)
        return likely or (draft.likelihood > _LIKELY_CONFIRMED and self.confirms(draft, readings))

    def confirms(self, draft: Draft, readings: Sequence[Reading]) -> bool:
        """Return whether a reading that `local` was not sure of finds what the model's query finds."""
        for reading in readings:
            tree = query_tree(reading.suql, self._engine.dialect)
            with suppress(QueryError):
                if not any(map(is_model_call, tree.find_all(exp.Anonymous))) and draft.agrees(self._run(reading.suql)):
                    return True
        return False

    def _run(self, suql: str) -> Sequence[Sequence[object]]:
        options = options_of_turn(self._options)
        most = options and replace(options, max_rows=min(options.max_rows or _MOST_ROWS, _MOST_ROWS))
        return self._engine.run(suql, options=most).rows

    def prompt(self, question: str, world: World) -> tuple[Prompt, Views]:
        """Return the request for a question, and the views that it shows."""
        question = question[:_MOST_QUESTION]
        for most in _COLUMNS:
            views = choose_views(question, world, most)
            values = {"tables": views.tables(), "joins": views.joins(), "values": views.conditions()}
            if sum(len(line) for lines in values.values() for line in lines) <= _MOST_CHARACTERS:
                break
        made = make_prompt("small", {**values, "question": question})
        return replace(made, max_output_tokens=_MOST_OUTPUT, stop=(";",), likelihood=True), views


def _columns(rows: Sequence[Sequence[object]]) -> list[tuple[str, ...]]:
    """Return the values of each column, in order."""
    return [tuple(sorted(map(str, column))) for column in zip(*rows, strict=True)]
