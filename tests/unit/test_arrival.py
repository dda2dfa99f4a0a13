"""A request has arrived with its last byte, neither before nor after, however it is cut into packets."""

from itertools import pairwise

import pytest
from gunicorn import http
from gunicorn.config import Config
from hypothesis import given, settings
from hypothesis import strategies as st

from portal.server.arrival import CHUNKS, HEAD_BYTES, Arrival
from tests.support.sizes import size

MOST = 1000
TEXT = st.binary(max_size=40)


@st.composite
def requests(draw: st.DrawFn) -> tuple[bytes, bytes]:
    """Return a request and its body."""
    head = b"POST /x HTTP/1.1\r\nHost: a\r\n" + draw(st.sampled_from([b"", b"X-Y: Content-Length: 3\r\n"]))
    if draw(st.booleans()):
        head = b"\r\n" + head
    match draw(st.sampled_from(["none", "length", "chunks"])):
        case "none":
            return head + b"\r\n", b""
        case "length":
            body = draw(TEXT)
            return head + f"Content-Length: {len(body)}\r\n\r\n".encode() + body, body
    parts = draw(st.lists(TEXT.filter(bool), max_size=4))
    extension = draw(st.sampled_from([b"", b";a=b", b' ;a="b"']))
    chunks = b"".join(f"{len(part):x}".encode() + extension + b"\r\n" + part + b"\r\n" for part in parts)
    trailer = draw(st.sampled_from([b"", b"X-A: b\r\n", b"X-A: b\r\nX-C: d\r\n"]))
    return head + b"Transfer-Encoding: Chunked\r\n\r\n" + chunks + b"0\r\n" + trailer + b"\r\n", b"".join(parts)


def read_by_gunicorn(sent: bytes) -> bytes:
    return http.get_parser(Config(), iter([sent]), ("127.0.0.1", 1)).__next__().body.read()


@settings(max_examples=size(100, 2000))
@given(requests(), requests(), st.data())
def test_a_request_is_whole_with_its_last_byte_in_whatever_packets_it_comes(request_, next_, data):
    (sent, body), (following, _) = request_, next_
    cuts = sorted({0, len(sent), *data.draw(st.lists(st.integers(0, len(sent)), max_size=6))})
    arrival = Arrival(MOST)
    for begin, end in pairwise(cuts):
        assert not arrival.is_whole
        arrival.add(sent[begin:end] if end < len(sent) else sent[begin:] + following)
    assert (arrival.is_whole, arrival.is_cut, arrival.rest) == (True, False, following)
    assert read_by_gunicorn(arrival.request) == body


@settings(max_examples=size(200, 5000))
@given(requests(), st.integers(0, 200), st.binary(max_size=3))
def test_what_a_changed_request_is_read_as_ends_where_it_was_found_to_end(request_, at, change):
    sent = request_[0][:at] + change + request_[0][at + 1 :]
    arrival = Arrival(MOST)
    arrival.add(sent)
    if not arrival.is_whole or arrival.is_cut:
        return
    try:
        body = read_by_gunicorn(sent)
    except Exception:
        return  # the connection is closed
    assert read_by_gunicorn(arrival.request) == body


def arrived(*parts: bytes) -> Arrival:
    arrival = Arrival(MOST)
    for part in parts:
        arrival.add(part)
    return arrival


CHUNKED = b"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n"


@pytest.mark.parametrize(
    "sent",
    [
        b"POST / HTTP/1.1\r\nContent-Length: 1001\r\n\r\n",
        b"POST / HTTP/1.1\r\nContent-Length: 1\r\nContent-Length: 1\r\n\r\n",
        b"POST / HTTP/1.1\r\nContent-Length: -1\r\n\r\n",
        b"POST / HTTP/1.1\r\nContent-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n",
        b"POST / HTTP/1.1\r\nTransfer-Encoding: gzip\r\n\r\n",
        CHUNKED + b"0x5\r\n",
        CHUNKED + b"\r\n",
        CHUNKED + b"-1\r\n",
        CHUNKED + b"2\r\nabc",
        CHUNKED + b"fff\r\n" + b"x" * 1001,
        CHUNKED + b"1\r\nx\r\n" * (CHUNKS + 1),
        CHUNKED + b"1;" + b"x" * 9000,
        CHUNKED + b"0\r\n" + b"X: y\r\n" * 20_000,
        b"GET / HTTP/1.1\r\n" + b"X: y\r\n" * (HEAD_BYTES // 6),
    ],
)
def test_what_is_too_large_or_in_doubt_is_not_waited_for_and_nothing_behind_it_is_a_request(sent):
    arrival = arrived(sent, b"GET / HTTP/1.1\r\n\r\n")
    assert (arrival.is_whole, arrival.is_cut, arrival.rest) == (True, True, b"")


def test_who_asks_whether_to_continue_is_known_by_the_head():
    head = b"POST / HTTP/1.1\r\nContent-Length: 2\r\nExpect: 100-Continue\r\n"
    assert not arrived(head).expects_continue
    assert arrived(head, b"\r\n").expects_continue
