"""The targets that workers reconcile, and their text form in the work queue and in messages.

The text must not change: rows and messages of the previous release are still there during an upgrade.
"""

from typing import NewType
from uuid import UUID

Target = NewType("Target", str)

PLATFORM = Target("platform")
INVENTORY = Target("inventory")
ADOPTION = Target("adoption")
LEASES = Target("leases")


def allocation(id_: UUID | str) -> Target:
    return Target(f"allocation:{id_}")


def project(slug: str) -> Target:
    return Target(f"project:{slug}")


def parse(target: str) -> tuple[str, str]:
    """Return the kind of a target, and the id or slug after it ("" for a target that is the only one of its kind)."""
    kind, _, key = target.partition(":")
    return kind, key
