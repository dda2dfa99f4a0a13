"""Every list of the API, read one row at a time to its end and back, as each role: the same rows as on one page."""

from collections.abc import Iterator
from datetime import date, timedelta
from decimal import Decimal
from typing import Any

import pytest

from allocations.requests.services import extend
from portal.core import clock
from portal.tenants import invitations, members, services
from portal.tenants.actors import SYSTEM
from portal.tenants.models import User
from quotas.catalog import services as catalog
from quotas.catalog.models import Node, Offering, Preset
from quotas.costs import bills, saved_views
from quotas.costs.capacity_services import CostSubject, set_node_cost, set_node_term
from quotas.costs.models import NodeCost
from quotas.costs.node_terms import Term
from quotas.metering import proofs
from tests.support import access_matrix
from tests.support.clusters import LOCAL, make_cluster
from tests.support.fleet import allocate
from tests.support.queued import job
from tests.support.quotas import used
from tests.support.world import World, world

pytestmark = pytest.mark.django_db
ROLES = [role for role in access_matrix.ROLES if role != "anonymous" and not role.endswith("(reading)")]


@pytest.fixture
def there(team, other_team, project, settings) -> Iterator[World]:
    """Create the world with more than one row of everything: its people have a second team with similar rows."""
    settings.API_REQUESTS_PER_MINUTE = 1_000_000
    with clock.frozen(clock.now()):  # or the cost to date of what is held would differ between pages
        made = world(team, other_team, project)
        second = services.create_team(
            SYSTEM, services.create_department(SYSTEM, "product", "Product"), "speech", "Speech"
        )
        operator = User.objects.get(platform_role="operator")
        for user in User.objects.all():
            invitations.invite(operator, second, user.username, "viewer")
        for member in team.memberships.select_related("user"):
            members.add(SYSTEM, second, member.user.username, member.role)
        mine = services.create_project(SYSTEM, second, "speech-train", "Speech training")
        services.create_project(SYSTEM, team, "vision-serve", "Vision serving")
        extend(operator, made.allocation, Decimal(1))
        for name in ("b", "c"):
            allocate(made.allocation.requested_by, project, name=name)
            job(name, project.namespace)
            job(name, mine.namespace)
            make_cluster(name)
            proofs.prove(name, clock.now().replace(minute=0, second=0, microsecond=0))
        for name in ("Pair", "Node"):
            offering = Offering.objects.get(key="l40s/whole")
            catalog.save_preset(SYSTEM, Preset(), {"name": name, "offering": offering})
        for name in ("By team", "By person"):
            saved_views.save(operator, name, "window=7d")
        now, hour = clock.now(), timedelta(hours=1)
        for month in (date(2026, 1, 1), date(2026, 2, 1)):
            bills.enter_bill(operator, LOCAL, month, "100")
        for name in ("support", "network"):
            bills.set_shared_cost(operator, name, now.date().replace(day=1), "30", "weighted")
        for node in Node.objects.filter(cluster=LOCAL).order_by("name")[:2]:
            set_node_cost(SYSTEM, CostSubject(node=node), "1", NodeCost.Per.NODE)
            set_node_term(SYSTEM, LOCAL, node.name, Term.SPOT)
        used(now - 2 * hour, now - hour, 1, made.allocation.pk)
        used(now - hour, now, 1, made.allocation.pk, project="vision-serve")
        for model in ("h100", "b200", "b300"):
            used(now - 2 * hour, now, flavor=model, offering=f"{model}/whole")
        yield made


def get(there: World, role: str, url: str) -> dict[str, Any]:
    answer = there.clients[role].get(url)
    assert answer.status_code == 200, (role, url, answer.content[:500])
    return dict(answer.json())


@pytest.fixture
def addresses(there: World) -> list[str]:
    """Return the address of every list that answers an operator in pages."""
    found = []
    for pattern in filter(access_matrix.is_rest, access_matrix.routes()):
        answer = there.clients["operator"].get(path := there.path(pattern, "operator"))
        assert answer.status_code != 500, path
        if answer.headers["Content-Type"] == "application/json" and "next" in answer.json():
            found.append(path)
    return found


