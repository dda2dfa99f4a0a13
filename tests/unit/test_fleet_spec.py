"""Reading the fleet file, and the changes that commands store for the publisher."""

from pathlib import Path

import pytest
import yaml

from deploy.local.fleet import quantities, spec, state, switches

FLEET = spec.load(spec.FLEET_FILE)
TAINT = {
    "key": "gpu.nvidia.com/xid",
    "value": "79",
    "effect": "NoSchedule",
    "timeAdded": "2026-01-01T00:00:00Z",
}


def edited(tmp_path: Path, edit) -> Path:
    raw = yaml.safe_load(spec.FLEET_FILE.read_text())
    edit(raw)
    file = tmp_path / "fleet.yaml"
    file.write_text(yaml.safe_dump(raw))
    return file


def test_the_fleet_of_the_demo():
    assert {kind.name: (list(kind.node_names()), kind.gpus, kind.path) for kind in FLEET.kinds if kind.nodes} == {
        "h100": (["h100-0", "h100-1"], 8, "dra"),
        "a100": (["a100-0"], 8, "device-plugin"),
        "l40s": (["l40s-0", "l40s-1"], 4, "device-plugin"),
        "t4": (["t4-0", "t4-1"], 4, "device-plugin"),
    }


def test_extra_nodes_are_counted_on_and_do_not_rename_the_others():
    h100 = FLEET.with_extra({"h100": 64}).kinds[0]
    assert list(h100.node_names())[:3] == ["h100-0", "h100-1", "h100-2"]
    assert h100.nodes == 66


def test_unknown_kind_is_refused_with_those_that_exist():
    with pytest.raises(ValueError, match="no node kind b200; there are a10-dra, a100, a100-shared, "):
        FLEET.with_extra({"b200": 1})


def test_other_kinds_have_no_nodes_until_they_are_switched_on():
    off = {kind.name for kind in FLEET.kinds if not kind.nodes}
    assert off == {
        "h200", "a100-static", "l40s-shares", "a10-dra", "a30-single", "a100-shared", "t4-plain", "l4-mps", "a40-vgpu",
    }  # fmt: skip
    h200 = next(kind for kind in FLEET.with_extra({"h200": 2}).kinds if kind.name == "h200")
    assert list(h200.node_names()) == ["h200-0", "h200-1"]


def test_a_card_without_mig_cannot_be_cut(tmp_path):
    file = edited(tmp_path, lambda raw: raw["kinds"]["l40s"].update(mig={"strategy": "mixed", "devices": {}}))
    with pytest.raises(ValueError, match="l40s: NVIDIA L40S cannot do MIG"):
        spec.load(file)


@pytest.mark.parametrize(
    ("kind", "change", "problem"),
    [
        ("h100", {"path": "device-plugin"}, "MIG strategy dynamic is not for path device-plugin"),
        ("a100", {"path": "dra"}, "MIG strategy mixed is not for path dra"),
        ("a100", {"mig": {"strategy": "mixed", "config": "all-1g.5gb"}}, "no MIG configuration all-1g.5gb; there are"),
        ("l40s", {"shares": 4}, "shares are for whole cards by path dra"),
        ("h100", {"shares": 4}, "shares are for whole cards by path dra"),
        ("t4", {"path": "dra"}, "sharing and vgpu are for path device-plugin"),
        ("a100", {"sharing": {"strategy": "mps", "replicas": 2, "config": "mps-2"}}, "MPS does not share MIG devices"),
    ],
)
def test_what_nvidia_s_components_do_not_do_is_not_simulated(tmp_path, kind, change, problem):
    with pytest.raises(ValueError, match=f"{kind}: {problem}"):
        spec.load(edited(tmp_path, lambda raw: raw["kinds"][kind].update(change)))


def test_a_misspelt_key_is_named(tmp_path):
    with pytest.raises(TypeError, match="gpu_count"):
        spec.load(edited(tmp_path, lambda raw: raw["kinds"]["l40s"].update(gpu_count=4)))


def test_kinds_are_switched_on_by_name():
    assert switches.extra_nodes(["h200", "l4-mps=2", "t4=0"]) == {"h200": 1, "l4-mps": 2, "t4": 0}


@pytest.mark.parametrize("word", ["=1", "h200=", "h200=some", "h200=-1"])
def test_a_word_that_switches_nothing_is_named(word):
    with pytest.raises(ValueError, match=f"'{word}' is neither KIND nor KIND=N"):
        switches.extra_nodes([word])


@pytest.mark.parametrize(("mib", "text"), [(9984, "9984Mi"), (1024, "1Gi"), (2 * 1024**2, "2Ti"), (0, "0Mi")])
def test_quantities_are_spelt_as_the_server_spells_them(mib, text):
    assert quantities.of_mib(mib) == text


def test_changes_survive_as_data_of_a_configmap():
    assert state.from_data({}) == state.State()
    requested = state.with_taint(state.with_extra(state.State(), {"h100": 64}), "h100-0", "gpu-3", TAINT)
    assert state.from_data(state.to_data(requested)) == state.State({"h100": 64}, {"h100-0": {"gpu-3": [TAINT]}})


def test_changes_can_be_reverted():
    requested = state.with_taint(state.with_extra(state.State(), {"h100": 64}), "h100-0", "gpu-3", TAINT)
    assert state.healed(state.with_extra(requested, {"h100": 0}), "h100-0", "gpu-3") == state.State()


def test_a_device_has_one_taint_per_key():
    older = state.with_taint(state.State(), "h100-0", "gpu-3", TAINT)
    newer = state.with_taint(older, "h100-0", "gpu-3", TAINT | {"value": "48"})
    assert newer.taints == {"h100-0": {"gpu-3": [TAINT | {"value": "48"}]}}
