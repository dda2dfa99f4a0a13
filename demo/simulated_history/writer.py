"""Adds a simulated history to the ledger of a demo, rolls it up, and proves its balance."""

from datetime import datetime
from functools import partial

from django.db import transaction

from demo.simulated_history import generator, incidents, past_intervals, world
from demo.simulated_history.model import History, World
from demo.simulated_history.past_intervals import PastNode
from portal.core import clock
from portal.core.locks import advisory_lock
from portal.tenants.actors import SYSTEM
from quotas.catalog.models import Flavor, FlavorVersion
from quotas.costs import rollups, services
from quotas.limits import history as quota_history
from quotas.metering import proofs, rollup_proof, simulated
from quotas.metering.balance import Failure
from quotas.metering.hours import DAY, day_of, hour_of, hours_between

SEED = 17
SOURCE = "simulated"


def write(cluster: str, days: int, seed: int = SEED) -> History | None:
    """Add a history of so many days before the ledger of the cluster begins, in one transaction; return it, or None if
    there is one already, whatever its length. Raises ``world.NothingRecorded``.
    """
    with transaction.atomic(), advisory_lock("simulated history", cluster):
        if cluster in simulated.first_evidence():
            return None
        found = world.read(cluster, days)
        evidence = simulated.evidence(found.until, days, seed)
        drawn = generator.generate(found, seed, evidence)
        with advisory_lock("capacity", cluster):
            past_intervals.add_capacity(cluster, drawn.capacity, evidence)
        past_intervals.add_holds(cluster, drawn.holds, evidence)
        past_intervals.add_foreign_use(cluster, drawn.foreign)
        past_intervals.add_pods(cluster, drawn.start, drawn.pods)
        past_intervals.add_nodes(cluster, _nodes(found), evidence)
        quota_history.record_quotas(world.limits(cluster), drawn.start)
        _add_versions(drawn)
        _set_prices(drawn)
    return drawn


def complete(cluster: str) -> int:
    """Roll up the simulated hours of the cluster that are not, a day at a time, and prove their balance; return how
    many were proved. The last one, of which a part is recorded, is left to the portal's tasks.
    """
    evidence = simulated.first_evidence().get(cluster)
    if evidence is None:
        return 0
    until = datetime.fromisoformat(evidence["until"])
    end = hour_of(until)
    hours = list(hours_between(day_of(until) - evidence["days"] * DAY, end))
    missing = set(hours) - set(rollups.rolled_up_hours(cluster)) | set(rollups.dirty_hours(cluster, end))
    for day in sorted({day_of(hour) for hour in missing}):
        rollups.roll_up(cluster, day, min(day + DAY, end))
    proved = proofs.proved(cluster)
    due = [hour for hour in hours if hour in missing or not proved.get(hour)]
    for hour in due:
        proofs.prove(cluster, hour, partial(_differences, cluster, hour))
    return len(due)


def _differences(cluster: str, hour: datetime) -> list[Failure]:
    return list(rollup_proof.differences(cluster, hour))


def _nodes(found: World) -> list[PastNode]:
    joined = incidents.joined(found)
    first = past_intervals.first_nodes(found.cluster)
    return [
        PastNode(node, first[node][0], since, first[node][1])
        for node, since in joined.items()
        if node in first and since < first[node][1]
    ]


def _add_versions(drawn: History) -> None:
    """Add what the slices of a flavor were before its layout changed."""
    for change in drawn.layouts:
        flavor = Flavor.objects.get(name=change.flavor)
        first = FlavorVersion.objects.filter(flavor=flavor).order_by("since").first()
        if first is None:
            continue
        name = change.slice.key.partition("/")[2]
        slices = first.document["slices"]
        former = slices | {name: slices[name] | {"gpu_share": str(change.slice.gpu_share)}}
        documents = {drawn.start: first.document | {"slices": former}, change.end: first.document}
        FlavorVersion.objects.bulk_create(
            FlavorVersion(flavor=flavor, since=since, document=document) for since, document in documents.items()
        )


def _set_prices(drawn: History) -> None:
    """Set the prices as an operator would have at the time."""
    for change in drawn.prices:
        with clock.frozen(change.at):
            price = change.price
            services.set_price(SYSTEM, change.flavor, price.per_gpu_hour, price.currency, change.at, SOURCE)
