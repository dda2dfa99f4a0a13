"""Reads the facts from a cluster that ``allocations.cluster.preflight.checks`` examines.

Writes nothing. Requests that the API server refuses are returned as ``ReadError``, not raised.
"""

from collections.abc import Callable, Iterable, Mapping
from datetime import datetime
from pathlib import Path
from typing import Any, ParamSpec, TypeVar

import yaml

from allocations.cluster import capabilities, etcd_size, names
from allocations.cluster.client import Client
from allocations.cluster.errors import ClusterRefused, ClusterUnavailable
from allocations.cluster.kinds import INVENTORY, KINDS, OURS, observe
from allocations.cluster.manifests.project import OBJECT_QUOTA
from allocations.cluster.preflight.guards import MUTATING, MUTATING_API, VALIDATING
from allocations.cluster.preflight.kueue import KUEUE_KINDS
from allocations.cluster.preflight.types import (
    ClusterFacts,
    Document,
    FlowSchema,
    Guard,
    ReadError,
    Requirements,
    Right,
)
from allocations.cluster.preflight.versions import WEBHOOK
from allocations.domain.objects import ObservedObject
from portal.tenants import object_limits
from quotas.catalog.quantities import value

T = TypeVar("T")
P = ParamSpec("P")
KUEUE_CONFIG = "/api/v1/namespaces/kueue-system/configmaps/kueue-manager-config"
KUEUE_PODS = "/api/v1/namespaces/kueue-system/pods"
FLOWS = "/apis/flowcontrol.apiserver.k8s.io/v1/flowschemas"
GUARDS_API = "/apis/admissionregistration.k8s.io/v1"
DIFFERING_GROUPS = ("admissionregistration.k8s.io", "resource.k8s.io", "scheduling.k8s.io")
"""API groups whose kinds differ between the versions of Kubernetes."""
PRIORITY_CLASSES = (names.HOLDER_CLASS, names.QUEUED_JOB_CLASS)
ROLES = (names.MEMBER_ROLE, names.VIEWER_ROLE)
Raw = dict[str, Any]
Catalogue = Callable[[Iterable[ObservedObject], Iterable[ObservedObject]], tuple[Mapping[str, str], Iterable[str]]]
"""Nodes and ResourceSlices → the problem of each GPU node ("" if none), and the flavors found."""


def read_facts(client: Client, rights: Iterable[Right], catalogue: Catalogue, at: datetime) -> ClusterFacts:
    """Return all facts that the checks need. Does not raise errors of the API server."""
    nodes, slices = (_read(_observed, client, kind, at) for kind in ("Node", "ResourceSlice"))
    problems: Mapping[str, str] | ReadError
    flavors: Iterable[str] = ()
    if isinstance(nodes, ReadError) or isinstance(slices, ReadError):
        problems = nodes if isinstance(nodes, ReadError) else ReadError(slices)
    else:
        problems, flavors = catalogue(nodes, slices)
    served = _read(_served, client)
    metrics = _read(_metrics, client)
    visibility = _read(client.json, "GET", "/apis/visibility.kueue.x-k8s.io/v1beta2")
    return ClusterFacts(
        version=_read(_version, client),
        served=served,
        features={} if isinstance(metrics, ReadError) else capabilities.features(metrics),
        crds={name: _read(_versions, client, name) for name in _definitions()},
        visibility=visibility if isinstance(visibility, ReadError) else "",
        kueue=_read(_kueue, client),
        kueue_pod=_read(_kueue_pod, client),
        webhook=_read(_get, client, f"{GUARDS_API}/mutatingwebhookconfigurations/{WEBHOOK}"),
        guards=_read(_guards, client, isinstance(served, ReadError) or MUTATING_API in served),
        priority_classes={
            name: _read(_get, client, KINDS["PriorityClass"].path(name=name)) for name in PRIORITY_CLASSES
        },
        roles={role: _read(_role_exists, client, role) for role in ROLES},
        flows=_read(_flows, client),
        projects=[space["metadata"]["name"] for space in _items(client, "Namespace", labelSelector=OURS)],
        classes=_read(_names, client, "/apis/resource.k8s.io/v1/deviceclasses"),
        uses_dra=not isinstance(slices, ReadError) and bool(slices),
        rights={right: _read(_is_allowed, client, right) is True for right in rights},
        nodes=problems,
        flavors=tuple(flavors),
        store_bytes=metrics if isinstance(metrics, ReadError) else etcd_size.largest(metrics),
        stored_kib=_stored_kib(client),
    )


