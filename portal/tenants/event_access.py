"""Who may see which events, as they stand now: nothing of it is stored."""

from django.db.models import Q, QuerySet

from portal.events.models import Event
from portal.tenants import access, audit_log
from portal.tenants.models import User


def visible(user: User) -> QuerySet[Event]:
    """Return the events of the projects that `user` sees now, and of the audit log that `user` may read now."""
    projects, teams = access.visible_projects(user).values("slug"), audit_log.teams_of(user)
    audited = Q(scope=Event.Scope.AUDIT) if teams is None else Q(scope=Event.Scope.AUDIT, team__in=teams)
    return Event.objects.filter(Q(scope=Event.Scope.PROJECT, project__in=projects) | audited)
