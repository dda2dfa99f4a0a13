"""Limits and quotas of holders, what counts against them, and queue policies."""

from fractions import Fraction
from typing import ClassVar

from django.conf import settings
from django.core.validators import MaxValueValidator, MinValueValidator
from django.db import models
from django.db.models import F, Q
from simple_history.models import HistoricalRecords

from portal.tenants.models import Department, Project, Team
from quotas.catalog.models import Flavor, Offering, Pool
from quotas.limits.history_models import QuotaChange as QuotaChange
from quotas.limits.history_models import WeightChange as WeightChange

MAX_UNITS = 1_000_000
FRACTION_BASE = 720_720
"""Parts of a unit in which `used` counts: divisible by all numbers up to 16, so that shares of a GPU stay exact."""

OF_A_TEAM = Q(team__isnull=False, user=None)
OF_A_DEPARTMENT = Q(department__isnull=False)
ENFORCED_BY_KUEUE = Q(pool__isnull=False) & (OF_A_TEAM | OF_A_DEPARTMENT)


class Limit(models.Model):
    """The most that a holder may have at once of a scope.

    The holder is a department, a team, a project, or a member (`user` in `team`). The scope is a pool (in its units:
    whole GPUs for `<flavor>/slices`), an offering (in slices), a flavor, or all GPUs (both in whole-GPU equivalents).

    A department's or team's limit on a pool is a quota, which Kueue enforces, with `borrowing` and `lending` (None:
    unlimited). All others are counted here: a grant never makes `used` (in `FRACTION_BASE`) exceed `nominal`. If an
    operator sets `nominal` below what is in use, `allowance` is what may still be held, and shrinks with it.
    """

    department = models.ForeignKey(Department, null=True, blank=True, on_delete=models.PROTECT, related_name="limits")
    team = models.ForeignKey(Team, null=True, blank=True, on_delete=models.PROTECT, related_name="limits")
    project = models.ForeignKey(Project, null=True, blank=True, on_delete=models.PROTECT, related_name="limits")
    user = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, blank=True, on_delete=models.PROTECT, related_name="limits"
    )
    pool = models.ForeignKey(Pool, null=True, blank=True, on_delete=models.PROTECT, related_name="limits")
    offering = models.ForeignKey(Offering, null=True, blank=True, on_delete=models.PROTECT, related_name="limits")
    flavor = models.ForeignKey(Flavor, null=True, blank=True, on_delete=models.PROTECT, related_name="limits")
    nominal = models.PositiveIntegerField(validators=[MaxValueValidator(MAX_UNITS)])
    borrowing = models.PositiveIntegerField(null=True, blank=True, default=0, validators=[MaxValueValidator(MAX_UNITS)])
    lending = models.PositiveIntegerField(null=True, blank=True, validators=[MaxValueValidator(MAX_UNITS)])
    used = models.BigIntegerField(default=0, editable=False)
    allowance = models.BigIntegerField(default=0, editable=False)
    changes = models.BigIntegerField(default=0, editable=False, help_text="how often `used` changed")
    history = HistoricalRecords(excluded_fields=["used", "allowance", "changes"])

    class Meta:
        ordering = ("department__slug", "team__slug", "project__slug", "user__username", "pool__key", "id")
        constraints: ClassVar = [
            models.UniqueConstraint(
                fields=("department", "team", "project", "user", "pool", "offering", "flavor"),
                nulls_distinct=False,
                name="limit_once_per_holder_and_scope",
            ),
            models.CheckConstraint(
                condition=Q(department__isnull=False, team=None, project=None, user=None)
                | Q(department=None, team__isnull=False, project=None)
                | Q(department=None, team=None, project__isnull=False, user=None),
                name="limit_has_one_holder",
            ),
            models.CheckConstraint(
                condition=Q(offering=None, flavor=None) | Q(pool=None, flavor=None) | Q(pool=None, offering=None),
                name="limit_has_one_scope",
            ),
            models.CheckConstraint(
                condition=ENFORCED_BY_KUEUE | Q(borrowing=0, lending=None), name="limit_is_lent_by_kueue_only"
            ),
            models.CheckConstraint(
                condition=Q(used__gte=0, used__lte=F("allowance")), name="limit_never_used_beyond_its_allowance"
            ),
        ]

    def __str__(self) -> str:
        return f"{self.holder} {self.scope}: {self.nominal}"

    @property
    def holder_kind(self) -> str:
        if self.user_id:
            return "member"
        return "team" if self.team_id else "project" if self.project_id else "department"

    @property
    def holder(self) -> str:
        """Return the slug of the holder, or `team/username` of a member."""
        if self.user and self.team:
            return f"{self.team.slug}/{self.user.username}"
        found = self.team or self.project or self.department
        return found.slug if found else ""

    @property
    def scope_kind(self) -> str:
        return "pool" if self.pool_id else "offering" if self.offering_id else "flavor" if self.flavor_id else "all"

    @property
    def scope(self) -> str:
        """Return the key of the pool or offering, the name of the flavor, or `all`."""
        if self.flavor:
            return self.flavor.name
        found = self.pool or self.offering
        return found.key if found else "all"

    @property
    def dimension(self) -> str:
        return f"{self.holder_kind}:{self.scope}"

    @property
    def is_enforced_by_kueue(self) -> bool:
        return self.scope_kind == "pool" and self.holder_kind in ("department", "team")

    @property
    def units_used(self) -> Fraction:
        """Return the units in use, of a limit that the portal counts."""
        return Fraction(self.used, FRACTION_BASE)


