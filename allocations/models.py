"""The rows of allocations (intent), their transitions (history), the mirror of the cluster, and applied objects."""

import uuid
from datetime import timedelta
from typing import ClassVar

from django.conf import settings
from django.contrib.postgres.indexes import GinIndex
from django.db import models
from django.db.models import F, Q
from django.db.models.fields.json import KT
from django.db.models.lookups import IsNull

from allocations.domain.custom_claim import slices_of
from allocations.domain.observed_facts import ObservedFacts
from allocations.domain.phases import Outcome, Phase
from portal.clusters.models import Cluster
from portal.tenants.models import Project
from quotas.catalog.models import Offering

HAS_ENDED = IsNull(F("ended_at"), False)
"""By this, what is live comes first: in the order of a page, and in the index that it reads."""


class Allocation(models.Model):
    """An allocation: the request, and the intent of people and deadlines. Its cluster is that of its project.

    The phase is derived from the observed state (``allocations.domain.phases``). The row has a copy for lists, written
    by ``allocations.reconcile.allocation``.
    """

    class Desired(models.TextChoices):
        HELD = "held"
        RELEASED = "released"

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    name = models.CharField(max_length=48)
    number = models.PositiveSmallIntegerField(
        default=0,
        null=True,
        blank=True,
        help_text="which of the project's live allocations it is: names its hold quota and its pods' class; "
        "empty while it is scheduled",
    )
    project = models.ForeignKey(Project, on_delete=models.PROTECT, related_name="allocations")
    offering = models.ForeignKey(Offering, on_delete=models.PROTECT, related_name="allocations")
    requested_by = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="allocations")
    mode = models.CharField(max_length=16, default="hold")
    count = models.PositiveIntegerField()
    constraints = models.JSONField(default=dict, blank=True, help_text='e.g. {"spread": true}, or nothing')
    sharing = models.JSONField(
        default=dict, blank=True, help_text="how pods share the devices of its claim (GpuConfig), or nothing"
    )
    claim = models.JSONField(null=True, blank=True, help_text="its own DRA request, for offerings of kind claim")
    priority = models.CharField(max_length=16, default="normal")
    purpose = models.CharField(max_length=500, blank=True)
    labels = models.JSONField(default=dict, db_default={}, blank=True, help_text="costs are grouped by them")
    requeue = models.BooleanField(default=True)
    created_at = models.DateTimeField()
    starts_at = models.DateTimeField(null=True, blank=True)
    hours = models.DecimalField(
        max_digits=12,
        decimal_places=6,
        null=True,
        blank=True,
        help_text="time held that was asked for, summed over evictions; empty if a date was asked",
    )
    ends_at = models.DateTimeField(
        null=True, blank=True, help_text="the asked date; of hours the end of the present hold, empty until held"
    )
    give_up_at = models.DateTimeField(
        null=True, blank=True, help_text="end of the first wait; after a hold that ended it waits as long again"
    )
    held_before = models.DurationField(default=timedelta(0), help_text="the sum of its ended holds")
    held_until = models.DateTimeField(null=True, blank=True, help_text="when the last of its ended holds ended")
    held_since = models.DateTimeField(null=True, blank=True, help_text="start of the present hold")

    desired = models.CharField(max_length=16, choices=Desired.choices, default=Desired.HELD)
    ending = models.CharField(
        max_length=16, blank=True, help_text="why it is to end: person, expired, evicted or failed"
    )
    start_failures = models.PositiveIntegerField(default=0)
    not_before = models.DateTimeField(null=True, blank=True, help_text="no lease before this time (back-off)")
    needs_attention = models.BooleanField(default=False, help_text="start failed too often; waits for the owner")
    device_affinity = models.JSONField(
        default=dict,
        blank=True,
        help_text="GPUs that its claims request (UUIDs by slice), or that the scheduler chooses",
    )
    in_guard = models.BooleanField(default=False, help_text="its project's guard is to admit its pods")
    in_quota = models.BooleanField(default=False, help_text="a hold quota of its project is to have its slices")
    recovered = models.BooleanField(
        default=False, help_text="made again from its lease, after a restore of the database"
    )

    phase = models.CharField(max_length=24, choices=[(p.value, p.value) for p in Phase], default=Phase.QUEUED.value)
    phase_since = models.DateTimeField()
    phase_until = models.DateTimeField(null=True, blank=True, help_text="when time alone ends the phase")
    reason = models.CharField(max_length=64, blank=True)
    message = models.CharField(max_length=1000, blank=True)
    held_at = models.DateTimeField(null=True, blank=True)
    ended_at = models.DateTimeField(null=True, blank=True)
    outcome = models.CharField(max_length=16, choices=[(o.value, o.value) for o in Outcome], blank=True)

    class Meta:
        ordering: ClassVar = ["-created_at", "-id"]
        constraints: ClassVar = [
            models.UniqueConstraint(
                fields=["project", "name"], condition=Q(ended_at__isnull=True), name="allocation_name_unique_live"
            ),
            models.UniqueConstraint(
                fields=["project", "number"], condition=Q(ended_at__isnull=True), name="allocation_number_unique_live"
            ),
            models.CheckConstraint(condition=Q(count__gt=0), name="allocation_count_positive"),
            models.CheckConstraint(
                condition=Q(hours__gt=0) | Q(hours__isnull=True, ends_at__isnull=False), name="allocation_has_an_end"
            ),
            models.CheckConstraint(
                condition=Q(ended_at__isnull=True, outcome="") | (Q(ended_at__isnull=False) & ~Q(outcome="")),
                name="allocation_ended_has_outcome",
            ),
            models.CheckConstraint(
                condition=Q(ended_at__isnull=True) | Q(desired="released"),
                name="allocation_ended_is_released",
            ),
        ]
        indexes: ClassVar = [
            models.Index(fields=["project"], condition=Q(ended_at__isnull=True), name="allocation_live"),
            models.Index(fields=["-created_at", "-id"], name="allocation_newest"),
            models.Index(HAS_ENDED, F("created_at").desc(), F("id").desc(), name="allocation_live_first"),
            models.Index(fields=["project", "name", "-ended_at"], name="allocation_by_name"),
        ]

    def __str__(self) -> str:
        return f"{self.project_id}/{self.name}"

    @property
    def slices(self) -> int:
        """Return how many slices it requests or holds: of a custom claim its devices, since its count is always one."""
        return slices_of(self.count, self.claim)


