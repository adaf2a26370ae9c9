"""`almanaq index`: tables made searchable on disk, and kept so."""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from almanaq.cli.find import DEFAULT_FIELDS, defer_embedder, open_agreed_embedder
from almanaq.cli.options import flag, name_source
from almanaq.cli.terminal import say, warn_of_source
from almanaq.errors import UsageError
from almanaq.plugins import open_with_bench

if TYPE_CHECKING:
    from collections.abc import Callable

    from almanaq.retrieval.stored import StoredIndex


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
    from almanaq.table_search import read_tables

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
        made = open_with_bench(
            "cluster",
            "--spark builds the index on a cluster",
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
        store = VectorStore(default_cache_folder(), open_agreed_embedder(named, embedder)) if named else None
        made, change = update_index(tables, out, show_tables_done(), store=store)
    else:
        chosen = parse_fields(DEFAULT_FIELDS if fields is None else fields)
        store = VectorStore(default_cache_folder(), defer_embedder(embedder)()) if embedder else None
        made = build_index(tables, out, chosen, show_tables_done(), language=stemmed, store=store, vectors=precision)
        warn_of_source(getattr(tables, "faults", ()), source)
        say(f"{len(made)} tables indexed in {out}{_describe_codes(made)}")
        return
    warn_of_source(getattr(tables, "faults", ()), source)
    summary = f"{change.added} added, {change.changed} changed, {change.deleted} deleted, {change.kept} unchanged"
    say(f"{len(made)} tables in {out}: {summary}" + ("; rebuilt" if change.rebuilt else ""))


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