class LimitUse(models.Model):
    """What one allocation counts against one limit, from the request until it has ended.

    `parts` is in fractions of a unit (`FRACTION_BASE`). `granted_seq` and `released_seq` are positions in the sequence
    of changes of the limit's `used`, so its history can be recomputed.
    """

    limit = models.ForeignKey(Limit, on_delete=models.CASCADE, related_name="uses")
    allocation = models.UUIDField()
    parts = models.BigIntegerField()
    granted_seq = models.BigIntegerField()
    released_seq = models.BigIntegerField(null=True, blank=True)

    class Meta:
        constraints: ClassVar = [
            models.UniqueConstraint(fields=("limit", "allocation"), name="limit_use_once_per_allocation"),
            models.CheckConstraint(condition=Q(parts__gt=0), name="limit_use_positive"),
        ]
        indexes: ClassVar = [models.Index(fields=("allocation",), name="limit_use_allocation")]

    def __str__(self) -> str:
        return f"{self.allocation}: {self.parts}"


class Reclaim(models.TextChoices):
    """From whom a team within its nominal quota may reclaim: Kueue's `reclaimWithinCohort`."""

    NEVER = "Never"
    LOWER_PRIORITY = "LowerPriority"
    ANY = "Any"


class Within(models.TextChoices):
    """Whom a request may preempt in its own team's queue: Kueue's `withinClusterQueue`."""

    NEVER = "Never"
    LOWER_PRIORITY = "LowerPriority"
    LOWER_OR_NEWER = "LowerOrNewerEqualPriority"


class QueuePolicy(models.Model):
    """How a team or department shares and preempts. Without a row the defaults apply."""

    department = models.OneToOneField(
        Department, null=True, blank=True, on_delete=models.PROTECT, related_name="queue_policy"
    )
    team = models.OneToOneField(Team, null=True, blank=True, on_delete=models.PROTECT, related_name="queue_policy")
    weight = models.DecimalField(
        max_digits=9,
        decimal_places=3,
        default=1,
        validators=[MinValueValidator(0)],
        help_text="fair-share weight: twice as much may be borrowed with twice the weight",
    )
    reclaim = models.CharField(max_length=13, choices=Reclaim, default=Reclaim.ANY)
    within = models.CharField(max_length=25, choices=Within, default=Within.NEVER)

    class Meta:
        verbose_name_plural = "queue policies"
        constraints: ClassVar = [
            models.CheckConstraint(
                condition=Q(department__isnull=False, team=None) | Q(department=None, team__isnull=False),
                name="queue_policy_has_one_holder",
            ),
            models.CheckConstraint(condition=Q(weight__gte=0), name="queue_policy_weight_not_negative"),
        ]

    def __str__(self) -> str:
        return f"{self.team or self.department}: weight {self.weight}"
