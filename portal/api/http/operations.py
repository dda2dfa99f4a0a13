"""Declares the operations of the REST API: all of them have HEAD beside GET, and know their query parameters."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from typing import Any

from django.http.response import HttpResponseBase
from drf_spectacular.utils import OpenApiParameter
from rest_framework import decorators
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.status import HTTP_200_OK

from portal.api.http.openapi import page_of
from portal.api.http.strict import query_values
from portal.core.errors import Invalid

View = Callable[..., HttpResponseBase]


def api_view(methods: list[str]) -> Callable[[View], Any]:
    """Return DRF's decorator of that name, for views that also answer HEAD as GET, and refuse query parameters that
    their schema does not declare.
    """
    allowed = [*methods, "HEAD"] if "GET" in methods else methods

    def decorate(view: View) -> Any:
        @wraps(view)
        def operation(request: Request, *args: Any, **kwargs: Any) -> HttpResponseBase:
            with _head_as_get(request):
                _refuse_unknown_parameters(request)
                fields = _sparse_fields(request)
                response = view(request, *args, **kwargs)
                if fields and isinstance(response, Response) and response.status_code == HTTP_200_OK:
                    rows = response.data["results"]
                    response.data["results"] = [{name: row[name] for name in fields} for row in rows]
                return response

        return decorators.api_view(allowed)(operation)

    return decorate


@contextmanager
def _head_as_get(request: Request) -> Iterator[None]:
    """Let the view see GET; the server sends the headers of its answer alone."""
    method = request._request.method
    if method == "HEAD":
        request._request.method = "GET"
    try:
        yield
    finally:
        request._request.method = method


def is_head(request: Request) -> bool:
    """Return whether the headers of the answer are sent alone. The view sees GET."""
    return bool(request.META["REQUEST_METHOD"] == "HEAD")


def _refuse_unknown_parameters(request: Request) -> None:
    """Raise Invalid for query parameters that the operation does not have: a misspelt filter would show everything."""
    if not request.query_params:
        return
    known = query_parameters(request)
    if unknown := [name for name in request.query_params if name not in known]:
        words = f"Use {', '.join(sorted(known))}." if known else "This address takes none."
        raise Invalid({name: [f"There is no such query parameter. {words}"] for name in unknown})


def _sparse_fields(request: Request) -> list[str]:
    """Return the fields that each row should have, or none for all; raise Invalid for one that rows do not have."""
    if "fields" not in request.query_params:
        return []
    names = query_values(request, "fields")
    page: Any = page_of(schema(request).get_response_serializers())
    known = page.fields["results"].child.fields
    if unknown := [name for name in names if name not in known]:
        words = f"There is no field {', '.join(unknown)}. Fields are: {', '.join(known)}."
        raise Invalid({"fields": [words]})
    return names


def query_parameters(request: Request) -> frozenset[str]:
    """Return the names of the query parameters that the schema of the request's operation declares."""
    declared = schema(request).get_override_parameters()
    found = [each for each in declared if isinstance(each, OpenApiParameter)]
    return frozenset(each.name for each in found if each.location == OpenApiParameter.QUERY)


def schema(request: Request) -> Any:
    """Return the schema of the request's operation, as `extend_schema` declares it."""
    view: Any = request.parser_context["view"]
    found = type(view).kwargs["schema"]()  # where drf-spectacular keeps it for function views
    found.view, found.method = view, request.method
    return found
