"""Builds the spec of an allocation's ResourceClaim (resource.k8s.io/v1).

It has a request for each slice, constraints between them, and the sharing configuration. The spec is immutable, so a
change needs a new claim.
"""

from collections.abc import Sequence

from allocations.cluster import gpu_selector, names
from allocations.cluster.manifests import gpu_config
from allocations.domain.objects import Manifest, ResolvedSpec
from quotas.catalog.nvidia import DRA_DRIVER

PARENT = f"{DRA_DRIVER}/parentUUID"
GPU_UUID = f"{DRA_DRIVER}/uuid"
PCIE_ROOT = "resource.kubernetes.io/pcieRoot"


def build(request: ResolvedSpec, slices: Sequence[int]) -> Manifest:
    """Return the spec with a request ``slice-<n>`` for each slice: exactly one device of the offering, or a share."""
    requests = [{"name": names.slice_request(n), "exactly": _exactly(request, n)} for n in slices]
    devices: Manifest = {"requests": requests}
    if constraints := _constraints(request) if len(slices) > 1 else []:
        devices["constraints"] = constraints
    if request.sharing:
        devices["config"] = [{"opaque": gpu_config.opaque(request.sharing, is_mig=request.kind == "mig")}]
    return {"devices": devices}


def _exactly(request: ResolvedSpec, index: int) -> Manifest:
    exactly: Manifest = {
        "deviceClassName": request.device_class,
        "allocationMode": "ExactCount",
        "count": 1,
    }
    gpu_selectors = [gpu_selector.of_gpu(uuid) for uuid in request.gpu_uuids[index : index + 1] if uuid]
    if expressions := [*request.selectors, *gpu_selectors]:
        exactly["selectors"] = [{"cel": {"expression": expression}} for expression in expressions]
    if request.capacity:
        exactly["capacity"] = {"requests": dict(request.capacity)}
    return exactly


def _constraints(request: ResolvedSpec) -> list[Manifest]:
    """Return the constraints over all requests of the claim.

    Whole GPUs are always different GPUs, so for them only the PCIe root is constrained.
    """
    gpu_attribute = {"mig": PARENT, "shared": GPU_UUID}.get(request.kind)
    constraints: list[Manifest] = []
    if request.constraints.same_gpu and gpu_attribute:
        constraints.append({"matchAttribute": gpu_attribute})
    if request.constraints.same_pcie_root:
        constraints.append({"matchAttribute": PCIE_ROOT})
    if request.constraints.distinct_gpus and gpu_attribute:
        constraints.append({"distinctAttribute": gpu_attribute})
    return constraints
