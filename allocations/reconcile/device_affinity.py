"""Where an allocation's claims are steered: chosen before they are made, given up when the scheduler cannot follow.

The scheduler takes the first card that fits. A MIG slice is therefore asked of the card on which it does the least
harm (``allocations.capacity.device_choice``). The choice is a preference: between it and the claim somebody else may
take the card, so a holder that finds no device has its claim made again without it.
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
from allocations.domain.objects import Applied, ResolvedSpec, View
from allocations.domain.observed import Situation
from allocations.domain.phases import Phase
from allocations.models import Allocation, MirrorObject
from allocations.reconcile.mirror import MirrorStale
from portal.core.locks import advisory_lock
from quotas.catalog.models import Flavor

log = structlog.get_logger(__name__)


def settle(row: Allocation, asked: ResolvedSpec, view: View, situation: Situation) -> bool:
    """Bring the row's ``steer`` along, a DeviceAffinity; whether it changed.

    Raises MirrorStale while it cannot be known what an adopted allocation has.
    """
    if not is_steerable(row):
        return False
    affinity = _settled(row, asked, view, situation)
    steer = affinity.to_json()
    if steer == row.steer:
        return False
    log.info("steer", allocation=str(row.pk), steer=steer)
    Allocation.objects.filter(pk=row.pk).update(steer=steer)
    row.steer = steer
    return True


def is_steerable(row: Allocation) -> bool:
    """MIG slices that are cut on demand, and whatever has to share an NVLink clique."""
    flavor = row.offering.flavor
    cuts = row.offering.kind == "mig" and flavor.partitionable
    return CAPABILITIES[flavor.path].takes_affinity and (cuts or Constraints.from_json(row.constraints).same_clique)


def _settled(row: Allocation, asked: ResolvedSpec, view: View, situation: Situation) -> DeviceAffinity:
    backend = registry.backend_of(asked)
    seen = [view.get(claim) for claim in backend.claims(asked)]
    there = [claim for claim in seen if claim is not None]
    stored = DeviceAffinity.from_json(row.steer)
    if not situation.is_granted:
        return stored if there else DeviceAffinity()
    if not stored:
        if there:  # the row was lost and made again from its lease: its claims tell what it had chosen
            cards = backend.requested_cards(asked, view)
            if not asked.constraints.same_clique:
                return DeviceAffinity(cards)
            # "" where nothing is held: a start that fails is chosen anew.
            return DeviceAffinity(
                cards, flavor_devices.clique_of(row.project.cluster_id, {one.node for one in situation.occupied})
            )
        if row.recovered:
            _require_claims_seen(asked, view)
        return _chosen(row, asked)
    if (
        stored.cards is not None
        and len(there) == len(seen)
        and not situation.occupied
        and backend.finds_no_device(asked, view)
    ):
        return DeviceAffinity(clique=stored.clique, is_given_up=True)
    return stored


def _require_claims_seen(asked: ResolvedSpec, view: View) -> None:
    """An adopted allocation may hold claims that no list has shown yet; they are older than its lease's last change."""
    held = view.get(lease.ref(asked))
    revision = held.resource_version if held else 0
    for claim in registry.backend_of(asked).claims(asked):
        if not view.is_gone(Applied(claim, "", revision, "", "")):
            raise MirrorStale(f"claim {claim.name} of an adopted allocation was not looked for yet")


def _chosen(row: Allocation, asked: ResolvedSpec) -> DeviceAffinity:
    """Two at once would choose the same room, so they choose one after the other, and each counts what is under way."""
    flavor, offering, bound = row.offering.flavor, row.offering, asked.constraints
    with advisory_lock("steer", flavor.name):
        found = flavor_devices.of([flavor], cliques=bound.same_clique)[flavor.pk]
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
        Allocation.objects.filter(pk=row.pk).update(steer=wanted.to_json())
    return wanted


def _with_pending(row: Allocation, flavor: Flavor, found: FlavorDevices) -> FlavorDevices:
    """The cards as they will be once the claims that are steered to them, and have nothing yet, are allocated."""
    others = Allocation.objects.filter(
        offering__flavor=flavor, phase__in=(Phase.QUEUED, Phase.STARTING), desired=Allocation.Desired.HELD
    ).filter(steer__has_key="cards")
    wanted = list(
        others.exclude(pk=row.pk)
        .order_by("created_at")
        .values_list("project__namespace", "name", "offering__profile", "steer")
    )
    claims = MirrorObject.objects.filter(
        cluster=flavor.cluster_id, kind="ResourceClaim", allocation__in=[name for _, name, _, _ in wanted]
    )
    there = set(claims.exclude(facts__devices=[]).values_list("namespace", "allocation"))
    pending = (
        (profile, uuid)
        for namespace, name, profile, steer in wanted
        if (namespace, name) not in there
        for uuid in DeviceAffinity.from_json(steer).cards or ()
        if uuid
    )
    return device_choice.with_pending(found, pending)
