"""Reads tenants' own queued Jobs from Kueue's Workloads in the mirror and from the ledger.

The portal does not create them and stores no row: of a Job that was deleted in the cluster only the costs are left.
"""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from enum import StrEnum
from typing import Any, NamedTuple
from uuid import UUID

from django.db.models import Count, Exists, Max, OuterRef, Q, QuerySet
from django.db.models.fields.json import KT

from allocations.domain import reasons
from allocations.domain.observed_facts import Conditions, PodCounts, workload_facts
from allocations.lifecycle.lease_excess import HolderKind
from allocations.models import LeaseExcess, MirrorObject
from allocations.reconcile.job_events import is_partial
from portal.core.reading import Statement
from portal.tenants import access
from portal.tenants.models import Project, User
from quotas.catalog.models import Kind, Offering
from quotas.limits import names as queue_names
from quotas.metering.models import UsageInterval


class State(StrEnum):
    QUEUED = "queued"
    ADMITTED = "admitted"
    RUNNING = "running"
    FINISHED = "finished"
    FAILED = "failed"


ORDER = ("created", "job_uid")
ENDED = (State.FINISHED, State.FAILED)
UNFINISHED = """
    SELECT job.uid, project.team_id, workload.cluster_id, workload.namespace, workload.name,
        EXISTS (
            SELECT FROM metering_usageinterval AS usage
            WHERE usage.holder_id = job.uid::uuid AND usage."end" IS NULL AND NOT usage.unused
        ),
        workload.facts
    FROM allocations_mirrorobject AS workload
    JOIN tenants_project AS project
        ON project.cluster_id = workload.cluster_id AND project.namespace = workload.namespace
    CROSS JOIN LATERAL (SELECT workload.facts #>> '{job,uid}' AS uid) AS job
    WHERE project.team_id = ANY ({teams}) AND workload.kind = 'Workload' AND workload.allocation = ''
        AND job.uid IS NOT NULL AND workload.facts #>> '{conditions,Finished,status}' IS DISTINCT FROM 'True'
"""
UNFINISHED_COLUMNS = ("uid", "team", "cluster", "namespace", "workload", "is_running", "facts")
OF_TEAMS = UNFINISHED.replace("{teams}", "%s")
OF_TEAMS_OF_PROJECTS = UNFINISHED.replace("{teams}", "SELECT team_id FROM tenants_project WHERE id = ANY(%s)")


@dataclass(frozen=True)
class Job:
    """A queued Job. ``requests`` are the GPUs of all its pods by resource; ``offering`` is "" before its admission.
    ``kueue_message`` is Kueue's own about why it waits, or "". ``pods``: how many it wants at once (``requested``), and
    for how many it has quota (``admitted``, 0 before); {} if its Workload was not observed since they are read.
    ``labels`` are those of its pods, as costs have them.

    It is ``running`` while its pods use GPUs, and ``admitted`` while it has quota reserved and no pod uses it.
    """

    uid: UUID
    name: str
    project: Project
    workload: str
    state: State
    reason: str
    message: str
    hint: str
    kueue_message: str
    requests: Mapping[str, int]
    pods: PodCounts
    offering: str
    priority: int
    labels: Mapping[str, str]
    created_at: datetime

    @property
    def gpus(self) -> int:
        return sum(self.requests.values())


class Unfinished(NamedTuple):
    """A Job that has not ended, with the fields that order and sums need; ``team`` is the key of its team."""

    uid: UUID
    team: int
    cluster: str
    namespace: str
    workload: str
    state: State
    requests: Mapping[str, int]
    priority: int
    created_at: datetime


def rows(projects: QuerySet[Project]) -> QuerySet[MirrorObject]:
    """Return the mirror's Workloads of the projects' Jobs, newest first, annotated with ``created`` and ``job_uid``."""
    own_projects = projects.order_by().filter(cluster=OuterRef("cluster"), namespace=OuterRef("namespace"))
    workloads = MirrorObject.objects.filter(Exists(own_projects), kind="Workload", allocation="")
    annotated = workloads.annotate(created=KT("facts__created_at"), job_uid=KT("facts__job__uid"))
    return annotated.filter(job_uid__isnull=False).order_by(*(f"-{name}" for name in ORDER))


