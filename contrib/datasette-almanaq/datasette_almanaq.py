"""almanaq for Datasette: a page for questions about each database."""

from __future__ import annotations

import asyncio
from html import escape
from typing import Any
from urllib.parse import urlsplit

from datasette import Forbidden, NotFound, Response, hookimpl

NAME = "datasette-almanaq"
_OPEN: dict[tuple[str, str], Any] = {}
_LONGEST = 2_000


@hookimpl
def register_routes() -> list[tuple[str, Any]]:
    """Return the page its place."""
    return [(r"^/-/almanaq/(?P<database>[^/]+)$", page)]


@hookimpl
def database_actions(datasette: Any, database: str) -> list[dict[str, str]]:
    """Link to the page from that of a database."""
    return [{"href": datasette.urls.path(f"/-/almanaq/{database}"), "label": "Ask a question"}]


async def page(datasette: Any, request: Any) -> Any:
    """Show a form; a POST answers its question."""
    name = request.url_vars["database"]
    if name not in datasette.databases or not datasette.get_database(name).path:
        raise NotFound(f"there is no database {name} that is a file")
    if not await datasette.permission_allowed(request.actor, "execute-sql", resource=name, default=True):
        raise Forbidden("execute-sql")
    question = reply = ""
    if request.method == "POST":
        _check_origin(request)
        question = (await request.post_vars()).get("question", "").strip()[:_LONGEST]
        reply = await asyncio.to_thread(_answered, datasette, name, question) if question else ""
    token = escape(request.scope["csrftoken"](), quote=True)
    return Response.html(
        f"<!doctype html><html lang=en><title>Ask {escape(name)}</title><h1>Ask {escape(name)}</h1>"
        f'<form method="post"><input type="hidden" name="csrftoken" value="{token}">'
        f'<label>Question <input name="question" size="60" value="{escape(question, quote=True)}"></label> '
        f"<button>Ask</button></form>{reply}</html>",
        headers={"Content-Security-Policy": "default-src 'none'; form-action 'self'; frame-ancestors 'none'"},
    )


def _check_origin(request: Any) -> None:
    """Refuse what another site's page sends: Datasette's own check is for requests that bring cookies."""
    origin = request.headers.get("origin")
    if origin is not None and urlsplit(origin).netloc != request.headers.get("host"):
        raise Forbidden("a question is asked from this page, not from another site")


def _answered(datasette: Any, name: str, question: str) -> str:
    """Return the reply as HTML, in which everything from rows is escaped."""
    from almanaq.errors import AlmanaqError

    try:
        return str(_connection(datasette, name).ask(question)._repr_html_())
    except AlmanaqError as error:
        return f"<p>{escape(str(error))}</p>"


def _connection(datasette: Any, name: str) -> Any:
    import almanaq

    config = datasette.plugin_config(NAME) or {}
    path, model = str(datasette.get_database(name).path), str(config.get("model", "local"))
    if (path, model) not in _OPEN:
        whole = almanaq.connect(path, model=model, max_calls=int(config.get("max_calls", 200)), deadline=60)
        _OPEN[path, model] = whole.public()
    return _OPEN[path, model]
