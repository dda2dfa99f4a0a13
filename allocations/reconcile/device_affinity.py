"""Chooses the GPUs that an allocation's claims request, and drops the choice if the scheduler cannot follow it.

The scheduler takes the first GPU that fits. A claim of a MIG slice therefore requests the GPU on which the slice
leaves the most to others (``allocations.capacity.device_choice``). The choice is a preference: if another claim is
allocated the GPU first, so that the holder pod finds no device, the claim is created again without it; of many slices
with another choice, since the scheduler would try them in every order on each node that has a few too few.
"""

from dataclasses import replace

import structlog

from allocations.capacity import device_choice, flavor_devices
from allocations.capacity.packing import FlavorDevices
from allocations.cluster.backends import registry
from allocations.cluster.manifests import lease
from allocations.domain.allocation_spec import Constraints
from allocations.domain.backend_capabilities import CAPABILITIES
from allocations.domain.device_affinity import GPU_UUIDS, DeviceAffinity
from allocations.domain.objects import Applied, ResolvedSpec, Snapshot
from allocations.domain.observed import ObservedAllocation
from allocations.domain.phases import Phase
from allocations.models import Allocation, MirrorObject
from allocations.reconcile import claim_search
from allocations.reconcile.mirror import MirrorStale
from portal.core.locks import advisory_lock
from quotas.catalog.models import Flavor

log = structlog.get_logger(__name__)


def update_affinity(row: Allocation, spec: ResolvedSpec, snapshot: Snapshot, state: ObservedAllocation) -> bool:
    """Update the row's ``device_affinity``; return whether it changed.

    Raises MirrorStale while it is unknown which claims an adopted allocation has.
    """
    if not supports_affinity(row):
        return False
    affinity = _next_affinity(row, spec, snapshot, state)
    stored = affinity.to_json()
    if stored == row.device_affinity:
        return False
    log.info("device_affinity", allocation=str(row.pk), **stored)
    Allocation.objects.filter(pk=row.pk).update(device_affinity=stored)
    row.device_affinity = stored
    return True


def supports_affinity(row: Allocation) -> bool:
    """Return whether the row requests MIG slices partitioned on demand, or slices of one NVLink clique."""
    flavor = row.offering.flavor
    is_partitioned = row.offering.kind == "mig" and flavor.partitionable
    return CAPABILITIES[flavor.path].takes_affinity and (
        is_partitioned or Constraints.from_json(row.constraints).same_clique
    )


def _next_affinity(
    row: Allocation, spec: ResolvedSpec, snapshot: Snapshot, state: ObservedAllocation
) -> DeviceAffinity:
    backend = registry.backend_of(spec)
    claims = [snapshot.get(claim) for claim in backend.claims(spec)]
    existing = [claim for claim in claims if claim is not None]
    stored = DeviceAffinity.from_json(row.device_affinity)
    if not state.is_granted:
        return stored if existing else DeviceAffinity()
    if not stored:
        if existing:  # the row was created again from its lease: the claims have the choice
            uuids = backend.requested_gpus(spec, snapshot)
            if not spec.constraints.same_clique:
                return DeviceAffinity(uuids)
            # "" if nothing is held: after a failed start the clique is chosen again.
            return DeviceAffinity(
                uuids, flavor_devices.clique_of(row.project.cluster_id, {one.node for one in state.occupied})
            )
        if row.recovered:
            _require_claims_seen(spec, snapshot)
        return _choose(row, spec)
    if (
        stored.gpu_uuids is not None
        and len(existing) == len(claims)
        and not state.occupied
        and backend.finds_no_device(spec, snapshot)
    ):
        if claim_search.has_many_requests(spec):
            return _choose(row, spec)
        return DeviceAffinity(clique=stored.clique, is_abandoned=True)
    return stored


def _require_claims_seen(spec: ResolvedSpec, snapshot: Snapshot) -> None:
    """Raise MirrorStale unless claims of an adopted allocation were listed after its lease last changed."""
    held = snapshot.get(lease.ref(spec))
    revision = held.resource_version if held else 0
    for claim in registry.backend_of(spec).claims(spec):
        if not snapshot.is_gone(Applied(claim, "", revision, "", "")):
            raise MirrorStale(f"claim {claim.name} of an adopted allocation has not been listed yet")


def _choose(row: Allocation, spec: ResolvedSpec) -> DeviceAffinity:
    """Choose a clique and GPUs for the row, store the choice, and return it.

    Choices for one flavor are made one at a time; each counts the chosen GPUs of claims that are not allocated yet.
    """
    flavor, offering, constraints = row.offering.flavor, row.offering, spec.constraints
    with advisory_lock("device_affinity", flavor.name):
        devices = flavor_devices.of_flavors([flavor], cliques=constraints.same_clique)[flavor.pk]
        devices = _with_pending(row, flavor, devices)
        affinity = DeviceAffinity()
        if constraints.same_clique:
            shape = flavor_devices.slice_shape(offering)
            clique = device_choice.best_clique(
                devices, shape, spec.slices, constraints.names, spread=constraints.spread
            )
            affinity = DeviceAffinity(clique=clique)
            devices = devices.of_clique(clique)
        if offering.kind == "mig" and flavor.partitionable:
            chosen = device_choice.choose_devices(
                devices, offering.profile, spec.slices, constraints.names, spread=constraints.spread
            )
            uuids = tuple(gpu.uuid for gpu in chosen) if chosen else None
            affinity = replace(affinity, gpu_uuids=uuids, is_abandoned=uuids is None)
        # Within the lock, so that the next choice sees this one.
        Allocation.objects.filter(pk=row.pk).update(device_affinity=affinity.to_json())
    return affinity


def _with_pending(row: Allocation, flavor: Flavor, devices: FlavorDevices) -> FlavorDevices:
    """Return the devices as they will be once the claims that request GPUs of them are allocated."""
    others = Allocation.objects.filter(
        offering__flavor=flavor, phase__in=(Phase.QUEUED, Phase.STARTING), desired=Allocation.Desired.HELD
    ).filter(device_affinity__has_key=GPU_UUIDS)
    rows = list(
        others.exclude(pk=row.pk)
        .order_by("created_at")
        .values_list("project__namespace", "name", "offering__profile", "device_affinity")
    )
    claims = MirrorObject.objects.filter(
        cluster=flavor.cluster_id, kind="ResourceClaim", allocation__in=[name for _, name, _, _ in rows]
    )
    allocated = set(claims.exclude(facts__devices=[]).values_list("namespace", "allocation"))
    pending = (
        (profile, uuid)
        for namespace, name, profile, stored in rows
        if (namespace, name) not in allocated
        for uuid in DeviceAffinity.from_json(stored).gpu_uuids or ()
        if uuid
    )
    return device_choice.with_pending(devices, pending)