def requirements(policies: Path, start_deadline_s: int, etcd_quota_bytes: int, project_store_mib: int) -> Requirements:
    """Return the requirements of this release; ``policies`` is the folder of its admission policies."""
    documents = (yaml.safe_load_all(path.read_text()) for path in sorted(policies.glob("*.yaml")))
    shipped = [as_guard(raw) for file in documents for raw in file if raw["kind"] != "Kustomization"]
    return Requirements(
        tuple(shipped), required_rights(), EXCESSIVE_RIGHTS, start_deadline_s, etcd_quota_bytes, project_store_mib
    )


def as_guard(raw: Raw) -> Guard:
    """Return a guard for a policy or binding of admissionregistration.k8s.io/v1."""
    spec = raw["spec"]
    if raw["kind"].endswith("Binding"):
        denies = raw["kind"].startswith("Mutating") or "Deny" in spec.get("validationActions", ())
        return Guard(raw["kind"], raw["metadata"]["name"], fails_closed=denies)
    rules = len(spec.get("validations") or spec.get("mutations") or ())
    return Guard(raw["kind"], raw["metadata"]["name"], rules, spec.get("failurePolicy", "Fail") == "Fail")


def required_rights() -> tuple[Right, ...]:
    """Return the rights that ``deploy/cluster/roles`` grants and the portal uses."""
    rights: list[Right] = []
    for kind in KINDS.values():
        group = kind.api_version.rpartition("/")[0]
        verbs = ("list", "watch") if kind.name in INVENTORY else ("get", "list", "watch", "create", "patch", "delete")
        rights += [Right(verb, group, kind.plural, kind.only_in) for verb in verbs]
    rights += [Right(verb, "kueue.x-k8s.io", "workloads/status") for verb in ("patch", "update")]
    rights += [Right(verb, "batch", "jobs") for verb in ("list", "delete")]
    rights += [Right("bind", "rbac.authorization.k8s.io", "clusterroles", name=role) for role in ROLES]
    rights.append(Right("create", "", "serviceaccounts/token", names.PEOPLE_NAMESPACE))
    rights += [Right(verb, "", "events") for verb in ("create", "patch")]
    rights.append(Right("get", "", etcd_size.PATH))
    rights.append(Right("get", "visibility.kueue.x-k8s.io", "clusterqueues/pendingworkloads"))
    return tuple(rights)


EXCESSIVE_RIGHTS = (
    Right("list", "", "secrets"),
    Right("impersonate", "", "users"),
    Right("create", "", "pods/exec"),
    Right("create", "", "serviceaccounts/token"),
    Right("patch", "", "nodes"),
    Right("create", "rbac.authorization.k8s.io", "clusterrolebindings"),
    Right("escalate", "rbac.authorization.k8s.io", "clusterroles"),
    Right("bind", "rbac.authorization.k8s.io", "clusterroles", name="cluster-admin"),
    Right("patch", "admissionregistration.k8s.io", "validatingadmissionpolicies"),
    Right("*", "*", "*"),
)
"""Rights by which an attacker who controls the portal would control the cluster."""