class Transition(models.Model):
    """An entry of an allocation's timeline, with the object that shows it as evidence. Never edited."""

    allocation = models.ForeignKey(Allocation, on_delete=models.CASCADE, related_name="transitions")
    at = models.DateTimeField()
    recorded_at = models.DateTimeField()
    type = models.CharField(max_length=32)
    from_phase = models.CharField(max_length=24, blank=True)
    to_phase = models.CharField(max_length=24, blank=True)
    reason = models.CharField(max_length=64, blank=True)
    message = models.CharField(max_length=1000, blank=True)
    actor = models.CharField(max_length=150)
    evidence = models.JSONField(default=dict, blank=True)

    class Meta:
        ordering: ClassVar = ["id"]
        indexes: ClassVar = [models.Index(fields=["allocation", "id"], name="transition_timeline")]

    def __str__(self) -> str:
        return f"{self.from_phase} → {self.to_phase} ({self.reason})"


class MirrorObject(models.Model):
    """The last observed form of one object of a cluster. Written by the watcher only.

    ``digest`` is that of the portal's managedFields entry, so an edit by someone else is detected without a GET.
    ``facts`` are the fields that the portal reads (``allocations.domain.observed_facts``).
    """

    cluster = models.ForeignKey(Cluster, on_delete=models.PROTECT, related_name="+", db_index=False)
    kind = models.CharField(max_length=40)
    namespace = models.CharField(max_length=63, blank=True)
    name = models.CharField(max_length=253)
    uid = models.CharField(max_length=64)
    resource_version = models.BigIntegerField()
    digest = models.CharField(max_length=64, blank=True)
    allocation = models.CharField(max_length=63, blank=True)
    deleting = models.BooleanField(default=False)
    facts: "models.JSONField[ObservedFacts, ObservedFacts]" = models.JSONField(default=dict)
    seen_at = models.DateTimeField()

    class Meta:
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["cluster", "kind", "namespace", "name"], name="mirror_object_unique")
        ]
        indexes: ClassVar = [
            models.Index(fields=["cluster", "namespace", "allocation"], name="mirror_by_allocation"),
            models.Index(F("cluster"), KT("facts__node"), condition=Q(kind="Pod"), name="mirror_pods_by_node"),
            GinIndex(
                fields=["facts"],
                opclasses=["jsonb_path_ops"],
                condition=Q(kind="ResourceClaim"),
                name="mirror_claims_by_device",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.kind} {self.namespace}/{self.name}"


class WatchState(models.Model):
    """The revision and the time up to which the mirror of one kind of a cluster is complete."""

    cluster = models.ForeignKey(Cluster, on_delete=models.PROTECT, related_name="+", db_index=False)
    kind = models.CharField(max_length=40)
    resource_version = models.BigIntegerField(default=0)
    synced_at = models.DateTimeField()

    class Meta:
        constraints: ClassVar = [models.UniqueConstraint(fields=["cluster", "kind"], name="watch_state_unique")]

    def __str__(self) -> str:
        return f"{self.kind} at {self.resource_version}"


class WatchEpoch(models.Model):
    """The number of the current watch epoch of a cluster; only its watcher may write the mirror."""

    cluster = models.OneToOneField(Cluster, on_delete=models.PROTECT, primary_key=True, related_name="+")
    number = models.BigIntegerField(default=0)

    def __str__(self) -> str:
        return f"{self.cluster_id}: epoch {self.number}"


class AppliedObject(models.Model):
    """The last response of server-side apply for an object of the portal.

    ``intent`` is the digest of the manifest, ``digest`` that of the fields that the portal owns.
    """

    cluster = models.ForeignKey(Cluster, on_delete=models.PROTECT, related_name="+", db_index=False)
    target = models.CharField(max_length=100, help_text="who keeps it, as portal.workqueue.targets has it")
    kind = models.CharField(max_length=40)
    namespace = models.CharField(max_length=63, blank=True)
    name = models.CharField(max_length=253)
    uid = models.CharField(max_length=64)
    resource_version = models.BigIntegerField()
    intent = models.CharField(max_length=64)
    digest = models.CharField(max_length=64)
    applied_at = models.DateTimeField()

    class Meta:
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["cluster", "kind", "namespace", "name"], name="applied_object_unique")
        ]
        indexes: ClassVar = [models.Index(fields=["target"], name="applied_by_target")]

    def __str__(self) -> str:
        return f"{self.kind} {self.namespace}/{self.name}"


