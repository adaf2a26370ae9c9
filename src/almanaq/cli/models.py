"""The command `almanaq models`: the models at hand, and small ones to have on this machine."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Annotated

import typer

from almanaq.cli.terminal import say, warn
from almanaq.display import visible
from almanaq.errors import UsageError

if TYPE_CHECKING:
    from almanaq.models.providers import ModelChoice, Server
    from almanaq.models.weights import Offer
    from almanaq.settings import Settings

Json = Annotated[bool, typer.Option("--json", help="Print JSON.")]
_NO_EXTRA = "to run it, install llama.cpp's server:  pip install 'almanaq[llm]'"

models = typer.Typer(invoke_without_command=True)


@models.callback()
def list_models(ctx: typer.Context, json: Json = False) -> None:
    """List the models at hand: servers here, the address in the settings, weights on this machine, and your aliases.

    Each is named as --model takes it; the one that auto takes is marked. Nothing but the list of models is asked for.
    """
    if ctx.invoked_subcommand is not None:
        return
    from almanaq.cli.output import write_json
    from almanaq.models.providers import choose_from_servers, choose_model, find_servers
    from almanaq.settings import read_settings

    settings = read_settings()
    settings.export()
    servers = find_servers()
    choice = choose_model() if settings.openai_base_url else choose_from_servers(servers)
    found = _list_models(settings, servers, choice)
    if json:
        write_json({"auto": choice.name, "reason": choice.reason, "models": found}, None)
        return
    wide = max(len(str(entry["name"])) for entry in found)
    lines = [
        f"{'*' if entry['name'] == choice.name else ' '} {entry['name']:<{wide}}  {entry['what']}" for entry in found
    ]
    lines.append(f"* what auto takes: {choice.reason}")
    if choice.name == "local":
        lines.append("to have a small model on this machine: almanaq models get")
    say("\n".join(map(visible, lines)))


def _list_models(settings: Settings, servers: tuple[Server, ...], choice: ModelChoice) -> list[dict[str, object]]:
    from almanaq.models.weights import GGUF, list_weights

    found: dict[str, dict[str, object]] = {}
    if choice.name.startswith("openai:"):
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
