"""Each guard of tenants refuses, and where a namespace is guarded by warnings says the same as a warning."""

from pathlib import Path

import pytest
import yaml

POLICIES = Path(__file__).parents[2] / "deploy" / "cluster" / "policies"
ALWAYS_REFUSE = {
    *("kept-objects", "holder-pods", "job-selector"),  # what the portal keeps, and its holders
    *("portal-reach", "portal-namespaces", "portal-priority-classes"),  # the portal itself
}
MANAGED = {"gpu-portal.io/managed": "true"}
NOT_WARNED = [{"key": "gpu-portal.io/guard", "operator": "NotIn", "values": ["audit"]}]


def bindings(guard):
    found = yaml.safe_load_all((POLICIES / f"{guard}.yaml").read_text())
    return {entry["metadata"]["name"]: entry["spec"] for entry in found if entry["kind"].endswith("PolicyBinding")}


def of_tenants():
    for path in sorted(POLICIES.glob("*.yaml")):
        if "kind: ValidatingAdmissionPolicy\n" in path.read_text() and path.stem not in ALWAYS_REFUSE:
            yield path.stem


@pytest.mark.parametrize("guard", list(of_tenants()))
def test_a_guard_refuses_or_warns_by_the_namespaces_label(guard):
    found = bindings(guard)
    refuses, warns = found.pop(f"gpu-portal-{guard}"), found.pop(f"gpu-portal-{guard}-audit")
    assert found == {}
    assert (refuses.pop("validationActions"), warns.pop("validationActions")) == (["Deny"], ["Warn", "Audit"])
    where = [binding.pop("matchResources")["namespaceSelector"] for binding in (refuses, warns)]
    assert where[0] == {"matchLabels": MANAGED, "matchExpressions": NOT_WARNED}
    assert where[1] == {"matchLabels": {**MANAGED, "gpu-portal.io/guard": "audit"}}
    assert refuses == warns


@pytest.mark.parametrize("guard", sorted(ALWAYS_REFUSE))
def test_what_keeps_the_portal_whole_always_refuses(guard):
    (binding,) = bindings(guard).values()
    assert binding["validationActions"] == ["Deny"]
    assert "matchExpressions" not in str(binding)
