"""An allocation by DRA as observed on the cluster: references to its objects, and its lease."""

from datetime import datetime, timedelta

from allocations.domain.objects import ObservedObject, Ref
from allocations.domain.observed import Deadlines
from tests.support.request_specs import NOW

DEADLINES = Deadlines(start=timedelta(seconds=120), grace=timedelta(seconds=60))
LEASE = Ref("Workload", "vision-train", "train-lease")
CLAIM = Ref("ResourceClaim", "vision-train", "train")
HOLDER = Ref("Pod", "vision-train", "train-holder")


def at(seconds: float) -> datetime:
    return NOW + timedelta(seconds=seconds)


def lease(*, admitted: bool = True, evicted_s: float | None = None, ready: bool = True) -> ObservedObject:
    conditions: dict[str, dict[str, str]] = {}
    if admitted:
        conditions["Admitted"] = {"status": "True", "at": NOW.isoformat()}
        conditions["PodsReady"] = {"status": "True" if ready else "False"}
    if evicted_s is not None:
        conditions["Evicted"] = {
            "status": "True",
            "at": at(evicted_s).isoformat(),
            "reason": "Preempted",
            "message": "Preempted by another.",
        }
    facts = {
        "created_at": NOW.isoformat(),
        "conditions": conditions,
        "cluster_queue": "team-vision" if admitted else "",
    }
    return ObservedObject(LEASE, "u-lease", 10, allocation="train", facts=facts)
