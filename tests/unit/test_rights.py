"""The tables of what tenants may write refer to existing tests and files; the comparison with OpenAPI finds gaps."""

import ast
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from allocations.cluster.manifests.project import ProjectFacts, object_quota
from portal.tenants import object_limits
from tests.cluster.rights import __main__ as guide
from tests.cluster.rights.comparison import compare, compare_rights
from tests.cluster.rights.schema import Body, Right, bodies, rights
from tests.cluster.rights.table import VERDICTS, entries, fields, tables
from tests.support.cluster.manifests import table as attack_table

REPOSITORY = Path(__file__).parents[2]
ATTACKS = {row["attack"]: row["guard"] for row in attack_table("attacks")}
ENTRIES = [pytest.param(entry, id=entry.names[0]) for entry in entries()]
PROJECT = ProjectFacts(
    *("vision-1", "vision-1", "vision", "research", "vision"),
    object_quota=object_limits.quota({}, is_adopted=False),
    other_pods=500,
    config_size_kib=128,
)


@cache
def functions(file):
    return {node.name for node in ast.parse((REPOSITORY / file).read_text()).body if isinstance(node, ast.FunctionDef)}


def is_there(guard):
    if guard.endswith(".yaml"):
        return (REPOSITORY / "deploy" / "cluster" / guard).is_file()
    if guard.startswith("quota "):
        return guard.removeprefix("quota ") in object_quota(PROJECT)["spec"]["hard"]
    return guard.startswith(("Pod Security", "the API server"))


@pytest.mark.parametrize("entry", ENTRIES)
def test_an_entry_says_what_guards_the_field_or_why_it_is_harmless(entry):
    assert entry.verdict in VERDICTS
    if entry.verdict == "allowed":
        assert entry.why
        assert not entry.by
    else:
        assert entry.by
        assert entry.attacks or entry.tests


@pytest.mark.parametrize("entry", ENTRIES)
def test_what_an_entry_names_is_there(entry):
    assert [guard for guard in entry.by if not is_there(guard)] == []
    assert [attack for attack in entry.attacks if attack not in ATTACKS] == []
    found = [test.partition("::") for test in entry.tests]
    assert [f"{file}::{name}" for file, _, name in found if name not in functions(file)] == []


@pytest.mark.parametrize("entry", ENTRIES)
def test_the_attacks_of_an_entry_meet_its_guards(entry):
    met = {ATTACKS[attack] for attack in entry.attacks}
    policies = {guard for guard in entry.by if guard.startswith("policies/")}
    assert not met or met & set(entry.by)
    assert entry.tests or policies <= met


def test_no_field_and_no_right_has_two_entries():
    names = [name for entry in entries() for name in entry.names]
    assert sorted(names) == sorted(set(names))


def test_the_guide_has_the_tables():
    text = guide.GUIDE.read_text(encoding="utf-8")
    assert guide.written(text) == text, "python -m tests.cluster.rights --write"


def test_each_table_has_its_section_in_the_guide():
    assert all(f"## {table.title}\n" in guide.page() for table in tables())


def test_a_projects_quota_bounds_its_pods():
    assert object_quota(PROJECT)["spec"]["hard"]["count/pods"] == "2000"


SCHEMAS: dict[str, Any] = {
    "v1.Pod": {"properties": {"spec": {"allOf": [{"$ref": "#/components/schemas/v1.PodSpec"}]}}},
    "v1.PodSpec": {
        "properties": {
            "nodeName": {"type": "string"},
            "labels": {"type": "object", "additionalProperties": {"type": "string"}},
            "volumes": {"type": "array", "items": {"$ref": "#/components/schemas/v1.Volume"}},
            "parent": {"$ref": "#/components/schemas/v1.PodSpec"},
            "ports": {"additionalProperties": {"properties": {"port": {"type": "integer"}}}},
        }
    },
    "v1.Volume": {"properties": {"name": {}, "disk": {"$ref": "#/components/schemas/v1.Disk"}}},
    "v1.Disk": {"properties": {"size": {"type": "string"}}},
}
POD = Body("Pod", SCHEMAS["v1.Pod"], SCHEMAS)
COMPLETE = {
    **dict.fromkeys(["PodSpec.nodeName", "PodSpec.labels", "PodSpec.parent", "Volume.name", "Disk.size"], False),
    "PodSpec.ports": True,
}


def test_fields_with_an_entry_each_leave_nothing_to_say():
    assert compare([POD], COMPLETE).sentences() == []


def test_a_field_without_an_entry_is_told_with_its_path():
    without = {address: whole for address, whole in COMPLETE.items() if address != "Disk.size"}
    (told,) = compare([POD], without).sentences()
    assert told.startswith("Tenants may write Disk.size (Pod.spec.volumes.disk.size), and no entry")


def test_fields_within_a_map_are_looked_at():
    without = {address: whole for address, whole in COMPLETE.items() if address != "PodSpec.ports"}
    assert list(compare([POD], without).missing.values()) == ["Pod.spec.ports.port"]


