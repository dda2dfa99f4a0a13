"""The OpenAPI schema. It follows from the code, so each web process makes it once, and answers it like a file."""

import hashlib
from functools import cache
from typing import NamedTuple

from django.http import HttpResponse, HttpResponseNotModified
from django.urls import path
from django.utils.cache import patch_vary_headers
from drf_spectacular.generators import SchemaGenerator
from drf_spectacular.renderers import OpenApiJsonRenderer, OpenApiJsonRenderer2, OpenApiYamlRenderer
from drf_spectacular.views import SpectacularAPIView
from rest_framework.request import Request

from portal.http.compression import encoded, preferred

RENDERERS = [OpenApiJsonRenderer2, OpenApiJsonRenderer, OpenApiYamlRenderer]
"""JSON unless the Accept header asks for YAML: routes have parameters called `format`, so it chooses no renderer."""


class File(NamedTuple):
    """The schema as it is sent, and its entity tag."""

    content: bytes
    tag: str


class Schema(SpectacularAPIView):
    """Answers the schema with an entity tag, to whoever asks; 304 to who has it."""

    renderer_classes = RENDERERS

    def _get_schema_response(self, request: Request) -> HttpResponse:
        media_type = request.accepted_renderer.media_type
        encoding = preferred(request.headers.get("Accept-Encoding", ""))
        file = _file(media_type, encoding)
        response = HttpResponse(file.content, content_type=media_type)
        if file.tag in [tag.strip() for tag in request.headers.get("If-None-Match", "").split(",")]:
            response = HttpResponseNotModified()
        elif encoding:
            response["Content-Encoding"] = encoding
        response["ETag"], response["Cache-Control"] = file.tag, "public, no-cache"
        patch_vary_headers(response, ("Accept", "Accept-Encoding"))
        return response


@cache
def _file(media_type: str, encoding: str) -> File:
    content = encoded(_text(media_type), encoding)
    return File(content, f'"{hashlib.sha256(content).hexdigest()[:32]}"')


@cache
def _text(media_type: str) -> bytes:
    """Return the schema in one of the renderers' media types."""
    made = SchemaGenerator().get_schema(request=None, public=True)  # type: ignore[no-untyped-call]
    renderer = next(each for each in RENDERERS if each.media_type == media_type)
    text = renderer().render(made, renderer_context={})
    return text.encode() if isinstance(text, str) else text


def make() -> None:
    """Make the schema as clients ask for it by default, before the first one does."""
    _file(RENDERERS[0].media_type, "")


urlpatterns = [
    path("schema", Schema.as_view(), name="api-schema"),
]
