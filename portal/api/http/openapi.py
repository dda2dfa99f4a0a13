"""OpenAPI extensions for what drf-spectacular cannot derive."""

from typing import Any

from drf_spectacular import openapi
from drf_spectacular.extensions import OpenApiAuthenticationExtension
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter
from rest_framework.serializers import Serializer

from portal.api.http.pagination import MAX_PAGE_SIZE, PAGE_SIZE

PAGING = [
    OpenApiParameter("cursor", OpenApiTypes.STR, description="As in next and previous."),
    OpenApiParameter(
        "limit",
        {"type": "integer", "minimum": 1, "maximum": MAX_PAGE_SIZE},
        default=PAGE_SIZE,
        description=f"Rows, at most {MAX_PAGE_SIZE}.",
    ),
    OpenApiParameter("fields", OpenApiTypes.STR, exclude=True),  # a generated client would miss the others
]


class AutoSchema(openapi.AutoSchema):
    """Declares the parameters of every list."""

    def get_override_parameters(self) -> list[Any]:
        declared = super().get_override_parameters()
        if not page_of(self.get_response_serializers()):
            return declared
        names = {each.name for each in declared if isinstance(each, OpenApiParameter)}
        return [*declared, *(each for each in PAGING if each.name not in names)]


def page_of(responses: Any) -> Serializer | None:
    """Return the page among the declared responses of an operation, or None."""
    found = responses.values() if isinstance(responses, dict) else [responses]
    return next((each for each in found if isinstance(each, Serializer) and "previous" in each.fields), None)


class BearerScheme(OpenApiAuthenticationExtension):  # type: ignore[no-untyped-call]  # the package has no types
    target_class = "portal.api.http.auth.BearerAuthentication"
    name = "token"

    def get_security_definition(self, auto_schema: openapi.AutoSchema) -> dict[str, str]:
        return {"type": "http", "scheme": "bearer", "bearerFormat": "gpup_<prefix>_<secret>"}
