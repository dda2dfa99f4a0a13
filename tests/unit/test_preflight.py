"""Findings about a cluster's configuration, and their fixes."""

from dataclasses import replace

import pytest

from allocations.cluster.capabilities import features
from allocations.cluster.preflight.checks import is_ready, run_checks
from allocations.cluster.preflight.kueue import KUEUE_KINDS
from allocations.cluster.preflight.types import ClusterFacts, FlowSchema, Guard, ReadError, Requirements, Right, Status

GUARD = Guard("ValidatingAdmissionPolicy", "gpu-portal-pod-placement", rules=1)
BINDING = Guard("ValidatingAdmissionPolicyBinding", "gpu-portal-pod-placement")
CLASSES = {
    "gpu-portal-holder": {"value": 1_000_000_000, "preemptionPolicy": "Never"},
    "gpu-portal-queued-job": {"value": 100, "preemptionPolicy": "Never"},
}
PREEMPTS = {"value": 1_000_000_000, "preemptionPolicy": "PreemptLowerPriority"}
MAY, MAY_NOT = Right("patch", "", "pods"), Right("list", "", "secrets")
EXPECTED = Requirements(guards=(GUARD, BINDING), required_rights=(MAY,), excessive_rights=(MAY_NOT,))
KUEUE = {
    "integrations": {"frameworks": ["batch/job"]},
    "waitForPodsReady": {"timeout": "5m0s", "requeuingStrategy": {"backoffLimitCount": 5}},
    "resources": {
        "quotaCheckStrategy": "BlockUndeclared",
        "excludeResourcePrefixes": ["cpu", "memory", "ephemeral-storage", "hugepages-"],
    },
    "featureGates": {
        "KueueDRAIntegration": False,
        "KueueDRAIntegrationExtendedResource": False,
        "KueueDRAIntegrationPartitionableDevices": False,
        "UnadmittedWorkloadsObservability": True,
        "UnadmittedWorkloadsExplicitStatus": True,
    },
}
SERVED = (
    "resource.k8s.io/v1",
    "admissionregistration.k8s.io/v1/validatingadmissionpolicies",
    "admissionregistration.k8s.io/v1/mutatingadmissionpolicies",
)
OF_KUEUE = {f"{kind}.kueue.x-k8s.io": ("v1beta1", "v1beta2") for kind in KUEUE_KINDS}
CRDS = {"gpuprojects.gpu-portal.io": ("v1",)} | OF_KUEUE
WEBHOOK = {"webhooks": [{"failurePolicy": "Fail"}]}
TENANTS = FlowSchema("gpu-portal-tenants", "gpu-portal-tenants", 1000, ("system:serviceaccounts:gpu-portal-people",))
PROJECTS = FlowSchema(
    "gpu-portal-projects",
    "gpu-portal-tenants",
    8900,
    ("system:serviceaccounts:vision", "system:serviceaccounts:idle", "system:serviceaccounts:language"),
)
ACCOUNTS = FlowSchema("service-accounts", "workload-low", 9000, ("system:serviceaccounts",))
NO = ReadError("403 Forbidden: no")
GOOD = ClusterFacts(
    version="v1.36.3",
    kueue=KUEUE,
    kueue_pod={"image": "registry.k8s.io/kueue/kueue:v0.19.2", "args": ["--config=/config.yaml"]},
    served=SERVED,
    crds=CRDS,
    guards=(GUARD, BINDING),
    priority_classes=CLASSES,
    roles={"gpu-portal:tenant": True},
    flows=(TENANTS, PROJECTS, ACCOUNTS),
    projects=("vision", "idle", "language"),
    classes=("gpu.nvidia.com", "mig.nvidia.com"),
    uses_dra=True,
    rights={MAY: True, MAY_NOT: False},
    nodes={"h100-0": ""},
    flavors=("h100",),
    store_bytes=26 * 1024**2,
    stored_kib={"vision": 4096, "idle": 0, "language": 8192},
)


def bent(**changes: object) -> dict[str, object]:
    """Return Kueue's configuration with some sections replaced."""
    return {**KUEUE, **changes}


def test_a_good_cluster_has_nothing_but_ok():
    findings = run_checks(GOOD, EXPECTED)
    assert {finding.status for finding in findings} == {Status.OK}
    assert is_ready(findings)


