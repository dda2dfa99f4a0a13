from datetime import timedelta

import pytest

from allocations.domain.phases import Phase
from allocations.limits import services as limit_services
from allocations.models import Allocation
from portal.core import clock
from portal.tenants import members
from portal.tenants import services as tenants
from portal.tenants.actors import SYSTEM
from portal.tenants.models import Membership
from quotas.catalog import services as catalog
from quotas.catalog.models import Flavor, Offering, Pool
from quotas.limits import services as limits
from quotas.limits.tree import Quota
from quotas.metering import services as metering
from tests.support.fleet import allocate
from tests.support.people import client, person
from tests.support.quotas import attribution

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("fleet_of_two_teams")]
URL = "/api/v1/offerings"


def nodes_tell() -> None:
    """Give every node 62 CPU, 504 GiB and 250 pods for its four GPUs."""
    Flavor.objects.update(node_cpu_millicores=15_190, node_memory_mib=126_443, node_pods=57)


def rows(api, query=""):
    return {row["id"]: row for row in api.get(f"{URL}?{query}").json()["results"]}


def hold(row: Allocation, slot: str) -> None:
    """Put the allocation in the state that watcher and reconciler write once it is held."""
    Allocation.objects.filter(pk=row.pk).update(phase=Phase.ACTIVE.value)
    metering.open_interval(row.pk, row.pk, slot, clock.now(), attribution(), row.count, {})


def test_an_offering_has_every_field_of_the_contract(api):
    nodes_tell()
    assert rows(api)["l40s/whole"] == {
        "id": "l40s/whole",
        "cluster": "local",
        "flavor": {
            "name": "l40s",
            "product": "NVIDIA-L40S",
            "architecture": "ada-lovelace",
            "memory_mib": 46068,
            "compute_capability": "8.9",
            "path": "device-plugin",
        },
        "kind": "whole",
        "profile": "",
        "isolation": "full",
        "isolation_note": "",
        "sharing": "",
        "replicas": 1,
        "one_at_a_time": False,
        "memory_mib": 46068,
        "gpu_share": "1",
        "node_share": {"cpu": "15190m", "memory": "126443Mi", "pods": 16},
        "price_per_hour": "1.1000",
        "currency": "EUR",
        "capacity": {"total": 8, "held": 0, "free": 8},
        "mine": {"limit": 4, "used": 0, "can_get_now": 4, "can_borrow": 0, "max_quota": 4, "after": None},
        "wait": {"p50_s": None, "p90_s": None},
    }


def test_what_goes_with_a_slice_is_null_where_no_node_told_and_of_a_claim(api):
    assert rows(api)["l40s/whole"]["node_share"] is None
    nodes_tell()
    assert rows(api)["h100/whole"]["node_share"]["cpu"] == "15190m"
    assert rows(api)["h100/claim"]["node_share"] is None


def test_what_is_held_is_neither_free_nor_to_be_had_again(api, member, project):
    hold(allocate(member, project, count=3), "a")
    row = rows(api)["l40s/whole"]
    assert row["capacity"] == {"total": 8, "held": 3, "free": 5}
    assert row["mine"] == {"limit": 4, "used": 3, "can_get_now": 1, "can_borrow": 0, "max_quota": 4, "after": None}


def test_with_a_project_mine_is_its_teams(api, member, project, other_team):
    elsewhere = tenants.create_project(SYSTEM, other_team, "language-train", "Language training")
    members.add(SYSTEM, other_team, member.username, "member")
    hold(allocate(member, elsewhere, count=2), "b")
    assert rows(api, "project=vision-train")["l40s/whole"]["mine"]["used"] == 0
    assert rows(api, "project=language-train")["l40s/whole"]["mine"]["used"] == 2
    mine = rows(api)["l40s/whole"]["mine"]
    assert mine == {"limit": 8, "used": 2, "can_get_now": 6, "can_borrow": 0, "max_quota": 8, "after": None}


def test_who_is_in_no_team_has_nothing(member):
    assert rows(client(person(platform_role="operator")))["l40s/whole"]["mine"]["limit"] == 0


def test_only_what_is_free_is_listed_when_asked(api, member, project):
    hold(allocate(member, project, count=4), "a")
    assert set(rows(api, "free=true&project=vision-train")) == {"h100/whole", "h100/claim"}
    assert set(rows(api, "free=true")) == {"h100/whole", "h100/claim", "l40s/whole"}


def test_kinds_are_filtered(api):
    assert set(rows(api, "kind=whole")) == {"h100/whole", "l40s/whole"}
    assert rows(api, "kind=mig") == {}


def test_a_hidden_offering_is_not_listed(api):
    catalog.hide_offering(SYSTEM, Offering.objects.get(key="l40s/whole"), hidden=True)
    assert set(rows(api)) == {"h100/whole", "h100/claim"}


