"""How many GPUs of a node can have their share of its CPU, memory and pods beside other use. Pure.

1. What foreign pods request first uses the part of the node that is reserved for the system (``node_shares``). The rest
   is missing from the slices' shares.
2. So the node has a share for so many GPUs, or for a part of one: the least over CPU, memory and pods.
3. GPUs in foreign use need none. Of the rest, those that are too many are blocked.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from math import ceil, floor

from quotas.catalog.node_shares import NodeShare, beside_system, per_slice

MIB_PER_GIB = 1024


@dataclass(frozen=True)
class NodeUse:
    """The use of a node. ``foreign`` is what pods outside the portal request, ``excess`` what the portal's own request
    beyond the shares of what they hold; ``foreign_units`` and ``own_units`` are the units of each pool that they
    have, where a part of a divided GPU is that part of a unit.
    """

    foreign: NodeShare = field(default_factory=NodeShare)
    excess: NodeShare = field(default_factory=NodeShare)
    foreign_units: Mapping[str, Fraction] = field(default_factory=dict)
    own_units: Mapping[str, Fraction] = field(default_factory=dict)


@dataclass(frozen=True)
class Supplied:
    """What a node gives pods, and its healthy units of each pool; ``parts`` is what a unit is of a GPU."""

    gives: NodeShare
    units: Mapping[str, int]
    parts: Mapping[str, Fraction]

    def gpus(self, units: Mapping[str, Fraction] | Mapping[str, int]) -> Fraction:
        """Return the number of GPUs that so many units of each pool amount to."""
        return sum((count * self.parts[pool] for pool, count in units.items() if pool in self.parts), Fraction(0))


@dataclass(frozen=True)
class BlockedCapacity:
    """The result for a node: ``blocked`` GPUs, and of each pool so many free units, cannot have their share.
    ``problem`` is the sentence for operators.
    """

    blocked: Fraction = Fraction(0)
    blocked_units: Mapping[str, int] = field(default_factory=dict)
    problem: str = ""


def promised(gpu: NodeShare, parts: Iterable[Fraction], *, holders: int) -> NodeShare:
    """Return the most that goes with a GPU, whichever slices it is divided into; fewer pods than an even part of the
    node if its slices have as many as a slice can have.
    """
    pods = [ceil((per_slice(gpu, part, holders=holders).pods + holders) / part) for part in parts]
    return NodeShare(gpu.cpu_millicores, gpu.memory_mib, min(gpu.pods, max(pods, default=gpu.pods)))


def of_node(name: str, supplied: Supplied, use: NodeUse, gpu: NodeShare) -> BlockedCapacity:
    """Return what of the node is blocked, if ``gpu`` goes with each GPU; nothing if the node's capacity is unknown.

    The number of blocked GPUs does not depend on whether they are in use, so it stays the same while slices come and
    go.
    """
    if not gpu or not supplied.gives:
        return BlockedCapacity()
    remaining, amounts = _remaining(supplied.gives, use), _amounts(gpu)
    scarcest = min(amounts, key=lambda resource: remaining[resource] / amounts[resource])
    shares = max(Fraction(0), remaining[scarcest] / amounts[scarcest])
    usable = supplied.gpus(supplied.units) - supplied.gpus(use.foreign_units)
    blocked = usable - shares
    if blocked <= 0:
        return BlockedCapacity()
    room = max(Fraction(0), shares - supplied.gpus(use.own_units))
    free = {
        pool: floor(count - use.foreign_units.get(pool, 0) - use.own_units.get(pool, 0))
        for pool, count in supplied.units.items()
    }
    units = {pool: count - floor(room / supplied.parts[pool]) for pool, count in free.items()}
    return BlockedCapacity(
        blocked=blocked,
        blocked_units={pool: count for pool, count in units.items() if count > 0},
        problem=_problem(name, supplied, use, scarcest, shares),
    )


def _amounts(share: NodeShare) -> dict[str, int]:
    amounts = {"CPU": share.cpu_millicores, "memory": share.memory_mib, "pods": share.pods}
    return {resource: amount for resource, amount in amounts.items() if amount}


def _remaining(gives: NodeShare, use: NodeUse) -> dict[str, Fraction]:
    """Return what is left of the node for shares, by resource."""
    room, excess, foreign = beside_system(gives), use.excess, use.foreign
    return {
        "CPU": _smallest(room.cpu_millicores, gives.cpu_millicores - foreign.cpu_millicores) - excess.cpu_millicores,
        "memory": _smallest(room.memory_mib, gives.memory_mib - foreign.memory_mib) - excess.memory_mib,
        "pods": _smallest(room.pods, gives.pods - foreign.pods) - excess.pods,
    }


def _smallest(*amounts: int) -> Fraction:
    return Fraction(min(amounts))


def _problem(name: str, supplied: Supplied, use: NodeUse, resource: str, shares: Fraction) -> str:
    foreign, excess, gives = (_amount_text(share, resource) for share in (use.foreign, use.excess, supplied.gives))
    requests = {
        "CPU": f"ask for {foreign:g} of {gives:g} CPU here",
        "memory": f"ask for {foreign:g} of {gives:g} GiB of memory here",
        "pods": f"take {foreign:g} of {gives:g} pod slots here",
    }[resource]
    ours = f", and pods of allocations have {excess:g} beyond their shares" if excess else ""
    gpus = ceil(supplied.gpus(supplied.units))
    return (
        f"pods that are not the portal's {requests}{ours}, so {min(floor(shares), gpus)} of {gpus} GPUs have their "
        f"share of {resource}; find and move them: "
        f"kubectl get pods -A --field-selector spec.nodeName={name}"
    )


def _amount_text(share: NodeShare, resource: str) -> float:
    amount, unit = {
        "CPU": (share.cpu_millicores, 1000),
        "memory": (share.memory_mib, MIB_PER_GIB),
        "pods": (share.pods, 1),
    }[resource]
    return round(amount / unit, 1)
