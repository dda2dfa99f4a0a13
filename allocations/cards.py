"""The cards of flavors by DRA, with what is held of them now: two queries, however many cards and claims there are.

What claims have is read from the mirror, whoever made them; so it is neither late nor blind to others' use.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import Any

from allocations.models import MirrorObject
from allocations.placing import Card, Cards, Piece, card_of
from quotas.catalog import published
from quotas.catalog.models import Device, Flavor, Offering

DRIVER = "gpu.nvidia.com"
PCIE_ROOT = "resource.kubernetes.io/pcieRoot"
CLIQUE = "nvidia.com/gpu.clique"


def piece(offering: Offering) -> Piece:
    """A slice of the offering; needs the flavor."""
    return Piece(offering.kind, offering.profile, offering.replicas)


def of(flavors: Iterable[Flavor], *, cliques: bool = False) -> dict[int, Cards]:
    """Cards by flavor id: healthy ones of usable nodes. ``cliques`` reads the nodes' too, by one query more."""
    by_id = {flavor.pk: flavor for flavor in flavors}
    taken = _taken()
    clique_of = _cliques() if cliques else {}
    rows = Device.objects.filter(
        flavor__in=list(by_id), healthy=True, present=True, node__ready=True, node__present=True, node__tainted=True
    ).values_list("flavor_id", "node__name", "name", "uuid", "attributes")
    parts: dict[tuple[int, str, str], list[tuple[str, str, Mapping[str, Any]]]] = defaultdict(list)
    for flavor, node, name, uuid, attributes in rows:
        parts[flavor, node, card_of(name)].append((name, uuid, attributes))
    found: dict[int, list[Card]] = {pk: [] for pk in by_id}
    for (flavor, node, name), devices in parts.items():
        attributes = devices[0][2]
        found[flavor].append(
            Card(
                node=node,
                name=name,
                uuid=str(attributes.get("parentUUID") or devices[0][1]),
                pcie_root=str(attributes.get(PCIE_ROOT, "")),
                clique=clique_of.get(node, ""),
                taken=tuple(sorted(taken.get((node, name), ()))),
                parts={device: str(a["profile"]) for device, _, a in devices if a.get("type") == "mig"},
            )
        )
    return {pk: Cards(cards, published.from_document(by_id[pk].geometry)) for pk, cards in found.items()}


def _taken() -> dict[tuple[str, str], list[str]]:
    """Devices that claims have, by node and card."""
    taken: dict[tuple[str, str], list[str]] = defaultdict(list)
    for devices in MirrorObject.objects.filter(kind="ResourceClaim").values_list("facts__devices", flat=True):
        for device in devices or ():
            if device["driver"] == DRIVER:
                taken[device["pool"], card_of(device["device"])].append(device["device"])
    return taken


def _cliques() -> dict[str, str]:
    nodes = MirrorObject.objects.filter(kind="Node").values_list("name", "facts__labels")
    return {name: labels[CLIQUE] for name, labels in nodes if labels and labels.get(CLIQUE)}
