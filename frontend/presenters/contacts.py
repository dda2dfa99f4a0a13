"""Whom a person can ask for a role in a team."""

from portal.tenants import access
from portal.tenants.models import PlatformRole, Role, User


def who_to_ask(user: User) -> list[str]:
    """Return the names of the leads of the person's teams, else of the operators."""
    leads = User.objects.filter(memberships__team__in=access.visible_teams(user), memberships__role=Role.LEAD)
    operators = User.objects.filter(platform_role=PlatformRole.OPERATOR)
    for people in (leads, operators):
        if found := sorted(people.filter(is_active=True).values_list("username", flat=True).distinct()):
            return found
    return []
