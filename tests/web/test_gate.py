"""The gate: who may speak to the server, and what every response says to browsers."""

from __future__ import annotations

import http.client
import urllib.parse

import pytest
from tests.web.conftest import CANDLES, places
from tests.web.live import live

import almanaq
from almanaq.errors import UsageError
from almanaq.mcp import asgi_app
from almanaq.web.gate import Access
from almanaq.web.service import open_service

TOKEN = "correct-horse-battery"
EXPLAIN = "/api/v1/explain"


@pytest.fixture(scope="module")
def guarded(serve):
    return serve(access={"token": TOKEN})


@pytest.mark.parametrize("host", ["evil.example", "127.0.0.1.evil.example", "evil.example:{port}", "", "127.0.0.1:1"])
def test_a_foreign_host_is_refused_whatever_is_asked(client, host):
    named = host.format(port=client.port)
    for method, path in (("GET", "/"), ("GET", "/healthz"), ("POST", EXPLAIN), ("GET", "/static/page.js")):
        reply = client(method, path, {"suql": CANDLES} if method == "POST" else None, host=named)
        assert (reply.status, reply.json()["type"]) == (421, "urn:almanaq:error:HostError")


@pytest.mark.parametrize("host", ["127.0.0.1:{port}", "localhost:{port}", "[::1]:{port}", "LOCALHOST:{port}"])
def test_its_own_names_are_known(client, host):
    assert client("GET", "/healthz", host=host.format(port=client.port)).status == 200


@pytest.mark.parametrize(
    "headers",
    [
        {"origin": "http://evil.example"},
        {"origin": "null"},
        {"origin": "http://localhost:1"},
        {"sec_fetch_site": "cross-site"},
        {"sec_fetch_site": "same-site"},
        {"origin": "http://127.0.0.1:{port}", "sec_fetch_site": "cross-site"},
    ],
)
@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "OPTIONS"])
def test_another_site_can_only_read(client, headers, method):
    sent = {name: value.format(port=client.port) for name, value in headers.items()}
    reply = client(method, EXPLAIN, {"suql": CANDLES}, **sent)
    assert (reply.status, reply.json()["type"]) == (403, "urn:almanaq:error:OriginError")


def test_its_own_page_and_programs_may_ask(client):
    own = {"origin": f"http://127.0.0.1:{client.port}", "sec_fetch_site": "same-origin"}
    for headers in (own, {}, {"sec_fetch_site": "none"}):
        assert client("POST", EXPLAIN, {"suql": CANDLES}, **headers).status == 200


def test_a_form_of_another_site_is_no_json(client):
    reply = client("POST", EXPLAIN, b"suql=SELECT+1", content_type="text/plain")
    assert reply.status == 422
    assert b"send the header Content-Type: application/json" in reply.body


def test_without_the_token_nothing_but_health_is_told(guarded):
    for path in ("/", "/a/x", "/static/page.js", "/api/v1/tables", "/openapi.json", "/nowhere"):
        reply = guarded("GET", path)
        assert reply.status == 401
        assert reply.headers["www-authenticate"].startswith("Bearer")
        assert b"places" not in reply.body
    assert guarded("GET", "/healthz").status == 200
    assert guarded("GET", "/api/v1/tables", authorization="Bearer wrong-token-here").status == 401
    assert guarded("GET", f"/api/v1/tables?token={TOKEN}").status == 401


def test_the_token_in_the_address_of_a_page_becomes_a_cookie(guarded):
    reply = guarded("GET", f"/a/some?token={TOKEN}&x=1")
    assert (reply.status, reply.headers["location"]) == (303, "/a/some?x=1")
    cookie = reply.headers["set-cookie"]
    assert cookie.startswith(f"almanaq_{guarded.port}=")
    assert TOKEN not in cookie
    assert "HttpOnly" in cookie
    assert "SameSite=Strict" in cookie
    assert guarded("GET", "/api/v1/tables", cookie=cookie.partition(";")[0]).status == 200
    assert guarded("GET", "/api/v1/tables", authorization=f"Bearer {TOKEN}").status == 200


