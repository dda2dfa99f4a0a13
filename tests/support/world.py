"""The data against which every role requests every route: values of path parameters, and request bodies."""

import json
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any
from uuid import UUID

from django.conf import settings
from django.test import Client
from rest_framework.test import APIClient

from allocations.limits import services as limit_services
from allocations.models import Allocation
from portal.tenants import invitations, services
from portal.tenants.models import Project, Scope, Team, User
from quotas.catalog.models import Pool
from quotas.costs import saved_views
from quotas.limits.models import Limit
from tests.support.fleet import allocate, fleet
from tests.support.people import person
from tests.support.queued import job

ALLOCATION_REQUEST = {"project": "vision-train", "offering": "l40s/whole"}
LIMIT = {"project": "vision-train", "pool": "l40s/gpu", "nominal": 3}
FORM = {"length": "8", "count": "1", "priority": "normal"}
BODIES: dict[str, dict[str, Any]] = {
    "POST /api/v1/tokens": {"name": "ci", "scopes": ["read"]},
    "POST /api/v1/departments": {"slug": "new", "name": "New"},
    "PUT /api/v1/departments/<str:slug>": {"name": "New"},
    "POST /api/v1/teams": {"slug": "new", "name": "New", "department": "research"},
    "PUT /api/v1/teams/<str:slug>": {"name": "New"},
    "POST /api/v1/projects": {"slug": "new", "name": "New", "team": "vision"},
    "PUT /api/v1/projects/<str:slug>": {"name": "New"},
    "POST /api/v1/projects/<str:slug>/move": {"team": "language"},
    "POST /api/v1/projects/<str:slug>/archive": {"confirm": "vision-train"},
    "POST /api/v1/projects/<str:slug>/guard": {"guard": "enforce"},
    "POST /api/v1/members": {"team": "vision", "username": "anyone", "role": "viewer"},
    "POST /api/v1/invitations": {"team": "vision", "invitee": "anyone", "role": "viewer"},
    "PUT /api/v1/members/<str:team>/<str:username>": {"role": "viewer"},
    "POST /api/v1/allocations": ALLOCATION_REQUEST,
    "POST /api/v1/allocations/preview": ALLOCATION_REQUEST,
    "POST /api/v1/allocations/release": {"project": ["vision-train"], "dry_run": True},
    "POST /api/v1/allocations/<str:id_>/extend": {"hours": 1},
    "POST /api/v1/limits": LIMIT,
    "POST /api/v1/limits/preview": LIMIT,
    "POST /api/v1/limits/changes": {"changes": [LIMIT], "token": "of no preview"},
    "POST /api/v1/limits/changes/preview": {"changes": [LIMIT]},
    "PUT /api/v1/limits/<int:id_>": {"nominal": 2},
    "PUT /api/v1/flavors/<str:name>": {"title": "L40S"},
    "PUT /api/v1/offerings/<str:flavor>/<str:slice_>": {"hidden": False},
    "POST /api/v1/prices": {"flavor": "l40s", "per_gpu_hour": "1.20", "valid_from": "2090-01-01T00:00:00Z"},
    "POST /api/v1/prices/import": {"csv": "kind,of,amount\nprice,l40s,1.30\n", "dry_run": True},
    "POST /api/v1/bills": {"cluster": "local", "month": "2026-01", "amount": "1000"},
    "POST /api/v1/shared-costs": {"name": "network", "month": "2090-01", "amount": "100", "split": "weighted"},
    "POST /api/v1/node-costs": {"flavor": "l40s", "term": "spot", "per": "gpu", "per_hour": "0.50"},
    "POST /api/v1/node-terms": {"cluster": "local", "node": "l40s-0", "term": "spot"},
    "POST /api/v1/saved-views": {"name": "New", "query": "window=7d&aggregate=member", "team": "vision"},
    "POST /costs/views": {"name": "New", "query": "window=7d&aggregate=member", "team": "vision"},
    "POST /login": {"username": "nobody", "password": "wrong"},
    "POST /me": {"name": "ci", "scopes": ["read"], "lives": "90"},
    "POST /limits/set": {"holder": "project:vision-train", "scope": "pool:l40s/gpu", "nominal": "3"},
    "POST /teams/<str:slug>": {"username": "anyone", "role": "viewer"},
    "POST /projects/<str:slug>": {"name": "New", "pod_security": "restricted", "egress": "none", "exposure": "cluster"},
    "POST /projects/<str:slug>/objects": {"configmaps": "300"},
    "POST /projects/<str:slug>/kubeconfig": {"format": "exec"},
    "POST /projects/<str:slug>/move": {"team": "language"},
    "POST /projects/<str:slug>/archive": {"confirm": "vision-train"},
    "POST /projects/<str:slug>/guard": {"guard": "enforce"},
    "POST /prices/set": {"of": "flavor:l40s", "amount": "1.20", "valid_from": "2090-01-01T00:00"},
    "POST /prices/node-costs/set": {"of": "l40s", "term": "spot", "per": "gpu", "amount": "0.50"},
    "POST /prices/node-terms/set": {"of": "local/l40s-0", "term": "spot"},
    "POST /prices/import": {"csv": "kind,of,amount\nprice,l40s,1.30\n"},
    "POST /bills/enter": {"cluster": "local", "month": "2026-01", "amount": "1000"},
    "POST /bills/fixed-costs/set": {"name": "network", "month": "2090-01", "amount": "100", "split": "weighted"},
    "POST /tenants/departments/new": {"slug": "new", "name": "New"},
    "POST /tenants/departments/<str:slug>/edit": {"name": "New"},
    "POST /tenants/teams/new": {"slug": "new", "name": "New", "department": "research"},
    "POST /tenants/teams/<str:slug>/edit": {"name": "New", "department": "research"},
    "POST /tenants/projects/new": {
        **{"slug": "new", "name": "New", "team": "vision"},
        **{"pod_security": "restricted", "egress": "none", "exposure": "cluster"},
    },
    "POST /request": {**ALLOCATION_REQUEST, **FORM},
    "POST /request/preview": {**ALLOCATION_REQUEST, **FORM},
    "POST /allocations/<uuid:id_>/extend": {"length": "8"},
}
"""Bodies, as JSON for REST and as forms for pages; routes that are not named have none."""


