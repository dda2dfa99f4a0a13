"""The matrix of limits of 50 teams and 20 pools: a filter, pages, and open cells that are never lost."""

import pytest
from django.test import Client

from allocations.limits.matrix import matrix
from portal.tenants import services as tenants
from portal.tenants.actors import SYSTEM
from portal.tenants.models import PlatformRole, Team
from quotas.catalog.models import Flavor, Path, Pool, PoolUse
from quotas.limits.models import Limit
from tests.support.clusters import LOCAL
from tests.support.pages import browser_of, text
from tests.support.people import person
from tests.support.rows_read import assert_constant

pytestmark = pytest.mark.django_db
TEAMS, POOLS = 50, 20
URL, CHANGES = "/limits", "/limits/changes"
FAR = "team:team-49:gpu-19/gpu"


@pytest.fixture
def browser(large: None) -> Client:
    return browser_of(person(platform_role=PlatformRole.OPERATOR))


@pytest.fixture
def large(team: Team) -> None:
    teams = [tenants.create_team(SYSTEM, team.department, f"team-{n:02}", f"Team {n}") for n in range(TEAMS)]
    pools = [add_pool(f"gpu-{n:02}") for n in range(POOLS)]
    Limit.objects.bulk_create(Limit(team=one, pool=pool, nominal=2) for one in teams for pool in pools)


def add_pool(name: str) -> Pool:
    flavor = Flavor.objects.create(
        cluster_id=LOCAL, name=name, product=f"NVIDIA-{name}", path=Path.DEVICE_PLUGIN, strategy="plain", accepted=True
    )
    pool = Pool.objects.create(key=f"{name}/gpu", flavor=flavor, resources={"nvidia.com/gpu": 1})
    PoolUse.objects.create(pool=pool, total=200)
    return pool


def shown(page: str) -> tuple[int, int]:
    """Return how many rows and columns the page has."""
    rows = page.count('<tr data-kind="')
    return rows, page.count('<td id="cell-') // rows if rows else 0


def test_a_page_has_50_rows_and_16_pools_and_leads_to_the_others(browser):
    page = text(browser.get(URL))
    assert shown(page) == (50, 16)
    assert "1 to 50 of 52 teams and departments" in page
    assert "1 to 16 of 20 pools" in page
    last = text(browser.get(URL, {"rows": "2", "columns": "2"}))
    assert shown(last) == (2, 4)
    assert "team-49" in last
    assert "gpu-19/gpu" in last
    assert "<option>team-00</option>" in last, "limits are copied from any team"


def test_teams_and_pools_are_found_by_a_part_of_their_name(browser):
    page = text(browser.get(URL, {"team": "Team-4", "pool": "gpu-1"}))
    assert shown(page) == (10, 10)
    assert f'formaction="{CHANGES}?team=Team-4&amp;pool=gpu-1#cell-team-team-40-gpu-10-gpu"' in page
    none = text(browser.get(URL, {"team": "nobody"}))
    assert "No team and pool match the filter." in none
    assert "Clear filter" in none


def test_what_was_typed_stays_whatever_part_is_shown(browser):
    sent = {"open": [FAR], f"{FAR}-nominal": "3", f"{FAR}-borrowing": "", f"{FAR}-lending": "", "preview": "1"}
    page = text(browser.post(f"{CHANGES}?team=team-0&pool=gpu-00", sent))
    assert shown(page) == (11, 2)
    assert f'name="{FAR}-nominal" value="3"' in page
    assert "Preview of 1 change" in page
    context = browser.post(f"{CHANGES}?team=team-0", sent).context
    done = browser.post(f"{CHANGES}?team=team-0", sent | {"confirm": context["preview"].token, "key": context["key"]})
    assert done["Location"] == f"{URL}?team=team-0"
    assert Limit.objects.get(team__slug="team-49", pool__key="gpu-19/gpu").nominal == 3


def test_pools_with_devices_come_first_and_those_that_nobody_uses_are_folded(team):
    for name in ("gpu-00", "gpu-01", "gpu-02"):
        add_pool(name)
    PoolUse.objects.exclude(pool__key="gpu-02/gpu").update(total=0)
    Limit.objects.create(team=team, pool=Pool.objects.get(key="gpu-01/gpu"), nominal=2)
    browser = browser_of(person(platform_role=PlatformRole.OPERATOR))
    answer = browser.get(URL)
    assert [column.key for column in answer.context["matrix"].columns] == ["gpu-02/gpu", "gpu-01/gpu"]
    assert "Show 1 pool without devices" in text(answer)
    assert shown(text(browser.get(URL, {"empty": "1"}))) == (2, 3)


def test_a_small_matrix_has_no_filter(team):
    add_pool("gpu-00")
    page = text(browser_of(person(platform_role=PlatformRole.OPERATOR)).get(URL))
    assert shown(page) == (2, 1)
    assert "Search teams and pools" not in page


def test_it_takes_as_many_statements_as_a_small_one(team, request):
    add_pool("small")
    browser = browser_of(person(platform_role=PlatformRole.OPERATOR))
    assert_constant(lambda: browser.get(URL), lambda: request.getfixturevalue("large"), at_most=25)
    assert len(matrix(person(platform_role=PlatformRole.OPERATOR)).rows) == TEAMS + 2
