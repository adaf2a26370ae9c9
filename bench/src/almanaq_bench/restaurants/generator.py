"""The restaurants task behind the benchmark's seam to generators: a reply is a whole conversation, turn by turn."""

from __future__ import annotations

import math
import re
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from functools import cached_property
from itertools import islice
from pathlib import Path
from typing import Any

from almanaq.agent.conversation import Agent
from almanaq.agent.history import Turn
from almanaq.agent.parser import PromptedParser
from almanaq.agent.responder import Found, respond_prompt
from almanaq.agent.response import Response
from almanaq.agent.turn import run_in_thread
from almanaq.connection import connect
from almanaq.errors import BudgetExceeded, ModelCallError, ModelError, UsageError, suggest
from almanaq.models.batching import Batching
from almanaq.models.budget import spending
from almanaq.models.embedders.vector_store import VectorStore
from almanaq.models.model_names import default_batching, make_models, open_models
from almanaq.models.protocols import Embedder, LanguageModel, Models, Usage
from almanaq.options import Options
from almanaq.suql.catalog.relations import ColumnKind
from almanaq.suql.plan.estimate import TEXT_SELECTIVITY
from almanaq_bench.cost_forecast import CostForecast
from almanaq_bench.generation.agent import AgentGenerator
from almanaq_bench.generation.protocols import (
    WRITTEN_ANSWER,
    WRITTEN_QUERY,
    WRITTEN_REPLY,
    GenerationRequest,
    Reply,
    of_prompt,
    of_text_call,
    sample_of,
    times,
)
from almanaq_bench.prompts import bench_prompt_version
from almanaq_bench.restaurants.dataset import RestaurantsData
from almanaq_bench.restaurants.gold import Restaurants
from almanaq_bench.restaurants.linearize import Linearized, LinearizedDialogue, search_prompt
from almanaq_bench.restaurants.play import MOST, Analysis, Dialogue, TurnReply, nearest_stage, play, to_text
from almanaq_bench.restaurants.wanted import COMBINED, Conversation, ExpectedTurn


class SuqlDialogue:
    """A Dialogue with the agent, which writes SUQL and remembers its turns."""

    def __init__(self, agent: Agent, restaurants: Restaurants) -> None:
        self._agent, self._restaurants = agent, restaurants
        self._history: list[Turn] = []

    def say(self, words: str) -> TurnReply:
        """Return the reply; where a condition was left out, and the reply says so, no restaurant counts as given."""
        with spending() as spent:
            response = self._agent.respond(words, self._history)
        error = response.error
        if isinstance(error, BudgetExceeded | ModelError) and not isinstance(error, ModelCallError):
            raise error
        self._history.append(response.turn())
        shown = tuple(self._restaurants.ids(response.shown)) if response.status == "answered" else ()
        return TurnReply(
            response.answer,
            () if response.relaxed else shown,
            shown,
            _figure(response),
            bool(response.suql),
            response.meant or response.suql or "",
            response.answer if response.status == "failed" else "",
            response.trace.warnings if response.trace else (),
            spent.usage,
        )


def _figure(response: Response) -> int | None:
    """Return the number that a reply to "how many" states."""
    numbers = [v for row in response.rows for v in row if isinstance(v, int)]
    return numbers[0] if len(response.rows) == 1 and len(numbers) == 1 else None


Expected = Callable[[Conversation], Usage]

_EARLIER = Usage(0, 0, WRITTEN_QUERY + WRITTEN_REPLY)
"""What each earlier turn adds to a prompt: its query, and its reply."""

_TURNS_SHOWN = 6


def agent_estimator(data: RestaurantsData, language: LanguageModel, batching: Batching | None = None) -> Expected:
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

    def estimate(conversation: Conversation) -> Usage:
        utterances = [turn.say for turn in conversation.turns if turn.say]
        parsing = (of_prompt(parser.prompt(words, catalog), WRITTEN_QUERY) for words in utterances)
        searches = list(_searches(turn for turn in conversation.turns if turn.say))
        read = times(one, searches.count(False)) + times(several, searches.count(True))
        return sum(parsing, Usage()) + _history(len(utterances)) + times(reply, len(utterances)) + read

    return estimate


def _searches(turns: Iterable[ExpectedTurn]) -> Iterator[bool]:
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


def baseline_estimator(data: RestaurantsData) -> Expected:
    """Return what says what a conversation takes of the baseline: of every turn a search query and a reply."""
    reply = _reply(data)

    def estimate(conversation: Conversation) -> Usage:
        utterances = [turn.say for turn in conversation.turns if turn.say]
        queries = (of_prompt(search_prompt(words, ()), WRITTEN_ANSWER) for words in utterances)
        return sum(queries, Usage()) + _history(len(utterances)) + times(reply, len(utterances))

    return estimate


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

    def expected(self, asked: Sequence[GenerationRequest]) -> Usage:
        """Return what these conversations are expected to take: parsing, reading texts, wording replies."""
        if self._expected is None:
            return Usage()
        of_conversation = self._expected()
        return sum((of_conversation(self._conversations[each.id]) for each in asked), Usage())

    async def reply(self, asked: GenerationRequest) -> Reply:
        """Return what became of every turn of a conversation."""
        return await run_in_thread(self._play, self._conversations[asked.id])

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
    foreseen: CostForecast | None = None,
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
        expected = (lambda: baseline_estimator(data)) if model else None
        return RestaurantsGenerator(
            name, data, split, rows.dialogue, model=rows.model, prompts=version, expected=expected
        )
    if name != "local" and not name.startswith("openai:"):
        raise UsageError(f"the restaurants task has no generator {name!r}{suggest(name, NAMES)}")
    if name == "local":
        models, batching = open_models("local", embedder=embedder()), None
    else:
        batching = default_batching(name) if batch is None else Batching.of(batch)
        models = make_models(_language(name, language), batching)
    model = models.language
    return RestaurantsGenerator(
        name,
        data,
        split,
        agent_dialogues(data, models),
        model=f"local, {models.embedder.name}" if model is None else models.name,
        prompts=AgentGenerator(models).prompts,
        expected=None if model is None else lambda: agent_estimator(data, model, batching),
    )


def agent_dialogues(data: RestaurantsData, models: Models, reader: Models | None = None) -> Dialogues:
    """Return what opens the agent for a conversation; `reader` reads the texts, if `models` do not."""

    def open_dialogue(_: Conversation) -> AbstractContextManager[Dialogue]:
        return _AgentDialogue(data, models, reader or models)

    return open_dialogue


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
        foreseen: CostForecast | None,
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
