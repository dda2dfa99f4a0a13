"""One odd node: whatever it is labelled with and publishes, the inventory of all others is read."""

from typing import Any

import pytest
from django.db import transaction
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from allocations.cluster import kinds
from allocations.cluster.kinds import KINDS
from allocations.models import MirrorObject
from allocations.reconcile.inventory import reconcile_inventory
from portal.core import clock
from quotas.catalog import storable
from quotas.catalog.models import Node, Offering, PoolUse
from tests.support.clusters import LOCAL
from tests.support.gpu_facts import TAINT

pytestmark = pytest.mark.django_db
GPU = "nvidia.com/gpu"
LABELS = {f"{GPU}.product": "NVIDIA-L40S", f"{GPU}.memory": "46068", f"{GPU}.family": "ada-lovelace"}
HUGE = 2**31
DIGITS = "9" * 60


def node(name: str, amounts: dict[str, Any], **labels: str) -> dict[str, Any]:
    """Return a node with GPUs of a device plugin, and labels of ``nvidia.com/gpu.``."""
    told = {f"{GPU}.{key.replace('__', '.')}": value for key, value in labels.items()}
    status = {"capacity": amounts, "allocatable": amounts, "conditions": [{"type": "Ready", "status": "True"}]}
    taints = [dict(zip(("key", "value", "effect"), taint, strict=True)) for taint in TAINT]
    metadata = {"name": name, "uid": name, "resourceVersion": "1", "labels": LABELS | told}
    return {"kind": "Node", "metadata": metadata, "spec": {"taints": taints}, "status": status}


def publish(*devices: dict[str, Any], name: str = "odd") -> dict[str, Any]:
    pool = {"name": name, "generation": 1, "resourceSliceCount": 1}
    spec = {"driver": "gpu.nvidia.com", "nodeName": name, "pool": pool, "devices": list(devices)}
    return {"kind": "ResourceSlice", "metadata": {"name": name, "uid": name, "resourceVersion": "1"}, "spec": spec}


def device(**attributes: Any) -> dict[str, Any]:
    values = {"type": "gpu", "uuid": "GPU-0", "productName": "NVIDIA L40S"} | attributes
    return {"name": "gpu-0", "attributes": {key: {"string": value} for key, value in values.items()}}


def pod_on_good(amount: int) -> dict[str, Any]:
    """Return a pod that names the good node itself, and requests any amount."""
    container = {"name": "c", "resources": {"limits": {GPU: str(amount)}}}
    metadata = {"name": "p", "namespace": "elsewhere", "uid": "p", "resourceVersion": "1"}
    spec = {"nodeName": "good", "containers": [container]}
    return {"kind": "Pod", "metadata": metadata, "spec": spec, "status": {"phase": "Running"}}


def read(*bodies: dict[str, Any]) -> None:
    """Read the inventory of these objects and a good node of four GPUs."""
    MirrorObject.objects.all().delete()
    for body in (node("good", {GPU: "4"}), *bodies):
        seen = kinds.observe(KINDS[body["kind"]], body, at=clock.now(), live=True)
        assert seen is not None
        ref = {"cluster_id": LOCAL, "kind": seen.ref.kind, "namespace": seen.ref.namespace, "name": seen.ref.name}
        values = {"uid": seen.uid, "resource_version": 1, "facts": seen.facts, "seen_at": seen.at}
        MirrorObject.objects.create(**ref, **values)
    reconcile_inventory(LOCAL)


def is_good_node_offered() -> bool:
    good = Node.objects.get(name="good")
    return bool(good.flavor) and good.problem == "" and Offering.objects.filter(flavor=good.flavor).exists()


@pytest.mark.parametrize(
    ("body", "words"),
    [
        (node("odd", {GPU: str(HUGE)}), f"it has {HUGE} nvidia.com/gpu, which cannot be"),
        (node("odd", {GPU: "4"}, replicas=DIGITS), "which is no number of GPUs or shares"),
        (node("odd", {f"{GPU}.shared": "4"}, replicas=DIGITS), "which is no number of GPUs or shares"),
        (node("odd", {GPU: "4"}, memory=DIGITS), "the label nvidia.com/gpu.memory is 99999999999999999999…"),
        (node("odd", {GPU: "4"}, count=DIGITS), "its label nvidia.com/gpu.count is 99999999999999999999…"),
        (node("odd", {f"nvidia.com/mig-{DIGITS}g.10gb": "4"}), "an amount or a name that cannot be"),
        (node("odd", {GPU: "4", "cpu": "9E", "memory": "9E"}), "its allocatable CPU, memory or pods cannot be so many"),
    ],
    ids=["amount", "replicas", "replicas of a shared resource", "memory", "count", "profile", "cpu"],
)
def test_an_odd_node_has_a_problem_and_others_are_offered(body: dict[str, Any], words: str) -> None:
    read(body)
    assert words in Node.objects.get(name="odd").problem
    assert is_good_node_offered()


def test_long_labels_of_family_and_compute_capability_are_cut() -> None:
    read(node("odd", {GPU: "4"}, product="NVIDIA-ODD", family="f" * 63, compute__major="9" * 9, compute__minor="9" * 9))
    flavor = Node.objects.get(name="odd").flavor
    assert flavor is not None
    assert (flavor.architecture, flavor.compute_capability) == ("f" * 40, "999999999.")


@pytest.mark.parametrize("attribute", ["type", "productName", "parentUUID", "uuid"])
def test_a_device_with_an_attribute_that_is_a_list_keeps_no_other_node_from_being_read(attribute: str) -> None:
    read(node("odd", {}), publish(device(**{attribute: ["gpu"] * 40})))
    assert is_good_node_offered()


def test_what_pods_request_beyond_all_numbers_counts_as_the_most_that_there_can_be() -> None:
    read(pod_on_good(10**18))
    assert is_good_node_offered()
    assert PoolUse.objects.get(pool__key__endswith="/gpu").foreign == storable.MAX_UNITS


KEYS = ("replicas", "memory", "count", "family", "compute__major", "compute__minor", "product")
VALUES = ("", "0", "4", "x", "-1", str(HUGE), DIGITS, "NVIDIA-A100-SXM4-80GB-MIG-1g.10gb")
RESOURCES = (GPU, f"{GPU}.shared", "nvidia.com/mig-1g.10gb", "nvidia.com/mig-x", f"nvidia.com/mig-{DIGITS}g.1gb")
AMOUNTS = ("0", "3", str(HUGE - 1), str(HUGE), "9E")
labels = st.dictionaries(st.sampled_from(KEYS), st.sampled_from(VALUES) | st.text("0aG-.", max_size=63))
amounts = st.dictionaries(st.sampled_from(RESOURCES), st.sampled_from(AMOUNTS))


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(labels=labels, amounts=amounts)
def test_whatever_a_node_says_the_others_are_offered(labels: dict[str, str], amounts: dict[str, str]) -> None:
    with transaction.atomic():
        read(node("odd", amounts, **labels))
        assert is_good_node_offered()
        transaction.set_rollback(True)
