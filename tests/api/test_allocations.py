import re
from datetime import UTC, datetime, timedelta

import pytest
import yaml

from allocations.domain.phases import Ending, Phase
from allocations.lifecycle import transitions
from allocations.models import Allocation
from portal.core import clock
from portal.core.models import WorkItem
from quotas.catalog.models import Flavor
from tests.support.fleet import allocate

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("fleet_of_two_teams")]
URL = "/api/v1/allocations"
FIELDS = {
    *("id", "name", "phase", "outcome", "reason", "message", "mode", "offering", "count", "project", "team"),
    *("namespace", "requested_by", "priority", "purpose", "created_at", "starts_at", "ends_at", "held_at", "queue"),
    *("hours", "hours_left", "give_up_at"),
    *("reservation", "devices", "cost", "objects"),
}
UTC_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z")


def ask(api, **body):
    wanted = {"project": "vision-train", "offering": "l40s/whole", **body}
    return api.post(URL, wanted, format="json")


def test_a_request_answers_201_with_every_field_of_the_contract(api, member):
    answer = ask(api, count=2, hours="1.5", purpose="to try it")
    body = answer.json()
    assert answer.status_code == 201
    assert answer["Location"] == f"{URL}/{body['id']}"
    assert set(body) >= FIELDS
    assert (body["count"], body["phase"], body["outcome"], body["mode"]) == (2, "queued", None, "hold")
    assert (body["project"], body["team"], body["namespace"]) == ("vision-train", "vision", "vision-train")
    assert (body["requested_by"], body["purpose"], body["priority"]) == (member.username, "to try it", "normal")
    assert body["queue"] == {"position": 1, "of": 1}
    assert body["cost"] == {
        "to_date": "0.0000",
        "unpriced_gpu_hours": "0",
        "per_hour": "2.2000",
        "currency": "EUR",
    }
    assert (body["reservation"], body["devices"], body["objects"]) == ("count", [], [])
    assert all(UTC_TIME.fullmatch(body[name]) for name in ("created_at", "give_up_at"))
    assert (body["hours"], body["hours_left"], body["ends_at"]) == ("1.500000", "1.500000", None)


def test_it_says_what_its_pods_may_ask_for_in_all(api):
    assert ask(api, count=2).json()["node_share"] is None
    Flavor.objects.update(node_cpu_millicores=15_190, node_memory_mib=126_443, node_pods=57)
    share = {"cpu": "30380m", "memory": "252886Mi", "pods": 32}
    wanted = {"project": "vision-train", "offering": "l40s/whole", "count": 2}
    assert api.post(f"{URL}/preview", wanted, format="json").json()["node_share"] == share
    assert ask(api, count=2).json()["node_share"] == share


def test_what_is_asked_is_marked_to_be_looked_at(api):
    assert WorkItem.objects.filter(target=f"local/allocation:{ask(api).json()['id']}").exists()


def test_eight_hours_one_slice_and_a_made_name_are_the_default(api):
    body = ask(api).json()
    assert (body["hours"], body["hours_left"], body["count"]) == ("8.000000", "8.000000", 1)
    assert body["name"].startswith("l40s-whole-")


def test_a_slice_by_dra_is_reserved_by_device(api):
    assert ask(api, offering="h100/whole").json()["reservation"] == "device"


def test_the_same_key_asks_once(api):
    first, again = (
        api.post(
            URL,
            {"project": "vision-train", "offering": "l40s/whole"},
            format="json",
            headers={"Idempotency-Key": "k"},
        )
        for _ in range(2)
    )
    assert (again.status_code, again.json()) == (201, first.json())
    assert again["Idempotent-Replayed"] == "true"
    assert Allocation.objects.count() == 1


def test_the_same_key_with_another_body_is_422(api):
    for count, status in ((1, 201), (2, 422)):
        body = {"project": "vision-train", "offering": "l40s/whole", "count": count}
        assert api.post(URL, body, format="json", headers={"Idempotency-Key": "k"}).status_code == status


def test_a_start_in_the_future_is_scheduled_and_has_no_place_in_the_queue(api):
    starts_at = datetime.now(UTC) + timedelta(hours=2)
    body = ask(api, starts_at=starts_at.isoformat(), hours=1).json()
    assert (body["phase"], body["queue"]) == ("scheduled", None)
    assert parsed(body["starts_at"]) == starts_at
    assert parsed(body["give_up_at"]) == starts_at + timedelta(days=7)


