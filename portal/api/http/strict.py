"""Strict reading of request bodies and query parameters: exact JSON types, no unknown field, times with offset.

DRF's own fields are lenient: they take "2", 2.0 and true for a count. A wrong guess here would cost money.
"""

import json
import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from decimal import Decimal
from typing import Any, ClassVar

from rest_framework import serializers
from rest_framework.exceptions import ParseError, UnsupportedMediaType
from rest_framework.parsers import JSONParser
from rest_framework.request import Request

from portal.api.http.problems import as_problem
from portal.core import rfc3339
from portal.core.errors import Invalid, InvalidReason

MEDIA_TYPE, MERGE_PATCH = "application/json", "application/merge-patch+json"
TIMES = ("hours", "starts_at", "ends_at", "give_up_at", "give_up_after")
DECIMAL = re.compile(r"-?[0-9]+(\.[0-9]+)?")
MOST_TOLD = 20
"""Fields that are given twice of which an error tells."""
REASONS: dict[str, InvalidReason] = {"count": "count_invalid", **dict.fromkeys(TIMES, "time_invalid")}


class Parser(JSONParser):
    """A JSON parser that refuses a name that an object has twice, NaN and Infinity, and what is nested too deeply."""

    media_type = MEDIA_TYPE

    def parse(self, stream: Any, media_type: Any = None, parser_context: Any = None) -> Any:
        try:
            text = stream.read().decode()
        except UnicodeError as error:
            raise ParseError("The body is not text in UTF-8.") from error
        try:
            return json.loads(text, object_pairs_hook=_unique, parse_constant=_refuse_constant, parse_int=_whole)
        except json.JSONDecodeError as error:
            raise ParseError(f"The body is not JSON: {error.msg}, line {error.lineno} column {error.colno}.") from error
        except RecursionError as error:
            raise ParseError("The body is nested too deeply.") from error


class MergePatchParser(Parser):
    """The same for the media type of PATCH (RFC 7396 §4), which no other method has."""

    media_type = MERGE_PATCH

    def parse(self, stream: Any, media_type: Any = None, parser_context: Any = None) -> Any:
        if not parser_context or parser_context["request"].method != "PATCH":
            raise UnsupportedMediaType(MERGE_PATCH)
        return super().parse(stream, media_type, parser_context)


