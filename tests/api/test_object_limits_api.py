"""The object limits of a project, over REST and on its page."""

import pytest

from portal.core.models import AuditEntry, WorkItem
from portal.tenants import object_limits as limits
from portal.tenants import services
from portal.tenants.actors import SYSTEM
from portal.tenants.checks import bound_holds_the_defaults
from portal.tenants.models import Project
from tests.support.people import client, person

PATH = "/api/v1/projects/vision-train"


@pytest.fixture
def operator(db):
    return client(person(platform_role="operator"))


def put(asking, body):
    return asking.put(PATH, body, format="json", headers={"If-Match": "*"})


def test_an_operator_changes_some_kinds_and_others_stay(operator, project):
    put(operator, {"object_limits": {"jobs": 900}})
    answer = put(operator, {"object_limits": {"configmaps": 300, "secrets": None}, "config_size_kib": 64}).json()
    assert (answer["object_limits"]["jobs"], answer["object_limits"]["configmaps"]) == (900, 300)
    assert (answer["object_limits"]["pods"], answer["config_size_kib"]) == (2000, 64)
    assert answer["object_store_mib"] == 282
    assert answer["object_store_limit_mib"] == 320
    assert Project.objects.get().object_limits == {"jobs": 900, "configmaps": 300}


def test_the_number_of_cron_jobs_that_is_shown_is_what_the_quota_has(operator, project):
    def shown() -> int:
        row, found = Project.objects.get(), operator.get(PATH).json()["object_limits"]["cronjobs"]
        assert limits.quota(row.object_limits, is_adopted=row.adopted)["count/cronjobs.batch"] == str(found)
        return int(found)

    assert shown() == 0
    put(operator, {"object_limits": {"cronjobs": 20}})
    assert shown() == 20
    put(operator, {"object_limits": {"cronjobs": None}})
    assert shown() == 0
    Project.objects.update(adopted=True)
    assert shown() == 20


def test_a_change_reaches_the_cluster_and_the_audit_log(operator, project):
    WorkItem.objects.all().delete()
    put(operator, {"object_limits": {"jobs": 900}})
    assert WorkItem.objects.filter(target="local/project:vision-train").exists()
    entry = AuditEntry.objects.filter(action="project.configure").latest("pk")
    assert (entry.before, entry.after) == ({"object_limits": {}}, {"object_limits": {"jobs": 900}})


def test_what_was_read_may_be_sent_back(operator, project):
    read = operator.get(PATH).json()["object_limits"]
    assert put(operator, {"object_limits": read}).status_code == 200
    assert Project.objects.get().object_limits == {}


def test_a_change_of_the_numbers_is_another_version(operator, project):
    before = operator.get(PATH)["ETag"]
    assert put(operator, {"object_limits": {"jobs": 900}})["ETag"] != before


@pytest.mark.parametrize(
    ("body", "field", "words"),
    [
        ({"object_limits": {"ingresses": 1}}, "object_limits.ingresses", "Kinds are: pods, other_pods, jobs,"),
        ({"object_limits": {"jobs": 5001}}, "object_limits.jobs", "Give 0 to 5000"),
        ({"object_limits": {"jobs": "7"}}, "object_limits.jobs", "whole number"),
        ({"object_limits": {"jobs": 7.5}}, "object_limits.jobs", "whole number"),
        ({"object_limits": [1]}, "object_limits", "JSON object"),
        ({"object_limits": {"secrets": 5000}}, "object_limits", "at most 560 secrets"),
        ({"config_size_kib": 1024}, "config_size_kib", "at most a config_size_kib of 243"),
        ({"config_size_kib": 0}, "config_size_kib", "Give 1 to 1024"),
    ],
)
def test_what_cannot_be_is_told_at_its_field(operator, project, body, field, words):
    answer = put(operator, body)
    assert answer.status_code == 400
    assert words in " ".join(answer.json()["errors"][field])
    assert (Project.objects.get().object_limits, Project.objects.get().config_size_kib) == ({}, 128)


def test_a_project_is_made_with_its_numbers(operator, team):
    body = {"slug": "p", "name": "P", "team": "vision", "object_limits": {"jobs": 900}, "config_size_kib": 64}
    made = operator.post("/api/v1/projects", body, format="json").json()
    assert (made["object_limits"]["jobs"], made["config_size_kib"]) == (900, 64)


def test_a_lead_reads_the_numbers_and_does_not_change_them(team, project):
    lead = client(person(team, "lead"))
    assert lead.get(PATH).json()["object_limits"]["jobs"] == 500
    assert put(lead, {"object_limits": {"jobs": 10}}).status_code == 403
    assert Project.objects.get().object_limits == {}


def test_a_bound_below_the_defaults_lets_projects_be_made_and_no_number_raised(operator, team, settings):
    settings.PROJECT_STORE_MIB = 100
    project = services.create_project(SYSTEM, team, "vision-train", "Vision training")
    assert put(operator, {"object_limits": {"jobs": 501}}).status_code == 400
    assert put(operator, {"object_limits": {"jobs": 400}}).status_code == 200
    project.refresh_from_db()
    assert project.object_limits == {"jobs": 400}


def test_a_bound_below_the_defaults_is_warned_of(settings):
    assert bound_holds_the_defaults() == []
    settings.PROJECT_STORE_MIB = 275
    (warning,) = bound_holds_the_defaults()
    assert "Set it to 276 or more" in (warning.hint or "")
