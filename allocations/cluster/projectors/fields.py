"""Reads the fields that objects of several kinds have: conditions, owners, times and amounts. Pure."""

import re
from collections.abc import Mapping
from typing import Any

from allocations.domain.observed_facts import Condition, Owner
from quotas.catalog import quantities

Raw = Mapping[str, Any]
REQUESTED_PREFIXES = ("nvidia.com/", "deviceclass.resource.kubernetes.io/")
"""Of resources by which containers ask for GPUs: of device plugins, and implicit ones of DeviceClasses (KEP-5004)."""
GPU_PREFIXES = (*REQUESTED_PREFIXES, "gpu-portal.io/")
MAX_MESSAGE_LENGTH = 800


def whole(amount: str | int) -> int:
    """Return a quantity in whole units: ``1k`` is 1000."""
    return int(quantities.value(str(amount)))


def iso_time(timestamp: str | None) -> str:
    """Return a timestamp of the API server in the form that Python writes; "" for "" and for null, which is how Go
    writes a time that was never set.
    """
    return (timestamp or "").replace("Z", "+00:00")


def created_at(raw: Raw) -> str:
    """Return the object's creation time; "" if it has none."""
    return iso_time(raw["metadata"].get("creationTimestamp", ""))


def conditions(raw: Raw) -> dict[str, Condition]:
    """Return the object's status conditions by type."""
    return {
        c["type"]: {
            "status": c["status"],
            "reason": c.get("reason", ""),
            "message": c.get("message", "")[:MAX_MESSAGE_LENGTH],
            "at": iso_time(c.get("lastTransitionTime", "")),
        }
        for c in raw.get("status", {}).get("conditions", ())
    }


def controller(metadata: Raw, kind: str) -> Owner | None:
    """Return the name and uid of the object's controller if it is of this kind, else None."""
    owners = metadata.get("ownerReferences", ())
    controllers = (o for o in owners if o.get("controller") and o["kind"] == kind)
    return next((Owner(name=o["name"], uid=o["uid"]) for o in controllers), None)


UID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")


def job_owner(metadata: Raw) -> Owner | None:
    """Return the object's Job; None if it has none, or one whose uid Kubernetes did not write: the ledger charges uids,
    and where no policy refuses it a tenant may write any.
    """
    owner = controller(metadata, "Job")
    return owner if owner is not None and UID.fullmatch(owner["uid"]) else None


KIND_LENGTH = 63
"""Kinds are at most as long as a DNS label; an owner reference may say anything."""


def controller_kind(metadata: Raw) -> str:
    """Return the kind of the object's controller, cut to KIND_LENGTH; "" if it has none."""
    owners = (str(owner["kind"]) for owner in metadata.get("ownerReferences", ()) if owner.get("controller"))
    return next(owners, "")[:KIND_LENGTH]
