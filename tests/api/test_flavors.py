"""Flavors are proposed by discovery and decided by operators."""

from fractions import Fraction
from io import StringIO

import pytest
from django.core.management import CommandError, call_command
from rest_framework.test import APIClient

from allocations.models import MirrorObject
from allocations.reconcile.inventory import reconcile_inventory
from portal.clusters.models import Cluster
from portal.core import clock
from portal.core.models import AuditEntry
from portal.tenants.models import PlatformRole
from quotas.catalog import selectors
from quotas.catalog.discovery import discover
from quotas.catalog.models import Flavor, Node, Offering
from quotas.catalog.sync import sync
from quotas.catalog.types import NodeFact
from tests.support.clusters import LOCAL
from tests.support.fleet import fleet
from tests.support.gpu_facts import plugin_node
from tests.support.people import client, person

pytestmark = pytest.mark.django_db
A_TRY = {"title": "For a first try", "group": "Development", "hidden": False}


@pytest.fixture
def proposed(team) -> Cluster:
    """Create the fleet, and a t4 without an operator's decision."""
    cluster = fleet(team)
    nodes = [plugin_node("l40s-0"), plugin_node("l40s-1"), plugin_node("t4-0", "Tesla-T4", memory="15360")]
    sync(cluster.slug, discover(nodes, []), {})
    return cluster


@pytest.fixture
def operator(proposed) -> APIClient:
    return client(person(platform_role=PlatformRole.OPERATOR))


def decide(api: APIClient, flavor: str, /, **decision: object):
    tag = api.get(f"/api/v1/flavors/{flavor}")["ETag"]
    return api.put(f"/api/v1/flavors/{flavor}", decision, format="json", headers={"If-Match": tag})


def offered(api: APIClient) -> set[str]:
    return {row["flavor"]["name"] for row in api.get("/api/v1/offerings").json()["results"]}


def test_what_is_new_is_proposed_and_not_offered(operator):
    states = {row["name"]: row["state"] for row in operator.get("/api/v1/flavors").json()["results"]}
    assert states == {"h100": "offered", "l40s": "offered", "t4": "proposed"}
    assert "t4" not in offered(operator)


def test_a_proposal_that_is_accepted_is_offered(operator):
    answer = decide(operator, "t4", accepted=True)
    assert (answer.status_code, answer.json()["state"]) == (200, "offered")
    assert "t4" in offered(operator)


def test_a_new_node_of_a_known_kind_needs_nobody(operator, proposed):
    nodes = [plugin_node(f"l40s-{n}") for n in range(3)]
    sync(proposed.slug, discover(nodes, []), {})
    (row,) = [r for r in operator.get("/api/v1/offerings").json()["results"] if r["id"] == "l40s/whole"]
    assert row["capacity"]["total"] == 12


def test_a_proposal_takes_another_name_with_all_that_hangs_on_it(operator, proposed):
    assert decide(operator, "t4", name="small").json()["name"] == "small"
    flavor = Flavor.objects.get(name="small")
    assert [pool.key for pool in flavor.pools.all()] == ["small/gpu"]
    assert [offering.key for offering in flavor.offerings.all()] == ["small/whole"]
    known, taken = selectors.known_names(proposed.slug)
    sync(proposed.slug, discover([plugin_node("t4-0", "Tesla-T4", memory="15360")], [], known, taken), {})
    assert not Flavor.objects.filter(name="t4").exists()


@pytest.mark.parametrize(
    ("name", "decision", "status", "words"),
    [
        ("l40s", {"name": "other"}, 409, "accepted under that name"),
        ("l40s", {"accepted": False}, 409, "1 limit and 1 quota change refer to it"),
        ("t4", {"name": "l40s"}, 400, "There is a flavor l40s already."),
        ("t4", {"name": "A B"}, 400, "Lower-case letters"),
        ("t4", {"start_deadline_s": 0}, 400, "greater than or equal to 1"),
        ("t4", {"memory_mib": 1}, 400, "It cannot be changed here"),
    ],
)
def test_what_cannot_be_decided_is_said(operator, name, decision, status, words):
    before = list(Flavor.objects.values())
    answer = decide(operator, name, **decision)
    assert answer.status_code == status
    assert words in answer.content.decode()
    assert list(Flavor.objects.values()) == before


