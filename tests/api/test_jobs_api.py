"""Tenants' own Jobs over REST and in the queue: who may see them, and in a fixed number of queries."""

from dataclasses import replace
from datetime import timedelta
from uuid import uuid4

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from allocations.models import LeaseExcess, MirrorObject
from portal.core import clock
from portal.tenants import services as tenants
from portal.tenants.actors import SYSTEM
from quotas.metering import services as metering
from tests.support.clusters import LOCAL
from tests.support.fleet import allocate, fleet
from tests.support.people import client, person
from tests.support.queued import FULL, GPU, job
from tests.support.quotas import attribution
from tests.support.rows_read import assert_constant

pytestmark = pytest.mark.django_db


@pytest.fixture
def member(team, other_team, project):
    fleet(team, other_team)
    return person(team)


def test_a_queued_job_has_its_place_its_reason_and_what_helps(member, project):
    uid = job("train", project.namespace)
    [row] = client(member).get("/api/v1/jobs").json()["results"]
    assert (row["uid"], row["state"], row["reason"], row["gpus"]) == (str(uid), "queued", "WaitingForQuota", 2)
    assert row["queue"] == {"position": 1, "of": 1}
    assert row["hint"]
    assert row["cost"]["to_date"] == "0.0000"


def test_a_job_has_the_labels_of_its_pods_and_is_found_by_them(member, project):
    job("train", project.namespace, labels={"app": "train", "stage": "prod"})
    job("test", project.namespace, labels={"app": "train"})
    job("serve", project.namespace)
    api = client(member)

    def found(query):
        return {row["name"]: row["labels"] for row in api.get(f"/api/v1/jobs{query}").json()["results"]}

    assert found("") == {"train": {"app": "train", "stage": "prod"}, "test": {"app": "train"}, "serve": {}}
    assert found("?label=app=train").keys() == {"train", "test"}
    assert found("?label=app=train,stage=prod").keys() == {"train"}
    assert found("?label=app=serve") == {}
    answer = api.get("/api/v1/jobs?label=app")
    assert (answer.status_code, list(answer.json()["errors"])) == (400, ["label"])


def test_an_admitted_job_is_of_the_offering_whose_flavor_kueue_chose(member, project):
    admitted = {"conditions": {}, "cluster_queue": "team-vision", "usage": {"l40s": {GPU: 2}}}
    uid = job("train", project.namespace, **admitted)
    row = client(member).get(f"/api/v1/jobs/{uid}").json()
    assert (row["state"], row["offering"], row["queue"]) == ("admitted", "l40s/whole", None)


def test_an_admitted_job_that_no_node_takes_says_so_in_the_schedulers_words(member, project):
    admitted = {"conditions": {}, "cluster_queue": "team-vision", "usage": {"l40s": {GPU: 2}}}
    uid, other = (job(name, project.namespace, **admitted) for name in ("train", "other"))
    words = "0/9 nodes are available: 9 node(s) didn't match Pod's node affinity/selector."
    for owner, node, message in ((uid, "", words), (other, "l40s-0", "")):
        facts = {"phase": "Pending", "node": node, "job": str(owner), "unschedulable": message}
        MirrorObject.objects.create(
            cluster_id=LOCAL,
            kind="Pod",
            namespace=project.namespace,
            name=f"p-{owner}",
            uid=str(uuid4()),
            resource_version=1,
            facts=facts,
            seen_at=clock.now(),
        )
    rows = {row["name"]: row for row in client(member).get("/api/v1/jobs").json()["results"]}
    assert (rows["train"]["reason"], rows["other"]["reason"]) == ("unschedulable", "admitted")
    assert words in rows["train"]["message"]
    assert rows["train"]["hint"]


def test_a_job_tells_what_of_its_reserved_hours_pods_used_and_is_charged_for_all(member, project):
    admitted = {"conditions": {}, "cluster_queue": "team-vision", "usage": {"l40s": {GPU: 2}}}
    uid, now = job("train", project.namespace, **admitted), clock.now()
    slots = f"local/job:{uid}/l40s/{GPU}", f"local/pod:a/{GPU}"
    spans = ((3, 1, 2, True), (1, 0, 1, True), (1, 0, 1, False))  # hours ago from, to, GPUs, unused
    for (start, end, count, unused), slot in zip(spans, (slots[0], *slots), strict=True):
        held = attribution(team="vision", project=project.slug, member="", namespace=project.namespace, unused=unused)
        row = metering.open_interval(uuid4(), uid, slot, now - timedelta(hours=start), held, count, {})
        metering.close_interval(row.key, now - timedelta(hours=end), {})
    row = client(member).get(f"/api/v1/jobs/{uid}").json()
    assert row["gpu_hours"] == {"reserved": "6.000000", "used": "1.000000"}
    assert row["cost"]["to_date"] == "6.6000"
    assert row["state"] == "admitted"


