"""How many objects of each kind a project may have, their maximum sizes, and the storage in etcd this allows. Pure.

A project stores only the numbers that differ from the defaults. The ResourceQuota ``gpu-portal-objects`` enforces the
numbers, and the admission policy ``all-objects.yaml`` the sizes; number × size, summed over the kinds, stays below the
bound of a project (setting ``PROJECT_STORE_MIB``). Unfinished pods outside allocations and queued Jobs are bounded
again (ResourceQuota ``gpu-portal-other-pods``): each keeps the scheduler and the controllers busy, whether it fits on a
node or not.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from portal.core.errors import Invalid

OBJECT_KIB = 32
CONFIG_KIB = 128
CONFIG_KIB_MAX = 1024
CONFIG_SIZES = f"Give 1 to {CONFIG_KIB_MAX}, in KiB. The default is {CONFIG_KIB}."
"""The API server accepts no ConfigMap or Secret with more than 1 MiB of data."""
CONFIG_KINDS = ("configmaps", "secrets")
OTHER_PODS = "other_pods"
HOLDERS = 500
"""Room for the portal's own pods and claims: one for each of 250 live allocations, and more for those that spread."""


@dataclass(frozen=True)
class ObjectKind:
    """A kind of object. ``quota_key``: as in the ResourceQuota. ``default``, ``minimum``, ``maximum``: numbers of
    objects. ``is_of_adopted``: the default is for adopted namespaces, and 0 in others.

    ``size_kib``: of one object, with its status and what controllers create beside it; the default for ConfigMaps and
    Secrets; 0 where the objects are counted by another kind, too.
    """

    name: str
    title: str
    quota_key: str
    default: int
    maximum: int
    minimum: int = 0
    size_kib: int = OBJECT_KIB
    is_of_adopted: bool = False

    def usual(self, *, is_adopted: bool) -> int:
        """Return the number that a project has if nothing is set."""
        return 0 if self.is_of_adopted and not is_adopted else self.default


OBJECT_KINDS = {
    kind.name: kind
    for kind in (
        ObjectKind(
            "pods",
            "Pods, finished ones too, each with its status",
            "count/pods",
            2000,
            10_000,
            minimum=HOLDERS,
            size_kib=2 * OBJECT_KIB,
        ),
        ObjectKind(OTHER_PODS, "Pods outside allocations", "pods", 250, 10_000, size_kib=0),
        ObjectKind("jobs", "Jobs, each with its Workload", "count/jobs.batch", 500, 5000, size_kib=2 * OBJECT_KIB),
        # Tenants' role has the verb create for a guard's words alone (policies/refused-kinds.yaml), and a quota of 0
        # refuses where that guard is not applied.
        ObjectKind("cronjobs", "CronJobs, in adopted namespaces", "count/cronjobs.batch", 20, 1000, is_of_adopted=True),
        ObjectKind("deployments", "Deployments", "count/deployments.apps", 100, 1000),
        ObjectKind("replicasets", "ReplicaSets, up to 4 a Deployment", "count/replicasets.apps", 400, 4000),
        ObjectKind("statefulsets", "StatefulSets", "count/statefulsets.apps", 50, 1000),
        ObjectKind(
            "controllerrevisions",
            "ControllerRevisions, up to 4 a StatefulSet",
            "count/controllerrevisions.apps",
            200,
            4000,
        ),
        ObjectKind("services", "Services, each with its Endpoints", "services", 100, 1000, size_kib=5 * OBJECT_KIB),
        ObjectKind(
            "endpointslices",
            "EndpointSlices, one for each 100 pods of a Service",
            "count/endpointslices.discovery.k8s.io",
            400,
            4000,
        ),
        ObjectKind("persistentvolumeclaims", "PersistentVolumeClaims", "persistentvolumeclaims", 50, 1000),
        ObjectKind("configmaps", "ConfigMaps", "configmaps", 200, 5000, minimum=10, size_kib=CONFIG_KIB),
        ObjectKind("secrets", "Secrets", "secrets", 200, 5000, size_kib=CONFIG_KIB),
        ObjectKind(
            "resourceclaims",
            "ResourceClaims, which the portal creates",
            "count/resourceclaims.resource.k8s.io",
            2000,
            10_000,
            minimum=HOLDERS,
            size_kib=8,
        ),
    )
}


def numbers(changed: Mapping[str, int], *, is_adopted: bool) -> dict[str, int]:
    """Return the number of each kind, given those that differ from the defaults."""
    return {name: changed.get(name, kind.usual(is_adopted=is_adopted)) for name, kind in OBJECT_KINDS.items()}


def is_default(name: str, number: int | None, *, is_adopted: bool) -> bool:
    """Return whether the number is what the kind has if nothing is set; None sets it."""
    kind = OBJECT_KINDS.get(name)
    return kind is not None and number in (None, kind.usual(is_adopted=is_adopted))


def size_kib(name: str, config_kib: int) -> int:
    """Return the most that one object of the kind takes, in KiB."""
    return config_kib if name in CONFIG_KINDS else OBJECT_KINDS[name].size_kib


