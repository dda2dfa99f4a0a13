"""Bodies without a declared length, as `Transfer-Encoding: chunked` has them.

Django reads what CONTENT_LENGTH declares and takes a body without it for empty, so a field in a chunked body counts for
nothing. The length is therefore declared before Django sees the request. `portal.http.middleware.check_body`
refuses what is above the limit, and what a server passes on in chunks without an end that can be seen.
"""

from collections.abc import Iterable
from io import BytesIO
from typing import Any
from wsgiref.types import InputStream, StartResponse, WSGIApplication, WSGIEnvironment

from django.http import JsonResponse

from portal.core.errors import Malformed
from portal.http import content_type

BLOCK_BYTES = 64 * 1024


def declare_length(application: WSGIApplication, limit: int) -> WSGIApplication:
    """Return `application` for requests whose body always has a length.

    Reads a body without CONTENT_LENGTH where the server ends it (`wsgi.input_terminated`), one byte past `limit` at
    most: enough to be refused as too large. 400 where the chunks are broken or the body ends before its last one.
    """

    def wrapped(environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
        has_length = environ.get("CONTENT_LENGTH") or not environ.get("wsgi.input_terminated")
        if has_length or content_type.REFUSED in environ:
            return application(environ, start_response)
        try:
            body = _read(environ["wsgi.input"], limit + 1)
        except OSError:  # gunicorn's errors for broken chunks are of this class
            return _refuse(start_response)
        is_chunked = environ.get("HTTP_TRANSFER_ENCODING", "").strip().lower() == "chunked"
        if is_chunked:
            del environ["HTTP_TRANSFER_ENCODING"]
        if is_chunked or body:
            environ |= {"CONTENT_LENGTH": str(len(body)), "wsgi.input": BytesIO(body)}
        return application(environ, start_response)

    return wrapped


def _read(stream: InputStream, most: int) -> bytes:
    body = bytearray()
    while len(body) < most and (block := stream.read(min(BLOCK_BYTES, most - len(body)))):
        body += block
    return bytes(body)


def _refuse(start_response: StartResponse) -> Iterable[bytes]:
    problem = Malformed("The chunks of the body are broken, or the last one is missing.", hint="Send the body again.")
    kind, headers = "application/problem+json", {"Cache-Control": "private, no-store"}
    answer: Any = JsonResponse(problem.document(), status=problem.status, headers=headers, content_type=kind)
    start_response(f"{problem.status} {answer.reason_phrase}", list(answer.items()))
    return [answer.content]
