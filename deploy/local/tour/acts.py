"""The acts of the tour, one function each. Each prints its evidence, and raises LocalError if a check fails."""

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import yaml

from deploy.local.errors import LocalError
from deploy.local.tour.kube import Kubectl
from deploy.local.tour.rest import Portal

PROJECT = "vision-train"
DEVICE_PLUGIN = "l40s/whole"


@dataclass
class Tour:
    """The state of a tour: `made` are the ids of its allocations; `folder` has kubeconfigs, readable by their owner
    only.
    """

    portal: Portal
    admin: Kubectl
    folder: Path
    say: Callable[[str], None]
    allocation_ids: list[str] = field(default_factory=list)

    @cached_property
    def by_claim(self) -> str:
        """Return an offering of whole cards, of which the fleet publishes two by DRA."""
        offered = self.portal.get("offerings", project=PROJECT, kind="whole")["results"]
        by_dra = (row["id"] for row in offered if row["flavor"]["path"] == "dra" and row["capacity"]["total"] >= 2)
        found = next(by_dra, None)
        if found is None:
            raise LocalError("the fleet publishes no two whole cards by DRA")
        return str(found)

    def request(self, offering: str, count: int) -> dict[str, Any]:
        row = self.portal.post("allocations", project=PROJECT, offering=offering, count=count, hours=1, purpose="tour")
        self.allocation_ids.append(row["id"])
        return row

    def hold(self, offering: str, count: int) -> dict[str, Any]:
        begun = time.monotonic()
        row = self.portal.wait(self.request(offering, count)["id"], "active")
        self.say(f"{row['name']}: {count} × {offering} active {time.monotonic() - begun:.1f} s after POST")
        return row

    def connect(self, row: dict[str, Any]) -> tuple[Kubectl, dict[str, Any]]:
        """Return kubectl with the kubeconfig from `connect`, and the pod from `connect`."""
        connection = self.portal.get(f"allocations/{row['id']}/connect")
        file = self.folder / f"{row['name']}.kubeconfig"
        file.touch(mode=0o600)
        file.write_text(connection["kubeconfig"], encoding="utf-8")
        label = f"{connection['label']['key']}={row['name']}"
        self.say(f"personal kubeconfig, until {connection['expires_at']}; label {label}")
        pod: dict[str, Any] = yaml.safe_load(connection["pod_yaml"])
        return Kubectl(self.admin.binary, file, self.folder / "cache"), pod

    def run(self, tenant: Kubectl, pod: dict[str, Any]) -> dict[str, Any]:
        tenant.run("apply", "--filename=-", stdin=yaml.safe_dump(pod))
        return tenant.wait_running(pod["metadata"]["name"])


def catalogue(tour: Tour) -> None:
    """Show the offerings, and how many of each the member's team can get now."""
    for row in tour.portal.get("offerings", project=PROJECT)["results"]:
        capacity, headroom = row["capacity"], row["mine"]
        tour.say(
            f"{row['id']:<20} {capacity['free']:>3} of {capacity['total']:>3} free, team {headroom['used']} of "
            f"{headroom['limit']}, can get now {headroom['can_get_now']}, "
            f"{_money(row['price_per_hour'], row)} an hour"
        )


def hold_by_claim(tour: Tour) -> dict[str, Any]:
    """Hold two whole cards by one claim (DRA); the portal names each card, and the cluster agrees."""
    row = tour.hold(tour.by_claim, 2)
    if len(row["devices"]) != 2:
        raise LocalError(f"{row['name']} should show two devices, and shows {row['devices']}")
    uuids = _uuids(tour.admin)
    for device in row["devices"]:
        if uuids.get((device["node"], device["device"])) != device["uuid"]:
            raise LocalError(f"the cluster publishes no {device}")
        tour.say(f"  {device['node']}/{device['device']} {device['uuid']}, as the ResourceSlice says")
    return row


def hold_by_count(tour: Tour) -> dict[str, Any]:
    """Hold one card by count (device plugin); Kubernetes names no device, so the portal does not either."""
    row = tour.hold(DEVICE_PLUGIN, 1)
    guard = tour.admin.get("gpuproject", "gpu-portal", f"--namespace={row['namespace']}")
    hold_class = guard["spec"]["allocations"][row["name"]]["priorityClassName"]
    quota = tour.admin.get("resourcequota", hold_class, f"--namespace={row['namespace']}")
    tour.say(f"  reservation {row['reservation']}, devices {row['devices']}; quota {quota['status']['hard']}")
    return row


def own_pod_by_claim(tour: Tour, row: dict[str, Any]) -> None:
    """Run a tenant's pod on the held devices; without its label the same pod is refused."""
    tenant, pod = tour.connect(row)
    running = tour.run(tenant, pod)
    claim = tenant.get("resourceclaim", row["name"])
    devices = [(r["pool"], r["device"]) for r in claim["status"]["allocation"]["devices"]["results"]]
    users = {user["name"] for user in claim["status"]["reservedFor"]}
    if devices != [(d["node"], d["device"]) for d in row["devices"]] or pod["metadata"]["name"] not in users:
        raise LocalError(f"the pod should use {row['devices']}, and its claim has {devices} for {users}")
    if {running["spec"]["nodeName"]} != {node for node, _ in devices}:
        raise LocalError(f"the pod runs on {running['spec']['nodeName']}, and the devices are {devices}")
    tour.say(f"pod {pod['metadata']['name']} runs on {running['spec']['nodeName']} with {devices}")
    _refused_without_label(tour, tenant, running)


