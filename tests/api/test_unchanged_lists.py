"""Who has a list of allocations is told that it has not changed, and never when anything in it has."""

import gzip
import json
from datetime import UTC, datetime, timedelta
from uuid import uuid4

import pytest

from allocations.domain.phases import Phase
from allocations.models import Allocation
from portal.core import clock
from portal.tenants.models import Membership, User
from quotas.catalog.models import Flavor
from quotas.metering import services as metering
from tests.support.fleet import allocate
from tests.support.people import client, person
from tests.support.quotas import attribution

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("fleet_of_two_teams")]
URL = "/api/v1/allocations"
NOON = datetime(2026, 11, 24, 12, 0, 20, tzinfo=UTC)


@pytest.fixture(autouse=True)
def within_a_minute():
    with clock.frozen(NOON):
        yield


@pytest.fixture
def row(member, project):
    return allocate(member, project, name="training")


def again(api, answer, url=URL, **headers):
    """Ask again for what an earlier answer has."""
    return api.get(url, headers={"If-None-Match": answer["ETag"], **headers})


def test_who_has_the_list_is_told_that_it_is_unchanged(api, row):
    first = api.get(URL)
    second = again(api, first)
    assert (first.status_code, second.status_code, second.content) == (200, 304, b"")
    assert second["ETag"] == first["ETag"]
    assert second["Cache-Control"] == first["Cache-Control"] == "private, no-cache"


def test_one_of_several_tags_suffices(api, row):
    tag = api.get(URL)["ETag"]
    assert api.get(URL, headers={"If-None-Match": f'"other", {tag}'}).status_code == 304


def test_a_changed_row_is_shown(api, row):
    first = api.get(URL)
    Allocation.objects.filter(pk=row.pk).update(phase=Phase.STARTING.value)
    second = again(api, first)
    assert (second.status_code, second.json()["results"][0]["phase"]) == (200, "starting")


def test_a_new_row_is_shown(api, row, member, project):
    first = api.get(URL)
    allocate(member, project, name="another")
    assert len(again(api, first).json()["results"]) == 2


def test_another_page_after_it_is_shown_although_its_rows_are_the_same(api, row, member, project):
    first = api.get(f"{URL}?limit=1&ordering=created_at")
    with clock.frozen(NOON + timedelta(seconds=1)):
        allocate(member, project, name="another")
    second = again(api, first, f"{URL}?limit=1&ordering=created_at")
    assert (first.json()["next"], second.status_code) == (None, 200)


def test_what_it_holds_from_now_on_is_shown_although_its_row_is_the_same(api, row):
    Allocation.objects.filter(pk=row.pk).update(number=1)
    first = api.get(URL)
    held = attribution(node="l40s-0", device_uuid="GPU-1")
    metering.open_interval(uuid4(), row.pk, "local/l40s-0/gpu-0", NOON, held, 1, {})
    second = again(api, first)
    assert second.status_code == 200
    assert second.json()["results"][0]["devices"] != first.json()["results"][0]["devices"] == []


def test_a_new_place_in_the_queue_is_shown_although_its_row_is_the_same(api, row, member, project):
    earlier = allocate(member, project, name="earlier")
    Allocation.objects.filter(pk=earlier.pk).update(created_at=NOON - timedelta(hours=1))
    first = api.get(f"{URL}?name=training")
    Allocation.objects.filter(pk=earlier.pk).update(phase=Phase.ACTIVE.value)
    second = again(api, first, f"{URL}?name=training")
    places = [answer.json()["results"][0]["queue"] for answer in (first, second)]
    assert places == [{"position": 2, "of": 2}, {"position": 1, "of": 1}]


def test_another_name_of_the_member_is_shown_although_its_row_is_the_same(api, row, member):
    first = api.get(URL)
    User.objects.filter(pk=member.pk).update(username="renamed")
    second = again(api, first)
    assert (second.status_code, second.json()["results"][0]["requested_by"]) == (200, "renamed")


def test_another_share_of_the_node_is_shown_although_its_row_is_the_same(api, row):
    Flavor.objects.update(node_cpu_millicores=8000, node_memory_mib=65536, node_pods=32)
    first = api.get(URL)
    Flavor.objects.update(cpu_millicores_per_gpu=4000)
    second = again(api, first)
    assert second.status_code == 200
    assert second.json()["results"][0]["node_share"] != first.json()["results"][0]["node_share"]


def test_the_next_minute_brings_costs_anew(api, row):
    first = api.get(URL)
    with clock.frozen(NOON + timedelta(seconds=39)):
        assert again(api, first).status_code == 304
    with clock.frozen(NOON + timedelta(seconds=40)):
        assert again(api, first).status_code == 200


def test_the_tag_of_another_caller_is_not_known(api, row, team):
    first = api.get(URL)
    colleague = client(person(team))
    assert colleague.get(URL).json() == first.json()
    assert again(colleague, first).status_code == 200


def test_the_tag_of_another_query_is_not_known(api, row):
    assert again(api, api.get(URL), f"{URL}?mine=true").status_code == 200


def test_the_tag_of_another_role_is_not_known(api, row, member):
    first = api.get(URL)
    Membership.objects.filter(user=member).update(role="viewer")
    assert again(api, first).status_code == 200


def test_who_has_left_the_team_sees_nothing_of_it(api, row, member):
    first = api.get(URL)
    Membership.objects.filter(user=member).delete()
    second = again(api, first)
    assert (second.status_code, second.json()["results"]) == (200, [])


def test_a_compressed_list_has_the_same_tag(api, row, member, project):
    for number in range(3):
        allocate(member, project, name=f"more-{number}")
    plain, packed = api.get(URL), api.get(URL, headers={"Accept-Encoding": "gzip"})
    assert packed["Content-Encoding"] == "gzip"
    assert json.loads(gzip.decompress(packed.content)) == plain.json()
    assert packed["ETag"] == plain["ETag"]
    assert again(api, packed, headers={"Accept-Encoding": "gzip"}).status_code == 304


def test_cost_is_as_of_the_whole_minute_while_it_is_held_and_exact_once_it_ended(api, row):
    Allocation.objects.filter(pk=row.pk).update(number=1)
    key = uuid4()
    metering.open_interval(key, row.pk, "l40s", NOON - timedelta(hours=1, seconds=20), attribution(), 1, {})
    of_an_hour = api.get(URL).json()["results"][0]["cost"]
    metering.close_interval(key, NOON, {})
    of_all = api.get(URL).json()["results"][0]["cost"]
    hourly = float(of_an_hour["per_hour"])
    assert float(of_an_hour["to_date"]) == pytest.approx(hourly)
    assert float(of_all["to_date"]) == pytest.approx(hourly * (1 + 20 / 3600), abs=1e-4)
