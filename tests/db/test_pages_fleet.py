"""The fleet as cells, and the page of a node: what they show, to whom, and in how many queries."""

import re
from datetime import timedelta
from uuid import uuid4

import pytest
from django.conf import settings

from allocations.models import MirrorObject
from frontend.presenters.fleet_cells import COLOURS, colour
from portal.core import clock
from portal.tenants.models import Project, Team
from quotas.catalog.models import Node
from quotas.metering import foreign, hold_use
from quotas.metering import services as metering
from quotas.metering.foreign import Start, Use
from quotas.metering.hold_use import Sighting
from quotas.metering.hours import hour_of
from quotas.metering.units import GPU
from tests.support import demo_fleet
from tests.support.clusters import LOCAL
from tests.support.pages import HTMX, browser_of, held, requested, text
from tests.support.people import person
from tests.support.quotas import attribution
from tests.support.rows_read import assert_constant

pytestmark = pytest.mark.django_db
SEEN = {"kind": "test"}


@pytest.fixture
def demo(db):
    demo_fleet.record(hour_of(clock.now()) - timedelta(hours=1))


@pytest.fixture
def operator(demo):
    return person(platform_role="operator")


def hold(device, team="vision", node="h100-0", member="ada", **values):
    """Record that the team holds a device of the node; return its holder's id."""
    holder = uuid4()
    facts = attribution(team=team, project=f"{team}-train", node=node, flavor="h100", member=member, **values)
    metering.open_interval(uuid4(), holder, f"{LOCAL}/{node}/{device}", clock.now(), facts, 1, SEEN)
    return holder


def use_without_allocation(device, node="h100-0"):
    use = Use(f"{LOCAL}/{node}/{device}", node, GPU, device, 1, "ResourceClaim", "trainer", str(uuid4()), "elsewhere")
    foreign.begin(LOCAL, [Start(use, clock.now(), 1, estimated=False)])


def pod(name, gpus, node="l40s-0", namespace="vision-train", **facts):
    MirrorObject.objects.create(
        cluster_id=LOCAL,
        kind="Pod",
        namespace=namespace,
        name=name,
        uid=str(uuid4()),
        resource_version=7,
        allocation=facts.pop("allocation", ""),
        facts={"phase": "Running", "node": node, "gpus": gpus, "cpu_millicores": 0, "memory_mib": 0, **facts},
        seen_at=clock.now(),
    )


def shown(user, address="/fleet"):
    answer = browser_of(user).get(address)
    assert answer.status_code == 200, answer.content
    return text(answer)


def cells(page, node):
    """Return the GPUs of a node by their words, each with its parts as (label, fill, words)."""
    of_node = page[page.index(f">{node}</a></h3>") :].partition('<li class="node"')[0]
    found = {}
    for words, parts in re.findall(r'<a class="gpu"[^>]* aria-label="([^"]*)">(.*?)</a>', of_node):
        found[words] = re.findall(r'data-fill="([^"]*)".*?title="([^"]*)">([^<]*)<', parts)
    return found


def part(page, node, words):
    """Return fill and label of the slice of the node with these words."""
    every = [one for parts in cells(page, node).values() for one in parts]
    return next((fill, label) for fill, title, label in every if title == words)


def test_every_gpu_of_a_node_is_a_cell_with_the_team_that_holds_it(operator):
    hold("gpu-3")
    page = shown(operator)
    assert part(page, "h100-0", "gpu-3: vision / vision-train, ada, held without a pod") == ("no-pod", "vision")
    assert list(cells(page, "h100-1")) == [f"gpu-{number}: free" for number in range(8)]
    assert '/fleet/nodes/local/h100-0#gpu-3"' in page


def test_a_hold_with_a_pod_is_filled(operator):
    hold_use.begin(LOCAL, [hold("gpu-3")], Sighting(clock.now(), 1, estimated=False))
    assert part(shown(operator), "h100-0", "gpu-3: vision / vision-train, ada") == ("held", "vision")


