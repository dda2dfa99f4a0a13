"""Chooses the GPUs or the node of an allocation's claims, and drops the choice if the scheduler cannot follow it.

The scheduler takes the first GPU that fits. A claim of a MIG slice therefore requests the GPU on which the slice
leaves the most to others (``allocations.capacity.device_choice``). The choice is a preference: if another claim is
allocated the GPU first, so that the holder pod finds no device, the claim is created again without it.

Of many slices the scheduler would try every order on each node that has a few too few. So for these a node is chosen
where no GPUs are, and if the scheduler cannot follow the choice, another one is made.
"""

from dataclasses import replace

import structlog

from allocations.capacity import device_choice, flavor_devices
from allocations.capacity.packing import FlavorDevices
from allocations.cluster.backends import registry
from allocations.cluster.manifests import lease
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


def update_affinity(
    row: Allocation, spec: ResolvedSpec, snapshot: Snapshot, state: ObservedAllocation, *, is_blocked: bool
) -> bool:
    """Update the row's ``device_affinity``; return whether it changed.

    Nothing is chosen while the claim is kept from the scheduler (``claim_search.blocked``).

    Raises MirrorStale while it is unknown which claims an adopted allocation has.
    """
    if not supports_affinity(row, spec):
        return False
    affinity = _next_affinity(row, spec, snapshot, state, is_blocked=is_blocked)
    stored = affinity.to_json()
    if stored == row.device_affinity:
        return False
    log.info("device_affinity", allocation=str(row.pk), **stored)
    Allocation.objects.filter(pk=row.pk).update(device_affinity=stored)
    row.device_affinity = stored
    return True


def supports_affinity(row: Allocation, spec: ResolvedSpec) -> bool:
    """Return whether the row requests MIG slices partitioned on demand, slices of one NVLink clique, or many."""
    flavor = row.offering.flavor
    is_partitioned = row.offering.kind == "mig" and flavor.partitionable
    return CAPABILITIES[flavor.path].takes_affinity and (
        is_partitioned or spec.constraints.same_clique or claim_search.has_many_requests(spec)
    )


def _next_affinity(
    row: Allocation, spec: ResolvedSpec, snapshot: Snapshot, state: ObservedAllocation, *, is_blocked: bool
) -> DeviceAffinity:
    backend = registry.backend_of(spec)
    claims = [snapshot.get(claim) for claim in backend.claims(spec)]
    existing = [claim for claim in claims if claim is not None]
    stored = DeviceAffinity.from_json(row.device_affinity)
    if is_blocked or not state.is_granted:
        return stored if existing else DeviceAffinity()
    if not stored:
        if existing:  # the row was created again from its lease: the claims have the choice
            uuids, nodes = backend.requested_gpus(spec, snapshot), {one.node for one in state.occupied}
            # "" if nothing is held: after a failed start clique and node are chosen again.
            clique = flavor_devices.clique_of(row.project.cluster_id, nodes) if spec.constraints.same_clique else None
            is_on_node = row.recovered and not any(uuids) and claim_search.has_many_requests(spec)
            return DeviceAffinity(uuids, clique, min(nodes, default="") if is_on_node else "")
        if row.recovered:
            _require_claims_seen(spec, snapshot)
        return _choose(row, spec)
    if (
        (stored.node or stored.gpu_uuids is not None)
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
    """Choose a clique, GPUs and a node for the row, store the choice, and return it.

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
        if affinity.gpu_uuids is None and claim_search.has_many_requests(spec):
            affinity = _on_a_node(row, spec, affinity)
        # Within the lock, so that the next choice sees this one.
        Allocation.objects.filter(pk=row.pk).update(device_affinity=affinity.to_json())
    return affinity


def _on_a_node(row: Allocation, spec: ResolvedSpec, affinity: DeviceAffinity) -> DeviceAffinity:
    """Return the affinity with a node that has devices for all slices, and with its clique if they must be in one."""
    node = claim_search.fitting_node(row, spec)
    if not spec.constraints.same_clique:
        return replace(affinity, node=node)
    clique = flavor_devices.clique_of(row.project.cluster_id, {node})
    return replace(affinity, node=node, clique=clique) if clique else affinity


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
