"""HTTP as we speak it: a reply is the same in whatever pieces it comes, and nothing else is ever taken for one."""

from __future__ import annotations

import asyncio
import base64
import gzip
import ssl
import zlib
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from almanaq.models import http_connection
from almanaq.models.http import JsonServer, NoReply
from almanaq.models.http_reply import BadReply, ReplyReader

MOST = 2_000
Answer = Callable[[bytes], bytes]
PACKED: dict[str, Callable[[bytes], bytes]] = {"": bytes, "gzip": gzip.compress, "deflate": zlib.compress}
OK = b"HTTP/1.1 200 OK\r\n"


def chunked(body: bytes, size: int) -> bytes:
    pieces = [body[start : start + size] for start in range(0, len(body), size)]
    return b"".join(b"%X;a=b\r\n%b\r\n" % (len(piece), piece) for piece in pieces) + b"0\r\nx-sum: 1\r\n\r\n"


@st.composite
def replies(draw: st.DrawFn) -> tuple[bytes, bytes, bool]:
    """A reply as it is sent, what it says, and whether its end shows before the connection's."""
    body, packing = draw(st.binary(max_size=300)), draw(st.sampled_from(list(PACKED)))
    sent = PACKED[packing](body)
    head = OK + (b"Content-Encoding: " + packing.encode() + b"\r\n" if packing else b"")
    before = draw(st.sampled_from([b"", b"HTTP/1.1 100 Continue\r\n\r\n"]))
    framing = draw(st.sampled_from(["length", "chunks", "end"]))
    if framing == "length":
        return before + head + b"Content-length:  %d \r\n\r\n" % len(sent) + sent, body, True
    if framing == "chunks":
        pieces = chunked(sent, draw(st.integers(1, 50)))
        return before + head + b"Transfer-Encoding: Chunked\r\n\r\n" + pieces, body, True
    return before + head + b"\r\n" + sent, body, False


@given(replies(), st.lists(st.integers(1, 60), max_size=8), st.binary(max_size=3))
def test_a_reply_is_the_same_in_whatever_pieces_it_comes(
    reply: tuple[bytes, bytes, bool], sizes: list[int], more: bytes
) -> None:
    sent, body, shows = reply
    reader, whole, rest = ReplyReader(MOST), False, sent + (more if shows else b"")
    for size in sizes:
        if whole or not rest:
            break
        whole, rest = reader.feed(rest[:size]), rest[size:]
    if not whole and rest:
        whole, rest = reader.feed(rest), b""
    assert whole == shows
    reader.end()
    assert (reader.status, bytes(reader.body)) == (200, body)


@given(replies(), st.data())
def test_a_reply_that_is_cut_is_none(reply: tuple[bytes, bytes, bool], data: st.DataObject) -> None:
    sent, _, shows = reply
    end = sent.find(b"200 OK") + 8
    cut = data.draw(st.integers(0, len(sent) - 1 if shows else end))
    reader = ReplyReader(MOST)
    assert not (cut and reader.feed(sent[:cut]))
    with pytest.raises(BadReply, match="closed"):
        reader.end()


