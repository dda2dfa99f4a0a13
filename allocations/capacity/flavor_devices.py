"""The GPUs of DRA flavors with their current use, in a fixed number of queries.

Use is read from the claims in the mirror, whoever created them, so foreign use is included.
"""

import json
from collections import defaultdict
from collections.abc import Iterable
from fractions import Fraction
from functools import cache, partial
from typing import NamedTuple

from django.db import connection
from django.db.models.fields.json import KT

from allocations.capacity.cards import Card, SliceShape, card_of
from allocations.capacity.packing import FlavorDevices
from allocations.models import MirrorObject
from quotas.catalog import geometry, published
from quotas.catalog.models import Device, Flavor, Offering
from quotas.catalog.nvidia import DRA_DRIVER

CARD = "gpu"
"""Name of a card that stands for others."""
PCIE_ROOT = "resource.kubernetes.io/pcieRoot"
CLIQUE = "nvidia.com/gpu.clique"
ATTRIBUTES = tuple(f"attributes__{name}" for name in ("type", "profile", "parentUUID", PCIE_ROOT))
TAKEN = """
    SELECT claim.cluster_id, device ->> 'pool' AS node, device ->> 'device' AS device
    FROM allocations_mirrorobject AS claim, jsonb_array_elements(claim.facts -> 'devices') AS device,
         generate_series(1, coalesce((device -> 'consumed' ->> 'shares')::int, 1))
    WHERE claim.kind = 'ResourceClaim' AND device ->> 'driver' = %(driver)s
"""
# Names without their card's, so that cards of one state are alike: gpu-3-mig-1g10gb-19-0 is 1g10gb-19-0, gpu-3 is "".
# What is published and what is taken are put together by grouping: PostgreSQL cannot guess how many devices claims
# have, and would join them row by row.
STATES = f"""
    WITH taken AS ({TAKEN}), part AS (
        SELECT device.flavor_id, node.cluster_id, node.name AS node, node.blocked_gpus, device.name AS device,
               device.attributes, false AS is_taken
        FROM catalog_device AS device JOIN catalog_node AS node ON node.id = device.node_id
        WHERE device.flavor_id = ANY(%(flavors)s) AND device.healthy AND device.present
          AND node.ready AND node.present AND node.tainted
        UNION ALL SELECT NULL, cluster_id, node, 0, device, NULL, true FROM taken
    ), card AS (
        SELECT max(flavor_id) AS flavor_id, max(blocked_gpus) AS blocked_gpus,
               CASE WHEN max(blocked_gpus) > 0 THEN node ELSE '' END AS node,
               coalesce(jsonb_object_agg(split_part(device, '-mig-', 2), attributes ->> 'profile')
                        FILTER (WHERE attributes ->> 'type' = 'mig'), '{{}}') AS parts,
               coalesce(array_agg(split_part(device, '-mig-', 2) ORDER BY device)
                        FILTER (WHERE is_taken), '{{}}') AS taken
        FROM part GROUP BY part.cluster_id, part.node, split_part(device, '-mig-', 1)
    )
    SELECT flavor_id, parts::text, taken, node, blocked_gpus, count(*)
    FROM card WHERE flavor_id IS NOT NULL GROUP BY 1, 2, 3, 4, 5
"""  # noqa: S608 (put together of constants)


def slice_shape(offering: Offering) -> SliceShape:
    """Return the shape of a slice of the offering; needs the flavor."""
    return SliceShape(offering.kind, offering.profile, offering.replicas)


def of_flavors(flavors: Iterable[Flavor], *, cliques: bool = False) -> dict[int, FlavorDevices]:
    """Return the cards by flavor id: healthy ones of usable nodes. ``cliques`` reads the nodes' too, by one query more.

    Queries run when needed: one for the number of cards in each state, two more for each card.
    """
    by_id = {flavor.pk: flavor for flavor in flavors}
    states, each = cache(lambda: _states(by_id)), cache(lambda: _each(by_id, cliques=cliques))
    return {
        pk: FlavorDevices(
            lambda pk=pk: each()[pk],  # type: ignore[misc]  # mypy does not take a default for a parameter
            published.from_document(flavor.geometry),
            states=lambda pk=pk: states()[pk],  # type: ignore[misc]
            part_of=partial(_part_of, flavor),
        )
        for pk, flavor in by_id.items()
    }


