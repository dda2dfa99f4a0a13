"""Chooses the GPUs that an allocation's claims request, and drops the choice if the scheduler cannot follow it.

The scheduler takes the first card that fits. A MIG slice therefore requests the card on which it costs others least
(``allocations.capacity.device_choice``). The choice is a preference: somebody else may take the card before the claim
is allocated, so a claim whose holder finds no device is created again without it.
"""

from dataclasses import replace

import structlog

from allocations.capacity import device_choice, flavor_devices
from allocations.capacity.packing import FlavorDevices
from allocations.cluster.backends import registry
from allocations.cluster.manifests import lease
from allocations.domain.allocation_spec import Constraints
from allocations.domain.backend_capabilities import CAPABILITIES
from allocations.domain.device_affinity import DeviceAffinity
from allocations.domain.objects import Applied, ResolvedSpec, Snapshot
from allocations.domain.observed import ObservedAllocation
from allocations.domain.phases import Phase
from allocations.models import Allocation, MirrorObject
from allocations.reconcile.mirror import MirrorStale
from portal.core.locks import advisory_lock
from quotas.catalog.models import Flavor

log = structlog.get_logger(__name__)


def update_affinity(row: Allocation, asked: ResolvedSpec, snapshot: Snapshot, situation: ObservedAllocation) -> bool:
    """Update the row's ``device_affinity``; return whether it changed.

    Raises MirrorStale while it is unknown what an adopted allocation has.
    """
    if not supports_affinity(row):
        return False
    affinity = _next_affinity(row, asked, snapshot, situation)
    stored = affinity.to_json()
    if stored == row.device_affinity:
        return False
    log.info("device_affinity", allocation=str(row.pk), **stored)
    Allocation.objects.filter(pk=row.pk).update(device_affinity=stored)
    row.device_affinity = stored
    return True


def supports_affinity(row: Allocation) -> bool:
    """Return whether it has MIG slices that are divided on demand, or must share an NVLink clique."""
    flavor = row.offering.flavor
    cuts = row.offering.kind == "mig" and flavor.partitionable
    return CAPABILITIES[flavor.path].takes_affinity and (cuts or Constraints.from_json(row.constraints).same_clique)


def _next_affinity(
    row: Allocation, asked: ResolvedSpec, snapshot: Snapshot, situation: ObservedAllocation
) -> DeviceAffinity:
    backend = registry.backend_of(asked)
    seen = [snapshot.get(claim) for claim in backend.claims(asked)]
    there = [claim for claim in seen if claim is not None]
    stored = DeviceAffinity.from_json(row.device_affinity)
    if not situation.is_granted:
        return stored if there else DeviceAffinity()
    if not stored:
        if there:  # the row was lost and made again from its lease: its claims tell what it had chosen
            cards = backend.requested_cards(asked, snapshot)
            if not asked.constraints.same_clique:
                return DeviceAffinity(cards)
            # "" where nothing is held: a start that fails is chosen anew.
            return DeviceAffinity(
                cards, flavor_devices.clique_of(row.project.cluster_id, {one.node for one in situation.occupied})
            )
        if row.recovered:
            _require_claims_seen(asked, snapshot)
        return _chosen(row, asked)
    if (
        stored.cards is not None
        and len(there) == len(seen)
        and not situation.occupied
        and backend.finds_no_device(asked, snapshot)
    ):
        return DeviceAffinity(clique=stored.clique, is_given_up=True)
    return stored


def _require_claims_seen(asked: ResolvedSpec, snapshot: Snapshot) -> None:
    """An adopted allocation may hold claims that no list has shown yet; they are older than its lease's last change."""
    held = snapshot.get(lease.ref(asked))
    revision = held.resource_version if held else 0
    for claim in registry.backend_of(asked).claims(asked):
        if not snapshot.is_gone(Applied(claim, "", revision, "", "")):
            raise MirrorStale(f"claim {claim.name} of an adopted allocation was not looked for yet")


def _chosen(row: Allocation, asked: ResolvedSpec) -> DeviceAffinity:
    """Two at once would choose the same room, so they choose one after the other, and each counts what is under way."""
    flavor, offering, bound = row.offering.flavor, row.offering, asked.constraints
    with advisory_lock("device_affinity", flavor.name):
        found = flavor_devices.of_flavors([flavor], cliques=bound.same_clique)[flavor.pk]
        found = _with_pending(row, flavor, found)
        wanted = DeviceAffinity()
        if bound.same_clique:
            shape = flavor_devices.slice_shape(offering)
            clique = device_choice.best_clique(found, shape, asked.slices, bound.names, spread=bound.spread)
            wanted = DeviceAffinity(clique=clique)
            found = found.of_clique(clique)
        if offering.kind == "mig" and flavor.partitionable:
            chosen = device_choice.choose_devices(
                found, offering.profile, asked.slices, bound.names, spread=bound.spread
            )
            cards = tuple(card.uuid for card in chosen) if chosen else None
            wanted = replace(wanted, cards=cards, is_given_up=cards is None)
        # Within the lock: whoever chooses next has to see it.
        Allocation.objects.filter(pk=row.pk).update(device_affinity=wanted.to_json())
    return wanted


def _with_pending(row: Allocation, flavor: Flavor, found: FlavorDevices) -> FlavorDevices:
    """The cards as they will be once the claims that are steered to them, and have nothing yet, are allocated."""
    others = Allocation.objects.filter(
        offering__flavor=flavor, phase__in=(Phase.QUEUED, Phase.STARTING), desired=Allocation.Desired.HELD
    ).filter(device_affinity__has_key="cards")
    wanted = list(
        others.exclude(pk=row.pk)
        .order_by("created_at")
        .values_list("project__namespace", "name", "offering__profile", "device_affinity")
    )
    claims = MirrorObject.objects.filter(
        cluster=flavor.cluster_id, kind="ResourceClaim", allocation__in=[name for _, name, _, _ in wanted]
    )
    there = set(claims.exclude(facts__devices=[]).values_list("namespace", "allocation"))
    pending = (
        (profile, uuid)
        for namespace, name, profile, stored in wanted
        if (namespace, name) not in there
        for uuid in DeviceAffinity.from_json(stored).cards or ()
        if uuid
    )
    return device_choice.with_pending(found, pending)
