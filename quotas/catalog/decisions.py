"""Decisions of operators about flavors and offerings that discovery found."""

from collections.abc import Mapping
from typing import Any

from django.db import transaction

from portal.core.locks import RowLock, unlocked
from portal.tenants import access
from portal.tenants.models import User
from quotas.catalog import references, services
from quotas.catalog.models import Flavor, Offering, Preset


def decide_flavor(user: User, row: Flavor, decided: Mapping[str, Any], lock: RowLock[Flavor] = unlocked) -> Flavor:
    """Change the flavor's settings. Raises Forbidden, and what `services.configure_flavor` raises."""
    access.require(user, "catalog.manage", None)
    with transaction.atomic():
        return services.configure_flavor(user.username, lock(row), decided)


def uses_of_flavor(user: User, row: Flavor) -> list[str]:
    """Return what keeps an accepted flavor from becoming a proposal again. Raises Forbidden."""
    access.require(user, "catalog.manage", None)
    return references.to_flavor(row)


def save_preset(user: User, row: Preset, changes: Mapping[str, Any], lock: RowLock[Preset] = unlocked) -> Preset:
    """Create the preset, or change it, and return it; without changes nothing is written.

    Raises Forbidden, Invalid; Refused for a name that is taken.
    """
    access.require(user, "catalog.manage", None)
    with transaction.atomic():
        row = lock(row) if row.pk else row
        if not changes:
            return row
        for name, value in changes.items():
            setattr(row, name, value)
        return services.save_preset(user.username, row)


def hide_offering(user: User, row: Offering, *, hidden: bool, lock: RowLock[Offering] = unlocked) -> Offering:
    """Hide the offering from the catalog, or show it again. Raises Forbidden."""
    access.require(user, "catalog.manage", None)
    with transaction.atomic():
        return services.hide_offering(user.username, lock(row), hidden=hidden)
