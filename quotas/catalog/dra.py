"""Reads what NVIDIA's DRA driver offers on a node: named devices in ResourceSlices.

Whole GPUs are devices of type `gpu`. With dynamic MIG each also consumes all counters of its GPU, and the same GPU's
MIG devices share them: whole GPUs and every profile then use one pool of compute and memory slices. MIG devices
without counters were created by an administrator: each profile has a pool of its own. GPUs that serve several claims
(ConsumableShares) are counted in shares.

Sources: NVIDIA dra-driver-nvidia-gpu, cmd/gpu-kubelet-plugin (deviceinfo.go, partitions.go, consumable_shares.go);
Kubernetes resource.k8s.io/v1, ResourcePool.
"""

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction

from quotas.catalog import layouts, node_labels, published, resource_pools
from quotas.catalog.cel import equals
from quotas.catalog.dra_resources import GPU_SHARES, pool_of, resource_of
from quotas.catalog.geometry import (
    COMPUTE_SLICES,
    HOW_TO_SET,
    MEMORY_SLICES,
    Slices,
    UnknownDivision,
    gpu_share,
    gpu_slices,
    memory_part,
    profile_slices,
)
from quotas.catalog.mig_tables import Geometry, Profile
from quotas.catalog.node_labels import COUNT_LABEL, PRODUCT_LABEL
from quotas.catalog.nvidia import DRA_DRIVER, MIG_CLASS, WHOLE_GPU_CLASS
from quotas.catalog.quantities import count, mib
from quotas.catalog.types import DeviceFact, FoundDevice, NodeFact, Reading, SliceFact, Supply


def by_node(slices: Iterable[SliceFact]) -> dict[str, list[SliceFact]]:
    """Return the driver's slices, by node."""
    nodes: dict[str, list[SliceFact]] = defaultdict(list)
    for piece in slices:
        if piece.driver == DRA_DRIVER and piece.node:
            nodes[piece.node].append(piece)
    return nodes


def read(node: NodeFact, slices: Sequence[SliceFact], extended: Mapping[str, str]) -> Reading:
    """Return what the slices of a node supply; `extended` as returned by `extended_resources`.

    A pool that lacks ResourceSlices of its newest generation supplies nothing, and is a problem.
    """
    devices: list[DeviceFact] = []
    problems: list[str] = []
    for pool, pieces in resource_pools.newest(slices, lambda one: (one.pool, one.generation)).items():
        if len(pieces) < pieces[0].slice_count:
            problems.append(
                f"DRA pool {pool} is incomplete: {len(pieces)} of {pieces[0].slice_count} ResourceSlices "
                f"of generation {pieces[0].generation}; they return once the driver has published the rest"
            )
            continue
        devices += [device for piece in pieces for device in piece.devices if device.attributes.get("type") in _TYPES]
    product = node.labels.get(PRODUCT_LABEL, "")
    named = [device for device in devices if as_label(str(device.attributes.get("productName", ""))) == product]
    problems += [
        f"device {device.name} is a {device.attributes.get('productName', 'gpu without productName')}, "
        f"but the node is labelled {product}; it is not offered"
        for device in devices
        if device not in named and "parentUUID" not in device.attributes
    ]
    if "-MIG-" in product and devices and not named:
        problems.append(
            f"the node is labelled {product}, a profile's name and not its GPU's, so its devices are not offered; "
            "set GPU feature discovery's mig.strategy to mixed where the DRA driver publishes the devices"
        )
    named.sort(key=_by_name)
    problems += _disagreements(node, named)
    gpus = [device for device in named if device.attributes["type"] == "gpu"]
    parts = [device for device in named if device.attributes["type"] == "mig"]
    overlapping = _overlapping(gpus, parts)
    if overlapping:
        named, parts = ([one for one in each if one not in overlapping] for each in (named, parts))
        problems.append(
            f"{len(overlapping)} MIG devices are published beside their whole GPUs without counters, which the API "
            "server drops before Kubernetes 1.36; they are not offered, since both would be given out. Turn the DRA "
            "driver's DynamicMIG off, or upgrade to Kubernetes 1.36"
        )
    geometry = published.geometry(
        product, [d for d in named if set(d.counters) & set(parts[0].counters)] if parts else []
    )
    if geometry is not None:
        return _reading(
            "dynamic-mig", _divided(geometry, gpus, parts), _gpus(node.name, gpus, parts), problems, geometry
        )
    if parts:
        undivided = [_whole(gpus, "gpu", {resource_of("", extended): 1})] if gpus else []
        by_profile, unknown = _made_beforehand(product, parts, node.gpu_memory_mib, extended)
        found = _reading(
            "static-mig", [*undivided, *by_profile], _found(node.name, [*gpus, *parts]), [*problems, *unknown]
        )
        return replace(found, has_unknown_division=bool(unknown))
    if any(gpu.shareable for gpu in gpus):
        return _shared(node.name, gpus, problems)
    supplies = [_whole(gpus, "gpu", {resource_of("", extended): 1})] if gpus else []
    return _reading("plain", supplies, _found(node.name, gpus), problems)


