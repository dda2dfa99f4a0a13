"""A custom claim in the browser: its rows come and go, with scripts and without, and keep what was typed; the summary
follows.
"""

import re

import pytest
from playwright.sync_api import expect

from tests.support.browser import sign_in
from tests.support.claim_rows import h100_node

TWO_DEVICES = re.compile('"device".*"device"', re.DOTALL)


@pytest.mark.parametrize("scripts", [True, False], ids=["with scripts", "without scripts"])
def test_adds_and_removes_requests_of_a_claim_and_keeps_what_was_typed(open_page, team, member, scripts):
    h100_node(team)
    page = sign_in(open_page(java_script_enabled=scripts), member)
    page.goto("/request" if scripts else "/request?offering=h100/claim")
    page.get_by_role("radio", name="h100/claim").check()
    first, second = (page.get_by_role("region", name=f"Request {number}", exact=True) for number in (1, 2))
    first.get_by_label("How many").fill("2")
    first.get_by_label("Attribute").first.select_option("quantity:memory")
    first.get_by_label("Operator").first.select_option("at least")
    first.get_by_label("Value").first.fill("40Gi")
    page.get_by_role("button", name="Add request").click()
    expect(second.get_by_label("How many")).to_have_value("1")
    expect(page.locator("#curl")).to_have_text(TWO_DEVICES)
    expect(second.get_by_label("Device", exact=True)).to_be_focused()
    assert "csrfmiddlewaretoken" not in page.url
    expect(first.get_by_label("How many")).to_have_value("2")
    expect(first.get_by_label("Operator").first).to_have_value(">=")
    expect(first.get_by_label("Value").first).to_have_value("40Gi")
    page.get_by_role("button", name="Remove last request").click()
    expect(second).to_have_count(0)
    expect(page.get_by_role("button", name="Add request")).to_be_focused()
    expect(page.locator("#curl")).not_to_have_text(TWO_DEVICES)
    expect(first.get_by_label("Attribute").first).to_have_value("quantity:memory")
