"""Pages and messages speak in the field's words: none of these phrases, which the portal once used, comes back."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PACKAGES = ("frontend", "allocations", "quotas", "portal")
PHRASES = {
    "to get now": "available now",
    "May borrow": "Borrowing limit",
    "May lend": "Lending limit",
    "What it comes to": "Summary",
    "The same over REST": "API request",
    "Asked for. This page follows it": "Request submitted.",
    "Who competes how": "Fair sharing and preemption",
    "Takes back from others": "Reclaims from other teams",
    "Pushes out of its own queue": "Preempts within its queue",
    " is there.": "created.",
    "as you said": "Saved.",
    "Make it": "Create",
    "Make a token": "Create token",
    "has asked for a GPU yet": "No allocations yet.",
    "seen gone": "until they are released",
    "You hold no GPU": "You have no active or queued GPUs.",
    "What team ": "Team quota: vision",
    "Who waits in": "Team queue",
    "if held to the end": "if you keep it the full time",
    "Its time runs from now": "The clock starts now",
    "Think twice": "Warning",
    "A fault of one": "A crash in one workload can stop the others.",
    "a count, no device is named": "Counted only, no device IDs",
    "you see which devices": "You see the exact devices",
    "a card of its own": "Dedicated GPU",
    "GPU of its own": "Each on a separate GPU",
    "Own DRA claim": "Custom device claim (DRA)",
    "Your own claim": "Custom device claim (DRA)",
    "Where slices stand": "Placement and sharing",
    "as they come": "No constraint",
    "each with another {{": "all different X",
    "Threads of each": "MPS thread limit (%)",
    "Without the last": "Remove last request",
    "with one click": "Available alternatives",
    "The slices are held.": "Your GPUs are ready.",
    "stand here": "Devices appear here once assigned.",
    "Use it": "Connect",
    "A pod that runs as it is": "Example pod",
    "Shown by": "Source: Workload …",
    "End asked for": "Release requested by ada",
    "Released by a person": "Released by ada",
    "Leave it": "Cancel",
    "Keep it": "Cancel",
    "takes its quota back": "reclaims its quota",
    "Handed to the queue": "Submitted to the team queue.",
    "enough of it is given back": "Starts when 1 more GPU is free.",
    "Has quota now": "Running",
    "How it stands": "Details",
    "At once": "Quota",
    "no bound": "Unlimited",
    "Look what it does": "Preview changes",
    "Set it<": "Apply",
    "Take away": "Remove",
    "are promised": "allocated to teams",
    "counted from the request on": "Project and member limits also count queued requests.",
    "viewer: reads": "Viewer: can view",
    "lead: everyone's too": "Lead: manages members and all requests",
    "It stays for good": "Cannot be changed later.",
    "Did what": "Action",
    "To what": "Target",
    ">From where": "Source",
    "as they should be": "in sync",
    "put back within a sweep": "Manual changes are reverted automatically.",
    "Guard of ": "Admission guard: X",
    ">Tenants<": "Organization",
    "hardly meant": "probably unintended",
    "whatever becomes of them": "guarantees processing",
    "name nobody": "Jobs submitted with kubectl belong to no person.",
    "held by nobody": "Idle",
    "days of my choice": "custom days",
    "Nothing of yours": "You have no running allocations.",
    "Nothing to save": "No savings found in this period.",
    "The same as data": "API request",
    "still to come": "in the future",
    "It will be; until then": "Choose a shorter period, or try again later.",
    "that were ever set": "All prices",
    "What is wrong": "Problem",
    "nobody saw it": "estimated",
    "Nobody recorded": "was not recorded",
    "exact inside": "Amounts are rounded so that the rows add up to the total.",
    "with whose unused": "with the owner of the unused quota",
    "Amounts are exact": "Amounts are rounded",
    "Charged to nobody": "Not charged to any team.",
    "what nobody held": "for unallocated capacity",
    "Something idle": "Some idle GPUs have no price",
    "less what is charged": "in use minus charged",
    "of GPUs less": "GPU cost minus GPU price",
    "Rest of nodes": "Node costs other than GPUs",
    "all the time that it was held": "the whole time it was held",
    "How much of it no pod used": "Unused cost is not known",
    "with its part of bills": "including its share of bills",
    "from the first hold": "from start to end",
    "8 of 10 cases": "80 % range",
    "Bills cover nothing": "No bill covers these months yet.",
    "of this time fails": "No failing hours in this period.",
    ">Each hour<": "Per hour",
    "Who holds a slice then": "Running allocations pay the new price",
    "Of a cost that is split": "Only if the cost is split evenly.",
    "Whose GPUs share": "Cluster whose GPUs share the cost.",
    "Of the whole month": "Total of the month.",
    " is no window": "is not a valid window",
    " is no time": "is not a valid time",
    " is no key": "is not a valid key",
    " is no month": "is not a valid month",
    "is no text in": "is not UTF-8 text",
    "write the table below": "paste its rows below",
    "Set the term of a node": "Set a node term",
    "no node: counted": "Node not known (device plugin)",
    "ithout allocation": "unmanaged",
    "Not usable": "Unavailable",
    " unit-hours<": "GPU-hours",
    " units\n": "slices, nvidia.com/gpu or GPU-hours",
    "waiting does not count": "8 h from start",
    ", once active": "from start",
    "If they are not held by": "Queue timeout",
    ">Holder<": "Applies to",
    ">Scope<": "Resource",
    "resource version": "resourceVersion",
    "lice by time-slicing": "Time-sliced, 1 of 4 replicas",
    " shared by {": "15 GiB shared",
    ", a slice": "h100/whole",
    "names no GPU of these": "Device plugin: no GPU identity",
    "is on no node": "A reservation without a pod is not placed yet",
    "Unfinished pods of no": "Pods outside allocations",
    "Object limits": "Object count quota (ResourceQuota)",
    "Mirror of": "Cluster cache: in sync",
    "Last worked": "heartbeat 12 s ago",
    "not recorded for": "1 metering gap, < 1 min",
    "Proof of the ledger": "Reconciliation",
    "Everything together": "Total",
    "This is a part of": "Filtered",
    "decided and priced": "No proposed flavors",
    "Invite the first person": "Add the first member",
    "Resource version": "resourceVersion",
}
"""A phrase of the past, and the field's words for it."""
PARTS = "_?cost|_?my_cost|price|bill|proof|saving|_not_priced|_dated_lines|_fleet_hours|_strip|_period|_zone"
COSTS = re.compile(f"/({PARTS})")
"""The templates of the pages of costs."""
UTC_DAY = re.compile(r"\(UTC\)|\|date:|strftime")
"""A day or a time that is not in the reader's zone."""
UTC_MONTHS = {"bills.html", "_dated_lines.html"}
"""Bills and fixed costs are of months of UTC, for everybody."""
BUTTON = re.compile(r"<button[^>]*>(?:\{% icon [^%]*%\} )?([^<{]+)")
VERBS = {
    "Show",
    "Add",
    "Apply",
    "Save",
    "Delete",
    "Preview",
    "Check",
    "Choose",
    "Set",
    "Enter",
    "Import",
    "Release",
    "Withdraw",
}
SUM = re.compile(r">Sum<")
IN_TEXT = re.compile(r"\s")
"""Only a string with a space is a sentence or a label; others are names."""


