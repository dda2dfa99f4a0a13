"""Each guard refuses what it must, and in namespaces with guard mode `audit` warns with the same message."""

import re
from pathlib import Path

import pytest
import yaml

CLUSTER = Path(__file__).parents[2] / "deploy" / "cluster"
POLICIES = CLUSTER / "policies"
CLUSTER_SCOPED = {
    *("namespaces", "clusterroles", "clusterqueues", "cohorts", "resourceflavors"),
    *("priorityclasses", "flowschemas", "prioritylevelconfigurations"),
}
ALWAYS_REFUSE = {
    *("kept-objects", "holder-pods", "job-selector"),  # what the portal keeps, and its holders
    "refused-kinds",  # all that keeps these kinds from the tenant role
    "gang-scheduling",  # what would be held uncounted
    *("portal-reach", "portal-namespaces"),  # the portal itself
    *("portal-priority-classes", "portal-priority-levels", "portal-flow-schemas"),
}
WARN_ONLY = {"job-choice", "container-choice", "workload-templates"}
MANAGED = {"gpu-portal.io/managed": "true"}
NOT_WARNED = [{"key": "gpu-portal.io/guard", "operator": "NotIn", "values": ["audit"]}]


def bindings(guard):
    found = yaml.safe_load_all((POLICIES / f"{guard}.yaml").read_text())
    return {entry["metadata"]["name"]: entry["spec"] for entry in found if entry["kind"].endswith("PolicyBinding")}


def of_tenants():
    for path in sorted(POLICIES.glob("*.yaml")):
        if "kind: ValidatingAdmissionPolicy\n" in path.read_text() and path.stem not in ALWAYS_REFUSE | WARN_ONLY:
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


@pytest.mark.parametrize("guard", sorted(WARN_ONLY))
def test_what_only_warns_refuses_nowhere(guard):
    (binding,) = bindings(guard).values()
    assert binding["validationActions"] == ["Warn"]
    assert binding["matchResources"]["namespaceSelector"] == {"matchLabels": MANAGED}


def variables(guard):
    policy = next(yaml.safe_load_all((POLICIES / f"{guard}.yaml").read_text()))
    return {each["name"]: each["expression"] for each in policy.get("spec", {}).get("variables", ())}


def test_what_runs_at_one_time_is_said_alike_in_every_guard_that_adds_it_up():
    def of_containers(expression):
        return re.sub(r"^\[[\w.]+ \+", "[containers +", expression)

    said = {path.stem: variables(path.stem).get("together") for path in POLICIES.glob("*.yaml")}
    found = {guard: of_containers(expression) for guard, expression in said.items() if expression}
    assert len(found) == 7
    assert len(set(found.values())) == 1
    adding = {path.stem for path in POLICIES.glob("*.yaml") if "asApproximateFloat())).sum()" in path.read_text()}
    assert not adding - found.keys()


def test_what_may_be_chosen_for_a_job_is_what_can_run_it():
    refusing, warning = variables("job-flavors"), variables("job-choice")
    common = {"gpus", "together", "perContainer", "perPod", "terms", "allowed", "giving", "enough", "running"}
    assert {name: refusing[name] for name in common} == {name: warning[name] for name in common}


def test_queued_jobs_are_bounded_by_the_flavors_whose_share_they_are_given_as_limits():
    bound, given = variables("job-share"), variables("job-limits")
    common = {
        "gpus",
        "stated",
        "filled",
        "whole",
        "asked",
        "flavors",
        "allowed",
        "admissible",
        "possible",
        "cpu",
        "memory",
    }
    assert common <= bound.keys() & given.keys()
    assert {name: bound[name] for name in common} == {name: given[name] for name in common}


def test_the_portals_reach_is_bounded_for_every_kind_that_its_roles_let_it_write():
    """Subresources, such as the status of a workload, are of objects that were made within its reach."""
    rules = [
        rule
        for role in ("portal", "people")
        for manifest in yaml.safe_load_all((CLUSTER / "roles" / f"{role}.yaml").read_text())
        for rule in manifest.get("rules", ())
        if {"create", "patch", "update", "delete"} & set(rule["verbs"])
    ]
    may_write = {
        (group, kind)
        for rule in rules
        for group in rule["apiGroups"]
        for kind in rule["resources"]
        if "/" not in kind and kind not in CLUSTER_SCOPED
    }
    policy = next(yaml.safe_load_all((POLICIES / "portal-reach.yaml").read_text()))
    bounded = policy["spec"]["matchConstraints"]["resourceRules"]
    assert {(group, kind) for rule in bounded for group in rule["apiGroups"] for kind in rule["resources"]} == may_write
