"""Versions of flavors: what slices a flavor had and which of them were offered, from a time until its next version.

Past hours are rated by the version of their time, so that what is decided or discovered later changes nothing of them.
The time before a flavor's first version has that one: capacity is recorded before the catalogue knows its flavor.
"""

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from fractions import Fraction
from functools import cached_property
from typing import Any

from portal.core import clock
from quotas.catalog import layouts, published, usable_part
from quotas.catalog.dra_resources import VENDOR, pool_of
from quotas.catalog.layouts import Placement
from quotas.catalog.mig_tables import Geometry, geometry_of
from quotas.catalog.models import Flavor, FlavorVersion, Kind, Offering

ONE = Fraction(1)


@dataclass(frozen=True)
class SliceVersion:
    """What a slice of an offering was: the part of a GPU that it takes, and whether it was offered."""

    kind: str
    profile: str
    resource: str
    gpu_share: Fraction
    hidden: bool


@dataclass(frozen=True)
class PoolVersion:
    """What a pool was: the device plugin's resource, "" by DRA, and the GPUs that a unit is."""

    resource: str
    unit_gpus: Fraction


class FlavorSlices:
    """The slices of a flavor from ``since`` on, by the part of their offering's key after the flavor's name."""

    def __init__(self, since: datetime, product: str, document: Mapping[str, Any]) -> None:
        self.since = since
        self._product, self._document = product, document
        self.slices = {name: _slice(values) for name, values in document["slices"].items()}

    def resource(self, offering: str) -> str:
        """Return the device plugin's resource of an offering; "" by DRA, and of one that there was not."""
        found = self.slices.get(offering.partition("/")[2])
        return found.resource if found else ""

    def is_hidden(self, resource: str) -> bool:
        """Return whether a device plugin's resource, or "" by DRA, is not offered: all of its offerings are hidden."""
        hidden = [one.hidden for one in self.slices.values() if one.resource == resource]
        return bool(hidden) and all(hidden)

    def pool(self, offering: str) -> str:
        """Return the key after the flavor's name of the pool that an offering takes units of; "" of one that there was
        not. A custom claim takes them of the pool of whole GPUs, else of the largest slices.
        """
        found = self.slices.get(offering.partition("/")[2])
        if found and found.kind == Kind.CLAIM:
            others = [(name, one) for name, one in self.slices.items() if one.kind != Kind.CLAIM]
            found = min(others, key=lambda one: (one[1].kind != Kind.WHOLE, -one[1].gpu_share, one[0]))[1]
        return self._pool(found) if found else ""

    @cached_property
    def pools(self) -> dict[str, PoolVersion]:
        """Return the pools by their key after the flavor's name."""
        return {
            self._pool(one): PoolVersion(one.resource, ONE if self._document["partitionable"] else one.gpu_share)
            for one in self.slices.values()
            if one.kind != Kind.CLAIM
        }

    def _pool(self, one: SliceVersion) -> str:
        if self._document["partitionable"]:
            return "slices"
        if one.resource:
            return one.resource.removeprefix(VENDOR)
        return "gpu-shares" if one.kind == Kind.SHARED else pool_of(one.profile)

    def part_of_gpu(self, device: str, count: int) -> Fraction | None:
        """Return the part of its GPU that a device is: of a MIG device its profile's, of shares as many as it has;
        None for a profile that is no offering.
        """
        if label := layouts.label_of_device(device):
            return self._parts_by_label.get(label)
        shared = next((one.gpu_share for one in self.slices.values() if one.kind == Kind.SHARED), ONE)
        return min(ONE, count * shared)

    @property
    def has_fits(self) -> bool:
        """Return whether its GPUs are divided on demand, so that what is free depends on what is in use."""
        return self._geometry is not None

    def fits(self, devices: tuple[str, ...]) -> Fraction:
        """Return the most of a GPU that offered slices can take together beside these devices."""
        assert self._geometry is not None
        if not devices and "" in self._offered:
            return ONE
        occupied = self._placements(devices)
        return Fraction(0) if occupied is None else usable_part.of_gpu(self._geometry, occupied, self._offered)

    def left_of_layout(self, layout: Collection[str], devices: tuple[str, ...]) -> Fraction:
        """Return what can still be taken of a GPU that an administrator divided into the MIG devices ``layout``: those
        that are not in use, and offered.
        """
        labels = {layouts.device_label(profile): part for profile, part in self._offered.items()}
        free = set(layout) - set(devices)
        return sum((labels.get(layouts.label_of_device(name), Fraction(0)) for name in free), Fraction(0))

    def profile_to_offer(self, devices: tuple[str, ...]) -> str:
        """Return the profile that would fit beside these devices if it were offered too; "" if none would."""
        occupied = self._placements(devices)
        if self._geometry is None or occupied is None:
            return ""
        return usable_part.profile_to_offer(self._geometry, occupied, self._offered)

    def _placements(self, devices: tuple[str, ...]) -> list[Placement] | None:
        """Return the placements of MIG devices; None if the GPU or a device that is unknown is among them."""
        placements = [layouts.known_placement(self._geometry, device) for device in devices if self._geometry]
        occupied = [place for place in placements if place is not None]
        return occupied if len(occupied) == len(devices) else None

    @cached_property
    def _offered(self) -> dict[str, Fraction]:
        """Return {profile, "" for a whole GPU: part of a GPU} of what is offered."""
        kinds = {Kind.MIG, Kind.WHOLE}
        return {one.profile: one.gpu_share for one in self.slices.values() if one.kind in kinds and not one.hidden}

    @cached_property
    def _parts_by_label(self) -> dict[str, Fraction]:
        """Return the parts of a GPU that MIG devices are, by profile as written in names of devices."""
        migs = (one for one in self.slices.values() if one.kind == Kind.MIG)
        return {layouts.device_label(one.profile): one.gpu_share for one in migs}

    @cached_property
    def _geometry(self) -> Geometry | None:
        if not self._document["partitionable"]:
            return None
        known = published.from_document(self._document["geometry"])
        return known or geometry_of(self._product, self._document["memory_mib"])


