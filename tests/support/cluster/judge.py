"""Checks for over-allocation from the cluster's own objects, without the portal's tables.

A device of a ResourceSlice is allocated to one claim or, if it may be shared, to no more than its capacity; devices
consume no more of a counter than its set has. Holds by device plugin are no more than the allocatable devices of the
nodes that their ResourceFlavor selects.
"""

import json
from collections import Counter, defaultdict
from decimal import Decimal
from typing import Any

from kubernetes.utils.quantity import parse_quantity

from tests.support.cluster.api_client import ApiClient

Object = dict[str, Any]
Key = tuple[str, str]


def over_allocated(admin: ApiClient) -> list[str]:
    """Return a sentence for each device allocated twice or amount exceeded; empty if there is none."""
    return [*_devices(admin), *_counts(admin)]


def _devices(admin: ApiClient) -> list[str]:
    claims = admin.objects("resourceclaims")
    results: list[Object] = [
        result
        for claim in claims
        for result in claim.get("status", {}).get("allocation", {}).get("devices", {}).get("results", ())
        if not result.get("adminAccess")
    ]
    slices = admin.objects("resourceslices")
    devices = {(s["spec"]["pool"]["name"], d["name"]): d for s in slices for d in s["spec"].get("devices", ())}
    times = Counter((r["pool"], r["device"]) for r in results)
    twice = [
        f"{pool}/{name} is given to {n} claims"
        for (pool, name), n in times.items()
        if n > 1 and not devices[pool, name].get("allowMultipleAllocations")
    ]
    return twice + _capacity(results, devices) + _counters(results, devices, slices)


def _capacity(results: list[Object], devices: dict[Key, Object]) -> list[str]:
    used: dict[tuple[Key, str], Decimal] = defaultdict(Decimal)
    for result in results:
        for name, amount in result.get("consumedCapacity", {}).items():
            used[(result["pool"], result["device"]), name] += parse_quantity(amount)
    return [
        f"{key[0]}/{key[1]} has {capacity} of {name}, and {amount} is used"
        for (key, name), amount in used.items()
        if amount > (capacity := parse_quantity(devices[key]["capacity"][name]["value"]))
    ]


def _counters(results: list[Object], devices: dict[Key, Object], slices: list[Object]) -> list[str]:
    used: dict[tuple[str, str, str], Decimal] = defaultdict(Decimal)
    for key in {(r["pool"], r["device"]) for r in results}:
        for consumed in devices[key].get("consumesCounters", ()):
            for name, counter in consumed["counters"].items():
                used[key[0], consumed["counterSet"], name] += parse_quantity(counter["value"])
    capacity = {
        (s["spec"]["pool"]["name"], one["name"], name): parse_quantity(counter["value"])
        for s in slices
        for one in s["spec"].get("sharedCounters", ())
        for name, counter in one["counters"].items()
    }
    return [
        f"{key} has {capacity[key]}, and {amount} is used" for key, amount in used.items() if amount > capacity[key]
    ]


def _counts(admin: ApiClient) -> list[str]:
    nodes = admin.objects("nodes")
    flavors = {f["metadata"]["name"]: f["spec"].get("nodeLabels", {}) for f in admin.objects("resourceflavors")}
    held: dict[Key, int] = defaultdict(int)
    leases = {
        (one["metadata"]["namespace"], one["metadata"]["labels"]["gpu-portal.io/allocation"]): one
        for one in admin.objects("workloads", labels="gpu-portal.io/allocation")
    }
    for quota in admin.objects("resourcequotas", labels="gpu-portal.io/managed=true"):
        listed = json.loads(quota["metadata"].get("annotations", {}).get("gpu-portal.io/slices-of", "{}"))
        for allocation, amounts in listed.items():
            lease = leases.get((quota["metadata"]["namespace"], allocation), {})
            assigned = lease.get("status", {}).get("admission", {}).get("podSetAssignments", ())
            for resource in amounts:
                flavor = next((pods["flavors"][resource] for pods in assigned), "")
                held[flavor, resource] += int(quota["spec"]["hard"][f"requests.{resource}"])
    found = []
    for (flavor, resource), amount in held.items():
        capacity = sum(
            int(node["status"]["allocatable"].get(resource, 0))
            for node in nodes
            if flavor and flavors[flavor].items() <= node["metadata"]["labels"].items()
        )
        if amount > capacity:
            found.append(f"{amount} of {resource} are held on {flavor}, whose nodes have {capacity}")
    return found
