"""People for tests, created by the portal's services."""

from datetime import timedelta
from itertools import count

from rest_framework.test import APIClient

from portal.tenants import members, services
from portal.tenants.actors import SYSTEM
from portal.tenants.models import Scope, Team, User

_numbers = count(1)


def person(team: Team | None = None, role: str = "member", *, platform_role: str = "") -> User:
    """Create a person, with `role` in `team` if one is given."""
    user = User(username=f"person-{next(_numbers)}", platform_role=platform_role)
    user.set_unusable_password()
    user.save()
    if team is not None:
        members.add(SYSTEM, team, user.username, role)
    return user


def client(user: User, *scopes: str) -> APIClient:
    """Return a REST client with a token of `user`; with every scope unless some are named."""
    _, secret = services.issue_token(SYSTEM, user, "test", scopes or Scope.values, timedelta(days=1))
    api = APIClient()
    api.credentials(HTTP_AUTHORIZATION=f"Bearer {secret}")
    return api