def test_a_job_that_the_portal_ended_says_what_it_used_beyond_its_quota(member, project):
    deactivated = {"QuotaReserved": {"status": "False", "reason": "Deactivated", "message": "It is deactivated"}}
    uid = job("train", project.namespace, conditions=deactivated)
    said = "The Job train uses 2 nvidia.com/gpu where 1 are reserved."
    numbers = {"resource": GPU, "used": 2, "reserved": 1, "actions": 1, "seen_at": clock.now()}
    LeaseExcess.objects.create(
        cluster_id=LOCAL,
        holder_kind="job",
        holder=str(uid),
        name="train",
        namespace=project.namespace,
        message=said,
        **numbers,
    )
    row = client(member).get(f"/api/v1/jobs/{uid}").json()
    assert (row["state"], row["reason"]) == ("failed", "over_lease")
    assert row["message"] == f"{said} The portal ended it."


def test_a_job_runs_while_pods_of_it_use_gpus_and_not_while_they_are_only_reserved(member, project):
    admitted = {"conditions": {}, "cluster_queue": "team-vision", "usage": {"l40s": {GPU: 2}}}
    uid = job("train", project.namespace, **admitted)

    def state() -> str:
        return str(client(member).get(f"/api/v1/jobs/{uid}").json()["state"])

    of = attribution(project=project.slug, member="", namespace=project.namespace)
    metering.open_interval(uuid4(), uid, f"local/job:{uid}/l40s/{GPU}", clock.now(), replace(of, unused=True), 1, {})
    assert state() == "admitted"
    metering.open_interval(uuid4(), uid, f"local/pod:a/{GPU}", clock.now(), of, 1, {})
    assert state() == "running"


def test_what_a_job_was_admitted_for_is_used_of_its_teams_quota(member, project):
    job("train", project.namespace, conditions={}, cluster_queue="team-vision", usage={"l40s": {GPU: 2}})
    rows = client(member).get("/api/v1/offerings").json()["results"]
    mine = next(row["mine"] for row in rows if row["id"] == "l40s/whole")
    assert (mine["limit"], mine["used"], mine["can_get_now"]) == (4, 2, 2)


@pytest.mark.parametrize(("reason", "state"), [("Succeeded", "finished"), ("Failed", "failed")])
def test_a_job_that_ended_says_how(member, project, reason, state):
    finished = {"status": "True", "reason": reason, "message": "", "at": ""}
    job("train", project.namespace, conditions={"Finished": finished}, cluster_queue="team-vision")
    assert [row["state"] for row in client(member).get("/api/v1/jobs").json()["results"]] == [state]


def test_a_job_that_kueue_deactivated_has_ended_and_nobody_waits_behind_it(member, project):
    ran_out = {"status": "True", "reason": "DeactivatedDueToMaximumExecutionTimeExceeded", "message": "", "at": ""}
    conditions = {"Evicted": ran_out, "QuotaReserved": {**FULL, "reason": "Deactivated"}}
    uid = job("over", project.namespace, conditions=conditions, created_at="2026-11-02T11:00:00+00:00")
    job("train", project.namespace)
    rows = {row["name"]: row for row in client(member).get("/api/v1/jobs").json()["results"]}
    assert (rows["over"]["state"], rows["over"]["queue"]) == ("failed", None)
    assert "reached its maximum running time" in client(member).get(f"/api/v1/jobs/{uid}").json()["message"]
    assert rows["train"]["queue"] == {"position": 1, "of": 1}


def test_another_teams_job_is_not_there(member, other_team, project):
    uid = job("train", project.namespace)
    stranger = client(person(other_team))
    assert stranger.get("/api/v1/jobs").json()["results"] == []
    assert stranger.get("/api/v1/jobs", {"project": project.slug}).json()["results"] == []
    assert stranger.get(f"/api/v1/jobs/{uid}").status_code == 404


