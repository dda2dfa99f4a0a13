"""Waits until the portal has nothing to do."""

from datetime import timedelta

from django.db.models import Q

from portal.core import clock
from portal.core.models import WorkItem
from portal.workqueue import targets
from tests.support.cluster.fixtures import Kubectl
from tests.support.cluster.waiting import eventually
from tests.support.clusters import LOCAL


def until_others_are_gone(kubectl: Kubectl) -> None:
    """Wait until nothing that earlier tests left is being deleted, of which the portal has yet to write something, and
    nothing is due.
    """
    ending = "jsonpath={.items[?(@.metadata.deletionTimestamp)].metadata.name}"
    eventually(lambda: not kubectl("get", "namespaces,nodes,jobs,pods", "-A", "-o", ending), within_s=120)
    until_nothing_is_due()


def until_nothing_is_due(within_s: float = 120.0) -> None:
    """Wait until all enqueued targets are reconciled; later ones wait for their own time, such as an end, and a count
    of the fleet for its next turn.
    """
    soon, of_fleet = clock.now() + timedelta(hours=1), [targets.inventory(LOCAL), targets.usage(LOCAL)]

    def is_quiet() -> bool:
        later = Q(target__in=of_fleet, due_at__gt=clock.now())
        return not WorkItem.objects.filter(due_at__lte=soon).exclude(later).exists()

    eventually(is_quiet, within_s=within_s)
