"""The doctor on a real database and Redis: the command, the page, and what operators see on Home."""

import json
from datetime import timedelta
from io import StringIO

import pytest
from django.core.management import call_command

from allocations.domain.phases import Phase
from allocations.models import Allocation, MirrorObject
from portal.core import clock, heartbeat
from portal.core.models import AuditEntry, WorkItem
from portal.http import counters
from portal.operations.doctor import collect
from portal.operations.doctor.checks import run_checks
from tests.support.clusters import LOCAL
from tests.support.fleet import fleet
from tests.support.pages import browser_of, in_phase, requested
from tests.support.people import person
from tests.support.rows_read import assert_constant

pytestmark = pytest.mark.django_db
LONG_AGO = timedelta(hours=1)


@pytest.fixture
def works(team, project):
    """Make the rows of a portal that works."""
    fleet(team)
    WorkItem.objects.all().delete()
    heartbeat.beat("worker")
    heartbeat.beat("watcher")


def findings():
    return {one.check: one for one in run_checks(collect.facts())}


def doctor(*arguments):
    out = StringIO()
    with pytest.raises(SystemExit) as ended:
        call_command("doctor", *arguments, stdout=out)
    return ended.value.code, out.getvalue()


def test_the_command_names_what_is_wrong_with_its_fix_and_exits_2(works):
    WorkItem.objects.create(target="test", due_at=clock.now() - LONG_AGO, updated_at=clock.now())
    code, out = doctor()
    assert code == 2
    assert "problem  Work queue" in out
    assert "1 due, the longest for 60 min" in out
    assert "→ start more workers" in out


def test_as_json_it_has_the_worst_and_every_check(works):
    code, out = doctor("--output=json")
    document = json.loads(out)
    assert document["worst"] == code == 2  # no API server in this test
    checks = {one["check"]: one["status"] for one in document["checks"]}
    assert checks["Database"] == checks["Redis"] == checks["Worker"] == "ok"
    assert checks["API server"] == "problem"


def test_without_redis_the_other_checks_are_still_made(works, monkeypatch, settings):
    settings.REDIS_URL = "redis://127.0.0.1:1/0"
    counters.client.cache_clear()
    try:
        found = findings()
    finally:
        counters.client.cache_clear()
    assert found["Redis"].status == "problem"
    assert found["Worker"].status == "ok"


def test_an_allocation_that_starts_for_too_long_and_a_namespace_that_stays_are_stuck(works, team, project):
    row = in_phase(requested(person(team), project, name="late"), Phase.STARTING)
    Allocation.objects.filter(pk=row.pk).update(phase_since=clock.now() - LONG_AGO)
    project.archived_at = clock.now() - LONG_AGO
    project.save()
    MirrorObject.objects.create(
        cluster_id=LOCAL, kind="Namespace", name=project.namespace, uid="1", resource_version=1, seen_at=clock.now()
    )
    found = findings()["Stuck"].found
    assert f"{project.slug}/late is starting for 60 min" in found
    assert f"namespace {project.namespace} is still there for 60 min" in found


def test_entries_that_nobody_chains_are_found(works):
    AuditEntry.objects.create(at=clock.now() - LONG_AGO, actor="system", action="test", target="test")
    assert findings()["Audit log"].status == "advice"


def test_the_page_is_for_platform_staff_alone_and_shows_each_check_and_fix(works, team):
    WorkItem.objects.create(target="test", due_at=clock.now() - LONG_AGO, updated_at=clock.now())
    assert browser_of(person(team, "lead")).get("/health").status_code == 403
    for role in ("auditor", "operator"):
        shown = browser_of(person(platform_role=role)).get("/health").content.decode()
        assert "the longest for 60 min" in shown
        assert "To fix it: start more workers" in shown


def test_it_takes_the_same_number_of_queries_whatever_there_is(works, team, project):
    user = person(team)

    def more():
        requested(user, project)
        WorkItem.objects.create(target=f"t{WorkItem.objects.count()}", due_at=clock.now(), updated_at=clock.now())

    assert_constant(collect.facts, more, 30)