@pytest.mark.parametrize("query", ["kind=big", "free=yes", "limit=0", "project=%00"])
def test_a_query_that_means_nothing_is_400(api, query):
    answer = api.get(f"{URL}?{query}")
    assert answer.status_code == 400
    assert query.partition("=")[0] in answer.json()["errors"]


def test_another_teams_project_is_not_there(member, other_team):
    assert client(person(other_team)).get(f"{URL}?project=vision-train").status_code == 404


def test_what_cannot_be_had_now_says_after_whose_end_it_can(api, member, project, other_team):
    mine = allocate(member, project, count=4)
    hold(mine, "a")
    later = rows(api)["l40s/whole"]["mine"]
    assert later["can_get_now"] == 0
    assert later["after"]["allocation"] == str(mine.pk)
    asked = {"project": project.slug, "offering": "l40s/whole", "count": 2}
    seen = api.post("/api/v1/allocations/preview", asked, format="json").json()
    assert seen["fits"] == "queue"
    assert [(o["offering"], o["count"], o["fits"], bool(o["starts_at"])) for o in seen["alternatives"]] == [
        ("h100/whole", 2, "now", False),
        ("l40s/whole", 2, "queue", True),
    ]
    scheduled = {**asked, "starts_at": seen["alternatives"][1]["starts_at"]}
    assert api.post("/api/v1/allocations", scheduled, format="json").status_code == 201


def test_what_is_late_or_leaving_comes_free_from_now_on(api, member, project):
    first, second = (allocate(member, project, count=2, hours=hours) for hours in (1, 8))
    for slot, row in enumerate((first, second)):
        hold(row, str(slot))
    Allocation.objects.filter(pk=first.pk).update(ends_at=clock.now() - timedelta(hours=1), phase="releasing")
    after = rows(api)["l40s/whole"]["mine"]["after"]
    assert after["allocation"] == str(first.pk)
    asked = {"project": project.slug, "offering": "l40s/whole", "count": 2}
    seen = api.post("/api/v1/allocations/preview", asked, format="json").json()
    (later,) = [one for one in seen["alternatives"] if one["starts_at"]]
    assert api.post("/api/v1/allocations", {**asked, "starts_at": later["starts_at"]}, format="json").status_code == 201


def test_what_is_full_by_a_limit_of_ones_own_is_free_after_ones_own_end(api, member, project, team):
    """The fleet and the team have capacity now; the member's limit has it when the member's first allocation ends."""
    limit_services.set_limit(person(team, "lead"), Membership.objects.get(user=member), None, Quota(2))
    hold(allocate(member, project, hours=5), "a")
    first = allocate(member, project, hours=1)
    hold(first, "b")
    asked = f"{URL}?project={project.slug}"
    mine = {row["id"]: row["mine"] for row in api.get(asked).json()["results"]}["l40s/whole"]
    assert (mine["can_get_now"], mine["after"]["allocation"]) == (0, str(first.pk))


def test_what_is_given_back_by_a_person_is_not_waited_for_until_its_end(api, member, project):
    first, second = (allocate(member, project, count=2, hours=hours) for hours in (2, 1))
    for slot, row in enumerate((first, second)):
        hold(row, str(slot))
    Allocation.objects.filter(pk=first.pk).update(phase="releasing")
    assert rows(api)["l40s/whole"]["mine"]["after"]["allocation"] == str(first.pk)


def test_the_end_of_what_a_lowered_limit_had_granted_frees_nothing_until_there_is_room_below_it(
    api, member, project, team
):
    first, second, third = (allocate(member, project, hours=hours) for hours in (1, 2, 3))
    for slot, row in enumerate((first, second, third)):
        hold(row, str(slot))
    limits.set_limit(SYSTEM, team, Pool.objects.get(key="l40s/gpu"), 1)
    assert rows(api)["l40s/whole"]["mine"]["after"]["allocation"] == str(third.pk)


def test_an_end_in_another_tree_of_departments_lends_nothing(api, member, project, team, other_team):
    """All is in use; the first end is of a team that does not lend to this one, the second of the team's own."""
    pool = Pool.objects.get(key="l40s/gpu")
    far = tenants.create_team(SYSTEM, tenants.create_department(SYSTEM, "sales", "Sales"), "sales", "Sales")
    limits.set_limit(SYSTEM, far, pool, 4)
    limits.set_limit(SYSTEM, team, pool, 4, borrowing=None)
    limits.set_limit(SYSTEM, other_team, pool, 0)
    theirs = tenants.create_project(SYSTEM, far, "sales-train", "Sales training")
    for number, (row, slot) in enumerate(
        ((allocate(person(far), theirs, count=4, hours=1), "a"), (allocate(member, project, count=4, hours=2), "b"))
    ):
        hold(row, f"{slot}{number}")
    own = Allocation.objects.get(project=project)
    assert rows(api)["l40s/whole"]["mine"]["after"]["allocation"] == str(own.pk)
