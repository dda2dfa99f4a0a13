"""Roll-ups of the ledger: what each account, and each team and project, had in an hour, a day and a month.

They are computed from the ledger (``quotas.costs.rollups``) and replaced when it changes, so they are not append-only.
An amount is whole: GPU-microseconds, times the denominator of the part of a GPU. Money is never stored.
"""

from typing import ClassVar

from django.db import models

from portal.clusters.models import Cluster
from quotas.metering.parts import Category

CATEGORIES = [(category.value, category.value) for category in Category]


class Rollup(models.Model):
    """GPU-microseconds times ``denominator`` in the period from ``start`` on, all at one price.

    ``price`` is that of a GPU-hour, null where none was in force. Names are empty for what nobody holds.
    """

    cluster = models.ForeignKey(
        Cluster, on_delete=models.PROTECT, related_name="+", db_column="cluster", db_index=False
    )
    start = models.DateTimeField()
    flavor = models.CharField(max_length=63)
    category = models.CharField(max_length=11, choices=CATEGORIES)
    offering = models.CharField(max_length=127)
    department = models.CharField(max_length=63)
    team = models.CharField(max_length=63)
    project = models.CharField(max_length=63)
    price = models.DecimalField(max_digits=20, decimal_places=10, null=True)
    denominator = models.DecimalField(max_digits=40, decimal_places=0)
    amount = models.DecimalField(max_digits=60, decimal_places=0)

    class Meta:
        abstract = True
        ordering = ("-start", "cluster", "flavor", "category", "id")

    def __str__(self) -> str:
        return f"{self.cluster_id} {self.flavor} {self.category} {self.start:%F %H:%M}"


class AccountHour(Rollup):
    """An account in an hour, by category and holder. ``node`` and ``name`` are those of the account where ``is_gpu``;
    else its node is none, and ``node`` is that of the hold, where Kubernetes says.
    """

    is_gpu = models.BooleanField()
    node = models.CharField(max_length=253)
    name = models.CharField(max_length=127)
    holder_id = models.UUIDField(null=True)
    kind = models.CharField(max_length=6)
    member = models.CharField(max_length=150)
    namespace = models.CharField(max_length=63)
    labels = models.JSONField(default=dict, db_default={})
    owner_kind = models.CharField(max_length=63, help_text="kind of the controller of what is unmanaged")

    class Meta(Rollup.Meta):
        indexes: ClassVar = [models.Index(fields=("start", "cluster"), name="account_hour")]


class HourTotal(Rollup):
    """The accounts of a cluster in an hour, added up by the names that they share."""

    class Meta(Rollup.Meta):
        indexes: ClassVar = [models.Index(fields=("start", "cluster"), name="hour_total")]


class DayTotal(Rollup):
    """The hours of a UTC day, added up; there is none until all 24 are rolled up."""

    class Meta(Rollup.Meta):
        indexes: ClassVar = [models.Index(fields=("start", "cluster"), name="day_total")]


class MonthTotal(Rollup):
    """The days of a UTC month, added up; there is none until all its hours are rolled up."""

    class Meta(Rollup.Meta):
        indexes: ClassVar = [models.Index(fields=("start", "cluster"), name="month_total")]


class OwnedIdle(models.Model):
    """Whose unused quota idle GPUs were in the period from ``start`` on: a team's, or with an empty team its
    department's own (``quotas.metering.idle_owners``). What no row has of the idle is the platform's.

    ``amount`` is GPU-microseconds times ``idle_owners.PARTS``. ``price`` is as in ``Rollup``.
    """

    cluster = models.ForeignKey(
        Cluster, on_delete=models.PROTECT, related_name="+", db_column="cluster", db_index=False
    )
    start = models.DateTimeField()
    flavor = models.CharField(max_length=63)
    department = models.CharField(max_length=63)
    team = models.CharField(max_length=63)
    price = models.DecimalField(max_digits=20, decimal_places=10, null=True)
    amount = models.DecimalField(max_digits=60, decimal_places=0)

    class Meta:
        abstract = True
        ordering = ("-start", "cluster", "flavor", "department", "team", "id")

    def __str__(self) -> str:
        return f"{self.cluster_id} {self.flavor} {self.team or self.department} {self.start:%F %H:%M}"


class OwnedIdleHour(OwnedIdle):
    """The idle GPUs of an hour that are somebody's."""

    class Meta(OwnedIdle.Meta):
        indexes: ClassVar = [models.Index(fields=("start", "cluster"), name="owned_idle_hour")]


class OwnedIdleDay(OwnedIdle):
    """The hours of a UTC day, added up; as ``DayTotal``."""

    class Meta(OwnedIdle.Meta):
        indexes: ClassVar = [models.Index(fields=("start", "cluster"), name="owned_idle_day")]


class OwnedIdleMonth(OwnedIdle):
    """The days of a UTC month, added up; as ``MonthTotal``."""

    class Meta(OwnedIdle.Meta):
        indexes: ClassVar = [models.Index(fields=("start", "cluster"), name="owned_idle_month")]


class RolledUpHour(models.Model):
    """An hour of a cluster that is rolled up."""

    cluster = models.ForeignKey(
        Cluster, on_delete=models.PROTECT, related_name="+", db_column="cluster", db_index=False
    )
    hour = models.DateTimeField()
    rolled_up_at = models.DateTimeField()

    class Meta:
        ordering = ("-hour", "cluster")
        constraints: ClassVar = [models.UniqueConstraint(fields=("hour", "cluster"), name="rolled_up_once")]

    def __str__(self) -> str:
        return f"{self.cluster_id} {self.hour:%F %H:%M}"


class DirtyHour(models.Model):
    """A mark that the ledger of an hour has changed since the hour was rolled up, or may have; an hour can have many.

    Written in the transaction of the change (``quotas.metering.dirty_hours``), and deleted by the roll-up that saw it.
    """

    cluster = models.ForeignKey(
        Cluster, on_delete=models.PROTECT, related_name="+", db_column="cluster", db_index=False
    )
    hour = models.DateTimeField()

    class Meta:
        ordering = ("hour", "cluster", "id")
        indexes: ClassVar = [models.Index(fields=("hour", "cluster"), name="dirty_hour")]

    def __str__(self) -> str:
        return f"{self.cluster_id} {self.hour:%F %H:%M}"
