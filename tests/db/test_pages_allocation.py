"""The page of an allocation, its actions, and the filters of the list."""

from base64 import b64decode
from datetime import timedelta
from typing import Any

import pytest
import yaml
from django.db import connection

from allocations.domain.phases import Phase
from allocations.requests import forecast
from portal.core import clock
from portal.tenants import services as tenants
from portal.tenants.actors import SYSTEM
from quotas.catalog.models import Flavor, Pool
from quotas.limits import services as limits
from tests.support.claim_rows import h100_node
from tests.support.pages import HTMX, browser_of, ended, held, in_phase, pod, requested, text
from tests.support.people import person
from tests.support.rows_read import executed

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
    assert "Download gpu-portal.kubeconfig" in page
    assert "Workload training-lease, resourceVersion 4711" in page


def test_a_label_to_copy_is_quoted_where_yaml_takes_its_value_for_a_number(fleet, member, project, browser):
    row = held(requested(member, project, name="72225e2"))
    for path in (f"/allocations/{row.pk}", f"/allocations/{row.pk}/pods"):
        assert "<code>gpu-portal.io/allocation: &#x27;72225e2&#x27;</code>" in text(browser.get(path)), path


def test_the_commands_of_each_example_are_for_its_own_file_and_object(fleet, member, project, browser):
    row = held(requested(member, project, name="training"))
    found = browser.get(f"/allocations/{row.pk}").context["examples"]
    assert [each.word for each in found] == ["Pod", "Job", "PyTorch", "Deployment"]
    for each in found:
        made = yaml.safe_load(each.yaml)
        object_ = f"{made['kind'].lower()}/{made['metadata']['name']}"
        assert f"kubectl apply -f {each.file}\n" in each.commands
        for command in ("logs -f", "exec -it", "port-forward"):
            assert f"kubectl {command} {object_}" in each.commands
        labels = {"batch.kubernetes.io/job-name": made["metadata"]["name"]}
        if each.word == "Deployment":
            labels = made["spec"]["template"]["metadata"]["labels"]
        listed = [f"get pods -l {key}={value} " for key, value in labels.items()]
        assert each.word == "Pod" or any(one in each.commands for one in listed)
        others = {other.file for other in found} - {each.file}
        assert not any(file in each.commands for file in others)


def test_each_tool_creates_and_uses_the_chosen_example(fleet, member, project, browser):
    row = held(requested(member, project, name="training"))
    page = browser.get(f"/allocations/{row.pk}")
    for each in page.context["examples"]:
        tools = dict(each.tools)
        assert list(tools) == ["kubectl", "CLI", "Python"]
        assert each.commands.splitlines()[4:] == tools["CLI"].splitlines()[4:-3]
        assert "gpu-portal kubeconfig --project vision-train --file gpu-portal.kubeconfig" in tools["CLI"]
        compile(tools["Python"], each.file, "exec")
        for part in (
            f'"{each.file}"',
            f'space = client.CoreV1Api(), "{project.namespace}"',
            "pod_log",
            "exec",
            "portforward",
        ):
            assert part in tools["Python"]
    assert "One that renews itself" in text(page)


def test_key_facts_say_what_is_left_what_it_costs_and_whether_a_pod_uses_it(fleet, member, project, browser):
    row = held(requested(member, project, name="training"))
    page = text(browser.get(f"/allocations/{row.pk}"))
    for words in ("<dt>Time</dt>", "<dt>Cost so far</dt>", "<dt>Per hour</dt>", 'id="pod-facts">none <small>for'):
        assert words in page
    pod(project, row, "runs")
    assert '<dd id="pod-facts" hx-swap-oob="innerHTML">1 running' in text(
        browser.get(f"/allocations/{row.pk}/pods", headers=HTMX)
    )
    assert "<dt>Node</dt><dd>l40s-0</dd>" in text(browser.get(f"/allocations/{row.pk}"))
    waits = text(browser.get(f"/allocations/{requested(member, project).pk}"))
    assert "<dt>Node</dt><dd>–</dd>" in waits
    assert "pod-facts" not in waits


def test_what_has_ended_can_be_requested_again_with_all_its_fields(fleet, team, member, project, browser):
    fields: dict[str, Any] = {"hours": "5", "purpose": "fine-tune", "priority": "batch", "labels": {"app": "train"}}
    row = requested(member, project, count=2, **fields)
    assert "Request again" not in text(browser.get(f"/allocations/{row.pk}"))
    ended(row)
    page = browser.get(f"/allocations/{row.pk}")
    assert "Request again" in text(page)
    form = browser.get(page.context["card"].again_url).context["form"]
    names = ("project", "offering", "count", "length", "hours", "purpose", "priority", "labels")
    found = [form[name].value() for name in names]
    assert found == ["vision-train", "l40s/whole", "2", "custom", "5", "fine-tune", "batch", "app=train"]
    assert "Request again" not in text(browser_of(person(team, "viewer")).get(f"/allocations/{row.pk}"))