def test_a_refusal_names_what_binds_and_what_works(api):
    answer = ask(api, count=6)
    problem = answer.json()
    assert answer.status_code == 409
    assert answer["Content-Type"] == "application/problem+json"
    assert (problem["reason"], problem["dimension"]) == ("quota_exceeded", "team:l40s/gpu")
    assert (problem["limit"], problem["used"], problem["requested"]) == (4, 0, 6)
    assert [found["reason"] for found in problem["dimensions"]] == ["quota_exceeded"]
    first = problem["alternatives"][0]
    assert first == {
        "offering": "l40s/whole",
        "count": 4,
        "hours": "8.000000",
        "starts_at": None,
        "price": "35.2000",
        "fits": "now",
    }
    assert not Allocation.objects.exists()


def test_what_a_refusal_offers_is_accepted(api):
    for other in ask(api, count=6).json()["alternatives"]:
        body = {name: other[name] for name in ("offering", "count", "hours")}
        assert ask(api, **body).status_code == 201


@pytest.mark.parametrize(
    ("offering", "count", "dimensions"),
    [
        ("l40s/whole", 9, ["capacity:l40s/whole", "team:l40s/gpu"]),
        ("h100/whole", 5, ["capacity:h100/whole", "node:h100/whole", "team:h100/gpu"]),
        ("h100/whole", 3, ["team:h100/gpu"]),
    ],
)
def test_all_that_binds_is_named(api, offering, count, dimensions):
    problem = ask(api, offering=offering, count=count).json()
    assert [found["dimension"] for found in problem["dimensions"]] == dimensions
    assert all(found["hint"] for found in problem["dimensions"])


def test_what_does_not_fit_now_is_accepted_and_queued(api):
    assert [ask(api, count=4).status_code for _ in range(2)] == [201, 201]


def test_a_name_is_taken_once_in_a_project(api):
    assert ask(api, name="train").status_code == 201
    again = ask(api, name="train")
    assert (again.status_code, again.json()["reason"]) == (409, "name_taken")


def test_a_preview_says_the_same_as_the_request_and_writes_nothing(api):
    seen = api.post(f"{URL}/preview", {"project": "vision-train", "offering": "h100/whole", "count": 2}, format="json")
    body = seen.json()
    assert seen.status_code == 200
    assert (body["fits"], body["reasons"], body["alternatives"]) == ("now", [], [])
    assert abs(datetime.fromisoformat(body["expected_start"]) - clock.now()) < timedelta(minutes=5)
    assert body["price"] == {"per_hour": "6.4000", "total": "51.2000", "currency": "EUR"}
    assert body["wait"] == {"p50_s": None, "p90_s": None}
    assert [found["kind"] for found in body["manifests"]] == ["Workload", "ResourceClaim", "Pod"]
    for found in body["manifests"]:
        manifest = yaml.safe_load(found["yaml"])
        assert (manifest["apiVersion"], manifest["kind"]) == (found["apiVersion"], found["kind"])
        assert manifest["metadata"]["name"] == found["name"]
    assert not Allocation.objects.exists()


def test_a_preview_of_the_impossible_is_200_with_reasons(api):
    body = api.post(f"{URL}/preview", {"project": "vision-train", "offering": "l40s/whole", "count": 9}, format="json")
    assert body.status_code == 200
    assert body.json()["fits"] == "never"
    assert {"reason", "dimension", "limit", "used", "requested", "detail", "hint"} == set(body.json()["reasons"][0])


def test_a_preview_of_what_has_to_wait_says_queue(api, member, project):
    hold(allocate(member, project, count=3))
    body = {"project": "vision-train", "offering": "l40s/whole", "count": 2}
    seen = api.post(f"{URL}/preview", body, format="json").json()
    assert seen["fits"] == "queue"
    assert datetime.fromisoformat(seen["expected_start"]) > clock.now() + timedelta(hours=7)
    assert [other["starts_at"] for other in seen["alternatives"] if other["starts_at"]] == [seen["expected_start"]]


def test_a_preview_expects_a_later_start_when_it_was_requested_and_none_of_the_impossible(api):
    start = (clock.now() + timedelta(days=1)).replace(microsecond=0)
    body = {"project": "vision-train", "offering": "l40s/whole", "starts_at": start.isoformat()}
    assert datetime.fromisoformat(api.post(f"{URL}/preview", body, format="json").json()["expected_start"]) == start
    never = {"project": "vision-train", "offering": "l40s/whole", "count": 9}
    assert api.post(f"{URL}/preview", never, format="json").json()["expected_start"] is None


def test_places_follow_priority_then_age(api, member, project):
    rows = [allocate(member, project, priority=priority) for priority in ("batch", "normal", "normal")]
    places = {row["id"]: row["queue"] for row in api.get(URL).json()["results"]}
    assert [places[str(row.pk)]["position"] for row in rows] == [3, 1, 2]
    assert {place["of"] for place in places.values()} == {3}
    assert api.get(f"{URL}/{rows[0].pk}").json()["queue"] == {"position": 3, "of": 3}


