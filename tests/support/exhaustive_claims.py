"""Claims drawn at random for small fleets, and a search of all combinations of devices to compare with.

The search is written from the definition of a claim alone (resource.k8s.io/v1): it lists devices for each request, in
every combination, and checks each combination as a whole. With the product's it shares which device meets a condition.
"""

import random
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import combinations
from typing import Any

from allocations.claims.fit import Fleet
from allocations.claims.matching import is_tolerated, meets
from allocations.claims.model import MAX_DEVICES, SHARES, Choice, Claim, Device
from quotas.catalog import quantities
from tests.support.claims import claim, fleet

Pick = tuple[str, Choice, Device]
ROOT, NUMA = "resource.kubernetes.io/pcieRoot", "resource.kubernetes.io/numaNode"
PROFILES = ("1g.10gb", "1g.10gb+me", "1g.20gb", "2g.20gb", "3g.40gb", "4g.40gb", "7g.80gb")


MAX_COMBINATIONS = 1_000


class TooMany(Exception):
    """A claim has more combinations of devices than a test should try."""


def is_possible(asked: Claim, devices: Fleet) -> bool:
    """Return whether some node has a combination of devices that is what the claim asks for. Raises TooMany."""
    tries = iter(range(MAX_COMBINATIONS))
    return any(_is_possible_on(asked, node, devices, tries) for node in devices.nodes())


def _is_possible_on(asked: Claim, node: Sequence[Device], devices: Fleet, tries: Iterator[int]) -> bool:
    picks: list[Pick] = []

    def extend(index: int) -> bool:
        if index == len(asked.requests):
            return len(picks) <= MAX_DEVICES
        request = asked.requests[index]
        for choice in request.choices:
            for chosen in _combinations(choice, node):
                if next(tries, None) is None:
                    raise TooMany
                before = len(picks)
                picks.extend((request.name, choice, device) for device in chosen)
                if _is_allowed(asked, picks, devices) and extend(index + 1):
                    return True
                del picks[before:]
        return False

    return extend(0)


def _combinations(choice: Choice, node: Sequence[Device]) -> Iterator[Sequence[Device]]:
    matches = [device for device in node if meets(device, choice)]
    allowed = [device for device in matches if is_tolerated(device, choice)]
    if choice.count is not None:
        return combinations(allowed, choice.count)
    return iter([matches] if matches and len(matches) == len(allowed) else [])


def _is_allowed(asked: Claim, picks: Sequence[Pick], devices: Fleet) -> bool:
    """Return whether devices, counters and attributes allow all of these picks together."""
    shares: Counter[tuple[str, str]] = Counter(devices.shares_in_use)
    for _, choice, device in picks:
        shares[device.node, device.name] += int(choice.capacity.get(SHARES, "1"))
    node = picks[0][2].node if picks else ""
    limits = {d.name: int(d.capacity[SHARES]) if d.shareable else 1 for d in devices.devices if d.node == node}
    if any(shares[node, name] > limit for name, limit in limits.items()):
        return False
    used: Counter[tuple[str, str]] = Counter()
    for device in devices.devices:
        if device.node == node and shares[node, device.name]:
            used.update({key: quantities.value(amount) for key, amount in device.counters.items()})
    if any(amount > quantities.value(devices.counters[node, *key]) for key, amount in used.items()):
        return False
    for constraint in asked.constraints:
        bound = [
            device.attributes.get(constraint.attribute)
            for request, choice, device in picks
            if not constraint.requests or {request, f"{request}/{choice.name}"} & set(constraint.requests)
        ]
        if None in bound or len(set(bound)) not in ({len(bound)} if constraint.distinct else {0, 1}):
            return False
    return True


def small_fleet(chance: random.Random) -> tuple[str, Fleet]:
    """Return a kind of the simulated fleet, and one or two nodes of it with a few GPUs, some in use, some unhealthy."""
    kind = chance.choice(["h100", "h100", "h100", "l40s-shares"])
    whole = fleet(kind)
    gpus = sorted({_gpu(device) for device in whole.devices})
    nodes = sorted({device.node for device in whole.devices})[: chance.choice([1, 1, 2])]
    kept = {(node, gpu) for node in nodes for gpu in chance.sample(gpus, chance.choice([1, 1, 2, 2, 3]))}
    devices = [device for device in whole.devices if (device.node, _gpu(device)) in kept]
    taint = (("gpu.nvidia.com/xid", "79", "NoSchedule"),)
    devices = [replace(device, taints=taint) if chance.random() < 0.03 else device for device in devices]
    small = Fleet(tuple(devices), whole.counters)
    in_use: dict[tuple[str, str], int] = {}
    for device in chance.sample(devices, min(len(devices), chance.choice([0, 0, 1, 2, 4]))):
        pick = ("", Choice("", "", device.kind, 1), device)
        if _is_allowed(Claim(()), [pick], replace(small, shares_in_use=in_use)):
            in_use[device.node, device.name] = 1
    return kind, replace(small, shares_in_use=in_use)


def _gpu(device: Device) -> str:
    return "-".join(device.name.split("-")[:2])


def random_claim(chance: random.Random, kind: str) -> Claim:
    """Return a claim of up to five requests with alternatives and constraints, small enough to try all combinations."""
    has_partitions = kind == "h100"
    requests = []
    for index in range(chance.choice([1, 2, 2, 3, 4, 5])):
        choices = [_random_choice(chance, has_partitions) for _ in range(chance.choice([1, 1, 1, 2, 3]))]
        one = choices[0] if len(choices) == 1 else {"alternatives": choices}
        requests.append({"name": f"r{index}", **one})
    attributes = ["parentUUID", ROOT, NUMA, "profile", "uuid"] if has_partitions else [ROOT, NUMA, "uuid"]
    constraints = []
    for _ in range(chance.choice([0, 1, 1, 2])):
        names = [one["name"] for one in requests]
        bound = chance.sample(names, chance.randint(1, len(names))) if chance.random() < 0.5 else []
        how = chance.choice(["match_attribute", "match_attribute", "distinct_attribute"])
        constraints.append({how: chance.choice(attributes), **({"requests": bound} if bound else {})})
    return claim(*requests, kind=kind, constraints=constraints)


def _random_choice(chance: random.Random, has_partitions: bool) -> dict[str, Any]:
    count: int | str = chance.choice([1, 1, 1, 2, 2, 3, 4])
    if not has_partitions:
        capacity = {"capacity": {"shares": str(chance.randint(1, 4))}} if chance.random() < 0.7 else {}
        return {"device": "gpu", "count": count, **capacity}
    if chance.random() < 0.2:
        return {"device": "gpu", "count": chance.choice([1, 1, 2, "all"])}
    if chance.random() < 0.1:
        return {"device": "mig", "count": chance.randint(1, 2)}
    return {"device": "mig", "profile": chance.choice(PROFILES), "count": count}