def test_cpu_and_memory_of_a_gpu_are_decided_as_kubernetes_writes_them(operator):
    Flavor.objects.filter(name="l40s").update(node_cpu_millicores=15_190, node_memory_mib=126_443, node_pods=57)
    found = operator.get("/api/v1/flavors/l40s").json()
    most = {"cpu": "15190m", "memory": "126443Mi", "pods": 57}
    assert (found["cpu_per_gpu"], found["memory_per_gpu"]) == (None, None)
    assert (found["node_share"], found["node_share_max"]) == (most, most)

    decided = decide(operator, "l40s", cpu_per_gpu=12, memory_per_gpu="96Gi").json()
    assert (decided["cpu_per_gpu"], decided["memory_per_gpu"]) == ("12", "96Gi")
    assert decided["node_share"] == {"cpu": "12", "memory": "96Gi", "pods": 57}
    assert decided["node_share_max"] == most
    (offered,) = [r for r in operator.get("/api/v1/offerings").json()["results"] if r["id"] == "l40s/whole"]
    assert offered["node_share"] == {"cpu": "12", "memory": "96Gi", "pods": 16}

    assert decide(operator, "l40s", cpu_per_gpu=None, memory_per_gpu=None).json()["node_share"] == most


@pytest.mark.parametrize(
    ("decision", "words"),
    [
        ({"cpu_per_gpu": "16"}, "The smallest node of l40s has 15190m of CPU for each of its GPUs"),
        ({"memory_per_gpu": "1Ti"}, "The smallest node of l40s has 126443Mi of memory for each of its GPUs"),
        ({"cpu_per_gpu": "0"}, "Give 10m to 15190m"),
        ({"memory_per_gpu": 1}, "Give 16Mi to 126443Mi"),
        ({"cpu_per_gpu": "many"}, "“many” is no amount such as 1, 500m or 40Gi."),
        ({"cpu_per_gpu": True}, "Give an amount as Kubernetes writes it"),
        ({"memory_per_gpu": 1.5}, "Give an amount as Kubernetes writes it"),
        ({"cpu_millicores_per_gpu": 1000}, "There is no such field"),
    ],
)
def test_cpu_and_memory_that_no_node_has_are_refused_at_their_field(operator, decision, words):
    Flavor.objects.filter(name="l40s").update(node_cpu_millicores=15_190, node_memory_mib=126_443, node_pods=57)
    answer = decide(operator, "l40s", **decision)
    assert answer.status_code == 400
    assert words in answer.json()["errors"][next(iter(decision))][0]
    assert Flavor.objects.get(name="l40s").cpu_millicores_per_gpu is None


def test_hidden_ones_keep_their_title_and_group(operator):
    assert decide(operator, "l40s", **A_TRY).json()["group"] == "Development"
    assert decide(operator, "l40s", hidden=True).json()["state"] == "hidden"
    assert "l40s" not in offered(operator)
    assert operator.get("/api/v1/flavors/l40s").json()["title"] == "For a first try"


def test_a_change_names_what_it_changes(operator):
    assert operator.put("/api/v1/flavors/t4", {"accepted": True}, format="json").status_code == 428
    stale = {"If-Match": operator.get("/api/v1/flavors/t4")["ETag"]}
    decide(operator, "t4", title="T4")
    answer = operator.put("/api/v1/flavors/t4", {"accepted": True}, format="json", headers=stale)
    assert answer.status_code == 412


@pytest.mark.parametrize(("role", "status"), [(PlatformRole.AUDITOR, 403), ("", 403)])
def test_only_operators_decide(operator, role, status):
    other = client(person(platform_role=role))
    answer = other.put("/api/v1/flavors/t4", {"accepted": True}, format="json", headers={"If-Match": "*"})
    assert answer.status_code == status
    assert not Flavor.objects.get(name="t4").accepted


def test_a_flavor_that_is_none_is_404(operator):
    assert operator.get("/api/v1/flavors/none").status_code == 404