_TYPES = {"gpu", "mig"}
MAX_UUID = 64
"""What the column has room for."""


def _reading(
    strategy: str,
    supplies: Sequence[Supply],
    devices: Sequence[FoundDevice],
    problems: Sequence[str],
    geometry: Geometry | None = None,
) -> Reading:
    return Reading("dra", strategy, tuple(supplies), tuple(devices), tuple(problems), geometry)


def _overlapping(gpus: Iterable[DeviceFact], parts: Iterable[DeviceFact]) -> list[DeviceFact]:
    """Return the MIG devices whose GPU is published whole too, with nothing that keeps both from being allocated."""
    whole = {gpu.attributes.get("uuid") for gpu in gpus}
    return [part for part in parts if not part.counters and part.attributes.get("parentUUID") in whole]


def _disagreements(node: NodeFact, devices: Iterable[DeviceFact]) -> Iterator[str]:
    """Yield what the labels of a node contradict: its physical GPUs, of which each has a UUID of its own."""
    found = list(devices)
    gpus, count = {layouts.parent_gpu(one.name) for one in found}, node_labels.known_number(node.labels, COUNT_LABEL)
    if found and count is not None and count != len(gpus) and not node_labels.is_single(node.labels):
        yield f"the DRA driver publishes {len(gpus)} GPUs here, but the label {COUNT_LABEL} is {count}"
    uuids = Counter(str(one.attributes["uuid"]) for one in found if one.attributes.get("uuid"))
    for uuid in sorted(uuid for uuid, number in uuids.items() if number > 1):
        yield f"the DRA driver publishes {uuid[:MAX_UUID]} as {uuids[uuid]} devices here"


def is_healthy(device: DeviceFact) -> bool:
    """Return whether no taint of the device keeps new claims away."""
    return not any(effect in {"NoSchedule", "NoExecute"} for _, _, effect in device.taints)


def product_selector(product_name: str) -> str:
    """Return CEL for one GPU model."""
    return equals("productName", product_name)


def profile_selector(profile: str) -> str:
    """Return CEL for the MIG devices of one profile."""
    return equals("profile", profile)


def _whole(gpus: Sequence[DeviceFact], pool: str, unit: dict[str, int]) -> Supply:
    return Supply(
        pool=pool,
        unit=unit,
        consumes=unit,
        kind="whole",
        profile="",
        isolation="full",
        gpu_share=Fraction(1),
        usable=sum(map(is_healthy, gpus)),
        max_usable=len(gpus),
        device_class=WHOLE_GPU_CLASS,
        selectors=(product_selector(str(gpus[0].attributes["productName"])),),
        memory_mib=_memory(gpus[0]),
    )


def _divided(geometry: Geometry, gpus: Sequence[DeviceFact], parts: Sequence[DeviceFact]) -> list[Supply]:
    """Return whole GPUs, if the driver announces them, and every profile, all from one pool."""
    unit = {COMPUTE_SLICES: geometry.compute, MEMORY_SLICES: geometry.memory}
    whole = [_whole(gpus, "slices", unit)] if gpus else []
    healthy = len({_parent(part) for part in parts if is_healthy(part)})
    every = len({_parent(part) for part in parts})
    return whole + [
        _profile(geometry, one, unit, parts, healthy * one.max_instances, every * one.max_instances)
        for one in geometry.profiles
    ]


def _profile(
    geometry: Geometry, one: Profile, unit: dict[str, int], parts: Sequence[DeviceFact], usable: int, max_usable: int
) -> Supply:
    return Supply(
        pool="slices",
        unit=unit,
        consumes={COMPUTE_SLICES: one.compute, MEMORY_SLICES: one.size},
        kind="mig",
        profile=one.name,
        isolation="hardware",
        gpu_share=gpu_share(Slices(one.compute, one.size), Slices(geometry.compute, geometry.memory)),
        memory_part=Fraction(one.size, geometry.memory),
        usable=usable,
        max_usable=max_usable,
        device_class=MIG_CLASS,
        selectors=_of_profile(parts[0], one.name),
        memory_mib=one.memory_mib,
    )


