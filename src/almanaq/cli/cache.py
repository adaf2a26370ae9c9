"""`almanaq cache`: what is kept of replies and of tables that were read from files, and emptying it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from almanaq.cli.terminal import say

if TYPE_CHECKING:
    from pathlib import Path

    from almanaq.engines.files.table_cache import TableCache
    from almanaq.models.reply_cache import ReplyCache

Json = Annotated[bool, typer.Option("--json", help="Print JSON.")]


def register(app: typer.Typer) -> None:
    """Add the commands to the app."""
    cache = typer.Typer(help="Show or empty what is kept: model replies, and tables of files.", no_args_is_help=True)
    cache.command("stats")(stats)
    cache.command("clear")(clear)
    app.add_typer(cache, name="cache")


def stats(json: Json = False) -> None:
    """Show where the cache is, how many replies it keeps for each model, how many sources of tables, and its size."""
    from dataclasses import asdict

    from almanaq.cli.output import write_json

    file, cache = _cache()
    if not file.exists():
        # Looking makes no file.
        found: dict[str, object] = {"file": str(file), "replies": 0, "by_model": {}, "bytes": 0}
    else:
        found = asdict(cache.stats())
        cache.close()
    tables = _tables()
    sources, size = tables.stats()
    found["tables"] = {"folder": str(tables.folder), "sources": sources, "bytes": size}
    if json:
        write_json(found, None)
        return
    lines = [f"{found['file']}: {found['replies']:,} replies, {found['bytes']:,} bytes"]
    by_model = found["by_model"]
    assert isinstance(by_model, dict)
    lines += [f"  {count:>9,}  {model or '(no name)'}" for model, count in by_model.items()]
    lines.append(f"{tables.folder}: the tables of {sources:,} sources, {size:,} bytes")
    say("\n".join(lines))


def clear(
    tables: Annotated[bool, typer.Option("--tables", help="Only the tables of files: replies were paid for.")] = False,
) -> None:
    """Delete every reply in the cache, so that models are asked, and paid, anew; and the tables of files."""
    kept = _tables()
    say(f"the tables of {kept.clear():,} sources deleted from {kept.folder}")
    if tables:
        return
    file, cache = _cache()
    count = 0
    if file.exists():
        count = cache.clear()
        cache.close()
    say(f"{count:,} replies deleted from {file}")


def _tables() -> TableCache:
    """Return the tables of files that are kept, in the folder that settings name."""
    from almanaq.engines.files.table_cache import TableCache, table_cache_folder
    from almanaq.settings import read_settings

    read_settings().export()
    return TableCache(table_cache_folder())


def _cache() -> tuple[Path, ReplyCache]:
    """Return the cache file that settings name, and the cache in it."""
    from almanaq.models.private_files import default_cache_file
    from almanaq.models.reply_cache import ReplyCache
    from almanaq.settings import read_settings

    read_settings().export()
    file = default_cache_file()
    return file, ReplyCache(file)