def rows_of(there: World, role: str, path: str) -> list[Any] | None:
    """Return all rows of a list that the role sees, in one page; None without permission."""
    answer = there.clients[role].get(path, {"limit": 200})
    if answer.status_code in (403, 404):
        return None
    assert answer.status_code == 200, (role, path, answer.content[:500])
    shown = answer.json()
    assert (shown["next"], shown["previous"]) == (None, None), f"{path} has more than one page of 200"
    return list(shown["results"])


def walk(there: World, role: str, url: str, way: str) -> tuple[list[list[Any]], str]:
    """Return the pages from `url` to the end in that direction, and the address of the last."""
    pages = []
    while True:
        page = get(there, role, url)
        pages.append(page["results"])
        if page[way] is None:
            return pages, url
        url = page[way]


@pytest.mark.parametrize(("role", "limit"), [*((role, 1) for role in ROLES), ("operator", 2)])
def test_each_list_has_the_same_rows_in_many_pages_as_in_one(there, addresses, role, limit):
    readable = {path: rows for path in addresses if (rows := rows_of(there, role, path)) is not None}
    assert len(readable) > 10
    for path, rows in readable.items():
        pages, last = walk(there, role, f"{path}?limit={limit}", "next")
        assert [row for page in pages for row in page] == rows, path
        back, _ = walk(there, role, last, "previous")
        assert [row for page in reversed(back) for row in page] == rows, path


def test_an_operator_has_more_than_one_row_of_every_list(there, addresses):
    few = {path for path in addresses if len(rows_of(there, "operator", path) or ()) < 2}
    assert few == set(), "give these more rows in this module, or their second page is not tested"


def test_these_are_all_lists_that_the_contract_has(there, addresses):
    paths = there.clients["operator"].get("/api/v1/schema", headers={"Accept": "application/json"}).json()["paths"]
    answers = [
        path["get"]["responses"]["200"] for path in paths.values() if "200" in path.get("get", {}).get("responses", ())
    ]
    schemas = [answer.get("content", {}).get("application/json", {}).get("schema", {}) for answer in answers]
    assert sum(schema.get("$ref", "").endswith("Page") for schema in schemas) == len(addresses)


@pytest.mark.parametrize(
    "cursor", ["garbage", "", "cD0xJnA9MiZwPTMmcD00", "%00", "ä", "cj0xJnA9JTAw", "cD0lMDAmcD0lMDA="]
)
def test_a_cursor_made_by_hand_is_no_page_of_any_list(there, addresses, cursor):
    for path in addresses:
        answer = there.clients["operator"].get(f"{path}?cursor={cursor}")
        assert (answer.status_code, list(answer.json()["errors"])) == (400, ["cursor"]), path


def test_a_row_that_is_added_before_the_page_moves_no_other(there, team):
    path = "/api/v1/members?team=vision&limit=2"
    before = [row["username"] for row in get(there, "operator", "/api/v1/members?team=vision")["results"]]
    page = get(there, "operator", path)
    members.add(SYSTEM, team, User.objects.create(username="a-first").username, "viewer")
    pages, _ = walk(there, "operator", page["next"], "next")
    assert [row["username"] for row in page["results"] + [row for page in pages for row in page]] == before


def test_a_page_whose_rows_are_gone_leads_back_to_the_last_that_are_there(there, team):
    path = "/api/v1/members?team=vision&limit=1"
    rows = get(there, "operator", "/api/v1/members?team=vision")["results"]
    after = get(there, "operator", path)["next"]
    team.memberships.exclude(user__username=rows[0]["username"]).delete()
    gone = get(there, "operator", after)
    assert (gone["results"], gone["next"]) == ([], None)
    assert get(there, "operator", gone["previous"])["results"] == rows[:1]
