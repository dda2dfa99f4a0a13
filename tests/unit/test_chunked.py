"""What `declare_length` passes on to an application, and what it refuses."""

from io import BytesIO
from typing import Any

import pytest

from portal.http.chunked import declare_length

LIMIT = 200_000


class Stream:
    """A server's input that ends by itself, and returns less than requested, as sockets do."""

    def __init__(self, body: bytes, at_most: int = 7000) -> None:
        self.body, self.at_most, self.taken = BytesIO(body), at_most, 0

    def read(self, size: int = -1) -> bytes:
        block = self.body.read(min(size, self.at_most))
        self.taken += len(block)
        return block


class Broken(Stream):
    """An input that the client aborts midway."""

    def read(self, size: int = -1) -> bytes:
        if block := super().read(size):
            return block
        raise OSError("no more data")


def ask(stream: Any, **environ: Any) -> tuple[str, dict[str, str], bytes, dict[str, Any]]:
    """Return status, headers and body of the answer, and the application's input; nothing if it was not called."""
    given: dict[str, Any] = {}
    said: list[Any] = []

    def application(seen: dict[str, Any], start_response: Any) -> list[bytes]:
        given.update(seen)
        start_response("200 OK", [])
        return [seen["wsgi.input"].read(int(seen.get("CONTENT_LENGTH") or 0))]

    sent = {"wsgi.input": stream, "wsgi.input_terminated": True, **environ}
    body = b"".join(declare_length(application, LIMIT)(sent, lambda *words: said.extend(words)))  # type: ignore[arg-type]
    return said[0], dict(said[1]), body, given


@pytest.mark.parametrize("body", [b"x", b'{"dry_run": true}', b"y" * LIMIT])
def test_a_chunked_body_is_read_whole_and_has_its_length(body):
    _, _, read, given = ask(Stream(body), HTTP_TRANSFER_ENCODING="Chunked")
    assert (read, given["CONTENT_LENGTH"]) == (body, str(len(body)))
    assert "HTTP_TRANSFER_ENCODING" not in given


def test_an_empty_chunked_body_has_length_zero():
    _, _, read, given = ask(Stream(b""), HTTP_TRANSFER_ENCODING="chunked")
    assert (read, given["CONTENT_LENGTH"]) == (b"", "0")


def test_a_body_without_length_or_coding_is_read_too():
    """As in HTTP/2."""
    assert ask(Stream(b"body"))[2] == b"body"


def test_of_a_body_above_the_limit_one_byte_more_is_read_and_declared():
    stream = Stream(b"x" * 3 * LIMIT)
    assert ask(stream, HTTP_TRANSFER_ENCODING="chunked")[3]["CONTENT_LENGTH"] == str(LIMIT + 1)
    assert stream.taken == LIMIT + 1


def test_a_body_that_breaks_off_is_400_and_the_application_is_not_asked():
    status, headers, body, given = ask(Broken(b'{"dry_run"'), HTTP_TRANSFER_ENCODING="chunked")
    assert (status, headers["Content-Type"], given) == ("400 Bad Request", "application/problem+json", {})
    assert b'"reason": "malformed"' in body


@pytest.mark.parametrize(
    "environ",
    [
        {"CONTENT_LENGTH": "4"},
        {"CONTENT_LENGTH": "0"},
        {"CONTENT_LENGTH": "4", "HTTP_TRANSFER_ENCODING": "chunked"},
        {"wsgi.input_terminated": False, "HTTP_TRANSFER_ENCODING": "chunked"},
    ],
)
def test_what_has_a_length_or_no_end_that_can_be_seen_is_passed_on_as_it_is(environ):
    stream = Stream(b"body")
    given = ask(stream, **environ)[3]
    assert given["wsgi.input"] is stream
    assert {name: given[name] for name in environ} == environ


def test_a_request_without_a_body_is_passed_on_as_it_is():
    stream = Stream(b"")
    given = ask(stream, REQUEST_METHOD="GET")[3]
    assert given == {"wsgi.input": stream, "wsgi.input_terminated": True, "REQUEST_METHOD": "GET"}


def test_a_coding_below_the_chunks_is_left_to_be_refused():
    assert ask(Stream(b"\x1f\x8b"), HTTP_TRANSFER_ENCODING="gzip, chunked")[3]["HTTP_TRANSFER_ENCODING"]
