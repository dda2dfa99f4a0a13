"""The request form: choose slices, preview the cost, send."""

from dataclasses import replace
from fractions import Fraction
from functools import cache
from typing import Any, NamedTuple

from django.conf import settings
from django.contrib import messages
from django.http import HttpResponse, QueryDict
from django.shortcuts import redirect
from django.urls import path, reverse
from django.views.decorators.http import require_http_methods, require_safe
from django_htmx.http import trigger_client_event

from allocations.capacity import device_inventory
from allocations.capacity.fleet import fleet
from allocations.capacity.headroom import Availability
from allocations.capacity.node_shares import of_request
from allocations.domain.allocation_spec import LABELLED, AllocationRequest
from allocations.models import Allocation
from allocations.requests import forecast, selectors, services
from allocations.requests.preview import Preview, preview_request
from frontend import claim_form, form_idempotency
from frontend.base_form import field_label, of_claim
from frontend.curl_example import as_curl
from frontend.forms import RequestForm
from frontend.pages import PageRequest, page, show
from frontend.presenters import amounts, claims, phases, refusals
from frontend.presenters.contacts import who_to_ask
from frontend.presenters.offering_filters import columns, filtered
from frontend.presenters.offerings import choices
from frontend.presenters.presets import address_of, filled_forms, query_of
from frontend.tables import sorting
from portal.core import clock
from portal.core.errors import Forbidden, Invalid, Refused
from portal.core.reading import Rows, read_tables
from portal.http import own_writes
from portal.tenants import access
from portal.tenants.access import Permissions
from portal.tenants.models import Project
from portal.yaml_text import to_yaml
from quotas.catalog import selectors as catalog
from quotas.catalog.models import Preset
from quotas.costs import selectors as costs

EMPTY_SUMMARY: dict[str, Any] = {
    **{"seen": None, "unclear": "", "chosen_words": "", "total": "", "curl": "", "violations": [], "chips": []},
    **{"matches": [], "claim_yaml": ""},
}
MAX_CHIPS = 5
ALREADY_REQUESTED = "This request was already submitted. To request another allocation, open Request again."
RELOADS = ("check", "filter", "sort_by", "more", "fewer")
"""Buttons that show the form again and send nothing; without scripts they post it, since it has a token."""
DEFAULTS = {"count": "1", "length": "8", "priority": "normal", "name": "", "hours": ""}
DEFAULTS |= dict.fromkeys((each.name for each in LABELLED), "")


@require_http_methods(["GET", "HEAD", "POST"])
@page
def request_form(request: PageRequest) -> HttpResponse:
    """Show the form, filled from the address; or send the request, and redirect to the allocation."""
    start = _initial_data(request)
    projects = start.projects
    if request.method == "POST":
        is_reload = any(name in request.POST for name in RELOADS)
        return redirect(address_of(request.POST)) if is_reload else _send(request, projects)
    values = _values(request.GET, projects, start.last)
    form = RequestForm(projects, values) if "check" in request.GET else RequestForm(projects, initial=_initial(values))
    response = _page(request, projects, form, values)
    return trigger_client_event(response, "rows-changed", after="settle") if claim_form.is_resized(values) else response


@require_safe
@page
def preview(request: PageRequest) -> HttpResponse:
    """Show what the form's values would get and cost, decided by the same rules; a part of the form's page."""
    if not request.htmx:
        return redirect(address_of(request.GET))
    start = _initial_data(request)
    projects, values = start.projects, _values(request.GET, start.projects, start.last)
    context = {"claim": _claim(request, values), "link": _link(values), **_preview(request, projects, values)}
    return show(request, "frontend/request_form.html", context, partial="answer")


def _link(values: QueryDict) -> str:
    """Return the whole address of the form with this request, to be shared."""
    return f"{settings.PORTAL_URL}{reverse('request')}?{query_of(values)}"