def own_pod_by_count(tour: Tour, row: dict[str, Any]) -> None:
    """The same by device plugin: the label gives one card and the right node; without it the pod is refused."""
    tenant, pod = tour.connect(row)
    running = tour.run(tenant, pod)
    limits = running["spec"]["containers"][0]["resources"]["limits"]
    node = tour.admin.get("node", running["spec"]["nodeName"])
    product = node["metadata"]["labels"].get("nvidia.com/gpu.product")
    if limits.get("nvidia.com/gpu") != "1" or product != "NVIDIA-L40S":
        raise LocalError(f"the pod should have one L40S, and has {limits} on {product}")
    tour.say(f"pod {pod['metadata']['name']} runs on {running['spec']['nodeName']} ({product}) with 1 nvidia.com/gpu")
    _refused_without_label(tour, tenant, running)


def refusal(tour: Tour) -> None:
    """Request more than the fleet has: refused at once, with all limits that apply and with alternatives."""
    problem = tour.portal.refused("allocations", project=PROJECT, offering=DEVICE_PLUGIN, count=100)
    tour.say(f"{problem['status']} {problem['reason']}: {problem['detail']} {problem['hint']}")
    for violation in problem["dimensions"]:
        amounts = f"limit {violation['limit']}, used {violation['used']}, asked {violation['requested']}"
        tour.say(f"  {violation['dimension']}: {amounts}")
    for other in problem["alternatives"]:
        tour.say(f"  works: {other['count']} × {other['offering']} ({other['fits']}) for {other['price']}")
    if not problem["alternatives"]:
        raise LocalError("a refusal should name what would work")


def queue(tour: Tour, held: dict[str, Any]) -> dict[str, Any]:
    """Queue one slice more than the team's quota allows; it is admitted when another allocation is released."""
    offered = tour.portal.get("offerings", project=PROJECT)["results"]
    headroom = next(row["mine"] for row in offered if row["id"] == DEVICE_PLUGIN)
    row = tour.request(DEVICE_PLUGIN, headroom["limit"] - headroom["used"] + 1)
    row = _wait_for_kueues_reason(tour, row)
    tour.say(f"{row['name']}: {row['count']} × {DEVICE_PLUGIN} is queued, {row['queue']}: {row['message']}")
    tour.portal.post(f"allocations/{held['id']}/release")
    begun = time.monotonic()
    row = tour.portal.wait(row["id"], "active")
    tour.say(f"{row['name']} is active {time.monotonic() - begun:.1f} s after {held['name']} was released")
    return row


def costs(tour: Tour) -> None:
    """Show the cost of each allocation to date, and the team's total by offering."""
    for id_ in tour.allocation_ids:
        row = tour.portal.get(f"allocations/{id_}")
        cost = row["cost"]
        tour.say(f"{row['name']}: {_money(cost['to_date'], cost)} so far, {_money(cost['per_hour'], cost)} an hour")
    report = tour.portal.get("costs", window="today", aggregate="team,offering")
    for row in report["results"]:
        tour.say(f"  {row['name']}: {row['gpu_hours']} GPU-hours, {_money(row['total'], row)}")


def release(tour: Tour) -> None:
    """Release all allocations; each ends as `released`, and none is charged any more."""
    for id_ in tour.allocation_ids:
        tour.portal.post(f"allocations/{id_}/release")
    for id_ in tour.allocation_ids:
        row = tour.portal.wait(id_, "ended")
        if row["outcome"] != "released" or row["objects"]:
            raise LocalError(f"{row['name']} should be released without objects, and is {row}")
        cost = row["cost"]
        tour.say(f"{row['name']}: {row['outcome']}, {_money(cost['to_date'], cost)} in all")


def _money(amount: str | None, row: dict[str, Any]) -> str:
    return "not priced" if amount is None else f"{amount} {row['currency']}"


def _wait_for_kueues_reason(tour: Tour, row: dict[str, Any]) -> dict[str, Any]:
    """Return the queued row once Kueue has reported why it waits."""
    deadline = time.monotonic() + 20
    while row["phase"] == "queued" and row["reason"] in ("", "submitted") and time.monotonic() < deadline:
        time.sleep(0.3)
        row = tour.portal.get(f"allocations/{row['id']}")
    if row["phase"] != "queued" or not row["queue"]:
        raise LocalError(f"{row['name']} should be queued with a place, and is {row['phase']}, {row['queue']}")
    return row


def _refused_without_label(tour: Tour, tenant: Kubectl, running: dict[str, Any]) -> None:
    """Create a copy of the running pod without its label and what the label added; check that it is refused."""
    spec = running["spec"]
    container = {key: spec["containers"][0][key] for key in ("name", "image", "securityContext", "resources")}
    kept = ("securityContext", "resourceClaims")
    bare = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": f"{running['metadata']['name']}-unlabelled"},
        "spec": {**{key: spec[key] for key in kept if key in spec}, "containers": [container]},
    }
    tour.say(f"  without its label: {tenant.refused('create', '--filename=-', stdin=yaml.safe_dump(bare))}")


def _uuids(admin: Kubectl) -> dict[tuple[str, str], str]:
    return {
        (slice_["spec"]["pool"]["name"], device["name"]): device["attributes"]["uuid"]["string"]
        for slice_ in admin.get("resourceslices")["items"]
        for device in slice_["spec"].get("devices", ())
        if "uuid" in device.get("attributes", {})
    }
