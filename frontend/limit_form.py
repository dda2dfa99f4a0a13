"""The form of a limit: holder, scope and amounts."""

from django import forms
from django.http import QueryDict

from frontend.base_form import Form
from portal.core.reading import digest_of
from portal.tenants import access
from portal.tenants.models import Department, Membership, Project, Team, User
from quotas.catalog.models import Flavor, Offering, Pool
from quotas.limits.models import MAX_UNITS
from quotas.limits.services import Holder, Scope
from quotas.limits.tree import Quota

ALL = "all"


class LimitForm(Form):
    """A form whose choices are what the person may set: `kind:slug` of the holder, `kind:key` of the scope."""

    holder = forms.ChoiceField(label="Applies to")
    scope = forms.ChoiceField(label="Resource")
    nominal = forms.IntegerField(
        label="Quota",
        min_value=0,
        max_value=MAX_UNITS,
        help_text="In units of the pool, slices of the offering, or GPUs.",
    )
    borrowing = forms.IntegerField(
        required=False,
        label="Borrowing limit",
        initial=0,
        min_value=0,
        max_value=MAX_UNITS,
        help_text="How much a department or team may borrow of a pool beyond its quota. Empty: unlimited.",
    )
    lending = forms.IntegerField(
        required=False,
        label="Lending limit",
        min_value=0,
        max_value=MAX_UNITS,
        help_text="How much of the unused quota may be lent. Empty: all of it.",
    )

    def __init__(self, user: User, data: QueryDict | None) -> None:
        super().__init__(data)
        self._holders = _holders(user)
        self._scopes = _scopes()
        self.fields["holder"].choices = [(key, label) for key, (label, _) in self._holders.items()]  # type: ignore[attr-defined]
        self.fields["scope"].choices = [(key, label) for key, (label, _) in self._scopes.items()]  # type: ignore[attr-defined]

    @property
    def has_holders(self) -> bool:
        """Whether there is anything whose limit the person may set."""
        return bool(self._holders)

    def limit(self) -> tuple[Holder, Scope, Quota]:
        values = self.cleaned_data
        holder, scope = self._holders[values["holder"]][1], self._scopes[values["scope"]][1]
        is_lent = isinstance(scope, Pool) and isinstance(holder, Department | Team)
        if not is_lent:
            return holder, scope, Quota(values["nominal"])
        return holder, scope, Quota(values["nominal"], values["borrowing"], values["lending"])

    def digest(self) -> str:
        """Return a digest of the valid values, which tells whether a preview was of them."""
        return digest_of([self.cleaned_data[name] for name in self.fields])


def _holders(user: User) -> dict[str, tuple[str, Holder]]:
    found: dict[str, tuple[str, Holder]] = {}
    if access.can(user, "limit.manage", None):
        for department in Department.objects.all():
            found[f"department:{department.slug}"] = (f"department {department.slug}", department)
        for team in Team.objects.select_related("department"):
            found[f"team:{team.slug}"] = (f"team {team.slug}", team)
    permissions = access.permissions_of(user)
    led = [t.pk for t in access.visible_teams(user) if permissions.can("limit.share", t.pk)]
    for project in Project.objects.filter(team__in=led, archived_at=None).select_related("team"):
        found[f"project:{project.slug}"] = (f"project {project.slug} (team {project.team.slug})", project)
    for member in Membership.objects.filter(team__in=led).select_related("team", "user"):
        name = f"{member.team.slug}/{member.user.username}"
        found[f"member:{name}"] = (f"{member.user.username} (team {member.team.slug})", member)
    return found


def _scopes() -> dict[str, tuple[str, Scope]]:
    found: dict[str, tuple[str, Scope]] = {ALL: ("all GPUs", None)}
    for flavor in Flavor.objects.filter(accepted=True):
        found[f"flavor:{flavor.name}"] = (f"flavor {flavor.name}, in GPUs", flavor)
    for pool in Pool.objects.filter(flavor__accepted=True).select_related("flavor"):
        found[f"pool:{pool.key}"] = (f"pool {pool.key}", pool)
    for offering in Offering.objects.filter(flavor__accepted=True).select_related("pool", "flavor"):
        found[f"offering:{offering.key}"] = (f"offering {offering.key}, in slices", offering)
    return found
