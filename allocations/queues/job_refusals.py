"""Why the API server refuses pods of queued Jobs: Pod Security, a guard or a quota. Read from the cluster's events."""

from collections.abc import Collection
from dataclasses import replace

from allocations.cluster import events
from allocations.cluster.client import connect
from allocations.cluster.errors import ClusterRefused, ClusterUnavailable
from allocations.domain import reasons
from allocations.queues.jobs import Job, State


def of_job(job: Job) -> list[str] | None:
    """Return the cluster's current messages on refused pods of the Job; None if the cluster does not answer."""
    try:
        return events.refusals(connect(job.project.cluster_id), job.project.namespace, str(job.uid))
    except (ClusterUnavailable, ClusterRefused):
        return None


def with_refusals(jobs: Collection[Job]) -> list[Job]:
    """Return the Jobs; those that have quota and whose pods are refused, with that as reason and message.

    The events of each cluster that has a Job with quota and no pod that uses it are read; where that fails, the Jobs
    are returned unchanged.
    """
    found: dict[str, dict[str, list[str]]] = {}
    for cluster in {job.project.cluster_id for job in jobs if job.state is State.ADMITTED}:
        try:
            found[cluster] = events.refusals_of_jobs(connect(cluster))
        except (ClusterUnavailable, ClusterRefused):
            found[cluster] = {}
    return [_with_refusal(job, found.get(job.project.cluster_id, {}).get(str(job.uid), [])) for job in jobs]


def _with_refusal(job: Job, refusals: list[str]) -> Job:
    if job.state is not State.ADMITTED or not refusals:
        return job
    cause = reasons.ADMITTED["pods_refused"]
    return replace(job, reason="pods_refused", message=f"{cause.sentence} {refusals[-1]}", hint=cause.hint)