def test_releasing_is_done_once_and_answers_200_each_time(api, member, project):
    row = allocate(member, project)
    answers = [api.post(f"{URL}/{row.pk}/release", {}, format="json") for _ in range(2)]
    assert [answer.status_code for answer in answers] == [200, 200]
    assert answers[0].json()["id"] == str(row.pk)
    assert row.transitions.filter(type="end").count() == 1


def test_a_release_answers_that_it_is_releasing(api, member, project):
    row = hold(allocate(member, project))
    body = api.post(f"{URL}/{row.pk}/release", {}, format="json").json()
    assert (body["phase"], body["reason"], body["outcome"]) == ("releasing", "cleaning_up", None)
    assert [found["id"] for found in api.get(f"{URL}?phase=releasing").json()["results"]] == [str(row.pk)]
    steps = row.transitions.order_by("id").values_list("type", "from_phase", "to_phase")
    assert list(steps)[1:] == [("end", "active", "active"), ("phase", "active", "releasing")]


def test_what_is_scheduled_is_on_no_cluster_and_does_not_pass_releasing(api):
    start = (datetime.now(UTC) + timedelta(hours=2)).isoformat()
    made = ask(api, starts_at=start).json()
    body = api.post(f"{URL}/{made['id']}/release", {}, format="json").json()
    assert body["phase"] == "scheduled"
    assert Allocation.objects.get().desired == Allocation.Desired.RELEASED


def test_an_ended_allocation_may_be_released_again(api, member, project):
    row = end(allocate(member, project))
    body = api.post(f"{URL}/{row.pk}/release", {}, format="json")
    assert (body.status_code, body.json()["phase"], body.json()["outcome"]) == (200, "ended", "cancelled")


def test_an_ending_one_cannot_be_extended(api, member, project):
    row = end(allocate(member, project))
    answer = api.post(f"{URL}/{row.pk}/extend", {"hours": 1}, format="json")
    assert (answer.status_code, answer.json()["reason"]) == (409, "wrong_phase")


def test_only_one_that_asks_its_owner_can_be_tried_again(api, member, project):
    row = allocate(member, project)
    assert api.post(f"{URL}/{row.pk}/retry", {}, format="json").json()["reason"] == "wrong_phase"
    until = clock.now() + timedelta(minutes=2)
    Allocation.objects.filter(pk=row.pk).update(needs_attention=True, start_failures=3, not_before=until)
    assert api.post(f"{URL}/{row.pk}/retry", {}, format="json").status_code == 200
    row.refresh_from_db()
    assert (row.needs_attention, row.start_failures) == (False, 0)
    assert row.not_before == until, "who retries at once is no faster than the portal"


def test_events_are_told_oldest_first(api, member, project):
    row = allocate(member, project)
    evidence = {"kind": "Workload", "name": "x", "resource_version": "7"}
    transitions.append(row, "phase", actor="portal", reason="submitted", evidence=evidence)
    rows = api.get(f"{URL}/{row.pk}/events").json()["results"]
    assert [event["type"] for event in rows] == ["requested", "phase"]
    assert set(rows[0]) == {
        *("id", "at", "recorded_at", "type", "from_phase", "to_phase", "reason", "message", "actor", "evidence"),
    }
    assert rows[0]["evidence"] is None
    assert rows[1]["evidence"]["kind"] == "Workload"


def test_manifests_are_what_is_applied(api, member, project):
    row = allocate(member, project, "h100/whole", 2)
    rows = api.get(f"{URL}/{row.pk}/manifests").json()["results"]
    assert [(found["kind"], found["applied"]) for found in rows] == [
        *(("Workload", False), ("ResourceClaim", False), ("Pod", False)),
    ]
    claim = yaml.safe_load(rows[1]["yaml"])
    assert [r["name"] for r in claim["spec"]["devices"]["requests"]] == ["slice-0", "slice-1"]


def parsed(text: str) -> datetime:
    return datetime.fromisoformat(text)


def hold(row: Allocation) -> Allocation:
    """Put the allocation in the state that the reconciler writes once the slices are held."""
    Allocation.objects.filter(pk=row.pk).update(phase=Phase.ACTIVE.value, held_at=row.created_at)
    return row


def end(row: Allocation) -> Allocation:
    """Put the allocation in the state that the reconciler writes once no object is left."""
    transitions.end(row, Ending.PERSON, "released", "Released by ada.", actor="test")
    Allocation.objects.filter(pk=row.pk).update(phase="ended", outcome="cancelled", ended_at=row.created_at)
    row.refresh_from_db()
    return row
