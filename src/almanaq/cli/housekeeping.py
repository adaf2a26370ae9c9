"""Commands about this installation: `almanaq doctor`, `models`, `cache` and `trust`."""

from __future__ import annotations

import os
import platform
import re
import sqlite3
import sys
from dataclasses import asdict
from importlib.metadata import PackageNotFoundError, requires, version
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from almanaq.cli.output import write_json
from almanaq.cli.terminal import say, warn
from almanaq.display import visible
from almanaq.errors import AlmanaqError, ModelError, UsageError

if TYPE_CHECKING:
    from almanaq.engines.files.table_cache import TableCache
    from almanaq.models.cached import ReplyCache
    from almanaq.models.providers import ModelChoice, Server
    from almanaq.models.weights import Offer
    from almanaq.settings import Settings


Json = Annotated[bool, typer.Option("--json", help="Print JSON.")]
EXTRAS = {
    "local": "understands texts and finds tables by meaning, without a key or a network",
    "llm": "runs a small language model on this machine (almanaq models get)",
    "torch": "cross-encoders, and embedders from the Hugging Face hub",
    "postgres": "reads PostgreSQL",
    "ibis": "reads MySQL, Trino, ClickHouse and warehouses",
    "spark": "reads Spark",
    "fast": "plans queries faster, with a compiled parser, and calls models faster, with uvloop",
    "hnsw": "indexes on disk with int8 or binary codes of their vectors",
    "mcp": "gives tools to editors and assistants (almanaq mcp)",
    "notebook": "magics in Jupyter and VS Code",
    "pandas": "results as pandas DataFrames (Result.df)",
    "polars": "results as Polars DataFrames (Result.pl)",
    "sqlalchemy": "the SQLAlchemy dialect",
    "web": "the page and the HTTP API (almanaq serve)",
    "xlsx": "reads Excel and OpenDocument files",
    "documents": "reads PDF, Word, PowerPoint, mail and web pages",
    "terms": "reads metrics from Open Semantic Interchange files",
    "docs": "builds the documentation site",
}
"""What each extra is for, in the order in which they are shown."""
_REQUIREMENT = re.compile(r"^([\w.-]+)(?:\[([\w.-]+)\])?[^;]*(?:;.*extra == ['\"]([\w-]+)['\"])?")
_SIGN_OFF = "To start: almanaq demo, or almanaq ask QUESTION --db FILE"


def doctor(json: Json = False) -> None:
    """Say what this installation has: versions, extras, model servers, caches; and what to install for what.

    Nothing is installed or changed, and no model is asked anything. Exit code 1: a package that it needs is missing.
    """
    found = {**installation(), "extras": extras(), "models": _check_models(), "caches": _measure_caches()}
    if json:
        write_json(found, None)
    else:
        say("\n".join(map(visible, _format_report(found))))
    if None in found["packages"].values():
        raise typer.Exit(1)


def installation() -> dict[str, Any]:
    """Return the versions of almanaq, of Python, of the system, and of the packages that almanaq needs."""
    import almanaq

    return {
        "almanaq": almanaq.__version__,
        "python": platform.python_version(),
        "platform": platform.platform(),
        "sqlite": sqlite3.sqlite_version,
        "place": str(Path(almanaq.__file__).parent),
        "packages": {name: _find_version(name) for name, extra in _list_requirements() if extra is None},
    }


def version_lines() -> list[str]:
    found = installation()
    lines = [f"almanaq {found['almanaq']}", f"Python {found['python']} on {found['platform']}"]
    return [*lines, *(f"{name} {number or 'missing'}" for name, number in found["packages"].items())]


def extras() -> dict[str, dict[str, Any]]:
    """Return each extra, and almanaq-bench: what it is for, whether all of it is installed, how to install it."""
    needed: dict[str, list[str]] = {}
    for name, extra in _list_requirements():
        needed.setdefault(extra or "", []).append(name)
    return {
        extra: {
            "for": what,
            "installed": all(_find_version(name) for name in needed.get(extra, [])),
            "install": f"pip install 'almanaq[{extra}]'",
        }
        for extra, what in EXTRAS.items()
        if extra in needed
    } | {
        "bench": {
            "for": "runs benchmarks (almanaq bench); a distribution of its own: pip install ./bench",
            "installed": _find_version("almanaq-bench") is not None,
            "install": "pip install ./bench",
        }
    }


