"""The request form: its offerings, its messages before and after sending, and that it never requests twice."""

import re
from datetime import timedelta

import pytest

from allocations.capacity.headroom import Availability
from allocations.models import Allocation
from demo import prices
from frontend.presenters.offerings import pool_use
from frontend.presenters.phases import FITS
from frontend.presenters.refusals import chips
from portal.clusters.models import Cluster
from portal.core import clock
from portal.tenants.actors import SYSTEM
from portal.tenants.services import create_project
from quotas.catalog import services as catalog
from quotas.catalog.discovery import discover
from quotas.catalog.models import Flavor, Offering, Pool, Preset
from quotas.catalog.sync import sync
from quotas.limits import services as limits
from tests.support.claim_rows import h100_node
from tests.support.gpu_facts import divisible_gpu, dra_node, plugin_node, slices_of
from tests.support.pages import HTMX, browser_of, held, requested, text
from tests.support.people import person
from tests.support.quotas import cluster

pytestmark = pytest.mark.django_db


@pytest.fixture
def fleet(team):
    """Create four l40s, of which the team may hold two; four t4 in four parts each, of which it may hold none."""
    shared = plugin_node(
        "t4-0",
        "Tesla-T4",
        {"nvidia.com/gpu.shared": 16},
        "15360",
        gpu_replicas="4",
        gpu_sharing__strategy="time-slicing",
    )
    cluster(plugin_node("l40s-0"), shared)
    limits.set_limit(SYSTEM, team, Pool.objects.get(key="l40s/gpu"), 2)
    prices.price()


@pytest.fixture
def browser(member, project):
    return browser_of(member)


def form(browser, **values) -> dict[str, str]:
    """Return the values that the page's form sends when filled in with ``values``."""
    key = browser.get("/request").context["key"]
    filled = {"project": "vision-train", "offering": "l40s/whole", "count": "1", "length": "8", "key": key}
    return filled | values


def cell_words(browser, offering: str, **query: str) -> list[str]:
    page = text(browser.get("/request", query))
    row = next(row for row in page.split("<tr ") if f'value="{offering}"' in row).partition("</tr>")[0]
    return [" ".join(re.sub(r"<[^>]+>", "", cell.partition(">")[2]).split()) for cell in row.split("<td")[1:]]


def test_a_row_says_memory_price_and_what_is_free_for_one(fleet, browser):
    assert cell_words(browser, "l40s/whole") == [
        "Whole GPU",
        "45 GiB",
        "–",
        "–",
        "dedicated",
        "1.10",
        "2 of 2",
        "now",
    ]
    page = text(browser.get("/request"))
    assert "EUR/h</button>" in page
    assert "4 of 4 free · team limit 2" in page


def test_a_row_says_what_of_its_node_goes_with_a_slice(fleet, browser):
    Flavor.objects.update(node_cpu_millicores=15_190, node_memory_mib=126_443, node_pods=57)
    assert cell_words(browser, "l40s/whole")[2:4] == ["15.1", "123 GiB"]
    assert cell_words(browser, "t4/shared")[2:4] == ["3.7", "30 GiB"]


def test_the_preview_says_what_of_its_node_goes_with_all_slices(fleet, browser):
    Flavor.objects.update(node_cpu_millicores=15_190, node_memory_mib=126_443, node_pods=57)
    query = {"project": "vision-train", "offering": "l40s/whole", "count": "2", "length": "8"}
    part = text(browser.get("/request/preview", query, headers=HTMX))
    assert "With 30.3 CPU and 246 GiB of memory for its pods." in part


def test_pages_say_what_is_used_of_a_pool_that_offerings_share(team, project, member, browser):
    h100_node(team, 8)
    held(requested(member, project, "h100/mig-3g.40gb", 4))
    page = text(browser.get("/request"))
    assert "Team vision uses 2 of 8 GPUs of <code>h100/slices</code>. All slices of this pool share them: " in page
    assert 'data-number="1">MIG slice 3g.40gb 2</span><span class="key" data-number="0">left 6</span>' in page
    assert '<rect x="0" y="0" width="250" height="12" data-number="1"/>' in page
    assert cell_words(browser, "h100/whole")[6] == "6 of 8"
    assert "8 of 8 free · team limit 8" in page
    home = text(browser.get("/"))
    assert "<code>h100/slices</code> 2 of 8 GPUs used" in home
    assert "These offerings share the pool." in home


