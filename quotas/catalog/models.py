"""The catalog: flavors, pools and offerings, and the nodes and devices behind them.

Everything except operators' decisions (`Flavor.DECIDED`, `Offering.hidden`, `Preset`) is observed: `sync.sync` writes
what `discovery.discover` found. Rows are never deleted: limits, prices and allocations refer to them.
"""

from decimal import Decimal
from fractions import Fraction
from typing import ClassVar

from django.conf import settings
from django.core.validators import MinValueValidator, RegexValidator
from django.db import models
from django.db.models import F, Q

from portal.clusters.models import Cluster
from portal.core.models import AppendOnly
from quotas.catalog import shortnames
from quotas.catalog.node_shares import NodeShare, per_slice


class Path(models.TextChoices):
    """The backend by which a slice reaches a pod. A flavor has one, and so has a node."""

    DRA = "dra", "DRA"
    DEVICE_PLUGIN = "device-plugin", "device plugin"


HOLDER_PODS = {Path.DRA: 1, Path.DEVICE_PLUGIN: 0}
"""The pods of the portal's own that hold one slice: a claim has a holder pod, a hold quota needs none."""


class Kind(models.TextChoices):
    WHOLE = "whole", "whole GPU"
    MIG = "mig", "MIG slice"
    SHARED = "shared", "shared, not isolated"
    CLAIM = "claim", "custom DRA claim"


class Isolation(models.TextChoices):
    """What separates two slices of one GPU (NVIDIA: time-slicing and MPS replicas share memory and faults)."""

    FULL = "full", "dedicated GPU"
    HARDWARE = "hardware", "isolated in hardware"
    NONE = "none", "shared, not isolated"


class Sharing(models.TextChoices):
    """How several slices use one GPU; none of it isolates them."""

    TIME_SLICING = "time-slicing", "time-slicing"
    MPS = "mps", "MPS"
    CONSUMABLE_SHARES = "consumable-shares", "consumable shares"
    VGPU = "vgpu", "vGPU"


