"""The pages of a team's queue and of one Job: entries, reasons, hints, and who may see them."""

from fractions import Fraction

import pytest

from allocations.models import MirrorObject
from allocations.queues import lending
from tests.support.fleet import allocate, fleet
from tests.support.observed import mirror_lease
from tests.support.people import person
from tests.support.queued import job

pytestmark = pytest.mark.django_db
UNUSED = {
    "status": "False",
    "reason": "WaitingForQuota",
    "message": "insufficient unused quota for nvidia.com/gpu in flavor l40s, 1 more needed",
    "at": "",
}


@pytest.fixture
def member(team, project, client):
    fleet(team)
    made = person(team)
    client.force_login(made)
    return made


def test_the_queue_shows_who_waits_why_and_what_helps(client, member, project):
    row = allocate(member, project, name="first")
    uid = job("train", project.namespace)
    text = client.get("/queues/vision").content.decode()
    assert f"/allocations/{row.pk}" in text
    assert f"/jobs/{uid}" in text
    assert "Job in" in text
    assert "Release what the team no longer needs" in text
    assert "Kueue does not answer" in text


def test_what_is_borrowed_is_told_in_decimals(client, member, monkeypatch):
    side = lending.TeamBalance("h100/slices", Fraction(6, 5), Fraction(0))
    monkeypatch.setattr(lending, "of_team", lambda team: [side])
    assert "1.2 borrowed, 0 lent" in client.get("/queues/vision").content.decode()


def test_the_home_page_leads_to_the_queue(client, member):
    assert 'href="/queues/vision"' in client.get("/").content.decode()


def test_a_poll_brings_the_rows_alone(client, member):
    text = client.get("/queues/vision", headers={"HX-Request": "true"}).content.decode()
    assert text.lstrip().startswith("<div id=")
    assert "<html" not in text


def test_a_job_says_how_it_stands_and_that_refusals_are_not_known_while_the_cluster_is_away(client, member, project):
    uid = job("train", project.namespace)
    text = client.get(f"/jobs/{uid}").content.decode()
    assert "Position 1 of 1" in text
    assert "2 × nvidia.com/gpu" in text
    assert "GPU-hours reserved" in text
    assert "GPU-hours used by its pods" in text
    assert "refused pods cannot be shown" in text


def test_once_a_job_has_ended_a_poll_loads_its_cost_by_day_anew(client, member, project):
    runs = job("train", project.namespace)
    done = job("done", project.namespace, conditions={"Finished": {"status": "True", "reason": "Succeeded", "at": ""}})
    cost = '<div id="costs-card" hx-swap-oob="innerHTML"><section'
    for uid, is_there in ((runs, False), (done, True)):
        poll = client.get(f"/jobs/{uid}", headers={"HX-Request": "true"}).content.decode()
        assert (cost in poll, f'hx-get="/jobs/{uid}/costs"' in poll) == (is_there, is_there)


def test_the_queue_leads_to_the_quota_of_its_own_team(client, member):
    assert 'href="/limits?team=vision"' in client.get("/queues/vision").content.decode()


def test_a_job_shows_the_labels_of_its_pods(client, member, project):
    uid, other = job("train", project.namespace, labels={"app": "train"}), job("serve", project.namespace)
    assert "<dt>Labels</dt><dd><code>app=train</code></dd>" in client.get(f"/jobs/{uid}").content.decode()
    assert "<dt>Labels</dt>" not in client.get(f"/jobs/{other}").content.decode()


def test_kueues_own_words_about_a_job_are_in_a_disclosure(client, member, project):
    uid = job("train", project.namespace, conditions={"QuotaReserved": UNUSED})
    text = client.get(f"/jobs/{uid}").content.decode()
    assert "<p>The team has used its quota. It starts when 1 more GPU is free.</p>" in text
    assert f"<details><summary>Message from Kueue</summary><p><code>{UNUSED['message']}</code>" in text
    assert "1 more needed" not in client.get("/queues/vision").content.decode()


def test_kueues_own_words_about_an_allocation_are_in_a_disclosure(client, member, project):
    row = allocate(member, project, name="first")
    mirror_lease(row)
    MirrorObject.objects.update(facts={"conditions": {"QuotaReserved": UNUSED}})
    text = client.get(f"/allocations/{row.pk}").content.decode()
    assert f"<details><summary>Message from Kueue</summary><p><code>{UNUSED['message']}</code>" in text
    assert "Message from Kueue" not in client.get(f"/allocations/{allocate(member, project).pk}").content.decode()


def test_another_teams_queue_and_job_are_not_there(client, member, other_team, project):
    uid = job("train", project.namespace)
    client.force_login(person(other_team))
    assert client.get("/queues/vision").status_code == 404
    assert client.get(f"/jobs/{uid}").status_code == 404