BAD = {
    "no HTTP": b"SSH-2.0-x\r\n\r\n",
    "no version of ours": b"HTTP/2 200 OK\r\n\r\n",
    "no status": b"HTTP/1.1 20x OK\r\n\r\n",
    "a line that goes on": OK + b"x: y\r\n z: 1\r\ncontent-length: 0\r\n\r\n",
    "a name with a space": OK + b"content-length : 0\r\n\r\n",
    "two lengths": OK + b"content-length: 2\r\ncontent-length: 3\r\n\r\nabc",
    "a length of another kind": OK + b"content-length: +2\r\n\r\nab",
    "a length with other digits": OK + "content-length: \u00b2\r\n\r\nab".encode("latin-1"),
    "more than is read": OK + b"content-length: 2001\r\n\r\n",
    "another coding": OK + b"transfer-encoding: gzip, chunked\r\n\r\n",
    "two codings": OK + b"transfer-encoding: chunked\r\ntransfer-encoding: identity\r\n\r\n",
    "a size that is none": OK + b"transfer-encoding: chunked\r\n\r\n-1\r\n",
    "a size with an underscore": OK + b"transfer-encoding: chunked\r\n\r\n1_0\r\n",
    "a chunk beyond its size": OK + b"transfer-encoding: chunked\r\n\r\n2\r\nabc\r\n0\r\n\r\n",
    "chunks beyond what is read": OK + b"transfer-encoding: chunked\r\n\r\n" + b"3e8\r\n%b\r\n" % (b"x" * 1000) * 3,
    "a size without end": OK + b"transfer-encoding: chunked\r\n\r\n" + b"1" * 5000,
    "trailers without end": OK + b"transfer-encoding: chunked\r\n\r\n0\r\n" + b"x: yyyyyyyyyyyyyyyy\r\n" * 200,
    "a head without end": OK + b"x: y\r\n" * 20_000,
    "another protocol": b"HTTP/1.1 101 Switching\r\n\r\n",
    "a bomb": OK + b"content-encoding: gzip\r\ncontent-length: 1100\r\n\r\n" + gzip.compress(b" " * 10**6)[:1100],
}


@pytest.mark.parametrize("name", BAD)
@pytest.mark.parametrize("size", [3, 50, 10**6])
def test_what_is_no_reply_is_refused_however_it_comes(name: str, size: int) -> None:
    reader = ReplyReader(MOST)
    pieces = [BAD[name][start : start + size] for start in range(0, len(BAD[name]), size)]
    with pytest.raises(BadReply):
        assert not any(reader.feed(piece) for piece in pieces)


@pytest.mark.parametrize(
    ("sent", "keeps"),
    [
        (OK + b"content-length: 2\r\n\r\nab", True),
        (OK + b"content-length: 2\r\n\r\nabc", False),
        (OK + b"content-length: 2\r\nconnection: Close\r\n\r\nab", False),
        (b"HTTP/1.0 200 OK\r\ncontent-length: 2\r\n\r\nab", False),
        (b"HTTP/1.0 200 OK\r\ncontent-length: 2\r\nconnection: keep-alive\r\n\r\nab", True),
        (b"HTTP/1.1 204 No Content\r\n\r\n", True),
        (OK + b"transfer-encoding: chunked\r\n\r\n0\r\n\r\n", True),
        (OK + b"transfer-encoding: chunked\r\n\r\n0\r\n\r\nHTTP/1.1 200", False),
        (OK + b"transfer-encoding: chunked\r\ncontent-length: 5\r\n\r\n0\r\n\r\n", False),
    ],
)
def test_a_connection_is_kept_where_nothing_is_left_in_it(sent: bytes, keeps: bool) -> None:
    reader = ReplyReader(MOST)
    assert reader.feed(sent)
    assert reader.keeps == keeps


class Listener:
    """A server that sends what it is told; counts connections and keeps requests."""

    def __init__(self, answer: Answer, *, keeps: bool) -> None:
        self._answer, self._keeps = answer, keeps
        self.connections, self.requests = 0, list[bytes]()
        self.port = 0

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        try:
            while True:
                head = await reader.readuntil(b"\r\n\r\n")
                length = head.lower().partition(b"content-length: ")[2].partition(b"\r\n")[0]
                self.requests.append(head + await reader.readexactly(int(length or 0)))
                writer.write(self._answer(self.requests[-1]))
                await writer.drain()
                if not self._keeps:
                    break
        except (asyncio.IncompleteReadError, OSError):
            pass
        finally:
            writer.close()


@asynccontextmanager
async def listening(answer: Answer, *, keeps: bool = True) -> AsyncIterator[Listener]:
    listener = Listener(answer, keeps=keeps)
    server = await asyncio.start_server(listener.serve, "127.0.0.1", 0)
    listener.port = server.sockets[0].getsockname()[1]
    try:
        yield listener
    finally:
        server.close()


