"""LocalDialogue: tells turns apart and answers them by their history, without a language model."""

from __future__ import annotations

from collections.abc import Sequence

from almanaq.agent.engine_protocol import QueryEngine
from almanaq.agent.history import Turn, TurnKind
from almanaq.agent.local.linker import link
from almanaq.agent.local.parser import LocalParser
from almanaq.agent.local.turns import turn_kind
from almanaq.agent.parser import Failure, Parsed
from almanaq.suql.catalog.relations import Catalog


class LocalDialogue:
    name = "local"

    def __init__(self, engine: QueryEngine) -> None:
        self._parser = LocalParser(engine.values)

    def classify(self, question: str, catalog: Catalog, history: Sequence[Turn] = ()) -> TurnKind:
        return turn_kind(question, link(question, self._parser.index(catalog)), history)

    def parse(
        self, question: str, catalog: Catalog, history: Sequence[Turn] = (), failures: Sequence[Failure] = ()
    ) -> Parsed:
        return self._parser.parse(question, catalog, history, failures)
