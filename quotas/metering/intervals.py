"""What all intervals of the ledger have: bounds, whether these are estimated, and the evidence for them."""

from datetime import datetime
from typing import Any, ClassVar, TypeVar

from django.db import models
from django.db.models import BaseConstraint, F, Q
from django.db.models.functions import Greatest

from portal.clusters.models import Cluster
from portal.core.models import AppendOnly


class Interval(AppendOnly):
    """The time `[start, end)` of something in a cluster; `end` is null while it lasts.

    Append-only: a row is written once and gets its `end` once. An `estimated` bound is the last sighting before an
    unobserved change.
    """

    cluster = models.ForeignKey(
        Cluster, on_delete=models.PROTECT, related_name="+", db_column="cluster", db_index=False
    )
    start = models.DateTimeField()
    end = models.DateTimeField(null=True, blank=True)
    estimated_start = models.BooleanField(default=False)
    estimated_end = models.BooleanField(default=False)
    recorded_at = models.DateTimeField()

    class Meta:
        abstract = True
        constraints: ClassVar[list[BaseConstraint]] = [
            models.CheckConstraint(
                condition=Q(end__isnull=True) | Q(end__gte=F("start")), name="%(class)s_ends_after_start"
            )
        ]


class SourcedInterval(Interval):
    """An interval whose bounds name the observations that are their evidence."""

    updatable_columns: ClassVar[tuple[str, ...]] = ("end", "source_end", "estimated_end")

    source_start = models.JSONField()
    source_end = models.JSONField(null=True, blank=True)

    class Meta(Interval.Meta):
        abstract = True
        constraints: ClassVar[list[BaseConstraint]] = [
            *Interval.Meta.constraints,
            models.CheckConstraint(
                condition=Q(end__isnull=True, source_end__isnull=True, estimated_end=False)
                | Q(end__isnull=False, source_end__isnull=False),
                name="%(class)s_end_has_evidence",
            ),
        ]


class RevisedInterval(Interval):
    """An interval whose bounds have the revisions of the API server at which they were seen."""

    updatable_columns: ClassVar[tuple[str, ...]] = ("end", "revision_end", "estimated_end")

    revision_start = models.BigIntegerField()
    revision_end = models.BigIntegerField(null=True, blank=True)

    class Meta(Interval.Meta):
        abstract = True


IntervalT = TypeVar("IntervalT", bound=Interval)


def end(rows: models.QuerySet[IntervalT], at: datetime, *, estimated: bool, **evidence: Any) -> int:
    """End the intervals at ``at``, or at their start if that is later, with the columns of their evidence; return how
    many. One statement.
    """
    return rows.update(end=Greatest("start", at), estimated_end=estimated, **evidence)
