"""The filter of lists by labels."""

from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter
from rest_framework.request import Request

from allocations.domain.allocation_spec import Labels
from portal.api.http.strict import query_values
from portal.core.errors import Invalid

PARAMETER = OpenApiParameter(
    "label", OpenApiTypes.STR, description="app=train; several with commas: those with all of them."
)


def labels(request: Request) -> Labels:
    """Return the labels that the query asks for, none without the parameter; raise Invalid for what is none."""
    try:
        return Labels.from_text(",".join(query_values(request, "label")))
    except ValueError as error:
        raise Invalid({"label": ["Write key=value, several with commas, each key once."]}) from error
