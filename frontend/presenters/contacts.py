"""Whom a person can ask for a role in a team."""

from portal.tenants import access
from portal.tenants.models import Role, User


def who_to_ask(user: User) -> list[str]:
    """Return the names of the leads of the person's teams, else of the operators."""
    leads = User.objects.filter(memberships__team__in=access.visible_teams(user), memberships__role=Role.LEAD)
    found = sorted(leads.filter(is_active=True).values_list("username", flat=True).distinct())
    return found or access.operators()
