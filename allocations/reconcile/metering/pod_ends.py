"""Tells the ledger when pods finished of which nobody saw the end, as the pods themselves say."""

from collections.abc import Iterable, Sequence
from datetime import datetime

from allocations.cluster.kinds import Observation
from allocations.domain.observed_facts import pod_facts
from allocations.models import Allocation, MirrorObject
from allocations.reconcile.batch_state import BatchState
from allocations.reconcile.metering import job_usage
from allocations.reconcile.recorder import Recorder, Seen
from portal.core import clock
from quotas.metering import corrections


def finished_at(new: Observation, old: MirrorObject | None) -> datetime | None:
    """Return when a pod finished, as it says, if its end was not watched; None of another pod of the name, and of a
    time that has not come.
    """
    if new.live or new.gone or new.ref.kind != "Pod" or (old is not None and old.uid != new.uid):
        return None
    told = pod_facts(new).get("finished_at")
    at = datetime.fromisoformat(told) if told else None
    return at if at is not None and at <= clock.now() else None


def correct(cluster: str, new: Observation, old: MirrorObject | None, concerned: Iterable[Allocation]) -> None:
    """Correct the ends of what the pod used, if it says when it finished; no query otherwise."""
    at = finished_at(new, old)
    if at is None:
        return
    own = f"{job_usage.pod_slot_prefix(cluster)}{new.uid}/"
    excess = [f"{cluster}/{row.pk}/pod:{new.uid}/" for row in concerned]
    corrections.correct_pod_ends(cluster, new.uid, [own, *excess], at, job_usage.evidence_of_change(new), new.at)


def _batch(batch: BatchState, seen: Sequence[Seen]) -> None:
    for one in seen:
        correct(batch.cluster, one.change.new, one.change.old, one.concerned)


RECORDER = Recorder(batch=_batch)
