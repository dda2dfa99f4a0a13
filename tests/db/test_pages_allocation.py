"""The page of an allocation, its actions, and the filters of the list."""

from datetime import timedelta

import pytest

from allocations.domain.phases import Phase
from portal.core import clock
from portal.tenants import services as tenants
from quotas.catalog.models import Flavor
from tests.support.pages import HTMX, browser_of, ended, held, in_phase, requested, text
from tests.support.people import person

pytestmark = pytest.mark.django_db


def test_an_allocation_by_device_plugin_says_count_and_never_pretends_a_device(fleet, member, project, browser):
    page = text(browser.get(f"/allocations/{held(requested(member, project)).pk}"))
    assert "Slices are counted only, so there are no device IDs." in page
    assert "UUID" not in page


def test_an_allocation_says_what_its_pods_may_ask_for_in_all_until_it_has_ended(fleet, member, project, browser):
    row = held(requested(member, project, count=2))
    assert "CPU and memory" not in text(browser.get(f"/allocations/{row.pk}"))
    Flavor.objects.update(node_cpu_millicores=15_190, node_memory_mib=126_443, node_pods=57)
    page = text(browser.get(f"/allocations/{row.pk}"))
    assert "Up to 30.3 CPU and 246 GiB of memory for all pods, at most 32 pods at once." in page
    ended(row)
    assert "CPU and memory" not in text(browser.get(f"/allocations/{row.pk}"))


def test_an_active_allocation_shows_what_to_paste_and_its_timeline_with_evidence(fleet, member, project, browser):
    row = held(requested(member, project, name="training"))
    page = text(browser.get(f"/allocations/{row.pk}"))
    assert "gpu-portal.io/allocation: training" in page
    assert "kubectl apply -f pod.yaml" in page
    assert "Download gpu-portal.kubeconfig" in page
    assert "Workload training-lease at revision 4711" in page


def test_what_is_not_held_yet_cannot_be_used_yet(fleet, member, project, browser):
    row = requested(member, project)
    page = text(browser.get(f"/allocations/{row.pk}"))
    assert "Download gpu-portal.kubeconfig" not in page
    refused = browser.post(f"/allocations/{row.pk}/kubeconfig")
    assert refused.status_code == 409
    assert "it can be used once it is active" in text(refused)


@pytest.mark.parametrize("path", ["", "/release", "/extend"])
def test_another_teams_allocation_is_not_found(fleet, member, project, other_team, path):
    stranger = browser_of(person(other_team, "lead"))
    row = held(requested(member, project, name="training"))
    response = stranger.get(f"/allocations/{row.pk}{path}")
    assert response.status_code == 404
    assert "training" not in text(response)
    assert "training" not in text(stranger.get("/allocations"))


def test_a_viewer_sees_but_gets_no_buttons_and_no_kubeconfig(fleet, team, member, project):
    row = held(requested(member, project))
    viewer = browser_of(person(team, "viewer"))
    page = text(viewer.get(f"/allocations/{row.pk}"))
    assert "Active" in page
    assert f"/allocations/{row.pk}/release" not in page
    assert "kubeconfig" not in page
    assert viewer.post(f"/allocations/{row.pk}/release").status_code == 403


def test_releasing_asks_first_and_then_does_it(fleet, member, project, browser):
    row = held(requested(member, project, name="training"))
    question = text(browser.get(f"/allocations/{row.pk}/release", headers=HTMX))
    assert "Release training?" in question
    assert "<html" not in question, "a dialog gets the question alone"
    assert "<html" in text(browser.get(f"/allocations/{row.pk}/release"))
    after = browser.post(f"/allocations/{row.pk}/release", follow=True)
    assert "Release of training requested." in text(after)
    assert "Releasing" in text(after)
    row.refresh_from_db()
    assert row.desired == "released"


def test_what_waits_has_hours_and_no_end_yet(fleet, member, project, browser):
    page = text(browser.get(f"/allocations/{requested(member, project).pk}"))
    assert "8 h left, once active" in page
    assert "8 hours held; waiting does not count" in page
    assert "after the requested time" in page
    assert "<dt>Waits until</dt>" in page


def test_what_is_held_ends_when_its_hours_are_over(fleet, member, project, browser):
    row = held(requested(member, project), hours=2)
    assert row.ends_at is not None
    page = text(browser.get(f"/allocations/{row.pk}"))
    assert f'<dt>Ends</dt><dd><time datetime="{row.ends_at.isoformat()}"' in page
    assert "Waits until" not in page


def test_extending_moves_the_end_and_refuses_what_is_too_long(fleet, member, project, browser):
    row = held(requested(member, project))
    browser.post(f"/allocations/{row.pk}/extend", {"length": "2"})
    row.refresh_from_db()
    assert row.held_since is not None
    assert row.ends_at == row.held_since + timedelta(hours=10)
    too_long = browser.post(f"/allocations/{row.pk}/extend", {"length": "custom", "hours": "8784"})
    assert too_long.status_code == 400
    assert "At most 366 days may be left of it." in text(too_long)


def test_what_leaves_counts_down_to_when_its_pods_end(fleet, member, project, browser):
    until = clock.now() + timedelta(seconds=50)
    row = in_phase(requested(member, project), Phase.LEAVING, "evicted_preempted", "Taken back.", phase_until=until)
    page = text(browser.get(f"/allocations/{row.pk}"))
    assert f'data-countdown="{until.isoformat()}"' in page
    assert "Pods end" in page


def test_who_is_asked_can_let_it_try_again(fleet, member, project, browser):
    row = in_phase(
        requested(member, project), Phase.SUSPENDED, "no_fitting_device", "None fitted.", needs_attention=True
    )
    assert "Try again" in text(browser.get("/"))
    assert "is queued again." in text(browser.post(f"/allocations/{row.pk}/retry", follow=True))
    assert browser.post(f"/allocations/{row.pk}/retry").status_code == 409


def test_the_list_is_filtered_by_its_address(fleet, member, team, project, browser):
    other = tenants.create_project(team, "vision-dev", "Vision development")
    held(requested(member, project, name="mine"))
    ended(requested(person(team), other, name="theirs"))
    assert names(browser.get("/allocations")) == {"mine", "theirs"}
    assert names(browser.get("/allocations?mine=1")) == {"mine"}
    assert names(browser.get("/allocations?project=vision-dev")) == {"theirs"}
    assert names(browser.get("/allocations?phase=ended")) == {"theirs"}
    assert names(browser.get("/allocations?phase=live")) == {"mine"}
    held(requested(member, project, name="served", labels={"app": "serve", "stage": "prod"}))
    assert names(browser.get("/allocations?label=app=serve")) == {"served"}
    assert names(browser.get("/allocations?label=app=serve,stage=test")) == set()
    wrong = browser.get("/allocations?label=app:serve")
    assert "Write key=value, several with commas." in text(wrong)
    assert names(wrong) == set()
    page = text(browser.get("/allocations"))
    assert "Write key=value" not in page
    assert '<option value="suspended">' in page
    for reserved in ("pending_approval", "waitlisted", "offered"):
        assert reserved not in page, "no rule gives this phase"
    assert "No allocation matches the filters." in text(browser.get("/allocations?phase=scheduled"))


def names(response) -> set[str]:
    return {card.row.name for card in response.context["cards"]}