class Versions:
    """The slices of flavors, by name, each in order of time."""

    def __init__(self, by_flavor: Mapping[str, list[FlavorSlices]]) -> None:
        self._by_flavor = by_flavor

    def at(self, flavor: str, moment: datetime) -> FlavorSlices:
        """Return the slices of the flavor at this time; none of a flavor that is unknown."""
        found = self._by_flavor.get(flavor)
        if not found:
            return NOTHING
        return found[max(0, bisect_right(found, moment, key=lambda one: one.since) - 1)]

    def between(
        self, flavor: str, start: datetime, end: datetime | None
    ) -> Iterator[tuple[datetime, datetime | None, FlavorSlices]]:
        """Yield the slices of the flavor in ``[start, end)``, each with its part of that time."""
        found = self._by_flavor.get(flavor, [])
        edges = [one.since for one in found[1:] if start < one.since and (end is None or one.since < end)]
        for since, until in zip([start, *edges], [*edges, end], strict=True):
            yield since, until, self.at(flavor, since)


NOTHING = FlavorSlices(datetime.min.replace(tzinfo=UTC), "", {"partitionable": False, "slices": {}})


def read(cluster: str = "") -> Versions:
    """Return the versions of the flavors of all clusters, or one; one query, and two more if a flavor has none yet."""
    flavors = Flavor.objects.filter(cluster=cluster) if cluster else Flavor.objects.all()
    rows = flavors.order_by("versions__since", "versions__pk")
    found, missing = defaultdict[str, list[FlavorSlices]](list), list[int]()
    for pk, name, product, since, document in rows.values_list(
        "pk", "name", "product", "versions__since", "versions__document"
    ):
        if since is None:
            missing.append(pk)
        else:
            found[name].append(FlavorSlices(since, product, document))
    for row, document in _documents(Flavor.objects.filter(pk__in=missing) if missing else ()):
        found[row.name] = [FlavorSlices(clock.now(), row.product, document)]
    return Versions(found)


def record(flavors: Iterable[Flavor]) -> None:
    """Record what differs from the newest version of these flavors, as a version that begins now; two queries, and one
    if any differs. Called in the transaction of the change, while nobody else writes the catalogue of the cluster.
    """
    rows = list(flavors)
    newest = FlavorVersion.objects.filter(flavor__in=rows).order_by("flavor", "-since", "-pk").distinct("flavor")
    known = dict(newest.values_list("flavor", "document"))
    changed = [(row, document) for row, document in _documents(rows) if known.get(row.pk) != document]
    if changed:
        now = clock.now()
        FlavorVersion.objects.bulk_create(
            FlavorVersion(flavor=row, since=now, document=document) for row, document in changed
        )


def _documents(flavors: Iterable[Flavor]) -> list[tuple[Flavor, dict[str, Any]]]:
    """Return the flavors as they are now, as their versions have them; one query, none without a flavor."""
    flavors = list(flavors)
    slices: dict[int, dict[str, Any]] = defaultdict(dict)
    for row in Offering.objects.filter(flavor__in=flavors).order_by("key") if flavors else ():
        slices[row.flavor_id][row.key.partition("/")[2]] = {
            "kind": row.kind,
            "profile": row.profile,
            "resource": row.resource,
            "gpu_share": str(row.gpu_share),
            "hidden": row.hidden,
        }
    return [
        (
            row,
            {
                "partitionable": row.partitionable,
                "memory_mib": row.whole_gpu_mib,
                "geometry": row.geometry,
                "slices": slices[row.pk],
            },
        )
        for row in flavors
    ]


def _slice(values: Mapping[str, Any]) -> SliceVersion:
    return SliceVersion(**{**values, "gpu_share": Fraction(values["gpu_share"])})