def test_once_it_has_ended_a_poll_replaces_all_that_told_of_its_use(fleet, member, project, browser):
    row = held(requested(member, project, name="training"))
    assert "hx-swap-oob" in (live := text(browser.get(f"/allocations/{row.pk}?phase=starting", headers=HTMX)))
    assert 'id="pods-card"' not in live
    ended(row)
    last = text(browser.get(f"/allocations/{row.pk}?phase=active", headers=HTMX))
    for name in ("pods-card", "manifests"):
        assert f'<div id="{name}" hx-swap-oob="innerHTML"></div>' in last
    assert '<div id="costs-card" hx-swap-oob="innerHTML"><section' in last


def test_one_part_of_the_page_says_how_many_pods_use_it(fleet, member, project, browser):
    row = held(requested(member, project, name="training"))
    pod(project, row, "runs")
    assert "it now" not in text(browser.get(f"/allocations/{row.pk}/costs"))


def test_who_releases_what_another_person_holds_reads_whose_it_is_and_what_runs_and_may_say_why(
    fleet, member, team, project, browser
):
    row = held(requested(member, project, name="training"))
    pod(project, row, "runs")
    lead = browser_of(person(team, "lead"))
    question = text(lead.get(f"/allocations/{row.pk}/release"))
    assert f"<strong>{member.username}</strong>" in question
    assert "1 pod (runs) uses them" in question
    assert 'name="reason"' not in text(browser.get(f"/allocations/{row.pk}/release"))
    lead.post(f"/allocations/{row.pk}/release", {"reason": "Idle since Friday."})
    assert "Idle since Friday." in text(browser.get(f"/allocations/{row.pk}"))


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


def test_who_may_request_nothing_is_offered_no_request(fleet, team, member, project, browser):
    viewer = browser_of(person(team, "viewer"))
    for path in ("/", "/allocations", "/queues/vision"):
        assert 'href="/request"' in text(browser.get(path)), path
        assert 'href="/request"' not in text(viewer.get(path)), path
    lead = person(team, "lead").username
    assert f"To request GPUs, ask {lead} for the role member." in text(viewer.get("/"))


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
    assert "8 h from start" in page
    assert "8 hours from start" in page
    assert "after its duration" in page
    assert "<dt>Queue timeout</dt>" in page


def test_what_is_held_ends_when_its_hours_are_over(fleet, member, project, browser):
    row = held(requested(member, project), hours=2)
    assert row.ends_at is not None
    page = text(browser.get(f"/allocations/{row.pk}"))
    assert f'<dt>Ends</dt><dd><time datetime="{row.ends_at.isoformat()}"' in page
    assert "Queue timeout" not in page


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
    other = tenants.create_project(SYSTEM, team, "vision-dev", "Vision development")
    held(requested(member, project, name="mine"))
    ended(requested(person(team), other, name="theirs"))
    assert names(browser.get("/allocations")) == {"mine"}
    assert names(browser.get("/allocations?phase=")) == {"mine", "theirs"}
    assert names(browser.get("/allocations?phase=&mine=1")) == {"mine"}
    assert names(browser.get(f"/allocations?phase=&person={member.username}")) == {"mine"}
    assert names(browser.get("/allocations?model=l40s&cluster=local")) == {"mine"}
    assert names(browser.get("/allocations?model=h100")) == names(browser.get("/allocations?cluster=far")) == set()
    assert names(browser.get("/allocations?phase=&project=vision-dev")) == {"theirs"}
    assert names(browser.get("/allocations?phase=ended")) == {"theirs"}
    assert names(browser.get("/allocations?phase=live")) == {"mine"}
    held(requested(member, project, name="served", labels={"app": "serve", "stage": "prod"}))
    assert names(browser.get("/allocations?label=app=serve")) == {"served"}
    assert names(browser.get("/allocations?label=app=serve,stage=test")) == set()
    wrong = browser.get("/allocations?label=app:serve")
    assert "write key=value, several with commas." in text(wrong)
    assert names(wrong) == set()
    page = text(browser.get("/allocations"))
    assert "write key=value" not in page
    assert '<option value="suspended">' in page
    for reserved in ("pending_approval", "waitlisted", "offered"):
        assert reserved not in page, "no rule gives this phase"
    assert "No allocation matches the filters." in text(browser.get("/allocations?phase=scheduled"))


def test_what_has_not_ended_comes_before_what_has_each_the_newest_first(fleet, member, project, browser):
    held(requested(member, project, name="first"))
    requested(member, project, name="second")
    for name in ("third", "fourth"):
        ended(held(requested(member, project, name=name)))
    assert in_order(browser.get("/allocations?phase=")) == ["second", "first", "fourth", "third"]


