"""The decorator of all pages: sign-in, refusals as pages, and no private content in a cache."""

from collections.abc import Callable
from functools import wraps
from typing import Any, Concatenate, ParamSpec, cast

import structlog
from django.conf import settings
from django.contrib.auth.views import redirect_to_login
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils import timezone
from django.utils.cache import patch_vary_headers
from django.views.decorators.cache import never_cache
from django_htmx.http import HttpResponseClientRedirect
from django_htmx.middleware import HtmxDetails

from frontend import navigation, time_zone
from portal.core.errors import Busy, Permanent, Problem, Retryable, TooManyRequests
from portal.http import early_refusals, person_limits
from portal.tenants.models import User

log = structlog.get_logger(__name__)

P = ParamSpec("P")
PORTAL_BUSY = Busy("Another request is changing the same data.", hint="Try again in a moment.")


class PageRequest(HttpRequest):
    """A request of a signed-in person; ``htmx`` is true if htmx requests a part of a page."""

    user: User
    htmx: HtmxDetails


Page = Callable[Concatenate[PageRequest, P], HttpResponse]
View = Callable[Concatenate[HttpRequest, P], HttpResponse]


class ClusterRefusal(Problem):
    status = 502
    reason = "cluster_refused"
    title = "The cluster refused"


def page(view: Page[P]) -> View[P]:
    """Decorate a view for signed-in people. Its times are in the reader's zone; its exceptions become pages that say
    what to do.

    For htmx, signing in is a full navigation: a login form must not appear in the middle of a page.
    """
    return _page(view, "")


def essential_page(view: Page[P]) -> View[P]:
    """Decorate a view as `page`. What other pages took never keeps a person from it: Home, and what one holds."""
    return _page(view, "essential")


def release_page(view: Page[P]) -> View[P]:
    """Decorate a view as `page`. Nothing else keeps a person from releasing what is charged."""
    return _page(view, "release")


def _page(view: Page[P], budget: str) -> View[P]:

    @wraps(view)
    def wrapper(request: HttpRequest, *args: P.args, **kwargs: P.kwargs) -> HttpResponse:
        person = cast(PageRequest, request)
        if not request.user.is_authenticated:
            if person.htmx:
                return HttpResponseClientRedirect(redirect_to_login(person.htmx.current_url_abs_path or "/").url)
            return redirect_to_login(request.get_full_path())
        with timezone.override(time_zone.of_request(request)):
            response = _respond(view, budget, person, *args, **kwargs)
        patch_vary_headers(response, ["HX-Request"])
        return response

    setattr(wrapper, early_refusals.BUDGET, budget)
    return never_cache(wrapper)


def _respond(view: Page[P], budget: str, person: PageRequest, *args: P.args, **kwargs: P.kwargs) -> HttpResponse:
    try:
        _count(person, budget)
        return view(person, *args, **kwargs)
    except Problem as problem:
        return problem_page(person, problem)
    except Retryable as error:
        log.warning("page.busy", error=str(error))
        busy = Busy(error.detail, reason=error.reason, hint=error.hint) if error.detail else PORTAL_BUSY
        return problem_page(person, busy)
    except Permanent as error:
        log.error("page.refused_by_cluster", error=str(error))
        return problem_page(person, ClusterRefusal(str(error), hint="Tell an operator; the portal goes on."))


def show(
    request: PageRequest, template: str, context: dict[str, Any], *, partial: str = "", status: int = 200
) -> HttpResponse:
    """Return the page, or only its ``partial`` for htmx, from one template and one context."""
    if partial and request.htmx:
        return render(request, f"{template}#{partial}", context, status=status)
    return render(request, template, {**navigation.frame(request), **context}, status=status)


def problem_page(request: PageRequest, problem: Problem) -> HttpResponse:
    # Hints of "not visible" name REST calls; a page offers its own ways on.
    hint = "" if problem.status == 404 else problem.hint
    context = {"problem": problem, "hint": hint}
    if isinstance(problem, TooManyRequests):  # costs nothing but its text
        context["retry_s"] = problem.retry_after_s if request.method == "GET" else None
        response = render(request, "frontend/problem.html", context, status=problem.status)
    else:
        response = show(request, "frontend/problem.html", context, status=problem.status)
    if isinstance(problem, Busy):
        response["Retry-After"] = str(problem.retry_after_s)
    return response


def _count(request: PageRequest, budget: str) -> None:
    """Raise TooManyRequests above ``PAGE_REQUESTS_PER_MINUTE`` of a person, or above a person's processor time, of the
    pages with this budget.
    """
    limit, scope = settings.PAGE_REQUESTS_PER_MINUTE, f"page:{budget}" if budget else "page"
    use = person_limits.use(request, request.user.pk, scope, limit, budget)
    if use and use.wait_s:
        early_refusals.refuse(request, f"At most {limit} pages a minute.", use.wait_s)
    person_limits.admit(request, request.user.pk, budget)
