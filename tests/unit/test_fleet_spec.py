"""Reading the fleet file, and what commands leave for the publisher."""

from pathlib import Path

import pytest
import yaml

from deploy.local.fleet import geometry, quantities, spec, state

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
    assert {kind.name: (list(kind.node_names()), kind.gpus, kind.path) for kind in FLEET.kinds} == {
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
    with pytest.raises(ValueError, match="no node kind h200; there are a100, h100, l40s, t4"):
        FLEET.with_extra({"h200": 1})


def test_a_card_without_mig_cannot_be_cut(tmp_path):
    file = edited(tmp_path, lambda raw: raw["kinds"]["l40s"].update(mig={"strategy": "mixed", "devices": {}}))
    with pytest.raises(ValueError, match="l40s: NVIDIA L40S cannot do MIG"):
        spec.load(file)


def test_dra_is_simulated_with_dynamic_mig_only(tmp_path):
    with pytest.raises(ValueError, match="l40s: path dra and MIG strategy dynamic"):
        spec.load(edited(tmp_path, lambda raw: raw["kinds"]["l40s"].update(path="dra")))


def test_a_misspelt_key_is_named(tmp_path):
    with pytest.raises(TypeError, match="gpu_count"):
        spec.load(edited(tmp_path, lambda raw: raw["kinds"]["l40s"].update(gpu_count=4)))


def test_a_layout_may_only_name_profiles_of_its_card():
    with pytest.raises(KeyError, match=r"A100-80GB has no MIG profile 1g\.5gb; it has 1g\.10gb"):
        geometry.profile("A100-80GB", "1g.5gb")


@pytest.mark.parametrize(("mib", "text"), [(9984, "9984Mi"), (1024, "1Gi"), (2 * 1024**2, "2Ti"), (0, "0Mi")])
def test_quantities_are_spelt_as_the_server_spells_them(mib, text):
    assert quantities.of_mib(mib) == text


def test_wishes_survive_as_data_of_a_configmap():
    assert state.from_data({}) == state.State()
    wished = state.with_taint(state.with_extra(state.State(), {"h100": 64}), "h100-0", "gpu-3", TAINT)
    assert state.from_data(state.to_data(wished)) == state.State({"h100": 64}, {"h100-0": {"gpu-3": [TAINT]}})


def test_wishes_are_taken_back():
    wished = state.with_taint(state.with_extra(state.State(), {"h100": 64}), "h100-0", "gpu-3", TAINT)
    assert state.healed(state.with_extra(wished, {"h100": 0}), "h100-0", "gpu-3") == state.State()


def test_a_device_has_one_taint_per_key():
    older = state.with_taint(state.State(), "h100-0", "gpu-3", TAINT)
    newer = state.with_taint(older, "h100-0", "gpu-3", TAINT | {"value": "48"})
    assert newer.taints == {"h100-0": {"gpu-3": [TAINT | {"value": "48"}]}}