PROBLEMS = {
    "old Kubernetes": ({"version": "v1.33.9"}, "Kubernetes", "upgrade to 1.35.0"),
    "Kubernetes that refuses the guards": ({"version": "v1.34.4+k3s1"}, "Kubernetes", "flatten and distinct"),
    "no DRA": ({"served": SERVED[1:]}, "Dynamic Resource Allocation", "1.35"),
    "neither mutating policies nor the webhook": ({"served": SERVED[:2]}, "Mutation", "deploy/cluster/webhook"),
    "a webhook that fails open": (
        {"served": SERVED[:2], "webhook": {"webhooks": [{"failurePolicy": "Ignore"}]}},
        "Mutation",
        "deploy/cluster/webhook",
    ),
    "the webhook unread where it is needed": (
        {"served": SERVED[:2], "webhook": NO},
        "Mutation",
        "deploy/cluster/webhook",
    ),
    "an older Kueue by its image": ({"kueue_pod": {"image": "kueue:v0.18.4"}}, "Kueue", "upgrade Kueue to 0.19"),
    "a DRA gate on by a flag": (
        {"kueue": NO, "kueue_pod": {"args": ["--feature-gates=KueueDRAIntegration=true"]}},
        "Kueue's DRA gates",
        "beside its lease",
    ),
    "no GpuProject": (
        {"crds": {**CRDS, "gpuprojects.gpu-portal.io": ()}},
        "gpuprojects.gpu-portal.io",
        "kubectl apply",
    ),
    "no Kueue": ({"crds": {**CRDS, "workloads.kueue.x-k8s.io": ()}}, "workloads.kueue.x-k8s.io", "install Kueue"),
    "an older Kueue": (
        {"crds": {**CRDS, "cohorts.kueue.x-k8s.io": ("v1beta1",)}},
        "cohorts.kueue.x-k8s.io",
        "Kueue 0.19",
    ),
    "a DRA gate on by default": ({"kueue": bent(featureGates={})}, "Kueue's DRA gates", "set them false"),
    "observability gates off": ({"kueue": bent(featureGates={})}, "Kueue's observability gates", "set them true"),
    "pod integration": (
        {"kueue": bent(integrations={"frameworks": ["batch/job", "pod"]})},
        "Kueue's pod integration",
        "remove framework pod",
    ),
    "undeclared resources free": ({"kueue": bent(resources={})}, "Kueue's undeclared resources", "BlockUndeclared"),
    "cpu counted": ({"kueue": bent(resources={})}, "Kueue's excluded resources", "excludeResourcePrefixes"),
    "no waitForPodsReady": ({"kueue": bent(waitForPodsReady=None)}, "Kueue's waitForPodsReady", "300s"),
    "waitForPodsReady too short": (
        {"kueue": bent(waitForPodsReady={"timeout": "120s"})},
        "Kueue's waitForPodsReady",
        "above the portal's 120 s",
    ),
    "quota kept for pods that are lost": (
        {"kueue": bent(waitForPodsReady={"timeout": "300s", "recoveryTimeout": "0s"})},
        "Kueue's recovery timeout",
        "recoveryTimeout: 300s",
    ),
    "requeued for ever": (
        {"kueue": bent(waitForPodsReady={"timeout": "300s"})},
        "Kueue's requeuing limit",
        "backoffLimitCount: 5",
    ),
    "a guard missing": ({"guards": (BINDING,)}, "Guards", "kubectl apply"),
    "a guard unbound": ({"guards": (GUARD,)}, "Guards", "kubectl apply"),
    "a guard that only warns": ({"guards": (GUARD, replace(BINDING, fails_closed=False))}, "Guards", "kubectl apply"),
    "a guard of an earlier release": (
        {"guards": (GUARD, BINDING, replace(GUARD, name="gpu-portal-gpu-taints"))},
        "Guards of earlier releases",
        "kubectl delete validatingadmissionpolicy gpu-portal-gpu-taints",
    ),
    "a guard of another release": ({"guards": (replace(GUARD, rules=2), BINDING)}, "Guards", "kubectl apply"),
    "no class of holders": (
        {"priority_classes": CLASSES | {"gpu-portal-holder": None}},
        "PriorityClass gpu-portal-holder",
        "kubectl apply",
    ),
    "a holder class that preempts": (
        {"priority_classes": {"gpu-portal-holder": PREEMPTS}},
        "PriorityClass gpu-portal-holder",
        "kubectl apply",
    ),
    "no class of queued Jobs": (
        {"priority_classes": CLASSES | {"gpu-portal-queued-job": None}},
        "PriorityClass gpu-portal-queued-job",
        "kubectl apply",
    ),
    "no tenant role": ({"roles": {"gpu-portal:tenant": False}}, "ClusterRole gpu-portal:tenant", "kubectl apply"),
    "tenants among all service accounts": ({"flows": (ACCOUNTS,)}, "Tenants' priority level", "kubectl apply"),
    "tenants' level used by others too": (
        {"flows": (TENANTS, replace(ACCOUNTS, level=TENANTS.level))},
        "Tenants' priority level",
        "kubectl apply",
    ),
    "tenants' FlowSchema asked too late": (
        {"flows": (TENANTS, replace(ACCOUNTS, precedence=999))},
        "Tenants' priority level",
        "a lower matchingPrecedence",
    ),
    "no FlowSchema for tenants": ({"flows": ()}, "Tenants' priority level", "kubectl apply"),
    "no device class": ({"classes": ("gpu.nvidia.com",)}, "DeviceClasses", "DRA driver"),
    "a right lacking": ({"rights": {}}, "Our rights", "service account gpu-portal/portal"),
    "a right too many": ({"rights": {MAY: True, MAY_NOT: True}}, "Rights we should not have", "bind no other role"),
    "no flavor": ({"flavors": (), "nodes": {}}, "GPU flavors", "GPU Operator"),
    "guards unread": ({"guards": NO}, "Guards", "service account gpu-portal/portal"),
    "nodes unread": ({"nodes": NO}, "GPU nodes", "service account gpu-portal/portal"),
    "etcd nearly full": ({"store_bytes": 1800 * 1024**2}, "etcd", "Most objects: language (at most 8 MiB), vision (at"),
    "etcd full": ({"store_bytes": 2 * 1024**3}, "etcd", "etcdctl alarm disarm"),
    "the size of etcd unread": ({"store_bytes": NO}, "etcd", "service account gpu-portal/portal"),
    "version unread": ({"version": NO}, "Kubernetes", "service account gpu-portal/portal"),
}


