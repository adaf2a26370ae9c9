"""The reference pages that are made from the code: Python, command line, HTTP, MCP, configuration, errors."""

from __future__ import annotations

import asyncio
import contextlib
import inspect
import json
from typing import Any

import help as help_texts

PUBLIC = (
    "connect", "Connection", "Cursor", "Chat", "Response", "Result", "Evidence", "Trace", "Options", "Accuracy",
    "tables", "index", "Tables", "TableHit", "IndexedTables",
)  # fmt: skip
MODULES = (
    "almanaq.testing", "almanaq_bench.paper_api", "almanaq_bench.retrievers.adapters", "almanaq.models.protocols",
)  # fmt: skip
TARGET = ("evaluators", "retrievers", "generators", "tasks", "dataset_loaders", "data_models")


def pages() -> dict[str, str]:
    """Return every page by its file's name."""
    made = {
        "python.md": _python(),
        "command-line.md": _command_line(),
        "http.md": _http(),
        "mcp.md": _mcp(),
        "configuration.md": _configuration(),
        "errors.md": _errors(),
    }
    names = "\n".join(name.removesuffix(".md") for name in made)
    made["index.md"] = (
        "# Reference made from the code\n\nThese pages are written by the build from docstrings, help texts and "
        f"schemas, so that they say what the code does.\n\n```{{toctree}}\n:maxdepth: 1\n\n{names}\n```\n"
    )
    return made


def _python() -> str:
    import almanaq

    text = "# Python\n\n[From Python](../python.md) shows how to use these; here is all of it.\n\n"
    for name in PUBLIC:
        found = getattr(almanaq, name)
        kind = "autoclass" if isinstance(found, type) else "autofunction"
        members = "\n   :members:" if isinstance(found, type) else ""
        path = f"{found.__module__}.{found.__qualname__}"
        text += f"## almanaq.{name}\n\n```{{eval-rst}}\n.. {kind}:: {path}{members}\n   :no-index:\n```\n\n"
    for module in (*MODULES, *(f"almanaq_bench.target.{name}" for name in TARGET)):
        text += f"## {module}\n\n```{{eval-rst}}\n.. automodule:: {module}\n   :members:\n   :no-index:\n```\n\n"
    return text


def _command_line() -> str:
    text = "# Command line\n\nWhat `--help` prints, of every command.\n\n"
    for file, printed in help_texts.render().items():
        text += f"## {file.stem.replace('-', ' ')}\n\n```text\n{printed.rstrip()}\n```\n\n"
    return text


def _http() -> str:
    text = (
        "# HTTP\n\n`almanaq serve` describes itself at `/openapi.json`; these are its paths. "
        "[The server](../serve.md) explains them.\n\n"
    )
    described = _openapi()
    for path, methods in described["paths"].items():
        for method, told in methods.items():
            text += f"## `{method.upper()} {path}`\n\n{told.get('description') or told.get('summary', '')}\n\n"
            rows = [
                (each["name"], each["in"], "yes" if each.get("required") else "", each.get("description", ""))
                for each in told.get("parameters", [])
            ]
            if rows:
                text += "| parameter | in | required | |\n| --- | --- | --- | --- |\n"
                text += "".join(f"| {' | '.join(map(_cell, row))} |\n" for row in rows) + "\n"
            text += "| status | |\n| --- | --- |\n"
            for status, reply in told["responses"].items():
                text += f"| {status} | {_cell(reply.get('description', ''))} |\n"
            text += "\n"
    return text


def _openapi() -> dict[str, Any]:
    import almanaq
    from almanaq.web.app import create_app
    from almanaq.web.gate import Access
    from almanaq.web.service import open_service

    with almanaq.connect({"t": {"a": [1]}}, embedder="lexical", cache=False) as connection:
        service = open_service(connection, "t", store_mb=None)
        with contextlib.closing(service.store):
            return asyncio.run(_get_json(create_app(service, Access()), "/openapi.json"))


async def _get_json(application: Any, path: str) -> dict[str, Any]:
    """Return what an application replies to GET, which is JSON."""
    told: list[bytes] = []
    host = [(b"host", b"127.0.0.1:8765")]
    scope = {
        "type": "http", "asgi": {"version": "3.0"}, "http_version": "1.1", "method": "GET", "scheme": "http",
        "path": path, "raw_path": path.encode(), "query_string": b"", "headers": host, "server": ("127.0.0.1", 8765),
        "client": ("127.0.0.1", 1), "root_path": "",
    }  # fmt: skip

    async def receive() -> dict[str, Any]:
        return {"type": "http.request", "body": b"", "more_body": False}

    async def send(message: dict[str, Any]) -> None:
        told.append(message.get("body", b""))

    await application(scope, receive, send)
    return json.loads(b"".join(told))  # type: ignore[no-any-return]


def _mcp() -> str:
    from almanaq.mcp.declared import TOOLS

    text = "# MCP\n\nThe tools of `almanaq mcp`, as a client is told of them. [MCP](../mcp.md) explains them.\n\n"
    for tool in TOOLS:
        text += f"## `{tool.name}`\n\n{tool.description}\n\n"
        for title, schema in (("Input", tool.input_schema), ("Output", tool.output_schema)):
            text += f"{title}:\n\n```json\n{json.dumps(schema, indent=1, ensure_ascii=False)}\n```\n\n"
    return text


def _configuration() -> str:
    from almanaq.settings import Settings

    text = (
        "# Configuration\n\nEvery setting, as it is written in `almanaq.toml` and in the environment. Flags of the "
        "command line come first, then the environment, then the file. "
        "[Models](../models.md) explains those of models.\n\n"
        "| in `almanaq.toml` | in the environment | type | default |\n| --- | --- | --- | --- |\n"
    )
    for name, field in Settings.model_fields.items():
        variable = name.upper() if name.startswith("openai_") else f"ALMANAQ_{name.upper()}"
        default = field.get_default(call_default_factory=True)
        kind = str(getattr(field.annotation, "__name__", field.annotation)).replace("typing.", "")
        shown = kind if kind not in ("Optional", "Union", "UnionType") else str(field.annotation)
        text += f"| `{name}` | `{variable}` | {_cell(shown)} | {'' if default is None else f'`{default}`'} |\n"
    return text


def _errors() -> str:
    from almanaq import errors

    text = "# Errors\n\n[Errors and exit codes](../errors.md) says what to do about each. The tree:\n\n```text\n"
    text += inspect.cleandoc(errors.__doc__ or "").split("\n\n", 2)[2].split("\n\n`Warning`")[0]
    text += "\n```\n\n"
    for name, found in inspect.getmembers(errors, inspect.isclass):
        if issubclass(found, Exception) and found.__module__ == "almanaq.errors" and found.__name__ == name:
            text += f"## almanaq.{name}\n\n{inspect.cleandoc(found.__doc__ or '')}\n\n"
    return text


def _cell(text: object) -> str:
    return " ".join(str(text).split()).replace("|", "\\|")