def test_a_divided_gpu_is_cut_into_its_slices_with_profile_and_place(operator):
    hold("gpu-0-mig-1g10gb-19-2")
    hold("gpu-0-mig-3g40gb-9-4", team="language", member="bob")
    (parts,) = [parts for words, parts in cells(shown(operator), "h100-0").items() if words.startswith("gpu-0:")]
    assert [label for _, _, label in parts] == ["free", "1g.10gb 2", "free", "3g.40gb 4"]
    assert [fill for fill, _, _ in parts] == ["free", "no-pod", "free", "no-pod"]
    assert parts[3][1] == "gpu-0: 3g.40gb 4, language / language-train, bob, held without a pod"


def test_a_node_of_8_gpus_with_32_mig_instances_is_8_cells_each_cut_into_its_four(operator):
    pod("worker", {"nvidia.com/mig-1g.10gb": 3}, node="a100-0", namespace="elsewhere")
    page = shown(operator, "/fleet?node=a100-0")
    found = list(cells(page, "a100-0").values())
    assert [len(parts) for parts in found] == [4] * 8
    assert [label for _, _, label in found[7]] == ["1g.10gb 14", "1g.10gb 15", "2g.20gb 7", "3g.40gb 7"]
    fills = [fill for parts in found for fill, _, _ in parts]
    assert (fills.count("unmanaged"), fills.count("free")) == (3, 29)
    for count in ("mig-1g.10gb 3/16", "mig-2g.20gb 0/8", "mig-3g.40gb 0/8"):
        assert f"<small>{count}</small>" in page


def test_what_is_held_as_a_count_is_told_though_it_is_on_no_node(operator):
    facts = attribution(team="vision", project="vision-train", flavor="l40s", offering="l40s/whole", member="ada")
    assert "4 × l40s/whole" not in shown(operator)
    for _ in range(2):
        metering.open_interval(uuid4(), uuid4(), f"{uuid4()}/l40s", clock.now(), facts, 2, SEEN)
    assert 'data-label="Held as a count">4 × l40s/whole</td>' in shown(operator)


def test_each_flavor_has_its_totals_in_gpus(operator):
    page = shown(operator)
    row = page[page.index('?flavor=a100"') :].partition("</tr>")[0]
    assert re.findall(r'class="number">([^<]*)<', row) == ["8", "0", "0", "8"]


def test_the_colour_of_a_team_follows_from_its_name_and_the_legend_names_it(operator):
    hold("gpu-0")
    hold("gpu-1", team="language", member="bob")
    page = shown(operator)
    legend = page[page.index('class="legend"') : page.index("</ul>", page.index('class="legend"'))]
    for team in ("vision", "language"):
        assert f'data-team="{colour(team)}"></span> {team}</li>' in legend
    assert colour("vision") != colour("language")


@pytest.mark.parametrize(("theme", "card"), [(0, "ffffff"), (1, "181c25")])
def test_colours_of_teams_have_contrast(theme, card):
    css = (settings.BASE_DIR / "frontend/static/frontend/css/fleet.css").read_text()
    found = [pair[theme] for pair in re.findall(r"--team: light-dark\(#(\w+), #(\w+)\)", css)]
    assert len(found) == COLOURS
    assert [one for one in found if contrast(one, card) < 4.5] == []


def contrast(one, other):
    """Return the contrast of two colours, as WCAG 2.2 defines it."""
    light, dark = sorted((luminance(one), luminance(other)), reverse=True)
    return (light + 0.05) / (dark + 0.05)


def luminance(colour):
    values = [int(colour[at : at + 2], 16) / 255 for at in (0, 2, 4)]
    red, green, blue = [one / 12.92 if one <= 0.04045 else ((one + 0.055) / 1.055) ** 2.4 for one in values]
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def test_a_gpu_that_is_unavailable_is_hatched_and_says_so(operator):
    Node.objects.get(name="h100-0").devices.filter(name="gpu-2").update(healthy=False)
    assert part(shown(operator), "h100-0", "gpu-2: unavailable") == ("unavailable", "unavailable")