def read(workloads: Collection[MirrorObject]) -> list[Job]:
    """Return the Jobs of these rows, in their order; a fixed number of queries."""
    if not workloads:
        return []
    projects = Project.objects.filter(namespace__in={row.namespace for row in workloads}).select_related("team")
    project_of = {(project.cluster_id, project.namespace): project for project in projects}
    charges = _last_charges(UUID(workload_facts(row)["job"]["uid"]) for row in workloads)
    offerings = dict(_offerings())
    inactive = _inactive({project.team.slug for project in project_of.values()})
    ended = _ended_over_lease([workload_facts(row)["job"]["uid"] for row in workloads])
    found = [_job(row, project_of[row.cluster_id, row.namespace], charges, offerings, inactive) for row in workloads]
    pending = _unschedulable([job for job in found if job.state is State.ADMITTED])
    found = [_with_reason(job, pending[job.uid]) if job.uid in pending else job for job in found]
    return [
        _with_reason(job, ended[job.uid]) if job.uid in ended and job.state is State.FAILED else job for job in found
    ]


def unfinished_part(teams: Collection[int]) -> Statement:
    """Return what to read for ``unfinished``."""
    return Statement(OF_TEAMS, (list(teams),), UNFINISHED_COLUMNS)


def unfinished_part_beside(projects: Collection[int]) -> Statement:
    """Return what to read for ``unfinished``, of the teams of these projects."""
    return Statement(OF_TEAMS_OF_PROJECTS, (list(projects),), UNFINISHED_COLUMNS)


def unfinished(rows: Iterable[Any]) -> list[Unfinished]:
    """Return the Jobs of the teams' projects that have not ended, by what ``unfinished_part`` reads."""
    found = [
        Unfinished(
            uid=UUID(row.uid),
            team=row.team,
            cluster=row.cluster,
            namespace=row.namespace,
            workload=row.workload,
            state=_state(row.facts["cluster_queue"], row.facts["conditions"], row.is_running),
            requests=row.facts["gpu_requests"],
            priority=row.facts["priority"],
            created_at=datetime.fromisoformat(row.facts["created_at"]),
        )
        for row in rows
    ]
    return [job for job in found if job.state not in ENDED]


def visible(user: User, uid: UUID) -> Job | None:
    """Return the Job, or None unless it is in a project that the person may see."""
    found = read(rows(access.visible_projects(user)).filter(facts__job__uid=str(uid)))
    return found[0] if found else None


def _job(
    row: MirrorObject,
    project: Project,
    charges: Mapping[UUID, tuple[str, bool]],
    offerings: Mapping[tuple[str, str, str], str],
    inactive: Mapping[tuple[str, str], str],
) -> Job:
    facts = workload_facts(row)
    uid = UUID(facts["job"]["uid"])
    reserved = bool(facts["cluster_queue"])
    inactive_reason = inactive.get((project.cluster_id, project.team.slug), "")
    reason = reasons.explain(facts["conditions"], reserved=reserved, inactive=inactive_reason)
    offering, is_running = charges.get(uid, ("", False))
    state = _state(facts["cluster_queue"], facts["conditions"], is_running)
    if state is State.RUNNING and reason.reason == "admitted":
        reason = reasons.Reason("running", *reasons.ADMITTED["running"])
    message = reason.message
    if state in (State.ADMITTED, State.RUNNING) and is_partial(facts.get("pods", {})):
        pods = facts["pods"]
        message += f" It has quota for {pods['admitted']} of its {pods['requested']} pods at once."
    assigned = ((row.cluster_id, flavor, resource) for flavor, used in facts["usage"].items() for resource in used)
    return Job(
        uid=uid,
        name=facts["job"]["name"],
        project=project,
        workload=row.name,
        state=state,
        reason=reason.reason,
        message=message,
        hint=reason.hint,
        kueue_message=reasons.kueue_message(facts["conditions"]) if state is State.QUEUED else "",
        requests=facts["gpu_requests"],
        pods=facts.get("pods", {}),
        offering=offering or next((offerings[key] for key in assigned if key in offerings), ""),
        priority=facts["priority"],
        labels=facts.get("labels", {}),
        created_at=datetime.fromisoformat(facts["created_at"]),
    )