@dataclass
class World:
    """A fleet and two teams. The first has an allocation, a queued Job, a project's limit and an invitation; every role
    has a signed-in person with two tokens and an invitation to a third team.
    """

    allocation: Allocation
    limit: Limit
    job: UUID
    view: int
    cookies: dict[str, str] = field(default_factory=dict)
    clients: dict[str, APIClient] = field(default_factory=dict)
    secrets: dict[str, str] = field(default_factory=dict)
    tokens: dict[str, int] = field(default_factory=dict)
    invitation: int = 0
    received: dict[str, int] = field(default_factory=dict)

    def path(self, pattern: str, role: str) -> str:
        """Return the path that `role` requests: of the team's objects, and of the role's own token."""
        values = {
            "<str:id_>": self.allocation.pk,
            "<uuid:id_>": self.allocation.pk,
            "<uuid:uid>": self.job,
            "<int:id_>": self.limit.pk,
            "<int:view_id>": self.view,
            "<str:flavor>": "h100",
            "<str:slice_>": "claim",
            "<path:file>": "index.html",
            "<str:cluster>/<str:name>": "local/l40s-0",
            "<str:name>": "l40s",
            "departments/<str:slug>": "departments/research",
            "projects/<str:slug>": "projects/vision-train",
            "<str:slug>": "vision",
            "<str:team>": "vision",
            "<str:username>": self.allocation.requested_by.username,
            "<int:token_id>": self.tokens[role],
            "me/invitations/<int:invitation_id>": f"me/invitations/{self.received[role.removesuffix(' (reading)')]}",
            "<int:invitation_id>": self.invitation,
        }
        for name, value in values.items():
            pattern = pattern.replace(name, str(value))
        assert "<" not in pattern, f"tests/support/world.py does not say what stands for {pattern}"
        return pattern

    def rest(self, role: str, method: str, pattern: str) -> Any:
        body = json.dumps(BODIES.get(f"{method} {pattern}", {}))
        return self.clients[role].generic(method, self.path(pattern, role), body, "application/json", HTTP_IF_MATCH="*")

    def page(self, role: str, method: str, pattern: str) -> Any:
        browser = Client()  # a new one each time: an answer may take the cookie away
        if role in self.cookies:
            browser.cookies[settings.SESSION_COOKIE_NAME] = self.cookies[role]
        send = browser.post if method == "POST" else browser.get
        return send(self.path(pattern, role), BODIES.get(f"{method} {pattern}", {}))


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
    limit = limit_services.set_limit(
        people["lead"], project, Pool.objects.get(key="l40s/gpu"), limit_services.LimitSpec(4)
    )
    view = saved_views.save(people["member"], "Usage", "aggregate=member", team)
    result = World(allocate(people["member"], project), limit, job("train", project.namespace), view.pk)
    result.clients["anonymous"] = APIClient()
    for role, user in people.items():
        browser = Client()
        browser.force_login(user)
        result.cookies[role] = browser.cookies[settings.SESSION_COOKIE_NAME].value
        for name, scopes in ((role, list(Scope)), (f"{role} (reading)", [Scope.READ])):
            row, secret = services.issue_token(user, "matrix", scopes, timedelta(days=1))
            result.tokens[name], result.secrets[name] = row.pk, secret
            result.clients[name] = APIClient()
            result.clients[name].credentials(HTTP_AUTHORIZATION=f"Bearer {secret}")
    result.tokens["anonymous"] = result.tokens["member"]
    result.invitation = invitations.invite(people["lead"], team, "somebody", "viewer").pk
    third = services.create_team(team.department, "third", "Third")
    for role, user in people.items():
        result.received[role] = invitations.invite(people["operator"], third, user.username, "viewer").pk
    result.received["anonymous"] = result.received["member"]
    return result
