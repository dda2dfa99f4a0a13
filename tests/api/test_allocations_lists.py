import pytest

from allocations.domain.phases import Phase
from allocations.models import Allocation
from allocations.reconcile.metering.ledger import key
from portal.core import clock
from portal.tenants import services as tenants
from portal.tenants.actors import SYSTEM
from quotas.metering import services as metering
from tests.support.fleet import allocate
from tests.support.people import person
from tests.support.quotas import attribution
from tests.support.rows_read import assert_constant

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("fleet_of_two_teams")]
URL = "/api/v1/allocations"


def names(api, query=""):
    return [row["name"] for row in api.get(f"{URL}?{query}").json()["results"]]


def test_the_newest_come_first_page_by_page(api, member, project):
    for n in range(5):
        allocate(member, project, name=f"a{n}")
    found, url = [], f"{URL}?limit=2"
    while url:
        page = api.get(url).json()
        found += [row["name"] for row in page["results"]]
        url = page["next"]
    assert found == ["a4", "a3", "a2", "a1", "a0"]


def test_filters_keep_what_they_name(api, member, project, team):
    other = tenants.create_project(SYSTEM, team, "vision-dev", "Vision development")
    lead = person(team, "lead")
    allocate(member, project, name="a")
    allocate(lead, project, "h100/whole", name="b")
    ended = allocate(member, other, name="c")
    Allocation.objects.filter(pk=ended.pk).update(
        phase=Phase.ENDED.value, ended_at=clock.now(), outcome="released", desired="released"
    )
    assert names(api) == ["c", "b", "a"]
    assert names(api, "project=vision-dev") == ["c"]
    assert names(api, "project=vision-dev,vision-train&phase=queued") == ["b", "a"]
    assert names(api, "phase=queued&phase=ended") == ["c", "b", "a"]
    assert names(api, "offering=h100/whole") == names(api, "offering=h100%2Fwhole") == ["b"]
    assert names(api, "mine=true") == ["c", "a"]
    assert names(api, "team=vision&name=b") == ["b"]
    assert names(api, "project=unknown") == names(api, "team=language") == []


@pytest.mark.parametrize("query", ["phase=running", "mine=1", "project=%00", "offering=a%00b"])
def test_a_filter_that_means_nothing_is_400_and_named(api, query):
    answer = api.get(f"{URL}?{query}")
    assert answer.status_code == 400
    assert list(answer.json()["errors"]) == [query.partition("=")[0]]


def hold(row: Allocation) -> None:
    """Give the row an open interval, an applied object, and the phase of a held allocation."""
    slot = f"local/h100-0/gpu-{row.name}"
    at = clock.now()
    metering.open_interval(
        key(row.pk, slot, "x"),
        row.pk,
        slot,
        at,
        attribution(offering="h100/whole", flavor="h100", node="h100-0"),
        1,
        {},
    )
    Allocation.objects.filter(pk=row.pk).update(phase=Phase.ACTIVE.value, held_at=at)


@pytest.mark.parametrize(
    "path",
    [
        URL,
        f"{URL}?phase=queued",
        f"{URL}/{{id}}",
        f"{URL}/{{id}}/events",
        f"{URL}/{{id}}/manifests",
        "/api/v1/queues/vision",
        "/api/v1/offerings?project=vision-train",
        "/api/v1/offerings?free=true",
        "/api/v1/costs?aggregate=allocation",
        "/api/v1/prices",
    ],
)
def test_queries_are_as_many_for_fifty_as_for_two(api, member, project, path):
    hold(allocate(member, project, "l40s/whole", 4))  # so that in both worlds something cannot be had now
    hold(allocate(member, project, "h100/whole"))
    url = path.format(id=allocate(member, project, "h100/whole").pk)

    def grow():
        for n in range(24):
            hold(allocate(member, project, "h100/whole", name=f"held-{n}"))
            allocate(member, project, "h100/whole", name=f"waits-{n}")

    assert api.get(url).status_code == 200
    assert_constant(lambda: api.get(url), grow, at_most=10)