def test_a_page_of_allocations_is_read_in_the_order_of_an_index(fleet, member, project, browser):
    requested(member, project)
    with executed() as captured:
        browser.get("/allocations?phase=")
    ((read, values),) = (one for one in captured if "IS NOT NULL ASC" in one[0])
    with connection.cursor() as cursor:
        cursor.execute("SET LOCAL enable_sort = off")
        cursor.execute("SET LOCAL enable_seqscan = off")
        cursor.execute(f"EXPLAIN {read}", values)
        plan = "\n".join(line for (line,) in cursor.fetchall())
    assert "Index Scan using allocation_live_first" in plan
    assert "Sort" not in plan


def in_order(response) -> list[str]:
    return [line.card.row.name for line in response.context["found"].lines]


def names(response) -> set[str]:
    return set(in_order(response))


def test_what_to_do_with_it_comes_before_its_facts(fleet, member, project, browser):
    page = text(browser.get(f"/allocations/{held(requested(member, project)).pk}"))
    places = [page.index(f'id="{name}"') for name in ("use-title", "pods-title", "devices", "timeline", "facts")]
    assert places == sorted(places)


def test_examples_of_a_pod_jobs_and_a_deployment_are_shown_and_downloaded(fleet, member, project, browser):
    row = held(requested(member, project, name="training"))
    response = browser.get(f"/allocations/{row.pk}")
    found = {example.file: example for example in response.context["examples"]}
    assert [yaml.safe_load(example.yaml)["kind"] for example in found.values()] == ["Pod", "Job", "Job", "Deployment"]
    template = yaml.safe_load(found["job.yaml"].yaml)["spec"]["template"]
    assert template["metadata"]["labels"] == {"gpu-portal.io/allocation": "training"}
    assert "torch.cuda" in found["pytorch.yaml"].yaml
    data = found["job.yaml"].url.partition("base64,")[2]
    assert b64decode(data).decode() == found["job.yaml"].yaml
    assert 'download="pytorch.yaml"' in text(response)


def test_pods_that_use_it_are_listed_with_their_state(fleet, member, project, browser):
    row = held(requested(member, project, name="training"))
    part = text(browser.get(f"/allocations/{row.pk}/pods", headers=HTMX))
    assert "<strong>No pod uses it now.</strong> Release it if you do not need it" in part
    pod(project, row, "runs")
    pod(project, row, "waits", phase="Pending", node="", unschedulable="0/3 nodes are available.")
    pod(project, row, "holds", holder=True)
    response = browser.get(f"/allocations/{row.pk}/pods")
    assert [(line.name, line.badge.word) for line in response.context["pods"]] == [
        ("runs", "Running"),
        ("waits", "Waiting for a node"),
    ]
    assert "0/3 nodes are available." in text(response)
    assert "The cluster does not answer" in text(response)
    assert "<html" in text(response)
    assert "<html" not in part


def test_its_devices_stay_on_the_page_after_the_end(team, member, project, browser):
    h100_node(team)
    row = held(requested(member, project, "h100/whole"), [("h100-0", "gpu-3", "GPU-abc")])
    assert "Devices held now" in text(browser.get(f"/allocations/{row.pk}"))
    ended(row)
    page = text(browser.get(f"/allocations/{row.pk}"))
    assert "The allocation has ended and holds no devices. These are what it held last." in page
    assert "GPU-abc" in page
    never = ended(requested(member, project, "h100/whole"))
    assert "It never held a device." in text(browser.get(f"/allocations/{never.pk}"))


def test_what_waits_says_when_enough_is_expected_to_be_free_and_what_would_help(fleet, member, project, browser):
    holder = held(requested(member, project, count=4, name="training"), hours=2)
    row = in_phase(requested(member, project), Phase.QUEUED, "WaitingForQuota", "It starts when 1 more GPU is free.")
    page = text(browser.get(f"/allocations/{row.pk}"))
    assert holder.ends_at is not None
    assert f'Enough is expected to be free at <time datetime="{holder.ends_at.isoformat()}"' in page
    assert "when training ends." in page
    assert "<strong>What you can do:</strong> Release what the team no longer needs" in page
    assert f"/request?project=vision-train&amp;offering={row.offering.key.replace('/', '%2F')}&amp;count=1" in page


def test_what_could_start_now_names_no_end_that_it_waits_for(fleet, member, project, browser):
    row = requested(member, project)
    assert forecast.next_start(row, clock.now()) is None
    assert "Enough is expected to be free" not in text(browser.get(f"/allocations/{row.pk}"))


def test_another_teams_allocation_is_not_named_to_who_waits_for_it(fleet, member, project, other_team, browser):
    there = tenants.create_project(SYSTEM, other_team, "language-train", "Language training")
    limits.set_limit(SYSTEM, other_team, Pool.objects.get(key="l40s/gpu"), 8)
    held(requested(person(other_team), there, count=8, name="secret"))
    row = in_phase(requested(member, project), Phase.QUEUED, "WaitingForQuota")
    page = text(browser.get(f"/allocations/{row.pk}"))
    assert "secret" not in page
