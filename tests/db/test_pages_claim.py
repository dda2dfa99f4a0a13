"""The fields of a custom claim on the request form: from a flavor's device schema, without a script."""

import re

import pytest

from allocations.models import Allocation
from frontend.presenters.claims import requested
from quotas.catalog.models import Flavor
from tests.support.claim_rows import h100_node
from tests.support.pages import HTMX, browser_of, text
from tests.support.people import person

pytestmark = pytest.mark.django_db
ASK = {"project": "vision-train", "offering": "h100/claim", "count": "1", "length": "8"}
ROWS = "row-TOTAL_FORMS"
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
    assert "CPU and RAM of h100/claim are those of the devices that match." in text(browser.get("/request"))
    part = text(
        browser.get(
            "/request/preview", ASK | {ROWS: "1", "row-0-device": "mig", "row-0-profile": "3g.40gb"}, headers=HTMX
        )
    )
    assert "With 11.5 CPU and 117 GiB of memory for its pods." in part


def test_rows_come_and_go_without_a_script(browser):
    more = browser.get("/request", ASK | {ROWS: "1", "more": "1", "row-0-count": "3"})
    assert [row["count"].value() for row in more.context["claim"]["rows"]] == ["3", "1"]
    assert re.findall(r"<h2>(Request \d)</h2>", text(more)) == ["Request 1", "Request 2"]
    fewer = browser.get("/request", ASK | {ROWS: "2", "fewer": "1"}).context["claim"]["rows"]
    assert len(fewer) == 1
    for nonsense in ("", "-1", "99999", "²", "x"):
        assert len(browser.get("/request", ASK | {ROWS: nonsense}).context["claim"]["rows"]) in range(1, 9)


def test_two_gpus_below_one_root(browser):
    claim = claim_of(browser, **{ROWS: "1", "row-0-device": "gpu", "row-0-count": "2", "bind": f"match:{ROOT}"})
    assert claim["requests"] == [{"device": "gpu", "count": 2}]
    assert claim["constraints"] == [{"match_attribute": ROOT}]
    assert claim["built"]["units"] == {"gpu-portal.io/compute-slices": 14, "gpu-portal.io/memory-slices": 16}


def test_the_page_of_a_claim_says_what_it_requests(browser):
    claim_of(browser, **{ROWS: "2", "row-0-count": "2", "row-1-device": "mig", "row-1-profile": "3g.40gb"})
    row = Allocation.objects.get()
    words = "NVIDIA H100 80GB HBM3, custom claim: 2 × whole GPU, 1 × MIG slice 3g.40gb"
    for path in ("/", f"/allocations/{row.pk}", f"/allocations/{row.pk}/release"):
        page = text(browser.get(path))
        assert words in page
        assert "1 × NVIDIA H100" not in page
    assert "custom claim: 2 × whole GPU" in text(browser.get("/allocations"))


@pytest.mark.parametrize(
    ("request_", "words"),
    [
        ({}, "1 × whole GPU"),
        ({"count": "all"}, "all whole GPUs of a node"),
        ({"alternatives": [{"count": 2}, {"device": "mig"}]}, "2 × whole GPU or 1 × MIG slice"),
    ],
)
def test_a_claim_in_words(request_, words):
    assert requested({"requests": [request_]}) == words


