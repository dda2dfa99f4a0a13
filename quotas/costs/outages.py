"""What was charged for times in which nobody recorded what a cluster did."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain

from portal.core import clock
from portal.tenants import access
from portal.tenants.models import User
from quotas.costs import filters, fleet_costs, ledger
from quotas.costs.filters import EVERYTHING, Where
from quotas.costs.rating import RatedUsage, Window
from quotas.metering import outages


@dataclass(frozen=True)
class Outage:
    """A time in which a cluster was not watched, as far as it is in the window."""

    cluster: str
    window: Window


@dataclass(frozen=True)
class OutageShare:
    """The outages of a window, by time, and what was charged for them: it was held before and after, or its start is
    the cluster's own time.
    """

    outages: Sequence[Outage]
    charged: RatedUsage


def visible_share(user: User, window: Window, where: Where = EVERYTHING) -> OutageShare:
    """Return the outages and what of the costs that `user` may read is charged for them, with the filter of `costs`;
    one query, and if there was an outage one more and one for each cluster that had any.
    """
    now = clock.now()
    spans = outages.spans(window.start, min(window.end, now))
    if not spans:
        return OutageShare([], RatedUsage())
    kept = filters.as_filter(where)
    if not access.sees_all(user):
        kept = filters.both(kept, {"team": list(access.visible_teams(user).values_list("slug", flat=True))})
    charged = RatedUsage()
    for cluster, found in spans.items():
        if not fleet_costs.keeps_cluster(kept, cluster):
            continue
        starts = {start for start, _ in found}
        edges = sorted({*chain.from_iterable(found)})
        sums = ledger.sums(edges, (), filters.both(kept, {"cluster": [cluster]}), now)
        charged += sum((one.usage for one in sums if one.window.start in starts), RatedUsage())
    listed = [Outage(cluster, Window(*span)) for cluster, found in spans.items() for span in found]
    return OutageShare(sorted(listed, key=lambda one: (one.window.start, one.cluster)), charged)
