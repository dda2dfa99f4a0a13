"""Queued Jobs of two clusters with the same names: each counts and is charged in its own cluster."""

from uuid import uuid4

import pytest

from allocations.capacity.quota_usage import QuotaUsage
from allocations.queues import jobs, queue
from allocations.reconcile.metering import job_ledger, unbilled
from portal.tenants.models import Project, Team, User
from quotas.catalog.models import Pool
from quotas.metering.models import UsageInterval
from tests.support.clusters import LOCAL
from tests.support.two_clusters import BOTH, FAR, NAMESPACE, Twin, due, pod, workload

pytestmark = pytest.mark.django_db


def test_a_job_draws_on_the_quota_of_its_own_cluster_alone(team: Team, twins: dict[str, Twin]) -> None:
    workload(FAR, str(uuid4()), twins[FAR].flavors["l40s"])
    workload(LOCAL, str(uuid4()), twins[FAR].flavors["l40s"])  # whoever made a flavor of that name there
    pools = {cluster: Pool.objects.get(flavor__name=twin.flavors["l40s"]) for cluster, twin in twins.items()}
    used = {cluster: QuotaUsage().units_by_queue(pool)["team-vision"] for cluster, pool in pools.items()}
    assert used == {LOCAL: 0, FAR: 2}


def test_jobs_of_one_name_on_nodes_of_one_name_are_charged_in_their_own_cluster(twins: dict[str, Twin]) -> None:
    uids = {cluster: str(uuid4()) for cluster in BOTH}
    for cluster, uid in uids.items():
        workload(cluster, uid, twins[cluster].flavors["l40s"])
        pod(cluster, uid)
    assert {cluster: unbilled.jobs(cluster) for cluster in BOTH} == {c: {(NAMESPACE, uids[c])} for c in BOTH}
    unbilled.enqueue(FAR)
    assert due() == {"far/inventory"}
    charged = UsageInterval.objects.filter(end=None).values_list("cluster", "project", "flavor")
    for cluster, expected in ((FAR, 1), (LOCAL, 2)):
        job_ledger.repair_all(cluster, job_ledger.metered(cluster))
        assert charged.count() == expected
    flavors = {cluster: twin.flavors["l40s"] for cluster, twin in twins.items()}
    assert set(charged) == {(LOCAL, "vision-train", flavors[LOCAL]), (FAR, "vision-far", flavors[FAR])}


def test_a_job_on_a_flavor_of_another_cluster_shows_no_offering_of_it(twins: dict[str, Twin]) -> None:
    for cluster in BOTH:
        workload(cluster, str(uuid4()), twins[FAR].flavors["l40s"])
    listed = {cluster: jobs.read(jobs.rows(Project.objects.filter(cluster=cluster))) for cluster in BOTH}
    shown = {cluster: [job.offering for job in each] for cluster, each in listed.items()}
    assert shown == {LOCAL: [""], FAR: [twins[FAR].offering("l40s/whole").key]}


def test_jobs_are_listed_in_the_project_of_their_own_cluster(member: User, twins: dict[str, Twin]) -> None:
    uids = {cluster: str(uuid4()) for cluster in BOTH}
    for cluster, uid in uids.items():
        workload(cluster, uid, twins[cluster].flavors["l40s"])
    listed = {cluster: jobs.read(jobs.rows(Project.objects.filter(cluster=cluster))) for cluster in BOTH}
    found = {cluster: [(str(job.uid), job.project.slug) for job in each] for cluster, each in listed.items()}
    assert found == {LOCAL: [(uids[LOCAL], "vision-train")], FAR: [(uids[FAR], "vision-far")]}


def test_each_cluster_has_a_queue_of_the_team(twins: dict[str, Twin]) -> None:
    rows = [twin.row for twin in twins.values()]
    assert queue.positions(rows) == {row.pk: (1, 1) for row in rows}
