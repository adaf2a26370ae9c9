"""The restaurants task behind the benchmark's seam to generators: a reply is a whole conversation, turn by turn."""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from functools import cached_property
from pathlib import Path

from almanaq.agent.conversation import Agent
from almanaq.agent.threads import in_thread
from almanaq.errors import UsageError, suggest
from almanaq.models.batching import Batching
from almanaq.models.default_batching import usual_batching
from almanaq.models.model_names import models_of, open_models
from almanaq.models.protocols import Embedder, LanguageModel, Models, Usage
from almanaq.models.vector_store import VectorStore
from almanaq.open_connection import connect
from almanaq.retrieval.paid import Foreseen
from almanaq_bench.generation.agent import AgentGenerator
from almanaq_bench.generation.protocols import Asked, Reply
from almanaq_bench.prompts import bench_prompt_version
from almanaq_bench.restaurants.analysis import Analysis, nearest_stage
from almanaq_bench.restaurants.dataset import RestaurantsData
from almanaq_bench.restaurants.expected import Expected, expected_of_agent, expected_of_baseline
from almanaq_bench.restaurants.linearize import Linearized, LinearizedDialogue
from almanaq_bench.restaurants.play import Dialogue, play, to_text
from almanaq_bench.restaurants.suql import SuqlDialogue
from almanaq_bench.restaurants.wanted import Conversation

NAMES = ("local", "openai:MODEL", "linearize@1", "linearize@3", "linearize@3:openai:MODEL")
_LINEARIZE = re.compile(r"linearize@([1-9]\d?)(?::(openai:.+))?")

Opener = Callable[[str], LanguageModel]
Dialogues = Callable[[Conversation], AbstractContextManager[Dialogue]]
"""Opens a system for one conversation. Only a stand-in that is to be right looks at the turns beforehand."""


class RestaurantsGenerator:
    """A Generator whose replies are conversations, judged.

    Args:
        name, model: what it goes by; prompts: the versions of its prompt files.
        conversations: by id, all that will be asked.
        open_dialogue: opens the system for each.
        expected: opens what says what a conversation is expected to cost; None where nothing is paid for.
    """

    def __init__(
        self,
        name: str,
        data: RestaurantsData,
        split: str,
        open_dialogue: Dialogues,
        *,
        model: str = "",
        prompts: Mapping[str, str] | None = None,
        expected: Callable[[], Expected] | None = None,
    ) -> None:
        self._expected = expected
        self._find_stage = nearest_stage if _LINEARIZE.fullmatch(name) else Analysis(data).find_stage
        self.name, self.model, self.prompts = name, model, dict(prompts or {})
        self._restaurants = data.restaurants
        self._conversations = {each.id: each for each in data.conversations(split)}
        self._open = open_dialogue

    def expected(self, asked: Sequence[Asked]) -> Usage:
        """Return what these conversations are expected to take: parsing, reading texts, wording replies."""
        if self._expected is None:
            return Usage()
        of_conversation = self._expected()
        return sum((of_conversation(self._conversations[each.id]) for each in asked), Usage())

    async def reply(self, asked: Asked) -> Reply:
        """Return what became of every turn of a conversation."""
        return await in_thread(self._play, self._conversations[asked.id])

    def _play(self, conversation: Conversation) -> Reply:
        with self._open(conversation) as dialogue:
            records, usage = play(conversation, dialogue, self._restaurants, self._find_stage)
        return Reply(to_text(records), usage=usage)


def open_restaurants_generator(
    name: str,
    data: RestaurantsData,
    split: str,
    *,
    language: Opener | None,
    embedder: Callable[[], Embedder],
    cache: Path | None,
    foreseen: Foreseen | None = None,
    batch: int | None = None,
) -> RestaurantsGenerator:
    """Return the generator of a name: the agent, or the baseline that searches linearized rows.

    Args:
        language: opens language models by name, within a budget that all calls of the run share.
        embedder: opens what the baseline searches with, and what `local` reads with; `cache` is the folder of the
            baseline's vectors.
        batch: most text calls of the agent that share a request; None: what is usual for the model.
        foreseen: is told what the baseline's vectors will cost, and may refuse it.

    Raises:
        UsageError: there is no such generator for this task.
    """
    baseline = _LINEARIZE.fullmatch(name)
    if baseline:
        model = _language(baseline[2], language) if baseline[2] else None
        rows = _Baseline(data, VectorStore(cache, embedder()), model, int(baseline[1]), foreseen)
        version = {"linearize": bench_prompt_version("linearize")} if model else {}
        expected = (lambda: expected_of_baseline(data)) if model else None
        return RestaurantsGenerator(
            name, data, split, rows.dialogue, model=rows.model, prompts=version, expected=expected
        )
    if name != "local" and not name.startswith("openai:"):
        raise UsageError(f"the restaurants task has no generator {name!r}{suggest(name, NAMES)}")
    if name == "local":
        models, batching = open_models("local", embedder=embedder()), None
    else:
        batching = usual_batching(name) if batch is None else Batching.of(batch)
        models = models_of(_language(name, language), batching)
    model = models.language
    return RestaurantsGenerator(
        name,
        data,
        split,
        agent_dialogues(data, models),
        model=f"local, {models.embedder.name}" if model is None else models.name,
        prompts=AgentGenerator(models).prompts,
        expected=None if model is None else lambda: expected_of_agent(data, model, batching),
    )


def agent_dialogues(data: RestaurantsData, models: Models, reader: Models | None = None) -> Dialogues:
    """Return what opens the agent for a conversation; `reader` reads the texts, if `models` do not."""

    def opened(_: Conversation) -> AbstractContextManager[Dialogue]:
        return _AgentDialogue(data, models, reader or models)

    return opened


class _AgentDialogue:
    """A context in which the agent has a connection of its own."""

    def __init__(self, data: RestaurantsData, models: Models, reader: Models) -> None:
        self._data, self._models, self._connection = data, models, connect(data.source(), model=reader)

    def __enter__(self) -> Dialogue:
        agent = Agent(self._connection.engine, self._models, shots=self._connection.examples)
        return SuqlDialogue(agent, self._data.restaurants)

    def __exit__(self, *_: object) -> None:
        self._connection.close()


class _Baseline:
    """Opens the baseline for conversations; rows are embedded when the first one comes."""

    def __init__(
        self,
        data: RestaurantsData,
        store: VectorStore,
        language: LanguageModel | None,
        k: int,
        foreseen: Foreseen | None,
    ) -> None:
        self._data, self._store, self._language, self._k, self._foreseen = data, store, language, k, foreseen
        self._lock = threading.Lock()

    @property
    def model(self) -> str:
        """What writes the queries, and what makes the vectors."""
        return f"{self._language.name if self._language else 'local'}, {self._store.embedder.name}"

    @cached_property
    def _rows(self) -> Linearized:
        return Linearized(self._data.restaurants, self._store, self._foreseen)

    def dialogue(self, _: Conversation) -> AbstractContextManager[Dialogue]:
        """Return the baseline, which has heard nothing yet."""
        with self._lock:
            rows = self._rows
        return nullcontext(LinearizedDialogue(rows, self._k, self._language))


def _language(name: str, language: Opener | None) -> LanguageModel:
    if language is not None:
        return language(name)
    model = open_models(name, embedder="lexical").language
    assert model is not None
    return model
