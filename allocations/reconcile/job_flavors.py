"""What queued Jobs can ask of each flavor: the parameters of the policies that refuse or warn when a Job is created."""

from collections.abc import Container, Iterable

from quotas.catalog.dra_resources import VENDOR
from quotas.catalog.models import Kind, Offering


def of_offerings(offerings: Iterable[Offering], pools: Container[int]) -> dict[str, dict[str, object]]:
    """Return the ``jobFlavors`` of a GpuProject, by flavor, for the accepted offerings of a cluster. ``pools`` are the
    ids of the pools of which the team has quota; flavors without it are in it too.

    A flavor whose devices have no resource name that Jobs can ask for has an offering to ``hold`` instead.
    """
    offerings = sorted(
        (row for row in offerings if row.kind != Kind.CLAIM), key=lambda row: (row.kind != Kind.WHOLE, row.key)
    )
    resources: dict[str, dict[str, dict[str, object]]] = {}
    for offering in offerings:
        for resource in offering.requests:
            if resource.startswith(VENDOR):
                quota = {} if offering.pool_id in pools else {"hasQuota": False}
                resources.setdefault(offering.flavor.name, {})[resource] = {**_most(offering), **quota}
    found: dict[str, dict[str, object]] = {}
    for offering in offerings:
        name = offering.flavor.name
        given = {"resources": resources[name]} if name in resources else {"hold": offering.key}
        found.setdefault(name, {"nodeLabels": offering.flavor.node_selector, **given})
    return found


def _most(offering: Offering) -> dict[str, object]:
    """Return how much a node gives, and a container where the device plugin refuses more than one."""
    per_node: dict[str, object] = {"perNode": offering.per_node} if offering.per_node else {}
    return {**per_node, **({"perContainer": 1} if offering.one_at_a_time else {})}
