"""What a node gives by NVIDIA's DRA driver: named devices in ResourceSlices.

Whole GPUs are devices of type `gpu`. With dynamic MIG each also consumes all counters of its card, and the
same card's MIG devices share them: such a flavor is partitionable. Source: NVIDIA dra-driver-nvidia-gpu,
cmd/gpu-kubelet-plugin (deviceinfo.go, partitions.go); Kubernetes resource.k8s.io/v1, ResourcePool.
"""

import json
import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from fractions import Fraction

from quotas.catalog.facts import DeviceFact, FoundDevice, NodeFact, Reading, SliceFact, Supply
from quotas.catalog.geometry import COMPUTE_SLICES, MEMORY_SLICES, Slices, compute_slices

DRIVER = "gpu.nvidia.com"
WHOLE_GPU_CLASS = "gpu.nvidia.com"
_MEMORY_SLICE = re.compile(r"memory-slice-\d+")


def by_node(slices: Iterable[SliceFact]) -> dict[str, list[SliceFact]]:
    """The driver's slices, by node."""
    nodes: dict[str, list[SliceFact]] = defaultdict(list)
    for piece in slices:
        if piece.driver == DRIVER and piece.node:
            nodes[piece.node].append(piece)
    return nodes


def read(node: NodeFact, slices: Sequence[SliceFact]) -> Reading:
    """Whole GPUs of a node. A pool without all slices of its newest generation gives nothing and is a
    problem.
    """
    devices: list[DeviceFact] = []
    problems: list[str] = []
    for pool, pieces in sorted(_newest(slices).items()):
        if len(pieces) < pieces[0].slice_count:
            problems.append(
                f"DRA pool {pool} is incomplete: {len(pieces)} of {pieces[0].slice_count} ResourceSlices "
                f"of generation {pieces[0].generation}; they return once the driver has published the rest"
            )
            continue
        devices += [device for piece in pieces for device in piece.devices]
    product = node.labels.get("nvidia.com/gpu.product", "")
    cards = sorted((device for device in devices if device.attributes.get("type") == "gpu"), key=_by_name)
    named = [device for device in cards if _as_label(str(device.attributes.get("productName", ""))) == product]
    problems += [
        f"device {device.name} is a {device.attributes.get('productName', 'card without productName')}, "
        f"but the node is labelled {product}; it is not offered"
        for device in cards
        if device not in named
    ]
    if devices and not cards:
        problems.append("the DRA driver publishes no whole GPU here, only parts made beforehand; these are not offered")
    split = _card_slices(named[0], devices) if named else None
    return Reading(
        path="dra",
        strategy="dynamic-mig" if split else "plain",
        supplies=(_whole(named, split),) if named else (),
        devices=tuple(_found(node.name, device) for device in named),
        problems=tuple(problems),
    )


def is_healthy(device: DeviceFact) -> bool:
    """No taint of the device keeps new claims away."""
    return not any(effect in {"NoSchedule", "NoExecute"} for _, _, effect in device.taints)


def product_selector(product_name: str) -> str:
    """CEL for one GPU model. A missing attribute would abort the whole allocation, so it is asked for
    first.
    """
    attributes = f'device.attributes["{DRIVER}"]'
    return f'"productName" in {attributes} && {attributes}.productName == {json.dumps(product_name)}'


def _newest(slices: Sequence[SliceFact]) -> dict[str, list[SliceFact]]:
    pools: dict[str, list[SliceFact]] = defaultdict(list)
    for piece in slices:
        pools[piece.pool].append(piece)
    return {
        pool: [piece for piece in pieces if piece.generation == max(each.generation for each in pieces)]
        for pool, pieces in pools.items()
    }


def _card_slices(card: DeviceFact, devices: Sequence[DeviceFact]) -> Slices | None:
    """Slices of a card that can be divided: the largest profile's compute and all memory slices; None when
    it cannot.
    """
    mig = [
        compute_slices(str(device.attributes["profile"]))
        for device in devices
        if device.attributes.get("type") == "mig" and set(device.counters) & set(card.counters)
    ]
    memory = sum(bool(_MEMORY_SLICE.fullmatch(name)) for counters in card.counters.values() for name in counters)
    return Slices(max(mig), memory) if mig and memory else None


def _whole(cards: Sequence[DeviceFact], split: Slices | None) -> Supply:
    unit: Mapping[str, int] = (
        {COMPUTE_SLICES: split.compute, MEMORY_SLICES: split.memory} if split else {"nvidia.com/gpu": 1}
    )
    return Supply(
        pool="slices" if split else "gpu",
        unit=unit,
        kind="whole",
        profile="",
        isolation="full",
        gpu_share=Fraction(1),
        usable=sum(map(is_healthy, cards)),
        most=len(cards),
        device_class=WHOLE_GPU_CLASS,
        selectors=(product_selector(str(cards[0].attributes["productName"])),),
    )


def _found(node: str, device: DeviceFact) -> FoundDevice:
    uuid = str(device.attributes.get("uuid", ""))
    return FoundDevice(node, device.name, uuid, "", is_healthy(device), dict(device.attributes))


def _as_label(product_name: str) -> str:
    """A product name the way GPU feature discovery writes it into a label."""
    return re.sub(r"[^A-Za-z0-9\-_. ]", "", product_name).strip().replace(" ", "-")


def _by_name(device: DeviceFact) -> tuple[int, str]:
    """gpu-2 before gpu-10."""
    return len(device.name), device.name