class Flavor(models.Model):
    """One GPU model in one node pool, reached by one path; a Kueue ResourceFlavor of the same name.

    `strategy` says how the GPUs are divided (`plain`, `dynamic-mig`, `time-slicing-4`, ...): with cluster, product and
    path it is what a flavor is known by, so that its name survives whatever is discovered later. `geometry` is what a
    GPU can be cut into, as its driver publishes it (`published.document`); empty where GPUs are not cut on demand.
    A flavor that was only discovered is a proposal; an operator accepts it. `node_cpu_millicores`, `node_memory_mib`
    and `node_pods` are what a GPU has of its node (`node_shares`), 0 if no node reports it.
    """

    DECIDED = (
        "accepted",
        "hidden",
        "title",
        "group",
        "start_deadline_s",
        "fail_requests_greater_than_one",
        "cpu_millicores_per_gpu",
        "memory_mib_per_gpu",
        "gpu_memory_mib",
    )

    cluster = models.ForeignKey(Cluster, on_delete=models.PROTECT, related_name="flavors", db_index=False)
    name = models.CharField(max_length=shortnames.MAX_LENGTH, unique=True, validators=[RegexValidator(shortnames.NAME)])
    product = models.CharField(max_length=63, help_text="value of the node label nvidia.com/gpu.product")
    path = models.CharField(max_length=13, choices=Path)
    strategy = models.CharField(max_length=63)
    architecture = models.CharField(max_length=40, blank=True)
    memory_mib = models.PositiveIntegerField(default=0)
    compute_capability = models.CharField(max_length=10, blank=True)
    node_selector = models.JSONField(default=dict)
    tolerations = models.JSONField(default=list)
    partitionable = models.BooleanField(default=False)
    geometry = models.JSONField(default=dict, blank=True)
    accepted = models.BooleanField(default=False, help_text="offered to teams; else proposed by discovery")
    hidden = models.BooleanField(default=False)
    title = models.CharField(max_length=100, blank=True, help_text="shown instead of the product")
    group = models.CharField(max_length=63, blank=True, help_text="heading under which it is shown")
    start_deadline_s = models.PositiveIntegerField(null=True, blank=True, help_text="empty: the portal's default")
    fail_requests_greater_than_one = models.BooleanField(
        null=True, blank=True, help_text="as in the device plugin's sharing; empty: NVIDIA's default (MPS only)"
    )
    node_cpu_millicores = models.PositiveIntegerField(default=0)
    node_memory_mib = models.PositiveIntegerField(default=0)
    node_pods = models.PositiveIntegerField(default=0)
    cpu_millicores_per_gpu = models.PositiveIntegerField(
        null=True, blank=True, help_text="CPU that goes with a whole GPU; empty: an even part of its node's"
    )
    memory_mib_per_gpu = models.PositiveIntegerField(
        null=True, blank=True, help_text="memory that goes with a whole GPU; empty: an even part of its node's"
    )

    gpu_memory_mib = models.PositiveIntegerField(
        null=True,
        blank=True,
        help_text="memory of a whole GPU, from which follows how MIG divides it; empty: as labelled",
    )

    class Meta:
        ordering = ("name",)
        constraints: ClassVar = [
            models.UniqueConstraint(fields=("cluster", "product", "path", "strategy"), name="flavor_identity"),
            models.CheckConstraint(condition=Q(path__in=Path.values), name="flavor_path_known"),
        ]

    def __str__(self) -> str:
        return self.name

    @property
    def is_offered(self) -> bool:
        return self.accepted and not self.hidden

    @property
    def whole_gpu_mib(self) -> int:
        """Return the MiB of a whole GPU, as decided or labelled; 0 if it is not known. By MIG strategy `single` the
        label has a MIG device's own.
        """
        return self.gpu_memory_mib or (0 if "-MIG-" in self.product else self.memory_mib)

    @property
    def most_per_gpu(self) -> NodeShare:
        """Return an even part of the flavor's smallest node."""
        return NodeShare(self.node_cpu_millicores, self.node_memory_mib, self.node_pods)

    @property
    def per_gpu(self) -> NodeShare:
        """Return the CPU, memory and pods that go with a whole GPU: what operators decided, but no more than a node
        has.
        """
        found = self.most_per_gpu
        cpu, memory = self.cpu_millicores_per_gpu, self.memory_mib_per_gpu
        decided = NodeShare(
            found.cpu_millicores if cpu is None else cpu, found.memory_mib if memory is None else memory, found.pods
        )
        return found.at_most(decided)


class Pool(models.Model):
    """The countable capacity of a flavor.

    One unit is a whole GPU for `<flavor>/slices`, else one of the device plugin's resource. `resources` is what one
    unit amounts to: {resource name: integer}.
    """

    key = models.CharField(max_length=127, unique=True)
    flavor = models.ForeignKey(Flavor, on_delete=models.PROTECT, related_name="pools")
    resources = models.JSONField()

    class Meta:
        ordering = ("key",)

    def __str__(self) -> str:
        return self.key


class PoolUse(models.Model):
    """The last observed use of a pool, in its units.

    `total` counts healthy devices on nodes that are ready, schedulable and tainted; `foreign` is the part of it used by
    pods and claims without an allocation. `blocked` units are free and cannot have their share of their node's CPU,
    memory or pods, since pods outside the portal request it.
    """

    pool = models.OneToOneField(Pool, on_delete=models.CASCADE, related_name="use")
    total = models.PositiveIntegerField(default=0)
    foreign = models.PositiveIntegerField(default=0)
    blocked = models.PositiveIntegerField(default=0)

    def __str__(self) -> str:
        return f"{self.pool}: {self.total} - {self.foreign} - {self.blocked}"