def _read(call: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T | ReadError:
    try:
        return call(*args, **kwargs)
    except (ClusterRefused, ClusterUnavailable) as error:
        return ReadError(error)


def _version(client: Client) -> str:
    return str(client.json("GET", "/version")["gitVersion"])


def _get(client: Client, path: str) -> Raw | None:
    try:
        return client.json("GET", path)
    except ClusterRefused as error:
        if error.status == 404:
            return None
        raise


def _observed(client: Client, kind: str, at: datetime) -> list[ObservedObject]:
    observed, _ = client.list(KINDS[kind], lambda raw: observe(KINDS[kind], raw, at=at, live=False))
    return [ObservedObject(o.ref, o.uid, o.resource_version, facts=o.facts or {}) for o in observed if o]


def _served(client: Client) -> frozenset[str]:
    groups = client.json("GET", "/apis")["groups"]
    versions = {version["groupVersion"] for group in groups for version in group["versions"]}
    differing = [version for version in versions if version.partition("/")[0] in DIFFERING_GROUPS]
    kinds = {
        f"{version}/{resource['name']}"
        for version in differing
        for resource in (_get(client, f"/apis/{version}") or {}).get("resources", ())
    }
    return frozenset(versions | kinds)


def _metrics(client: Client) -> list[bytes]:
    """Return the samples of the API server's metrics that the checks look at."""
    wanted = (etcd_size.METRIC.encode(), capabilities.FEATURE_METRIC.encode())
    return [line for line in client.lines(etcd_size.PATH) if line.startswith(wanted)]


def _definitions() -> list[str]:
    return ["gpuprojects.gpu-portal.io", *(f"{plural}.kueue.x-k8s.io" for plural in KUEUE_KINDS)]


def _versions(client: Client, name: str) -> tuple[str, ...]:
    raw = _get(client, f"/apis/apiextensions.k8s.io/v1/customresourcedefinitions/{name}")
    return tuple(v["name"] for v in raw["spec"]["versions"] if v["served"]) if raw else ()


def _kueue(client: Client) -> Document | ReadError:
    raw = _get(client, KUEUE_CONFIG)
    if raw is None:
        return ReadError("there is no ConfigMap kueue-system/kueue-manager-config")
    configuration: Document = yaml.safe_load(raw.get("data", {}).get("controller_manager_config.yaml", "")) or {}
    return configuration


def _kueue_pod(client: Client) -> Document | None:
    pods = (
        client.json("GET", KUEUE_PODS, query={"labelSelector": "control-plane=controller-manager"}).get("items") or []
    )
    containers = [container for pod in pods for container in pod["spec"]["containers"]]
    return next((each for each in containers if each["name"] == "manager"), None)


def _guards(client: Client, has_mutating: bool) -> tuple[Guard, ...]:
    kinds = {"validating": "Validating", "mutating": "Mutating"}
    plurals = (VALIDATING, *((MUTATING,) if has_mutating else ()))
    guards: list[Guard] = []
    for plural in (*plurals, *(f"{plural.removesuffix('ies')}ybindings" for plural in plurals)):
        prefix = kinds[plural.partition("admission")[0]]
        kind = f"{prefix}AdmissionPolicy{'Binding' if plural.endswith('bindings') else ''}"
        items = client.json("GET", f"{GUARDS_API}/{plural}").get("items") or []
        guards += [as_guard({**item, "kind": kind}) for item in items]
    return tuple(guards)


def _flows(client: Client) -> tuple[FlowSchema, ...]:
    flow_schemas = []
    for raw in client.json("GET", FLOWS).get("items") or []:
        rules = [rule for rule in raw["spec"].get("rules") or [] if _is_of_all_namespaces(rule)]
        groups = tuple(s["group"]["name"] for rule in rules for s in rule["subjects"] if s["kind"] == "Group")
        level = raw["spec"]["priorityLevelConfiguration"]["name"]
        flow_schemas.append(FlowSchema(raw["metadata"]["name"], level, raw["spec"]["matchingPrecedence"], groups))
    return tuple(flow_schemas)


def _is_of_all_namespaces(rule: Document) -> bool:
    return any("*" in each.get("namespaces", ()) for each in rule.get("resourceRules") or ())


def _stored_kib(client: Client) -> dict[str, int]:
    """Return the most space in KiB that each project's objects can use by their quota; empty if it is not readable."""
    keys = {kind.quota_key for kind in object_limits.OBJECT_KINDS.values()}
    sizes = {space["metadata"]["name"]: _config_kib(space) for space in _items(client, "Namespace", labelSelector=OURS)}
    stored = {}
    for quota in _items(client, "ResourceQuota", fieldSelector=f"metadata.name={OBJECT_QUOTA}"):
        used = (quota.get("status") or {}).get("used") or {}
        counts = {key: int(value(number)) for key, number in used.items() if key in keys}
        namespace = quota["metadata"]["namespace"]
        stored[namespace] = object_limits.used_kib(counts, sizes.get(namespace, object_limits.CONFIG_KIB))
    return stored


def _items(client: Client, kind: str, **query: str) -> list[Raw]:
    answer = _read(client.json, "GET", KINDS[kind].path(), query=query)
    return [] if isinstance(answer, ReadError) else answer.get("items") or []


def _config_kib(namespace: Raw) -> int:
    label = (namespace["metadata"].get("labels") or {}).get(names.CONFIG_SIZE, "")
    return int(label) if label.isdecimal() else object_limits.CONFIG_KIB


def _role_exists(client: Client, role: str) -> bool:
    return _get(client, f"/apis/rbac.authorization.k8s.io/v1/clusterroles/{role}") is not None


def _names(client: Client, path: str) -> tuple[str, ...]:
    return tuple(item["metadata"]["name"] for item in client.json("GET", path).get("items") or [])


def _is_allowed(client: Client, right: Right) -> bool:
    """Return whether the portal has the right, by SelfSubjectAccessReview (authorization.k8s.io/v1)."""
    resource, _, subresource = right.resource.partition("/")
    attributes = {
        "verb": right.verb,
        "group": right.group,
        "resource": resource,
        "subresource": subresource,
        "namespace": right.namespace,
        "name": right.name,
    }
    path = {"verb": right.verb, "path": right.resource}
    review = {
        "apiVersion": "authorization.k8s.io/v1",
        "kind": "SelfSubjectAccessReview",
        "spec": {"nonResourceAttributes": path} if right.is_path else {"resourceAttributes": attributes},
    }
    answer = client.json("POST", "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", body=review)
    return bool(answer["status"]["allowed"])
