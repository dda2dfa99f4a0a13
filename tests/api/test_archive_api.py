"""Archiving over REST requires the project's slug as confirmation; only a dry run does not."""

import pytest

from tests.support.people import client, person

pytestmark = pytest.mark.django_db
PATH = "/api/v1/projects/vision-train/archive"


@pytest.fixture
def operator(project):
    return client(person(platform_role="operator"))


@pytest.mark.parametrize("body", [{}, {"dry_run": False}, {"confirm": ""}, {"confirm": "vision"}, {"confirm": "x" * 9}])
def test_without_the_slug_it_is_400_which_tells_the_slug(operator, project, body):
    answer = operator.post(PATH, body, format="json")
    assert answer.status_code == 400
    assert answer.json()["errors"] == {"confirm": ["Write vision-train, the project's slug, to archive it."]}
    assert '"confirm": "vision-train"' in answer.json()["hint"]
    project.refresh_from_db()
    assert project.archived_at is None


@pytest.mark.parametrize("wrong", [None, 1, True, ["vision-train"]])
def test_a_confirmation_is_a_string(operator, project, wrong):
    answer = operator.post(PATH, {"confirm": wrong}, format="json")
    assert (answer.status_code, list(answer.json()["errors"])) == (400, ["confirm"])


@pytest.mark.parametrize("body", [{"dry_run": True}, {"dry_run": True, "confirm": "x"}, {"confirm": "vision-train"}])
def test_a_dry_run_and_the_right_slug_come_to_the_cluster(operator, body):
    """There is no cluster here; tests/cluster/test_tenancy.py covers the rest."""
    assert operator.post(PATH, body, format="json").status_code == 503


def test_a_body_that_was_lost_on_the_way_archives_nothing(operator, project):
    assert operator.generic("POST", PATH, "").status_code == 400
    project.refresh_from_db()
    assert project.archived_at is None


def test_who_may_not_archive_is_not_asked_for_the_slug(team, project):
    assert client(person(team, "lead")).post(PATH, {}, format="json").status_code == 403
