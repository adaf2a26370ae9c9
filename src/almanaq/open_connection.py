"""connect(): open a source and the models that read it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import cache as cached
from typing import TYPE_CHECKING, Literal

from almanaq.connection import Connection
from almanaq.errors import UsageError
from almanaq.suql.options import Options, chosen_options

if TYPE_CHECKING:
    from almanaq.engines.protocols import Database
    from almanaq.engines.sources import Source
    from almanaq.models.batching import Batching
    from almanaq.models.model_names import ModelSettings
    from almanaq.models.protocols import Embedder, LanguageModel, Models, Reader
    from almanaq.suql.accuracy.targets import Accuracy
    from almanaq.suql.engine import Engine


def connect(
    source: Source,
    *,
    model: str | Reader | LanguageModel | Models = "local",
    embedder: str | Embedder | None = None,
    schema: str | None = None,
    examples: str | None = None,
    cache: bool = True,
    order: Literal["similarity", "table"] | None = None,
    speculation: float | None = None,
    max_calls: int | None = None,
    max_money: float | None = None,
    strict: bool | None = None,
    link: bool | None = None,
    deadline: float | None = None,
    passages: int | None = None,
    candidates: int | None = None,
    concurrency: int | None = None,
    batch: int | Batching | None = None,
    max_rows: int | None = None,
    max_result_mb: int | None = None,
    accuracy: Accuracy | None = None,
    confidence: float | None = None,
    allow_functions: Sequence[str] = (),
    dialect: str | None = None,
    allow_http: bool = False,
    options: Options | None = None,
) -> Connection:
    """Open a source and return a connection to it; nothing is downloaded and nothing is written to the source.

    Args:
        source: a `.duckdb` or `.sqlite` file, a folder of CSV, JSON or Parquet files or workbooks, one such file, a
            list of them, a glob, `-` (standard input), `sample:restaurants`, a URL, a mapping of names to tables of
            Arrow, pandas or polars, one such table (it is called `data`), a connection of duckdb, sqlite3, SQLAlchemy,
            ADBC or ibis, or an opened Database.
        model: `local` (no language model), `openai:MODEL`, an object with the methods of a Reader or LanguageModel, or
            opened Models, which keep replies as `open_models(…, cache=…)` says, whatever `cache` is here.
        embedder: `lexical`, `local`, `openai:MODEL`, a path or a hub name, or an Embedder; None: the model's own for
            finding tables, and shared words for the order of similarity, which then costs nothing.
        schema: a TOML file with column kinds and descriptions; None: `SOURCE.almanaq.toml` where it exists.
        examples: a TOML file of questions with their SUQL, which show a language model how queries over the source are
            written; None: `SOURCE.examples.toml` where it exists, else some are generated.
        cache: keep replies, and the tables of files, on disk, shared by processes; False keeps replies in memory, for
            the connection: equal calls are made once.
        batch: most questions on one text, or short texts with one question, that share a call of a language model, or
            a Batching that says it in full; None: each is asked alone.
        allow_functions: functions of the database's own that queries may call besides those that only compute from
            their arguments: who names one vouches for what it reads and does.
        dialect: the dialect in which queries are written, as `Options` has it; those of `ask` are in the engine's own.
        allow_http: fetch the file that a source of the form `https://…` names.
        options: choices for every query of the connection; those of its fields that are named as arguments (`order`,
            `speculation`, … `concurrency`) count before it. None: the defaults of `Options`.

    Raises:
        SourceError: the source cannot be opened.
        UsageError: there is no such model or embedder, or an option is out of its range.
        MissingExtraError: the source or the model needs an optional dependency.

    >>> with connect({"dogs": {"name": ["Rex", "Bella"], "age": [7, 3]}}) as con:
    ...     print(con.sql("SELECT name FROM dogs WHERE age > ?", [5]).rows)
    [('Rex',)]
    >>> connect("sample:restaurant")
    Traceback (most recent call last):
    almanaq.errors.UsageError: there is no bundled sample 'restaurant'; did you mean 'restaurants'?
    """
    from almanaq.agent.shots import find_examples, read_examples
    from almanaq.engines.open_source import open_database
    from almanaq.models.model_names import open_models

    chosen = chosen_options(
        options,
        order=order,
        speculation=speculation,
        max_calls=max_calls,
        max_money=max_money,
        strict=strict,
        link=link,
        deadline=deadline,
        passages=passages,
        candidates=candidates,
        concurrency=concurrency,
        max_rows=max_rows,
        max_result_mb=max_result_mb,
        accuracy=accuracy,
        confidence=confidence,
        allow_functions=tuple(allow_functions) or None,
        dialect=dialect,
    )
    if chosen.dialect is not None:
        from almanaq.suql.transpile import dialect_named

        dialect_named(chosen.dialect)
    settings = batch_settings(batch, model)
    shots = find_examples(source) if examples is None else read_examples(examples)
    database = open_database(source, schema=schema, keep=cache, allow_http=allow_http, seconds=deadline)
    try:
        models = open_models(model, embedder=embedder, cache=cache, settings=settings)
    except BaseException:
        database.close()
        raise
    engine = _engine(database, models, chosen, by_vectors=embedder is not None, cache=cache)
    return Connection(engine, database, bounded(models, chosen.deadline), shots)


def _engine(database: Database, models: Models, options: Options, *, by_vectors: bool, cache: bool) -> Engine:
    """Return the compiler over a database; `by_vectors`: the order of similarity is that of the models' embedder."""
    from almanaq.models.model_names import ModelSettings, open_models
    from almanaq.models.vector_store import VectorStore, default_cache_folder
    from almanaq.suql.engine import Engine
    from almanaq.suql.execution.similarity import EmbedderSimilarity
    from almanaq.suql.execution.text_vectors import TextVectors

    similarity = None
    store = VectorStore(default_cache_folder() if cache else None, models.embedder)
    remote = bool(getattr(models.embedder, "remote", False))
    if by_vectors:
        similarity = EmbedderSimilarity(store.vectors, store.question_vectors, remote=remote)
    vectors = TextVectors(store.vectors, remote=remote)

    def proxy_models(name: str) -> Models:
        return open_models(name, embedder=models.embedder, cache=cache, settings=ModelSettings(chances=True))

    proxies = cached(proxy_models)
    return Engine(database, models, options=options, similarity=similarity, proxy_models=proxies, vectors=vectors)


def batch_settings(batch: int | Batching | None, model: str | Reader | LanguageModel | Models) -> ModelSettings | None:
    """Return the settings under which calls are shared; raise UsageError where there is no call that could be."""
    if batch is None:
        return None
    from almanaq.models.batching import Batching
    from almanaq.models.model_names import ModelSettings
    from almanaq.models.protocols import LanguageModel

    if not isinstance(batch, int | Batching) or isinstance(batch, bool) or (isinstance(batch, int) and batch < 1):
        raise UsageError(f"batch: {batch!r} is out of range; give a whole number of 1 or more")
    if model == "local" or not isinstance(model, str | LanguageModel):
        kind = "local" if model == "local" else type(model).__name__
        raise UsageError(
            f"batch: the model {kind!r} has no calls that could be shared; give a language model, as openai:MODEL"
        )
    return ModelSettings(batching=batch if isinstance(batch, Batching) else Batching.of(batch))


def bounded(models: Models, deadline: float | None) -> Models:
    """Return models whose language model must reply within the deadline; the engine bounds its own calls."""
    if deadline is None or models.language is None:
        return models
    from almanaq.models.deadline import DeadlineModel

    return replace(models, language=DeadlineModel(models.language, deadline))
