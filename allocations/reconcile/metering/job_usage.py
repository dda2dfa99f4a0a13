"""What the pods of queued Jobs use, as the mirror shows it: GPUs of a device plugin, a count for each pod, and by DRA
the devices of the claims that the scheduler makes for pods that ask by a resource."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import NAMESPACE_URL, UUID, uuid5

import structlog

from allocations.domain.backend_capabilities import COUNTING_PATHS
from allocations.domain.objects import is_on_node
from allocations.models import MirrorObject
from allocations.reconcile.metering import job_reservations as reservations
from quotas.catalog.models import Device, Kind, Node, Offering

log = structlog.get_logger(__name__)


@dataclass(frozen=True)
class Use:
    """One interval to be: what of an offering is used since when, and the object that shows it."""

    key: UUID
    slot: str
    offering: Offering
    count: int
    node: str
    since: datetime | None
    evidence: Mapping[str, str]
    device_uuid: str = ""


@dataclass(frozen=True)
class UnresolvedUse:
    """A use before its offering is known; ``what`` is a device plugin's resource, or a device."""

    key: UUID
    slot: str
    count: int
    node: str
    what: str
    since: datetime | None
    evidence: Mapping[str, str]
    is_device: bool = False


def of_pods(job: str, pods: Iterable[MirrorObject]) -> list[UnresolvedUse]:
    """What these pods use by device plugin."""
    return [
        UnresolvedUse(
            key=uuid5(NAMESPACE_URL, f"gpu-portal/usage/{job}/{pod.uid}/{resource}"),
            slot=f"{pods_of(pod.cluster_id)}{pod.uid}/{resource}",
            count=amount,
            node=pod.facts["node"],
            what=resource,
            since=_moment(pod.facts.get("scheduled_at")),
            evidence=evidence_of(pod),
        )
        for pod in pods
        if is_bound(pod.facts)
        for resource, amount in sorted(pod.facts["gpus"].items())
    ]


def of_claims(job: str, claims: Iterable[MirrorObject]) -> list[UnresolvedUse]:
    """What was given to pods by these claims."""
    found = []
    for claim in claims:
        for device in claim.facts["devices"]:
            slot = slot_of(claim.cluster_id, device)
            fact = f"gpu-portal/usage/{job}/{slot}/{claim.uid}/{claim.facts['allocated_at']}"
            found.append(
                UnresolvedUse(
                    key=uuid5(NAMESPACE_URL, fact),
                    slot=slot,
                    count=int(device.get("consumed", {}).get("shares", 1)),
                    node=device["pool"],
                    what=device["device"],
                    since=_moment(claim.facts["allocated_at"]),
                    evidence=evidence_of(claim),
                    is_device=True,
                )
            )
    return found


def resolve(cluster: str, wanted: Sequence[UnresolvedUse]) -> list[Use]:
    """Return each use with its offering in the cluster. Uses that no offering matches, or not yet, are left out."""
    by_resource = _by_resource(cluster, {one.node for one in wanted if not one.is_device})
    by_device = _by_device(cluster, {one.node for one in wanted if one.is_device})
    found = []
    for one in wanted:
        offering, device_uuid = by_resource.get((one.node, one.what)), ""
        if one.is_device:
            offering, device_uuid = by_device.get((one.node, one.what), (None, ""))
        if offering is None:
            log.warning("job.unknown_offering", node=one.node, of=one.what, **one.evidence)
            continue
        found.append(Use(one.key, one.slot, offering, one.count, one.node, one.since, one.evidence, device_uuid))
    return found


def is_bound(pod: Mapping[str, Any]) -> bool:
    """Whether the pod takes GPUs of a device plugin of its node now."""
    return is_on_node(pod) and bool(pod["gpus"]) and not pod.get("extended_claim")


def pods_of(cluster: str) -> str:
    """Return the prefix of the slots of a cluster's pods; the pod's uid follows."""
    return f"{cluster}/pod:"


def slot_of(cluster: str, device: Mapping[str, Any]) -> str:
    """The slot that a hold of the device has too."""
    parts = [cluster, device["pool"], device["device"]]
    return "/".join([*parts, device["share"]] if "share" in device else parts)


def evidence_of(row: MirrorObject) -> dict[str, str]:
    return {"kind": row.kind, "name": row.name, "uid": row.uid, "resource_version": str(row.resource_version)}


def _moment(said: str | None) -> datetime | None:
    return datetime.fromisoformat(said) if said else None


def _by_resource(cluster: str, nodes: Collection[str]) -> dict[tuple[str, str], Offering]:
    """The offering of a device plugin's resource on each node."""
    if not nodes:
        return {}
    found = Node.objects.filter(cluster=cluster, name__in=nodes, flavor__path__in=COUNTING_PATHS)
    rows = found.values_list("name", "flavor__name")
    offerings = reservations.offerings_of(cluster, {flavor for _, flavor in rows})
    return {(node, resource): row for node, of in rows for (flavor, resource), row in offerings.items() if flavor == of}


def _by_device(cluster: str, nodes: Collection[str]) -> dict[tuple[str, str], tuple[Offering, str]]:
    """The offering of each device of the nodes, and its UUID."""
    if not nodes:
        return {}
    rows = Device.objects.filter(node__cluster=cluster, node__name__in=nodes).values_list(
        "node__name", "name", "uuid", "flavor_id", "attributes__profile"
    )
    offerings = Offering.objects.filter(flavor__in={flavor for _, _, _, flavor, _ in rows}).exclude(kind=Kind.CLAIM)
    by_profile = {(one.flavor_id, one.profile): one for one in offerings.select_related("flavor")}
    return {
        (node, name): (by_profile[flavor, profile or ""], uuid)
        for node, name, uuid, flavor, profile in rows
        if (flavor, profile or "") in by_profile
    }