def _state(cluster_queue: str, conditions: Conditions, is_running: bool) -> State:
    finished = conditions.get("Finished", {})
    if finished.get("status") == "True":
        return State.FINISHED if finished["reason"] == "Succeeded" else State.FAILED
    if is_running:
        return State.RUNNING
    reserved = bool(cluster_queue)
    if reasons.is_deactivated(conditions, reserved=reserved):
        return State.FAILED
    return State.ADMITTED if reserved else State.QUEUED


def _last_charges(uids: Iterable[UUID]) -> dict[UUID, tuple[str, bool]]:
    """Return the offering that each Job was last charged for, and whether its pods use GPUs now."""
    found: dict[UUID, tuple[str, bool]] = {}
    rows = UsageInterval.objects.filter(holder_id__in=list(uids)).order_by().values_list("holder_id", "offering")
    in_use = Count("key", filter=Q(end=None, unused=False))
    for uid, offering, _last, n in rows.annotate(last=Max("start"), n=in_use).order_by("last", "offering"):
        found[uid] = (offering, found.get(uid, ("", False))[1] or n > 0)
    return found


def _offerings() -> Iterable[tuple[tuple[str, str, str], str]]:
    """Return the keys of the offerings that are counted in one Kubernetes resource, by cluster, flavor and resource."""
    for cluster, flavor, requests, key in Offering.objects.exclude(kind=Kind.CLAIM).values_list(
        "flavor__cluster", "flavor__name", "requests", "key"
    ):
        if list(requests.values()) == [1]:
            (resource,) = requests
            yield (cluster, flavor, resource), key


def _with_reason(job: Job, reason: reasons.Reason) -> Job:
    return replace(job, reason=reason.reason, message=reason.message, hint=reason.hint)


def _ended_over_lease(uids: Collection[str]) -> dict[UUID, reasons.Reason]:
    """Return the reason for each Job that the portal ended since it used more than its quota."""
    rows = LeaseExcess.objects.filter(holder_kind=HolderKind.JOB, holder__in=uids, actions__gt=0).order_by("pk")
    hint = "Submit it again. The platform team can see in the audit log how it came about."
    return {
        UUID(uid): reasons.Reason("over_lease", f"{message} The portal ended it.", hint)
        for uid, message in rows.values_list("holder", "message")
    }


def _unschedulable(admitted: Collection[Job]) -> dict[UUID, reasons.Reason]:
    """Return the reason for each of these Jobs that has a pod which the scheduler finds no node for, in its words."""
    if not admitted:
        return {}
    pods = MirrorObject.objects.annotate(node=KT("facts__node"), job=KT("facts__job")).filter(
        cluster__in={job.project.cluster_id for job in admitted},
        kind="Pod",
        node="",
        allocation="",
        job__in=[str(job.uid) for job in admitted],
    )
    messages = pods.exclude(facts__unschedulable="").order_by("name").values_list("job", "facts__unschedulable")
    return {UUID(job): reasons.unschedulable(message) for job, message in messages}


def _inactive(teams: set[str]) -> dict[tuple[str, str], str]:
    """Return why a team's queue is inactive, by cluster and team; active queues are left out."""
    by_queue = {queue_names.cluster_queue(team): team for team in teams}
    rows = MirrorObject.objects.filter(kind="ClusterQueue", name__in=by_queue, facts__has_key="inactive")
    found = rows.values_list("cluster", "name", "facts__inactive")
    return {(cluster, by_queue[name]): reason for cluster, name, reason in found}
