"""The page of an allocation: what to do with it is first, its examples are files, and it says what it waits for."""

from pathlib import Path

import pytest
import yaml
from playwright.sync_api import expect

from allocations.domain.phases import Phase
from tests.support.browser import PHONE, sign_in
from tests.support.pages import held, in_phase, requested

DESKTOP = {"width": 1280, "height": 800}


@pytest.mark.parametrize("size", [DESKTOP, {"width": 390, "height": 844}], ids=["desktop", "phone"])
def test_how_to_connect_is_in_sight_without_scrolling(open_page, member, project, size):
    row = held(requested(member, project, name="training"))
    page = sign_in(open_page(viewport=size), member)
    page.goto(f"/allocations/{row.pk}")
    expect(page.get_by_role("button", name="Download gpu-portal.kubeconfig")).to_be_in_viewport(ratio=1)


@pytest.mark.parametrize("scripts", [True, False], ids=["with scripts", "without scripts"])
def test_an_example_is_chosen_and_downloaded(open_page, member, project, scripts):
    row = held(requested(member, project, name="training"))
    page = sign_in(open_page(java_script_enabled=scripts), member)
    page.goto(f"/allocations/{row.pk}")
    expect(page.get_by_label("pod.yaml", exact=True)).to_be_visible()
    page.get_by_role("radio", name="PyTorch").check()
    expect(page.get_by_label("pytorch.yaml", exact=True)).to_contain_text("torch.cuda")
    expect(page.get_by_label("pod.yaml", exact=True)).to_be_hidden()
    with page.expect_download() as download:
        page.get_by_role("link", name="Download pytorch.yaml").click()
    assert download.value.suggested_filename == "pytorch.yaml"
    assert yaml.safe_load(Path(download.value.path()).read_text())["kind"] == "Job"


@pytest.mark.parametrize("scripts", [True, False], ids=["with scripts", "without scripts"])
def test_the_commands_are_those_of_the_chosen_example_and_tool(open_page, member, project, scripts):
    row = held(requested(member, project, name="training"))
    page = sign_in(open_page(java_script_enabled=scripts), member)
    page.goto(f"/allocations/{row.pk}")
    expect(page.get_by_label("kubectl for pod.yaml")).to_contain_text("kubectl logs -f pod/")
    page.get_by_role("radio", name="Python").check()
    page.get_by_role("radio", name="Deployment").check()
    expect(page.get_by_label("Python for deployment.yaml")).to_contain_text("portforward")
    expect(page.get_by_label("kubectl for deployment.yaml")).to_be_hidden()
    expect(page.get_by_label("Python for pod.yaml")).to_be_hidden()
    page.get_by_role("radio", name="CLI").check()
    expect(page.get_by_label("CLI for deployment.yaml")).to_contain_text("gpu-portal kubeconfig --project vision-train")


def test_what_waits_says_what_for_and_what_would_help(open_page, member, project):
    held(requested(member, project, count=4, name="training"))
    row = in_phase(
        requested(member, project, name="waits"),
        Phase.QUEUED,
        "WaitingForQuota",
        "The team has used its quota. It starts when 1 more GPU is free.",
    )
    page = sign_in(open_page(viewport=PHONE), member)
    page.get_by_role("link", name="waits", exact=True).click()
    live = page.locator("#live")
    expect(live).to_contain_text("It starts when 1 more GPU is free.")
    expect(live).to_contain_text("when training ends.")
    expect(live.get_by_text("What you can do:")).to_be_in_viewport()
    live.get_by_role("link", name="See what fits now").click()
    expect(page.locator("#preview")).to_contain_text("Will queue")
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), row.name
