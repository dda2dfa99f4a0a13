"""What has no price, in answers and in what the command prints: no cost, and never a cost of zero."""

import re
from datetime import timedelta
from uuid import uuid4

import pytest

from portal.core import clock
from portal.tenants.actors import SYSTEM
from quotas.costs import services as costs
from quotas.metering import services as metering
from tests.support.fleet import allocate, fleet
from tests.support.pages import ended, held
from tests.support.people import client, person
from tests.support.queued import GPU, job
from tests.support.quotas import attribution

pytestmark = pytest.mark.django_db(transaction=True)
ALLOCATIONS = "/api/v1/allocations"


@pytest.fixture
def fleet_of_two_teams(team, other_team, project):
    """Give the teams a fleet in which only h100 has a price."""
    fleet(team, other_team, prices={"h100": "3.20"})


@pytest.fixture
def now():
    with clock.frozen(clock.this_minute()) as at:
        yield at


def price_l40s(since):
    costs.set_price(SYSTEM, "l40s", "1.10", "EUR", since, "test")


def cost_of(api, row):
    return api.get(f"{ALLOCATIONS}/{row.pk}").json()["cost"]


def test_an_allocation_without_a_price_has_no_cost_also_once_released(api, now, member, project):
    row = held(allocate(member, project, count=2), hours=3)
    unpriced = {"to_date": None, "unpriced_gpu_hours": "6.000000", "per_hour": None, "currency": "EUR"}
    assert cost_of(api, row) == unpriced
    ended(row)
    assert cost_of(api, row) == unpriced
    assert [found["cost"] for found in api.get(ALLOCATIONS).json()["results"]] == [unpriced]


def test_what_is_not_held_yet_costs_nothing_and_will_have_no_price(api, now, member, project):
    nothing = {"to_date": "0.0000", "unpriced_gpu_hours": "0", "per_hour": None, "currency": "EUR"}
    assert cost_of(api, allocate(member, project)) == nothing


def test_a_cost_is_of_what_was_held_since_the_first_price(api, now, member, project):
    row = held(allocate(member, project, count=2), hours=3)
    price_l40s(now - timedelta(hours=1))
    assert cost_of(api, row) == {
        "to_date": "2.2000",
        "unpriced_gpu_hours": "4.000000",
        "per_hour": "2.2000",
        "currency": "EUR",
    }


def test_a_price_that_comes_into_force_later_is_not_in_force_yet(api, now, member, project):
    price_l40s(now + timedelta(hours=1))
    assert cost_of(api, held(allocate(member, project), hours=1))["per_hour"] is None


def test_a_preview_and_an_offering_have_no_price(api):
    body = {"project": "vision-train", "offering": "l40s/whole"}
    seen = api.post(f"{ALLOCATIONS}/preview", body, format="json").json()
    assert seen["price"] == {"per_hour": None, "total": None, "currency": "EUR"}
    offered = {row["id"]: row["price_per_hour"] for row in api.get("/api/v1/offerings").json()["results"]}
    assert (offered["l40s/whole"], offered["h100/whole"]) == (None, "3.2000")


def reserved_by_a_job(project, now, hours):
    admitted = {"conditions": {}, "cluster_queue": "team-vision", "usage": {"l40s": {GPU: 2}}}
    uid = job("train", project.namespace, **admitted)
    held_by = attribution(team="vision", project=project.slug, member="", namespace=project.namespace)
    metering.open_interval(uuid4(), uid, f"local/job:{uid}", now - timedelta(hours=hours), held_by, 2, {})
    return uid


def test_a_job_without_a_price_has_no_cost(api, now, project):
    uid = reserved_by_a_job(project, now, 3)
    cost = {"to_date": None, "unpriced_gpu_hours": "6.000000", "currency": "EUR"}
    assert api.get(f"/api/v1/jobs/{uid}").json()["cost"] == cost
    assert [row["cost"] for row in api.get("/api/v1/jobs").json()["results"]] == [cost]


@pytest.fixture
def used(now, member, project):
    """Return a function that has an allocation held for two hours until now, since the command's portal has a clock of
    its own.
    """
    return lambda *offering: ended(held(allocate(member, project, *offering, name="train"), hours=2))


def test_the_command_says_that_it_is_not_priced(run, now, used, project):
    used()
    reserved_by_a_job(project, now, 3)
    assert "cost       not priced\n" in run("show", "train").stdout
    assert all("not priced" in run(command).stdout for command in ("list", "jobs"))
    assert "0.0000" not in run("list").stdout
    offered = {line.split()[0]: line for line in run("offerings").stdout.splitlines()}
    assert "not priced" in offered["l40s/whole"]
    assert "3.2000 EUR" in offered["h100/whole"]
    dry = run("request", "l40s/whole", "--project", "vision-train", "--dry-run").stdout
    assert "Not priced, 8 h held; it ends" in dry
    printed = run("costs", "--window", "30d").stdout
    assert [line.split(maxsplit=2)[2] for line in printed.splitlines()[1:-2]] == ["not priced"]
    assert printed.splitlines()[-2].startswith("Total: not priced, 8.")
    assert re.fullmatch(r"Costs are without 8\S* GPU-hours that have no price.", printed.splitlines()[-1])


def test_the_command_says_what_a_cost_leaves_out(run, now, used):
    used()
    price_l40s(now - timedelta(hours=1))
    for words in (("show", "train"), ("list",), ("costs", "--window", "30d")):
        assert "1.1000 EUR, without 1 GPU-hour that has no price" in run(*words).stdout


def test_where_all_has_a_price_the_command_says_nothing_of_it(run, used):
    used("h100/whole")
    assert all("price" not in run(*words).stdout for words in (("show", "train"), ("list",), ("costs",)))


def test_auditors_see_it_too(now, member, project, fleet_of_two_teams):
    held(allocate(member, project), hours=1)
    [row] = client(person(platform_role="auditor")).get("/api/v1/costs?window=30d&aggregate=flavor").json()["results"]
    assert (row["name"], row["cost"], row["total"], row["unpriced_gpu_hours"]) == ("l40s", None, None, "1.000000")
