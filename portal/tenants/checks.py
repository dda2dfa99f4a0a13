"""Django system checks of the settings of projects."""

from typing import Any

from django.conf import settings
from django.core.checks import CheckMessage, Warning, register

from portal.tenants.object_limits import CONFIG_KIB, stored_mib


@register()
def bound_holds_the_defaults(**_: Any) -> list[CheckMessage]:
    """Warn unless a new project's default object limits stay below the bound of a project."""
    defaults = stored_mib({}, CONFIG_KIB, is_adopted=True)
    if defaults <= settings.PROJECT_STORE_MIB:
        return []
    return [
        Warning(
            f"PROJECT_STORE_MIB is {settings.PROJECT_STORE_MIB}, and a new project may store {defaults} MiB.",
            hint=f"Set it to {defaults} or more, or lower the object limits of projects (docs/concepts/tenants.md).",
            id="tenants.W001",
        )
    ]