def _send(request: PageRequest, projects: list[Project]) -> HttpResponse:
    form = RequestForm(projects, request.POST)
    if not form.is_valid():
        return _page(request, projects, form, request.POST, status=400)
    key = form_idempotency.valid_key(form.cleaned_data["key"])
    try:
        id_, is_replayed = form_idempotency.idempotent_request(request.user, form.spec(), key)
    except Invalid as problem:
        form.add_problem(problem)
        return _page(request, projects, form, request.POST, status=problem.status)
    except Refused as problem:
        if problem.reason != "name_taken":
            return _page(request, projects, form, request.POST, status=problem.status, refused=problem)
        form.add_error("name", f"{problem.detail} {problem.hint}")
        return _page(request, projects, form, request.POST, status=problem.status)
    messages.success(request, ALREADY_REQUESTED if is_replayed else "Request submitted.")
    return redirect("allocation", id_)


def _page(
    request: PageRequest,
    projects: list[Project],
    form: RequestForm,
    values: QueryDict,
    *,
    status: int = 200,
    refused: Refused | None = None,
) -> HttpResponse:
    project = next((p for p in projects if p.slug == values.get("project")), None)
    context: dict[str, Any] = {
        "form": form,
        "projects": projects,
        "choices": [],
        "chosen": values.get("offering", ""),
        "who_to_ask": [] if projects else who_to_ask(request.user),
    }
    if project is not None:
        team, offered = project.team, fleet(own_writes.fleet_max_age_s(request.user.pk))
        availability = Availability([team], user=request.user, project=project, fleet=offered)
        releases = cache(lambda: forecast.expected_releases(clock.now(), availability.index))
        listed = choices(team, availability, offered.prices, releases)
        found = filtered(listed, values, offered.currency, sorting(request, columns(offered.currency)))
        context |= {"team": team, "choices": listed, "found": found}
        usable = [offer.key for choice in listed for offer in choice.offers if not offer.unavailable]
        start = _initial_data(request)
        context["presets"] = filled_forms(start.presets, start.last, usable, values)
        context["claim_places"] = ",".join(f"#claim-{choice.name}" for choice in listed if choice.has_claim)
    context |= {"claim": _claim(request, values), "link": _link(values), **_preview(request, projects, values)}
    context |= _refusal(refused, values, context["chips"]) if refused else {"refusal": None}
    context["key"] = values.get("key") or form_idempotency.new_key()
    return show(request, "frontend/request_form.html", context, status=status)


def _preview(request: PageRequest, projects: list[Project], values: QueryDict) -> dict[str, Any]:
    """Return the summary's context: the preview, or why there is none yet."""
    if not values.get("offering"):
        return EMPTY_SUMMARY
    form = RequestForm(projects, values)
    try:
        if not form.is_valid():
            raise Invalid({name: [str(e) for e in errors] for name, errors in form.errors.items()})
        spec = form.spec()
        seen = preview_request(request.user, spec)
    except Invalid as problem:
        words = (f"{field_label(name)}{m}" for name, found in problem.errors.items() for m in found)
        return EMPTY_SUMMARY | {"unclear": refusals.in_words(" ".join(words))}
    except (Forbidden, Refused) as problem:
        return EMPTY_SUMMARY | {"unclear": refusals.in_words(" ".join(of_claim(problem.detail, problem.hint)))}
    return EMPTY_SUMMARY | _with_spread(request, seen, spec, values, _summary(seen, spec, values))


def _claim(request: PageRequest, values: QueryDict) -> dict[str, Any] | None:
    """Return the context of a custom claim, from what the chosen flavor publishes; None if none is chosen."""
    if not claim_form.is_claim(values.get("offering", "")):
        return None
    key = values.get("offering", "").replace("\x00", "")
    offering = catalog.offerings().filter(key=key).first()
    if offering is None:
        return None
    is_operator = access.can(request.user, "claim.raw", None)
    context = claim_form.context(values, device_inventory.of_flavor(offering.flavor).schema, is_operator=is_operator)
    return context | {"flavor": offering.flavor.name}