class Offering(models.Model):
    """A catalogue item: a kind of slice of a flavor. `requests` is what one slice uses of the pool's resources.

    A slice by device plugin is asked as `resource`; one by DRA as a device of `device_class` that meets `selectors`,
    and `capacity` of it where a device serves several. `gpu_share` is the exact part of a GPU's price that one slice
    costs, `memory_part` the part of its memory. `replicas` slices share one GPU or MIG instance by `sharing`;
    `memory_mib` is then what they share.
    """

    key = models.CharField(max_length=127, unique=True)
    flavor = models.ForeignKey(Flavor, on_delete=models.PROTECT, related_name="offerings")
    pool = models.ForeignKey(Pool, on_delete=models.PROTECT, related_name="offerings")
    kind = models.CharField(max_length=6, choices=Kind)
    profile = models.CharField(max_length=40, blank=True)
    isolation = models.CharField(max_length=8, choices=Isolation)
    requests = models.JSONField()
    resource = models.CharField(max_length=63, blank=True)
    device_class = models.CharField(max_length=253, blank=True)
    selectors = models.JSONField(default=list, blank=True)
    capacity = models.JSONField(default=dict, blank=True)
    sharing = models.CharField(max_length=18, choices=Sharing, blank=True)
    replicas = models.PositiveIntegerField(default=1)
    memory_mib = models.PositiveIntegerField(default=0)
    gpu_share_numerator = models.PositiveIntegerField(default=1)
    gpu_share_denominator = models.PositiveIntegerField(default=1)
    memory_part_numerator = models.PositiveIntegerField(default=1)
    memory_part_denominator = models.PositiveIntegerField(default=1)
    per_node = models.PositiveIntegerField(default=0, help_text="the most slices one node can give")
    hidden = models.BooleanField(default=False)

    class Meta:
        ordering = ("key",)
        constraints: ClassVar = [
            models.CheckConstraint(condition=Q(kind__in=Kind.values), name="offering_kind_known"),
            models.CheckConstraint(condition=Q(isolation__in=Isolation.values), name="offering_isolation_known"),
            models.CheckConstraint(
                condition=Q(gpu_share_denominator__gt=0, gpu_share_numerator__lte=F("gpu_share_denominator")),
                name="offering_share_at_most_one",
            ),
        ]

    def __str__(self) -> str:
        return self.key

    @property
    def gpu_share(self) -> Fraction:
        return Fraction(self.gpu_share_numerator, self.gpu_share_denominator)

    @property
    def memory_part(self) -> Fraction:
        return Fraction(self.memory_part_numerator, self.memory_part_denominator)

    @property
    def node_share(self) -> NodeShare:
        """Return the CPU, memory and pods that go with one slice; needs the flavor."""
        return per_slice(self.flavor.per_gpu, self.memory_part, holders=HOLDER_PODS[Path(self.flavor.path)])

    @property
    def is_offered(self) -> bool:
        """Return whether the offering can be requested; needs the flavor."""
        return self.flavor.is_offered and not self.hidden

    @property
    def one_at_a_time(self) -> bool:
        """Return whether a pod may request one only: the device plugin's `failRequestsGreaterThanOne`, by default with
        MPS.

        Needs the flavor. Source: NVIDIA k8s-device-plugin, api/config/v1.
        """
        if self.kind != Kind.SHARED or not self.resource:
            return False
        decided = self.flavor.fail_requests_greater_than_one
        return self.sharing == Sharing.MPS if decided is None else decided


MAX_NAME = 40
"""Of a preset."""


