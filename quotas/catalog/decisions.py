"""Decisions of operators about flavors and offerings that discovery found."""

from collections.abc import Mapping
from typing import Any

from django.db import transaction

from portal.core.locks import RowLock, unlocked
from portal.tenants import access
from portal.tenants.models import User
from quotas.catalog import references, services
from quotas.catalog.models import Flavor, Offering


def decide_flavor(user: User, row: Flavor, decided: Mapping[str, Any], lock: RowLock[Flavor] = unlocked) -> Flavor:
    """Change the flavor's settings. Raises Forbidden, and what `services.configure_flavor` raises."""
    access.require(user, "catalog.manage", None)
    with transaction.atomic():
        return services.configure_flavor(user.username, lock(row), decided)


def uses_of_flavor(user: User, row: Flavor) -> list[str]:
    """Return what keeps an accepted flavor from becoming a proposal again. Raises Forbidden."""
    access.require(user, "catalog.manage", None)
    with transaction.atomic():
        return references.to_flavor(row)


def hide_offering(user: User, row: Offering, *, hidden: bool, lock: RowLock[Offering] = unlocked) -> Offering:
    """Hide the offering from the catalog, or show it again. Raises Forbidden."""
    access.require(user, "catalog.manage", None)
    with transaction.atomic():
        return services.hide_offering(user.username, lock(row), hidden=hidden)