def test_what_is_used_of_no_quota_fills_its_bar(team, project, member):
    h100_node(team, 8)
    held(requested(member, project, "h100/mig-3g.40gb", 4))
    pool = Pool.objects.get(key="h100/slices")
    limits.set_limit(SYSTEM, team, pool, 0)
    use = pool_use(team, Availability([team], user=member), pool)
    assert (use.used, use.limit, use.meter) == ("2", 0, 100)


def test_what_cannot_be_had_stays_in_sight_disabled_and_with_the_reason(fleet, browser):
    page = browser.get("/request")
    offer = next(o for choice in page.context["choices"] for o in choice.offers if o.key.startswith("t4/"))
    assert offer.unavailable == "No quota for team vision"
    assert cell_words(browser, offer.key)[4:] == ["not isolated", "0.10", "No quota for team vision"]
    assert "Ask an operator for quota." in text(page)
    assert f'value="{offer.key}" disabled' in text(page)


def test_the_preview_says_price_and_fit_without_writing(fleet, browser):
    query = {"project": "vision-train", "offering": "l40s/whole", "count": "2", "length": "8"}
    part = text(browser.get("/request/preview", query, headers=HTMX))
    assert "Fits now" in part
    assert "2.20 EUR" in part
    assert "17.60 EUR" in part
    assert "curl" in part
    assert "<html" not in part
    assert not Allocation.objects.exists()


def test_the_preview_tells_a_queue_from_a_never(fleet, member, project, browser):
    held(requested(member, project, count=2))
    query = {"project": "vision-train", "offering": "l40s/whole", "length": "8"}
    queue = browser.get("/request/preview", query | {"count": "1"}, headers=HTMX)
    assert "Will queue" in text(queue)
    start = queue.context["seen"].expected_start
    assert f'until enough is free, expected at <time datetime="{start.isoformat()}"' in text(queue)
    never = text(browser.get("/request/preview", query | {"count": "3"}, headers=HTMX))
    assert "Does not fit" in never
    assert "Ask for at most 2" in never


def test_without_scripts_a_button_shows_the_same_preview(fleet, browser):
    page = text(browser.get("/request", form(browser, count="2", check="1")))
    assert "Fits now" in page
    assert "17.60 EUR" in page


@pytest.mark.parametrize("button", ["check", "filter", "more", "fewer"])
def test_without_scripts_the_token_of_the_form_does_not_get_into_an_address(fleet, browser, button):
    sent = form(browser, count="2", csrfmiddlewaretoken="secret", **{button: "1"})
    answer = browser.post("/request", sent)
    assert answer.status_code == 302
    assert "csrfmiddlewaretoken" not in answer["Location"]
    assert "key=" not in answer["Location"]
    assert "count=2" in answer["Location"]
    assert "17.60 EUR" in text(browser.get(answer["Location"]))
    assert not Allocation.objects.exists()
    assert "csrfmiddlewaretoken" not in browser.get("/request/preview", sent)["Location"]


def test_no_button_of_the_form_sends_it_by_get(fleet, browser):
    assert "formmethod" not in text(browser.get("/request"))


def test_the_preview_of_a_later_start_says_when_it_starts(fleet, browser):
    query = {"project": "vision-train", "offering": "l40s/whole", "count": "2", "length": "8"}
    start = clock.now() + timedelta(hours=2)
    later = text(browser.get("/request/preview", query | {"starts_at": f"{start:%Y-%m-%dT%H:%M}"}, headers=HTMX))
    assert "Will be scheduled" in later
    assert "Fits now" not in later
    assert "within seconds" not in later
    assert f'Starts <time datetime="{start:%Y-%m-%dT%H:%M}:00+00:00"' in later
    assert "Starts within seconds." in text(browser.get("/request/preview", query, headers=HTMX))