def test_a_login_never_leads_to_another_host(guarded):
    reply = guarded("GET", f"//evil.example/?token={TOKEN}")
    assert (reply.status, reply.headers["location"]) == (303, "/evil.example/")


ODD = "/a/%0d%0aSet-Cookie:%20x=1 /%FF%FE /%C3%A9t%C3%A9/%E2%82%AC /a%20b /a%3Fb%23c /%00 /%5C%5Cevil.example /a%2525"


@pytest.mark.parametrize("path", ODD.split())
def test_a_login_keeps_its_path_whatever_stands_in_it(guarded, path):
    reply = guarded("GET", f"{path}?token={TOKEN}")
    assert (reply.status, reply.headers["set-cookie"].startswith("almanaq_")) == (303, True)
    place = urllib.parse.urljoin(f"http://127.0.0.1:{guarded.port}/", reply.headers["location"])
    assert urllib.parse.urlsplit(place).netloc == f"127.0.0.1:{guarded.port}"
    assert urllib.parse.unquote(urllib.parse.urlsplit(place).path).lstrip("/\\") == urllib.parse.unquote(path).lstrip(
        "/\\"
    )
    assert guarded("GET", reply.headers["location"], authorization=f"Bearer {TOKEN}").status in (404, 422)


def test_every_response_is_sealed(client, guarded):
    replies = [
        client("GET", "/"),
        client("GET", "/nowhere"),
        client("GET", "/", host="evil.example"),
        client("POST", EXPLAIN, {"suql": "SELEC"}),
        guarded("GET", "/"),
    ]
    for reply in replies:
        assert reply.headers["content-security-policy"].startswith("default-src 'none'; script-src 'self'")
        assert "require-trusted-types-for 'script'" in reply.headers["content-security-policy"]
        assert reply.headers["x-content-type-options"] == "nosniff"
        assert reply.headers["referrer-policy"] == "no-referrer"
        assert reply.headers["cache-control"] == "no-store"


def test_a_large_body_is_refused_whether_its_length_is_told_or_not(serve):
    small = serve(access={"most_body": 1000})
    body = {"suql": "x" * 2000}
    assert small("POST", EXPLAIN, body).status == 413
    chunk = b'{"suql": "' + b"x" * 2000 + b'"}'
    chunked = b"%x\r\n%s\r\n0\r\n\r\n" % (len(chunk), chunk)
    connection = http.client.HTTPConnection("127.0.0.1", small.port, timeout=30)
    connection.putrequest("POST", EXPLAIN)
    connection.putheader("transfer-encoding", "chunked")
    connection.putheader("content-type", "application/json")
    connection.endheaders()
    connection.send(chunked)
    assert connection.getresponse().status == 413
    connection.close()


@pytest.mark.parametrize("host", ["0.0.0.0", "192.168.1.7", "::", "example.org"])
def test_an_address_that_others_reach_needs_a_token(host):
    with pytest.raises(UsageError, match="--token"):
        Access(host=host)
    assert Access(host=host, token=TOKEN).exposed


def test_a_name_behind_a_proxy_needs_a_token_and_is_known():
    with pytest.raises(UsageError, match="--token"):
        Access(names=("data.example",))
    access = Access(names=("data.example",), token=TOKEN)
    assert access.knows_host("data.example")
    assert access.knows_host("data.example:443")
    assert not access.knows_host("other.example")


def test_programs_reach_mcp_through_the_same_gate():
    with almanaq.connect(places(), embedder="lexical", cache=False) as connection:
        service = open_service(connection, "places", store_mb=None)
        mounts = {"/mcp": asgi_app(connection, path="/mcp", hosts=None)}
        with live(service, mounts=mounts) as client:
            _tools_are_behind_the_gate(client)
        service.store.close()


def _tools_are_behind_the_gate(client):
    told = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}}
    body = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": told}
    both = {"accept": "application/json, text/event-stream"}
    reply = client("POST", "/mcp", body, **both)
    assert reply.status == 200
    assert '"name":"almanaq"' in reply.body.decode()
    assert client("POST", "/mcp", body, host="evil.example", **both).status == 421
    assert client("POST", "/mcp", body, origin="http://evil.example", **both).status == 403
