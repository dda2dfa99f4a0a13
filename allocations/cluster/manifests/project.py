"""Builds the objects of a project's namespace: queue, quotas, limits, network policies, GpuProject and RoleBindings.

Objects are created in this order. A new namespace gets its labels at once; an adopted namespace, in which people work,
gets them after its GpuProject, which the admission policies read. RoleBindings come last, when all guards are in place.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from allocations.cluster import names
from allocations.cluster.manifests import hold_quota
from allocations.domain.objects import Manifest

SERVICE_TYPES = {"cluster": (), "node-port": ("NodePort",), "load-balancer": ("LoadBalancer", "NodePort")}
"""Exposure of Services → their types beside ClusterIP. A load balancer also uses a port of every node."""
OPEN_SERVICES = 10
OBJECT_QUOTA = "gpu-portal-objects"
OTHER_PODS_QUOTA = "gpu-portal-other-pods"
ADMIN_ACCESS = "resource.kubernetes.io/admin-access"
"""Label by which claims of a namespace may access devices of other claims (resource.k8s.io/v1, adminAccess)."""


@dataclass(frozen=True)
class ProjectFacts:
    """Everything that determines the objects of a project's namespace.

    - ``people``: ClusterRole → usernames.
    - ``guards``: allocation → its entry in the GpuProject; ``flavors``: the same for flavors; ``job_flavors``: for
      flavors, with what queued Jobs can ask of each.
    - ``holds``: number → the amounts of its hold quota, None for a quota that is kept at zero.
    - ``resources``: the extended resources of all device plugins.
    """

    slug: str
    namespace: str
    team: str
    department: str
    cluster_queue: str
    pod_security: str = "restricted"
    egress: str = "none"
    exposure: str = "cluster"
    object_quota: Mapping[str, str] = field(kw_only=True)
    """The most objects of each kind, by key of a ResourceQuota."""
    other_pods: int = field(kw_only=True)
    """The most unfinished pods beside those of allocations and queued Jobs."""
    config_size_kib: int = field(kw_only=True)
    """The largest size of a ConfigMap or Secret."""
    admin_access: bool = False
    adopted: bool = False
    guard_mode: str = "enforce"
    is_closing: bool = False
    """Whether the project is archived and still holds slices; nothing new is admitted then."""
    people: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    guards: Mapping[str, Mapping[str, object]] = field(default_factory=dict)
    flavors: Mapping[str, Mapping[str, object]] = field(default_factory=dict)
    job_flavors: Mapping[str, Mapping[str, object]] = field(default_factory=dict)
    holds: Mapping[int, hold_quota.Hold | None] = field(default_factory=dict)
    resources: tuple[str, ...] = ()


def labels(project: ProjectFacts) -> dict[str, str]:
    """Return the labels of the project's objects."""
    return labels_of(project.department, project.team, project.slug)


def labels_of(department: str, team: str, project: str) -> dict[str, str]:
    """Return what ``labels`` returns, given the slugs."""
    return {
        names.MANAGED: "true",
        "app.kubernetes.io/managed-by": "gpu-portal",
        names.DEPARTMENT: department,
        names.TEAM: team,
        names.PROJECT: project,
    }


def build(project: ProjectFacts) -> list[Manifest]:
    """Return all objects of the project's namespace, in the order in which to create them."""
    first = [namespace(project), gpu_project(project)]
    return [
        *(reversed(first) if project.adopted else first),
        *hold_quotas(project),
        object_quota(project),
        other_pods_quota(project),
        limit_range(project),
        local_queue(project),
        *network_policies(project),
        *role_bindings(project),
    ]


def _object(project: ProjectFacts, api_version: str, kind: str, name: str, **body: object) -> Manifest:
    metadata = {"name": name, "namespace": project.namespace, "labels": labels(project)}
    return {"apiVersion": api_version, "kind": kind, "metadata": metadata, **body}


def namespace(project: ProjectFacts) -> Manifest:
    """Return the namespace with the labels that admission policies and Pod Security read: to enforce, or only warn."""
    admin = {ADMIN_ACCESS: "true"} if project.admin_access else {}
    level = pod_security(project.pod_security, project.guard_mode)
    namespace_labels = {
        **labels(project),
        names.GUARD_MODE: project.guard_mode,
        names.EXPOSURE: project.exposure,
        names.CONFIG_SIZE: str(project.config_size_kib),
        **level,
        **admin,
    }
    return {
        "apiVersion": "v1",
        "kind": "Namespace",
        "metadata": {"name": project.namespace, "labels": namespace_labels},
    }


def pod_security(level: str, guard_mode: str) -> dict[str, str]:
    """Return the labels of Pod Security admission; with the guard mode "audit" they only audit and warn."""
    modes = ("audit", "warn") if guard_mode == "audit" else ("enforce", "audit", "warn")
    return {f"pod-security.kubernetes.io/{mode}": level for mode in modes}


def labels_left_behind(namespace: str, level: str, guard_mode: str) -> Manifest:
    """Return an adopted namespace as the portal leaves it behind: with its Pod Security level, which stays in force."""
    metadata = {"name": namespace, "labels": pod_security(level, guard_mode)}
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": metadata}


def without_portal_fields(namespace: str) -> Manifest:
    """Return a namespace without fields; applying it removes those that only the portal set."""
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}}


