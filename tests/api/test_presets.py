"""Presets over REST: those that the page Request shows, in its order."""

from decimal import Decimal

import pytest

from portal.tenants.actors import SYSTEM
from quotas.catalog import services as catalog
from quotas.catalog.models import Flavor, Offering, Preset
from quotas.limits.models import Limit
from tests.support.pages import browser_of
from tests.support.people import client, person

pytestmark = pytest.mark.django_db
URL = "/api/v1/presets"


@pytest.fixture(autouse=True)
def _presets(fleet_of_two_teams: None) -> None:
    for position, (name, key, hidden) in enumerate(
        (("Node", "l40s/whole", False), ("Large", "h100/whole", False), ("Old", "l40s/whole", True))
    ):
        offering = Offering.objects.get(key=key)
        preset = {"name": name, "offering": offering, "count": 4, "hours": Decimal(24), "position": position}
        catalog.save_preset(SYSTEM, Preset(), preset | {"hidden": hidden})


def test_presets_are_bodies_of_requests_in_the_order_of_operators(api, member):
    ids = dict(Preset.objects.values_list("name", "id"))
    assert api.get(URL).json()["results"] == [
        {"id": ids[name], "name": name, "offering": offering, "position": position}
        | {"count": 4, "hours": "24", "hidden": False}
        for position, (name, offering) in enumerate((("Node", "l40s/whole"), ("Large", "h100/whole")))
    ]


def test_with_a_project_they_are_those_of_its_page(api, member, project):
    Limit.objects.filter(team=project.team, pool__flavor__name="h100").update(nominal=0, borrowing=0)
    found = [row["name"] for row in api.get(URL, {"project": project.slug}).json()["results"]]
    shown = browser_of(member).get("/request", {"project": project.slug}).context["presets"]
    assert found == [one.name for one in shown] == ["Node"]


def test_presets_of_what_is_not_offered_are_left_out(api):
    Flavor.objects.filter(name="h100").update(hidden=True)
    assert [row["name"] for row in api.get(URL).json()["results"]] == ["Node"]


def test_another_teams_project_is_not_there(other_team):
    assert client(person(other_team)).get(URL, {"project": "vision-train"}).status_code == 404
