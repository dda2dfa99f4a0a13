"""A person's own access to a cluster, without an allocation: a kubeconfig for a project, and the tokens it asks for.

A person has one account in a cluster. Its role bindings give it the rights of the person's role in each project, so a
token reaches all of these; the namespace of a kubeconfig is only what kubectl uses without ``-n``.
"""

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Annotated

from django.conf import settings
from django.db.models import F, QuerySet

from allocations.cluster import credentials
from allocations.cluster.client import connect as cluster_client
from allocations.cluster.credentials import PersonToken
from allocations.cluster.errors import ClusterRefused
from portal.audit.entries import audit
from portal.clusters import registry
from portal.core import clock
from portal.core.errors import Busy, Forbidden, Refused
from portal.core.quotation import named
from portal.tenants import access
from portal.tenants.models import Membership, Project, User

ACTION = "project.connect"


class Format(StrEnum):
    """How a kubeconfig signs in: by the plugin `gpu-portal credential`, or by a token in it."""

    EXEC = "exec"
    TOKEN = "token"  # noqa: S105 (no secret, but the name of a form)


@dataclass(frozen=True)
class Kubeconfig:
    """A kubeconfig as YAML; ``expires_at`` is that of the token in it, None without one."""

    project: Project
    format: Format
    content: str
    expires_at: datetime | None


@dataclass(frozen=True)
class Credential:
    """A token for all of a person's projects in a cluster."""

    cluster: str
    token: Annotated[str, "A token of your account there, with your rights in all your projects."]
    expires_at: datetime


def project_for(user: User, slug: str) -> Project:
    """Return the project if ``user`` may have a kubeconfig for it.

    Raises NotVisible; Forbidden for operators and auditors, who have no account in the cluster; Refused ``wrong_phase``
    for an archived project.
    """
    project = access.project_for(user, slug)
    if not access.can(user, ACTION, project.team):
        raise _no_account()
    if project.archived_at is not None:
        raise Refused("wrong_phase", f"The project {slug} is archived.", "Choose a project that is in use.")
    return project


def kubeconfig(user: User, slug: str, format_: Format, *, until: datetime | None = None) -> Kubeconfig:
    """Return the person's kubeconfig for a project; ``until`` is as for ``create_token``.

    Raises what ``project_for`` raises; Busy while the person's account is being created; ClusterUnavailable,
    ClusterRefused.
    """
    project = project_for(user, slug)
    cluster = project.cluster_id
    client = cluster_client(cluster)
    token = create_token(user, cluster, until) if format_ == Format.TOKEN else None
    entry = {"token": token.token} if token else credentials.by_plugin(cluster)
    content = credentials.kubeconfig(client, project.cluster.server, user.username, project.namespace, entry)
    expires_at = token.expires_at if token else None
    after = {"format": format_.value, "expires_at": expires_at.isoformat() if expires_at else None}
    audit(user.username, "project.kubeconfig", project.slug, team=project.team.slug, project=project.slug, after=after)
    return Kubeconfig(project, format_, content, expires_at)


def credential(user: User, cluster: str = "", *, until: datetime | None = None) -> Credential:
    """Return a new token of the person's account in a cluster ("": the portal's own); ``until`` is as for
    ``create_token``.

    Raises Forbidden for a person without a role in any project there, which an unknown cluster is too; Busy while the
    account is being created; ClusterUnavailable, ClusterRefused.
    """
    cluster = cluster or registry.own()
    if not projects_of(user, cluster).exists():
        raise _no_account(cluster)
    token = create_token(user, cluster, until)
    after = {"cluster": cluster, "expires_at": token.expires_at.isoformat()}
    audit(user.username, "credential.create", user.username, after=after)
    return Credential(cluster, token.token, token.expires_at)


def projects_of(user: User, cluster: str) -> QuerySet[Project]:
    """Return the projects in the cluster in whose teams the person has a role, with that ``role``."""
    rows = Project.objects.filter(cluster=cluster, archived_at=None, team__memberships__user=user)
    return rows.annotate(role=F("team__memberships__role")).order_by("slug")


def create_token(user: User, cluster: str, until: datetime | None) -> PersonToken:
    """Return a new token of the person's account, which lives for ``KUBECONFIG_TTL_S``.

    ``until`` is when the portal's token of the request ends, None in a session: the new one ends no later, but lives
    for ten minutes at least, as the API server issues none for less.

    Raises Busy while the account is being created; Forbidden for a person in no team; ClusterUnavailable,
    ClusterRefused.
    """
    ttl_s: int = settings.KUBECONFIG_TTL_S
    if until is not None:
        ttl_s = min(ttl_s, int((until - clock.now()).total_seconds()))
    try:
        return credentials.mint(cluster_client(cluster), user.username, ttl_s)
    except ClusterRefused as error:
        if error.status != 404:
            raise
        if Membership.objects.filter(user=user).exists():
            raise Busy("Your account on the cluster is being made.", hint="Try again in a moment.") from error
        raise _no_account() from error


def _no_account(cluster: str = "") -> Forbidden:
    if cluster not in ("", registry.own()):
        return Forbidden(
            "viewer",
            detail=f"You have no account on the cluster {named(cluster)}: your teams have no project in it.",
            hint="`gpu-portal kubeconfig --project SLUG` writes a kubeconfig for the cluster of a project.",
        )
    return Forbidden(
        "viewer",
        detail="Only members and viewers of a team have an account on the cluster.",
        hint="Use your own credentials of the cluster, or have yourself added to the team.",
    )
