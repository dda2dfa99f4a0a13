"""The data against which every role requests every route, and the values of path parameters."""

import json
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

from django.conf import settings
from django.forms import BaseForm
from django.test import Client
from rest_framework.test import APIClient

from allocations.limits import services as limit_services
from allocations.models import Allocation
from frontend import time_zone
from portal.tenants import invitations, services
from portal.tenants.actors import SYSTEM
from portal.tenants.models import Project, Scope, Team, User
from quotas.catalog.models import Offering, Pool, Preset
from quotas.costs import bills, capacity_services, saved_views
from quotas.costs import services as prices
from quotas.limits.models import Limit
from quotas.limits.tree import Quota
from tests.support import access_matrix, request_bodies
from tests.support.fleet import allocate, fleet
from tests.support.people import person
from tests.support.queued import job


@dataclass
class World:
    """A fleet and two teams. The first has an allocation, a queued Job, a project's limit and an invitation; every role
    has a signed-in person with two tokens and an invitation to a third team.
    """

    allocation: Allocation
    limit: Limit
    job: UUID
    view: int
    preset: int
    dated: dict[str, int]
    cookies: dict[str, str] = field(default_factory=dict)
    clients: dict[str, APIClient] = field(default_factory=dict)
    secrets: dict[str, str] = field(default_factory=dict)
    tokens: dict[str, int] = field(default_factory=dict)
    invitation: int = 0
    received: dict[str, int] = field(default_factory=dict)
    bodies: dict[str, dict[str, Any]] = field(default_factory=dict)
    made: dict[str, int] = field(default_factory=dict)
    """The ids of what `make_others` created, by parameter."""
    zone: str = ""
    """The time zone of every browser; UTC if it names none."""

    def path(self, pattern: str, role: str) -> str:
        """Return the path that `role` requests: of the team's objects, and of the role's own token."""
        found = self._filled(pattern, role)
        assert "<" not in found, f"tests/support/world.py does not say what stands for {found}"
        return found

    def _filled(self, pattern: str, role: str) -> str:
        """Return the pattern with the values of the parameters that are known."""
        values = {
            "<str:id_>": self.allocation.pk,
            "<uuid:id_>": self.allocation.pk,
            "<uuid:uid>": self.job,
            "<int:id_>": self.limit.pk,
            "<int:view_id>": self.view,
            "<int:preset_id>": self.preset,
            **{f"{name}/<int:dated_id>": f"{name}/{id_}" for name, id_ in self.dated.items()},
            "<str:kind>/<int:dated_id>": f"price/{self.dated['prices']}",
            "<str:flavor>": "h100",
            "<str:slice_>": "claim",
            "<path:file>": "index.html",
            "<str:cluster>/<str:name>": "local/l40s-0",
            "<str:name>": "l40s",
            "departments/<str:slug>": "departments/research",
            "teams/<str:slug>/delete": "teams/third/delete",  # a team without project and quota
            "projects/<str:slug>": "projects/vision-train",
            "<str:slug>": "vision",
            "<str:team>": "vision",
            "<str:username>": self.allocation.requested_by.username,
            "<int:token_id>": self.tokens[role],
            "me/invitations/<int:invitation_id>": f"me/invitations/{self.received[role.removesuffix(' (reading)')]}",
            "<int:invitation_id>": self.invitation,
        }
        for name, value in (values | self.made).items():
            pattern = pattern.replace(name, str(value))
        return pattern

    def make_others(self) -> None:
        """Create two of each REST resource that the world has none of, as an operator does: by POST to its list."""
        for pattern in filter(access_matrix.is_rest, access_matrix.routes()):
            address, _, parameter = pattern.rpartition("/")
            if parameter.startswith("<int:") and "<" in self._filled(pattern, "operator"):
                for _ in range(2):
                    answer = self.rest("operator", "POST", address)
                    assert answer.status_code == 201, f"POST {address}: {answer.content}"
                self.made[parameter] = answer.json()["id"]

    def methods(self, pattern: str) -> list[str]:
        """Return the methods that the view names when it refuses another; GET and POST if it refuses none."""
        ask = self.rest if access_matrix.is_rest(pattern) else self.page
        allowed = ask("operator", "TRACE", pattern).headers.get("Allow", "GET, POST").split(", ")
        return [method for method in access_matrix.METHODS if method in allowed]

    def rest(self, role: str, method: str, pattern: str, **changes: Any) -> Any:
        """Ask with the body that is right for the route, but for ``changes`` of its fields."""
        body = json.dumps(request_bodies.of_operation(f"{method} {pattern}") | changes)
        return self.clients[role].generic(method, self.path(pattern, role), body, "application/json", HTTP_IF_MATCH="*")

    def page(self, role: str, method: str, pattern: str, **changes: Any) -> Any:
        """Ask with what is right for the page's form, or with nothing for GET, but for ``changes`` of its fields."""
        browser = Client()  # a new one each time: an answer may take the cookie away
        browser.cookies[time_zone.COOKIE] = self.zone
        if role in self.cookies:
            browser.cookies[settings.SESSION_COOKIE_NAME] = self.cookies[role]
        path = self.path(pattern, role)
        if method == "GET":
            return browser.get(path, changes)
        return browser.post(path, self._form(pattern) | changes) if method == "POST" else browser.generic(method, path)

    def _form(self, pattern: str) -> dict[str, Any]:
        """Return what an operator sends with the forms that the page shows them."""
        if pattern not in self.bodies:
            self.bodies[pattern] = request_bodies.of_forms(f"POST {pattern}", self.forms(pattern))
        return self.bodies[pattern]

    def forms(self, pattern: str) -> list[BaseForm]:
        """Return the forms that the page shows an operator."""
        found = self.page("operator", "GET", pattern).context or []
        contexts = found if isinstance(found, list) else [found]  # of a page of one template it is no list
        values = [value for context in contexts for layer in context for value in layer.values()]
        return list(dict.fromkeys(value for value in values if isinstance(value, BaseForm)))


