"""A custom claim for two GPUs is told as two wherever slices are told."""

import pytest
from django.template.loader import render_to_string
from django.urls import reverse

from allocations.limits import services as limit_services
from allocations.models import Allocation
from allocations.projects.archive import ArchivePreview
from allocations.queues import entries
from portal.api.views.projects import ends_of
from portal.core.reading import read_tables
from portal.tenants.models import PlatformRole
from quotas.catalog.models import Pool
from quotas.limits.tree import Quota
from tests.support.claim_rows import h100_node
from tests.support.pages import browser_of, held, requested, text
from tests.support.people import client, person

pytestmark = pytest.mark.django_db
TWO = "2 × h100/claim"


@pytest.fixture(
    params=[[{"device": "gpu", "count": 2}], [{"device": "gpu"}, {"device": "gpu"}]], ids=["count", "requests"]
)
def row(request, team, project) -> Allocation:
    h100_node(team)
    return requested(person(team), project, "h100/claim", claim={"requests": request.param})


def test_the_queue_tells_two(row, team):
    assert [one.requests for one in entries.of_rows(*read_tables(*entries.parts([team.pk])))] == [{"h100/claim": 2}]
    assert entries.item(row).requests == {"h100/claim": 2}
    assert TWO in text(browser_of(person(team)).get(reverse("queue", args=[team.slug])))
    waiting = client(person(team)).get(f"/api/v1/queues/{team.slug}").json()["pending"]
    assert [(one["count"], one["requests"]) for one in waiting] == [(2, {"h100/claim": 2})]


def test_the_allocation_over_rest_tells_two(row, team):
    found = client(person(team)).get(f"/api/v1/allocations/{row.pk}").json()
    assert (found["count"], found["slices"]) == (1, 2)


def test_the_timeline_tells_two(row):
    assert row.transitions.get(type="requested").message.startswith(TWO)


def test_the_preview_of_a_limit_tells_two(row, team):
    held(row)
    operator = person(platform_role=PlatformRole.OPERATOR)
    sent = {"holder": "team:vision", "scope": "pool:h100/slices", "nominal": "1", "borrowing": "0", "lending": ""}
    assert TWO in text(browser_of(operator).post(reverse("limit"), {**sent, "preview": "1"}))
    body = {"team": "vision", "pool": "h100/slices", "nominal": 1}
    found = client(operator).post("/api/v1/limits/preview", body, format="json").json()
    assert [one["slices"] for one in found["allocations"]] == [2]
    spec = Quota(1)
    effect = limit_services.effect(operator, team, Pool.objects.get(key="h100/slices"), spec)
    assert effect.in_use == 2


def test_what_archiving_would_end_tells_two(row, project):
    assert TWO in render_to_string("frontend/allocation_list.html", {"rows": [row]})
    ends = ArchivePreview((row,), (), None, 0, "EUR", deletes_namespace=True)
    assert [one.slices for one in ends_of(project, ends).allocations] == [2]
