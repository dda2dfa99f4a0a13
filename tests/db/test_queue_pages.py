"""Long queues: as many SQL queries as short ones, pages of bounded length, and exact positions."""

import pytest

from allocations.domain.observed_facts import workload_facts
from allocations.models import Allocation, MirrorObject
from allocations.queues import entries, queue, waiting
from portal.core.reading import read_tables
from quotas.catalog.models import Offering
from tests.support.fleet import fleet
from tests.support.people import person
from tests.support.queued import crowd
from tests.support.rows_read import assert_constant

pytestmark = pytest.mark.django_db
FEW, MANY = 5, 500


@pytest.fixture
def member(team, client):
    fleet(team)
    made = person(team)
    client.force_login(made)
    return made


@pytest.fixture
def wait(member, project):
    def wait(size: int) -> None:
        Allocation.objects.all().delete()
        MirrorObject.objects.filter(kind="Workload").delete()
        crowd(member, project, Offering.objects.get(key="l40s/whole"), size)

    return wait


def body(client, **query):
    answer = client.get("/api/v1/queues/vision", query)
    assert answer.status_code == 200, answer.content
    return answer.json()


@pytest.mark.parametrize(
    "path",
    [
        "/queues/vision",
        "/queues/vision?waiting=4",
        "/",
        "/allocations",
        "/api/v1/queues/vision",
        "/api/v1/queues",
        "/api/v1/allocations?limit=5",
        "/api/v1/jobs?limit=2",
    ],
)
def test_as_many_queries_with_500_waiting_as_with_5(client, wait, path):
    wait(FEW)
    assert client.get(path).status_code == 200
    assert_constant(lambda: client.get(path), lambda: wait(MANY), at_most=20)


def test_the_first_that_wait_are_the_first_of_the_whole_queue(wait, project):
    wait(40)
    Allocation.objects.filter(name="waits-8").update(priority="critical")
    Allocation.objects.filter(name="waits-0").update(priority="batch")
    whole = [one for one in entries.of_rows(*read_tables(*entries.parts([project.team_id]))) if one.is_queued]
    found = waiting.of_teams([project.team], 7)
    assert [one.entry.id for one in found.first] == [one.id for one in whole[:7]]
    assert found.by_team == {"vision": 40}


def test_an_answer_has_a_page_of_what_waits_and_tells_how_much_there_is(client, wait):
    wait(MANY)
    first = body(client)
    assert (len(first["pending"]), first["waiting"]) == (queue.PAGE_SIZE, MANY)
    assert first["holding_next"] is None


def test_the_pages_together_are_the_whole_queue_in_its_order(client, wait):
    wait(MANY)
    page = body(client, limit=200)
    seen = page["pending"]
    while page["pending_next"]:
        page = client.get(page["pending_next"]).json()
        seen += page["pending"]
    assert [one["position"] for one in seen] == list(range(1, MANY + 1))
    assert [one["name"] for one in seen] == [f"{'own' if n % 2 else 'waits'}-{n}" for n in range(MANY)]
    assert seen[-1]["ahead"] == {"count": 499, "requests": {"l40s/whole": 250, "nvidia.com/gpu": 498}}


def test_the_place_of_one_far_back_is_exact_everywhere(client, wait):
    wait(MANY)
    last = Allocation.objects.get(name="waits-498")
    place = {"position": 499, "of": 500}
    assert client.get(f"/api/v1/allocations/{last.pk}").json()["queue"] == place
    assert client.get("/api/v1/allocations?limit=1").json()["results"][0]["queue"] == place
    assert client.get("/api/v1/jobs?limit=1").json()["results"][0]["queue"] == {"position": 500, "of": 500}


def test_the_page_shows_a_part_and_leads_to_the_next(client, wait):
    wait(MANY)
    text = client.get("/queues/vision").content.decode()
    assert "1 to 50 of 500" in text
    assert "waits-50<" not in text
    assert 'href="?holding=1&amp;waiting=51"' in text
    after = client.get("/queues/vision?holding=1&waiting=51").content.decode()
    assert "51 to 100 of 500" in after
    assert "waits-50<" in after
    assert "51 of 500" in after
    assert 'hx-get="/queues/vision?waiting=51&amp;holding=1"' in after


def test_what_has_quota_is_paged_too(client, wait):
    wait(MANY)
    Allocation.objects.update(phase="active")
    first = body(client, limit=100)
    assert (len(first["holding"]), first["waiting"]) == (100, 250)
    second = client.get(first["holding_next"]).json()
    names = [one["name"] for one in first["holding"] + second["holding"]]
    assert names == [f"waits-{n}" for n in range(0, 400, 2)]
    assert "1 to 50 of 250" in client.get("/queues/vision").content.decode()


@pytest.mark.parametrize("query", ["waiting=0", "waiting=x", "waiting=99999999999999", "waiting=%00", "waiting=²"])
def test_a_page_that_cannot_be_shows_the_first(client, wait, query):
    wait(FEW)
    assert "1 of 5" in client.get(f"/queues/vision?{query}").content.decode()


def test_a_page_after_the_last_says_so_and_leads_back(client, wait):
    wait(FEW)
    text = client.get("/queues/vision?waiting=51").content.decode()
    assert "Nothing from 51 on. 5 in total" in text
    assert 'href="?holding=1&amp;waiting=1"' in text
    assert body(client, pending_from=51)["pending"] == []


@pytest.mark.parametrize("name", ["limit", "pending_from", "holding_from"])
@pytest.mark.parametrize("value", ["0", "-1", "x", "10000000", "²", "\x00", ""])
def test_a_number_that_cannot_be_is_refused_with_its_field(client, wait, name, value):
    wait(FEW)
    answer = client.get("/api/v1/queues/vision", {name: value})
    assert (answer.status_code, list(answer.json()["errors"])) == (400, [name])


def test_what_has_finished_is_in_no_queue(client, wait):
    wait(FEW)
    finished = {"Finished": {"status": "True", "reason": "Succeeded", "message": "", "at": ""}}
    ended = MirrorObject.objects.get(name="job-own-1")
    ended.facts = {**ended.facts, "conditions": {**workload_facts(ended)["conditions"], **finished}}
    ended.save()
    assert [one["name"] for one in body(client)["pending"]] == ["waits-0", "waits-2", "own-3", "waits-4"]


def test_another_teams_queue_has_no_page(client, other_team, wait):
    wait(FEW)
    client.force_login(person(other_team))
    assert client.get("/queues/vision?waiting=2").status_code == 404
    assert client.get("/api/v1/queues/vision?pending_from=2").status_code == 404
