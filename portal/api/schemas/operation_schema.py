"""The OpenAPI description of operations: what holds for all of them is derived here, the rest is with each view."""

import re
from collections.abc import Iterator
from http import HTTPStatus
from itertools import combinations
from typing import Any

from drf_spectacular.plumbing import ResolvedComponent, get_lib_doc_excludes
from drf_spectacular.utils import Direction
from rest_framework.serializers import Serializer

from portal.api.http.edits import Update
from portal.api.http.openapi import AutoSchema
from portal.api.http.pagination import Page
from portal.api.http.problems import CONTENT_TYPE
from portal.api.http.strict import MEDIA_TYPE, MERGE_PATCH, Body
from portal.api.schemas.problem_output import ProblemType, Refusals, Schema, by_status, of_reasons

ALWAYS = (
    *("invalid", "not_authenticated", "token_invalid", "role_missing", "not_acceptable", "throttled"),
    *("busy", "cluster_store_full", "internal", "unsupported_media_type"),
)
WITH_BODY = ("malformed", "length_required", "too_large")
WITH_IF_MATCH = ("if_match_missing", "if_match_stale")
EMPTY = {"type": "string", "maxLength": 0}
NOT_NULL = {"type": ["string", "number", "array"]}
IN_PROGRESS, BLANK = "in_progress", "BlankEnum"
WITH_KEY = (IN_PROGRESS, "key_reused")
VERBS = {"GET": "retrieve", "POST": "create", "PUT": "update", "PATCH": "patch", "DELETE": "destroy"}
RETRY_AFTER = {"Retry-After": {"schema": {"type": "integer"}, "description": "Seconds.", "required": True}}
RETRY_AFTER_IN_PROGRESS = {"Retry-After": {"schema": {"type": "integer"}, "description": "Seconds, of in_progress."}}
ETAG = {"ETag": {"schema": {"type": "string"}, "description": "The version, for If-Match.", "required": True}}

LIST_ETAG = {"ETag": {"schema": {"type": "string"}, "description": "The version, for If-None-Match.", "required": True}}


class OperationSchema(AutoSchema):
    """Derives id, summary, headers and problem types of an operation.

    A view declares in ``responses`` the problem types that only it may give, by ``refusals``.
    """

    def get_operation_id(self) -> str:
        """Return the words of the path, then what is done: ``allocations_list``, ``allocations_release``."""
        words = [part.replace("-", "_") for part in self._below_prefix().split("/") if part and "{" not in part]
        is_action = self.method == "POST" and 201 not in self._answers()
        return "_".join(words if is_action else [*words, "list" if self._is_page() else VERBS[self.method]])

    def map_parsers(self) -> list[str]:
        """Return the media types of bodies. PATCH takes JSON too, as the same; clients need only one."""
        return [MERGE_PATCH if self.method == "PATCH" else MEDIA_TYPE]

    def get_summary(self) -> str | None:
        """Return the first sentence of the view's docstring."""
        first = re.split(r"\.\s", self.get_description(), maxsplit=1)[0]
        return " ".join(first.split()).removesuffix(".")

    def _map_basic_serializer(self, serializer: Any, direction: Direction) -> Schema:
        """Return the schema of an object, which says too of which fields at most one may be given. Null gives none."""
        found: Schema = super()._map_basic_serializer(serializer, direction)  # type: ignore[no-untyped-call]
        for field in found.get("properties", {}).values():
            if field.get("oneOf", [{}])[-1] == EMPTY:  # drf-spectacular adds it to patterns, which take it already
                field |= field.pop("oneOf")[0]
        pairs = [pair for names in getattr(serializer, "exclusive", ()) for pair in combinations(names, 2)]
        given = [{"required": list(pair), "properties": dict.fromkeys(pair, NOT_NULL)} for pair in pairs]
        return found | ({"not": {"anyOf": given}} if given else {})

    def _get_response_bodies(self, direction: Direction = "response") -> Schema:
        answers: Schema = super()._get_response_bodies(direction)
        for status, refused in by_status(self._problem_types()).items():
            answers[str(status)] = self._problem_response(status, refused)
        if {"GET", "PUT"} <= set(self.view.allowed_methods) and self.method in ("GET", "PUT", "PATCH"):
            answers["200"].setdefault("headers", {}).update(ETAG)
        if "304" in answers:
            for answer in (answers["200"], answers["304"]):
                answer.setdefault("headers", {}).update(LIST_ETAG)
        return answers

    def _get_response_for_code(self, serializer: Any, status_code: str, *args: Any, **kwargs: Any) -> Schema:
        if isinstance(serializer, Refusals):
            return {}  # described with the problem types that every operation has
        answer: Schema = super()._get_response_for_code(serializer, status_code, *args, **kwargs)  # type: ignore[no-untyped-call]
        return {**answer, "description": answer["description"] or HTTPStatus(int(status_code)).phrase}

    def _problem_types(self) -> set[ProblemType]:
        headers = {each["name"] for each in self._get_parameters() if each["in"] == "header"}
        reasons = [
            *ALWAYS,
            *(("not_found",) if "{" in self.path else ()),
            *(WITH_BODY if self._has_body() else ()),
            *(WITH_IF_MATCH if "If-Match" in headers else ()),
            *(WITH_KEY if "Idempotency-Key" in headers else ()),
        ]
        declared = {each for found in self._answers().values() if isinstance(found, Refusals) for each in found}
        return of_reasons(reasons) | declared

    def _problem_response(self, status: int, refused: Refusals) -> Schema:
        schemas = {each.uri: self._problem_reference(each) for each in refused}
        body: Schema = next(iter(schemas.values()))
        if len(schemas) > 1:
            mapping = {uri: schema["$ref"] for uri, schema in schemas.items()}
            body = {
                "oneOf": list(schemas.values()),
                "discriminator": {"propertyName": "type", "mapping": mapping},
            }
        return {
            "description": HTTPStatus(status).phrase,
            "content": {CONTENT_TYPE: {"schema": body}},
            **_retry_after(status, {each.reason for each in refused}),
        }

    def _problem_reference(self, problem_type: ProblemType) -> Schema:
        component = ResolvedComponent(  # type: ignore[no-untyped-call]
            name=problem_type.component,
            type=ResolvedComponent.SCHEMA,
            schema=problem_type.schema(self._reference),
            object=problem_type,
        )
        self.registry.register_on_missing(component)
        return dict(component.ref)

    def _reference(self, serializer: type[Serializer]) -> Schema:
        return dict(self.resolve_serializer(serializer, "response").ref)

    def _has_body(self) -> bool:
        return self.method in ("POST", "PUT", "PATCH") and self.get_request_serializer() is not None

    def _answers(self) -> dict[Any, Any]:
        """Return what the view declares, by status."""
        declared = self.get_response_serializers()
        return declared if isinstance(declared, dict) else {200: declared}

    def _is_page(self) -> bool:
        return isinstance(self._answers().get(200), Page)

    def _below_prefix(self) -> str:
        return re.sub(self.path_prefix, "", self.path, count=1)