def test_a_gpu_that_is_used_outside_allocations_says_by_what(operator):
    use_without_allocation("gpu-5")
    words = "gpu-5: ResourceClaim elsewhere/trainer, unmanaged"
    assert part(shown(operator), "h100-0", words) == ("unmanaged", "unmanaged")


def test_what_a_device_plugin_counts_is_told_by_the_pods_on_the_node(operator, django_user_model):
    member = django_user_model.objects.get(username="vision-member")
    project = Project.objects.get(slug="vision-train")
    row = held(requested(member, project, name="training", count=2))
    pod("worker", {"nvidia.com/gpu": 2}, namespace=project.namespace, allocation="training")
    pod("stray", {"nvidia.com/gpu": 1}, namespace="elsewhere")
    pod("done", {"nvidia.com/gpu": 1}, namespace="elsewhere", phase="Succeeded")
    assert list(cells(shown(operator, "/fleet?node=l40s-0"), "l40s-0")) == [
        "GPU 0: Pod elsewhere/stray, unmanaged",
        "GPU 1: vision / vision-train, vision-member",
        "GPU 2: vision / vision-train, vision-member",
        "GPU 3: free",
    ]
    assert f'href="/allocations/{row.pk}"' in shown(operator, "/fleet/nodes/local/l40s-0")


def test_nodes_are_found_by_flavor_name_and_state(operator):
    Node.objects.filter(name="t4-1").update(ready=False)
    Node.objects.filter(name="t4-0").update(flavor=None, problem="no GPU taint, so not offered")
    every = {"h100-0", "h100-1", "a100-0", "l40s-0", "t4-0", "t4-1"}

    def names(query):
        page = shown(operator, f"/fleet?{query}")
        return {name for name in every if f">{name}</a>" in page}

    assert names("") == every
    assert names("flavor=h100") == {"h100-0", "h100-1"}
    assert names("node=100-") == {"h100-0", "h100-1", "a100-0"}
    assert names("state=attention") == {"t4-0", "t4-1"}
    assert names("state=not-offered") == {"t4-0"}
    assert names("cluster=local") == every
    assert names("cluster=other") == set()
    assert "No node matches the filter." in shown(operator, "/fleet?node=nothing")
    assert shown(operator, "/fleet?node=%00&flavor=%00&state=odd&page=x")


def test_nodes_are_found_by_the_team_that_holds_or_uses_something_on_them(operator):
    project = Project.objects.get(slug="vision-train")
    hold("gpu-0")
    pod("worker", {"nvidia.com/gpu": 1}, node="l40s-1", namespace=project.namespace)
    page = shown(operator, "/fleet?team=vision")
    assert [name for name in ("h100-0", "h100-1", "l40s-0", "l40s-1") if f">{name}</a>" in page] == ["h100-0", "l40s-1"]
    assert "No node matches the filter." in shown(operator, "/fleet?team=language")


def test_a_thousand_nodes_are_strips_on_one_page(operator):
    hold("gpu-0")
    flavor = Node.objects.get(name="h100-0").flavor
    more = [Node(cluster_id=LOCAL, name=f"x-{n}", flavor=flavor, ready=True, tainted=True) for n in range(1100)]
    Node.objects.bulk_create(more)
    page = shown(operator, "/fleet?view=nodes")
    assert page.count('<li><a href="/fleet/nodes/') == 1000
    assert 'aria-label="h100-0: 1 held without a pod, 7 free"' in page
    assert '<rect x="0.00%" width="12.50%" height="100%" data-fill="no-pod"' in page


def test_a_node_says_why_it_is_not_offered(operator):
    Node.objects.filter(name="t4-0").update(flavor=None, problem="no GPU taint, so not offered. Run: kubectl taint")
    page = shown(operator, "/fleet/nodes/local/t4-0")
    assert "Why it is not offered" in page
    assert "no GPU taint, so not offered. Run: kubectl taint" in page