def test_an_alternative_is_shown_once(settings):
    one = {"offering": "l40s/whole", "count": 1, "hours": "8", "starts_at": None, "price": "8.80", "fits": "now"}
    shown = chips([one, one | {"fits": "queue"}, one | {"count": 2}], {"project": "vision-train"}, "EUR")
    assert [chip.text for chip in shown] == ["1 × l40s/whole", "2 × l40s/whole"]
    assert shown[0].badge == FITS["now"]


def test_a_request_leads_to_its_page_which_shows_it_queued(fleet, browser):
    response = browser.post("/request", form(browser, purpose="A try"), follow=True)
    row = Allocation.objects.get()
    assert response.redirect_chain == [(f"/allocations/{row.pk}", 302)]
    assert "Queued" in text(response)
    assert "A try" in text(response)


def test_labels_are_typed_as_pairs_and_shown_on_the_page(fleet, browser):
    response = browser.post("/request", form(browser, labels="stage=prod, app=train"), follow=True)
    assert Allocation.objects.get().labels == {"app": "train", "stage": "prod"}
    assert "app=train, stage=prod" in text(response)


@pytest.mark.parametrize(("labels", "words"), [("app", "Write key=value"), ("app=-", "not a valid value")])
def test_labels_that_cannot_be_are_said_at_their_field(fleet, browser, labels, words):
    response = browser.post("/request", form(browser, labels=labels))
    assert response.status_code == 400
    assert words in str(response.context["form"].errors["labels"])
    assert not Allocation.objects.exists()


@pytest.mark.parametrize("name", ["", "training"])
def test_the_same_form_sent_twice_asks_once(fleet, browser, name):
    filled = form(browser, name=name)
    first = browser.post("/request", filled)
    again = browser.post("/request", filled, follow=True)
    row = Allocation.objects.get()
    assert first["Location"] == f"/allocations/{row.pk}"
    assert again.redirect_chain == [(f"/allocations/{row.pk}", 302)]
    assert "This request was already submitted." in text(again)


def test_a_form_without_a_key_of_ours_asks_each_time(fleet, browser):
    for key in ("", "forged"):
        browser.post("/request", form(browser, key=key))
        browser.post("/request", form(browser, key=key))
    assert Allocation.objects.count() == 4


def test_the_previews_address_alone_leads_to_the_form(fleet, browser):
    assert browser.get("/request/preview?offering=l40s/whole")["Location"] == "/request?offering=l40s%2Fwhole"


def test_the_same_form_changed_asks_for_what_it_now_says(fleet, browser):
    filled = form(browser)
    browser.post("/request", filled)
    browser.post("/request", filled | {"count": "2"})
    assert sorted(Allocation.objects.values_list("count", flat=True)) == [1, 2]


def test_a_name_that_was_taken_before_is_said_at_its_field(fleet, member, project, browser):
    requested(member, project, name="training")
    response = browser.post("/request", form(browser, name="training", purpose="Keep this"))
    assert response.status_code == 409
    assert "The project vision-train has an allocation named training that has not ended." in str(
        response.context["form"].errors["name"]
    )
    assert "Keep this" in text(response)


def test_a_refusal_lists_all_that_binds_and_links_what_would_work(fleet, browser):
    response = browser.post("/request", form(browser, count="5", purpose="Keep this"))
    page = text(response)
    assert response.status_code == 409
    assert "capacity:l40s/whole" in page
    assert "team:l40s/gpu" in page
    assert "Ask for at most 2" in page
    assert "2 × l40s/whole" in page
    assert "Keep this" in page
    assert not Allocation.objects.exists()
    chip = response.context["refusal_chips"][0]
    prefilled = browser.get(chip.url)
    assert prefilled.context["form"]["count"].value() == "2"
    assert prefilled.context["chosen"] == "l40s/whole"
    assert prefilled.context["seen"].fits == "now"


