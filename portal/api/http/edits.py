"""PUT and PATCH of what GET gives: one reading of both, for every resource that can be changed.

Either takes the whole document or a part of it; fields that are left out stay as they are. What only GET has may be
sent back as it is, and is refused if it differs. So PUT and a merge patch (RFC 7396) mean the same here: no field that
can be changed is a list or an object, except tables, in which null takes an entry away.
"""

import json
from collections.abc import Callable, Mapping
from functools import cache
from typing import Any, ClassVar

from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework import serializers
from rest_framework.renderers import JSONRenderer
from rest_framework.request import Request

from portal.api.http.strict import Body, read
from portal.core.errors import Invalid

IF_MATCH = [OpenApiParameter("If-Match", {"type": "string", "minLength": 1}, OpenApiParameter.HEADER, required=True)]
METHODS = ("PUT", "PATCH")
FIXED = "It cannot be changed here. Omit it, or send what GET gives."


class AsShown(serializers.Field):
    """A field that GET has and no request changes. Any JSON value is read."""

    def __init__(self, shown: type[serializers.Serializer], name: str) -> None:
        super().__init__(required=False)
        self.shown, self.name = shown, name

    def validate_empty_values(self, data: Any) -> tuple[bool, Any]:
        return (True, None) if data is None else super().validate_empty_values(data)

    def to_internal_value(self, data: Any) -> Any:
        return data


class Update(Body):
    """The body of PUT and PATCH: the fields that can be changed, none of them required, and the others of ``shown``,
    the answer of GET. ``observed`` are those of them that change by themselves: they may differ, and are ignored.
    """

    shown: ClassVar[type[serializers.Serializer]]
    observed: ClassVar[frozenset[str]] = frozenset()

    def get_fields(self) -> dict[str, serializers.Field]:
        fields: dict[str, serializers.Field] = super().get_fields()
        return fields | {name: AsShown(self.shown, name) for name in _names(self.shown) if name not in fields}


@cache
def _names(shown: type[serializers.Serializer]) -> tuple[str, ...]:
    return tuple(shown().fields)


def changes(body: type[Update], request: Request, shown: Mapping[str, Any]) -> dict[str, Any]:
    """Return the checked values of the request, by field, that differ from ``shown``, which is what GET gives now.

    Raises Invalid with every error, also for a read-only field that differs.
    """
    values, fields = read(body, request), body().fields
    document = json.loads(JSONRenderer().render(shown))
    fixed = {name for name, field in fields.items() if isinstance(field, AsShown)}
    differ = [name for name in fixed & values.keys() - body.observed if values[name] != document[name]]
    if differ:
        raise Invalid({name: [FIXED] for name in sorted(differ)})
    sources = {field.source: (name, field) for name, field in fields.items() if name not in fixed}
    return {
        source: value
        for source, value in values.items()
        if source in sources and value != _current(*sources[source], document)
    }


def _current(name: str, field: serializers.Field, document: Mapping[str, Any]) -> Any:
    """Return what the field would read of the document; a value that it would refuse equals none."""
    try:
        return field.run_validation(document[name])
    except serializers.ValidationError:
        return ...


def described(summary: str, body: type[Update], responses: Any) -> Callable[[Any], Any]:
    """Return a decorator that describes PUT and PATCH of a view."""

    def decorate(view: Any) -> Any:
        for method, words in zip(METHODS, (summary, f"{summary} by a merge patch"), strict=True):
            describe = extend_schema(
                methods=[method], summary=words, request=body, responses=responses, parameters=IF_MATCH
            )
            view = describe(view)
        return view

    return decorate