class UsageChange(models.Model):
    """A node whose use by pods and claims is to be counted again from ``due_at`` on.

    Written by ``allocations.reconcile.usage_changes``.
    """

    cluster = models.ForeignKey(Cluster, on_delete=models.PROTECT, related_name="+", db_index=False)
    node = models.CharField(max_length=253)
    due_at = models.DateTimeField()
    changes = models.BigIntegerField(default=1, help_text="how often its use has changed")

    class Meta:
        constraints: ClassVar = [models.UniqueConstraint(fields=["cluster", "node"], name="usage_change_unique")]

    def __str__(self) -> str:
        return f"{self.node} at {self.due_at:%F %T}"


class ClusterStore(models.Model):
    """The size of a cluster's etcd database when last read. Written by ``allocations.reconcile.etcd_monitor``."""

    cluster = models.OneToOneField(Cluster, on_delete=models.PROTECT, primary_key=True, related_name="+")
    size_bytes = models.BigIntegerField()
    read_at = models.DateTimeField()

    class Meta:
        verbose_name_plural = "cluster stores"

    def __str__(self) -> str:
        return f"{self.cluster_id}: {self.size_bytes} bytes at {self.read_at}"


class LeaseExcess(models.Model):
    """Use beyond a lease, from its first sighting until it is over. Written by ``allocations.reconcile.enforcement``.

    A sighting is confirmed when the mirror has advanced and the API server shows the same. Only then pods are ended.
    """

    cluster = models.ForeignKey(Cluster, on_delete=models.PROTECT, related_name="+", db_index=False)
    holder_kind = models.CharField(max_length=16, help_text="allocation, job; pod or claim of neither")
    holder = models.CharField(max_length=64, help_text="the allocation's id, or the uid of the Job, pod or claim")
    name = models.CharField(max_length=253)
    namespace = models.CharField(max_length=63)
    resource = models.CharField(max_length=63)
    used = models.PositiveIntegerField()
    reserved = models.PositiveIntegerField()
    message = models.CharField(max_length=1000)
    seen_at = models.DateTimeField()
    confirmed_at = models.DateTimeField(null=True, blank=True)
    over_at = models.DateTimeField(null=True, blank=True)
    actions = models.PositiveIntegerField(default=0, help_text="how often something was ended because of it")

    class Meta:
        verbose_name_plural = "lease excesses"
        ordering: ClassVar = ["-seen_at", "-id"]
        constraints: ClassVar = [
            models.UniqueConstraint(
                fields=["cluster", "holder_kind", "holder", "resource"],
                condition=Q(over_at__isnull=True),
                name="lease_excess_once",
            )
        ]

    def __str__(self) -> str:
        return self.message
