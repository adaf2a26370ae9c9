"""What to write into the settings of programs that start MCP servers."""

from __future__ import annotations

import json
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from almanaq.errors import UsageError, suggest

_NAME = "almanaq"


@dataclass(frozen=True, slots=True)
class Client:
    """A program: `place` says where its settings are, `keys` lead to the servers in them, `more` stands in each."""

    name: str
    place: str
    keys: tuple[str, ...]
    more: tuple[tuple[str, str], ...] = ()


CLIENTS = (
    Client("claude-desktop", "claude_desktop_config.json (Settings > Developer > Edit Config)", ("mcpServers",)),
    Client("claude-code", ".mcp.json in the project's folder", ("mcpServers",), (("type", "stdio"),)),
    Client("vscode", ".vscode/mcp.json in the project's folder", ("servers",), (("type", "stdio"),)),
    Client("cursor", "~/.cursor/mcp.json, or .cursor/mcp.json in the project's folder", ("mcpServers",)),
    Client("zed", "settings.json (zed: open settings)", ("context_servers",)),
)


def client_named(name: str) -> Client:
    """Return a client; raises UsageError for one that is not known."""
    names = [client.name for client in CLIENTS]
    if name not in names:
        raise UsageError(f"--print-config: no client named {name!r}{suggest(name, names)}")
    return CLIENTS[names.index(name)]


def settings(client: Client, command: str, arguments: Sequence[str], environment: Mapping[str, str]) -> str:
    """Return the settings of a client under which it starts a command, as JSON."""
    server: object = {**dict(client.more), "command": command, "args": list(arguments), "env": dict(environment)}
    for key in (_NAME, *reversed(client.keys)):
        server = {key: server}
    return json.dumps(server, indent=2, ensure_ascii=False)


def command_line(command: str, arguments: Sequence[str]) -> str:
    """Return the command by which Claude Code adds the server itself."""
    return shlex.join(["claude", "mcp", "add", _NAME, "--", command, *arguments])