@pytest.mark.parametrize(
    ("values", "field", "words"),
    [
        ({"offering": ""}, "offering", "Choose a GPU."),
        ({"count": "0"}, "count", "greater than or equal to 1"),
        ({"count": "many"}, "count", "whole number"),
        ({"count": "1000000"}, "count", "less than or equal to 1024"),
        ({"length": "custom"}, "hours", "Enter the hours"),
        ({"length": "custom", "hours": "-1"}, "hours", "greater than or equal to 0.01"),
        ({"length": "custom", "hours": "NaN"}, "hours", "Enter a number"),
        ({"name": "Not a label"}, "name", "lower-case letters"),
        ({"purpose": "x" * 501}, "purpose", "at most 500 characters"),
    ],
)
def test_bad_input_is_said_at_its_field_and_nothing_is_lost_or_written(fleet, browser, values, field, words):
    response = browser.post("/request", form(browser, **({"purpose": "Keep this"} | values)))
    assert response.status_code == 400
    assert words in str(response.context["form"].errors[field])
    assert values.get("purpose", "Keep this") in text(response)
    assert not Allocation.objects.exists()


def test_another_teams_project_is_not_found(fleet, browser, other_team):
    create_project(SYSTEM, other_team, "language-train", "Language training")
    assert browser.post("/request", form(browser, project="language-train")).status_code == 404


def test_an_unknown_offering_is_not_found(fleet, browser):
    assert browser.post("/request", form(browser, offering="b200/whole")).status_code == 404


def test_who_may_only_look_is_told_whom_to_ask(fleet, team, project):
    lead = person(team, "lead")
    viewer = browser_of(person(team, "viewer"))
    assert f"Ask for it: {lead.username}" in text(viewer.get("/request"))
    refused = viewer.post(
        "/request", {"project": "vision-train", "offering": "l40s/whole", "count": "1", "length": "8"}
    )
    assert refused.status_code == 403


def test_the_form_starts_in_the_project_of_the_last_request(fleet, team, member, project, browser):
    other = create_project(SYSTEM, team, "vision-dev", "Vision development")
    assert browser.get("/request").context["form"]["project"].value() == "vision-dev"
    requested(member, project)
    assert browser.get("/request").context["form"]["project"].value() == "vision-train"
    requested(member, other)
    assert browser.get("/request").context["form"]["project"].value() == "vision-dev"


@pytest.fixture
def cut_on_demand(team, fleet):
    """Create two cards that DRA divides on demand, all of them for the team."""
    made = Cluster.objects.get()
    slices = [slices_of("h100-0", *divisible_gpu(0), *divisible_gpu(1))]
    sync(made.slug, discover([dra_node()], slices), {})
    catalog.accept_flavor(SYSTEM, made.flavors.get(name="h100"))
    limits.set_limit(SYSTEM, team, Pool.objects.get(key="h100/slices"), 2)


def test_slices_are_asked_for_together_or_apart_in_words_that_rest_knows(cut_on_demand, browser):
    query = {"offering": "h100/mig-1g.10gb", "count": "2", "constraints": ["distinct_gpus"], "strategy": "TimeSlicing"}
    part = text(browser.get("/request/preview", {"project": "vision-train", "length": "8", **query}, headers=HTMX))
    assert "Fits now" in part
    assert "&quot;distinct_gpus&quot;: true" in part
    assert "&quot;strategy&quot;: &quot;TimeSlicing&quot;" in part


def on_several_nodes(browser, **values):
    """Return the summary of a request, with the addresses of its alternatives."""
    query = {"project": "vision-train", "length": "8", "offering": "h100/whole", **values}
    part = browser.get("/request/preview", query, headers=HTMX)
    return text(part), [chip.url for chip in part.context["chips"]]


