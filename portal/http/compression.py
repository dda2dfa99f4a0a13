"""Compresses what the REST API answers to bearer tokens, by brotli or gzip. Static files are compressed by WhiteNoise.

Pages are not: with a session cookie another site can cause requests, and read from the length of a compressed answer
what secret it has next to a text of that site's choice (BREACH, https://breachattack.com). A token is never sent by a
browser of its own accord. Answers with a strong ETag are single rows, and stay as they are: compressed they would need
another tag (RFC 9110, section 8.8.3.3).
"""

import re
from collections.abc import Callable, Iterator
from typing import Any

import brotli
from django.http import HttpRequest, HttpResponse, StreamingHttpResponse
from django.utils.cache import patch_vary_headers
from django.utils.text import compress_sequence, compress_string

GetResponse = Callable[[HttpRequest], Any]
MIN_BYTES = 500
BROTLI_QUALITY = 4
"""Smaller than gzip in about its time; the default of 11 is meant for files that are compressed once."""
TYPES = ("application/json", "application/jsonl", "application/vnd.oai.openapi", "text/csv")
_ENCODING = re.compile(r"\s*+([\w*-]++)\s*+(?:;\s*+q\s*+=\s*+([01](?:\.\d{0,3})?)\s*+)?", re.ASCII)


def compress_for_tokens(get_response: GetResponse) -> GetResponse:
    """Compress answers of some size to requests with a bearer token that accept it."""

    def middleware(request: HttpRequest) -> Any:
        response = get_response(request)
        if _may_be_compressed(request, response):
            compress(request, response)
        return response

    return middleware


def compress(request: HttpRequest, response: HttpResponse | StreamingHttpResponse) -> None:
    """Compress an answer as the request accepts it. Only for one whose length tells nothing: without a secret, or asked
    for by token.
    """
    patch_vary_headers(response, ("Accept-Encoding",))
    if encoding := preferred(request.headers.get("Accept-Encoding", "")):
        _compress(response, encoding)


def preferred(accepted: str) -> str:
    """Return br or gzip, whichever an Accept-Encoding header wants more; "" if it accepts neither."""
    weights = {}
    for part in accepted.lower().split(","):
        if match := _ENCODING.fullmatch(part):
            weights[match[1]] = float(match[2] or 1)
    offered = {name: weights.get(name, weights.get("*", 0)) for name in ("br", "gzip")}
    best = max(offered, key=lambda name: offered[name])
    return best if offered[best] else ""


def encoded(content: bytes, encoding: str) -> bytes:
    """Return the content compressed by br or gzip, or as it is if that is ""."""
    if encoding == "br":
        return bytes(brotli.compress(content, quality=BROTLI_QUALITY))
    return compress_string(content) if encoding else content


def _may_be_compressed(request: HttpRequest, response: Any) -> bool:
    is_ours = request.path.startswith("/api/") and response.get("Content-Type", "").startswith(TYPES)
    has_token = request.headers.get("Authorization", "").lower().startswith("bearer ")
    has_strong_tag = response.get("ETag", "").startswith('"')
    if not (is_ours and has_token) or response.has_header("Content-Encoding") or has_strong_tag:
        return False
    return bool(response.streaming) or len(response.content) >= MIN_BYTES


def _compress(response: HttpResponse | StreamingHttpResponse, encoding: str) -> None:
    if isinstance(response, StreamingHttpResponse):
        parts: Any = iter(response)
        response.streaming_content = _brotli_parts(parts) if encoding == "br" else compress_sequence(parts)
        del response["Content-Length"]
    else:
        response.content = encoded(response.content, encoding)
        response["Content-Length"] = str(len(response.content))
    response["Content-Encoding"] = encoding


def _brotli_parts(parts: Iterator[bytes]) -> Iterator[bytes]:
    compressor = brotli.Compressor(quality=BROTLI_QUALITY)
    for part in parts:
        if compressed := compressor.process(part):
            yield compressed
    yield compressor.finish()
