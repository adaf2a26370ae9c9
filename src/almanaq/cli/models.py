"""`almanaq models`: the models that are at hand, and which of them `auto` takes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from almanaq.cli.terminal import say
from almanaq.visible import visible

if TYPE_CHECKING:
    from almanaq.models.providers import ModelChoice, Server
    from almanaq.settings import Settings

Json = Annotated[bool, typer.Option("--json", help="Print JSON.")]


def register(app: typer.Typer) -> None:
    """Add the command to the app."""
    app.command("models")(models)


def models(json: Json = False) -> None:
    """List the models at hand: those of servers on this machine, the address in the settings, and your aliases.

    Each is named as --model takes it; the one that auto takes is marked. Nothing but the list of models is asked for.
    """
    from almanaq.cli.output import write_json
    from almanaq.models.providers import choose_from_servers, choose_model, find_servers
    from almanaq.settings import read_settings

    settings = read_settings()
    settings.export()
    servers = find_servers()
    choice = choose_model() if settings.openai_base_url else choose_from_servers(servers)
    found = _found(settings, servers, choice)
    if json:
        write_json({"auto": choice.name, "reason": choice.reason, "models": found}, None)
        return
    wide = max(len(str(entry["name"])) for entry in found)
    lines = [
        f"{'*' if entry['name'] == choice.name else ' '} {entry['name']:<{wide}}  {entry['what']}" for entry in found
    ]
    say("\n".join([*map(visible, lines), visible(f"* what auto takes: {choice.reason}")]))


def _found(settings: Settings, servers: tuple[Server, ...], choice: ModelChoice) -> list[dict[str, object]]:
    """Return each model with what it is, `local` last."""
    found: dict[str, dict[str, object]] = {}
    if choice.name.startswith("openai:"):
        found[choice.name] = {"name": choice.name, "address": choice.place, "what": f"at {choice.place}"}
    for server in servers:
        for model in server.models:
            name = f"{server.provider}:{model}"
            kind = "" if model in server.writers else " (by its name no model that writes text)"
            found[name] = {"name": name, "address": server.address, "what": f"at {server.address}{kind}"}
    for alias, meant in settings.aliases.items():
        found[alias] = {"name": alias, "address": None, "what": f"your alias of {meant}"}
    found["local"] = {"name": "local", "address": None, "what": "no language model, in this process"}
    return list(found.values())
