"""`constraints.spread` over REST: accepted, shown, and used in the manifests."""

import pytest

from tests.support.fleet import fleet
from tests.support.people import client, person

pytestmark = pytest.mark.django_db
URL = "/api/v1/allocations"
BODY = {"project": "vision-train", "offering": "h100/whole", "count": 2, "name": "wide"}


@pytest.fixture
def api(team, project):
    fleet(team)
    return client(person(team))


@pytest.mark.parametrize(
    ("given", "spread"),
    [
        ({}, False),
        ({"constraints": None}, False),
        ({"constraints": {}}, False),
        ({"constraints": {"spread": False}}, False),
        ({"constraints": {"spread": True}}, True),
    ],
)
def test_what_is_asked_is_shown(api, given, spread):
    answer = api.post(URL, {**BODY, **given}, format="json")
    assert (answer.status_code, answer.json()["constraints"]["spread"]) == (201, spread)


def test_a_preview_shows_a_claim_and_a_holder_of_each_slice(api):
    answer = api.post(f"{URL}/preview", {**BODY, "constraints": {"spread": True}}, format="json")
    assert [(found["kind"], found["name"]) for found in answer.json()["manifests"]] == [
        ("Workload", "wide-lease"),
        ("ResourceClaim", "wide.0"),
        ("Pod", "wide.0-holder"),
        ("ResourceClaim", "wide.1"),
        ("Pod", "wide.1-holder"),
    ]


def test_by_device_plugin_it_is_accepted_and_changes_nothing(api):
    body = {**BODY, "offering": "l40s/whole", "constraints": {"spread": True}}
    answer = api.post(f"{URL}/preview", body, format="json")
    assert [found["kind"] for found in answer.json()["manifests"]] == ["Workload"]
