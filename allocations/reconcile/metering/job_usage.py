"""Reads the use of queued Jobs' pods from the mirror.

With a device plugin that is a count of each GPU resource for each pod; with DRA, the devices of the claims that the
scheduler creates for pods that request an extended resource.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from uuid import NAMESPACE_URL, UUID, uuid5

import structlog

from allocations.cluster.kinds import Observation
from allocations.domain.backend_capabilities import COUNTING_PATHS
from allocations.domain.objects import is_on_node
from allocations.domain.observed_facts import AllocatedDevice, PodFacts, claim_facts, pod_facts
from allocations.models import MirrorObject
from allocations.reconcile.metering import job_reservations as reservations
from quotas.catalog.models import Device, Kind, Node, Offering

log = structlog.get_logger(__name__)


@dataclass(frozen=True)
class Use:
    """The use of an offering that an interval is opened for, with its start and the object that shows it."""

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
    """A use before its offering is known; ``name`` is a device plugin's resource, or a device if ``is_device``."""

    key: UUID
    slot: str
    count: int
    node: str
    name: str
    since: datetime | None
    evidence: Mapping[str, str]
    is_device: bool = False


def pod_uses(job: str, pods: Iterable[MirrorObject]) -> list[UnresolvedUse]:
    """Return the use of device plugin resources by these pods."""
    return [
        UnresolvedUse(
            key=uuid5(NAMESPACE_URL, f"gpu-portal/usage/{job}/{pod.uid}/{resource}"),
            slot=f"{pod_slot_prefix(pod.cluster_id)}{pod.uid}/{resource}",
            count=amount,
            node=pod_facts(pod)["node"],
            name=resource,
            since=_time(pod_facts(pod).get("scheduled_at")),
            evidence=evidence_of(pod),
        )
        for pod in pods
        if is_bound(pod_facts(pod))
        for resource, amount in sorted(pod_facts(pod)["gpus"].items())
    ]


def claim_uses(job: str, claims: Iterable[MirrorObject]) -> list[UnresolvedUse]:
    """Return the use of devices by these claims."""
    found = []
    for claim in claims:
        facts = claim_facts(claim)
        for device in facts["devices"]:
            slot = device_slot(claim.cluster_id, device)
            fact = f"gpu-portal/usage/{job}/{slot}/{claim.uid}/{facts['allocated_at']}"
            found.append(
                UnresolvedUse(
                    key=uuid5(NAMESPACE_URL, fact),
                    slot=slot,
                    count=int(device.get("consumed", {}).get("shares", 1)),
                    node=device["pool"],
                    name=device["device"],
                    since=_time(facts["allocated_at"]),
                    evidence=evidence_of(claim),
                    is_device=True,
                )
            )
    return found


def resolve(cluster: str, uses: Sequence[UnresolvedUse]) -> list[Use]:
    """Return each use with its offering in the cluster. Uses without an offering (yet) are left out."""
    by_resource = _by_resource(cluster, {one.node for one in uses if not one.is_device})
    by_device = _by_device(cluster, {one.node for one in uses if one.is_device})
    found = []
    for one in uses:
        offering, device_uuid = by_resource.get((one.node, one.name)), ""
        if one.is_device:
            offering, device_uuid = by_device.get((one.node, one.name), (None, ""))
        if offering is None:
            log.warning("job.unknown_offering", node=one.node, of=one.name, **one.evidence)
            continue
        found.append(Use(one.key, one.slot, offering, one.count, one.node, one.since, one.evidence, device_uuid))
    return found


def is_bound(pod: PodFacts) -> bool:
    """Return whether the pod uses GPUs of a device plugin on its node now."""
    return is_on_node(pod) and bool(pod["gpus"]) and not pod.get("extended_claim")


def pod_slot_prefix(cluster: str) -> str:
    """Return the text before a pod's uid in the slots of a cluster's pods."""
    return f"{cluster}/pod:"


def device_slot(cluster: str, device: AllocatedDevice) -> str:
    """Return the slot of a device: the same as that of a hold of the device."""
    parts = [cluster, device["pool"], device["device"]]
    return "/".join([*parts, device["share"]] if "share" in device else parts)


def evidence_of_change(new: Observation) -> dict[str, str]:
    revision = "gone" if new.gone else str(new.resource_version)
    return {"kind": new.ref.kind, "name": new.ref.name, "uid": new.uid, "resource_version": revision}


def evidence_of(row: MirrorObject) -> dict[str, str]:
    return {"kind": row.kind, "name": row.name, "uid": row.uid, "resource_version": str(row.resource_version)}


def _time(text: str | None) -> datetime | None:
    return datetime.fromisoformat(text) if text else None


def _by_resource(cluster: str, nodes: Collection[str]) -> dict[tuple[str, str], Offering]:
    """Return the offering of each device plugin resource, by node and resource."""
    if not nodes:
        return {}
    found = Node.objects.filter(cluster=cluster, name__in=nodes, flavor__path__in=COUNTING_PATHS)
    flavor_of = dict(found.values_list("name", "flavor__name"))
    offerings = reservations.offerings_of(cluster, set(flavor_of.values()))
    return {
        (node, resource): row
        for node, flavor in flavor_of.items()
        for (name, resource), row in offerings.items()
        if name == flavor
    }


def _by_device(cluster: str, nodes: Collection[str]) -> dict[tuple[str, str], tuple[Offering, str]]:
    """Return the offering and the UUID of each device, by node and device."""
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
