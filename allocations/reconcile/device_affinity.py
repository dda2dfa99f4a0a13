"""Chooses the GPUs that an allocation's claims request, and drops the choice if the scheduler cannot follow it.

The scheduler takes the first GPU that fits. A claim of a MIG slice therefore requests the GPU on which the slice
leaves the most to others (``allocations.capacity.device_choice``). The choice is a preference: if another claim is
allocated the GPU first, so that the holder pod finds no device, the claim is created again without it.

Many slices of any kind request chosen GPUs, and if these are taken, others: the scheduler would try equal requests in
every order on each node that has a few too few.
"""

from collections.abc import Collection, Sequence
from dataclasses import replace

import structlog

from allocations.capacity import device_choice, flavor_devices
from allocations.capacity.devices import PhysicalGpu
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
    return CAPABILITIES[spec.path].takes_affinity and (
        _is_partitioned(row) or spec.constraints.same_clique or claim_search.has_many_requests(spec)
    )


def _is_partitioned(row: Allocation) -> bool:
    return row.offering.kind == "mig" and row.offering.flavor.partitionable


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
            return _choose(row, spec, refused=stored.gpu_uuids or ())
        return DeviceAffinity(clique=stored.clique, is_abandoned=True)
    return stored


def _require_claims_seen(spec: ResolvedSpec, snapshot: Snapshot) -> None:
    """Raise MirrorStale unless claims of an adopted allocation were listed after its lease last changed."""
    held = snapshot.get(lease.ref(spec))
    revision = held.resource_version if held else 0
    for claim in registry.backend_of(spec).claims(spec):
        if not snapshot.is_gone(Applied(claim, "", revision, "", "")):
            raise MirrorStale(f"claim {claim.name} of an adopted allocation has not been listed yet")


def _choose(row: Allocation, spec: ResolvedSpec, refused: Collection[str] = ()) -> DeviceAffinity:
    """Choose a clique and GPUs for the row, store the choice, and return it.

    Choices for one flavor are made one at a time; each counts the chosen GPUs of claims that are not allocated yet.
    GPUs on which the scheduler ``refused`` many slices are chosen again only where there are no others.
    """
    flavor, constraints, affinity = row.offering.flavor, spec.constraints, DeviceAffinity()
    with advisory_lock("device_affinity", flavor.name):
        devices = flavor_devices.of_flavors([flavor], cliques=constraints.same_clique)[flavor.pk]
        pending = _pending(row, flavor)
        if constraints.same_clique:
            clique = device_choice.best_clique(
                device_choice.with_pending(devices, pending),
                flavor_devices.slice_shape(row.offering),
                spec.slices,
                constraints.names,
                spread=constraints.spread,
            )
            affinity, devices = DeviceAffinity(clique=clique), devices.of_clique(clique)
        gpus = _gpus(row, spec, devices, pending, refused)
        uuids = tuple(gpu.uuid for gpu in gpus) if gpus else None
        affinity = replace(affinity, gpu_uuids=uuids, is_abandoned=uuids is None and _is_partitioned(row))
        # Within the lock, so that the next choice sees this one.
        Allocation.objects.filter(pk=row.pk).update(device_affinity=affinity.to_json())
    return affinity


def _gpus(
    row: Allocation,
    spec: ResolvedSpec,
    devices: FlavorDevices,
    pending: Collection[tuple[str, str]],
    refused: Collection[str],
) -> Sequence[PhysicalGpu] | None:
    """Return the GPU of each slice; None if the scheduler is to choose."""
    planned, constraints, count = device_choice.with_pending(devices, pending), spec.constraints, spec.slices
    shape, taken = flavor_devices.slice_shape(row.offering), {uuid for _, uuid in pending}

    def best() -> Sequence[PhysicalGpu] | None:
        return device_choice.choose_devices(
            planned, row.offering.profile, count, constraints.names, spread=constraints.spread
        )

    def fill(gpus: FlavorDevices, avoided: Collection[str]) -> Sequence[PhysicalGpu] | None:
        return device_choice.fill_devices(gpus, shape, count, constraints.names, avoided)

    if not claim_search.has_many_requests(spec):
        return best() if _is_partitioned(row) else None
    if refused and (others := fill(planned, {*taken, *refused})):
        return others
    return (best() if _is_partitioned(row) else fill(planned, taken)) or fill(devices, ())


def _pending(row: Allocation, flavor: Flavor) -> list[tuple[str, str]]:
    """Return profile and GPU of each slice of others whose claim requests the GPU and is not allocated yet."""
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
    return [
        (profile, uuid)
        for namespace, name, profile, stored in rows
        if (namespace, name) not in allocated
        for uuid in DeviceAffinity.from_json(stored).gpu_uuids or ()
        if uuid
    ]
