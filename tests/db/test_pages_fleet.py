"""The fleet as tiles, and the page of a node: what they show, to whom, and in how many queries."""

from datetime import timedelta
from uuid import uuid4

import pytest

from allocations.models import MirrorObject
from allocations.projects import organization
from portal.core import clock
from portal.tenants import services
from portal.tenants.actors import SYSTEM
from portal.tenants.models import Project, Team
from quotas.catalog.models import Node
from quotas.metering import foreign
from quotas.metering import services as metering
from quotas.metering.foreign import Start, Use
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


def tile(page, words):
    """Return the tile with these words."""
    start = page.index(f'title="{words}"')
    return page[page.rindex("<a ", 0, start) : page.index("</a>", start)]


def test_every_gpu_of_a_node_is_a_tile_with_the_team_that_holds_it(operator):
    hold("gpu-3")
    page = shown(operator)
    assert '/fleet/nodes/local/h100-0#gpu-3"' in tile(page, "gpu-3: vision / vision-train, ada")
    assert "<span>vision</span>" in tile(page, "gpu-3: vision / vision-train, ada")
    assert page.count('title="gpu-3: free"') == 1, "that of the other h100"


def test_parts_of_a_divided_gpu_are_drawn_at_their_memory_slices(operator):
    hold("gpu-0-mig-1g10gb-19-2")
    hold("gpu-0-mig-3g40gb-9-4", team="language", member="bob")
    found = tile(shown(operator), "gpu-0: vision / vision-train, ada, 1g.10gb; language / language-train, bob, 3g.40gb")
    assert '<rect x="25.00%" width="12.50%"' in found
    assert '<rect x="50.00%" width="50.00%"' in found
    assert "<span>2 teams</span>" in found


def test_what_is_held_as_a_count_is_told_though_no_tile_shows_it(operator):
    facts = attribution(team="vision", project="vision-train", flavor="l40s", offering="l40s/whole", member="ada")
    assert "Held by allocations" not in shown(operator)
    for _ in range(2):
        metering.open_interval(uuid4(), uuid4(), f"{uuid4()}/l40s", clock.now(), facts, 2, SEEN)
    page = shown(operator)
    assert "Held by allocations: 4 × l40s/whole. A hold is on no node until a pod of it runs." in page


def test_two_teams_have_different_colours_and_the_legend_names_both(operator):
    hold("gpu-0")
    hold("gpu-1", team="language", member="bob")
    page = shown(operator)
    fills = {words: tile(page, words).partition('fill="url(#')[2].partition(")")[0] for words in (
        "gpu-0: vision / vision-train, ada", "gpu-1: language / language-train, bob"
    )}  # fmt: skip
    assert len(set(fills.values())) == 2
    for fill in fills.values():
        assert f'<pattern id="{fill}"' in page
    legend = page[page.index('class="legend"') : page.index("</ul>", page.index('class="legend"'))]
    assert "vision" in legend
    assert "language" in legend


def test_a_new_team_changes_no_colour(operator):
    hold("gpu-0")
    words = "gpu-0: vision / vision-train, ada"
    before = tile(shown(operator), words)
    services.create_team(SYSTEM, Team.objects.get(slug="vision").department, "a-first-by-name", "First by name")
    assert tile(shown(operator), words) == before


def test_a_team_that_is_deleted_changes_no_colour(operator):
    department = Team.objects.get(slug="vision").department
    mistake = services.create_team(SYSTEM, department, "mistake", "Made by mistake")
    services.create_team(SYSTEM, department, "later", "Later")
    hold("gpu-0", team="later")
    words = "gpu-0: later / later-train, ada"
    before = tile(shown(operator), words)
    organization.delete_team(operator, mistake)
    assert tile(shown(operator), words) == before


