"""Compares what a device plugin publishes on a node with what the node's labels say of it. Pure.

What a node publishes agrees with its own labels, or that is a problem of the node: it is told, and nothing is offered
that the labels contradict. A unit is offered as a whole GPU only if all units of the node together are no more GPUs
than `nvidia.com/gpu.count`. Labels and resources contradict each other for a while after a change of layout or sharing,
since the kubelet keeps a resource that is not published any more for five minutes, and for good if the plugin is
configured otherwise than GPU feature discovery.

1. A resource beside its renamed form (`nvidia.com/gpu` beside `nvidia.com/gpu.shared`): the labels are those of the
   renamed one, and the other is not offered.
2. More units than the labels count: whole GPUs are not offered, then shares of GPUs. MIG devices stay offered, as their
   resource names what each of them is.
3. Shares that are no multiple of their replicas, or whose replicas no label says, are not offered.
4. Labels of GPUs or replicas that are no number say nothing: neither whole GPUs nor shares are offered. Nor are whole
   GPUs whose labels are those of MIG devices by strategy `single`, where the product names no profile.
5. Fewer units than the labels count, and MIG devices of other profiles, are told only: no promise is too large.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from math import ceil

from quotas.catalog import node_labels
from quotas.catalog.geometry import instances_per_gpu
from quotas.catalog.node_labels import COUNT_LABEL, INSTANCES_LABEL, PRODUCT_LABEL, REPLICAS_LABEL, SHARED
from quotas.catalog.types import Supply

MAX_SHOWN = 20
CHECK = "Check that the device plugin and GPU feature discovery of the node have the same configuration"


@dataclass(frozen=True)
class Agreement:
    """What of a node's supplies is ``offered``, what is ``withheld``, and a sentence for each contradiction.

    The ``gpu_share`` of what is withheld is what a unit can be at most, as the labels count the node's GPUs.
    """

    offered: tuple[Supply, ...]
    withheld: tuple[Supply, ...] = ()
    problems: tuple[str, ...] = ()


def check(labels: Mapping[str, str], supplies: Sequence[Supply], gpu_memory_mib: int = 0) -> Agreement:
    """Return which supplies of a device plugin agree with the labels of their node."""
    contradicted = dict(_odd_shares(supplies)) | dict(_beside_renamed(supplies)) | dict(_unclear(labels, supplies))
    offered = [one for one in supplies if one.resource not in contradicted]
    contradicted |= _too_many_units(labels, offered)
    offered = [one for one in offered if one.resource not in contradicted]
    gpus = physical_gpus(labels, gpu_memory_mib)
    withheld = [one for one in supplies if one.resource in contradicted]
    told = [*_too_many_mig_devices(labels, offered), *_other_profiles(labels, offered)]
    if not withheld:
        told += _too_few_units(labels, offered)
    return Agreement(tuple(offered), tuple(_with_shares(withheld, offered, gpus)), (*contradicted.values(), *told))


def physical_gpus(labels: Mapping[str, str], gpu_memory_mib: int = 0) -> int | None:
    """Return the physical GPUs of a node as its labels say; None if they do not.

    With MIG by strategy `single` the label counts MIG devices, as many on each GPU as fit of the profile.
    Source: GPU feature discovery, internal/lm/mig-strategy.go.
    """
    count = node_labels.known_number(labels, COUNT_LABEL)
    if count is None or not node_labels.is_single(labels):
        return count
    try:
        profile = node_labels.single_profile(labels)
        return ceil(Fraction(count, instances_per_gpu(labels[PRODUCT_LABEL], profile, gpu_memory_mib)))
    except ValueError:
        return None


def _beside_renamed(supplies: Iterable[Supply]) -> Iterator[tuple[str, str]]:
    names = {one.resource for one in supplies}
    for name in sorted(names):
        if f"{name}{SHARED}" in names:
            yield (
                name,
                f"it publishes {name} beside {name}{SHARED}, and its labels are those of the latter, so {name} is not "
                f"offered. {CHECK}; a resource that is left over goes with the next start of the kubelet",
            )


def _unclear(labels: Mapping[str, str], supplies: Iterable[Supply]) -> Iterator[tuple[str, str]]:
    for one in supplies:
        base = node_labels.base_of(one.resource)
        numbers = [f"{node_labels.PREFIX}{base}.replicas", *([] if one.profile else [COUNT_LABEL])]
        for label in numbers:
            if labels.get(label) and node_labels.known_number(labels, label) is None:
                shown = labels[label] if len(labels[label]) <= MAX_SHOWN else f"{labels[label][:MAX_SHOWN]}…"
                yield (
                    one.resource,
                    f"its label {label} is {shown}, which is no number of GPUs or shares, so its {one.resource} is not "
                    "offered; GPU feature discovery writes it",
                )
        if base == "gpu" and not one.profile and INSTANCES_LABEL in labels:
            yield (
                one.resource,
                f"its label {INSTANCES_LABEL} says that {one.resource} are MIG devices, and {PRODUCT_LABEL} names no "
                "profile, so they are not offered; GPU feature discovery writes both",
            )


def _odd_shares(supplies: Iterable[Supply]) -> Iterator[tuple[str, str]]:
    for one in supplies:
        base = one.resource.removesuffix(SHARED)
        if not one.replicas:
            yield (
                one.resource,
                f"{one.resource} is shared, but the label {base}.replicas does not say by how many, so it is not "
                "offered; GPU feature discovery writes it",
            )
        elif one.max_usable % one.replicas:
            yield (
                one.resource,
                f"it publishes {one.max_usable} {one.resource}, which is no multiple of its label {base}.replicas, "
                f"{one.replicas}, so they are not offered. {CHECK}",
            )


def _too_many_units(labels: Mapping[str, str], supplies: Sequence[Supply]) -> dict[str, str]:
    """Return the resources with more units than the labels count, each with a sentence."""
    count = node_labels.known_number(labels, COUNT_LABEL)
    if count is None:
        return {}
    if node_labels.is_single(labels):
        counted = [one for one in supplies if one.pool.removesuffix(SHARED) == "gpu"]
        found = {one.resource: _too_many(labels, one) for one in counted if one.max_usable > count * one.replicas}
        others = [one for one in supplies if one not in counted]  # left over of strategy mixed
        return found | ({one.resource: _too_many(labels, one, supplies) for one in others} if counted else {})
    whole = [one for one in supplies if not one.profile and one.replicas == 1]
    shared = [one for one in supplies if not one.profile and one.replicas > 1]
    divided = _least_gpus(one for one in supplies if one.profile)
    found = dict[str, str]()
    if _gpus(whole) + _gpus(shared) + divided > count:
        found |= {one.resource: _too_many(labels, one, supplies) for one in whole}
    if _gpus(shared) + divided > count:
        found |= {one.resource: _too_many(labels, one, supplies) for one in shared}
    return found


def _too_many(labels: Mapping[str, str], one: Supply, beside: Iterable[Supply] = ()) -> str:
    others = [f"{other.max_usable} {other.resource}" for other in beside if other is not one]
    among = f" beside {', '.join(others)}" if others else ""
    offered = "they are not offered" if one.profile or one.replicas > 1 else "they are not offered as whole GPUs"
    return f"it publishes {one.max_usable} {one.resource}{among}, but {_label_counts(labels)}, so {offered}. {CHECK}"


def _label_counts(labels: Mapping[str, str]) -> str:
    """Return what the labels say of GPUs and replicas, as a part of a sentence."""
    said = f"its label {COUNT_LABEL} is {labels[COUNT_LABEL]}"
    return f"{said} and {REPLICAS_LABEL} {labels[REPLICAS_LABEL]}" if REPLICAS_LABEL in labels else said


def _too_many_mig_devices(labels: Mapping[str, str], supplies: Iterable[Supply]) -> Iterator[str]:
    count, divided = node_labels.known_number(labels, COUNT_LABEL), [one for one in supplies if one.profile]
    if count is not None and not node_labels.is_single(labels) and _least_gpus(divided) > count:
        yield f"it publishes MIG devices of {_least_gpus(divided)} GPUs, but {_label_counts(labels)}. {CHECK}"


def _too_few_units(labels: Mapping[str, str], supplies: Sequence[Supply]) -> Iterator[str]:
    count = node_labels.known_number(labels, COUNT_LABEL)
    units = _gpus(supplies)
    if supplies and count is not None and units < count:
        yield f"it publishes {float(units):g} of the {count} that its label {COUNT_LABEL} says; the others are missing"


def _other_profiles(labels: Mapping[str, str], supplies: Iterable[Supply]) -> Iterator[str]:
    """Yield a sentence for each MIG profile of which the labels count another number than is published."""
    published = {one.pool.removesuffix(SHARED): Fraction(one.max_usable, one.replicas) for one in supplies}
    if any(base.startswith("mig-") for base in published):
        for base, count in node_labels.mig_counts(labels).items():
            if published.get(base, 0) != count:
                there = float(published.get(base, 0))
                yield f"it publishes {there:g} nvidia.com/{base}, but its label nvidia.com/{base}.count is {count}"


def _gpus(supplies: Iterable[Supply]) -> Fraction:
    return sum((Fraction(one.max_usable, one.replicas) for one in supplies), Fraction(0))


def _least_gpus(supplies: Iterable[Supply]) -> int:
    """Return the least number of GPUs that have so many MIG devices: parts of memory never add up to more than the GPU,
    nor do those of compute slices of one profile.
    """
    divided = list(supplies)
    memory = sum((one.max_usable * one.memory_part for one in divided), Fraction(0))
    return ceil(max([memory, *(one.max_usable * one.gpu_share for one in divided)]))


def _with_shares(withheld: Sequence[Supply], offered: Iterable[Supply], gpus: int | None) -> Iterator[Supply]:
    """Yield what is withheld, each unit worth an equal part of the GPUs that what is offered leaves: none beside MIG
    devices, which are worth all GPUs that are not offered otherwise.
    """
    units, offered = sum(one.max_usable for one in withheld), list(offered)
    left = Fraction(units) if gpus is None else max(Fraction(0), gpus - _gpus(offered))
    if any(one.profile for one in offered):
        left = Fraction(0)
    for one in withheld:
        yield replace(one, gpu_share=min(Fraction(1), left / units))
