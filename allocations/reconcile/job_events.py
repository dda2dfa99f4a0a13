"""Tells the people of a queued Job, by an Event, which GPUs Kueue gave it."""

from collections.abc import Mapping

from allocations.cluster import events
from allocations.cluster.client import Client
from allocations.domain.objects import Ref
from allocations.domain.observed_facts import PodCounts, workload_facts
from allocations.models import MirrorObject
from quotas.catalog.models import Flavor

REASON = "GpuFlavor"


def tell_flavor(uid: str, client: Client) -> None:
    """Write an Event on the Job if it has quota. Repeating it changes nothing but the Event's time.

    Raises ClusterUnavailable, ClusterRefused.
    """
    rows = MirrorObject.objects.filter(cluster=client.cluster, kind="Workload", allocation="", facts__job__uid=uid)
    row = rows.first()
    facts = workload_facts(row)
    if row is None or not facts["cluster_queue"] or not facts["usage"]:
        return
    products = dict(
        Flavor.objects.filter(cluster=client.cluster, name__in=facts["usage"]).values_list("name", "product")
    )
    # A Job that is evicted and queues again may become another flavor: an Event of its own for each.
    name = f"{uid}.{'.'.join(sorted(facts['usage']))}"
    job = Ref("Job", row.namespace, facts["job"]["name"])
    events.tell(client, job, uid, name[:250], REASON, message(facts["usage"], facts.get("pods", {}), products))


def message(usage: Mapping[str, Mapping[str, int]], pods: PodCounts, products: Mapping[str, str]) -> str:
    """Return the Event's sentence. ``products`` are the GPU models by flavor."""
    given = ", ".join(
        f"{amount} × {resource} of {flavor} ({products.get(flavor, 'a model that the portal does not know')})"
        for flavor, amounts in sorted(usage.items())
        for resource, amount in sorted(amounts.items())
    )
    part = f" That is for {pods['admitted']} of {pods['requested']} pods at once." if is_partial(pods) else ""
    return f"Kueue gave it {given}.{part}"


def is_partial(pods: PodCounts) -> bool:
    """Return whether a Job has quota for fewer pods than it wants at once."""
    return 0 < pods.get("admitted", 0) < pods.get("requested", 0)
