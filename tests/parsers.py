"""Every parser that sees bytes of strangers: where it is, its bound, and what would make it slow.

`python -m tests.parsers --write` writes the table into `docs/evidence/parsers.md`. `tests/unit/test_parsers.py` holds
it complete, and measures how each grows.
"""

import os
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from io import BytesIO
from pathlib import Path
from typing import Any
from unittest.mock import Mock
from wsgiref.util import setup_testing_defaults

import django

from portal.http import cookies

PAGE = Path(__file__).parents[1] / "docs" / "evidence" / "parsers.md"
BEGIN, END = "<!-- parsers: begin -->", "<!-- parsers: end -->"
STRANGER, MEMBER = "anyone", "people"
HEADER, LINE, BODY = 32 * 1024, 4094, 1024 * 1024
NOW = datetime(2026, 11, 27, tzinfo=UTC)
Attack = Callable[[int], Any]
"""Returns an input of this size that is meant to be slow."""


@dataclass(frozen=True)
class Parser:
    """What is read, by which modules, of whom, up to which size, and how it is called with an attack."""

    what: str
    modules: tuple[str, ...]
    whose: str
    size: int
    bound: str
    read: Callable[[Any], object]
    attacks: tuple[Attack, ...]


def repeat(text: str, begin: str = "", end: str = "") -> Attack:
    return lambda size: begin + text * ((size - len(begin) - len(end)) // len(text)) + end


def nested(opening: str, closing: str = "", inner: str = "") -> Attack:
    return lambda size: opening * (size // 2 // len(opening)) + inner + closing * (size // 2 // max(1, len(closing)))


def request(**meta: Any) -> Any:
    from django.core.handlers.wsgi import WSGIRequest

    environ: dict[str, Any] = {"REQUEST_METHOD": "GET", "PATH_INFO": "/", **meta}
    setup_testing_defaults(environ)
    return WSGIRequest(environ)


def sent(text: str, content_type: str, path: str = "/x") -> Any:
    body = text.encode()
    meta = {"wsgi.input": BytesIO(body), "CONTENT_LENGTH": str(len(body)), "CONTENT_TYPE": content_type}
    return request(REQUEST_METHOD="POST", PATH_INFO=path, **meta)


def form(text: str) -> object:
    return sent(text, "application/x-www-form-urlencoded").POST


def multipart(text: str) -> object:
    return sent(text, "multipart/form-data; boundary=b").POST


def packets(text: str) -> object:
    from portal.server.worker import Parser as RequestParser
    from portal.server.worker import adjustments

    arrived = RequestParser(adjustments())
    for begin in range(0, len(text), 512):
        arrived.received(text[begin : begin + 512].encode())
    return arrived


def json_body(text: str) -> object:
    from portal.api.http.strict import Parser as StrictParser

    return StrictParser().parse(BytesIO(text.encode()))


def field(name: str, **options: Any) -> Callable[[str], object]:
    def read(text: str) -> object:
        from portal.api.http import strict

        return getattr(strict, name)(**options).run_validation(text)

    return read


def called(path: str) -> Callable[[Any], object]:
    """Return a function that calls the one at this path, which is imported then: Django has to be set up."""

    def read(value: Any) -> object:
        module, _, name = path.rpartition(".")
        return getattr(__import__(module, fromlist=[name]), name)(value)

    return read


def cursor(text: str) -> object:
    from portal.api.http.pagination import cursor_of

    return cursor_of(Mock(query_params={"cursor": text}), 1)


def accepted(text: str) -> object:
    from rest_framework.negotiation import DefaultContentNegotiation
    from rest_framework.request import Request

    from portal.api.views.schema import RENDERERS

    found = Request(request(HTTP_ACCEPT=text))
    return DefaultContentNegotiation().select_renderer(found, [each() for each in RENDERERS])


def host(text: str) -> object:
    return request(HTTP_HOST=text).get_host()


def window(text: str) -> object:
    from quotas.costs.windows import parse

    return parse(text, NOW)


def costs_query(text: str) -> object:
    from django.http import QueryDict

    from quotas.costs import cost_parameters

    return cost_parameters.read(QueryDict(text), NOW)


def client_address(text: str) -> object:
    from portal.http.client_address import client_address

    return client_address("127.0.0.1", text, 1)


CHUNKED = "POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n"
HEAD = "GET / HTTP/1.1\r\n"
PART = '--b\r\nContent-Disposition: form-data; name="a"\r\n'
PARSERS = (
    Parser(
        "request line, header fields and chunks",
        ("portal.server.worker",),
        *(STRANGER, BODY, "4094 bytes of line, 32 KiB of head, 4 MiB of body; 20 s"),
        packets,
        (
            repeat("x", HEAD),
            repeat("x: y\r\n", HEAD),
            repeat("a: " + "x" * 8000 + "\r\n", HEAD),
            repeat("1\r\nx\r\n", CHUNKED),
            repeat(";", CHUNKED + "1"),
            repeat("x: y\r\n", CHUNKED + "0\r\n"),
            repeat("x", "POST / HTTP/1.1\r\nContent-Length: 1048000\r\n\r\n"),
        ),
    ),
    Parser(
        "`Content-Type`",
        ("portal.http.content_type",),
        *(STRANGER, HEADER, "32 KiB of head; UTF-8 or 415"),
        called("portal.http.content_type.is_utf8"),
        (
            repeat(" ", "a/b", "x"),
            repeat("; a=b", "a/b", "("),
            repeat(";", "a/b"),
            repeat("x", 'a/b; a="'),
            repeat("a/"),
        ),
    ),
    Parser(
        "`Accept-Encoding`",
        ("portal.http.compression",),
        *(STRANGER, HEADER, "32 KiB of head"),
        called("portal.http.compression.preferred"),
        (repeat(" ", "br", "!"), repeat("br;q=0.1,"), repeat(","), repeat("a", "", "!"), repeat(" ", "br;q=1", "x")),
    ),
    Parser(
        "`Accept`",
        (),
        *(STRANGER, HEADER, "32 KiB of head"),
        accepted,
        (repeat("a/b,"), repeat("a/b;c=d,"), repeat(";a=b", "*/*"), repeat(",")),
    ),
    Parser(
        "`Host`",
        (),
        *(STRANGER, HEADER, "32 KiB of head; `ALLOWED_HOSTS`"),
        host,
        (repeat("a"), repeat("a.", "", "!"), repeat(":1"), repeat("[", "", "]")),
    ),
    Parser(
        "`X-Forwarded-For`",
        ("portal.http.client_address",),
        *(STRANGER, HEADER, "32 KiB of head, of which one entry is read"),
        client_address,
        (repeat("1,"), repeat(":"), repeat("[", "", "]"), repeat("1:", "", "1")),
    ),
    Parser(
        "`X-Request-ID`, `If-Match`, `If-None-Match`, `Idempotency-Key`",
        ("portal.http.middleware",),
        *(STRANGER, HEADER, "32 KiB of head; 64 and 255 characters are kept"),
        lambda text: (called("portal.http.middleware.ACCEPTED_ID.fullmatch"), text.split(",")),
        (repeat("a"), repeat(",")),
    ),
    Parser(
        "`Authorization`",
        ("portal.tenants.tokens",),
        *(STRANGER, HEADER, "73 characters of a token's form; no query otherwise"),
        lambda text: __import__("portal.tenants.tokens", fromlist=["FORM"]).FORM.fullmatch(text),
        (repeat("a", "gpup_0123456789ab_"), repeat("gpup_")),
    ),
    Parser(
        "cookies",
        ("portal.http.cookies",),
        *(
            STRANGER,
            HEADER,
            "32 KiB of head; those with a backslash are dropped, and others looked up or signed",
        ),
        lambda text: request(HTTP_COOKIE=cookies.plain(text)).COOKIES,
        (repeat(";"), repeat("a=b;"), repeat("\\", 'a="', '"'), repeat("=")),
    ),
    Parser(
        "query string",
        (),
        *(STRANGER, LINE, "the request line, 1000 parameters; names that are not declared are refused under /api"),
        lambda text: request(QUERY_STRING=text).GET,
        (repeat("a&"), repeat("a=b&"), repeat("%41"), repeat("+")),
    ),
    Parser(
        "path",
        (),
        *(STRANGER, LINE, "the request line"),
        called("django.urls.resolve"),
        (repeat("a/", "/"), repeat("/"), repeat("%", "/api/v1/allocations/"), repeat("a", "/api/v1/offerings/")),
    ),
    Parser(
        "forms, `application/x-www-form-urlencoded`",
        (),
        *(STRANGER, BODY, "1 MiB, 8 KiB to sign in; 1000 fields"),
        form,
        (repeat("a"), repeat("%41", "a="), repeat("a=b&"), repeat("&"), repeat("+", "a=")),
    ),
    Parser(
        "forms, `multipart/form-data`",
        (),
        *(STRANGER, BODY, "1 MiB, 8 KiB to sign in; 1000 fields, 100 files, 1024 bytes of header a part"),
        multipart,
        (
            repeat("x", PART + "\r\n"),
            repeat(PART + "\r\nx\r\n", "", "--b--\r\n"),
            repeat("--b\r\n"),
            repeat("\r\n--", PART + "\r\n"),
            repeat("-", PART + "\r\n\r\n-"),
            repeat("YQ==", PART + "Content-Transfer-Encoding: base64\r\n\r\n", "\r\n--b--\r\n"),
            repeat("\n ", PART + "Content-Transfer-Encoding: base64\r\n\r\n", "\r\n--b--\r\n"),
            repeat("x: y\r\n", PART),
            repeat("%ff", "--b\r\nContent-Disposition: form-data; name*=punycode''"),
        ),
    ),
    Parser(
        "JSON bodies",
        ("portal.api.http.strict",),
        *(MEMBER, BODY, "1 MiB, after the token; 4300 digits of a whole number, as deep as Python's stack"),
        json_body,
        (
            nested("[", "]"),
            nested('{"a":', "}", "1"),
            repeat("1"),
            repeat("1", "1."),
            repeat("9", "1e"),
            repeat("[],", "[", "1]"),
            repeat("\\u0041", '"', '"'),
            repeat('"a":1,', "{", '"b":1}'),
            lambda size: "{" + ",".join(f'"{n}":1' for n in range(size // 12)) + "}",
        ),
    ),
    Parser(
        "numbers, amounts and times in bodies and parameters",
        ("portal.core.rfc3339", "quotas.catalog.quantities", "frontend.claim_form"),
        *(MEMBER, BODY, "1000 characters of a number, 40 of an amount; a time has one form"),
        lambda text: [
            _tried(read, text) for read in (field("Amount", max_digits=9, decimal_places=3), field("Timestamp"))
        ],
        (repeat("1"), repeat("1", "0."), repeat("0", "2026-01-01T00:00:00.", "Z"), repeat("9", "1e")),
    ),
    Parser(
        "labels",
        ("portal.core.labels",),
        *(MEMBER, BODY, "16 labels of 253, 63 and 63 characters"),
        lambda text: [called(f"portal.core.labels.{name}")(text) for name in ("is_key", "is_value")],
        (repeat("a."), repeat("a", "", "!"), repeat("a-", "", "/x"), repeat("/"), repeat("a.", "", "/")),
    ),
    Parser(
        "cursors of lists",
        ("portal.api.http.pagination",),
        *(MEMBER, LINE, "the request line"),
        cursor,
        (repeat("cD0x"), repeat("cCZw", "", "cD0x"), repeat("-")),
    ),
    Parser(
        "filters of costs",
        ("quotas.costs.filter_grammar",),
        *(MEMBER, 2000, "2000 characters"),
        called("quotas.costs.filter_grammar.parse"),
        (
            nested("(", ")", "team:a"),
            repeat("+team:a", "team:a"),
            repeat("|team:a", "team:a"),
            repeat(",a", "team:a"),
            repeat(" ", "team:a", "!"),
            repeat(" ", "(team:a", "b"),
            repeat('"', "team:"),
            repeat("!"),
        ),
    ),
    Parser(
        "windows and other parameters of costs, and a saved request",
        (
            *("quotas.costs.windows", "quotas.costs.cost_parameters", "quotas.costs.saved_views", "quotas.costs.bills"),
            *("frontend.presenters.costs_address", "frontend.presenters.costs_form", "frontend.views.costs_views"),
            *("frontend.presenters.presets", "frontend.views.request_presets"),
            "frontend.views.audit",
        ),
        *(MEMBER, LINE, "the request line; a saved query has 8000 characters; 3660 days"),
        lambda text: [_tried(read, text) for read in (window, costs_query)],
        (
            repeat("1", "", "d"),
            repeat("2026-01-01,"),
            repeat("a=1&"),
            repeat("aggregate=team&"),
            repeat("T1:", "2026-01-01"),
        ),
    ),
    Parser(
        "keys of forms",
        ("frontend.form_idempotency",),
        *(MEMBER, BODY, "1 MiB; decoded only if the portal signed it"),
        called("frontend.form_idempotency.valid_key"),
        (repeat("a:"), repeat("."), repeat("a", "", ":b:c")),
    ),
    Parser(
        "addresses to go to next",
        ("frontend.views.theme",),
        *(STRANGER, BODY, "1 MiB, 8 KiB to sign in; 2048 characters of an address"),
        lambda text: __import__("django.utils.http", fromlist=["x"]).url_has_allowed_host_and_scheme(text, {"a"}),
        (repeat("/"), repeat("\\"), repeat("a:"), repeat("[")),
    ),
    Parser(
        "claims, with CEL",
        ("allocations.claims.parse", "allocations.claims.device_schema"),
        *(MEMBER, BODY, "32 requests, 14 conditions; 2 expressions of CEL of 10 KiB, which Kubernetes alone reads"),
        lambda text: [
            pattern.fullmatch(text)
            for pattern in (
                *(called_value(f"allocations.claims.parse.{name}") for name in ("_NAME", "_VALUE", "_KEY")),
                *(called_value(f"allocations.claims.device_schema.{name}") for name in ("_DOMAIN", "_IDENTIFIER")),
            )
        ],
        (repeat("a."), repeat("a-", "", "!"), repeat("a", "", "!"), repeat("a.", "", "/!")),
    ),
    Parser(
        "tables of prices",
        ("quotas.costs.price_tables",),
        *(MEMBER, BODY, "1 MiB, 5000 rows, of operators"),
        lambda text: _tried(lambda given: list(called_value("quotas.costs.price_tables._rows")(given)), text),
        (repeat(","), repeat('"'), repeat("\n"), repeat("a,b\n"), repeat('""', '"')),
    ),
    Parser(
        "JSONPath of `-o jsonpath=`",
        (),
        *(MEMBER, 0, "read by the command, on its user's machine"),
        lambda text: None,
        (),
    ),
)
READ_BY_NOBODY: Mapping[str, str] = {
    "portal.audit.grants": "the name of a role, by an administrator",
    "portal.audit.heads": "a file of the portal's own",
    "portal.api.http.idempotency": "an answer of the portal's own",
    "portal.api.http.edits": "an answer of the portal's own",
    "portal.api.schemas.operation_schema": "routes",
    "portal.core.heartbeat": "rows of the portal's own",
    "portal.server.__main__": "a setting",
    "portal.operations.backup": "a manifest of the portal's own",
    "portal.core.query_templates": "statements of the portal's own",
    "portal.database": "a setting",
    "portal.core.quotation": "text of bounded fields, to write it",
    "portal.yaml_text": "names and labels of bounded length, to write them",
    "frontend.presenters.connecting": "examples of the portal's own",
    "frontend.presenters.refusals": "refusals of the portal's own, with names of bounded length",
    **dict.fromkeys(("quotas.costs.crowded_gpus", "quotas.costs.ledger", "quotas.costs.rates"), "rows of its own"),
    "quotas.costs.public_prices": "a file of the portal's own",
    "frontend.templatetags.portal": "times in sentences of the portal's own",
    "frontend.template_loader": "templates",
    "frontend.static_storage": "style sheets",
    "frontend.base_form": "names of fields",
}
"""Modules that parse what no stranger writes, and what that is."""


def called_value(path: str) -> Any:
    """Return what is at this path."""
    module, _, name = path.rpartition(".")
    return getattr(__import__(module, fromlist=[name]), name)


def _tried(read: Callable[[Any], object], value: Any) -> object:
    try:
        return read(value)
    except Exception as error:
        return error


def table() -> str:
    """Return the table of the page."""
    rows = [f"| {each.what} | {each.whose} | {each.bound} |" for each in PARSERS]
    return "\n".join((BEGIN, "| what is read | of whom | bound |", "|---|---|---|", *rows, END))


def page() -> str:
    """Return the page with the table as it should be."""
    text = PAGE.read_text("utf-8")
    return text[: text.index(BEGIN)] + table() + text[text.index(END) + len(END) :]


if __name__ == "__main__":
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "portal.settings")
    django.setup()
    if "--write" in sys.argv:
        PAGE.write_text(page(), "utf-8")
