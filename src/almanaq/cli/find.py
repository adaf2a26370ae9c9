"""`almanaq find`: the tables that answer a question."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from almanaq.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from almanaq.corpus.table import Corpus, Table
    from almanaq.models.protocols import Embedder
    from almanaq.retrieval.protocols import Hit

DEFAULT_FIELDS = "title,section,header,cells"


def register(app: typer.Typer) -> None:
    """Add the command to the app."""
    app.command("find")(find)


def find(
    question: Annotated[str, typer.Argument(metavar="QUESTION")],
    corpus: Annotated[
        str, typer.Option("--corpus", metavar="SOURCE", help="Where the tables are: a file, a folder, or a dataset.")
    ],
    k: Annotated[int, typer.Option("-k", metavar="N", help="How many tables to list at most.")] = 10,
    fields: Annotated[
        str | None, typer.Option("--fields", help=f"What is searched of a table; default {DEFAULT_FIELDS}.")
    ] = None,
    retriever: Annotated[str, typer.Option("--retriever", metavar="NAME", help="How to search.")] = "hybrid",
    embedder: Annotated[
        str | None,
        typer.Option("--embedder", metavar="NAME", help="lexical, local, openai:MODEL, a path or a hub name."),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON, and nothing else on stdout.")] = False,
) -> None:
    """List the tables of a corpus that fit a question best, with scores (higher is better)."""
    from almanaq.corpus.serialize import parse_fields
    from almanaq.retrieval.registry import Parts, check_fields_apply, open_retriever
    from almanaq.retrieval.vectors import default_cache_folder

    if not question.strip():
        raise UsageError("the question is empty")
    if k < 1:
        raise UsageError(f"-k must be 1 or more, not {k}")
    if fields is not None:
        check_fields_apply(retriever)
    chosen = parse_fields(DEFAULT_FIELDS if fields is None else fields)
    opened = open_retriever(retriever, Parts(embedder_opener(embedder), default_cache_folder()))
    if opened.note:
        print(f"almanaq: {opened.note}", file=sys.stderr)
    tables = read_tables(corpus)
    hits = opened.retriever.index(tables, chosen).search([question], k)[0]
    _print(hits, _by_id(tables, hits), as_json)


def embedder_opener(name: str | None) -> Callable[[], Embedder]:
    """Give what opens the embedder named by a flag, else by the settings, else the best that is installed."""

    def opened() -> Embedder:
        from almanaq.models.registry import open_embedder
        from almanaq.retrieval.registry import default_embedder
        from almanaq.settings import read_settings

        settings = read_settings(embedder=name)
        settings.export()
        embedder: Embedder = open_embedder(settings.embedder or default_embedder())
        return embedder

    return opened


def read_tables(source: str) -> Corpus:
    """Open a corpus: a folder in the dataset layout, or any source that the readers know."""
    if (Path(source) / "corpus.parquet").is_file():
        from almanaq.corpus.dataset import open_dataset

        return open_dataset(Path(source)).corpus()
    from almanaq.corpus.readers import read_corpus

    tables: Corpus = read_corpus(source)
    return tables


def _by_id(tables: Corpus, hits: Sequence[Hit]) -> dict[object, Table]:
    wanted = {hit.id for hit in hits}
    return {table.id: table for table in tables if table.id in wanted} if wanted else {}


def _print(hits: Sequence[Hit], tables: dict[object, Table], as_json: bool) -> None:
    if as_json:
        listed = [
            {
                "database_id": hit.id.database,
                "table_id": hit.id.table,
                "score": round(hit.score, 6),
                "title": tables[hit.id].title,
            }
            for hit in hits
        ]
        print(json.dumps(listed, ensure_ascii=False))
        return
    if not hits:
        print("no table fits: none shares a word with the question")
        return
    _print_table(hits, tables)


def _print_table(hits: Sequence[Hit], tables: dict[object, Table]) -> None:
    from rich.console import Console
    from rich.table import Table as Grid
    from rich.text import Text

    grid = Grid("", "score", "database", "table", "title", "columns", box=None, header_style="bold")
    for rank, hit in enumerate(hits, 1):
        table = tables[hit.id]
        columns = ", ".join(name for name in table.header if name)
        title = " · ".join(part for part in (table.title, table.section) if part)
        # Cells hold brackets that must not be read as markup.
        row = (str(rank), f"{hit.score:.2f}", hit.id.database, hit.id.table, title, columns)
        # Folded, not cut: an id that is cut cannot be used.
        grid.add_row(*(Text(part, overflow="fold") for part in row))
    Console(highlight=False, width=None if sys.stdout.isatty() else 120).print(grid)