def _list_requirements() -> list[tuple[str, str | None]]:
    """Return each package that is required, and by which extra; with what an extra of that package needs in turn."""

    def match_lines(package: str) -> list[re.Match[str]]:
        return [match for match in map(_REQUIREMENT.match, requires(package) or ()) if match is not None]

    found = []
    for match in match_lines("almanaq"):
        found.append((match[1], match[3]))
        if match[2] is not None and _find_version(match[1]) is not None:
            found += [(each[1], match[3]) for each in match_lines(match[1]) if each[3] == match[2]]
    return found


def _find_version(name: str) -> str | None:
    try:
        return version(name)
    except PackageNotFoundError:
        return None


def _check_models() -> dict[str, Any]:
    from almanaq.models.providers import choose_model, find_servers
    from almanaq.settings import read_settings

    found: dict[str, Any] = {"servers": [], "auto": None, "key": False}
    try:
        settings = read_settings()
        settings.export()
        found["key"] = bool(os.environ.get("OPENAI_API_KEY"))
        found["servers"] = [
            {"provider": each.provider, "address": each.address, "models": len(each.models)} for each in find_servers()
        ]
        choice = choose_model()
    except AlmanaqError as error:
        return found | {"reason": str(error)}
    return found | {"auto": choice.name, "reason": choice.reason}


def _measure_caches() -> list[dict[str, Any]]:
    from almanaq.models.private_files import default_cache_file, default_cache_folder

    measured = []
    for what, place in (("replies", default_cache_file()), ("vectors and tables", default_cache_folder())):
        files = [place] if place.is_file() else [each for each in place.rglob("*") if each.is_file()]
        there = next((each for each in (place, *place.parents) if each.exists()), place)
        size, writable = sum(file.stat().st_size for file in files), os.access(there, os.W_OK)
        measured.append({"what": what, "place": str(place), "bytes": size, "writable": writable})
    return measured


def _format_report(found: dict[str, Any]) -> list[str]:
    lines = [*version_lines(), f"SQLite {found['sqlite']}", f"installed in {found['place']}", ""]
    lines.append("Extras: ✓ is installed; add another with pip install 'almanaq[NAME]'")
    width = max(map(len, found["extras"]), default=0)
    for extra, each in found["extras"].items():
        lines.append(f"  {'✓' if each['installed'] else '-'} {extra:<{width}}  {each['for']}")
    models = found["models"]
    lines += ["", "Models"]
    lines += [f"  ✓ {each['provider']} at {each['address']}: {each['models']} models" for each in models["servers"]]
    lines += ["  - no model server answers on this machine"] if not models["servers"] else []
    lines.append(f"  {'✓ OPENAI_API_KEY is set' if models['key'] else '- OPENAI_API_KEY is not set'}")
    lines.append(f"  → the model of a command without --model is {models['auto'] or 'none'}: {models['reason']}")
    lines += ["", "Caches"]
    for each in found["caches"]:
        sign, way = ("✓", "") if each["writable"] else ("!", ": cannot be written; set ALMANAQ_CACHE_DIR")
        lines.append(f"  {sign} {each['what']}: {each['place']} ({each['bytes'] / 1e6:,.1f} MB){way}")
    missing = [name for name, number in found["packages"].items() if number is None]
    if missing or sys.version_info < (3, 11):
        what = ", ".join(missing) or "Python 3.11"
        return [*lines, "", f"Missing: {what}. Reinstall almanaq: pip install --force-reinstall almanaq"]
    return [*lines, "", _SIGN_OFF]


_NO_EXTRA = "to run it, install llama.cpp's server:  pip install 'almanaq[llm]'"

models = typer.Typer(invoke_without_command=True)