def test_more_than_a_node_has_is_offered_on_several_nodes_with_one_click(cut_on_demand, team, browser):
    made = Cluster.objects.get()
    slices = [slices_of(f"h100-{n}", *divisible_gpu(0), *divisible_gpu(1)) for n in (0, 1)]
    sync(made.slug, discover([dra_node(), dra_node("h100-1")], slices), {})
    limits.set_limit(SYSTEM, team, Pool.objects.get(key="h100/slices"), 4)
    part, (first, *_) = on_several_nodes(browser, count="3")
    assert "3 × h100/whole on several nodes" in part
    assert part.index("Available alternatives") < part.index("What you can do")
    assert "per hour" not in part.partition('id="instead"')[0], "no price of what is refused"
    filled = browser.get(first).context["form"]
    assert (filled["spread"].value(), filled["count"].value()) == ("on", "3")
    assert "Does not fit" not in on_several_nodes(browser, count="3", spread="on")[0]
    values = {"project": "vision-train", "length": "8", "offering": "h100/whole", "count": "3"}
    refused = browser.post("/request", form(browser, **values))
    assert refused.context["refusal_chips"][0].is_spread


def test_what_fits_on_no_nodes_together_is_not_offered_on_several(cut_on_demand, browser):
    part, _ = on_several_nodes(browser, count="9")
    assert "on several nodes</a>" not in part
    assert "× h100/whole on several nodes" not in part


def test_constraints_that_exclude_each_other_are_said_to(cut_on_demand, browser):
    query = {"offering": "h100/mig-1g.10gb", "count": "2", "constraints": ["distinct_gpus", "same_gpu"]}
    part = text(browser.get("/request/preview", {"project": "vision-train", "length": "8", **query}, headers=HTMX))
    assert "“All on one GPU” and “Each on a separate GPU” exclude each other" in part


def test_slices_of_a_flavor_are_listed_the_largest_first(cut_on_demand, browser):
    (h100,) = [choice for choice in browser.get("/request").context["choices"] if choice.name == "h100"]
    kinds = [offer.kind for offer in h100.offers]
    assert kinds[:3] == ["Whole GPU", "MIG slice 7g.80gb", "MIG slice 1g.10gb"]
    assert [offer.isolation for offer in h100.offers[:2]] == ["dedicated GPU", "isolated in hardware"]


def test_what_looks_like_training_on_a_shared_slice_is_warned_of(team, fleet, browser):
    limits.set_limit(SYSTEM, team, Pool.objects.get(key="t4/gpu.shared"), 2)
    query = {"project": "vision-train", "offering": "t4/shared", "count": "1", "length": "8", "purpose": "fine-tune it"}
    part = text(browser.get("/request/preview", query, headers=HTMX))
    assert "Warning" in part
    assert "For training, use an isolated slice" in part
    assert "Available alternatives" in part


def test_it_says_that_hours_are_held_and_when_it_gives_up(fleet, browser):
    query = {"project": "vision-train", "offering": "l40s/whole", "count": "1", "length": "8"}
    part = text(browser.get("/request/preview", query, headers=HTMX))
    assert "Its time counts only while the GPUs are held." in part
    assert "Queue timeout: <time" in part


def test_a_time_to_give_up_is_sent_with_the_form(fleet, browser):
    until = clock.now() + timedelta(days=2)
    browser.post("/request", form(browser, give_up_at=f"{until:%Y-%m-%dT%H:%M}"))
    assert Allocation.objects.get().give_up_at == until.replace(second=0, microsecond=0)


def test_what_waits_can_be_asked_for_later_with_one_click(fleet, browser, member, project):
    holder = held(requested(member, project, count=2))
    assert holder.ends_at is not None
    assert f'<td class="next"><time datetime="{holder.ends_at.isoformat()}"' in text(browser.get("/request"))
    query = {"project": "vision-train", "offering": "l40s/whole", "count": "1", "length": "8"}
    [chip] = browser.get("/request", query).context["chips"]
    assert chip.starts_at == holder.ends_at + timedelta(minutes=1)
    page = browser.get(chip.url)
    sent = form(browser, length="custom", hours="8", starts_at=page.context["form"]["starts_at"].value())
    browser.post("/request", sent)
    later = Allocation.objects.exclude(pk=holder.pk).get()
    assert later.starts_at is not None
    assert later.starts_at >= holder.ends_at