def test_conditions_alternatives_tolerations_and_sharing(browser):
    claim = claim_of(
        browser,
        **{
            ROWS: "3",
            "row-0-device": "mig",
            "row-0-profile": "3g.40gb",
            "row-1-instead": "on",
            "row-1-device": "mig",
            "row-1-c0-name": "quantity:memory",
            "row-1-c0-operator": ">=",
            "row-1-c0-value": "19Gi",
            "row-1-c1-name": "int:resource.kubernetes.io/numaNode",
            "row-1-c1-operator": "in",
            "row-1-c1-value": "0, 1",
            "row-2-device": "mig",
            "row-2-profile": "1g.10gb",
            "row-2-tolerate": "gpu.nvidia.com/xid",
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
    answer = browser.post("/request", ASK | {"key": key, ROWS: "1", "row-0-count": "lots"})
    assert answer.status_code == 400
    assert "Request 1, count: " in text(answer)
    assert 'value="lots"' in text(answer)


def test_what_is_refused_of_a_claim_is_said_in_the_words_of_the_form(browser):
    ask = ASK | {ROWS: "1", "row-0-c0-name": "quantity:memory", "row-0-c0-operator": ">="}
    part = text(browser.get("/request/preview", ask | {"row-0-c0-value": "200Gi"}, headers=HTMX))
    assert "Request 1: No gpu here has memory &gt;= 200Gi." in part
    assert "EUR" not in part.partition('id="instead"')[0]
    unclear = text(browser.get("/request/preview", ask | {"row-0-c0-value": "lots"}, headers=HTMX))
    assert "Request 1, capacity 1, value: " in unclear
    typed = {"row-0-c0-name": "int:resource.kubernetes.io/numaNode", "row-0-c0-operator": "==", "row-0-c0-value": "x"}
    assert "Request 1, attribute 1, value: Give a whole number.<" in text(
        browser.get("/request/preview", ASK | {ROWS: "1"} | typed, headers=HTMX)
    )


def test_conditions_come_back_as_they_were_typed(browser):
    typed = {"row-0-c0-name": "quantity:memory", "row-0-c0-operator": "<=", "row-0-c0-value": "lots"}
    page = text(browser.get("/request", ASK | {ROWS: "1", "more": "1"} | typed))
    assert re.findall(r'<option value="([^"]+)" selected', page.split('id="claim"')[1].split('id="id_bind"')[0]) == [
        *("gpu", "quantity:memory", "&lt;=", "=="),
        *("gpu", "==", "=="),
    ]
    assert 'value="lots"' in page


def test_the_preview_tells_price_and_fit_of_a_claim(browser):
    part = text(browser.get("/request/preview", ASK | {ROWS: "1", "row-0-count": "2"}, headers={"HX-Request": "true"}))
    assert "Fits now" in part
    assert "6.40 EUR" in part
    assert "&quot;claim&quot;" in part


def test_only_operators_see_and_may_use_cel(browser, team):
    values = ASK | {ROWS: "1", "row-0-cel": "true"}
    assert "for operators only" in text(browser.get("/request/preview", values, headers={"HX-Request": "true"}))
    operator = browser_of(person(team, platform_role="operator"))
    assert "row-0-cel" in text(operator.get("/request", ASK))


def test_each_request_says_how_many_devices_match_and_the_yaml_is_beside(browser):
    two = {ROWS: "2", "row-0-count": "2", "row-1-device": "mig", "row-1-profile": "3g.40gb"}
    page = browser.get("/request", ASK | two)
    assert page.context["matches"] == ["Matches 8 devices.", "Matches 16 devices."]
    assert "kind: ResourceClaim" in page.context["claim_yaml"]
    assert "deviceClassName: mig.nvidia.com" in page.context["claim_yaml"]
    part = text(browser.get("/request/preview", ASK | two, headers=HTMX))
    assert '<p id="matches-1" hx-swap-oob="innerHTML">Matches 16 devices.</p>' in part
    assert "kind: ResourceClaim" in part


def test_values_are_chosen_from_what_devices_publish(browser):
    typed = {ROWS: "1", "row-0-c0-name": f"string:{ROOT}"}
    part = text(browser.get("/request/preview", ASK | typed, headers=HTMX))
    values = part.split('<datalist id="values-row-0-c0">')[1].split("</datalist>")[0]
    assert '<option value="pci0000:10">' in values
    assert 'list="values-row-0-c0"' in text(browser.get("/request", ASK))


def test_attributes_are_grouped_by_the_devices_that_publish_them(browser):
    page = text(browser.get("/request", ASK))
    of_mig = page.split('<optgroup label="MIG slices only">')[1].split("</optgroup>")[0]
    assert 'value="string:profile"' in of_mig


def test_a_profile_is_not_asked_of_a_whole_gpu(browser):
    assert "profile" not in claim_of(browser, **{ROWS: "1", "row-0-profile": "3g.40gb"})["requests"][0]
