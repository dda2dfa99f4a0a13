"""The cards of flavors by DRA, with what is held of them now: two queries, however many cards and claims there are.

What claims have is read from the mirror, whoever made them; so it is neither late nor blind to others' use.
"""

from collections import defaultdict
from collections.abc import Iterable
from typing import NamedTuple

from django.db import connection
from django.db.models.fields.json import KT

from allocations.models import MirrorObject
from allocations.placing import Card, Cards, Piece, card_of
from quotas.catalog import published
from quotas.catalog.models import Device, Flavor, Offering

DRIVER = "gpu.nvidia.com"
PCIE_ROOT = "resource.kubernetes.io/pcieRoot"
CLIQUE = "nvidia.com/gpu.clique"
ATTRIBUTES = tuple(f"attributes__{name}" for name in ("type", "profile", "parentUUID", PCIE_ROOT))
TAKEN = """
    SELECT device ->> 'pool', device ->> 'device'
    FROM allocations_mirrorobject AS claim, jsonb_array_elements(claim.facts -> 'devices') AS device
    WHERE claim.kind = 'ResourceClaim' AND device ->> 'driver' = %(driver)s
"""


def piece(offering: Offering) -> Piece:
    """A slice of the offering; needs the flavor."""
    return Piece(offering.kind, offering.profile, offering.replicas)


def of(flavors: Iterable[Flavor], *, cliques: bool = False) -> dict[int, Cards]:
    """Cards by flavor id: healthy ones of usable nodes. ``cliques`` reads the nodes' too, by one query more."""
    by_id = {flavor.pk: flavor for flavor in flavors}
    taken = _taken()
    clique_of = _cliques() if cliques else {}
    # Of the attributes only what decides, as text: to read all of every card took longer than everything else here.
    rows = Device.objects.filter(
        flavor__in=list(by_id), healthy=True, present=True, node__ready=True, node__present=True, node__tainted=True
    ).values_list("flavor_id", "node__name", "name", "uuid", *map(KT, ATTRIBUTES))
    parts: dict[tuple[int, str, str], list[_Published]] = defaultdict(list)
    for flavor, node, *published_ in rows.order_by():
        one = _Published(*published_)
        parts[flavor, node, card_of(one.name)].append(one)
    found: dict[int, list[Card]] = {pk: [] for pk in by_id}
    for (flavor, node, name), devices in parts.items():
        first = min(devices)
        found[flavor].append(
            Card(
                node=node,
                name=name,
                uuid=first.parent_uuid or first.uuid,
                pcie_root=first.pcie_root or "",
                clique=clique_of.get(node, ""),
                taken=tuple(sorted(taken.get((node, name), ()))),
                parts={one.name: one.profile or "" for one in devices if one.type == "mig"},
            )
        )
    return {pk: Cards(cards, published.from_document(by_id[pk].geometry)) for pk, cards in found.items()}


class _Published(NamedTuple):
    """A device of a card; what it does not publish is None."""

    name: str
    uuid: str
    type: str | None
    profile: str | None
    parent_uuid: str | None
    pcie_root: str | None


def _taken() -> dict[tuple[str, str], list[str]]:
    """Devices that claims have, by node and card."""
    taken: dict[tuple[str, str], list[str]] = defaultdict(list)
    with connection.cursor() as cursor:
        cursor.execute(TAKEN, {"driver": DRIVER})
        for node, device in cursor.fetchall():
            taken[node, card_of(device)].append(device)
    return taken


def _cliques() -> dict[str, str]:
    nodes = MirrorObject.objects.filter(kind="Node").values_list("name", "facts__labels")
    return {name: labels[CLIQUE] for name, labels in nodes if labels and labels.get(CLIQUE)}
