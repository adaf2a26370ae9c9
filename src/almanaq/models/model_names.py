"""Models by name: what `--model` and `--embedder` accept, and the parts behind each name."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from almanaq.benchmark import import_bench
from almanaq.errors import UsageError, suggest
from almanaq.models.budget import Budget, MeteredModel, read_price
from almanaq.models.cached import CachedModel, ReplyCache
from almanaq.models.concurrent import PATIENCE, ConcurrentModel
from almanaq.models.embedders.base import as_embedder
from almanaq.models.private_files import default_cache_file, default_cache_folder
from almanaq.models.protocols import Embedder, LanguageModel, Linker, Models, Price, Reader
from almanaq.models.providers import PROVIDERS, call_timeout, choose_model, find_endpoint, reads_texts
from almanaq.models.retrying import RetryingModel
from almanaq.models.weights import GGUF, find_weights
from almanaq.plugins import call_plugin, plugin_names

if TYPE_CHECKING:
    from almanaq.models.batching import Batching
    from almanaq.models.prompted_reader import PromptedReader

MODEL_NAMES = ("auto", "local", "openai:MODEL", "ollama:MODEL", "gguf:NAME", "azure:DEPLOYMENT")
EMBEDDER_NAMES = ("lexical", "static", "local", "openai:MODEL")


@dataclass(frozen=True, slots=True)
class ModelSettings:
    """How a language model is reached, and its limits.

    Attributes:
        base_url, api_key: by default OPENAI_BASE_URL and OPENAI_API_KEY. Both may contain a key: neither is printed.
        timeout: seconds until a call is abandoned; None takes ALMANAQ_TIMEOUT, else 60, or 300 on this machine.
        attempts: maximum attempts for a call.
        concurrency: maximum calls in flight.
        context_tokens: the model's context window; None asks the server, else takes the usual one.
        reasoning_effort: how much a model that reasons is to reason, as its server names it; None: as is usual there.
        cache_file: the reply cache; None takes the one in the user's cache folder.
        budget: what may be spent; the default only counts.
        price: dollars for tokens; None looks in the user's prices file.
        probabilities: ask for the probability of each verdict of a yes-or-no question, where the server reports it.
        batching: which calls may share a request; None: none.
        batch_api: read texts through the server's batch API, at half the price; of `openai:` models alone.
    """

    base_url: str | None = field(default=None, repr=False)
    api_key: str | None = field(default=None, repr=False)
    timeout: float | None = None
    attempts: int = 4
    concurrency: int = 64
    context_tokens: int | None = None
    reasoning_effort: str | None = None
    cache_file: Path | None = None
    budget: Budget = field(default_factory=Budget)
    price: Price | None = None
    probabilities: bool = False
    batching: Batching | None = None
    batch_api: bool = False


def open_models(
    spec: str | LanguageModel | Reader | Models | None = None,
    *,
    embedder: str | Embedder | None = None,
    cache: bool = True,
    settings: ModelSettings | None = None,
) -> Models:
    """Return the models for a name or an object; nothing is loaded or called yet.

    Args:
        spec: "local" (also None), "openai:MODEL", "gguf:NAME" (weights here, or their file), "replay:FILE" (what a
            RecordingModel of almanaq-bench wrote), "PROVIDER:MODEL" of another package (the entry points
            `almanaq.models`), a LanguageModel, or a Reader (also its own linker where it has `link`).
        embedder: a name or an object; None takes "local", or "lexical" where the extra `local` is not installed.
        cache: store replies in the cache file; without it identical requests of one process are still sent once.

    Raises:
        UsageError: there is no model of that name.
        ModelError: a setting that the model needs is missing.
    """
    if spec == "auto":
        spec = choose_model().name
    if settings and settings.batch_api and not (isinstance(spec, str) and spec.startswith("openai:")):
        kind = spec if isinstance(spec, str) else type(spec).__name__
        raise UsageError(f"batch_api: only models of openai: have a batch API, not {kind!r}: leave it out")
    if isinstance(spec, Models):
        return spec
    named = "local" if embedder is None else embedder
    vectors = open_embedder(named, settings=settings) if isinstance(named, str) else as_embedder(named)
    if spec is None or spec == "local":
        return _make_local_models(vectors)
    if isinstance(spec, str) and spec.startswith("replay:") and spec != "replay:":
        spec = import_bench("replay", "a replayed model").ReplayingModel(spec.removeprefix("replay:"))
    if isinstance(spec, str) and (added := _open_plugin(spec)) is not None:
        return open_models(added, embedder=vectors, cache=cache, settings=settings)
    if isinstance(spec, str):
        settings = settings or ModelSettings()
        if spec.startswith(GGUF) and spec != GGUF:
            from almanaq.models.llama_server import CONTEXT_TOKENS, LlamaModel

            name = spec.removeprefix(GGUF)
            timeout = settings.timeout or call_timeout(find_endpoint("llamacpp").usual_timeout)
            model: LanguageModel = LlamaModel(name, find_weights(name), timeout=timeout)
            settings = replace(settings, concurrency=1, context_tokens=CONTEXT_TOKENS)
        else:
            model, settings = _open_language_model(spec, settings)
        return _make_models(model, vectors, settings, cache)
    if isinstance(spec, Reader):
        linker = spec if isinstance(spec, Linker) else _make_local_models(vectors).linker
        return Models(spec.name, spec, linker, vectors)
    if isinstance(spec, LanguageModel):
        use_cache = cache and bool(getattr(spec, "persistent", True))
        return _make_models(spec, vectors, settings or ModelSettings(), use_cache)
    raise UsageError(f"{spec!r} is not a model: give 'local', 'openai:MODEL', a LanguageModel or a Reader")


def make_models(language: LanguageModel, batching: Batching | None = None) -> Models:
    """Return the models around a language model that is wrapped already, with the lexical embedder."""
    from almanaq.models.embedders.base import LexicalEmbedder
    from almanaq.models.prompted_reader import PromptedLinker, PromptedReader

    reader = _add_batching(PromptedReader(language), language, batching)
    return Models(language.name, reader, PromptedLinker(language), LexicalEmbedder(), language)


def _add_batching(plain: PromptedReader, language: LanguageModel, batching: Batching | None) -> Reader:
    if batching is None:
        return plain
    from almanaq.models.batching import BatchingReader

    return BatchingReader(plain, language, batching, cache=getattr(language, "cache", None))


def open_embedder(name: str, *, settings: ModelSettings | None = None) -> Embedder:
    """Return the embedder of a name; `local` is `lexical` where the extra is not installed, as its `name` says."""
    from almanaq.models.embedders.base import LexicalEmbedder

    if name == "lexical":
        return LexicalEmbedder()
    if name == "static":
        made: Embedder = import_bench("static_embedder", "the static embedder").StaticEmbedder(default_cache_folder())
        return made
    if name.startswith("openai:") and name != "openai:":
        from almanaq.models.openai import OpenAIEmbedder

        settings = settings or ModelSettings()
        return OpenAIEmbedder(name.removeprefix("openai:"), settings.base_url, settings.api_key)
    if name == "local":
        from almanaq.models.embedders.minilm import LocalEmbedder, local_is_installed

        return LocalEmbedder() if local_is_installed() else LexicalEmbedder()
    if "/" in name or os.sep in name:
        from almanaq.models.hub_models import HubEmbedder

        return HubEmbedder(name)
    raise UsageError(f"no embedder is called {name!r}{suggest(name, EMBEDDER_NAMES)}; a path or hub name has a slash")


def check_embedder(name: str) -> None:
    """Raise UsageError for a name that no embedder has, before anything is read for it."""
    if name not in EMBEDDER_NAMES and "/" not in name and os.sep not in name:
        open_embedder(name)


def wrap_model(model: LanguageModel, settings: ModelSettings, cache: bool) -> LanguageModel:
    """Return a model inside the wrappers that the settings ask for; a call passes the last one here first.

    Caching is outermost, as a cache hit costs nothing. A retry passes the budget again and holds no slot while it
    waits. Metering sees physical calls.
    """
    metered = MeteredModel(model, settings.budget, settings.price)
    limited = ConcurrentModel(metered, settings.concurrency, patience=getattr(model, "patience", PATIENCE))
    wrapped = RetryingModel(limited, attempts=settings.attempts)
    file = (settings.cache_file or default_cache_file()) if cache else None
    return CachedModel(wrapped, ReplyCache(file), identity=getattr(model, "identity", model.name))


def _make_local_models(embedder: Embedder) -> Models:
    from almanaq.models.extractive import LocalLinker, LocalReader

    return Models("local", LocalReader(), LocalLinker(), embedder)


def _open_plugin(spec: str) -> LanguageModel | Reader | None:
    provider, _, name = spec.partition(":")
    if provider in ("local", "gguf", *PROVIDERS):
        return None
    made = call_plugin("almanaq.models", provider, name)
    if made is not None and not isinstance(made, LanguageModel | Reader):
        raise UsageError(f"the plug-in {provider!r} gives a {type(made).__name__}, no LanguageModel or Reader")
    return made


def _open_language_model(
    spec: str, settings: ModelSettings, make: Callable[..., LanguageModel] | None = None
) -> tuple[LanguageModel, ModelSettings]:
    provider, _, name = spec.partition(":")
    if provider not in PROVIDERS or not name:
        near = suggest(spec, (*MODEL_NAMES, *plugin_names("almanaq.models")))
        raise UsageError(f"no model is called {spec!r}{near}; change --model or ALMANAQ_MODEL")
    from almanaq.models.openai import OpenAIModel

    place = find_endpoint(provider, settings.base_url, settings.api_key)
    settings = replace(settings, price=settings.price or read_price(name))
    model = (make or OpenAIModel)(
        name,
        place.address,
        place.key,
        timeout=settings.timeout or call_timeout(place.usual_timeout),
        price=settings.price,
        reasoning_effort=settings.reasoning_effort,
        provider=provider,
    )
    return model, settings


def _make_models(model: LanguageModel, embedder: Embedder, settings: ModelSettings, cache: bool) -> Models:
    from almanaq.models.prompted_reader import PromptedLinker, PromptedReader

    language = reading = wrap_model(model, settings, cache)
    if not reads_texts(model.name):  # it writes queries alone
        return replace(_make_local_models(embedder), name=model.name, language=language)
    if settings.batch_api:
        from almanaq.models.batch_api import MOST_REQUESTS, BatchModel, batch_price

        file = (settings.cache_file or default_cache_file()).with_name("batches.sqlite")
        # One batch holds all requests.
        settings = replace(settings, price=batch_price(settings.price), concurrency=MOST_REQUESTS)
        model, settings = _open_language_model(model.name, settings, partial(BatchModel, file=file))
        reading = wrap_model(model, settings, cache)
    plain = PromptedReader(
        reading,
        context_tokens=settings.context_tokens,
        probabilities=settings.probabilities,
        ask_context=getattr(model, "ask_context", None),
    )
    reader = _add_batching(plain, reading, settings.batching)
    return Models(model.name, reader, PromptedLinker(language), embedder, language, settings.price)


def default_batching(model: str) -> Batching | None:
    """Return the batching where the user sets none: of hosted models alone, as only with those it was measured."""
    if model.partition(":")[0] not in ("openai", "azure"):
        return None
    from almanaq.models.batching import AGREED

    return AGREED