def stored_kib(counts: Mapping[str, int], config_kib: int) -> int:
    """Return what so many objects of each kind take at most, in KiB."""
    return sum(count * size_kib(name, config_kib) for name, count in counts.items())


def stored_mib(changed: Mapping[str, int], config_kib: int, *, is_adopted: bool) -> int:
    """Return what a project may store in etcd, in whole MiB, rounded up."""
    return -(-stored_kib(numbers(changed, is_adopted=is_adopted), config_kib) // 1024)


def quota(changed: Mapping[str, int], *, is_adopted: bool) -> dict[str, str]:
    """Return the numbers as `spec.hard` of the ResourceQuota of all objects."""
    counts = numbers(changed, is_adopted=is_adopted)
    return {kind.quota_key: str(counts[name]) for name, kind in OBJECT_KINDS.items() if name != OTHER_PODS}


def other_pods(changed: Mapping[str, int]) -> int:
    """Return how many unfinished pods there may be besides those of allocations and queued Jobs."""
    return changed.get(OTHER_PODS, OBJECT_KINDS[OTHER_PODS].default)


def used_kib(used: Mapping[str, int], config_kib: int) -> int:
    """Return what a project's objects take at most, given ``status.used`` of its ResourceQuota by key."""
    return stored_kib({name: used.get(kind.quota_key, 0) for name, kind in OBJECT_KINDS.items()}, config_kib)


def merge(changed: Mapping[str, int], values: Mapping[str, int | None], *, is_adopted: bool) -> dict[str, int]:
    """Return the numbers that differ from the defaults once ``values`` are set; None sets a kind's default.

    Invalid, by field, for a kind that is not known and for a number out of its range.
    """
    refusals = {name: _refusal(name, count, is_adopted=is_adopted) for name, count in values.items()}
    if errors := {f"object_limits.{name}": [words] for name, words in refusals.items() if words}:
        raise Invalid(errors)
    usual = numbers({}, is_adopted=is_adopted)
    wanted = {name: usual[name] if count is None else count for name, count in values.items()}
    merged = numbers({**changed, **wanted}, is_adopted=is_adopted)
    return {name: count for name, count in merged.items() if count != usual[name]}


def check_config_size(config_kib: int) -> None:
    """Raise Invalid unless ConfigMaps and Secrets may have that size in KiB."""
    if not 1 <= config_kib <= CONFIG_KIB_MAX:
        raise Invalid({"config_size_kib": [CONFIG_SIZES]})


def check_bound(
    before: tuple[Mapping[str, int], int],
    after: tuple[Mapping[str, int], int],
    bound_mib: int,
    field: str,
    *,
    is_adopted: bool,
) -> None:
    """Raise Invalid at ``field`` if a project may not store ``after`` (numbers that differ, size of ConfigMaps and
    Secrets in KiB).

    A value above the bound is accepted if it is less than ``before``: a project that was above when the bound was
    lowered comes down in steps.
    """
    old, new = (numbers(changed, is_adopted=is_adopted) for changed, _ in (before, after))
    was, wanted = stored_kib(old, before[1]), stored_kib(new, after[1])
    if wanted <= bound_mib * 1024 or wanted < was or before == after:
        return
    raise Invalid(
        {
            field: [
                f"The project could then store {-(-wanted // 1024)} MiB in etcd, and {bound_mib} MiB is the most "
                f"(PROJECT_STORE_MIB). {_suggestion((old, before[1]), (new, after[1]), wanted - bound_mib * 1024)}"
            ]
        }
    )


def _refusal(name: str, count: int | None, *, is_adopted: bool) -> str:
    kind = OBJECT_KINDS.get(name)
    if kind is None:
        return f"There is no such kind. Kinds are: {', '.join(OBJECT_KINDS)}."
    if count is not None and not kind.minimum <= count <= kind.maximum:
        room = " The portal's own need room." if kind.minimum == HOLDERS else ""
        usual = kind.usual(is_adopted=is_adopted)
        return f"Give {kind.minimum} to {kind.maximum}, or null for the default of {usual}.{room}"
    return ""


def _suggestion(before: tuple[Mapping[str, int], int], after: tuple[Mapping[str, int], int], excess_kib: int) -> str:
    """Return a sentence about which one of the raised values would fit if the others stay as requested. Both have the
    numbers of all kinds.
    """
    (old, _), (new, config_kib) = before, after
    fitting = []
    for name, kind in OBJECT_KINDS.items():
        if new[name] <= old[name] or not kind.size_kib:
            continue
        fits = new[name] + (-excess_kib // size_kib(name, config_kib))
        if fits >= kind.minimum:
            fitting.append(f"{fits} {name}")
    if config_kib > before[1]:
        kib = config_kib + (-excess_kib // max(1, sum(new[name] for name in CONFIG_KINDS)))
        fitting += [f"a config_size_kib of {kib}"] if kib >= 1 else []
    found = f"What fits: at most {', or '.join(fitting)}. " if fitting else ""
    return f"{found}Or lower the numbers of other kinds."