def test_an_entry_of_a_field_with_fields_covers_them_only_if_it_says_so():
    above = {address: whole for address, whole in COMPLETE.items() if not address.startswith(("Volume.", "Disk."))}
    assert compare([POD], {**above, "PodSpec.volumes": True}).sentences() == []
    (told,) = compare([POD], {**above, "PodSpec.volumes": False}).sentences()
    assert told.startswith("PodSpec.volumes has fields of its own")


def test_an_entry_is_of_a_field_that_is_there_and_not_covered_above():
    assert compare([POD], {**COMPLETE, "PodSpec.nodName": False}).unused == ["PodSpec.nodName"]
    assert compare([POD], {**COMPLETE, "PodSpec.volumes": True}).unused == ["Disk.size", "Volume.name"]


def test_a_more_precise_entry_comes_first():
    found = compare([POD], {**COMPLETE, "Pod.spec.nodeName": False})
    assert found.unused == ["PodSpec.nodeName"]


def test_an_entry_of_a_key_needs_one_of_its_map():
    assert compare([POD], {**COMPLETE, "PodSpec.labels{app}": False}).sentences() == []
    without = {address: whole for address, whole in COMPLETE.items() if address != "PodSpec.labels"}
    found = compare([POD], {**without, "PodSpec.labels{app}": False})
    assert (list(found.missing), found.unused) == (["PodSpec.labels"], ["PodSpec.labels{app}"])


def operation(action, kind, body=None, query=()):
    schema = {"$ref": f"#/components/schemas/{body}"}
    return {
        "x-kubernetes-action": action,
        "x-kubernetes-group-version-kind": {"group": "", "kind": kind, "version": "v1"},
        "parameters": [{"name": name, "in": "query", "schema": {"type": "string"}} for name in query],
        **({"requestBody": {"content": {"*/*": {"schema": schema}}}} if body else {}),
    }


KIND = {"x-kubernetes-group-version-kind": [{"group": "", "kind": "Pod", "version": "v1"}]}
NAMESPACED = "/api/v1/namespaces/{namespace}/pods"
DOCUMENTS = {
    "api/v1": {
        "components": {"schemas": {**SCHEMAS, "v1.Pod": {**SCHEMAS["v1.Pod"], **KIND}}},
        "paths": {
            NAMESPACED: {"post": operation("post", "Pod", "v1.Pod", ["dryRun"]), "get": operation("list", "Pod")},
            f"{NAMESPACED}/{{name}}": {"patch": operation("patch", "Pod", None, ["force"])},
            f"{NAMESPACED}/{{name}}/exec": {"post": operation("connect", "PodExecOptions", None, ["command"])},
            f"{NAMESPACED}/{{name}}/log": {"get": operation("get", "Pod")},
        },
    }
}


@pytest.mark.parametrize(
    ("right", "names"),
    [
        (Right("", "pods", "create"), ["Pod", "Query"]),
        (Right("", "pods", "patch"), ["Pod", "Query"]),
        (Right("", "pods/exec", "create"), ["PodExecOptions"]),
        (Right("", "pods", "list"), []),
        (Right("", "pods/log", "get"), []),
        (Right("batch", "pods", "create"), []),
    ],
    ids=str,
)
def test_what_a_right_lets_people_write_is_found_in_openapi(right, names):
    assert [body.name for body in bodies(DOCUMENTS, [right])] == names


def test_parameters_of_requests_are_fields_too():
    both = [Right("", "pods", "create"), Right("", "pods", "patch")]
    (query,) = [body for body in bodies(DOCUMENTS, both) if body.name == "Query"]
    assert sorted(query.schema["properties"]) == ["dryRun", "force"]


def test_rights_are_those_of_all_rules():
    rules = [
        {"apiGroups": [""], "resources": ["pods", "pods/exec"], "verbs": ["create"]},
        {"apiGroups": ["apps"], "resources": ["deployments/scale"], "verbs": ["get", "patch"]},
    ]
    said = sorted(str(right) for right in rights(rules))
    assert said == ["create pods", "create pods/exec", "get deployments.apps/scale", "patch deployments.apps/scale"]


@pytest.mark.parametrize(
    "rule",
    [
        {"apiGroups": ["*"], "resources": ["pods"], "verbs": ["get"]},
        {"apiGroups": [""], "resources": ["*"], "verbs": ["get"]},
        {"apiGroups": [""], "resources": ["pods"], "verbs": ["*"]},
        {"apiGroups": [""], "resources": ["pods"], "verbs": ["get"], "resourceNames": ["one"]},
        {"nonResourceURLs": ["/healthz"], "verbs": ["get"]},
    ],
)
def test_a_rule_that_cannot_be_enumerated_is_refused(rule):
    with pytest.raises(ValueError, match=r"not looked at|no \*"):
        rights([rule])


def test_a_right_without_an_entry_and_an_entry_without_a_right_are_told():
    told = compare_rights({Right("batch", "cronjobs", "create")}, {"create pods"})
    assert told[0].startswith("Tenants may create cronjobs.batch, and no entry")
    assert told[1].startswith("The entry create pods in tests/cluster/rights/role.yaml is of no right")


def test_the_tables_are_of_the_fields_that_templates_share():
    assert {"PodSpec.nodeName", "Container.image", "JobSpec.parallelism", "ServiceSpec.type"} <= set(fields())
