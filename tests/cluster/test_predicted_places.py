"""The place on a GPU that the portal predicts is the one that the scheduler takes.

The portal takes no part: plain claims, one GPU each.
"""

import json
import random

import pytest

from quotas.catalog import layouts
from quotas.catalog.layouts import Placement
from quotas.catalog.mig_tables import TABLES
from tests.support.cluster.fixtures import Kubectl
from tests.support.cluster.one_gpu import allocated, claimed, listed

pytestmark = pytest.mark.cluster
H100 = TABLES["H100-80GB"]


def test_the_scheduler_takes_the_place_that_is_predicted_whatever_stands_there(
    kubectl: Kubectl, namespace: str
) -> None:
    """``layouts.first_fit``, on which the portal's choice of GPUs is based: one GPU, filled and emptied."""
    dice = random.Random(20261121)
    gpu = uuid_of(kubectl, "h100-0", "gpu-0")
    placements: dict[str, Placement] = {}
    placed = 0
    for step in range(40):
        if placements and dice.random() < 0.4:
            name_to_delete = dice.choice(sorted(placements))
            kubectl("delete", "pod", name_to_delete, "-n", namespace, "--force")
            kubectl("delete", "resourceclaim", name_to_delete, "-n", namespace, "--timeout=30s")
            del placements[name_to_delete]
            continue
        profile = dice.choice([one.name for one in H100.profiles])
        predicted = layouts.first_fit(H100, frozenset(placements.values()), profile)
        if predicted is None:
            continue
        name = f"step-{step}"
        kubectl("create", "-f", "-", stdin=json.dumps(listed(claimed(namespace, name, [profile], gpu))))
        (result,) = allocated(kubectl, namespace, {*placements, name})[name]
        assert layouts.placement_of_device(H100, result["device"]) == ("gpu-0", predicted), placements
        placements[name] = predicted
        placed += 1
    assert placed > 10


def uuid_of(kubectl: Kubectl, node: str, gpu: str) -> str:
    found = json.loads(kubectl("get", "resourceslices", "-o", "json"))["items"]
    devices = [d for one in found if one["spec"].get("nodeName") == node for d in one["spec"].get("devices", ())]
    uuids = [str(d["attributes"]["uuid"]["string"]) for d in devices if d["name"] == gpu]
    return uuids[0]