@pytest.mark.parametrize("path", ["/request?offering=%00/claim", "/allocations?project=%00&phase=%00"])
def test_an_address_of_nonsense_is_answered(browser, fleet, path):
    assert browser.get(path).status_code == 200


def shown(browser, **filters: str) -> set[str]:
    """Return the offerings that the form shows with these filters."""
    found = browser.get("/request", filters).context["found"]
    return {offer.key for choice in found.choices for offer in choice.offers}


def test_offerings_are_filtered_by_model_memory_kind_price_and_what_is_available(fleet, browser):
    assert shown(browser) == {"l40s/whole", "t4/shared"}
    assert shown(browser, model="NVIDIA L40S") == {"l40s/whole"}
    assert shown(browser, memory="45") == {"l40s/whole"}
    assert shown(browser, kind="shared") == {"t4/shared"}
    assert shown(browser, price="0.25") == {"t4/shared"}
    assert shown(browser, now="1") == {"l40s/whole"}
    assert shown(browser, model="H200", memory="x", kind="y", price="-1") == {"l40s/whole", "t4/shared"}


def test_the_chosen_offering_stays_in_sight_whatever_the_filters_are(fleet, browser):
    assert shown(browser, kind="shared", offering="l40s/whole") == {"l40s/whole", "t4/shared"}


def test_filters_without_a_result_can_be_cleared(fleet, browser):
    page = text(browser.get("/request", {"kind": "shared", "now": "1"}))
    assert "No GPU matches the filters." in page
    assert '<a href="/request">Clear the filters</a>' in page


def test_many_mig_slices_are_folded_unless_one_is_chosen(cut_on_demand, browser):
    page = browser.get("/request")
    folded = [group.fold for group in page.context["found"].groups for offer in group.offers if offer.flavor == "h100"]
    assert folded == ["", "", *["2 MIG slices"] * 2]
    assert '<details class="mig">' in text(page)
    assert '<details class="mig" open>' in text(browser.get("/request", {"offering": "h100/mig-1g.10gb"}))


def test_a_preset_fills_the_form(fleet, browser):
    offering = Offering.objects.get(key="l40s/whole")
    catalog.save_preset(SYSTEM, Preset(), {"name": "Notebook", "offering": offering, "count": 2, "hours": 24})
    (link,) = browser.get("/request").context["presets"]
    assert (link.name, link.words) == ("Notebook", "2 × NVIDIA L40S, 24 h")
    page = browser.get(link.url)
    assert page.context["form"]["count"].value() == "2"
    assert page.context["chosen_words"] == "2 × NVIDIA L40S, 24 h, vision-train"
    assert page.context["seen"].fits == "now"
    assert page.context["presets"][0].is_chosen


def test_presets_of_what_the_team_cannot_have_are_left_out(fleet, browser):
    for name, key, hidden in (("A", "t4/shared", False), ("B", "l40s/whole", True)):
        offering = Offering.objects.get(key=key)
        catalog.save_preset(SYSTEM, Preset(), {"name": name, "offering": offering, "hidden": hidden})
    assert browser.get("/request").context["presets"] == []


def test_the_last_request_can_be_repeated(fleet, browser, member, project):
    requested(member, project, count=2, hours="5")
    (link,) = browser.get("/request").context["presets"]
    assert (link.name, link.words) == ("Last request", "2 × NVIDIA L40S, 5 h")
    page = browser.get(link.url)
    assert page.context["chosen_words"] == "2 × NVIDIA L40S, 5 h, vision-train"


def test_what_is_beside_the_button_says_whether_the_request_is_refused(fleet, browser):
    query = {"project": "vision-train", "length": "8", "offering": "l40s/whole"}
    for count, words in (("1", "1 × NVIDIA L40S, 8 h"), ("5", "Does not fit: 5 × NVIDIA L40S, 8 h")):
        answer = browser.get("/request/preview", {**query, "count": count}, headers=HTMX)
        assert answer.context["chosen_words"].startswith(words)