def test_jobs_come_newest_first_a_page_at_a_time(member, project):
    """With two of one second among them: each is on exactly one page."""
    made = [
        str(job(f"n-{number}", project.namespace, created_at=f"2026-11-02T12:00:0{at}+00:00"))
        for number, at in enumerate((0, 1, 1, 2, 3))
    ]
    api, seen = client(member), []
    answer = api.get("/api/v1/jobs", {"limit": 2}).json()
    while True:
        assert len(answer["results"]) <= 2
        seen += [row["uid"] for row in answer["results"]]
        if answer["next"] is None:
            break
        answer = api.get(answer["next"]).json()
    assert sorted(seen) == sorted(made)
    assert [seen[0], seen[1], seen[4]] == [made[4], made[3], made[0]]
    assert api.get("/api/v1/jobs", {"cursor": "x"}).status_code == 400


def test_a_job_that_is_not_there_is_404(member):
    assert client(member).get(f"/api/v1/jobs/{uuid4()}").status_code == 404
    assert client(member).get("/api/v1/jobs/no-uid").status_code == 404


def test_a_queue_holds_allocations_and_jobs_in_one_order(member, team, project):
    row = allocate(member, project, name="first")
    uid = job("train", project.namespace)
    body = client(member).get("/api/v1/queues/vision").json()
    assert [(found["kind"], found["allocation"], found["job"]) for found in body["pending"]] == [
        ("allocation", str(row.pk), None),
        ("job", None, str(uid)),
    ]
    assert body["pending"][1]["ahead"] == {"count": 1, "requests": {"l40s/whole": 1}}
    assert body["ordered_by"] == "portal"


def test_what_waits_in_other_teams_is_a_number_and_no_name(member, other_team, project):
    MirrorObject.objects.create(
        cluster_id=LOCAL,
        kind="ClusterQueue",
        name="team-language",
        uid="u",
        resource_version=1,
        facts={"pending": 3, "reserving": 0, "admitted": 0},
        seen_at=clock.now(),
    )
    answer = client(member).get("/api/v1/queues/vision")
    assert answer.json()["others_waiting"] == 3
    assert "language" not in answer.content.decode()


def test_what_waits_anywhere_in_the_tree_of_departments_may_want_what_is_lent(member, team):
    """A team below the same top department counts, one elsewhere does not."""
    below = tenants.create_department(SYSTEM, "robotics", "Robotics", parent=team.department)
    tenants.create_team(SYSTEM, below, "arms", "Arms")
    tenants.create_team(SYSTEM, tenants.create_department(SYSTEM, "sales", "Sales"), "leads", "Leads")
    for name in ("team-arms", "team-leads"):
        seen = {"uid": name, "resource_version": 1, "facts": {"pending": 2}, "seen_at": clock.now()}
        MirrorObject.objects.create(cluster_id=LOCAL, kind="ClusterQueue", name=name, **seen)
    assert client(member).get("/api/v1/queues/vision").json()["others_waiting"] == 2


def test_a_stopped_queue_tells_why_to_those_who_wait(member, project):
    MirrorObject.objects.create(
        cluster_id=LOCAL,
        kind="ClusterQueue",
        name="team-vision",
        uid="u",
        resource_version=1,
        facts={"pending": 1, "reserving": 0, "admitted": 0, "inactive": "it is stopped"},
        seen_at=clock.now(),
    )
    job("train", project.namespace, conditions={"QuotaReserved": {**FULL, "reason": "Suspended"}})
    [row] = client(member).get("/api/v1/jobs").json()["results"]
    assert "it is stopped" in row["message"]


def test_the_queues_of_ones_teams_are_told_in_numbers(member, other_team):
    facts = {"pending": 2, "reserving": 3, "admitted": 1, "spec": {}}
    seen = {"uid": "q", "resource_version": 1, "facts": facts, "seen_at": clock.now()}
    MirrorObject.objects.create(cluster_id=LOCAL, kind="ClusterQueue", name="team-vision", **seen)
    mine = {"team": "vision", "pending": 2, "reserving": 3, "admitted": 1}
    assert client(member).get("/api/v1/queues").json()["results"] == [mine]
    everybody = client(person(platform_role="operator"))
    with CaptureQueriesContext(connection) as few:
        rows = everybody.get("/api/v1/queues").json()["results"]
    assert rows == [{"team": "language", "pending": 0, "reserving": 0, "admitted": 0}, mine]
    assert len(few) < 8


@pytest.mark.parametrize("path", ["/api/v1/jobs", "/api/v1/queues/vision"])
def test_many_jobs_take_no_more_queries_than_one(member, project, path):
    api = client(member)
    job("train", project.namespace)

    def grow():
        for number in range(49):
            job(f"more-{number}", project.namespace)

    assert_constant(lambda: api.get(path), grow, at_most=15)
