"""Compares answers of the REST API with its OpenAPI schema.

As the outermost middleware `watch` sees every answer below /api, whichever client asked. It changes none: what differs
from the schema is added to the `differences` of the test in which it was requested, which a fixture reads. A live
server may still answer when that test has ended, and its data is gone.
"""

import copy
import gzip
import json
import re
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from threading import Condition, Lock
from typing import Any

import brotli
from django.http import HttpRequest
from django.http.response import HttpResponseBase
from django.urls import Resolver404, resolve
from drf_spectacular.generators import SchemaGenerator
from drf_spectacular.renderers import OpenApiJsonRenderer
from jsonschema import Draft202012Validator, FormatChecker
from referencing import Registry
from referencing.jsonschema import DRAFT202012

URN = "urn:gpu-portal:openapi"
PROBLEM = "application/problem+json"
Schema = dict[str, Any]
DECOMPRESS: dict[str, Callable[[bytes], bytes]] = {"": bytes, "br": brotli.decompress, "gzip": gzip.decompress}
differences: list[str] = []
_answering: list[HttpRequest] = []
_changed = Condition()
_making = Lock()
PATIENCE_S = 60
FORMATS = FormatChecker(Draft202012Validator.FORMAT_CHECKER.checkers)


def document() -> Schema:
    """Return the schema as it is served. Made by one thread: drf-spectacular's extensions are loaded meanwhile."""
    with _making:
        return _document()


@cache
def _document() -> Schema:
    generated = SchemaGenerator().get_schema(request=None, public=True)
    found: Schema = json.loads(OpenApiJsonRenderer().render(generated))
    return found


@cache
def closed() -> Schema:
    """Return the schema without undeclared members: clients have to take them, but this release answers with none."""
    found = copy.deepcopy(document())
    for component in found["components"]["schemas"].values():
        if component.get("type") == "object":
            component.setdefault("additionalProperties", False)
    return found


def watch(get_response: Callable[[HttpRequest], HttpResponseBase]) -> Callable[[HttpRequest], HttpResponseBase]:
    def middleware(request: HttpRequest) -> HttpResponseBase:
        of_test = differences
        with _changed:
            _answering.append(request)
        try:
            response = get_response(request)
        finally:
            with _changed:
                _answering.remove(request)
                _changed.notify_all()
        if request.path_info.startswith("/api/") and request.method != "OPTIONS":
            found = differences_of(request, response)
            of_test.extend(f"{request.method} {request.path_info} {response.status_code}: {each}" for each in found)
        return response

    return middleware


def wait_until_answered() -> None:
    """Wait until no request is being answered: one that nobody waits for any more still reads the database."""
    with _changed:
        assert _changed.wait_for(lambda: not _answering, PATIENCE_S), _answering


def differences_of(request: HttpRequest, response: HttpResponseBase) -> Iterator[str]:
    """Yield how the answer differs from what the schema declares."""
    sent = b"" if response.streaming else getattr(response, "content", b"")
    body = DECOMPRESS[response.headers.get("Content-Encoding", "")](sent) if sent else sent
    media_type = response.headers.get("Content-Type", "").partition(";")[0]
    described = operation(request)
    if described is None:
        if response.status_code >= 400:
            yield from _undescribed_problem(media_type, body)
        return
    declared = described["responses"].get(str(response.status_code))
    if declared is None:
        yield f"the status is not declared; the body is {body.decode()[:300]}"
        return
    for name, header in declared.get("headers", {}).items():
        if header.get("required") and name not in response.headers:
            yield f"the header {name} is missing"
    content: Mapping[str, Any] = declared.get("content", {})
    if not content and body:
        yield f"no body is declared, and it has {body.decode()[:300]}"
    elif content and media_type not in content:
        yield f"the content type {media_type} is not declared"
    elif content and media_type.endswith("json") and request.method != "HEAD":
        yield from errors(content[media_type]["schema"], json.loads(body), is_sparse="fields" in request.GET)


def operation(request: HttpRequest) -> Schema | None:
    """Return the operation that the request asks for, or None if the schema has none."""
    try:
        route = resolve(request.path_info).route
    except Resolver404:
        return None
    return _operation("GET" if request.method == "HEAD" else str(request.method), f"/{route}")


def _operation(method: str, route: str) -> Schema | None:
    path = re.sub(r"<(?:\w+:)?(\w+)>", r"{\1}", route)
    found: Schema | None = document()["paths"].get(path, {}).get(method.lower())
    return found


def body_schema(method: str, route: str) -> Schema:
    """Return the schema of the JSON that a route takes; empty if it takes none."""
    [body] = (_operation(method, route) or {}).get("requestBody", {}).get("content", {"": {}}).values()
    return resolved(body.get("schema", {}))


def resolved(schema: Schema) -> Schema:
    """Return the component that the schema refers to, or the schema if it refers to none."""
    name = schema.get("allOf", [schema])[0].get("$ref", "").rpartition("/")[2]
    return document()["components"]["schemas"][name] if name else schema


def errors(schema: Schema, instance: Any, *, is_sparse: bool = False) -> list[str]:
    """Return the errors of the instance, each with its place. Rows of a sparse answer may lack members."""
    return [
        f"{error.json_path}: {error.message[:500]}"
        for found in _validator(json.dumps(schema)).iter_errors(instance)
        for error in (_closest(found) if found.context else [found])
        if not (is_sparse and error.validator == "required" and error.json_path.startswith("$.results["))
    ]


def _closest(error: Any) -> list[Any]:
    """Return the errors of the alternative that has fewest."""
    by_alternative: dict[Any, list[Any]] = {}
    for each in error.context:
        by_alternative.setdefault(each.schema_path[0], []).append(each)
    return min(by_alternative.values(), key=len)


def _undescribed_problem(media_type: str, body: bytes) -> Iterator[str]:
    if media_type != PROBLEM:
        yield f"an error is {media_type}, not {PROBLEM}"
        return
    try:
        problem = json.loads(body)
    except ValueError:
        yield f"the body is not JSON: {body.decode()[:300]}"
        return
    if problem.get("type") != f"urn:gpu-portal:problem:{problem.get('reason')}":
        yield f"the type {problem.get('type')} is not of the reason {problem.get('reason')}"


@cache
def _validator(schema: str) -> Any:
    """Return the validator of a schema whose references are of the document."""
    registry: Any = Registry().with_resource(URN, DRAFT202012.create_resource(closed()))
    absolute = schema.replace('"#/', f'"{URN}#/')
    return Draft202012Validator(json.loads(absolute), registry=registry, format_checker=FORMATS)


@FORMATS.checks("decimal")
def _is_decimal(value: Any) -> bool:
    return not isinstance(value, str) or re.fullmatch(r"-?[0-9]+(\.[0-9]+)?", value) is not None
