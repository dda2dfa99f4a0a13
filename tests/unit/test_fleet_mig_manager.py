"""How the simulated MIG manager applies the layout that a node's label requests."""

from dataclasses import replace

import pytest

from deploy.local.fleet import mig_configs, mig_manager, nodes, publisher, spec
from deploy.local.fleet.mig_manager import CARDS_ANNOTATION, CONFIG, NodeCards
from quotas.catalog.mig_tables import TABLES

FLEET = spec.load(spec.FLEET_FILE)
KINDS = {kind.name: kind for kind in FLEET.kinds}
A100, A30 = KINDS["a100"], KINDS["a30-single"]
BALANCED = {"1g.10gb": 2, "2g.20gb": 1, "3g.40gb": 1}
CONFIGS = mig_configs.layouts_by_name(TABLES["A100-80GB"], FLEET.mig_configs)
TWO_CARDS = NodeCards((BALANCED, BALANCED), "all-balanced", "success")


def step(cards: NodeCards, config: str, *, in_use: bool = False) -> NodeCards:
    return mig_manager.step(cards, config, CONFIGS, TABLES["A100-80GB"], lambda: in_use)


def node(kind: spec.Kind, cards: NodeCards) -> dict:
    return nodes.node(FLEET, kind, f"{kind.name}-0", cards)


def gpus(manifest: dict, part: str = "allocatable") -> dict[str, str]:
    return {key: value for key, value in manifest["status"][part].items() if key.startswith("nvidia.com/")}


@pytest.mark.parametrize(
    ("table", "names"),
    [
        (
            "A100-80GB",
            {
                "all-disabled": None,
                "all-enabled": {},
                "all-balanced": BALANCED,
                "all-1g.10gb": {"1g.10gb": 7},
                "all-1g.10gb.me": {"1g.10gb+me": 1},
                "all-1g.20gb": {"1g.20gb": 4},
                "all-2g.20gb": {"2g.20gb": 3},
                "all-3g.40gb": {"3g.40gb": 2},
                "all-4g.40gb": {"4g.40gb": 1},
                "all-7g.80gb": {"7g.80gb": 1},
            },
        ),
        (
            "A30",
            {
                "all-disabled": None,
                "all-enabled": {},
                "all-balanced": {"1g.6gb": 2, "2g.12gb": 1},
                "all-1g.6gb": {"1g.6gb": 4},
                "all-1g.6gb.me": {"1g.6gb+me": 1},
                "all-2g.12gb": {"2g.12gb": 2},
                "all-2g.12gb.me": {"2g.12gb+me": 1},
                "all-4g.24gb": {"4g.24gb": 1},
            },
        ),
    ],
)
def test_the_names_that_mig_parted_makes_for_a_card(table, names):
    assert mig_configs.layouts_by_name(TABLES[table], {}) == names


@pytest.mark.parametrize(
    ("table", "balanced"),
    [
        ("H100-94GB", {"1g.12gb": 2, "2g.24gb": 1, "3g.47gb": 1}),
        ("H200-141GB", {"1g.18gb": 2, "2g.35gb": 1, "3g.71gb": 1}),
        ("B200-180GB", {"1g.23gb": 2, "2g.45gb": 1, "3g.90gb": 1}),
        ("GB200-186GB", {"1g.23gb": 2, "2g.47gb": 1, "3g.93gb": 1}),
        ("RTX-PRO-6000-96GB", {"1g.24gb": 2, "2g.48gb": 1}),
    ],
)
def test_all_balanced_is_that_of_nvidia_s_default_configuration(table, balanced):
    assert mig_configs.layouts_by_name(TABLES[table], {})["all-balanced"] == balanced


def test_a_processed_label_changes_nothing():
    assert step(TWO_CARDS, "all-balanced") == TWO_CARDS
    assert step(TWO_CARDS, "") == TWO_CARDS


def test_a_new_label_is_pending_and_then_done():
    pending = step(TWO_CARDS, "all-1g.10gb")
    assert pending == NodeCards((BALANCED, BALANCED), "all-1g.10gb", "pending")
    done = step(pending, "all-1g.10gb")
    assert done == NodeCards(({"1g.10gb": 7}, {"1g.10gb": 7}), "all-1g.10gb", "success")
    assert step(done, "all-1g.10gb") == done


def test_a_name_nobody_knows_fails_at_once_and_is_not_tried_again():
    failed = step(TWO_CARDS, "all-5g.60gb")
    assert failed == replace(TWO_CARDS, config="all-5g.60gb", state="failed")
    assert step(failed, "all-5g.60gb") == failed
    assert step(failed, "all-balanced") == TWO_CARDS


def test_nothing_is_cut_while_pods_use_the_cards():
    failed = step(step(TWO_CARDS, "all-disabled", in_use=True), "all-disabled", in_use=True)
    assert failed == replace(TWO_CARDS, config="all-disabled", state="failed")


def test_an_impossible_layout_leaves_the_first_card_empty():
    failed = step(step(TWO_CARDS, "two-large"), "two-large")
    assert failed == NodeCards(({}, BALANCED), "two-large", "failed")
    assert gpus(node(A100, replace(failed, layouts=({}, *(BALANCED,) * 7)))) == {
        "nvidia.com/mig-1g.10gb": "14",
        "nvidia.com/mig-2g.20gb": "7",
        "nvidia.com/mig-3g.40gb": "7",
    }


