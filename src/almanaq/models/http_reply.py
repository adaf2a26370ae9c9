"""One HTTP/1.1 reply, read from whatever pieces it comes in, within limits: a server is believed nothing."""

from __future__ import annotations

import re
import zlib
from collections.abc import Callable
from typing import Any

_STATUS = re.compile(r"HTTP/1\.([01]) ([1-9]\d\d)(?: .*)?")
_SIZE = re.compile(rb"[0-9a-fA-F]{1,15}")
_LENGTH = re.compile(r"[0-9]{1,15}")
_NAME = re.compile(r"[!#-'*+\-.^-z|~0-9A-Z]+")
_HEAD_BYTES, _LINE_BYTES = 32_768, 4_096
_EVENTS = "text/event-stream"
_NO_BODY = (204, 304)


class BadReply(Exception):
    """What came is no reply, or one that goes beyond a limit."""


class ReplyReader:
    """Reads one reply; what comes after it is left unread.

    Args:
        most: bytes of its body at most, unpacked.
        read: gets the events of a reply that is streamed as they come.
        head_only: no body follows a success, as after CONNECT.

    Attributes:
        status: 0 until the head has come.
        headers: by their names in lower case, the first of each.
        body: unpacked.
        begun: whether anything has come.
        keeps: whether the connection can take another request, once the reply is whole.
    """

    __slots__ = (
        "_between", "_chunked", "_head_only", "_held", "_left", "_most", "_read", "_trailing", "_unpack", "_whole",
        "begun", "body", "headers", "keeps", "status",
    )  # fmt: skip

    def __init__(self, most: int, read: Callable[[bytes], None] | None = None, *, head_only: bool = False) -> None:
        self._most, self._read, self._head_only = most, read, head_only
        self.status, self.headers = 0, dict[str, str]()
        self.body: bytes | bytearray = b""
        self.begun = self.keeps = self._whole = self._chunked = False
        self._held: bytes | bytearray = b""
        self._left: int | None = None
        """Bytes that are still to come of the body or of its chunk; None: until the connection ends."""
        self._between = self._trailing = False
        self._unpack: Any = None

    def feed(self, data: bytes) -> bool:
        """Take what came; says whether the reply is whole. Raises BadReply."""
        self.begun = True
        if not self.status:
            held = bytes(self._held) + data if self._held else data
            rest = self._after_head(held)
            if rest is None:
                self._held = held
                return False
            self._held, data = b"", rest
            if self._left is not None and self._left == len(data) and self._plain:
                self.body, self._left = data, 0
                return self._end()
            self.body = bytearray()
        if self._chunked:
            return self._feed_chunks(data)
        if self._left is None:
            self._take(data)
            return False
        piece = data[: self._left]
        self._left -= len(piece)
        self._take(piece)
        self.keeps = self.keeps and len(piece) == len(data)
        return self._left == 0 and self._end()

    def end(self) -> None:
        """The connection has ended. Raises BadReply where the reply is not whole by that."""
        if not self._whole and (not self.status or self._chunked or self._left is not None):
            raise BadReply("the server closed the connection" + (" in the middle of a reply" if self.begun else ""))
        self.keeps = False

    @property
    def _plain(self) -> bool:
        return self._unpack is None and self._read is None and not self._chunked

    def _end(self) -> bool:
        self._whole = True
        return True

    def _after_head(self, held: bytes) -> bytes | None:
        """Read the head; gives what has come of the body, None where the head is not whole."""
        while True:
            end = held.find(b"\r\n\r\n")
            if end > _HEAD_BYTES or (end < 0 and len(held) > _HEAD_BYTES):
                raise BadReply(f"the head of the reply is longer than {_HEAD_BYTES:,} bytes")
            if end < 0:
                if not b"HTTP/".startswith(held[:5]) and held[:5] != b"HTTP/":
                    raise BadReply(f"what came is no HTTP: {held[:40]!r}")
                return None
            status, rest = self._read_head(held[:end].decode("latin-1")), held[end + 4 :]
            if status >= 200:
                self.status = status
                self._expect_body()
                return rest
            if status == 101:
                raise BadReply("the server changes the protocol, which was not asked for")
            held = rest  # what is said on the way to a reply
            if not held:
                return None

    def _read_head(self, head: str) -> int:
        first, *lines = head.split("\r\n")
        found = _STATUS.fullmatch(first)
        if found is None:
            raise BadReply(f"what came is no HTTP: {first[:40]!r}")
        headers: dict[str, str] = {}
        for line in lines:
            name, colon, value = line.partition(":")
            if not colon or not _NAME.fullmatch(name):
                raise BadReply(f"the head of the reply holds {line[:40]!r}")
            name, value = name.lower(), value.strip(" \t")
            if name in headers and name in ("content-length", "transfer-encoding") and headers[name] != value:
                raise BadReply(f"the reply says {name} twice")
            headers.setdefault(name, value)
        self.headers = headers
        said = headers.get("connection", "").lower()
        self.keeps = "close" not in said and (found[1] == "1" or "keep-alive" in said)
        return int(found[2])

    def _expect_body(self) -> None:
        coding, length = self.headers.get("transfer-encoding"), self.headers.get("content-length")
        if self._head_only and self.status < 300:
            self._left = 0
            return
        self._unpack = _unpacking(self.headers.get("content-encoding", ""))
        if self.status != 200 or self.headers.get("content-type", "").partition(";")[0].strip().lower() != _EVENTS:
            self._read = None
        if self.status in _NO_BODY:
            self._left = 0
        elif coding is not None:
            if coding.lower() != "chunked":
                raise BadReply(f"the reply is sent as {coding[:20]!r}, which was not asked for")
            # Were the two at odds, what follows could be taken for another reply.
            self.keeps = self.keeps and length is None
            self._chunked, self._left = True, 0
        elif length is not None:
            if not _LENGTH.fullmatch(length):
                raise BadReply(f"the reply says that it is {length[:20]!r} bytes long")
            self._left = int(length)
            if self._left > self._most:
                raise self._too_long()
        else:
            self.keeps = False

    def _feed_chunks(self, data: bytes) -> bool:
        held = self._held if isinstance(self._held, bytearray) else bytearray(self._held)
        held += data
        self._held = held
        while True:
            if self._left:
                piece = bytes(held[: self._left])
                del held[: len(piece)]
                self._left -= len(piece)
                self._take(piece)
                if self._left:
                    return False
                self._between = True
            end = held.find(b"\r\n", 0, _LINE_BYTES)
            if end < 0:
                if len(held) >= _LINE_BYTES:
                    raise BadReply("the reply holds a chunk without its size")
                return False
            line = bytes(held[:end])
            del held[: end + 2]
            if self._next_line(line):
                self.keeps = self.keeps and not held
                return self._end()

    def _next_line(self, line: bytes) -> bool:
        """Read a line between chunks; says whether it is the last one of the reply."""
        if self._between:
            if line:
                raise BadReply("a chunk of the reply is longer than its size")
            self._between = False
            return False
        if self._trailing:
            self._left_for_trailers(line)
            return not line
        size = line.partition(b";")[0].strip(b" \t")
        if not _SIZE.fullmatch(size):
            raise BadReply(f"the reply holds a chunk of the size {size[:20]!r}")
        self._left = int(size, 16)
        self._trailing = self._left == 0
        return False

    def _left_for_trailers(self, line: bytes) -> None:
        self._most -= len(line)  # they are not kept, and not without end
        if self._most < 0:
            raise BadReply("the reply does not end")

    def _take(self, piece: bytes) -> None:
        assert isinstance(self.body, bytearray)
        if self._unpack is not None:
            try:
                # One byte more than may come shows that more would.
                piece = self._unpack.decompress(piece, self._most + 1 - len(self.body))
            except zlib.error as problem:
                raise BadReply(f"the reply cannot be unpacked: {problem}") from None
        self.body += piece
        if len(self.body) > self._most:
            raise self._too_long()
        if self._read is not None and piece:
            self._read(piece)

    def _too_long(self) -> BadReply:
        return BadReply(f"the reply is longer than {self._most:,} bytes")


def _unpacking(encoding: str) -> Any:
    """Give what unpacks a reply of an encoding, None for one that is not packed; raises BadReply for an unknown one."""
    named = encoding.strip().lower()
    if named in ("", "identity"):
        return None
    if named in ("gzip", "x-gzip", "deflate"):
        # 32 more than the largest window: a header of gzip or of zlib, whichever is there.
        return zlib.decompressobj(wbits=zlib.MAX_WBITS | 32)
    raise BadReply(f"the reply is packed as {named[:20]!r}, which was not asked for")
