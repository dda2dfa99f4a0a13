"""The spec of a hold's ResourceClaim (resource.k8s.io/v1): a request per slice, what binds them together, and how pods
share what it gets. It is immutable, so another one means another claim."""

from collections.abc import Sequence

from allocations.cluster import card_selector, names
from allocations.cluster.manifests import gpu_config
from allocations.domain.objects import Manifest, ResolvedSpec
from quotas.catalog.nvidia import DRA_DRIVER

PARENT = f"{DRA_DRIVER}/parentUUID"
CARD = f"{DRA_DRIVER}/uuid"
PCIE_ROOT = "resource.kubernetes.io/pcieRoot"


def build(request: ResolvedSpec, slices: Sequence[int]) -> Manifest:
    """One request ``slice-<n>`` for each of the slices, each exactly one device of the offering, or a share of one."""
    requests = [{"name": names.slice_request(n), "exactly": _exactly(request, n)} for n in slices]
    devices: Manifest = {"requests": requests}
    if bound := _constraints(request) if len(slices) > 1 else []:
        devices["constraints"] = bound
    if request.sharing:
        devices["config"] = [{"opaque": gpu_config.opaque(request.sharing, is_mig=request.kind == "mig")}]
    return {"devices": devices}


def _exactly(request: ResolvedSpec, index: int) -> Manifest:
    exactly: Manifest = {
        "deviceClassName": request.device_class,
        "allocationMode": "ExactCount",
        "count": 1,
    }
    steered = [card_selector.in_card(card) for card in request.cards[index : index + 1] if card]
    if expressions := [*request.selectors, *steered]:
        exactly["selectors"] = [{"cel": {"expression": expression}} for expression in expressions]
    if request.capacity:
        exactly["capacity"] = {"requests": dict(request.capacity)}
    return exactly


def _constraints(request: ResolvedSpec) -> list[Manifest]:
    """Over all requests of the claim. A whole GPU is its own card, so of those only roots can bind."""
    card = {"mig": PARENT, "shared": CARD}.get(request.kind)
    bound: list[Manifest] = []
    if request.constraints.same_gpu and card:
        bound.append({"matchAttribute": card})
    if request.constraints.same_pcie_root:
        bound.append({"matchAttribute": PCIE_ROOT})
    if request.constraints.distinct_gpus and card:
        bound.append({"distinctAttribute": card})
    return bound
