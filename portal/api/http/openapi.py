"""OpenAPI extensions for what drf-spectacular cannot derive."""

from drf_spectacular.extensions import OpenApiAuthenticationExtension
from drf_spectacular.openapi import AutoSchema


class BearerScheme(OpenApiAuthenticationExtension):  # type: ignore[no-untyped-call]  # the package has no types
    target_class = "portal.api.http.auth.BearerAuthentication"
    name = "token"

    def get_security_definition(self, auto_schema: AutoSchema) -> dict[str, str]:
        return {"type": "http", "scheme": "bearer", "bearerFormat": "gpup_<prefix>_<secret>"}