def test_a_gpu_that_cannot_be_used_is_hatched_and_says_so(operator):
    Node.objects.get(name="h100-0").devices.filter(name="gpu-2").update(healthy=False)
    found = tile(shown(operator), "gpu-2: cannot be used, free")
    assert 'fill="url(#sick)"' in found
    assert "<span>sick</span>" in found


def test_a_gpu_that_is_used_without_an_allocation_says_by_whom(operator):
    use_without_allocation("gpu-5")
    page = shown(operator)
    assert "<span>no allocation</span>" in tile(page, "gpu-5: ResourceClaim elsewhere/trainer, without allocation")


def test_what_a_device_plugin_counts_is_told_by_the_pods_on_the_node(operator, django_user_model):
    member = django_user_model.objects.get(username="vision-member")
    project = Project.objects.get(slug="vision-train")
    row = held(requested(member, project, name="training", count=2))
    pod("worker", {"nvidia.com/gpu": 2}, namespace=project.namespace, allocation="training")
    pod("stray", {"nvidia.com/gpu": 1}, namespace="elsewhere")
    pod("done", {"nvidia.com/gpu": 1}, namespace="elsewhere", phase="Succeeded")
    page = shown(operator, "/fleet?node=l40s-0")
    assert page.count('title="nvidia.com/gpu: vision / vision-train, vision-member"') == 2
    assert page.count('title="nvidia.com/gpu: Pod elsewhere/stray, without allocation"') == 1
    assert page.count('title="nvidia.com/gpu: free"') == 1
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
    assert "No node matches the filter." in shown(operator, "/fleet?node=nothing")
    assert shown(operator, "/fleet?node=%00&flavor=%00&state=odd&page=x")


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

    assert_constant(lambda: browser.get(address), grow, at_most=20)


def group(page, node, resource):
    """Return the part of a node that is about a resource: its count, and its tiles."""
    of_node = page[page.index(f">{node}</a>") :].partition("</li>\n          ")[0]
    return of_node[of_node.index(f"<code>{resource}</code>") :].partition("</ul>")[0]


def test_mig_devices_of_a_profile_are_one_tile_with_their_count(operator):
    """Nobody knows which of them are on one GPU."""
    pod("worker", {"nvidia.com/mig-1g.10gb": 4}, node="a100-0", namespace="elsewhere")
    page = shown(operator, "/fleet?node=a100-0")
    of_profile = group(page, "a100-0", "mig-1g.10gb")
    assert "4 of 16 in use" in of_profile
    assert of_profile.count('class="gpu"') == 1
    assert '<rect x="0.00%" width="25.00%"' in of_profile
    assert "0 of 8 in use" in group(page, "a100-0", "mig-3g.40gb")


def test_shares_are_drawn_on_their_gpus(operator):
    pod("worker", {"nvidia.com/gpu.shared": 5}, node="t4-0", namespace="elsewhere")
    of_shares = group(shown(operator, "/fleet?node=t4-0"), "t4-0", "gpu.shared")
    assert "5 of 16 in use" in of_shares
    assert of_shares.count('class="gpu"') == 4
    assert of_shares.count('<rect x="0.00%" width="100.00%"') == 1
    assert of_shares.count('<rect x="0.00%" width="25.00%"') == 1


def test_very_many_units_are_one_tile(operator):
    row = MirrorObject.objects.get(kind="Node", name="l40s-0")
    MirrorObject.objects.filter(pk=row.pk).update(facts={**row.facts, "capacity": {"nvidia.com/gpu": 16_384}})
    of_gpus = group(shown(operator, "/fleet?node=l40s-0"), "l40s-0", "gpu")
    assert "0 of 16384 in use" in of_gpus
    assert of_gpus.count('class="gpu"') == 1


def test_a_node_says_how_many_units_of_a_resource_are_in_use(operator):
    pod("worker", {"nvidia.com/mig-1g.10gb": 4}, node="a100-0", namespace="elsewhere")
    assert '<td data-label="In use" class="number">4</td>' in shown(operator, "/fleet/nodes/local/a100-0")
