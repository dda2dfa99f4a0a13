"""Django's `DATABASES` entry from a PostgreSQL URL, the only database the portal runs on."""

from typing import Any
from urllib.parse import parse_qsl, unquote, urlsplit

from django.core.exceptions import ImproperlyConfigured


def from_url(url: str) -> dict[str, Any]:
    """Return `postgresql://user:password@host:port/name?host=/socket/folder&sslmode=verify-full` as a settings dict.

    Query parameters are libpq's; `host` in the query names a socket folder, as libpq allows. PGAPPNAME in the
    environment, or `application_name` in the query, tells PostgreSQL which process a connection is of.
    """
    parts = urlsplit(url)
    if parts.scheme not in {"postgres", "postgresql"}:
        raise ImproperlyConfigured("DATABASE_URL must start with postgresql://; the portal uses PostgreSQL only.")
    options: dict[str, Any] = dict(parse_qsl(parts.query))
    host = options.pop("host", None) or unquote(parts.hostname or "")
    return {
        "ENGINE": "portal.core.postgresql",
        "NAME": unquote(parts.path.lstrip("/")) or "postgres",
        "USER": unquote(parts.username or ""),
        "PASSWORD": unquote(parts.password or ""),
        "HOST": host,
        "PORT": str(parts.port or ""),
        "CONN_MAX_AGE": 600,
        "CONN_HEALTH_CHECKS": True,
        "OPTIONS": {
            "connect_timeout": 5,
            "fallback_application_name": "gpu-portal",
            "prepare_threshold": 5,  # of portal.core.prepared_statements alone: others bind their values themselves
            **options,
        },
    }
