"""What a project is like: its objects in the cluster and the portal's rows, without what differs between fresh ones."""

import json
from typing import Any

from django.forms.models import model_to_dict

from allocations.cluster.names import HOLD_SLOT
from allocations.models import Allocation
from portal.tenants.models import Project
from quotas.limits.models import Limit
from quotas.metering.models import UsageInterval
from tests.support.cluster.api_client import ApiClient, Object
from tests.support.cluster.kinds import Kind

KEPT = ("labels", "annotations", "finalizers", "ownerReferences")
PASSING = ("Event", "Lease")
"""Kinds of objects that tell of what was, and change by themselves."""

NAMESPACE = Kind("Namespace", "namespaces", "", "v1", namespaced=False, verbs=frozenset())

Likeness = dict[tuple[str, str], str]
"""Kind and name of an object, or the name of a table → what it is like, as text."""


def likeness(admin: ApiClient, project: Project) -> Likeness:
    """Return what the project is like now; hold quotas that nothing uses are left out, since they stay."""
    found = {
        (kind.name, _impersonal(item["metadata"]["name"], project)): _impersonal(_lasting(kind, item), project)
        for kind in _kinds(admin)
        for item in admin.items(kind.path(project.namespace))
        if not _is_idle_hold_quota(kind, item)
    }
    namespace = _lasting(NAMESPACE, admin.find("namespace", project.namespace))
    found["Namespace", ""] = _impersonal(namespace, project)
    return found | {("row", table): _impersonal(rows, project) for table, rows in _rows(project).items()}


def differences(one: Likeness, other: Likeness) -> list[str]:
    """Return what differs, as kind and name."""
    return sorted(" ".join(key) for key in one.keys() | other.keys() if one.get(key) != other.get(key))


def delete_others(admin: ApiClient, project: Project, found: Likeness, fresh: Likeness) -> None:
    """Delete the objects of the project that a fresh one does not have."""
    for kind in _kinds(admin):
        for name in [name for of, name in found.keys() - fresh.keys() if of == kind.name]:
            admin.delete(kind.plural, name.replace("NAMESPACE", project.namespace), project.namespace)


def _kinds(admin: ApiClient) -> list[Kind]:
    """Return the kinds of objects in namespaces, each in one version."""
    return list(
        {
            (kind.group, kind.plural): kind
            for kind in reversed(admin.all_kinds())
            if kind.namespaced and kind.verbs >= {"list", "delete"} and kind.name not in PASSING
        }.values()
    )


def _lasting(kind: Kind, item: Object) -> Object:
    given = item.get("metadata", {})
    metadata = {key: given[key] for key in KEPT if key in given}
    used = item.get("status", {}).get("used") if kind.name == "ResourceQuota" else None
    return {**item, "metadata": metadata, "status": used}


def _is_idle_hold_quota(kind: Kind, item: Object) -> bool:
    if kind.name != "ResourceQuota" or not item["metadata"]["name"].startswith(HOLD_SLOT):
        return False
    return {*item["spec"]["hard"].values(), *item.get("status", {}).get("used", {}).values()} == {"0"}


def _rows(project: Project) -> dict[str, Any]:
    row = Project.objects.get(pk=project.pk)
    limits = Limit.objects.filter(project=project)
    return {
        "project": {**model_to_dict(row, exclude=("id", "name")), "archived_at": str(row.archived_at)},
        "limits": sorted(str(model_to_dict(limit, exclude=("id",))) for limit in limits),
        "live allocations": Allocation.objects.filter(project=project, ended_at=None).count(),
        "open intervals": UsageInterval.objects.filter(project=project.slug, end=None).count(),
    }


def _impersonal(value: Any, project: Project) -> str:
    text = value if isinstance(value, str) else json.dumps(value, sort_keys=True)
    return text.replace(project.namespace, "NAMESPACE").replace(project.slug, "SLUG")