def test_the_summary_says_what_is_chosen(fleet, browser):
    query = {"project": "vision-train", "offering": "l40s/whole", "count": "2", "length": "8"}
    part = text(browser.get("/request/preview", query, headers=HTMX))
    assert '<span id="chosen" hx-swap-oob="innerHTML">2 × NVIDIA L40S, 8 h, vision-train</span>' in part
    assert '<strong id="chosen-price" hx-swap-oob="innerHTML">17.60 EUR</strong>' in part


def order(browser, sort: str) -> list[str]:
    groups = browser.get("/request", {"sort": sort}).context["found"].groups
    return [offer.key for group in groups for offer in group.offers]


def test_the_table_is_sorted_by_any_column_and_then_folds_nothing(cut_on_demand, browser):
    assert order(browser, "rate")[:2] == ["t4/shared", "l40s/whole"], "what has no price is last"
    assert order(browser, "-rate")[:2] == ["l40s/whole", "t4/shared"]
    assert order(browser, "vram")[0] == "h100/mig-1g.10gb"
    assert len(browser.get("/request?sort=free").context["found"].groups) == 1
    page = text(browser.get("/request?sort=-rate"))
    assert 'class="number" aria-sort="descending"><button' in page
    assert '<details class="mig">' not in page


def test_without_scripts_a_head_sorts_and_keeps_what_is_typed(fleet, browser):
    answer = browser.post("/request", form(browser, count="2", sort="", sort_by="-rate"))
    page = browser.get(answer["Location"])
    assert page.context["found"].sorting.column.name == "rate"
    assert page.context["form"]["count"].value() == "2"
    assert not Allocation.objects.exists()


FIELDS = {
    **{"offering": "h100/mig-1g.10gb", "count": "2", "length": "custom", "hours": "5", "name": "again"},
    **{"priority": "batch", "spread": "on", "strategy": "TimeSlicing", "interval": "Short", "labels": "app=train"},
    **{"purpose": "fine-tune", "starts_at": "2030-01-02T10:00", "give_up_at": "2030-01-03T10:00"},
}


def test_the_link_to_a_request_restores_every_field(cut_on_demand, browser):
    sent = {
        "project": "vision-train",
        **FIELDS,
        "constraints": ["same_gpu", "distinct_gpus"],
        "kind": "mig",
        "sort": "vram",
    }
    link = browser.get("/request", sent).context["link"]
    page = browser.get(link)
    shown = {name: page.context["form"][name].value() for name in FIELDS}
    assert shown == FIELDS
    assert page.context["form"]["constraints"].value() == ["same_gpu", "distinct_gpus"]
    for parameter in ("kind=", "sort=", "csrf", "key="):
        assert parameter not in link


def test_a_request_is_kept_as_a_preset_shown_and_removed(fleet, browser):
    sent = form(browser, count="2", length="24", purpose="fine-tune", preset="Nightly")
    page = browser.post("/request/presets", sent, follow=True)
    assert "Preset Nightly saved." in text(page)
    (link,) = page.context["presets"]
    assert (link.name, link.words, link.is_chosen) == ("Nightly", "2 × NVIDIA L40S, 24 h", True)
    filled = browser.get(link.url).context["form"]
    assert (filled["count"].value(), filled["purpose"].value()) == ("2", "fine-tune")
    again = browser.post("/request/presets", sent, follow=True)
    assert "You have a preset Nightly already." in text(again)
    gone = browser.post(f"/request/presets/{link.id}/remove", {"query": "count=2"}, follow=True)
    assert "Preset Nightly removed." in text(gone)
    assert gone.context["presets"] == []
    assert gone.context["form"]["count"].value() == "2"


def test_what_is_no_request_is_not_kept_and_says_why(fleet, browser):
    page = browser.post("/request/presets", form(browser, offering="", preset="Nothing"), follow=True)
    assert "Choose a GPU." in text(page)
    assert not Preset.objects.exists()


def test_another_persons_preset_is_neither_shown_nor_removed(fleet, team, browser):
    browser.post("/request/presets", form(browser, preset="Mine"))
    other = browser_of(person(team))
    assert other.get("/request").context["presets"] == []
    assert other.post(f"/request/presets/{Preset.objects.get().pk}/remove").status_code == 404
