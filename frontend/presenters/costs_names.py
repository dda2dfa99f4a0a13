"""What keys of costs and their values are called, and where the name of a row leads."""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass

from django.urls import reverse

from allocations.queues import jobs
from allocations.requests import selectors
from portal.tenants import access
from portal.tenants.models import User
from quotas.costs.columns import ALL, LABEL_PREFIX
from quotas.costs.cost_rows import CostRow
from quotas.costs.filters import UNALLOCATED
from quotas.costs.fleet_costs import IDLE

KEYS = {
    "department": "Department",
    "team": "Team",
    "project": "Project",
    "member": "Person",
    "allocation": "Allocation",
    "offering": "Offering",
    "flavor": "Flavor",
    "kind": "Slice kind",
    "namespace": "Namespace",
    "cluster": "Cluster",
    "node": "Node",
}
UNKNOWN_WORD = "not known"
UNKNOWN = {
    "node": "Node not known (device plugin)",
    "member": "Jobs submitted with kubectl",
    "offering": "No offering",
}
IDLE_NAME = "Idle"


def key_word(key: str) -> str:
    """Return what a key is called: ``Team``, ``Label app``."""
    return f"Label {key.removeprefix(LABEL_PREFIX)}" if key.startswith(LABEL_PREFIX) else KEYS.get(key, key)


@dataclass(frozen=True)
class HolderNames:
    """The names of the allocations and Jobs that a person may see, by id."""

    names: Mapping[str, str]

    def text(self, row: CostRow) -> str:
        """Return the name of a row: its values, joined by a slash."""
        if IDLE in (row.name, *row.properties.values()):
            return IDLE_NAME
        return " / ".join(self._value(key, value) for key, value in row.properties.items()) or "All"

    def _value(self, key: str, value: str) -> str:
        if value == UNALLOCATED:
            return UNKNOWN.get(key, UNKNOWN_WORD)
        return self.names.get(value, f"Job {value}, deleted") if key == "allocation" else value


def holder_names(user: User, rows: Iterable[CostRow]) -> HolderNames:
    """Return the names of the allocations and Jobs in the rows; two queries if there are any."""
    ids = [id_ for row in rows if (id_ := row.properties.get("allocation")) and id_ not in (IDLE, UNALLOCATED)]
    return HolderNames(names_of(user, ids))


def names_of(user: User, ids: Collection[str]) -> dict[str, str]:
    """Return the names of those of these allocations and Jobs that a person may see, by id; two queries, none without
    an id.
    """
    if not ids:
        return {}
    found = selectors.visible(user).filter(pk__in=ids)
    own = jobs.read(jobs.rows(access.visible_projects(user)).filter(facts__job__uid__in=list(ids)))
    return {
        **{str(row.pk): f"{row.project.slug} / {row.name}" for row in found},
        **{str(one.uid): f"{one.project.slug} / Job {one.name}" for one in own},
    }


def allocation_url(row: CostRow) -> str:
    """Return the address of the intervals of the row's allocation or Job; empty if the row has none."""
    id_ = row.properties.get("allocation", "")
    return "" if id_ in ("", ALL, IDLE, UNALLOCATED) else reverse("costs-allocation", args=[id_])
