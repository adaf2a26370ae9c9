"""`almanaq find` and `almanaq index`: the tables that answer a question, and an index of them on disk."""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from almanaq.benchmark import import_bench
from almanaq.cli.options import flag, name_source
from almanaq.cli.terminal import console, say, style_text, warn, warn_of_source
from almanaq.errors import UsageError
from almanaq.table_search import (
    FIELDS,
    open_agreed_embedder,
    open_embedder,
    open_tables_index,
    read_tables,
    search_index,
    search_tables,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from almanaq.corpus.table import Table
    from almanaq.models.budget import Budget
    from almanaq.models.protocols import Embedder, LanguageModel
    from almanaq.retrieval.protocols import Retriever
    from almanaq.retrieval.segments import TableEntry
    from almanaq.retrieval.stored import StoredIndex

    Hits = Sequence[tuple[Table | TableEntry, float]]

DEFAULT_FIELDS = ",".join(FIELDS)


def find(
    question: Annotated[str, typer.Argument(metavar="QUESTION")],
    source: Annotated[
        str | None, typer.Argument(metavar="SOURCE", help="The value of --corpus, as an argument.")
    ] = None,
    corpus: Annotated[
        str | None,
        typer.Option(
            "--corpus", "--db", metavar="SOURCE", help="Where the tables are: a file, a folder, a dataset, or a URL."
        ),
    ] = None,
    index: Annotated[
        Path | None,
        typer.Option("--index", metavar="DIR", help="An index made by `almanaq index`, instead of --corpus."),
    ] = None,
    k: Annotated[int, typer.Option("-k", metavar="N", help="How many tables to list at most.")] = 10,
    fields: Annotated[
        str | None, typer.Option("--fields", help=f"The parts of a table to search; default {DEFAULT_FIELDS}.")
    ] = None,
    retriever: Annotated[str, typer.Option("--retriever", metavar="NAME", help="How to search.")] = "hybrid",
    embedder: Annotated[
        str | None,
        typer.Option("--embedder", metavar="NAME", help="lexical, static, local, openai:MODEL, a path or a hub name."),
    ] = None,
    max_calls: Annotated[int | None, flag("max_calls")] = None,
    nearest: Annotated[
        bool, typer.Option("--nearest", help="List the nearest tables even if none seems to fit.")
    ] = False,
    explain: Annotated[
        bool, typer.Option("--explain", help="Show each table's indexed text, and what matched.")
    ] = False,
    schema: Annotated[str | None, flag("schema")] = None,
    separate: Annotated[bool, flag("separate")] = False,
    allow_http: Annotated[bool, flag("allow_http")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON, and nothing else on stdout.")] = False,
) -> None:
    """List the tables of a corpus that fit a question best, with scores (higher is better)."""
    question = question.encode(errors="replace").decode()  # bytes of the command line that are no text
    if not question.strip():
        raise UsageError("the question is empty")
    if [source, corpus, index].count(None) != 2:
        raise UsageError("give the tables once: SOURCE, --corpus SOURCE or --index DIR")
    _check_flags(k, retriever, explain=explain, as_json=as_json)
    analyzer = None
    if index is not None:
        opened = _open_index(index, retriever, embedder, schema=schema, fields=fields)
        found, judged = search_index(opened, question, k, retriever, find_embedder(embedder), nearest=nearest)
        tables = [opened.table(table.place) for table, _ in found] if explain else []
        chosen, analyzer = opened.recipe.fields, opened.analyzer
        hits: Hits = found
    else:
        from almanaq.corpus.table import parse_fields

        place = str(corpus if source is None else source)
        chosen = parse_fields(DEFAULT_FIELDS if fields is None else fields)
        searching = _open_retriever(retriever, embedder, max_calls, chosen=fields is not None)
        read = read_tables(place, schema=schema, allow_http=allow_http, separate=separate)
        hits, judged = search_tables(read, searching.index(read, chosen), question, k, nearest=nearest)
        warn_of_source(getattr(read, "faults", ()), place)
        tables = [table for table, _ in hits]
    if judged is not None and judged.fault:
        warn([f"the tables were not reranked: {judged.fault}"])
    if judged is not None and judged.ranking and not hits:
        chance = f"the nearest one answers with probability {judged.chance or 0:.0%}"
        warn([f"no table fits: {chance}; --nearest lists the nearest tables"])
    _print_hits(hits, as_json)
    if explain:
        from almanaq.retrieval.bm25 import explain_match

        for rank, table in enumerate(tables, 1):
            say(f"\n{rank}. {table.id}")
            say("\n".join(f"   {line}" for line in explain_match(question, table, chosen, analyzer)))


def _check_flags(k: int, retriever: str, *, explain: bool, as_json: bool) -> None:
    from almanaq.retrieval.retriever_names import plugin_opener

    if k < 1:
        raise UsageError(f"-k must be 1 or more, not {k}")
    opener = plugin_opener(retriever)
    if opener is not None and opener.is_bound:
        raise UsageError(f"{retriever} is only a baseline for `almanaq bench run`: choose another retriever")
    if explain and as_json:
        raise UsageError("--explain cannot be combined with --json")
    if explain and opener is not None and opener.sees_own_text:
        raise UsageError(f"--explain shows declared fields, and {retriever} sees a text of its own")


def _open_index(
    folder: Path, retriever: str, embedder: str | None, *, schema: str | None, fields: str | None
) -> StoredIndex:
    opened = open_tables_index(folder, retriever, fields, schema)
    if embedder not in (None, opened.recipe.embedder):
        made = f"it was made with {opened.recipe.embedder!r}" if opened.recipe.embedder else "it holds no vectors"
        raise UsageError(f"--embedder {embedder} does not fit the index {folder}: {made}")
    return opened


def _open_retriever(name: str, embedder: str | None, max_calls: int | None, *, chosen: bool) -> Retriever:
    """Open a retriever; `chosen`: fields are, which not every retriever takes."""
    from almanaq.models.private_files import default_cache_folder
    from almanaq.retrieval.retriever_names import RetrieverParts, check_fields_apply, open_retriever

    if chosen:
        check_fields_apply(name)
    parts = RetrieverParts(
        defer_embedder(embedder),
        default_cache_folder(),
        model=defer_model(max_calls),
        tell=lambda message: warn([message]),
        budget=open_budget(max_calls),
    )
    opened = open_retriever(name, parts)
    warn([opened.note] if opened.note else [])
    return opened.retriever


def find_embedder(flag: str | None) -> str | None:
    """Return the embedder that a flag names, else the settings; None: the best that is installed."""
    from almanaq.settings import read_settings

    settings = read_settings(embedder=flag)
    settings.export()
    named: str | None = settings.embedder
    return named


def defer_embedder(flag: str | None) -> Callable[[], Embedder]:
    return lambda: open_embedder(find_embedder(flag))


def defer_model(max_calls: int | None = None) -> Callable[[str], LanguageModel]:
    """Return what opens a language model by name, within a budget: the flag, else the settings, else 1,000 calls."""

    def open_model(name: str) -> LanguageModel:
        from almanaq.models.model_names import ModelSettings, open_models

        limits = ModelSettings(budget=open_budget(max_calls))
        model = open_models(name, embedder="lexical", settings=limits).language
        if model is None:
            raise UsageError(f"{name!r} is no language model")
        return model

    return open_model


def open_budget(max_calls: int | None) -> Budget:
    """Return a budget of calls (the flag, else the settings, else 1,000), and of money where the settings name one."""
    from almanaq.models.budget import Budget
    from almanaq.options import DEFAULT_MAX_CALLS
    from almanaq.settings import read_settings

    settings = read_settings(max_calls=max_calls)
    settings.export()
    calls = DEFAULT_MAX_CALLS if settings.max_calls is None else settings.max_calls
    money = settings.max_money
    return Budget(calls, money=money, setting="--max-calls or ALMANAQ_MAX_CALLS", money_setting="ALMANAQ_MAX_MONEY")


def _print_hits(found: Hits, as_json: bool) -> None:
    if as_json:
        from almanaq.cli.output import write_json

        listed = [
            {"database_id": t.id.database, "table_id": t.id.table, "score": round(score, 6), "title": t.title}
            for t, score in found
        ]
        write_json(listed, allow_nan=True)
        return
    if not found:
        print("no table fits")
        return
    from rich.table import Table as Grid

    grid = Grid(box=None, header_style="bold")
    for name in ("", "score", "database", "table", "title", "columns"):
        grid.add_column(name, overflow="fold")  # an id that is cut cannot be used
    for rank, (table, score) in enumerate(found, 1):
        columns = ", ".join(name for name in table.header if name)
        title = " · ".join(part for part in (table.title, table.section) if part)
        # Cells hold brackets that must not be read as markup.
        row = (str(rank), f"{score:.2f}", table.id.database, table.id.table, title, columns)
        grid.add_row(*map(style_text, row))
    console(width=120).print(grid)


def index(
    corpus: Annotated[
        str | None, typer.Argument(metavar="CORPUS", help="A file, a folder, a dataset, or a database.")
    ] = None,
    db: Annotated[str | None, typer.Option("--db", metavar="CORPUS", help="The same.")] = None,
    *,
    out: Annotated[Path, typer.Option("--out", metavar="DIR", help="The folder of the index.")],
    update: Annotated[
        bool, typer.Option("--update", help="Update the index: only changed tables are indexed.")
    ] = False,
    fields: Annotated[
        str | None, typer.Option("--fields", help=f"The parts of a table to index; default {DEFAULT_FIELDS}.")
    ] = None,
    embedder: Annotated[
        str | None,
        typer.Option(
            "--embedder",
            metavar="NAME",
            help="Add a vector of each table: static (fast), local, openai:MODEL, a path or a hub name.",
        ),
    ] = None,
    vectors: Annotated[
        str | None,
        typer.Option(
            "--vectors",
            metavar="KIND",
            help="Store vectors as float16 (default) or float32; int8 and binary add codes, which are compared first.",
        ),
    ] = None,
    language: Annotated[
        str | None, typer.Option("--language", help="Stem words by its rules; default english; none: no stemming.")
    ] = None,
    spark: Annotated[
        str | None,
        typer.Option("--spark", metavar="URL", help="Build it on a Spark cluster: sc://host:15002, see docs/spark.md."),
    ] = None,
    shards: Annotated[int, typer.Option("--shards", metavar="N", help="With --spark: into so many parts.")] = 8,
    schema: Annotated[str | None, flag("schema")] = None,
    separate: Annotated[bool, flag("separate")] = False,
    allow_http: Annotated[bool, flag("allow_http")] = False,
) -> None:
    """Index the tables of a corpus on disk, for `almanaq find --index DIR`."""
    from almanaq.corpus.table import parse_fields
    from almanaq.models.embedders.vector_store import VectorStore
    from almanaq.models.private_files import default_cache_folder
    from almanaq.retrieval.segments import parse_precision
    from almanaq.retrieval.stored import build_index, open_index, update_index

    if update and (fields, language, vectors) != (None, None, None):
        raise UsageError(
            "--fields, --language and --vectors cannot be combined with --update: they were fixed when it was built"
        )
    if vectors is not None and not embedder:
        raise UsageError("--vectors sets how vectors are stored: choose the model for them with --embedder")
    precision = parse_precision(vectors or "float16")
    stemmed = None if language == "none" else language or "english"
    source = name_source(corpus, db, command="index")
    tables = read_tables(source, schema=schema, allow_http=allow_http, separate=separate)
    if spark is not None:
        if update:
            raise UsageError("--spark rebuilds the index: leave out --update")
        made = import_bench("cluster_index", "almanaq index --spark").index_on_cluster(
            tables,
            out,
            fields or DEFAULT_FIELDS,
            url=spark,
            shards=shards,
            language=stemmed,
            embedder=embedder or "",
            vectors=precision,
            say=say,
        )
        say(f"{len(made)} tables indexed in {out}, in {len(made.segments)} shards{_describe_codes(made)}")
        return
    if update:
        named = open_index(out).recipe.embedder
        if embedder not in (None, named):
            raise UsageError(
                f"--embedder {embedder} cannot be combined with --update: the index was built with {named!r}"
            )
        store = (
            VectorStore(default_cache_folder(), open_agreed_embedder(named, find_embedder(embedder))) if named else None
        )
        made, change = update_index(tables, out, show_tables_done(), store=store)
        counts = f"{change.added} added, {change.changed} changed, {change.deleted} deleted, {change.kept} unchanged"
        done = f"{len(made)} tables in {out}: {counts}" + ("; rebuilt" if change.rebuilt else "")
    else:
        chosen = parse_fields(DEFAULT_FIELDS if fields is None else fields)
        store = VectorStore(default_cache_folder(), defer_embedder(embedder)()) if embedder else None
        made = build_index(tables, out, chosen, show_tables_done(), language=stemmed, store=store, vectors=precision)
        done = f"{len(made)} tables indexed in {out}{_describe_codes(made)}"
    warn_of_source(getattr(tables, "faults", ()), source)
    say(done)


def _describe_codes(made: StoredIndex) -> str:
    """Return what the codes of vectors find of what the vectors themselves do, where there are codes."""
    from almanaq.retrieval.stored_search import recall_of_codes

    if made.recipe.vectors.code_type is None:
        return ""
    found = recall_of_codes(made)
    return f"; {made.recipe.vectors} codes find {found:.1%} of the ten nearest tables of 100"


def show_tables_done() -> Callable[[int, int], None] | None:
    """Return what rewrites one line of stderr ten times a second; None where that is no terminal."""
    if not sys.stderr.isatty():
        return None
    shown = 0.0

    def show(done: int, total: int) -> None:
        nonlocal shown
        if done == total or time.monotonic() - shown > 0.1:
            shown = time.monotonic()
            print(f"\r{done} of {total} tables", end="\n" if done == total else "", file=sys.stderr, flush=True)

    return show