def echo(request: bytes) -> bytes:
    body = request.partition(b"\r\n\r\n")[2]
    return OK + b"content-length: %d\r\n\r\n" % len(body) + body


def test_calls_share_connections_and_get_their_own_replies() -> None:
    async def run() -> tuple[list[bytes], int]:
        async with listening(echo) as listener:
            server = JsonServer(f"http://127.0.0.1:{listener.port}/v1", {}, timeout=5)
            got = []
            for turn in range(4):
                asked = [server.post("/x", {"n": 5 * turn + n}) for n in range(5)]
                got += [reply.body for reply in await asyncio.gather(*asked)]
            return got, listener.connections

    got, connections = asyncio.run(run())
    assert got == [b'{"n": %d}' % n for n in range(20)]
    assert connections == 5


def test_a_connection_that_was_closed_is_used_no_more() -> None:
    async def run() -> list[int]:
        async with listening(echo, keeps=False) as listener:
            server = JsonServer(f"http://127.0.0.1:{listener.port}/v1", {}, timeout=5)
            for _ in range(3):
                assert (await server.post("/x", {})).status == 200
                ((_, connections),) = server._connections._held.values()
                await asyncio.gather(*(connection.lost for connection in connections._idle))
            return [listener.connections, len(listener.requests)]

    assert asyncio.run(run()) == [3, 3]


def test_what_comes_unasked_is_no_reply_to_the_next_request() -> None:
    forged = echo(b"\r\n\r\nforged")

    async def run() -> list[bytes]:
        async with listening(lambda request: echo(request) + forged) as listener:
            server = JsonServer(f"http://127.0.0.1:{listener.port}/v1", {}, timeout=5)
            return [(await server.post("/x", {"n": n})).body for n in range(3)]

    assert asyncio.run(run()) == [b'{"n": 0}', b'{"n": 1}', b'{"n": 2}']


def test_a_call_that_is_cancelled_leaves_no_reply_behind() -> None:
    """The reply that it did not wait for must not be taken for that of the next call."""

    async def run() -> bytes:
        async with listening(echo) as listener:
            server = JsonServer(f"http://127.0.0.1:{listener.port}/v1", {}, timeout=5)
            await server.post("/x", {})
            first = asyncio.create_task(server.post("/x", {"n": 1}))
            await asyncio.sleep(0)
            await asyncio.sleep(0)
            first.cancel()
            await asyncio.gather(first, return_exceptions=True)
            return (await server.post("/x", {"n": 2})).body

    assert asyncio.run(run()) == b'{"n": 2}'


def test_an_address_is_sent_as_it_is_meant() -> None:
    async def run() -> bytes:
        async with listening(echo) as listener:
            address = f"http://127.0.0.1:{listener.port}/ä b/v1/?api-version=1 2"
            await JsonServer(address, {"authorization": "Bearer k"}, timeout=5).get("/models")
            return listener.requests[0]

    first, *headers = asyncio.run(run()).decode().split("\r\n")
    assert first == "GET /%C3%A4%20b/v1/models?api-version=1%202 HTTP/1.1"
    assert "authorization: Bearer k" in headers


def test_no_header_holds_another_line() -> None:
    with pytest.raises(ValueError, match="end of a line"):
        JsonServer("http://127.0.0.1:9/v1", {"authorization": "Bearer k\r\nx: y"}, timeout=5)


def test_a_proxy_passes_requests_on(monkeypatch: pytest.MonkeyPatch) -> None:
    async def run() -> bytes:
        async with listening(echo) as proxy:
            monkeypatch.setenv("http_proxy", f"http://me:p%40ss@127.0.0.1:{proxy.port}")
            monkeypatch.delenv("no_proxy", raising=False)
            monkeypatch.delenv("NO_PROXY", raising=False)
            assert (await JsonServer("http://model.test/v1", {}, timeout=5).post("/x", {})).body == b"{}"
            return proxy.requests[0]

    first, *headers = asyncio.run(run()).decode().split("\r\n")
    assert first == "POST http://model.test/v1/x HTTP/1.1"
    assert f"proxy-authorization: Basic {base64.b64encode(b'me:p@ss').decode()}" in headers
    assert "host: model.test" in headers