def _retry_after(status: int, reasons: set[str]) -> Schema:
    """Return the header that says when to send the same again: always with 429 and 503, of 409 only while it runs."""
    if status in (429, 503):
        return {"headers": RETRY_AFTER}
    return {"headers": RETRY_AFTER_IN_PROGRESS} if IN_PROGRESS in reasons else {}


def without_description() -> list[type]:
    """Return the classes whose docstrings are for who reads the code, and describe none of their subclasses."""
    return [*get_lib_doc_excludes(), Body, Update]  # type: ignore[no-untyped-call]


def close_objects(result: Schema, **_: Any) -> Schema:
    """Refuse undeclared members in what is sent, and require all members of what is only answered, to which a later
    release may add. A hook of drf-spectacular.
    """
    components: dict[str, Schema] = result["components"]["schemas"]
    operations = [operation for path in result["paths"].values() for operation in path.values()]
    bodies = [operation["requestBody"] for operation in operations if "requestBody" in operation]
    requested = _referenced(bodies, components)
    for name, schema in components.items():
        if schema.get("type") != "object":
            continue
        if name in requested and not name.endswith("Out"):
            schema.setdefault("additionalProperties", False)
        elif not name.endswith("Problem"):
            schema["required"] = sorted(schema["properties"])
    return result


def state_blank_choices(result: Schema, **_: Any) -> Schema:
    """Have one enumeration with the empty text where drf-spectacular has a choice between an enumeration and an empty
    text, which generators cannot tell apart. A hook of drf-spectacular.
    """
    components: dict[str, Schema] = result["components"]["schemas"]
    for component in list(components.values()):
        for name, field in component.get("properties", {}).items():
            choices = [each["$ref"].rpartition("/")[2] for each in field.get("oneOf", ()) if "$ref" in each]
            if BLANK in choices:
                values = [value for each in choices for value in components[each]["enum"]]
                described = {key: value for key, value in field.items() if key != "oneOf"}
                component["properties"][name] = {**described, "type": "string", "enum": values}
    components.pop(BLANK, None)
    used = set(_names(result["paths"])) | {each for one in components.values() for each in _names(one)}
    for name in [name for name, one in components.items() if "enum" in one and name not in used]:
        del components[name]
    return result


def _referenced(part: Any, components: dict[str, Schema]) -> set[str]:
    """Return the names of all components that a part of the document refers to."""
    found: set[str] = set()
    left = list(_names(part))
    while left:
        name = left.pop()
        if name not in found:
            found.add(name)
            left.extend(_names(components[name]))
    return found


def _names(part: Any) -> Iterator[str]:
    if isinstance(part, dict):
        if isinstance(reference := part.get("$ref"), str):
            yield reference.rpartition("/")[2]
        part = list(part.values())
    if isinstance(part, list):
        for each in part:
            yield from _names(each)
