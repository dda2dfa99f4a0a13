"""What capacity costs the platform: nodes over time, how they are paid, what they cost; and roll-ups of it."""

from typing import ClassVar

from django.db import models
from django.db.models import Q

from portal.clusters.models import Cluster
from portal.core.models import AppendOnly
from quotas.catalog.models import Flavor, Node
from quotas.costs.node_terms import Term
from quotas.metering.intervals import SourcedInterval

TERMS = [(term.value, term.value) for term in Term]


class NodeInterval(SourcedInterval):
    """The time `[start, end)` in which a node had this size and was labelled with this term, which is empty if no
    label says one.
    """

    node = models.CharField(max_length=253)
    term = models.CharField(max_length=9, choices=TERMS, blank=True)
    cpu_millicores = models.PositiveIntegerField()
    memory_mib = models.PositiveIntegerField()

    class Meta(SourcedInterval.Meta):
        ordering = ("-start", "cluster", "node")
        constraints: ClassVar = [
            *SourcedInterval.Meta.constraints,
            models.UniqueConstraint(
                fields=("cluster", "node"), condition=Q(end__isnull=True), name="node_one_open_interval"
            ),
        ]
        indexes: ClassVar = [
            models.Index(fields=("cluster", "start"), name="node_interval_start"),
            models.Index(fields=("cluster", "node", "-end"), name="node_interval_end"),
        ]

    def __str__(self) -> str:
        return f"{self.node} [{self.start:%F %T}, {self.end or '...'})"


class NodeCost(AppendOnly):
    """What nodes cost the platform in an hour, from `valid_from` until the next row of the same flavor and term, or of
    the same node. Rows never change.

    The amount is `per` GPU, or per node; a node's is split by what it has times these weights (`node_split`).
    """

    may_be_withdrawn = True

    class Per(models.TextChoices):
        GPU = "gpu", "GPU"
        NODE = "node", "node"

    flavor = models.ForeignKey(
        Flavor, null=True, blank=True, on_delete=models.PROTECT, related_name="costs", help_text="of all its nodes"
    )
    term = models.CharField(max_length=9, choices=TERMS, blank=True, help_text="of a flavor's nodes")
    node = models.ForeignKey(
        Node, null=True, blank=True, on_delete=models.PROTECT, related_name="costs", help_text="of this node alone"
    )
    valid_from = models.DateTimeField()
    per = models.CharField(max_length=4, choices=Per)
    per_hour = models.DecimalField(max_digits=20, decimal_places=10)
    cpu_weight = models.DecimalField(max_digits=20, decimal_places=10, default=0)
    memory_gib_weight = models.DecimalField(max_digits=20, decimal_places=10, default=0)
    gpu_weight = models.DecimalField(max_digits=20, decimal_places=10, default=1)
    currency = models.CharField(max_length=3)
    source = models.CharField(max_length=200, blank=True, help_text="where the figure comes from")

    class Meta:
        ordering = ("-valid_from", "-id")
        constraints: ClassVar = [
            models.CheckConstraint(
                condition=(Q(flavor__isnull=False, node=None) & ~Q(term=""))
                | Q(flavor=None, node__isnull=False, term=""),
                name="node_cost_of_flavor_or_node",
            ),
            models.UniqueConstraint(
                fields=("flavor", "term", "valid_from"), condition=Q(node=None), name="node_cost_once_of_flavor"
            ),
            models.UniqueConstraint(
                fields=("node", "valid_from"), condition=Q(node__isnull=False), name="node_cost_once_of_node"
            ),
            models.CheckConstraint(
                condition=Q(per_hour__gte=0, cpu_weight__gte=0, memory_gib_weight__gte=0, gpu_weight__gt=0),
                name="node_cost_not_negative",
            ),
            models.CheckConstraint(
                condition=Q(per="node") | Q(per="gpu", cpu_weight=0, memory_gib_weight=0),
                name="node_cost_split_of_node",
            ),
            models.CheckConstraint(condition=Q(currency__regex=r"^[A-Z]{3}$"), name="node_cost_currency_iso4217"),
        ]

    def __str__(self) -> str:
        of = self.node or f"{self.flavor} {self.term}"
        return f"{of}: {self.per_hour.normalize():f} {self.currency} per {self.per} from {self.valid_from:%F %T}"


class NodeTerm(AppendOnly):
    """The term that an operator says of a node, from `valid_from` until the next row of it; a label of the node
    prevails. Rows never change.
    """

    may_be_withdrawn = True

    node = models.ForeignKey(Node, on_delete=models.PROTECT, related_name="terms")
    term = models.CharField(max_length=9, choices=TERMS)
    valid_from = models.DateTimeField()

    class Meta:
        ordering = ("-valid_from", "-id")
        constraints: ClassVar = [
            models.UniqueConstraint(fields=("node", "valid_from"), name="node_term_once_per_moment")
        ]

    def __str__(self) -> str:
        return f"{self.node} {self.term} from {self.valid_from:%F %T}"


class CapacityCost(models.Model):
    """What capacity cost in the period from ``start`` on, at one price; computed, and replaced with its hour.

    ``amount`` is whole, as that of ``metering`` roll-ups: microseconds times ``denominator``, of GPUs in the parts gpu
    and rate. The part rest is what is left of nodes: their hours at their price, and their GPUs, negative, at theirs.
    """

    cluster = models.ForeignKey(
        Cluster, on_delete=models.PROTECT, related_name="+", db_column="cluster", db_index=False
    )
    start = models.DateTimeField()
    flavor = models.CharField(max_length=63)
    term = models.CharField(max_length=9, choices=TERMS)
    part = models.CharField(max_length=4, help_text="gpu, rate where no cost is stated, or rest")
    price = models.DecimalField(max_digits=20, decimal_places=10, null=True)
    denominator = models.DecimalField(max_digits=40, decimal_places=0)
    amount = models.DecimalField(max_digits=60, decimal_places=0)

    class Meta:
        abstract = True
        ordering = ("-start", "cluster", "flavor", "term", "part", "id")

    def __str__(self) -> str:
        return f"{self.cluster_id} {self.flavor} {self.term} {self.part} {self.start:%F %H:%M}"


class CapacityCostHour(CapacityCost):
    """What the capacity of a cluster cost in an hour."""

    class Meta(CapacityCost.Meta):
        indexes: ClassVar = [models.Index(fields=("start", "cluster"), name="capacity_cost_hour")]


class CapacityCostDay(CapacityCost):
    """The hours of a UTC day, added up; there is none until all 24 are rolled up."""

    class Meta(CapacityCost.Meta):
        indexes: ClassVar = [models.Index(fields=("start", "cluster"), name="capacity_cost_day")]


class CapacityCostMonth(CapacityCost):
    """The days of a UTC month, added up; there is none until all its hours are rolled up."""

    class Meta(CapacityCost.Meta):
        indexes: ClassVar = [models.Index(fields=("start", "cluster"), name="capacity_cost_month")]