def templates() -> Iterator[tuple[Path, str]]:
    for path in sorted(ROOT.glob("*/**/templates/**/*.html")):
        yield path, path.read_text(encoding="utf-8")


def strings(path: Path) -> str:
    """Return the module's strings without its docstrings, one a line; of an f-string its fixed parts."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    docs = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    found = [node.value for node in ast.walk(tree) if isinstance(node, ast.Constant) and id(node) not in docs]
    return "\n".join(text for text in found if isinstance(text, str) and IN_TEXT.search(text))


def modules() -> Iterator[tuple[Path, str]]:
    for package in PACKAGES:
        for path in sorted((ROOT / package).rglob("*.py")):
            if "migrations" not in path.parts:
                yield path, strings(path)


@pytest.fixture(scope="module")
def texts() -> dict[str, str]:
    scripts = [(path, path.read_text(encoding="utf-8")) for path in sorted((ROOT / "frontend/static").rglob("js/*.js"))]
    return {str(path.relative_to(ROOT)): text for path, text in [*templates(), *modules(), *scripts]}


def test_it_reads_what_people_read(texts: dict[str, str]) -> None:
    assert "Your GPUs are ready." in texts["allocations/domain/phases.py"]
    assert "Team quota: " in texts["frontend/templates/frontend/home/team_quota.html"]
    assert "Return" not in texts["frontend/poll_version.py"], "no docstring"


@pytest.mark.parametrize("phrase", PHRASES)
def test_no_page_and_no_message_has_a_phrase_of_the_past(phrase: str, texts: dict[str, str]) -> None:
    found = [path for path, text in texts.items() if phrase in text]
    assert not found, f"{phrase!r}: say {PHRASES[phrase]!r}"


@pytest.fixture(scope="module")
def cost_pages(texts: dict[str, str]) -> dict[str, str]:
    """Return the templates of the pages of costs by name."""
    return {Path(path).name: text for path, text in texts.items() if path.endswith(".html") and COSTS.search(path)}


def test_the_pages_of_costs_are_read(cost_pages: dict[str, str]) -> None:
    assert {"costs.html", "cost_assets.html", "savings.html", "proof.html", "prices.html", "bills.html"} <= set(
        cost_pages
    )
    assert {"_my_cost.html", "price_form.html", "price_import.html", "costs_fleet.html"} <= set(cost_pages)


def test_days_and_times_of_costs_are_in_the_readers_zone(cost_pages: dict[str, str]) -> None:
    assert [name for name, text in cost_pages.items() if UTC_DAY.search(text) and name not in UTC_MONTHS] == []


def test_a_period_of_costs_is_shown_with_its_zone(cost_pages: dict[str, str]) -> None:
    with_window = {name for name, text in cost_pages.items() if 'name="window"' in text or "choice=fields.when" in text}
    assert with_window >= {"costs.html", "cost_assets.html", "savings.html", "costs_fleet.html", "proof.html"}
    assert {name for name in with_window if "frontend/_period.html" not in cost_pages[name]} == set()


def test_buttons_of_costs_are_verbs_and_sums_are_totals(cost_pages: dict[str, str]) -> None:
    words = [word for text in cost_pages.values() for word in BUTTON.findall(text)]
    assert len(words) > 10
    assert {word.split()[0] for word in words if word.strip()} <= VERBS
    assert [name for name, text in cost_pages.items() if SUM.search(text)] == []