def world(team: Team, other: Team, project: Project) -> World:
    fleet(team, other)
    people = {
        "no team": person(),
        **{role: person(team, role) for role in ("viewer", "member", "lead")},
        "other lead": person(other, "lead"),
        "auditor": person(platform_role="auditor"),
        "operator": person(platform_role="operator"),
    }
    User.objects.create(username="anyone")
    limit = limit_services.set_limit(people["lead"], project, Pool.objects.get(key="l40s/gpu"), Quota(4))
    view = saved_views.save(people["member"], "Usage", "aggregate=member", team)
    dated = scheduled(people["operator"])
    preset = Preset.objects.create(name="Notebook", offering=Offering.objects.get(key="l40s/whole"))
    held, queued = allocate(people["member"], project), job("train", project.namespace)
    result = World(held, limit, queued, view.pk, preset.pk, dated)
    result.clients["anonymous"] = APIClient()
    for role, user in people.items():
        browser = Client()
        browser.force_login(user)
        result.cookies[role] = browser.cookies[settings.SESSION_COOKIE_NAME].value
        for name, scopes in ((role, list(Scope)), (f"{role} (reading)", [Scope.READ])):
            row, secret = services.issue_token(SYSTEM, user, "matrix", scopes, timedelta(days=1))
            result.tokens[name], result.secrets[name] = row.pk, secret
            result.clients[name] = APIClient()
            result.clients[name].credentials(HTTP_AUTHORIZATION=f"Bearer {secret}")
    result.tokens["anonymous"] = result.tokens["member"]
    result.invitation = invitations.invite(people["lead"], team, "somebody", "viewer").pk
    third = services.create_team(SYSTEM, team.department, "third", "Third")
    for role, user in people.items():
        result.received[role] = invitations.invite(people["operator"], third, user.username, "viewer").pk
    result.make_others()
    result.received["anonymous"] = result.received["member"]
    return result


def scheduled(operator: User) -> dict[str, int]:
    """Return a price, a node cost, a node term and a fixed cost that have not begun, by their address in REST."""
    begins = datetime(2090, 1, 1, tzinfo=UTC)
    subject = capacity_services.subject_named(operator, "l40s", "spot")
    return {
        "prices": prices.set_price(operator, "h100", "4", valid_from=begins).pk,
        "node-costs": capacity_services.set_node_cost(operator, subject, "2", "gpu", valid_from=begins).pk,
        "node-terms": capacity_services.set_node_term(operator, "local", "l40s-0", "spot", begins).pk,
        "shared-costs": bills.set_shared_cost(operator, "support", begins.date(), "100", "weighted").pk,
    }
