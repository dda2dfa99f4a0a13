"""Saved views of costs in REST: own ones and a team's, who may read, share and delete them, and the audit entries."""

import pytest

from portal.core.models import AuditEntry
from quotas.costs import saved_views
from tests.support.people import client, person

pytestmark = pytest.mark.django_db
PATH = "/api/v1/saved-views"
QUERY = 'window=month&aggregate=member&filter=team:"vision"&sort=change'


def saved(api, **body):
    return api.post(PATH, {"name": "Who used most", "query": QUERY} | body, format="json")


def test_an_own_view_is_seen_by_its_owner_alone(team):
    owner, colleague = person(team), person(team, "lead")
    made = saved(client(owner))
    assert made.status_code == 201
    assert (made.json()["query"], made.json()["team"]) == (QUERY, None)
    assert [one["id"] for one in client(owner).get(PATH).json()["results"]] == [made.json()["id"]]
    for other in (colleague, person(platform_role="operator")):
        assert client(other).get(PATH).json()["results"] == []
        assert client(other).get(f"{PATH}/{made.json()['id']}").status_code == 404
        assert client(other).delete(f"{PATH}/{made.json()['id']}").status_code == 404


def test_a_view_of_a_team_is_seen_by_the_team_and_by_no_other(team, other_team):
    made = saved(client(person(team)), team="vision").json()
    assert client(person(team, "viewer")).get(f"{PATH}/{made['id']}").json() == made
    assert client(person(other_team, "lead")).get(f"{PATH}/{made['id']}").status_code == 404


def test_views_are_shared_by_members_with_their_own_teams(team, other_team):
    assert saved(client(person(team, "viewer")), team="vision").status_code == 403
    assert saved(client(person(team)), team="language").status_code == 404
    assert saved(client(person(team, "viewer"))).status_code == 201


def test_a_view_of_a_team_is_deleted_by_its_owner_or_a_lead(team):
    owner = person(team)
    first, second = (saved(client(owner), name=name, team="vision").json()["id"] for name in ("one", "two"))
    assert client(person(team)).delete(f"{PATH}/{first}").status_code == 403
    assert client(owner).delete(f"{PATH}/{first}").status_code == 204
    assert client(person(team, "lead")).delete(f"{PATH}/{second}").status_code == 204
    assert client(owner).get(PATH).json()["results"] == []


def test_saving_and_deleting_are_in_the_audit_log(team):
    owner = person(team)
    made = saved(client(owner), team="vision").json()
    client(owner).delete(f"{PATH}/{made['id']}")
    entries = AuditEntry.objects.filter(action__startswith="view.").order_by("pk")
    assert [(one.actor, one.action, one.target, one.team) for one in entries] == [
        (owner.username, "view.save", "Who used most", "vision"),
        (owner.username, "view.delete", "Who used most", "vision"),
    ]
    assert entries[0].after == {"query": QUERY}


def test_a_name_is_taken_once_by_each_person_and_team(team):
    owner = person(team)
    assert saved(client(owner)).status_code == 201
    assert saved(client(owner)).json()["reason"] == "name_taken"
    assert saved(client(owner), team="vision").status_code == 201
    assert saved(client(person(team)), team="vision").json()["reason"] == "name_taken"


@pytest.mark.parametrize(
    ("query", "sentence"),
    [
        ("window=sometimes", "is not a valid window"),
        ("aggregate=moon", "moon cannot be used"),
        ("filter=team:", "Column 6"),
        ("window=7d&password=1", "password cannot be saved"),
        ("a&" * 2000, "too many parameters"),
    ],
)
def test_what_costs_do_not_answer_is_not_saved(team, query, sentence):
    answer = saved(client(person(team)), query=query)
    assert answer.status_code == 400
    assert sentence in answer.json()["errors"]["query"][0]


def test_a_person_has_a_limited_number_of_views(team, monkeypatch):
    monkeypatch.setattr(saved_views, "MAX_VIEWS", 2)
    api = client(person(team))
    assert [saved(api, name=str(number)).status_code for number in range(3)] == [201, 201, 400]


def test_who_leaves_a_team_sees_its_views_no_more(team):
    owner = person(team)
    made = saved(client(owner), team="vision").json()
    owner.memberships.all().delete()
    assert client(owner).get(f"{PATH}/{made['id']}").status_code == 404