def test_a_node_shows_driver_taints_labels_conditions_and_gpus_with_uuids_and_holders(operator):
    holder = hold("gpu-1-mig-2g20gb-14-2")
    page = shown(operator, "/fleet/nodes/local/h100-0")
    uuid = Node.objects.get(name="h100-0").devices.get(name="gpu-1").uuid
    for words in ("580.126.20", "nvidia.com/gpu=present:NoSchedule", "nvidia.com/gpu.product", "Ready", uuid):
        assert words in page, words
    assert f'<a href="/allocations/{holder}">vision / vision-train, ada</a>' in page
    assert "2g.20gb, memory slices 2 to 3" in page


def test_a_job_that_holds_a_gpu_leads_to_its_page(operator):
    holder = hold("gpu-1", member="")
    assert f'<a href="/jobs/{holder}">vision / vision-train, Job</a>' in shown(operator, "/fleet/nodes/local/h100-0")


@pytest.mark.parametrize("address", ["/fleet", "/fleet/nodes/local/h100-0"])
def test_only_platform_staff_sees_the_fleet(demo, address):
    assert browser_of(person(Team.objects.get(slug="vision"), "lead")).get(address).status_code == 403
    assert browser_of(person(platform_role="auditor")).get(address).status_code == 200


@pytest.mark.parametrize("name", ["nothing", "%00", "h100-0%00"])
def test_a_node_that_is_not_there_is_not_found(operator, name):
    assert browser_of(operator).get(f"/fleet/nodes/local/{name}").status_code == 404


@pytest.mark.parametrize("address", ["/fleet", "/fleet/nodes/local/h100-0"])
def test_a_poll_swaps_only_what_has_changed(operator, address):
    browser = browser_of(operator)
    version = browser.get(address).context["version"]
    assert browser.get(f"{address}?v={version}", headers=HTMX).status_code == 204
    hold("gpu-0")
    changed = browser.get(f"{address}?v={version}", headers=HTMX)
    assert changed.status_code == 200
    assert "<html" not in text(changed)


@pytest.mark.parametrize("address", ["/fleet", "/fleet/nodes/local/h100-0"])
def test_as_many_queries_for_many_nodes_and_holders_as_for_few(operator, address):
    browser = browser_of(operator)
    hold("gpu-0")
    use_without_allocation("gpu-7")
    pod("first", {"nvidia.com/gpu": 1}, node="h100-0")

    def grow():
        for number in range(1, 6):
            hold(f"gpu-{number}", member="" if number % 2 else "ada")
        for number in range(49):
            pod(f"worker-{number}", {"nvidia.com/gpu": 1}, node="h100-0", namespace=f"other-{number}")
        flavor = Node.objects.get(name="h100-0").flavor
        Node.objects.bulk_create(
            Node(cluster_id=LOCAL, name=f"h100-{n}", flavor=flavor, ready=True, tainted=True) for n in range(10, 60)
        )

    assert_constant(lambda: browser.get(address), grow, at_most=30)


def test_replicas_are_drawn_on_their_gpus_and_are_not_called_isolated(operator):
    pod("worker", {"nvidia.com/gpu.shared": 5}, node="t4-0", namespace="elsewhere")
    page = shown(operator, "/fleet?node=t4-0")
    found = list(cells(page, "t4-0").values())
    assert [[fill for fill, _, _ in parts].count("unmanaged") for parts in found] == [4, 1, 0, 0]
    assert found[3][2][1:] == ("GPU 3: replica 2, free, time-sliced, 1 of 4 replicas", "replica 2")
    assert "isolat" not in page


def test_very_many_units_are_one_cell(operator):
    row = MirrorObject.objects.get(kind="Node", name="l40s-0")
    MirrorObject.objects.filter(pk=row.pk).update(facts={**row.facts, "capacity": {"nvidia.com/gpu": 16_384}})
    ((only,),) = cells(shown(operator, "/fleet?node=l40s-0"), "l40s-0").values()
    assert only[2] == "0 of 16384 in use"


def test_a_node_says_how_many_units_of_a_resource_are_in_use(operator):
    pod("worker", {"nvidia.com/mig-1g.10gb": 4}, node="a100-0", namespace="elsewhere")
    assert '<td data-label="In use" class="number">4</td>' in shown(operator, "/fleet/nodes/local/a100-0")