@pytest.mark.parametrize(("changes", "check", "fix"), PROBLEMS.values(), ids=PROBLEMS.keys())
def test_a_problem_is_named_with_its_fix(changes, check, fix):
    findings = run_checks(replace(GOOD, **changes), EXPECTED)
    (found,) = [finding for finding in findings if finding.check == check and finding.status is Status.PROBLEM]
    assert fix in found.fix
    assert not is_ready(findings)


ADVICE = {
    "an untainted node": ({"nodes": {"h100-0": "no GPU taint"}}, "Node h100-0"),
    "Kueue's configuration unread": ({"kueue": NO}, "Kueue's configuration"),
    "etcd filling": ({"store_bytes": 1300 * 1024**2}, "etcd"),
    "the size of etcd not told": ({"store_bytes": None}, "etcd"),
    "projects' accounts among all service accounts": (
        {"flows": (TENANTS, ACCOUNTS)},
        "Priority level of projects' accounts",
    ),
    "a project's accounts left out": (
        {"projects": ("vision", "idle", "language", "late")},
        "Priority level of projects' accounts",
    ),
    "projects' FlowSchema asked too late": (
        {"flows": (TENANTS, PROJECTS, replace(ACCOUNTS, precedence=8000))},
        "Priority level of projects' accounts",
    ),
    "no visibility": ({"visibility": "404"}, "Kueue's visibility API"),
    "a newer Kueue by its image": ({"kueue_pod": {"image": "kueue:v0.20.6@sha256:0123"}}, "Kueue"),
    "a newer Kueue by its definitions": (
        {"kueue_pod": None, "crds": {**CRDS, "workloads.kueue.x-k8s.io": ("v1beta2",)}},
        "Kueue",
    ),
}


