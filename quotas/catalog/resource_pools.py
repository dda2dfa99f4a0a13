"""Pools of ResourceSlices. Pure. Source: resource.k8s.io/v1, ResourcePool."""

from collections import defaultdict
from collections.abc import Callable, Iterable
from typing import TypeVar

SliceT = TypeVar("SliceT")


def newest(slices: Iterable[SliceT], identity: Callable[[SliceT], tuple[str, int]]) -> dict[str, list[SliceT]]:
    """Return the ResourceSlices of each pool's newest generation, by pool, in the order of names; ``identity`` returns
    a slice's pool and generation.
    """
    pools: dict[str, list[SliceT]] = defaultdict(list)
    for one in slices:
        pools[identity(one)[0]].append(one)
    generations = {pool: max(identity(one)[1] for one in found) for pool, found in pools.items()}
    return {pool: [one for one in pools[pool] if identity(one)[1] == generations[pool]] for pool in sorted(pools)}