def test_a_proxy_is_told_nothing_of_what_goes_through_its_tunnel(monkeypatch: pytest.MonkeyPatch) -> None:
    """It sees where to, and then what only the server can read."""

    async def run() -> tuple[bytes, NoReply]:
        async with listening(lambda _: b"HTTP/1.1 407 No\r\ncontent-length: 0\r\n\r\n") as proxy:
            monkeypatch.setenv("https_proxy", f"127.0.0.1:{proxy.port}")
            monkeypatch.delenv("no_proxy", raising=False)
            monkeypatch.delenv("NO_PROXY", raising=False)
            server = JsonServer("https://model.test/v1", {"authorization": "Bearer key"}, timeout=5)
            with pytest.raises(NoReply, match="the proxy answered 407") as caught:
                await server.post("/x", {"secret": 1})
            return b"".join(proxy.requests), caught.value

    seen, problem = asyncio.run(run())
    assert seen == b"CONNECT model.test:443 HTTP/1.1\r\nHost: model.test:443\r\n\r\n"
    assert not problem.arrived


def certificate(folder: Path, name: str) -> tuple[str, str]:
    """Write a certificate for a name that signs itself, and its key; gives their files."""
    pytest.importorskip("cryptography")
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec

    key = ec.generate_private_key(ec.SECP256R1())
    owner = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, name)])
    now = datetime.now(UTC)
    made = (
        x509.CertificateBuilder(owner, owner, key.public_key(), x509.random_serial_number())
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName(name)]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .sign(key, hashes.SHA256())
    )
    written = folder / "certificate.pem", folder / "key.pem"
    written[0].write_bytes(made.public_bytes(serialization.Encoding.PEM))
    plain = serialization.NoEncryption()
    written[1].write_bytes(key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, plain))
    return str(written[0]), str(written[1])


@pytest.mark.parametrize(("name", "trusted"), [("model.test", True), ("other.test", True), ("model.test", False)])
def test_only_who_is_meant_and_trusted_gets_a_request_through_a_tunnel(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, name: str, trusted: bool
) -> None:
    file, key = certificate(tmp_path, name)
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(file, key)
    client = ssl.create_default_context(cafile=file if trusted else None)
    monkeypatch.setattr(http_connection, "_tls", lambda: client)
    monkeypatch.delenv("no_proxy", raising=False)
    monkeypatch.delenv("NO_PROXY", raising=False)
    behind = Listener(echo, keeps=True)

    async def tunnel(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        asked = await reader.readuntil(b"\r\n\r\n")
        assert asked.startswith(b"CONNECT model.test:443 ")
        writer.write(b"HTTP/1.1 200 Connected\r\n\r\n")
        try:
            await writer.start_tls(context)
        except (OSError, ssl.SSLError):
            return
        await behind.serve(reader, writer)

    async def run() -> list[bytes | NoReply]:
        proxy = await asyncio.start_server(tunnel, "127.0.0.1", 0)
        monkeypatch.setenv("https_proxy", f"http://127.0.0.1:{proxy.sockets[0].getsockname()[1]}")
        server = JsonServer("https://model.test/v1", {}, timeout=5)
        try:
            return [(await server.post("/x", {"n": n})).body for n in range(2)]
        except NoReply as problem:
            return [problem]
        finally:
            proxy.close()

    got = asyncio.run(run())
    if name == "model.test" and trusted:
        assert (got, behind.connections) == ([b'{"n": 0}', b'{"n": 1}'], 1)
    else:
        assert isinstance(got[0], NoReply)
        assert "certificate" in str(got[0])
        assert not got[0].arrived
        assert behind.requests == []