def _made_beforehand(
    product: str, parts: Sequence[DeviceFact], gpu_mib: int, extended: Mapping[str, str]
) -> tuple[list[Supply], list[str]]:
    """Return MIG devices that an administrator created: they are allocated as they are, and each profile is counted
    apart; and a sentence for each profile of which is not known what part of a GPU it is.
    """
    by_profile: dict[str, list[DeviceFact]] = defaultdict(list)
    for part in parts:
        by_profile[str(part.attributes["profile"])].append(part)
    found, unknown = list[Supply](), list[str]()
    for profile, devices in sorted(by_profile.items()):
        try:
            found.append(_static(product, profile, devices, gpu_mib, resource_of(profile, extended)))
        except UnknownDivision as error:
            unknown.append(f"{error}, so its {profile} is not offered; {HOW_TO_SET}")
    return found, unknown


def _static(product: str, profile: str, devices: Sequence[DeviceFact], gpu_mib: int, resource: str) -> Supply:
    slices, gpu = profile_slices(product, profile, gpu_mib), gpu_slices(product)
    return Supply(
        pool=pool_of(profile),
        unit={resource: 1},
        consumes={resource: 1},
        kind="mig",
        profile=profile,
        isolation="hardware",
        gpu_share=gpu_share(slices, gpu),
        memory_part=memory_part(slices, gpu),
        usable=sum(map(is_healthy, devices)),
        max_usable=len(devices),
        device_class=MIG_CLASS,
        selectors=_of_profile(devices[0], profile),
        memory_mib=_memory(devices[0]),
    )


def _of_profile(device: DeviceFact, profile: str) -> tuple[str, ...]:
    return product_selector(str(device.attributes["productName"])), profile_selector(profile)


def _shared(node: str, gpus: Sequence[DeviceFact], problems: Sequence[str]) -> Reading:
    """Return GPUs that serve several claims at once, counted in shares."""
    counts = {count(gpu.capacity.get("shares", "0")) for gpu in gpus}
    if len(counts) != 1 or 0 in counts:
        words = (
            "the GPUs serve several claims, but not by an equal number of shares, so nothing can be counted; "
            "set the DRA driver's consumableShares to a number"
        )
        return _reading("consumable-shares", (), _found(node, gpus), [*problems, words])
    (replicas,) = counts
    supply = Supply(
        pool="gpu-shares",
        unit={GPU_SHARES: 1},
        consumes={GPU_SHARES: 1},
        kind="shared",
        profile="",
        isolation="none",
        gpu_share=Fraction(1, replicas),
        memory_part=Fraction(1, replicas),
        usable=replicas * sum(map(is_healthy, gpus)),
        max_usable=replicas * len(gpus),
        device_class=WHOLE_GPU_CLASS,
        selectors=(product_selector(str(gpus[0].attributes["productName"])),),
        capacity={"shares": "1"},
        sharing="consumable-shares",
        replicas=replicas,
        memory_mib=_memory(gpus[0]),
    )
    return _reading(f"consumable-shares-{replicas}", [supply], _found(node, gpus), problems)


def _gpus(node: str, gpus: Sequence[DeviceFact], parts: Sequence[DeviceFact]) -> list[FoundDevice]:
    """Return the GPUs of a node. If the driver announces parts only, a GPU is known by its parts' attributes."""
    if gpus:
        return _found(node, gpus)
    first = {_parent(part): part for part in reversed(parts)}
    return [
        FoundDevice(node, part.name.partition("-mig-")[0], uuid, "", is_healthy(part), {"uuid": uuid, **_common(part)})
        for uuid, part in sorted(first.items(), key=lambda item: _by_name(item[1]))
    ]


def _common(part: DeviceFact) -> dict[str, object]:
    return {name: value for name, value in part.attributes.items() if name not in {"type", "profile", "parentUUID"}}


def _parent(part: DeviceFact) -> str:
    return str(part.attributes.get("parentUUID", part.name.partition("-mig-")[0]))[:MAX_UUID]


def _found(node: str, devices: Sequence[DeviceFact]) -> list[FoundDevice]:
    return [
        FoundDevice(node, d.name, str(d.attributes.get("uuid", ""))[:MAX_UUID], "", is_healthy(d), dict(d.attributes))
        for d in devices
    ]


def _memory(device: DeviceFact) -> int:
    return mib(device.capacity.get("memory", "0"))


def as_label(product_name: str) -> str:
    """Return a product name as GPU feature discovery writes it into a label."""
    return re.sub(r"[^A-Za-z0-9\-_. ]", "", product_name).strip().replace(" ", "-")


def _by_name(device: DeviceFact) -> tuple[int, str]:
    """Return the sort key of a device: gpu-2 before gpu-10."""
    return len(device.name), device.name