def test_an_operator_hides_one_offering_of_a_flavor_and_brings_it_back(operator):
    url = "/api/v1/offerings/h100/claim"
    seen = operator.get(url)
    assert seen.json() == {"id": "h100/claim", "hidden": False}
    assert operator.put(url, {"hidden": True}, format="json").status_code == 428
    made = operator.put(url, {"hidden": True}, format="json", headers={"If-Match": seen["ETag"]})
    assert made.json() == {"id": "h100/claim", "hidden": True}
    assert "h100/claim" not in {row["id"] for row in operator.get("/api/v1/offerings").json()["results"]}
    stale = operator.put(url, {"hidden": False}, format="json", headers={"If-Match": seen["ETag"]})
    assert stale.status_code == 412
    back = operator.put(url, {"hidden": False}, format="json", headers={"If-Match": made["ETag"]})
    assert back.json()["hidden"] is False
    assert operator.get("/api/v1/offerings/h100/none").status_code == 404


def test_an_accepted_flavor_to_which_nothing_refers_becomes_a_proposal_again(operator, proposed):
    decide(operator, "t4", accepted=True)
    answer = decide(operator, "t4", accepted=False)
    assert (answer.status_code, answer.json()["state"]) == (200, "proposed")
    assert "t4" not in offered(operator)
    entry = AuditEntry.objects.filter(action="flavor.configure").latest("pk")
    assert (entry.target, entry.before, entry.after) == ("t4", {"accepted": True}, {"accepted": False})


@pytest.fixture
def sliced(proposed) -> Cluster:
    """Create nodes with MIG by strategy single, of a GPU that no table lists."""
    node = plugin_node("x-0", "NVIDIA-X100-MIG-2g.48gb", {"nvidia.com/gpu": 6}, "49152", gpu_count="6")
    publish(node)
    reconcile_inventory(proposed.slug)
    return proposed


def publish(node: NodeFact) -> None:
    facts = {
        "labels": dict(node.labels),
        "allocatable": dict(node.allocatable),
        "capacity": dict(node.capacity),
        "taints": [list(taint) for taint in node.taints],
        "ready": True,
        "unschedulable": False,
    }
    seen = {"uid": node.name, "resource_version": 1, "facts": facts, "seen_at": clock.now()}
    MirrorObject.objects.create(cluster_id=LOCAL, kind="Node", name=node.name, **seen)


def test_how_a_gpu_is_divided_that_no_table_lists_is_set_and_audited(operator, sliced):
    assert "how NVIDIA-X100 is divided is not known" in Node.objects.get(name="x-0").problem
    assert operator.get("/api/v1/flavors/x100").json()["gpu_memory"] is None

    assert decide(operator, "x100", gpu_memory="192Gi", accepted=True).json()["gpu_memory"] == "192Gi"
    reconcile_inventory(sliced.slug)
    (row,) = [one for one in operator.get("/api/v1/offerings").json()["results"] if one["flavor"]["name"] == "x100"]
    assert (row["id"], row["gpu_share"], Node.objects.get(name="x-0").problem) == ("x100/mig-2g.48gb", "1/3", "")
    entry = AuditEntry.objects.filter(action="flavor.configure").latest("pk")
    assert (entry.before, entry.after) == (
        {"accepted": False, "gpu_memory_mib": None},
        {"accepted": True, "gpu_memory_mib": 196_608},
    )


def test_it_counts_for_the_other_slices_of_the_model_too(operator, sliced):
    decide(operator, "x100", gpu_memory="192Gi")
    publish(plugin_node("x-1", "NVIDIA-X100-MIG-1g.24gb", {"nvidia.com/gpu": 7}, "24576", gpu_count="7"))
    reconcile_inventory(sliced.slug)
    assert Offering.objects.get(profile="1g.24gb").gpu_share == Fraction(1, 7)


@pytest.mark.parametrize("amount", ["47Gi", "17Ti", "0", "much", "9E"])
def test_a_memory_that_cannot_be_is_refused_at_its_field(operator, sliced, amount):
    answer = decide(operator, "x100", gpu_memory=amount)
    assert (answer.status_code, list(answer.json()["errors"])) == (400, ["gpu_memory"])
    assert Flavor.objects.get(name="x100").gpu_memory_mib is None


def test_the_command_that_accepts_flavors_sets_it_too(sliced):
    call_command("accept_flavors", "x100", "--gpu-memory", "192Gi", stdout=StringIO())
    flavor = Flavor.objects.get(name="x100")
    assert (flavor.accepted, flavor.gpu_memory_mib) == (True, 196_608)
    with pytest.raises(CommandError, match="Give 48Gi to 16Ti"):
        call_command("accept_flavors", "x100", "--gpu-memory", "1Gi")