def _summary(seen: Preview, spec: AllocationRequest, values: QueryDict) -> dict[str, Any]:
    hours = spec.hours if spec.hours is not None else 0
    better = [warned.alternative for warned in seen.warnings if warned.alternative]
    words = claims.slices(seen.offering, spec.count, spec.claim)
    verdict = f"{phases.FITS[seen.fits].word}: " if seen.fits == "never" else ""
    return {
        "seen": seen,
        "badge": phases.FITS["later" if seen.period.starts_at and seen.fits != "never" else seen.fits],
        "per_hour": amounts.rate(seen.price_per_hour, seen.currency),
        "total": "" if seen.fits == "never" else amounts.money(seen.price_total, seen.currency),
        "hours": hours,
        "node_share": amounts.node_share(of_request(seen.offering, seen.spec.count, seen.claim)),
        "violations": refusals.violations(seen.violations),
        "chips": refusals.chips([a.document() for a in [*better, *seen.alternatives]], values, seen.currency),
        "chosen_words": f"{verdict}{words}, {amounts.hours(Fraction(hours))} h, {spec.project}",
        "curl": as_curl(spec),
        **_claim_summary(seen),
    }


def _with_spread(
    request: PageRequest, seen: Preview, spec: AllocationRequest, values: QueryDict, summary: dict[str, Any]
) -> dict[str, Any]:
    """Return the summary with the same request on several nodes first, if one node is too small and that would fit."""
    if spec.constraints.spread or not any(one.dimension.startswith("node:") for one in seen.violations):
        return summary
    try:
        other = preview_request(request.user, replace(spec, constraints=replace(spec.constraints, spread=True)))
    except Invalid:  # with constraints that need one node
        return summary
    if other.fits == "never":
        return summary
    return summary | {"chips": [refusals.spread_chip(other, values), *summary["chips"]][:MAX_CHIPS]}


def _claim_summary(seen: Preview) -> dict[str, Any]:
    """Return how many devices each request of a custom claim matches, and the claim as Kubernetes gets it."""
    if seen.prepared_claim is None:
        return {}
    planned = [content for content, _ in selectors.manifests(services.draft(seen))]
    return {
        "matches": [claims.matches(one) for one in seen.prepared_claim.matches()],
        "claim_yaml": "---\n".join(to_yaml(content) for content in planned if content["kind"] == "ResourceClaim"),
    }


def _refusal(problem: Refused, values: QueryDict, chips: list[refusals.Chip]) -> dict[str, Any]:
    """Return the context of the panel above the form, which names the exceeded limits. It has the alternatives of the
    preview, ``chips``, if there are any.
    """
    return {
        "refusal": problem,
        "refusal_words": refusals.in_words(" ".join(of_claim(problem.detail, problem.hint))),
        "refusal_violations": refusals.violations(problem.violations),
        "refusal_chips": chips or refusals.chips(problem.alternatives, values, costs.currency()),
        "violations": [],
        "chips": [],
    }


class InitialData(NamedTuple):
    """What the form begins with: the projects in which the person may request slices, by name; the person's last
    request in a project that is in use; the presets.
    """

    projects: list[Project]
    last: Allocation | None
    presets: list[Preset]


def _initial_data(request: PageRequest) -> InitialData:
    """Return what the form begins with, read once for a page; one query."""
    if not hasattr(request, "initial_data"):
        user = request.user
        projects, roles, last, presets = read_tables(
            access.projects_in_use(user),
            access.roles_in_teams(user),
            Rows(selectors.visible(user).filter(requested_by=user, project__archived_at=None)[:1]),
            Rows(catalog.presets_for(user)),
        )
        permissions = Permissions(user, dict(roles))
        may_request = [one for one in projects if permissions.can("allocation.request", one.team_id)]
        request.initial_data = InitialData(may_request, next(iter(last), None), presets)  # type: ignore[attr-defined]
    return request.initial_data  # type: ignore[attr-defined,no-any-return]


def _values(sent: QueryDict, projects: list[Project], last: Allocation | None) -> QueryDict:
    """Return the form's values: the address', else the defaults, in the project of the person's last request."""
    values = sent.copy()
    for name, value in DEFAULTS.items():
        values.setdefault(name, value)
    if not values.get("project") and projects:
        values["project"] = last.project.slug if last else projects[0].slug
    return values


def _initial(values: QueryDict) -> dict[str, Any]:
    return {**values.dict(), "constraints": values.getlist("constraints")}


urlpatterns = [
    path("request", request_form, name="request"),
    path("request/preview", preview, name="preview"),
]
DOCS = "how-to/request"