def test_a_changed_mind_is_followed_from_the_start():
    pending = step(TWO_CARDS, "all-1g.10gb")
    assert step(pending, "all-balanced") == TWO_CARDS
    assert step(pending, "halves") == replace(pending, config="halves")


def test_the_device_plugin_is_down_while_a_layout_is_pending():
    pending = node(A100, replace(mig_manager.initial(A100), config="all-1g.10gb", state="pending"))
    assert set(gpus(pending).values()) == {"0"}
    assert gpus(pending, "capacity") == gpus(node(A100, mig_manager.initial(A100)), "capacity")
    labels = pending["metadata"]["labels"]
    assert labels["nvidia.com/mig.config.state"] == "pending"
    assert labels["nvidia.com/gpu.deploy.device-plugin"] == "paused-for-mig-change"


@pytest.mark.parametrize(
    ("layouts", "resources", "product", "replicas"),
    [
        ((None,) * 4, {"nvidia.com/gpu": "4"}, "NVIDIA-A30", "1"),
        (({"2g.12gb": 2},) * 4, {"nvidia.com/gpu": "8"}, "NVIDIA-A30-MIG-2g.12gb", "1"),
        (({"1g.6gb": 2, "2g.12gb": 1},) * 4, {}, "NVIDIA-A30-MIG-INVALID", "0"),
        (({},) * 4, {}, "NVIDIA-A30-MIG-INVALID", "0"),
        (({}, *({"1g.6gb": 4},) * 3), {}, "NVIDIA-A30-MIG-INVALID", "0"),
        ((None, *({"1g.6gb": 4},) * 3), {}, "NVIDIA-A30-MIG-INVALID", "0"),
    ],
)
def test_strategy_single_wants_all_cards_cut_alike(layouts, resources, product, replicas):
    manifest = node(A30, NodeCards(layouts, "w", "success"))
    assert gpus(manifest) == resources
    labels = manifest["metadata"]["labels"]
    assert (labels["nvidia.com/gpu.product"], labels["nvidia.com/gpu.replicas"]) == (product, replicas)
    assert labels["nvidia.com/gpu.count"] == resources.get("nvidia.com/gpu", "0")
    if product.endswith("INVALID"):
        assert (labels["nvidia.com/gpu.memory"], labels["nvidia.com/gpu.sharing-strategy"]) == ("0", "")


def test_strategy_mixed_passes_over_empty_cards_and_shows_uncut_ones_as_whole():
    manifest = node(A100, NodeCards((None, {}, BALANCED, *(BALANCED,) * 5), "w", "success"))
    assert gpus(manifest) == {
        "nvidia.com/gpu": "1",
        "nvidia.com/mig-1g.10gb": "12",
        "nvidia.com/mig-2g.20gb": "6",
        "nvidia.com/mig-3g.40gb": "6",
    }
    labels = manifest["metadata"]["labels"]
    assert (labels["nvidia.com/gpu.count"], labels["nvidia.com/gpu.replicas"]) == ("8", "1")


def test_the_node_remembers_what_its_cards_are_cut_into():
    cards = NodeCards(({}, None, BALANCED), "two-large", "failed")
    assert mig_manager.from_annotation(mig_manager.to_annotation(cards)) == cards


def test_each_node_is_turned_by_its_own_label():
    fleet = FLEET.with_extra({"a100": 1, "a30-single": 1})
    manifests, _ = publisher.desired(fleet, {}, {})
    seen = {name: manifest["metadata"] for name, manifest in manifests.items()}
    seen["a100-1"]["labels"][CONFIG] = "all-1g.10gb"
    turned = mig_manager.step_all(fleet, seen, lambda _: False)
    assert {name: (cards.config, cards.state) for name, cards in turned.items()} == {
        "a100-0": ("all-balanced", "success"),
        "a100-1": ("all-1g.10gb", "pending"),
        "a30-single-0": ("all-1g.6gb", "success"),
    }
    cut, _ = publisher.desired(fleet, {}, turned)
    assert mig_manager.from_annotation(cut["a100-1"]["metadata"]["annotations"][CARDS_ANNOTATION]) == turned["a100-1"]


def pod(phase: str, *limits: dict[str, str]) -> dict:
    return {"status": {"phase": phase}, "spec": {"containers": [{"resources": {"limits": each}} for each in limits]}}


@pytest.mark.parametrize(
    ("used", "uses"),
    [
        (pod("Running", {"cpu": "1"}, {"nvidia.com/mig-1g.10gb": "1"}), True),
        (pod("Pending", {"nvidia.com/gpu": "1"}), True),
        (pod("Succeeded", {"nvidia.com/gpu": "1"}), False),
        (pod("Running", {"cpu": "1"}), False),
        ({"status": {}, "spec": {"containers": [{}], "initContainers": []}}, False),
    ],
)
def test_pods_that_hold_gpus(used, uses):
    assert mig_manager.uses_gpus(used) is uses
