"""The fields of a custom claim on the request form: from a flavor's device schema, without a script."""

import pytest

from allocations.models import Allocation
from quotas.catalog.models import Flavor
from tests.support.claim_rows import h100_node
from tests.support.pages import HTMX, browser_of, text
from tests.support.people import person

pytestmark = pytest.mark.django_db
ASK = {"project": "vision-train", "offering": "h100/claim", "count": "1", "length": "8"}
ROOT = "resource.kubernetes.io/pcieRoot"


@pytest.fixture
def browser(team, project):
    h100_node(team)
    return browser_of(person(team))


def claim_of(browser, **values: str):
    """Return the claim that the form with these values requests."""
    key = browser.get("/request").context["key"]
    answer = browser.post("/request", ASK | {"key": key} | values)
    assert answer.status_code == 302, text(answer)
    return Allocation.objects.get().claim


def test_the_fields_are_there_once_a_claim_is_chosen(browser):
    assert browser.get("/request").context["claim"] is None
    page = browser.get("/request", ASK)
    names = {word["name"] for word in page.context["claim"]["names"]}
    assert {"memory", "productName", ROOT} <= names
    assert "3g.40gb" in page.context["claim"]["profiles"]
    assert "CEL" not in text(page).split('id="claim"')[1].split('id="id_bind"')[0]


def test_its_share_of_cpu_and_memory_follows_what_it_takes(browser):
    Flavor.objects.update(node_cpu_millicores=23_000, node_memory_mib=240_000, node_pods=28)
    assert "With CPU and memory of its node by what it takes." in text(browser.get("/request"))
    part = text(
        browser.get("/request/preview", ASK | {"rows": "1", "d0-device": "mig", "d0-profile": "3g.40gb"}, headers=HTMX)
    )
    assert "With 11.5 CPU and 117 GiB of memory for its pods." in part


def test_rows_come_and_go_without_a_script(browser):
    more = browser.get("/request", ASK | {"rows": "1", "more": "1", "d0-count": "3"}).context["claim"]["rows"]
    assert [(row.number, row.count) for row in more] == [(1, "3"), (2, "1")]
    fewer = browser.get("/request", ASK | {"rows": "2", "fewer": "1"}).context["claim"]["rows"]
    assert len(fewer) == 1
    for nonsense in ("", "-1", "99999", "²", "x"):
        assert len(browser.get("/request", ASK | {"rows": nonsense}).context["claim"]["rows"]) <= 8


def test_two_gpus_below_one_root(browser):
    claim = claim_of(browser, **{"rows": "1", "d0-device": "gpu", "d0-count": "2", "bind": f"match:{ROOT}"})
    assert claim["requests"] == [{"device": "gpu", "count": 2}]
    assert claim["constraints"] == [{"match_attribute": ROOT}]
    assert claim["built"]["units"] == {"gpu-portal.io/compute-slices": 14, "gpu-portal.io/memory-slices": 16}


def test_conditions_alternatives_tolerations_and_sharing(browser):
    claim = claim_of(
        browser,
        **{
            "rows": "3",
            "d0-device": "mig",
            "d0-profile": "3g.40gb",
            "d1-instead": "on",
            "d1-device": "mig",
            "d1-c0-name": "quantity:memory",
            "d1-c0-operator": ">=",
            "d1-c0-value": "19Gi",
            "d1-c1-name": "int:resource.kubernetes.io/numaNode",
            "d1-c1-operator": "in",
            "d1-c1-value": "0, 1",
            "d2-device": "mig",
            "d2-profile": "1g.10gb",
            "d2-tolerate": "gpu.nvidia.com/xid",
            "strategy": "TimeSlicing",
        },
    )
    first, second = claim["requests"]
    assert first["alternatives"][0] == {"device": "mig", "count": 1, "profile": "3g.40gb"}
    assert first["alternatives"][1]["capacities"] == [{"name": "memory", "operator": ">=", "value": "19Gi"}]
    assert first["alternatives"][1]["attributes"] == [
        {"name": "resource.kubernetes.io/numaNode", "operator": "in", "value": [0, 1]}
    ]
    assert second["tolerations"] == [{"key": "gpu.nvidia.com/xid", "operator": "Exists"}]
    assert claim["config"] == [{"sharing": {"strategy": "TimeSlicing"}}]


def test_what_is_wrong_is_said_at_its_place_and_nothing_typed_is_lost(browser):
    key = browser.get("/request").context["key"]
    answer = browser.post("/request", ASK | {"key": key, "rows": "1", "d0-count": "lots"})
    assert answer.status_code == 400
    assert "Request 1, count: " in text(answer)
    assert 'value="lots"' in text(answer)


def test_the_preview_tells_price_and_fit_of_a_claim(browser):
    part = text(browser.get("/request/preview", ASK | {"rows": "1", "d0-count": "2"}, headers={"HX-Request": "true"}))
    assert "Fits now" in part
    assert "6.40 EUR" in part
    assert "&quot;claim&quot;" in part


def test_only_operators_see_and_may_use_cel(browser, team):
    values = ASK | {"rows": "1", "d0-cel": "true"}
    assert "for operators only" in text(browser.get("/request/preview", values, headers={"HX-Request": "true"}))
    operator = browser_of(person(team, platform_role="operator"))
    assert "d0-cel" in text(operator.get("/request", ASK))