def _unique(pairs: Sequence[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        counts = Counter(name for name, _ in pairs)
        twice = sorted(name for name, count in counts.items() if count > 1)[:MOST_TOLD]
        raise Invalid({name: ["The body has this field more than once. Give it once."] for name in twice})
    return found


def _refuse_constant(name: str) -> None:
    raise ParseError(f"The body is not JSON: {name} is no JSON value.")


def _whole(digits: str) -> int:
    try:
        return int(digits)
    except ValueError as error:  # too many digits for Python
        raise ParseError("A number in the body has too many digits.") from error


class Text(serializers.CharField):
    """A JSON string, not trimmed."""

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(trim_whitespace=False, **kwargs)

    def to_internal_value(self, data: Any) -> str:
        if not isinstance(data, str):
            self.fail("invalid")
        return super().to_internal_value(data)


class Integer(serializers.IntegerField):
    def to_internal_value(self, data: Any) -> int:
        if not isinstance(data, int) or isinstance(data, bool):
            raise serializers.ValidationError("Give a whole number, as a JSON number.")
        return data


class Boolean(serializers.BooleanField):
    def to_internal_value(self, data: Any) -> bool:
        if not isinstance(data, bool):
            raise serializers.ValidationError("Give true or false.")
        return data


class Choice(serializers.ChoiceField):
    """One of some JSON strings."""

    def to_internal_value(self, data: Any) -> str:
        if not isinstance(data, str) or data not in self.choices:
            raise serializers.ValidationError(f"Use one of {', '.join(map(str, self.choices))}.")
        return data


class List(serializers.ListField):
    """A JSON array."""

    def __init__(self, **kwargs: Any) -> None:
        messages = {"not_a_list": "Give a JSON array.", "empty": "Give at least one."}
        super().__init__(error_messages={**messages, **kwargs.pop("error_messages", {})}, **kwargs)

    def to_internal_value(self, data: Any) -> list[Any]:
        """Read the array; one that is too long is refused before its elements are read."""
        if self.max_length is not None and isinstance(data, list) and len(data) > self.max_length:
            raise serializers.ValidationError([f"Give at most {self.max_length}."])
        return list(super().to_internal_value(data))


class Table(serializers.DictField):
    """A JSON object with names of the caller's choice."""

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(error_messages={"not_a_dict": "Give a JSON object."}, **kwargs)


class Amount(serializers.DecimalField):
    """A decimal number, as JSON string or number; nothing else that Python would take for one."""

    def validate_empty_values(self, data: Any) -> tuple[bool, Any]:
        return serializers.Field.validate_empty_values(self, data)  # DecimalField takes "" for null

    def to_internal_value(self, data: Any) -> Decimal:
        is_number = isinstance(data, int | float) and not isinstance(data, bool)
        if not is_number and not (isinstance(data, str) and DECIMAL.fullmatch(data)):
            raise serializers.ValidationError("Give a decimal number, such as 8 or 0.5.")
        return super().to_internal_value(data)


class Quantity(serializers.CharField):
    """A quantity as Kubernetes writes it, ``"23500m"`` or ``"250Gi"``, or an integer in its base unit; ``in_unit``
    converts it.
    """

    def __init__(self, in_unit: Callable[[str], int], **kwargs: Any) -> None:
        super().__init__(trim_whitespace=False, **kwargs)
        self._in_unit = in_unit

    def to_internal_value(self, data: Any) -> int:  # type: ignore[override]  # text outside, a number inside
        if isinstance(data, bool) or not isinstance(data, str | int):
            raise serializers.ValidationError("Give an amount as Kubernetes writes it, such as 500m or 40Gi.")
        try:
            return self._in_unit(str(data))
        except ValueError as error:
            raise serializers.ValidationError(f"{error}.") from error


class Timestamp(serializers.DateTimeField):
    """An RFC 3339 time with its offset, converted to UTC."""

    def to_internal_value(self, value: Any) -> datetime:
        try:
            return rfc3339.time(value)
        except (TypeError, ValueError) as error:
            words = "Give an RFC 3339 time with its offset, as 2026-11-30T18:00:00Z."
            raise serializers.ValidationError(words) from error


class Body(serializers.Serializer):
    """A JSON object without unknown fields. ``unsupported`` names fields of the contract that are not available yet,
    each with what to use instead. ``exclusive`` tells the schema of which fields at most one may be given; whoever
    reads the body refuses two.
    """

    unsupported: ClassVar[Mapping[str, str]] = {}
    exclusive: ClassVar[Sequence[tuple[str, ...]]] = ()

    def to_internal_value(self, data: Any) -> Any:
        if not isinstance(data, Mapping):
            raise serializers.ValidationError("Give a JSON object.")
        errors: dict[str, Any] = {
            name: [self._unsupported_sentence(name)] for name in data if self._is_refused(name, data[name])
        }
        try:
            values = super().to_internal_value(data)
        except serializers.ValidationError as error:
            errors = {**error.detail, **errors} if isinstance(error.detail, dict) else errors
        if errors:
            raise serializers.ValidationError(errors)
        return values

    def _is_refused(self, name: str, value: Any) -> bool:
        return name not in self.fields and not (name in self.unsupported and value is None)

    def _unsupported_sentence(self, name: str) -> str:
        known = ", ".join(self.fields) or "none"
        return self.unsupported.get(name, f"There is no such field. Fields are: {known}.")


def read(body: type[Body], request: Request) -> dict[str, Any]:
    """Return the checked body of the request; raise Invalid with every error, by field."""
    if not isinstance(request.data, Mapping):
        raise Invalid({"body": ["Send a JSON object."]})
    given = body(data=request.data)
    try:
        given.is_valid(raise_exception=True)
    except serializers.ValidationError as error:
        errors = as_problem(error).errors
        reason: InvalidReason = next((REASONS[field] for field in errors if field in REASONS), "invalid")
        raise Invalid(errors, reason=reason) from error
    values: dict[str, Any] = given.validated_data
    return values


def query_values(request: Request, name: str) -> list[str]:
    """Return the values of a query parameter, separated by commas or repeated; raise Invalid for a NUL character."""
    given = [part for value in request.query_params.getlist(name) for part in value.split(",") if part]
    if any("\x00" in part for part in given):
        raise Invalid({name: ["It has a character that no name has."]})
    return given


def query_value(request: Request, name: str, default: str = "") -> str:
    """Return the single value of a query parameter."""
    value = request.query_params.get(name, default)
    if "\x00" in value:
        raise Invalid({name: ["It has a character that no name has."]})
    return value


def query_whole(request: Request, name: str, default: int, most: int) -> int:
    """Return the value of a query parameter from 1 to ``most``."""
    raw = request.query_params.get(name, str(default))
    if not (raw.isascii() and raw.isdecimal()) or len(raw) > len(str(most)) or not 1 <= int(raw) <= most:
        raise Invalid({name: [f"Use a whole number from 1 to {most}."]})
    return int(raw)


def query_time(request: Request, name: str) -> datetime | None:
    """Return the time in a query parameter; the + of an offset (+02:00) may arrive as a space."""
    if name not in request.query_params:
        return None
    try:
        return Timestamp().to_internal_value(query_value(request, name).replace(" ", "+"))
    except serializers.ValidationError as error:
        raise Invalid({name: [str(message) for message in error.detail]}) from error


def query_flag(request: Request, name: str, default: bool) -> bool:
    """Return the value of a boolean query parameter, ``true`` or ``false``."""
    value = request.query_params.get(name, str(default)).lower()
    if value not in ("true", "false"):
        raise Invalid({name: ["Use true or false."]})
    return value == "true"