class Preset(models.Model):
    """A request under a name: so many slices of an offering, for so many hours.

    Operators offer those without an `owner`, shown by `position`, then by name, to people whose team has quota of the
    offering. A person's own has all fields of the request in `query`, as the address of the page Request has them.
    """

    name = models.CharField(max_length=MAX_NAME, help_text="such as Notebook, or 8-GPU node")
    owner = models.ForeignKey(
        settings.AUTH_USER_MODEL,
        on_delete=models.CASCADE,
        null=True,
        blank=True,
        editable=False,
        related_name="presets",
    )
    query = models.TextField(blank=True, editable=False, default="", db_default="")
    offering = models.ForeignKey(Offering, on_delete=models.PROTECT, related_name="presets")
    count = models.PositiveIntegerField(default=1, validators=[MinValueValidator(1)])
    hours = models.DecimalField(
        max_digits=8, decimal_places=2, default=8, validators=[MinValueValidator(Decimal("0.01"))]
    )
    position = models.PositiveSmallIntegerField(default=0, help_text="presets with a lower number come first")
    hidden = models.BooleanField(default=False)

    class Meta:
        ordering = ("position", "name")
        constraints: ClassVar = [
            models.UniqueConstraint(fields=("owner", "name"), nulls_distinct=False, name="preset_once_per_owner")
        ]

    def __str__(self) -> str:
        return self.name


class FlavorVersion(AppendOnly):
    """What the rating of hours needs of a flavor and its offerings, from `since` until its next version; append-only.

    Written with each change (`versions`), so that hours that were charged before it are rated as they were.
    """

    flavor = models.ForeignKey(Flavor, on_delete=models.PROTECT, related_name="versions", db_index=False)
    since = models.DateTimeField()
    document = models.JSONField()

    class Meta:
        ordering = ("flavor__name", "-since")
        indexes: ClassVar = [models.Index(fields=("flavor", "-since"), name="flavor_version_newest")]

    def __str__(self) -> str:
        return f"{self.flavor} from {self.since:%F %T}"


class Node(models.Model):
    """A node with GPUs. `flavor` is empty when it is not offered; `problem` then says why, and what would
    help. `blocked_gpus`, rounded up, cannot have their share of its CPU, memory or pods.

    `supply` is what discovery found that the count of its use depends on (`node_supply`), `found_problem` the part of
    `problem` that does not depend on use. `foreign` and `blocked_units` are its part of its pools' use (`PoolUse`).
    """

    cluster = models.ForeignKey(Cluster, on_delete=models.PROTECT, related_name="nodes", db_index=False)
    name = models.CharField(max_length=253)
    flavor = models.ForeignKey(Flavor, null=True, blank=True, on_delete=models.PROTECT, related_name="nodes")
    ready = models.BooleanField(help_text="ready and schedulable")
    tainted = models.BooleanField(help_text="has a GPU taint, so that pods without a GPU stay away")
    problem = models.TextField(blank=True)
    capacity = models.JSONField(default=dict)
    blocked_gpus = models.DecimalField(
        max_digits=9, decimal_places=3, default=0, help_text="GPUs whose share of CPU, memory or pods others use"
    )
    present = models.BooleanField(default=True, help_text="seen in the last inventory")
    supply = models.JSONField(default=dict, blank=True)
    found_problem = models.TextField(blank=True)
    foreign = models.JSONField(default=dict, blank=True)
    blocked_units = models.JSONField(default=dict, blank=True)

    class Meta:
        ordering = ("name",)
        constraints: ClassVar = [models.UniqueConstraint(fields=("cluster", "name"), name="node_once_per_cluster")]

    def __str__(self) -> str:
        return self.name


class Device(models.Model):
    """A device that Kubernetes names: a GPU, or a MIG device made beforehand. By DRA only; a device plugin publishes
    counts.
    """

    node = models.ForeignKey(Node, on_delete=models.PROTECT, related_name="devices")
    name = models.CharField(max_length=63)
    uuid = models.CharField(max_length=64, blank=True)
    flavor = models.ForeignKey(Flavor, on_delete=models.PROTECT, related_name="devices")
    healthy = models.BooleanField()
    attributes = models.JSONField(default=dict)
    present = models.BooleanField(default=True, help_text="seen in the last inventory")

    class Meta:
        ordering = ("node__name", "name")
        constraints: ClassVar = [models.UniqueConstraint(fields=("node", "name"), name="device_once_per_node")]

    def __str__(self) -> str:
        return f"{self.node}/{self.name}"
