"""Tells from its bytes when an HTTP/1.1 request has arrived whole (RFC 9112 §6.3, §7.1).

Whether it is a right one is for gunicorn's parser to say, which gets the bytes afterwards. So what is in doubt counts
as arrived, and nothing behind it is taken for another request.
"""

import re
from enum import Enum, auto

HEAD_BYTES = 32 * 1024
"""Request line and header fields."""
LINE_BYTES = 8 * 1024
"""A chunk's size with its extensions."""
CHUNKS = 16 * 1024
"""Of a body: enough for one of a megabyte in chunks of 64 bytes."""
BLANK_LINE = b"\r\n\r\n"
CHUNK_SIZE = re.compile(rb"([0-9A-Fa-f]{1,16})[ \t]*(?:;|\Z)")


class _Part(Enum):
    HEAD = auto()
    BODY = auto()
    CHUNK_SIZE = auto()
    CHUNK = auto()
    TRAILER = auto()
    NOTHING = auto()


class Arrival:
    """The bytes of a request, as they arrive. A body above `most` bytes is not waited for."""

    def __init__(self, most: int) -> None:
        self.received = bytearray()
        self.expects_continue = False
        self.is_cut = False
        """Whether the connection must be closed after the answer: where the next request begins is not known."""
        self.has_head = False
        self._most = most
        self._part = _Part.HEAD
        self._at = 0  # where the part begins
        self._searched = 0
        self._needed = 0  # bytes of the body, or of the chunk with the line end behind it
        self._chunks = self._decoded = 0

    @property
    def is_whole(self) -> bool:
        """Whether nothing more has to be waited for."""
        return self._part is _Part.NOTHING

    @property
    def is_chunked(self) -> bool:
        return self._chunks > 0

    @property
    def request(self) -> bytes:
        """The bytes of the request, once it is whole."""
        return bytes(self.received[: self._at])

    @property
    def rest(self) -> bytes:
        """What arrived behind the request."""
        return b"" if self.is_cut else bytes(self.received[self._at :])

    def add(self, data: bytes) -> None:
        """Take what arrived next."""
        self.received += data
        while self._part is not _Part.NOTHING and self._advance():
            pass

    def cut(self) -> None:
        """Take no more: the request counts as arrived."""
        self._part, self._at, self.is_cut = _Part.NOTHING, len(self.received), True

    def _advance(self) -> bool:
        """Pass the present part, if it is there; return whether it is."""
        match self._part:
            case _Part.HEAD:
                return self._pass_head()
            case _Part.BODY:
                return self._pass_bytes(_Part.NOTHING)
            case _Part.CHUNK_SIZE:
                return self._pass_chunk_size()
            case _Part.CHUNK:
                return self._pass_chunk()
            case _Part.TRAILER:
                return self._pass_trailer()
        return False

    def _pass_head(self) -> bool:
        # One empty line may stand before the request line (RFC 9112 §2.2).
        begin = 2 if self.received.startswith(b"\r\n") else 0
        end = self._find(BLANK_LINE, begin, HEAD_BYTES)
        if end is None:
            return False
        head = bytes(self.received[:end])
        self._at = self._searched = end + len(BLANK_LINE)
        self.has_head = True
        self._begin_body(head)
        return True

    def _begin_body(self, head: bytes) -> None:
        found: dict[bytes, list[bytes]] = {}
        for line in head.lower().split(b"\r\n"):
            name, _, value = line.partition(b":")
            found.setdefault(name, []).append(value.strip(b" \t"))
        lengths, codings = found.get(b"content-length", []), found.get(b"transfer-encoding", [])
        self.expects_continue = found.get(b"expect") == [b"100-continue"]
        if not lengths and not codings:
            self._part = _Part.NOTHING
        elif codings == [b"chunked"] and not lengths:
            self._part, self._chunks = _Part.CHUNK_SIZE, 1
        elif len(lengths) == 1 and not codings and lengths[0].isdigit() and len(lengths[0]) < 19:
            self._needed = int(lengths[0])
            self._part = _Part.BODY
            if self._needed > self._most:
                self.cut()
        else:
            self.cut()

    def _pass_bytes(self, following: _Part) -> bool:
        if len(self.received) - self._at < self._needed:
            return False
        self._at = self._searched = self._at + self._needed
        self._part = following
        return True

    def _pass_chunk_size(self) -> bool:
        end = self._find(b"\r\n", self._at, LINE_BYTES)
        if end is None:
            return False
        line = CHUNK_SIZE.match(bytes(self.received[self._at : end]))
        self._chunks += 1
        if line is None or self._chunks > CHUNKS:
            self.cut()
            return True
        size = int(line[1], 16)
        self._at = self._searched = end + 2
        self._part, self._needed = (_Part.CHUNK, size + 2) if size else (_Part.TRAILER, 0)
        return True

    def _pass_chunk(self) -> bool:
        size = self._needed - 2
        if self._decoded + min(size, len(self.received) - self._at) > self._most:
            self.cut()
        elif self._pass_bytes(_Part.CHUNK_SIZE):
            self._decoded += size
            if self.received[self._at - 2 : self._at] != b"\r\n":
                self.cut()
        else:
            return False
        return True

    def _pass_trailer(self) -> bool:
        if self.received.startswith(b"\r\n", self._at):
            end, length = self._at, 2
        else:
            found = self._find(BLANK_LINE, self._at, HEAD_BYTES)
            if found is None:
                return False
            end, length = found, len(BLANK_LINE)
        if not self.is_cut:
            self._at, self._part = end + length, _Part.NOTHING
        return True

    def _find(self, mark: bytes, begin: int, most: int) -> int | None:
        """Return where `mark` stands after `begin`; None if it is not there yet. Cuts what is longer than `most`."""
        end = self.received.find(mark, max(begin, self._searched - len(mark) + 1))
        if end >= 0:
            return end
        self._searched = len(self.received)
        if self._searched - begin > most:
            self.cut()
        return None