def _part_of(flavor: Flavor, profile: str) -> Fraction:
    return geometry.profile_part(flavor.product, profile, flavor.memory_mib)


def _states(flavors: Iterable[int]) -> dict[int, list[tuple[Card, int]]]:
    """By flavor id a card for each state, and how many are in it."""
    found: dict[int, list[tuple[Card, int]]] = {pk: [] for pk in flavors}
    with connection.cursor() as cursor:
        cursor.execute(STATES, {"driver": DRA_DRIVER, "flavors": list(found)})
        for flavor, parts, taken, node, blocked, count in cursor.fetchall():
            profiles = {_device(name): profile for name, profile in json.loads(parts).items()}
            there = tuple(map(_device, taken))
            found[flavor].append((Card(node, CARD, "", taken=there, parts=profiles, blocked=Fraction(blocked)), count))
    return found


def _device(part: str) -> str:
    return f"{CARD}-mig-{part}" if part else CARD


def _each(flavors: Iterable[int], *, cliques: bool) -> dict[int, list[Card]]:
    taken = _taken()
    clique_of = _cliques() if cliques else {}
    found: dict[int, list[Card]] = {pk: [] for pk in flavors}
    # Of the attributes only what decides, as text: to read all of every card took longer than everything else here.
    rows = Device.objects.filter(
        flavor__in=list(found), healthy=True, present=True, node__ready=True, node__present=True, node__tainted=True
    ).values_list(
        "flavor_id", "node__cluster", "node__name", "node__blocked_gpus", "name", "uuid", *map(KT, ATTRIBUTES)
    )
    parts: dict[tuple[int, str, str, str], list[_Published]] = defaultdict(list)
    blocked: dict[tuple[str, str], Fraction] = {}
    for flavor, cluster, node, blocked_gpus, *published_ in rows.order_by():
        one = _Published(*published_)
        blocked[cluster, node] = Fraction(blocked_gpus)
        parts[flavor, cluster, node, card_of(one.name)].append(one)
    for (flavor, cluster, node, name), devices in parts.items():
        first = min(devices)
        found[flavor].append(
            Card(
                node=node,
                name=name,
                uuid=first.parent_uuid or first.uuid,
                pcie_root=first.pcie_root or "",
                clique=clique_of.get((cluster, node), ""),
                taken=tuple(sorted(taken.get((cluster, node, name), ()))),
                parts={one.name: one.profile or "" for one in devices if one.type == "mig"},
                blocked=blocked[cluster, node],
            )
        )
    return found


class _Published(NamedTuple):
    """A device of a card; what it does not publish is None."""

    name: str
    uuid: str
    type: str | None
    profile: str | None
    parent_uuid: str | None
    pcie_root: str | None


def _taken() -> dict[tuple[str, str, str], list[str]]:
    """Return the devices that are allocated to claims, by cluster, node and card."""
    taken: dict[tuple[str, str, str], list[str]] = defaultdict(list)
    with connection.cursor() as cursor:
        cursor.execute(TAKEN, {"driver": DRA_DRIVER})
        for cluster, node, device in cursor.fetchall():
            taken[cluster, node, card_of(device)].append(device)
    return taken


def clique_of(cluster: str, nodes: Iterable[str]) -> str:
    """Return the NVLink clique of these nodes of a cluster; "" if no device publishes one."""
    known = _cliques()
    return next((known[cluster, node] for node in sorted(nodes) if (cluster, node) in known), "")


def _cliques() -> dict[tuple[str, str], str]:
    """Return the NVLink cliques by cluster and node."""
    nodes = MirrorObject.objects.filter(kind="Node").values_list("cluster", "name", "facts__labels")
    return {(cluster, name): labels[CLIQUE] for cluster, name, labels in nodes if labels and labels.get(CLIQUE)}
