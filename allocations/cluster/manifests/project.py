"""What every project's namespace holds: queue, quotas, limits, network walls, the guard's data, and who may enter.

The order is the order of making: a namespace is labelled from birth, an adopted one, in which people work, when the
guard has its GpuProject; and RoleBindings come last, when the guard has all it needs.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from allocations.cluster import names
from allocations.cluster.manifests import hold_quota
from allocations.domain.objects import Manifest

SERVICE_TYPES = {"cluster": (), "node-port": ("NodePort",), "load-balancer": ("LoadBalancer", "NodePort")}
"""From where Services may be reached → their types beside ClusterIP. A load balancer has a port of every node, too."""
OPEN_SERVICES = 10
OBJECT_QUOTA = "gpu-portal-objects"
OTHER_PODS_QUOTA = "gpu-portal-other-pods"
ADMIN_ACCESS = "resource.kubernetes.io/admin-access"
"""Label that lets claims of a namespace look at devices that others hold (resource.k8s.io/v1, adminAccess)."""


@dataclass(frozen=True)
class ProjectFacts:
    """``guards``: allocation → GpuProject entry; ``flavors``: the same of flavors. ``holds``: number → what its quota
    has, None for one that is kept at zero. ``former``: flavor → what pods of its former class still use, by resource.
    ``resources``: of device plugins. ``people``: cluster role → usernames."""

    slug: str
    namespace: str
    team: str
    department: str
    cluster_queue: str
    pod_security: str = "restricted"
    egress: str = "none"
    exposure: str = "cluster"
    object_quota: Mapping[str, str] = field(kw_only=True)
    """How many objects of each kind there may be, by key of a ResourceQuota."""
    other_pods: int = field(kw_only=True)
    """How many unfinished pods there may be beside those of allocations and queued Jobs."""
    config_size_kib: int = field(kw_only=True)
    """How large a ConfigMap or Secret may be."""
    admin_access: bool = False
    adopted: bool = False
    guard_mode: str = "enforce"
    is_closing: bool = False
    """Archived, and still holding something: nothing new is admitted."""
    people: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    guards: Mapping[str, Mapping[str, object]] = field(default_factory=dict)
    flavors: Mapping[str, Mapping[str, object]] = field(default_factory=dict)
    holds: Mapping[int, hold_quota.Hold | None] = field(default_factory=dict)
    former: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    resources: tuple[str, ...] = ()


def labels(project: ProjectFacts) -> dict[str, str]:
    return {
        names.MANAGED: "true",
        "app.kubernetes.io/managed-by": "gpu-portal",
        names.DEPARTMENT: project.department,
        names.TEAM: project.team,
        names.PROJECT: project.slug,
    }


def build(project: ProjectFacts) -> list[Manifest]:
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
    """Labelled as the guard finds it (deploy/cluster/policies): policies and Pod Security refuse, or only warn."""
    admin = {ADMIN_ACCESS: "true"} if project.admin_access else {}
    level = pod_security(project.pod_security, project.guard_mode)
    marks = {
        **labels(project),
        names.GUARD_MODE: project.guard_mode,
        names.EXPOSURE: project.exposure,
        names.CONFIG_SIZE: str(project.config_size_kib),
        **level,
        **admin,
    }
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": project.namespace, "labels": marks}}


def pod_security(level: str, guard_mode: str) -> dict[str, str]:
    """Labels of Pod Security admission. Under the guard's warnings its level is not enforced by us."""
    modes = ("audit", "warn") if guard_mode == "audit" else ("enforce", "audit", "warn")
    return {f"pod-security.kubernetes.io/{mode}": level for mode in modes}


def given_back(namespace: str, level: str, guard_mode: str) -> Manifest:
    """What stays on an adopted namespace that is given back: its Pod Security level, which nobody asked to loosen."""
    metadata = {"name": namespace, "labels": pod_security(level, guard_mode)}
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": metadata}


def nothing_of_ours(namespace: str) -> Manifest:
    """Applied, it takes off the namespace whatever only the portal put there."""
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}}


def gpu_project(project: ProjectFacts) -> Manifest:
    """The parameters of the admission policies (CRD GpuProject, gpu-portal.io/v1)."""
    held = sorted(project.guards.items())
    summary = ", ".join(f"{name}: {entry['count']} {entry['resource']}" for name, entry in held)
    spec = {
        "summary": summary[:1024],
        "allocations": dict(held),
        "flavors": {name: project.flavors[name] for name in sorted(project.flavors)},
    }
    return _object(project, "gpu-portal.io/v1", "GpuProject", names.GUARD, spec=spec)


def hold_quotas(project: ProjectFacts) -> Iterable[Manifest]:
    """One per number that ever was in use, so that no class is ever unbound."""
    for number, hold in sorted(project.holds.items()):
        yield hold_quota.build(project.namespace, number, labels(project), hold, project.resources)
    for flavor, used in sorted(project.former.items()):
        yield hold_quota.build_former(project.namespace, flavor, labels(project), used, project.resources)


def object_quota(project: ProjectFacts) -> Manifest:
    """Counts only, which operators may set for each project (``portal.tenants.object_limits``).

    With the sizes that policies/object-sizes.yaml allows, they bound what the project stores (docs/guide/guards.md).

    No GPU name: an unscoped one would charge our claims too (class gpu.nvidia.com counts as
    ``requests.nvidia.com/gpu``), and a bare one would bind tenants' own queued Jobs.
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
    """Return the ResourceQuota of unfinished pods without a PriorityClass; holder pods and pods of allocations and
    queued Jobs have one.

    It bounds how many pods a Deployment that is scaled up and down can give the scheduler. Source: Kubernetes, resource
    quotas, scope PriorityClass.
    """
    no_class = {"scopeName": "PriorityClass", "operator": "DoesNotExist"}
    spec = {"hard": {"pods": str(project.other_pods)}, "scopeSelector": {"matchExpressions": [no_class]}}
    return _object(project, "v1", "ResourceQuota", OTHER_PODS_QUOTA, spec=spec)


def limit_range(project: ProjectFacts) -> Manifest:
    """cpu and memory only: a GPU ``max`` in a LimitRange injects GPUs into every container.

    No default limit: Kueue would hold back for good a Job that asks for more than that and says no limit. The policies
    set the limits of pods with GPUs (policies/give-slices.yaml).
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
    return _object(
        project,
        "kueue.x-k8s.io/v1beta2",
        "LocalQueue",
        names.LOCAL_QUEUE,
        spec={"clusterQueue": project.cluster_queue, **({"stopPolicy": "Hold"} if project.is_closing else {})},
    )


def network_policies(project: ProjectFacts) -> Iterable[Manifest]:
    """Deny from other namespaces, allow within, DNS, the portal's workspace proxy, and the egress profile."""
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
