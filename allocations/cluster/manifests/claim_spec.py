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


def build(spec: ResolvedSpec, slices: Sequence[int]) -> Manifest:
    """Return the spec with a request ``slice-<n>`` for each slice: exactly one device of the offering, or a share."""
    requests = [{"name": names.slice_request(n), "exactly": _exactly(spec, n)} for n in slices]
    devices: Manifest = {"requests": requests}
    if found := constraints(spec) if len(slices) > 1 else []:
        devices["constraints"] = found
    if spec.sharing:
        devices["config"] = [{"opaque": gpu_config.opaque(spec.sharing, is_mig=spec.kind == "mig")}]
    return {"devices": devices}


def _exactly(spec: ResolvedSpec, index: int) -> Manifest:
    exactly: Manifest = {
        "deviceClassName": spec.device_class,
        "allocationMode": "ExactCount",
        "count": 1,
    }
    is_mig = spec.kind == "mig"
    gpu_selectors = [gpu_selector.of_gpu(uuid, is_mig=is_mig) for uuid in spec.gpu_uuids[index : index + 1] if uuid]
    if expressions := [*spec.selectors, *gpu_selectors]:
        exactly["selectors"] = [{"cel": {"expression": expression}} for expression in expressions]
    if spec.capacity:
        exactly["capacity"] = {"requests": dict(spec.capacity)}
    return exactly


def constraints(spec: ResolvedSpec) -> list[Manifest]:
    """Return the constraints over all requests of the claim.

    Whole GPUs are always different GPUs, so for them only the PCIe root is constrained.
    """
    gpu_attribute = {"mig": PARENT, "shared": GPU_UUID}.get(spec.kind)
    found: list[Manifest] = []
    if spec.constraints.same_gpu and gpu_attribute:
        found.append({"matchAttribute": gpu_attribute})
    if spec.constraints.same_pcie_root:
        found.append({"matchAttribute": PCIE_ROOT})
    if spec.constraints.distinct_gpus and gpu_attribute:
        found.append({"distinctAttribute": gpu_attribute})
    return found
