"""When the publisher writes, and what."""

from copy import deepcopy

from deploy.local.fleet import differences, nodes, spec

FLEET = spec.load(spec.FLEET_FILE)
T4 = next(kind for kind in FLEET.kinds if kind.name == "t4")
DESIRED = nodes.node(FLEET, T4, "t4-0")


def observed_node():
    """Return the desired node as a server shows it: with additional fields."""
    node = deepcopy(DESIRED)
    node["metadata"] |= {"resourceVersion": "7", "uid": "u"}
    node["metadata"]["labels"]["someone/else"] = "yes"
    node["spec"]["taints"] = [{"key": "node.kubernetes.io/not-ready", "effect": "NoExecute"}, nodes.TAINT]
    return node


def pool(*devices):
    return {
        f"n-{name}": {"pool": {"name": "n", "resourceSliceCount": len(devices)}, "devices": [{"name": name}]}
        for name in devices
    }


def published(specs, generation):
    return {
        name: {"spec": {**spec_, "pool": {**spec_["pool"], "generation": generation}}} for name, spec_ in specs.items()
    }


def test_writes_nothing_to_a_node_that_is_right():
    assert differences.node_patch(DESIRED, observed_node()) == {}
    assert differences.node_status_patch(DESIRED, observed_node()) == {}


def test_restores_a_label_and_the_taint_and_keeps_those_of_others():
    node = observed_node()
    node["metadata"]["labels"]["nvidia.com/gpu.product"] = "something"
    node["spec"]["taints"].pop()
    assert differences.node_patch(DESIRED, node) == {
        "metadata": {"labels": {"nvidia.com/gpu.product": "Tesla-T4"}, "resourceVersion": "7"},
        "spec": {"taints": [{"key": "node.kubernetes.io/not-ready", "effect": "NoExecute"}, nodes.TAINT]},
    }


def test_restores_resources_and_removes_those_nobody_advertises():
    node = observed_node()
    node["status"]["allocatable"] |= {"nvidia.com/gpu.shared": "3", "nvidia.com/gpu": "4"}
    assert differences.node_status_patch(DESIRED, node) == {
        "status": {"allocatable": {"nvidia.com/gpu.shared": "16", "nvidia.com/gpu": None}}
    }


def test_leaves_an_administrator_s_labels_as_they_are():
    node = observed_node()
    node["metadata"]["labels"]["nvidia.com/device-plugin.config"] = "time-sliced-8"
    assert differences.node_patch(DESIRED, node) == {}


def test_labels_of_instances_go_with_the_instances_and_their_resources_stay_at_zero():
    node = observed_node()
    node["metadata"]["labels"] |= {"nvidia.com/mig-1g.10gb.count": "7", "nvidia.com/gpu.slices.gi": "1"}
    node["status"]["capacity"]["nvidia.com/mig-1g.10gb"] = "7"
    assert differences.node_patch(DESIRED, node)["metadata"]["labels"] == {
        "nvidia.com/mig-1g.10gb.count": None,
        "nvidia.com/gpu.slices.gi": None,
    }
    assert differences.node_status_patch(DESIRED, node) == {
        "status": {"capacity": {"nvidia.com/mig-1g.10gb": "0"}, "allocatable": {"nvidia.com/mig-1g.10gb": "0"}}
    }


def test_a_new_pool_starts_at_generation_one():
    specs = pool("a", "b")
    writes = differences.pool_writes(specs, {})
    assert writes == {name: slice_["spec"] for name, slice_ in published(specs, 1).items()}


def test_an_unchanged_pool_is_not_written():
    specs = pool("a", "b")
    assert differences.pool_writes(specs, published(specs, 5)) == {}


def test_one_changed_slice_keeps_the_generation():
    specs = pool("a", "b")
    observed = published(specs, 5)
    observed["n-b"]["spec"]["devices"] = []
    assert differences.pool_writes(specs, observed) == {"n-b": published(specs, 5)["n-b"]["spec"]}


def test_more_than_one_change_moves_the_whole_pool_to_the_next_generation():
    specs = pool("a", "b", "c")
    observed = published(specs, 5)
    observed["n-a"]["spec"]["devices"] = observed["n-b"]["spec"]["devices"] = []
    writes = differences.pool_writes(specs, observed)
    assert writes == {name: slice_["spec"] for name, slice_ in published(specs, 6).items()}


def test_a_missing_slice_moves_the_whole_pool_to_the_next_generation():
    specs = pool("a", "b")
    observed = published(specs, 5)
    del observed["n-b"]
    writes = differences.pool_writes(specs, observed)
    assert writes == {name: slice_["spec"] for name, slice_ in published(specs, 6).items()}