@models.callback()
def list_models(ctx: typer.Context, json: Json = False) -> None:
    """List the models at hand: servers here, the address in the settings, weights on this machine, and your aliases.

    Each is named as --model takes it; the one that auto takes is marked. Nothing but the list of models is asked for.
    """
    if ctx.invoked_subcommand is not None:
        return
    from almanaq.models.providers import choose_from_servers, choose_model, find_servers
    from almanaq.settings import read_settings

    settings = read_settings()
    settings.export()
    servers = find_servers()
    choice, reason = None, ""
    try:
        choice = choose_model() if settings.openai_base_url else choose_from_servers(servers)
    except ModelError as problem:
        reason = str(problem)
    taken, reason = (None, reason) if choice is None else (choice.name, choice.reason)
    found = _list_models(settings, servers, choice)
    if json:
        write_json({"auto": taken, "reason": reason, "models": found}, None)
        return
    wide = max(len(str(entry["name"])) for entry in found)
    lines = [f"{'*' if entry['name'] == taken else ' '} {entry['name']:<{wide}}  {entry['what']}" for entry in found]
    lines.append(f"* what auto takes: {reason}" if taken else f"auto takes none: {reason}")
    if taken == "local":
        lines.append("to have a small model on this machine: almanaq models get")
    say("\n".join(map(visible, lines)))


def _list_models(
    settings: Settings, servers: tuple[Server, ...], choice: ModelChoice | None
) -> list[dict[str, object]]:
    from almanaq.models.weights import GGUF, list_weights

    found: dict[str, dict[str, object]] = {}
    if choice is not None and choice.name.startswith("openai:"):
        found[choice.name] = {"name": choice.name, "address": choice.place, "what": f"at {choice.place}"}
    for server in servers:
        for model in server.models:
            name = f"{server.provider}:{model}"
            kind = "" if model in server.writers else " (by its name no model that writes text)"
            found[name] = {"name": name, "address": server.address, "what": f"at {server.address}{kind}"}
    for model, file in list_weights().items():
        found[GGUF + model] = {"name": GGUF + model, "address": None, "what": f"on this machine: {file}"}
    for alias, meant in settings.aliases.items():
        found[alias] = {"name": alias, "address": None, "what": f"your alias of {meant}"}
    found["local"] = {"name": "local", "address": None, "what": "no language model, in this process"}
    return list(found.values())


@models.command()
def get(
    name: Annotated[str | None, typer.Argument(metavar="[NAME]", help="Which one; default the smallest.")] = None,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask.")] = False,
) -> None:
    """Fetch a small model to this machine, and have auto take it; says what it is and asks before it downloads.

    It comes from its publisher's page on the Hugging Face hub (HF_ENDPOINT: a mirror), at a fixed revision, and is
    checked by its hash. A download that broke off goes on where it ended.
    """
    from almanaq.models.weights import fetch_weights, find_offer, llm_is_installed, use_weights
    from almanaq.settings import read_settings

    read_settings().export()
    offer = find_offer(name)
    if not offer.path.is_file():
        _confirm_fetch(offer, name, yes)

        def report(there: int) -> None:
            if sys.stderr.isatty():
                print(f"\r{there / 1e6:,.0f} of {offer.bytes / 1e6:,.0f} MB", end="", file=sys.stderr, flush=True)

        try:
            fetch_weights(offer, report)
        finally:
            if sys.stderr.isatty():
                print(file=sys.stderr)
    use_weights(offer.name)
    say(f"{offer.path} is there; --model auto takes it (another server on this machine goes first)")
    if not llm_is_installed():
        warn([_NO_EXTRA])


def _confirm_fetch(offer: Offer, name: str | None, yes: bool) -> None:
    from almanaq.models.weights import OFFERS

    for each in OFFERS if name is None else (offer,):
        say(f"{'*' if each is offer else ' '} {each.name}  {each.bytes / 1e6:,.0f} MB  {each.licence}  {each.url}")
    if yes:
        return
    if not sys.stdin.isatty():
        raise UsageError(f"nothing is fetched without your word: almanaq models get {offer.name} --yes")
    if not typer.confirm(f"Fetch {offer.name}, {offer.bytes / 1e6:,.0f} MB, into {offer.path.parent}?"):
        raise typer.Exit(1)