def gpu_project(project: ProjectFacts) -> Manifest:
    """Return the GpuProject: the parameters of the admission policies (gpu-portal.io/v1)."""
    entries = sorted(project.guards.items())
    summary = ", ".join(f"{name}: {entry['count']} {entry['resource']}" for name, entry in entries)
    spec = {
        "summary": summary[:1024],
        "allocations": dict(entries),
        "flavors": {name: project.flavors[name] for name in sorted(project.flavors)},
        "jobFlavors": {name: project.job_flavors[name] for name in sorted(project.job_flavors)},
    }
    return _object(project, "gpu-portal.io/v1", "GpuProject", names.GUARD, spec=spec)


def hold_quotas(project: ProjectFacts) -> Iterable[Manifest]:
    """Yield a hold quota for every number ever used, so that no PriorityClass is ever without one."""
    for number, hold in sorted(project.holds.items()):
        yield hold_quota.build(project.namespace, number, labels(project), hold, project.resources)


def object_quota(project: ProjectFacts) -> Manifest:
    """Return the ResourceQuota of object counts, which operators can set for each project (``object_limits``).

    Together with the sizes that policies/all-objects.yaml allows, it limits the storage in etcd that a project uses
    (docs/reference/guards.md).

    It has no GPU resource: without a scope, it would also count the portal's claims (class gpu.nvidia.com counts as
    ``requests.nvidia.com/gpu``) and tenants' own queued Jobs.
    """
    allowed = SERVICE_TYPES[project.exposure]
    return _object(
        project,
        "v1",
        "ResourceQuota",
        OBJECT_QUOTA,
        spec={
            "hard": {
                **project.object_quota,
                "services.loadbalancers": str(OPEN_SERVICES if "LoadBalancer" in allowed else 0),
                "services.nodeports": str(OPEN_SERVICES if "NodePort" in allowed else 0),
            }
        },
    )


def other_pods_quota(project: ProjectFacts) -> Manifest:
    """Return the ResourceQuota of unfinished pods without a PriorityClass.

    Holders and pods of allocations and queued Jobs have one. The quota limits how many pods a Deployment that is scaled
    up and down can give the scheduler. Source: Kubernetes, resource quotas, scope PriorityClass.
    """
    no_class = {"scopeName": "PriorityClass", "operator": "DoesNotExist"}
    spec = {"hard": {"pods": str(project.other_pods)}, "scopeSelector": {"matchExpressions": [no_class]}}
    return _object(project, "v1", "ResourceQuota", OTHER_PODS_QUOTA, spec=spec)


def limit_range(project: ProjectFacts) -> Manifest:
    """Return the LimitRange with default requests of CPU and memory.

    It has no GPU ``max``, which would add GPUs to every container. It has no default limit, since Kueue would never
    admit a Job that requests more than that and sets no limit. Admission policies set the limits of pods with GPUs
    (policies/give-slices.yaml).
    """
    return _object(
        project,
        "v1",
        "LimitRange",
        "gpu-portal",
        spec={
            "limits": [
                {
                    "type": "Container",
                    "defaultRequest": {"cpu": "100m", "memory": "256Mi"},
                }
            ]
        },
    )


def local_queue(project: ProjectFacts) -> Manifest:
    """Return the project's LocalQueue in its team's ClusterQueue."""
    return _object(
        project,
        "kueue.x-k8s.io/v1beta2",
        "LocalQueue",
        names.LOCAL_QUEUE,
        spec={"clusterQueue": project.cluster_queue, **({"stopPolicy": "Hold"} if project.is_closing else {})},
    )


def network_policies(project: ProjectFacts) -> Iterable[Manifest]:
    """Yield the NetworkPolicies: traffic within the namespace, from the portal, to DNS, and to the egress profile."""
    within: list[Manifest] = [{"podSelector": {}}]
    portal = [{"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": names.PORTAL_NAMESPACE}}}]
    dns = {
        "to": [{"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "kube-system"}}}],
        "ports": [{"protocol": protocol, "port": 53} for protocol in ("UDP", "TCP")],
    }
    egress: dict[str, list[Manifest]] = {
        "none": [],
        "cluster": [{"to": [{"namespaceSelector": {}}]}],
        "internet": [
            {
                "to": [
                    {
                        "ipBlock": {
                            "cidr": "0.0.0.0/0",
                            "except": ["10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "169.254.0.0/16"],
                        }
                    }
                ]
            }
        ],
    }
    yield _object(
        project,
        "networking.k8s.io/v1",
        "NetworkPolicy",
        "gpu-portal-ingress",
        spec={
            "podSelector": {},
            "policyTypes": ["Ingress"],
            "ingress": [{"from": within}, {"from": portal}],
        },
    )
    yield _object(
        project,
        "networking.k8s.io/v1",
        "NetworkPolicy",
        "gpu-portal-egress",
        spec={
            "podSelector": {},
            "policyTypes": ["Egress"],
            "egress": [{"to": within}, dns, *egress[project.egress]],
        },
    )


def role_bindings(project: ProjectFacts) -> Iterable[Manifest]:
    """Yield a RoleBinding for each ClusterRole, with the ServiceAccounts of its people."""
    for role, usernames in sorted(project.people.items()):
        yield _object(
            project,
            "rbac.authorization.k8s.io/v1",
            "RoleBinding",
            role.replace(":", "-"),
            roleRef={"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": role},
            subjects=[
                {
                    "kind": "ServiceAccount",
                    "name": names.person(username),
                    "namespace": names.PEOPLE_NAMESPACE,
                }
                for username in sorted(usernames)
            ],
        )
