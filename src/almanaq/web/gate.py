"""The gate: one piece of ASGI that every request passes before anything else sees it.

It knows whoever holds the token, or the users of a file by theirs. Against pages of other sites that a browser of this
machine shows, it looks at `Host` (DNS rebinding), and at `Origin` and `Sec-Fetch-Site` of everything but GET (forged
requests).
"""

from __future__ import annotations

import hashlib
import hmac
import json
import re
from collections.abc import Awaitable, Callable, Coroutine, MutableMapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qsl, quote, urlencode

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

from almanaq.errors import UsageError
from almanaq.users import ANYONE, User, Users
from almanaq.web.problems import MEDIA_TYPE, Problem

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
Application = Callable[[Scope, Receive, Send], Awaitable[None]]

LOOPBACK = ("127.0.0.1", "localhost", "::1")
MOST_BODY = 1_000_000
_READS = ("GET", "HEAD")
_OPEN = ("/healthz",)
_CSP = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; form-action 'self'; "
    "base-uri 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'"
)
HEADERS = (
    (b"content-security-policy", _CSP.encode()),
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"no-referrer"),
    (b"cache-control", b"no-store"),
    (b"cross-origin-opener-policy", b"same-origin"),
    (b"cross-origin-resource-policy", b"same-origin"),
)
_NAME = re.compile(r"[a-z0-9._-]+", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Access:
    """Who may reach the server.

    Attributes:
        host, port: where it listens.
        token: what a client has to show; None: whoever reaches a loopback address may ask.
        names: further host names by which it may be addressed, as behind a proxy.
        most_body: bytes of a request.
        users: who may ask, each with what they may see; None: nobody is told from others.
    """

    host: str = "127.0.0.1"
    port: int = 8765
    token: str | None = field(default=None, repr=False)
    names: tuple[str, ...] = ()
    most_body: int = MOST_BODY
    users: Users | None = None

    def __post_init__(self) -> None:
        if self.exposed and not self.token and self.users is None:
            raise UsageError(f"--host {self.host}: others can reach this address: add --token T, or leave --host out")
        if self.users is not None and bool(self.token) != bool(self.users.header):
            raise UsageError("--user-header goes with --token T, which the proxy sends; users have tokens of their own")
        if self.token is not None and len(self.token) < 8:
            raise UsageError("--token: use at least 8 characters, for example from `openssl rand -hex 16`")

    @property
    def exposed(self) -> bool:
        """Whether clients may be others than whoever started the server: on other machines, or users behind a proxy."""
        return self.host not in LOOPBACK or bool(self.names) or self.users is not None

    @property
    def cookie(self) -> str:
        """The name of the cookie: several servers on one host must not overwrite each other's."""
        return f"almanaq_{self.port}"

    def session(self, token: str = "") -> str:
        """Return the cookie's value, which does not reveal the server's token; of a user it is their own."""
        if self.users is not None:
            return token
        return hmac.new((self.token or "").encode(), b"almanaq cookie", hashlib.sha256).hexdigest()

    def address(self) -> str:
        """Return the address to open in a browser."""
        host = "127.0.0.1" if self.host in ("0.0.0.0", "::") else self.host
        shown = f"[{host}]" if ":" in host else host
        login = f"?token={self.token}" if self.token and self.users is None else ""
        return f"http://{shown}:{self.port}/{login}"

    def knows_host(self, host: str) -> bool:
        """Return whether a Host header names this server."""
        name, port = _split(host)
        if port not in (None, self.port) and name not in self.names:
            return False
        own = (*LOOPBACK, *self.names, *(() if self.host in ("0.0.0.0", "::") else (self.host,)))
        return name in {each.lower() for each in own}


class Gate:
    """Lets a request through to the application, or refuses it: 421, 403, 401 or 413.

    Args:
        application: what answers.
        access: who may reach it.
        end: ends what is under way.
    """

    def __init__(self, application: Application, access: Access, end: Callable[[], Coroutine[Any, Any, None]]) -> None:
        self._application, self._access, self.end = application, access, end

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one connection."""
        if scope["type"] == "lifespan":
            await self._application(scope, receive, send)
            return
        if scope["type"] != "http":
            if scope["type"] == "websocket":
                await send({"type": "websocket.close", "code": 1008})
            return
        request = _Request(scope, receive)
        sealed = _add_headers(send)
        refused = self._find_refusal(request)
        if refused is not None:
            await _refuse(sealed, request, refused)
        elif (login := self._find_login(request)) is not None:
            place, cookie = login
            await Response(b"", 303, {"location": place, "set-cookie": cookie})(scope, receive, sealed)
        else:
            await self._let_through(scope, receive, sealed, request)

    def _find_refusal(self, request: _Request) -> Problem | None:
        access, host = self._access, request.sole_header("host")
        if not access.knows_host(host):
            message = (
                f"this server is not {host[:100]!r}: open it under its own address, or start it with --allow-host NAME"
            )
            return Problem(421, "HostError", message)
        if request.method not in _READS and (foreign := request.foreign_site()) is not None:
            message = f"a request from {foreign[:100]!r} is refused: only this server's own page may ask"
            return Problem(403, "OriginError", message)
        if request.path not in _OPEN and self._find_user(request) is None:
            message = "open the address that `almanaq serve` printed, or send the header `Authorization: Bearer TOKEN`"
            return Problem(401, "TokenError", message)
        length = request.header("content-length")
        if length and (not length.isdigit() or int(length) > access.most_body):
            return _too_large(access)
        return None

    def _find_user(self, request: _Request) -> User | None:
        """Return the user who asks, ANYONE where nobody is told from others; None: nobody who is known."""
        access, users, bearer, shown = self._access, self._access.users, request.bearer, request.shown_token
        cookie, token = request.cookies.get(access.cookie, ""), access.token or ""
        if users is None:
            known = not token or _is_same(cookie, access.session()) or _is_same(bearer, token) or _is_same(shown, token)
            return ANYONE if known else None
        if users.header and _is_same(bearer, token):
            return users.named(request.sole_header(users.header))
        return next(map(users.with_token, filter(None, (bearer, shown, cookie))), None)

    def _find_login(self, request: _Request) -> tuple[str, str] | None:
        """Return where to go and the cookie to take along, for an address with the token in it."""
        token, users = request.shown_token, self._access.users
        if not token or not (_is_same(token, self._access.token or "") if users is None else users.with_token(token)):
            return None
        # A path comes here unquoted: as it is, it could end the header, or hold what no header may.
        path = quote(request.path, safe="/", errors="surrogateescape")
        rest = urlencode([(name, value) for name, value in request.query if name != "token"])
        cookie = f"{self._access.cookie}={self._access.session(token)}; HttpOnly; SameSite=Strict; Path=/"
        return path + (f"?{rest}" if rest else ""), cookie

    async def _let_through(self, scope: Scope, receive: Receive, send: Send, request: _Request) -> None:
        most, came, begun = self._access.most_body, 0, False

        async def receive_counted() -> Message:
            nonlocal came
            message = await receive()
            came += len(message.get("body", b""))
            if came > most:
                raise _TooLarge(most)
            return message

        async def send_noting_start(message: Message) -> None:
            nonlocal begun
            begun = True
            await send(message)

        scope["almanaq.user"] = self._find_user(request)
        try:
            await self._application(scope, receive_counted, send_noting_start)
        except _TooLarge:
            if not begun:
                await _refuse(send, request, _too_large(self._access))


class _TooLarge(HTTPException):
    """A body that is longer than a request may be; of this class, as FastAPI takes others for a fault of the body."""

    def __init__(self, most: int) -> None:
        super().__init__(413, f"a request may hold {most:,} bytes")


class _Request(Request):
    """What the gate looks at of a request."""

    @property
    def path(self) -> str:
        """The path; one that begins with two slashes would be another host in a Location."""
        return "/" + str(self.scope["path"]).lstrip("/\\")

    @property
    def query(self) -> list[tuple[str, str]]:
        """Names and values of the query string."""
        return parse_qsl(self.scope.get("query_string", b"").decode("latin-1"), keep_blank_values=True)

    @property
    def bearer(self) -> str:
        """The token in the header; "" where there is none."""
        scheme, _, given = self.header("authorization").partition(" ")
        return given.strip() if scheme.lower() == "bearer" else ""

    @property
    def is_api(self) -> bool:
        """Whether a program asks, rather than a browser for a page."""
        return self.path.startswith(("/api/", "/mcp", "/openapi.json"))

    @property
    def shown_token(self) -> str:
        """The token in the address of a page that is opened; "" where there is none."""
        return "" if self.is_api or self.method != "GET" else dict(self.query).get("token", "")

    def header(self, name: str) -> str:
        """Return a header's value, the last; "" where there is none."""
        return next(reversed(self.headers.getlist(name)), "")

    def sole_header(self, name: str) -> str:
        """Return the value of a header that is to be trusted: "" also where it comes twice."""
        return "" if len(self.headers.getlist(name)) > 1 else self.header(name)

    def foreign_site(self) -> str | None:
        """Return the site that sent a request, where that is another than this server.

        None for programs and our page.
        """
        origin, site = self.header("origin"), self.header("sec-fetch-site")
        if origin:
            scheme, _, host = origin.partition("://")
            same = scheme in ("http", "https") and host.lower() == self.header("host").lower()
            return None if same and site in ("", "same-origin") else origin
        return None if site in ("", "same-origin", "none") else site


def _add_headers(send: Send) -> Send:
    """Return a `send` that puts the headers of security on every response; only assets say how they are cached."""

    async def send_with_headers(message: Message) -> None:
        if message["type"] == "http.response.start":
            given = {name.lower(): value for name, value in message.get("headers", ())}
            cached = {b"cache-control": given[b"cache-control"]} if b"etag" in given else {}
            own = dict(HEADERS) | cached
            kept = [(name, value) for name, value in message.get("headers", ()) if name.lower() not in own]
            message = {**message, "headers": [*kept, *own.items()]}
        await send(message)

    return send_with_headers


def _too_large(access: Access) -> Problem:
    return Problem(413, "BodyError", f"a request may hold {access.most_body:,} bytes")


async def _refuse(send: Send, request: _Request, problem: Problem) -> None:
    status, body, media = problem.status, json.dumps(problem.record()).encode(), MEDIA_TYPE
    if status == 401 and request.method == "GET" and "text/html" in request.header("accept"):
        body, media = _DOOR, "text/html; charset=utf-8"
    more = {401: {"www-authenticate": 'Bearer realm="almanaq"'}, 413: {"connection": "close"}}.get(status)
    await Response(body, status, more, media)(request.scope, request.receive, send)


def _split(host: str) -> tuple[str, int | None]:
    """Return the name and the port of a Host header; a name that is none is ""."""
    name, port = host, ""
    if host.startswith("["):
        name, _, port = host[1:].partition("]")
        port = port.removeprefix(":")
    elif host.count(":") == 1:
        name, _, port = host.partition(":")
    if (port and not port.isascii()) or (port and not port.isdigit()):
        return "", None
    well_formed = _NAME.fullmatch(name) or name == "::1"
    return (name.lower().rstrip(".") if well_formed else ""), int(port) if port else None


def _is_same(given: str, wanted: str) -> bool:
    return bool(wanted) and hmac.compare_digest(given.encode("utf-8", "surrogateescape"), wanted.encode())


# A link of another site, or one in a mail, comes without the cookie, as it is SameSite=Strict: going on from a page of
# ours brings it along.
_DOOR = b"""<!doctype html><html lang="en"><meta charset="utf-8"><title>almanaq</title>
<meta name="viewport" content="width=device-width, initial-scale=1"><link rel="icon" href="/static/icon.svg">
<h1>This page asks for the token</h1>
<p>Open the address that <code>almanaq serve</code> printed when it was started.</p>
<p>If you have opened it in this browser before, <a href="">go on</a>.</p></html>"""