@models.command()
def use(
    file: Annotated[str, typer.Argument(metavar="FILE", help="A .gguf file, a model that was fetched, or local.")],
) -> None:
    """Have auto take the model in a GGUF file on this machine, or with local none.

    The file stays where it is. Its server starts with the first question and ends some minutes after the last.
    """
    from almanaq.models.weights import forget_choice, llm_is_installed, use_weights
    from almanaq.settings import read_settings

    read_settings().export()
    if file == "local":
        forget_choice()
        say("--model auto takes no weights of this machine")
        return
    say(f"--model auto takes {use_weights(file)} (another server on this machine goes first)")
    if not llm_is_installed():
        warn([_NO_EXTRA])


cache = typer.Typer(help="Show or empty what is kept: model replies, and tables of files.", no_args_is_help=True)


@cache.command()
def stats(json: Json = False) -> None:
    """Show where the cache is, how many replies it keeps for each model, how many sources of tables, and its size."""
    file, cache, tables = _open_caches()
    found: dict[str, Any] = {"file": str(file), "replies": 0, "by_model": {}, "bytes": 0}
    if file.exists():  # looking makes no file
        found = asdict(cache.stats())
        cache.close()
    sources, size = tables.stats()
    found["tables"] = {"folder": str(tables.folder), "sources": sources, "bytes": size}
    if json:
        write_json(found, None)
        return
    lines = [f"{found['file']}: {found['replies']:,} replies, {found['bytes']:,} bytes"]
    lines += [f"  {count:>9,}  {model or '(no name)'}" for model, count in found["by_model"].items()]
    lines.append(f"{tables.folder}: the tables of {sources:,} sources, {size:,} bytes")
    say("\n".join(lines))


@cache.command()
def clear(
    tables: Annotated[
        bool, typer.Option("--tables", help="Only tables of files; keep replies, which were paid for.")
    ] = False,
) -> None:
    """Delete every reply in the cache, so that models are asked, and paid, anew; and the tables of files."""
    file, cache, kept = _open_caches()
    say(f"the tables of {kept.clear():,} sources deleted from {kept.folder}")
    if tables:
        return
    count = 0
    if file.exists():
        count = cache.clear()
        cache.close()
    say(f"{count:,} replies deleted from {file}")


def _open_caches() -> tuple[Path, ReplyCache, TableCache]:
    """Return the file of replies that settings name, the cache in it, and the tables of files that are kept."""
    from almanaq.engines.files.table_cache import TableCache, table_cache_folder
    from almanaq.models.cached import ReplyCache
    from almanaq.models.private_files import default_cache_file
    from almanaq.settings import read_settings

    read_settings().export()
    file = default_cache_file()
    return file, ReplyCache(file), TableCache(table_cache_folder())


def trust(
    folder: Annotated[
        Path, typer.Argument(metavar="[FOLDER]", help="Where the almanaq.toml lies; default here.")
    ] = Path(),
    revoke: Annotated[bool, typer.Option("--revoke", help="Revoke the permission.")] = False,
) -> None:
    """Allow the almanaq.toml of a folder, as it is now, to name models, addresses, keys and caches."""
    from almanaq.settings import FILE, distrust, find_reaching, read_file, show_setting
    from almanaq.settings import trust as allow

    file = folder / FILE
    if revoke:
        was = distrust(file)
        say(f"{file.resolve()} is {'no longer allowed' if was else 'not allowed, as before'}")
        return
    found = read_file(file)
    if found is None:
        raise UsageError(f"{folder.resolve()} holds no {FILE}: name the folder that has it")
    allow(file, found.content)
    lines = [f"  {show_setting(name, value)}" for name, value in find_reaching(found.values).items()]
    say("\n".join([f"{file.resolve()} is allowed, until it changes, to set", *(lines or ["  nothing"])]))