@pytest.mark.parametrize(("changes", "check"), ADVICE.values(), ids=ADVICE.keys())
def test_what_stops_nothing_is_advice(changes, check):
    findings = run_checks(replace(GOOD, **changes), EXPECTED)
    (found,) = [finding for finding in findings if finding.status is not Status.OK]
    assert (found.check, found.status) == (check, Status.ADVICE)
    assert found.fix
    assert is_ready(findings)


def found(check, **changes):
    (finding,) = [finding for finding in run_checks(replace(GOOD, **changes), EXPECTED) if finding.check == check]
    return finding


def test_a_cluster_without_mutating_policies_is_ready_with_the_webhook():
    mutating = Guard("MutatingAdmissionPolicy", "gpu-portal-give-slices", rules=5)
    facts = replace(GOOD, version="v1.35.4", served=SERVED[:2], webhook=WEBHOOK)
    assert is_ready(run_checks(facts, replace(EXPECTED, guards=(GUARD, BINDING, mutating))))
    assert not is_ready(run_checks(GOOD, replace(EXPECTED, guards=(GUARD, BINDING, mutating))))


def test_a_webhook_beside_the_policies_is_allowed_and_said():
    assert found("Mutation", webhook=WEBHOOK).found == "by policies, and by webhook, which can be deleted"


@pytest.mark.parametrize(
    ("check", "changes", "expected"),
    [
        ("Division of GPUs on demand", {}, "there"),
        ("Division of GPUs on demand", {"version": "v1.35.4"}, "not there; Kubernetes 1.36 brings it"),
        ("Division of GPUs on demand", {"version": "v1.35.4", "features": {"DRAPartitionableDevices": True}}, "there"),
        ("Division of GPUs on demand", {"features": {"DRAPartitionableDevices": False}}, "not there; Kubernetes 1.36"),
        ("Drain of a device by rule", {}, "not there; Kubernetes 1.37 brings it"),
        ("Drain of a device by rule", {"served": (*SERVED, "resource.k8s.io/v1/devicetaintrules")}, "there"),
        ("Gangs of the scheduler", {}, "not served"),
        (
            "Gangs of the scheduler",
            {"served": (*SERVED, "scheduling.k8s.io/v1beta1/podgroups", "scheduling.k8s.io/v1/priorityclasses")},
            "scheduling.k8s.io/v1beta1/podgroups: refused in projects",
        ),
    ],
)
def test_what_a_cluster_can_do_is_told_with_what_brings_it(check, changes, expected):
    assert found(check, **changes).found.startswith(expected)


def test_feature_gates_are_read_from_metrics():
    lines = [
        b'kubernetes_feature_enabled{name="DRAPartitionableDevices",stage="BETA"} 1',
        b'kubernetes_feature_enabled{name="DRAExtendedResource",stage="ALPHA"} 0',
        b"apiserver_storage_size_bytes 26214400",
    ]
    assert features(lines) == {"DRAPartitionableDevices": True, "DRAExtendedResource": False}


def test_projects_whose_accounts_are_elsewhere_are_named():
    facts = replace(GOOD, projects=("vision", "late"))
    (found,) = [finding for finding in run_checks(facts, EXPECTED) if finding.check.startswith("Priority level of")]
    assert found.found == "1 of 2 namespaces are not in gpu-portal-tenants: late"


def test_without_dra_no_device_class_is_needed():
    assert is_ready(run_checks(replace(GOOD, classes=(), uses_dra=False), EXPECTED))


def quota(**settings):
    (found,) = [f for f in run_checks(GOOD, replace(EXPECTED, **settings)) if f.check == "etcd's quota"]
    return found


def test_the_bound_of_a_project_is_told_against_etcds_quota():
    assert quota().found == "ETCD_QUOTA_BYTES is 2.0 GiB: 6 projects at their bound of 320 MiB fill it"


def test_a_quota_that_one_project_fills_is_a_problem_and_one_above_8_gib_is_advised_against():
    assert quota(project_store_mib=4096).status is Status.PROBLEM
    assert quota(etcd_quota_bytes=9 * 1024**3).status is Status.ADVICE


def test_the_right_to_a_path_is_told_by_the_path():
    assert str(Right("get", "", "/metrics")) == "get /metrics"
