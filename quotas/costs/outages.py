"""What was charged for times in which nobody recorded what a cluster did."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain

from quotas.costs import filters, fleet_costs, ledger
from quotas.costs.questions import Question
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


def share(question: Question) -> OutageShare:
    """Return the outages of the window, and what of the costs that are asked for is charged for them; one query, and
    one for each cluster that had any.
    """
    spans = outages.spans(question.window.start, min(question.window.end, question.now))
    charged = RatedUsage()
    for cluster, found in spans.items():
        if not fleet_costs.keeps_cluster(question.scope, cluster):
            continue
        starts = {start for start, _ in found}
        edges = sorted({*chain.from_iterable(found)})
        sums = ledger.sums(edges, (), filters.both(question.scope, {"cluster": [cluster]}), question.now)
        charged += sum((one.usage for one in sums if one.window.start in starts), RatedUsage())
    listed = [Outage(cluster, Window(*span)) for cluster, found in spans.items() for span in found]
    return OutageShare(sorted(listed, key=lambda one: (one.window.start, one.cluster)), charged)
