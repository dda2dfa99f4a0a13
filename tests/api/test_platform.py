import pytest

from allocations.models import MirrorObject
from portal.core import clock
from tests.support.clusters import LOCAL
from tests.support.fleet import allocate, fleet
from tests.support.people import client, person

pytestmark = pytest.mark.django_db


@pytest.fixture
def member(team, other_team, project):
    fleet(team, other_team)
    return person(team)


@pytest.mark.parametrize(
    ("path", "count", "field"),
    [("clusters", 1, "slug"), ("flavors", 2, "name"), ("nodes", 3, "problem"), ("devices", 4, "uuid")],
)
@pytest.mark.parametrize("role", ["operator", "auditor"])
def test_platform_staff_see_what_there_is(member, path, count, field, role):
    rows = client(person(platform_role=role)).get(f"/api/v1/{path}").json()["results"]
    assert len(rows) == count
    assert all(field in row for row in rows)


@pytest.mark.parametrize("path", ["clusters", "flavors", "nodes", "devices"])
def test_nobody_else_does(member, path):
    assert client(member).get(f"/api/v1/{path}").status_code == 403


def test_a_queue_tells_who_waits_and_how_much_is_taken(member, team, project):
    rows = [allocate(member, project, name=name) for name in ("first", "second")]
    MirrorObject.objects.create(
        cluster_id=LOCAL,
        kind="ClusterQueue",
        name="team-vision",
        uid="u",
        resource_version=1,
        facts={"pending": 2, "reserving": 3, "admitted": 1},
        seen_at=clock.now(),
    )
    body = client(person(team, "viewer")).get("/api/v1/queues/vision").json()
    assert [(found["allocation"], found["position"]) for found in body["pending"]] == [
        (str(rows[0].pk), 1),
        (str(rows[1].pk), 2),
    ]
    assert {name: body[name] for name in ("reserving", "admitted", "borrowed", "lent")} == {
        "reserving": 3,
        "admitted": 1,
        "borrowed": 0,
        "lent": 0,
    }


@pytest.mark.parametrize("slug", ["vision", "unknown", "%00"])
def test_another_teams_queue_is_not_there(member, other_team, slug):
    assert client(person(other_team)).get(f"/api/v1/queues/{slug}").status_code == 404
